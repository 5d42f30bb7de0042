/**
 * Private to the rewrites. A float graph is first analysed, in the same way for training and for
 * evaluation (layer/layer.h, rewrite_classes.c). Then it is copied node by node in its order, and
 * nodes are inserted on the way (rewrite_layer.c, rewrite_quantize.c). Float nodes keep their
 * names, so that parameters are found by name. Inserted nodes are named after them:
 *
 *     <node>/q       fake_quant of a tensor          <node>/q/range   its observed range
 *     <weights>/q    fake_quant_weights              <weights>/fold   bn_fold_weights
 *     <node>/q/learned, <weights>/q/learned, <weights>/q/range     of quantizers that learn
 *     <weights>/q/frozen, <weights>/q/exponent     of inq_weights
 *     <weights>/q/frozen, <weights>/q/oscillation  of weights that may be frozen
 *     <node>/raw     conv and bias that only batch statistics are taken from
 *     <bn>/bias      bn_fold_bias (eval)
 *     <bn>/depthwise, <bn>/ones, <bn>/rank4, <bn>/back     a batch norm or bias of its own
 *     <concat>/in<i>/q   a member of fixed range, brought into the concatenation's class
 *     <conv>/in/q        what a convolution with input_bits reads
 */
#ifndef QAT_REWRITE_REWRITE_H
#define QAT_REWRITE_REWRITE_H

#include "layer/layer.h"

typedef enum rw_range {
    RW_UNQUANTIZED, /* a float: parameters, labels, results of ops without quant entry */
    RW_FLOAT,       /* a tensor of the network that the options leave in float */
    RW_FIXED,       /* softmax, logistic, tanh, graph inputs */
    RW_OBSERVED     /* by the observer of the class */
} rw_range;

/** The settings with which a node's layer is quantized. */
typedef struct rw_settings {
    int weight_bits, activation_bits;
    const qat_quant_layer *bits_from; /* the section that gives weight_bits; NULL: none does */
    int input_bits;                   /* 0: as they come */
    bool symmetric, per_tensor;       /* weights */
    bool power_of_two, is_float;
    double dampen;                       /* weights */
    int freeze_bits;                     /* weights with at most so many may be frozen */
    const qat_op *weights, *activations; /* quantizers */
} rw_settings;

/** What is known about one node of the float graph. */
typedef struct rw_info {
    bool is_output;
    bool copied;    /* part of the new graph */
    int origin;     /* the node whose codes it passes on (pools, reshapes); otherwise itself */
    rw_range range; /* of origin */
    int parent;     /* union-find over origins that share an observer */
    bool feeds;     /* quantized computation reads it, directly or through pools and reshapes */
} rw_info;

typedef struct rw_analysis {
    const qat_graph *graph;
    int count;
    rw_info *nodes;
    rw_settings *settings; /* by node; then by node, those of what it reads (rw_input_class) */
    qat_layering layering;
    qat_arena arena;
} rw_analysis;

/** The layer that the node is part of, or NULL. */
static inline const qat_layer *rw_layer_of(const rw_analysis *a, const qat_node *node)
{
    int const layer = a->layering.of[node->index];
    return layer < 0 ? NULL : &a->layering.layers[layer];
}

/** Select the nodes that the new graph needs, and find errors that are clear at once. */
qat_status rw_select(rw_analysis *a, bool training, qat_error *err);
/**
 * Settle with which settings each layer is quantized. Overrides that match nothing are an error.
 */
qat_status rw_settle(rw_analysis *a, const qat_quant_options *options, qat_error *err);
/**
 * Let tensors that are read with fewer bits by all their readers have so many (rewrite_narrow.c).
 * wanted: room for the nodes, zeros.
 */
void rw_narrow_tensors(rw_analysis *a, int *wanted);
/** The class of what this layer reads with input_bits, and the settings of these classes. */
int rw_input_class(const rw_analysis *a, const qat_node *reader);
void rw_input_settings(rw_analysis *a);
/** Do activations stay float, so that batch norms are not folded? */
bool rw_float_activation(const rw_settings *settings);
/** May tensors with these settings share quantization parameters? */
bool rw_same_codes(const rw_settings *x, const rw_settings *y);
/** List the layers that cannot become integers, separated by ", ", cut to fit. */
void rw_float_names(const rw_analysis *a, char *names, size_t max);
/** The first of them with the reason: "REASON cannot become integers: NAMES and 3 more; ...". */
void rw_float_reasons(const rw_analysis *a, char *text, size_t max);
/** Find which tensors share quantization parameters. */
void rw_classes(rw_analysis *a);
/**
 * The root of the class of an origin: its first member, after which the observed range is named.
 */
