/**
 * libqatinfer: runs a .qm model with integers only.
 *
 * The core (the first part of this header) is freestanding C11. Of all libraries it needs only
 * memcpy and memset. It allocates nothing, has no mutable global state, and does not use floating
 * point. The caller gives it three pieces of memory:
 *
 *   the .qm bytes     read-only, 16-byte aligned, kept as long as the model (flash, mmap, an array)
 *   the model memory  qi_model_bytes(): descriptors parsed from the file
 *   the arena         qi_arena_bytes(): every activation, at offsets planned from lifetimes
 *
 *     static _Alignas(16) uint8_t model_memory[8192], arena[20000];
 *     qi_model *model;
 *     if (qi_model_init(&model, qm, qm_bytes, NULL, model_memory, sizeof model_memory, NULL) ==
 *             QI_OK &&
 *         qi_arena_bytes(model) <= sizeof arena) {
 *         const void *in[] = {pixels};
 *         void *out[] = {scores};
 *         qi_reset(model, arena); // once, before the first run: sets states, if the model has any
 *         qi_run(model, arena, in, out);
 *     }
 *
 * Activations are NHWC, row-major, one byte per value (QI_U8, QI_S8) or two (QI_S16). The real
 * value of a code q is scale * (q - zero_point). docs/qm-format.md specifies the file,
 * docs/arithmetic.md every rounding.
 */
#ifndef QAT_INFER_H
#define QAT_INFER_H

#include "qat/rounding.h"
#include "qat/status.h"
#include "qat/version.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

enum {
    QI_MAX_RANK = 4,
    QI_MAX_PARAMS = 24, /* int32 parameters of one op */
    QI_ALIGN = 16       /* alignment of the file, of the memories, of every tensor in the arena */
};

/** What the core can say about a file and an op. On a host it becomes a qat_status and a sentence.
 */
typedef enum qi_status {
    QI_OK = 0,
    QI_ERR_MAGIC,      /* not a .qm file */
    QI_ERR_VERSION,    /* a version that this library does not read */
    QI_ERR_TRUNCATED,  /* shorter than its header says */
    QI_ERR_CRC,        /* the checksum differs: the file was changed */
    QI_ERR_FORMAT,     /* a field is outside its limits */
    QI_ERR_UNKNOWN_OP, /* neither built in nor among the custom kernels */
    QI_ERR_SHAPE,      /* the tensors do not fit the op */
    QI_ERR_PARAM,      /* a parameter of an op is outside its range */
    QI_ERR_OVERFLOW,   /* the int32 accumulator of a layer could overflow */
    QI_ERR_MEMORY,     /* the given memory is too small or misaligned */
    QI_ERR_KAT,        /* the known-answer test gave other bytes than stored */
    QI_ERR_NOMEM,      /* host only: an allocation failed */
    QI_ERR_LIMIT       /* host only: the model needs more than qi_limits allow */
} qi_status;

/** An error without printf: a static text, and the numbers that belong to it. */
typedef struct qi_error {
    qi_status status;
    const char *what; /* static text, for example "conv2d: stride_h"; for QI_ERR_UNKNOWN_OP the name
                         of the op, which lies in the bytes of the .qm */
    int32_t index;    /* index of the op or tensor in question, or -1 */
    int64_t value;    /* the wrong value */
    int64_t limit;    /* the largest allowed value, or the expected one */
} qi_error;

/** Fill err (may be NULL) and return status. */
qi_status qi_fail(qi_error *err, qi_status status, const char *what, int32_t index, int64_t value,
                  int64_t limit);

/** A short English name of a status, static, never NULL. */
const char *qi_status_name(qi_status status);

/**
 * The version of the engine that the program runs with: as static text, for example "0.1.0", and as
 * a number like QAT_VERSION_NUMBER, which is the version of the headers.
 */
const char *qi_version(void);
int qi_version_number(void);

typedef enum qi_type { QI_U8 = 0, QI_S8 = 1, QI_S32 = 2, QI_S64 = 3, QI_S16 = 4, QI_TYPES } qi_type;

/** Bytes of one value of a qi_type. */
static inline size_t qi_type_bytes(int type)
{
    return type == QI_S64 ? 8 : type == QI_S32 ? 4 : type == QI_S16 ? 2 : 1;
}

