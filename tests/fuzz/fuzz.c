#include "fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int fuzz_thorough = 0;

void fuzz_require(int ok, const char *promise)
{
    if (ok)
        return;
    fprintf(stderr, "broken promise: %s\n", promise);
    abort();
}

void *fuzz_allocate(size_t alignment, size_t n)
{
    void *bytes = NULL;
    fuzz_require(posix_memalign(&bytes, alignment, n ? n : 1) == 0, "memory for a small input");
    return bytes;
}

uint32_t fuzz_random(uint64_t *x)
{
    *x = *x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*x >> 32) ^ (uint32_t)(*x >> 45);
}

size_t fuzz_below(uint64_t *x, size_t n)
{
    return n ? fuzz_random(x) % n : 0;
}

uint32_t fuzz_number(uint64_t *x, uint32_t old)
{
    static const uint32_t limits[] = {0,
                                      1,
                                      2,
                                      3,
                                      5,
                                      INT32_MAX,
                                      0x80000000,
                                      0x80000001,
                                      0xffffffff,
                                      0xfffffffe,
                                      0x7f800000,
                                      0x7f7fffff,
                                      1 << 28,
                                      1 << 24,
                                      (1 << 24) + 1,
                                      65535,
                                      65536,
                                      (1 << 28) - 1,
                                      1 << 30,
                                      (1 << 28) + 1};
    uint32_t const power = UINT32_C(1) << fuzz_below(x, 32);
    switch (fuzz_below(x, 8)) {
    case 0:
        return limits[fuzz_below(x, sizeof limits / sizeof *limits)];
    case 1:
        return power + (uint32_t)fuzz_below(x, 3) - 1;
    case 2:
        return old + (uint32_t)fuzz_below(x, 9) - 4;
    case 3:
        return old * 2;
    case 4:
        return old / 2;
    case 5:
        return -old;
    case 6:
        return old ^ power;
    default:
        return (uint32_t)fuzz_below(x, 20);
    }
}

size_t fuzz_join(const uint8_t *a, size_t head, const uint8_t *b, size_t b_size, size_t from,
                 uint8_t *out, size_t most)
{
    if (head + b_size - from > most)
        return 0;
    memcpy(out, a, head);
    memcpy(out + head, b + from, b_size - from);
    return head + b_size - from;
}
