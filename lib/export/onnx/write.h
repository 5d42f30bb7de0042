/** Writing a .qm as ONNX: what the writers of its ops share. */
#ifndef QAT_EXPORT_ONNX_WRITE_H
#define QAT_EXPORT_ONNX_WRITE_H

#include "export/onnx/layout.h"
#include "qat/export.h"

/** A tensor of the .qm, and what the file has of it. */
typedef struct onnx_tensor {
    const qi_tensor *of;
    onnx_value value; /* its codes */
    float scale;
    const char *scale_name, *zero_point; /* constants; NULL: not there yet */
} onnx_tensor;

typedef struct onnx_writer {
    onnx_model m;
    const qi_model *from;
    const qat_write_options *options;
    onnx_tensor *tensors;
    bool operators; /* QLinearConv and so on, instead of operators of real numbers between
                       DequantizeLinear and QuantizeLinear */
    qat_error *err;
} onnx_writer;

/** Writes a node of the .qm. Each op has one, in the files op_*.c. */
typedef qat_status onnx_op_fn(onnx_writer *w, const qi_node *node);
typedef struct onnx_op {
    const char *name;
    onnx_op_fn *write;
} onnx_op;
extern const onnx_op onnx_layers[], onnx_values[], onnx_moves[]; /* end with a NULL name */

/** Input i and the output of a node; a parameter by its name in docs/qm-format.md. */
onnx_tensor *onnx_in(const onnx_writer *w, const qi_node *node, int i);
onnx_tensor *onnx_out(const onnx_writer *w, const qi_node *node);
int32_t onnx_param(const qi_node *node, const char *name);
/** Fail with a sentence that names the node. */
qat_status onnx_refuse(const onnx_writer *w, const qi_node *node, const char *why);

/** Constants without dimensions: the scale and the zero point of a tensor's codes. */
const char *onnx_scale(onnx_writer *w, onnx_tensor *t);
const char *onnx_zero_point(onnx_writer *w, onnx_tensor *t);
/** DequantizeLinear of a tensor's codes, in a form. */
const char *onnx_real(onnx_writer *w, onnx_tensor *t, onnx_form form);
const char *onnx_dequantized(onnx_writer *w, onnx_tensor *t, const char *codes, const char *wanted);

/** The codes between which a node limits its output: by its parameters, or by the tensor's bits. */
typedef struct onnx_clamp {
    int32_t lo, hi;
} onnx_clamp;
onnx_clamp onnx_all_codes(const qi_tensor *t);
onnx_clamp onnx_clamp_of(const onnx_writer *w, const qi_node *node);
/** Limit codes. Limits at the ends of the type need no node. */
const char *onnx_limited(onnx_writer *w, const onnx_tensor *t, onnx_clamp clamp, const char *codes);

/** The output of a node is `name`, real numbers: they are limited, and become codes. */
void onnx_quantized(onnx_writer *w, const qi_node *node, onnx_form form, const char *name);
/** The output of a node is `name`, codes. They are limited. */
void onnx_coded(onnx_writer *w, const qi_node *node, onnx_form form, const char *name);

/**
 * Ops that move codes take codes; or, in the form QDQ, real numbers between DequantizeLinear and
 * QuantizeLinear, which give the same codes.
 */
bool onnx_moves_reals(const onnx_writer *w, const qi_node *node);
const char *onnx_moved(onnx_writer *w, const qi_node *node, int i, onnx_form form);
void onnx_arrived(onnx_writer *w, const qi_node *node, onnx_form form, const char *name);

/** Append an operator that takes codes, scale, zero point of one or two inputs, then the output's.
 */
onnx_node *onnx_qlinear(onnx_writer *w, const qi_node *node, const char *op, int inputs,
                        onnx_form form);

#endif