/** Do codes have this type: 8 or 16 bits, or fewer, with a scale and a zero_point? */
static inline int qi_type_has_codes(int type)
{
    return type == QI_U8 || type == QI_S8 || type == QI_S16;
}

/** Value i of an array of this type. */
static inline int64_t qi_value_at(int type, const void *values, size_t i)
{
    return type == QI_U8    ? ((const uint8_t *)values)[i]
           : type == QI_S8  ? ((const int8_t *)values)[i]
           : type == QI_S16 ? ((const int16_t *)values)[i]
           : type == QI_S32 ? ((const int32_t *)values)[i]
                            : ((const int64_t *)values)[i];
}

/** What op `compare` asks of a and b: its parameter `kind`. */
typedef enum qi_comparison {
    QI_EQUAL = 0,
    QI_NOT_EQUAL,
    QI_GREATER,
    QI_GREATER_EQUAL,
    QI_LESS,
    QI_LESS_EQUAL
} qi_comparison;

/** What op `reduce` keeps of the codes along its axes: its parameter `kind`. */
typedef enum qi_reduction { QI_LARGEST = 0, QI_SMALLEST } qi_reduction;

/**
 * How a constant holds its codes (docs/qm-format.md, "Packed codes"). 1 to 7: so many bits for
 * each.
 */
typedef enum qi_packing {
    QI_PACKING_NONE = 0,    /* each in a byte, or in two */
    QI_PACKING_TRITS = 8,   /* one of three codes each, five of them in a byte */
    QI_PACKING_NARROW = 9,  /* int32 values, each in a byte with its sign */
    QI_PACKING_DERIVED = 10 /* scales of channels that follow from multipliers; no bytes */
} qi_packing;

typedef enum qi_tensor_kind {
    QI_ACTIVATION = 0, /* in the arena */
    QI_CONSTANT = 1,   /* in the file */
    QI_STATE = 2       /* in the arena, and kept between runs */
} qi_tensor_kind;

/** What a program exchanges with the model at an input or output. */
typedef enum qi_border {
    QI_BORDER_NONE = 0, /* the tensor's own codes */
    QI_BORDER_FLOAT32 =
        1, /* real numbers; the program converts them to and from codes, outside the engine */
    QI_BORDER_TRUNCATED = 2, /* the same, but into codes they are rounded toward zero */
    QI_BORDER_EVEN = 3       /* the same, but halves are rounded to even */
} qi_border;

/**
 * A tensor of the model, as the file describes it. Activations have an offset in the arena,
 * constants have data.
 */
typedef struct qi_tensor {
    const char *name;  /* UTF-8, in the file */
    uint8_t type;      /* qi_type */
    uint8_t kind;      /* qi_tensor_kind */
    uint8_t rank;      /* 1..QI_MAX_RANK */
    uint8_t bits;      /* of codes: 1..8, 2..8 or 9..16; 32; 64 */
    uint8_t border;    /* qi_border: information for the caller; the engine only sees codes */
    uint8_t packing;   /* of constants: qi_packing, as the file holds them */
    uint8_t listed;    /* packed codes: how many codes the list before them names; 0: no list */
    uint8_t is_packed; /* data is packed, too; 0 on a host, which unpacks constants (qi_unpack) */
    int32_t dims[QI_MAX_RANK];
    int32_t zero_point; /* a code; 0 for weights with channel scales */
    uint32_t
        scale_bits; /* float32 scale as its IEEE 754 bits; the engine does not compute with it */
    int32_t channel_scales; /* index of a constant QI_S32 tensor with the bits of one scale per
                               channel, or -1 */
    int32_t
        source_index; /* number of the tensor in the file from which the model was made, or -1 */
    uint32_t range_bits[2]; /* float32 bits of the range (min, max) from which scale and zero_point
                               were made */
    size_t bytes;     /* at data or in the arena; of packed codes fewer than there are values */
    const void *data; /* constants: points into the file, or to what a host unpacked; activations,
                         and scales of QI_PACKING_DERIVED that no host has made: NULL */
    size_t offset;    /* activations and states: in the arena */
    int32_t next;     /* states: the activation whose values it takes after each run; others: -1 */
} qi_tensor;

/**
 * A model in memory. It is constant after qi_model_init: any number of threads may read it, and may
 * run it at the same time with one arena each.
 */
