/**
 * Freeze: makes an integer graph from an eval graph (float nodes with fake_quant nodes).
 *
 *     image                                          image        (codes)
 *       |                                              |
 *     fake_quant "image/q"                             |
 *       |          fake_quant_weights                  |    weights, bias, mult, shift
 *     conv2d <-----------'                  --->     conv2d <------'
 *       |                                              |
 *     bias <--- bn_fold_bias                           |
 *       |                                              |
 *     relu                                             |
 *       |                                              |
 *     fake_quant "conv1/q"                           "conv1/q"    (codes)
 *
 * Every fake_quant node becomes one integer tensor. The nodes between it and the quantized tensors
 * before it become the op that writes the tensor. This is found by walking back from the fake_quant
 * through the fused ops (clamp, bias). The walk may end at the head, whose quant entry then
 * emits its integer op. Or it ends directly at a quantized tensor; this is a requantization. It is
 * left out if both sides have identical parameters, because only then it changes no byte.
 */
#include "convert/convert.h"
#include "integer/quant_ops.h"
#include "layer/layer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct freezer {
    qat_graph *eval;
    qat_qgraph *graph;
    qat_profile profile;
    const qat_quant_options *options;
    const qat_log *log;
    int *tensor;         /* by node: index of the integer tensor with its codes, or -1 */
    qat_qparams *params; /* by node: the parameters of that tensor */
};

static const char *op_name(const qat_node *node)
{
    return node->op ? node->op->name : node->is_param ? "parameter" : "input";
}

static void warn(void *context, const char *message)
{
    const qat_log *log = context;
    if (log && log->line)
        log->line(log->context, message);
}

static bool same_params(const qat_qparams *a, const qat_qparams *b)
{
    return memcmp(&a->scale, &b->scale, sizeof a->scale) == 0 && a->zero_point == b->zero_point &&
           a->lo == b->lo && a->hi == b->hi;
}

/** Of codes lo..hi, the lowest included. */
static int bits_of(const qat_qparams *p)
{
    int bits = 0;
    while (p->hi - p->lo >= 1 << bits)
        bits++;
    return bits;
}

/** Append the integer tensor of a node whose codes have the parameters p. */
static qat_status add_tensor(struct freezer *f, const qat_node *node, const qat_qparams *p,
                             int *index, qat_error *err)
{
    qat_qtensor t = {
        .type = p->hi - p->lo > UINT8_MAX               ? QI_S16
                : f->options->layout == QAT_LAYOUT_INT8 ? QI_S8
                                                        : QI_U8,
        .bits = bits_of(p),
        .rank = node->shape.rank,
        .scale = p->scale,
        .zero_point = p->zero_point,
        .range_min = p->min,
        .range_max = p->max,
        .source_index = -1,
    };
    snprintf(t.name, sizeof t.name, "%s", node->name);
    for (int i = 0; i < QI_MAX_RANK; i++)
        t.dims[i] = i < node->shape.rank ? node->shape.dims[i] : 1;
    *index = qat_qgraph_tensor(f->graph, &t, err);
    if (*index < 0)
        return err->status;
    f->tensor[node->index] = *index;
    f->params[node->index] = *p;
    return QAT_OK;
}

static void alias(struct freezer *f, const qat_node *node, const qat_node *of)
{
    f->tensor[node->index] = f->tensor[of->index];
    f->params[node->index] = f->params[of->index];
}

/** The fake_quant_weights node among a head's parameters, for its first quantized weight. */
static const qat_node *weights_of(const qat_node *head)
{
    unsigned const mask =
        qat_has_role(head, QAT_ROLE_ACCUMULATE) ? 1u : head->op->quant->weight_params;
    for (int i = head->n_data; i < head->n_inputs; i++)
        if (mask >> (i - head->n_data) & 1u && qat_node_quantizes(head->inputs[i], true))
            return head->inputs[i];
    return NULL;
}

/** Find tensors and parameters of a head's data inputs, all of which must be quantized. */
static qat_status find_inputs(const struct freezer *f, const qat_node *head, int *inputs,
                              qat_qparams *params, qat_error *err)
{
    for (int i = 0; i < head->n_data; i++) {
        const qat_node *in = head->inputs[i];
        if (f->tensor[in->index] < 0)
            return qat_fail(err, QAT_ERR_UNSUPPORTED, "%s: its input %s (op %s) is not quantized",
                            head->name, in->name, op_name(in));
        inputs[i] = f->tensor[in->index];
        params[i] = f->params[in->index];
    }
    return QAT_OK;
}

