/**
 * Quantization: parameters and nudging, fake quantization, batch-norm folding, the rewrites that
 * insert these into a graph, the integer graph, and its exact evaluation. Jacob et al. sections
 * 2-3.
 *
 *   float graph --qat_create_training_graph--> trains with simulated quantization
 *   float graph --qat_create_eval_graph-----> batch norm folded with its averages, ranges frozen
 *   eval graph  --qat_freeze (convert.h)----> qat_qgraph: integers only, what a .qm holds
 *
 * The three graphs share parameters by name (qat_graph_copy_params).
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
    QAT_PROFILE_TFLITE, /* as TFLite's reference kernels, byte for byte */
    QAT_PROFILE_ONNX    /* as ONNX Runtime's kernels for quantized operators, byte for byte but for
                           transposed convolutions and softmax */
} qat_profile;

typedef enum qat_bn_fold { QAT_FOLD_TWO_PASS, QAT_FOLD_ONE_PASS } qat_bn_fold;

enum {
    QAT_QUANTIZER_NAME_MAX = 32,
    QAT_WIDE_BITS =
        16, /* of activations: TensorFlow Lite's 16x8, with layout int8, profile tflite */
    QAT_QUANT_LAYERS_MAX = 256,
    QAT_INQ_STAGES = 4,
    QAT_BITS_STAGES = 6, /* of a schedule of bits, before the last */
    QAT_QUANT_CHANGES = 4 + QAT_INQ_STAGES + 2 * QAT_BITS_STAGES,
    QAT_QUANT_WHERE_MAX =
        64 /* size of the text that says where an override is written, including NUL */
};

/**
 * The name of a quantizer: "ema" (observed; for weights min and max), "tqt", "lsq"; for weights
 * also "tqt_full", "lsq_full", "dorefa", "weight_norm", "apot", "bwn", "twn", "fgq", "inq"; for
 * activations also "pact", "none"; or a user's own (quantizer.h).
 */
typedef char qat_quantizer_name[QAT_QUANTIZER_NAME_MAX];

/**
 * Other options for the layers whose names match the pattern: * stands for any characters, ? for
 * one, [..] for one of some; @first and @last are the first and last convolution or fully connected
 * layer. A layer has the name of its convolution, addition and so on, or otherwise of its first
 * node. Its bias, batch norm and ReLU belong to it.
 */
typedef struct qat_quant_layer {
    char pattern[QAT_NAME_MAX];
    char where[QAT_QUANT_WHERE_MAX];          /* "my.ini:12", for messages; may be "" */
    int weight_bits, activation_bits;         /* 0: same as all other layers */
    int input_bits;                           /* likewise */
    int per_channel, symmetric, power_of_two; /* 0 no, 1 yes, -1 same as all other layers */
    int is_float;                             /* 1: weights and output are not quantized */
    qat_quantizer_name weight_ranges, activation_ranges; /* "": same as all other layers */
} qat_quant_layer;
qat_quant_layer qat_quant_layer_defaults(const char *pattern); /* overrides nothing */

/** A stage of a schedule of bits: until step `until`, quantizers have at least so many. */
typedef struct qat_bits_stage {
    int bits; /* 2..8 */
    int64_t until;
} qat_bits_stage;

/** The arithmetic of the training graph's forward, after all delays. */
typedef enum qat_forward {
    /**
     * float32 with fake quantization (eq. 12). If anything has fewer than 8 bits, it rounds as the
     * integers do; docs/arithmetic.md, section 17.
     */
    QAT_FORWARD_SIMULATED,
    QAT_FORWARD_INTEGER,   /* the integers of the deployed model; section 17 */
    QAT_FORWARD_FAKE_QUANT /* float32 with fake quantization, whatever the bits */
} qat_forward;

enum { QAT_FRACTION_AUTO = -1 };

