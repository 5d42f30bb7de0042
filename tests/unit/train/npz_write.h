/** NumPy archives for tests of weights from files. */
#ifndef QAT_TESTS_NPZ_WRITE_H
#define QAT_TESTS_NPZ_WRITE_H

#include <stddef.h>

typedef struct npz_array {
    const char *name, *type, *shape; /* "conv1/weights.npy", "<f4", "4, 3, 3, 1" */
    const void *items;
    size_t bytes;
} npz_array;

/** Write n arrays to under/name; every other one is compressed. */
void npz_write(const char *under, const char *name, const npz_array *arrays, int n);

#endif
