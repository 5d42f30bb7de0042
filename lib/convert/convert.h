/** Private to lib/convert. */
#ifndef QAT_CONVERT_CONVERT_H
#define QAT_CONVERT_CONVERT_H

#include "qat/convert.h"

/** Every limit that docs/qm-format.md sets for header, tensors and nodes; says which value breaks
 *  it. (The limits of each op are its kernel's, which checks them when the file is opened.) */
qat_status qat_qm_check(const qat_qgraph *graph, const qat_qm_metadata *metadata, qat_error *err);

/** Open bytes in the engine, isa NULL: the best here; a refusal is the caller's failure. */
qat_status qat_engine_open(qi_host *host, const void *qm, size_t count,
                           const qi_kernel_list *kernels, const char *isa, qat_error *err);

/**
 * qat_qm_write with a known-answer test: the engine's outputs for these inputs (one pointer for
 * each graph input, its codes), stored beside them; the file is opened and tested. bytes is set
 * even where that test fails: free() it.
 */
qat_status qat_qm_write_answered(const qat_qgraph *graph, const qat_qm_metadata *metadata,
                                 const qi_kernel_list *kernels, const void *const *inputs,
                                 uint8_t **bytes, size_t *count, size_t *arena_bytes,
                                 qat_error *err);

#endif
