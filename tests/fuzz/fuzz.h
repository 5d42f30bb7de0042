/**
 * What a fuzz target consists of. A target is one file that defines LLVMFuzzerTestOneInput and
 * LLVMFuzzerCustomMutator. It is linked either with libFuzzer (run.sh) or with replay.c, which
 * works with any compiler.
 */
#ifndef QAT_TESTS_FUZZ_H
#define QAT_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/** Run the target once. For all bytes it returns 0; if a promise is broken, it aborts. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/** Change data in place, at most to most bytes; the new size. The same for the same seed. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned int seed);
/** Two inputs into one of at most most bytes; its size, 0: none. */
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                                 uint8_t *out, size_t most, unsigned int seed);
/**
 * Run a model with every instruction set of this processor instead of one. This is for the files of
 * the corpus.
 */
extern int fuzz_thorough;

/** Of libFuzzer, or of replay.c: blind changes to bytes; the new size. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

/** Print one sentence and abort unless ok. */
void fuzz_require(int ok, const char *promise);
/** Exactly n bytes (a byte further is a sanitizer's find), aligned; aborts without memory. */
void *fuzz_allocate(size_t alignment, size_t n);
/** 32 bits of x, well mixed, and the next x. */
uint32_t fuzz_random(uint64_t *x);
/** 0..n-1 */
size_t fuzz_below(uint64_t *x, size_t n);

/**
 * The first head bytes of one input, and the other from its byte `from` on. Returns the size, or 0
 * if that is more than most.
 */
size_t fuzz_join(const uint8_t *a, size_t head, const uint8_t *b, size_t b_size, size_t from,
                 uint8_t *out, size_t most);

/** A number of the kind that breaks readers: a limit, a power of two or its neighbour, near old. */
uint32_t fuzz_number(uint64_t *x, uint32_t old);

#endif
