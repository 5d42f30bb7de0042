/** NumPy .npz files: zip archives of .npy files, one array per entry, by libzip. */
#ifndef QAT_BASE_NPZ_H
#define QAT_BASE_NPZ_H

#include "base/files/npy.h"

typedef struct qat_npz_entry {
    char *name; /* name of the entry without ".npy"; owned */
    qat_npy array;
} qat_npz_entry;

typedef struct qat_npz {
    int count;
    qat_npz_entry *entries; /* in the archive's order; owned */
} qat_npz;

/**
 * Read all arrays of path. These are errors, which name the file and the entry: an entry that is
 * not a .npy, two entries with the same name, a wrong CRC, encryption, and a compression
 * other than deflate.
 * @param most  the most bytes in memory, of all arrays together and one more copy of the largest.
 *              If the archive's directory says that they are more, the error is QAT_ERR_LIMIT,
 *              before anything is unpacked
 * @param key   the setting that allows more, for that message
 */
qat_status qat_npz_read(qat_npz *npz, const char *path, uint64_t most, const char *key,
                        qat_error *err);
void qat_npz_free(qat_npz *npz); /* a zeroed struct is fine */

/**
 * The bytes of an archive, as numpy.savez writes it: nothing is compressed, no entry has a date.
 * @param names  of the n arrays, without ".npy"
 * @param about  what messages name instead of a path
 * @param bytes  free() them
 */
qat_status qat_npz_bytes(int n, const char *const *names, const qat_npy *arrays, const char *about,
                         uint8_t **bytes, size_t *count, qat_error *err);

#endif
