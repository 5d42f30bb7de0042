/** Operators of float .tflite files, as nodes with ONNX's names. */
#include "foreign/tflite.h"

#include <string.h>

/** Positions that a Slice limits to the dimension. */
enum { BEYOND_START = INT32_MIN, UP_TO_END = INT32_MAX };

/* ------------------------------------------------------------------ dimensions, activations */

/** [N, H, W, C] to [N, C, H, W], [N, W, C] to [N, C, W]; and back. Others stay. */
static int planar(tf_reader *r, int value, int rank)
{
    static const int64_t three[] = {0, 2, 1}, four[] = {0, 3, 1, 2};
    if (rank < 3 || rank > 4)
        return value;
    tf_attr_ints(r, "perm", rank, rank == 3 ? three : four);
    return tf_between(r, "Transpose", "planar", value);
}

/** The same for a dimension's number. */
static int64_t planar_axis(int64_t axis, int rank)
{
    axis += axis < 0 ? rank : 0;
    return rank < 3 || rank > 4 || axis == 0 ? axis : axis == rank - 1 ? 1 : axis + 1;
}

/** An operator's end: from its node's output to the file's, with an activation and a transpose. */
typedef struct ending {
    int activation, rank; /* rank 0: nothing is planar */
    int target;           /* what the operator's node writes */
} ending;

static ending begin_end(tf_reader *r, int activation, int rank)
{
    bool const direct = activation == TFL_ACT_NONE && (rank < 3 || rank > 4);
    return (ending){activation, rank, direct ? r->op->outputs[0] : tf_value(r)};
}

static const char *activation_node(tf_reader *r, int activation)
{
    switch (activation) {
    case TFL_ACT_RELU:
        return "Relu";
    case TFL_ACT_TANH:
        return "Tanh";
    case TFL_ACT_RELU6:
    case TFL_ACT_RELU_N1_TO_1:
        tf_attr_real(r, "min", activation == TFL_ACT_RELU6 ? 0 : -1);
        tf_attr_real(r, "max", activation == TFL_ACT_RELU6 ? 6 : 1);
        return "Clip";
    default:
        return NULL;
    }
}

static qat_status finish(tf_reader *r, const ending *e)
{
    static const int64_t three[] = {0, 2, 1}, four[] = {0, 2, 3, 1};
    bool const turns = e->rank == 3 || e->rank == 4;
    int value = e->target, out = r->op->outputs[0];
    if (e->activation != TFL_ACT_NONE) {
        const char *op = activation_node(r, e->activation);
        int const after = turns ? tf_value(r) : out;
        if (!op)
            return tf_refuse(r, "the activation %d is not supported", e->activation);
        tf_node(r, op, "activation", 1, &value, 1, &after);
        value = after;
    }
    if (turns) {
        tf_attr_ints(r, "perm", e->rank, e->rank == 3 ? three : four);
        tf_node(r, "Transpose", "packed", 1, &value, 1, &out);
    }
    return QAT_OK;
}

static qat_status add_node(tf_reader *r, const char *op, int n, const int *inputs, int activation,
                           int rank)
{
    ending const e = begin_end(r, activation, rank);
    tf_node(r, op, "", n, inputs, 1, &e.target);
    return finish(r, &e);
}

static qat_status one_input(tf_reader *r, const char *op)
{
    return add_node(r, op, 1, r->op->inputs, TFL_ACT_NONE, 0);
}

static int rank_of(const tf_reader *r, int i)
{
    return tf_tensor(r, i)->rank;
}

/* ------------------------------------------------------------------ layers */

static void attr_padding(tf_reader *r, int padding)
{
    tf_attr_text(r, "auto_pad", padding == TFL_SAME ? "SAME_UPPER" : "VALID");
}

static void attr_pair(tf_reader *r, const char *name, int32_t h, int32_t w)
{
    tf_attr_ints(r, name, 2, (const int64_t[]){h, w});
}

