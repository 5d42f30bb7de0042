/**
 * The instructions of Armv7E-M that work on two halves of a word, as functions. Where a processor
 * lacks them, plain C defines them: so the loops written with them run and are tested anywhere.
 *
 * A word holds two 16-bit numbers, the low and the high half.
 */
#ifndef QK_ARM_DSP_H
#define QK_ARM_DSP_H

#include "infer/kernels/parts/features.h"
#include "infer/kernels/parts/memory.h"
#include "qat/rounding.h"

#include <stdint.h>

#if defined __ARM_FEATURE_DSP && defined __ARM_FEATURE_SIMD32
#include <arm_acle.h>
#define QK_HAS_DSP 1
#else
#define QK_HAS_DSP 0
#endif

/* A freestanding compiler calls memcpy where it is written, even of four bytes. */
#ifdef __GNUC__
#define QK_COPY(to, from, bytes) __builtin_memcpy(to, from, bytes)
#else
#define QK_COPY(to, from, bytes) memcpy(to, from, bytes)
#endif

/** Four bytes at any address. */
QK_HOT uint32_t qk_word(const void *p)
{
    uint32_t word;
    QK_COPY(&word, p, sizeof word);
    return word;
}

/** Two words, the first of which is at a multiple of 8 bytes. */
typedef struct qk_pair {
    uint32_t first, second;
} qk_pair;

#if defined __thumb2__ && defined __GNUC__
typedef uint64_t __attribute__((may_alias)) qk_two_words;
#endif

QK_HOT qk_pair qk_pair_at(const void *p)
{
    qk_pair pair;
#if defined __thumb2__ && defined __GNUC__ /* one instruction, which compilers rarely choose */
    __asm__("ldrd %0, %1, %2"
            : "=r"(pair.first), "=r"(pair.second)
            : "m"(*(const qk_two_words *)p));
#else
    QK_COPY(&pair, p, sizeof pair);
#endif
    return pair;
}

QK_HOT void qk_put_pair(void *p, uint32_t first, uint32_t second)
{
#if defined __thumb2__ && defined __GNUC__
    __asm__("strd %1, %2, %0" : "=m"(*(qk_two_words *)p) : "r"(first), "r"(second));
#else
    qk_pair const pair = {first, second};
    QK_COPY(p, &pair, sizeof pair);
#endif
}

/** The halves as numbers. */
QK_HOT int32_t qk_low(uint32_t word)
{
    return (int16_t)(word & 0xffff);
}
QK_HOT int32_t qk_high(uint32_t word)
{
    return (int16_t)(word >> 16);
}
QK_HOT uint32_t qk_halves(int32_t low, int32_t high)
{
    return ((uint32_t)low & 0xffff) | (uint32_t)high << 16;
}

/** sum + low a low b + high a high b; it wraps. */
QK_HOT int32_t qk_smlad(uint32_t a, uint32_t b, int32_t sum)
{
#if QK_HAS_DSP
    return __smlad((int16x2_t)a, (int16x2_t)b, sum);
#else
    uint32_t const low = (uint32_t)(qk_low(a) * qk_low(b));
    uint32_t const high = (uint32_t)(qk_high(a) * qk_high(b));
    return (int32_t)((uint32_t)sum + low + high);
#endif
}

/** sum + low a low b; sum + high a high b. */
QK_HOT int32_t qk_smlabb(uint32_t a, uint32_t b, int32_t sum)
{
#if QK_HAS_DSP
    return __smlabb((int32_t)a, (int32_t)b, sum);
#else
    return (int32_t)((uint32_t)sum + (uint32_t)(qk_low(a) * qk_low(b)));
#endif
}
QK_HOT int32_t qk_smlatt(uint32_t a, uint32_t b, int32_t sum)
{
#if QK_HAS_DSP
    return __smlatt((int32_t)a, (int32_t)b, sum);
#else
    return (int32_t)((uint32_t)sum + (uint32_t)(qk_high(a) * qk_high(b)));
#endif
}

/** Bytes 0 and 2, or 1 and 3, as signed numbers. */
QK_HOT uint32_t qk_sxtb16(uint32_t bytes)
{
#if QK_HAS_DSP
    return (uint32_t)__sxtb16((int8x4_t)bytes);
#else
    return qk_halves((int8_t)(bytes & 0xff), (int8_t)(bytes >> 16 & 0xff));
#endif
}
QK_HOT uint32_t qk_sxtb16_odd(uint32_t bytes)
{
#if QK_HAS_DSP
    uint32_t halves;
    __asm__("sxtb16 %0, %1, ror #8" : "=r"(halves) : "r"(bytes));
    return halves;
#else
    return qk_sxtb16(bytes >> 8);
#endif
}

