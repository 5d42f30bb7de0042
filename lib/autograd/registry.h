/** A registry without ops; qat_registry_create (lib/fakequant) fills one with the built-in ones. */
#ifndef QAT_AUTOGRAD_REGISTRY_H
#define QAT_AUTOGRAD_REGISTRY_H

#include "qat/graph.h"

/** The registry is owned by the caller: qat_registry_free. QAT_ERR_NOMEM, and NULL, on failure. */
qat_status qat_registry_create_empty(qat_registry **registry, qat_error *err);

#endif
