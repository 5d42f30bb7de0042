/**
 * Functions that build networks: by name (archs.c, a file per family) or layer by layer (layers.c).
 */
#ifndef QAT_NETWORKS_NETWORK_H
#define QAT_NETWORKS_NETWORK_H

#include "recipe/archs.h"
#include "recipe/recipe.h"

/**
 * A network that is being built. After an error in the graph, node functions take NULL and return
 * NULL.
 */
typedef struct qat_net {
    qat_graph *graph;
    const qat_recipe *recipe;
    const qat_input_info *input;
    qat_node **auxiliary; /* set to the logits of a second classifier that only training uses */
    qat_node **second;    /* set to the output of the head that the task has beside the logits */
} qat_net;

/** The numbers of a convolution; on signals of height 1 it is 1 x kernel. */
typedef struct qat_net_conv {
    int64_t filters; /* 0: depthwise */
    int64_t kernel, stride;
    int64_t kernel_w; /* 0: as kernel */
    bool activation;
    bool valid; /* no padding; otherwise that of the convention: TensorFlow's SAME, or PyTorch's */
} qat_net_conv;

/** Add conv - batch norm (or bias) - activation. The nodes are called name, name/bn, name/relu. */
qat_node *qat_net_conv_block(const qat_net *net, qat_node *x, const char *name, qat_net_conv conv);
/** Add fully connected - bias - activation. */
qat_node *qat_net_dense_block(const qat_net *net, qat_node *x, const char *name, int64_t units,
                              bool activation);
/** Add batch norm with the recipe's momentum and epsilon. */
qat_node *qat_net_batch_norm(const qat_net *net, qat_node *x, const char *name);
/** Add the recipe's activation, named "<name>/relu". */
qat_node *qat_net_activation(const qat_net *net, qat_node *x, const char *name);

/** Add fully connected layers of these sizes (NULL: none), dropout, and the logits. */
qat_node *qat_net_classifier(const qat_net *net, qat_node *x, const qat_int_list *hidden);
/** Add global average pooling, dropout, and the logits. */
qat_node *qat_net_pooled_classifier(const qat_net *net, qat_node *x);

qat_node *qat_net_convnet(const qat_net *net, qat_node *x);
qat_node *qat_net_mlp(const qat_net *net, qat_node *x);
qat_node *qat_net_resnet(const qat_net *net, qat_node *x);
qat_node *qat_net_resnet_imagenet(const qat_net *net, qat_node *x);
qat_node *qat_net_mobilenet_v1(const qat_net *net, qat_node *x);
qat_node *qat_net_mobilenet_v2(const qat_net *net, qat_node *x);
qat_node *qat_net_inception_v3(const qat_net *net, qat_node *x);
qat_node *qat_net_inception_small(const qat_net *net, qat_node *x);
qat_node *qat_net_mobilenet_ssd(const qat_net *net, qat_node *x);

/**
 * The network of the file that model.onnx or model.tflite names.
 * @param params  NULL: only the graph is wanted
 */
struct qat_foreign_params;
qat_status qat_net_imported(const qat_net *net, qat_node *x, struct qat_foreign_params *params,
                            qat_node **last, qat_error *err);
/**
 * Set the parameters of a planned graph of the recipe's network to those of the file; tell what was
 * taken.
 */
qat_status qat_net_fill_imported(qat_graph *graph, const qat_recipe *recipe,
                                 const qat_input_info *input, const qat_log *log, qat_error *err);

/** Layers with a state that are not one op but several: gru, lstm; NULL after the last. */
const qat_op *qat_net_cell_at(int i);
/** The one with this name; NULL: there is none. */
const qat_op *qat_net_cell_named(const char *name);
/** Add it, with these attributes, reading x. Its nodes are called name/...; returns its output. */
qat_node *qat_net_cell(const qat_net *net, const char *op, const char *name, const char *attributes,
                       qat_node *x);
/**
 * Replace the graph of one step by that of `steps` steps, which reads an input of shape `whole`.
 * @param last  the output of one step; then of the last step
 */
qat_status qat_net_unroll(qat_net *net, int steps, qat_shape whole, qat_node **last,
                          qat_error *err);

/** Names of nodes in a detector's graph: its outputs 0 and 1, and its targets. */
#define QAT_BOX_CODES_NAME      "boxes"
#define QAT_TARGET_CODES_NAME   "target_boxes"
#define QAT_TARGET_CLASSES_NAME "target_classes"

/** The name of the head that the task has beside the logits, and its outputs (0: none). */
const char *qat_net_second(const qat_net *net, int *outputs);

/**
 * Channels after the multiplier of MobileNet v1, rounded as in the authors' code: down, at least 8.
 */
int64_t qat_net_scaled_down(const qat_net *net, int64_t channels);

/**
 * Feature maps of a body without classifier, at 1/8, 1/16 and 1/32 of the picture's size. A
 * detector's heads read them.
 */
typedef struct qat_net_features {
    qat_node *stride8, *stride16, *stride32;
} qat_net_features;
qat_net_features qat_net_mobilenet_v1_body(const qat_net *net, qat_node *x);
/** stride16 is the expanded map inside block 14, as in SSDLite; stride8 is that of block 7. */
qat_net_features qat_net_mobilenet_v2_body(const qat_net *net, qat_node *x);

/**
 * Build a network layer by layer. The layer with the name of the task's second head is that head.
 * Errors name file and line.
 */
qat_status qat_net_layers(const qat_net *net, qat_node *x, qat_node **last, qat_error *err);

#endif
