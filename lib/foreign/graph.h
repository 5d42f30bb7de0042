/**
 * A float network of another framework, as its file says it: nodes, attributes, constants, names.
 * A reader (onnx.c, tflite.c) fills this form, the builder (build.c) makes a trainable graph of it.
 * The names of operators and attributes, and the order of dimensions, are ONNX's.
 */
#ifndef QAT_FOREIGN_GRAPH_H
#define QAT_FOREIGN_GRAPH_H

#include "base/arena.h"
#include "qat/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    QAT_FOREIGN_RANK = 8,
    QAT_FOREIGN_NODES_MAX = 32768,
    QAT_FOREIGN_NAMES_MAX = 524288, /* of values, counted wherever they stand */
    QAT_FOREIGN_INPUTS_MAX = 4096,  /* of one node */
    QAT_FOREIGN_RUNS_MAX = 1024,    /* of evenly spaced positions that one node takes */
    QAT_FOREIGN_DEPTH_MAX = 32      /* messages within messages, of the file */
};

/** What a constant holds: all kinds of floats become float32, all kinds of integers int64. */
typedef enum qat_foreign_type {
    QAT_FOREIGN_FLOAT,
    QAT_FOREIGN_INT,
    QAT_FOREIGN_OTHER /* texts, complex numbers: no values here */
} qat_foreign_type;

typedef struct qat_foreign_tensor {
    qat_foreign_type type;
    int stored; /* of an .onnx file: its number of the type; 0: not known */
    int rank;
    int64_t dims[QAT_FOREIGN_RANK];
    size_t count;
    const float *floats;
    const int64_t *ints;
} qat_foreign_tensor;

typedef enum qat_foreign_kind {
    QAT_FOREIGN_ATTR_INT,
    QAT_FOREIGN_ATTR_FLOAT,
    QAT_FOREIGN_ATTR_TEXT,
    QAT_FOREIGN_ATTR_INTS,
    QAT_FOREIGN_ATTR_FLOATS,
    QAT_FOREIGN_ATTR_TENSOR,
    QAT_FOREIGN_ATTR_OTHER /* graphs, lists of texts */
} qat_foreign_kind;

typedef struct qat_foreign_attr {
    const char *name;
    qat_foreign_kind kind;
    int64_t i;
    float f;
    const char *text;
    size_t n; /* of ints or floats */
    const int64_t *ints;
    const float *floats;
    const qat_foreign_tensor *tensor;
} qat_foreign_attr;

typedef struct qat_foreign_node {
    const char *op, *domain; /* domain "": ONNX's own */
    const char *name;        /* as the file has it; may be "" */
    int n_inputs, n_outputs, n_attrs;
    const int *inputs, *outputs; /* values; -1: left out */
    const qat_foreign_attr *attrs;
} qat_foreign_node;

typedef struct qat_foreign_value {
    const char *name;
    const qat_foreign_tensor *constant; /* NULL: it is computed, or an input */
    bool is_input;
    bool is_other;                  /* an input that is a sequence or an optional, no tensor */
    int stored;                     /* of an input: as that of a tensor */
    int rank;                       /* of an input; -1: not known */
    int64_t dims[QAT_FOREIGN_RANK]; /* -1: not known */
} qat_foreign_value;

typedef struct qat_foreign_graph {
    const char *source; /* the file's name, for messages */
    int opset;
    bool channels_last; /* of pictures and signals at its ends: [N, H, W, C], not [N, C, H, W] */
    int n_nodes, n_values, n_inputs, n_outputs;
    qat_foreign_node *nodes; /* a node comes after those whose outputs it reads */
    qat_foreign_value *values;
    int *inputs, *outputs; /* inputs that have no constant; outputs */
    uint64_t room; /* bytes left for what is built of it, of those that reading might take */
    qat_arena arena;
} qat_foreign_graph;

/** Free the graph; NULL is fine. */
void qat_foreign_free(qat_foreign_graph *graph);

/**
 * Read an .onnx file.
 * @param memory  bytes that reading may take, with the file's own, and then building;
 *                0: QAT_FOREIGN_DEFAULT_MEMORY
 */
qat_status qat_onnx_read(qat_foreign_graph **graph, const char *path, uint64_t memory,
                         qat_error *err);
/** The same from memory. Constants in files of their own are refused. */
qat_status qat_onnx_parse(qat_foreign_graph **graph, const void *bytes, size_t count,
                          const char *name, uint64_t memory, qat_error *err);
/** A TensorProto, as the data of tests are stored. *tensor lives as long as the arena. */
qat_status qat_onnx_parse_tensor(const qat_foreign_tensor **tensor, qat_arena *arena,
                                 const void *bytes, size_t count, const char *name, qat_error *err);

/** Read a .tflite file of floats. */
qat_status qat_float_tflite_read(qat_foreign_graph **graph, const char *path, uint64_t memory,
                                 qat_error *err);
qat_status qat_float_tflite_parse(qat_foreign_graph **graph, const void *bytes, size_t count,
                                  const char *name, uint64_t memory, qat_error *err);

#define QAT_FOREIGN_DEFAULT_MEMORY (UINT64_C(4) << 30)

#endif