static qat_status read_conv(tf_reader *r)
{
    bool const depthwise = r->op->code == TFL_DEPTHWISE_CONV_2D;
    const tfl_tensor *x = tf_tensor(r, 0), *w = tf_tensor(r, 1);
    const fb_table *o = &r->op->options;
    int const shift = depthwise; /* its options have a multiplier before the activation */
    if (x->rank != 4 || w->rank != 4 || w->dims[3] < 1)
        return tf_refuse(r, "an input of %d dimensions with weights of %d", x->rank, w->rank);
    tf_attr_ints(r, "perm", 4,
                 depthwise ? (const int64_t[]){3, 0, 1, 2} : (const int64_t[]){0, 3, 1, 2});
    int const weights = tf_between(r, "Transpose", "weights", tf_input(r, 1));
    int const inputs[] = {planar(r, tf_input(r, 0), 4), weights, tf_input(r, 2)};
    tf_attr_int(r, "group", depthwise ? x->dims[3] : x->dims[3] / w->dims[3]);
    attr_padding(r, fb_u8(o, CONV_PADDING, 0));
    attr_pair(r, "strides", fb_i32(o, CONV_STRIDE_H, 0), fb_i32(o, CONV_STRIDE_W, 0));
    attr_pair(r, "dilations", fb_i32(o, CONV_DILATION_H + shift, 1),
              fb_i32(o, CONV_DILATION_W + shift, 1));
    return add_node(r, "Conv", 3, inputs, fb_u8(o, CONV_ACTIVATION + shift, 0), 4);
}

/** Inputs: the output's shape, weights [O, H, W, I], x, bias. */
static qat_status read_transpose_conv(tf_reader *r)
{
    const fb_table *o = &r->op->options;
    int64_t shape[TFL_MAX_RANK];
    int n;
    qat_status const st = tf_ints(r, 0, "output's shape", shape, TFL_MAX_RANK, &n);
    if (st || n != 4 || rank_of(r, 2) != 4)
        return st ? st : tf_refuse(r, "an output of %d dimensions; 4 are possible", n);
    tf_attr_ints(r, "perm", 4, (const int64_t[]){3, 0, 1, 2});
    int const weights = tf_between(r, "Transpose", "weights", tf_input(r, 1));
    int const inputs[] = {planar(r, tf_input(r, 2), 4), weights, tf_input(r, 3)};
    tf_attr_text(r, "auto_pad", "SAME_UPPER"); /* of VALID nothing is cut off for this shape */
    attr_pair(r, "strides", fb_i32(o, TRANSPOSE_CONV_STRIDE_H, 0),
              fb_i32(o, TRANSPOSE_CONV_STRIDE_W, 0));
    tf_attr_ints(r, "output_shape", 2, shape + 1);
    return add_node(r, "ConvTranspose", 3, inputs, fb_u8(o, TRANSPOSE_CONV_ACTIVATION, 0), 4);
}

static qat_status read_fully_connected(tf_reader *r)
{
    const fb_table *o = &r->op->options;
    int x = tf_input(r, 0);
    int const rank = rank_of(r, 0), activation = fb_u8(o, FULLY_CONNECTED_ACTIVATION, 0);
    if (fb_u8(o, FULLY_CONNECTED_FORMAT, 0))
        return tf_refuse(r, "its weights are shuffled");
    if (fb_u8(o, FULLY_CONNECTED_KEEP_DIMS, 0) && rank > 2) {
        tf_attr_ints(r, "perm", 2, (const int64_t[]){1, 0});
        int const inputs[] = {x, tf_between(r, "Transpose", "weights", tf_input(r, 1))};
        bool const has_bias = tf_input(r, 2) >= 0;
        if (!has_bias)
            return add_node(r, "MatMul", 2, inputs, activation, 0);
        int const sum[] = {tf_value(r), tf_input(r, 2)};
        tf_node(r, "MatMul", "", 2, inputs, 1, sum);
        return add_node(r, "Add", 2, sum, activation, 0);
    }
    if (rank != 2) {
        tf_attr_int(r, "axis", 1);
        x = tf_between(r, "Flatten", "flat", x);
    }
    int const inputs[] = {x, tf_input(r, 1), tf_input(r, 2)};
    tf_attr_int(r, "transB", 1);
    return add_node(r, "Gemm", 3, inputs, activation, 0);
}

static qat_status read_pool(tf_reader *r)
{
    const fb_table *o = &r->op->options;
    int const x = planar(r, tf_input(r, 0), rank_of(r, 0));
    attr_padding(r, fb_u8(o, POOL_PADDING, 0));
    attr_pair(r, "kernel_shape", fb_i32(o, POOL_FILTER_H, 0), fb_i32(o, POOL_FILTER_W, 0));
    attr_pair(r, "strides", fb_i32(o, POOL_STRIDE_H, 0), fb_i32(o, POOL_STRIDE_W, 0));
    return add_node(r, r->op->code == TFL_MAX_POOL_2D ? "MaxPool" : "AveragePool", 1, &x,
                    fb_u8(o, POOL_ACTIVATION, 0), rank_of(r, 0));
}

