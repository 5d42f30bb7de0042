/**
 * The folder of a run: the lock for writing, and the checkpoints in it.
 *
 *     last.ckpt        the newest checkpoint
 *     best.ckpt        the one of the best evaluation
 *     step-N.ckpt      the last output.keep checkpoints
 *     *.ckpt.*.tmp     unfinished files of a killed program
 */
#ifndef QAT_TRAIN_RUN_FOLDER_H
#define QAT_TRAIN_RUN_FOLDER_H

#include "qat/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { QAT_RUN_PATH_MAX = 512 };

/** "dir/name", or an error if that is too long. */
qat_status qat_run_path(char path[QAT_RUN_PATH_MAX], const char *dir, const char *name,
                        qat_error *err);

/**
 * Lock the folder for one run. *lock is held until it is closed or the program ends in any way. On
 * a file system without locks, *lock holds nothing.
 */
qat_status qat_run_lock(int *lock, const char *dir, qat_error *err);

/** The name of a checkpoint in the folder, "" for none. A folder that cannot be read has none. */
void qat_run_find(const char *dir, char name[QAT_RUN_PATH_MAX]);

/**
 * Is the file at `path`, directly or through links, a checkpoint in this folder that
 * qat_run_remove_checkpoints would remove?
 */
bool qat_run_owns(const char *dir, const char *path);

/** Remove unfinished files of killed programs. The lock must be held. */
qat_status qat_run_remove_temporaries(const char *dir, qat_error *err);
/** Remove every checkpoint. */
qat_status qat_run_remove_checkpoints(const char *dir, qat_error *err);
/** Remove all step-N.ckpt with N <= step except the last `keep`. */
qat_status qat_run_prune(const char *dir, int64_t step, int64_t keep, qat_error *err);

#endif
