/**
 * Makes one integer layer, node by node: its weights are quantized before use, its batch norm is
 * folded.
 *
 *     float            training (two_pass)                         eval
 *
 *     x   w            x     w     gamma EMA(v)                    x    w   gamma EMA(v)
 *     |   |            |     |\      |                             |    |     |
 *     conv             | raw | bn_fold_weights                     |  bn_fold_weights
 *      |               | conv        |                             |    |
 *     bias             |   |  fake_quant_weights                   |  fake_quant_weights
 *      |               |   |         |                             |    |
 *     batch_norm       '---|------- conv                           conv
 *      |                  raw        |                              |
 *     relu                bias      bias <- bn_fold_weights(b)     bias <- bn_fold_bias
 *                           '---.    |                              |
 *                             bn_fold_train                        relu
 *                                    |                              |
 *                                   relu                           fake_quant
 *                                    |
 *                                   fake_quant (rewrite_quantize.c)
 *
 * one_pass has no raw conv and bias. Without batch norm, the conv has quantized weights and the
 * bias is unchanged. With float activations, the same, and the batch norm is unchanged. A batch
 * norm or bias without a conv becomes one on a 1x1 depthwise convolution with weights 1:
 *
 *     x -> batch_norm -> relu     x [-> reshape to rank 4] -> depthwise_conv2d(ones)
 *                                   -> bn_fold_train -> relu -> fake_quant [-> reshape back]
 */
#include "fakequant/ops.h"
#include "fakequant/schemes.h"
#include "rewrite/rewrite.h"

#include <stdio.h>
#include <string.h>

/** Inputs of batch_norm after its data input. */
enum { BN_GAMMA = 1, BN_BETA, BN_EMA_MEAN, BN_EMA_VARIANCE, BN_EMA_STEPS };

static qat_node *bn_param(rw_maker *m, const qat_layer *layer, int which)
{
    return rw_input(m, layer->norm->inputs[which]);
}

/* ------------------------------------------------------------------ weights */

/** gamma w / s of a parameter, or the parameter itself if the layer has no batch norm. */
static qat_node *fold(rw_maker *m, const qat_layer *layer, qat_node *w, const char *base, int axis)
{
    char name[RW_NAME_MAX];
    if (!layer->norm)
        return w;
    double const attrs[QAT_MAX_ATTRS] = {
        [FOLDW_EPSILON] = qat_attr(layer->norm, "epsilon"),
        [FOLDW_AXIS] = axis,
        [FOLDW_DELAY] = (double)rw_delay(m, m->options->weight_delay),
    };
    qat_node *const inputs[] = {[FOLDW_W] = w,
                                [FOLDW_GAMMA] = bn_param(m, layer, BN_GAMMA),
                                [FOLDW_EMA_VARIANCE] = bn_param(m, layer, BN_EMA_VARIANCE)};
    return qat_apply_values(m->graph, &qat_op_bn_fold_weights, rw_name(name, base, "/fold"), attrs,
                            FOLDW_INPUTS, inputs);
}

/** Quantize with the settings of the layer to which `node` belongs. */
static qat_node *quantize_weights(rw_maker *m, const qat_node *node, qat_node *w, const char *base,
                                  int axis)
{
    char name[RW_NAME_MAX];
    const rw_settings *s = &m->a->settings[node->index];
    if (s->is_float)
        return w;
    double attrs[QAT_MAX_ATTRS] = {
        [FQW_BITS] = s->weight_bits,
        [FQW_LAYOUT] = m->options->layout,
        [FQW_AXIS] = axis,
        [FQW_DELAY] = (double)rw_delay(m, m->options->weight_delay),
        [FQW_PER_TENSOR] = s->per_tensor && m->options->layout == QAT_LAYOUT_INT8,
        [FQW_SYMMETRIC] = s->symmetric && m->options->layout == QAT_LAYOUT_UINT8,
    };
    const qat_op *op = rw_quantizer_op(s->weights, s);
    rw_learning_attrs(m, op, s, attrs);
    for (int i = 0; op == &qat_op_inq_weights && i < INQ_STAGES; i++)
        attrs[INQ_STAGE + i] = (double)m->options->inq_stages[i];
    return qat_apply_values(m->graph, op, rw_name(name, base, "/q"), attrs, 1, &w);
}

/**
 * "<node>/<param>": nodes inserted on a parameter have this name, even if several nodes share the
 * parameter.
 */
static void param_base(char base[RW_NAME_MAX], const qat_node *node, int input)
{
    snprintf(base, RW_NAME_MAX, "%s/%s", node->name, node->inputs[input]->init.name);
}

/** Are the layer's quantized weights others than the float ones, not only rounded? */
static bool is_normalized(const rw_maker *m, const qat_layer *layer)
{
    const qat_op *by = m->a->settings[layer->first->index].weights;
    return by == &qat_op_dorefa_weights || by == &qat_op_weight_norm_weights ||
           by == &qat_op_apot_weights;
}

