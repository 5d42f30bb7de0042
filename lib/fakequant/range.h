/**
 * Fake quantization of arrays: vectorizable forms of qat_code (qat/quant.h), and functions for
 * observers and straight-through gradients. All operations are in float32, each rounded once.
 *
 *     qz = floor(-min * inv + 0.5)
 *     y  = floor((clamp(x, min, max) - min) / scale - qz + (0.5 + tie)) * scale     per tensor
 *     y  = floor((clamp(x, min, max) - min) * inv   - qz + 0.5) * scale             per channel
 *
 * min and max are nudged. A NaN stays a NaN, so that a run that went wrong is noticed.
 */
#ifndef QAT_FAKEQUANT_RANGE_H
#define QAT_FAKEQUANT_RANGE_H

#include "qat/quant.h"

/**
 * The codes of weights by a quantizer that uses the lowest code too (qat_quantizer.all_codes),
 * which is so with fewer than 8 bits; the others have those of qat_code_range.
 */
void qat_weight_code_range(qat_layout layout, int bits, bool all_codes, int32_t *lo, int32_t *hi);

/** y[i] = fake quantized x[i], per tensor formula; y may be x. */
void qat_fake_quant_values(const qat_qparams *p, const float *x, float *y, size_t n);

/** The same with the per-channel formula (int8 weights of one output channel). */
void qat_fake_quant_values_per_channel(const qat_qparams *p, const float *x, float *y, size_t n);

/**
 * The codes of values that are S (q - Z) already, up to float32's rounding of that product. So x /
 * S is within 2^-12 of a whole number, which is q - Z.
 */
void qat_codes_of_values(const qat_qparams *p, const float *x, size_t n, uint8_t *codes);

/**
 * Straight-through gradient: dx[i] += min <= x[i] <= max ? grad[i] : 0. An empty range (min = max =
 * 0) lets everything through.
 */
void qat_fake_quant_gradient(const qat_qparams *p, const float *x, const float *grad, float *dx,
                             size_t n);

/** The same in place: grad[i] = min <= x[i] <= max ? grad[i] : 0. */
void qat_fake_quant_mask(const qat_qparams *p, const float *x, float *grad, size_t n);

/**
 * The gradients of the range itself: *dmin = sum of grad where x < min, *dmax = sum of grad where x
 * > max; 0 for an empty range. Ranges here are observed, not learned; this completes the definition
 * of the gradient for the golden tests.
 */
void qat_fake_quant_range_gradient(const qat_qparams *p, const float *x, const float *grad,
                                   size_t n, float *dmin, float *dmax);

/** An interval; an empty set of values has min = +inf, max = -inf. */
typedef struct qat_interval {
    float min, max;
} qat_interval;

/** The smallest and largest of n values, without NaNs. */
qat_interval qat_interval_of(const float *x, size_t n);
/** The smallest interval that contains both. */
qat_interval qat_interval_join(qat_interval a, qat_interval b);
/**
 * The smallest interval that contains a and 0. Bounds that float32 could not subtract are limited.
 */
qat_interval qat_interval_widen(qat_interval a);

#endif
