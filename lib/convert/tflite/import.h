/**
 * From operators of a .tflite file to ops of an integer graph: what the op_*.c files share.
 *
 * The importer walks the operators in order. It computes every shape itself, from the model inputs
 * on, as the interpreter does (what the file states for later tensors may be out of date), keeps
 * integer tensors whose values are known (shapes, axes, sizes) beside the graph, and appends an
 * engine op for everything else. Each handler takes one operator; it says why it refuses one, and
 * the walker adds the operator's index, name and output tensor to the message.
 */
#ifndef QAT_CONVERT_TFLITE_IMPORT_H
#define QAT_CONVERT_TFLITE_IMPORT_H

#include "convert/tflite/codes.h"
#include "convert/tflite/model.h"
#include "fakequant/quant_ops.h"

/** Integers that are known at import are shapes and axes, not data: few. */
enum { TFL_MAX_KNOWN_INTS = 4096 };

/** Rank 0 is a scalar; the engine sees it as a vector of one. */
typedef struct tfl_shape {
    int rank;
    int32_t dims[QI_MAX_RANK];
} tfl_shape;

/** What is known of a tensor of the file while its operators are walked. */
typedef struct tfl_value {
    bool known;          /* a model input, a constant, or written by an operator already passed */
    tfl_shape shape;     /* where known */
    int tensor;          /* in the integer graph, or -1 */
    const int64_t *ints; /* its values, where they are integers known now; else NULL */
    int n_ints;
    int real_of;    /* a float32 that DEQUANTIZE made of this tensor of the file, or -1 */
    bool detection; /* an output of the detector's last operator */
} tfl_value;

enum { TFL_DETECTION_PARAMS = 15 };

/** The detector's last operator, which becomes the .qm's epilogue. */
typedef struct tfl_detection {
    bool present;
    int boxes, scores, anchors;           /* engine tensors */
    int32_t params[TFL_DETECTION_PARAMS]; /* of the .qm's epilogue */
} tfl_detection;

typedef struct tfl_importer {
    const tfl_model *model;
    qat_qgraph *graph;
    tfl_value *values;    /* of the file's tensors */
    qat_arena arena;      /* of values and known integers */
    const tfl_op *op;     /* being imported */
    size_t constant_room; /* bytes of constants that may still be copied */
    int *inputs; /* engine tensors of the model's inputs; -1: a float32 not quantized yet */
    tfl_detection detection;
    qat_error *err;
} tfl_importer;

/** One operator: which table its options are, how many inputs it takes, how many outputs it writes
 *  (0: any), what it becomes. */
typedef struct tfl_handler {
    int code;
    int options; /* tfl_options */
    int min_inputs, max_inputs, outputs;
    qat_status (*run)(tfl_importer *im);
} tfl_handler;

/* ------------------------------------------------------------------ inputs of an operator */

/** The file's tensor of input i; NULL where it is absent. */
const tfl_tensor *tfl_tensor_of(const tfl_importer *im, int i);
tfl_value *tfl_value_of(const tfl_importer *im, int i);
bool tfl_has_input(const tfl_importer *im, int i);

/** Engine tensor of an 8-bit input (activation or constant); refuses others, saying what it is. */
qat_status tfl_input(tfl_importer *im, int i, int *tensor);
/** The same of several: inputs 0..n-1. */
qat_status tfl_inputs(tfl_importer *im, int n, int *tensors);
/** A constant of 8-bit codes with one scale, or one for each index of `channel_axis`. */
qat_status tfl_weights(tfl_importer *im, int i, int channel_axis, int *tensor);
/** An int32 constant of `channels` values, or -1 where the input is absent. */
qat_status tfl_bias(tfl_importer *im, int i, int channels, int *tensor);
/** The same engine tensor for a tensor of the file that is a constant, copied once. */
qat_status tfl_constant(tfl_importer *im, int index, int *tensor);

/** Values of an integer input that are known now: a constant of the file, or folded. */
bool tfl_is_known(tfl_importer *im, int i);
/** The same; refuses, calling it `what`, where they are not known. */
qat_status tfl_ints(tfl_importer *im, int i, const char *what, const int64_t **values, int *count);
/** A single one. */
qat_status tfl_int(tfl_importer *im, int i, const char *what, int64_t *value);
/** The shape of input i; refuses ranks outside lo..hi. */
qat_status tfl_input_shape(tfl_importer *im, int i, int lo, int hi, tfl_shape *shape);

/* ------------------------------------------------------------------ outputs of an operator */

/** Make output i: an activation of this shape with the file's type and parameters. Its type must be
 *  that of engine tensor `like` (-1: any 8-bit type). */
qat_status tfl_output(tfl_importer *im, int i, const tfl_shape *shape, int like, int *tensor);
/** Input 0 and an output of its shape and type. */
qat_status tfl_elementwise(tfl_importer *im, int *input, int *output);
/** Output i holds integers that are known now (copied). */
qat_status tfl_fold(tfl_importer *im, int i, const tfl_shape *shape, const int64_t *values);
/** An activation between two engine ops of one operator, on the parameters of `like`. */
qat_status tfl_between(tfl_importer *im, const char *part, const tfl_shape *shape, int like,
                       int *tensor);
/** Name, type and parameters of a tensor of the file as an engine tensor without data. */
qat_status tfl_describe(tfl_importer *im, int index, qat_qtensor *t);
/** Give it a shape and append it to the graph; what t owns is freed where that fails. */
qat_status tfl_append(tfl_importer *im, qat_qtensor *t, const tfl_shape *shape, int *tensor);

/* ------------------------------------------------------------------ small things */

/** An op about to be appended: profile tflite, no activation, named after the output. */
qat_emit tfl_emit(const tfl_importer *im, int n_inputs, const int *inputs, int output);
/** Set the bounds of the activation stored in option `field`. */
qat_status tfl_activation(tfl_importer *im, int field, qat_emit *e);
/** Shape [N, OH, OW, channels] of a window (kernel, stride, dilation) slid over x, padding TFL_SAME
 *  or TFL_VALID; refuses sizes that no window has. */
qat_status tfl_window_shape(tfl_importer *im, const tfl_shape *x, const qat_window *w, int padding,
                            int32_t channels, tfl_shape *y);
/** Number of values, or -1 where that is more than a .qm allows or a dimension is below 1. */
int64_t tfl_count(const tfl_shape *shape);
/** axis, counted from the end where negative; refuses what is not below `rank`. */
qat_status tfl_axis(tfl_importer *im, int64_t axis, int rank, int *positive);
/** A failure; the walker puts operator and tensor before it. */
qat_status tfl_refuse(tfl_importer *im, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ------------------------------------------------------------------ the operators */

/** By family, each ended by an entry without run. */
extern const tfl_handler tfl_conv_handlers[], tfl_binary_handlers[], tfl_pool_handlers[],
    tfl_elementwise_handlers[], tfl_shape_handlers[], tfl_move_handlers[], tfl_slice_handlers[],
    tfl_border_handlers[], tfl_detection_handlers[];

/** The engine tensor behind a float32 model output that DEQUANTIZE makes: after the walk. */
qat_status tfl_real_output(tfl_importer *im, int index, int *tensor);

#endif
