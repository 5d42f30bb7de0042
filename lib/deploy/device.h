/** The file of a network before it is trained. */
#ifndef QAT_DEPLOY_DEVICE_H
#define QAT_DEPLOY_DEVICE_H

#include "qat/export.h"
#include "qat/train.h"

/**
 * Find the size of the .qm that an export of the trained network writes, with these labels and a
 * known-answer test. (An export may be smaller if a requantization becomes redundant.)
 */
qat_status qat_device_file_of(int64_t *qm_bytes, const qat_recipe *recipe,
                              const qat_plugins *plugins, const qat_graph *network,
                              const qat_input_info *input, const char *const *labels, int n_labels,
                              qat_error *err);

/**
 * Find how the trained network will fit so much RAM (qat_fit_ram). The bytes of the plan are those
 * of a .qm without labels and without a known-answer test. If nothing fits, plan->ram is the least
 * that was found, which is more than `ram`; that is no error.
 * @param ram  bytes; 0: any number
 */
qat_status qat_device_fit_of(qat_ram_plan *plan, const qat_recipe *recipe,
                             const qat_plugins *plugins, const qat_graph *network,
                             const qat_input_info *input, int64_t ram, qat_error *err);

#endif
