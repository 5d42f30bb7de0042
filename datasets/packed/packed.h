/** Sets of pictures in shards: what the kinds `tar` and `tfrecord` share. */
#ifndef QAT_DATASETS_PACKED_H
#define QAT_DATASETS_PACKED_H

#include "datasets/packed/index.h"
#include "datasets/readers/listing.h"

/** A shard, and where its content is read from. */
typedef struct qat_shard {
    const char *path;
    int fd;              /* of the unpacked content; -1: the file itself */
    uint64_t start, end; /* the content's bytes there */
} qat_shard;

/** A picture file in what was read of a shard. */
typedef struct qat_part {
    uint8_t *bytes; /* free() */
    const uint8_t *picture;
    size_t count;
    int32_t label; /* that stands beside the picture; -1: none does */
} qat_part;

/** A format of shards. */
typedef struct qat_packed_format {
    qat_named *is_shard;
    const char *endings; /* of shards, for messages */
    bool unpacks;        /* are shards whose names end in .gz unpacked first? */
    /** Walk through a shard and add its samples to an empty index. */
    qat_status (*scan)(const qat_shard *shard, qat_index *index, qat_error *err);
    size_t before, after; /* bytes around a sample that are read with it */
    /**
     * Find the picture in part->bytes: `before` bytes, the sample's `size`, `after` bytes. What
     * does not fit the index is an error that names `name`.
     */
    qat_status (*find)(qat_part *part, size_t size, const char *name, qat_error *err);
} qat_packed_format;

/** The members of a kind of data in shards; `open` calls qat_packed_open with its format. */
qat_status qat_packed_open(qat_dataset *dataset, const qat_packed_format *format,
                           const qat_dataset_options *options, qat_split split, qat_error *err);
#define QAT_PACKED_KIND(kind_name, opener)                                                         \
    {                                                                                              \
        .name = (kind_name), .needs_path = true, .resizes = true, .splits = true,                  \
        .open = (opener), .close = qat_packed_close, .get = qat_packed_get,                        \
        .picture = qat_packed_picture, .file = qat_packed_file, .bytes = qat_packed_bytes,         \
        .keep = qat_packed_keep                                                                    \
    }
void qat_packed_close(qat_dataset *dataset);
qat_status qat_packed_get(const qat_dataset *dataset, int index, void *values, int *label,
                          qat_error *err);
qat_status qat_packed_picture(const qat_dataset *dataset, int index, qat_picture *picture,
                              qat_error *err);
qat_file_name qat_packed_file(const qat_dataset *dataset, int index);
qat_status qat_packed_bytes(const qat_dataset *dataset, int index, uint8_t **bytes, size_t *count,
                            qat_error *err);
void qat_packed_keep(qat_dataset *dataset, const int *kept, int n);

#endif
