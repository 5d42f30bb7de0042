/**
 * A verified .qm as a file of another tool: the same integers, in its format. Only what the other
 * tool computes may differ, and the writer says so.
 */
#ifndef QAT_EXPORT_H
#define QAT_EXPORT_H

#include "qat/convert.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef struct qat_write_options {
    size_t struct_size; /* sizeof this struct, or 0: as in version 0.1 (qat.h) */
    const qat_log *log; /* where the other tool computes something else; NULL: nowhere */
} qat_write_options;

/** Write a model in another format: its bytes, which are free()d. What cannot be written is named.
 */
typedef qat_status qat_write_fn(const qi_host *model, const qat_write_options *options,
                                uint8_t **bytes, size_t *count, qat_error *err);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
