/**
 * Creates a registry without ops. qat_registry_create (lib/rewrite) creates one with the built-in
 * ops.
 */
#ifndef QAT_AUTOGRAD_REGISTRY_H
#define QAT_AUTOGRAD_REGISTRY_H

#include "qat/graph.h"

/**
 * The caller owns the registry: qat_registry_free. On failure QAT_ERR_NOMEM, and *registry is NULL.
 */
qat_status qat_registry_create_empty(qat_registry **registry, qat_error *err);

/** Add a task that was checked. */
qat_status qat_registry_keep_task(qat_registry *registry, const struct qat_task *task,
                                  qat_error *err);

#endif
