/**
 * The folder of a run: who may write there, and which checkpoints lie in it.
 *
 *     last.ckpt        the newest
 *     best.ckpt        the one of the best evaluation
 *     step-N.ckpt      those of the last output.keep savings
 *     *.ckpt.*.tmp     what a killed program was writing
 */
#ifndef QAT_TRAIN_RUN_FOLDER_H
#define QAT_TRAIN_RUN_FOLDER_H

#include "qat/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { QAT_RUN_PATH_MAX = 512 };

/** "dir/name", or an error where that is too long. */
qat_status qat_run_path(char path[QAT_RUN_PATH_MAX], const char *dir, const char *name,
                        qat_error *err);

/** One run at a time: *lock is held until it is closed, or the program ends, however it does. A
 * file system without locks is used without (*lock then holds nothing). */
qat_status qat_run_lock(int *lock, const char *dir, qat_error *err);

/** Name of a checkpoint that lies there, "" for none. A folder that cannot be read has none. */
void qat_run_find(const char *dir, char name[QAT_RUN_PATH_MAX]);

/** Is the file at `path`, through links or not, a checkpoint in this folder, one that
 * qat_run_remove_checkpoints removes? */
bool qat_run_owns(const char *dir, const char *path);

/** Remove what killed programs left half-written; with the lock. */
qat_status qat_run_remove_temporaries(const char *dir, qat_error *err);
/** Remove every checkpoint. */
qat_status qat_run_remove_checkpoints(const char *dir, qat_error *err);
/** Of step-N.ckpt with N <= step, remove all but the last `keep`. */
qat_status qat_run_prune(const char *dir, int64_t step, int64_t keep, qat_error *err);

#endif
