/**
 * Networks that are defined by numbers only: convnet (convolutions, then fully connected layers)
 * and mlp.
 */
#include "networks/network.h"
#include "recipe/recipe.h"

#include <stdio.h>
#include <string.h>

qat_node *qat_net_convnet(const qat_net *net, qat_node *x)
{
    const qat_int_list *filters = &net->recipe->model.filters;
    const qat_int_list *strides = &net->recipe->model.strides;
    for (int i = 0; i < filters->n; i++) {
        char name[32];
        snprintf(name, sizeof name, "conv%d", i + 1);
        qat_net_conv const conv = {.filters = filters->v[i],
                                   .kernel = net->recipe->model.kernel,
                                   .stride = strides->v[strides->n == 1 ? 0 : i],
                                   .activation = true};
        x = qat_net_conv_block(net, x, name, conv);
    }
    x = strcmp(net->recipe->model.head, "average") == 0
            ? qat_apply1(net->graph, "global_average_pool", "pool", "", x)
            : qat_apply1(net->graph, "flatten", "flatten", "", x);
    return qat_net_classifier(net, x, &net->recipe->model.hidden);
}

qat_node *qat_net_mlp(const qat_net *net, qat_node *x)
{
    x = qat_apply1(net->graph, "flatten", "flatten", "", x);
    return qat_net_classifier(net, x, &net->recipe->model.hidden);
}
