/** CONV_2D, DEPTHWISE_CONV_2D, TRANSPOSE_CONV and FULLY_CONNECTED. */
#include "convert/tflite/import.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/** The inputs of the engine op, and the shapes of the operator. */
struct layer {
    int inputs[3]; /* x, weights, bias or -1 */
    tfl_shape x, w, y;
    int output;
};

/** A converter that saw no samples quantizes weights only. */
static qat_status refuse_hybrid(tfl_importer *im, int x, int w)
{
    const tfl_tensor *activation = tfl_tensor_of(im, x), *weights = tfl_tensor_of(im, w);
    if (!activation || !weights || activation->type != TFL_FLOAT32 || !weights->scales.count)
        return QAT_OK;
    return tfl_refuse(im,
                      "its weights are %s, but tensor %d (%s), its input, is float32: only the "
                      "weights were quantized (dynamic range). Convert the model again with a "
                      "representative_dataset and OpsSet.TFLITE_BUILTINS_INT8",
                      tfl_type_name(weights->type), im->op->inputs[x], activation->name);
}

/** Load x, weights and bias, and check everything but whether their shapes fit. */
static qat_status load(tfl_importer *im, struct layer *l, int x, int w, int bias, int channel_axis)
{
    qat_status st = refuse_hybrid(im, x, w);
    if (!st)
        st = tfl_input(im, x, &l->inputs[QAT_IN_X]);
    bool const is_wide = !st && im->graph->tensors[l->inputs[QAT_IN_X]].type == QI_S16;
    if (!st)
        st = tfl_input_shape(im, w, channel_axis + 1, 4, &l->w);
    if (!st)
        st = tfl_weights(im, w, channel_axis, &l->inputs[QAT_IN_WEIGHTS]);
    if (!st)
        st = tfl_bias(im, bias, l->w.dims[channel_axis], is_wide, &l->inputs[QAT_IN_BIAS]);
    if (st)
        return st;
    const qat_qtensor *tensors = im->graph->tensors;
    qi_type const type = is_wide ? QI_S8 : tensors[l->inputs[QAT_IN_X]].type;
    if (type != tensors[l->inputs[QAT_IN_WEIGHTS]].type)
        return tfl_refuse(im, "its weights are %s, but its input is not",
                          tfl_type_name(tfl_tensor_of(im, w)->type));
    return QAT_OK;
}

/** The reference ignores the zero point of int8 convolution weights, so only 0 is unambiguous. */
static qat_status check_symmetric(tfl_importer *im, const struct layer *l)
{
    const qat_qtensor *w = &im->graph->tensors[l->inputs[QAT_IN_WEIGHTS]];
    if (w->type == QI_S8 && w->zero_point != 0)
        return tfl_refuse(im, "its int8 weights have the zero point %d instead of 0",
                          (int)w->zero_point);
    return QAT_OK;
}

static qat_status check_window(tfl_importer *im, const qat_window *w)
{
    int const values[] = {w->kernel_h, w->kernel_w,   w->stride_h,
                          w->stride_w, w->dilation_h, w->dilation_w};
    for (int i = 0; i < 6; i++)
        if (values[i] < 1 || values[i] > UINT16_MAX)
            return tfl_refuse(im, "kernel, stride and dilation are %dx%d, %dx%d and %dx%d",
                              values[0], values[1], values[2], values[3], values[4], values[5]);
    return QAT_OK;
}

/** The number of outputs in one direction; 0 or less if the window does not fit. */
static int32_t windows(int32_t in, int kernel, int stride, int dilation, int padding)
{
    int64_t const extent = (int64_t)(kernel - 1) * dilation + 1;
    int64_t const span = padding == TFL_SAME ? in : in - extent + 1;
    return span < 1 ? 0 : (int32_t)((span + stride - 1) / stride);
}

qat_status tfl_window_shape(tfl_importer *im, const tfl_shape *x, const qat_window *w, int padding,
                            int32_t channels, tfl_shape *y)
{
    qat_status const st = check_window(im, w);
    if (st)
        return st;
    if (padding != TFL_SAME && padding != TFL_VALID)
        return tfl_refuse(im, "padding %d (SAME is 0, VALID is 1)", padding);
    *y = (tfl_shape){
        4,
        {x->dims[0], windows(x->dims[1], w->kernel_h, w->stride_h, w->dilation_h, padding),
         windows(x->dims[2], w->kernel_w, w->stride_w, w->dilation_w, padding), channels}};
    return QAT_OK;
}

/* ------------------------------------------------------------------ the bias's scale */

