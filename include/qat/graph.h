/**
 * Static graphs of float32 NHWC tensors, with reverse-mode differentiation.
 *
 * A graph is built once, planned once (one arena, no allocation in a step) and run many times.
 * Every operation is one qat_op, a table entry. Built-in ops and a user's own ops register in the
 * same way. Parameters (weights, batch-norm averages, observed ranges) are nodes without an op;
 * their value persists. Functions that rewrite graphs (quant.h) take a graph and return a new one.
 *
 *     qat_graph_create(&g, registry, &err);
 *     qat_node *x = qat_graph_input(g, "image", QAT_SHAPE(1, 28, 28, 1));
 *     x = qat_apply1(g, "conv2d", "conv1", "filters=16 kernel=3 stride=2", x);
 *     x = qat_apply1(g, "bias", "conv1/bias", "", x);
 *     x = qat_apply1(g, "relu", "conv1/relu", "", x);
 *     x = qat_apply1(g, "flatten", "flat", "", x);
 *     x = qat_apply1(g, "fully_connected", "logits", "units=10", x);
 *     qat_node *t = qat_graph_input(g, "label", QAT_SHAPE(1));
 *     qat_node *loss = qat_apply2(g, "softmax_cross_entropy", "loss", "", x, t);
 *     if (qat_graph_check(g, &err) == QAT_OK) ...      // any error above is reported here
 */
#ifndef QAT_GRAPH_H
#define QAT_GRAPH_H

#include "qat/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/**
 * The number type of the graphs: float. The op sources also compile with double, to check
 * gradients.
 */
#ifdef QAT_REAL_DOUBLE
typedef double qat_real;
#else
typedef float qat_real;
#endif

enum {
    QAT_MAX_RANK = 4,
    QAT_MAX_PARAMS = 6, /* parameters of one op */
    QAT_MAX_ATTRS = 20, /* attributes of one op */
    QAT_NAME_MAX = 96   /* a node's name, with its NUL */
};

/** dims[0] of an activation is the batch. Unused dims are 1. */
typedef struct qat_shape {
    int rank; /* 1..QAT_MAX_RANK */
    int dims[QAT_MAX_RANK];
} qat_shape;

#ifdef __cplusplus /* has no compound literals */
#define QAT_SHAPE(...)                                                                             \
    ([&] {                                                                                         \
        const int dims_[] = {__VA_ARGS__};                                                         \
        return qat_shape_of(dims_, (int)(sizeof dims_ / sizeof *dims_));                           \
    }())
#else
#define QAT_SHAPE(...)                                                                             \
    qat_shape_of((const int[]){__VA_ARGS__},                                                       \
                 (int)(sizeof((const int[]){__VA_ARGS__}) / sizeof(int)))
#endif
qat_shape qat_shape_of(const int *dims, int rank);
size_t qat_shape_count(const qat_shape *shape); /* product of the dims */
/**
 * The last dimension: the channels of an activation [N, H, W, C], or the values or classes of one
 * [N, n].
 */
static inline int qat_shape_channels(const qat_shape *shape)
{
    return shape->dims[shape->rank - 1];
}
bool qat_shape_equal(const qat_shape *a, const qat_shape *b);
/**
 * Write the shape as text, for example "[1, 28, 28, 1]". text has room for 64 bytes. Returns text.
 */
const char *qat_shape_text(const qat_shape *shape, char text[64]);

/**
 * A graph. One thread at a time may use a graph and its nodes. Different graphs, of one registry
 * too, may be used by different threads at the same time. Only a graph that nobody changes or runs
 * may be read by several threads.
 */
typedef struct qat_graph qat_graph;
typedef struct qat_node qat_node;
/**
 * An op. It is constant: graphs in any number of threads share it. So its functions keep their
 * state in the node, never in variables of their own.
 */
typedef struct qat_op qat_op;
/** A set of ops. Any number of threads may read it; while one adds to it, no other may use it. */
typedef struct qat_registry qat_registry;
struct qat_task;
struct qat_quant;       /* how an op is quantized: quant.h; opaque here */
struct qat_elementwise; /* an op's work in strips; opaque here */
struct qat_tail;        /* ops that the op before them runs in strips; opaque here */
struct qat_shared;      /* what an op adds up over the samples of a batch; opaque here */