/** Float weights that are not normalised say nothing about the batch statistics of those that are.
 */
static bool takes_raw(const rw_maker *m, const qat_layer *layer)
{
    return layer->norm && m->training && m->options->bn_fold == QAT_FOLD_TWO_PASS &&
           !is_normalized(m, layer);
}

/**
 * Eval: the bias that the batch norm becomes. It is computed before the layer's head, which needs
 * it if it rounds as the integers do.
 */
static void make_folded_bias(rw_maker *m, const qat_layer *layer)
{
    char name[RW_NAME_MAX];
    if (!layer->norm || m->training)
        return;
    double const attrs[QAT_MAX_ATTRS] = {[FOLDB_EPSILON] = qat_attr(layer->norm, "epsilon")};
    qat_node *const inputs[] = {
        [FOLDB_GAMMA] = bn_param(m, layer, BN_GAMMA),
        [FOLDB_BETA] = bn_param(m, layer, BN_BETA),
        [FOLDB_EMA_MEAN] = bn_param(m, layer, BN_EMA_MEAN),
        [FOLDB_EMA_VARIANCE] = bn_param(m, layer, BN_EMA_VARIANCE),
        [FOLDB_BIAS] = layer->bias ? rw_input(m, layer->bias->inputs[1]) : NULL,
    };
    qat_apply_values(m->graph, &qat_op_bn_fold_bias, rw_name(name, layer->norm->name, "/bias"),
                     attrs, layer->bias ? FOLDB_INPUTS : FOLDB_BIAS, inputs);
}

static void make_accumulating_head(rw_maker *m, const qat_layer *layer)
{
    const qat_node *head = layer->head;
    char base[RW_NAME_MAX], name[RW_NAME_MAX];
    int const axis = qat_channel_axis(head);
    make_folded_bias(m, layer);
    qat_node *w = rw_input(m, head->inputs[head->n_data]);
    param_base(base, head, head->n_data);
    qat_node **first = &m->plain[head->inputs[head->n_data]->index], *quantized = *first;
    if (!quantized || qat_first_step(head) == head)
        *first = quantized = quantize_weights(m, head, fold(m, layer, w, base, axis), base, axis);
    m->image[head->index] = rw_apply(m, head, head->name, quantized);
    if (takes_raw(m, layer))
        m->raw[head->index] = rw_apply(m, head, rw_name(name, head->name, "/raw"), w);
}

/* ------------------------------------------------------------------ a head for those without */

/** Reshape [N, T, C] and [N, C] to [N, 1, T, C], which a depthwise convolution takes. */
static qat_node *to_rank4(rw_maker *m, const qat_layer *layer, qat_node *x)
{
    char name[RW_NAME_MAX], attrs[96];
    const qat_shape *shape = &layer->first->inputs[0]->shape;
    if (shape->rank == 4)
        return x;
    snprintf(attrs, sizeof attrs, "d1=1 d2=%d d3=%d", shape->rank == 3 ? shape->dims[1] : 1,
             qat_shape_channels(shape));
    return qat_apply1(m->graph, "reshape", rw_name(name, layer->first->name, "/rank4"), attrs, x);
}

static qat_node *from_rank4(rw_maker *m, const qat_layer *layer, qat_node *y)
{
    char name[RW_NAME_MAX], attrs[96];
    const qat_shape *shape = &layer->last->shape;
    if (shape->rank == 4)
        return y;
    snprintf(attrs, sizeof attrs, shape->rank == 3 ? "d1=%d d2=%d" : "d1=%d", shape->dims[1],
             shape->dims[2]);
    return qat_apply1(m->graph, "reshape", rw_name(name, layer->first->name, "/back"), attrs, y);
}

static qat_node *make_ones(rw_maker *m, const char *base, int channels)
{
    qat_param_def const def = {
        .name = base, .shape = QAT_SHAPE(1, 1, 1, channels), .init = QAT_INIT_CONSTANT, .scale = 1};
    return qat_graph_param(m->graph, &def);
}

/** Set the image that the layer's first node will read, and the node for its statistics. */
static void make_missing_head(rw_maker *m, const qat_layer *layer, qat_node **x, qat_node **raw)
{
    char base[RW_NAME_MAX], name[RW_NAME_MAX];
    const qat_node *from = layer->first->inputs[0];
    rw_name(base, layer->first->name, "/ones");
    make_folded_bias(m, layer);
    qat_node *in = to_rank4(m, layer, rw_input(m, from));
    qat_node *ones = make_ones(m, base, qat_shape_channels(&from->shape));
    qat_node *w = quantize_weights(m, layer->first, fold(m, layer, ones, base, 3), base, 3);
    *x = qat_apply2(m->graph, "depthwise_conv2d", rw_name(name, layer->first->name, "/depthwise"),
                    "kernel=1", in, w);
    *raw = takes_raw(m, layer) ? in : NULL;
}

/* ------------------------------------------------------------------ bias, batch norm */

