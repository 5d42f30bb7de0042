/**
 * Turns operators of a .tflite file into ops of an integer graph: what the op_*.c files share.
 *
 * The importer walks through the operators in order. It computes every shape itself, starting from
 * the model inputs, as the interpreter does: the shapes that the file states for later tensors may
 * be out of date. It keeps integer tensors with known values (shapes, axes, sizes) beside the
 * graph, and appends an engine op for everything else. Each handler takes one operator. Its error
 * says why; the walker adds the operator's index, name and output tensor to the message.
 */
#ifndef QAT_CONVERT_TFLITE_IMPORT_H
#define QAT_CONVERT_TFLITE_IMPORT_H

#include "convert/tflite/codes.h"
#include "convert/tflite/model.h"
#include "integer/quant_ops.h"

/** Limit for integers that are known at import: they are shapes and axes, not data. */
enum { TFL_MAX_KNOWN_INTS = 4096 };

/**
 * Rank 0 is a scalar; the engine sees it as a vector of one. Of a rank above its own it sees the
 * first axes as one, and the last QI_MAX_RANK - 1 as they are.
 */
typedef struct tfl_shape {
    int rank;
    int32_t dims[TFL_MAX_RANK];
} tfl_shape;

/** What is known about a tensor of the file while the operators are walked. */
typedef struct tfl_value {
    bool known;          /* a model input, a constant, or written by an earlier operator */
    tfl_shape shape;     /* if known */
    int tensor;          /* in the integer graph, or -1 */
    const int64_t *ints; /* its values if they are known integers; else NULL */
    int n_ints;
    int real_of;        /* the tensor of the file from which DEQUANTIZE made this float32, or -1 */
    const float *reals; /* of real_of >= 0: the function of each code; NULL: what the code means */
    struct tfl_variable *variable; /* a VAR_HANDLE's */
    bool detection;                /* an output of the detector's last operator */
} tfl_value;

enum { TFL_DETECTION_PARAMS = 15, TFL_CODES = 256 };
typedef struct tfl_variable tfl_variable; /* op_variable.c */

/** The last operator of a detector, which becomes the epilogue of the .qm. */
typedef struct tfl_detection {
    bool present;
    int boxes, scores, anchors;           /* engine tensors */
    int32_t params[TFL_DETECTION_PARAMS]; /* of the .qm's epilogue */
} tfl_detection;

typedef struct tfl_importer {
    const tfl_model *model;
    qat_qgraph *graph;
    tfl_value *values;    /* of the file's tensors */
    int *writer, *reader; /* by tensor of the file: the only operator that does (op_table.c) */
    qat_arena arena;      /* of values and known integers */
    const tfl_op *op;     /* the operator being imported */
    size_t constant_room; /* bytes of constants that may still be copied */
    int *inputs; /* engine tensors of the model's inputs; -1: a float32 that is not quantized yet */
    tfl_variable *variables;
    tfl_model once; /* the subgraph that CALL_ONCE runs */
    tfl_detection detection;
    qat_error *err;
} tfl_importer;

/**
 * The handler of one operator: which table holds its options, how many inputs it takes, how many
 * outputs it writes (0: any number but none), and the function that imports it.
 */
enum { TFL_NO_OUTPUTS = -1 };
typedef struct tfl_handler {
    int code;
    int options; /* tfl_options */
    int min_inputs, max_inputs, outputs;
    qat_status (*run)(tfl_importer *im);
} tfl_handler;

/* ------------------------------------------------------------------ inputs of an operator */

/** The file's tensor of input i; NULL if it is absent. */
const tfl_tensor *tfl_tensor_of(const tfl_importer *im, int i);
tfl_value *tfl_value_of(const tfl_importer *im, int i);
bool tfl_has_input(const tfl_importer *im, int i);
/** Can it be a scale? */
bool tfl_is_scale(float scale);

/**
 * The engine tensor of an input of codes (activation or constant). Another type is an error that
 * names it.
 */