/** How to quantize a network. Start with qat_quant_defaults. */
typedef struct qat_quant_options {
    qat_layout layout;
    int weight_bits;     /* 2..8 */
    int activation_bits; /* 2..8, or QAT_WIDE_BITS */
    /**
     * 2..8: what convolutions and fully connected layers read has at most so many bits. A tensor
     * with more is quantized again before them, or, if nothing else reads it, has so many itself.
     * 0: they read tensors as they come.
     */
    int input_bits;
    /**
     * In training, bits may fall in stages: more and more steps, fewer and fewer bits. After the
     * last stage all layers have their own. Not part of a checkpoint.
     */
    int n_weight_stages, n_activation_stages;
    qat_bits_stage weight_stages[QAT_BITS_STAGES], activation_stages[QAT_BITS_STAGES];
    /**
     * Weights and activations have at least so many bits, whatever their layers say; 0: as these
     * say. It is how a network is made that is still in a stage.
     */
    int least_weight_bits, least_activation_bits;
    double ema_decay; /* 0 <= d < 1, near 1: range = d range + (1 - d) batch */
    int64_t weight_delay, activation_delay; /* steps before quantization starts */
    int64_t bn_freeze_delay;                /* steps; INT64_MAX: never */
    qat_bn_fold bn_fold;
    float input_min, input_max; /* real range of every graph input, before nudging */
    qat_quantizer_name weight_ranges, activation_ranges; /* "" is "ema" */
    bool power_of_two;                                   /* scales are powers of two */
    int64_t learn_delay; /* steps before learned ranges are learned; at least one step is needed to
                            start. A range is not learned before it quantizes: weight_delay,
                            activation_delay */
    double dampen; /* lambda of lambda (w - fake quantized w)^2, added to the loss of each weight;
                      it rises from 0 at weight_delay to all of it at step `dampened`; 0: none. Not
                      part of a checkpoint */
    int64_t dampened;
    /**
     * Weights of at most so many bits are frozen at a code if they oscillate; 0: none is. In
     * training, a weight is frozen whose frequency of oscillations exceeds a threshold, which goes
     * along half a cosine from freeze_threshold at weight_delay to freeze_threshold_end at step
     * `dampened`. freeze_share is the share of a step in the average that the frequency is; 0: no
     * more weights are frozen. Only freeze_bits is part of a checkpoint.
     */
    int freeze_bits;
    double freeze_threshold, freeze_threshold_end, freeze_share;
    double range_rate; /* learning rate of learned ranges, as a multiple of the network's */
    int n_layers;
    qat_quant_layer
        layers[QAT_QUANT_LAYERS_MAX]; /* if several match a layer, the last one counts */
    qat_forward forward;              /* of training graphs; qat_simulate_integers */
    qat_profile profile;              /* how integer forward, and a simulation of few bits, round */
    /**
     * Fractional bits of accumulators, at most (docs/arithmetic.md, section 3): 0..15, or
     * QAT_FRACTION_AUTO: 15 in profile paper where weights or input have fewer than 8 bits,
     * otherwise 0. Profile onnx has none, whatever is asked for.
     */
    int fraction;
    /**
     * Quantizer inq, in training: the steps from which on 50, 75, 87.5 and 100 % of the weights are
     * frozen. Not part of a checkpoint.
     */
    int64_t inq_stages[QAT_INQ_STAGES];
} qat_quant_options;
/**
 * The defaults: uint8, 8/8 bits, decay 0.99, no delays, batch norm never frozen, two_pass, input
 * [-1,1], ema.
 */
qat_quant_options qat_quant_defaults(void);
/** The same options with observed ranges everywhere, as calibration on data needs them. */
qat_quant_options qat_quant_observed(const qat_quant_options *options);

/* ------------------------------------------------------------------ parameters of one tensor */

/** Quantization parameters: r = scale (q - zero_point), with codes lo..hi (eq. 1, 12, 13). */
typedef struct qat_qparams {
    float scale;        /* > 0 */
    int32_t zero_point; /* lo..hi */
    int32_t lo, hi;     /* codes in use; weights use the lowest code only with fewer than 8
                           bits, and only by some quantizers */
    float min, max;     /* nudged range: (lo - zero_point) scale, (hi - zero_point) scale */
    float inv; /* (hi - lo) / (max - min) before nudging; used by the per-channel formula */
    float tie; /* what is at most so many quanta below a tie counts as one, and goes up: 0 or
                  QAT_TIE */
} qat_qparams;

/**
 * In activations of fewer than 8 bits, ties are frequent: an average of two codes, for example.
 * float32 has half of them a little below the tie, the integers have all of them on it. This is
 * more than float32 is wrong, and little: 2^-15 of a quantum.
 */
