/**
 * Functions that the quant_*.c files share: append an engine op to an integer graph, and evaluate
 * an op.
 *
 * Three callers append ops: freeze functions (float layers), readers of foreign formats, and the
 * golden tests. Their tensors come from different places, but the arithmetic is the same. So the
 * arithmetic (multipliers, clamps, paddings, overflow checks) is here, and depends only on the
 * integer tensors. Each qat_emit_* function is in the file of its op family, next to the op's exact
 * evaluation.
 */
#ifndef QAT_INTEGER_QUANT_OPS_H
#define QAT_INTEGER_QUANT_OPS_H

#include "autograd/loops/window.h"
#include "base/arena.h"
#include "qat/quant.h"

/** Make a graph empty again. Its memory stays, for what is appended next. */
void qat_qgraph_clear(qat_qgraph *graph);

/* ------------------------------------------------------------------ appending engine ops */

/** An engine op to append. Its tensors are already in the graph. */
typedef struct qat_emit {
    qat_qgraph *graph;
    qat_profile profile;
    const qat_quant_options *options; /* NULL: of an imported model */
    const char *name;                 /* the layer's name, for the op, its constants and messages */
    int n_inputs;
    const int *inputs; /* inputs of the engine op, without mult, shift and table */
    int output;
    float act_min, act_max; /* real bounds of a fused activation, or -inf, inf */
    bool empty;             /* the output's range is empty: every value has the code Z */
    int fraction; /* accumulating ops: fractional bits of the accumulator, which the bias has */
} qat_emit;

/** The same layer in this form: head's name, its data inputs, its output. */
qat_emit qat_emit_of(const qat_fused_layer *layer);

/** Inputs of an accumulating engine op. */
enum { QAT_IN_X, QAT_IN_WEIGHTS, QAT_IN_BIAS, QAT_IN_MULT, QAT_IN_SHIFT, QAT_ACCUMULATE_INPUTS };

/**
 * conv2d and depthwise_conv2d. inputs: x, weights, bias (an S32 constant, or -1: zeros). Only the
 * strides, dilations and explicit padding of the window are used (and, for pools, the kernel).
 * Kernel, other padding, groups and depth multiplier follow from the shapes. M: docs/arithmetic.md,
 * section 3. A layer whose accumulator could exceed int32 is an error.
 */
qat_status qat_emit_conv2d(const qat_emit *e, const qat_window *window, qat_error *err);
qat_status qat_emit_depthwise_conv2d(const qat_emit *e, const qat_window *window, qat_error *err);
/**
 * inputs: x, weights, bias or -1. The caller sets the output's shape. Of the window only the
 * strides and the padding (pad_top, pad_left) are used.
 */
qat_status qat_emit_transpose_conv2d(const qat_emit *e, const qat_window *window, qat_error *err);
/** Set that padding as TensorFlow does for the output y: SAME, or VALID. */
void qat_transposed_pads(qat_window *window, const qat_qtensor *y, bool same);
/** inputs: x, weights, bias or -1. Profile tflite: QI_ROUND_DOUBLE. */
qat_status qat_emit_fully_connected(const qat_emit *e, qat_error *err);
/** op: "add" or "sub", inputs a, b. */
qat_status qat_emit_add(const qat_emit *e, const char *op, qat_error *err);
/**
 * The same of 16-bit codes whose scales are powers of two: each input is shifted right, half away
 * from zero, and they are added.
 */
qat_status qat_emit_add_shifted(const qat_emit *e, const char *op, int right_a, int right_b,
                                qat_error *err);
qat_status qat_emit_mul(const qat_emit *e, qat_error *err);
/** inputs: a, b, each a matrix, or transposed, with batches before it. */
qat_status qat_emit_batch_matmul(const qat_emit *e, bool transpose_a, bool transpose_b,
                                 qat_error *err);
