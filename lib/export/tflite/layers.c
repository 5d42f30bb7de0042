/** Ops with windows or weights: convolutions, pools, fully connected. */
#include "export/tflite/out.h"

#include <string.h>

/* ------------------------------------------------------------------ windows */

static int32_t extent(const tfo_direction *d)
{
    return (d->kernel - 1) * d->dilation + 1;
}

static bool is_same(const tfo_direction *d)
{
    return d->out == (d->in + d->stride - 1) / d->stride &&
           d->pad == qat_pad_before(d->in, d->out, d->kernel, d->stride, d->dilation);
}

static bool is_valid(const tfo_direction *d)
{
    return d->pad == 0 && d->in >= extent(d) && d->out == (d->in - extent(d)) / d->stride + 1;
}

int32_t tfo_pad_behind(const tfo_direction *d)
{
    int32_t const after = (d->out - 1) * d->stride + extent(d) - d->in - d->pad;
    return after > 0 ? after : 0;
}

int tfo_padding(const tfo_direction d[2])
{
    return is_same(&d[0]) && is_same(&d[1])     ? TFL_SAME
           : is_valid(&d[0]) && is_valid(&d[1]) ? TFL_VALID
                                                : -1;
}

/**
 * The padding of an op over x [N,H,W,C]; params: kernel or NULL (that of the weights), stride,
 * dilation, pad. Where TensorFlow Lite has none like it, x gets a border of `code` first.
 */
static qat_status padding_of(tfo *o, tfo_direction d[2], int32_t code, bool may_pad, int *x,
                             int *padding)
{
    const qat_qtensor *from = tfo_input(o, 0);
    *x = tfo_input_index(o, 0);
    *padding = tfo_padding(d);
    if (*padding >= 0)
        return QAT_OK;
    int32_t const pads[] = {0, 0, d[0].pad, tfo_pad_behind(&d[0]), d[1].pad, tfo_pad_behind(&d[1]),
                            0, 0};
    qat_qtensor padded = *from;
    for (int i = 0; i < 2; i++) {
        d[i].in += pads[2 + 2 * i] + pads[3 + 2 * i];
        d[i].pad = 0;
        padded.dims[1 + i] = d[i].in;
    }
    *padding = tfo_padding(d);
    if (!may_pad || *padding < 0)
        return tfo_refuse(o, "its padding is neither SAME nor VALID");
    int const paddings = tfo_ints(o, "paddings", 8, pads);
    o->file.tensors[paddings].rank = 2;
    o->file.tensors[paddings].dims[0] = 4;
    o->file.tensors[paddings].dims[1] = 2;
    bool const zeros = code == from->zero_point;
    int inputs[3] = {*x, paddings};
    if (!zeros)
        inputs[2] = tfo_code(o, from, "value", code);
    *x = tfo_between(o, &padded, "padded");
    tfo_append(o, zeros ? TFL_PAD : TFL_PADV2, zeros ? 2 : 3, inputs, *x);
    return QAT_OK;
}

/** Both directions; p: stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_left. */
static void directions(const tfo *o, const int32_t kernel[2], const int32_t *stride,
                       const int32_t *dilation, const int32_t *pad, tfo_direction d[2])
{
    const qat_qtensor *x = tfo_input(o, 0), *y = tfo_output(o);
    for (int i = 0; i < 2; i++)
        d[i] = (tfo_direction){.in = x->dims[1 + i],
                               .out = y->dims[1 + i],
                               .kernel = kernel[i],
                               .stride = stride[i],
                               .dilation = dilation ? dilation[i] : 1,
                               .pad = pad[i]};
}

/* ------------------------------------------------------------------ weights */

/** Versions of operators whose weights have 4 bits. */
static void set_version(const tfo *o, tfo_operator *op, int weights, int version)
{
    if (op && o->file.tensors[weights].type == TFL_INT4)
        op->version = version;
}

