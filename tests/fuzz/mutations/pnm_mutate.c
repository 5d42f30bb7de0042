/** Mutations that know what a PNM is: its kind, the numbers of its header, comments, plain values.
 */
#include "fuzz/fuzz.h"
#include "fuzz/mutations/text_mutate.h"

#include <string.h>

enum { HEADER = 24 };

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned int seed)
{
    static const char *const words[] = {"1",  "0",  "#\n",  "255", "65535", "254", "3",
                                        "17", "\r", "\v\f", "256", "P4",    "P1 ", NULL};
    uint64_t x = seed;
    size_t const head = size < HEADER ? size : HEADER;
    uint8_t start[2 * HEADER];
    switch (fuzz_below(&x, 5)) {
    case 0:
        if (size > 2)
            data[1] = (uint8_t)('0' + fuzz_below(&x, 8));
        return size;
    case 1:
        return LLVMFuzzerMutate(data, size, most);
    case 2:
        return fuzz_text_mutate(data, size, most, &x, words);
    default:
        memcpy(start, data, head);
        return fuzz_replace(data, size, most, 0, head, start,
                            fuzz_text_mutate(start, head, sizeof start, &x, words));
    }
}

/** The header of one and what follows it in the other. */
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                                 uint8_t *out, size_t most, unsigned int seed)
{
    uint64_t x = seed;
    size_t const head = 3 + fuzz_below(&x, HEADER);
    if (head > a_size || head > b_size)
        return 0;
    return fuzz_join(a, head, b, b_size, head, out, most);
}
