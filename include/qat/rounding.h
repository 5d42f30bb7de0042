/**
 * The rounding rules: how an int32 accumulator becomes a code. Every other file that rounds a
 * quantized value calls these functions. They use integers only. They are pure, so any thread may
 * call them.
 *
 * A multiplier is written real = mult * 2^(shift - 31) with mult in [2^30, 2^31) (Jacob et al. eq.
 * 6: M = 2^-n M0), so a positive shift is a left shift. docs/arithmetic.md has worked examples.
 */
#ifndef QAT_ROUNDING_H
#define QAT_ROUNDING_H

#include <stdint.h>

#if (-3 >> 1) != -2
#error "right shifts of negative integers must be arithmetic"
#endif

/**
 * How an accumulator becomes a code. This is a property of each op in the file, never a build flag.
 */
typedef enum qi_rounding {
    QI_ROUND_NONE = 0,   /* the op rounds by its own definition, or not at all */
    QI_ROUND_TWICE = 1,  /* saturating left shift, SQRDMULH (ties up), right shift (ties away) */
    QI_ROUND_DOUBLE = 2, /* acc * 53-bit significand, rounded to 53 bits (ties to even), then to an
                            integer (half away from zero) */
    QI_ROUND_LONG = 3, /* of 64-bit accumulators: acc * 16-bit multiplier, rounded once, ties up */
    QI_ROUND_EVEN = 4, /* binary32 arithmetic, then to an integer, ties to even: as ONNX */
    QI_ROUND_ONCE = 5  /* to the nearest integer, ties up, and what is 2^-15 below them */
} qi_rounding;

/* Cortex-M0 and M0+ have no product of more than 32 bits. A test defines it to be one of them. */
#ifndef QI_SHORT_PRODUCTS
#if defined __thumb__ && !defined __thumb2__
#define QI_SHORT_PRODUCTS 1
#else
#define QI_SHORT_PRODUCTS 0
#endif
#endif

/** x limited to lo..hi. */
static inline int32_t qi_clamp(int32_t x, int32_t lo, int32_t hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}

/** x limited to int32. */
static inline int32_t qi_saturate_i64(int64_t x)
{
    return x < INT32_MIN ? INT32_MIN : x > INT32_MAX ? INT32_MAX : (int32_t)x;
}

/**
 * qi_srdhm_fitting by products of 32 bits. With a = a1 2^16 + a0 and b = b1 2^16 + b0, a0 and b0 in
 * 0..2^16-1,
 *
 *   a b = high 2^32 + middle 2^16 + what is below 2^16, and does not matter
 */
static inline int32_t qi_srdhm_of_halves(int32_t a, int32_t b)
{
    int32_t const a1 = a >> 16, a0 = a & 0xffff, b1 = b >> 16, b0 = b & 0xffff;
    int32_t const upper = a1 * b0 + (int32_t)((uint32_t)a0 * (uint32_t)b0 >> 16);
    int32_t const middle = a0 * b1 + (upper & 0xffff), high = a1 * b1 + (upper >> 16);
    return (int32_t)(2 * (uint32_t)high + (uint32_t)((middle + (1 << 14)) >> 15));
}

/**
 * qi_srdhm of numbers that are not both INT32_MIN. It has no branch and no arithmetic shift of 64
 * bits, so that loops of it become vectors: the low 32 bits are those of the shifted product.
 */
static inline int32_t qi_srdhm_fitting(int32_t a, int32_t b)
{
    if (QI_SHORT_PRODUCTS)
        return qi_srdhm_of_halves(a, b);
    int64_t const product = (int64_t)a * b + (INT64_C(1) << 30);
    return (int32_t)(uint32_t)((uint64_t)product >> 31);
}

/**
 * Saturating rounding doubling high multiply (NEON's SQRDMULH): a b / 2^31, ties towards +infinity.
 * Only the product MIN * MIN does not fit; it gives MAX. Example: (-3, 2^30) -> -1.
 */
static inline int32_t qi_srdhm(int32_t a, int32_t b)
{
    if (a == INT32_MIN && b == INT32_MIN)
        return INT32_MAX;
    return qi_srdhm_fitting(a, b);
}

/** The same in 16 bits: a b / 2^15, ties towards +infinity, MIN * MIN gives MAX. */
static inline int16_t qi_srdhm_i16(int16_t a, int16_t b)
{
    if (a == INT16_MIN && b == INT16_MIN)
        return INT16_MAX;
    return (int16_t)(((int32_t)a * b + (1 << 14)) >> 15);
}