/** The only scale of a constant; 0 if it has none or several, as in the reference. */
static double single_scale(const tfl_importer *im, int tensor)
{
    const tfl_tensor *t = &im->model->tensors[im->graph->tensors[tensor].source_index];
    return t->scales.count == 1 ? (double)fb_f32_at(&t->scales, 0) : 0.0;
}

/**
 * The reference adds the bias to the products unchanged, whatever its scale. It refuses |S_x S_w -
 * S_bias| / S_y > 0.02 in FULLY_CONNECTED, and in convolutions of uint8.
 */
static qat_status check_bias(tfl_importer *im, const struct layer *l)
{
    if (l->inputs[QAT_IN_BIAS] < 0)
        return QAT_OK;
    const qat_qtensor *tensors = im->graph->tensors;
    double const products =
        (double)tensors[l->inputs[QAT_IN_X]].scale * single_scale(im, l->inputs[QAT_IN_WEIGHTS]);
    double const bias = single_scale(im, l->inputs[QAT_IN_BIAS]);
    if (fabs(products - bias) / (double)tensors[l->output].scale <= 0.02)
        return QAT_OK;
    return tfl_refuse(im, "its bias, %s, has the scale %g, but its products have %g",
                      tensors[l->inputs[QAT_IN_BIAS]].name, bias, products);
}

static qat_status check_conv_bias(tfl_importer *im, const struct layer *l)
{
    return im->graph->tensors[l->output].type == QI_U8 ? check_bias(im, l) : QAT_OK;
}

/** Does a sum times this multiplier round to 0, whatever the sum? Those of FULLY_CONNECTED are not
 * rounded to 31 bits: 2^-50 times a sum of 48 bits is below one half. */
static bool rounds_to_zero(const tfl_importer *im, double multiplier)
{
    int32_t mult, shift;
    qat_requantize_multiplier(multiplier, &mult, &shift);
    return im->op->code == TFL_FULLY_CONNECTED ? multiplier < 0x1p-50 : mult == 0;
}

static double multiplier_of(const tfl_importer *im, const struct layer *l, int channel)
{
    const qat_qtensor *t = im->graph->tensors, *w = &t[l->inputs[QAT_IN_WEIGHTS]];
    return qat_accumulator_multiplier(t[l->inputs[QAT_IN_X]].scale,
                                      w->channel_scales ? w->channel_scales[channel] : w->scale,
                                      t[l->output].scale, false);
}

/**
 * Channels whose weights are zeros have scales next to nothing, and biases, which are on that
 * scale, as large as the type allows. The outputs of such a channel are the zero point whatever the
 * sum is. Its bias becomes 0, so that no sum leaves its bits.
 */
static qat_status drop_unseen_biases(tfl_importer *im, struct layer *l)
{
    int const from = l->inputs[QAT_IN_BIAS];
    if (from < 0)
        return QAT_OK;
    qat_qtensor t = im->graph->tensors[from];
    size_t const each = qi_type_bytes(t.type), count = qat_qtensor_count(&t);
    uint8_t *values = NULL;
    for (size_t c = 0; c < count; c++) {
        if (!qi_value_at(t.type, t.data, c) || !rounds_to_zero(im, multiplier_of(im, l, (int)c)))
            continue;
        if (!values) {
            void *copy;
            qat_status const st = tfl_take_room(im, t.source_index, count * each, &copy);
            if (st)
                return st;
            values = memcpy(copy, t.data, count * each);
        }
        memset(values + c * each, 0, each);
    }
    if (!values)
        return QAT_OK;
    t.data = values;
    l->inputs[QAT_IN_BIAS] = qat_qgraph_tensor(im->graph, &t, im->err);
    return qat_append_status(l->inputs[QAT_IN_BIAS], im->err);
}

/* ------------------------------------------------------------------ convolutions */

typedef qat_status emit_fn(const qat_emit *e, const qat_window *window, qat_error *err);

static qat_status finish_conv(tfl_importer *im, struct layer *l, const qat_window *window,
                              int padding, int activation, int32_t channels, emit_fn *emit)
{
    qat_status st = tfl_window_shape(im, &l->x, window, padding, channels, &l->y);
    if (!st)
        st = tfl_output(im, 0, &l->y, l->inputs[QAT_IN_X], &l->output);
    if (!st)
        st = check_conv_bias(im, l);
    if (!st)
        st = drop_unseen_biases(im, l);
    if (st)
        return st;
    qat_emit e = tfl_emit(im, 3, l->inputs, l->output);
    st = tfl_activation(im, activation, &e);
    return st ? st : emit(&e, window, im->err);
}

