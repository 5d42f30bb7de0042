/** Building blocks shared by the named architectures (archs.c) and the layers of a recipe. */
#ifndef QAT_TRAIN_NETWORK_H
#define QAT_TRAIN_NETWORK_H

#include "qat/train.h"

/** A network being built; node functions take NULL and return NULL after an error in the graph. */
typedef struct qat_net {
    qat_graph *graph;
    const qat_recipe *recipe;
    const qat_input_info *input;
} qat_net;

/** A convolution by its numbers; on signals of height 1 it is 1 x kernel. */
typedef struct qat_net_conv {
    int64_t filters; /* 0: depthwise */
    int64_t kernel, stride;
    bool activation;
} qat_net_conv;

/** conv - batch norm (or bias) - activation, as nodes name, name/bn, name/relu. */
qat_node *qat_net_conv_block(const qat_net *net, qat_node *x, const char *name, qat_net_conv conv);
/** fully connected - bias - activation. */
qat_node *qat_net_dense_block(const qat_net *net, qat_node *x, const char *name, int64_t units,
                              bool activation);
/** Batch norm with the recipe's momentum and epsilon. */
qat_node *qat_net_batch_norm(const qat_net *net, qat_node *x, const char *name);
/** The recipe's activation, named "<name>/relu". */
qat_node *qat_net_activation(const qat_net *net, qat_node *x, const char *name);

/** The bodies: from the input to logits. */
qat_node *qat_net_convnet(const qat_net *net, qat_node *x);
qat_node *qat_net_mlp(const qat_net *net, qat_node *x);
qat_node *qat_net_resnet(const qat_net *net, qat_node *x);
qat_node *qat_net_mobilenet_v1(const qat_net *net, qat_node *x);
/** Errors of this one name file and line. */
qat_status qat_net_layers(const qat_net *net, qat_node *x, qat_node **last, qat_error *err);

#endif
