#include "golden/case_graph.h"

#include "autograd/ops/op.h"
#include "common/common.h"
#include "integer/quant_ops.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_MAX_ = 1024, VALUE_MAX = 8192 };

/** What a builder sees: the case's options and the op to append. */
struct builder {
    const char *folder, *file; /* its case.txt */
    qat_emit emit;
    int tensors[CASE_MAX_INPUTS]; /* the op's inputs; -1: role none */
    int n_outputs;
    int outputs[CASE_MAX_OUTPUTS]; /* emit.output is the first */
};

/* ------------------------------------------------------------------ case.txt */

static bool text_value(const char *file, const char *prefix, const char *key, char *value)
{
    char full[64];
    snprintf(full, sizeof full, "%s%s", prefix, key);
    return test_case_value(file, full, value, VALUE_MAX);
}

static int int_option(const struct builder *b, const char *key, int fallback)
{
    char value[VALUE_MAX];
    return text_value(b->file, "opt.", key, value) ? (int)strtol(value, NULL, 10) : fallback;
}

static float real_option(const struct builder *b, const char *key, float fallback)
{
    char value[VALUE_MAX];
    return text_value(b->file, "opt.", key, value) ? strtof(value, NULL) : fallback;
}

static void activation_option(struct builder *b)
{
    static const struct {
        const char *name;
        float min, max;
    } known[] = {{"RELU", 0, INFINITY}, {"RELU6", 0, 6}, {"RELU_N1_TO_1", -1, 1}};
    char value[VALUE_MAX];
    b->emit.act_min = -INFINITY;
    b->emit.act_max = INFINITY;
    if (!text_value(b->file, "opt.", "activation", value))
        return;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(value, known[i].name) == 0) {
            b->emit.act_min = known[i].min;
            b->emit.act_max = known[i].max;
        }
}

/** Count the values of a comma-separated list. "" has none. */
static int list_length(const char *list)
{
    int n = *list != 0;
    for (; *list; list++)
        n += *list == ',';
    return n;
}

/* ------------------------------------------------------------------ tensors */

static qat_status read_channel_scales(qat_qgraph *graph, qat_qtensor *t, const char *list,
                                      qat_error *err)
{
    t->scale = strtof(list, NULL);
    t->n_channels = list_length(list);
    if (t->n_channels < 2) {
        t->n_channels = 0;
        return QAT_OK;
    }
    t->channel_scales = qat_arena_array(graph->memory, (size_t)t->n_channels, sizeof(float));
    if (!t->channel_scales)
        return qat_out_of_memory(err, "case");
    char *at = (char *)list;
    for (int i = 0; i < t->n_channels; i++, at += *at == ',')
        t->channel_scales[i] = strtof(at, &at);
    return QAT_OK;
}

/** Shape, type and parameters of tensor "in0." ...; a scalar becomes a vector of one. */
static qat_status describe(qat_qgraph *graph, qat_qtensor *t, const char *file, const char *prefix,
                           qat_error *err)
{
    char value[VALUE_MAX];
    *t = (qat_qtensor){.bits = 8, .rank = 1, .dims = {1, 1, 1, 1}, .scale = 1, .source_index = -1};
    if (text_value(file, prefix, "name", value))
        snprintf(t->name, sizeof t->name, "%.90s", value);
    if (!text_value(file, prefix, "type", value))
        return qat_fail(err, QAT_ERR_FORMAT, "%s: no %stype", file, prefix);
    static const char *const types[] = {"uint8", "int8", "int32", "int64"};
    while (t->type < QI_S64 && strcmp(value, types[t->type]) != 0)
        t->type++;
    if (t->type > QI_S8)
        t->bits = t->type == QI_S32 ? 32 : 64;
    if (text_value(file, prefix, "shape", value) && *value) {
        t->rank = list_length(value);
        if (t->rank > QI_MAX_RANK)
            return qat_fail(err, QAT_ERR_SHAPE, "%s: %s has rank %d", file, prefix, t->rank);
        char *at = value;
        for (int i = 0; i < t->rank; i++, at += *at == ',')
            t->dims[i] = (int32_t)strtol(at, &at, 10);
    }
    if (text_value(file, prefix, "zero_point", value))
        t->zero_point = (int32_t)strtol(value, NULL, 10);
    return text_value(file, prefix, "scale", value) ? read_channel_scales(graph, t, value, err)
                                                    : QAT_OK;
}