#define QAT_TIE 0x1p-15f

/** The lowest and highest code of activations or weights, for 2..8 bits; of activations also 16. */
void qat_code_range(qat_layout layout, int bits, bool weights, int32_t *lo, int32_t *hi);

/**
 * Make parameters from a range, nudged so that 0.0 is exact. This is TensorFlow's rule in float32,
 * where each operation is rounded. min <= max, finite. The range is first widened to hold 0.
 * (TensorFlow's op itself does not do that; pass widen = false to get it.) min = max = 0 gives
 * scale 1, zero_point lo (symmetric: 0).
 */
qat_qparams qat_choose_qparams(float min, float max, int32_t lo, int32_t hi, bool widen);
/** Symmetric parameters: [-max_abs, max_abs] on codes -hi..hi, zero_point 0. */
qat_qparams qat_choose_symmetric(float max_abs, int32_t hi);
/**
 * Parameters with exactly this scale and zero_point, for a range that is given instead of observed.
 */
qat_qparams qat_given_qparams(float scale, int32_t zero_point, int32_t lo, int32_t hi);

/** The parameters of an activation of a model, of its stored type, bits, scale and zero_point. */
qat_qparams qat_stored_qparams(qi_type type, int bits, float scale, int32_t zero_point);

/**
 * The code of x: floor((clamp(x) - min) / scale - qz + (0.5 + tie)) + zero_point; NaN gives
 * zero_point.
 */
int32_t qat_code(const qat_qparams *p, float x);
/**
 * The same with the per-channel formula, which multiplies by inv instead of dividing by scale (int8
 * weights).
 */
int32_t qat_code_per_channel(const qat_qparams *p, float x);
/**
 * The parameters of an activation, of whose values the range is known: qat_choose_qparams, widened.
 * With QAT_WIDE_BITS they are symmetric, as TensorFlow Lite has them: zero_point 0, scale
 * max(|min|, |max|) / 32767.
 */
qat_qparams qat_activation_qparams(float min, float max, qat_layout layout, int bits);
/** Of an empty range (only 0 was seen): S = 1, and every value has the code Z. */
bool qat_is_empty_range(const qat_qparams *p);
/** scale * (q - zero_point) */
float qat_real_of(const qat_qparams *p, int32_t code);

/**
 * The parameters of an output whose range is fixed: scale (max - min) 2^-bits, and min is the
 * lowest code. Softmax and logistic have 0, 1; tanh has -1, 1. 0 must be a code. With
 * QAT_WIDE_BITS: scale max(|min|, |max|) 2^-15, zero_point 0.
 */
qat_qparams qat_fixed_qparams(float min, float max, qat_layout layout, int bits);

/* ------------------------------------------------------------------ graph rewrites */

/**
 * The rewrites insert these ops, which qat_registry_create registers with all others. Their sources
 * describe what they compute.
 *
 *     fake_quant (x, range)
 *         activations: per tensor, with an observed or a fixed range
 *     fake_quant_weights (w)
 *         per tensor or per channel, with the min and max of w in every step
 *     bn_fold_weights (w, gamma, ema_variance)
 *         gamma w / s
 *     bn_fold_train (z, gamma, beta, ema_mean, ema_variance, ema_steps[, raw])
 *         docs/arithmetic.md, section 14
 *     bn_fold_bias (gamma, beta, ema_mean, ema_variance[, b])
 *         beta + gamma (b - EMA(m)) / s
 */

/**
 * Copy the float graph and insert fake quantization and batch-norm folding, for training. The new
 * graph is not planned. It has the parameters of the float graph, by name, and more. The float
 * graph is only read.
 */
qat_status qat_create_training_graph(qat_graph **training, const qat_graph *float_graph,
                                     const qat_quant_options *options, qat_error *err);
/**
 * The same for evaluation: batch norm is folded with its averages, dropout is removed, quantization
 * is always on. Only the nodes that lead to the graph's outputs (which must be marked) remain.
 */
qat_status qat_create_eval_graph(qat_graph **eval, const qat_graph *float_graph,
                                 const qat_quant_options *options, qat_error *err);

