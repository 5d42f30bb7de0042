/**
 * The table of networks by name: which keys a name sets, and what its recipe may say. How a
 * family's networks are built is in lib/networks.
 */
#ifndef QAT_RECIPE_ARCHS_H
#define QAT_RECIPE_ARCHS_H

#include "recipe/recipe.h"

/** Networks that one function builds. */
typedef enum qat_family {
    QAT_FAMILY_LAYERS, /* the recipe has the layers */
    QAT_FAMILY_CONVNET,
    QAT_FAMILY_MLP,
    QAT_FAMILY_RESNET, /* of CIFAR-10 */
    QAT_FAMILY_RESNET_IMAGENET,
    QAT_FAMILY_MOBILENET_V1,
    QAT_FAMILY_MOBILENET_V2,
    QAT_FAMILY_INCEPTION_V3,
    QAT_FAMILY_INCEPTION_SMALL,
    QAT_FAMILY_MOBILENET_SSD,
    QAT_FAMILY_IMPORTED /* of another framework's file */
} qat_family;

/** A network with a name. A key that the name does not set is 0 here; the recipe sets it. */
typedef struct qat_net_arch {
    const char *name;
    qat_family family;
    double multiplier;
    int depth;
    int resolution; /* side of its pictures in pixels */
    int width;      /* default for the recipe's width */
    int smallest;   /* side of the smallest picture that it takes */
    bool has_auxiliary;
    bool tensorflow_only; /* model.convention = pytorch is an error */
    bool detects;         /* body also makes the outputs and the loss */
} qat_net_arch;

/** All networks, in the order of QAT_ARCHS; and the network of a recipe. */
const qat_net_arch *qat_net_archs(int *count);
const qat_net_arch *qat_net_arch_of(const qat_recipe *recipe);

/** Is the network that of a file? */
static inline bool qat_net_is_imported(const qat_recipe *recipe)
{
    return qat_net_arch_of(recipe)->family == QAT_FAMILY_IMPORTED;
}
/** The file of an imported network and the key that names it; "": there is none. */
static inline const char *qat_net_file(const qat_recipe *recipe)
{
    return *recipe->model.onnx ? recipe->model.onnx : recipe->model.tflite;
}
static inline const char *qat_net_file_key(const qat_recipe *recipe)
{
    return *recipe->model.tflite ? "tflite" : "onnx";
}
/** Does a run begin with weights from a file? */
static inline bool qat_net_has_weights(const qat_recipe *recipe)
{
    return *recipe->train.init || *qat_net_file(recipe);
}
/** The outputs of the new last layer of an imported network; 0: it keeps its own. */
int qat_net_head(const qat_recipe *recipe);
/** A number in 1..65536, or 0. */
int qat_head_outputs(const char *head);

/** Does the recipe's network follow PyTorch's conventions? See qat_convention. */
bool qat_net_follows_pytorch(const qat_recipe *recipe);

#endif