/** Emit the integer op of a head whose data inputs are all quantized. */
static qat_status freeze_layer(struct freezer *f, const qat_layer *fused, const qat_node *output,
                               const qat_qparams *p, qat_error *err)
{
    const qat_node *head = fused->head;
    qat_status st = QAT_OK;
    int *inputs = calloc((size_t)head->n_data + 1, sizeof *inputs);
    qat_qparams *params = calloc((size_t)head->n_data + 1, sizeof *params);
    if (!inputs || !params)
        st = qat_out_of_memory(err, head->name);
    if (!st)
        st = find_inputs(f, head, inputs, params, err);
    qat_fused_layer layer = {
        .graph = f->graph,
        .profile = f->profile,
        .options = f->options,
        .head = head,
        .act_min = fused->min,
        .act_max = fused->max,
        .n_inputs = head->n_data,
        .inputs = inputs,
        .input_params = params,
        .output_params = *p,
        .warn = warn,
        .warn_context = (void *)f->log,
    };
    if (fused->bias) {
        const qat_node *bias = fused->bias->inputs[fused->bias->n_data];
        layer.bias = bias->value;
        layer.n_bias = (int)qat_shape_count(&bias->shape);
    }
    if (!st && head->op->quant)
        layer.weights = weights_of(head);
    if (!st)
        st = add_tensor(f, output, p, &layer.output, err);
    if (!st)
        st = qat_freeze_layer(&layer, err);
    free(inputs);
    free(params);
    return st;
}

/** Freeze the fake_quant of a tensor that is already quantized, with or without a clamp between. */
static qat_status freeze_requantize(struct freezer *f, const qat_layer *fused,
                                    const qat_node *output, const qat_qparams *p, qat_error *err)
{
    const qat_node *from = fused->head;
    if (fused->bias)
        return qat_fail(
            err, QAT_ERR_UNSUPPORTED,
            "%s: a bias on the quantized tensor %s, but there is no layer to fuse it into",
            fused->bias->name, from->name);
    if (!fused->clamp && same_params(p, &f->params[from->index])) {
        alias(f, output, from);
        return QAT_OK;
    }
    int const input = f->tensor[from->index];
    qat_fused_layer layer = {
        .graph = f->graph,
        .profile = f->profile,
        .options = f->options,
        .head = fused->clamp ? fused->clamp : output,
        .act_min = fused->min,
        .act_max = fused->max,
        .n_inputs = 1,
        .inputs = &input,
        .input_params = &f->params[from->index],
        .output_params = *p,
        .warn = warn,
        .warn_context = (void *)f->log,
    };
    qat_status st = add_tensor(f, output, p, &layer.output, err);
    return st ? st : qat_freeze_requantize(&layer, err);
}

static qat_status freeze_fake_quant(struct freezer *f, const qat_node *node, qat_error *err)
{
    qat_qparams p;
    int index;
    qat_layer const fused = qat_layer_before(node);
    qat_status st = qat_node_qparams(node, &p, err);
    if (st)
        return st;
    if (fused.norm)
        return qat_fail(err, QAT_ERR_UNSUPPORTED,
                        "%s: op %s cannot be frozen; an eval graph has it folded", fused.norm->name,
                        op_name(fused.norm));
    if (f->tensor[fused.head->index] >= 0)
        return freeze_requantize(f, &fused, node, &p, err);
    if (fused.head->is_param)
        return qat_fail(err, QAT_ERR_UNSUPPORTED,
                        "%s: fake_quant of the parameter %s, but it must be of an op's output",
                        node->name, fused.head->name);
    if (!qat_node_is_input(fused.head))
        return freeze_layer(f, &fused, node, &p, err);
    if (fused.head != node->inputs[0])
        return qat_fail(err, QAT_ERR_UNSUPPORTED, "%s: the graph input %s has no fake_quant node",
                        node->inputs[0]->name, fused.head->name);
    st = add_tensor(f, node, &p, &index, err);
    if (!st) /* a second fake_quant of this input is a requantization of the first */
        alias(f, fused.head, node);
    return st;
}

/** The tensor of its first input is what the state of its second input becomes. */
static qat_status freeze_carry(struct freezer *f, const qat_node *node, qat_error *err)
{
    int const state = f->tensor[node->inputs[1]->index];
    if (state < 0 || !f->graph->tensors[state].is_state)
        return qat_fail(err, QAT_ERR_UNSUPPORTED, "%s: %s is no state", node->name,
                        node->inputs[1]->name);
    f->graph->tensors[state].next = f->tensor[node->index];
    return QAT_OK;
}

/** Max pool, reshape, flatten: codes pass through, and the output keeps the input's parameters. */
static qat_status freeze_pass(struct freezer *f, qat_node *node, qat_error *err)
{
    const qat_node *from = node->inputs[0];
    if (!node->op->quant->freeze) {
        alias(f, node, from);
        return qat_is_carry(node) ? freeze_carry(f, node, err) : QAT_OK;
    }
    qat_layer const alone = {.head = node, .min = -INFINITY, .max = INFINITY};
    qat_qparams const p = f->params[from->index];
    return freeze_layer(f, &alone, node, &p, err);
}

