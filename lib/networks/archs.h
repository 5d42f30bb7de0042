/** The table of networks by name: what a name decides, and how its network is built. */
#ifndef QAT_NETWORKS_ARCHS_H
#define QAT_NETWORKS_ARCHS_H

#include "qat/train.h"

typedef struct qat_net qat_net; /* network.h */

/** A network with a name. What the name says of keys is 0 where it leaves them to the recipe. */
typedef struct qat_net_arch {
    const char *name;
    qat_node *(*body)(const qat_net *net, qat_node *x); /* to logits; NULL: the recipe's layers */
    double multiplier;
    int depth;
    int resolution; /* side of its pictures */
    int width;      /* where the recipe gives none */
    int smallest;   /* side of the smallest picture */
    bool has_auxiliary;
    bool detects; /* body makes outputs and loss by itself */
} qat_net_arch;

/** All of them, in the order of QAT_ARCHS; a recipe's. */
const qat_net_arch *qat_net_archs(int *count);
const qat_net_arch *qat_net_arch_of(const qat_recipe *recipe);

#endif
