/** Translates the names of modules in torchvision's networks to the names of layers here. */
#ifndef QAT_NETWORKS_TORCHVISION_H
#define QAT_NETWORKS_TORCHVISION_H

#include "qat/train.h"

/** Can names be translated for the recipe's network: resnet18, 34, 50, 101, 152, mobilenet_v2? */
bool qat_torchvision_has(const qat_recipe *recipe);

/**
 * Translate the name of a module in torchvision's state_dict. Example: "layer1.0.bn2" of a ResNet
 * becomes "stage1/block1/conv2/bn". False: torchvision's network has no module of that name.
 */
bool qat_torchvision_name(const qat_recipe *recipe, const char *module, char name[QAT_NAME_MAX]);

#endif
