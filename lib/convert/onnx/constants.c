/**
 * Operators of reals with constants of reals: sums, products, batch norms.
 *
 *     of codes             they become a function of the codes, or one for each channel: a table
 *     of a layer's result  its weights' scales and its bias take them: the layer is only noted
 */
#include "convert/onnx/import.h"

#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------ constants */

const float *oq_reals_of(oq_importer *q, const oq_operand *x)
{
    const oq_constant *c = &x->v.constant;
    if (!c->codes)
        return x->shape.constant && x->shape.constant->type == QAT_FOREIGN_FLOAT
                   ? x->shape.constant->floats
                   : NULL;
    size_t inner = 1;
    for (int i = c->axis + 1; c->n_scales > 1 && i < c->codes->rank; i++)
        inner *= (size_t)c->codes->dims[i];
    float *to = fv_take(&q->b, &q->b.arena, c->codes->count, sizeof *to);
    for (size_t i = 0; to && i < c->codes->count; i++) {
        size_t const k = i / inner % c->n_scales;
        int64_t const zero = c->zero_points ? c->zero_points[k] : c->zero_point;
        to[i] = c->scales[k] * (float)(c->codes->ints[i] - zero);
    }
    return to;
}

bool oq_is_constant(const oq_operand *x)
{
    return x->v.constant.codes ||
           (x->shape.constant && x->shape.constant->type == QAT_FOREIGN_FLOAT);
}

static const qat_foreign_tensor *tensor_of(const oq_operand *x)
{
    return x->v.constant.codes ? x->v.constant.codes : x->shape.constant;
}

/**
 * Along which of `rank` dimensions does the constant change?
 * @param axis  0 if it is one number
 */
static qat_status axis_of(const oq_importer *q, const qat_foreign_tensor *c, int rank, int *axis)
{
    *axis = 0;
    for (int i = 0; i < c->rank; i++) {
        if (c->dims[i] == 1)
            continue;
        int const at = i + rank - c->rank;
        if (at < 0 || (size_t)c->dims[i] != c->count)
            return fv_refuse(&q->b, "a constant that changes along several dimensions, and is not "
                                    "quantized");
        *axis = at;
    }
    return c->count ? QAT_OK : fv_refuse(&q->b, "an empty constant");
}

/* ------------------------------------------------------------------ functions */

static float plus(float x, float a, float unused)
{
    return x + a;
}

static float minus(float x, float a, float unused)
{
    return x - a;
}

static float minus_from(float x, float a, float unused)
{
    return a - x;
}

static float times(float x, float a, float unused)
{
    return x * a;
}

static float over(float x, float a, float unused)
{
    return x / a;
}

static float over_from(float x, float a, float unused)
{
    return a / x;
}

static float scaled(float x, float a, float b)
{
    return x * a + b;
}

static float sloped(float x, float a, float unused)
{
    return x < 0 ? a * x : x;
}

static float power(float x, float a, float unused)
{
    return a == 2 ? x * x : powf(x, a);
}

static float larger(float x, float a, float unused)
{
    return x > a ? x : a;
}

static float smaller(float x, float a, float unused)
{
    return x < a ? x : a;
}

/** reversed: the constant is the first input. NULL: there is none. */
typedef struct oq_pair {
    const char *op;
    oq_function *f, *reversed;
} oq_pair;

static const oq_pair pairs[] = {
    {"Add", plus, plus},      {"Sub", minus, minus_from}, {"Mul", times, times},
    {"Div", over, over_from}, {"PRelu", sloped, NULL},    {"Pow", power, NULL},
    {"Max", larger, larger},  {"Min", smaller, smaller},  {NULL, NULL, NULL},
};

/* ------------------------------------------------------------------ behind a layer */

bool oq_is_layer(const oq_importer *q, const qat_foreign_node *op, int *rank, int *axis, int *n)
{
    bool const is_conv = !strcmp(op->op, "Conv"), is_up = !strcmp(op->op, "ConvTranspose");
    bool const is_gemm = !strcmp(op->op, "Gemm");
    if ((!is_conv && !is_up && !is_gemm && strcmp(op->op, "MatMul") != 0) || op->n_inputs < 2 ||
        op->inputs[0] < 0 || op->inputs[1] < 0)
        return false;
    const oq_constant *w = &q->values[op->inputs[1]].constant;
    *rank = q->b.values[op->inputs[0]].rank;
    *axis = is_conv || is_up ? 1 : *rank - 1;
    if (!w->codes || w->codes->rank < 2 || *rank < 2)
        return false;
    bool transposed = false;
    for (int i = 0; is_gemm && i < op->n_attrs; i++)
        transposed = transposed || (!strcmp(op->attrs[i].name, "transB") && op->attrs[i].i);
    *n = (int)w->codes->dims[is_conv || transposed ? 0 : 1];
    return !is_up; /* whose groups are not known here */
}

