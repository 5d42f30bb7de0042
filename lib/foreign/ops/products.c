/** Products with constant matrices: Gemm, MatMul; and the bias of layers with weights. */
#include "foreign/build.h"

#include <string.h>

/* ------------------------------------------------------------------ bias */

qat_status fv_bias(builder *b, qat_node **y, const qat_foreign_tensor *values, float factor)
{
    qat_node *bias = fv_add(b, "bias", "bias", *y, " ");
    if (!bias)
        return fv_graph_error(b);
    *y = bias;
    if (fv_is_head(b))
        return QAT_OK;
    size_t const channels = (size_t)qat_shape_channels(&bias->shape), n = values->count;
    if (n != channels && n != 1)
        return fv_refuse(b, "a bias of %zu values for %zu outputs", n, channels);
    float *to = fv_param(b, bias, 0);
    for (size_t i = 0; to && i < channels; i++)
        to[i] = factor * values->floats[n == 1 ? 0 : i];
    return to ? QAT_OK : fv_graph_error(b);
}

/* ------------------------------------------------------------------ one matrix */

/** w, or its transpose, of `inputs` rows and `outputs` columns. */
struct matrix {
    const qat_foreign_tensor *w;
    int64_t inputs, outputs;
    bool transposed; /* w is [outputs, inputs] */
    float factor;
};

static float value_of(const struct matrix *m, int64_t input, int64_t output)
{
    return m->factor *
           m->w->floats[m->transposed ? output * m->inputs + input : input * m->outputs + output];
}

/** Of the last two dimensions of w; further ones are 1. */
static struct matrix matrix_of(const qat_foreign_tensor *w, bool transposed, float factor)
{
    int64_t const rows = w->dims[w->rank - 2], columns = w->dims[w->rank - 1];
    return (struct matrix){w, transposed ? columns : rows, transposed ? rows : columns, transposed,
                           factor};
}

/** The outputs, of a new last layer too. */
static int outputs_of(builder *b, const struct matrix *m)
{
    b->head_was = fv_is_head(b) ? m->outputs : b->head_was;
    return fv_is_head(b) ? b->options->head : (int)m->outputs;
}

/**
 * A row times a matrix. The row's values may lie in another order in memory: then the weights are
 * in this order too.
 */
static qat_status row_product(builder *b, const fv *x, const struct matrix *m, fv *out)
{
    qat_node *y = fv_add(b, "fully_connected", "", x->node, "units=%d", outputs_of(b, m));
    if (!y)
        return fv_graph_error(b);
    int64_t const dims[] = {x->dims[0], qat_shape_channels(&y->shape)};
    *out = fv_channels_last(b, y, 2, dims);
    if (fv_is_head(b))
        return QAT_OK;
    float *to = fv_param(b, y, 0);
    const int *at = fv_positions(b, x);
    for (int64_t u = 0; to && at && u < m->outputs; u++)
        for (int64_t i = 0; i < m->inputs; i++)
            to[u * m->inputs + i] = value_of(m, at[i], u);
    return to && at ? QAT_OK : fv_graph_error(b);
}

/** [..., K] times [K, M], as a convolution of one pixel over all but the last dimension. */
static qat_status pixel_product(builder *b, const fv *x, const struct matrix *m, fv *out)
{
    fv v = *x;
    int axes[QAT_FOREIGN_RANK];
    int64_t dims[QAT_FOREIGN_RANK];
    for (int i = 0; i < v.rank; i++)
        axes[i] = i;
    qat_status const st = fv_order(b, &v, axes);
    int64_t const k = m->inputs;
    qat_node *from = st ? NULL : fv_shaped(b, &v, QAT_SHAPE(1, 1, (int)(fv_count(&v) / k), (int)k));
    qat_node *y =
        from ? fv_add(b, "conv2d", "", from, "filters=%d kernel=1", outputs_of(b, m)) : NULL;
    float *to = !y || fv_is_head(b) ? NULL : fv_param(b, y, 0);
    for (int64_t u = 0; to && u < m->outputs; u++)
        for (int64_t i = 0; i < k; i++)
            to[u * k + i] = value_of(m, i, u);
    if (!y || (!to && !fv_is_head(b)))
        return st ? st : fv_graph_error(b);
    memcpy(dims, v.dims, sizeof dims);
    dims[v.rank - 1] = qat_shape_channels(&y->shape);
    *out = fv_in_order(b, y, v.rank, dims);
    return QAT_OK;
}

/** x [..., K] w; a row has a layer of its own. */
static qat_status product(builder *b, const fv *x, const struct matrix *m, fv *out)
{
    if (m->inputs != x->dims[x->rank - 1] || m->inputs < 1 || m->outputs < 1 || m->outputs > 65536)
        return fv_refuse(b,
                         "weights of %lld inputs and %lld outputs for an input with %lld in its "
                         "last dimension",
                         (long long)m->inputs, (long long)m->outputs,
                         (long long)x->dims[x->rank - 1]);
    return x->rank == 2 && !fv_is_stack(x) ? row_product(b, x, m, out)
                                           : pixel_product(b, x, m, out);
}

