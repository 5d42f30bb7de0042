/** What networks are built of, by name (archs.c, a file a family) or layer by layer (layers.c). */
#ifndef QAT_NETWORKS_NETWORK_H
#define QAT_NETWORKS_NETWORK_H

#include "networks/archs.h"

/** A network being built; node functions take NULL and return NULL after an error in the graph. */
struct qat_net {
    qat_graph *graph;
    const qat_recipe *recipe;
    const qat_input_info *input;
    qat_node *
        *auxiliary;   /* set to the logits of a second classifier, which is for training alone */
    qat_node **value; /* set to what a second head answers, where the samples have targets */
};

/** A convolution by its numbers; on signals of height 1 it is 1 x kernel. */
typedef struct qat_net_conv {
    int64_t filters; /* 0: depthwise */
    int64_t kernel, stride;
    int64_t kernel_w; /* 0: as kernel */
    bool activation;
    bool valid; /* no padding; else TensorFlow's SAME */
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

/** Fully connected layers of these sizes (NULL: none), dropout, the logits. */
qat_node *qat_net_classifier(const qat_net *net, qat_node *x, const qat_int_list *hidden);
/** Global average pooling, dropout, the logits. */
qat_node *qat_net_pooled_classifier(const qat_net *net, qat_node *x);

qat_node *qat_net_convnet(const qat_net *net, qat_node *x);
qat_node *qat_net_mlp(const qat_net *net, qat_node *x);
qat_node *qat_net_resnet(const qat_net *net, qat_node *x);
qat_node *qat_net_resnet_bottleneck(const qat_net *net, qat_node *x);
qat_node *qat_net_mobilenet_v1(const qat_net *net, qat_node *x);
qat_node *qat_net_mobilenet_v2(const qat_net *net, qat_node *x);
qat_node *qat_net_inception_v3(const qat_net *net, qat_node *x);
qat_node *qat_net_inception_small(const qat_net *net, qat_node *x);
qat_node *qat_net_mobilenet_ssd(const qat_net *net, qat_node *x);

/** Nodes of a detector's graph: what it answers (outputs 0 and 1), and what it learns. */
#define QAT_BOX_CODES_NAME      "boxes"
#define QAT_TARGET_CODES_NAME   "target_boxes"
#define QAT_TARGET_CLASSES_NAME "target_classes"

/** Of a network with heads for targets (heads.c): what they learn. */
#define QAT_TARGET_ATTRIBUTES_NAME "target_attributes"
#define QAT_TARGET_VALUE_NAME      "target_value"

/** How many outputs the recipe gives the head of the value (0: there is none); are they ordered
 *  steps, each a probability? */
int qat_net_value_outputs(const qat_recipe *recipe);
bool qat_net_value_is_ordered(const qat_recipe *recipe);
/** That head, before its logistic. */
qat_node *qat_net_value_head(const qat_net *net, qat_node *x);
/** Outputs and losses of both heads: scores, then what the value is read from. */
qat_status qat_net_attribute_ends(const qat_net *net, qat_node *logits, qat_error *err);

/** Channels after MobileNet v1's multiplier, as the authors' code rounds them: down, at least 8. */
int64_t qat_net_scaled_down(const qat_net *net, int64_t channels);

/** Feature maps of a body without its classifier, at 1/8, 1/16 and 1/32 of the picture's size:
 * where a detector's heads begin. */
typedef struct qat_net_features {
    qat_node *stride8, *stride16, *stride32;
} qat_net_features;
qat_net_features qat_net_mobilenet_v1_body(const qat_net *net, qat_node *x);
/** stride16 is the expanded map inside block 14, as SSDLite takes it; stride8 likewise block 7's.
 */
qat_net_features qat_net_mobilenet_v2_body(const qat_net *net, qat_node *x);

/** Layer by layer; for samples with targets, the layer "value" is the second head. Errors of this
 *  one name file and line. */
qat_status qat_net_layers(const qat_net *net, qat_node *x, qat_node **last, qat_error *err);

#endif
