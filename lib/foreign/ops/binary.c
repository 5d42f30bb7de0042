/** Sums and products of a value and a constant, or of two values. */
#include "foreign/build.h"

#include <string.h>

/* ------------------------------------------------------------------ with a constant */

/** Along which of the value's dimensions does the constant change? False: it does not fit. */
static bool changes_along(const fv *x, const qat_foreign_tensor *c, bool along[QAT_FOREIGN_RANK])
{
    for (int i = 0; i < QAT_FOREIGN_RANK; i++)
        along[i] = false;
    if (c->rank > x->rank)
        return false;
    for (int i = c->rank - 1, k = x->rank - 1; i >= 0 && k >= 0; i--, k--) {
        along[k] = c->dims[i] != 1;
        if (along[k] && (k < fv_first(x) || c->dims[i] != x->dims[k]))
            return false;
    }
    return true;
}

/** The constant by position in the dimensions along which it changes, in x's order in memory. */
static float *values_in_memory(builder *b, const fv *x, const qat_foreign_tensor *c,
                               const bool along[QAT_FOREIGN_RANK], size_t *count)
{
    size_t step[FV_ATOMS] = {0}, next = 1;
    *count = 1;
    for (int a = x->n_atoms - 1; a > 0; a--)
        if (along[x->axis[a]]) {
            step[a] = next;
            next *= (size_t)x->size[a];
        }
    *count = next;
    float *values = fv_take(b, &b->arena, next, sizeof *values);
    for (size_t i = 0; values && i < next; i++) {
        size_t rest = i, at = 0;
        for (int k = x->n_atoms - 1; k > 0; k--) {
            int const a = x->memory[k];
            if (!along[x->axis[a]])
                continue;
            at += rest % (size_t)x->size[a] * step[a];
            rest /= (size_t)x->size[a];
        }
        values[i] = c->floats[at];
    }
    return values;
}

/** Do the atoms along which the constant changes lie last in memory? */
static bool lies_last(const fv *x, const bool along[QAT_FOREIGN_RANK])
{
    bool seen = false;
    for (int i = 1; i < x->n_atoms; i++) {
        bool const is = along[x->axis[x->memory[i]]];
        if (seen && !is)
            return false;
        seen = seen || is;
    }
    return true;
}

/**
 * A constant that is added to or multiplied by a value, along the value's last dimension in memory;
 * the value is brought into an order in which it does.
 * @param node     the value, with its last dimension as long as *values
 */
static qat_status along_last(builder *b, fv *x, const qat_foreign_tensor *c, bool picture,
                             qat_node **node, const float **values)
{
    bool along[QAT_FOREIGN_RANK];
    size_t n;
    if (!changes_along(x, c, along))
        return fv_refuse(b, "a constant whose shape does not fit that of the input");
    if (!lies_last(x, along)) {
        int axes[QAT_FOREIGN_RANK], k = 0;
        for (int pass = 0; pass < 2; pass++)
            for (int i = 0; i < x->rank; i++)
                if (along[i] == (pass == 1))
                    axes[k++] = i;
        qat_status const st = fv_order(b, x, axes);
        if (st)
            return st;
    }
    float *is = values_in_memory(b, x, c, along, &n);
    if (!is)
        return fv_graph_error(b);
    const qat_shape *now = &x->node->shape;
    int const last = qat_shape_channels(now);
    size_t const channels = n == 1 && (!picture || now->rank == 4) ? (size_t)last : n;
    if ((size_t)last == channels && (!picture || now->rank == 4)) {
        *node = x->node;
    } else {
        int const rest = (int)(fv_count(x) / (int64_t)channels);
        *node = fv_shaped(b, x, QAT_SHAPE(1, 1, rest, (int)channels));
    }
    float *all = fv_take(b, &b->arena, channels, sizeof *all);
    for (size_t i = 0; all && i < channels; i++)
        all[i] = is[n == 1 ? 0 : i];
    *values = all;
    return all && *node ? QAT_OK : fv_graph_error(b);
}

