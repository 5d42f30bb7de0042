/** Open the files that commands are given: checkpoints and .qm files. */
#ifndef QAT_TOOLS_MODEL_H
#define QAT_TOOLS_MODEL_H

#include "tools/common/tool.h"

typedef enum tool_file {
    TOOL_FILE_OTHER,
    TOOL_FILE_CHECKPOINT,
    TOOL_FILE_QM,
    TOOL_FILE_TFLITE,
    TOOL_FILE_RECIPE
} tool_file;

/**
 * Find out what kind of file path is: by its first bytes, or by its name for a recipe. Fails if the
 * file cannot be read.
 */
qat_status tool_file_kind(const char *path, tool_file *kind, qat_error *err);

/**
 * Fail if a file of this format would overwrite a checkpoint, or a .qm that it is not itself.
 */
qat_status tool_spare(const char *path, const char *format, qat_error *err);

/**
 * A path does not open as a .qm, for the reason in err. If a .qm can be made from the file, err
 * says how instead. Returns its status.
 */
qat_status tool_not_opened(const char *path, qat_error *err);

/**
 * The model of this file has something that is not supported, says err, maybe without the file's
 * name: put it before the message. Returns its status.
 */
qat_status tool_name_file(const char *path, qat_error *err);

/** How a command runs a .qm: the options --plugin, --isa and --threads. */
typedef struct tool_run {
    const tool_list *plugins; /* NULL: none */
    const char *isa;          /* NULL: the best of this processor */
    int64_t threads;          /* of one run; 0 means 1 */
} tool_run;

/** An open .qm, with the kernels of its plugins. */
typedef struct tool_model {
    qi_host *host;
    const qi_model *model; /* of host */
    qat_plugins *plugins;
    qat_registry *registry; /* contains the ops of the plugins */
} tool_model;

qat_status tool_model_open(tool_model *m, const char *path, const tool_run *how, qat_error *err);
void tool_model_close(tool_model *m); /* a zeroed struct is fine */

/** Print what a model takes on microcontrollers as C source: a line for each processor. */
void tool_print_c_sizes(const qat_c_sizes *sizes, const qat_c_preprocessing *preprocessing);
/** The same of an open model, or why it cannot be C source. */
void tool_print_source(const qi_host *model);

/** What input 0 takes: "pictures", "sounds", "real numbers", "int8 codes" ... */
const char *tool_input_takes(const qi_model *model);

enum { TOOL_LABEL_MAX = 16 };

/**
 * The short name of a tensor, for listings and for the name of its dumped file: t<number in the
 * source file>; q<index in the .qm> for a tensor that the source file does not have; t<index> if
 * the model has no source file.
 * @param numbered  does the model have tensors with numbers of a source file?
 */
void tool_tensor_label(char label[TOOL_LABEL_MAX], bool numbered, int source_index, int index);
bool tool_is_numbered(const qi_model *model);

/** One zeroed buffer for each input and each output of a model. */
typedef struct tool_buffers {
    void **in, **out; /* ended by NULL */
} tool_buffers;

qat_status tool_buffers_create(tool_buffers *b, const qi_model *model, qat_error *err);
void tool_buffers_free(tool_buffers *b); /* a zeroed struct is fine */

#endif