/* ------------------------------------------------------------------ ops */

typedef enum qat_attr_type {
    QAT_ATTR_INT,
    QAT_ATTR_REAL,
    QAT_ATTR_CHOICE,
    QAT_ATTR_PADDING /* a window's padding: read it with qat_attr_padding */
} qat_attr_type;

/**
 * One attribute of an op: its name in "name=value" text and in recipes, its range and default. If
 * `initial` lies outside min..max, the attribute has no default and must be given.
 */
typedef struct qat_attr_def {
    const char *name;
    qat_attr_type type;
    double initial, min, max;
    const char *choices; /* QAT_ATTR_CHOICE: "same|valid"; the value is the index */
    const char *meaning; /* one line for qat-train --ops and documents */
} qat_attr_def;

typedef enum qat_init {
    QAT_INIT_CONSTANT, /* every value is `scale` */
    QAT_INIT_HE,    /* normal, variance 2 / fan_in; values beyond two deviations are drawn again */
    QAT_INIT_GLOROT /* uniform, +-sqrt(6 / (fan_in + fan_out)) */
} qat_init;

/** One parameter tensor of an op. The op's params() describes it for the given input shapes. */
typedef struct qat_param_def {
    const char *name; /* the node is called "<node>/<name>": "weights", "gamma" ... */
    qat_shape shape;
    qat_init init;
    double scale; /* QAT_INIT_CONSTANT: the value */
    int fan_in, fan_out;
    bool trainable; /* false: no gradient (batch-norm averages, observed ranges) */
    bool decay;     /* weight decay applies */
} qat_param_def;

typedef enum qat_mode {
    QAT_MODE_EVAL = 0,
    QAT_MODE_TRAIN = 1 /* batch statistics, dropout, observers */
} qat_mode;

/** What an op may know about the current run. */
typedef struct qat_run {
    qat_mode mode;
    int64_t step;  /* training step, from 0; delays are compared with it */
    uint64_t seed; /* with step and node name: the key of an op's random numbers */
} qat_run;

/** What an op's backward does with the gradients of its data inputs. */
typedef enum qat_grads {
    QAT_GRADS_ADD,     /* always adds to them */
    QAT_GRADS_WRITE,   /* overwrites those that are new (qat_grad_is_new) and adds to the others */
    QAT_GRADS_IN_PLACE /* like WRITE; also, the first input's gradient may be node->grad itself; it
                          is new then */
} qat_grads;

/**
 * An operation: one entry of the op table.
 *
 * Contract: forward is a pure function of inputs, parameters and run. It may write only value and
 * scratch. State that a step changes (averages, ranges) is changed in update, which is called once
 * after the optimizer of a training or calibration step. Work must be cut into tiles that do not
 * depend on the number of threads.
 */
struct qat_op {
    const char *name;
    const char *meaning;        /* one line for documents */
    int min_inputs, max_inputs; /* number of data inputs, without parameters; max -1: any number */
    const qat_attr_def *attrs;  /* ends with a NULL name; may be NULL */
    /**
     * Describe the parameters for the data inputs' shapes and the attributes (here n_inputs =
     * n_data). Returns their number (<= QAT_MAX_PARAMS), or -1 after qat_fail. NULL: no parameters.
     * Messages of params and shape need not name the node: the graph puts "node 'conv1' (conv2d): "
     * before them.
     */
    int (*params)(const qat_node *node, qat_param_def *defs, qat_error *err);
    /**
     * Check the shapes of the inputs and set node->shape and node->scratch_bytes. This is called
     * again when the batch changes. It must not fail then, and must not need more scratch than for
     * a larger batch.
     */
    qat_status (*shape)(qat_node *node, qat_error *err);
    void (*forward)(qat_node *node, const qat_run *run);
    /**
     * Add to the gradients of the inputs (those that are not NULL) from node->grad, or overwrite
     * them: see grads. NULL: the op is not differentiable; gradients stop here.
     */
    void (*backward)(qat_node *node, const qat_run *run);
    void (*update)(qat_node *node, const qat_run *run); /* NULL: the op has no state */
    const struct qat_quant *quant;                      /* NULL: the op cannot be exported */
    /**
     * Will forward and backward read this input's value in this run? A node that no op reads is not
     * computed, so its value is meaningless; an input that is not read gets no gradient. NULL:
     * every input is read in every run.
     */
    bool (*reads)(const qat_node *node, int input, const qat_run *run);
    qat_grads grads;
    const struct qat_elementwise *elementwise; /* NULL: the op cannot run in strips */
    /** Can forward and backward of this node run a tail, if it gets one? NULL: no. */
    bool (*runs_tail)(const qat_node *node);
    /**
     * true: forward leaves nothing in scratch that backward reads, so others may use the memory in
     * between.
     */
    bool forgets_scratch;
    /**
     * NULL: the batch may be cut into shards (train.shards), each of which runs the op by itself.
     * Gradients of parameters are added up. A value without a batch dimension counts as a mean over
     * the samples.
     */
    const struct qat_shared *shared;
};

