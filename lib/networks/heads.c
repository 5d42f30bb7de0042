/**
 * Two heads for samples with targets. They read the features that a classifier's logits would read:
 *
 *     features - fully connected, A - logistic          scores of A attributes, each for itself
 *              \ fully connected, K [- logistic]        a value = low + width sum of the K
 *
 * The loss is sigmoid_cross_entropy(attributes) + value_weight times the loss of the value. The
 * targets of the value, with s = (value - low) / width steps:
 *
 *     ordered         K steps: t[k] = s - k, within 0..1, sigmoid_cross_entropy: the k-th output is
 *                     the probability that the value lies above its step
 *     smooth_l1, l2   K = 1: t = s
 *
 * The ordered targets also sum to s, so the value is read in the same way from all three.
 */
#include "base/number.h"
#include "networks/network.h"

#include <stdio.h>

bool qat_net_value_is_ordered(const qat_recipe *recipe)
{
    return recipe->attributes.value == QAT_VALUE_ORDERED;
}

int qat_net_value_outputs(const qat_recipe *recipe)
{
    int const kind = recipe->attributes.value;
    return kind == QAT_VALUE_NONE      ? 0
           : kind == QAT_VALUE_ORDERED ? (int)recipe->attributes.steps
                                       : 1;
}

qat_node *qat_net_value_head(const qat_net *net, qat_node *x)
{
    return qat_net_dense_block(net, x, "value", net->input->attributes.outputs, false);
}

static qat_node *target(const qat_net *net, const char *name, int values)
{
    return qat_graph_input(net->graph, name, QAT_SHAPE(1, values));
}

static qat_node *value_loss(const qat_net *net, qat_node *value)
{
    static const char *const ops[] = {"sigmoid_cross_entropy", "smooth_l1_loss", "l2_loss"};
    return qat_apply2(net->graph, ops[net->recipe->attributes.value], "loss/value", "", value,
                      target(net, QAT_TARGET_VALUE_NAME, net->input->attributes.outputs));
}

static void add_losses(const qat_net *net, qat_node *logits, qat_node *value)
{
    char weight[48];
    qat_node *attributes = qat_apply2(
        net->graph, "sigmoid_cross_entropy", value ? "loss/attributes" : QAT_LOSS_NAME, "", logits,
        target(net, QAT_TARGET_ATTRIBUTES_NAME, net->input->attributes.count));
    if (!value)
        return;
    qat_format(weight, sizeof weight, "weight=%.17g", net->recipe->attributes.value_weight);
    qat_apply2(net->graph, "loss_sum", QAT_LOSS_NAME, weight, attributes, value_loss(net, value));
}

/** Refuse settings that only a classifier has. */
static qat_status check_settings(const qat_net *net, qat_error *err)
{
    const qat_recipe *r = net->recipe;
    const char *key = r->model.output                ? "model.output = softmax"
                      : r->train.label_smoothing > 0 ? "train.label_smoothing"
                      : *net->auxiliary              ? "model.auxiliary"
                                                     : NULL;
    if (!key)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_UNSUPPORTED,
                    "%s: %s is for classifiers, but these data have attributes", r->source, key);
}

/** Check that the network has the second head, with the right number of outputs. */
static qat_status check_value(const qat_net *net, const qat_node *value, qat_error *err)
{
    int const outputs = net->input->attributes.outputs;
    char text[64];
    if (!outputs || (value && qat_shape_channels(&value->shape) == outputs))
        return QAT_OK;
    if (!value)
        return qat_fail(err, QAT_ERR_UNSUPPORTED,
                        "%s: the network has no second head: add a layer named value, or set "
                        "attributes.value = none",
                        net->recipe->source);
    return qat_fail(err, QAT_ERR_SHAPE, "%s: the layer value gives %s, but %d outputs need [1, %d]",
                    net->recipe->source, qat_shape_text(&value->shape, text), outputs, outputs);
}

qat_status qat_net_attribute_ends(const qat_net *net, qat_node *logits, qat_error *err)
{
    qat_graph *g = net->graph;
    qat_node *value = *net->value;
    qat_status st = check_settings(net, err);
    if (!st)
        st = check_value(net, value, err);
    if (st)
        return st;
    qat_node *scores = qat_apply1(g, "logistic", "scores", "", logits);
    if (scores)
        qat_graph_output(g, scores);
    qat_node *answer = value && qat_net_value_is_ordered(net->recipe)
                           ? qat_apply1(g, "logistic", "steps", "", value)
                           : value;
    if (answer)
        qat_graph_output(g, answer);
    add_losses(net, logits, value);
    return qat_graph_check(g, err);
}
