/** Tensors: scales and zero points, codes, constants, orders in memory. */
#include "convert/onnx/import.h"
#include "infer/model/qm_layout.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ operands */

oq_operand oq_input(oq_importer *q, int i)
{
    int const value = i < q->b.node->n_inputs ? q->b.node->inputs[i] : -1;
    if (value < 0)
        return (oq_operand){.v = {.tensor = -1}};
    return (oq_operand){q->values[value], q->b.values[value]};
}

bool oq_is_given(const oq_operand *x)
{
    return x->v.tensor >= 0 || x->v.tensor <= OQ_FIRST_INPUT || x->v.op || x->v.constant.codes ||
           x->shape.constant;
}

bool oq_is_empty(const oq_operand *x)
{
    const qat_foreign_tensor *t = x->v.constant.codes ? x->v.constant.codes : x->shape.constant;
    return t && !t->count;
}

int32_t oq_code_of(float real, const oq_target *grid)
{
    int32_t const lowest = grid->type == QI_S8 ? INT8_MIN : 0, highest = lowest + UINT8_MAX;
    float const steps = rintf(real / grid->scale);
    if (!(steps > (float)(lowest - grid->zero_point)))
        return lowest;
    if (steps >= (float)(highest - grid->zero_point))
        return highest;
    return (int32_t)steps + grid->zero_point;
}

static bool is_scale(float scale)
{
    return scale > 0 && isfinite(scale);
}

/** The constant in input i; NULL: there is none. */
static const qat_foreign_tensor *constant_of(const oq_importer *q, int i)
{
    const fv *v = i < 0 ? NULL : fv_input(&q->b, i);
    return v ? v->constant : NULL;
}

/** Is it a code of this type? A list without a type is of uint8. */
static bool is_code(int64_t zero_point, int stored)
{
    switch (stored) {
    case OQ_INT8:
    case OQ_INT4:
        return zero_point >= INT8_MIN && zero_point <= INT8_MAX;
    case OQ_INT16:
    case OQ_INT32:
        return zero_point >= INT16_MIN && zero_point <= INT16_MAX;
    case OQ_UINT16:
        return zero_point >= 0 && zero_point <= UINT16_MAX;
    default:
        return zero_point >= 0 && zero_point <= UINT8_MAX;
    }
}

qat_status oq_scales(oq_importer *q, int scale, int zero_point, oq_constant *c, int *stored)
{
    const qat_foreign_tensor *s = constant_of(q, scale), *z = constant_of(q, zero_point);
    if (!s || s->type != QAT_FOREIGN_FLOAT || s->rank > 1 || s->count < 1)
        return fv_refuse(&q->b, "its scale, input %d, is not a constant list of floats", scale);
    if (fv_input(&q->b, zero_point) && (!z || z->type != QAT_FOREIGN_INT || z->rank > 1))
        return fv_refuse(&q->b, "its zero point, input %d, is not a constant of integers",
                         zero_point);
    for (size_t i = 0; i < s->count; i++)
        if (!is_scale(s->floats[i]))
            return fv_refuse(&q->b, "its scale is %g", (double)s->floats[i]);
    if (z && z->count != 1 && z->count != s->count)
        return fv_refuse(&q->b, "%zu scales, but %zu zero points", s->count, z->count);
    for (size_t i = 0; z && i < z->count; i++) {
        if (!is_code(z->ints[i], z->stored))
            return fv_refuse(&q->b, "its zero point is %lld, no code of type %s",
                             (long long)z->ints[i], oq_type_name(z->stored));
        if (z->ints[i] != z->ints[0])
            c->zero_points = z->ints;
    }
    c->scales = s->floats;
    c->n_scales = s->count;
    c->zero_point = z && z->count ? (int32_t)z->ints[0] : 0;
    *stored = z ? z->stored : 0;
    return QAT_OK;
}

