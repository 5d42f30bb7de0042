/** Networks by name: convnet, mlp, resnet (He et al. 2015, CIFAR form), mobilenet_v1. */
#include "train/network.h"

#include <stdio.h>

static qat_node *conv_node(const qat_net *net, qat_node *x, const char *name, qat_net_conv c)
{
    char attrs[160];
    bool const signal = net->input->height == 1; /* [N, 1, W, C]: nothing to do vertically */
    int const at =
        c.filters ? snprintf(attrs, sizeof attrs, "filters=%lld ", (long long)c.filters) : 0;
    snprintf(attrs + at, sizeof attrs - (size_t)at,
             "kernel=%lld kernel_w=%lld stride=%lld stride_w=%lld",
             signal ? 1LL : (long long)c.kernel, (long long)c.kernel,
             signal ? 1LL : (long long)c.stride, (long long)c.stride);
    return qat_apply1(net->graph, c.filters ? "conv2d" : "depthwise_conv2d", name, attrs, x);
}

qat_node *qat_net_batch_norm(const qat_net *net, qat_node *x, const char *name)
{
    char attrs[80];
    snprintf(attrs, sizeof attrs, "momentum=%.9g epsilon=%.9g", net->recipe->model.bn_momentum,
             net->recipe->model.bn_epsilon);
    return qat_apply1(net->graph, "batch_norm", name, attrs, x);
}

qat_node *qat_net_activation(const qat_net *net, qat_node *x, const char *name)
{
    char full[QAT_NAME_MAX];
    snprintf(full, sizeof full, "%s/relu", name);
    return qat_apply1(net->graph, net->recipe->model.activation ? "relu6" : "relu", full, "", x);
}

static qat_node *bias(const qat_net *net, qat_node *x, const char *name)
{
    char full[QAT_NAME_MAX];
    snprintf(full, sizeof full, "%s/bias", name);
    return qat_apply1(net->graph, "bias", full, "", x);
}

qat_node *qat_net_conv_block(const qat_net *net, qat_node *x, const char *name, qat_net_conv conv)
{
    char full[QAT_NAME_MAX];
    snprintf(full, sizeof full, "%s/bn", name);
    x = conv_node(net, x, name, conv);
    x = net->recipe->model.batch_norm ? qat_net_batch_norm(net, x, full) : bias(net, x, name);
    return conv.activation ? qat_net_activation(net, x, name) : x;
}

qat_node *qat_net_dense_block(const qat_net *net, qat_node *x, const char *name, int64_t units,
                              bool activation)
{
    char attrs[32];
    snprintf(attrs, sizeof attrs, "units=%lld", (long long)units);
    x = bias(net, qat_apply1(net->graph, "fully_connected", name, attrs, x), name);
    return activation ? qat_net_activation(net, x, name) : x;
}

/** Hidden layers, dropout, logits. */
static qat_node *classifier(const qat_net *net, qat_node *x, const qat_int_list *hidden)
{
    char text[32];
    for (int i = 0; hidden && i < hidden->n; i++) {
        snprintf(text, sizeof text, "fc%d", i + 1);
        x = qat_net_dense_block(net, x, text, hidden->v[i], true);
    }
    if (net->recipe->model.dropout > 0) {
        snprintf(text, sizeof text, "rate=%.9g", net->recipe->model.dropout);
        x = qat_apply1(net->graph, "dropout", "dropout", text, x);
    }
    return qat_net_dense_block(net, x, "logits", net->input->classes, false);
}

qat_node *qat_net_convnet(const qat_net *net, qat_node *x)
{
    const qat_int_list *filters = &net->recipe->model.filters;
    const qat_int_list *strides = &net->recipe->model.strides;
    for (int i = 0; i < filters->n; i++) {
        char name[32];
        snprintf(name, sizeof name, "conv%d", i + 1);
        int64_t const stride = strides->v[strides->n == 1 ? 0 : i];
        x = qat_net_conv_block(
            net, x, name, (qat_net_conv){filters->v[i], net->recipe->model.kernel, stride, true});
    }
    x = net->recipe->model.head == 0 ? qat_apply1(net->graph, "global_average_pool", "pool", "", x)
                                     : qat_apply1(net->graph, "flatten", "flatten", "", x);
    return classifier(net, x, &net->recipe->model.hidden);
}

