/** qat-inspect: what its files share. */
#ifndef QAT_TOOLS_INSPECT_H
#define QAT_TOOLS_INSPECT_H

#include "common/model.h"

/** An opened file: a .qm, or a checkpoint with what was made of it. */
typedef struct inspected {
    const char *path;
    size_t file_bytes;
    qat_network_size size;
    tool_model model;       /* .qm */
    qat_restored *restored; /* checkpoint */
    qat_graph *eval;        /* of a quantized checkpoint, planned */
    qat_qgraph *graph;      /* NULL: a checkpoint that cannot become integers, or a float one */
    uint8_t **codes;        /* by tensor: its values for one input, where they are 8-bit codes */
    float **real;           /* by tensor: the real values that were quantized, or NULL */
    char sample[300];       /* which input that was */
} inspected;

qat_status inspect_open(inspected *x, const char *path, tool_file kind, const tool_list *plugins,
                        qat_error *err);
/** Can a quantized checkpoint become integers? If not, the message says of which layers and why. */
qat_status inspect_integers(const inspected *x, qat_error *err);
/** Run one input through the model, so that activations have values. */
qat_status inspect_run(inspected *x, qat_error *err);
void inspect_close(inspected *x);

/** A tensor's short name, as qat-run --dump-tensors names its file (tool_tensor_label). */
void inspect_label(const qat_qgraph *g, int i, char label[TOOL_LABEL_MAX]);
/** Has the graph numbers of a source file? */
bool inspect_is_numbered(const qat_qgraph *g);
/** Tensor by index in the .qm, by name, or by label (t7); -1: none. */
int inspect_find(const inspected *x, const char *which);
/** Code number i of a tensor of 8-bit codes, as an int. */
int inspect_code(const qat_qtensor *t, const uint8_t *codes, size_t i);
/** Scale of value i: per-channel weights have their own. */
float inspect_scale(const qat_qtensor *t, size_t i);
/** The int32 constants that hold M0 and shift of an op, or NULL where they are parameters. */
const int32_t *inspect_multipliers(const qat_qgraph *g, const qat_qop *op, int *count,
                                   const int32_t **shifts);
/** "uint8"; "1x28x28x1". */
const char *inspect_type_name(const qat_qtensor *t);
void inspect_dims_text(const qat_qtensor *t, char *text, size_t max);
/** Name of an op's parameter, "" if it has none. */
const char *inspect_param_name(const char *op, int i);

/** Is it the state of an observed range: min, max, number of steps? */
bool inspect_is_observed_range(const qat_named_tensor *param);

void inspect_print(const inspected *x);
void inspect_print_json(const inspected *x);
/** All class names of a .qm, one a line. */
void inspect_print_labels(const inspected *x);
/** The beginning of a tensor's JSON object: index, name, kind ... source_index; not closed. */
void inspect_json_tensor(const qat_qgraph *g, int i);
/** A tensor of the integer graph, or else a parameter of a checkpoint: its first `limit` values
 *  (0: all). An unknown one is an error that names the nearest. */
qat_status inspect_print_tensor(inspected *x, const char *which, int64_t limit, bool json,
                                qat_error *err);
qat_status inspect_plot(inspected *x, const char *dir, qat_error *err);

/** Float, training and eval graph of a checkpoint or recipe ("all": the last two), as text or dot.
 */
qat_status inspect_graphs(const char *path, tool_file kind, const tool_list *plugins,
                          const char *stage, bool dot, qat_error *err);
/** The integer graph, likewise. */
void inspect_print_integer_graph(const qat_qgraph *g, bool dot);

#endif
