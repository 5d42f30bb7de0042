/**
 * Loops that run the engine's instruction sequences on registers only. A round runs each sequence
 * on several independent accumulators, its chains. There are more of them than latency times
 * throughput of the processors we know: no processor gives each unit its next product at once. (An
 * Intel of two units and a latency of 6 cycles reaches 83 % with 10 chains, 97 % with 12, and all
 * with 14.) They are few enough that the registers hold everything: CHAINS of sixteen registers,
 * MANY_CHAINS of 32.
 *
 * Accumulators and operands pass through an empty assembler statement. Otherwise the compiler could
 * see that they are equal, or move the products, which never change, out of the loop.
 */
#include "tools/common/roof.h"
#include "tools/common/tool.h"

#include <stddef.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

enum { CHAINS = 12, MANY_CHAINS = 24 };

#define EACH_CHAIN _Pragma("GCC unroll 32") for (int c = 0; c < chains; c++)

/* A loop. In each round `step` adds to acc[c], for every chain c. */
#define ACCUMULATE(chains_, vector, zero, step)                                                    \
    enum { chains = chains_ };                                                                     \
    vector acc[chains];                                                                            \
    EACH_CHAIN                                                                                     \
    {                                                                                              \
        acc[c] = zero;                                                                             \
        HIDE(acc[c]);                                                                              \
    }                                                                                              \
    for (int64_t i = 0; i < rounds; i++)                                                           \
        EACH_CHAIN                                                                                 \
        {                                                                                          \
            step;                                                                                  \
        }                                                                                          \
    EACH_CHAIN HIDE(acc[c]);

#if defined(__x86_64__)
#define HIDE(vector) __asm__ volatile("" : "+v"(vector))
#define AVX2         __attribute__((target("avx2")))

/** zmm or ymm: acc += u8 x s8, four products a lane. */
__attribute__((target("avx512f,avx512vnni"))) static void vpdpbusd_zmm(int64_t rounds)
{
    __m512i const a = _mm512_set1_epi8(1), w = _mm512_set1_epi8(2);
    ACCUMULATE(MANY_CHAINS, __m512i, _mm512_setzero_si512(),
               acc[c] = _mm512_dpbusd_epi32(acc[c], a, w))
}

/** acc += how many bits two words share; see avx512vbmi_gemm.c. */
__attribute__((target("avx512f,avx512vpopcntdq"))) static void vpopcntd(int64_t rounds)
{
    __m512i const a = _mm512_set1_epi8(1);
    __m512i w = _mm512_set1_epi8(3);
    ACCUMULATE(CHAINS, __m512i, _mm512_setzero_si512(), HIDE(w);
               acc[c] = _mm512_add_epi32(acc[c], _mm512_popcnt_epi32(_mm512_and_si512(a, w))))
}

__attribute__((target("avx2,avxvnni"))) static void vpdpbusd_ymm(int64_t rounds)
{
    __m256i const a = _mm256_set1_epi8(1), w = _mm256_set1_epi8(2);
    ACCUMULATE(CHAINS, __m256i, _mm256_setzero_si256(),
               acc[c] = _mm256_dpbusd_avx_epi32(acc[c], a, w))
}

/*
 * acc += products, int32. The compiler knows nothing about w, so it computes the products every
 * time.
 */
#define ACCUMULATE_NEW(products)                                                                   \
    ACCUMULATE(CHAINS, __m256i, _mm256_setzero_si256(), HIDE(w);                                   \
               acc[c] = _mm256_add_epi32(acc[c], products))

/** u8 x s8 pairs are added to int16, pairs of those to int32, and these are accumulated. */
AVX2 static void vpmaddubsw(int64_t rounds)
{
    __m256i a = _mm256_set1_epi8(1), w = _mm256_set1_epi8(2), ones = _mm256_set1_epi16(1);
    ACCUMULATE_NEW(_mm256_madd_epi16(_mm256_maddubs_epi16(a, w), ones))
}

/** Like vpmaddubsw, with |a| and with w that takes the sign of a. */
AVX2 static void vpsignb_vpmaddubsw(int64_t rounds)
{
    __m256i a = _mm256_set1_epi8(1), w = _mm256_set1_epi8(2), ones = _mm256_set1_epi16(1);
    ACCUMULATE_NEW(_mm256_madd_epi16(_mm256_maddubs_epi16(a, _mm256_sign_epi8(w, a)), ones))
}

/**
 * Both operands are first widened to int16; pairs of products are added to int32 and accumulated.
 */