static qat_status append(struct builder *b, qat_qtensor *t, int *index, qat_error *err)
{
    *index = qat_qgraph_tensor(b->emit.graph, t, err);
    return *index >= 0 ? QAT_OK : QAT_ERR_NOMEM;
}

static qat_status read_array(qat_npy *array, const char *folder, const char *name, qat_error *err)
{
    char path[PATH_MAX_];
    snprintf(path, sizeof path, "%s/%s.npy", folder, name);
    return qat_npy_read(array, path, err);
}

static qat_status append_constant(struct builder *b, qat_qtensor *t, const char *folder,
                                  const char *name, int *index, qat_error *err)
{
    qat_npy array = {0};
    qat_status st = read_array(&array, folder, name, err);
    if (!st) {
        size_t const bytes = qat_qtensor_bytes(t);
        t->data = array.data;
        st = bytes == array.count * qat_npy_item_bytes(array.type)
                 ? append(b, t, index, err)
                 : qat_fail(err, QAT_ERR_FORMAT, "%s/%s: %zu bytes expected", folder, name, bytes);
    }
    qat_npy_free(&array);
    return st;
}

/** Input i of the operator, which is stored as in<from>. */
static qat_status add_input(struct case_graph *c, struct builder *b, const char *folder, int i,
                            int from, qat_error *err)
{
    char prefix[32], name[16], role[VALUE_MAX] = "", type[VALUE_MAX] = "";
    qat_qtensor t;
    snprintf(name, sizeof name, "in%d", from);
    snprintf(prefix, sizeof prefix, "%s.", name);
    b->tensors[i] = -1;
    text_value(b->file, prefix, "role", role);
    text_value(b->file, prefix, "type", type);
    if (strcmp(role, "none") == 0)
        return QAT_OK;
    if (strcmp(type, "float32") == 0)
        return qat_fail(err, QAT_ERR_UNSUPPORTED, "%s: a float input", folder);
    qat_status st = describe(b->emit.graph, &t, b->file, prefix, err);
    if (st)
        return st;
    if (strcmp(role, "const") == 0)
        return append_constant(b, &t, folder, name, &b->tensors[i], err);
    st = append(b, &t, &b->tensors[i], err);
    if (!st)
        st = read_array(&c->inputs[c->n_inputs], folder, name, err);
    c->n_inputs += !st;
    return st;
}

/* ------------------------------------------------------------------ operators */

static qat_window window_options(const struct builder *b)
{
    return (qat_window){.kernel_h = int_option(b, "filter_h", 1),
                        .kernel_w = int_option(b, "filter_w", 1),
                        .stride_h = int_option(b, "stride_h", 1),
                        .stride_w = int_option(b, "stride_w", 1),
                        .dilation_h = int_option(b, "dilation_h", 1),
                        .dilation_w = int_option(b, "dilation_w", 1)};
}

static qat_status build_conv(struct builder *b, qat_error *err)
{
    qat_window const w = window_options(b);
    return qat_emit_conv2d(&b->emit, &w, err);
}

static qat_status build_depthwise(struct builder *b, qat_error *err)
{
    qat_window const w = window_options(b);
    return qat_emit_depthwise_conv2d(&b->emit, &w, err);
}

static qat_status build_fully_connected(struct builder *b, qat_error *err)
{
    return qat_emit_fully_connected(&b->emit, err);
}

static qat_status build_add(struct builder *b, qat_error *err)
{
    return qat_emit_add(&b->emit, "add", err);
}

static qat_status build_sub(struct builder *b, qat_error *err)
{
    return qat_emit_add(&b->emit, "sub", err);
}

