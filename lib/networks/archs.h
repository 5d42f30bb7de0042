/** The table of networks by name: which keys a name sets, and how its network is built. */
#ifndef QAT_NETWORKS_ARCHS_H
#define QAT_NETWORKS_ARCHS_H

#include "qat/train.h"

typedef struct qat_net qat_net; /* network.h */

/** A network with a name. A key that the name does not set is 0 here; the recipe sets it. */
typedef struct qat_net_arch {
    const char *name;
    qat_node *(*body)(const qat_net *net,
                      qat_node *x); /* returns the logits; NULL: the recipe has the layers */
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

/** Does the recipe's network follow PyTorch's conventions? See qat_convention. */
bool qat_net_follows_pytorch(const qat_recipe *recipe);

#endif