/**
 * Rounding divide by a power of two: x / 2^exponent to the nearest, ties away from zero (Jacob et
 * al. appendix B corrects NEON's RSHL, which rounds ties up). Example: (-12, 3) -> -2, (12, 3) ->
 * 2.
 *
 * @param exponent 0..31
 */
static inline int32_t qi_rdbp(int32_t x, int exponent)
{
    int32_t const mask = (int32_t)((UINT32_C(1) << exponent) - 1);
    int32_t const threshold = (mask >> 1) + (x < 0);
    return (x >> exponent) + ((x & mask) > threshold);
}

/** The same in 16 bits, exponent 0..15. */
static inline int16_t qi_rdbp_i16(int16_t x, int exponent)
{
    return (int16_t)qi_rdbp(x, exponent);
}

/** (a + b) / 2 to the nearest, ties away from zero; the sum is formed in 64 bits. */
static inline int32_t qi_rounding_half_sum(int32_t a, int32_t b)
{
    int64_t const sum = (int64_t)a + b;
    return (int32_t)((sum + (sum >= 0 ? 1 : -1)) / 2);
}

/** The same in 16 bits. */
static inline int16_t qi_rounding_half_sum_i16(int16_t a, int16_t b)
{
    int32_t const sum = (int32_t)a + b;
    return (int16_t)((sum + (sum >= 0 ? 1 : -1)) / 2);
}

/** x * 2^left, limited to int32; left 0..31. */
static inline int32_t qi_saturating_left_shift(int32_t x, int left)
{
    return qi_saturate_i64((int64_t)x * (INT64_C(1) << left));
}

/**
 * x * 2^exponent. It saturates for exponent > 0 and rounds as qi_rdbp for exponent < 0; exponent
 * -31..31.
 */
static inline int32_t qi_saturating_rounding_mul_pot(int32_t x, int exponent)
{
    return exponent > 0 ? qi_saturating_left_shift(x, exponent) : qi_rdbp(x, -exponent);
}

/** The same in 16 bits, exponent -15..15. */
static inline int16_t qi_saturating_rounding_mul_pot_i16(int16_t x, int exponent)
{
    if (exponent <= 0)
        return qi_rdbp_i16(x, -exponent);
    return (int16_t)qi_clamp((int32_t)x * (1 << exponent), INT16_MIN, INT16_MAX);
}

/**
 * QI_ROUND_TWICE: acc * mult * 2^(shift - 31), Jacob et al. eq. 5-6 and appendix B.
 *
 * The steps: a saturating left shift if shift > 0 (for multipliers of 1 and more); qi_srdhm, ties
 * up; qi_rdbp if shift < 0, ties away from zero. These are two roundings. On about 5 % of the
 * values near ties they differ from one rounding. Example: (-6, 2^30, -1) -> srdhm -3 -> -2.
 *
 * @param mult  Q0.31: 0, or in [2^30, 2^31) of a file that qat wrote
 * @param shift -31..31
 * @return the value in units of the output's scale; zero_point is not added yet
 */
static inline int32_t qi_requantize(int32_t acc, int32_t mult, int shift)
{
    int32_t const x = shift > 0 ? qi_saturating_left_shift(acc, shift) : acc;
    return qi_rdbp(qi_srdhm(x, mult), shift < 0 ? -shift : 0);
}

/**
 * The same value rounded once: floor(acc * mult * 2^(shift - 31) + 1/2), limited to int32. logistic
 * and tanh of 16-bit codes scale their input in this way.
 *
 * @param mult  0..2^31 - 1
 * @param shift -31..31
 */
static inline int32_t qi_requantize_half_up(int32_t acc, int32_t mult, int shift)
{
    int const right = 31 - shift;
    int64_t const half = right ? INT64_C(1) << (right - 1) : 0;
    return qi_saturate_i64(((int64_t)acc * mult + half) >> right);
}

/**
 * QI_ROUND_ONCE: floor(acc * mult * 2^(shift - 31) + 1/2 + 2^-15), limited to int32. What is at
 * most 2^-15 below a tie is one, and goes up. Real numbers on a tie often lie a little below it,
 * here where mult was rounded, and in float32: fake quantization of few bits has the same 2^-15.
 * Example: (3, 1431655765, -2) is 3/6 - 2^-31 -> 1.
 *
 * @param mult  0..2^31 - 1
 * @param shift -31..31
 */
