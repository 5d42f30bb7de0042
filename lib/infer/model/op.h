/**
 * What the op files share. An op file holds one family of ops: how its nodes are checked, how much
 * scratch they need, and how a node is run. What is computed stands in infer/kernels.
 *
 * A qi_checker remembers the first rule that fails. Each rule may rely on those before it. After a
 * group of rules the caller returns if one failed and the next rules would read something that is
 * not there.
 */
#ifndef QI_OP_H
#define QI_OP_H

#include "infer/arithmetic/fixedpoint.h"
#include "infer/arithmetic/positions.h"
#include "infer/kernels/parts/memory.h"
#include "infer/kernels/parts/requant.h"
#include "infer/kernels/parts/window.h"
#include "infer/kernels/tile.h"
#include "infer/kernels/values.h"
#include "infer/model/model.h"
#include "infer/model/packing.h"

/* ------------------------------------------------------------------ checking */

typedef struct qi_checker {
    const qi_model *model;
    const qi_node *node;
    int32_t index; /* index of the node */
    qi_error *err;
    qi_status status;
} qi_checker;

/**
 * If not ok, fail with these numbers, unless something failed before. Returns true while nothing
 * has failed.
 */
int qi_rule(qi_checker *c, int ok, qi_status status, const char *what, int64_t value,
            int64_t limit);
/** Check lo <= value <= hi; QI_ERR_PARAM names the limit that was passed. */
int qi_rule_range(qi_checker *c, const char *what, int64_t value, int64_t lo, int64_t hi);
/** Check that the node has one output, these counts and this rounding. */
int qi_rule_counts(qi_checker *c, int32_t least_inputs, int32_t most_inputs, int32_t params,
                   int32_t rounding);
/**
 * The rounding to check for in an op that has `rounding` or, of 8-bit codes, also others: the bits
 * 1 << QI_ROUND_EVEN, 1 << QI_ROUND_ONCE.
 */
int32_t qi_rounding_or(const qi_model *model, const qi_node *node, int32_t rounding,
                       unsigned others);
/** The same for a node with so many outputs. */
int qi_rule_counts_outputs(qi_checker *c, int32_t least_inputs, int32_t most_inputs,
                           int32_t outputs, int32_t params, int32_t rounding);
/** Check that the inputs from first to last (counted from 0) and all outputs hold 8-bit codes. */
int qi_rule_codes(qi_checker *c, int32_t first, int32_t last);
/**
 * Check that these inputs and the output all hold 8-bit codes, or all 16-bit codes with zero_point
 * 0.
 */
int qi_rule_codes_or_wide(qi_checker *c, int32_t first, int32_t last);
/** Check that these inputs and the output hold codes, of 8 or 16 bits and with any zero_point. */
int qi_rule_any_codes(qi_checker *c, int32_t first, int32_t last);
/** Check that a tensor holds truth values: QI_U8 of one bit. */
int qi_rule_truth(qi_checker *c, const qi_tensor *t);
/** Check that the inputs from first to last broadcast to the output, as NumPy's do. */
void qi_rule_broadcast(qi_checker *c, int32_t first, int32_t last);
/** Check that input i and the output have equal rank and dims. */
int qi_rule_same_shape(qi_checker *c, int32_t i);
/** Check that input i and the output have equal type and bits: the same codes. */
int qi_rule_same_type(qi_checker *c, int32_t i);
/** Check that input i and the output have equal type, bits and zero_point. */
int qi_rule_same_codes(qi_checker *c, int32_t i);
/** Check a multiplier among the parameters: mult at params[at], its shift at params[at + 1]. */
int qi_rule_multiplier(qi_checker *c, int32_t at);
/** Check that clamp_lo, clamp_hi at params[at], params[at + 1] are codes of the output. */
int qi_rule_clamp(qi_checker *c, int32_t at);
/** Check that t has this type and these dims. */
int qi_rule_tensor(qi_checker *c, const qi_tensor *t, qi_type type, int rank, const int32_t dims[]);
/** The same of input i, which is also a constant with zero_point 0. */
int qi_rule_weights(qi_checker *c, int32_t i, qi_type type, int rank, const int32_t dims[]);
/** Check that input i is a constant QI_S32 with that many values. */
int qi_rule_s32(qi_checker *c, int32_t i, int64_t values, const char *what);