/** inputs: a, b; their quotient. */
qat_status qat_emit_div(const qat_emit *e, qat_error *err);
/** Of 8-bit codes; inputs: a, b. */
qat_status qat_emit_squared_difference(const qat_emit *e, qat_error *err);
/** Of 8-bit codes, a and b, to truth values. */
qat_status qat_emit_compare(const qat_emit *e, qi_comparison kind, qat_error *err);
/** Of 8-bit codes, over the axes of the mask. */
qat_status qat_emit_sum(const qat_emit *e, unsigned axis_mask, qat_error *err);
/** Along the last axis, of int8. */
qat_status qat_emit_log_softmax(const qat_emit *e, qat_error *err);
/** inputs: x, alpha. */
qat_status qat_emit_prelu(const qat_emit *e, qat_error *err);
/** Append tables with the results of TensorFlow Lite's fixed-point kernels. */
qat_status qat_emit_leaky_relu(const qat_emit *e, float alpha, qat_error *err);
qat_status qat_emit_hard_swish(const qat_emit *e, qat_error *err);
qat_status qat_emit_rsqrt(const qat_emit *e, qat_error *err);
/** A real function of one number. Of 16-bit codes, what is -INFINITY is the lowest code, NAN the
 * highest. */
typedef float qat_real_fn(float x);
/**
 * A table of a real function of 8-bit codes: round(f(S (q - Z)) (1 / S')) + Z', every operation in
 * float32; of 16-bit codes, lines between the values of the function.
 */
qat_status qat_emit_real_table(const qat_emit *e, qat_real_fn *f, qat_error *err);
/** op: "average_pool2d" or "max_pool2d"; output on the input's scale and zero_point. */
qat_status qat_emit_pool(const qat_emit *e, const char *op, const qat_window *window,
                         qat_error *err);
/** axis_mask: bit i set means that axis i of the input is averaged. */
qat_status qat_emit_mean(const qat_emit *e, unsigned axis_mask, qat_error *err);
/** Inputs with another scale are first brought to the output's. axis may be negative. */
qat_status qat_emit_concat(const qat_emit *e, int axis, qat_error *err);
/** op: "logistic" or "tanh"; profile tflite: a table. */
qat_status qat_emit_sigmoid(const qat_emit *e, const char *op, qat_error *err);
/** Along the last axis: softmax(beta x). */
qat_status qat_emit_softmax(const qat_emit *e, float beta, qat_error *err);
/**
 * Functions of 16-bit codes; quant_wide.c. Sigmoid is "logistic" or "tanh"; a wide table has lines
 * between the values of a real function.
 */
qat_status qat_emit_wide_table(const qat_emit *e, qat_real_fn *f, qat_error *err);
qat_status qat_emit_wide_sigmoid(const qat_emit *e, const char *op, qat_error *err);
qat_status qat_emit_softmax16(const qat_emit *e, float beta, qat_error *err);
qat_status qat_emit_wide_leaky_relu(const qat_emit *e, float alpha, qat_error *err);
qat_status qat_emit_wide_abs(const qat_emit *e, qat_error *err);
/** Is a scale a power of two, as nearly as TensorFlow Lite asks for it? */
bool qat_is_power_of_two(float scale, int *exponent);
/** Requantize to the output's scale; with bounds, this is a ReLU that is not fused. */
qat_status qat_emit_requantize(const qat_emit *e, qat_error *err);
/** codes: rows tables of 256 of the output's type, by the input code's byte position (copied). */
qat_status qat_emit_table(const qat_emit *e, int rows, const void *codes, qat_error *err);
qat_status qat_emit_reshape(const qat_emit *e, qat_error *err);

/**
 * How an op rounds that has `rounding` if all its codes have 8 bits: ONCE where an input or the
 * output has fewer, and the options want fractional bits (qat_wanted_fraction).
 */
qi_rounding qat_emit_rounding(const qat_emit *e, qi_rounding rounding);
/** acc mult 2^(shift - 31) as an op with this rounding, TWICE or ONCE, makes it an integer. */
int32_t qat_rounded(qi_rounding rounding, int32_t acc, int32_t mult, int32_t shift);

