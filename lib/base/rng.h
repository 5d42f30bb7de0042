/**
 * Random numbers as a function of their key, without shared state. The same (seed, stream, index)
 * gives the same numbers, whatever the thread count or the order of work.
 */
#ifndef QAT_BASE_RNG_H
#define QAT_BASE_RNG_H

#include <stdint.h>

typedef struct qat_rng {
    uint64_t state[4]; /* xoshiro256** */
} qat_rng;

/** Mix two 64-bit words into a key; chain calls to mix more (splitmix64 finalizer). */
uint64_t qat_hash(uint64_t a, uint64_t b);

/** FNV-1a hash of a string. It turns names into stream numbers. */
uint64_t qat_hash_name(const char *name);

/** Start a generator at a key. Every key gives an independent sequence. */
qat_rng qat_rng_at(uint64_t seed, uint64_t stream, uint64_t index);

uint64_t qat_rng_next(qat_rng *rng);

/** A uniform number in 0..n-1, without bias; n >= 1. */
uint32_t qat_rng_below(qat_rng *rng, uint32_t n);

/** A uniform number in [0, 1): a multiple of 2^-53. */
double qat_rng_uniform(qat_rng *rng);

/** Fill order[0..n-1] with a random permutation of 0..n-1. */
void qat_rng_shuffle(qat_rng *rng, uint32_t *order, uint32_t n);

#endif