/** The options with which a rewritten graph was made; NULL for a float graph. */
const qat_quant_options *qat_graph_quant_options(const qat_graph *graph);

/**
 * Steps at which quantization starts or changes in a training graph: its delays, the start of
 * learned ranges, the stages of inq and of bits. INT64_MAX: never. @return the number of steps; 0
 * for a float graph
 */
int qat_quant_changes(const qat_graph *training, int64_t changes[QAT_QUANT_CHANGES]);

/** Does this node quantize weights, or (weights = false) an activation? */
bool qat_node_quantizes(const qat_node *node, bool weights);

/**
 * The names of the layers that cannot become integers, separated by ", ", cut to fit; "" if there
 * are none. These are layers that the options leave in float, and layers whose quantizers say so
 * (qat_quantizer.no_integers).
 */
qat_status qat_float_layers(const qat_graph *float_graph, const qat_quant_options *options,
                            char *names, size_t max, qat_error *err);
/** QAT_ERR_UNSUPPORTED if there are such layers; the message names them and the reason. */
qat_status qat_check_integers(const qat_graph *float_graph, const qat_quant_options *options,
                              qat_error *err);

/**
 * The parameters of a fake_quant node in an eval graph. It is an error if its range is neither
 * observed nor fixed.
 */
qat_status qat_node_qparams(const qat_node *fake_quant, qat_qparams *p, qat_error *err);

/**
 * Make the next runs of an eval graph round as the integers of its options' profile do, or not. At
 * first they do not: they are fake quantization alone, as calibration needs it. Without effect if
 * all have 8 or 16 bits, on a network that has no integers, and with QAT_FORWARD_FAKE_QUANT.
 */
void qat_simulate_integers(qat_graph *eval, bool on);

/**
 * The codes of a fake_quant node after a forward on integers, or after one that rounded as they do:
 * one byte per value, and their parameters. NULL: the forward was another, or the node has no
 * codes.
 */
const uint8_t *qat_integer_codes(const qat_node *node, qat_qparams *p);

/** Write the graph as text or Graphviz dot, with the inserted nodes marked. free() the text. */
qat_status qat_graph_describe(const qat_graph *graph, bool dot, char **text, qat_error *err);

/* ------------------------------------------------------------------ the integer graph */

/** A tensor of the integer graph. dims[0] of an activation is the batch of one inference. */
typedef struct qat_qtensor {
    char name[QAT_NAME_MAX]; /* name of the fake_quant (or weight) node in the eval graph */
    qi_type type;
    int bits;
    int rank;
    int32_t dims[QI_MAX_RANK];
    float scale; /* for weights with channel scales, the scale of channel 0 */
    int32_t zero_point;
    float *channel_scales; /* NULL: per tensor */
    int n_channels;
    float range_min, range_max; /* the range from which the parameters were made, as information */
    void *data;                 /* constants: in the tensor's type; NULL: an activation */
    int source_index;           /* number in a source file, or -1 */
    qi_border border; /* for the graph's inputs and outputs; inside the graph QI_BORDER_NONE */
    bool is_state;    /* kept between runs (docs/qm-format.md) */
    int next;         /* of a state: the activation whose values it takes after each run */
} qat_qtensor;

enum { QAT_QOP_NAME_MAX = 32, QAT_EPILOGUE_INPUTS_MAX = 8 };

typedef struct qat_qop {
    char op[QAT_QOP_NAME_MAX]; /* engine kernel: docs/qm-format.md */
    char name[QAT_NAME_MAX];   /* layer name */
    int n_inputs, n_outputs;
    int *inputs, *outputs; /* tensor indices */
    qi_rounding rounding;
    int fraction; /* fractional bits of the accumulator */
    int n_params;
    int32_t params[QI_MAX_PARAMS];
    int64_t
        max_accumulator; /* largest |acc| over all inputs, including the bias; 0: no accumulator */
} qat_qop;

/** What is computed from the graph's outputs outside the engine (docs/qm-format.md). */
typedef struct qat_qepilogue {
    char name[QAT_QOP_NAME_MAX]; /* "": none */
    int n_inputs, n_params;
    int inputs[QAT_EPILOGUE_INPUTS_MAX]; /* graph outputs and constants */
    int32_t params[QI_MAX_PARAMS];
} qat_qepilogue;

