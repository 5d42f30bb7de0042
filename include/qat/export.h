/**
 * A verified .qm as a file of another tool: the same integers, in its format. Only what the other
 * tool computes may differ, and the writer says so. And float networks, or their parameters.
 */
#ifndef QAT_EXPORT_H
#define QAT_EXPORT_H

#include "qat/convert.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/** How ONNX has a model's operators. */
typedef enum qat_onnx_form {
    QAT_ONNX_QDQ,       /* QuantizeLinear and DequantizeLinear around operators of real numbers */
    QAT_ONNX_QOPERATOR, /* QLinearConv and so on, of com.microsoft where ONNX has none */
    QAT_ONNX_INTEGER    /* ConvInteger and so on, and the model's roundings in int64 */
} qat_onnx_form;

typedef struct qat_write_options {
    size_t struct_size; /* sizeof this struct, or 0: as in version 0.1 (qat.h) */
    const qat_log *log; /* where the other tool computes something else; NULL: nowhere */
    bool float_io;      /* the file takes and gives real numbers instead of codes. What began with
                           pixels takes normalised ones: (pixel - mean) / std. States stay codes */
    int opset;          /* ONNX: 13..21; 0: 17. From 21 on, up to four bits of weights take four */
    qat_onnx_form form; /* ONNX */
} qat_write_options;

/** Write a model in another format: its bytes, which are free()d. What cannot be written is named.
 */
typedef qat_status qat_write_fn(const qi_host *model, const qat_write_options *options,
                                uint8_t **bytes, size_t *count, qat_error *err);

/**
 * Write TensorFlow Lite, with weights, scales and roundings of the model. The file is read back
 * before it is returned: a model of profile tflite has equal answers in the reference kernels, byte
 * for byte; of another model the log says how many differ.
 */
qat_status qat_tflite_write(const qi_host *model, const qat_write_options *options, uint8_t **bytes,
                            size_t *count, qat_error *err);

/**
 * Write ONNX: codes, scales and biases are the model's. In the form integer all values are, too; in
 * the others ONNX rounds accumulators in float32, half to even, as a model of profile onnx does:
 * its bytes are equal, but for transposed convolutions and softmax, and for layout int8 on x86
 * processors without VNNI. Of another profile a value may get a neighbouring code, and weights of
 * fewer than 8 bits are 2^n times as large, with scales so much smaller. Pictures are [N, C, H, W].
 * QAT_ERR_UNSUPPORTED in a build without protobuf-c.
 */
qat_status qat_onnx_write(const qi_host *model, const qat_write_options *options, uint8_t **bytes,
                          size_t *count, qat_error *err);

/**
 * Write a float network as TensorFlow Lite. Batch norm becomes part of the layer before it. The
 * graph is planned for a batch of one and has its parameters. Its states are inputs and outputs.
 */
typedef qat_status qat_write_float_fn(const qat_graph *graph, const qat_write_options *options,
                                      uint8_t **bytes, size_t *count, qat_error *err);
qat_status qat_tflite_write_float(const qat_graph *graph, const qat_write_options *options,
                                  uint8_t **bytes, size_t *count, qat_error *err);

/**
 * Write a float network as ONNX, batch norm as it is, with its parameters' names and values. The
 * graph is planned and has its parameters. Of the options, opset counts.
 */
qat_status qat_onnx_write_float(const qat_graph *graph, const qat_write_options *options,
                                uint8_t **bytes, size_t *count, qat_error *err);

/**
 * Write the parameters of a float network as a NumPy archive (.npz), which train.init reads:
 * float32, with the names and shapes that qat-inspect lists. The graph is planned and has its
 * parameters. No option counts.
 */
qat_status qat_npz_write_float(const qat_graph *graph, const qat_write_options *options,
                               uint8_t **bytes, size_t *count, qat_error *err);

/** What a model that was made to fit takes. */
typedef struct qat_ram_plan {
    size_t ram, ram_before;     /* qi_model_ram: in bands, and without them */
    size_t bytes, bytes_before; /* of the .qm */
    int64_t macs, macs_before;  /* multiply-adds of a run (qi_model_macs): rows that two bands need
                                   count twice, and a value that is copied or packed as one */
    int layers, bands;          /* layers in bands; 0: the model fits without bands */
    int32_t rows;               /* of the last of these layers, in a band; of packed tensors */
    char last[QAT_NAME_MAX];    /* the name of this layer */
    int packed;                 /* tensors of few bits that are packed; layers is 0 then */
} qat_ram_plan;

