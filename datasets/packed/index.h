/**
 * Where the samples of a shard lie. A shard is one large file with many pictures. It is walked
 * through once. What was found is kept in a file beside it, SHARD.idx:
 *
 *     qat-index 1 BYTES SAMPLES CRC      of the shard; of the lines that follow, in hexadecimal
 *     OFFSET SIZE LABEL NAME             a line for each sample, in the shard's order
 *
 * This file is only a help. It is made anew if it is damaged, or if its shard changed after it (the
 * change time counts, which copying cannot set), or has another size.
 */
#ifndef QAT_DATASETS_INDEX_H
#define QAT_DATASETS_INDEX_H

#include "base/bytes.h"
#include "datasets/dataset_kind.h"

#include <sys/stat.h>

/** A sample: bytes of its shard. */
typedef struct qat_place {
    uint64_t offset;
    uint32_t size;
    int32_t label;
    uint32_t name;  /* where its name begins in the names */
    uint32_t shard; /* the number of its file */
} qat_place;

typedef struct qat_index {
    qat_place *places;
    size_t count, capacity;
    qat_writer names; /* one after the other, each with a byte 0 at its end */
    qat_ignored ignored;
} qat_index;

enum {
    QAT_INDEX_MAX_LABEL = 65535,
    QAT_INDEX_MAX_PART = 1 << 30 /* bytes of a sample, as of a picture file */
};

void qat_index_free(qat_index *index);
/** Append a sample; false: out of memory. */
bool qat_index_add(qat_index *index, uint64_t offset, uint32_t size, int32_t label,
                   const char *name);
/** The name of sample number i. */
const char *qat_index_name(const qat_index *index, size_t i);

/** Read SHARD.idx. Returns false where there is none that fits. Free the index in any case. */
bool qat_index_load(qat_index *index, const char *shard);
/** The bytes of SHARD.idx for a shard of so many bytes; false: out of memory. */
bool qat_index_text(const qat_index *index, uint64_t shard_bytes, qat_writer *text);
/**
 * Write SHARD.idx. A folder that cannot be written to is no error: the index is made anew.
 * @param scanned  what the shard was before it was walked through. If it is another one now,
 * nothing is written
 */
void qat_index_save(const qat_index *index, const char *shard, const struct stat *scanned);

#endif
