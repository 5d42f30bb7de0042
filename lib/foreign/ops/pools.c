/** Pools and means: MaxPool, AveragePool, GlobalAveragePool, GlobalMaxPool, ReduceMean. */
#include "foreign/build.h"
#include "foreign/ops/window.h"

#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ pictures and signals */

/** One pool over rows and columns. */
static qat_status pool_picture(builder *b, const char *op, const char *counts, fv *x)
{
    fv_window w;
    qat_node *from;
    char text[FV_WINDOW_TEXT];
    qat_status st = fv_window_of(b, x, NULL, &w);
    if (!st)
        st = fv_planes(b, x, &from);
    if (st)
        return st;
    fv_window_text(&w, false, text);
    qat_node *y = fv_add(b, op, "", from, "%s%s", text, counts);
    if (!y)
        return fv_graph_error(b);
    int64_t const dims[] = {x->dims[0], x->dims[1], y->shape.dims[1], y->shape.dims[2]};
    int64_t const line[] = {x->dims[0], x->dims[1], y->shape.dims[2]};
    *x = fv_channels_last(b, y, x->rank, x->rank == 4 ? dims : line);
    return QAT_OK;
}

/* ------------------------------------------------------------------ one direction after another */

/** A pool along one dimension: [N, before, length, after], whose columns it takes. */
static qat_status pool_direction(builder *b, const char *op, const char *counts, int axis,
                                 const fv_direction *d, fv *x)
{
    qat_shape shape;
    int at;
    qat_status const st = fv_around(b, x, axis, &shape, &at);
    if (st)
        return st;
    int64_t before = 1, after = 1;
    for (int i = 1; i < shape.rank; i++)
        *(i < at ? &before : &after) *= i == at ? 1 : shape.dims[i];
    qat_node *from = fv_shaped(b, x, QAT_SHAPE(1, (int)before, (int)x->dims[axis], (int)after));
    qat_node *y =
        from ? fv_add(b, op, "direction", from,
                      "kernel=1 kernel_w=%d stride=1 stride_w=%d padding=0,0,%d,%d%s",
                      (int)d->kernel, (int)d->stride, (int)d->before, (int)d->after, counts)
             : NULL;
    if (!y)
        return fv_graph_error(b);
    *x = fv_resized(x, y, axis, y->shape.dims[2]);
    return QAT_OK;
}

/**
 * Tap j of each window with a dilation; where it lies outside, another one of the window that lies
 * inside. False: none does.
 */
static bool tap_positions(const fv_direction *d, int64_t in, int64_t j, int64_t n, int64_t *at)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t p = i * d->stride - d->before + j * d->dilation;
        for (int64_t k = j; p < 0 && ++k < d->kernel;)
            p += d->dilation;
        for (int64_t k = j; p >= in && --k >= 0;)
            p -= d->dilation;
        at[i] = p;
        if (p < 0 || p >= in)
            return false;
    }
    return true;
}

/** The taps of dilated windows beside each other, in a dimension in front of the axis; then the
 *  largest of them. */
static qat_status dilated_maximum(builder *b, int axis, const fv_direction *d, fv *x)
{
    int64_t const in = x->dims[axis], n = fv_windows(d, in);
    int64_t dims[QAT_FOREIGN_RANK];
    int64_t *at = fv_take(b, &b->arena, (size_t)(n > 0 ? n : 1), sizeof *at);
    fv *taps = fv_take(b, &b->arena, (size_t)d->kernel, sizeof *taps), all = {0};
    if (n < 1 || x->rank == QAT_FOREIGN_RANK)
        return fv_refuse(b, "its window is larger than dimension %d", axis);
    if (!at || !taps)
        return fv_graph_error(b);
    qat_status st = QAT_OK;
    for (int64_t j = 0; j < d->kernel && !st; j++) {
        if (!tap_positions(d, in, j, n, at))
            return fv_refuse(b, "a window lies in the padding of dimension %d alone", axis);
        st = fv_gather(b, x, axis, at, n, &taps[j]);
        for (int i = 0; i <= x->rank && !st; i++)
            dims[i] = i == axis ? 1 : taps[j].dims[i - (i > axis)];
        if (!st)
            st = fv_reshape(b, &taps[j], x->rank + 1, dims);
    }
    if (!st)
        st = fv_join(b, (int)d->kernel, taps, axis, &all);
    fv_direction const whole = {all.dims[axis], 1, 1, 0, 0};
    if (!st)
        st = pool_direction(b, "max_pool2d", "", axis, &whole, &all);
    for (int i = 0; i < x->rank && !st; i++)
        dims[i] = all.dims[i + (i >= axis)];
    if (!st)
        st = fv_reshape(b, &all, x->rank, dims);
    *x = all;
    return st;
}