/**
 * A node: an applied op, an input or a parameter. You may read all fields; only the graph writes
 * them.
 */
struct qat_node {
    const qat_op *op; /* NULL: input or parameter */
    const char *name; /* unique in the graph */
    qat_graph *graph;
    int index;    /* position in the graph's topological order */
    int n_inputs; /* data inputs, then parameters */
    int n_data;   /* how many of them are data inputs */
    qat_node **inputs;
    double attrs[QAT_MAX_ATTRS]; /* in the order of op->attrs */
    qat_shape shape;             /* of value */
    qat_real *value;             /* set by planning; NULL inside a chain (qat_plan) */
    qat_real *grad;              /* has the shape of value; NULL if no gradient is needed */
    unsigned new_grads;          /* bit k: inputs[k]->grad is new, see qat_grad_is_new */
    const struct qat_tail *tail; /* the tail of a chain's first node; NULL: none */
    void *scratch;               /* private to the op, from forward to backward of one step */
    size_t scratch_bytes;
    bool is_param, trainable, decay;
    qat_param_def init; /* parameters: how to initialise; init.name is the last part of name */
    void *user;         /* private to a rewrite or a tool; NULL otherwise */
};

/**
 * For the backward of ops that write gradients: does this input's gradient hold nothing yet? Never
 * true for parameters.
 */
static inline bool qat_grad_is_new(const qat_node *node, int input)
{
    return input < 32 && (node->new_grads >> input & 1);
}

/** The value of an attribute by its name. The op must have it. */
double qat_attr(const qat_node *node, const char *name);

/** How far the windows of a convolution or pool may reach beyond the image. */
typedef enum qat_padding_kind {
    QAT_PADDING_SAME,    /* TensorFlow's: output = ceil(input / stride) */
    QAT_PADDING_VALID,   /* no padding */
    QAT_PADDING_EXPLICIT /* a number of pixels for each side */
} qat_padding_kind;

typedef struct qat_padding {
    qat_padding_kind kind;
    int top, bottom, left, right; /* QAT_PADDING_EXPLICIT: 0..QAT_PADDING_MAX pixels; else 0 */
} qat_padding;

enum { QAT_PADDING_MAX = 1023 };

/**
 * Value of an attribute of type QAT_ATTR_PADDING; the op must have it. As text it is "same",
 * "valid", or numbers of pixels: "1" (on every side), "1,2" (1 row at top and bottom, 2 columns
 * left and right), "1,2,3,4" (top, bottom, left, right).
 */
qat_padding qat_attr_padding(const qat_node *node, const char *name);

/**
 * A registry of ops by name: the built-in ones and those added. It must outlive the graphs made
 * with it, and must not change while graphs use it. Create one with the built-in ops; free it with
 * qat_registry_free (NULL is fine).
 */
qat_status qat_registry_create(qat_registry **registry, qat_error *err);
void qat_registry_free(qat_registry *registry);
/**
 * Add an op, which is borrowed. These are errors: a name that exists, more than QAT_MAX_ATTRS
 * attributes, an op without shape or forward.
 */