/**
 * Training: y = x + b, with b scaled as the weights are. Eval: left to the batch norm, if there is
 * one.
 */
static void make_bias(rw_maker *m, const qat_layer *layer, qat_node *x, qat_node *raw)
{
    char name[RW_NAME_MAX], base[RW_NAME_MAX];
    const qat_node *node = layer->bias;
    qat_node *b = rw_input(m, node->inputs[1]);
    m->image[node->index] = x;
    if (layer->norm && !m->training)
        return;
    param_base(base, node, 1);
    m->image[node->index] =
        qat_apply2(m->graph, "bias", node->name, "", x, fold(m, layer, b, base, 0));
    if (takes_raw(m, layer))
        m->raw[node->index] =
            qat_apply2(m->graph, "bias", rw_name(name, node->name, "/raw"), "", raw, b);
}

static qat_node *train_bn(rw_maker *m, const qat_layer *layer, qat_node *x, qat_node *raw)
{
    double const attrs[QAT_MAX_ATTRS] = {
        [FOLDT_EPSILON] = qat_attr(layer->norm, "epsilon"),
        [FOLDT_MOMENTUM] = qat_attr(layer->norm, "momentum"),
        [FOLDT_DELAY] = (double)m->options->weight_delay,
        [FOLDT_FREEZE] = (double)m->options->bn_freeze_delay,
    };
    qat_node *const inputs[] = {
        [FOLDT_Z] = x,
        [FOLDT_GAMMA] = bn_param(m, layer, BN_GAMMA),
        [FOLDT_BETA] = bn_param(m, layer, BN_BETA),
        [FOLDT_EMA_MEAN] = bn_param(m, layer, BN_EMA_MEAN),
        [FOLDT_EMA_VARIANCE] = bn_param(m, layer, BN_EMA_VARIANCE),
        [FOLDT_EMA_STEPS] = bn_param(m, layer, BN_EMA_STEPS),
        [FOLDT_RAW] = raw,
    };
    return qat_apply_values(m->graph, &qat_op_bn_fold_train, layer->norm->name, attrs,
                            takes_raw(m, layer) ? FOLDT_INPUTS : FOLDT_RAW, inputs);
}

static qat_node *eval_bn(rw_maker *m, const qat_layer *layer, qat_node *x)
{
    char name[RW_NAME_MAX];
    qat_node *b = qat_graph_find(m->graph, rw_name(name, layer->norm->name, "/bias"));
    return qat_apply2(m->graph, "bias", layer->norm->name, "", x, b);
}

/** Make a bias or batch norm after the nodes that the layer already has. */
static void make_affine(rw_maker *m, const qat_layer *layer, const qat_node *node)
{
    qat_node *x, *raw;
    if (node == layer->first) {
        make_missing_head(m, layer, &x, &raw);
    } else {
        x = m->image[node->inputs[0]->index];
        raw = m->raw[node->inputs[0]->index];
    }
    if (node == layer->bias)
        make_bias(m, layer, x, raw);
    else
        m->image[node->index] = m->training ? train_bn(m, layer, x, raw) : eval_bn(m, layer, x);
}

/** With float activations: weights are quantized, nothing is folded. */
static qat_node *make_float_node(rw_maker *m, const qat_node *node)
{
    char base[RW_NAME_MAX];
    if (!qat_has_role(node, QAT_ROLE_ACCUMULATE))
        return rw_copy(m, node);
    param_base(base, node, node->n_data);
    qat_node *w = rw_input(m, node->inputs[node->n_data]);
    return rw_apply(m, node, node->name,
                    quantize_weights(m, node, w, base, qat_channel_axis(node)));
}

void rw_make_layer_node(rw_maker *m, const qat_layer *layer, const qat_node *node)
{
    if (rw_float_activation(&m->a->settings[node->index])) {
        m->image[node->index] = make_float_node(m, node);
        return;
    }
    bool const affine = node == layer->bias || node == layer->norm;
    if (affine)
        make_affine(m, layer, node);
    else if (qat_has_role(node, QAT_ROLE_ACCUMULATE))
        make_accumulating_head(m, layer);
    else
        m->image[node->index] = rw_copy(m, node);
    if (node != layer->last)
        return;
    qat_node *y = rw_make_fake_quant(m, node, m->image[node->index]);
    bool const reshaped = layer->first == layer->bias || layer->first == layer->norm;
    m->image[node->index] = reshaped ? from_rank4(m, layer, y) : y;
}

qat_node *rw_make_custom(rw_maker *m, const qat_node *node)
{
    char base[RW_NAME_MAX];
    qat_node *params[QAT_MAX_PARAMS] = {NULL};
    for (int i = 0; i < node->n_inputs - node->n_data; i++)
        if (node->op->quant->weight_params >> i & 1) {
            param_base(base, node, node->n_data + i);
            params[i] =
                quantize_weights(m, node, rw_input(m, node->inputs[node->n_data + i]), base, 0);
        }
    return rw_apply_params(m, node, params);
}
