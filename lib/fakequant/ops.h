/**
 * The ops that the rewrites insert, with the positions of their attributes and inputs.
 *
 * The code that freezes a graph decides what they mean in the integer graph.
 */
#ifndef QAT_FAKEQUANT_OPS_H
#define QAT_FAKEQUANT_OPS_H

#include "qat/quant.h"

extern const qat_op qat_op_fake_quant, qat_op_fake_quant_weights, qat_op_bn_fold_weights,
    qat_op_bn_fold_train, qat_op_bn_fold_bias;

/** All of them, in a list that ends with NULL (registry.c). */
extern const qat_op *const qat_fake_quant_ops[];
bool qat_is_fake_quant_op(const qat_op *op);

/** An attribute of all these ops (bits.h). */
#define QAT_FINAL_BITS_ATTR                                                                        \
    {                                                                                              \
        "final_bits", QAT_ATTR_INT, 0, 0, QAT_WIDE_BITS, NULL,                                     \
            "bits at the end of a schedule of bits; 0: there is none, or it has not begun"         \
    }

/* fake_quant (x[, range]) */
enum {
    FQ_BITS,
    FQ_LAYOUT,
    FQ_DECAY,
    FQ_DELAY,
    FQ_KIND,
    FQ_MIN,
    FQ_MAX,
    FQ_SCALE,
    FQ_ZERO_POINT,
    FQ_COMMITS,
    FQ_FINAL_BITS,
    FQ_ATTRS
};
enum { FQ_OBSERVED, FQ_RANGE, FQ_GIVEN }; /* values of FQ_KIND */

/** Is it a fake_quant whose range is observed in training steps? */
static inline bool qat_fake_quant_is_observed(const qat_node *node)
{
    return node->op == &qat_op_fake_quant && (int)node->attrs[FQ_KIND] == FQ_OBSERVED;
}

/**
 * qat_qparams.tie of the values that a quantizer of activations reads, of so many bits. It is 0 of
 * inputs, and of functions that become tables, whose codes are those of eq. 12 as it is.
 */
float qat_tie_of(const qat_node *fake_quant, int bits);

/** The parameter "range" of an observed fake_quant. */
enum { RANGE_MIN, RANGE_MAX, RANGE_STEPS, RANGE_VALUES };

/**
 * State of the last forward: the parameters used. The second function: was the range first observed
 * then?
 */
const qat_qparams *qat_fake_quant_params(const qat_node *fake_quant);
bool qat_fake_quant_is_late(const qat_node *fake_quant);
/** Act like a forward over values from batch.min to batch.max, without the values. */
void qat_fake_quant_observe(qat_node *fake_quant, const qat_run *run, float min, float max);

/* fake_quant_weights (w) */
enum {
    FQW_BITS,
    FQW_LAYOUT,
    FQW_AXIS,
    FQW_DELAY,
    FQW_PER_TENSOR,
    FQW_SYMMETRIC,
    FQW_FINAL_BITS,
    FQW_ATTRS
};
extern const qat_attr_def qat_fake_quant_weights_attrs[];

/** These attributes, for ops that have them and others. */
#define QAT_WEIGHT_ATTRS                                                                           \
    [FQW_BITS] = {"bits", QAT_ATTR_INT, 8, 2, 8, NULL, "bits of a code"},                          \
    [FQW_LAYOUT] = {"layout",                                                                      \
                    QAT_ATTR_CHOICE,                                                               \
                    0,                                                                             \
                    0,                                                                             \
                    1,                                                                             \
                    "uint8|int8",                                                                  \
                    "uint8: per tensor; int8: symmetric per output channel"},                      \
    [FQW_AXIS] = {"axis",                                                                          \
                  QAT_ATTR_INT,                                                                    \
                  0,                                                                               \
                  0,                                                                               \
                  QAT_MAX_RANK - 1,                                                                \
                  NULL,                                                                            \
                  "layout=int8: dimension of the output channels"},                                \
    [FQW_DELAY] =                                                                                  \
        {"delay", QAT_ATTR_INT, 0, 0, QAT_NEVER, NULL, "steps before quantization starts"},        \
    [FQW_PER_TENSOR] =                                                                             \
        {"per_tensor", QAT_ATTR_INT, 0, 0, 1, NULL, "layout=int8; 1: one scale for all channels"}, \
    [FQW_SYMMETRIC] =                                                                              \
        {"symmetric", QAT_ATTR_INT, 0, 0, 1, NULL, "layout=uint8; 1: zero_point in the middle"},   \
    [FQW_FINAL_BITS] = QAT_FINAL_BITS_ATTR

/** A parameter "frozen" has 0 for a free weight, and this plus the code (less zero_point) of
 * others. */
enum { QAT_FROZEN_ZERO = 1 << 20 };

/* bn_fold_weights (w, gamma, ema_variance) */
enum { FOLDW_EPSILON, FOLDW_AXIS, FOLDW_DELAY, FOLDW_ATTRS };
enum { FOLDW_W, FOLDW_GAMMA, FOLDW_EMA_VARIANCE, FOLDW_INPUTS };

/* bn_fold_train (z, gamma, beta, ema_mean, ema_variance, ema_steps[, raw]) */
enum { FOLDT_EPSILON, FOLDT_MOMENTUM, FOLDT_DELAY, FOLDT_FREEZE, FOLDT_ATTRS };
enum {
    FOLDT_Z,
    FOLDT_GAMMA,
    FOLDT_BETA,
    FOLDT_EMA_MEAN,
    FOLDT_EMA_VARIANCE,
    FOLDT_EMA_STEPS,
    FOLDT_RAW,
    FOLDT_INPUTS
};

/* bn_fold_bias (gamma, beta, ema_mean, ema_variance[, bias]) */
enum { FOLDB_EPSILON, FOLDB_ATTRS };
enum { FOLDB_GAMMA, FOLDB_BETA, FOLDB_EMA_MEAN, FOLDB_EMA_VARIANCE, FOLDB_BIAS, FOLDB_INPUTS };

/** Attribute of any of them that counts steps: 0 .. never. */
#define QAT_NEVER ((double)INT64_MAX)

/** Is a node with the attribute `delay` active in this run? Always in eval mode. */
static inline bool qat_past_delay(const qat_run *run, double delay)
{
    return run->mode != QAT_MODE_TRAIN || (double)run->step >= delay;
}

#endif