qat_status qat_registry_add(qat_registry *registry, const qat_op *op, qat_error *err);
/**
 * Limit the memory of one graph, in bytes; 0: no limit, as in a new registry. It counts for every
 * graph made with this registry, also by a rewrite. Planning a larger graph is QAT_ERR_LIMIT, and
 * nothing is allocated. A program that opens networks of others should set it: a few lines of text
 * can describe a graph of many gigabytes.
 */
void qat_registry_set_memory(qat_registry *registry, uint64_t bytes);
uint64_t qat_registry_memory(const qat_registry *registry);
/** The op with this name, or NULL; the number of ops; op number i in 0..count-1. */
const qat_op *qat_registry_find(const qat_registry *registry, const char *name);
int qat_registry_count(const qat_registry *registry);
const qat_op *qat_registry_at(const qat_registry *registry, int i);
/**
 * Add a task (task.h), which is borrowed; how many were added, and number i of them.
 * @return QAT_ERR_ARGUMENT names what its table lacks: a member that must not be NULL, a name of
 *         its own, figures
 */
qat_status qat_registry_add_task(qat_registry *registry, const struct qat_task *task,
                                 qat_error *err);
int qat_registry_tasks(const qat_registry *registry);
const struct qat_task *qat_registry_task_at(const qat_registry *registry, int i);

/* ------------------------------------------------------------------ building */

/** Create an empty graph that uses the ops of registry (borrowed). Free it with qat_graph_free. */
qat_status qat_graph_create(qat_graph **graph, const qat_registry *registry, qat_error *err);
void qat_graph_free(qat_graph *graph); /* NULL is fine */
const qat_registry *qat_graph_registry(const qat_graph *graph);

/**
 * Building functions. They return NULL on failure. They accept NULL inputs and then return NULL. So
 * a network can be written without a check on each line. The first error is kept, and
 * qat_graph_check returns it. qat_graph_input adds an input, qat_graph_param a parameter.
 */
qat_node *qat_graph_input(qat_graph *graph, const char *name, qat_shape shape);
qat_node *qat_graph_param(qat_graph *graph,
                          const qat_param_def *def); /* def->name is the full name */

/**
 * Apply an op.
 * @param name    name of the new node, unique in the graph
 * @param attrs   "name=value name=value", separated by blanks. An unknown name, a value outside its
 *                range, and a repeated name are errors
 * @param inputs  data inputs, optionally followed by all parameters. If they are not given, the
 *                parameters that op->params describes are created as nodes "<name>/<param>"
 */
qat_node *qat_apply(qat_graph *graph, const char *op, const char *name, const char *attrs,
                    int n_inputs, qat_node *const *inputs);
qat_node *qat_apply1(qat_graph *graph, const char *op, const char *name, const char *attrs,
                     qat_node *a);
qat_node *qat_apply2(qat_graph *graph, const char *op, const char *name, const char *attrs,
                     qat_node *a, qat_node *b);
/**
 * The same with attribute values that are already parsed (those of another node of the same op, for
 * example).
 */
qat_node *qat_apply_values(qat_graph *graph, const qat_op *op, const char *name,
                           const double *attrs, int n_inputs, qat_node *const *inputs);

/** The first error of building, or QAT_OK. */
qat_status qat_graph_check(const qat_graph *graph, qat_error *err);

/**
 * Keep a copy of bytes with the graph, for the function that made the graph. A second call replaces
 * it. It is not part of the text form. QAT_ERR_NOMEM also becomes the graph's error.
 */
qat_status qat_graph_annotate(qat_graph *graph, const void *bytes, size_t count);
const void *qat_graph_annotation(const qat_graph *graph); /* aligned to 64; NULL: there is none */

/** Mark a node as an output of the network. Outputs are exported, in the order of the calls. */
void qat_graph_output(qat_graph *graph, qat_node *node);
int qat_graph_outputs(const qat_graph *graph);
qat_node *qat_graph_output_at(const qat_graph *graph, int i);

