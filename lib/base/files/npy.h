/**
 * NumPy .npy files, version 1.0, C order, little-endian. Arrays of all supported types are read and
 * written.
 */
#ifndef QAT_BASE_NPY_H
#define QAT_BASE_NPY_H

#include "base/bytes.h"
#include "qat/status.h"
#include <stddef.h>
#include <stdint.h>

typedef enum qat_npy_type {
    QAT_NPY_U8,
    QAT_NPY_I8,
    QAT_NPY_I16,
    QAT_NPY_I32,
    QAT_NPY_I64,
    QAT_NPY_F32,
    QAT_NPY_F64
} qat_npy_type;

enum { QAT_NPY_MAX_RANK = 8 };

typedef struct qat_npy {
    qat_npy_type type;
    int rank; /* 0 for a scalar */
    int64_t dims[QAT_NPY_MAX_RANK];
    size_t count; /* product of dims */
    void *data;   /* owned, 64-byte aligned */
} qat_npy;

size_t qat_npy_item_bytes(qat_npy_type type);
const char *qat_npy_type_name(qat_npy_type type); /* "|u1" ... */

/** Read path (.npy or .npy.gz). Errors name the file and what is wrong with it. */
qat_status qat_npy_read(qat_npy *array, const char *path, qat_error *err);
/**
 * The same within `most` bytes, for the file's content and the array together. If the header says
 * that they are more, the error is QAT_ERR_LIMIT, before they are read; it names `key`, the setting
 * that allows more.
 */
qat_status qat_npy_read_within(qat_npy *array, const char *path, uint64_t most, const char *key,
                               qat_error *err);
/** Parse the bytes of such a file; messages use name instead of a path. */
qat_status qat_npy_parse(qat_npy *array, const void *bytes, size_t count, const char *name,
                         qat_error *err);
void qat_npy_free(qat_npy *array); /* a zeroed array is fine */

/** Append the bytes of a file; messages use name instead of a path. */
qat_status qat_npy_bytes(qat_writer *to, qat_npy_type type, int rank, const int64_t *dims,
                         const void *data, const char *name, qat_error *err);
/** Write a file atomically. */
qat_status qat_npy_write(const char *path, qat_npy_type type, int rank, const int64_t *dims,
                         const void *data, qat_error *err);

#endif