/** The first options of RESIZE_BILINEAR are of no use any more. */
static qat_status read_resize(tf_reader *r)
{
    bool const nearest = r->op->code == TFL_RESIZE_NEAREST_NEIGHBOR;
    const fb_table *o = &r->op->options;
    bool const align =
        fb_u8(o, nearest ? RESIZE_NEAREST_ALIGN_CORNERS : RESIZE_BILINEAR_ALIGN_CORNERS, 0);
    bool const half = fb_u8(o, nearest ? RESIZE_NEAREST_HALF_PIXEL : RESIZE_BILINEAR_HALF_PIXEL, 0);
    int64_t sizes[2];
    int n;
    qat_status const st = tf_ints(r, 1, "sizes", sizes, 2, &n);
    if (st || n != 2)
        return st ? st : tf_refuse(r, "%d sizes instead of 2", n);
    int const x = planar(r, tf_input(r, 0), rank_of(r, 0));
    tf_attr_text(r, "mode", nearest ? "nearest" : "linear");
    tf_attr_text(r, "coordinate_transformation_mode",
                 align  ? "align_corners"
                 : half ? "half_pixel"
                        : "asymmetric");
    tf_attr_text(r, "nearest_mode", align || half ? "round_prefer_ceil" : "floor");
    tf_attr_ints(r, "axes", 2, (const int64_t[]){2, 3});
    tf_attr_ints(r, "sizes", 2, sizes);
    return add_node(r, "Resize", 1, &x, TFL_ACT_NONE, rank_of(r, 0));
}

static qat_status read_mean(tf_reader *r)
{
    int64_t axes[TFL_MAX_RANK];
    int n;
    qat_status const st = tf_ints(r, 1, "axes", axes, TFL_MAX_RANK, &n);
    if (st)
        return st;
    tf_attr_ints(r, "axes", n, axes);
    tf_attr_int(r, "keepdims", fb_u8(&r->op->options, REDUCER_KEEP_DIMS, 0));
    return one_input(r, "ReduceMean");
}

/* ------------------------------------------------------------------ functions, sums, products */

static qat_status read_function(tf_reader *r)
{
    static const struct {
        int code;
        const char *op;
    } names[] = {
        {TFL_LOGISTIC, "Sigmoid"},     {TFL_TANH, "Tanh"},           {TFL_RELU, "Relu"},
        {TFL_HARD_SWISH, "HardSwish"}, {TFL_DEQUANTIZE, "Identity"}, /* of float16: the constant is
                                                                        float32 already */
        {TFL_SHAPE, "Shape"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].code == r->op->code)
            return one_input(r, names[i].op);
    return one_input(
        r, activation_node(r, r->op->code == TFL_RELU6 ? TFL_ACT_RELU6 : TFL_ACT_RELU_N1_TO_1));
}

static qat_status read_leaky_relu(tf_reader *r)
{
    tf_attr_real(r, "alpha", fb_f32(&r->op->options, LEAKY_RELU_ALPHA, 0));
    return one_input(r, "LeakyRelu");
}

static qat_status read_gelu(tf_reader *r)
{
    if (fb_u8(&r->op->options, GELU_APPROXIMATE, 0))
        tf_attr_text(r, "approximate", "tanh");
    return one_input(r, "Gelu");
}

static qat_status read_prelu(tf_reader *r)
{
    return add_node(r, "PRelu", 2, r->op->inputs, TFL_ACT_NONE, 0);
}

static qat_status read_softmax(tf_reader *r)
{
    float const beta = fb_f32(&r->op->options, SOFTMAX_BETA, 0);
    if (beta != 1)
        return tf_refuse(r, "beta = %g is not supported", (double)beta);
    tf_attr_int(r, "axis", -1);
    return one_input(r, "Softmax");
}

