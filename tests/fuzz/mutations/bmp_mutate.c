/** Mutations that know what a BMP is: the fields of its headers, its masks, its palette. */
#include "fuzz/fuzz.h"

static uint32_t get(const uint8_t *at, size_t bytes)
{
    uint32_t value = 0;
    for (size_t i = bytes; i-- > 0;)
        value = value << 8 | at[i];
    return value;
}

static void put(uint8_t *at, size_t bytes, uint32_t value)
{
    for (size_t i = 0; i < bytes; i++)
        at[i] = (uint8_t)(value >> (8 * i));
}

/** Offset of the pixels, size of the header, sides, bits, compression, colours, masks. */
static const struct {
    uint8_t at, bytes, n;
    uint32_t usual[8];
} fields[] = {{10, 4, 5, {26, 54, 66, 122, 1078}},
              {14, 4, 8, {12, 40, 52, 56, 64, 108, 124, 13}},
              {18, 4, 4, {1, 9, 17, 33}},
              {22, 4, 4, {1, 9, 0xffffffff, 0xfffffff7}},
              {18, 2, 2, {1, 9}},
              {20, 2, 2, {1, 9}},
              {24, 2, 4, {1, 4, 8, 24}},
              {28, 2, 7, {1, 2, 4, 8, 16, 24, 32}},
              {30, 4, 5, {0, 3, 6, 1, 4}},
              {46, 4, 5, {0, 1, 2, 16, 256}},
              {54, 4, 5, {0x7c00, 0xf800, 0xff0000, 0x3ff00000, 0xff000000}},
              {58, 4, 5, {0x3e0, 0x7e0, 0xff00, 0xffc00, 0xff0000}},
              {62, 4, 5, {0x1f, 0x0f, 0xff, 0x3ff, 1}}};

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned int seed)
{
    uint64_t x = seed;
    if (size < 66 || fuzz_below(&x, 4) == 0)
        return LLVMFuzzerMutate(data, size, most);
    for (size_t n = 1 + fuzz_below(&x, 3); n > 0; n--) {
        size_t const i = fuzz_below(&x, sizeof fields / sizeof *fields);
        uint8_t *field = data + fields[i].at;
        put(field, fields[i].bytes,
            fuzz_below(&x, 3) ? fields[i].usual[fuzz_below(&x, fields[i].n)]
                              : fuzz_number(&x, get(field, fields[i].bytes)));
    }
    return size;
}

/** The headers of one and what follows them in the other. */
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                                 uint8_t *out, size_t most, unsigned int seed)
{
    uint64_t x = seed;
    size_t const head = 14 + fuzz_below(&x, 120);
    if (head > a_size || head > b_size)
        return 0;
    return fuzz_join(a, head, b, b_size, head, out, most);
}
