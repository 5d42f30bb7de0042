/**
 * A .tflite file as a list of tensors and a list of operators, read from the tables of its schema,
 * with every index checked. It borrows the bytes of the file.
 */
#ifndef QAT_CONVERT_TFLITE_MODEL_H
#define QAT_CONVERT_TFLITE_MODEL_H

#include "base/arena.h"
#include "base/flatbuffers/flatbuffer.h"
#include "qat/graph.h"

/** The schema's TensorType. */
typedef enum tfl_type {
    TFL_FLOAT32 = 0,
    TFL_FLOAT16 = 1,
    TFL_INT32 = 2,
    TFL_UINT8 = 3,
    TFL_INT64 = 4,
    TFL_BOOL = 6,
    TFL_INT16 = 7,
    TFL_INT8 = 9,
    TFL_INT4 = 17
} tfl_type;

enum {
    TFL_MAX_RANK = 8,
    TFL_MAX_TENSORS = 16384,
    TFL_MAX_OPS = 4096,
    TFL_MAX_OPERANDS = 256 /* limit for inputs or outputs of one operator, or of the model */
};

typedef struct tfl_tensor {
    char name[QAT_NAME_MAX]; /* cut to fit */
    int type;                /* tfl_type, or another value of the schema's */
    int rank;                /* rank of the shape in the file; 0 for scalars and unknown ranks */
    int32_t dims[TFL_MAX_RANK];
    const uint8_t *data; /* a constant's bytes, in the file; NULL: none */
    size_t data_bytes;
    fb_vector scales, zero_points; /* float32, int64 */
    int quantized_dimension;
    bool variable, sparse;
} tfl_tensor;

typedef struct tfl_op {
    int code;         /* builtin operator */
    const char *name; /* name of the operator, or "number 250"; for a custom one its own name */
    int n_inputs, n_outputs;
    int *inputs, *outputs; /* tensors; an input of -1 is absent */
    int options_type;      /* tfl_options, or another value of the schema's */
    fb_table options;      /* the operator's own table of options; absent: all defaults */
    fb_vector custom_options;
    int n_intermediates;
    int *intermediates; /* tensors that only have scales; -1: absent */
} tfl_op;

typedef struct tfl_model {
    fb_file file;
    qat_arena arena; /* owns everything below */
    int n_tensors, n_ops, n_inputs, n_outputs;
    tfl_tensor *tensors;
    tfl_op *ops;
    int *inputs, *outputs;
    char *description;
} tfl_model;

/**
 * Parse a file. These are errors: not a .tflite file of schema version 3, offsets that point
 * outside the file, more tensors or operators than a .qm can hold. The model is the first subgraph;
 * operators run others, if any does.
 * @param bytes  borrowed as long as the model
 */
qat_status tfl_model_parse(tfl_model *model, const void *bytes, size_t count, qat_error *err);
/** The same of another subgraph, which may have no inputs and no outputs. */
qat_status tfl_model_parse_subgraph(tfl_model *model, const void *bytes, size_t count,
                                    uint32_t subgraph, qat_error *err);
/** A zeroed model is fine. */
void tfl_model_free(tfl_model *model);

/** The name of a builtin operator; NULL: this program knows none. */
const char *tfl_op_name(int code);
/** Name of a tensor type. */
const char *tfl_type_name(int type);

#endif
