/** Shards that are packed by gzip. */
#ifndef QAT_DATASETS_UNPACK_H
#define QAT_DATASETS_UNPACK_H

#include "datasets/packed/packed.h"

/**
 * If the shard's name ends in .gz, unpack it into a file without a name in $TMPDIR (or /var/tmp),
 * and let shard->fd be that file: a gzip file can only be read from its beginning. The file is gone
 * when fd is closed.
 */
qat_status qat_shard_unpack(qat_shard *shard, qat_error *err);

#endif