static qat_status freeze_nodes(struct freezer *f, qat_error *err)
{
    qat_status st = QAT_OK;
    for (int i = 0; !st && i < qat_graph_nodes(f->eval); i++) {
        qat_node *node = qat_graph_node(f->eval, i);
        if (qat_node_quantizes(node, false))
            st = freeze_fake_quant(f, node, err);
        else if (qat_has_role(node, QAT_ROLE_PASS) && f->tensor[node->inputs[0]->index] >= 0)
            st = freeze_pass(f, node, err);
    }
    return st;
}

/** The graph's inputs, in its order, then its outputs. */
static qat_status freeze_io(struct freezer *f, qat_error *err)
{
    int const nodes = qat_graph_nodes(f->eval);
    int const n_outputs = qat_graph_outputs(f->eval);
    int n_inputs = 0;
    int *io = calloc((size_t)nodes + (size_t)n_outputs + 1, sizeof *io);
    if (!io)
        return qat_out_of_memory(err, "freeze");
    qat_status st =
        n_outputs > 0 ? QAT_OK : qat_fail(err, QAT_ERR_STATE, "the graph has no outputs marked");
    for (int i = 0; !st && i < nodes; i++) {
        const qat_node *node = qat_graph_node(f->eval, i);
        if (!qat_node_is_input(node))
            continue;
        if (f->tensor[i] < 0)
            st = qat_fail(err, QAT_ERR_UNSUPPORTED, "the graph input %s is not quantized",
                          node->name);
        io[n_inputs++] = f->tensor[i];
    }
    for (int i = 0; !st && i < n_outputs; i++) {
        const qat_node *node = qat_graph_output_at(f->eval, i);
        if (f->tensor[node->index] < 0)
            st = qat_fail(err, QAT_ERR_UNSUPPORTED, "the output %s (op %s) is not quantized",
                          node->name, op_name(node));
        io[n_inputs + i] = f->tensor[node->index];
    }
    if (!st)
        st = qat_qgraph_set_io(f->graph, n_inputs, io, n_outputs, io + n_inputs, err);
    free(io);
    return st;
}

/** Run one sample of zeros through the graph, so that folded weights and biases have values. */
static qat_status compute_weights(qat_graph *eval, qat_error *err)
{
    qat_status st = qat_graph_set_batch(eval, 1, err);
    if (st)
        return st;
    for (int i = 0; i < qat_graph_nodes(eval); i++) {
        qat_node *node = qat_graph_node(eval, i);
        if (qat_node_is_input(node))
            memset(node->value, 0, qat_shape_count(&node->shape) * sizeof *node->value);
    }
    qat_graph_forward(eval, &(qat_run){.mode = QAT_MODE_EVAL});
    const qat_node *bad = qat_graph_find_nonfinite(eval);
    return bad ? qat_fail(err, QAT_ERR_NUMERIC, "%s (op %s) holds a NaN or infinity", bad->name,
                          op_name(bad))
               : QAT_OK;
}

static qat_status freezer_init(struct freezer *f, qat_error *err)
{
    int const nodes = qat_graph_nodes(f->eval);
    f->options = qat_graph_quant_options(f->eval);
    if (!f->options)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "freeze: not an eval graph (qat_create_eval_graph makes one)");
    if (f->options->activation_bits == QAT_WIDE_BITS && f->profile != QAT_PROFILE_TFLITE)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "%d-bit activations need the profile tflite: no other says how they round",
                        QAT_WIDE_BITS);
    f->graph = qat_qgraph_new();
    f->tensor = calloc((size_t)nodes + 1, sizeof *f->tensor);
    f->params = calloc((size_t)nodes + 1, sizeof *f->params);
    if (!f->graph || !f->tensor || !f->params)
        return qat_out_of_memory(err, "freeze");
    for (int i = 0; i < nodes; i++)
        f->tensor[i] = -1;
    return QAT_OK;
}

qat_status qat_freeze(qat_qgraph **graph, qat_graph *eval, qat_profile profile, const qat_log *log,
                      qat_error *err)
{
    struct freezer f = {.eval = eval, .profile = profile, .log = log};
    qat_error ignored;
    if (!err)
        err = &ignored;
    *graph = NULL;
    qat_status st = freezer_init(&f, err);
    if (!st)
        st = compute_weights(eval, err);
    if (!st)
        st = freeze_nodes(&f, err);
    if (!st)
        st = freeze_io(&f, err);
    if (!st) {
        *graph = f.graph;
        f.graph = NULL;
    }
    qat_qgraph_free(f.graph);
    free(f.tensor);
    free(f.params);
    return st;
}