/** Append an op with these params and with e's inputs only. */
qat_status qat_emit_op(const qat_emit *e, const char *op, qi_rounding rounding, int n_params,
                       const int32_t *params, int64_t max_accumulator, qat_error *err);

/** The error for a fused activation if the op has no clamp. */
qat_status qat_refuse_activation(const qat_emit *e, const char *op, qat_error *err);
/**
 * For ops that keep codes: it is an error if the output's codes mean other reals than input i's. In
 * profile tflite, whose kernels do not look at the scale, only another type or zero_point is an
 * error.
 */
qat_status qat_require_same_grid(const qat_emit *e, const char *op, int i, qat_error *err);
/** Same type, bits, scale and zero_point? */
bool qat_same_grid(const qat_qtensor *a, const qat_qtensor *b);
/**
 * The codes of the layer's clamp: Z alone, if the output's range is empty. In profiles paper and
 * onnx, of fewer than 8 bits, they are those that fake quantization gives the bounds (eq. 12), so
 * that a clamp before it and one behind it are the same. Otherwise they are qat_clamp_codes.
 */
void qat_emit_clamp(const qat_emit *e, int32_t *lo, int32_t *hi);
/** The same for bounds and an output that are given. */
void qat_clamp_codes_of(qat_profile profile, const qat_qtensor *output, float act_min,
                        float act_max, int32_t *lo, int32_t *hi);
/** Codes of a tensor's type and bits. */
void qat_tensor_codes(const qat_qtensor *t, int32_t *lo, int32_t *hi);
/** The largest |q - zero_point| of a tensor. */
int32_t qat_largest_difference(const qat_qtensor *t);
/** The code at byte position i of a 256-entry table: u8 i, s8 i - 128. */
int32_t qat_code_at(qi_type type, int i);
/** Padding at the top and at the left: the window's if it is explicit, else the one that the sizes
 * of x [N,H,W,C] and y imply. The window's kernel must be set. */
void qat_window_pads(const qat_window *window, const qat_qtensor *x, const qat_qtensor *y,
                     int32_t pads[2]);
/** TensorFlow's padding at the top or left, which its output size implies; 0 for VALID. */
int qat_pad_before(int in, int out, int kernel, int stride, int dilation);
/**
 * The multiplier of a requantization: like qat_quantize_multiplier, but 2^30 and above give 2^30
 * (everything but 0 then saturates).
 */
void qat_requantize_multiplier(double real, int32_t *mult, int32_t *shift);
/** "<layer>/<part>", cut to fit. */
void qat_part_name(char name[QAT_NAME_MAX], const char *layer, const char *part);
/** An activation inside a layer, "<layer>/<part>", with the type, the grid and the dims of `like`.
 */
qat_qtensor qat_part_like(const qat_qtensor *like, const char *layer, const char *part);
/** The status of a failed append (index < 0), from what it wrote to err. */
qat_status qat_append_status(int index, const qat_error *err);

/** M = S1 S2 / S3 of an accumulating layer; in_float32: S1 S2 is rounded to float32. */
double qat_accumulator_multiplier(float s1, float s2, float s3, bool in_float32);
/** The same as a profile computes it, of an input in this layout. */
double qat_layer_multiplier(qat_profile profile, qat_layout layout, bool fully_connected, float s1,
                            float s2, float s3);
/**
 * The scale of a channel of weights that do not move its output, and whose bias leaves the
 * accumulator: with it, and codes of 0, the bias fits (docs/arithmetic.md, section 3). 0: the
 * channel keeps its weights.
 * @param bound       of |sum|
 * @param multiplier  M, of s1 s2
 * @param fraction    that the layer wants
 * @param most        of the accumulator
 */
float qat_silent_scale(double bias, double s1, float s2, int64_t bound, double multiplier,
                       int fraction, int64_t most);