typedef struct qi_model qi_model;
struct qi_kernel;

/** One op of the model: indices of its tensors and its int32 parameters (docs/qm-format.md). */
typedef struct qi_node {
    const struct qi_kernel *kernel;
    const char *name;      /* the layer's name */
    const int32_t *inputs; /* tensor indices */
    const int32_t *outputs;
    const int32_t *params;
    int32_t n_inputs, n_outputs, n_params;
    int32_t rounding;        /* qi_rounding */
    int32_t fraction;        /* fractional bits of the accumulator, 0..QI_MAX_FRACTION */
    int64_t max_accumulator; /* the largest |accumulator| that this layer can reach; 0: it has no
                                accumulator */
    int32_t in_place;        /* as kernel->in_place; 0 if the driver of a host may not do so */
    size_t scratch_bytes;    /* from kernel->scratch */
    size_t scratch_offset;   /* in the arena */
} qi_node;

/** What a kernel gets when it runs, with all indices resolved to pointers. */
typedef struct qi_call {
    const qi_model *model;
    const qi_node *node;
    const void *const *in; /* one pointer per input, constants and activations */
    void *const *out;
    void *scratch;
} qi_call;

/**
 * How an op multiplies its input 0, x, by weights, its input 1. Of the last the values add up, but
 * there are no weights.
 */
typedef enum qi_products {
    QI_PRODUCTS_NONE = 0,   /* it reads and writes values */
    QI_PRODUCTS_ROWS = 1,   /* weights [O, ..]: each output value sums the products of one o */
    QI_PRODUCTS_LAST = 2,   /* weights [.., C]: each output value sums the products of one c */
    QI_PRODUCTS_SPREAD = 3, /* weights [O, .., C]: each value of x is in the products of one c */
    QI_PRODUCTS_POOL = 4, /* each output value sums a window, as average_pool2d's parameters say */
    QI_PRODUCTS_MATRIX =
        5, /* each output value sums a row of x, as batch_matmul's parameters say */
    QI_PRODUCTS_RECURRENT = 6 /* each row of x needs every weight once, for itself or for a state:
                                 the constants that are not int32 */
} qi_products;

/** Of qi_kernel.in_place. */
enum {
    QI_OVER_FIRST = 1,     /* output 0 may lie over input 0 */
    QI_SAME_BYTES = 2,     /* the output is input 0, byte by byte: reshape */
    QI_OVER_EITHER = 3,    /* output 0 may lie over input 0 or over input 1 */
    QI_PART_OF_INPUT = 4,  /* built-in ops alone: strided_slice */
    QI_PARTS_OF_OUTPUT = 5 /* built-in ops alone: concat */
};
enum { QI_MAX_FRACTION = 15 };

/**
 * An integer op: one table entry, for built-in and custom ops. check runs once, when the model is
 * read. It must refuse everything that run could not handle; after that the node is trusted. run
 * must write every byte of every output. run cannot fail.
 */
typedef struct qi_kernel {
    const char *name;
    qi_status (*check)(const qi_model *model, const qi_node *node, int32_t index, qi_error *err);
    size_t (*scratch)(const qi_model *model, const qi_node *node); /* NULL: none */
    void (*run)(const qi_call *call);
    /**
     * QI_OVER_FIRST: run also works with out[0] == in[0], if both have the same number of bytes. It
     * must then read no value of input 0 after it wrote that place. The planner uses this to save
     * memory. QI_OVER_EITHER: it works with out[0] == in[1], too, under the same conditions.
     * QI_SAME_BYTES: the output is input 0, byte by byte, so both may lie there even while others
     * read input 0. 0: none of these.
     */
    int in_place;
    qi_products products; /* what qi_model_macs counts; check has seen the weights */
    int32_t max_fraction; /* the largest qi_node.fraction, at most QI_MAX_FRACTION */
    int32_t reads_packed; /* QI_READS_CODES, QI_READS_NARROW, both or 0. A file in which this
                             kernel has any other packed input is refused */
} qi_kernel;

/** Which packed inputs check and run of a kernel take. On a host, which unpacks them, they see
 * none. */
enum {
    QI_READS_CODES = 1, /* input 1: packed codes */
    QI_READS_NARROW = 2 /* input 4, the shifts of a layer: QI_PACKING_NARROW */
};

