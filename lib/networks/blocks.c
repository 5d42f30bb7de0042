/**
 * The blocks of networks: a convolution or fully connected layer, then batch norm or bias, then an
 * activation.
 */
#include "autograd/ops/curves.h"
#include "base/number.h"
#include "networks/network.h"
#include "recipe/recipe.h"

#include <stdio.h>

/** The padding attribute: "valid", "same", or PyTorch's pixels, equal on both sides, which keep the
 *  size at stride 1. */
static void padding_of(const qat_net *net, const qat_net_conv *c, int64_t kernel_h,
                       int64_t kernel_w, char text[48])
{
    if (c->valid || !qat_net_follows_pytorch(net->recipe))
        snprintf(text, 48, "%s", c->valid ? "valid" : "same");
    else
        snprintf(text, 48, "%lld,%lld", (long long)(kernel_h - 1) / 2,
                 (long long)(kernel_w - 1) / 2);
}

static qat_node *conv_node(const qat_net *net, qat_node *x, const char *name, qat_net_conv c)
{
    char attrs[192], padding[48];
    bool const signal =
        net->input->height == 1; /* [N, 1, W, C] has no second row, so the kernel has height 1 */
    int const at =
        c.filters ? snprintf(attrs, sizeof attrs, "filters=%lld ", (long long)c.filters) : 0;
    int64_t const kernel_h = signal ? 1 : c.kernel, kernel_w = c.kernel_w ? c.kernel_w : c.kernel;
    padding_of(net, &c, kernel_h, kernel_w, padding);
    snprintf(attrs + at, sizeof attrs - (size_t)at,
             "kernel=%lld kernel_w=%lld stride=%lld stride_w=%lld padding=%s", (long long)kernel_h,
             (long long)kernel_w, signal ? 1LL : (long long)c.stride, (long long)c.stride, padding);
    return qat_apply1(net->graph, c.filters ? "conv2d" : "depthwise_conv2d", name, attrs, x);
}

qat_node *qat_net_batch_norm(const qat_net *net, qat_node *x, const char *name)
{
    char attrs[80];
    qat_format(attrs, sizeof attrs, "momentum=%.9g epsilon=%.9g", net->recipe->model.bn_momentum,
               net->recipe->model.bn_epsilon);
    return qat_apply1(net->graph, "batch_norm", name, attrs, x);
}

#define OP_NAME(op, ...) #op,

/* Every activation is called so, as in checkpoints there already are. */
qat_node *qat_net_activation(const qat_net *net, qat_node *x, const char *name)
{
    static const char *const ops[] = {QAT_ACTIVATIONS(OP_NAME)};
    char full[QAT_NAME_MAX];
    snprintf(full, sizeof full, "%s/relu", name);
    return qat_apply1(net->graph, ops[net->recipe->model.activation], full, "", x);
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

qat_node *qat_net_classifier(const qat_net *net, qat_node *x, const qat_int_list *hidden)
{
    char text[32];
    int outputs;
    const char *second = qat_net_second(net, &outputs);
    for (int i = 0; hidden && i < hidden->n; i++) {
        snprintf(text, sizeof text, "fc%d", i + 1);
        x = qat_net_dense_block(net, x, text, hidden->v[i], true);
    }
    if (net->recipe->model.dropout > 0) {
        qat_format(text, sizeof text, "rate=%.9g", net->recipe->model.dropout);
        x = qat_apply1(net->graph, "dropout", "dropout", text, x);
    }
    if (outputs)
        *net->second = qat_net_dense_block(net, x, second, outputs, false);
    return qat_net_dense_block(net, x, "logits", net->input->classes, false);
}

qat_node *qat_net_pooled_classifier(const qat_net *net, qat_node *x)
{
    return qat_net_classifier(net, qat_apply1(net->graph, "global_average_pool", "pool", "", x),
                              NULL);
}