static qat_status read_binary(tf_reader *r)
{
    static const struct {
        int code;
        const char *op;
    } names[] = {{TFL_ADD, "Add"}, {TFL_SUB, "Sub"}, {TFL_MUL, "Mul"}, {TFL_DIV, "Div"}};
    int inputs[] = {tf_input(r, 0), tf_input(r, 1)};
    const char *op = "";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        op = names[i].code == r->op->code ? names[i].op : op;
    int const rank = rank_of(r, 0);
    bool const turns = !tf_tensor(r, 0)->data && !tf_tensor(r, 1)->data && rank == rank_of(r, 1);
    for (int i = 0; i < 2 && turns; i++)
        inputs[i] = planar(r, inputs[i], rank);
    return add_node(r, op, 2, inputs, fb_u8(&r->op->options, BINARY_ACTIVATION, 0),
                    turns ? rank : 0);
}

/* ------------------------------------------------------------------ shapes */

static qat_status read_reshape(tf_reader *r)
{
    int64_t dims[TFL_MAX_RANK];
    fb_vector const given = fb_items(&r->op->options, RESHAPE_NEW_SHAPE, 4);
    tf_attr_int(r, "allowzero", 1);
    if (tf_input(r, 1) >= 0)
        return add_node(r, "Reshape", 2, r->op->inputs, TFL_ACT_NONE, 0);
    if (given.count > TFL_MAX_RANK)
        return tf_refuse(r, "a shape of %u dimensions", given.count);
    for (uint32_t i = 0; i < given.count; i++)
        dims[i] = fb_i32_at(&given, i);
    tf_attr_ints(r, "shape", (int)given.count, dims);
    return one_input(r, "Reshape");
}

static qat_status read_squeeze(tf_reader *r)
{
    int64_t axes[TFL_MAX_RANK];
    fb_vector const given = fb_items(&r->op->options, SQUEEZE_DIMS, 4);
    if (given.count > TFL_MAX_RANK)
        return tf_refuse(r, "%u dimensions", given.count);
    for (uint32_t i = 0; i < given.count; i++)
        axes[i] = fb_i32_at(&given, i);
    if (given.count)
        tf_attr_ints(r, "axes", (int)given.count, axes);
    return one_input(r, "Squeeze");
}

/** Integers of input 1 become an attribute. */
static qat_status with_ints(tf_reader *r, const char *op, const char *attribute)
{
    int64_t values[TFL_MAX_RANK];
    int n;
    qat_status const st = tf_ints(r, 1, attribute, values, TFL_MAX_RANK, &n);
    if (st)
        return st;
    tf_attr_ints(r, attribute, n, values);
    return one_input(r, op);
}

static qat_status read_expand_dims(tf_reader *r)
{
    return with_ints(r, "Unsqueeze", "axes");
}

static qat_status read_transpose(tf_reader *r)
{
    return with_ints(r, "Transpose", "perm");
}

/** Unsqueeze each, and join them. */
static qat_status read_pack(tf_reader *r)
{
    int values[TFL_MAX_OPERANDS];
    int64_t const axis = fb_i32(&r->op->options, PACK_AXIS, 0);
    for (int i = 0; i < r->op->n_inputs; i++) {
        if (tf_input(r, i) < 0)
            return tf_refuse(r, "it has no input %d", i);
        tf_attr_ints(r, "axes", 1, &axis);
        values[i] = tf_between(r, "Unsqueeze", "unsqueezed", tf_input(r, i));
    }
    tf_attr_int(r, "axis", axis);
    return add_node(r, "Concat", r->op->n_inputs, values, TFL_ACT_NONE, 0);
}

/* ------------------------------------------------------------------ parts, joins */

static qat_status read_concatenation(tf_reader *r)
{
    int values[TFL_MAX_OPERANDS];
    int const rank = rank_of(r, 0), axis = fb_i32(&r->op->options, CONCATENATION_AXIS, 0);
    for (int i = 0; i < r->op->n_inputs; i++) {
        if (tf_input(r, i) < 0)
            return tf_refuse(r, "it has no input %d", i);
        values[i] = planar(r, tf_input(r, i), rank);
    }
    if (rank && (axis < -rank || axis >= rank))
        return tf_refuse(r, "axis %d of %d dimensions", axis, rank);
    tf_attr_int(r, "axis", planar_axis(axis, rank));
    return add_node(r, "Concat", r->op->n_inputs, values,
                    fb_u8(&r->op->options, CONCATENATION_ACTIVATION, 0), rank);
}