/**
 * Custom kernels, looked up by name after the built-in ones. They must live as long as the model.
 */
typedef struct qi_kernel_list {
    const qi_kernel *const *kernels;
    size_t count;
} qi_kernel_list;

/** The bytes of memory that qi_model_init needs for this file. Also checks header and CRC. */
qi_status qi_model_bytes(const void *qm, size_t qm_bytes, size_t *need, qi_error *err);

/**
 * Parse and validate a .qm, and plan the arena. Every count, offset, shape, parameter and index is
 * checked here, so that running cannot fail. Returns QI_OK, or a status with the details in err
 * (may be NULL).
 *
 * @param model   the model, which lives in memory; there is nothing to free
 * @param qm      the bytes of the file, 16-byte aligned, borrowed as long as the model lives
 * @param custom  kernels besides the built-in ones, or NULL
 * @param memory  QI_ALIGN-aligned, at least qi_model_bytes() bytes
 */
qi_status qi_model_init(qi_model **model, const void *qm, size_t qm_bytes,
                        const qi_kernel_list *custom, void *memory, size_t memory_bytes,
                        qi_error *err);

/* clang-format off */
/** The built-in kernels: X(name) for qi_kernel_<name>, which computes the op of this name. */
#define QI_KERNELS(X)                                                                              \
    X(conv2d) X(depthwise_conv2d) X(fully_connected) X(add) X(sub) X(mul) X(concat)                \
    X(average_pool2d) X(max_pool2d) X(mean) X(softmax) X(logistic) X(tanh) X(requantize)           \
    X(softmax16) X(batch_matmul) X(table) X(reshape) X(transpose_conv2d) X(maximum) X(minimum)     \
    X(prelu) X(l2_normalization) X(pad) X(resize_bilinear) X(resize_nearest) X(arg_max)            \
    X(strided_slice) X(transpose) X(gather) X(svdf) X(lstm) X(compare) X(select)                   \
    X(cast) X(squared_difference) X(reduce) X(sum) X(log_softmax) X(top_k) X(div) X(pack) X(unpack)
/* clang-format on */
#define QI_DECLARE_KERNEL_(name) extern const qi_kernel qi_kernel_##name;
QI_KERNELS(QI_DECLARE_KERNEL_)

/**
 * Like qi_model_init, but with only these kernels. A program that is linked with the static library
 * then contains only the kernels that it names:
 *
 *     static const qi_kernel *const kernels[] = {&qi_kernel_table, &qi_kernel_conv2d,
 *                                                &qi_kernel_average_pool2d,
 *                                                &qi_kernel_fully_connected};
 *     static const qi_kernel_list list = {kernels, 4};
 *     qi_model_init_with(&model, qm, qm_bytes, &list, memory, sizeof memory, &err);
 *
 * `qat-inspect model.qm` lists the ops of a model. If the model has an op whose kernel is not in
 * the list, the result is QI_ERR_UNKNOWN_OP and err.what is the op's name. Custom kernels may be in
 * the list, too.
 */
qi_status qi_model_init_with(qi_model **model, const void *qm, size_t qm_bytes,
                             const qi_kernel_list *kernels, void *memory, size_t memory_bytes,
                             qi_error *err);

/** The size in bytes of the QI_ALIGN-aligned arena that qi_run needs. */
size_t qi_arena_bytes(const qi_model *model);

/**
 * The RAM of a model: inputs, outputs, states, activations and scratch, which share memory where
 * they are not needed at the same time. It is the arena without the pointers of a call at its
 * start, and what a C file has (qat_c_write). The stack is not part of it, nor are buffers of the
 * program.
 */
size_t qi_model_ram(const qi_model *model);

/**
 * The multiply-adds that one run with the core's kernels takes, including taps in the padding, a
 * pool's sums, and products with the zeros that transpose_conv2d puts between the values of x. An
 * op without products counts one for each value that it reads or writes. At most INT64_MAX. A
 * program that takes models from elsewhere compares this with what it can afford:
 *
 *     if (qi_model_macs(model) > 1000000000)
 *         return "too slow for this device";
 */