qat_status tfo_conv2d(tfo *o, int code)
{
    const int32_t *p = o->op->params;
    const qat_qtensor *w = tfo_input(o, QAT_IN_WEIGHTS);
    tfo_direction d[2];
    int x, padding;
    directions(o, &w->dims[1], p, p + 2, p + 4, d);
    qat_status const st = padding_of(o, d, tfo_input(o, 0)->zero_point, true, &x, &padding);
    if (st)
        return st;
    tfo_clamp const c = tfo_begin_clamp(o, true, p[7], p[8]);
    int const inputs[] = {x, tfo_weights(o, 0), tfo_bias(o)};
    tfo_operator *to = tfo_append(o, code, 3, inputs, c.direct);
    tfo_option_int(to, CONV_PADDING, padding);
    tfo_option_int(to, CONV_STRIDE_H, p[0]);
    tfo_option_int(to, CONV_STRIDE_W, p[1]);
    tfo_option_int(to, CONV_DILATION_H, p[2]);
    tfo_option_int(to, CONV_DILATION_W, p[3]);
    tfo_option_int(to, CONV_ACTIVATION, c.activation);
    set_version(o, to, inputs[1], 7);
    if (to && p[6] > 1 && to->version < 6)
        to->version = 6; /* groups */
    tfo_writes(o, c.direct);
    tfo_end_clamp(o, &c);
    return QAT_OK;
}

qat_status tfo_depthwise_conv2d(tfo *o, int code)
{
    const int32_t *p = o->op->params;
    const qat_qtensor *w = tfo_input(o, QAT_IN_WEIGHTS);
    tfo_direction d[2];
    int x, padding;
    directions(o, &w->dims[1], p, p + 2, p + 4, d);
    qat_status const st = padding_of(o, d, tfo_input(o, 0)->zero_point, true, &x, &padding);
    if (st)
        return st;
    tfo_clamp const c = tfo_begin_clamp(o, true, p[7], p[8]);
    int const inputs[] = {x, tfo_weights(o, 3), tfo_bias(o)};
    tfo_operator *to = tfo_append(o, code, 3, inputs, c.direct);
    tfo_option_int(to, DEPTHWISE_PADDING, padding);
    tfo_option_int(to, DEPTHWISE_STRIDE_H, p[0]);
    tfo_option_int(to, DEPTHWISE_STRIDE_W, p[1]);
    tfo_option_int(to, DEPTHWISE_DILATION_H, p[2]);
    tfo_option_int(to, DEPTHWISE_DILATION_W, p[3]);
    tfo_option_int(to, DEPTHWISE_MULTIPLIER, p[6]);
    tfo_option_int(to, DEPTHWISE_ACTIVATION, c.activation);
    set_version(o, to, inputs[1], 6); /* 7 is its number, which the reference kernels lack */
    tfo_writes(o, c.direct);
    tfo_end_clamp(o, &c);
    return QAT_OK;
}

/** The padding is that of a convolution from y back to x. */
qat_status tfo_transpose_conv2d(tfo *o, int code)
{
    const int32_t *p = o->op->params;
    const qat_qtensor *w = tfo_input(o, QAT_IN_WEIGHTS);
    tfo_direction d[2];
    directions(o, &w->dims[1], p, NULL, p + 2, d);
    for (int i = 0; i < 2; i++) {
        int32_t const in = d[i].in;
        d[i].in = d[i].out;
        d[i].out = in;
    }
    int const padding = tfo_padding(d);
    if (padding < 0)
        return tfo_refuse(o, "its padding is neither SAME nor VALID");
    if (w->bits <= 4 && w->type == QI_S8)
        return tfo_refuse(o, "it has weights of %d bits, which TRANSPOSE_CONV has not", w->bits);
    tfo_clamp const c = tfo_begin_clamp(o, true, p[4], p[5]);
    int const inputs[] = {tfo_ints(o, "shape", 4, tfo_output(o)->dims), tfo_weights(o, 0),
                          tfo_input_index(o, 0), tfo_bias(o)};
    tfo_operator *to = tfo_append(o, code, 4, inputs, c.direct);
    tfo_option_int(to, TRANSPOSE_CONV_PADDING, padding);
    tfo_option_int(to, TRANSPOSE_CONV_STRIDE_H, p[0]);
    tfo_option_int(to, TRANSPOSE_CONV_STRIDE_W, p[1]);
    tfo_option_int(to, TRANSPOSE_CONV_ACTIVATION, c.activation);
    if (to && c.activation)
        to->version = 4;
    tfo_writes(o, c.direct);
    tfo_end_clamp(o, &c);
    return QAT_OK;
}