/** Parts of a .qm that running does not need. */
enum {
    QAT_QM_NAMES = 1,       /* of tensors and layers */
    QAT_QM_DESCRIPTION = 2, /* the text that says what the model is */
    QAT_QM_LABELS = 4,      /* of classes */
    QAT_QM_TEST = 8,        /* the known-answer test */
    QAT_QM_SCALES = 16,     /* of output channels, of weights */
    QAT_QM_PARTS = 5,       /* how many there are */
    QAT_QM_ALL_PARTS = 31
};

/** How a graph is written as a .qm; zeros are the default. */
typedef struct qat_qm_form {
    bool unpacked; /* each weight takes a byte, also those of fewer than 8 bits */
    int without;   /* QAT_QM_NAMES ..: the parts that are left out */
    bool fixed;    /* records of a fixed length, shifts of four bytes: older engines read it */
} qat_qm_form;

/**
 * An integer graph, which has all its arrays in its own memory. Any number of threads may read it.
 * While one thread changes it, no other may use it.
 */
typedef struct qat_qgraph {
    int n_tensors, n_ops, n_inputs, n_outputs;
    qat_qtensor *tensors;
    qat_qop *ops; /* in execution order */
    int *inputs, *outputs;
    int tensors_capacity, ops_capacity;
    qat_qepilogue epilogue;
    qat_qm_form form;
    struct qat_arena *memory;
} qat_qgraph;

qat_qgraph *qat_qgraph_new(void); /* NULL: out of memory */
void qat_qgraph_free(qat_qgraph *graph);
/**
 * Append a tensor. Returns its index, or -1 after qat_fail. Its numbers are copied, unless they are
 * those of another tensor of the graph: then both share them.
 */
int qat_qgraph_tensor(qat_qgraph *graph, const qat_qtensor *tensor, qat_error *err);
/**
 * Append a constant QI_S32 vector (copied). It has rank 1, or rank 2 if columns > 1. Returns its
 * index, or -1 after qat_fail.
 */
int qat_qgraph_constant_s32(qat_qgraph *graph, const char *name, int rows, int columns,
                            const int32_t *values, qat_error *err);
/**
 * Append an op. Tensors are given by index; all arrays are copied. Returns its index, or -1 after
 * qat_fail.
 */
int qat_qgraph_op(qat_qgraph *graph, const char *op, const char *name, qi_rounding rounding,
                  int n_inputs, const int *inputs, int n_outputs, const int *outputs, int n_params,
                  const int32_t *params, int64_t max_accumulator, qat_error *err);
/** Set the inputs and outputs of the graph: tensors by index, which are copied. */
qat_status qat_qgraph_set_io(qat_qgraph *graph, int n_inputs, const int *inputs, int n_outputs,
                             const int *outputs, qat_error *err);
/** Set the epilogue; its inputs are tensors of the graph. */
qat_status qat_qgraph_set_epilogue(qat_qgraph *graph, const char *name, int n_inputs,
                                   const int *inputs, int n_params, const int32_t *params,
                                   qat_error *err);
size_t qat_qtensor_count(const qat_qtensor *tensor); /* number of values */
/** Has the op weights: are its inputs x, w, bias, mult, shift? */
bool qat_qop_accumulates(const qat_qop *op);
size_t qat_qtensor_bytes(const qat_qtensor *tensor);
/** The code in a byte of a QI_U8 or QI_S8 tensor. */
static inline int32_t qat_qtensor_code(const qat_qtensor *tensor, uint8_t byte)
{
    return tensor->type == QI_S8 ? (int8_t)byte : byte;
}

/** Code i of an array of codes of this type: of 8, 16 or 32 bits; and its store. */
static inline int32_t qat_load_code(qi_type type, const void *codes, size_t i)
{
    return type == QI_S32   ? ((const int32_t *)codes)[i]
           : type == QI_S16 ? ((const int16_t *)codes)[i]
           : type == QI_S8  ? ((const int8_t *)codes)[i]
                            : ((const uint8_t *)codes)[i];
}
static inline void qat_store_code(qi_type type, void *codes, size_t i, int32_t code)
{
    if (type == QI_S32)
        ((int32_t *)codes)[i] = code;
    else if (type == QI_S16)
        ((int16_t *)codes)[i] = (int16_t)code;
    else
        ((uint8_t *)codes)[i] = (uint8_t)code;
}