int64_t qi_model_macs(const qi_model *model);
/**
 * The multiply-adds of weights and values in one run of an op, as networks are compared by them:
 * without those zeros; 0 for an op without weights, and for QI_PRODUCTS_RECURRENT, whose weights
 * are several constants.
 * @param x, weights, y  dims of inputs 0 and 1 and of the output; weights are read only if there
 *                       are products with them
 */
int64_t qi_multiply_adds(qi_products products, const int32_t x[QI_MAX_RANK],
                         const int32_t weights[QI_MAX_RANK], const int32_t y[QI_MAX_RANK]);
/** The same of a node of a model, of any kind of products. */
int64_t qi_node_multiply_adds(const qi_model *model, const qi_node *node);

/**
 * Run the model once.
 *
 * The model does not change: two threads may run one model with two arenas. The content of the
 * arena before the call does not matter, but for the states of a model that has some: qi_reset sets
 * them before the first run, and each run carries on where the one before ended.
 *
 * @param inputs   one pointer per model input, tensor->bytes bytes each, in the graph's order. If
 *                 an input has fewer bits than its type, its values are limited to its codes
 * @param outputs  one pointer per model output, in the same way; NULL pointers are skipped
 */
void qi_run(const qi_model *model, void *arena, const void *const *inputs, void *const *outputs);

/**
 * Set the states of a model to their zero_point, which is real zero: the next run is the first of a
 * sequence. Without states it does nothing.
 */
void qi_reset(const qi_model *model, void *arena);
/** The number of states. */
int32_t qi_state_count(const qi_model *model);

/** Called after each op, for each of its outputs, with the tensor's index and its bytes. */
typedef void qi_visit(void *context, const qi_model *model, int32_t tensor, const void *data);

/**
 * Like qi_run; also calls visit for every input and for every op's outputs, in the order of
 * execution.
 */
void qi_run_visit(const qi_model *model, void *arena, const void *const *inputs,
                  void *const *outputs, qi_visit *visit, void *context);

/**
 * Run the model on its known-answer inputs. States are reset before and afterwards. Returns QI_OK
 * or QI_ERR_KAT. In err, value and limit are the first differing byte as computed and as stored.
 * QI_ERR_KAT also means that the file has no known-answer test.
 */
qi_status qi_self_test(const qi_model *model, void *arena, qi_error *err);

/**
 * The tensors and nodes of the model by index, and the tensor indices of its inputs and outputs.
 */
int32_t qi_tensor_count(const qi_model *model);
const qi_tensor *qi_tensor_at(const qi_model *model, int32_t index);
int32_t qi_node_count(const qi_model *model);
const qi_node *qi_node_at(const qi_model *model, int32_t index);
int32_t qi_input_count(const qi_model *model);
int32_t qi_input_at(const qi_model *model, int32_t i); /* tensor index */
int32_t qi_output_count(const qi_model *model);
int32_t qi_output_at(const qi_model *model, int32_t i); /* tensor index */

/** The bytes that a tensor's values take unpacked; those that a constant takes in the file. */
size_t qi_unpacked_bytes(const qi_tensor *tensor);
size_t qi_bytes_in_file(const qi_tensor *tensor);
/** The bytes of the records of all tensors and of all nodes in the file, one for each. */
void qi_record_bytes(const qi_model *model, uint32_t *tensors, uint32_t *nodes);
/**
 * Write the codes of a constant of bytes, packed or not, a byte each; or int32 values that are
 * packed. Derived scales, which only a host has, become zeros.
 * @param codes  qi_unpacked_bytes() of them
 */
void qi_unpack(const qi_tensor *tensor, uint8_t *codes);

/**
 * How a picture, a sound or real numbers become the bytes of input 0. See docs/qm-format.md,
 * section "Preprocessing".
 */
typedef struct qi_preprocessing {
    int32_t kind; /* 0: none, the input is codes; 1: image pixels, one byte a channel; 2: reals;
                     3: a sound's log-mel spectrogram (qat/sound.h): height frames of width bands */
    int32_t height, width, channels;
    int32_t resize_short;  /* resize the short side to this before the crop; 0: no crop, resize to
                              height x width */
    int32_t channel_order; /* 0: grey, 1: RGB, 2: BGR */
    uint32_t mean_bits[4]; /* float32 bits: (pixel - mean) / std, (value - mean) / std */
    uint32_t std_bits[4];
    int32_t central_crop; /* > 0: crop the centre of the picture, to this share in millionths, and
                             resize it (docs/preprocessing.md); resize_short is then 0 */
} qi_preprocessing;