qat_status tfl_input(tfl_importer *im, int i, int *tensor);
/** The same of any integers: codes, whatever they mean, truth values, and what has no scale. */
qat_status tfl_integers(tfl_importer *im, int i, int *tensor);
/** The same as tfl_input for the inputs 0..n-1. */
qat_status tfl_inputs(tfl_importer *im, int n, int *tensors);
/**
 * A constant of codes of 8 bits, or of 4, with one scale, or with one scale per index of
 * `channel_axis`.
 */
qat_status tfl_weights(tfl_importer *im, int i, int channel_axis, int *tensor);
/** An int32 or int64 constant of `channels` values, or -1 if the input is absent. */
qat_status tfl_bias(tfl_importer *im, int i, int channels, bool may_be_long, int *tensor);
/** The engine tensor of a constant of the file, which is copied once. */
qat_status tfl_constant(tfl_importer *im, int index, int *tensor);

/** An input that the operator keeps from run to run, as a state of the graph. */
qat_status tfl_state(tfl_importer *im, int i, int *tensor);
/** What the state of input i becomes. Operators behind this one read it as that variable. */
void tfl_next(tfl_importer *im, int i, int next);

/**
 * Memory of the graph for a copy of a constant of the file, within a limit: constants may share
 * bytes of the file, so copies could fill any memory.
 */
qat_status tfl_take_room(tfl_importer *im, int index, size_t bytes, void **memory);

/** Are the values of an integer input known: a constant of the file, or folded? */
bool tfl_is_known(tfl_importer *im, int i);
/** Get these values. If they are not known, the error calls the input `what`. */
qat_status tfl_ints(tfl_importer *im, int i, const char *what, const int64_t **values, int *count);
/** Get a single value. */
qat_status tfl_int(tfl_importer *im, int i, const char *what, int64_t *value);
/** Get a shape whose dims are the values of input i. */
qat_status tfl_read_shape(tfl_importer *im, int i, tfl_shape *shape);
/** Get the shape of input i. A rank outside lo..hi is an error. */
qat_status tfl_input_shape(tfl_importer *im, int i, int lo, int hi, tfl_shape *shape);

/* ------------------------------------------------------------------ outputs of an operator */

/**
 * Make output i: an activation with this shape and the file's type and parameters. Its type must be
 * that of the engine tensor `like` (-1: any).
 */
qat_status tfl_output(tfl_importer *im, int i, const tfl_shape *shape, int like, int *tensor);
/** The same of any integers, without a scale if the file has none. */
qat_status tfl_integer_output(tfl_importer *im, int i, const tfl_shape *shape, int like,
                              int *tensor);
/** Get input 0, and make an output with its shape and type. */
qat_status tfl_elementwise(tfl_importer *im, int *input, int *output);
/** Are they at least one known integer, and not too many? */
qat_status tfl_check_known(tfl_importer *im, const tfl_shape *shape);
/** Set output i to known integers (copied). */
qat_status tfl_fold(tfl_importer *im, int i, const tfl_shape *shape, const int64_t *values);
/** Make an activation between two engine ops of one operator, with the parameters of `like`. */
qat_status tfl_between(tfl_importer *im, const char *part, const tfl_shape *shape, int like,
                       int *tensor);
/** Describe a tensor of the file (name, type, parameters) as an engine tensor without data. */
qat_status tfl_describe(tfl_importer *im, int index, qat_qtensor *t);
/** The same; what has no scale in the file has the scale 1. */
qat_status tfl_describe_integers(tfl_importer *im, int index, qat_qtensor *t);
/** Are these integers without a scale: truth values, positions? */
bool tfl_is_plain(const tfl_tensor *t);
/** Set its shape and append it to the graph. If this fails, what t owns is freed. */
qat_status tfl_append(tfl_importer *im, qat_qtensor *t, const tfl_shape *shape, int *tensor);

/* ------------------------------------------------------------------ shapes of many axes */

/** A shape in which neighbouring axes are one, and where each axis went. */
typedef struct tfl_merged {
    tfl_shape shape;
    int place[TFL_MAX_RANK];
} tfl_merged;