static inline int32_t qi_requantize_near_ties_up(int32_t acc, int32_t mult, int shift)
{
    int const right = 31 - shift;
    int64_t const half = right ? INT64_C(1) << (right - 1) : 0;
    return qi_saturate_i64(((int64_t)acc * mult + half + (half >> 14)) >> right);
}

/**
 * QI_ROUND_LONG: a 64-bit accumulator (|acc| < 2^47) times a multiplier reduced to 16 bits, as in
 * TFLite's 16-bit kernels:
 *
 *     m16 = mult / 2^16 to the nearest, at most 32767
 *     y   = floor(acc * m16 * 2^(shift - 15) + 1/2)
 *
 * y is limited to int32. Example: (100, 2^30, 0) -> 50.
 *
 * @param mult  0..2^31 - 1
 * @param shift -31..7
 */
static inline int32_t qi_requantize_i64(int64_t acc, int32_t mult, int shift)
{
    int64_t const m16 = mult < 0x7fff0000 ? (mult + (1 << 15)) >> 16 : 0x7fff;
    int const right = 15 - shift;
    return qi_saturate_i64((acc * m16 + (INT64_C(1) << (right - 1))) >> right);
}

/** Position of the highest set bit plus one; 0 for 0. */
static inline int qi_bit_length(uint64_t x)
{
    int n = 0;
    for (int step = 32; step > 0; step /= 2)
        if (x >> step) {
            x >>= step;
            n += step;
        }
    return n + (x != 0);
}

/** Leading zeros of a 32-bit value; 32 for 0. */
static inline int qi_leading_zeros(uint32_t x)
{
#if defined __ARM_FEATURE_CLZ && defined __GNUC__ /* one instruction, of which no library is part  \
                                                   */
    return x ? __builtin_clz(x) : 32;
#else
    return 32 - qi_bit_length(x);
#endif
}

/**
 * magnitude * 2^-right to the nearest integer, halves up, at most limit.
 * @param magnitude below 2^54
 */
static inline int64_t qi_scale_magnitude(uint64_t magnitude, int right, int64_t limit)
{
    if (magnitude == 0 || right > 54)
        return 0;
    if (right > 0)
        magnitude = (magnitude + (UINT64_C(1) << (right - 1))) >> right;
    else if (right < -31 || magnitude > ((uint64_t)limit >> -right))
        return limit;
    else
        magnitude <<= -right;
    return magnitude > (uint64_t)limit ? limit : (int64_t)magnitude;
}

/**
 * The end of QI_ROUND_DOUBLE, for a product of which `kept` are the highest bits, at most 53, and
 * `rest` the `drop` bits below them: round to 53 bits, ties to even, then to an integer.
 */
static inline int32_t qi_round_product(uint64_t kept, uint64_t rest, int drop, int is_negative,
                                       int exponent)
{
    uint64_t const half = (UINT64_C(1) << drop) >> 1;
    if (drop && (rest > half || (rest == half && (kept & 1))))
        kept++; /* at most 2^53, which is still exact */
    int64_t const limit = is_negative ? -(int64_t)INT32_MIN : INT32_MAX;
    int64_t const magnitude = qi_scale_magnitude(kept, 53 - exponent - drop, limit);
    return (int32_t)(is_negative ? -magnitude : magnitude);
}

/**
 * The magnitude of QI_ROUND_DOUBLE where M < 1, for the product P = high 2^32 + tail below 2^84 and
 * n = 53..84: P rounded to 53 bits, ties to even, divided by 2^n and rounded, halves up.
 *
 * Rounding to 53 bits clears the `drop` low bits, at most 31. It can only matter below a half, T =
 * (k + 1/2) 2^n: what is at most 2^(drop-1) below T becomes T, the tie too, because T / 2^drop is
 * even. So both roundings are one sum: floor((P + 2^(n-1) + 2^(drop-1)) / 2^n).
 */
static inline uint32_t qi_round_fraction(uint64_t high, uint32_t tail, int n)
{
    int const drop = 32 - qi_leading_zeros((uint32_t)(high >> 21));
    uint32_t const half = (UINT32_C(1) << drop) >> 1; /* 0 if nothing is dropped */
    uint32_t const carry = (uint32_t)(tail + half) < half;
    return (uint32_t)((high + (UINT64_C(1) << (n - 33)) + carry) >> (n - 32));
}

