/**
 * x86 intrinsics: those of the compiler, or, with QI_SIMDE, the portable ones of SIMDe, so that
 * every inner loop can be checked on any processor. QI_VARIANT gives the two builds of one file
 * different names.
 *
 * Debian's SIMDe 0.7.4~rc2 lacks some intrinsics. They are defined below, and both builds use them
 * by these names.
 */
#ifndef QI_HOST_X86_INTRINSICS_H
#define QI_HOST_X86_INTRINSICS_H

#include <stdint.h>
#include <string.h>

/*
 * In the native build, small functions become part of their callers and loops of constant counts
 * are unrolled, so that values stay in registers. SIMDe's build, which only tests run, and those of
 * clang's AddressSanitizer would take minutes to compile that way. Clang warns where its own
 * instrumentation (coverage) keeps a loop as it is; a test looks at the loops of the real build.
 */
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed"
#if __has_feature(address_sanitizer)
#define QI_FEW_INLINED
#endif
#endif

#if defined(QI_SIMDE) || defined(QI_FEW_INLINED)
#define INLINE static __attribute__((noinline, unused))
#define UNROLL
#else
#define INLINE static inline __attribute__((always_inline))
#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif
#endif

#ifdef QI_SIMDE

#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx2.h>
#include <simde/x86/avx512.h>

#define QI_VARIANT(name) name##_simde

/** An operation on vectors, lane by lane. */
#define QI_LANES(type, bits, a, expression)                                                        \
    type lane[sizeof(a) / (bits / 8)];                                                             \
    memcpy(lane, &(a), sizeof(a));                                                                 \
    for (int i = 0; i < (int)(sizeof(a) / (bits / 8)); i++)                                        \
        lane[i] = (expression);                                                                    \
    memcpy(&(a), lane, sizeof(a));                                                                 \
    return a;

#define qi_dpbusd256 simde_mm256_dpbusd_epi32

static inline __m512i qi_srav512(__m512i a, __m512i by)
{
    int32_t n[16];
    memcpy(n, &by, sizeof n);
    QI_LANES(int32_t, 32, a, lane[i] >> (n[i] < 0 || n[i] > 31 ? 31 : n[i]))
}
static inline __m512i qi_sra512(__m512i a, int by)
{
    QI_LANES(int32_t, 32, a, lane[i] >> by)
}
/**
 * The high words of 64-bit lanes: those of even in the even 32-bit lanes, those of odd in the odd
 * ones.
 */
static inline __m512i qi_high_words512(__m512i even, __m512i odd)
{
    return _mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd);
}
static inline __m512i qi_add_products512(__m512i sum, __m512i a, __m512i b)
{
    int16_t x[32], y[32];
    memcpy(x, &a, sizeof x);
    memcpy(y, &b, sizeof y);
    QI_LANES(int32_t, 32, sum,
             (int32_t)((uint32_t)lane[i] + (uint32_t)(x[2 * i] * y[2 * i]) +
                       (uint32_t)(x[2 * i + 1] * y[2 * i + 1])))
}
static inline __m512i qi_multiply_high_u16_512(__m512i a, __m512i b)
{
    uint16_t y[32];
    memcpy(y, &b, sizeof y);
    QI_LANES(uint16_t, 16, a, (uint16_t)((uint32_t)lane[i] * y[i] >> 16))
}
static inline uint32_t qi_above_words512(__m512i a, __m512i b)
{
    return _mm512_movepi16_mask(_mm512_subs_epi16(b, a));
}
static inline void qi_store_bytes512(uint8_t *to, uint64_t mask, __m512i a)
{
    uint8_t bytes[64];
    memcpy(bytes, &a, sizeof bytes);
    for (int i = 0; i < 64; i++)
        if (mask >> i & 1)
            to[i] = bytes[i];
}
static inline __m512i qi_load_bytes512(uint64_t mask, const uint8_t *from)
{
    uint8_t bytes[64] = {0};
    __m512i a;
    for (int i = 0; i < 64; i++)
        if (mask >> i & 1)
            bytes[i] = from[i];
    memcpy(&a, bytes, sizeof a);
    return a;
}
static inline int32_t qi_sum_lanes512(__m512i a)
{
    int32_t lane[16], sum = 0;
    memcpy(lane, &a, sizeof lane);
    for (int i = 0; i < 16; i++)
        sum += lane[i];
    return sum;
}

#else

#include <immintrin.h>

#define QI_VARIANT(name) name

#ifdef __AVXVNNI__
#define qi_dpbusd256 _mm256_dpbusd_avx_epi32
#endif

#ifdef __AVX512BW__
#define qi_srav512                  _mm512_srav_epi32
#define qi_sra512                   _mm512_srai_epi32
#define qi_high_words512(even, odd) _mm512_mask_shuffle_epi32(odd, 0x5555, even, 0xf5)
#define qi_add_products512          _mm512_dpwssd_epi32
#define qi_multiply_high_u16_512    _mm512_mulhi_epu16
#define qi_above_words512           _mm512_cmpgt_epi16_mask
#define qi_store_bytes512           _mm512_mask_storeu_epi8
#define qi_load_bytes512            _mm512_maskz_loadu_epi8
#define qi_sum_lanes512             _mm512_reduce_add_epi32
#endif

#endif

#endif
