/** Makes small .tflite files in memory, for tests of their reader. They have one subgraph. */
#ifndef QAT_TESTS_TFLITE_BUILD_H
#define QAT_TESTS_TFLITE_BUILD_H

#include <stddef.h>
#include <stdint.h>

enum { BUILD_MAX_RANK = 8, BUILD_MAX_OPERANDS = 24, BUILD_MAX_OPTIONS = 8 };

typedef struct build_tensor {
    const char *name;
    int type; /* the schema's TensorType */
    int rank;
    int32_t dims[BUILD_MAX_RANK];
    float scale; /* 0: no quantization parameters */
    int64_t zero_point;
    const void *data; /* NULL: no constant */
    size_t bytes;
    int sparse, variable;
} build_tensor;

/** One scalar of an operator's options. */
typedef struct build_option {
    int field;
    uint32_t bits; /* a number, or the bits of a float */
} build_option;

typedef struct build_op {
    int code;           /* builtin operator */
    const char *custom; /* of code 32: its name */
    int n_inputs, inputs[BUILD_MAX_OPERANDS];
    int n_outputs, outputs[BUILD_MAX_OPERANDS];
    int options_type; /* the schema's BuiltinOptions */
    int n_options;
    build_option options[BUILD_MAX_OPTIONS];
    int n_ints, ints[BUILD_MAX_RANK]; /* a vector among the options, as their field 0 */
    int n_intermediates, intermediates[BUILD_MAX_OPTIONS];
    const void *custom_options;
    size_t custom_bytes;
} build_op;

typedef struct build_model {
    int version;   /* 0: 3 */
    int subgraphs; /* 0: 1 */
    int n_tensors, n_ops, n_inputs, n_outputs;
    const build_tensor *tensors;
    int n_scales, scales_of; /* if n_scales: tensor scales_of has as many equal scales */
    const build_op *ops;
    int inputs[BUILD_MAX_OPERANDS], outputs[BUILD_MAX_OPERANDS];
} build_model;

/** The file's bytes; free() them. */
uint8_t *build_tflite(const build_model *model, size_t *count);

typedef struct build_number {
    const char *key;
    float value;
} build_number;

/** A FlexBuffer map of float32, keys in alphabetical order; free() it. */
uint8_t *build_flex_map(const build_number *numbers, int n, size_t *count);

#endif
