/** Accuracy of a checkpoint's float network, for the commands that print it. */
#ifndef QAT_TOOLS_EVALUATE_H
#define QAT_TOOLS_EVALUATE_H

#include "tools/common/tool.h"

/**
 * Evaluate at most `samples` samples; 0: all. input: the checkpoint's, perhaps with a witness.
 */
qat_status tool_evaluate_float(const qat_restored *restored, const qat_input_info *input,
                               const qat_dataset *data, int64_t samples, qat_accuracy *accuracy,
                               qat_error *err);

/**
 * --raw-params: use the parameters of the last step instead of their moving averages. It is an
 * error if the checkpoint at `path` has no averages.
 */
qat_status tool_use_raw_params(qat_restored *restored, const char *path, qat_error *err);

/** The name of class i, or NULL if it has none. */
typedef const char *tool_class_name(const void *of, int i);

/**
 * Compare the class names of the data and the network. It is an error if they number the same
 * classes differently. It is a warning if a class has another name. Nothing is compared unless both
 * know their names and have equally many.
 */
qat_status tool_check_class_names(const qat_dataset *data, tool_class_name *name, const void *of,
                                  int n, qat_error *err);

#endif