qat_status fv_raise_rank(builder *b, fv *x, int rank)
{
    int64_t dims[QAT_FOREIGN_RANK];
    int const more = rank - x->rank;
    if (more <= 0 || fv_first(x))
        return QAT_OK;
    for (int i = 0; i < rank; i++)
        dims[i] = i < more ? 1 : x->dims[i - more];
    return fv_reshape(b, x, rank, dims);
}

qat_status fv_widen(builder *b, fv *x, int rank, const int64_t *dims)
{
    qat_status st = fv_raise_rank(b, x, rank);
    for (int i = rank - 1, k = x->rank - 1; i >= 0 && k >= fv_first(x) && !st; i--, k--) {
        if (x->dims[k] != 1 || dims[i] <= 1)
            continue;
        int64_t *at = fv_take(b, &b->arena, (size_t)dims[i], sizeof *at);
        if (!at)
            return fv_graph_error(b);
        memset(at, 0, (size_t)dims[i] * sizeof *at);
        st = fv_gather(b, x, k, at, dims[i], x);
    }
    return st;
}

/* Behind a new last layer the bias begins at 0. */
qat_status fv_add_constant(builder *b, fv *x, const qat_foreign_tensor *c, float factor)
{
    qat_node *from = x->node;
    const float *values = NULL;
    bool const of_head = b->head_was && (int64_t)c->count == b->head_was && x->rank == 2 &&
                         x->dims[1] == b->options->head;
    qat_status st = of_head ? QAT_OK : fv_widen(b, x, c->rank, c->dims);
    if (!st && !of_head)
        st = along_last(b, x, c, false, &from, &values);
    qat_node *y = st ? NULL : fv_add(b, "bias", "", from, " ");
    if (!y)
        return st ? st : fv_graph_error(b);
    float *to = of_head ? NULL : fv_param(b, y, 0);
    for (int i = 0; to && i < qat_shape_channels(&y->shape); i++)
        to[i] = factor * values[i];
    x->node = y;
    return to || of_head ? QAT_OK : fv_graph_error(b);
}

static qat_status add_constant(builder *b, const fv *in, const qat_foreign_tensor *c, float factor)
{
    fv x = *in;
    qat_status const st = c ? fv_add_constant(b, &x, c, factor) : fv_graph_error(b);
    if (!st)
        fv_output(b, 0, &x);
    return st;
}

/* A depthwise convolution of one pixel. */
qat_status fv_scaled(builder *b, const char *part, const fv *in, const qat_foreign_tensor *c,
                     bool divide, fv *out)
{
    fv x = *in;
    qat_node *from;
    const float *values = NULL;
    qat_status st = c ? fv_widen(b, &x, c->rank, c->dims) : fv_graph_error(b);
    if (!st)
        st = along_last(b, &x, c, true, &from, &values);
    qat_node *y = st ? NULL : fv_add(b, "depthwise_conv2d", part, from, "kernel=1");
    if (!y)
        return st ? st : fv_graph_error(b);
    float *to = fv_param(b, y, 0);
    for (int i = 0; to && i < qat_shape_channels(&y->shape); i++)
        to[i] = divide ? 1 / values[i] : values[i];
    *out = fv_like(&x, y);
    return to ? QAT_OK : fv_graph_error(b);
}

static qat_status scale_by(builder *b, const fv *in, const qat_foreign_tensor *c, bool divide)
{
    fv out;
    qat_status const st = fv_scaled(b, "", in, c, divide, &out);
    if (!st)
        fv_output(b, 0, &out);
    return st;
}

/* ------------------------------------------------------------------ two computed inputs */

/** Equal, or 1 in one of the two, in each dimension; the batch is equal. */
static bool fit_together(const fv *x, const fv *y)
{
    if (x->rank != y->rank)
        return false;
    for (int i = 0; i < x->rank; i++)
        if (x->dims[i] != y->dims[i] && x->dims[i] != 1 && y->dims[i] != 1)
            return false;
    return !fv_first(x) || x->dims[0] == y->dims[0];
}

static bool equal_memory(const fv *x, const fv *y)
{
    bool same = x->n_atoms == y->n_atoms && qat_shape_equal(&x->node->shape, &y->node->shape);
    for (int i = 0; same && i < x->n_atoms; i++)
        same = x->size[i] == y->size[i] && x->axis[i] == y->axis[i] && x->memory[i] == y->memory[i];
    return same;
}

