/**
 * What the tests of kernels share: random numbers, adversarial fills, guarded outputs, counts.
 *
 * Each test program compares every variant of its kernels with the scalar core, byte for byte. It
 * prints for each variant how many comparisons it made. If the processor lacks an instruction set,
 * the variant runs through SIMDe. The programs need only the engine and no test library, so they
 * run on every processor for which the engine is cross-compiled.
 */
#ifndef QAT_TESTS_KERNEL_TEST_H
#define QAT_TESTS_KERNEL_TEST_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** xorshift64*: good enough to pick cases. */
typedef struct kt_rng {
    uint64_t state;
} kt_rng;

static inline uint32_t kt_next(kt_rng *rng)
{
    rng->state ^= rng->state >> 12;
    rng->state ^= rng->state << 25;
    rng->state ^= rng->state >> 27;
    return (uint32_t)((rng->state * UINT64_C(0x2545f4914f6cdd1d)) >> 32);
}

/** lo..hi */
static inline int32_t kt_between(kt_rng *rng, int32_t lo, int32_t hi)
{
    return (int32_t)(lo + (int64_t)(kt_next(rng) % (uint64_t)((int64_t)hi - lo + 1)));
}

/** How bytes are filled. */
enum { KT_NOISE, KT_ZERO, KT_ONES, KT_LOWEST, KT_HIGHEST, KT_EDGES, KT_SPARSE, KT_FILLS };

static inline void kt_fill(uint8_t *to, size_t count, int how, kt_rng *rng)
{
    static const uint8_t edges[] = {0x00, 0xff, 0x80, 0x7f, 0x81, 0x01};
    static const uint8_t same[KT_FILLS] = {
        [KT_ZERO] = 0, [KT_ONES] = 0xff, [KT_LOWEST] = 0x80, [KT_HIGHEST] = 0x7f};
    for (size_t i = 0; i < count; i++) {
        uint32_t const r = kt_next(rng);
        to[i] = how == KT_NOISE    ? (uint8_t)r
                : how == KT_EDGES  ? edges[r % sizeof edges]
                : how == KT_SPARSE ? (uint8_t)(r % 8 ? 0x80 : r >> 8)
                                   : same[how];
    }
}

/**
 * Memory of exactly that many bytes; without memory the program exits. Tools that watch memory
 * notice every byte beyond it.
 */
static inline void *kt_memory(size_t bytes)
{
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!memory) {
        fprintf(stderr, "out of memory\n");
        exit(EXIT_FAILURE);
    }
    return memory;
}

#endif
