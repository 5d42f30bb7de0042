/**
 * Shared by the files that read float .tflite files into the intermediate form.
 *
 * An operator of the file becomes one or several nodes with ONNX's names. Pictures are [N, H, W, C]
 * in the file; an operator whose ONNX form wants [N, C, H, W] stands between two transposes. They
 * cost nothing: the builder only renames dimensions.
 */
#ifndef QAT_FOREIGN_TFLITE_H
#define QAT_FOREIGN_TFLITE_H

#include "convert/tflite/codes.h"
#include "convert/tflite/model.h"
#include "foreign/graph.h"

enum { TF_ATTRS_MAX = 8 };

typedef struct tf_reader {
    const tfl_model *model;
    qat_foreign_graph *graph; /* its first values are the file's tensors */
    int most_nodes, most_values;
    uint64_t memory;         /* bytes that may still be taken */
    bool full;               /* something was more than that */
    const tfl_op *op;        /* that is being read */
    char name[QAT_NAME_MAX]; /* its name */
    int n_attrs;
    qat_foreign_attr attrs[TF_ATTRS_MAX]; /* of the next node */
    qat_error *err;
} tf_reader;

/** How an operator is read. */
typedef struct tf_operator {
    int code;
    int min_inputs, max_inputs;
    qat_status (*read)(tf_reader *r);
} tf_operator;
/** NULL: there is none. */
const tf_operator *tf_operator_of(int code);

/** "net.tflite: op 3 (CONV_2D, writes NAME): ..." */
qat_status tf_refuse(tf_reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** The tensor of input i; NULL: it is left out. */
const tfl_tensor *tf_tensor(const tf_reader *r, int i);
/** The value of input i; -1: it is left out. */
int tf_input(const tf_reader *r, int i);
/** The numbers of input i, which must be constant integers. */
qat_status tf_ints(tf_reader *r, int i, const char *what, int64_t *to, int most, int *n);

/** A new value. */
int tf_value(tf_reader *r);
/** Attributes of the next node. */
void tf_attr_int(tf_reader *r, const char *name, int64_t value);
void tf_attr_real(tf_reader *r, const char *name, float value);
void tf_attr_text(tf_reader *r, const char *name, const char *value);
void tf_attr_ints(tf_reader *r, const char *name, int n, const int64_t *values);
/** Add a node "<name>" or "<name>/<part>", with the attributes given before. */
void tf_node(tf_reader *r, const char *op, const char *part, int n_inputs, const int *inputs,
             int n_outputs, const int *outputs);
/** A node with one input; returns its new value. */
int tf_between(tf_reader *r, const char *op, const char *part, int input);

#endif
