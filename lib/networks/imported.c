/** Networks of other frameworks' files. */
#include "foreign/foreign.h"
#include "networks/network.h"
#include "recipe/recipe.h"

#include <stdio.h>

enum { PATH_LENGTH = 4096 };

static uint64_t memory_of(const qat_recipe *r)
{
    return (uint64_t)r->data.memory << 20;
}

/** Are there as many outputs as the task wants? */
static qat_status check_outputs(const qat_net *net, const qat_node *last, const char *path,
                                qat_error *err)
{
    char where[QAT_RECIPE_WHERE_MAX];
    int outputs;
    (void)qat_net_second(net, &outputs);
    qat_recipe_where(net->recipe, "model", qat_net_file_key(net->recipe), where);
    if (outputs)
        return qat_fail(err, QAT_ERR_UNSUPPORTED,
                        "%s: a network from a file has one output; these data need a second one",
                        where);
    int const n = qat_shape_channels(&last->shape);
    if (last->shape.rank == 2 && n == net->input->classes)
        return QAT_OK;
    char text[64];
    return qat_fail(err, QAT_ERR_SHAPE,
                    "%s: the output of %s is %s, but the data have %d classes: model.head = %d "
                    "replaces the last layer",
                    where, path, qat_shape_text(&last->shape, text), net->input->classes,
                    net->input->classes);
}

qat_status qat_net_imported(const qat_net *net, qat_node *x, qat_foreign_params *params,
                            qat_node **last, qat_error *err)
{
    char path[PATH_LENGTH];
    const qat_recipe *r = net->recipe;
    qat_foreign_params unused = {0};
    qat_foreign_options const options = {.height = net->input->height,
                                         .width = net->input->width,
                                         .channels = net->input->channels,
                                         .head = qat_net_head(r),
                                         .bn_momentum = r->model.bn_momentum};
    *last = NULL;
    qat_status st = qat_expand_path(qat_net_file(r), path, sizeof path, err);
    if (!st)
        st = qat_foreign_open(path, memory_of(r), net->graph, x, &options, last,
                              params ? params : &unused, err);
    if (!st)
        st = check_outputs(net, *last, path, err);
    qat_foreign_params_free(&unused);
    return st;
}

qat_status qat_net_fill_imported(qat_graph *graph, const qat_recipe *recipe,
                                 const qat_input_info *input, const qat_log *log, qat_error *err)
{
    qat_foreign_params params = {0};
    qat_node *last;
    qat_net net = {.recipe = recipe, .input = input};
    qat_status st = qat_graph_create(&net.graph, qat_graph_registry(graph), err);
    if (st)
        return st;
    qat_node *x = qat_graph_input(net.graph, QAT_INPUT_NAME,
                                  QAT_SHAPE(1, input->height, input->width, input->channels));
    st = qat_net_imported(&net, x, &params, &last, err);
    if (!st) {
        char text[512];
        int const filled = qat_foreign_fill(&params, graph);
        snprintf(text, sizeof text, "%s %.300s: %d parameters taken", qat_net_file_key(recipe),
                 qat_net_file(recipe), filled);
        if (log)
            log->line(log->context, text);
        if (filled != params.count)
            st = qat_fail(err, QAT_ERR_STATE, "%.300s: only %d of %d parameters are in the graph",
                          qat_net_file(recipe), filled, params.count);
    }
    qat_foreign_params_free(&params);
    qat_graph_free(net.graph);
    return st;
}
