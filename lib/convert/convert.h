/** Private to lib/convert. */
#ifndef QAT_CONVERT_CONVERT_H
#define QAT_CONVERT_CONVERT_H

#include "qat/convert.h"

/** Every limit that docs/qm-format.md sets for header, tensors and nodes; says which value breaks
 *  it. (The limits of each op are its kernel's, which checks them when the file is opened.) */
qat_status qat_qm_check(const qat_qgraph *graph, const qat_qm_metadata *metadata, qat_error *err);

#endif
