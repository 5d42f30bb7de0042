/** Shards that are packed by gzip. */
#ifndef QAT_DATASETS_UNPACK_H
#define QAT_DATASETS_UNPACK_H

#include "datasets/packed/packed.h"

/** A file without a name in $TMPDIR (or /var/tmp) for the content of such shards. It is gone when
 *  fd is closed. */
typedef struct qat_unpacked {
    int fd; /* -1: there is none yet */
    uint64_t bytes;
} qat_unpacked;

/**
 * If the shard's name ends in .gz, append its content to the file, and let the shard say where it
 * is: a gzip file can only be read from its beginning.
 */
qat_status qat_shard_unpack(qat_unpacked *to, qat_shard *shard, qat_error *err);

#endif
