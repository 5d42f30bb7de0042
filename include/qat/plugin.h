/**
 * Custom layers in a shared object: `[plugin] path = libmylayer.so` in a recipe, --plugin for the
 * commands that take no recipe. The object exports one symbol, `qat_plugin_entry`.
 *
 *     const qat_plugin qat_plugin_entry = {
 *         .version = QAT_PLUGIN_VERSION, .name = "mylayer",
 *         .ops = (const qat_op *const[]){&my_op}, .n_ops = 1,
 *         .kernels = (const qi_kernel *const[]){&my_kernel}, .n_kernels = 1,
 *     };
 */
#ifndef QAT_PLUGIN_H
#define QAT_PLUGIN_H

#include "qat/graph.h"
#include "qat/infer.h"
#include "qat/quant.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

enum { QAT_PLUGIN_VERSION = 2 };

typedef struct qat_plugin {
    int version;
    const char *name;
    const qat_op *const *ops;
    int n_ops;
    const qi_kernel *const *kernels;
    int n_kernels;
} qat_plugin;

/** What a plugin defines, and the library looks for by this name. (libqat has none.) */
extern const qat_plugin qat_plugin_entry;

/** Open plugins; the set owns their handles and collects their kernels. */
typedef struct qat_plugins qat_plugins;
qat_status qat_plugins_create(qat_plugins **plugins, qat_error *err);
void qat_plugins_free(qat_plugins *plugins); /* after everything that used their ops */
/** Open path and add its ops to registry (may be NULL). Errors name the file and the reason. */
qat_status qat_plugins_open(qat_plugins *plugins, const char *path, qat_registry *registry,
                            qat_error *err);
const qi_kernel_list *qat_plugins_kernels(const qat_plugins *plugins);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