/**
 * The nodes of the graph: their number, node i, a node by its name, and the number of its
 * consumers.
 */
int qat_graph_nodes(const qat_graph *graph);
qat_node *qat_graph_node(const qat_graph *graph, int i); /* topological order: inputs come first */
qat_node *qat_graph_find(const qat_graph *graph, const char *name); /* NULL if there is none */
int qat_node_consumers(const qat_node *node); /* how many input slots of other nodes it fills */
/** Is node computed by the op with this name? false for NULL. */
bool qat_node_is_op(const qat_node *node, const char *op);
/** Is node an input of the graph: neither computed nor a parameter? */
bool qat_node_is_input(const qat_node *node);

/** Copy a graph that was built without error: its nodes and outputs, without values and a plan. */
qat_status qat_graph_clone(qat_graph **clone, const qat_graph *graph, qat_error *err);

/**
 * Write the graph as text, one node per line (docs/graph-text.md), without values; read it back.
 * source is the name of the text in messages.
 */
qat_status qat_graph_write(const qat_graph *graph, char **text,
                           qat_error *err); /* free() the text */
qat_status qat_graph_read(qat_graph **graph, const qat_registry *registry, const char *text,
                          const char *source, qat_error *err);

/* ------------------------------------------------------------------ running */

/**
 * What stays in memory.
 *
 * An elementwise op may form a chain with the op before it, which runs it strip by strip, if it is
 * the only reader of that op. Of a chain only the last node has a value, and only it is visited.
 */
typedef enum qat_plan {
    /* Values share memory by lifetime. Only outputs, parameters and nodes that nothing reads keep
     * their values, so write the inputs before every forward. */
    QAT_PLAN_EVAL,
    /* The value of every node stays readable after forward. */
    QAT_PLAN_KEEP,
    /* Values and gradients. Ops may form chains. */
    QAT_PLAN_TRAIN,
    /* Gradients, and the value of every node: the same bits as TRAIN, slower. */
    QAT_PLAN_TRAIN_KEEP
} qat_plan;

/**
 * Check all shapes for a batch of max_batch and allocate the one arena. May be called once per
 * graph. It does not initialise parameters: use qat_graph_init_params or qat_graph_copy_params.
 * Memory: gradients of op nodes and scratch live only while a step needs them. Parameters and their
 * gradients, and gradients of inputs, stay. Scratch of an op with an update lasts until the update.
 * Errors: the first error of building the graph, QAT_ERR_ARGUMENT (max_batch below 1),
 * QAT_ERR_SHAPE, QAT_ERR_NOMEM, QAT_ERR_STATE (already planned), QAT_ERR_LIMIT
 * (qat_registry_set_memory), and what a plugin's op returns.
 */
qat_status qat_graph_plan(qat_graph *graph, int max_batch, qat_plan plan, qat_error *err);
size_t qat_graph_arena_bytes(const qat_graph *graph);

/**
 * Set every parameter by its init rule. The random numbers are keyed by (seed, name), so adding a
 * layer does not change the initial values of another.
 */
void qat_graph_init_params(qat_graph *graph, uint64_t seed);
/** Copy the parameters with equal name and shape. Returns how many of dst's were found. */
int qat_graph_copy_params(qat_graph *dst, const qat_graph *src);

/**
 * Set the batch size of the following runs, 1..max_batch.
 * Errors: QAT_ERR_STATE (not planned), QAT_ERR_ARGUMENT (outside 1..max_batch), and what an op says
 * of its new shape.
 */
qat_status qat_graph_set_batch(qat_graph *graph, int batch, qat_error *err);

/**
 * Compute every node from the values of the inputs, which the caller has written to node->value.
 */
void qat_graph_forward(qat_graph *graph, const qat_run *run);
/**
 * The same, and call visit(context, node) after each op node's forward. visit may change
 * node->value; later nodes then use the new value.
 */
typedef void qat_visit(void *context, qat_node *node);
void qat_graph_forward_visit(qat_graph *graph, const qat_run *run, qat_visit *visit, void *context);
/**
 * Compute the gradient of a scalar node (shape [1]) with respect to every trainable parameter. All
 * gradients are set to zero first.
 */