/** Give such channels of a layer's weights this scale, and codes of 0. */
qat_status qat_silence_channels(const qat_fused_layer *layer, int weights, bool depthwise,
                                const double *multipliers, int fraction, qat_error *err);
/** bias / scale to the nearest integer, half away from zero, plus `ties`; limited to +-room. */
int64_t qat_bias_code(double bias, double scale, int64_t ties, int64_t room);
/**
 * 2^-15 of a code in units of an accumulator with a fraction, at least 1: added to the bias, it
 * lets sums on a tie go up, as in the simulation. 0 without a fraction, and where a unit is more
 * than 2^-12 of a code, or at most 2^-31.
 * @param multiplier  M of sums without a fraction
 */
int64_t qat_tie_units(double multiplier, int fraction);
/** The bits that the codes of a fake_quant_weights node need. */
int qat_weight_bits(const qat_node *weights, qat_layout layout);
/** The most fractional bits that the options want for a layer; bits: of input and weights. */
int qat_wanted_fraction(const qat_quant_options *options, qat_profile profile, bool fully_connected,
                        int input_bits, int weight_bits);
/**
 * The largest f <= most with which one channel's accumulator has f fractional bits: it fits int32,
 * and the multiplier M 2^-f can be stored.
 * @param bound  its largest |sum|
 * @param bias   in units of S_x S_w
 */
int qat_largest_fraction(int most, int64_t bound, double bias, double multiplier);
/**
 * The largest |sum (q - Z)(w - Zw)| of each output channel over all inputs of x.
 * @param depthwise  channels are the last axis of the weights, otherwise the first
 * @param bounds     one per channel
 */
void qat_accumulator_bounds(const qat_qtensor *x, const qat_qtensor *w, bool depthwise,
                            int64_t *bounds);
/**
 * The largest |acc|, including the bias, over all channels. It is an error if int32 cannot hold it;
 * if x has 16-bit codes and the rounding is not TWICE, if 48 bits cannot.
 * name: the layer's, for the message.
 */
qat_status qat_largest_accumulator(const qat_qtensor *x, const qat_qtensor *w,
                                   const qat_qtensor *bias, bool depthwise, qi_rounding rounding,
                                   int fraction, const char *name, int64_t *largest,
                                   qat_error *err);
/** Append the ops of a layer, by its head's own freeze function or the default of its role. */
qat_status qat_freeze_layer(const qat_fused_layer *layer, qat_error *err);
/**
 * Append the bias of an ACCUMULATE layer: int32 on scale S_x S_w 2^-fraction, of 16-bit codes
 * int64. If the accumulator could overflow with the bias, the bias is clamped, with a warning. If
 * it could overflow without it, this is an error.
 * @param multipliers  M of each channel
 * @param fraction     in: the most fractional bits that are wanted; out: those that there are
 */
qat_status qat_freeze_bias(const qat_fused_layer *layer, int weights, bool depthwise,
                           const double *multipliers, int *fraction, int *index, qat_error *err);

/* ------------------------------------------------------------------ exact evaluation */

/** Like qat_exact_create, but in memory of the caller's; it needs no qat_exact_free. */
qat_status qat_exact_create_in(qat_exact **exact, qat_arena *memory, const qat_qgraph *graph,
                               const qat_registry *registry, int max_batch, qat_error *err);

/** Evaluates one sample of a batch. */
typedef void qat_exact_sample_fn(const qat_exact_call *call, int sample);
/** Equals fn(call, sample) for every sample of the batch. Runs in parallel. */
void qat_exact_each(const qat_exact_call *call, qat_exact_sample_fn *fn);
/** An input's or output's descriptor. */
const qat_qtensor *qat_exact_input(const qat_exact_call *call, int i);
const qat_qtensor *qat_exact_output(const qat_exact_call *call);
/** The codes of one sample; a constant is the same for all samples. */
const uint8_t *qat_exact_in(const qat_exact_call *call, int i, int sample);
uint8_t *qat_exact_out(const qat_exact_call *call, int sample);
/** Code i of a tensor's codes, of at most 32 bits; and its store. */
int32_t qat_exact_code(const qat_qtensor *t, const void *codes, size_t i);
void qat_exact_store(const qat_qtensor *t, void *codes, size_t i, int32_t code);
/** The same of a code that is first limited to lo..hi. */
void qat_exact_store_clamped(const qat_qtensor *t, void *codes, size_t i, int64_t code, int32_t lo,
                             int32_t hi);
