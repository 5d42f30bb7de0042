/**
 * Static graphs of float32 NHWC tensors, with reverse-mode differentiation.
 *
 * A graph is built once, planned once (one arena, no allocation in a step) and run many times.
 * Every operation is one qat_op, a table entry; built-in ops and a user's own register the same
 * way. Parameters (weights, batch-norm averages, observed ranges) are nodes without an op whose
 * value is persistent. Passes that rewrite graphs (quant.h) are graph to graph functions.
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

/** The engine's number: float; the op sources also compile with double, to check gradients. */
#ifdef QAT_REAL_DOUBLE
typedef double qat_real;
#else
typedef float qat_real;
#endif

enum {
    QAT_MAX_RANK = 4,
    QAT_MAX_PARAMS = 6, /* parameters of one op */
    QAT_MAX_ATTRS = 16, /* attributes of one op */
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
size_t qat_shape_count(const qat_shape *shape); /* product of dims */
/** The last dimension: channels of an activation [N, H, W, C], values or classes of one [N, n]. */
static inline int qat_shape_channels(const qat_shape *shape)
{
    return shape->dims[shape->rank - 1];
}
bool qat_shape_equal(const qat_shape *a, const qat_shape *b);
/** "[1, 28, 28, 1]"; text holds at least 64 bytes. Returns text. */
const char *qat_shape_text(const qat_shape *shape, char text[64]);

/**
 * A graph. One thread at a time may use a graph and its nodes. Different graphs, of one registry
 * too, may be used by different threads at the same time. Only a graph that nobody changes or runs
 * may be read by several threads.
 */
typedef struct qat_graph qat_graph;
typedef struct qat_node qat_node;
/** An op. Constant: graphs in any number of threads share it, so its functions keep what they know
 *  in the node, never in variables of their own. */
typedef struct qat_op qat_op;
/** A set of ops. Any number of threads may read it; while one adds to it, no other may use it. */
typedef struct qat_registry qat_registry;
struct qat_quant;       /* how an op is quantized: quant.h; opaque here */
struct qat_elementwise; /* an op's work in strips: the engine's own; opaque here */
struct qat_tail;        /* ops that are run in strips by the one before them; opaque here */

/* ------------------------------------------------------------------ ops */

typedef enum qat_attr_type { QAT_ATTR_INT, QAT_ATTR_REAL, QAT_ATTR_CHOICE } qat_attr_type;

/** One attribute of an op: its name in "name=value" text and recipes, range and default. An
 *  attribute whose initial value is outside min..max has no default: it must be given. */
typedef struct qat_attr_def {
    const char *name;
    qat_attr_type type;
    double initial, min, max;
    const char *choices; /* QAT_ATTR_CHOICE: "same|valid"; the value is the index */
    const char *meaning; /* for --keys and documents */
} qat_attr_def;

typedef enum qat_init {
    QAT_INIT_CONSTANT, /* scale */
    QAT_INIT_HE,       /* normal, variance 2 / fan_in, cut at two deviations */
    QAT_INIT_GLOROT    /* uniform, +-sqrt(6 / (fan_in + fan_out)) */
} qat_init;

/** One parameter tensor of an op, as the op's params() describes it for its input shapes. */
typedef struct qat_param_def {
    const char *name; /* the node is called "<node>/<name>": "weights", "gamma" ... */
    qat_shape shape;
    qat_init init;
    double scale; /* QAT_INIT_CONSTANT: the value */
    int fan_in, fan_out;
    bool trainable; /* false: batch-norm averages, observed ranges: no gradient */
    bool decay;     /* weight decay applies */
} qat_param_def;

typedef enum qat_mode {
    QAT_MODE_EVAL = 0,
    QAT_MODE_TRAIN = 1 /* batch statistics, dropout, observers */
} qat_mode;

/** What an op may know of the run it takes part in. */
typedef struct qat_run {
    qat_mode mode;
    int64_t step;  /* training step, from 0: delays compare with it */
    uint64_t seed; /* with step and node name, the key of an op's random numbers */
} qat_run;

/** What an op's backward does with the gradients of its data inputs. */
typedef enum qat_grads {
    QAT_GRADS_ADD,   /* adds to them, always */
    QAT_GRADS_WRITE, /* writes those that are new (qat_grad_is_new), whatever they hold, and adds to
                        the others */
    QAT_GRADS_IN_PLACE /* the same, and the first input's may be node->grad itself; it is new then
                        */
} qat_grads;

/**
 * One operation: one table entry.
 *
 * Contract: forward is a pure function of inputs, parameters and run; it may write only value and
 * scratch. State that a step changes (averages, ranges) is changed in update, called once after the
 * optimizer of a training or calibration step. Work is cut into tiles that do not depend on the
 * number of threads.
 */
struct qat_op {
    const char *name;
    const char *meaning;        /* one line for documents */
    int min_inputs, max_inputs; /* data inputs; parameters not counted; max -1: any number */
    const qat_attr_def *attrs;  /* ends with a NULL name; may be NULL */
    /** Describe the parameters, given the data inputs' shapes and attributes (n_inputs = n_data);
     *  returns how many (<= QAT_MAX_PARAMS), or -1 after qat_fail. NULL: none. Messages of params
     *  and shape need not name the node: the graph puts "node 'conv1' (conv2d): " before them. */
    int (*params)(const qat_node *node, qat_param_def *defs, qat_error *err);
    /** Check the inputs' shapes, set node->shape, node->scratch_bytes. Called again when the batch
     *  changes, and then must neither fail nor need more scratch than for a larger batch. */
    qat_status (*shape)(qat_node *node, qat_error *err);
    void (*forward)(qat_node *node, const qat_run *run);
    /** Add into the inputs' gradients (those that are not NULL) from node->grad, or write them: see
     *  grads. NULL: not differentiable, gradients stop here. */
    void (*backward)(qat_node *node, const qat_run *run);
    void (*update)(qat_node *node, const qat_run *run); /* NULL: stateless */
    const struct qat_quant *quant;                      /* NULL: cannot be exported */
    /** Will forward and backward look at this input's value in this run? Nodes that nobody reads
     *  are not computed in it: their values are then meaningless; and what is not read gets no
     *  gradient. NULL: every input, always. */
    bool (*reads)(const qat_node *node, int input, const qat_run *run);
    qat_grads grads;
    const struct qat_elementwise *elementwise; /* NULL: runs by itself only */
    /** Do this node's forward and backward run a tail, if it gets one? NULL: no. */
    bool (*runs_tail)(const qat_node *node);
    /** Does forward leave nothing in scratch that backward reads? Between the two it is then
     * others' memory. */
    bool forgets_scratch;
};

/** A node: an application of an op, an input or a parameter. Read freely; written by the graph. */
struct qat_node {
    const qat_op *op; /* NULL: input or parameter */
    const char *name; /* unique in the graph */
    qat_graph *graph;
    int index;    /* position in the graph's topological order */
    int n_inputs; /* data inputs, then parameters */
    int n_data;   /* of which data */
    qat_node **inputs;
    double attrs[QAT_MAX_ATTRS]; /* in the order of op->attrs */
    qat_shape shape;             /* of value */
    qat_real *value;             /* after planning; NULL in the inside of a chain (qat_plan) */
    qat_real *grad;              /* of value's shape; NULL where no gradient is needed */
    unsigned new_grads;          /* bit k: inputs[k]->grad is new, see qat_grad_is_new */
    const struct qat_tail *tail; /* of a chain's first node; NULL: none */
    void *scratch;               /* private to the op between forward and backward of one step */
    size_t scratch_bytes;
    bool is_param, trainable, decay;
    qat_param_def init; /* parameters: how to initialise; init.name points at name's last part */
    void *user;         /* private to a rewrite or a tool; NULL otherwise */
};

/** In backward, of an op that writes gradients: does this input's gradient hold nothing yet? Never
 *  true of parameters. */
static inline bool qat_grad_is_new(const qat_node *node, int input)
{
    return input < 32 && (node->new_grads >> input & 1);
}

/** Value of an attribute by name; the op must have it. */
double qat_attr(const qat_node *node, const char *name);

/**
 * Ops by name: the built-in ones, and those added. A registry outlives the graphs made with it and
 * is not changed while graphs use it.
 */
qat_status qat_registry_create(qat_registry **registry, qat_error *err);
void qat_registry_free(qat_registry *registry);
/** Add an op (borrowed). Refuses a name already there, more than QAT_MAX_ATTRS attributes, ops
 *  without shape or forward. */
qat_status qat_registry_add(qat_registry *registry, const qat_op *op, qat_error *err);
const qat_op *qat_registry_find(const qat_registry *registry, const char *name);
int qat_registry_count(const qat_registry *registry);
const qat_op *qat_registry_at(const qat_registry *registry, int i);

/* ------------------------------------------------------------------ building */

qat_status qat_graph_create(qat_graph **graph, const qat_registry *registry, qat_error *err);
void qat_graph_free(qat_graph *graph); /* NULL is fine */
const qat_registry *qat_graph_registry(const qat_graph *graph);

/**
 * The building functions below return NULL on failure and accept NULL inputs (then returning NULL),
 * so that a network can be written without a check on each line; the first error is kept and
 * returned by qat_graph_check.
 */
qat_node *qat_graph_input(qat_graph *graph, const char *name, qat_shape shape);
qat_node *qat_graph_param(qat_graph *graph, const qat_param_def *def); /* def->name: full name */

/**
 * Apply an op. attrs: "name=value name=value", separated by blanks; unknown names, values outside
 * their range, repeated names are errors. Parameters that op->params describes are created as
 * nodes "<name>/<param>" unless given as further inputs.
 * @param inputs  data inputs, optionally followed by all parameters
 */
qat_node *qat_apply(qat_graph *graph, const char *op, const char *name, const char *attrs,
                    int n_inputs, qat_node *const *inputs);
qat_node *qat_apply1(qat_graph *graph, const char *op, const char *name, const char *attrs,
                     qat_node *a);
qat_node *qat_apply2(qat_graph *graph, const char *op, const char *name, const char *attrs,
                     qat_node *a, qat_node *b);
/** The same with attribute values already parsed (as in another node of the same op). */
qat_node *qat_apply_values(qat_graph *graph, const qat_op *op, const char *name,
                           const double *attrs, int n_inputs, qat_node *const *inputs);

/** First error of building, if any. */
qat_status qat_graph_check(const qat_graph *graph, qat_error *err);

/** Keep a copy of bytes with the graph, for the pass that made it; the last one counts. Not part of
 *  the text form. QAT_ERR_NOMEM is also kept as the graph's error. */
qat_status qat_graph_annotate(qat_graph *graph, const void *bytes, size_t count);
const void *qat_graph_annotation(const qat_graph *graph); /* aligned to 64; NULL: none */

/** Mark a node as an output of the network: what is exported. In order of the calls. */
void qat_graph_output(qat_graph *graph, qat_node *node);
int qat_graph_outputs(const qat_graph *graph);
qat_node *qat_graph_output_at(const qat_graph *graph, int i);

int qat_graph_nodes(const qat_graph *graph);
qat_node *qat_graph_node(const qat_graph *graph, int i); /* topological order: inputs come first */
qat_node *qat_graph_find(const qat_graph *graph, const char *name); /* NULL if absent */
int qat_node_consumers(const qat_node *node); /* how many input slots of other nodes it fills */
/** Is there a node, computed by the op of this name? */
bool qat_node_is_op(const qat_node *node, const char *op);
/** An input of the graph: neither computed nor a parameter. */
bool qat_node_is_input(const qat_node *node);

/** The graph as text, one node a line (docs/graph-text.md), without values; and back. */
qat_status qat_graph_write(const qat_graph *graph, char **text, qat_error *err); /* free() */
qat_status qat_graph_read(qat_graph **graph, const qat_registry *registry, const char *text,
                          const char *source, qat_error *err);

/* ------------------------------------------------------------------ running */

typedef enum qat_plan {
    QAT_PLAN_EVAL,  /* values share memory by lifetime; only outputs, params and nodes that nothing
                       reads keep theirs: write the inputs before every forward */
    QAT_PLAN_KEEP,  /* every node's value stays readable after forward */
    QAT_PLAN_TRAIN, /* and gradients. Elementwise ops are run by the op before them, strip by strip,
                       where each is the sole reader of the one before; of such a chain only the
                       last node has a value, and only it is visited */
    QAT_PLAN_TRAIN_KEEP /* and gradients, and every node's value; the same bits, more slowly */
} qat_plan;

/**
 * Check all shapes for a batch of max_batch and allocate the one arena. May be called once.
 * Parameters are not initialised: qat_graph_init_params or qat_graph_copy_params.
 * Memory: gradients of op nodes and scratch live only as long as a step needs them; parameters and
 * their gradients, and those of inputs, stay. Scratch of an op with an update lasts until update.
 */
qat_status qat_graph_plan(qat_graph *graph, int max_batch, qat_plan plan, qat_error *err);
size_t qat_graph_arena_bytes(const qat_graph *graph);

/** Values of every parameter from its init rule, keyed by (seed, name): adding a layer does not
 *  change another's start. */
void qat_graph_init_params(qat_graph *graph, uint64_t seed);
/** Copy parameters of equal name and shape; returns how many of dst's were found. */
int qat_graph_copy_params(qat_graph *dst, const qat_graph *src);

/** Set the batch of the following runs, 1..max_batch. */
qat_status qat_graph_set_batch(qat_graph *graph, int batch, qat_error *err);

/** Compute every node from the inputs' values (written to node->value by the caller). */
void qat_graph_forward(qat_graph *graph, const qat_run *run);
/** The same, and visit(context, node) after each op node's forward. It may change node->value: what
 *  comes later is computed from that. */
typedef void qat_visit(void *context, qat_node *node);
void qat_graph_forward_visit(qat_graph *graph, const qat_run *run, qat_visit *visit, void *context);
/** Gradient of a scalar node (shape [1]) with respect to every trainable parameter; all gradients
 *  are zeroed first. */
void qat_graph_backward(qat_graph *graph, qat_node *loss, const qat_run *run);
/** Did the last forward compute all it should? Only one that runs on integers can fail (quant.h).
 */
qat_status qat_graph_run_status(const qat_graph *graph, qat_error *err);
/** Call every op's update: once a step, after the optimizer. */
void qat_graph_update(qat_graph *graph, const qat_run *run);

/** A part of a step. */
typedef enum qat_pass { QAT_PASS_FORWARD, QAT_PASS_BACKWARD, QAT_PASS_UPDATE } qat_pass;
/** From now on watch(context, node, pass) is called after each op's part of each pass, by the
 *  thread that runs the graph: to time the ops. NULL: no more. */
typedef void qat_watch(void *context, const qat_node *node, qat_pass pass);
void qat_graph_watch(qat_graph *graph, qat_watch *watch, void *context);

/** First node, in order, whose value holds a NaN or infinity, or NULL. Behind backward only values
 *  that the plan still keeps are looked at. */
qat_node *qat_graph_find_nonfinite(const qat_graph *graph);

/* ------------------------------------------------------------------ gradients */

typedef struct qat_gradcheck_result {
    double max_error;    /* largest |analytic - numeric| / max(|analytic|, |numeric|, floor) */
    double max_gradient; /* largest |analytic| */
    char worst[QAT_NAME_MAX + 24]; /* "conv1/weights[12]" */
} qat_gradcheck_result;

/**
 * Compare the gradient of a planned (QAT_PLAN_TRAIN) graph with central differences
 * (f(x+h) - f(x-h)) / 2h, for every value of every trainable parameter and of every input that has
 * a gradient (at most max_values of each, spread evenly).
 * With float the numeric side itself is only good to about 1e-3; compile with QAT_REAL_DOUBLE for
 * 1e-6.
 */
qat_status qat_gradcheck(qat_graph *graph, qat_node *loss, const qat_run *run, double h,
                         int max_values, qat_gradcheck_result *result, qat_error *err);
/** Inputs get no gradient unless asked for, before planning. */
void qat_graph_want_gradient(qat_graph *graph, qat_node *input);

/* ------------------------------------------------------------------ optimizers, schedules */

typedef enum qat_optimizer_kind {
    QAT_OPTIMIZER_SGD,   /* v = momentum v + g; w -= lr v, or Nesterov's w -= lr (g + momentum v) */
    QAT_OPTIMIZER_ADAM,  /* Kingma and Ba, algorithm 1 */
    QAT_OPTIMIZER_ADAMW, /* Adam, and w -= lr weight_decay w: Loshchilov and Hutter's decoupling */
    QAT_OPTIMIZER_RMSPROP, /* s += (1 - decay) (g^2 - s); m = momentum m + lr g / sqrt(s + epsilon);
                              w -= m: TensorFlow's, s begins with `initial` */
    QAT_OPTIMIZER_ADAGRAD, /* s += g^2; w -= lr g / sqrt(s); s begins with `initial` */
    QAT_OPTIMIZERS
} qat_optimizer_kind;

typedef struct qat_optimizer_options {
    qat_optimizer_kind kind;
    double momentum;              /* SGD, RMSProp */
    bool nesterov;                /* SGD */
    double decay;                 /* RMSProp: of the mean square s */
    double beta1, beta2, epsilon; /* Adam, AdamW; epsilon: RMSProp too, there below the root */
    double initial;               /* RMSProp, Adagrad: s before the first step */
    double
        weight_decay; /* for parameters with decay: weight_decay w is added to g (AdamW: above) */
    /* Of the loss's gradient, before weight decay; at most one of the two, 0: none. */
    double clip_norm;  /* all gradients times clip_norm / norm, where their global norm is larger */
    double clip_value; /* each value of a gradient is kept within +-clip_value */
    /* a -= (1 - d) (a - w) after each step, d = average_decay; a begins with w. 0: no averages. */
    double average_decay;
    bool average_ramp; /* d = min(average_decay, (1 + t) / (10 + t)) after t steps, the last one
                          included: TensorFlow's num_updates */
} qat_optimizer_options;
/** Defaults: momentum 0.9; beta1 0.9, beta2 0.999, epsilon 1e-8; RMSProp decay 0.9, epsilon 1,
 *  initial 1; Adagrad initial 0.1; the rest 0. */
qat_optimizer_options qat_optimizer_defaults(qat_optimizer_kind kind);

/** An optimizer. It belongs to its graph: one thread at a time may use the two. */
typedef struct qat_optimizer qat_optimizer;
/** Borrow a planned graph, its parameters initialised. Memory: for each trainable parameter one
 * slot (SGD, Adagrad) or two (Adam, AdamW, RMSProp), and one more for averages. */
qat_status qat_optimizer_create(qat_optimizer **optimizer, qat_graph *graph,
                                const qat_optimizer_options *options, qat_error *err);
void qat_optimizer_free(qat_optimizer *optimizer);
/** One pass over parameters, gradients and state. Clipping changes the gradients where they are.
 *  The same bits for any number of threads. */
void qat_optimizer_step(qat_optimizer *optimizer, double learning_rate);
/** Square root of the sum of squares of all trainable parameters' gradients: in double, fixed tiles
 *  added in order. Before a step: what clip_norm is compared with. */
double qat_optimizer_gradient_norm(qat_optimizer *optimizer);
/** Multiply the learning rate of one parameter (>= 0; 0 leaves it as it is). Not part of the state.
 */
void qat_optimizer_set_rate_scale(qat_optimizer *optimizer, const qat_node *param, double scale);
/** State, for checkpoints: slot s of parameter node p (NULL if it has none); steps taken. */
int qat_optimizer_slots(const qat_optimizer *optimizer);
qat_real *qat_optimizer_slot(const qat_optimizer *optimizer, const qat_node *param, int slot);
/** The last slot, where averages were asked for; else NULL. */
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
    double rate; /* learning rate after warm-up, where the formulas' step is 0 */
    double factor;
    double final_rate; /* cosine, polynomial */
    double power;      /* polynomial; 1: a line */
    int64_t every;     /* steps */
    int n_milestones;
    int64_t milestones[QAT_MAX_MILESTONES]; /* steps of the run, warm-up included */
    int64_t drops;  /* plateau: how often the rate fell; the caller counts */
    int64_t total;  /* steps of the whole run, warm-up included; cosine and polynomial, which have
                       total - warmup of them, stay at final_rate beyond */
    int64_t warmup; /* steps of linear rise: rate (step + 1) / warmup */
} qat_schedule;
/** The rate of a step. Reads the schedule only: any thread may call it. */
double qat_schedule_at(const qat_schedule *schedule, int64_t step);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
