/**
 * A convolution of volumes as one of pictures:
 *
 *     [N, D, H W, C]        the planes
 *     [N, E, H W, KD C]     the KD planes of each window beside each other, as channels
 *     [N, E R, W, KD C]     planes below each other: R rows each, with their padding
 *     [N, E S, V, O]        one conv2d over all
 *     [N, E, S, V, O]       of which the first rows of each plane are kept: others saw two planes
 */
#include "foreign/ops/volumes.h"

#include <string.h>

enum { DEEPEST = 256 }; /* planes of a window, which one concat joins */

struct volume {
    int depth, height, width, channels;
    int groups, filters;
    const fv_direction *d;
};

/* ------------------------------------------------------------------ planes as channels */

/** Zeros in front of dimension 2 and behind it. */
static qat_node *padded(builder *b, qat_node *x, int64_t before, int64_t after)
{
    return before + after > 0 ? fv_add(b, "pad", "pad", x, "left=%lld right=%lld",
                                       (long long)before, (long long)after)
                              : x;
}

static qat_node *as(builder *b, qat_node *x, int d1, int d2, int d3)
{
    fv const v = {.node = x};
    return x ? fv_shaped(b, &v, QAT_SHAPE(1, d1, d2, d3)) : NULL;
}

/** From [N, D, H W, C] to [N, E, H W, KD C]; within each group, one plane after the other. */
static qat_node *gather_planes(builder *b, struct volume *v, qat_node *x)
{
    qat_node *planes[DEEPEST];
    const fv_direction *d = &v->d[0];
    int const pixels = v->height * v->width, each = v->channels / v->groups;
    int64_t const count = fv_windows(d, v->depth), all = v->depth + d->before + d->after;
    x = as(b, x, 1, v->depth, pixels * v->channels);
    x = x ? padded(b, x, d->before, d->after) : NULL;
    for (int64_t j = 0; j < d->kernel && x; j++) {
        planes[j] =
            count == all
                ? x
                : fv_add(b, "strided_slice", "plane", x, "axis=2 begin=%lld count=%lld step=%lld",
                         (long long)(j * d->dilation), (long long)count, (long long)d->stride);
        planes[j] = as(b, planes[j], (int)count * pixels, v->groups, each);
        if (!planes[j])
            return NULL;
    }
    v->depth = (int)count;
    v->channels *= (int)d->kernel;
    if (!x)
        return NULL;
    return d->kernel == 1 ? planes[0]
                          : fv_add_all(b, "concat", "planes", (int)d->kernel, planes, "axis=-1");
}

/* ------------------------------------------------------------------ planes below each other */

/** From [O, C / groups, KD, KH, KW] to [O, KH, KW, KD C / groups]. */
static qat_status volume_weights(builder *b, const qat_node *y, const qat_foreign_tensor *w)
{
    size_t const filters = (size_t)w->dims[0], each = (size_t)w->dims[1];
    size_t const deep = (size_t)w->dims[2], taps = (size_t)(w->dims[3] * w->dims[4]);
    float *to = fv_param(b, y, 0);
    for (size_t o = 0; to && o < filters; o++)
        for (size_t c = 0; c < each; c++)
            for (size_t k = 0; k < deep; k++)
                for (size_t t = 0; t < taps; t++)
                    to[((o * taps + t) * deep + k) * each + c] =
                        w->floats[((o * each + c) * deep + k) * taps + t];
    return to ? QAT_OK : fv_graph_error(b);
}

/** The rows of a plane with their padding, as many as are a multiple of the stride. */
static int64_t rows_of(const struct volume *v)
{
    const fv_direction *d = &v->d[1];
    int64_t const rows = v->height + d->before + d->after;
    return (rows + d->stride - 1) / d->stride * d->stride;
}

/** conv2d over [N, E R, W, C], with an output for each R / stride rows. */
static qat_node *convolve(builder *b, const struct volume *v, qat_node *x,
                          const qat_foreign_tensor *w, const qat_foreign_tensor *bias)
{
    const fv_direction *h = &v->d[1], *c = &v->d[2];
    int64_t const reach = (h->kernel - 1) * h->dilation + 1;
    fv_window const window = {.kernel = {h->kernel, c->kernel},
                              .stride = {h->stride, c->stride},
                              .dilation = {h->dilation, c->dilation},
                              .before = {0, c->before},
                              .after = {reach > h->stride ? reach - h->stride : 0, c->after}};
    char text[FV_WINDOW_TEXT];
    fv_window_text(&window, true, text);
    qat_node *y =
        fv_add(b, "conv2d", "", x, "filters=%d groups=%d %s", v->filters, v->groups, text);
    if (!y || volume_weights(b, y, w) || (bias && fv_bias(b, &y, bias, 1)))
        return NULL;
    return y;
}