static qat_status read_pad(tf_reader *r)
{
    int64_t given[2 * TFL_MAX_RANK], pads[2 * TFL_MAX_RANK];
    int const rank = rank_of(r, 0);
    int n;
    qat_status const st = tf_ints(r, 1, "paddings", given, 2 * TFL_MAX_RANK, &n);
    if (st || n != 2 * rank)
        return st ? st : tf_refuse(r, "%d paddings for %d dimensions", n, rank);
    for (int i = 0; i < rank; i++)
        for (int end = 0; end < 2; end++)
            pads[planar_axis(i, rank) + end * rank] = given[2 * i + end];
    int const inputs[] = {planar(r, tf_input(r, 0), rank), -1, tf_input(r, 2)};
    tf_attr_ints(r, "pads", n, pads);
    return add_node(r, "Pad", 3, inputs, TFL_ACT_NONE, rank);
}

/** Parts begin, begin + step ... of each dimension; those in `shrink` go. */
static qat_status add_slice(tf_reader *r, int n, const int64_t *begins, const int64_t *ends,
                            const int64_t *steps, int shrink)
{
    int64_t axes[TFL_MAX_RANK], gone[TFL_MAX_RANK];
    int n_gone = 0, value = tf_input(r, 0);
    for (int i = 0; i < n; i++) {
        axes[i] = i;
        if (shrink >> i & 1)
            gone[n_gone++] = i;
    }
    tf_attr_ints(r, "starts", n, begins);
    tf_attr_ints(r, "ends", n, ends);
    tf_attr_ints(r, "axes", n, axes);
    tf_attr_ints(r, "steps", n, steps);
    if (!n_gone)
        return one_input(r, "Slice");
    value = tf_between(r, "Slice", "", value);
    tf_attr_ints(r, "axes", n_gone, gone);
    return add_node(r, "Squeeze", 1, &value, TFL_ACT_NONE, 0);
}

static qat_status read_strided_slice(tf_reader *r)
{
    const fb_table *o = &r->op->options;
    int64_t begins[TFL_MAX_RANK], ends[TFL_MAX_RANK], steps[TFL_MAX_RANK];
    int n, n_ends, n_steps;
    qat_status st = tf_ints(r, 1, "begins", begins, TFL_MAX_RANK, &n);
    if (!st)
        st = tf_ints(r, 2, "ends", ends, TFL_MAX_RANK, &n_ends);
    if (!st)
        st = tf_ints(r, 3, "strides", steps, TFL_MAX_RANK, &n_steps);
    if (st)
        return st;
    if (n != n_ends || n != n_steps || fb_i32(o, SLICE_ELLIPSIS_MASK, 0) ||
        fb_i32(o, SLICE_NEW_AXIS_MASK, 0) || fb_u8(o, SLICE_OFFSET, 0))
        return tf_refuse(r, "an ellipsis, new dimensions, or lists of different lengths");
    int const shrink = fb_i32(o, SLICE_SHRINK_MASK, 0);
    for (int i = 0; i < n; i++) {
        bool const one = shrink >> i & 1, back = steps[i] < 0;
        if (one && (begins[i] < INT32_MIN || begins[i] >= INT32_MAX))
            return tf_refuse(r, "position %lld of dimension %d", (long long)begins[i], i);
        if (!one && fb_i32(o, SLICE_BEGIN_MASK, 0) >> i & 1)
            begins[i] = back ? UP_TO_END : 0;
        if (one)
            ends[i] = begins[i] == -1 ? UP_TO_END : begins[i] + 1;
        else if (fb_i32(o, SLICE_END_MASK, 0) >> i & 1)
            ends[i] = back ? BEYOND_START : UP_TO_END;
        steps[i] = one ? 1 : steps[i];
    }
    return add_slice(r, n, begins, ends, steps, shrink);
}

static qat_status read_slice(tf_reader *r)
{
    int64_t begins[TFL_MAX_RANK], ends[TFL_MAX_RANK], steps[TFL_MAX_RANK];
    int n, n_sizes;
    qat_status st = tf_ints(r, 1, "begins", begins, TFL_MAX_RANK, &n);
    if (!st)
        st = tf_ints(r, 2, "sizes", ends, TFL_MAX_RANK, &n_sizes);
    if (st || n != n_sizes)
        return st ? st : tf_refuse(r, "%d begins and %d sizes", n, n_sizes);
    for (int i = 0; i < n; i++) {
        if (begins[i] < 0 || begins[i] > INT32_MAX || ends[i] < -1 || ends[i] > INT32_MAX)
            return tf_refuse(r, "%lld positions from %lld on in dimension %d", (long long)ends[i],
                             (long long)begins[i], i);
        ends[i] = ends[i] == -1 ? UP_TO_END : begins[i] + ends[i];
        steps[i] = 1;
    }
    return add_slice(r, n, begins, ends, steps, 0);
}