/** Input i of a node; its first output; any of its outputs. */
const qi_tensor *qi_input(const qi_model *model, const qi_node *node, int32_t i);
const qi_tensor *qi_output(const qi_model *model, const qi_node *node);
const qi_tensor *qi_node_output(const qi_model *model, const qi_node *node, int32_t i);

/** The distance in memory, in values, between neighbours along each axis. */
void qi_strides(const qi_tensor *t, size_t stride[QI_MAX_RANK]);
/** Dimension d of 0..3 of a tensor whose dims are aligned at the last, as broadcasting needs it. */
int32_t qi_aligned_dim(const qi_tensor *t, int d);
/** qi_strides of aligned dims; the stride is 0 along dims of 1, which are repeated. */
void qi_broadcast_strides(const qi_tensor *t, size_t stride[QI_MAX_RANK]);
/** The number of values. */
int64_t qi_count(const qi_tensor *t);
/** Does it hold 16-bit codes? */
static inline int qi_is_wide(const qi_tensor *t)
{
    return t->type == QI_S16;
}
/** The lowest and highest code of a tensor's type and bits; of QI_S32, the ends of int32. */
int32_t qi_code_lo(const qi_tensor *t);
int32_t qi_code_hi(const qi_tensor *t);
/** The largest |q - zero_point| over those codes. */
int32_t qi_largest_difference(const qi_tensor *t);

/* ------------------------------------------------------------------ codes that share bytes */

enum { QI_SHARED_BITS = 4 }; /* codes of so many bits or fewer can share bytes (op pack) */
/** How many codes of so many bits lie in a byte. */
static inline int32_t qi_codes_of_byte(int32_t bits)
{
    return bits <= 2 ? 4 : 2;
}

/* ------------------------------------------------------------------ accumulating layers */

enum { QI_ACC_INPUTS = 5 }; /* x, weights, bias, mult, shift */

/**
 * Check the types of x, weights and output: the weights hold 8-bit codes, x and the output 8-bit
 * codes or 16-bit codes with zero_point 0. Only these may have QI_ROUND_LONG, and only 8-bit codes
 * with QI_ROUND_TWICE a fraction.
 */
int qi_rule_layer(qi_checker *c);
/**
 * The rounding of a layer's node if it is LONG or, where that may be, DOUBLE; else TWICE, which all
 * layers have.
 */
int32_t qi_layer_rounding(const qi_node *node, int may_be_double);
/**
 * Check inputs 1..4 of conv2d, transpose_conv2d, depthwise_conv2d and fully_connected: constant
 * weights, bias [channels], mult and shift [channels or 1], every multiplier in range. Also check
 * that max_accumulator is the value that follows from the weights, and fits int32, or 48 bits if x
 * is wide and the rounding is not TWICE. The bias may then be QI_S64.
 *
 * @param channels  the first dimension of the weights, or the last of depthwise ones [1, ...]
 */
int qi_rule_accumulator(qi_checker *c, int64_t channels);

/** clamp_lo and clamp_hi are the parameters at[0] and at[1]. */
qi_requant qi_requant_of(const qi_call *call, int32_t at);

/** How the bytes of a tensor become differences. */
static inline qi_codes qi_codes_of(const qi_tensor *t)
{
    int const flip = t->type == QI_S8 ? 0x80 : 0;
    return (qi_codes){(uint8_t)flip, t->type == QI_S16, (int16_t)(t->zero_point + flip)};
}

/** The sum of |(byte ^ flip) - offset| of n weights. n <= 2^24, so 32 bits hold it. */
uint32_t qi_weight_sum(const uint8_t *codes, int64_t n, qi_codes c);

/**
 * Parts of conv2d and fully_connected, for a host's drivers: the windows first..end-1, counted over
 * [N,OH,OW]; the channels first..end-1. The scratch is the kernel's.
 */
void qi_run_conv2d_part(const qi_call *call, int32_t first, int32_t end, qi_dots_fn *dots);
void qi_run_fully_connected_part(const qi_call *call, int32_t first, int32_t end, qi_dots_fn *dots);

/* ------------------------------------------------------------------ parameters, in order */