/** The same as unsigned numbers. */
QK_HOT uint32_t qk_uxtb16(uint32_t bytes)
{
    return bytes & 0x00ff00ff;
}
QK_HOT uint32_t qk_uxtb16_odd(uint32_t bytes)
{
#if QK_HAS_DSP
    uint32_t halves;
    __asm__("uxtb16 %0, %1, ror #8" : "=r"(halves) : "r"(bytes));
    return halves;
#else
    return qk_uxtb16(bytes >> 8);
#endif
}

/** The halves of `to`, which wrap, plus bytes 0 and 2, or 1 and 3, as unsigned numbers. */
QK_HOT uint32_t qk_uxtab16(uint32_t to, uint32_t bytes)
{
#if QK_HAS_DSP
    return (uint32_t)__uxtab16((uint16x2_t)to, (uint8x4_t)bytes);
#else
    return qk_halves(qk_low(to) + (int32_t)(bytes & 0xff),
                     qk_high(to) + (int32_t)(bytes >> 16 & 0xff));
#endif
}
QK_HOT uint32_t qk_uxtab16_odd(uint32_t to, uint32_t bytes)
{
#if QK_HAS_DSP
    uint32_t halves;
    __asm__("uxtab16 %0, %1, %2, ror #8" : "=r"(halves) : "r"(to), "r"(bytes));
    return halves;
#else
    return qk_uxtab16(to, bytes >> 8);
#endif
}

/** The same with signed numbers. */
QK_HOT uint32_t qk_sxtab16(uint32_t to, uint32_t bytes)
{
#if QK_HAS_DSP
    return (uint32_t)__sxtab16((int16x2_t)to, (int8x4_t)bytes);
#else
    return qk_halves(qk_low(to) + (int8_t)(bytes & 0xff),
                     qk_high(to) + (int8_t)(bytes >> 16 & 0xff));
#endif
}
QK_HOT uint32_t qk_sxtab16_odd(uint32_t to, uint32_t bytes)
{
#if QK_HAS_DSP
    uint32_t halves;
    __asm__("sxtab16 %0, %1, %2, ror #8" : "=r"(halves) : "r"(to), "r"(bytes));
    return halves;
#else
    return qk_sxtab16(to, bytes >> 8);
#endif
}

/** Codes 0 and 2, and 1 and 3 of a word as differences; minus: -Z_x in both halves. */
QK_HOT qk_pair qk_differences4(uint32_t word, uint32_t minus, int is_signed)
{
    qk_pair pair;
    pair.first = is_signed ? qk_sxtab16(minus, word) : qk_uxtab16(minus, word);
    pair.second = is_signed ? qk_sxtab16_odd(minus, word) : qk_uxtab16_odd(minus, word);
    return pair;
}

/** x limited to the codes of signed and of unsigned bytes. */
QK_HOT int32_t qk_limit_s8(int32_t x)
{
#if defined __ARM_FEATURE_SAT && defined __GNUC__ && !defined __aarch64__
    __asm__("ssat %0, #8, %1" : "=r"(x) : "r"(x));
    return x;
#else
    return x < INT8_MIN ? INT8_MIN : x > INT8_MAX ? INT8_MAX : x;
#endif
}
QK_HOT int32_t qk_limit_u8(int32_t x)
{
#if defined __ARM_FEATURE_SAT && defined __GNUC__ && !defined __aarch64__
    __asm__("usat %0, #8, %1" : "=r"(x) : "r"(x));
    return x;
#else
    return x < 0 ? 0 : x > 255 ? 255 : x;
#endif
}

/** The high word of a b, rounded: floor(a b / 2^32 + 1/2); a is even, b >= 0. */
QK_HOT int32_t qk_high_product(int32_t a, int32_t b)
{
#if QK_HAS_DSP
    int32_t high;
    __asm__("smmulr %0, %1, %2" : "=r"(high) : "r"(a), "r"(b));
    return high;
#else
    if (QI_SHORT_PRODUCTS)
        return qi_srdhm_fitting(a >> 1, b);
    int64_t const product = (int64_t)a * b;
    return (int32_t)(product >> 32) + (int32_t)((uint32_t)product >> 31);
#endif
}

/** The high word of a b. */
QK_INLINE uint32_t qk_unsigned_high_product(uint32_t a, uint32_t b)
{
    if (!QI_SHORT_PRODUCTS)
        return (uint32_t)((uint64_t)a * b >> 32);
    uint32_t const a1 = a >> 16, a0 = a & 0xffff, b1 = b >> 16, b0 = b & 0xffff;
    uint32_t const upper = a1 * b0 + (a0 * b0 >> 16), middle = a0 * b1 + (upper & 0xffff);
    return a1 * b1 + (upper >> 16) + (middle >> 16);
}

#endif
