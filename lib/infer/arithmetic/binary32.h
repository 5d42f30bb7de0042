/**
 * IEEE 754 binary32 arithmetic, computed in integers. Each operation is exact and then rounded to
 * 24 significant bits, ties to even. TensorFlow Lite's reference kernels use binary32 to place the
 * pixels of a resized picture. The rounding decides which pixel is taken when two positions meet.
 * ONNX Runtime's kernels use it to bring sums to the scale of the output (QI_ROUND_EVEN).
 *
 * Numbers are finite and far from the limits of the exponent of binary32: no infinity, no denormal.
 */
#ifndef QI_BINARY32_H
#define QI_BINARY32_H

#include "qat/rounding.h"

/* Long functions: a small processor holds one copy of each in a file. */
#if defined __GNUC__ && (defined __arm__ || defined __riscv)
#define QI_LONG static __attribute__((noinline, unused))
#else
#define QI_LONG static inline
#endif

/** The number mant 2^exp, with 2^23 <= |mant| < 2^24, or mant = 0. */
typedef struct qi_binary32 {
    int32_t mant;
    int32_t exp;
} qi_binary32;

static inline qi_binary32 qi_b32_parts(int32_t mant, int32_t exp)
{
    qi_binary32 const number = {mant, exp};
    return number;
}

/** The number value 2^exp, rounded; |value| < 2^63. */
QI_LONG qi_binary32 qi_b32_round(int64_t value, int32_t exp)
{
    uint64_t m = value < 0 ? UINT64_C(0) - (uint64_t)value : (uint64_t)value;
    int32_t const drop = qi_bit_length(m) - 24;
    if (m == 0)
        return qi_b32_parts(0, 0);
    if (drop > 0) {
        uint64_t const rest = m & ((UINT64_C(1) << drop) - 1), half = UINT64_C(1) << (drop - 1);
        m >>= drop;
        m += rest > half || (rest == half && (m & 1)); /* at most 2^24, which is halved below */
    } else {
        m <<= -drop;
    }
    int32_t const carry = (int32_t)(m >> 24), mant = (int32_t)(m >> carry);
    return qi_b32_parts(value < 0 ? -mant : mant, exp + drop + carry);
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
QI_LONG qi_binary32 qi_b32_add(qi_binary32 a, qi_binary32 b)
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
    return qi_b32_add(a, qi_b32_parts(-b.mant, b.exp));
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
    return -qi_b32_floor(qi_b32_parts(-a.mant, a.exp));
}

/** The nearest integer, halves away from zero, for a >= 0. */
static inline int32_t qi_b32_nearest(qi_binary32 a)
{
    if (a.exp >= 0)
        return qi_b32_floor(a);
    return a.exp > -31 ? (int32_t)(((int64_t)a.mant + (INT64_C(1) << (-a.exp - 1))) >> -a.exp) : 0;
}

/** The nearest integer, halves to even, limited to int32. */
QI_LONG int32_t qi_b32_even(qi_binary32 a)
{
    if (a.exp >= 0)
        return qi_saturate_i64((int64_t)a.mant * (INT64_C(1) << (a.exp < 8 ? a.exp : 8)));
    if (a.exp < -25)
        return 0;
    int32_t const whole = a.mant >> -a.exp, rest = a.mant & ((1 << -a.exp) - 1);
    int32_t const half = 1 << (-a.exp - 1);
    return whole + (rest > half || (rest == half && (whole & 1)));
}

/** The binary32 that a multiplier of QI_ROUND_EVEN stands for: the 24 highest bits of mult. */
static inline qi_binary32 qi_b32_multiplier(int32_t mult, int32_t shift)
{
    return qi_b32_parts(mult >> 7, shift - 24);
}

/**
 * i r + c, rounded once (a fused multiply-add).
 * @param i  |i| < 2^9
 */
QI_LONG qi_binary32 qi_b32_fma(int32_t i, qi_binary32 r, qi_binary32 c)
{
    enum { LEFT = 28, RIGHT = 36 }; /* beyond these, only the sign of the lower number matters */
    int64_t const product = (int64_t)i * r.mant;
    int32_t const above = r.exp - c.exp;
    if (!product || !c.mant)
        return product ? qi_b32_round(product, r.exp) : c;
    if (above > LEFT)
        return qi_b32_round(product * (INT64_C(1) << LEFT) + (c.mant < 0 ? -1 : 1), r.exp - LEFT);
    if (above >= 0)
        return qi_b32_round(product * (INT64_C(1) << above) + c.mant, c.exp);
    if (above >= -RIGHT)
        return qi_b32_round(product + c.mant * (INT64_C(1) << -above), r.exp);
    return qi_b32_round(c.mant * (INT64_C(1) << RIGHT) + (product < 0 ? -1 : 1), c.exp - RIGHT);
}

enum { QI_B32_FRACTION = 24 };

/** i r with QI_B32_FRACTION fractional bits, rounded down. |i| < 2^9, |r| below 2^12. */
static inline int64_t qi_b32_fixed(int32_t i, qi_binary32 r)
{
    int64_t const p = (int64_t)i * r.mant;
    int32_t const left = r.exp + QI_B32_FRACTION;
    return left >= 0 ? p * (INT64_C(1) << left) : p >> (left > -63 ? -left : 63);
}

/**
 * acc M by one product of integers, if no rounding of binary32 can change the result: acc has 24
 * bits, |acc M| is below 2^9, and it is 2^-14 from the next tie. (The rounding of the product is at
 * most 2^-16.) Returns 0 near ties and beyond 2^9: seldom, but for outputs that saturate and for
 * multipliers that are powers of two.
 */
static inline int qi_b32_nearest_product(int32_t acc, int32_t mult, int32_t shift, int32_t *y)
{
    enum { MOST = 1 << 24, CODES = 1 << 9, MARGIN = 14 };
    int32_t const right = 24 - shift;
    if (acc <= -MOST || acc >= MOST || right < MARGIN)
        return 0;
    int64_t const one = INT64_C(1) << right, margin = one >> MARGIN;
    int64_t const p = (int64_t)acc * (mult >> 7) + (one >> 1), rest = p & (one - 1);
    int64_t const whole = p >> right;
    *y = (int32_t)whole;
    return whole > -CODES && whole < CODES && rest >= margin && rest <= one - margin;
}

/**
 * QI_ROUND_EVEN: acc, as binary32, times the multiplier, as binary32, to an integer; every step
 * rounds to the nearest, ties to even. Example: (5, 2^30, 0), a multiplier of 1/2: 2.5 -> 2.
 *
 * @param mult  0..2^31 - 1, of which the highest 24 bits count
 * @param shift -31..31
 */
QI_LONG int32_t qi_requantize_even(int32_t acc, int32_t mult, int shift)
{
    int32_t y;
    if (qi_b32_nearest_product(acc, mult, shift, &y))
        return y;
    return qi_b32_even(qi_b32_mul(qi_b32_of(acc), qi_b32_multiplier(mult, shift)));
}

#endif