const char *oq_type_name(int64_t type)
{
    static const char *const names[] = {"of no type", "float", "uint8", "int8",
                                        "uint16",     "int16", "int32", "int64"};
    return type >= 0 && type < (int64_t)(sizeof names / sizeof *names) ? names[type]
           : type == OQ_UINT4                                          ? "uint4"
           : type == OQ_INT4                                           ? "int4"
                                                                       : "another type";
}

qat_status oq_grid(oq_importer *q, int scale, int zero_point, oq_target *grid)
{
    oq_constant c = {0};
    int stored = 0;
    qat_status const st = oq_scales(q, scale, zero_point, &c, &stored);
    if (st)
        return st;
    int64_t const given = stored ? stored : fv_attr_int(&q->b, "output_dtype", 0);
    if (c.n_scales != 1)
        return fv_refuse(&q->b, "%zu scales for an activation; one is supported", c.n_scales);
    if (given && given != OQ_UINT8 && given != OQ_INT8)
        return fv_refuse(&q->b, "codes of type %s; activations of uint8 and int8 are supported",
                         oq_type_name(given));
    *grid = (oq_target){.type = given == OQ_INT8 ? QI_S8 : QI_U8,
                        .scale = c.scales[0],
                        .zero_point = c.zero_point,
                        .lo = -INFINITY,
                        .hi = INFINITY,
                        .value = -1};
    return QAT_OK;
}

/** Several scales of a constant belong to the indices of a dimension that it has. */
static qat_status check_axis(const oq_importer *q, const oq_constant *c, int64_t axis)
{
    if (c->n_scales == 1 || strcmp(q->b.node->op, "DequantizeLinear") != 0)
        return QAT_OK; /* the weights of a QLinear operator have no axis */
    if (axis < 0 || axis >= c->codes->rank || c->codes->dims[axis] != (int64_t)c->n_scales)
        return fv_refuse(&q->b, "%zu scales do not fit dimension %lld of its constant", c->n_scales,
                         (long long)axis);
    return QAT_OK;
}

/** The same codes with another scale or zero point than they were made with: other reals. */
static qat_status name_anew(oq_importer *q, oq_operand *x, const oq_target *grid)
{
    const qat_qtensor *t = &q->graph->tensors[x->v.tensor];
    oq_constant const c = {.scales = &grid->scale, .n_scales = 1, .zero_point = grid->zero_point};
    int32_t lo, hi;
    qat_tensor_codes(t, &lo, &hi);
    if (grid->zero_point < lo || grid->zero_point > hi)
        return fv_refuse(&q->b, "its zero point is %d, of codes %d to %d", (int)grid->zero_point,
                         (int)lo, (int)hi);
    qat_status st = oq_dequantize_channels(q, &c, x);
    if (!st)
        st = oq_quantize(q, x, grid);
    if (!st)
        *x = (oq_operand){q->values[grid->value], q->b.values[grid->value]};
    x->v.is_real = true;
    return st;
}

qat_status oq_real_input(oq_importer *q, int i, oq_operand *x)
{
    oq_constant c = {0};
    int stored = 0;
    *x = oq_input(q, i);
    qat_status const st = oq_scales(q, i + 1, i + 2, &c, &stored);
    if (st)
        return st;
    c.codes = x->shape.constant;
    if (c.codes && c.codes->type == QAT_FOREIGN_INT) {
        int64_t const given = fv_attr_int(&q->b, "axis", 1);
        int64_t const axis = given < 0 ? given + c.codes->rank : given;
        qat_status const fits = check_axis(q, &c, axis);
        if (fits)
            return fits;
        c.axis = c.n_scales > 1 && axis >= 0 && axis < c.codes->rank ? (int)axis : 0;
        x->v = (oq_value){.tensor = -1, .is_real = true, .constant = c};
        x->shape.rank = c.codes->rank;
        memcpy(x->shape.dims, c.codes->dims, sizeof x->shape.dims);
        x->shape.constant = NULL;
        return fv_attr_int(&q->b, "block_size", 0)
                   ? fv_refuse(&q->b, "attribute block_size is not supported")
                   : QAT_OK;
    }
    if (x->v.tensor < 0 || x->v.is_real)
        return fv_refuse(&q->b, "its input %d is not of codes", i);
    const qat_qtensor *t = &q->graph->tensors[x->v.tensor];
    if (c.n_scales != 1 && strcmp(q->b.node->op, "DequantizeLinear") != 0)
        return fv_refuse(&q->b, "%zu scales for an activation; one is supported", c.n_scales);
    if (c.n_scales != 1)
        return oq_dequantize_channels(q, &c, x);
    x->v.is_real = true;
    oq_target const grid = {t->type,  c.scales[0],         c.zero_point, -INFINITY,
                            INFINITY, q->b.from->n_values, NULL};
    return c.scales[0] == t->scale && c.zero_point == t->zero_point ? QAT_OK
                                                                    : name_anew(q, x, &grid);
}

