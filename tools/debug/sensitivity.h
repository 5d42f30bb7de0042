/** qat-debug --sensitivity: which layer's quantization costs accuracy. */
#ifndef QAT_TOOLS_DEBUG_SENSITIVITY_H
#define QAT_TOOLS_DEBUG_SENSITIVITY_H

#include "tools/common/tool.h"

typedef struct sensitivity_wanted {
    const char *path; /* the table, which is continued if it is there */
    const qat_restored *checkpoint;
    const qat_deploy_options *deploy;
    const qat_dataset *data;
    int64_t samples; /* 0: all */
    int bits;
    const char *settings; /* of a calibration, as one line; a table is only continued by the same */
} sensitivity_wanted;

/** Fill the table, and print it with the costliest layer first. */
qat_status sensitivity_run(const sensitivity_wanted *wanted, qat_error *err);

#endif
