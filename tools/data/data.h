/** The commands of qat-data. */
#ifndef QAT_TOOLS_DATA_H
#define QAT_TOOLS_DATA_H

#include "tools/common/tool.h"

/** The two splits of a source; one of them may be NULL. */
typedef struct data_source {
    qat_recipe *recipe;
    qat_dataset *splits[2]; /* training, test */
} data_source;

/**
 * Open a source: KIND[:PATH], or a path alone, whose kind is guessed and told: `folder` if there
 * are folders of classes, else `tar` or `tfrecord` if shards lie there. Close it also after a
 * failure.
 * @param only  "train", "test", or NULL: both
 * @param sets  data.KEY=VALUE of a recipe
 */
qat_status data_open(data_source *source, const char *text, const char *only, const tool_list *sets,
                     qat_error *err);
void data_close(data_source *source); /* a zeroed struct is fine */

/** Print what was found: counts, classes, bytes. */
qat_status data_list(const data_source *source, qat_error *err);
/** Decode all pictures and name those that cannot be read; *broken: how many. */
qat_status data_check(const data_source *source, int *broken, qat_error *err);
/** Write shards, and tell what was written. */
qat_status data_pack(const data_source *source, const qat_pack_options *options, qat_error *err);

#endif
