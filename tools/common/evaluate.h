/** Accuracy of a checkpoint's float network, for the commands that print it. */
#ifndef QAT_TOOLS_EVALUATE_H
#define QAT_TOOLS_EVALUATE_H

#include "common/tool.h"

/** samples: at most so many; 0: all. */
qat_status tool_evaluate_float(const qat_restored *restored, const qat_dataset *data,
                               int64_t samples, qat_accuracy *accuracy, qat_error *err);

/** --raw-params: the last step's parameters instead of their moving averages; an error where the
 *  checkpoint at `path` has none. */
qat_status tool_use_raw_params(qat_restored *restored, const char *path, qat_error *err);

/** Names of classes, n of them; one may be NULL. */
typedef const char *tool_class_name(const void *of, int i);

/** An error where data and network number the same classes differently; a warning where their
 *  classes have other names. Both know them, and as many, or there is nothing to compare. */
qat_status tool_check_class_names(const qat_dataset *data, tool_class_name *name, const void *of,
                                  int n, qat_error *err);

#endif