/* ------------------------------------------------------------------ a matrix for each ... */

/**
 * x [..., M, K] times w [..., K, N] with a matrix for each position of some dimensions in front:
 * a convolution of one pixel with as many groups.
 */
static qat_status group_product(builder *b, const fv *x, const qat_foreign_tensor *w, fv *out)
{
    int const rank = x->rank, more = rank - w->rank;
    int axes[QAT_FOREIGN_RANK], n = 0;
    int64_t groups = 1, dims[QAT_FOREIGN_RANK];
    int64_t const k = w->dims[w->rank - 2], m = w->dims[w->rank - 1];
    fv v = *x;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < rank - 2; i++) {
            bool const differs = i >= more && w->dims[i - more] > 1;
            if (differs && (w->dims[i - more] != x->dims[i] || i < fv_first(x)))
                return fv_refuse(b, "matrices that differ along dimension %d, but not as the input",
                                 i);
            if (differs == (pass == 1)) {
                axes[n++] = i;
                groups *= differs ? x->dims[i] : 1;
            }
        }
        axes[n++] = rank - 2 + pass;
    }
    if (k != x->dims[rank - 1] || k < 1 || m < 1 || groups > 65536 / m || fv_is_head(b))
        return fv_refuse(b,
                         "%lld matrices of %lld x %lld for an input with %lld in its last "
                         "dimension",
                         (long long)groups, (long long)k, (long long)m,
                         (long long)x->dims[rank - 1]);
    qat_status const st = fv_order(b, &v, axes);
    int const wide = (int)(groups * k);
    qat_node *from =
        st ? NULL : fv_shaped(b, &v, QAT_SHAPE(1, 1, (int)(fv_count(&v) / wide), wide));
    qat_node *y = from ? fv_add(b, "conv2d", "", from, "filters=%d groups=%d kernel=1",
                                (int)(groups * m), (int)groups)
                       : NULL;
    float *to = y ? fv_param(b, y, 0) : NULL;
    for (int64_t u = 0; to && u < groups * m; u++)
        for (int64_t i = 0; i < k; i++)
            to[u * k + i] = w->floats[(u / m * k + i) * m + u % m];
    memcpy(dims, v.dims, sizeof dims);
    dims[rank - 1] = m;
    *out = fv_laid_out(b, y, rank, dims, axes);
    return to ? QAT_OK : st ? st : fv_graph_error(b);
}

/* ------------------------------------------------------------------ MatMul */

/** The last two dimensions change places. */
static qat_status swap_last(builder *b, fv *x)
{
    int perm[QAT_FOREIGN_RANK];
    for (int i = 0; i < x->rank; i++)
        perm[i] = i < x->rank - 2 ? i : 2 * x->rank - 3 - i;
    return fv_permute(b, x, perm);
}

/** The constant with another shape, or with its last two dimensions exchanged. */
static const qat_foreign_tensor *reshaped(builder *b, const qat_foreign_tensor *w, int rank,
                                          const int64_t *dims)
{
    qat_foreign_tensor *t = fv_take(b, &b->arena, 1, sizeof *t);
    if (!t)
        return NULL;
    *t = *w;
    t->rank = rank;
    memcpy(t->dims, dims, (size_t)rank * sizeof *dims);
    return t;
}

static const qat_foreign_tensor *swapped(builder *b, const qat_foreign_tensor *w)
{
    int64_t dims[QAT_FOREIGN_RANK];
    int const r = w->rank;
    size_t const rows = (size_t)w->dims[r - 2], columns = (size_t)w->dims[r - 1];
    memcpy(dims, w->dims, sizeof dims);
    dims[r - 2] = w->dims[r - 1];
    dims[r - 1] = w->dims[r - 2];
    qat_foreign_tensor *t = fv_constant(b, QAT_FOREIGN_FLOAT, r, dims);
    for (size_t i = 0; t && i < t->count; i++) {
        size_t const within = i % (rows * columns), row = within % rows, column = within / rows;
        ((float *)t->floats)[i] = w->floats[i - within + row * columns + column];
    }
    return t;
}

/** x w, of at least two dimensions each. */
static qat_status matmul(builder *b, fv *x, const qat_foreign_tensor *w, fv *out)
{
    int64_t dims[QAT_FOREIGN_RANK];
    size_t matrices = 1;
    qat_status st = fv_raise_rank(b, x, w->rank);
    for (int i = 0; i < w->rank - 2; i++)
        matrices *= (size_t)w->dims[i];
    if (st)
        return st;
    if (matrices == 1 || x->rank < w->rank) {
        struct matrix const m = matrix_of(w, false, 1);
        return matrices == 1 ? product(b, x, &m, out)
                             : fv_refuse(b, "%zu matrices of weights for each sample", matrices);
    }
    for (int i = 0; i < w->rank; i++)
        dims[i] = i < w->rank - 2 ? w->dims[i] : 1;
    st = fv_widen(b, x, w->rank, dims);
    return st ? st : group_product(b, x, w, out);
}

