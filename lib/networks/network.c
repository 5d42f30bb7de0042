/** Builds a float graph from a recipe: input, body, output, loss. */
#include "networks/network.h"

#include "layer/layer.h"
#include "recipe/recipe.h"

#include <stdio.h>

static qat_status check_arch(const qat_recipe *r, qat_error *err)
{
    if (r->model.arch != QAT_ARCH_LAYERS && r->n_layers)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "%s:%d: a [layer.%s] section needs model.arch = layers", r->source,
                        r->layers[0].line, r->layers[0].name);
    char where[QAT_RECIPE_WHERE_MAX];
    const qat_int_list *filters = &r->model.filters, *strides = &r->model.strides;
    qat_recipe_where(r, "model", filters->n ? "strides" : "filters", where);
    if (r->model.arch == QAT_ARCH_CONVNET && filters->n == 0)
        return qat_fail(err, QAT_ERR_ARGUMENT, "%s: model.filters is empty", where);
    if (r->model.arch == QAT_ARCH_CONVNET && strides->n != 1 && strides->n != filters->n)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "%s: model.strides has %d numbers: give one, or %d as in model.filters",
                        where, strides->n, filters->n);
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

/** They return the logits. */
static qat_node *(*const bodies[])(const qat_net *net, qat_node *x) = {
    [QAT_FAMILY_CONVNET] = qat_net_convnet,
    [QAT_FAMILY_MLP] = qat_net_mlp,
    [QAT_FAMILY_RESNET] = qat_net_resnet,
    [QAT_FAMILY_RESNET_IMAGENET] = qat_net_resnet_imagenet,
    [QAT_FAMILY_MOBILENET_V1] = qat_net_mobilenet_v1,
    [QAT_FAMILY_MOBILENET_V2] = qat_net_mobilenet_v2,
    [QAT_FAMILY_INCEPTION_V3] = qat_net_inception_v3,
    [QAT_FAMILY_INCEPTION_SMALL] = qat_net_inception_small,
    [QAT_FAMILY_MOBILENET_SSD] = qat_net_mobilenet_ssd,
};

static qat_status build_body(const qat_net *net, qat_node *x, qat_node **last, qat_error *err)
{
    qat_family const family = qat_net_arch_of(net->recipe)->family;
    if (family == QAT_FAMILY_LAYERS)
        return qat_net_layers(net, x, last, err);
    if (family == QAT_FAMILY_IMPORTED)
        return qat_net_imported(net, x, NULL, last, err);
    *last = bodies[family](net, x);
    qat_error inner;
    char where[QAT_RECIPE_WHERE_MAX];
    qat_recipe_where(net->recipe, "model", "arch", where);
    qat_status const st = qat_graph_check(net->graph, &inner);
    return st ? qat_fail(err, st, "%s: %s", where, inner.message) : QAT_OK;
}

const char *qat_net_second(const qat_net *net, int *outputs)
{
    const qat_task *task = qat_task_of(net->input);
    *outputs = task->second_outputs ? task->second_outputs(net->input) : 0;
    return task->second;
}

/* ------------------------------------------------------------------ steps */

static qat_shape shape_of(const qat_input_info *input)
{
    return QAT_SHAPE(1, input->height, input->width, input->channels);
}

/** Let `frame`, a whole sample, be one step of it: so many of its rows, or of a signal's values. */
static qat_status frame_of(qat_input_info *frame, const qat_recipe *recipe, qat_error *err)
{
    int const steps = (int)recipe->model.steps;
    int *size = frame->height > 1 ? &frame->height : &frame->width;
    char where[QAT_RECIPE_WHERE_MAX];
    qat_recipe_where(recipe, "model", "steps", where);
    if (frame->type == QAT_SAMPLE_U8)
        return qat_fail(
            err, QAT_ERR_ARGUMENT,
            "%s: model.steps = %d: only real numbers and sounds have steps, not pictures", where,
            steps);
    if (*size % steps)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "%s: model.steps = %d does not divide the %d values of a sample in time",
                        where, steps, *size);
    *size /= steps;
    return QAT_OK;
}

static qat_status unroll(qat_net *net, qat_shape whole, qat_node **last, qat_error *err)
{
    char where[QAT_RECIPE_WHERE_MAX];
    qat_recipe_where(net->recipe, "model", "steps", where);
    if (*net->auxiliary || *net->second)
        return qat_fail(err, QAT_ERR_UNSUPPORTED, "%s: model.steps: a network with two outputs",
                        where);
    return qat_net_unroll(net, (int)net->recipe->model.steps, whole, last, err);
}

static qat_status check_no_state(const qat_graph *graph, qat_error *err)
{
    for (int i = 0; i < qat_graph_nodes(graph); i++)
        if (qat_has_role(qat_graph_node(graph, i), QAT_ROLE_STATE))
            return qat_fail(err, QAT_ERR_ARGUMENT,
                            "layer '%s' is kept from step to step: model.steps must say how many "
                            "steps a sample has",
                            qat_graph_node(graph, i)->name);
    return QAT_OK;
}

qat_status qat_network_build(qat_graph **graph, const qat_registry *registry,
                             const qat_recipe *recipe, const qat_input_info *input, qat_error *err)
{
    qat_node *last = NULL, *auxiliary = NULL, *second = NULL;
    qat_net net = {.recipe = recipe, .input = input, .auxiliary = &auxiliary, .second = &second};
    int const steps = (int)recipe->model.steps;
    qat_input_info frame = *input;
    *graph = NULL;
    qat_status st = check_arch(recipe, err);
    if (!st)
        st = check_picture(&net, err);
    if (!st && steps)
        st = frame_of(&frame, recipe, err);
    if (!st)
        st = qat_graph_create(&net.graph, registry, err);
    if (!st) {
        net.input = &frame;
        qat_node *x = qat_graph_input(net.graph, QAT_INPUT_NAME, shape_of(&frame));
        st = build_body(&net, x, &last, err);
        net.input = input;
    }
    if (!st)
        st = steps ? unroll(&net, shape_of(input), &last, err) : check_no_state(net.graph, err);
    if (!st && !qat_net_arch_of(recipe)->detects) {
        qat_net_ends const ends = {net.graph, recipe, input, last, second, auxiliary};
        st = qat_task_of(input)->ends(&ends, err);
    }
    if (!st) {
        *graph = net.graph;
        net.graph = NULL;
    }
    qat_graph_free(net.graph);
    return st;
}

qat_status qat_network_build_step(qat_graph **graph, const qat_registry *registry,
                                  const qat_recipe *recipe, qat_input_info *input, qat_error *err)
{
    qat_recipe one = *recipe;
    *graph = NULL;
    qat_status const st = frame_of(input, recipe, err);
    one.model.steps = 1;
    return st ? st : qat_network_build(graph, registry, &one, input, err);
}
