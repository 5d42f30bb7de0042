/**
 * Plugins: custom layers and tasks in a shared object. For training, a recipe names it with
 * `[plugin] path = libmylayer.so`. All other commands load only what --plugin gives them. The
 * object exports one symbol, `qat_plugin_entry`.
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
#include "qat/quantizer.h"
#include "qat/task.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/**
 * The structs that a plugin and the library both access: X(name) for each. A plugin carries the
 * size that each struct had when it was compiled. The library refuses a plugin with another size;
 * the message names the struct.
 */
/* clang-format off */
#define QAT_PLUGIN_STRUCTS(X)                                                                      \
    X(qat_error) X(qat_shape) X(qat_attr_def) X(qat_param_def) X(qat_run) X(qat_op) X(qat_node)    \
    X(qat_qparams) X(qat_quant_options) X(qat_qtensor) X(qat_qop) X(qat_qgraph)                    \
    X(qat_fused_layer) X(qat_exact_call) X(qat_quant) X(qat_grid) X(qat_statistics)                \
    X(qat_observer) X(qat_range_sums) X(qat_quantizer) X(qi_error) X(qi_tensor) X(qi_node)         \
    X(qi_call) X(qi_kernel) X(qat_dataset_info) X(qat_batch) X(qat_attributes) X(qat_input_info)   \
    X(qat_figure) X(qat_accuracy) X(qat_net_ends) X(qat_output) X(qat_outputs) X(qat_answer)       \
    X(qat_task) X(qi_epilogue) X(qi_limits) X(qat_objects) X(qat_truth)
/* clang-format on */

enum {
    /**
     * Increased with every change of these structs or of the meaning of their members. Their sizes
     * alone do not show that two members changed places. tests/source/plugin_version.sh checks
     * this.
     */
    QAT_PLUGIN_NUMBER = 34,
#define QAT_PLUGIN_COUNT_(name) +1
    QAT_PLUGIN_SIZES = 0 QAT_PLUGIN_STRUCTS(QAT_PLUGIN_COUNT_)
#undef QAT_PLUGIN_COUNT_
};

/**
 * The versions with which a plugin was compiled. number comes first, as in plugins of every
 * version.
 */
typedef struct qat_plugin_version {
    int number;
    uint32_t sizes[QAT_PLUGIN_SIZES]; /* in the order of QAT_PLUGIN_STRUCTS */
} qat_plugin_version;

/** The initialiser of qat_plugin.version. */
#define QAT_PLUGIN_VERSION                                                                         \
    {                                                                                              \
        QAT_PLUGIN_NUMBER,                                                                         \
        {                                                                                          \
            QAT_PLUGIN_STRUCTS(QAT_PLUGIN_SIZE_)                                                   \
        }                                                                                          \
    }
#define QAT_PLUGIN_SIZE_(name) sizeof(name),

/** A plugin. Constant: any number of threads may read it. */
typedef struct qat_plugin {
    qat_plugin_version version; /* QAT_PLUGIN_VERSION */
    const char *name;
    const qat_op *const *ops;
    int n_ops;
    const qi_kernel *const *kernels;
    int n_kernels;
    const qat_task *const *tasks; /* asked before the built-in ones */
    int n_tasks;
} qat_plugin;

/** The symbol that a plugin defines and the library looks up. (libqat does not define it.) */
extern const qat_plugin qat_plugin_entry;

/**
 * A set of open plugins. It owns their handles and collects their kernels. While one thread opens a
 * plugin, no other may use the set or the registry. Afterwards any number of threads may read both.
 */
typedef struct qat_plugins qat_plugins;
qat_status qat_plugins_create(qat_plugins **plugins, qat_error *err);
void qat_plugins_free(qat_plugins *plugins); /* call it after everything that used their ops */
/**
 * Open the file at path and add its ops and tasks to registry (may be NULL). A name without '/' is
 * a file of the current folder, or else one of the system's folders for libraries. Opening a plugin
 * runs its code, so path must come from somebody whom the user trusts. Errors name the file and the
 * reason.
 */
qat_status qat_plugins_open(qat_plugins *plugins, const char *path, qat_registry *registry,
                            qat_error *err);
const qi_kernel_list *qat_plugins_kernels(const qat_plugins *plugins);

/**
 * The file of a plugin: its name without folders, and the SHA-256 of its content. So a checkpoint
 * says with which plugins its run was trained. It is never a path to open.
 */
typedef struct qat_plugin_file {
    char name[256];
    uint8_t sha256[32];
} qat_plugin_file;

/** The files of a set, *count of them, in the order in which they were opened. */
const qat_plugin_file *qat_plugins_files(const qat_plugins *plugins, int *count);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
