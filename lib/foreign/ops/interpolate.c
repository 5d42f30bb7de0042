/**
 * Resize, Upsample. Where the op of pictures has the file's positions, it is taken. Otherwise each
 * dimension is resized by itself: nearest positions are gathered; linear and cubic ones are sums of
 * the input's positions, which a convolution of one pixel computes along the dimension.
 */
#include "foreign/ops/resize.h"

#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------ weights */

/** The share of a position at distance d. */
static double share(const fv_resize *r, double d)
{
    double const a = r->cubic_a, x = fabs(d);
    if (r->filter == FV_LINEAR)
        return x < 1 ? 1 - x : 0;
    return x <= 1  ? ((a + 2) * x - (a + 3)) * x * x + 1
           : x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
                   : 0;
}

/**
 * Row i of the matrix: what each of the `in` positions gives to output i. Positions outside count
 * for the edge, or not at all. Downwards with antialias, shares reach as far as the output's
 * positions lie apart. Returns false if output i lies outside and has a value of its own.
 */
static bool fill_row(const fv_resize *r, int axis, int64_t i, int64_t in, double *row)
{
    double const place = fv_resize_place(r, axis, i, in);
    double const narrow = r->antialias && r->scale[axis] < 1 ? r->scale[axis] : 1;
    double sum = 0;
    memset(row, 0, (size_t)in * sizeof *row);
    if (!strcmp(r->place, "tf_crop_and_resize") && (place < 0 || place > (double)(in - 1)))
        return false;
    if (r->filter == FV_NEAREST) {
        row[fv_resize_nearest(r, place, in)] = 1;
        return true;
    }
    double const reach = (r->filter == FV_CUBIC ? 2 : 1) / narrow;
    double const base = ceil(place) - 1, first = floor(-reach) + 1, last = 1 - first;
    for (double at = base + first; at <= base + last; at++) {
        double const w = share(r, (at - place) * narrow);
        if (r->excludes && (at < 0 || at >= (double)in))
            continue;
        row[at < 0 ? 0 : at >= (double)in ? in - 1 : (int64_t)at] += w;
        sum += w;
    }
    for (int64_t k = 0; k < in && sum != 0; k++)
        row[k] /= sum;
    return true;
}

/* ------------------------------------------------------------------ one dimension */

static qat_status gather_nearest(builder *b, const fv_resize *r, int axis, fv *x)
{
    int64_t const n = r->dims[axis];
    int64_t *at = fv_take(b, &b->arena, (size_t)n, sizeof *at);
    for (int64_t i = 0; at && i < n; i++)
        at[i] = fv_resize_nearest(r, fv_resize_place(r, axis, i, x->dims[axis]), x->dims[axis]);
    return at ? fv_gather(b, x, axis, at, n, x) : fv_graph_error(b);
}

/** The values that outputs outside the picture have. */
static qat_node *with_outside(builder *b, qat_node *y, const bool *inside, float value)
{
    qat_node *bias = fv_add(b, "bias", "outside", y, " ");
    float *to = bias ? fv_param(b, bias, 0) : NULL;
    for (int i = 0; to && i < qat_shape_channels(&bias->shape); i++)
        to[i] = inside[i] ? 0 : value;
    return to ? bias : NULL;
}

static qat_status weigh(builder *b, const fv_resize *r, int axis, fv *x)
{
    int64_t const in = x->dims[axis], out = r->dims[axis];
    int axes[QAT_FOREIGN_RANK], n = 0;
    bool all = true;
    int64_t dims[QAT_FOREIGN_RANK];
    for (int i = 0; i < x->rank; i++)
        if (i != axis)
            axes[n++] = i;
    axes[n] = axis;
    qat_status const st = fv_order(b, x, axes);
    if (st)
        return st;
    double *row = fv_take(b, &b->arena, (size_t)in, sizeof *row);
    bool *inside = fv_take(b, &b->arena, (size_t)out, sizeof *inside);
    qat_node *from = fv_shaped(b, x, QAT_SHAPE(1, 1, (int)(fv_count(x) / in), (int)in));
    qat_node *y = from && row && inside
                      ? fv_add(b, "conv2d", "weights", from, "filters=%d kernel=1", (int)out)
                      : NULL;
    float *to = y ? fv_param(b, y, 0) : NULL;
    for (int64_t i = 0; to && i < out; i++) {
        inside[i] = fill_row(r, axis, i, in, row);
        all = all && inside[i];
        for (int64_t k = 0; k < in; k++)
            to[i * in + k] = (float)row[k];
    }
    if (to && !all && r->outside != 0)
        y = with_outside(b, y, inside, r->outside);
    if (!to || !y)
        return fv_graph_error(b);
    memcpy(dims, x->dims, sizeof dims);
    dims[axis] = out;
    *x = fv_laid_out(b, y, x->rank, dims, axes);
    return QAT_OK;
}

/** Is output i input i, for each? */
static bool is_same(const fv_resize *r, int axis, int64_t in)
{
    bool same = r->dims[axis] == in;
    for (int64_t i = 0; same && i < in; i++)
        same = fabs(fv_resize_place(r, axis, i, in) - (double)i) < 1e-9;
    return same;
}

static qat_status resize_dimension(builder *b, const fv_resize *r, int axis, fv *x)
{
    if (is_same(r, axis, x->dims[axis]))
        return QAT_OK;
    if (axis < fv_first(x))
        return fv_refuse(b, "it changes the batch, the first dimension");
    bool const gathers = r->filter == FV_NEAREST && strcmp(r->place, "tf_crop_and_resize") != 0;
    return gathers ? gather_nearest(b, r, axis, x) : weigh(b, r, axis, x);
}

/* ------------------------------------------------------------------ all of them */

static qat_status resize_picture(builder *b, const fv_resize *r, fv *x)
{
    qat_node *from;
    qat_status const st = fv_planes(b, x, &from);
    if (st)
        return st;
    qat_node *y = fv_add(b, r->filter == FV_NEAREST ? "resize_nearest" : "resize_bilinear", "",
                         from, "height=%d width=%d align_corners=%s half_pixel_centers=%s",
                         x->rank == 4 ? (int)r->dims[2] : 1, (int)r->dims[x->rank - 1],
                         r->align_corners ? "yes" : "no", r->half_pixel_centers ? "yes" : "no");
    *x = fv_channels_last(b, y, x->rank, r->dims);
    return y ? QAT_OK : fv_graph_error(b);
}

static qat_status build_resize(builder *b)
{
    fv *in, x;
    fv_resize r;
    qat_status st = fv_data(b, 0, &in);
    if (st)
        return st;
    x = *in;
    st = fv_resize_of(b, &x, &r);
    if (!st && r.is_op)
        st = resize_picture(b, &r, &x);
    for (int i = x.rank - 1; i >= 0 && !st && !r.is_op; i--)
        st = resize_dimension(b, &r, i, &x);
    if (!st)
        fv_output(b, 0, &x);
    return st;
}

const fv_operator fv_resize_operators[] = {
    {"Resize", build_resize},
    {"Upsample", build_resize},
    {NULL, NULL},
};