static qat_status read_split(tf_reader *r)
{
    bool const listed = r->op->code == TFL_SPLIT_V; /* value, sizes, axis; else axis, value */
    int const x = tf_input(r, listed ? 0 : 1);
    int64_t axis, sizes[TFL_MAX_OPERANDS];
    int n;
    qat_status st = tf_ints(r, listed ? 2 : 0, "axis", &axis, 1, &n);
    if (!st && n != 1)
        st = tf_refuse(r, "its axis is not known");
    if (!st && listed)
        st = tf_ints(r, 1, "sizes", sizes, TFL_MAX_OPERANDS, &n);
    if (st)
        return st;
    tf_attr_int(r, "axis", axis);
    if (listed)
        tf_attr_ints(r, "split", n, sizes);
    tf_node(r, "Split", "", 1, &x, r->op->n_outputs, r->op->outputs);
    return QAT_OK;
}

static qat_status read_gather(tf_reader *r)
{
    if (fb_i32(&r->op->options, GATHER_BATCH_DIMS, 0))
        return tf_refuse(r, "batch_dims is not supported");
    tf_attr_int(r, "axis", fb_i32(&r->op->options, GATHER_AXIS, 0));
    return add_node(r, "Gather", 2, r->op->inputs, TFL_ACT_NONE, 0);
}

const tf_operator *tf_operator_of(int code)
{
    static const tf_operator all[] = {
        {TFL_CONV_2D, 2, 3, read_conv},
        {TFL_DEPTHWISE_CONV_2D, 2, 3, read_conv},
        {TFL_TRANSPOSE_CONV, 3, 4, read_transpose_conv},
        {TFL_FULLY_CONNECTED, 2, 3, read_fully_connected},
        {TFL_AVERAGE_POOL_2D, 1, 1, read_pool},
        {TFL_MAX_POOL_2D, 1, 1, read_pool},
        {TFL_RESIZE_BILINEAR, 2, 2, read_resize},
        {TFL_RESIZE_NEAREST_NEIGHBOR, 2, 2, read_resize},
        {TFL_MEAN, 2, 2, read_mean},
        {TFL_LOGISTIC, 1, 1, read_function},
        {TFL_TANH, 1, 1, read_function},
        {TFL_RELU, 1, 1, read_function},
        {TFL_RELU6, 1, 1, read_function},
        {TFL_RELU_N1_TO_1, 1, 1, read_function},
        {TFL_HARD_SWISH, 1, 1, read_function},
        {TFL_DEQUANTIZE, 1, 1, read_function},
        {TFL_SHAPE, 1, 1, read_function},
        {TFL_LEAKY_RELU, 1, 1, read_leaky_relu},
        {TFL_PRELU, 2, 2, read_prelu},
        {TFL_GELU, 1, 1, read_gelu},
        {TFL_SOFTMAX, 1, 1, read_softmax},
        {TFL_ADD, 2, 2, read_binary},
        {TFL_SUB, 2, 2, read_binary},
        {TFL_MUL, 2, 2, read_binary},
        {TFL_DIV, 2, 2, read_binary},
        {TFL_RESHAPE, 1, 2, read_reshape},
        {TFL_SQUEEZE, 1, 1, read_squeeze},
        {TFL_EXPAND_DIMS, 2, 2, read_expand_dims},
        {TFL_TRANSPOSE, 2, 2, read_transpose},
        {TFL_PACK, 1, TFL_MAX_OPERANDS, read_pack},
        {TFL_CONCATENATION, 1, TFL_MAX_OPERANDS, read_concatenation},
        {TFL_PAD, 2, 2, read_pad},
        {TFL_PADV2, 3, 3, read_pad},
        {TFL_STRIDED_SLICE, 4, 4, read_strided_slice},
        {TFL_SLICE, 3, 3, read_slice},
        {TFL_SPLIT, 2, 2, read_split},
        {TFL_SPLIT_V, 3, 3, read_split},
        {TFL_GATHER, 2, 2, read_gather},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].code == code)
            return &all[i];
    return NULL;
}