/** Metadata. The pointers point into the file. Running does not need any of it. */
const qi_preprocessing *qi_model_preprocessing(const qi_model *model);
int32_t qi_label_count(const qi_model *model);
const char *qi_label_at(const qi_model *model, int32_t i);
const uint8_t *qi_model_digest(const qi_model *model); /* SHA-256 of the checkpoint, 32 bytes */
const char *qi_model_description(const qi_model *model);
/**
 * What is computed from the model's outputs outside the engine, by name (docs/qm-format.md, section
 * "Epilogue"). The engine only checks that the inputs are tensors.
 */
typedef struct qi_epilogue {
    const char *name;      /* NULL: none */
    const int32_t *inputs; /* tensor indices: model outputs and constants */
    const int32_t *params;
    int32_t n_inputs, n_params;
} qi_epilogue;
const qi_epilogue *qi_model_epilogue(const qi_model *model); /* never NULL */
/**
 * The known-answer test: how many runs it has, 0 if the file has no test; the bytes of input i or
 * output i in all of them, run after run, or NULL. Only a model with states has more than one run.
 */
int32_t qi_kat_steps(const qi_model *model);
const void *qi_kat_input(const qi_model *model, int32_t i);
const void *qi_kat_output(const qi_model *model, int32_t i);

/* ------------------------------------------------------------------ host: lib/infer/host */

/** The limits that count where qi_limits has 0: 4 GiB, and 2^40 multiply-adds. */
#define QI_DEFAULT_MEMORY (UINT64_C(1) << 32)
#define QI_DEFAULT_MACS   (UINT64_C(1) << 40)

/**
 * What a model may take. A small file can describe a model that needs far more memory and time than
 * its size suggests. Opening such a file is QAT_ERR_LIMIT, with a message that has the figure and
 * the limit, before the memory is allocated and before anything runs.
 */
typedef struct qi_limits {
    uint64_t memory; /* bytes for descriptors, unpacked codes, packed weights and arena; not the
                        file itself. 0: QI_DEFAULT_MEMORY */
    uint64_t macs;   /* qi_model_macs of one run; 0: QI_DEFAULT_MACS */
} qi_limits;

/** For models that the program made itself. */
#define QI_NO_LIMITS ((qi_limits){UINT64_MAX, UINT64_MAX})

/**
 * How to run a model on a host. Zeros, or a NULL pointer instead of the struct, are the defaults.
 */
typedef struct qi_host_options {
    size_t struct_size;           /* sizeof this struct, or 0: as in version 0.1 (qat.h) */
    const qi_kernel_list *custom; /* kernels besides the built-in ones, or NULL; borrowed */
    const char *isa; /* instruction set, one of qi_isa_name; NULL: the best of this processor */
    int threads;     /* threads of one run, 1..QI_HOST_MAX_THREADS; 0 means 1 */
    qi_limits limits;
    int keep_packed; /* with isa "scalar": leave packed codes packed, as a device does. For tests */
} qi_host_options;

enum { QI_HOST_MAX_THREADS = 256 };

/**
 * The instruction sets for which this build has inner loops, the best first, "scalar" last; NULL
 * after the last. All give the same bytes.
 */
const char *qi_isa_name(int i);
/** 1 if this processor and its operating system run the named instruction set. */
int qi_isa_runs_here(const char *name);

/** A parameter: its name, and its values in a file. The tensors of a node may narrow these. */
typedef struct qi_param {
    const char *name; /* NULL: there are no more */
    int32_t lo, hi;
} qi_param;

enum { QI_OP_INPUTS = 7, QI_OP_PARAMS = 21 };

/** What is known of a built-in op besides how it runs: its row of the table in docs/qm-format.md.
 */
typedef struct qi_op {
    const qi_kernel *kernel;
    const char *inputs[QI_OP_INPUTS]; /* their roles; NULL after the last. concat: "x", repeated */
    qi_param params[QI_OP_PARAMS];    /* in order */
} qi_op;

/** The row of the built-in op with this name; NULL: there is none. */
const qi_op *qi_op_named(const char *name);

