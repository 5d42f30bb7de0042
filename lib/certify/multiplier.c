/**
 * Real multipliers as integers (docs/arithmetic.md, section 2). They are computed in float64 from
 * the file's own scales, so they must be exactly equal.
 */
#include "certify/certify.h"

#include <math.h>

void cert_multiplier(double real, int32_t *mult, int32_t *shift)
{
    int exponent = 0;
    *mult = *shift = 0;
    if (!(real > 0x1p-40) || isinf(real)) /* below, everything rounds to 0 */
        return;
    while (real * exp2(-exponent) >= 1)
        exponent++;
    while (real * exp2(-exponent) < 0.5)
        exponent--;
    double const scaled = real * exp2(31 - exponent); /* exact: a power of two */
    int64_t m = (int64_t)floor(scaled + 0.5);
    if (m >= INT64_C(1) << 31) {
        m /= 2;
        exponent++;
    }
    if (exponent < -31)
        return;
    *mult = (int32_t)m;
    *shift = exponent;
}

void cert_requantize_multiplier(double real, int32_t *mult, int32_t *shift)
{
    cert_multiplier(real, mult, shift);
    if (*shift <= 30)
        return;
    *mult = INT32_MAX;
    *shift = 30;
}

qat_status cert_check_multiplier(cert *c, const char *layer, const char *field, double real,
                                 int32_t mult, int32_t shift)
{
    int32_t expected_mult, expected_shift;
    cert_requantize_multiplier(real, &expected_mult, &expected_shift);
    c->result->multipliers++;
    if (mult == expected_mult && shift == expected_shift)
        return QAT_OK;
    return qat_fail(c->err, QAT_ERR_MISMATCH,
                    "%s: %s is %d * 2^%d in the file, but the scales in the file give %d * 2^%d",
                    layer, field, (int)mult, (int)shift - 31, (int)expected_mult,
                    (int)expected_shift - 31);
}
