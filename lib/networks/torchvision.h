/** The names that torchvision's networks give their modules, and what they are called here. */
#ifndef QAT_NETWORKS_TORCHVISION_H
#define QAT_NETWORKS_TORCHVISION_H

#include "qat/train.h"

/** Does the recipe's network have a correspondence: resnet18, 34, 50, 101, 152, mobilenet_v2? */
bool qat_torchvision_has(const qat_recipe *recipe);

/**
 * The name here of a module of torchvision's state_dict, as "layer1.0.bn2" of a ResNet:
 * "stage1/block1/conv2/bn". False: torchvision's network has no module of that name.
 */
bool qat_torchvision_name(const qat_recipe *recipe, const char *module, char name[QAT_NAME_MAX]);

#endif