int rw_root(const rw_analysis *a, int node);

/* ------------------------------------------------------------------ making the new graph */

/** A tensor requantized into a class, of a concatenation or of what a layer reads. */
typedef struct rw_member {
    int tensor, root;
    qat_node *image;
} rw_member;

typedef struct rw_maker {
    rw_analysis *a;
    const qat_quant_options *options;
    bool training;
    bool floating;      /* no fake quantization: batch norm is folded into the parameters */
    qat_graph *graph;   /* the new one */
    qat_node **image;   /* by float node: the node that its readers read */
    qat_node **plain;   /* by float node: the node before its own fake_quant; by weights: the last
                           fake_quant of them */
    qat_node **raw;     /* by float node: the node for batch statistics */
    qat_node **range;   /* by class: its parameter. A class is its root, or rw_input_class */
    qat_node **learned; /* by class: its learned values, if it has any */
    qat_node **last;    /* by class: its last fake_quant so far */
    rw_member *members;
    int n_members;
    bool no_memory;
} rw_maker;

/** The image of a data input or parameter. Parameters are created when first needed. */
qat_node *rw_input(rw_maker *m, const qat_node *node);

/**
 * name = base + suffix. There is room for a name that is too long, so that the graph sees and
 * refuses it.
 */
enum { RW_NAME_MAX = 2 * QAT_NAME_MAX };
const char *rw_name(char name[RW_NAME_MAX], const char *base, const char *suffix);

/** Apply the float node's op with another name to images, with another first parameter. */
qat_node *rw_apply(rw_maker *m, const qat_node *node, const char *name, qat_node *first_param);
/** Copy the float node, which reads images; params[i], if not NULL, replaces its parameter i. */
qat_node *rw_apply_params(rw_maker *m, const qat_node *node, qat_node *const *params);
/** Copy the float node with other data. */
qat_node *rw_apply_data(rw_maker *m, const qat_node *node, qat_node *const *data);
/** Copy the float node, which reads images. */
qat_node *rw_copy(rw_maker *m, const qat_node *node);

/** May weights with these settings be frozen? */
static inline bool rw_freezes(const rw_settings *settings)
{
    return settings->weight_bits <= settings->freeze_bits;
}
/** The op for a quantizer's name, with this kind of scales. */
const qat_op *rw_quantizer_op(const qat_op *named, const rw_settings *settings);
/** Set the attributes of ops made by QAT_QUANTIZER_OP; other ops have none of them. */
void rw_learning_attrs(const rw_maker *m, const qat_op *op, const rw_settings *settings,
                       double attrs[QAT_MAX_ATTRS]);

/** The steps until quantization starts; 0 in an eval graph. */
int64_t rw_delay(const rw_maker *m, int64_t delay);

/** Make one node of a layer and set its image. */
void rw_make_layer_node(rw_maker *m, const qat_layer *layer, const qat_node *node);
/** The same in a float graph without batch norms (rewrite_fold.c). */
void rw_make_folded_node(rw_maker *m, const qat_layer *layer, const qat_node *node);
/** Set the parameters of that graph after it is planned. */
void rw_fill_folded(const rw_analysis *a, qat_graph *folded);
/** Make a CUSTOM node with quantized weights. */
qat_node *rw_make_custom(rw_maker *m, const qat_node *node);
/** Make a concatenation; members with a fixed range are requantized. */
qat_node *rw_make_concat(rw_maker *m, const qat_node *node);
/**
 * Make a fake_quant of value, which is the value of the float node `tensor`; or return value
 * itself.
 */
qat_node *rw_make_fake_quant(rw_maker *m, const qat_node *tensor, qat_node *value);
/** Make a fake_quant of value whose range is that of a class. */
qat_node *rw_make_observed(rw_maker *m, int root, const char *name, qat_node *value);
/** What a layer reads as its data input k: the image, or that with input_bits. */
qat_node *rw_narrowed(rw_maker *m, const qat_node *reader, int k);
/** Let the last fake_quant of every class take the step of its moving average. */
void rw_elect_committers(rw_maker *m);

#endif
