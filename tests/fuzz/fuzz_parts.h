/**
 * An input of a fuzz target stands for a call with several files or texts. It consists of a byte
 * that chooses what is done, a byte of options, and the parts. Each part except the last has its
 * size before it (16 bits, low byte first). The last part takes the rest. Every input is valid: a
 * size that is too large means the rest.
 */
#ifndef QAT_TESTS_FUZZ_PARTS_H
#define QAT_TESTS_FUZZ_PARTS_H

#include <stddef.h>
#include <stdint.h>

enum { FUZZ_PARTS = 4, FUZZ_PART_MAX = 65535 };

struct fuzz_parts {
    uint8_t mode, options;
    int n;
    const uint8_t *at[FUZZ_PARTS]; /* in the input */
    size_t size[FUZZ_PARTS];
};

/** Take an input apart into n parts. */
void fuzz_parts_read(struct fuzz_parts *p, const uint8_t *data, size_t size, int n);
/** The reverse; the number of bytes, or 0 if they are more than most. */
size_t fuzz_parts_write(const struct fuzz_parts *p, uint8_t *data, size_t most);
/** A copy of a part as a text: it ends at the first byte 0. free() it. */
char *fuzz_parts_text(const struct fuzz_parts *p, int part);

/** Changes one part in place, at most to `most` bytes; returns the new size. */
typedef size_t fuzz_part_mutator(uint8_t *bytes, size_t size, size_t most,
                                 const struct fuzz_parts *p, int part, uint64_t *x);
/** Change one part, the mode or the options; sizes stay right. */
size_t fuzz_parts_mutate(uint8_t *data, size_t size, size_t most, unsigned int seed, int n,
                         fuzz_part_mutator *mutate);
/** The first input with some parts of the second. */
size_t fuzz_parts_cross(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                        uint8_t *out, size_t most, unsigned int seed, int n);

#endif