qat_status oq_scale_layer(oq_importer *q, oq_operand *x, int n, const float *gain,
                          const float *offset)
{
    const oq_affine *was = x->v.affine;
    int const all = was && was->n > n ? was->n : n;
    oq_affine *to = fv_take(&q->b, &q->b.arena, 1, sizeof *to);
    float *g = fv_take(&q->b, &q->b.arena, (size_t)all, sizeof *g);
    float *o = fv_take(&q->b, &q->b.arena, (size_t)all, sizeof *o);
    if (!to || !g || !o)
        return fv_graph_error(&q->b);
    for (int i = 0; i < all; i++) {
        int const k = n > 1 ? i : 0, w = was && was->n > 1 ? i : 0;
        g[i] = (was ? was->gain[w] : 1) * gain[k];
        o[i] = (was ? was->offset[w] : 0) * gain[k] + offset[k];
        if (!isfinite(g[i]) || !isfinite(o[i]))
            return fv_refuse(&q->b, "its constants make no finite factor");
    }
    *to = (oq_affine){all, g, o};
    x->v.affine = to;
    return QAT_OK;
}

/** The same as output 0. */
static qat_status behind_layer(oq_importer *q, oq_operand *x, int n, const float *gain,
                               const float *offset)
{
    qat_status const st = oq_scale_layer(q, x, n, gain, offset);
    if (!st)
        oq_output(q, 0, &x->v, 0, NULL);
    return st;
}

/** A layer's result and a constant. */
static qat_status pair_behind_layer(oq_importer *q, const oq_pair *p, bool reversed, oq_operand *x,
                                    const qat_foreign_tensor *c, const float *values, bool *done)
{
    int rank, axis, outputs, along;
    oq_function *const f = reversed ? p->reversed : p->f;
    bool const is_sum = f == plus || f == minus || f == minus_from, is_product = f == times;
    if (!oq_is_layer(q, x->v.op, &rank, &axis, &outputs) || (!is_sum && !is_product && f != over) ||
        x->v.lo > -INFINITY || x->v.hi < INFINITY)
        return QAT_OK;
    qat_status const st = axis_of(q, c, rank, &along);
    if (st)
        return st;
    if (c->count > 1 && (along != axis || c->count != (size_t)outputs))
        return fv_refuse(&q->b, "a constant that changes along dimension %d", along);
    float *gain = fv_take(&q->b, &q->b.arena, c->count, sizeof *gain);
    float *offset = fv_take(&q->b, &q->b.arena, c->count, sizeof *offset);
    if (!gain || !offset)
        return fv_graph_error(&q->b);
    for (size_t i = 0; i < c->count; i++) {
        gain[i] = f == minus_from ? -1 : f == times ? values[i] : f == over ? 1 / values[i] : 1;
        offset[i] = f == minus ? -values[i] : is_sum ? values[i] : 0;
    }
    *done = true;
    return behind_layer(q, x, (int)c->count, gain, offset);
}

/* ------------------------------------------------------------------ of codes */

static bool has_reals(const oq_operand *x)
{
    return x->v.tensor >= 0 && x->v.is_real;
}

static qat_status give(oq_importer *q, const oq_operand *x)
{
    oq_output(q, 0, &x->v, x->shape.rank, x->shape.dims);
    return QAT_OK;
}

static bool same_shape(const fv *x, const fv *y)
{
    return x->rank == y->rank && !memcmp(x->dims, y->dims, (size_t)x->rank * sizeof *x->dims);
}