enum { QI_FULLY_CONNECTED_CLAMP_LO, QI_FULLY_CONNECTED_CLAMP_HI };
enum { QI_MEAN_AXIS_MASK, QI_MEAN_MULT, QI_MEAN_SHIFT, QI_MEAN_CLAMP_LO, QI_MEAN_CLAMP_HI };
enum { QI_SOFTMAX_MULT, QI_SOFTMAX_SHIFT, QI_SOFTMAX_DIFF_MIN, QI_SOFTMAX_PARAMS };
/** of add and sub; of mul */
enum {
    QI_ADD_LEFT_SHIFT,
    QI_ADD_MULT_A,
    QI_ADD_SHIFT_A,
    QI_ADD_MULT_B,
    QI_ADD_SHIFT_B,
    QI_ADD_MULT_Y,
    QI_ADD_SHIFT_Y,
    QI_ADD_CLAMP_LO,
    QI_ADD_CLAMP_HI
};
enum { QI_MUL_MULT, QI_MUL_SHIFT, QI_MUL_CLAMP_LO, QI_MUL_CLAMP_HI };
enum { QI_CONCAT_AXIS, QI_CONCAT_PARAMS };
/** of strided_slice: each has QI_MAX_RANK parameters */
enum { QI_SLICE_BEGIN = 0, QI_SLICE_STRIDE = QI_MAX_RANK, QI_SLICE_PARAMS = 2 * QI_MAX_RANK };

/** of pad: before and after each axis, and the code */
enum {
    QI_PAD_BEFORE = 0,
    QI_PAD_AFTER = QI_MAX_RANK,
    QI_PAD_VALUE = 2 * QI_MAX_RANK,
    QI_PAD_PARAMS
};

/* ------------------------------------------------------------------ windows */

/**
 * Check the ranges and geometry of docs/qm-format.md, and that x and y have rank 4 and one batch
 * size.
 */
int qi_rule_window(qi_checker *c, const qi_window *w);
/** Copy the dims of x and y into w. */
void qi_window_dims(qi_window *w, const qi_tensor *x, const qi_tensor *y);

/** Parameters of conv2d and depthwise_conv2d, in order; the two differ in the seventh. */
enum {
    QI_CONV_STRIDE_H,
    QI_CONV_STRIDE_W,
    QI_CONV_DILATION_H,
    QI_CONV_DILATION_W,
    QI_CONV_PAD_TOP,
    QI_CONV_PAD_LEFT,
    QI_CONV_GROUPS,
    QI_CONV_MULTIPLIER = QI_CONV_GROUPS,
    QI_CONV_CLAMP_LO,
    QI_CONV_CLAMP_HI
};
/**
 * The window of a convolution: the kernel size from the weights, the rest from the parameters and
 * tensors.
 */
qi_window qi_conv_window(const qi_model *model, const qi_node *node);

/** Parameters of transpose_conv2d, in order. */
enum {
    QI_TRANSPOSE_STRIDE_H,
    QI_TRANSPOSE_STRIDE_W,
    QI_TRANSPOSE_PAD_TOP,
    QI_TRANSPOSE_PAD_LEFT,
    QI_TRANSPOSE_CLAMP_LO,
    QI_TRANSPOSE_CLAMP_HI
};
qi_window qi_transpose_window(const qi_model *model, const qi_node *node);

/** Parameters of average_pool2d and max_pool2d, in order. */
enum {
    QI_POOL_KERNEL_H,
    QI_POOL_KERNEL_W,
    QI_POOL_STRIDE_H,
    QI_POOL_STRIDE_W,
    QI_POOL_PAD_TOP,
    QI_POOL_PAD_LEFT,
    QI_POOL_CLAMP_LO,
    QI_POOL_CLAMP_HI
};
qi_window qi_pool_window(const qi_model *model, const qi_node *node);

/* ------------------------------------------------------------------ resizes */

/** Parameters of resize_nearest and resize_bilinear. */
enum { QI_RESIZE_ALIGN_CORNERS, QI_RESIZE_HALF_PIXEL_CENTERS, QI_RESIZE_PARAMS };
/** Axis d of a resize, 1 or 2. */
qi_axis qi_resize_axis_of(const qi_model *model, const qi_node *node, int d);

#endif