qat_status oq_codes(oq_importer *q, oq_operand *x, const char *what)
{
    if (x->v.tensor >= 0)
        return x->v.function ? oq_own_grid(q, x) : QAT_OK;
    return fv_refuse(&q->b, "its %s is not quantized (no QuantizeLinear and DequantizeLinear)",
                     what);
}

oq_target oq_same_codes(const oq_importer *q, const oq_operand *x, int value)
{
    const qat_qtensor *t = &q->graph->tensors[x->v.tensor];
    return (oq_target){.type = t->type,
                       .scale = t->scale,
                       .zero_point = t->zero_point,
                       .lo = -INFINITY,
                       .hi = INFINITY,
                       .value = value};
}

/* ------------------------------------------------------------------ appending */

void oq_set(oq_importer *q, int value, const oq_value *v, int rank, const int64_t *dims)
{
    if (value < 0)
        return;
    fv *shape = &q->b.values[value];
    q->values[value] = *v;
    *shape = (fv){.rank = rank};
    if (rank)
        memcpy(shape->dims, dims, (size_t)rank * sizeof *dims);
}

void oq_output(oq_importer *q, int i, const oq_value *v, int rank, const int64_t *dims)
{
    oq_set(q, i < q->b.node->n_outputs ? q->b.node->outputs[i] : -1, v, rank, dims);
}

qat_emit oq_emit(const oq_importer *q, int n, const int *inputs, int output,
                 const oq_target *target)
{
    /* Bounds as the reals of their codes, so that they are rounded as QuantizeLinear does. */
    qat_emit e = {.graph = q->graph,
                  .profile = QAT_PROFILE_ONNX,
                  .name = q->b.name,
                  .n_inputs = n,
                  .inputs = inputs,
                  .output = output,
                  .act_min = -INFINITY,
                  .act_max = INFINITY};
    if (target && target->type == QI_S16) {
        e.profile = QAT_PROFILE_PAPER; /* 16-bit codes are not ONNX's */
        e.act_min = target->lo;
        e.act_max = target->hi;
        return e;
    }
    if (target && target->lo > -INFINITY)
        e.act_min = target->scale * (float)(oq_code_of(target->lo, target) - target->zero_point);
    if (target && target->hi < INFINITY)
        e.act_max = target->scale * (float)(oq_code_of(target->hi, target) - target->zero_point);
    return e;
}

static qat_status append(oq_importer *q, const qat_qtensor *t, int *tensor)
{
    *tensor = qat_qgraph_tensor(q->graph, t, q->err);
    return qat_append_status(*tensor, q->err);
}

qat_status oq_append_output(oq_importer *q, const oq_target *target, int n_last, int rank,
                            const int64_t *dims, int *tensor)
{
    bool const has_name = target->value >= 0 && target->value < q->b.from->n_values;
    qat_qtensor t = {.type = target->type,
                     .bits = target->type == QI_S16 ? 16 : 8,
                     .rank = rank < 1             ? 1
                             : rank > QI_MAX_RANK ? QI_MAX_RANK
                                                  : rank,
                     .scale = target->scale,
                     .zero_point = target->zero_point,
                     .source_index = has_name ? target->value : -1};
    snprintf(t.name, sizeof t.name, "%s",
             has_name ? q->b.from->values[target->value].name : q->b.name);
    qat_status st = oq_dims(q, n_last, rank, dims, t.dims);
    if (!st)
        st = append(q, &t, tensor);
    oq_value const v = {.tensor = *tensor, .n_last = n_last};
    if (!st)
        oq_set(q, target->value, &v, rank, dims);
    return st;
}