static qat_status build_mul(struct builder *b, qat_error *err)
{
    return qat_emit_mul(&b->emit, err);
}

static qat_status build_concat(struct builder *b, qat_error *err)
{
    return qat_emit_concat(&b->emit, int_option(b, "axis", 0), err);
}

static qat_status build_average_pool(struct builder *b, qat_error *err)
{
    qat_window const w = window_options(b);
    return qat_emit_pool(&b->emit, "average_pool2d", &w, err);
}

static qat_status build_max_pool(struct builder *b, qat_error *err)
{
    qat_window const w = window_options(b);
    return qat_emit_pool(&b->emit, "max_pool2d", &w, err);
}

static qat_status build_mean(struct builder *b, qat_error *err)
{
    int const rank = b->emit.graph->tensors[b->tensors[0]].rank;
    char axes[VALUE_MAX];
    unsigned mask = 0;
    if (!text_value(b->file, "opt.", "axes", axes))
        return qat_fail(err, QAT_ERR_FORMAT, "%s: no opt.axes", b->file);
    char *at = axes;
    for (int n = list_length(axes); n > 0; n--, at += *at == ',') {
        int const axis = (int)strtol(at, &at, 10);
        mask |= 1u << (axis < 0 ? axis + rank : axis);
    }
    return qat_emit_mean(&b->emit, mask, err);
}

static qat_status build_softmax(struct builder *b, qat_error *err)
{
    return qat_emit_softmax(&b->emit, real_option(b, "beta", 1), err);
}

static qat_status build_logistic(struct builder *b, qat_error *err)
{
    return qat_emit_sigmoid(&b->emit, "logistic", err);
}

static qat_status build_tanh(struct builder *b, qat_error *err)
{
    return qat_emit_sigmoid(&b->emit, "tanh", err);
}

static qat_status build_relu(struct builder *b, qat_error *err)
{
    b->emit.act_min = 0;
    return qat_emit_requantize(&b->emit, err);
}

static qat_status build_relu6(struct builder *b, qat_error *err)
{
    b->emit.act_min = 0;
    b->emit.act_max = 6;
    return qat_emit_requantize(&b->emit, err);
}

static qat_status build_transpose_conv(struct builder *b, qat_error *err)
{
    char padding[VALUE_MAX] = "";
    text_value(b->file, "opt.", "padding", padding);
    const qat_qtensor *tensors = b->emit.graph->tensors,
                      *w = &tensors[b->emit.inputs[QAT_IN_WEIGHTS]];
    qat_window window = {.kernel_h = w->dims[1],
                         .kernel_w = w->dims[2],
                         .stride_h = int_option(b, "stride_h", 1),
                         .stride_w = int_option(b, "stride_w", 1)};
    qat_transposed_pads(&window, &tensors[b->emit.output], strcmp(padding, "SAME") == 0);
    return qat_emit_transpose_conv2d(&b->emit, &window, err);
}

static qat_status build_maximum(struct builder *b, qat_error *err)
{
    return qat_emit_op(&b->emit, "maximum", QI_ROUND_NONE, 0, NULL, 0, err);
}

static qat_status build_minimum(struct builder *b, qat_error *err)
{
    return qat_emit_op(&b->emit, "minimum", QI_ROUND_NONE, 0, NULL, 0, err);
}

static qat_status build_prelu(struct builder *b, qat_error *err)
{
    return qat_emit_prelu(&b->emit, err);
}

static qat_status build_leaky_relu(struct builder *b, qat_error *err)
{
    return qat_emit_leaky_relu(&b->emit, real_option(b, "alpha", 0), err);
}

/** Frozen as the layer of a trained network. */
static qat_status build_hard_swish(struct builder *b, qat_error *err)
{
    qat_node const head = {.name = b->emit.name};
    const qat_qtensor *y = &b->emit.graph->tensors[b->emit.output];
    qat_fused_layer const layer = {
        .graph = b->emit.graph,
        .profile = b->emit.profile,
        .head = &head,
        .act_min = b->emit.act_min,
        .act_max = b->emit.act_max,
        .n_inputs = b->emit.n_inputs,
        .inputs = b->emit.inputs,
        .output = b->emit.output,
        .output_params = qat_stored_qparams(y->type, y->bits, y->scale, y->zero_point)};
    return qat_quant_hard_swish.freeze(&layer, err);
}

