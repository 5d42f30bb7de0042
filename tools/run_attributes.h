/** What a network of attributes and a value answers, printed. */
#ifndef QAT_TOOLS_RUN_ATTRIBUTES_H
#define QAT_TOOLS_RUN_ATTRIBUTES_H

#include "common/tool.h"

/** Does the model answer so? */
bool run_answers_attributes(const qi_model *model);

/** Print the answer to `name`, from the outputs' codes: attributes of a score from 1/2 on, and the
 *  value; as JSON all of them. */
void run_attributes_print(const qi_model *model, const void *const *outputs, const char *name,
                          bool json);

#endif
