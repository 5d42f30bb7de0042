/**
 * Quantizer nodes (qat/quantizer.h): the positions of their attributes and inputs, and their grids.
 */
#ifndef QAT_FAKEQUANT_QUANTIZER_H
#define QAT_FAKEQUANT_QUANTIZER_H

#include "fakequant/weights.h"
#include "qat/quantizer.h"

/* The first attributes are those of fake_quant_weights (ops.h). */
enum {
    QZ_BITS,
    QZ_LAYOUT,
    QZ_AXIS,
    QZ_DELAY,
    QZ_PER_TENSOR,
    QZ_SYMMETRIC,
    QZ_FINAL_BITS,
    QZ_LEARN,
    QZ_DECAY,
    QZ_COMMITS,
    QZ_POWER_OF_TWO,
    QZ_DAMPEN,
    QZ_DAMPENED,
    QZ_FREEZES,
    QZ_FREEZE_SHARE,
    QZ_THRESHOLD,
    QZ_LAST_THRESHOLD,
    QZ_ATTRS
};
enum { QZ_X, QZ_RANGE, QZ_LEARNED };

/** The columns of the parameter "range", which has one row per channel. */
enum { QZ_MIN, QZ_MAX, QZ_STEPS, QZ_MEAN_ABS, QZ_RANGE_VALUES };

/** The built-in quantizers with learned ranges. */
extern const qat_op qat_op_tqt, qat_op_tqt_weights, qat_op_tqt_full_weights, qat_op_lsq,
    qat_op_lsq_weights, qat_op_lsq_full_weights, qat_op_pact;
/** The plain scheme with these ops; the rewrites use it if scales are powers of two. */
extern const qat_op qat_op_ema_grid, qat_op_ema_grid_weights;

/** The quantizer that an op's nodes are; NULL: none. */
const qat_quantizer *qat_op_quantizer(const qat_op *op);
/** Is it an op made by QAT_QUANTIZER_OP? */
bool qat_is_quantizer_op(const qat_op *op);
/** State of the last forward of such a node: the parameters with which it quantized a channel. */
const qat_qparams *qat_quantizer_used(const qat_node *node, int channel);
/** The grid of a node's codes. */
qat_grid qat_grid_of(const qat_node *node);
/** How many values are learned per channel on this grid. */
int qat_learned_values(const qat_quantizer *quantizer, const qat_grid *grid);

/* ------------------------------------------------------------------ loops over values */

/** The default backward, see qat_quantizer. margin is that of the quantizer. */
void qat_range_gradient(const qat_qparams *p, float margin, const float *x, const float *y,
                        const float *grad, size_t n, float *dx, qat_range_sums *sums);

#endif
