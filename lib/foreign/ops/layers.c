/** Conv, ConvTranspose, BatchNormalization. */
#include "autograd/loops/batch_norm.h"
#include "foreign/build.h"
#include "foreign/ops/volumes.h"

#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ Conv */

struct conv {
    const qat_foreign_tensor *w, *bias;
    int64_t filters, depth, kernel[2], groups, channels;
    bool depthwise;
};

static qat_status conv_of(builder *b, const fv *x, struct conv *c)
{
    qat_status st = fv_floats(b, 1, "weights", &c->w);
    if (!st)
        st = fv_floats(b, 2, "bias", &c->bias);
    if (st)
        return st;
    if (!c->w || c->w->rank != x->rank || x->rank < 3 || x->rank > 5)
        return fv_refuse(b, "an input of %d dimensions with weights of %d: 3 to 5 are possible",
                         x->rank, c->w ? c->w->rank : 0);
    c->filters = c->w->dims[0];
    c->depth = c->w->dims[1];
    c->kernel[0] = c->w->rank == 4 ? c->w->dims[2] : 1;
    c->kernel[1] = c->w->dims[c->w->rank - 1];
    c->channels = x->dims[1];
    c->groups = fv_attr_int(b, "group", 1);
    if (c->groups < 1 || c->filters < 1 || c->filters > 65536 || c->groups > c->channels ||
        c->depth * c->groups != c->channels || c->filters % c->groups)
        return fv_refuse(b, "weights of %lld x %lld channels in %lld groups for an input of %lld",
                         (long long)c->filters, (long long)c->depth, (long long)c->groups,
                         (long long)c->channels);
    c->depthwise = c->groups == c->channels && c->groups > 1 && !fv_is_head(b);
    return QAT_OK;
}

/** From [O, C, KH, KW] to [O, KH, KW, C] or, depthwise, to [1, KH, KW, O]. */
static qat_status conv_weights(builder *b, const qat_node *node, const struct conv *c)
{
    if (fv_is_head(b))
        return QAT_OK;
    float *to = fv_param(b, node, 0);
    if (!to)
        return fv_graph_error(b);
    size_t const taps = (size_t)(c->kernel[0] * c->kernel[1]);
    size_t const filters = (size_t)c->filters, depth = (size_t)c->depth;
    for (size_t o = 0; o < filters; o++)
        for (size_t i = 0; i < depth; i++)
            for (size_t t = 0; t < taps; t++)
                to[c->depthwise ? t * filters + o : (o * taps + t) * depth + i] =
                    c->w->floats[(o * depth + i) * taps + t];
    return QAT_OK;
}

static qat_status build_volume(builder *b, const struct conv *c, fv *x)
{
    fv_direction d[FV_DIRECTIONS];
    qat_status st = fv_directions_of(b, x, c->w->dims + 2, d);
    fv_name_after(b, 1);
    if (!st)
        st = fv_volume(b, x, c->w, c->groups, d, c->bias);
    if (!st)
        fv_output(b, 0, x);
    return st;
}

/** Several pictures that are one sample are the planes of a volume, with windows of one plane. */
static qat_status build_stack(builder *b, const struct conv *c, fv *x)
{
    int const rank = x->rank;
    bool const is_signal = rank == 3;
    int const perm[] = {1, 0, 2, 3};
    fv_direction d[FV_DIRECTIONS], volume[FV_DIRECTIONS] = {{1, 1, 1, 0, 0}, {1, 1, 1, 0, 0}};
    qat_foreign_tensor *w = fv_take(b, &b->arena, 1, sizeof *w);
    int64_t const n = x->dims[0], width = x->dims[rank - 1], height = is_signal ? 1 : x->dims[2];
    if (!w)
        return fv_graph_error(b);
    *w = *c->w;
    w->rank = 5;
    memcpy(w->dims + 2, (const int64_t[]){1, c->kernel[0], c->kernel[1]}, 3 * sizeof *w->dims);
    qat_status st = fv_directions_of(b, x, c->w->dims + 2, d);
    memcpy(volume + 1 + is_signal, d, (size_t)(rank - 2) * sizeof *d);
    fv_name_after(b, 1);
    if (!st)
        st = fv_permute(b, x, perm);
    if (!st)
        st = fv_reshape(b, x, 5, (const int64_t[]){1, c->channels, n, height, width});
    if (!st)
        st = fv_volume(b, x, w, c->groups, volume, c->bias);
    int64_t const dims[] = {x->dims[1], n, x->dims[is_signal ? 4 : 3], x->dims[4]};
    if (!st)
        st = fv_reshape(b, x, rank, dims);
    if (!st)
        st = fv_permute(b, x, perm);
    if (!st)
        fv_output(b, 0, x);
    return st;
}

