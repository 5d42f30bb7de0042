#include "base/rng.h"

static uint64_t rotl(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

/* The finalizer of splitmix64: a bijection of 64-bit words whose every output bit depends on every
 * input bit. */
static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint64_t qat_hash(uint64_t a, uint64_t b)
{
    /* The golden ratio keeps (a, b), (b, a) and (0, 0) apart. */
    return mix(mix(a + UINT64_C(0x9e3779b97f4a7c15)) + b + UINT64_C(0x9e3779b97f4a7c15));
}

uint64_t qat_hash_name(const char *name)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    return hash;
}

qat_rng qat_rng_at(uint64_t seed, uint64_t stream, uint64_t index)
{
    qat_rng rng;
    uint64_t z = qat_hash(qat_hash(seed, stream), index);
    for (int i = 0; i < 4; i++) {
        z += UINT64_C(0x9e3779b97f4a7c15);
        rng.state[i] = mix(z); /* distinct z, so at most one word is 0: never the all-zero state */
    }
    return rng;
}

uint64_t qat_rng_next(qat_rng *rng)
{
    uint64_t *s = rng->state;
    uint64_t const result = rotl(s[1] * 5, 7) * 9;
    uint64_t const t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return result;
}

uint32_t qat_rng_below(qat_rng *rng, uint32_t n)
{
    /* Lemire's method: the high word of x * n. The 2^32 mod n lowest fractions are drawn again. */
    uint32_t const reject = (uint32_t)(-n) % n;
    uint64_t product;
    do {
        product = (qat_rng_next(rng) >> 32) * (uint64_t)n;
    } while ((uint32_t)product < reject);
    return (uint32_t)(product >> 32);
}

double qat_rng_uniform(qat_rng *rng)
{
    return (double)(qat_rng_next(rng) >> 11) * 0x1p-53;
}

void qat_rng_shuffle(qat_rng *rng, uint32_t *order, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) { /* Fisher-Yates, inside out */
        uint32_t const j = qat_rng_below(rng, i + 1);
        order[i] = order[j];
        order[j] = i;
    }
}