/**
 * If x has more axes than the engine: neighbours of the same kind become one. The rank may still be
 * above the engine's.
 */
void tfl_merge(const tfl_shape *x, const int kinds[], tfl_merged *m);
/** The same, with the axes of the mask `cut` by themselves. A rank above the engine's is an error.
 */
qat_status tfl_merge_cut(tfl_importer *im, const tfl_shape *x, unsigned cut, tfl_merged *m);
/** The codes of *tensor in another shape, if it is another one than `from`. */
qat_status tfl_view(tfl_importer *im, const char *part, const tfl_shape *from,
                    const tfl_shape *shape, int *tensor);
/** Make output i of the codes of a tensor. */
qat_status tfl_view_output(tfl_importer *im, int i, const tfl_shape *shape, int tensor);
bool tfl_same_shape(const tfl_shape *a, const tfl_shape *b);

/* ------------------------------------------------------------------ small things */

/** An op to append: profile tflite, no activation, named after the output. */
qat_emit tfl_emit(const tfl_importer *im, int n_inputs, const int *inputs, int output);
/** Set the bounds of the activation stored in option `field`. */
qat_status tfl_activation(tfl_importer *im, int field, qat_emit *e);
/** NumPy's rule: shapes aligned at their ends, equal dimensions or a 1 on one side. */
qat_status tfl_broadcast(tfl_importer *im, const tfl_shape *a, const tfl_shape *b, tfl_shape *y);
/**
 * The shape [N, OH, OW, channels] after a window (kernel, stride, dilation) slides over x, with
 * padding TFL_SAME or TFL_VALID. Sizes that a window cannot have are an error.
 */
qat_status tfl_window_shape(tfl_importer *im, const tfl_shape *x, const qat_window *w, int padding,
                            int32_t channels, tfl_shape *y);
/** The number of values, or -1 if it is more than a .qm allows, or if a dimension is below 1. */
int64_t tfl_count(const tfl_shape *shape);
/** Make axis positive; negative axes count from the end. An axis not below `rank` is an error. */
qat_status tfl_axis(tfl_importer *im, int64_t axis, int rank, int *positive);
/** Fail with a message; the walker puts operator and tensor before it. */
qat_status tfl_refuse(tfl_importer *im, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ------------------------------------------------------------------ the operators */

/** The handlers by family; each list ends with an entry without run. */
extern const tfl_handler tfl_conv_handlers[], tfl_binary_handlers[], tfl_pool_handlers[],
    tfl_elementwise_handlers[], tfl_shape_handlers[], tfl_move_handlers[], tfl_slice_handlers[],
    tfl_border_handlers[], tfl_detection_handlers[], tfl_state_handlers[], tfl_lstm_handlers[],
    tfl_known_handlers[];

/** The handler of an operator all of whose inputs are known integers; NULL: none. */
const tfl_handler *tfl_folding(tfl_importer *im);
/** The handler of an operator that computes a float32 from one; NULL: none. */
const tfl_handler *tfl_real(const tfl_importer *im);
bool tfl_moves(int code);
/** Is an input of the operator float32 that DEQUANTIZE made? */
bool tfl_is_real(const tfl_importer *im);
/** What a float32 tensor with real_of >= 0, of 8-bit codes, is for each code. */
void tfl_reals(const tfl_importer *im, int index, float reals[TFL_CODES]);
/** Call it after the walk: states take what their variables have now. */
qat_status tfl_end_variables(tfl_importer *im);

/**
 * Is the operator one of those that together look codes up in a table? CAST to int32, ADD of the
 * first position in the table, GATHER. Of them, GATHER becomes an op.
 */
bool tfl_is_table(const tfl_importer *im);
qat_status tfl_know_readers(tfl_importer *im); /* before it */
qat_status tfl_table(tfl_importer *im);

/** The engine tensor of a float32 model output that DEQUANTIZE makes. Call it after the walk. */
qat_status tfl_real_output(tfl_importer *im, int index, int *tensor);

#endif