/**
 * A model that is open on a machine with an operating system. The file is mapped, its packed codes
 * are unpacked, weights are packed for the instruction set, memory and arena are allocated. Equal
 * layers, which have the same constants and parameters, share their packed weights. This is not
 * part of the freestanding core. One thread at a time may call qi_host_run and qi_host_self_test,
 * which use the host's own arena. Any number of threads may call qi_host_run_visit with an arena
 * each, and read the host.
 */
typedef struct qi_host qi_host;

/**
 * Map the file at path, validate it, choose and pack for the instruction set, and allocate what a
 * run needs. Errors are sentences that name the file (status.h): QAT_ERR_IO; QAT_ERR_FORMAT;
 * QAT_ERR_UNSUPPORTED for an op or an instruction set that is unknown or does not run here;
 * QAT_ERR_ARGUMENT for a number of threads; QAT_ERR_LIMIT for a model beyond options->limits;
 * QAT_ERR_NOMEM.
 * @param host     close it with qi_host_close; NULL after an error
 * @param options  NULL: the defaults
 * @param err      may be NULL
 */
qat_status qi_host_open(qi_host **host, const char *path, const qi_host_options *options,
                        qat_error *err);
/**
 * The same for bytes in memory, which are copied (NULL with 0 bytes is no file). Messages use name
 * instead of a path.
 */
qat_status qi_host_open_bytes(qi_host **host, const void *qm, size_t qm_bytes, const char *name,
                              const qi_host_options *options, qat_error *err);
void qi_host_close(qi_host *host); /* NULL is fine */

/** The model, which lives as long as the host. */
const qi_model *qi_host_model(const qi_host *host);
/** The instruction set in use, static text, and the threads of a run. */
const char *qi_host_isa(const qi_host *host);
int qi_host_threads(const qi_host *host);

/** Sizes in bytes. */
typedef struct qi_sizes {
    size_t file;
    size_t model;      /* qi_model_bytes */
    size_t arena;      /* qi_arena_bytes with the core's kernels, which a device needs */
    size_t host_arena; /* of qi_host_run_visit; the host's own kernels need more */
} qi_sizes;
qi_sizes qi_host_sizes(const qi_host *host);
/**
 * The bytes of the codes that the file holds packed and the host unpacked when it was opened: one
 * for each such weight. 0: there are none.
 */
size_t qi_host_unpacked_bytes(const qi_host *host);

/**
 * Run the model once with the host's instruction set and threads. The outputs are those of qi_run.
 * States were reset when the host was opened.
 * @param inputs, outputs  as in qi_run
 */
void qi_host_run(const qi_host *host, const void *const *inputs, void *const *outputs);
/**
 * Like qi_host_run, in the caller's arena (64-byte aligned, qi_host_sizes().host_arena; NULL: the
 * host's arena). Calls visit (may be NULL) after each op. The host does not change: two threads may
 * run with two arenas.
 */
void qi_host_run_visit(const qi_host *host, void *arena, const void *const *inputs,
                       void *const *outputs, qi_visit *visit, void *context);
/** qi_reset in the caller's arena, or in the host's if it is NULL. */
void qi_host_reset(const qi_host *host, void *arena);
/** qi_self_test in the host's arena, with the core's kernels: QAT_ERR_MISMATCH if it fails. */
qat_status qi_host_self_test(const qi_host *host, const char *name, qat_error *err);

/** 1 if the inner loops of qi_host_isa run this node; 0 if the scalar kernel of the core does. */
int qi_host_node_is_fast(const qi_host *host, int32_t node);
/**
 * The instructions of a node's matrix product, if the instruction set has several ways and the
 * weights decided between them; of several products, those of the first. NULL: there is only one
 * way, or no product. Static text.
 */
const char *qi_host_node_sequence(const qi_host *host, int32_t node);

struct qi_parts;
/**
 * For libqat of the same version only: the inner loops of the engine, which training with integers
 * uses. Opaque: it may change with every version.
 */
const struct qi_parts *qi_host_parts(void);

/**
 * Write an error of the core as one sentence with its numbers to err (may be NULL). name stands for
 * the file. Returns the kind of error, never QAT_OK.
 */
qat_status qi_error_tell(const qi_error *of, const char *name, qat_error *err);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