static qat_status build_conv(builder *b)
{
    struct conv c = {0};
    fv *in, x;
    qat_node *from, *y;
    qat_status st = fv_data(b, 0, &in);
    if (st)
        return st;
    x = *in;
    fv_window w;
    st = conv_of(b, &x, &c);
    if (!st && x.rank == 5)
        return build_volume(b, &c, &x);
    if (!st && fv_is_stack(&x))
        return build_stack(b, &c, &x);
    if (!st)
        st = fv_window_of(b, &x, c.kernel, &w);
    if (!st)
        fv_name_after(b, 1);
    if (!st)
        st = fv_picture(b, &x, &from);
    if (st)
        return st;
    int const filters = fv_is_head(b) ? b->options->head : (int)c.filters;
    b->head_was = fv_is_head(b) ? c.filters : b->head_was;
    char window[FV_WINDOW_TEXT];
    fv_window_text(&w, true, window);
    y = c.depthwise ? fv_add(b, "depthwise_conv2d", "", from, "multiplier=%d %s",
                             (int)(c.filters / c.channels), window)
                    : fv_add(b, "conv2d", "", from, "filters=%d groups=%d %s", filters,
                             (int)c.groups, window);
    st = y ? conv_weights(b, y, &c) : fv_graph_error(b);
    if (!st && c.bias)
        st = fv_bias(b, &y, c.bias, 1);
    if (st)
        return st;
    int64_t const dims[] = {x.dims[0], filters, y->shape.dims[1], y->shape.dims[2]};
    int64_t const line[] = {x.dims[0], filters, y->shape.dims[2]};
    fv const out = fv_channels_last(b, y, x.rank, x.rank == 4 ? dims : line);
    fv_output(b, 0, &out);
    return QAT_OK;
}

/* ------------------------------------------------------------------ ConvTranspose */

/** From [C, O, KH, KW] to [O, KH, KW, C]. */
static qat_status transposed_weights(builder *b, const qat_node *node, const qat_foreign_tensor *w,
                                     size_t taps)
{
    size_t const channels = (size_t)w->dims[0], filters = (size_t)w->dims[1];
    float *to = fv_param(b, node, 0);
    for (size_t c = 0; to && c < channels; c++)
        for (size_t o = 0; o < filters; o++)
            for (size_t t = 0; t < taps; t++)
                to[(o * taps + t) * channels + c] = w->floats[(c * filters + o) * taps + t];
    return to ? QAT_OK : fv_graph_error(b);
}

/** One group without dilations. */
static qat_node *add_transposed(builder *b, const fv_transposed *t, qat_node *from,
                                const qat_foreign_tensor *w)
{
    char window[FV_WINDOW_TEXT];
    fv_window_text(&t->window, false, window);
    qat_node *y = fv_add(b, "transpose_conv2d", "", from, "filters=%d extra=%d extra_w=%d %s",
                         (int)t->filters, (int)t->extra[0], (int)t->extra[1], window);
    size_t const taps = (size_t)(t->window.kernel[0] * t->window.kernel[1]);
    return y && !transposed_weights(b, y, w, taps) ? y : NULL;
}

