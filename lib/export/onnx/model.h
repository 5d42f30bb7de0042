/**
 * An ONNX model that is being written: nodes, constants, names. The schema's structs stay in
 * model.c.
 *
 * After the first failed allocation all functions do nothing useful, and onnx_pack says so. So a
 * writer needs no check on each line.
 */
#ifndef QAT_EXPORT_ONNX_MODEL_H
#define QAT_EXPORT_ONNX_MODEL_H

#include "base/arena.h"
#include "base/bytes.h"
#include "qat/export.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** ONNX's numbers of types. The last two came after the schema of Debian 12. */
typedef enum onnx_type {
    ONNX_FLOAT = 1,
    ONNX_U8 = 2,
    ONNX_S8 = 3,
    ONNX_S16 = 5,
    ONNX_S32 = 6,
    ONNX_S64 = 7,
    ONNX_DOUBLE = 11,
    ONNX_U4 = 21,
    ONNX_S4 = 22
} onnx_type;

/** Bytes of a value in memory. Four bits have a byte there, and half of one in the file. */
size_t onnx_type_bytes(onnx_type type);

enum { ONNX_OPSET_MIN = 13, ONNX_OPSET_DEFAULT = 17, ONNX_OPSET_MAX = 21 };

typedef struct Onnx__NodeProto onnx_node;

typedef struct onnx_list {
    void **items;
    size_t count;
} onnx_list;

typedef struct onnx_model {
    qat_arena arena;
    bool failed;
    int opset;
    bool batched;   /* the first dimension of inputs and outputs is called N, and may be any */
    bool microsoft; /* has nodes of com.microsoft */
    onnx_list nodes, constants, inputs, outputs, metadata;
    const char **names; /* a hash table */
    size_t n_names, names_capacity;
} onnx_model;

/** What every writer does first: the options are checked, and opset is set. */
qat_status onnx_begin(onnx_model *m, const qat_write_options *options, qat_error *err);

/** Memory that lives as long as the model; a failure is noted. */
void *onnx_take(onnx_model *m, size_t count, size_t size);

/**
 * A name that no other value or node has: `wanted`, with a number behind it where needed. What is
 * no UTF-8, or cannot be seen, becomes visible.
 */
const char *onnx_name(onnx_model *m, const char *wanted);

/** Append a node, with inputs; the list of names ends with NULL. "" is an input that is left out.
 */
onnx_node *onnx_add(onnx_model *m, const char *op, const char *const *inputs);
/** Make it one of com.microsoft. */
void onnx_microsoft(onnx_model *m, onnx_node *node);
void onnx_input(onnx_model *m, onnx_node *node, const char *value);
void onnx_attr_int(onnx_model *m, onnx_node *node, const char *name, int64_t value);
void onnx_attr_float(onnx_model *m, onnx_node *node, const char *name, float value);
void onnx_attr_text(onnx_model *m, onnx_node *node, const char *name, const char *value);
void onnx_attr_ints(onnx_model *m, onnx_node *node, const char *name, int n, const int64_t *values);
/** Its only output, called `name`, which is onnx_name's. */
const char *onnx_output(onnx_model *m, onnx_node *node, const char *name);
/** The same in one call. */
const char *onnx_apply(onnx_model *m, const char *op, const char *wanted, const char *a,
                       const char *b);

/** Append a constant; its values are copied. Returns its name. */
const char *onnx_constant(onnx_model *m, const char *wanted, onnx_type type, int rank,
                          const int64_t *dims, const void *values);
/** A constant without dimensions, or of one dimension. */
const char *onnx_scalar(onnx_model *m, const char *wanted, onnx_type type, const void *value);
const char *onnx_vector(onnx_model *m, const char *wanted, onnx_type type, int64_t n,
                        const void *values);

/** Say that a value is an input or an output of the model. */
void onnx_end(onnx_model *m, bool is_output, const char *name, onnx_type type, int rank,
              const int64_t *dims);

/** Append what people and programs may read: a key and a text. */
void onnx_metadata(onnx_model *m, const char *key, const char *text);

/** The same with a text that was written; it is freed. Nothing is appended if it is empty. */
void onnx_metadata_text(onnx_model *m, const char *key, qat_writer *text);
/**
 * A line of the metadata "states": the input that is a state, the output that it becomes, and its
 * value before the first run.
 */
void onnx_tell_state(qat_writer *text, const char *input, const char *output, int32_t first);

/** The file's bytes; free() them. */
qat_status onnx_pack(onnx_model *m, const char *description, uint8_t **bytes, size_t *count,
                     qat_error *err);

#endif
