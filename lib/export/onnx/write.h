/** Writing a .qm as ONNX: what the writers of its ops share. */
#ifndef QAT_EXPORT_ONNX_WRITE_H
#define QAT_EXPORT_ONNX_WRITE_H

#include "export/onnx/layout.h"
#include "qat/export.h"

/** A tensor of the .qm, and what the file has of it. */
typedef struct onnx_tensor {
    const qi_tensor *of;
    onnx_value value; /* its codes */
    int32_t carry;    /* what its codes are higher by in the file: int8 ones that are uint8 there */
    float scale;
    const char *coded;                   /* the input of the file that it is, as codes; or NULL */
    const char *scale_name, *zero_point; /* constants; NULL: not there yet */
} onnx_tensor;

typedef struct onnx_writer {
    onnx_model m;
    const qi_model *from;
    const qat_write_options *options;
    onnx_tensor *tensors;
    bool operators; /* QLinearConv and so on, instead of operators of real numbers between
                       DequantizeLinear and QuantizeLinear */
    bool integer;   /* these operators are of integers alone, and round as the .qm does */
    bool even;      /* the .qm is one of profile onnx: it rounds as ONNX Runtime's kernels */
    qat_error *err;
} onnx_writer;

/** Writes a node of the .qm. Each op has one, in the files op_*.c. */
typedef qat_status onnx_op_fn(onnx_writer *w, const qi_node *node);
typedef struct onnx_op {
    const char *name;
    onnx_op_fn *write;
} onnx_op;
/** They end with a NULL name. In the form integer, onnx_integers come first. */
extern const onnx_op onnx_layers[], onnx_values[], onnx_moves[], onnx_integers[];

/** Input i and the output of a node; a parameter by its name in docs/qm-format.md. */
onnx_tensor *onnx_in(const onnx_writer *w, const qi_node *node, int i);
onnx_tensor *onnx_out(const onnx_writer *w, const qi_node *node);
int32_t onnx_param(const qi_node *node, const char *name);
/** Fail with a sentence that names the node. */
qat_status onnx_refuse(const onnx_writer *w, const qi_node *node, const char *why);

/** Constants without dimensions: the scale and the zero point of a tensor's codes. */
const char *onnx_scale(onnx_writer *w, onnx_tensor *t);
const char *onnx_zero_point(onnx_writer *w, onnx_tensor *t);
/** A constant: one of a tensor's codes. */
const char *onnx_code(onnx_writer *w, const onnx_tensor *t, const char *wanted, int32_t code);
/** DequantizeLinear of a tensor's codes, in a form. */
const char *onnx_real(onnx_writer *w, onnx_tensor *t, onnx_form form);
const char *onnx_dequantized(onnx_writer *w, onnx_tensor *t, const char *codes, const char *wanted);

/**
 * Write a node that averages codes with `write`. With rounding EVEN, scale 1 and zero point 0 stand
 * for its tensors' own: float32 then has the sums without an error, and a tie becomes an even code.
 */
qat_status onnx_of_codes(onnx_writer *w, const qi_node *node, onnx_op_fn *write);

/** The codes between which a node limits its output: by its parameters, or by the tensor's bits. */
typedef struct onnx_clamp {
    int32_t lo, hi;
} onnx_clamp;
onnx_clamp onnx_all_codes(const qi_tensor *t);
onnx_clamp onnx_clamp_of(const onnx_writer *w, const qi_node *node);
/** Limit codes. Limits at the ends of the type need no node. */
const char *onnx_limited(onnx_writer *w, const onnx_tensor *t, onnx_clamp clamp, const char *codes);

/**
 * The output of a node is `name`, real numbers: they are limited, and become codes. In profile onnx
 * the codes are limited: ONNX Runtime makes one operator of three that stand side by side.
 */
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

/** The codes x, which are carried so, as ones that are `by` higher. */
const char *onnx_recoded(onnx_writer *w, const char *x, int32_t by, onnx_type type);
/** The entry of each code of x. entries: a constant's name; added: to a code, to be a position. */
const char *onnx_looked_up(onnx_writer *w, const char *x, const char *added, const char *entries,
                           const char *wanted);
/** The form for two operands: pictures, if the output is one and all that is computed has its rank.
 */
onnx_form onnx_form_of_both(const onnx_writer *w, const qi_node *node);
/** The form of a node's only input, for operators that take any. */
onnx_form onnx_form_in(const onnx_writer *w, const qi_node *node);

/** Append an operator that takes codes, scale, zero point of one or two inputs, then the output's.
 */
onnx_node *onnx_qlinear(onnx_writer *w, const qi_node *node, const char *op, int inputs,
                        onnx_form form);

/* ------------------------------------------------------------------ the form integer: integers.c
 */

/** Operators of int64: of two values, or of one (b is NULL); of a value and a number. */
const char *onnx_both(onnx_writer *w, const char *op, const char *a, const char *b);
const char *onnx_with(onnx_writer *w, const char *op, const char *a, int64_t b);
const char *onnx_cast(onnx_writer *w, const char *x, onnx_type to);
const char *onnx_within(onnx_writer *w, const char *x, onnx_type type, const void *lo,
                        const void *hi);
const char *onnx_within_int32(onnx_writer *w, const char *x);
/** A tensor's codes minus `zero`, as int64. */
const char *onnx_codes_from(onnx_writer *w, onnx_tensor *t, onnx_form form, int32_t zero);

/** qi_srdhm */
const char *onnx_srdhm(onnx_writer *w, const char *a, const char *b);
/** x / whole to the nearest, half away from zero; half is the half of whole, rounded down. */
const char *onnx_divided(onnx_writer *w, const char *x, const char *half, const char *whole);

/** Multipliers: one, or one for each output channel, which is dimension 1 of `rank`, or the last.
 */
typedef struct onnx_scaling {
    int n, rank;
    int64_t *mult;
    int *shift;
} onnx_scaling;
/** qi_requantize_even, before it becomes an integer: x, of integers, times float32 numbers. */
const char *onnx_scaled_even(onnx_writer *w, const char *x, const onnx_scaling *by);
/** Real numbers to the nearest int64, ties to even. */
const char *onnx_nearest_even(onnx_writer *w, const char *x);
/** qi_requantize */
const char *onnx_requantized(onnx_writer *w, const char *x, const onnx_scaling *by);
/** The same by a node's parameters of these names. */
const char *onnx_requantized_by(onnx_writer *w, const qi_node *node, const char *mult,
                                const char *shift, const char *x);

/** x + zero as a code of y. */
const char *onnx_code_of(onnx_writer *w, const onnx_tensor *y, int32_t zero, const char *x);
/** The node's output is x, int64, without zero point: it becomes codes. */
void onnx_computed(onnx_writer *w, const qi_node *node, onnx_form form, const char *x);
onnx_op_fn onnx_integer_nearest, onnx_integer_bilinear;
/** The codes of a layer with weights: of its int32 sums and its bias. They are not limited. */
const char *onnx_summed(onnx_writer *w, const qi_node *node, const char *bias, int rank,
                        const char *sum);

#endif