/** Drop a dimension of 1 that a list was given. */
static qat_status drop(builder *b, fv *x, int axis)
{
    int64_t dims[QAT_FOREIGN_RANK];
    int rank = 0;
    for (int i = 0; i < x->rank; i++)
        if (i != axis)
            dims[rank++] = x->dims[i];
    return fv_reshape(b, x, rank, dims);
}

/** One factor is a constant. A first one is the second of the transposed product. */
static qat_status build_matmul(builder *b)
{
    const fv *first = fv_input(b, 0);
    bool const swaps = first && first->constant;
    fv *in, x, y;
    const qat_foreign_tensor *w;
    qat_status st = fv_data(b, swaps, &in);
    if (!st)
        st = fv_floats(b, !swaps, swaps ? "first factor" : "second factor", &w);
    if (st)
        return st;
    x = *in;
    if (!w || w->rank < 1 || x.rank < 1 + fv_first(&x) || w->count < 1)
        return fv_refuse(b, "factors of %d and %d dimensions", x.rank, w ? w->rank : 0);
    bool const x_is_list = x.rank == 1, w_is_list = w->rank == 1;
    if (x_is_list) /* a row on the left, a column on the right: also a row, exchanged */
        st = fv_raise_rank(b, &x, 2);
    else if (swaps)
        st = swap_last(b, &x);
    if (!st && w_is_list)
        w = reshaped(b, w, 2, (const int64_t[]){w->dims[0], 1});
    else if (!st && swaps)
        w = swapped(b, w);
    fv_name_after(b, !swaps);
    if (!st)
        st = w ? matmul(b, &x, w, &y) : fv_graph_error(b);
    if (!st && w_is_list)
        st = drop(b, &y, y.rank - 1);
    else if (!st && swaps && !x_is_list)
        st = swap_last(b, &y);
    if (!st && x_is_list)
        st = drop(b, &y, w_is_list ? y.rank - 1 : y.rank - 2);
    if (!st)
        fv_output(b, 0, &y);
    return st;
}

/* ------------------------------------------------------------------ Gemm */

/**
 * y + beta c, of a bias a column or of any values that can be added to y. turned: the columns of y
 * are the rows of what its node computes, so a row is no bias of the node.
 */
static qat_status add_beta(builder *b, fv *y, bool turned)
{
    const fv *c = fv_input(b, 2);
    float const beta = (float)fv_attr_real(b, "beta", 1);
    const qat_foreign_tensor *values;
    if (!c)
        return QAT_OK;
    if (c->node)
        return fv_add_scaled(b, y, c, beta);
    qat_status const st = fv_floats(b, 2, "bias", &values);
    if (st)
        return st;
    bool const is_row =
        !turned && (values->rank < 2 || values->count == (size_t)values->dims[values->rank - 1]);
    return is_row ? fv_bias(b, &y->node, values, beta) : fv_add_constant(b, y, values, beta);
}

static qat_status build_gemm(builder *b)
{
    const fv *first = fv_input(b, 0);
    bool const swaps = first && first->constant; /* (A B)' = B' A' */
    fv *in, x, y;
    const qat_foreign_tensor *w;
    qat_status st = fv_data(b, swaps, &in);
    if (!st)
        st = fv_floats(b, !swaps, "weights", &w);
    if (st)
        return st;
    x = *in;
    if (x.rank != 2 || !w || w->rank != 2)
        return fv_refuse(b, "an input of %d dimensions and weights of %d: both must have 2", x.rank,
                         w ? w->rank : 0);
    bool const x_turned = fv_attr_int(b, swaps ? "transB" : "transA", 0) != 0;
    bool const w_turned = fv_attr_int(b, swaps ? "transA" : "transB", 0) != 0;
    struct matrix const m = matrix_of(w, w_turned != swaps, (float)fv_attr_real(b, "alpha", 1));
    fv_name_after(b, !swaps);
    if (x_turned != swaps)
        st = swap_last(b, &x);
    if (!st)
        st = product(b, &x, &m, &y);
    if (!st && swaps)
        st = swap_last(b, &y);
    if (!st)
        st = add_beta(b, &y, swaps);
    if (!st)
        fv_output(b, 0, &y);
    return st;
}

const fv_operator fv_product_operators[] = {
    {"Gemm", build_gemm},
    {"MatMul", build_matmul},
    {NULL, NULL},
};