/** Volumes and dilated windows. The largest of a box is that of its rows' largest; so are means. */
static qat_status pool_directions(builder *b, const char *op, const char *counts,
                                  const fv_direction *d, fv *x)
{
    qat_status st = QAT_OK;
    for (int i = x->rank - 3; i >= 0 && !st; i--)
        if (d[i].dilation > 1 && d[i].kernel > 1)
            st = dilated_maximum(b, 2 + i, &d[i], x);
        else if (d[i].kernel > 1 || d[i].stride > 1 || d[i].before + d[i].after > 0)
            st = pool_direction(b, op, counts, 2 + i, &d[i], x);
    return st;
}

static qat_status add_pool(builder *b, const char *op, bool counts)
{
    fv *in, x;
    fv_direction d[FV_DIRECTIONS];
    const char *text = counts ? " count_padding=yes" : "";
    bool dilates = false;
    qat_status st = fv_data(b, 0, &in);
    if (st)
        return st;
    x = *in;
    st = fv_directions_of(b, &x, NULL, d);
    for (int i = 0; i < x.rank - 2 && !st; i++)
        dilates = dilates || d[i].dilation > 1;
    if (!st && dilates && strcmp(op, "max_pool2d") != 0)
        return fv_refuse(b, "attribute dilations: only 1 is supported");
    if (!st)
        st = dilates || x.rank > 4 ? pool_directions(b, op, text, d, &x)
                                   : pool_picture(b, op, text, &x);
    if (!st)
        fv_output(b, 0, &x);
    return st;
}

/** Nobody can read where the largest values lie; so their order does not matter. */
static qat_status build_max_pool(builder *b)
{
    return add_pool(b, "max_pool2d", false);
}

static qat_status build_average_pool(builder *b)
{
    bool const counts = fv_attr_int(b, "count_include_pad", 0) != 0;
    if (counts && fv_attr_int(b, "ceil_mode", 0))
        return fv_refuse(b, "attribute ceil_mode = 1 with count_include_pad = 1 is not supported");
    return add_pool(b, "average_pool2d", counts);
}

/* ------------------------------------------------------------------ whole pictures */

/** Reduce all but the first two dimensions; keep: the dimensions stay, as 1. */
static qat_status add_global(builder *b, fv x, const char *op, bool keep)
{
    qat_node *from;
    qat_status st = fv_to_channels_last(b, &x);
    if (st)
        return st;
    int const c = (int)(fv_is_stack(&x) ? x.dims[0] * x.dims[1] : x.dims[1]);
    int const h = x.rank == 4 ? (int)x.dims[2] : 1, w = (int)(fv_count(&x) / c / h);
    from = fv_shaped(b, &x, QAT_SHAPE(1, h, w, c));
    bool const max = !strcmp(op, "max_pool2d");
    qat_node *y = max ? fv_add(b, op, "", from, "kernel=%d kernel_w=%d padding=valid", h, w)
                      : fv_add(b, op, "", from, " ");
    if (!y)
        return fv_graph_error(b);
    int64_t dims[QAT_FOREIGN_RANK] = {x.dims[0], x.dims[1]};
    for (int i = 2; i < x.rank; i++)
        dims[i] = 1;
    fv const out = fv_channels_last(b, y, keep ? x.rank : 2, dims);
    fv_output(b, 0, &out);
    return QAT_OK;
}

