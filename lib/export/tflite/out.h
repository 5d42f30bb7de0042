/**
 * From an integer graph to the operators of a .tflite file: what the files of this folder share.
 *
 * Each op of the graph becomes one operator, or a few: a PAD before windows that TensorFlow Lite
 * pads otherwise, MAXIMUM and MINIMUM after a clamp that it has no activation for, a RESHAPE. An
 * error says why an op cannot be written; the walker adds the layer's name.
 */
#ifndef QAT_EXPORT_TFLITE_OUT_H
#define QAT_EXPORT_TFLITE_OUT_H

#include "export/tflite/file.h"
#include "integer/quant_ops.h"
#include "qat/export.h"

typedef struct tfo {
    const qi_model *model;
    qat_qgraph *graph; /* of the model */
    tfo_file file;
    int *index;       /* by tensor of the graph: its number in the file, -1: not there yet */
    int *written;     /* by op of the graph: the tensor that its own operator writes, or -1 */
    bool float_io;    /* real numbers in and out */
    int pixels_table; /* the op that turns pixels into codes and needs no operator, because it gives
                         them other names only or real numbers enter instead; or -1 */
    const qat_qop *op; /* the op that is written */
    qat_error *err;
} tfo;

/* ------------------------------------------------------------------ tensors (tensors.c) */

/** The graph's tensor of input i or of the output of the op. */
const qat_qtensor *tfo_input(const tfo *o, int i);
const qat_qtensor *tfo_output(const tfo *o);
/** The same tensor in the file: an activation, or a constant with one scale. */
int tfo_input_index(tfo *o, int i);
int tfo_output_index(tfo *o);
/** A truth value: it has no scale. */
bool tfo_is_truth(const qat_qtensor *t);
/** Its description: type, shape, parameters, a name. */
tfo_tensor tfo_describe(const qat_qtensor *t);
int tfo_tensor_index(tfo *o, int tensor);
/** A tensor like this one, between the operators of one op. */
int tfo_between(tfo *o, const qat_qtensor *like, const char *part);
/** Constants of the op: weights, with their scales along an axis; a bias; integers; one code. */
int tfo_weights(tfo *o, int channel_axis);
int tfo_bias(tfo *o);
int tfo_ints(tfo *o, const char *part, int n, const int32_t *values);
/** int32 values of the graph that are sums of products with this scale. */
int tfo_sums(tfo *o, const char *name, int n, const int32_t *values, float scale);
int tfo_code(tfo *o, const qat_qtensor *like, const char *part, int32_t code);

/* ------------------------------------------------------------------ operators (operators.c) */

/** Append an operator of one output, in the version that its types need. NULL: no memory. */
tfo_operator *tfo_append(tfo *o, int code, int n_inputs, const int *inputs, int output);
/** One with all inputs of the op. */
tfo_operator *tfo_append_all(tfo *o, int code, int output);
void tfo_option_int(tfo_operator *op, int field, int value);
void tfo_option_float(tfo_operator *op, int field, float value);

/** A clamp of the op's output. */
typedef struct tfo_clamp {
    int32_t lo, hi;
    int activation; /* ActivationFunctionType */
    int direct;     /* the tensor that the operator writes: the output, or one before it */
} tfo_clamp;

/**
 * Find the activation that is this clamp, if the operator has activations. Without one, the
 * operator writes another tensor, and tfo_end_clamp makes the output of it.
 */
tfo_clamp tfo_begin_clamp(tfo *o, bool has_activation, int32_t lo, int32_t hi);
void tfo_end_clamp(tfo *o, const tfo_clamp *clamp);
/** The clamp is the op's last two params. */
tfo_clamp tfo_begin_own_clamp(tfo *o, bool has_activation);
/** The same tensor with all codes of its type: a tensor of the file has them. */
qat_qtensor tfo_with_all_bits(const qat_qtensor *t);
/** tfo_end_clamp from one tensor of the file to another, both with the parameters of y. */
void tfo_limit(tfo *o, const qat_qtensor *y, int from, int to, int32_t lo, int32_t hi);
/** A RESHAPE from a tensor of the file to the op's output. */
void tfo_reshape(tfo *o, int from);

/** One direction of a window over x, as the ops have it. */
typedef struct tfo_direction {
    int32_t in, out, kernel, stride, dilation, pad;
} tfo_direction;

/** TFL_SAME or TFL_VALID, whichever gives both directions' padding; -1: neither. */
int tfo_padding(const tfo_direction d[2]);
/** Padding behind the last position, so that the windows fit. */
int32_t tfo_pad_behind(const tfo_direction *d);

/** How ops are written. code: of the operator */
typedef qat_status tfo_write_fn(tfo *o, int code);
tfo_write_fn tfo_plain, tfo_conv2d, tfo_depthwise_conv2d, tfo_transpose_conv2d, tfo_fully_connected,
    tfo_average_pool2d, tfo_max_pool2d, tfo_table, tfo_softmax, tfo_prelu, tfo_mean, tfo_reduce,
    tfo_extreme, tfo_compare, tfo_cast, tfo_svdf, tfo_lstm;
/** The operator's main output, for the comparison, if it is not the op's. */
void tfo_writes(tfo *o, int tensor);
/** Is the table of the model's pixels one that only gives them other names? Sets pixels_table. */
void tfo_find_pixels_table(tfo *o);
/** Write the op; which op: by name. */
qat_status tfo_write_op(tfo *o);
qat_status tfo_refuse(const tfo *o, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ------------------------------------------------------------------ states (states.c) */

/** How many states become inputs and outputs; which tensors these are, if not NULL. */
int tfo_fed_states(const qat_qgraph *g, int *states);

/* ------------------------------------------------------------------ the rest */

/** Metadata for people and for programs (metadata.c); labels are appended to the file's bytes. */
qat_status tfo_add_metadata(tfo *o, qat_error *err);
void tfo_append_labels(const tfo *o, qat_writer *w);

/**
 * Read the file back, as TensorFlow Lite's reference kernels compute it, and compare (check.c).
 * Where only roundings differ, the log says what that changes.
 */
qat_status tfo_check(const tfo *o, const qi_host *host, const qat_writer *w, const qat_log *log,
                     qat_error *err);

#endif
