/** Prints the answers of a classifier. */
#ifndef QAT_TOOLS_RUN_CLASSES_H
#define QAT_TOOLS_RUN_CLASSES_H

#include "common/model.h"

/** Is the first output a list of codes? All its dimensions but the last are 1 then. */
bool run_answers_classes(const qi_model *model);
/** Does the first output hold class numbers, one per row, as arg_max gives them? */
bool run_answers_indices(const qi_model *model);

/** Print the `top` best classes by the codes of the first output. */
void run_classes_print(const qi_model *model, const void *codes, const char *name, int64_t top,
                       bool json);
/** Print the classes that the first output holds. */
void run_indices_print(const qi_model *model, const void *values, const char *name, bool json);

#endif