static qat_status build_global(builder *b, const char *op)
{
    fv *x;
    qat_status const st = fv_data(b, 0, &x);
    if (st)
        return st;
    if (x->rank < 3)
        return fv_refuse(b, "an input of %d dimensions", x->rank);
    return add_global(b, *x, op, true);
}

static qat_status build_global_average(builder *b)
{
    return build_global(b, "global_average_pool");
}

static qat_status build_global_max(builder *b)
{
    return build_global(b, "max_pool2d");
}

/** A mean over any dimensions but the batch. */
static qat_status mean_of_some(builder *b, fv x, const bool *reduced, bool keep)
{
    int axes[QAT_FOREIGN_RANK] = {0}, at = 0, rank = 0;
    int64_t dims[QAT_FOREIGN_RANK], rest = 1;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < x.rank; i++)
            if (reduced[i] == (pass == 0))
                axes[at++] = i;
    for (int i = 0; i < x.rank; i++) {
        rest *= reduced[i] || i < fv_first(&x) ? 1 : x.dims[i];
        if (keep || !reduced[i])
            dims[rank++] = reduced[i] ? 1 : x.dims[i];
    }
    qat_status const st = fv_order(b, &x, axes);
    if (st)
        return st;
    qat_node *from = fv_shaped(b, &x, QAT_SHAPE(1, 1, (int)(fv_count(&x) / rest), (int)rest));
    qat_node *y = from ? fv_add(b, "global_average_pool", "", from, " ") : NULL;
    if (!y)
        return fv_graph_error(b);
    fv const out = fv_in_order(b, y, rank, dims);
    fv_output(b, 0, &out);
    return QAT_OK;
}

static qat_status build_reduce_mean(builder *b)
{
    fv *in, x;
    int64_t axes[QAT_FOREIGN_RANK];
    bool reduced[QAT_FOREIGN_RANK] = {false};
    int n, kept = -1, count = 0, perm[QAT_FOREIGN_RANK];
    qat_status st = fv_data(b, 0, &in);
    if (!st)
        st = fv_ints(b, 1, "axes", axes, QAT_FOREIGN_RANK, &n);
    if (st)
        return st;
    x = *in;
    for (int i = 0; i < n && !st; i++) {
        int axis;
        st = fv_axis(b, axes[i], x.rank, &axis);
        if (!st)
            reduced[axis] = true;
    }
    if (st)
        return st;
    if (n <= 0 && fv_attr_int(b, "noop_with_empty_axes", 0)) {
        fv_output(b, 0, &x);
        return QAT_OK;
    }
    for (int i = 0; i < x.rank; i++) {
        reduced[i] = reduced[i] || n <= 0;
        if (i > 0 && !reduced[i]) {
            kept = i;
            count++;
        }
    }
    if (reduced[0] && fv_first(&x))
        return fv_refuse(b, "a mean over the batch, the first dimension");
    bool const keep = fv_attr_int(b, "keepdims", 1) != 0;
    if (count != 1 || x.rank < 3 || reduced[0] || fv_is_stack(&x))
        return mean_of_some(b, x, reduced, keep);
    int at = 2;
    perm[0] = 0;
    perm[1] = kept;
    for (int i = 1; i < x.rank; i++)
        if (i != kept)
            perm[at++] = i;
    st = fv_permute(b, &x, perm);
    if (!st)
        st = add_global(b, x, "global_average_pool", keep);
    if (st || !keep)
        return st;
    fv *y = &b->values[b->node->outputs[0]];
    int back[QAT_FOREIGN_RANK];
    for (int i = 0; i < x.rank; i++)
        back[perm[i]] = i;
    return fv_permute(b, y, back);
}

const fv_operator fv_pool_operators[] = {
    {"MaxPool", build_max_pool},
    {"AveragePool", build_average_pool},
    {"GlobalAveragePool", build_global_average},
    {"GlobalMaxPool", build_global_max},
    {"ReduceMean", build_reduce_mean},
    {NULL, NULL},
};
