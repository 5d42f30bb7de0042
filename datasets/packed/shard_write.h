/** Writes shards: tar archives of about one size, each with its index. */
#ifndef QAT_DATASETS_SHARD_WRITE_H
#define QAT_DATASETS_SHARD_WRITE_H

#include "datasets/packed/index.h"

#include <stdio.h>

enum { QAT_SHARD_PATH_MAX = 4096 };

typedef struct qat_shard_writer {
    const char *folder, *prefix; /* shards are called folder/prefix-000000.tar; borrowed */
    uint64_t most;    /* bytes of a shard; one that holds a single sample may have more */
    int shards;       /* that were begun */
    uint64_t written; /* bytes of all finished shards */
    char path[QAT_SHARD_PATH_MAX], temporary[QAT_SHARD_PATH_MAX]; /* of the one that is open */
    FILE *file;                                                   /* NULL: none is open */
    uint64_t at;                                                  /* its bytes until now */
    qat_index index;
} qat_shard_writer;

/** Add a sample: key.ending with the picture and key.cls with the label. */
qat_status qat_shard_add(qat_shard_writer *w, const char *key, const char *ending,
                         const uint8_t *picture, size_t count, int32_t label, qat_error *err);
/** Give the last shard its name. A shard appears when it is whole, and its index after it. */
qat_status qat_shard_finish(qat_shard_writer *w, qat_error *err);
/** Release a writer; the shard that is open is removed. */
void qat_shard_writer_free(qat_shard_writer *w);

#endif
