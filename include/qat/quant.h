/**
 * Quantization: parameters and nudging, fake quantization, batch-norm folding, the rewrites that
 * place every node, the integer graph, and its exact evaluation. Jacob et al. sections 2-3.
 *
 *   float graph --qat_create_training_graph--> trains with simulated quantization
 *   float graph --qat_create_eval_graph-----> batch norm folded with its averages, ranges frozen
 *   eval graph  --qat_freeze (convert.h)----> qat_qgraph: integers only, what a .qm holds
 *
 * The three share parameters by name (qat_graph_copy_params).
 */
#ifndef QAT_QUANT_H
#define QAT_QUANT_H

#include "qat/graph.h"
#include "qat/infer.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* ------------------------------------------------------------------ schemes */

typedef enum qat_layout {
    QAT_LAYOUT_UINT8, /* asymmetric activations and weights, per tensor: the paper's */
    QAT_LAYOUT_INT8   /* asymmetric activations, symmetric weights per output channel: TFLite's */
} qat_layout;

typedef enum qat_profile {
    QAT_PROFILE_PAPER,
    QAT_PROFILE_TFLITE /* TFLite's reference kernels, byte for byte */
} qat_profile;

typedef enum qat_bn_fold { QAT_FOLD_TWO_PASS, QAT_FOLD_ONE_PASS } qat_bn_fold;

enum {
    QAT_QUANTIZER_NAME_MAX = 32,
    QAT_QUANT_LAYERS_MAX = 32,
    QAT_INQ_STAGES = 4,
    QAT_QUANT_MOMENTS = 4 + QAT_INQ_STAGES,
    QAT_QUANT_WHERE_MAX = 64 /* characters that say where an override stands, NUL included */
};

/** "ema" (observed; of weights: min and max), "tqt", "lsq", of weights "bwn", "twn", "fgq", "inq",
 * of activations "none", or one of the user's (quantizer.h). */
typedef char qat_quantizer_name[QAT_QUANTIZER_NAME_MAX];

/**
 * Other options for the layers whose name matches: * stands for any characters, ? for one; @first
 * and @last are the first and last convolution or fully connected layer. A layer is called like its
 * convolution, its sum ..., or else like its first node; its bias, batch norm and ReLU belong to
 * it.
 */
typedef struct qat_quant_layer {
    char pattern[QAT_NAME_MAX];
    char where[QAT_QUANT_WHERE_MAX];          /* "my.ini:12", for messages; may be "" */
    int weight_bits, activation_bits;         /* 0: as all others */
    int per_channel, symmetric, power_of_two; /* 0 no, 1 yes, -1 as all others */
    int is_float;                             /* 1: weights and output are not quantized */
    qat_quantizer_name weight_ranges, activation_ranges; /* "": as all others */
} qat_quant_layer;
qat_quant_layer qat_quant_layer_defaults(const char *pattern); /* overrides nothing */

/** What the training graph's forward computes with, once all delays are past. */
typedef enum qat_forward {
    QAT_FORWARD_SIMULATED, /* float32, fake quantization (eq. 12) */
    QAT_FORWARD_INTEGER    /* the deployed integers; docs/arithmetic.md, section 17 */
} qat_forward;

typedef struct qat_quant_options {
    qat_layout layout;
    int weight_bits, activation_bits; /* 2..8 */
    double ema_decay;                 /* 0 <= d < 1, near 1: range = d range + (1 - d) batch */
    int64_t weight_delay, activation_delay; /* steps before quantization starts */
    int64_t bn_freeze_delay;                /* steps; INT64_MAX: never */
    qat_bn_fold bn_fold;
    float input_min, input_max; /* real range of every graph input, before nudging */
    qat_quantizer_name weight_ranges, activation_ranges; /* "" is "ema" */
    bool power_of_two;                                   /* learned scales are powers of two */
    int64_t learn_delay; /* steps before learned ranges are learned; a step is needed to start */
    double range_rate;   /* learning rate of learned ranges, times the network's */
    int n_layers;
    qat_quant_layer layers[QAT_QUANT_LAYERS_MAX]; /* of those that match, the last one counts */
    qat_forward forward;                          /* of training graphs */
    qat_profile profile;                          /* integer forward: how it rounds */
    /** Quantizer inq, in training: steps from which on 50, 75, 87.5 and 100 % of the weights are
     *  frozen. No part of a checkpoint. */
    int64_t inq_stages[QAT_INQ_STAGES];
} qat_quant_options;
/** uint8, 8/8, 0.99, no delays, never, two_pass, [-1,1], ema. */
qat_quant_options qat_quant_defaults(void);
/** The same options with ranges that are observed everywhere: what is calibrated on data. */
qat_quant_options qat_quant_observed(const qat_quant_options *options);

