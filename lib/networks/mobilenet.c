/**
 * MobileNets: v1 (Howard et al.: MobileNets, 2017) and v2 (Sandler et al.: MobileNetV2: Inverted
 * Residuals and Linear Bottlenecks, 2018), all channels times the recipe's multiplier.
 *
 *     v1 block   3x3 depthwise stride s - 1x1 conv c
 *     v2 block   x -- 1x1 conv t n (not where t = 1) - 3x3 depthwise stride s - 1x1 conv c, linear
 *                 \---------------------------------- where s = 1 and n = c ---------------------+
 *
 * n is the number of channels of the block's input. Each convolution except the linear one has
 * batch norm and the recipe's activation. A body can also be built without the classifier, for a
 * detector.
 */
#include "networks/network.h"
#include "recipe/recipe.h"

#include <stdio.h>

typedef struct row {
    int filters, stride;
} row;

static qat_node *part(const qat_net *net, qat_node *x, int block, const char *which,
                      qat_net_conv conv)
{
    char name[48];
    snprintf(name, sizeof name, "block%d/%s", block, which);
    return qat_net_conv_block(net, x, name, conv);
}

static qat_net_conv pointwise(int64_t filters, bool activation)
{
    return (qat_net_conv){filters, 1, 1, .activation = activation};
}

static qat_net_conv depthwise(int64_t stride)
{
    return (qat_net_conv){0, 3, stride, .activation = true};
}

/* ------------------------------------------------------------------ v1 */

int64_t qat_net_scaled_down(const qat_net *net, int64_t channels)
{
    int64_t const n = (int64_t)((double)channels * net->recipe->model.multiplier);
    return n < 8 ? 8 : n;
}

qat_net_features qat_net_mobilenet_v1_body(const qat_net *net, qat_node *x)
{
    static const row rows[] = {{64, 1},  {128, 2},  {128, 1}, {256, 2}, {256, 1},
                               {512, 2}, {512, 1},  {512, 1}, {512, 1}, {512, 1},
                               {512, 1}, {1024, 2}, {1024, 1}};
    enum { LAST_OF_STRIDE_8 = 5, LAST_OF_STRIDE_16 = 11 };
    qat_net_features found = {0};
    x = qat_net_conv_block(net, x, "conv1",
                           (qat_net_conv){qat_net_scaled_down(net, 32), 3,
                                          net->recipe->model.first_stride, .activation = true});
    for (int i = 1; i <= (int)(sizeof rows / sizeof rows[0]); i++) {
        const row *r = &rows[i - 1];
        x = part(net, x, i, "depthwise", depthwise(r->stride));
        x = part(net, x, i, "pointwise", pointwise(qat_net_scaled_down(net, r->filters), true));
        if (i == LAST_OF_STRIDE_8)
            found.stride8 = x;
        if (i == LAST_OF_STRIDE_16)
            found.stride16 = x;
    }
    found.stride32 = x;
    return found;
}

qat_node *qat_net_mobilenet_v1(const qat_net *net, qat_node *x)
{
    return qat_net_pooled_classifier(net, qat_net_mobilenet_v1_body(net, x).stride32);
}

/* ------------------------------------------------------------------ v2 */

/**
 * Channels after the multiplier: the nearest multiple of 8, but at least 90 % of the exact number.
 */
static int64_t scaled_to_8(const qat_net *net, int channels, double multiplier)
{
    double const exact = channels * multiplier;
    int64_t n = (int64_t)(exact + 4) / 8 * 8;
    n = n < 8 ? 8 : n;
    return (double)n < 0.9 * exact ? n + 8 : n;
}

/** One inverted residual. *inside is its expanded feature map, before the depthwise convolution. */
static qat_node *inverted_residual(const qat_net *net, qat_node *x, int block, int expansion, row r,
                                   qat_node **inside)
{
    char name[48];
    int64_t const in = x ? qat_shape_channels(&x->shape) : 1;
    int64_t const out = scaled_to_8(net, r.filters, net->recipe->model.multiplier);
    qat_node *y = x;
    if (expansion > 1)
        y = part(net, y, block, "expand", pointwise(expansion * in, true));
    *inside = y;
    y = part(net, y, block, "depthwise", depthwise(r.stride));
    y = part(net, y, block, "project", pointwise(out, false));
    if (r.stride != 1 || in != out)
        return y;
    snprintf(name, sizeof name, "block%d/add", block);
    return qat_apply2(net->graph, "add", name, "", y, x);
}

qat_net_features qat_net_mobilenet_v2_body(const qat_net *net, qat_node *x)
{
    static const struct {
        int expansion, filters, blocks, stride;
    } groups[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                  {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
    enum { GROUP_OF_STRIDE_16 = 3, GROUP_OF_STRIDE_32 = 5 };
    double const multiplier = net->recipe->model.multiplier;
    qat_net_features found = {0};
    int block = 0;
    x = qat_net_conv_block(net, x, "conv1",
                           (qat_net_conv){scaled_to_8(net, 32, multiplier), 3,
                                          net->recipe->model.first_stride, .activation = true});
    for (int g = 0; g < (int)(sizeof groups / sizeof groups[0]); g++)
        for (int i = 0; i < groups[g].blocks; i++) {
            row const r = {groups[g].filters, i ? 1 : groups[g].stride};
            qat_node *inside;
            x = inverted_residual(net, x, ++block, groups[g].expansion, r, &inside);
            if (g == GROUP_OF_STRIDE_16 && i == 0)
                found.stride8 = inside;
            if (g == GROUP_OF_STRIDE_32 && i == 0)
                found.stride16 = inside;
        }
    found.stride32 = qat_net_conv_block(
        net, x, "conv_last",
        pointwise(scaled_to_8(net, 1280, multiplier > 1 ? multiplier : 1), true));
    return found;
}

qat_node *qat_net_mobilenet_v2(const qat_net *net, qat_node *x)
{
    return qat_net_pooled_classifier(net, qat_net_mobilenet_v2_body(net, x).stride32);
}
