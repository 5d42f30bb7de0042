/** Small training runs in a temporary folder, and the files that they leave there. */
#ifndef QAT_TESTS_TRAIN_RUNS_H
#define QAT_TESTS_TRAIN_RUNS_H

#include "common/temp.h"
#include "qat/train.h"

/** The recipe of all of them: two epochs of eight steps on drawn digits. */
extern const char small[];

qat_recipe *recipe_with(const char *const *sets, int n);
/** folder/name; returns path. */
char *dir_of(char *path, const char *name);
/** Stops when the int that context points to is 0; count_steps counts it down with each step. */
bool at_step(void *context);
void count_steps(void *context, const qat_train_progress *progress);

/** Train into folder/name with one more setting (or NULL); stop after `stop` steps (0: never). */
qat_status train(const char *name, const char *set, int stop, bool resume, qat_error *err);
/** The same with n more. */
qat_status train_with(const char *name, const char *const *sets, int n, int stop, bool resume,
                      qat_error *err);
void must_train(const char *name, const char *set, int stop, bool resume);
void must_train_with(const char *name, const char *const *sets, int n, int stop, bool resume);

/** log.csv; free() it. */
char *log_of(const char *name);
qat_checkpoint *checkpoint_of(const char *name);
/** Its last checkpoint, ready for evaluation; qat_restored_free() it. */
qat_restored *restored(const char *name);
void same_logs(const char *a, const char *b);
/** The same bytes in one file of both runs. */
void same_files(const char *a, const char *b, const char *file);
/** The same step, parameters and optimizer's state. */
void same_checkpoints(const char *a, const char *b);

#endif