/* ------------------------------------------------------------------ parameters of one tensor */

/** Quantization parameters: r = scale (q - zero_point), codes lo..hi (eq. 1, 12, 13). */
typedef struct qat_qparams {
    float scale;        /* > 0 */
    int32_t zero_point; /* lo..hi */
    int32_t lo, hi;     /* codes in use; weights never take the lowest one of their type */
    float min, max;     /* nudged range: (lo - zero_point) scale, (hi - zero_point) scale */
    float inv;          /* (hi - lo) / (max - min) before nudging: the per-channel formula's */
} qat_qparams;

/** Code limits: activations or weights, 2..8 bits. */
void qat_code_range(qat_layout layout, int bits, bool weights, int32_t *lo, int32_t *hi);

/**
 * Range to parameters, nudged so that 0.0 is exact: TensorFlow's rule in float32, each operation
 * rounded. min <= max, finite. Widened to hold 0 first (pass widen = false to get TensorFlow's op
 * itself, whose range need not hold 0). min = max = 0: scale 1, zero_point lo (symmetric: 0).
 */
qat_qparams qat_choose_qparams(float min, float max, int32_t lo, int32_t hi, bool widen);
/** Symmetric: [-max_abs, max_abs] on codes -hi..hi, zero_point 0. */
qat_qparams qat_choose_symmetric(float max_abs, int32_t hi);
/** A range that is given, not observed: scale and zero_point exactly these. */
qat_qparams qat_given_qparams(float scale, int32_t zero_point, int32_t lo, int32_t hi);

/** Code of x: floor((clamp(x) - min) / scale - qz + 0.5) + zero_point; NaN gives zero_point. */
int32_t qat_code(const qat_qparams *p, float x);
/** The same with the per-channel formula, * inv for / scale (int8 weights). */
int32_t qat_code_per_channel(const qat_qparams *p, float x);
/** scale * (q - zero_point) */
float qat_real_of(const qat_qparams *p, int32_t code);

/** Fixed ranges of softmax, logistic (scale 2^-b, zero_point lowest) and tanh (2^-(b-1), middle).
 */
qat_qparams qat_fixed_qparams(const char *op, qat_layout layout, int bits);

/* ------------------------------------------------------------------ graph rewrites */

/**
 * Ops that the rewrites insert, registered by qat_registry_create with all others (their sources
 * say what they compute):
 *   fake_quant          (x, range)            activations: per tensor, EMA or fixed range
 *   fake_quant_weights  (w)                   per tensor or per channel, min/max of w at every step
 *   bn_fold_weights     (w, gamma, ema_variance)           gamma w / s
 *   bn_fold_train       (z, gamma, beta, ema_mean, ema_variance, ema_steps[, raw])
 * docs/arithmetic.md, 14 bn_fold_bias        (gamma, beta, ema_mean, ema_variance[, b])  beta +
 * gamma (b - EMA(m)) / s
 */

/** Insert fake quantization and fold batch norm, for training. The new graph is not planned; its
 *  parameters have the float graph's names and more. The float graph is only read. */
qat_status qat_create_training_graph(qat_graph **training, const qat_graph *float_graph,
                                     const qat_quant_options *options, qat_error *err);
/** The same for evaluation: folded with the averages, dropout gone, quantization always on, pruned
 *  to the graph's outputs (which must be marked). */
qat_status qat_create_eval_graph(qat_graph **eval, const qat_graph *float_graph,
                                 const qat_quant_options *options, qat_error *err);

