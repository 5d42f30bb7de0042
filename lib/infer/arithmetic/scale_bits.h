/** Scales of channels, from the multipliers of a layer: in integers, as all that the engine
 * computes. */
#ifndef QI_SCALE_BITS_H
#define QI_SCALE_BITS_H

#include <stdint.h>

enum { QI_SCALE_BITS = 23, QI_SCALE_BIAS = 127 + QI_SCALE_BITS, QI_SCALE_EXPONENTS = 255 };

/** A positive normal float32: significand 2^exponent, the significand in 2^23 .. 2^24 - 1. */
typedef struct qi_scale {
    uint64_t significand;
    int32_t exponent;
} qi_scale;

static inline int qi_scale_is_normal(uint32_t bits)
{
    return bits >> QI_SCALE_BITS > 0 && bits >> QI_SCALE_BITS < QI_SCALE_EXPONENTS;
}

static inline qi_scale qi_scale_apart(uint32_t bits)
{
    uint32_t const one = UINT32_C(1) << QI_SCALE_BITS;
    return (qi_scale){(bits & (one - 1)) | one, (int32_t)(bits >> QI_SCALE_BITS) - QI_SCALE_BIAS};
}

/** Round value 2^exponent, of which something below its last bit was cut off or not. */
static inline uint32_t qi_scale_round(uint64_t value, int32_t exponent, int is_cut)
{
    while (value >> (QI_SCALE_BITS + 3)) { /* two bits more than the significand has */
        is_cut |= (int)(value & 1);
        value >>= 1;
        exponent++;
    }
    uint64_t const rest = value & 3, odd = value >> 2 & 1;
    value = (value >> 2) + (rest == 3 || (rest == 2 && (is_cut || odd)) ? 1u : 0u);
    exponent += 2;
    if (value >> (QI_SCALE_BITS + 1)) {
        value >>= 1;
        exponent++;
    }
    int32_t const biased = exponent + QI_SCALE_BIAS;
    return biased > 0 && biased < QI_SCALE_EXPONENTS
               ? (uint32_t)biased << QI_SCALE_BITS | (uint32_t)(value & ((1u << QI_SCALE_BITS) - 1))
               : 0;
}

/**
 * The float32 bits of the scale s_w of weights that makes a multiplier:
 *
 *   mult 2^(shift - 31) = s_x s_w / (s_y 2^fraction),   s_w rounded to nearest, ties to even
 *
 * @param mult  at most 2^31 - 1
 * @param x, y  bits of the scales of the layer's input and output
 * @return      0 where the result is no positive normal number, or a scale is none
 */
static inline uint32_t qi_scale_bits(int32_t mult, int32_t shift, int32_t fraction, uint32_t x,
                                     uint32_t y)
{
    if (mult <= 0 || !qi_scale_is_normal(x) || !qi_scale_is_normal(y))
        return 0;
    qi_scale const from = qi_scale_apart(x), to = qi_scale_apart(y);
    uint64_t product = (uint64_t)mult * to.significand; /* below 2^55 */
    int32_t exponent = shift - 31 + fraction + to.exponent - from.exponent;
    while (!(product >> 62)) {
        product <<= 1;
        exponent--;
    }
    return qi_scale_round(product / from.significand, exponent, product % from.significand != 0);
}

#endif
