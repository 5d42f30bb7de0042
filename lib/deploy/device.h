/** The file of a network before it is trained. */
#ifndef QAT_DEPLOY_DEVICE_H
#define QAT_DEPLOY_DEVICE_H

#include "qat/train.h"

/**
 * Like qat_device_needs_of; and the size of the .qm that an export of the trained network writes,
 * with these labels and a known-answer test. All numbers are as if the network were trained. (An
 * export may be smaller if a requantization becomes redundant.)
 */
qat_status qat_device_file_of(qat_device_needs *needs, int64_t *qm_bytes, const qat_recipe *recipe,
                              const qat_plugins *plugins, const qat_graph *network,
                              const qat_input_info *input, const char *const *labels, int n_labels,
                              qat_error *err);

#endif