qat_node *qat_net_mlp(const qat_net *net, qat_node *x)
{
    x = qat_apply1(net->graph, "flatten", "flatten", "", x);
    return classifier(net, x, &net->recipe->model.hidden);
}

/**
 *     x -- conv stride s - BN - ReLU - conv - BN -- add - ReLU
 *      \-- (1x1 conv stride s - BN, where the shape changes) --/
 */
static qat_node *residual_block(const qat_net *net, qat_node *x, const char *name, int64_t filters,
                                int64_t stride, bool project)
{
    char part[QAT_NAME_MAX];
    snprintf(part, sizeof part, "%s/conv1", name);
    qat_node *y = qat_net_conv_block(net, x, part, (qat_net_conv){filters, 3, stride, true});
    snprintf(part, sizeof part, "%s/conv2", name);
    y = qat_net_conv_block(net, y, part, (qat_net_conv){filters, 3, 1, false});
    snprintf(part, sizeof part, "%s/shortcut", name);
    if (project)
        x = qat_net_conv_block(net, x, part, (qat_net_conv){filters, 1, stride, false});
    snprintf(part, sizeof part, "%s/add", name);
    x = qat_apply2(net->graph, "add", part, "", y, x);
    return qat_net_activation(net, x, name);
}

qat_node *qat_net_resnet(const qat_net *net, qat_node *x)
{
    int64_t const blocks = (net->recipe->model.depth - 2) / 6;
    int64_t filters = net->recipe->model.width;
    x = qat_net_conv_block(net, x, "conv1", (qat_net_conv){filters, 3, 1, true});
    for (int stage = 1; stage <= 3; stage++) {
        for (int64_t b = 1; b <= blocks; b++) {
            char name[48];
            bool const smaller = stage > 1 && b == 1;
            snprintf(name, sizeof name, "stage%d/block%lld", stage, (long long)b);
            x = residual_block(net, x, name, filters, smaller ? 2 : 1, smaller);
        }
        filters *= 2;
    }
    x = qat_apply1(net->graph, "global_average_pool", "pool", "", x);
    return classifier(net, x, NULL);
}

/** Channels after the width multiplier, as the paper's authors round them: down, at least 8. */
static int64_t scaled(const qat_net *net, int64_t channels)
{
    int64_t const n = (int64_t)((double)channels * net->recipe->model.multiplier);
    return n < 8 ? 8 : n;
}

qat_node *qat_net_mobilenet_v1(const qat_net *net, qat_node *x)
{
    static const struct {
        int filters, stride;
    } blocks[] = {{64, 1},  {128, 2}, {128, 1}, {256, 2}, {256, 1},  {512, 2}, {512, 1},
                  {512, 1}, {512, 1}, {512, 1}, {512, 1}, {1024, 2}, {1024, 1}};
    x = qat_net_conv_block(
        net, x, "conv1", (qat_net_conv){scaled(net, 32), 3, net->recipe->model.first_stride, true});
    for (int i = 0; i < (int)(sizeof blocks / sizeof blocks[0]); i++) {
        char name[48];
        snprintf(name, sizeof name, "block%d/depthwise", i + 1);
        x = qat_net_conv_block(net, x, name, (qat_net_conv){0, 3, blocks[i].stride, true});
        snprintf(name, sizeof name, "block%d/pointwise", i + 1);
        x = qat_net_conv_block(net, x, name,
                               (qat_net_conv){scaled(net, blocks[i].filters), 1, 1, true});
    }
    x = qat_apply1(net->graph, "global_average_pool", "pool", "", x);
    return classifier(net, x, NULL);
}
