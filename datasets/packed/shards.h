/** Finds the shards of a split: the large files in which its pictures are. */
#ifndef QAT_DATASETS_SHARDS_H
#define QAT_DATASETS_SHARDS_H

#include "datasets/readers/listing.h"

/** The file that lies in a folder of shards while they are written. */
#define QAT_PACKING "PACKING"
/** It is an error if this file is in a folder. */
qat_status qat_shards_check_whole(const char *folder, qat_error *err);

/**
 * List the paths of a split's shards, sorted by their bytes. options->path is a folder, with the
 * shards in it or in train/ and val/ (or test/) below it, or a pattern with * ? [..], or one file.
 * A shard belongs to the split that its name says as a whole word ("x-train-0001.tar"), or, if it
 * says none, the name of its folder. With options->split every shard is of the one set.
 * @param is_shard  is a file of this name one?
 * @param endings   for messages: ".tar"
 * @param folder    where files that belong to all shards are; in the arena
 */
qat_status qat_shards_list(qat_dataset *dataset, const qat_dataset_options *options,
                           qat_split split, qat_named *is_shard, const char *endings,
                           qat_names *shards, const char **folder, qat_error *err);

#endif
