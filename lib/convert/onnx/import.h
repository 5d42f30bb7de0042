/**
 * Turns quantized .onnx graphs into integer graphs: what the files share.
 *
 * Two spellings mean the same:
 *
 *     QDQ        x codes -> DequantizeLinear -> Conv (of reals) -> Relu -> QuantizeLinear -> y
 * codes QOperator  x codes -> QLinearConv -> y codes
 *
 * So a value is codes, or the reals that codes stand for. An operator on reals whose result depends
 * on more than one code is only noted: the QuantizeLinear behind it, which knows the output's
 * scale, appends the engine's op. A QLinear operator appends the same op at once.
 */
#ifndef QAT_CONVERT_ONNX_IMPORT_H
#define QAT_CONVERT_ONNX_IMPORT_H

#include "foreign/build.h"
#include "foreign/ops/window.h"
#include "integer/quant_ops.h"

/** Numbers of types in .onnx files. */
enum {
    OQ_FLOAT = 1,
    OQ_UINT8 = 2,
    OQ_INT8 = 3,
    OQ_UINT16 = 4,
    OQ_INT16 = 5,
    OQ_INT32 = 6,
    OQ_INT64 = 7,
    OQ_UINT4 = 21,
    OQ_INT4 = 22
};

/** Codes of a constant, and what they stand for: scale (q - zero_point). */
typedef struct oq_constant {
    const qat_foreign_tensor *codes; /* NULL: no constant */
    const float *scales;
    size_t n_scales; /* 1, or one for each index of axis */
    int axis;
    int32_t zero_point;         /* the first */
    const int64_t *zero_points; /* as many as scales, if they differ; else NULL */
} oq_constant;

/** g y + b of a layer's outputs y, with a g and a b for each. */
typedef struct oq_affine {
    int n;
    const float *gain, *offset;
} oq_affine;

typedef struct oq_value {
    int tensor; /* its codes in the integer graph; -1: none; see OQ_FIRST_INPUT */
    int index;  /* of positions, which are no codes: 1 + their tensor; 0: it has none */
    int n_last; /* the order in memory: so many dimensions from the second on lie last; 1: [N, C, H,
                   W] lies as [N, H, W, C]; 0: the file's order */
    bool is_real;                /* what the codes stand for: S (q - Z), or function */
    const float *function;       /* [rows, 256], by byte of the tensor */
    int rows, row_axis;          /* one for each index of a dimension; 1: one for all */
    const oq_constant *channels; /* the function is these scales' and zero points'; or NULL */
    oq_constant constant;        /* of reals */
    const qat_foreign_node *op;  /* of reals: noted, then `affine`, and limited to lo .. hi */
    const oq_affine *affine;     /* NULL: none */
    float lo, hi;
} oq_value;

/** An input of an operator: a value and its dimensions in the file. */
typedef struct oq_operand {
    oq_value v;
    fv shape;
} oq_operand;

/** The codes that an operator is to give. */
typedef struct oq_target {
    qi_type type;
    float scale;
    int32_t zero_point;
    float lo, hi; /* a Relu or Clip before them */
    int value;    /* of the file */
    const oq_affine *affine;
} oq_target;

typedef struct oq_importer {
    builder b; /* attributes, constants, errors; its values hold dimensions and constants */
    qat_qgraph *graph;
    oq_value *values;
    int *inputs; /* engine tensors of the file's inputs; -1: reals that are not quantized yet */
    bool packed; /* pictures at the network's ends are [N, H, W, C] in the file */
    qat_error *err;
} oq_importer;

enum {
    OQ_OPERANDS = 256,
    OQ_FIRST_INPUT = -2 /* input i of the file, of floats, is "tensor" OQ_FIRST_INPUT - i */
};

/**
 * An operator of reals that becomes an op of the engine. Its QLinear form has, for each operand,
 * the codes, their scale and zero point; then the output's; and a bias of int32.
 */
typedef struct oq_operator {
    const char *op, *quantized; /* quantized NULL: there is none */
    int operands;               /* in triples */
    int output;                 /* input that is the output's scale */
    int bias;                   /* input, or -1 */
    qat_status (*emit)(oq_importer *q, oq_operand *in, int n, const oq_target *target);
} oq_operator;
extern const oq_operator oq_layer_operators[], oq_value_operators[], oq_picture_operators[];
enum { OQ_BYTES = 256 };

/** Functions of one real, and what moves values. */
extern const fv_operator oq_functions[], oq_moves[], oq_picture_moves[];
const fv_operator *oq_step_named(const fv_operator *list, const char *name);
/** The importer that the builder is part of. */
static inline oq_importer *oq_of(builder *b)
{
    return (oq_importer *)b; /* b is its first member */
}

/* ------------------------------------------------------------------ operands */

/** Input i; left out: an operand without anything. */
oq_operand oq_input(oq_importer *q, int i);
/** Of a type of .onnx files. */
const char *oq_type_name(int64_t type);
/** Is there anything? */
bool oq_is_given(const oq_operand *x);
/** The scales and zero points in inputs `scale` and `zero_point`; *stored: the latter's type, 0
 * without one. Sets all of c but the codes and the axis. */
