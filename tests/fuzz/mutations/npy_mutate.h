/** Mutations of NumPy's files, in place, at most to `most` bytes; each returns the new size. */
#ifndef QAT_TESTS_NPY_MUTATE_H
#define QAT_TESTS_NPY_MUTATE_H

#include <stddef.h>
#include <stdint.h>

/** A .npy: words of its header, whose length then is right; items. */
size_t fuzz_npy_mutate(uint8_t *bytes, size_t size, size_t most, uint64_t *x);
/** A .npz: an array, its name, entries more or less, in an archive whose sizes and CRCs are right;
 *  sometimes its bytes as they lie. */
size_t fuzz_npz_mutate(uint8_t *bytes, size_t size, size_t most, uint64_t *x);
/** A text for train.init_map. */
size_t fuzz_init_map_mutate(uint8_t *bytes, size_t size, size_t most, uint64_t *x);

#endif