/**
 * Split a real number: real = mult * 2^(shift - 31), mult in [2^30, 2^31), rounded half away. Too
 * small a number gives 0, 0 (golden quantize_multiplier), as do 0, negative numbers, NaN and
 * infinity. Host only, because it takes a double.
 */
void qat_quantize_multiplier(double real, int32_t *mult, int *shift);
/**
 * Split a real number: real = significand * 2^(exponent - 53), significand in [2^52, 2^53), for
 * QI_ROUND_DOUBLE.
 */
void qat_split_multiplier(double real, int64_t *significand, int *exponent);

/* ------------------------------------------------------------------ how an op is quantized */

typedef enum qat_quant_role {
    QAT_ROLE_ACCUMULATE, /* conv, depthwise, FC: have weights; bias, norm and clamp fuse into them
                          */
    QAT_ROLE_BIAS,       /* bias: part of the op before, if possible. Built-in only */
    QAT_ROLE_NORM,       /* batch norm: the same. Built-in only */
    QAT_ROLE_CLAMP,  /* ReLU, ReLU6: y = min(max(x, clamp_min), clamp_max); part of the op before,
                        if possible */
    QAT_ROLE_BINARY, /* add, mul: own range; a clamp fuses */
    QAT_ROLE_CONCAT, /* inputs and output share one range */
    QAT_ROLE_POOL,   /* average pools: the output keeps the input's parameters and is rounded */
    QAT_ROLE_PASS,   /* max pool, reshape, flatten, dropout: codes pass through unchanged; carry:
                        its second input is a state, which becomes the first in the next step */
    QAT_ROLE_FIXED,  /* softmax, logistic, tanh: fixed_min..fixed_max is the output range */
    QAT_ROLE_TABLE,  /* elementwise: own observed range; becomes a 256-entry table at export */
    QAT_ROLE_CUSTOM, /* own observed range, own integer kernel */
    QAT_ROLE_QUANTIZER, /* inserted by the rewrites: qat/quantizer.h */
    QAT_ROLE_STATE      /* kept from step to step; its range is that of what it becomes */
} qat_quant_role;

/**
 * What a freeze function gets for one fused layer of the eval graph: the head node, what was fused
 * into it, and the integer tensors of its inputs. It appends ops and constants to graph. The last
 * op writes `output`.
 */
typedef struct qat_fused_layer {
    qat_qgraph *graph;
    qat_profile profile;
    const qat_quant_options *options;
    const qat_node *head;    /* the layer's op */
    const qat_node *weights; /* ACCUMULATE: the fake_quant_weights node, with computed values */
    const float *bias;       /* real bias of each output channel, or NULL */
    int n_bias;
    float act_min, act_max; /* fused ReLU: [0, inf], ReLU6: [0, 6], otherwise [-inf, inf] */
    int n_inputs;
    const int *inputs; /* tensor indices of the data inputs */
    const qat_qparams *input_params;
    int output; /* tensor index */
    qat_qparams output_params;
    void (*warn)(void *context,
                 const char *message); /* called if a bias was clamped, for example; may be NULL */
    void *warn_context;
} qat_fused_layer;

/** acc mult 2^(shift - 31) as an integer: qi_requantize, or another rule for comparison. */
typedef int32_t qat_requantize_fn(int32_t acc, int32_t mult, int shift);

/**
 * One op of the integer graph and a batch, for the exact evaluation. Codes are in the tensors' own
 * types; an activation holds batch times the tensor's values.
 */
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
 * The quant entry of an op. NULL members have defaults by role. (TABLE and FIXED need no freeze:
 * their table is made by running forward on the 256 codes. CLAMP may have none: it is a
 * requantization if no layer takes it.)
 */