/** Two functions of the same codes are one; with a constant, too. */
static qat_status build_pair(oq_importer *q, const oq_pair *p, bool *done)
{
    oq_operand in[] = {oq_input(q, 0), oq_input(q, 1)};
    if (q->b.node->n_inputs != 2)
        return QAT_OK;
    if (has_reals(&in[0]) && has_reals(&in[1])) {
        bool const joins = p->reversed && in[0].v.tensor == in[1].v.tensor &&
                           (in[0].v.function || in[1].v.function) &&
                           in[0].v.n_last == in[1].v.n_last &&
                           same_shape(&in[0].shape, &in[1].shape);
        if (!joins)
            return QAT_OK;
        *done = true;
        qat_status const st = oq_apply_two(q, &in[0], &in[1], p->f);
        return st ? st : give(q, &in[0]);
    }
    bool const reversed = oq_is_constant(&in[0]);
    oq_operand *x = &in[reversed], *c = &in[!reversed];
    oq_function *f = reversed ? p->reversed : p->f;
    if (!oq_is_constant(c) || !f)
        return QAT_OK;
    const float *values = oq_reals_of(q, c);
    const qat_foreign_tensor *t = tensor_of(c);
    if (!values)
        return fv_graph_error(&q->b);
    if (x->v.op)
        return pair_behind_layer(q, p, reversed, x, t, values, done);
    /* Codes of both become an op of the engine. */
    bool const is_op =
        c->v.constant.codes && !x->v.function && (f == plus || f == minus || f == times);
    if (!has_reals(x) || is_op)
        return QAT_OK;
    int axis;
    qat_status st = axis_of(q, t, x->shape.rank, &axis);
    if (!st && t->count > 1 && x->shape.dims[axis] != (int64_t)t->count)
        return fv_refuse(&q->b, "%zu constants for a dimension of %lld", t->count,
                         (long long)x->shape.dims[axis]);
    if (!st)
        st = oq_apply_each(q, x, f, (int)t->count, axis, values, NULL);
    *done = true;
    return st ? st : give(q, x);
}

/* ------------------------------------------------------------------ BatchNormalization */

/** Inputs 1 to 4: scale, bias, mean, variance, as ONNX Runtime makes a factor and a sum of them. */
static qat_status norm_constants(oq_importer *q, size_t *n, float **gain, float **offset)
{
    const float *values[4];
    for (int i = 0; i < 4; i++) {
        oq_operand const c = oq_input(q, 1 + i);
        values[i] = oq_is_constant(&c) ? oq_reals_of(q, &c) : NULL;
        if (!values[i] || tensor_of(&c)->count != (i ? *n : tensor_of(&c)->count))
            return fv_refuse(
                &q->b, "its input %d is not a constant list of floats for each channel", 1 + i);
        *n = tensor_of(&c)->count;
    }
    float const epsilon = (float)fv_attr_real(&q->b, "epsilon", 1e-5);
    *gain = fv_take(&q->b, &q->b.arena, *n, sizeof **gain);
    *offset = fv_take(&q->b, &q->b.arena, *n, sizeof **offset);
    if (!*gain || !*offset)
        return fv_graph_error(&q->b);
    for (size_t i = 0; i < *n; i++) {
        (*gain)[i] = 1 / sqrtf(values[3][i] + epsilon) * values[0][i];
        (*offset)[i] = values[1][i] - values[2][i] * (*gain)[i];
        if (!isfinite((*gain)[i]) || !isfinite((*offset)[i]))
            return fv_refuse(&q->b, "its channel %zu has no finite factor", i);
    }
    return QAT_OK;
}

static qat_status build_norm(oq_importer *q)
{
    oq_operand x = oq_input(q, 0);
    size_t n = 0;
    float *gain = NULL, *offset = NULL;
    int rank, axis, outputs;
    if (fv_attr_int(&q->b, "training_mode", 0))
        return fv_refuse(&q->b,
                         "attribute training_mode = 1: export the network in evaluation mode");
    qat_status st = norm_constants(q, &n, &gain, &offset);
    if (st)
        return st;
    if (x.v.op && oq_is_layer(q, x.v.op, &rank, &axis, &outputs) && axis == 1 &&
        (size_t)outputs == n && x.v.lo == -INFINITY && x.v.hi == INFINITY)
        return behind_layer(q, &x, (int)n, gain, offset);
    if (!has_reals(&x))
        return fv_refuse(&q->b, x.v.op ? "a batch norm of a result that is not quantized before it"
                                       : "its input is not quantized");
    if (x.shape.rank < 2 || x.shape.dims[1] != (int64_t)n)
        return fv_refuse(&q->b, "%zu channels for an input of %d dimensions", n, x.shape.rank);
    st = oq_apply_each(q, &x, scaled, (int)n, 1, gain, offset);
    return st ? st : give(q, &x);
}

qat_status oq_with_constants(oq_importer *q, bool *done)
{
    *done = !strcmp(q->b.node->op, "BatchNormalization");
    if (*done)
        return build_norm(q);
    for (const oq_pair *p = pairs; p->op; p++)
        if (!strcmp(p->op, q->b.node->op))
            return build_pair(q, p, done);
    return QAT_OK;
}