qat_status oq_scales(oq_importer *q, int scale, int zero_point, oq_constant *c, int *stored);
/** Is it a constant without values? */
bool oq_is_empty(const oq_operand *x);
/** The single scale and the zero point in inputs `scale` and `zero_point`; type: of the codes. */
qat_status oq_grid(oq_importer *q, int scale, int zero_point, oq_target *grid);
/** Make the codes of input i reals of the scale and zero point in inputs i + 1 and i + 2. */
qat_status oq_real_input(oq_importer *q, int i, oq_operand *x);
/** The reals' codes in a tensor, a function's on a grid of its own; no operator's result. */
qat_status oq_codes(oq_importer *q, oq_operand *x, const char *what);
/** The codes that x has, for another value. */
oq_target oq_same_codes(const oq_importer *q, const oq_operand *x, int value);
/** Give x codes of this target: the same ones, a table, or the op that it was noted for. */
qat_status oq_quantize(oq_importer *q, oq_operand *x, const oq_target *target);
/** Give the codes of another value this target. */
qat_status oq_finish(oq_importer *q, int from, const oq_target *target);
/** Input 0 as codes. monotone: what is done compares them, or adds some; so they must not be a
 *  function. */
qat_status oq_moved_input(builder *b, bool monotone, oq_operand *x);
/** The axes of a Reduce operator, as bits. */
qat_status oq_reduced(builder *b, int rank, unsigned *mask);
/** The nearest code, halves to even. */
int32_t oq_code_of(float real, const oq_target *grid);

/* ------------------------------------------------------------------ results */

/** Set a value of the file. */
void oq_set(oq_importer *q, int value, const oq_value *v, int rank, const int64_t *dims);
/** Set output i of the node. */
void oq_output(oq_importer *q, int i, const oq_value *v, int rank, const int64_t *dims);
/** Append the tensor of a target with these dimensions of the file, and set its value. */
qat_status oq_append_output(oq_importer *q, const oq_target *target, int n_last, int rank,
                            const int64_t *dims, int *tensor);
/** Append a tensor with the codes of `like` and another shape. */
qat_status oq_append_like(oq_importer *q, int like, const char *part, int rank, const int32_t *dims,
                          int *tensor);
/** Append a constant; its bytes count as memory. */
qat_status oq_append_constant(oq_importer *q, qat_qtensor *t);
/** Make constant codes a tensor of rank dimensions, in this order in memory: x's tensor. */
qat_status oq_append_operand(oq_importer *q, oq_operand *x, int rank, int n_last);
/** Append an engine op that reads one tensor. */
qat_status oq_move(oq_importer *q, const char *op, int from, int to, int n_params,
                   const int32_t *params);
qat_emit oq_emit(const oq_importer *q, int n, const int *inputs, int output,
                 const oq_target *target);

/* ------------------------------------------------------------------ orders in memory */

/** Bring the codes into this order. */
qat_status oq_order(oq_importer *q, oq_operand *x, int n_last);
/** Where dimension i of the file lies in memory. */
int oq_place(int n_last, int rank, int i);
/** x as a picture [N, H, W, C]: another shape of the same memory. */
qat_status oq_picture(oq_importer *q, oq_operand *x, int *tensor);
/** A refusal of more dimensions than an op of the engine has. */
qat_status oq_few_dims(const oq_importer *q, int rank);
/** The engine's dimensions, of which the last one holds all that are left; or a refusal. */
qat_status oq_dims(oq_importer *q, int n_last, int rank, const int64_t *dims,
                   int32_t to[QI_MAX_RANK]);
/** Give the memory these dimensions. */
qat_status oq_reshape_to(oq_importer *q, int *tensor, const char *part, int rank,
                         const int32_t *dims);
/** The memory of a picture [N, H, W, C], as [N, a, 1, c], with n codes of 0 behind each 1. */
qat_status oq_pad_middle(oq_importer *q, int *tensor, int32_t a, int32_t c, int32_t n);
/** Codes whose dimension i is dimension perm[i] of x; x becomes them, with any order in memory. */
qat_status oq_transpose(oq_importer *q, oq_operand *x, const int *perm);
/** The same codes in another shape. Sets output 0. */
qat_status oq_reshape(oq_importer *q, oq_operand *x, int rank, const int64_t *dims);

/* ------------------------------------------------------------------ windows */

/**
 * Append the output of a window that slides over x, and, if x is a signal, the picture whose
 * memory it has.
 */
qat_status oq_window_output(oq_importer *q, const oq_operand *x, const fv_window *w,
                            int64_t channels, const oq_target *target, int *output, int *picture);
qat_status oq_picture_output(oq_importer *q, const oq_operand *x, const int64_t out[2],
                             int64_t channels, const oq_target *target, int *output, int *picture);
qat_status oq_window_done(oq_importer *q, int output, int picture);
qat_window oq_window(const fv_window *w);