qat_status oq_append_like(oq_importer *q, int like, const char *part, int rank, const int32_t *dims,
                          int *tensor)
{
    qat_qtensor t = q->graph->tensors[like];
    qat_part_name(t.name, q->b.name, part);
    t.source_index = -1;
    t.border = QI_BORDER_NONE;
    t.rank = rank ? rank : 1;
    for (int i = 0; i < QI_MAX_RANK; i++)
        t.dims[i] = i < rank ? dims[i] : 1;
    return append(q, &t, tensor);
}

qat_status oq_append_constant(oq_importer *q, qat_qtensor *t)
{
    enum { PER_CHANNEL = 32 }; /* bytes beside the codes: scales, bias, multipliers */
    size_t const bytes = qat_qtensor_bytes(t) + (size_t)t->n_channels * PER_CHANNEL;
    if (bytes > q->b.room)
        return qat_fail(q->err, QAT_ERR_LIMIT,
                        "%s: node '%.80s': constants take more memory than is allowed",
                        q->b.from->source, q->b.name);
    q->b.room -= bytes;
    int tensor;
    qat_status const st = append(q, t, &tensor);
    t->source_index = tensor;
    return st;
}

/* ------------------------------------------------------------------ quantizing */

float oq_real_of(const oq_importer *q, const oq_value *v, int r, int i)
{
    const qat_qtensor *t = &q->graph->tensors[v->tensor];
    return v->function ? v->function[(size_t)r * OQ_BYTES + (size_t)i]
                       : t->scale * (float)(qat_qtensor_code(t, (uint8_t)i) - t->zero_point);
}

int oq_rows(const oq_value *v)
{
    return v->function ? v->rows : 1;
}

/** An order in which the dimension with a function for each index lies last. */
static qat_status order_rows(oq_importer *q, oq_operand *x)
{
    int const rank = x->shape.rank, axis = x->v.row_axis;
    if (oq_rows(&x->v) == 1 || oq_place(x->v.n_last, rank, axis) == rank - 1)
        return QAT_OK;
    if (axis == 0)
        return fv_refuse(&q->b, "scales or constants for each index of dimension 0; of other "
                                "dimensions they are supported");
    qat_status const st = oq_few_dims(q, rank);
    return st ? st : oq_order(q, x, axis == rank - 1 ? 0 : axis);
}

/** A table from the bytes of x, whose positions begin at code -128 of int8. */
static qat_status append_table(oq_importer *q, oq_operand *x, const oq_target *target)
{
    int const rows = oq_rows(&x->v);
    size_t const count = (size_t)rows * OQ_BYTES;
    uint8_t *codes = fv_take(&q->b, &q->b.arena, count, 1);
    int output = -1;
    uint8_t const first = q->graph->tensors[x->v.tensor].type == QI_S8 ? 0x80 : 0;
    if (!codes || count > q->b.room)
        return fv_graph_error(&q->b);
    q->b.room -= count; /* the graph has a copy */
    qat_status st = order_rows(q, x);
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < OQ_BYTES; i++)
            codes[(size_t)r * OQ_BYTES + (size_t)i] =
                (uint8_t)oq_code_of(oq_real_of(q, &x->v, r, i ^ first), target);
    if (!st)
        st = oq_append_output(q, target, x->v.n_last, x->shape.rank, x->shape.dims, &output);
    qat_emit const e = oq_emit(q, 1, &x->v.tensor, output, NULL);
    return st ? st : qat_emit_table(&e, rows, codes, q->err);
}