void qat_graph_backward(qat_graph *graph, qat_node *loss, const qat_run *run);
/** Was the last forward complete? Only a graph that runs on integers can fail (quant.h). */
qat_status qat_graph_run_status(const qat_graph *graph, qat_error *err);
/** Call the update of every op: once per step, after the optimizer. */
void qat_graph_update(qat_graph *graph, const qat_run *run);

/** A part of a step. */
typedef enum qat_pass { QAT_PASS_FORWARD, QAT_PASS_BACKWARD, QAT_PASS_UPDATE } qat_pass;
/**
 * Call watch(context, node, pass) after each op's part of each pass, in the thread that runs the
 * graph. Use it to time ops. NULL ends this.
 */
typedef void qat_watch(void *context, const qat_node *node, qat_pass pass);
void qat_graph_watch(qat_graph *graph, qat_watch *watch, void *context);

/**
 * The first node, in order, whose value contains a NaN or infinity, or NULL. After backward only
 * the values that the plan still keeps are searched.
 */
qat_node *qat_graph_find_nonfinite(const qat_graph *graph);

/* ------------------------------------------------------------------ gradients */

typedef struct qat_gradcheck_result {
    double max_error;    /* largest |analytic - numeric| / max(|analytic|, |numeric|, floor) */
    double max_gradient; /* largest |analytic| */
    char worst[QAT_NAME_MAX + 24]; /* "conv1/weights[12]" */
} qat_gradcheck_result;

/**
 * Compare the gradient of a planned (QAT_PLAN_TRAIN) graph with central differences (f(x+h) -
 * f(x-h)) / 2h. This covers the values of every trainable parameter and of every input that has a
 * gradient (at most max_values of each, spread evenly). With float the numeric side is only good to
 * about 1e-3; with QAT_REAL_DOUBLE, to 1e-6.
 */
qat_status qat_gradcheck(qat_graph *graph, qat_node *loss, const qat_run *run, double h,
                         int max_values, qat_gradcheck_result *result, qat_error *err);
/** Ask for the gradient of an input, before planning. Otherwise inputs get none. */
void qat_graph_want_gradient(qat_graph *graph, qat_node *input);

/* ------------------------------------------------------------------ optimizers, schedules */

typedef enum qat_optimizer_kind {
    QAT_OPTIMIZER_SGD,   /* v = momentum v + g; w -= lr v, or Nesterov's w -= lr (g + momentum v) */
    QAT_OPTIMIZER_ADAM,  /* Kingma and Ba, algorithm 1 */
    QAT_OPTIMIZER_ADAMW, /* Adam, and w -= lr weight_decay w (Loshchilov and Hutter) */
    QAT_OPTIMIZER_RMSPROP, /* TensorFlow's: s += (1 - decay) (g^2 - s); m = momentum m + lr g /
                              sqrt(s + epsilon); w -= m; s starts at `initial` */
    QAT_OPTIMIZER_ADAGRAD, /* s += g^2; w -= lr g / sqrt(s); s starts at `initial` */
    QAT_OPTIMIZERS
} qat_optimizer_kind;

typedef struct qat_optimizer_options {
    qat_optimizer_kind kind;
    double momentum; /* SGD, RMSProp */
    bool nesterov;   /* SGD */
    double decay;    /* RMSProp: of the mean square s */
    double beta1, beta2,
        epsilon;         /* Adam, AdamW: added to the root; RMSProp: added under the root */
    double initial;      /* RMSProp, Adagrad: s before the first step */
    double weight_decay; /* for parameters with decay: weight_decay w is added to g (AdamW: see
                            above) */
    /* Clipping of the loss's gradient, before weight decay. At most one of the two; 0: none. */
    double clip_norm;  /* if the norm of all gradients is larger, they are multiplied by clip_norm /
                          norm */
    double clip_value; /* each value of a gradient is limited to +-clip_value */
    /*
     * a -= (1 - d) (a - w) after each step, with d = average_decay; a starts at w. 0: no averages.
     */
    double average_decay;
    bool average_ramp; /* d = min(average_decay, (1 + t) / (10 + t)) after t steps including the
                          last one, as TensorFlow's num_updates */
} qat_optimizer_options;
/**
 * Defaults: momentum 0.9; beta1 0.9, beta2 0.999, epsilon 1e-8; RMSProp decay 0.9, epsilon 1,
 * initial 1; Adagrad initial 0.1; everything else 0.
 */