typedef struct qat_quant {
    qat_quant_role role;
    qat_status (*freeze)(const qat_fused_layer *layer, qat_error *err);
    /**
     * Custom kernels: the exact evaluation of the integer op `exact_op` that freeze emits. It must
     * be written separately from the engine's kernel.
     */
    const char *exact_op;
    qat_exact_fn *exact;
    /**
     * Which parameters of the op are quantized as weights, by position (bit mask). ACCUMULATE: bit
     * 0. CUSTOM ops: these parameters get a fake_quant_weights node; others stay float for freeze.
     * Layout int8: one scale per index of their first dimension (depthwise_conv2d: the last).
     */
    unsigned weight_params;
    /** ACCUMULATE: the dimension of the weights that counts output channels: the first or last. */
    int channel_axis;
    /** ACCUMULATE: the sums are those of a transposed convolution. */
    bool transposed;
    /** CLAMP: its bounds; one of them may be infinite. */
    float clamp_min, clamp_max;
    /**
     * FIXED: the range of the output. The scale is (fixed_max - fixed_min) 2^-bits, and 0 must be a
     * code: [0, 1) for softmax, [-1, 1) for tanh.
     */
    float fixed_min, fixed_max;
    /** PASS: the codes keep their order (reshape, dropout), so a device has nothing to do. */
    bool is_view;
    /**
     * PASS: by what training multiplies the values that it does not drop. Such an op (dropout) is
     * not part of an eval graph.
     */
    double (*training_factor)(const qat_node *node);
    /**
     * By how many quanta of its output the integer op may differ from forward on the same inputs.
     * 0: the built-in ops' own bounds, or 1 for other ops. qat_export refuses a larger difference.
     */
    double max_quanta;
    /** QUANTIZER: the quantizer (qat/quantizer.h). */
    const struct qat_quantizer *quantizer;
    /**
     * Its integer form takes activations of QAT_WIDE_BITS bits too. A network with such activations
     * is refused if it has an op that does not.
     */
    bool takes_wide;
} qat_quant;

/*
 * Functions for freeze functions, also of custom layers. They work on the layer that is being
 * frozen.
 */

/**
 * Quantize the values of a fake_quant_weights node and append them as a constant with its name. The
 * codes are made by qat_code (layout uint8) or qat_code_per_channel (int8, one scale per output
 * channel).
 * @param index  the constant's tensor index
 */
qat_status qat_freeze_weights(const qat_fused_layer *layer, const qat_node *weights, int *index,
                              qat_error *err);
/**
 * The default of QAT_ROLE_TABLE: run head's forward on every input code. There is one table, or one
 * per channel if they differ. An op that is not elementwise is an error.
 */
qat_status qat_freeze_table(const qat_fused_layer *layer, qat_error *err);
/**
 * Requantize the codes of layer->inputs[0] to the grid of the output, within [act_min, act_max].
 */
qat_status qat_freeze_requantize(const qat_fused_layer *layer, qat_error *err);
/**
 * The codes between which an output is clamped: zero_point + round(bound / scale) in float32, half
 * away from zero, within the code range of the tensor's type and bits. Infinite bounds are allowed.
 */
void qat_clamp_codes(const qat_qtensor *output, float act_min, float act_max, int32_t *lo,
                     int32_t *hi);

/* ------------------------------------------------------------------ exact evaluation */

/**
 * An exact evaluation of an integer graph. One thread at a time may use it. It only reads the
 * graph, which it borrows.
 */
typedef struct qat_exact qat_exact;

/**
 * Prepare to evaluate an integer graph on batches, independently of the engine's kernels:
 * differences (q - Z) in float64, products by OpenBLAS dgemm (exact below 2^53), requantization by
 * the shared arithmetic header. Borrows graph and registry (for custom ops). Free it with
 * qat_exact_free.
 */
qat_status qat_exact_create(qat_exact **exact, const qat_qgraph *graph,
                            const qat_registry *registry, int max_batch, qat_error *err);
void qat_exact_free(qat_exact *exact);
/**
 * Use another rule in convolutions and fully connected layers with QI_ROUND_TWICE, to measure what
 * a wrong rule would cost (bench/claims). NULL: qi_requantize again.
 */
void qat_exact_set_requantize(qat_exact *exact, qat_requantize_fn *requantize);
/** Run a batch. inputs: one pointer per graph input, to the codes of batch samples. */
qat_status qat_exact_run(qat_exact *exact, const void *const *inputs, int batch, qat_error *err);
/** The codes of a tensor after a run: batch samples, in the tensor's type. */
const void *qat_exact_tensor(const qat_exact *exact, int tensor);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
