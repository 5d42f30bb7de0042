/**
 * Real multipliers as integers. Jacob et al. section 2.2: M = 2^-n M0, M0 in [0.5, 1), stored as an
 * int32. Here the exponent is signed, because M >= 1 occurs below 8 bits.
 */
#include "integer/quant_ops.h"

#include <math.h>

void qat_quantize_multiplier(double real, int32_t *mult, int *shift)
{
    *mult = 0;
    *shift = 0;
    if (!(real > 0.0) || isinf(real))
        return;
    int exponent;
    double const fraction = frexp(real, &exponent);  /* [0.5, 1) */
    int64_t q = (int64_t)round(ldexp(fraction, 31)); /* [2^30, 2^31], half away from zero */
    if (q == INT64_C(1) << 31) {
        q >>= 1;
        exponent++;
    }
    if (exponent < -31) /* every int32 times this rounds to 0 */
        return;
    *mult = (int32_t)q;
    *shift = exponent;
}

void qat_split_multiplier(double real, int64_t *significand, int *exponent)
{
    *significand = 0;
    *exponent = 0;
    if (!(real > 0.0) || isinf(real))
        return;
    double const fraction = frexp(real, exponent);
    *significand = (int64_t)ldexp(fraction, 53); /* exact */
}

float qat_even_multiplier(int32_t mult, int32_t shift)
{
    return ldexpf((float)(mult >> 7), shift - 24);
}

int32_t qat_exact_even(float acc, int32_t mult, int32_t shift)
{
    float const far = 1 << 24, value = rintf(acc * qat_even_multiplier(mult, shift));
    return (int32_t)(value < -far ? -far : value > far ? far : value);
}
