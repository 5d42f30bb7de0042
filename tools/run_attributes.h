/** Prints the answers of a network with attributes and a value. */
#ifndef QAT_TOOLS_RUN_ATTRIBUTES_H
#define QAT_TOOLS_RUN_ATTRIBUTES_H

#include "common/tool.h"

/** Does the model have attributes? */
bool run_answers_attributes(const qi_model *model);

/**
 * Print the answer for the picture `name` from the codes of the outputs: the attributes with a
 * score of 1/2 or more, and the value. JSON has all attributes.
 */
void run_attributes_print(const qi_model *model, const void *const *outputs, const char *name,
                          bool json);

#endif