/** Options a rewritten graph was made with; NULL for a float graph. */
const qat_quant_options *qat_graph_quant_options(const qat_graph *graph);

/**
 * Steps behind which the quantization of a training graph has changed: its delays, the beginning of
 * learned ranges, the stages of inq; INT64_MAX: never. @return how many; 0 of a float graph
 */
int qat_quant_moments(const qat_graph *training, int64_t moments[QAT_QUANT_MOMENTS]);

/** Is this node a quantizer of weights, or of an activation? */
bool qat_node_quantizes(const qat_node *node, bool weights);

/** Names of the layers that cannot become integers, separated by ", ", cut to fit; "" if none:
 * those that options leave in float, and those whose quantizers say so (qat_quantizer.no_integers).
 */
qat_status qat_float_layers(const qat_graph *float_graph, const qat_quant_options *options,
                            char *names, size_t max, qat_error *err);
/** QAT_ERR_UNSUPPORTED if there are any; the message names them, with why. */
qat_status qat_check_integers(const qat_graph *float_graph, const qat_quant_options *options,
                              qat_error *err);

/** Has this eval graph's fake_quant node been observed? Its parameters, if so (or fixed). */
qat_status qat_node_qparams(const qat_node *fake_quant, qat_qparams *p, qat_error *err);

/** Integer forward: codes of a fake_quant node after a forward, one byte a value, and their
 *  parameters. NULL: the node was simulated, or has no codes. */
const uint8_t *qat_integer_codes(const qat_node *node, qat_qparams *p);

/** Graph as text or Graphviz dot, inserted nodes marked. free() the text. */
qat_status qat_graph_describe(const qat_graph *graph, bool dot, char **text, qat_error *err);

/* ------------------------------------------------------------------ the integer graph */

/** A tensor of the integer graph. dims[0] of an activation is the batch of one inference. */
typedef struct qat_qtensor {
    char name[QAT_NAME_MAX]; /* of the eval graph's fake_quant (or weight) node */
    qi_type type;
    int bits;
    int rank;
    int32_t dims[QI_MAX_RANK];
    float scale; /* per-channel weights: channel 0's */
    int32_t zero_point;
    float *channel_scales; /* owned; NULL: per tensor */
    int n_channels;
    float range_min, range_max; /* the range the parameters came from, for people */
    void *data;                 /* constants: owned, in the tensor's type; NULL: an activation */
    int source_index;           /* in a source file, or -1 */
    qi_border border;           /* of the graph's inputs and outputs; inside: QI_BORDER_NONE */
} qat_qtensor;

enum { QAT_QOP_NAME_MAX = 32, QAT_EPILOGUE_INPUTS_MAX = 8 };

typedef struct qat_qop {
    char op[QAT_QOP_NAME_MAX]; /* engine kernel: docs/qm-format.md */
    char name[QAT_NAME_MAX];   /* layer name */
    int n_inputs, n_outputs;
    int *inputs, *outputs; /* tensor indices; owned */
    qi_rounding rounding;
    int n_params;
    int32_t params[QI_MAX_PARAMS];
    int64_t max_accumulator; /* largest |acc| over all inputs, bias included; 0: none */
} qat_qop;

/** What follows the graph's outputs and is computed outside the engine (docs/qm-format.md). */
typedef struct qat_qepilogue {
    char name[QAT_QOP_NAME_MAX]; /* "": none */
    int n_inputs, n_params;
    int inputs[QAT_EPILOGUE_INPUTS_MAX]; /* graph outputs and constants */
    int32_t params[QI_MAX_PARAMS];
} qat_qepilogue;

/** An integer graph. Any number of threads may read it; while one changes it, no other may use it.
 */
typedef struct qat_qgraph {
    int n_tensors, n_ops, n_inputs, n_outputs;
    qat_qtensor *tensors;
    qat_qop *ops; /* in execution order */
    int *inputs, *outputs;
    int tensors_capacity, ops_capacity;
    qat_qepilogue epilogue;
} qat_qgraph;