/** Both in the order for pictures. */
static qat_status as_equals(builder *b, fv *v, qat_node **node)
{
    if (v->rank >= 2 && v->rank <= 4)
        return fv_planes(b, v, node);
    qat_status const st = fv_to_channels_last(b, v);
    int64_t const c = v->rank > 1 ? v->dims[1] : fv_count(v);
    *node = st ? NULL : fv_shaped(b, v, QAT_SHAPE(1, 1, (int)(fv_count(v) / c), (int)c));
    return *node ? QAT_OK : st ? st : fv_graph_error(b);
}

/**
 * Dimensions that neither or the same one of the two repeats are one: [2, 3, 4] and [2, 3, 1]
 * become [6, 4] and [6, 1]. Three are possible behind the batch.
 */
static qat_status as_groups(builder *b, fv *v[2], qat_node *node[2])
{
    int64_t size[2][3] = {{1, 1, 1}, {1, 1, 1}};
    int axes[QAT_FOREIGN_RANK], n = 0, before = -1;
    for (int i = 0; i < v[0]->rank; i++)
        axes[i] = i;
    for (int i = fv_first(v[0]); i < v[0]->rank; i++) {
        int const repeated = (v[0]->dims[i] == 1) + 2 * (v[1]->dims[i] == 1);
        if (repeated == 3)
            continue;
        n += repeated != before;
        before = repeated;
        for (int k = 0; k < 2 && n <= 3; k++)
            size[k][n - 1] *= v[k]->dims[i];
    }
    if (n > 3)
        return fv_refuse(b, "its inputs repeat each other in more than three parts");
    for (int k = 0; k < 2; k++) {
        qat_status const st = fv_order(b, v[k], axes);
        node[k] = st ? NULL
                     : fv_shaped(b, v[k],
                                 QAT_SHAPE(1, (int)size[k][0], (int)size[k][1], (int)size[k][2]));
        if (!node[k])
            return st ? st : fv_graph_error(b);
    }
    return QAT_OK;
}

/** add, sub, mul of two values. */
static qat_status combine_values(builder *b, const char *op, fv x, fv y, fv *out)
{
    fv *both[] = {&x, &y};
    qat_node *from[2];
    int64_t dims[QAT_FOREIGN_RANK] = {0};
    qat_status st = fv_raise_rank(b, &x, y.rank);
    if (!st)
        st = fv_raise_rank(b, &y, x.rank);
    if (st)
        return st;
    if (!fit_together(&x, &y))
        return fv_refuse(b, "inputs of other dimensions: they must be equal, or 1 in one of them");
    bool equal = true, in_order = false;
    for (int i = 0; i < x.rank; i++) {
        equal = equal && x.dims[i] == y.dims[i];
        dims[i] = x.dims[i] > y.dims[i] ? x.dims[i] : y.dims[i];
    }
    if (equal && equal_memory(&x, &y)) {
        from[0] = x.node;
        from[1] = y.node;
    } else if (equal || (x.rank >= 2 && x.rank <= 4 && !fv_is_stack(&x) && !fv_is_stack(&y))) {
        st = as_equals(b, &x, &from[0]);
        if (!st)
            st = as_equals(b, &y, &from[1]);
    } else {
        in_order = true;
        st = as_groups(b, both, from);
    }
    qat_node *sum = st ? NULL : fv_add2(b, op, "", from[0], from[1], " ");
    if (!sum)
        return st ? st : fv_graph_error(b);
    *out = equal      ? fv_like(&x, sum)
           : in_order ? fv_in_order(b, sum, x.rank, dims)
                      : fv_channels_last(b, sum, x.rank, dims);
    return QAT_OK;
}

