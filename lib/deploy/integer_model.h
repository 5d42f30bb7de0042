/** The integer model of a network. The export writes it, and training runs evaluate it. */
#ifndef QAT_DEPLOY_INTEGER_MODEL_H
#define QAT_DEPLOY_INTEGER_MODEL_H

#include "qat/train.h"

/** Does the network take bytes: pixels, or codes of sounds? Its model then begins with a table from
 *  these to its own codes. */
bool qat_takes_bytes(const qat_input_info *input);

/** The integer graph of an eval graph (planned QAT_PLAN_KEEP), with the input's table if the
 *  network takes bytes. *graph is NULL on failure. */
qat_status qat_freeze_network(qat_qgraph **graph, qat_graph *eval, const qat_input_info *input,
                              qat_profile profile, const qat_log *log, qat_error *err);

/** Add the epilogue if the network has one. */
qat_status qat_finish_network(qat_qgraph *graph, const qat_input_info *in, qat_error *err);

/** How a sample becomes the model's input: docs/qm-format.md, "Preprocessing". */
qi_preprocessing qat_preprocessing_of(const qat_input_info *in);

#endif