/** Load picture, weights and bias. channel_axis: of the scales of the weights. */
static qat_status begin_conv(tfl_importer *im, struct layer *l, int channel_axis)
{
    qat_status st = tfl_input_shape(im, 0, 4, 4, &l->x);
    if (!st)
        st = load(im, l, 0, 1, 2, channel_axis);
    return st ? st : check_symmetric(im, l);
}

static qat_status import_conv(tfl_importer *im)
{
    struct layer l;
    const fb_table *o = &im->op->options;
    qat_status const st = begin_conv(im, &l, 0);
    if (st)
        return st;
    if (l.w.rank != 4 || l.x.dims[3] % l.w.dims[3] || l.w.dims[0] % (l.x.dims[3] / l.w.dims[3]))
        return tfl_refuse(im, "weights of %d inputs and %d outputs, but %d channels",
                          (int)l.w.dims[3], (int)l.w.dims[0], (int)l.x.dims[3]);
    qat_window const window = {.kernel_h = l.w.dims[1],
                               .kernel_w = l.w.dims[2],
                               .stride_h = fb_i32(o, CONV_STRIDE_H, 0),
                               .stride_w = fb_i32(o, CONV_STRIDE_W, 0),
                               .dilation_h = fb_i32(o, CONV_DILATION_H, 1),
                               .dilation_w = fb_i32(o, CONV_DILATION_W, 1)};
    return finish_conv(im, &l, &window, fb_u8(o, CONV_PADDING, 0), CONV_ACTIVATION, l.w.dims[0],
                       qat_emit_conv2d);
}

static qat_status import_depthwise(tfl_importer *im)
{
    struct layer l;
    const fb_table *o = &im->op->options;
    qat_status const st = begin_conv(im, &l, 3);
    if (st)
        return st;
    if (l.w.dims[0] != 1 || l.w.dims[3] % l.x.dims[3])
        return tfl_refuse(im, "weights [%d, ..., %d], but %d channels", (int)l.w.dims[0],
                          (int)l.w.dims[3], (int)l.x.dims[3]);
    qat_window const window = {.kernel_h = l.w.dims[1],
                               .kernel_w = l.w.dims[2],
                               .stride_h = fb_i32(o, DEPTHWISE_STRIDE_H, 0),
                               .stride_w = fb_i32(o, DEPTHWISE_STRIDE_W, 0),
                               .dilation_h = fb_i32(o, DEPTHWISE_DILATION_H, 1),
                               .dilation_w = fb_i32(o, DEPTHWISE_DILATION_W, 1)};
    return finish_conv(im, &l, &window, fb_u8(o, DEPTHWISE_PADDING, 0), DEPTHWISE_ACTIVATION,
                       l.w.dims[3], qat_emit_depthwise_conv2d);
}

/* ------------------------------------------------------------------ transposed */

/** Read the shape of its output from input 0: four numbers. */
static qat_status stated_shape(tfl_importer *im, const struct layer *l, tfl_shape *y)
{
    const int64_t *dims;
    int count;
    qat_status const st = tfl_ints(im, 0, "its output's shape", &dims, &count);
    if (st)
        return st;
    y->rank = 4;
    for (int i = 0; i < count && i < 4; i++)
        y->dims[i] = dims[i] > 0 && dims[i] <= INT32_MAX ? (int32_t)dims[i] : 0;
    if (count != 4 || y->dims[0] != l->x.dims[0] || y->dims[3] != l->w.dims[0])
        return tfl_refuse(im, "its output's shape does not fit %d pictures and %d channels",
                          (int)l->x.dims[0], (int)l->w.dims[0]);
    return QAT_OK;
}

/** Check the shape: a convolution over the stated output must give the shape of the input. */
static qat_status check_stated(tfl_importer *im, const struct layer *l, const qat_window *window,
                               int padding)
{
    tfl_shape x;
    qat_status const st = tfl_window_shape(im, &l->y, window, padding, l->x.dims[3], &x);
    if (st || (x.dims[1] == l->x.dims[1] && x.dims[2] == l->x.dims[2]))
        return st;
    return tfl_refuse(im, "its output has the shape %dx%d; for an input of %dx%d it must be %dx%d",
                      (int)l->y.dims[1], (int)l->y.dims[2], (int)l->x.dims[1], (int)l->x.dims[2],
                      (int)x.dims[1], (int)x.dims[2]);
}

