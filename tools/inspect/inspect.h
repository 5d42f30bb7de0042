/** What the files of qat-inspect share. */
#ifndef QAT_TOOLS_INSPECT_H
#define QAT_TOOLS_INSPECT_H

#include "tools/common/model.h"
#include "tools/common/plugins.h"

enum { INSPECT_HEAD_BYTES = 192 }; /* the header of a .qm */

/** An opened file: a .qm, or a checkpoint with the graphs made from it. */
typedef struct inspected {
    const char *path;
    size_t file_bytes;
    qat_network_size size;
    tool_model model;                 /* .qm */
    uint8_t head[INSPECT_HEAD_BYTES]; /* of a .qm: its first bytes */
    qat_restored *restored;           /* checkpoint */
    qat_graph *eval;                  /* of a quantized checkpoint, planned */
    qat_qgraph *graph; /* NULL: a float checkpoint, or one that cannot become integers */
    qat_error no_integers;
    uint8_t **codes;  /* by tensor: its values for one input, if they are 8-bit codes */
    float **real;     /* by tensor: the real values that were quantized, or NULL */
    char sample[300]; /* name of that input */
    uint64_t room;    /* bytes that copies in codes may still take */
    qat_status kept;  /* of copying codes during a run, with the reason in why */
    qat_error why;
} inspected;

qat_status inspect_open(inspected *x, const char *path, tool_file kind, const tool_list *plugins,
                        qat_error *err);
/** Has a quantized checkpoint integers? If not, the message says why. */
qat_status inspect_integers(const inspected *x, qat_error *err);
/** Run one input through the model, so that activations have values. */
qat_status inspect_run(inspected *x, qat_error *err);
void inspect_close(inspected *x);

/**
 * The short name of a tensor; qat-run --dump-tensors names its files the same way
 * (tool_tensor_label).
 */
void inspect_label(const qat_qgraph *g, int i, char label[TOOL_LABEL_MAX]);
/** Do the tensors have numbers of a source file? */
bool inspect_is_numbered(const qat_qgraph *g);
/** Find a tensor by index in the .qm, by name, or by label (t7); -1: none. */
int inspect_find(const inspected *x, const char *which);
/** Code number i of a tensor of 8-bit codes, as an int. */
int inspect_code(const qat_qtensor *t, const uint8_t *codes, size_t i);
/** The scale of value i; weights per channel have several scales. */
float inspect_scale(const qat_qtensor *t, size_t i);
/** Has it a scale? qat-export --strip leaves out the scales of channels. */
bool inspect_has_scale(const qat_qtensor *t);
/**
 * The range of a tensor: the stored one, or, if that was left out, what its codes can stand for.
 * False: not known.
 */
bool inspect_range(const qat_qtensor *t, double range[2]);
/** The same as text, and the scale; "-": not known. */
void inspect_range_text(const qat_qtensor *t, char text[64]);
void inspect_scale_text(const qat_qtensor *t, char text[32]);
/** A name to be printed, "-" if it was left out. */
const char *inspect_name(const char *name);
/** The int32 constants with M0 and shift of an op, or NULL if they are parameters of the op. */
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
/** Print where the bytes of a .qm are, layer by layer: as a table; as a member of the JSON object.
 */
void inspect_print_bytes(const inspected *x);
void inspect_json_bytes(const inspected *x);
/** Print all class names of a .qm, one per line. */
void inspect_print_labels(const inspected *x);
/**
 * Print the beginning of a tensor's JSON object: index, name, kind ... source_index. The object
 * stays open.
 */
void inspect_json_tensor(const qat_qgraph *g, int i);
/**
 * Print the first `limit` values (0: all) of a tensor of the integer graph, or else of a parameter
 * of the checkpoint. If the name is unknown, the error names the nearest one.
 */
qat_status inspect_print_tensor(inspected *x, const char *which, int64_t limit, bool json,
                                qat_error *err);
qat_status inspect_plot(inspected *x, const char *dir, qat_error *err);

/**
 * Print the float, training or eval graph of a checkpoint or recipe ("all": training and eval), as
 * text or dot.
 */
qat_status inspect_graphs(const char *path, tool_file kind, const tool_list *plugins,
                          const char *stage, bool dot, qat_error *err);
/** Print the integer graph, as text or dot. */
void inspect_print_integer_graph(const qat_qgraph *g, bool dot);

#endif
