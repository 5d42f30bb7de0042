/**
 * IEEE 754 binary32 arithmetic, computed in integers. Each operation is exact and then rounded to
 * 24 significant bits, ties to even. TensorFlow Lite's reference kernels use binary32 to place the
 * pixels of a resized picture. The rounding decides which pixel is taken when two positions meet.
 *
 * Numbers are finite and far from the limits of the exponent of binary32: no infinity, no denormal.
 */
#ifndef QI_BINARY32_H
#define QI_BINARY32_H

#include "qat/rounding.h"

/** The number mant 2^exp, with 2^23 <= |mant| < 2^24, or mant = 0. */
typedef struct qi_binary32 {
    int32_t mant;
    int32_t exp;
} qi_binary32;

/** The number value 2^exp, rounded; |value| < 2^63. */
static inline qi_binary32 qi_b32_round(int64_t value, int32_t exp)
{
    uint64_t m = value < 0 ? UINT64_C(0) - (uint64_t)value : (uint64_t)value;
    int32_t const drop = qi_bit_length(m) - 24;
    if (m == 0)
        return (qi_binary32){0, 0};
    if (drop > 0) {
        uint64_t const rest = m & ((UINT64_C(1) << drop) - 1), half = UINT64_C(1) << (drop - 1);
        m >>= drop;
        m += rest > half || (rest == half && (m & 1)); /* at most 2^24, which is halved below */
    } else {
        m <<= -drop;
    }
    int32_t const carry = (int32_t)(m >> 24), mant = (int32_t)(m >> carry);
    return (qi_binary32){value < 0 ? -mant : mant, exp + drop + carry};
}

/** The integer i as a float. */
static inline qi_binary32 qi_b32_of(int32_t i)
{
    return qi_b32_round(i, 0);
}

static inline qi_binary32 qi_b32_mul(qi_binary32 a, qi_binary32 b)
{
    return qi_b32_round((int64_t)a.mant * b.mant, a.exp + b.exp);
}

/** a + b. If one number is more than 38 bits below the other, only its sign matters. */
static inline qi_binary32 qi_b32_add(qi_binary32 a, qi_binary32 b)
{
    enum { FAR = 38 };
    qi_binary32 const high = a.mant && (!b.mant || a.exp >= b.exp) ? a : b;
    qi_binary32 const low = a.mant && (!b.mant || a.exp >= b.exp) ? b : a;
    if (!low.mant)
        return high;
    if (high.exp - low.exp > FAR)
        return qi_b32_round((int64_t)high.mant * (INT64_C(1) << FAR) + (low.mant < 0 ? -1 : 1),
                            high.exp - FAR);
    return qi_b32_round((int64_t)high.mant * (INT64_C(1) << (high.exp - low.exp)) + low.mant,
                        low.exp);
}

static inline qi_binary32 qi_b32_sub(qi_binary32 a, qi_binary32 b)
{
    return qi_b32_add(a, (qi_binary32){-b.mant, b.exp});
}

/**
 * a / b for 0 <= a <= 65535, 1 <= b <= 65535. The lowest bit of the quotient is set if the division
 * has a remainder.
 */
static inline qi_binary32 qi_b32_divide(int32_t a, int32_t b)
{
    uint64_t const dividend = (uint64_t)a << 45;
    uint64_t const quotient = dividend / (uint64_t)b;
    return qi_b32_round((int64_t)(quotient << 1 | (dividend % (uint64_t)b != 0)), -46);
}

/** The largest integer not above a; |a| < 2^31. */
static inline int32_t qi_b32_floor(qi_binary32 a)
{
    if (a.exp >= 0)
        return (int32_t)((int64_t)a.mant * (INT64_C(1) << a.exp));
    return a.exp > -31 ? a.mant >> -a.exp : a.mant < 0 ? -1 : 0;
}

/** The smallest integer not below a. */
static inline int32_t qi_b32_ceil(qi_binary32 a)
{
    return -qi_b32_floor((qi_binary32){-a.mant, a.exp});
}

/** The nearest integer, halves away from zero, for a >= 0. */
static inline int32_t qi_b32_nearest(qi_binary32 a)
{
    if (a.exp >= 0)
        return qi_b32_floor(a);
    return a.exp > -31 ? (int32_t)(((int64_t)a.mant + (INT64_C(1) << (-a.exp - 1))) >> -a.exp) : 0;
}

#endif