static qat_status build_l2_normalization(struct builder *b, qat_error *err)
{
    return qat_emit_op(&b->emit, "l2_normalization", QI_ROUND_NONE, 0, NULL, 0, err);
}

/** The numbers of an input that holds options. */
static qat_status option_array(const struct builder *b, const char *name, int32_t *values,
                               size_t count, qat_error *err)
{
    qat_npy array = {0};
    qat_status st = read_array(&array, b->folder, name, err);
    if (!st && (array.type != QAT_NPY_I32 || array.count != count))
        st = qat_fail(err, QAT_ERR_FORMAT, "%s/%s: %zu int32 expected", b->folder, name, count);
    if (!st)
        memcpy(values, array.data, count * sizeof *values);
    qat_npy_free(&array);
    return st;
}

/** paddings [rank, 2]: before and after along each axis; the zero_point around. */
static qat_status build_pad(struct builder *b, qat_error *err)
{
    const qat_qtensor *x = &b->emit.graph->tensors[b->tensors[0]];
    int32_t params[2 * QI_MAX_RANK + 1] = {0}, paddings[2 * QI_MAX_RANK];
    qat_status const st = option_array(b, "in1", paddings, 2 * (size_t)x->rank, err);
    if (st)
        return st;
    for (int d = 0; d < x->rank; d++) {
        params[d] = paddings[2 * d];
        params[QI_MAX_RANK + d] = paddings[2 * d + 1];
    }
    params[2 * QI_MAX_RANK] = x->zero_point;
    return qat_emit_op(&b->emit, "pad", QI_ROUND_NONE, 2 * QI_MAX_RANK + 1, params, 0, err);
}

static qat_status build_transpose(struct builder *b, qat_error *err)
{
    const qat_qtensor *x = &b->emit.graph->tensors[b->tensors[0]];
    int32_t perm[QI_MAX_RANK] = {0, 1, 2, 3};
    qat_status const st = option_array(b, "in1", perm, (size_t)x->rank, err);
    return st ? st : qat_emit_op(&b->emit, "transpose", QI_ROUND_NONE, QI_MAX_RANK, perm, 0, err);
}

static qat_status build_resize(struct builder *b, const char *op, qat_error *err)
{
    int32_t const params[] = {int_option(b, "align_corners", 0),
                              int_option(b, "half_pixel_centers", 0)};
    return qat_emit_op(&b->emit, op, QI_ROUND_NONE, 2, params, 0, err);
}

static qat_status build_resize_bilinear(struct builder *b, qat_error *err)
{
    return build_resize(b, "resize_bilinear", err);
}

static qat_status build_resize_nearest(struct builder *b, qat_error *err)
{
    return build_resize(b, "resize_nearest", err);
}

/** An axis that may count from the last. */
static int32_t axis_option(const struct builder *b)
{
    int32_t const axis = int_option(b, "axis", 0);
    return axis < 0 ? axis + b->emit.graph->tensors[b->tensors[0]].rank : axis;
}

static qat_status build_arg_max(struct builder *b, qat_error *err)
{
    int32_t const axis = axis_option(b);
    return qat_emit_op(&b->emit, "arg_max", QI_ROUND_NONE, 1, &axis, 0, err);
}

/** Equal parts along an axis, one op each. */
static qat_status build_split(struct builder *b, qat_error *err)
{
    int32_t params[2 * QI_MAX_RANK] = {0, 0, 0, 0, 1, 1, 1, 1};
    int32_t const axis = axis_option(b);
    qat_status st = QAT_OK;
    for (int i = 0; !st && i < b->n_outputs; i++) {
        qat_emit part = b->emit;
        part.output = b->outputs[i];
        params[axis] = i * b->emit.graph->tensors[part.output].dims[axis];
        st = qat_emit_op(&part, "strided_slice", QI_ROUND_NONE, 2 * QI_MAX_RANK, params, 0, err);
    }
    return st;
}