/** Codes of a type: the lowest and the highest; false: it has none here. */
static bool codes_of_type(int64_t type, float *lowest, float *highest)
{
    int const bits = type == OQ_UINT4 || type == OQ_INT4 ? 4 : 8;
    bool const is_signed = type == OQ_INT4 || type == OQ_INT8;
    *lowest = is_signed ? (float)-(1 << (bits - 1)) : 0;
    *highest = *lowest + (float)((1 << bits) - 1);
    return is_signed || type == OQ_UINT4 || type == OQ_UINT8;
}

qat_status oq_quantize_constant(oq_importer *q, const oq_operand *operand)
{
    const qat_foreign_tensor *x =
        operand->v.constant.codes ? operand->v.constant.codes : operand->shape.constant;
    const float *reals = oq_reals_of(q, operand);
    oq_constant c = {0};
    int stored = 0;
    float lowest, highest;
    qat_status const st = oq_scales(q, 1, 2, &c, &stored);
    if (st)
        return st;
    int64_t const type = stored ? stored : fv_attr_int(&q->b, "output_dtype", OQ_UINT8);
    int64_t const given = fv_attr_int(&q->b, "axis", 1), axis = given < 0 ? given + x->rank : given;
    if (!codes_of_type(type, &lowest, &highest))
        return fv_refuse(&q->b, "codes of type %s; constants of 4 and 8 bits are supported",
                         oq_type_name(type));
    if (c.n_scales > 1 && (axis < 0 || axis >= x->rank || x->dims[axis] != (int64_t)c.n_scales))
        return fv_refuse(&q->b, "%zu scales do not fit its dimension %lld", c.n_scales,
                         (long long)axis);
    qat_foreign_tensor *t = fv_constant(&q->b, QAT_FOREIGN_INT, x->rank, x->dims);
    if (!t)
        return fv_graph_error(&q->b);
    t->stored = (int)type;
    if (!reals)
        return fv_graph_error(&q->b);
    size_t inner = 1;
    for (int i = (int)axis + 1; c.n_scales > 1 && i < x->rank; i++)
        inner *= (size_t)x->dims[i];
    for (size_t i = 0; i < t->count; i++) {
        size_t const k = i / inner % c.n_scales;
        float const zero = (float)(c.zero_points ? c.zero_points[k] : c.zero_point);
        float const code = rintf(reals[i] / c.scales[k]) + zero;
        ((int64_t *)t->ints)[i] = (int64_t)(!(code > lowest) ? lowest
                                            : code > highest ? highest
                                                             : code);
    }
    fv_output_constant(&q->b, 0, t);
    return QAT_OK;
}

static bool has_grid(const qat_qtensor *t, const oq_target *target)
{
    return t->type == target->type && t->scale == target->scale &&
           t->zero_point == target->zero_point;
}

/** Input i of the file, of floats: its QuantizeLinear makes it an input of codes. */
static qat_status quantize_input(oq_importer *q, const oq_operand *x, const oq_target *target,
                                 int i)
{
    oq_target codes = *target;
    oq_value v = {.n_last = x->shape.rank == 4 && !q->packed};
    codes.value = -1;
    qat_status st = QAT_OK;
    if (q->inputs[i] < 0) {
        st = oq_append_output(q, &codes, v.n_last, x->shape.rank, x->shape.dims, &q->inputs[i]);
        qat_qtensor *t = st ? NULL : &q->graph->tensors[q->inputs[i]];
        if (t) {
            t->border = QI_BORDER_EVEN;
            t->source_index = q->b.from->inputs[i];
            snprintf(t->name, sizeof t->name, "%s", q->b.from->values[t->source_index].name);
        }
    }
    if (!st && !has_grid(&q->graph->tensors[q->inputs[i]], target))
        return fv_refuse(&q->b, "the network's input %d is quantized in two ways", i);
    v.tensor = q->inputs[i];
    if (!st)
        oq_set(q, target->value, &v, x->shape.rank, x->shape.dims);
    return st;
}