qat_qgraph *qat_qgraph_new(void); /* NULL: out of memory */
void qat_qgraph_free(qat_qgraph *graph);
/** Append; the index, or -1 after qat_fail. data is taken over when the call succeeds. */
int qat_qgraph_tensor(qat_qgraph *graph, const qat_qtensor *tensor, qat_error *err);
/** A constant QI_S32 vector (copied) of rank 1, or rank 2 where columns > 1. */
int qat_qgraph_constant_s32(qat_qgraph *graph, const char *name, int rows, int columns,
                            const int32_t *values, qat_error *err);
int qat_qgraph_op(qat_qgraph *graph, const char *op, const char *name, qi_rounding rounding,
                  int n_inputs, const int *inputs, int n_outputs, const int *outputs, int n_params,
                  const int32_t *params, int64_t max_accumulator, qat_error *err);
qat_status qat_qgraph_set_io(qat_qgraph *graph, int n_inputs, const int *inputs, int n_outputs,
                             const int *outputs, qat_error *err);
/** Set what follows the outputs; inputs are tensors of the graph. */
qat_status qat_qgraph_set_epilogue(qat_qgraph *graph, const char *name, int n_inputs,
                                   const int *inputs, int n_params, const int32_t *params,
                                   qat_error *err);
size_t qat_qtensor_count(const qat_qtensor *tensor); /* values */
size_t qat_qtensor_bytes(const qat_qtensor *tensor);
/** The code that a byte of a QI_U8 or QI_S8 tensor is. */
static inline int32_t qat_qtensor_code(const qat_qtensor *tensor, uint8_t byte)
{
    return tensor->type == QI_S8 ? (int8_t)byte : byte;
}

/** real = mult * 2^(shift - 31), mult in [2^30, 2^31), half away; too small: 0, 0 (golden
 *  quantize_multiplier). Host only: takes a double. */
void qat_quantize_multiplier(double real, int32_t *mult, int *shift);
/** real = significand * 2^(exponent - 53), significand in [2^52, 2^53): QI_ROUND_DOUBLE. */
void qat_split_multiplier(double real, int64_t *significand, int *exponent);

/* ------------------------------------------------------------------ how an op is quantized */

typedef enum qat_quant_role {
    QAT_ROLE_ACCUMULATE, /* conv, depthwise, FC: weights; bias, BN and activation fuse into it */
    QAT_ROLE_FUSED,      /* bias, batch norm, ReLU, ReLU6: part of the op before where possible */
    QAT_ROLE_BINARY,     /* add, mul: own range; ReLU fuses */
    QAT_ROLE_CONCAT,     /* ties its inputs and output into one class */
    QAT_ROLE_POOL,       /* average pools: output keeps the input's parameters, rounded */
    QAT_ROLE_PASS,       /* max pool, reshape, flatten, dropout: codes pass through */
    QAT_ROLE_FIXED,      /* softmax, logistic, tanh: output range fixed by the op */
    QAT_ROLE_TABLE,      /* elementwise: own observed range; 256-entry table at export */
    QAT_ROLE_CUSTOM,     /* own observed range and own integer kernel */
    QAT_ROLE_QUANTIZER   /* placed by the rewrites: qat/quantizer.h */
} qat_quant_role;

/**
 * What a freeze function is given for one fused layer of the eval graph: the head node, what was
 * fused into it, and the integer tensors of its inputs; it appends ops and constants to graph and
 * ends with the op that writes `output`.
 */
typedef struct qat_fused_layer {
    qat_qgraph *graph;
    qat_profile profile;
    const qat_quant_options *options;
    const qat_node *head;    /* the op itself */
    const qat_node *weights; /* ACCUMULATE: the fake_quant_weights node, values computed */
    const float *bias;       /* real bias of every output channel, or NULL */
    int n_bias;
    float act_min, act_max; /* fused ReLU, ReLU6: [0, inf], [0, 6]; else [-inf, inf] */
    int n_inputs;
    const int *inputs; /* tensor indices of the data inputs */
    const qat_qparams *input_params;
    int output; /* tensor index */
    qat_qparams output_params;
    void (*warn)(void *context, const char *message); /* e.g. a bias clamped; may be NULL */
    void *warn_context;
} qat_fused_layer;

/** acc mult 2^(shift - 31) as an integer: qi_requantize, or another rule to compare with it. */
typedef int32_t qat_requantize_fn(int32_t acc, int32_t mult, int shift);