qat_status fv_add_scaled(builder *b, fv *x, const fv *y, float factor)
{
    fv by = *y;
    qat_foreign_tensor *c = factor == 1 ? NULL : fv_constant(b, QAT_FOREIGN_FLOAT, 0, NULL);
    if (factor != 1 && !c)
        return fv_graph_error(b);
    if (c)
        ((float *)c->floats)[0] = factor;
    qat_status const st = c ? fv_scaled(b, "scale", y, c, false, &by) : QAT_OK;
    return st ? st : combine_values(b, "add", *x, by, x);
}

static qat_status combine(builder *b, const char *op)
{
    fv *x, *y, out;
    qat_status st = fv_data(b, 0, &x);
    if (!st)
        st = fv_data(b, 1, &y);
    if (!st)
        st = combine_values(b, op, *x, *y, &out);
    if (!st)
        fv_output(b, 0, &out);
    return st;
}

/** Before opset 7, dimension 0 of the second input stands beside dimension `axis` of the first. */
static const qat_foreign_tensor *beside_axis(builder *b, const fv *x, const qat_foreign_tensor *c)
{
    int64_t dims[QAT_FOREIGN_RANK];
    int64_t const axis = b->from->opset < 7 ? fv_attr_int(b, "axis", -1) : -1;
    if (axis < 0 || axis >= x->rank - c->rank)
        return c;
    for (int i = 0; i < x->rank - axis; i++)
        dims[i] = i < c->rank ? c->dims[i] : 1;
    qat_foreign_tensor *t = fv_take(b, &b->arena, 1, sizeof *t);
    if (!t)
        return NULL;
    *t = *c;
    t->rank = (int)(x->rank - axis);
    memcpy(t->dims, dims, (size_t)t->rank * sizeof *dims);
    return t;
}

/** Which input is a constant of floats: 0, 1, or -1. *c NULL: there is no room for it. */
static int constant_of(builder *b, const qat_foreign_tensor **c, const fv **other)
{
    for (int i = 0; i < 2; i++) {
        const fv *v = fv_input(b, i), *o = fv_input(b, 1 - i);
        if (!v || !o || !v->constant || v->constant->type != QAT_FOREIGN_FLOAT || !o->node)
            continue;
        *c = i == 1 ? beside_axis(b, o, v->constant) : v->constant;
        *other = o;
        return i;
    }
    return -1;
}

static qat_status build_add(builder *b)
{
    const qat_foreign_tensor *c;
    const fv *x;
    return constant_of(b, &c, &x) < 0 ? combine(b, "add") : add_constant(b, x, c, 1);
}

static qat_status build_sub(builder *b)
{
    const qat_foreign_tensor *c;
    const fv *x;
    int const which = constant_of(b, &c, &x);
    if (which < 0)
        return combine(b, "sub");
    if (which == 1)
        return add_constant(b, x, c, -1);
    qat_foreign_tensor *minus = fv_constant(b, QAT_FOREIGN_FLOAT, 0, NULL);
    if (!minus)
        return fv_graph_error(b);
    ((float *)minus->floats)[0] = -1;
    qat_status const st = scale_by(b, x, minus, false);
    return st ? st : add_constant(b, &b->values[b->node->outputs[0]], c, 1);
}

static qat_status build_mul(builder *b)
{
    const qat_foreign_tensor *c;
    const fv *x;
    return constant_of(b, &c, &x) < 0 ? combine(b, "mul") : scale_by(b, x, c, false);
}

static qat_status build_neg(builder *b)
{
    fv *x;
    qat_status const st = fv_data(b, 0, &x);
    qat_foreign_tensor *minus = st ? NULL : fv_constant(b, QAT_FOREIGN_FLOAT, 0, NULL);
    if (!minus)
        return st ? st : fv_graph_error(b);
    ((float *)minus->floats)[0] = -1;
    return scale_by(b, x, minus, false);
}

static qat_status build_div(builder *b)
{
    const qat_foreign_tensor *c;
    const fv *x;
    if (constant_of(b, &c, &x) != 1)
        return fv_refuse(b, "a division by computed values is not supported");
    return scale_by(b, x, c, true);
}

const fv_operator fv_binary_operators[] = {
    {"Add", build_add}, {"Sub", build_sub}, {"Mul", build_mul},
    {"Div", build_div}, {"Neg", build_neg}, {NULL, NULL},
};