static float limited(float x, float lo, float hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}

qat_status oq_finish(oq_importer *q, int from, const oq_target *target)
{
    oq_operand x = {q->values[from], q->b.values[from]};
    qat_status st = QAT_OK;
    x.v.is_real = true;
    if (target->lo > -INFINITY || target->hi < INFINITY)
        st = oq_apply(q, &x, limited, target->lo, target->hi);
    return st ? st : oq_quantize(q, &x, target);
}

qat_status oq_quantize(oq_importer *q, oq_operand *x, const oq_target *target)
{
    if (x->v.tensor <= OQ_FIRST_INPUT)
        return quantize_input(q, x, target, OQ_FIRST_INPUT - x->v.tensor);
    if (x->v.op)
        return oq_emit_noted(q, &x->v, target);
    if (x->v.tensor < 0 || !x->v.is_real)
        return fv_refuse(&q->b, "its input is no real numbers");
    if (x->v.function || !has_grid(&q->graph->tensors[x->v.tensor], target))
        return append_table(q, x, target);
    oq_value v = x->v;
    v.is_real = false;
    oq_set(q, target->value, &v, x->shape.rank, x->shape.dims);
    return QAT_OK;
}

float *oq_new_function(oq_importer *q, int rows)
{
    return fv_take(&q->b, &q->b.arena, (size_t)rows * OQ_BYTES, sizeof(float));
}

void oq_set_function(oq_operand *x, float *function, int rows, int axis)
{
    x->v.channels = NULL;
    x->v.function = function;
    x->v.rows = rows;
    x->v.row_axis = axis;
}

qat_status oq_apply(oq_importer *q, oq_operand *x, oq_function *f, float a, float b)
{
    int const rows = oq_rows(&x->v);
    float *to = oq_new_function(q, rows);
    if (!to)
        return fv_graph_error(&q->b);
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < OQ_BYTES; i++)
            to[(size_t)r * OQ_BYTES + (size_t)i] = f(oq_real_of(q, &x->v, r, i), a, b);
    oq_set_function(x, to, rows, x->v.row_axis);
    return QAT_OK;
}

qat_status oq_apply_each(oq_importer *q, oq_operand *x, oq_function *f, int n, int axis,
                         const float *a, const float *b)
{
    int const old = oq_rows(&x->v), rows = n > old ? n : old;
    if (n > 1 && old > 1 && axis != x->v.row_axis)
        return fv_refuse(&q->b, "constants along another dimension than those before it");
    float *to = oq_new_function(q, rows);
    if (!to)
        return fv_graph_error(&q->b);
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < OQ_BYTES; i++)
            to[(size_t)r * OQ_BYTES + (size_t)i] = f(oq_real_of(q, &x->v, old > 1 ? r : 0, i),
                                                     a[n > 1 ? r : 0], b ? b[n > 1 ? r : 0] : 0);
    oq_set_function(x, to, rows, n > 1 ? axis : x->v.row_axis);
    return QAT_OK;
}

qat_status oq_apply_two(oq_importer *q, oq_operand *x, const oq_operand *y, oq_function *f)
{
    int const rx = oq_rows(&x->v), ry = oq_rows(&y->v), rows = rx > ry ? rx : ry;
    int const axis = rx > 1 ? x->v.row_axis : y->v.row_axis;
    if (rx > 1 && ry > 1 && x->v.row_axis != y->v.row_axis)
        return fv_refuse(&q->b, "two functions along different dimensions");
    float *to = oq_new_function(q, rows);
    if (!to)
        return fv_graph_error(&q->b);
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < OQ_BYTES; i++)
            to[(size_t)r * OQ_BYTES + (size_t)i] = f(oq_real_of(q, &x->v, rx > 1 ? r : 0, i),
                                                     oq_real_of(q, &y->v, ry > 1 ? r : 0, i), 0);
    oq_set_function(x, to, rows, axis);
    return QAT_OK;
}
