/**
 * The rewrites' inner parts. A float graph is first analysed, the same way for training and for
 * evaluation (rewrite_fuse.c, rewrite_classes.c), then copied node by node in its own order, with
 * nodes inserted on the way (rewrite_layer.c, rewrite_quantize.c). Float nodes keep their names, so
 * that parameters are found by name; inserted nodes are named after them:
 *
 *     <node>/q       fake_quant of a tensor          <node>/q/range   its observed range
 *     <weights>/q    fake_quant_weights              <weights>/fold   bn_fold_weights
 *     <node>/q/learned, <weights>/q/learned, <weights>/q/range     of quantizers that learn
 *     <weights>/q/frozen, <weights>/q/exponent     of inq_weights
 *     <node>/raw     conv and bias that only batch statistics are taken from
 *     <bn>/bias      bn_fold_bias (eval)
 *     <bn>/depthwise, <bn>/ones, <bn>/rank4, <bn>/back     a batch norm or bias of its own
 *     <concat>/in<i>/q   a member of fixed range, brought into the concatenation's class
 */
#ifndef QAT_FAKEQUANT_REWRITE_H
#define QAT_FAKEQUANT_REWRITE_H

#include "base/arena.h"
#include "qat/quant.h"

/**
 * What one integer layer will compute: nodes of the float graph, NULL where absent. A layer without
 * head is a batch norm, a bias or an activation that belongs to no op before it.
 */
typedef struct rw_layer {
    const qat_node *head; /* conv, depthwise, FC, add, mul */
    const qat_node *bias, *bn, *activation;
    const qat_node *first, *last;
} rw_layer;

typedef enum rw_range {
    RW_UNQUANTIZED, /* a float: parameters, labels, what ops without quant entry compute */
    RW_FLOAT,       /* a tensor of the network that was asked to be left in float */
    RW_FIXED,       /* softmax, logistic, tanh, graph inputs */
    RW_OBSERVED     /* by the class's observer */
} rw_range;

/** What a node's layer is quantized with. */
typedef struct rw_settings {
    int weight_bits, activation_bits;
    bool symmetric, per_tensor; /* weights */
    bool power_of_two, is_float;
    const qat_op *weights, *activations; /* quantizers */
} rw_settings;

/** What is known of one node of the float graph. */
typedef struct rw_info {
    int layer;                   /* index in layers, or -1 */
    const qat_node *sole_reader; /* the only node that reads it, in one place; NULL: none such */
    bool is_output;
    bool copied;    /* part of the new graph */
    int origin;     /* the node whose codes it passes on (pools, reshapes); itself otherwise */
    rw_range range; /* of origin */
    int parent;     /* union-find over origins that share an observer */
    bool feeds;     /* quantized computation, if only through pools and reshapes */
} rw_info;

typedef struct rw_analysis {
    const qat_graph *graph;
    int count;
    rw_info *nodes;
    rw_settings *settings; /* by node */
    rw_layer *layers;
    int n_layers;
    qat_arena arena;
} rw_analysis;

/** Role of a node with an op that has a quant entry. */
static inline bool rw_has_role(const qat_node *node, qat_quant_role role)
{
    return node->op && node->op->quant && node->op->quant->role == role;
}

/** Nodes that the new graph needs, and what can be refused at once. */
qat_status rw_select(rw_analysis *a, bool training, qat_error *err);
/** Which op owns which bias, batch norm and activation. */
void rw_fuse(rw_analysis *a);
/** What each layer is quantized with; overrides that match nothing are refused. */
qat_status rw_settle(rw_analysis *a, const qat_quant_options *options, qat_error *err);
/** Are activations float, and batch norms not folded? */
bool rw_float_activation(const rw_settings *settings);
/** May tensors with these settings share quantization parameters? */
bool rw_same_codes(const rw_settings *x, const rw_settings *y);
/** Layers that cannot become integers, separated by ", ", cut to fit. */
void rw_float_names(const rw_analysis *a, char *names, size_t max);
/** The same with why: "REASON cannot become integers: NAMES; ...". */
void rw_float_reasons(const rw_analysis *a, char *text, size_t max);
/** Which tensors share quantization parameters. */
void rw_classes(rw_analysis *a);
/** Root of the class of an origin: its first member, whose name the observed range has. */
int rw_root(const rw_analysis *a, int node);

/* ------------------------------------------------------------------ making the new graph */

/** A tensor requantized into a class. */
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
    qat_node **image;   /* by float node: what its readers read */
    qat_node **plain;   /* by float node: the same before its own fake_quant */
    qat_node **raw;     /* by float node: for batch statistics */
    qat_node **range;   /* by class root: its parameter */
    qat_node **learned; /* by class root: its learned values, where it has any */
    qat_node **last;    /* by class root: its last fake_quant so far */
    rw_member *members;
    int n_members;
    bool no_memory;
} rw_maker;

/** Image of a data input or parameter; parameters are created when first needed. */
qat_node *rw_input(rw_maker *m, const qat_node *node);

/** name = base + suffix, long enough for the graph to see, and refuse, a name that is too long. */
enum { RW_NAME_MAX = 2 * QAT_NAME_MAX };
const char *rw_name(char name[RW_NAME_MAX], const char *base, const char *suffix);

/** The float node's op under a name of its own, on images, with another first parameter. */
qat_node *rw_apply(rw_maker *m, const qat_node *node, const char *name, qat_node *first_param);
/** The float node, reading images; params[i], where not NULL, replaces its parameter i. */
qat_node *rw_apply_params(rw_maker *m, const qat_node *node, qat_node *const *params);
/** The float node, reading other data. */
qat_node *rw_apply_data(rw_maker *m, const qat_node *node, qat_node *const *data);
/** The float node, reading images. */
qat_node *rw_copy(rw_maker *m, const qat_node *node);

/** The op that a quantizer's name stands for, on this kind of scales. */
const qat_op *rw_quantizer_op(const qat_op *named, const rw_settings *settings);
/** Attributes of ops made by QAT_QUANTIZER_OP; of the others: none. */
void rw_learning_attrs(const rw_maker *m, const qat_op *op, const rw_settings *settings,
                       double attrs[QAT_MAX_ATTRS]);

/** Steps until quantization begins: 0 in an eval graph. */
int64_t rw_delay(const rw_maker *m, int64_t delay);

/** One node of a layer; sets its image. */
void rw_make_layer_node(rw_maker *m, const rw_layer *layer, const qat_node *node);
/** The same in a float graph without batch norms (rewrite_fold.c). */
void rw_make_folded_node(rw_maker *m, const rw_layer *layer, const qat_node *node);
/** That graph's parameters, once it is planned. */
void rw_fill_folded(const rw_analysis *a, qat_graph *folded);
/** A CUSTOM node, its weights quantized. */
qat_node *rw_make_custom(rw_maker *m, const qat_node *node);
/** A concatenation, its members of fixed range requantized. */
qat_node *rw_make_concat(rw_maker *m, const qat_node *node);
/** A fake_quant on value, for the float node `tensor` it is the value of; or value itself. */
qat_node *rw_make_fake_quant(rw_maker *m, const qat_node *tensor, qat_node *value);
/** Let the last fake_quant of every class take the step of its moving average. */
void rw_elect_committers(rw_maker *m);

#endif