/**
 * Make a model fit a device's RAM (qi_model_ram). Its first layers run band by band of rows, so
 * that only some rows of large tensors are in memory at a time; or tensors of at most 4 bits lie
 * packed, two codes in a byte (four of at most 2 bits), and the layers that make or read them run
 * in bands. Its outputs are the same, byte for byte. Of the ways that fit, the one with the fewest
 * multiply-adds is taken.
 *
 * The two are compared on random inputs: `model` runs, so no other thread may run it meanwhile, and
 * its states are then those of the start (qi_host_reset).
 *
 * QAT_ERR_LIMIT if there is none; the message and plan->ram say the least RAM that was found.
 *
 * @param fitted  receives the model in bands, to be closed with qi_host_close; NULL if it fits as
 *                it is. May be NULL: then only the plan is made
 * @param limit   bytes
 */
qat_status qat_fit_ram(qi_host **fitted, const qi_host *model, size_t limit, qat_ram_plan *plan,
                       qat_error *err);

/** How a model becomes C source. */
typedef struct qat_c_options {
    size_t struct_size;    /* sizeof this struct, or 0: as in version 0.1 (qat.h) */
    const char *name;      /* the start of all names; NULL: "network" */
    const char *file;      /* the name of the files without their endings; NULL: as name */
    const char *section;   /* linker section of the constants; NULL: the compiler's */
    bool no_self_test;     /* leave out NAME_self_test */
    bool caller_arena;     /* the functions take the arena as their first argument */
    bool separate_weights; /* the constants are a file of their own, not arrays */
    bool strict;           /* every body in braces, <string.h>: what rules such as MISRA C ask */
    bool no_preprocessing; /* leave out NAME_picture and the like */
} qat_c_options;

/** What was written; free with qat_c_files_free. */
typedef struct qat_c_files {
    char *source, *header; /* NAME.c and NAME.h; without an ending NUL */
    uint8_t *weights;      /* NULL without separate_weights */
    size_t source_bytes, header_bytes, weights_bytes;
} qat_c_files;

/**
 * Write a model as one C file and its header, for a compiler of C99 or C++17 and a little-endian
 * processor. The file has the engine's own kernels, those that the model needs, so its outputs are
 * the engine's, byte for byte. It needs memcpy and memset, and no floating point. NAME_self_test
 * runs the model's known answer, or bytes of a fixed sequence if it has none, and returns 0 or the
 * number of the first layer whose bytes differ. A model of pictures has NAME_picture, one
 * of sounds NAME_sound, which do what qat-run does with files. QAT_ERR_UNSUPPORTED for custom ops.
 */
qat_status qat_c_write(const qi_host *model, const qat_c_options *options, qat_c_files *files,
                       qat_error *err);
void qat_c_files_free(qat_c_files *files); /* a zeroed struct is fine */

/** Processors for which the size of a C file's code is known. */
enum { QAT_C_CORES = 6 };

/**
 * Bytes that a C file takes on a processor of 32 bits. Flash: constants + parameters + test + code;
 * RAM: arena + stack. Code and stack are by core, as qat_c_core_names has them: compiled by gcc 12
 * with -Os. All but code and stack are exact; code is within some percent, stack is a bound.
 */
typedef struct qat_c_sizes {
    size_t constants;  /* weights, biases, tables: arrays, or the file of separate_weights */
    size_t parameters; /* what the kernels must know of each layer */
    size_t test;       /* the input and the digests of NAME_self_test */
    size_t arena;      /* activations, states and scratch */
    size_t code[QAT_C_CORES];
    size_t stack[QAT_C_CORES];
} qat_c_sizes;
extern const char *const qat_c_core_names[QAT_C_CORES];

/** Find these numbers, with what qat_c_write would write. Errors are those of qat_c_write. */
qat_status qat_c_measure(const qi_host *model, const qat_c_options *options, qat_c_sizes *sizes,
                         qat_error *err);

/** Bytes that a C file's preprocessing (NAME_picture ...) takes, in a program that calls it. */
typedef struct qat_c_preprocessing {
    size_t ram;               /* at most: of sounds, 4096 may lie in the arena. 0: there is none */
    size_t code[QAT_C_CORES]; /* with settings; as in qat_c_sizes */
} qat_c_preprocessing;

/** These numbers for a model with this preprocessing. */
qat_c_preprocessing qat_c_preprocessing_of(const qi_preprocessing *preprocessing);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
