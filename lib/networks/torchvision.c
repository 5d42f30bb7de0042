#include "networks/torchvision.h"

#include "recipe/archs.h"

#include <stdio.h>
#include <string.h>

/** Does the whole text match the pattern? Its numbers go to a, b, c. The pattern ends with %n. A
 * number has at most 4 digits, so that it fits. */
#define FITS(text, pattern, ...)                                                                   \
    (end = -1, sscanf(text, pattern, __VA_ARGS__, &end), is_end(text, end))

static bool is_end(const char *text, int end)
{
    return end > 0 && !text[end];
}

/**
 *     conv1, bn1                       conv1, conv1/bn
 *     layerS.B.convK, .bnK             stageS/block(B+1)/convK, .../convK/bn
 *     layerS.B.downsample.0, .1        stageS/block(B+1)/shortcut, .../shortcut/bn
 *     fc                               logits
 */
static bool resnet_name(const char *module, char name[QAT_NAME_MAX])
{
    int stage, block, conv, end;
    if (!strcmp(module, "conv1") || !strcmp(module, "bn1"))
        snprintf(name, QAT_NAME_MAX, "conv1%s", *module == 'b' ? "/bn" : "");
    else if (!strcmp(module, "fc"))
        snprintf(name, QAT_NAME_MAX, "logits");
    else if (FITS(module, "layer%4d.%4d.conv%4d%n", &stage, &block, &conv))
        snprintf(name, QAT_NAME_MAX, "stage%d/block%d/conv%d", stage, block + 1, conv);
    else if (FITS(module, "layer%4d.%4d.bn%4d%n", &stage, &block, &conv))
        snprintf(name, QAT_NAME_MAX, "stage%d/block%d/conv%d/bn", stage, block + 1, conv);
    else if (FITS(module, "layer%4d.%4d.downsample.%4d%n", &stage, &block, &conv) && conv <= 1)
        snprintf(name, QAT_NAME_MAX, "stage%d/block%d/shortcut%s", stage, block + 1,
                 conv ? "/bn" : "");
    else
        return false;
    return true;
}

/**
 *     features.0.0, .1                         conv1, conv1/bn
 *     features.1.conv.0.0, .0.1, .1, .2        block1: depthwise, its bn, project, its bn
 *     features.B.conv.0.0 ... .1.1, .2, .3     blockB: expand, depthwise, project, each with its bn
 *     features.18.0, .1                        conv_last, conv_last/bn
 *     classifier.1                             logits
 */
static bool mobilenet_v2_name(const char *module, char name[QAT_NAME_MAX])
{
    enum { LAST = 18 };
    static const char *const parts[] = {"expand", "depthwise", "project"};
    int block, part, which = 0, end;
    if (!strcmp(module, "classifier.1")) {
        snprintf(name, QAT_NAME_MAX, "logits");
        return true;
    }
    if (FITS(module, "features.%4d.%4d%n", &block, &which) && (block == 0 || block == LAST)) {
        snprintf(name, QAT_NAME_MAX, "%s%s", block ? "conv_last" : "conv1", which ? "/bn" : "");
        return which <= 1;
    }
    bool const nested = FITS(module, "features.%4d.conv.%4d.%4d%n", &block, &part, &which);
    if (!nested && !FITS(module, "features.%4d.conv.%4d%n", &block, &part))
        return false;
    part += block == 1; /* the first block does not expand */
    if (!nested && part == 3) {
        part = 2;
        which = 1;
    }
    if (part > 2 || nested == (part == 2))
        return false;
    snprintf(name, QAT_NAME_MAX, "block%d/%s%s", block, parts[part], which ? "/bn" : "");
    return which <= 1;
}

static bool is_resnet(const qat_recipe *r)
{
    const qat_net_arch *a = qat_net_arch_of(r);
    return !strncmp(a->name, "resnet", 6) && a->width > 0; /* ImageNet's form */
}

static bool is_mobilenet_v2(const qat_recipe *r)
{
    return !strcmp(qat_net_arch_of(r)->name, "mobilenet_v2");
}

bool qat_torchvision_has(const qat_recipe *r)
{
    return is_resnet(r) || is_mobilenet_v2(r);
}

bool qat_torchvision_name(const qat_recipe *r, const char *module, char name[QAT_NAME_MAX])
{
    return is_resnet(r)         ? resnet_name(module, name)
           : is_mobilenet_v2(r) ? mobilenet_v2_name(module, name)
                                : false;
}