/** One op of the integer graph on a batch, for the exact evaluation: codes in the tensors' own
 *  types; activations hold batch times the tensor's values. */
typedef struct qat_exact_call {
    const qat_qgraph *graph;
    const qat_qop *op;
    int batch;
    const void *const *in;
    void *const *out;
    qat_requantize_fn *requantize; /* NULL: qi_requantize; see qat_exact_set_requantize */
} qat_exact_call;
typedef qat_status qat_exact_fn(const qat_exact_call *call, qat_error *err);

/**
 * The quant entry of an op: NULL members have defaults by role (TABLE needs none: its table is made
 * by running forward on the 256 codes).
 */
typedef struct qat_quant {
    qat_quant_role role;
    qat_status (*freeze)(const qat_fused_layer *layer, qat_error *err);
    /** Custom kernels: the exact evaluation of the integer op `exact_op` that freeze emits,
     *  written apart from the engine's kernel. */
    const char *exact_op;
    qat_exact_fn *exact;
    /** Which of the op's parameters are quantized as weights, by position (bit mask); ACCUMULATE:
     *  bit 0. CUSTOM ops: those get a fake_quant_weights node; others stay float for freeze. Layout
     *  int8: one scale for each index of their first dimension (depthwise_conv2d: the last). */
    unsigned weight_params;
    /** How many quanta of its output what freeze emits may be away from forward on the same inputs;
     *  0: the built-in ops' own bounds, 1 for others. qat_export refuses what is further away. */
    double max_quanta;
    /** QUANTIZER: what it does (qat/quantizer.h). */
    const struct qat_quantizer *quantizer;
} qat_quant;

/* For freeze functions, those of custom layers too. Declared in terms of the layer being frozen. */

/**
 * Quantize the values of a fake_quant_weights node and append them as a constant named after it:
 * codes by qat_code (layout uint8) or qat_code_per_channel (int8, one scale an output channel).
 * @param index  the constant's tensor index
 */
qat_status qat_freeze_weights(const qat_fused_layer *layer, const qat_node *weights, int *index,
                              qat_error *err);
/** The default of QAT_ROLE_TABLE: run head's forward on every input code; one table, or one for
 * each channel where they differ. Refuses ops that are not elementwise. */
qat_status qat_freeze_table(const qat_fused_layer *layer, qat_error *err);
/** Codes of layer->inputs[0] onto the grid of the output, within [act_min, act_max]. */
qat_status qat_freeze_requantize(const qat_fused_layer *layer, qat_error *err);
/**
 * The codes between which an output is clamped: zero_point + round(bound / scale) in float32, half
 * away from zero, within the code range of the tensor's type and bits. Infinite bounds are legal.
 */
void qat_clamp_codes(const qat_qtensor *output, float act_min, float act_max, int32_t *lo,
                     int32_t *hi);

/* ------------------------------------------------------------------ exact evaluation */

/** An exact evaluation. One thread at a time may use it; it only reads the graph it borrows. */
typedef struct qat_exact qat_exact;

/**
 * Evaluate an integer graph on batches, independently of the engine's kernels: differences
 * (q - Z) in float64, products by OpenBLAS dgemm (exact below 2^53), requantized by the shared
 * arithmetic header. Borrows graph and registry (for custom ops).
 */
qat_status qat_exact_create(qat_exact **exact, const qat_qgraph *graph,
                            const qat_registry *registry, int max_batch, qat_error *err);
void qat_exact_free(qat_exact *exact);
/** From now on another rule in convolutions and fully connected layers of QI_ROUND_TWICE: what a
 *  wrong one would cost (bench/claims). NULL: qi_requantize again. */
void qat_exact_set_requantize(qat_exact *exact, qat_requantize_fn *requantize);
/** inputs: one pointer for each graph input, batch samples of codes each. */
qat_status qat_exact_run(qat_exact *exact, const void *const *inputs, int batch, qat_error *err);
/** Codes of a tensor after a run, batch samples in the tensor's type. */
const void *qat_exact_tensor(const qat_exact *exact, int tensor);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