static qat_status build_requantize(struct builder *b, qat_error *err)
{
    return qat_emit_requantize(&b->emit, err);
}

static qat_status build_reshape(struct builder *b, qat_error *err)
{
    return qat_emit_reshape(&b->emit, err);
}

/** n_inputs: of the engine op, the rest being options in tensors; 0: as many as the case has. */
static const struct op_builder {
    const char *op;
    int n_inputs;
    qat_status (*build)(struct builder *b, qat_error *err);
    bool imported_only; /* no exact evaluation */
    int from[3];        /* with first != 0: the stored input that is engine input 0, 1, 2 */
} builders[] = {
    {.op = "CONV_2D", .n_inputs = 3, .build = build_conv},
    {.op = "DEPTHWISE_CONV_2D", .n_inputs = 3, .build = build_depthwise},
    {.op = "FULLY_CONNECTED", .n_inputs = 3, .build = build_fully_connected},
    {.op = "ADD", .n_inputs = 2, .build = build_add},
    {.op = "SUB", .n_inputs = 2, .build = build_sub},
    {.op = "MUL", .n_inputs = 2, .build = build_mul},
    {.op = "CONCATENATION", .n_inputs = 0, .build = build_concat},
    {.op = "AVERAGE_POOL_2D", .n_inputs = 1, .build = build_average_pool},
    {.op = "MAX_POOL_2D", .n_inputs = 1, .build = build_max_pool},
    {.op = "MEAN", .n_inputs = 1, .build = build_mean},
    {.op = "SOFTMAX", .n_inputs = 1, .build = build_softmax},
    {.op = "LOGISTIC", .n_inputs = 1, .build = build_logistic},
    {.op = "TANH", .n_inputs = 1, .build = build_tanh},
    {.op = "RELU", .n_inputs = 1, .build = build_relu},
    {.op = "RELU6", .n_inputs = 1, .build = build_relu6},
    {.op = "RESHAPE", .n_inputs = 1, .build = build_reshape},
    {.op = "QUANTIZE", .n_inputs = 1, .build = build_requantize},
    {.op = "TRANSPOSE_CONV",
     .n_inputs = 3,
     .build = build_transpose_conv,
     .imported_only = true,
     .from = {2, 1, 3}},
    {.op = "MAXIMUM", .n_inputs = 2, .build = build_maximum, .imported_only = true},
    {.op = "MINIMUM", .n_inputs = 2, .build = build_minimum, .imported_only = true},
    {.op = "PRELU", .n_inputs = 2, .build = build_prelu, .imported_only = true},
    {.op = "LEAKY_RELU", .n_inputs = 1, .build = build_leaky_relu},
    {.op = "HARD_SWISH", .n_inputs = 1, .build = build_hard_swish},
    {.op = "L2_NORMALIZATION",
     .n_inputs = 1,
     .build = build_l2_normalization,
     .imported_only = true},
    {.op = "PAD", .n_inputs = 1, .build = build_pad, .imported_only = true},
    {.op = "RESIZE_BILINEAR", .n_inputs = 1, .build = build_resize_bilinear, .imported_only = true},
    {.op = "RESIZE_NEAREST_NEIGHBOR",
     .n_inputs = 1,
     .build = build_resize_nearest,
     .imported_only = true},
    {.op = "ARG_MAX", .n_inputs = 1, .build = build_arg_max, .imported_only = true},
    {.op = "SPLIT", .n_inputs = 1, .build = build_split, .imported_only = true, .from = {1}},
    {.op = "TRANSPOSE", .n_inputs = 1, .build = build_transpose, .imported_only = true},
};

static const struct op_builder *find_builder(const char *op)
{
    for (size_t i = 0; i < sizeof builders / sizeof *builders; i++)
        if (strcmp(builders[i].op, op) == 0)
            return &builders[i];
    return NULL;
}