/** Zeros behind each pixel of [N, H, W, C]: [N, H sh, W sw, C]. */
static qat_node *spread(builder *b, const fv *x, qat_node *from, int sh, int sw)
{
    int const h = from->shape.dims[1], w = from->shape.dims[2], c = from->shape.dims[3];
    fv v = fv_like(x, from);
    if (sw > 1) {
        qat_node *columns = fv_shaped(b, &v, QAT_SHAPE(1, h * w, 1, c));
        v.node = columns ? fv_add(b, "pad", "columns", columns, "right=%d", sw - 1) : NULL;
    }
    if (sh > 1 && v.node) {
        qat_node *rows = fv_shaped(b, &v, QAT_SHAPE(1, h, 1, w * sw * c));
        v.node = rows ? fv_add(b, "pad", "rows", rows, "right=%d", sh - 1) : NULL;
    }
    return v.node ? fv_shaped(b, &v, QAT_SHAPE(1, h * sh, w * sw, c)) : NULL;
}

/**
 * From [C, O / groups, KH, KW] to [O, KH, KW, C / groups] or, depthwise, to [1, KH, KW, O], the
 * taps from the last to the first.
 */
static qat_status turned_weights(builder *b, const qat_node *node, const qat_foreign_tensor *w,
                                 const fv_transposed *t, bool depthwise)
{
    size_t const taps = (size_t)(t->window.kernel[0] * t->window.kernel[1]);
    size_t const groups = (size_t)t->groups, filters = (size_t)w->dims[1];
    size_t const depth = (size_t)w->dims[0] / groups, all = groups * filters;
    float *to = fv_param(b, node, 0);
    for (size_t g = 0; to && g < groups; g++)
        for (size_t c = 0; c < depth; c++)
            for (size_t o = 0; o < filters; o++)
                for (size_t k = 0; k < taps; k++) {
                    size_t const filter = g * filters + o, tap = taps - 1 - k;
                    to[depthwise ? tap * all + filter : (filter * taps + tap) * depth + c] =
                        w->floats[((g * depth + c) * filters + o) * taps + k];
                }
    return to ? QAT_OK : fv_graph_error(b);
}

/** With groups or dilations: a convolution over the pixels with zeros between them. */
static qat_node *add_spread(builder *b, const fv *x, const fv_transposed *t, qat_node *from,
                            const qat_foreign_tensor *w)
{
    const fv_window *v = &t->window;
    fv_window one = *v;
    char window[FV_WINDOW_TEXT];
    qat_node *wide = spread(b, x, from, (int)v->stride[0], (int)v->stride[1]);
    for (int i = 0; i < 2 && wide; i++) {
        int64_t const reach = (v->kernel[i] - 1) * v->dilation[i];
        int64_t const size = wide->shape.dims[1 + i];
        one.stride[i] = 1;
        one.before[i] = reach - v->before[i];
        one.after[i] = t->out[i] + reach - size - one.before[i];
        int64_t const begin = one.before[i] < 0 ? -one.before[i] : 0;
        int64_t const end = one.after[i] < 0 ? -one.after[i] : 0;
        one.before[i] = begin ? 0 : one.before[i];
        one.after[i] = end ? 0 : one.after[i];
        if (begin + end > 0) /* the zeros behind the last pixel, or what the padding takes away */
            wide = fv_add(b, "strided_slice", "cut", wide, "axis=%d begin=%lld count=%lld", 1 + i,
                          (long long)begin, (long long)(size - begin - end));
    }
    if (!wide)
        return NULL;
    fv_window_text(&one, true, window);
    bool const depthwise = t->groups == w->dims[0] && t->groups > 1;
    qat_node *y = depthwise ? fv_add(b, "depthwise_conv2d", "", wide, "multiplier=%d %s",
                                     (int)w->dims[1], window)
                            : fv_add(b, "conv2d", "", wide, "filters=%d groups=%d %s",
                                     (int)t->filters, (int)t->groups, window);
    return y && !turned_weights(b, y, w, t, depthwise) ? y : NULL;
}