/** Load everything but the output. */
static qat_status load_transposed(tfl_importer *im, struct layer *l)
{
    qat_status st = tfl_input_shape(im, 2, 4, 4, &l->x);
    if (!st)
        st = load(im, l, 2, 1, 3, 0);
    if (!st)
        st = check_symmetric(im, l);
    if (!st && (l->w.rank != 4 || l->w.dims[3] != l->x.dims[3]))
        st = tfl_refuse(im, "weights of rank %d, but %d channels", l->w.rank, (int)l->x.dims[3]);
    return st ? st : stated_shape(im, l, &l->y);
}

static qat_status import_transpose_conv(tfl_importer *im)
{
    struct layer l;
    const fb_table *o = &im->op->options;
    int const padding = fb_u8(o, TRANSPOSE_CONV_PADDING, 0);
    qat_status st = load_transposed(im, &l);
    if (st)
        return st;
    qat_window window = {.kernel_h = l.w.dims[1],
                         .kernel_w = l.w.dims[2],
                         .stride_h = fb_i32(o, TRANSPOSE_CONV_STRIDE_H, 0),
                         .stride_w = fb_i32(o, TRANSPOSE_CONV_STRIDE_W, 0),
                         .dilation_h = 1,
                         .dilation_w = 1};
    st = check_stated(im, &l, &window, padding);
    if (!st)
        st = tfl_output(im, 0, &l.y, l.inputs[QAT_IN_X], &l.output);
    if (!st)
        st = check_conv_bias(im, &l);
    if (!st)
        st = drop_unseen_biases(im, &l);
    if (st)
        return st;
    qat_emit e = tfl_emit(im, 3, l.inputs, l.output);
    qat_transposed_pads(&window, &im->graph->tensors[l.output], padding == TFL_SAME);
    st = tfl_activation(im, TRANSPOSE_CONV_ACTIVATION, &e);
    return st ? st : qat_emit_transpose_conv2d(&e, &window, im->err);
}

/* ------------------------------------------------------------------ fully connected */

/**
 * The shape: rows as wide as the weights; with keep_num_dims, the input's dimensions except the
 * last.
 */
static qat_status product_shape(tfl_importer *im, struct layer *l)
{
    int64_t const values = tfl_count(&l->x);
    bool const keep = fb_u8(&im->op->options, FULLY_CONNECTED_KEEP_DIMS, 0) != 0;
    if (l->w.rank != 2 || values % l->w.dims[1] ||
        (keep && (l->x.rank < 1 || l->x.dims[l->x.rank - 1] != l->w.dims[1])))
        return tfl_refuse(im, "weights of rank %d and %d inputs for %" PRId64 " values", l->w.rank,
                          (int)l->w.dims[1], values);
    if (keep) {
        l->y = l->x;
        l->y.dims[l->y.rank - 1] = l->w.dims[0];
    } else {
        l->y = (tfl_shape){2, {(int32_t)(values / l->w.dims[1]), l->w.dims[0]}};
    }
    return QAT_OK;
}

static qat_status import_fully_connected(tfl_importer *im)
{
    struct layer l;
    qat_status st = tfl_input_shape(im, 0, 0, TFL_MAX_RANK, &l.x);
    if (!st && fb_u8(&im->op->options, FULLY_CONNECTED_FORMAT, 0) != 0)
        st = tfl_refuse(im, "its weights are shuffled");
    if (!st)
        st = tfl_input_shape(im, 1, 2, 2, &l.w);
    if (!st)
        st = load(im, &l, 0, 1, 2, 0);
    if (!st)
        st = product_shape(im, &l);
    if (!st)
        st = tfl_output(im, 0, &l.y, l.inputs[QAT_IN_X], &l.output);
    if (!st)
        st = check_bias(im, &l);
    if (!st)
        st = drop_unseen_biases(im, &l);
    if (st)
        return st;
    qat_emit e = tfl_emit(im, 3, l.inputs, l.output);
    st = tfl_activation(im, FULLY_CONNECTED_ACTIVATION, &e);
    return st ? st : qat_emit_fully_connected(&e, im->err);
}

const tfl_handler tfl_conv_handlers[] = {
    {TFL_CONV_2D, TFL_OPTIONS_CONV_2D, 2, 3, 1, import_conv},
    {TFL_DEPTHWISE_CONV_2D, TFL_OPTIONS_DEPTHWISE_CONV_2D, 2, 3, 1, import_depthwise},
    {TFL_TRANSPOSE_CONV, TFL_OPTIONS_TRANSPOSE_CONV, 3, 4, 1, import_transpose_conv},
    {TFL_FULLY_CONNECTED, TFL_OPTIONS_FULLY_CONNECTED, 2, 3, 1, import_fully_connected},
    {0}};