qat_optimizer_options qat_optimizer_defaults(qat_optimizer_kind kind);

/** An optimizer. It belongs to its graph: one thread at a time may use the two. */
typedef struct qat_optimizer qat_optimizer;
/**
 * Create an optimizer for a planned graph (borrowed) with initialised parameters. Each trainable
 * parameter takes one slot of memory (SGD, Adagrad) or two (Adam, AdamW, RMSProp), and one more for
 * averages.
 */
qat_status qat_optimizer_create(qat_optimizer **optimizer, qat_graph *graph,
                                const qat_optimizer_options *options, qat_error *err);
void qat_optimizer_free(qat_optimizer *optimizer);
/**
 * Take one step over parameters, gradients and state. Clipping changes the gradients in place. The
 * result has the same bits for any number of threads.
 */
void qat_optimizer_step(qat_optimizer *optimizer, double learning_rate);
/**
 * The square root of the sum of squares of all trainable parameters' gradients, in double, over
 * fixed tiles added in order. Call it before a step; clip_norm is compared with it.
 */
double qat_optimizer_gradient_norm(qat_optimizer *optimizer);
/**
 * Multiply the learning rate of one parameter by scale >= 0 (0: the parameter does not change).
 * This is not part of the state.
 */
void qat_optimizer_set_rate_scale(qat_optimizer *optimizer, const qat_node *param, double scale);
/**
 * The state, for checkpoints: slot s of a parameter (NULL if it has none), and the number of steps
 * taken.
 */
int qat_optimizer_slots(const qat_optimizer *optimizer);
qat_real *qat_optimizer_slot(const qat_optimizer *optimizer, const qat_node *param, int slot);
/** The average of a parameter (the last slot) if averages were asked for, else NULL. */
qat_real *qat_optimizer_average(const qat_optimizer *optimizer, const qat_node *param);
int64_t qat_optimizer_steps(const qat_optimizer *optimizer);
void qat_optimizer_set_steps(qat_optimizer *optimizer, int64_t steps);

typedef enum qat_schedule_kind {
    QAT_SCHEDULE_CONSTANT,
    QAT_SCHEDULE_STAIRCASE,   /* lr * factor^floor(step / every) */
    QAT_SCHEDULE_EXPONENTIAL, /* lr * factor^(step / every) */
    QAT_SCHEDULE_COSINE,      /* final + (lr - final) (1 + cos(pi step / total)) / 2 */
    QAT_SCHEDULE_POLYNOMIAL,  /* final + (lr - final) (1 - step / total)^power */
    QAT_SCHEDULE_PIECEWISE,   /* lr * factor^(milestones that the run has reached) */
    QAT_SCHEDULE_PLATEAU      /* lr * factor^drops */
} qat_schedule_kind;

enum { QAT_MAX_MILESTONES = 6 };

typedef struct qat_schedule {
    qat_schedule_kind kind;
    double rate; /* learning rate after warm-up; the formulas' step is 0 there */
    double factor;
    double final_rate; /* cosine, polynomial */
    double power;      /* polynomial; 1: a straight line */
    int64_t every;     /* steps */
    int n_milestones;
    int64_t milestones[QAT_MAX_MILESTONES]; /* in steps of the run, including warm-up */
    int64_t drops;  /* plateau: how often the rate has dropped; the caller counts */
    int64_t total;  /* steps of the whole run, including warm-up. Cosine and polynomial take total -
                       warmup steps and then stay at final_rate */
    int64_t warmup; /* steps of linear rise: rate (step + 1) / warmup */
} qat_schedule;
/** The learning rate of a step. It only reads the schedule, so any thread may call it. */
double qat_schedule_at(const qat_schedule *schedule, int64_t step);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