/** Rows of outputs; or all dimensions of x but the last, which becomes the outputs. */
static bool is_rows(const qat_qtensor *y, int32_t outputs)
{
    return y->rank == 2 && y->dims[1] == outputs;
}

static bool keeps_dims(const qat_qtensor *x, const qat_qtensor *w, const qat_qtensor *y)
{
    int const last = x->rank - 1;
    return x->rank == y->rank && x->dims[last] == w->dims[1] && y->dims[last] == w->dims[0] &&
           !memcmp(x->dims, y->dims, (size_t)last * sizeof *x->dims);
}

qat_status tfo_fully_connected(tfo *o, int code)
{
    const int32_t *p = o->op->params;
    const qat_qtensor *w = tfo_input(o, QAT_IN_WEIGHTS), *y = tfo_output(o);
    bool const rows = is_rows(y, w->dims[0]), keep = !rows && keeps_dims(tfo_input(o, 0), w, y);
    tfo_clamp c = tfo_begin_clamp(o, true, p[0], p[1]);
    if (!rows && !keep && c.direct != tfo_output_index(o))
        return tfo_refuse(o, "it has a clamp, and its output another shape than rows of outputs");
    if (!rows && !keep) {
        qat_qtensor product = *y;
        product.rank = 2;
        product.dims[0] = (int32_t)(qat_qtensor_count(y) / (size_t)w->dims[0]);
        product.dims[1] = w->dims[0];
        c.direct = tfo_between(o, &product, "rows");
    }
    int const inputs[] = {tfo_input_index(o, 0), tfo_weights(o, 0), tfo_bias(o)};
    tfo_operator *to = tfo_append(o, code, 3, inputs, c.direct);
    tfo_option_int(to, FULLY_CONNECTED_ACTIVATION, c.activation);
    tfo_option_int(to, FULLY_CONNECTED_KEEP_DIMS, keep);
    if (to && keep)
        to->version = 5;
    set_version(o, to, inputs[1], 10);
    tfo_writes(o, c.direct);
    if (!rows && !keep)
        tfo_reshape(o, c.direct);
    else
        tfo_end_clamp(o, &c);
    return QAT_OK;
}

/* ------------------------------------------------------------------ pools */

/** Positions outside x do not count; the lowest code around it is never the largest. */
static qat_status write_pool(tfo *o, int code, bool may_pad)
{
    const int32_t *p = o->op->params;
    tfo_direction d[2];
    int32_t lowest, highest;
    int x, padding;
    directions(o, p, p + 2, NULL, p + 4, d);
    qat_tensor_codes(tfo_input(o, 0), &lowest, &highest);
    qat_status const st = padding_of(o, d, lowest, may_pad, &x, &padding);
    if (st)
        return st;
    tfo_clamp const c = tfo_begin_clamp(o, true, p[6], p[7]);
    tfo_operator *to = tfo_append(o, code, 1, &x, c.direct);
    tfo_option_int(to, POOL_PADDING, padding);
    tfo_option_int(to, POOL_FILTER_H, p[0]);
    tfo_option_int(to, POOL_FILTER_W, p[1]);
    tfo_option_int(to, POOL_STRIDE_H, p[2]);
    tfo_option_int(to, POOL_STRIDE_W, p[3]);
    tfo_option_int(to, POOL_ACTIVATION, c.activation);
    tfo_writes(o, c.direct);
    tfo_end_clamp(o, &c);
    return QAT_OK;
}

qat_status tfo_average_pool2d(tfo *o, int code)
{
    return write_pool(o, code, false);
}

qat_status tfo_max_pool2d(tfo *o, int code)
{
    return write_pool(o, code, true);
}