static qat_status check_volume(builder *b, const fv *x, const fv_direction *d, int64_t *windows)
{
    double values = (double)x->dims[1] * (double)d[0].kernel;
    if (fv_is_stack(x) || fv_is_head(b))
        return fv_refuse(b, "a convolution of volumes %s",
                         fv_is_head(b) ? "as the layer that model.head replaces"
                                       : "of which several are one sample");
    for (int i = 0; i < FV_DIRECTIONS; i++) {
        windows[i] = fv_windows(&d[i], x->dims[2 + i]);
        if (windows[i] < 1 || d[0].kernel > DEEPEST)
            return fv_refuse(b, "a window of %lld for dimension %d, of %lld",
                             (long long)d[i].kernel, 2 + i, (long long)x->dims[2 + i]);
        values *= (double)(x->dims[2 + i] + d[i].before + d[i].after + d[i].stride);
    }
    return values < INT32_MAX ? QAT_OK : fv_refuse(b, "%.3g values between its planes", values);
}

qat_status fv_volume(builder *b, fv *x, const qat_foreign_tensor *w, int64_t groups,
                     const fv_direction d[FV_DIRECTIONS], const qat_foreign_tensor *bias)
{
    int64_t windows[FV_DIRECTIONS];
    qat_status st = check_volume(b, x, d, windows);
    if (!st)
        st = fv_to_channels_last(b, x);
    if (st)
        return st;
    struct volume v = {(int)x->dims[2],
                       (int)x->dims[3],
                       (int)x->dims[4],
                       (int)x->dims[1],
                       (int)groups,
                       (int)w->dims[0],
                       d};
    qat_node *y = gather_planes(b, &v, x->node);
    int64_t const rows = rows_of(&v), strides = rows / d[1].stride;
    y = as(b, y, v.depth, v.height, v.width * v.channels);
    y = y ? padded(b, y, d[1].before, rows - d[1].before - v.height) : NULL;
    y = as(b, y, (int)(v.depth * rows), v.width, v.channels);
    y = y ? convolve(b, &v, y, w, bias) : NULL;
    y = as(b, y, v.depth, (int)strides, y ? y->shape.dims[2] * v.filters : 1);
    if (y && strides > windows[1])
        y = fv_add(b, "strided_slice", "rows", y, "axis=2 begin=0 count=%lld",
                   (long long)windows[1]);
    int64_t const dims[] = {x->dims[0], v.filters, windows[0], windows[1], windows[2]};
    *x = fv_channels_last(b, y, 5, dims);
    return y ? QAT_OK : fv_graph_error(b);
}

/* ------------------------------------------------------------------ ConvTranspose */

/** Zeros behind each position of a dimension: n positions become n * stride. */
static qat_status spread(builder *b, fv *x, int axis, int64_t stride)
{
    qat_shape shape;
    int at;
    int64_t after = 1;
    qat_status const st = fv_around(b, x, axis, &shape, &at);
    if (st)
        return st;
    for (int i = at + 1; i < shape.rank; i++)
        after *= shape.dims[i];
    qat_node *y = as(b, x->node, (int)(fv_count(x) / after), 1, (int)after);
    y = y ? fv_add(b, "pad", "zeros", y, "right=%lld", (long long)stride - 1) : NULL;
    *x = fv_resized(x, y, axis, x->dims[axis] * stride);
    return y ? QAT_OK : fv_graph_error(b);
}

/** From [C, O / groups, ...] to [O, C / groups, ...], the taps from the last to the first. */
static const qat_foreign_tensor *turned(builder *b, const qat_foreign_tensor *w, int64_t groups)
{
    int64_t dims[QAT_FOREIGN_RANK];
    memcpy(dims, w->dims, sizeof dims);
    dims[0] = w->dims[1] * groups;
    dims[1] = w->dims[0] / groups;
    qat_foreign_tensor *t = fv_constant(b, QAT_FOREIGN_FLOAT, w->rank, dims);
    size_t const taps = (size_t)(w->dims[2] * w->dims[3] * w->dims[4]);
    size_t const each = (size_t)dims[1], filters = (size_t)w->dims[1];
    for (size_t i = 0; t && i < t->count; i++) {
        size_t const tap = i % taps, c = i / taps % each, o = i / taps / each;
        size_t const from = (o / filters * each + c) * filters + o % filters;
        ((float *)t->floats)[i] = w->floats[from * taps + taps - 1 - tap];
    }
    return t;
}

qat_status fv_transposed_volume(builder *b, fv *x, const qat_foreign_tensor *w,
                                const fv_transposed *t, const qat_foreign_tensor *bias)
{
    fv_direction one[FV_DIRECTIONS];
    const qat_foreign_tensor *weights = turned(b, w, t->groups);
    qat_status st = weights ? QAT_OK : fv_graph_error(b);
    for (int i = 0; i < FV_DIRECTIONS && !st; i++) {
        const fv_direction *d = &t->direction[i];
        if (d->stride > 1)
            st = spread(b, x, 2 + i, d->stride);
        int64_t const reach = (d->kernel - 1) * d->dilation, size = x->dims[2 + i];
        int64_t const before = reach - d->before, after = t->length[i] + reach - size - before;
        int64_t const begin = before < 0 ? -before : 0, end = after < 0 ? -after : 0;
        if (!st && begin + end > 0) /* the zeros behind the last one, what the padding takes away */
            st = fv_part(b, x, 2 + i, begin, 1, size - begin - end, x);
        one[i] = (fv_direction){d->kernel, 1, d->dilation, begin ? 0 : before, end ? 0 : after};
    }
    return st ? st : fv_volume(b, x, weights, t->groups, one, bias);
}