AVX2 static void vpmaddwd(int64_t rounds)
{
    __m256i a = _mm256_set1_epi16(1), w = _mm256_set1_epi16(2);
    ACCUMULATE_NEW(_mm256_madd_epi16(a, w))
}

/** Sums of int16 on both sides halve the number of products; see avx2_gemm.c. */
AVX2 static void vpaddw_vpmaddwd(int64_t rounds)
{
    __m256i a = _mm256_set1_epi16(1), w = _mm256_set1_epi16(2), left;
    ACCUMULATE(CHAINS, __m256i, _mm256_setzero_si256(), HIDE(w); left = _mm256_add_epi16(a, w);
               HIDE(w);
               acc[c] = _mm256_add_epi32(acc[c], _mm256_madd_epi16(left, _mm256_add_epi16(a, w))))
}

static const tool_roof roofs[] = {
    {"vpdpbusd zmm", "avx512vbmi", 1, 64 * MANY_CHAINS, vpdpbusd_zmm},
    {"vpandd vpopcntd vpaddd of 2 bits", "avx512vbmi", 0, 16 * 32 * CHAINS / 2, vpopcntd},
    {"vpdpbusd zmm", "avx512vnni", 1, 64 * MANY_CHAINS, vpdpbusd_zmm},
    {"vpdpbusd ymm", "avxvnni", 1, 32 * CHAINS, vpdpbusd_ymm},
    {"vpmaddubsw vpmaddwd vpaddd", "avx2", 1, 32 * CHAINS, vpmaddubsw},
    {"vpaddw vpaddw vpmaddwd vpaddd", "avx2", 1, 32 * CHAINS, vpaddw_vpmaddwd},
    {"vpmaddwd vpaddd", "avx2", 0, 16 * CHAINS, vpmaddwd},
    {"vpsignb vpmaddubsw vpmaddwd vpaddd", "avx2", 0, 32 * CHAINS, vpsignb_vpmaddubsw},
};

#elif defined(__aarch64__)
#define HIDE(vector) __asm__ volatile("" : "+w"(vector))

__attribute__((target("arch=armv8.2-a+dotprod"))) static void sdot(int64_t rounds)
{
    int8x16_t a = vdupq_n_s8(1), w = vdupq_n_s8(2);
    ACCUMULATE(CHAINS, int32x4_t, vdupq_n_s32(0), HIDE(w); acc[c] = vdotq_s32(acc[c], a, w))
}

/**
 * Jacob et al., appendix B: two products of int8 in an int16; pairs of these are added to int32.
 */
static void smull_smlal_sadalp(int64_t rounds)
{
    int8x8_t a = vdup_n_s8(1), w = vdup_n_s8(2);
    ACCUMULATE(CHAINS, int32x4_t, vdupq_n_s32(0), HIDE(w);
               acc[c] = vpadalq_s16(acc[c], vmlal_s8(vmull_s8(a, w), a, w)))
}

static const tool_roof roofs[] = {
    {"sdot", "neondot", 1, 16 * CHAINS, sdot},
    {"smull smlal sadalp", "neon", 1, 16 * CHAINS, smull_smlal_sadalp},
};

#else
static const tool_roof roofs[] = {{NULL, NULL, 0, 0, NULL}};
#endif

enum { ROOFS = sizeof roofs / sizeof roofs[0] };

const tool_roof *tool_roof_at(int i)
{
    return i >= 0 && i < ROOFS && roofs[i].sequence ? &roofs[i] : NULL;
}

double tool_roof_measure(const tool_roof *roof)
{
    enum { ROUNDS = 100000, REPEATS = 100 };
    double best = 0;
    if (qi_isa_runs_here(roof->isa) != 1)
        return 0;
    for (int i = 0; i < REPEATS; i++) {
        double const start = tool_now();
        roof->run(ROUNDS);
        double const gmacs = 1e-9 * roof->macs * ROUNDS / (tool_now() - start);
        best = gmacs > best ? gmacs : best;
    }
    return best;
}

const tool_roof *tool_roof_of(const char *isa, double *gmacs)
{
    const tool_roof *roof, *best = NULL;
    *gmacs = 0;
    for (int i = 0; (roof = tool_roof_at(i)); i++) {
        int const counts = roof->usual && strcmp(roof->isa, isa) == 0;
        double const speed = counts ? tool_roof_measure(roof) : 0;
        if (speed <= *gmacs)
            continue;
        *gmacs = speed;
        best = roof;
    }
    return best;
}