/** difference[byte] = q - zero_point for the code that a byte of the tensor stands for. */
void qat_exact_differences(const qat_qtensor *t, int32_t difference[256]);
/** acc M rounded to even, in float32; far beyond every code if it is large. QI_ROUND_EVEN. */
float qat_even_multiplier(int32_t mult, int32_t shift);
int32_t qat_exact_even(float acc, int32_t mult, int32_t shift);
/** Map every byte of the sample of input 0 through a table of codes. */
void qat_exact_map(const qat_exact_call *call, int sample, const int32_t table[256]);

/* ------------------------------------------------------------------ rows */

/**
 * What this side knows of an integer op that freezing emits; qi_op_named has the rest. Each row is
 * in the file of its family.
 *
 * The bound says how far the op's integers may be from its real result, in quanta of its output.
 * The roundings of float32 on the other side are not in it.
 */
typedef struct qat_integer_op {
    const char *name;
    qat_exact_sample_fn *sample; /* evaluates it exactly, sample by sample */
    qat_exact_fn *exact;         /* or the whole batch */
    bool is_wide;                /* evaluates 16-bit codes too */
    double quanta;               /* the bound */
    double (*bound)(const qat_qgraph *graph, const qat_qop *op); /* or this. INFINITY: not known */
} qat_integer_op;

/* clang-format off */
#define QAT_INTEGER_OPS(X)                                                                         \
    X(conv2d) X(depthwise_conv2d) X(transpose_conv2d) X(fully_connected) X(add) X(sub) X(mul)      \
    X(prelu) X(concat) X(average_pool2d) X(max_pool2d) X(mean) X(pad) X(softmax) X(softmax16)      \
    X(logistic) X(tanh) X(requantize) X(table) X(reshape) X(strided_slice) X(transpose)            \
    X(resize_nearest) X(resize_bilinear) X(cast) X(gather) X(pack) X(unpack)
/* clang-format on */
#define QAT_DECLARE_INTEGER_OP_(name) extern const qat_integer_op qat_integer_##name;
QAT_INTEGER_OPS(QAT_DECLARE_INTEGER_OP_)

/** The row of the op with this name, or NULL. */
const qat_integer_op *qat_integer_op_named(const char *name);

/**
 * The bound of a requantization by M: 1/2 + min(M, 1/4). The second of its two roundings is at most
 * 1/2, the first is half a unit before a shift right by n >= 1: 2^-n / 2 <= M (n = 0: it is the
 * only one).
 */
double qat_requantized_quanta(double m);
/** The same for an op of rounding TWICE, or ONCE: that has no first rounding. */
double qat_rounded_quanta(const qat_qop *op, double m);
/**
 * What float32's roundings may be in an op on 16-bit codes: 2^15 quanta are 24 bits less 9. n: by
 * how many times the output's range its operands may be larger. Of 8-bit codes there is one bound
 * for all (lib/convert/layers.c), and this is 0.
 */
double qat_float_quanta(const qat_qgraph *graph, const qat_qop *op, double n);
/** What fixed-point polynomials add: 1/2 and less than 1/8. */
#define QAT_FIXED_POINT_QUANTA 0.625
/** For bounds: the scales of input i and of the output. */
double qat_input_scale(const qat_qgraph *graph, const qat_qop *op, int i);
double qat_output_scale(const qat_qgraph *graph, const qat_qop *op);

#endif