/* ------------------------------------------------------------------ products */

/**
 * MatMul of two operands of codes, of which one may be constant: matrices, whose dimensions before
 * the last two broadcast; an operand of one dimension is a row on the left, a column on the right.
 */
qat_status oq_matrix_product(oq_importer *q, oq_operand *in, const oq_target *target);

/* ------------------------------------------------------------------ a scale for each channel */

/** DequantizeLinear: make the codes x the reals of c, with one scale or one for each index of the
 * dimension that attribute axis names. */
qat_status oq_dequantize_channels(oq_importer *q, const oq_constant *c, oq_operand *x);
/**
 * QuantizeLinear of reals, with a scale for each index of the dimension that attribute axis names.
 * The tensor that gets the codes has scale 1 and zero point 0. Sets output 0.
 * @param type  of the codes: QI_U8 or QI_S8
 */
qat_status oq_quantize_channels(oq_importer *q, oq_constant *c, qi_type type, oq_operand *x);
/** Can an output of the network be these reals, with the scales at its border? */
bool oq_has_real_channels(const oq_importer *q, const oq_operand *x);
/** Make them this output: 16-bit codes less their zero points. */
qat_status oq_real_channels(oq_importer *q, oq_operand *x);

/* ------------------------------------------------------------------ walking */

/** Append the op of a noted operator. */
qat_status oq_emit_noted(oq_importer *q, const oq_value *noted, const oq_target *target);
/** Make x the function f(x, a, b) of its reals. */
typedef float oq_function(float x, float a, float b);
qat_status oq_apply(oq_importer *q, oq_operand *x, oq_function *f, float a, float b);
/** The same with n values of a and b (NULL: 0): one, or one for each index of a dimension. */
qat_status oq_apply_each(oq_importer *q, oq_operand *x, oq_function *f, int n, int axis,
                         const float *a, const float *b);
/** Make x the function f(x, y, 0) of its reals and of those of y, which has the same tensor. */
qat_status oq_apply_two(oq_importer *q, oq_operand *x, const oq_operand *y, oq_function *f);
/** Room for that many functions of the 256 bytes. NULL: there is not enough. */
float *oq_new_function(oq_importer *q, int rows);
void oq_set_function(oq_operand *x, float *function, int rows, int axis);
/** How many functions, for indices of a dimension, the reals are. */
int oq_rows(const oq_value *v);
/** What byte i of row r of a value's tensor stands for. */
float oq_real_of(const oq_importer *q, const oq_value *v, int r, int i);
/** 256 codes for lo .. hi, of which one is 0. */
oq_target oq_grid_of(float lo, float hi);
/** Can the engine give 16-bit codes of this layer, which the file does not quantize? */
bool oq_can_be_wide(const qat_foreign_node *op);
/** An activation of 16-bit codes, with the shape and scale of tensor `like`; NODE/part. */
qat_status oq_append_wide(oq_importer *q, int like, const char *part, int *tensor);
/** x's codes less its zero point, as 16-bit codes. */
qat_status oq_widen(oq_importer *q, int *x);
/** What the reals of codes can be; with 0. False: not all are finite. */
bool oq_range(oq_importer *q, const oq_operand *x, float *lo, float *hi);
/** Give a value that is a noted operator's result codes: those of a QuantizeLinear behind it, or,
 * if its range follows from its operands, its own. The network's output may have 16-bit codes. */
qat_status oq_settle(oq_importer *q, int value, bool is_output, oq_operand *x);
/** Give the function of codes that x is 256 codes from its least value to its largest. */
qat_status oq_own_grid(oq_importer *q, oq_operand *x);
/** The first grid on which the value, moved or limited, is quantized behind the current node. */
bool oq_grid_behind(oq_importer *q, int value, oq_target *grid);
/** The first scale and zero point with which a node reads the codes of a value, or the same codes
 * after they were moved; without one: 1 and 0. */
oq_target oq_grid_read(oq_importer *q, int value);
/** Builds Gather. */
qat_status oq_gather(builder *b);
/** QuantizeLinear of a constant, which may be reals of codes. */
qat_status oq_quantize_constant(oq_importer *q, const oq_operand *x);
/** Values of a constant of reals, which may be quantized. NULL: it is none, or there is no room. */
const float *oq_reals_of(oq_importer *q, const oq_operand *x);
bool oq_is_constant(const oq_operand *x);

/** The rank of a layer's result, the dimension of its outputs, and how many these are. */
bool oq_is_layer(const oq_importer *q, const qat_foreign_node *op, int *rank, int *axis, int *n);
/** The noted layer y becomes g y + b, with a g and a b for each output, or one for all. */
qat_status oq_scale_layer(oq_importer *q, oq_operand *x, int n, const float *gain,
                          const float *offset);
/** The current node, if it computes reals from reals and constants. *done false: it does not. */
qat_status oq_with_constants(oq_importer *q, bool *done);

qat_status oq_import(qat_qgraph **graph, const qat_foreign_graph *from, qat_error *err);

#endif