bool case_graph_knows(const char *op)
{
    return find_builder(op) != NULL;
}

/* ------------------------------------------------------------------ the case */

/** Number in a line of case.txt. */
static int count_of(const struct builder *b, const char *key)
{
    char value[VALUE_MAX];
    return test_case_value(b->file, key, value, sizeof value) ? (int)strtol(value, NULL, 10) : 0;
}

static qat_status add_outputs(struct case_graph *c, struct builder *b, qat_error *err)
{
    char name[16], prefix[32];
    qat_status st = QAT_OK;
    qat_qtensor t;
    b->n_outputs = count_of(b, "outputs");
    if (b->n_outputs < 1 || b->n_outputs > CASE_MAX_OUTPUTS)
        return qat_fail(err, QAT_ERR_FORMAT, "%s: %d outputs", b->file, b->n_outputs);
    for (int i = 0; !st && i < b->n_outputs; i++) {
        snprintf(name, sizeof name, "out%d", i);
        snprintf(prefix, sizeof prefix, "%s.", name);
        st = describe(b->emit.graph, &t, b->file, prefix, err);
        if (!st)
            st = append(b, &t, &b->outputs[i], err);
        if (!st)
            st = read_array(&c->expected[i], b->folder, name, err);
        c->n_outputs += !st;
    }
    b->emit.output = b->outputs[0];
    return st;
}

/** The tensors of the case, its inputs and outputs. */
static qat_status add_tensors(struct case_graph *c, struct builder *b, const char *folder,
                              const struct op_builder *op, qat_error *err)
{
    int const stored = count_of(b, "inputs");
    int const used = op->n_inputs ? op->n_inputs : stored;
    qat_status st = QAT_OK;
    if (used < 1 || used > CASE_MAX_INPUTS)
        return qat_fail(err, QAT_ERR_FORMAT, "%s: %d inputs", b->file, used);
    for (int i = 0; !st && i < used; i++) {
        int const from = op->from[0] ? op->from[i] : i;
        b->tensors[i] = -1;
        if (from < stored)
            st = add_input(c, b, folder, i, from, err);
    }
    if (!st)
        st = add_outputs(c, b, err);
    b->emit.n_inputs = used;
    b->emit.inputs = b->tensors;
    return st;
}

/** Graph inputs: the case's activations, in its order. */
static qat_status set_io(const struct builder *b, qat_error *err)
{
    int inputs[CASE_MAX_INPUTS], n = 0;
    for (int i = 0; i < b->emit.n_inputs; i++)
        if (b->tensors[i] >= 0 && !b->emit.graph->tensors[b->tensors[i]].data)
            inputs[n++] = b->tensors[i];
    return qat_qgraph_set_io(b->emit.graph, n, inputs, b->n_outputs, b->outputs, err);
}

qat_status case_graph_load(struct case_graph *c, const char *folder, const char *op, qat_error *err)
{
    char file[PATH_MAX_];
    const struct op_builder *how = find_builder(op);
    snprintf(file, sizeof file, "%s/case.txt", folder);
    *c = (struct case_graph){.graph = qat_qgraph_new(), .exact = how && !how->imported_only};
    if (!c->graph || !how)
        return qat_fail(err, QAT_ERR_UNSUPPORTED, "%s: operator %s", folder, op);
    struct builder b = {.folder = folder,
                        .file = file,
                        .emit = {.graph = c->graph, .profile = QAT_PROFILE_TFLITE, .name = op}};
    activation_option(&b);
    qat_status st = add_tensors(c, &b, folder, how, err);
    if (!st)
        st = how->build(&b, err);
    return st ? st : set_io(&b, err);
}

void case_graph_free(struct case_graph *c)
{
    qat_qgraph_free(c->graph);
    for (int i = 0; i < c->n_inputs; i++)
        qat_npy_free(&c->inputs[i]);
    for (int i = 0; i < c->n_outputs; i++)
        qat_npy_free(&c->expected[i]);
}
