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
 * the others ONNX rounds accumulators in float32, half to even, so a value may get a neighbouring
 * code. Pictures are [N, C, H, W]. QAT_ERR_UNSUPPORTED in a build without protobuf-c.
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

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