static qat_status build_transposed(builder *b)
{
    fv *in, x;
    const qat_foreign_tensor *w, *bias;
    fv_transposed t;
    qat_node *from;
    qat_status st = fv_data(b, 0, &in);
    if (!st)
        st = fv_floats(b, 1, "weights", &w);
    if (!st)
        st = fv_floats(b, 2, "bias", &bias);
    if (st)
        return st;
    x = *in;
    st = fv_transposed_of(b, &x, w, &t);
    if (!st)
        fv_name_after(b, 1);
    if (!st && x.rank == 5) {
        st = fv_transposed_volume(b, &x, w, &t, bias);
        if (!st)
            fv_output(b, 0, &x);
        return st;
    }
    if (!st)
        st = fv_picture(b, &x, &from);
    if (st)
        return st;
    bool const simple = t.groups == 1 && t.window.dilation[0] == 1 && t.window.dilation[1] == 1;
    qat_node *y = simple ? add_transposed(b, &t, from, w) : add_spread(b, &x, &t, from, w);
    st = y ? QAT_OK : fv_graph_error(b);
    if (!st && bias)
        st = fv_bias(b, &y, bias, 1);
    if (st)
        return st;
    int64_t const dims[] = {x.dims[0], t.filters, y->shape.dims[1], y->shape.dims[2]};
    int64_t const line[] = {x.dims[0], t.filters, y->shape.dims[2]};
    fv const out = fv_channels_last(b, y, x.rank, x.rank == 4 ? dims : line);
    fv_output(b, 0, &out);
    return QAT_OK;
}

/* ------------------------------------------------------------------ BatchNormalization */

/** Inputs 1..4 are gamma, beta, mean, variance; so are the op's parameters. */
static qat_status norm_values(builder *b, const qat_node *y, size_t channels)
{
    static const char *const names[] = {"scale", "bias", "mean", "variance"};
    for (int i = 0; i < 4; i++) {
        const qat_foreign_tensor *c;
        qat_status const st = fv_floats(b, i + 1, names[i], &c);
        if (st || !c || c->count != channels)
            return st ? st : fv_refuse(b, "its %s must have %zu values", names[i], channels);
        float *to = fv_param(b, y, i);
        if (!to)
            return fv_graph_error(b);
        memcpy(to, c->floats, channels * sizeof *to);
    }
    float *steps = fv_param(b, y, 4);
    if (!steps)
        return fv_graph_error(b);
    *steps = QAT_BN_WARM_STEPS;
    return QAT_OK;
}

static qat_status build_norm(builder *b)
{
    fv *in, x;
    qat_node *from;
    qat_status st = fv_data(b, 0, &in);
    if (st)
        return st;
    x = *in;
    if (x.rank < 2)
        return fv_refuse(b, "an input of %d dimensions", x.rank);
    fv_name_after(b, 1);
    if (x.rank <= 4 && !fv_is_stack(&x)) {
        st = x.rank == 2 ? fv_row(b, &x, true, &from) : fv_picture(b, &x, &from);
    } else {
        st = fv_to_channels_last(b, &x);
        int const channels = (int)x.dims[1];
        from =
            st ? NULL : fv_shaped(b, &x, QAT_SHAPE(1, 1, (int)(fv_count(&x) / channels), channels));
    }
    if (st)
        return st;
    qat_node *y = fv_add(b, "batch_norm", "", from, "momentum=%.9g epsilon=%.9g",
                         b->options->bn_momentum, fv_attr_real(b, "epsilon", 1e-5));
    if (!y)
        return fv_graph_error(b);
    st = norm_values(b, y, (size_t)x.dims[1]);
    fv const out = fv_like(&x, y);
    if (!st)
        fv_output(b, 0, &out);
    return st;
}

const fv_operator fv_layer_operators[] = {
    {"Conv", build_conv},
    {"ConvTranspose", build_transposed},
    {"BatchNormalization", build_norm},
    {NULL, NULL},
};
