#include "golden/case_graph.h"

#include "common/common.h"
#include "fakequant/quant_ops.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_MAX_ = 1024, VALUE_MAX = 8192 };

/** What a builder sees: the case's options and the op to append. */
struct builder {
    const char *file; /* case.txt */
    qat_emit emit;
    int tensors[CASE_MAX_INPUTS]; /* of in0, in1 ...; -1: role none, or not an 8-bit tensor */
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

/** How many values a comma-separated list holds; "" holds none. */
static int list_length(const char *list)
{
    int n = *list != 0;
    for (; *list; list++)
        n += *list == ',';
    return n;
}

/* ------------------------------------------------------------------ tensors */

static qat_status read_channel_scales(qat_qtensor *t, const char *list, qat_error *err)
{
    t->scale = strtof(list, NULL);
    t->n_channels = list_length(list);
    if (t->n_channels < 2) {
        t->n_channels = 0;
        return QAT_OK;
    }
    t->channel_scales = malloc((size_t)t->n_channels * sizeof(float));
    if (!t->channel_scales)
        return qat_fail(err, QAT_ERR_NOMEM, "case: out of memory");
    char *at = (char *)list;
    for (int i = 0; i < t->n_channels; i++, at += *at == ',')
        t->channel_scales[i] = strtof(at, &at);
    return QAT_OK;
}

/** Shape, type and parameters of tensor "in0." ...; a scalar becomes a vector of one. */
static qat_status describe(qat_qtensor *t, const char *file, const char *prefix, qat_error *err)
{
    char value[VALUE_MAX];
    *t = (qat_qtensor){.bits = 8, .rank = 1, .dims = {1, 1, 1, 1}, .scale = 1, .source_index = -1};
    if (text_value(file, prefix, "name", value))
        snprintf(t->name, sizeof t->name, "%.90s", value);
    if (!text_value(file, prefix, "type", value))
        return qat_fail(err, QAT_ERR_FORMAT, "%s: no %stype", file, prefix);
    t->type = strcmp(value, "int8") == 0 ? QI_S8 : strcmp(value, "uint8") == 0 ? QI_U8 : QI_S32;
    if (t->type == QI_S32)
        t->bits = 32;
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
    return text_value(file, prefix, "scale", value) ? read_channel_scales(t, value, err) : QAT_OK;
}

static qat_status append(struct builder *b, qat_qtensor *t, int *index, qat_error *err)
{
    *index = qat_qgraph_tensor(b->emit.graph, t, err);
    if (*index >= 0)
        return QAT_OK;
    free(t->data);
    free(t->channel_scales);
    return QAT_ERR_NOMEM;
}

static qat_status read_array(qat_npy *array, const char *folder, const char *name, qat_error *err)
{
    char path[PATH_MAX_];
    snprintf(path, sizeof path, "%s/%s.npy", folder, name);
    return qat_npy_read(array, path, err);
}

/** A constant's data, owned by the graph from here on. */
static qat_status append_constant(struct builder *b, qat_qtensor *t, const char *folder,
                                  const char *name, int *index, qat_error *err)
{
    qat_npy array = {0};
    qat_status st = read_array(&array, folder, name, err);
    if (!st) {
        size_t const bytes = qat_qtensor_bytes(t);
        t->data = malloc(bytes);
        if (t->data && bytes == array.count * qat_npy_item_bytes(array.type))
            memcpy(t->data, array.data, bytes);
        else
            st = qat_fail(err, QAT_ERR_FORMAT, "%s/%s: %zu bytes expected", folder, name, bytes);
    }
    qat_npy_free(&array);
    if (!st)
        return append(b, t, index, err);
    free(t->data);
    free(t->channel_scales);
    return st;
}

static qat_status add_input(struct case_graph *c, struct builder *b, const char *folder, int i,
                            qat_error *err)
{
    char prefix[32], name[16], role[VALUE_MAX] = "", type[VALUE_MAX] = "";
    qat_qtensor t;
    snprintf(name, sizeof name, "in%d", i);
    snprintf(prefix, sizeof prefix, "%s.", name);
    b->tensors[i] = -1;
    text_value(b->file, prefix, "role", role);
    text_value(b->file, prefix, "type", type);
    if (strcmp(role, "none") == 0)
        return QAT_OK;
    if (strcmp(type, "float32") == 0)
        return qat_fail(err, QAT_ERR_UNSUPPORTED, "%s: a float input", folder);
    qat_status st = describe(&t, b->file, prefix, err);
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
} builders[] = {
    {"CONV_2D", 3, build_conv},
    {"DEPTHWISE_CONV_2D", 3, build_depthwise},
    {"FULLY_CONNECTED", 3, build_fully_connected},
    {"ADD", 2, build_add},
    {"SUB", 2, build_sub},
    {"MUL", 2, build_mul},
    {"CONCATENATION", 0, build_concat},
    {"AVERAGE_POOL_2D", 1, build_average_pool},
    {"MAX_POOL_2D", 1, build_max_pool},
    {"MEAN", 1, build_mean},
    {"SOFTMAX", 1, build_softmax},
    {"LOGISTIC", 1, build_logistic},
    {"TANH", 1, build_tanh},
    {"RELU", 1, build_relu},
    {"RELU6", 1, build_relu6},
    {"RESHAPE", 1, build_reshape},
    {"QUANTIZE", 1, build_requantize},
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

/** The tensors of the case, its inputs and its one output. */
static qat_status add_tensors(struct case_graph *c, struct builder *b, const char *folder,
                              const struct op_builder *op, qat_error *err)
{
    char value[VALUE_MAX];
    qat_qtensor t;
    int const stored =
        test_case_value(b->file, "inputs", value, sizeof value) ? (int)strtol(value, NULL, 10) : 0;
    int const used = op->n_inputs ? op->n_inputs : stored;
    qat_status st = QAT_OK;
    if (used < 1 || used > CASE_MAX_INPUTS)
        return qat_fail(err, QAT_ERR_FORMAT, "%s: %d inputs", b->file, used);
    for (int i = 0; !st && i < used; i++) {
        b->tensors[i] = -1;
        if (i < stored)
            st = add_input(c, b, folder, i, err);
    }
    if (!st)
        st = describe(&t, b->file, "out0.", err);
    if (!st)
        st = append(b, &t, &b->emit.output, err);
    if (!st)
        st = read_array(&c->expected, folder, "out0", err);
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
    return qat_qgraph_set_io(b->emit.graph, n, inputs, 1, &b->emit.output, err);
}

qat_status case_graph_load(struct case_graph *c, const char *folder, const char *op, qat_error *err)
{
    char file[PATH_MAX_];
    const struct op_builder *how = find_builder(op);
    snprintf(file, sizeof file, "%s/case.txt", folder);
    *c = (struct case_graph){.graph = qat_qgraph_new()};
    if (!c->graph || !how)
        return qat_fail(err, QAT_ERR_UNSUPPORTED, "%s: operator %s", folder, op);
    struct builder b = {.file = file,
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
    qat_npy_free(&c->expected);
}