/**
 * QI_ROUND_DOUBLE: the value of round((double)acc * M), computed in integers. M is the double M =
 * significand * 2^(exponent - 53).
 *
 * The exact product has up to 84 bits (two limbs here). First it is rounded to 53 significant bits,
 * ties to even, as the double product is. Then it is rounded to an integer, half away from zero, as
 * round() does. Then it is limited to int32. Example: acc 3, M 0.5: 1.5 -> 2; acc -3 -> -2.
 *
 * @param significand [2^52, 2^53), or 0
 * @param exponent    any in -1000..1000
 */
static inline int32_t qi_requantize_double(int32_t acc, int64_t significand, int exponent)
{
    uint64_t const a = acc < 0 ? (uint64_t)(-(int64_t)acc) : (uint64_t)acc; /* <= 2^31 */
    uint64_t const s = (uint64_t)significand;
    uint64_t const low = a * (s & UINT32_MAX);         /* < 2^63 */
    uint64_t const high = a * (s >> 32) + (low >> 32); /* < 2^53: the product is high 2^32 + .. */
    uint64_t const tail = low & UINT32_MAX;
    if (exponent <= 0 && exponent >= -31) {
        uint32_t const magnitude = qi_round_fraction(high, (uint32_t)tail, 53 - exponent);
        return (int32_t)(acc < 0 ? UINT32_C(0) - magnitude : magnitude);
    }
    int const length = high ? qi_bit_length(high) + 32 : qi_bit_length(tail);
    int const drop = length > 53 ? length - 53 : 0; /* 0..31 */

    uint64_t const kept = (high << (32 - drop)) | (tail >> drop);
    return qi_round_product(kept, tail & ((UINT64_C(1) << drop) - 1), drop, acc < 0, exponent);
}

/** The same for a 64-bit accumulator, |acc| < 2^47. The product has up to 100 bits. */
static inline int32_t qi_requantize_double_i64(int64_t acc, int64_t significand, int exponent)
{
    uint64_t const a = acc < 0 ? (uint64_t)-acc : (uint64_t)acc;
    uint64_t const a0 = a & UINT32_MAX, a1 = a >> 32;
    uint64_t const s0 = (uint64_t)significand & UINT32_MAX, s1 = (uint64_t)significand >> 32;
    uint64_t const first = a0 * s0;
    uint64_t const second = a0 * s1 + a1 * s0 + (first >> 32); /* < 2^54 */
    uint64_t const low = second << 32 | (first & UINT32_MAX);
    uint64_t const high = a1 * s1 + (second >> 32); /* the product is high 2^64 + low */
    int const length = high ? qi_bit_length(high) + 64 : qi_bit_length(low);
    int const drop = length > 53 ? length - 53 : 0; /* 0..47; above 11 if high is not 0 */
    uint64_t const kept = (high ? high << (64 - drop) : 0) | (low >> drop);
    return qi_round_product(kept, low & ((UINT64_C(1) << drop) - 1), drop, acc < 0, exponent);
}

/** sum / n to the nearest integer, half away from zero, for average pooling. n > 0. */
static inline int32_t qi_divide_half_away(int32_t sum, int32_t n)
{
    uint32_t const magnitude = sum < 0 ? UINT32_C(0) - (uint32_t)sum : (uint32_t)sum;
    uint32_t const quotient = (magnitude + (uint32_t)n / 2) / (uint32_t)n; /* below 2^31 + 2^30 */
    return sum < 0 ? (int32_t)(-(int64_t)quotient) : (int32_t)quotient;
}

/**
 * QI_ROUND_ONCE of a quotient: floor(sum / n + 1/2), ties up. Examples: 7 / 2 -> 4, -3 / 2 -> -1.
 * |sum| < 2^61, 0 < n < 2^61, and the result fits int32.
 */
static inline int32_t qi_divide_half_up(int64_t sum, int64_t n)
{
    int64_t const twice = 2 * sum + n, quotient = twice / (2 * n);
    return (int32_t)(quotient - (quotient * 2 * n > twice));
}

/**
 * QI_ROUND_EVEN of a quotient: sum / n to the nearest integer, ties to the even one. Examples:
 * 7 / 2 -> 4, 5 / 2 -> 2, -3 / 2 -> -2. |sum| < 2^61, 0 < n < 2^61, and the result fits int32.
 */
static inline int32_t qi_divide_half_even(int64_t sum, int64_t n)
{
    int32_t const up = qi_divide_half_up(sum, n);
    int const is_tie = 2 * (up * n - sum) == n;
    return up - (is_tie && (up & 1));
}

#endif
