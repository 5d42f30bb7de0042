/** Opening what commands are given: checkpoints and .qm files. */
#ifndef QAT_TOOLS_MODEL_H
#define QAT_TOOLS_MODEL_H

#include "common/tool.h"

typedef enum tool_file {
    TOOL_FILE_OTHER,
    TOOL_FILE_CHECKPOINT,
    TOOL_FILE_QM,
    TOOL_FILE_TFLITE,
    TOOL_FILE_RECIPE
} tool_file;

/** What path holds, by its first bytes (a recipe: by its name). Errors as a file that cannot be
 *  read. */
qat_status tool_file_kind(const char *path, tool_file *kind, qat_error *err);

/** A path that does not open as a .qm: `why`, or how a .qm is made of what it holds. Never QAT_OK.
 */
qat_status tool_not_opened(const char *path, const char *why, qat_error *err);

/** How a command runs a .qm: its options --plugin, --isa, --threads. */
typedef struct tool_run {
    const tool_list *plugins;   /* NULL: none */
    const char *recipe_plugins; /* a recipe's plugin.path, where --plugin is not given; or NULL */
    const char *isa;            /* NULL: the best of this processor */
    int64_t threads;            /* of one run; 0: 1 */
} tool_run;

/** An open .qm with the kernels of its plugins. */
typedef struct tool_model {
    qi_host host;
    qat_plugins *plugins;
    qat_registry *registry; /* with the plugins' ops */
} tool_model;

qat_status tool_model_open(tool_model *m, const char *path, const tool_run *how, qat_error *err);
void tool_model_close(tool_model *m); /* a zeroed one is fine */

/** What input 0 takes where it takes no pictures: "real numbers", "int8 codes" ... */
const char *tool_input_takes(const qi_model *model);

enum { TOOL_LABEL_MAX = 16 };

/**
 * The short name of a tensor in listings and of its dumped file: t<number in the source file>; of a
 * tensor which that file does not have, q<index in the .qm>; of a model without a source, t<index>.
 * @param numbered  has the model tensors with numbers of a source file?
 */
void tool_tensor_label(char label[TOOL_LABEL_MAX], bool numbered, int source_index, int index);
bool tool_is_numbered(const qi_model *model);

/** One buffer for each input and output of a model, zeroed. */
typedef struct tool_buffers {
    void **in, **out; /* ended by NULL */
} tool_buffers;

qat_status tool_buffers_create(tool_buffers *b, const qi_model *model, qat_error *err);
void tool_buffers_free(tool_buffers *b); /* zeroed ones are fine */

#endif
