/** What qat-run prints of a classifier. */
#ifndef QAT_TOOLS_RUN_CLASSES_H
#define QAT_TOOLS_RUN_CLASSES_H

#include "common/model.h"

/** Is the first output one list of codes, all of whose dimensions but the last are 1? */
bool run_answers_classes(const qi_model *model);
/** Is it classes themselves, one a row, as arg_max gives them? */
bool run_answers_indices(const qi_model *model);

/** By the first output's codes the `top` best classes. */
void run_classes_print(const qi_model *model, const void *codes, const char *name, int64_t top,
                       bool json);
/** The classes that the first output holds. */
void run_indices_print(const qi_model *model, const void *values, const char *name, bool json);

#endif
