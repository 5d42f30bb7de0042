/** Builds a float graph from a recipe: input, body, output, loss. */
#include "networks/network.h"

#include "base/number.h"
#include "recipe/recipe.h"

#include <stdio.h>

static qat_status check_arch(const qat_recipe *r, qat_error *err)
{
    if (r->model.arch != QAT_ARCH_LAYERS && r->n_layers)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "%s:%d: a [layer.%s] section needs model.arch = layers", r->source,
                        r->layers[0].line, r->layers[0].name);
    const qat_int_list *filters = &r->model.filters, *strides = &r->model.strides;
    if (r->model.arch == QAT_ARCH_CONVNET && filters->n == 0)
        return qat_fail(err, QAT_ERR_ARGUMENT, "%s: model.filters is empty", r->source);
    if (r->model.arch == QAT_ARCH_CONVNET && strides->n != 1 && strides->n != filters->n)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "%s: model.strides has %d numbers: give one, or %d as in model.filters",
                        r->source, strides->n, filters->n);
    return QAT_OK;
}

/** Check the picture's size if the network needs a certain size. */
static qat_status check_picture(const qat_net *net, qat_error *err)
{
    const qat_net_arch *a = qat_net_arch_of(net->recipe);
    int const h = net->input->height, w = net->input->width;
    char where[QAT_RECIPE_WHERE_MAX];
    qat_recipe_where(net->recipe, "model", "arch", where);
    if (a->resolution && (h != a->resolution || w != a->resolution))
        return qat_fail(err, QAT_ERR_SHAPE,
                        "%s: model.arch = %s takes pictures of %d x %d, but the data have %d x %d",
                        where, a->name, a->resolution, a->resolution, h, w);
    if (h < a->smallest || w < a->smallest)
        return qat_fail(
            err, QAT_ERR_SHAPE,
            "%s: model.arch = %s takes pictures of %d x %d or more, but the data have %d x %d",
            where, a->name, a->smallest, a->smallest, h, w);
    return QAT_OK;
}

static qat_status build_body(const qat_net *net, qat_node *x, qat_node **last, qat_error *err)
{
    const qat_net_arch *arch = qat_net_arch_of(net->recipe);
    if (!arch->body)
        return qat_net_layers(net, x, last, err);
    *last = arch->body(net, x);
    qat_error inner;
    qat_status const st = qat_graph_check(net->graph, &inner);
    return st ? qat_fail(err, st, "%s: %s", net->recipe->source, inner.message) : QAT_OK;
}

/** Check that the logits are [N, classes], as the loss needs. */
static qat_status check_logits(const qat_net *net, const qat_node *logits, qat_error *err)
{
    char text[64];
    if (logits->shape.rank == 2 && logits->shape.dims[1] == net->input->classes)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_ARGUMENT,
                    "%s: the last layer, %s, gives %s, but %d %s need [1, %d]", net->recipe->source,
                    logits->name, qat_shape_text(&logits->shape, text), net->input->classes,
                    net->input->attributes.count ? "attributes" : "classes", net->input->classes);
}

static qat_node *cross_entropy(const qat_net *net, const char *name, qat_node *logits,
                               qat_node *labels)
{
    char smoothing[64];
    qat_format(smoothing, sizeof smoothing, "smoothing=%.17g", net->recipe->train.label_smoothing);
    return qat_apply2(net->graph, "softmax_cross_entropy", name, smoothing, logits, labels);
}

/** Add the loss. With an auxiliary classifier it is the sum of two losses. */
static void add_loss(const qat_net *net, qat_node *logits)
{
    char weight[48];
    qat_node *labels = qat_graph_input(net->graph, QAT_LABEL_NAME, QAT_SHAPE(1));
    if (!*net->auxiliary) {
        cross_entropy(net, QAT_LOSS_NAME, logits, labels);
        return;
    }
    qat_node *own = cross_entropy(net, QAT_OWN_LOSS_NAME, logits, labels);
    qat_node *other = cross_entropy(net, QAT_LOSS_NAME "/auxiliary", *net->auxiliary, labels);
    qat_format(weight, sizeof weight, "weight=%.17g", net->recipe->model.auxiliary);
    qat_apply2(net->graph, "loss_sum", QAT_LOSS_NAME, weight, own, other);
}

/** Add output and loss. If the network ends in a softmax, the loss reads the softmax's input. */
static qat_status add_ends(const qat_net *net, qat_node *last, qat_error *err)
{
    qat_graph *g = net->graph;
    bool const own_softmax = qat_node_is_op(last, "softmax");
    qat_node *logits = own_softmax ? last->inputs[0] : last;
    qat_status const st = check_logits(net, logits, err);
    if (st)
        return st;
    if (net->input->attributes.count)
        return qat_net_attribute_ends(net, last, err);
    if (!own_softmax && net->recipe->model.output == 1)
        last = qat_apply1(g, "softmax", "probabilities", "", logits);
    if (last)
        qat_graph_output(g, last);
    add_loss(net, logits);
    return qat_graph_check(g, err);
}

qat_status qat_network_build(qat_graph **graph, const qat_registry *registry,
                             const qat_recipe *recipe, const qat_input_info *input, qat_error *err)
{
    qat_node *last = NULL, *auxiliary = NULL, *value = NULL;
    qat_net net = {.recipe = recipe, .input = input, .auxiliary = &auxiliary, .value = &value};
    *graph = NULL;
    qat_status st = check_arch(recipe, err);
    if (!st)
        st = check_picture(&net, err);
    if (!st)
        st = qat_graph_create(&net.graph, registry, err);
    if (!st) {
        qat_node *x = qat_graph_input(net.graph, QAT_INPUT_NAME,
                                      QAT_SHAPE(1, input->height, input->width, input->channels));
        st = build_body(&net, x, &last, err);
    }
    if (!st && !qat_net_arch_of(recipe)->detects)
        st = add_ends(&net, last, err);
    if (!st) {
        *graph = net.graph;
        net.graph = NULL;
    }
    qat_graph_free(net.graph);
    return st;
}
