/**
 * Recipes of any task: which are refused. Exports a trained network, and measures it with the exact
 * evaluation and the engine.
 */
#ifndef QAT_TESTS_TASK_EXPORT_H
#define QAT_TESTS_TASK_EXPORT_H

#include "qat/train.h"

/** A recipe from its text, which must be one. */
qat_recipe *recipe_of(const char *text);

/** A recipe that cannot be read, or cannot be trained, with an error that has these words. */
void refuses_recipe(const char *text, const char *says);

/**
 * Export to path with the ranges from training. No byte of the engine may differ from the exact
 * evaluation. Return the exact evaluation's accuracy on data.
 */
qat_accuracy export_task(const qat_restored *c, const qat_dataset *data, const char *path);

/** A .qm and what it says of its input; qi_host_close() it. */
qi_host *open_model(const char *path, qat_input_info *in);

/** The engine's accuracy on data. */
qat_accuracy judge_model(const qi_host *host, const qat_input_info *in, const qat_dataset *data);

#endif
