/**
 * Residual networks (He, Zhang, Ren, Sun: Deep Residual Learning for Image Recognition, 2015).
 *
 *     CIFAR form, depth 6n + 2           ImageNet form
 *     conv 3x3, w                        conv 7x7 stride 2, w; max pool 3x3 stride 2
 *     3 stages of n blocks of two 3x3:   4 stages of w, 2w, 4w, 8w channels:
 *     w, 2w, 4w channels                 depths 18, 34: blocks of two 3x3
 *                                        depths 50, 101, 152: bottlenecks 1x1 - 3x3 - 1x1, with 4
 *                                        times as many channels outside
 *
 * w is the width. Every stage but the first begins with stride 2. As in the paper, the first
 * convolution of its first block and the shortcut have this stride. A shortcut is a 1x1 convolution
 * if the shape changes, otherwise the identity. The recipe's convention decides the padding:
 * TensorFlow's SAME, or PyTorch's, whose bottlenecks also have the stride in their 3x3.
 */
#include "networks/network.h"
#include "recipe/recipe.h"

#include <stdio.h>

/** The place of a block, and its channels. */
typedef struct block {
    const char *name;
    int64_t filters, stride;
    bool project;
} block;

static qat_node *part(const qat_net *net, qat_node *x, const block *b, const char *which,
                      qat_net_conv conv)
{
    char name[QAT_NAME_MAX];
    snprintf(name, sizeof name, "%s/%s", b->name, which);
    return qat_net_conv_block(net, x, name, conv);
}

/**
 *     x -- convolutions, the last one linear -------------------- add - activation
 *      \-- (1x1 conv stride s - BN, where the shape changes) --/
 */
static qat_node *add_shortcut(const qat_net *net, qat_node *x, qat_node *y, const block *b,
                              int64_t filters)
{
    char name[QAT_NAME_MAX];
    if (b->project)
        x = part(net, x, b, "shortcut",
                 (qat_net_conv){.filters = filters, .kernel = 1, .stride = b->stride});
    snprintf(name, sizeof name, "%s/add", b->name);
    return qat_net_activation(net, qat_apply2(net->graph, "add", name, "", y, x), b->name);
}

static qat_node *basic_block(const qat_net *net, qat_node *x, const block *b)
{
    qat_net_conv const first = {b->filters, 3, b->stride, .activation = true};
    qat_net_conv const second = {b->filters, 3, 1, .activation = false};
    qat_node *y = part(net, part(net, x, b, "conv1", first), b, "conv2", second);
    return add_shortcut(net, x, y, b, b->filters);
}

static qat_node *bottleneck(const qat_net *net, qat_node *x, const block *b)
{
    bool const late = qat_net_follows_pytorch(net->recipe);
    qat_net_conv const down = {b->filters, 1, late ? 1 : b->stride, .activation = true};
    qat_net_conv const middle = {b->filters, 3, late ? b->stride : 1, .activation = true};
    qat_net_conv const up = {4 * b->filters, 1, 1, .activation = false};
    qat_node *y = part(net, part(net, x, b, "conv1", down), b, "conv2", middle);
    return add_shortcut(net, x, part(net, y, b, "conv3", up), b, 4 * b->filters);
}

typedef qat_node *block_fn(const qat_net *net, qat_node *x, const block *b);

/**
 * Add stage 1, 2, ... Bottlenecks have a 1x1 shortcut in the first stage too, because its channels
 * change.
 */
static qat_node *add_stage(const qat_net *net, qat_node *x, int stage, int64_t blocks,
                           block_fn *add_block)
{
    for (int64_t i = 1; i <= blocks; i++) {
        char name[48];
        snprintf(name, sizeof name, "stage%d/block%lld", stage, (long long)i);
        block const b = {.name = name,
                         .filters = net->recipe->model.width << (stage - 1),
                         .stride = stage > 1 && i == 1 ? 2 : 1,
                         .project = i == 1 && (stage > 1 || add_block == bottleneck)};
        x = add_block(net, x, &b);
    }
    return x;
}

qat_node *qat_net_resnet(const qat_net *net, qat_node *x)
{
    int64_t const blocks = (net->recipe->model.depth - 2) / 6;
    x = qat_net_conv_block(net, x, "conv1",
                           (qat_net_conv){net->recipe->model.width, 3, 1, .activation = true});
    for (int stage = 1; stage <= 3; stage++)
        x = add_stage(net, x, stage, blocks, basic_block);
    return qat_net_pooled_classifier(net, x);
}

qat_node *qat_net_resnet_imagenet(const qat_net *net, qat_node *x)
{
    static const struct {
        int depth, blocks[4];
        block_fn *add_block;
    } forms[] = {{18, {2, 2, 2, 2}, basic_block},
                 {34, {3, 4, 6, 3}, basic_block},
                 {50, {3, 4, 6, 3}, bottleneck},
                 {101, {3, 4, 23, 3}, bottleneck},
                 {152, {3, 8, 36, 3}, bottleneck}};
    int form = 0;
    while (forms[form].depth != net->recipe->model.depth && form < 4)
        form++;
    x = qat_net_conv_block(net, x, "conv1",
                           (qat_net_conv){net->recipe->model.width, 7, 2, .activation = true});
    x = qat_apply1(net->graph, "max_pool2d", "max_pool",
                   qat_net_follows_pytorch(net->recipe) ? "kernel=3 stride=2 padding=1"
                                                        : "kernel=3 stride=2 padding=same",
                   x);
    for (int stage = 1; stage <= 4; stage++)
        x = add_stage(net, x, stage, forms[form].blocks[stage - 1], forms[form].add_block);
    return qat_net_pooled_classifier(net, x);
}
