/**
 * libqatinfer: runs a .qm model with integers only.
 *
 * The core (this header's first part) is freestanding C11: it needs memcpy and memset, and no other
 * function of any library; it allocates nothing, keeps no mutable global state, and computes with
 * no floating-point number. The caller gives it three pieces of memory:
 *
 *   the .qm bytes     read-only, 16-byte aligned, kept as long as the model (flash, mmap, an array)
 *   the model memory  qi_model_bytes(): descriptors parsed from the file
 *   the arena         qi_arena_bytes(): every activation, at offsets planned from lifetimes
 *
 *     static _Alignas(16) uint8_t model_memory[8192], arena[20000];
 *     qi_model *model;
 *     if (qi_model_init(&model, qm, qm_bytes, NULL, model_memory, sizeof model_memory, NULL) ==
 * QI_OK
 *         && qi_arena_bytes(model) <= sizeof arena) {
 *         const void *in[] = {pixels};
 *         void *out[] = {scores};
 *         qi_run(model, arena, in, out);
 *     }
 *
 * Layout of activations: NHWC, row-major, one byte a value (QI_U8, QI_S8).
 * Real value of a code q: scale * (q - zero_point). docs/qm-format.md specifies the file, docs/
 * arithmetic.md every rounding.
 */
#ifndef QAT_INFER_H
#define QAT_INFER_H

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
    QI_ALIGN = 16       /* of the file, of the memories, of every tensor in the arena */
};

typedef enum qi_status {
    QI_OK = 0,
    QI_ERR_MAGIC,      /* not a .qm file */
    QI_ERR_VERSION,    /* a version this library does not read */
    QI_ERR_TRUNCATED,  /* shorter than its header says */
    QI_ERR_CRC,        /* checksum differs: the file was changed */
    QI_ERR_FORMAT,     /* a field outside its limits */
    QI_ERR_UNKNOWN_OP, /* neither built in nor among the custom kernels */
    QI_ERR_SHAPE,      /* tensors that do not fit the op */
    QI_ERR_PARAM,      /* an op's parameter outside its range */
    QI_ERR_OVERFLOW,   /* a layer whose int32 accumulator could overflow */
    QI_ERR_MEMORY,     /* the memory given is too small or misaligned */
    QI_ERR_KAT,        /* the stored known-answer test gave other bytes */
    QI_ERR_IO,         /* host only: a file could not be opened or mapped */
    QI_ERR_NOMEM       /* host only: an allocation failed */
} qi_status;

/** What went wrong, without printf: a sentence and the numbers that belong to it. */
typedef struct qi_error {
    qi_status status;
    const char *what; /* static text, e.g. "conv2d: stride_h"; QI_ERR_UNKNOWN_OP: the op's name,
                         which lies in the .qm's bytes */
    int32_t index;    /* index of the op or tensor concerned, or -1 */
    int64_t value;    /* the offending value */
    int64_t limit;    /* what it may be at most, or what was expected */
} qi_error;

/** Fill err (may be NULL) and return status. */
qi_status qi_fail(qi_error *err, qi_status status, const char *what, int32_t index, int64_t value,
                  int64_t limit);

/** A short English name, static storage, never NULL. */
const char *qi_status_name(qi_status status);

/** Version of the engine that the program runs with, "0.1.0" (static text), and as one number like
 *  QAT_VERSION_NUMBER, which is that of the headers. */
const char *qi_version(void);
int qi_version_number(void);

typedef enum qi_type { QI_U8 = 0, QI_S8 = 1, QI_S32 = 2, QI_S64 = 3 } qi_type;

typedef enum qi_tensor_kind {
    QI_ACTIVATION = 0, /* in the arena */
    QI_CONSTANT = 1    /* in the file */
} qi_tensor_kind;

/** What the program around the engine exchanges at a model input or output. */
typedef enum qi_border {
    QI_BORDER_NONE = 0,   /* the tensor's own codes */
    QI_BORDER_FLOAT32 = 1 /* real numbers; outside the engine they become codes, or codes them */
} qi_border;

/** How an op's accumulator becomes a code. A property of each op in the file, never a build flag.
 */
typedef enum qi_rounding {
    QI_ROUND_NONE = 0,  /* the op rounds by its own definition, or not at all */
    QI_ROUND_TWICE = 1, /* saturating left shift, SQRDMULH (ties up), right shift (ties away) */
    QI_ROUND_DOUBLE = 2 /* acc * 53-bit significand, to 53 bits ties to even, then half away */
} qi_rounding;

typedef struct qi_tensor {
    const char *name; /* UTF-8, in the file */
    uint8_t type;     /* qi_type */
    uint8_t kind;     /* qi_tensor_kind */
    uint8_t rank;     /* 1..QI_MAX_RANK */
    uint8_t bits;     /* 2..8 for codes; 32; 64 */
    uint8_t border;   /* qi_border: carried for the caller, the engine itself sees codes */
    int32_t dims[QI_MAX_RANK];
    int32_t zero_point;  /* a code; per-channel weights have 0 */
    uint32_t scale_bits; /* float32 scale as its IEEE 754 bits: information, never computed with */
    int32_t channel_scales; /* index of a constant QI_S32 tensor of per-channel scale bits, or -1 */
    int32_t source_index;   /* tensor number in the file this model was made from, or -1 */
    uint32_t range_bits[2]; /* float32 bits of the range (min, max) the parameters came from */
    size_t bytes;
    const void *data; /* constants: in the file; activations: NULL */
    size_t offset;    /* activations: in the arena */
} qi_tensor;

/** A model in memory. Constant once qi_model_init returned: any number of threads may read it, and
 *  run it at the same time with an arena each. */
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
    int32_t rounding; /* qi_rounding */
    int64_t
        max_accumulator;  /* the largest |accumulator| this layer can reach, or 0: no accumulator */
    int32_t in_place;     /* output 0 may take input 0's memory: kernel->in_place, or less */
    size_t scratch_bytes; /* from kernel->scratch */
    size_t scratch_offset; /* in the arena */
} qi_node;

/** What a kernel sees when it runs: everything resolved to pointers. */
typedef struct qi_call {
    const qi_model *model;
    const qi_node *node;
    const void *const *in; /* one pointer for each input, constants and activations alike */
    void *const *out;
    void *scratch;
} qi_call;

/**
 * One integer op: a table entry, the same for built-in and custom ops.
 * check runs once when the model is read and must reject everything run could not handle: after
 * that the node is trusted. run must write every byte of every output.
 */
typedef struct qi_kernel {
    const char *name;
    qi_status (*check)(const qi_model *model, const qi_node *node, int32_t index, qi_error *err);
    size_t (*scratch)(const qi_model *model, const qi_node *node); /* NULL: none */
    void (*run)(const qi_call *call);
    /** Nonzero: run gives the same with out[0] == in[0], where the two have as many bytes; an op
     * that reads no other value of input 0 than the one it replaces. The planner then saves memory.
     */
    int in_place;
} qi_kernel;

/** Custom kernels, looked up by name after the built-in ones. Borrowed as long as the model. */
typedef struct qi_kernel_list {
    const qi_kernel *const *kernels;
    size_t count;
} qi_kernel_list;

/** Memory that qi_model_init will need for this file; checks header and CRC on the way. */
qi_status qi_model_bytes(const void *qm, size_t qm_bytes, size_t *need, qi_error *err);

/**
 * Parse and validate a .qm: every count, offset, shape, parameter and index is checked here, so
 * that running cannot fail. Plans the arena.
 *
 * @param qm      the file's bytes, 16-byte aligned, borrowed as long as the model
 * @param custom  kernels beyond the built-in ones, or NULL
 * @param memory  QI_ALIGN-aligned, at least qi_model_bytes(); the model lives in it
 */
qi_status qi_model_init(qi_model **model, const void *qm, size_t qm_bytes,
                        const qi_kernel_list *custom, void *memory, size_t memory_bytes,
                        qi_error *err);

/** Bytes of the QI_ALIGN-aligned arena that qi_run needs. */
size_t qi_arena_bytes(const qi_model *model);

/**
 * Run the model once.
 *
 * Pure in the model: two threads may run one model with two arenas. The arena's content before
 * the call does not matter.
 *
 * @param inputs   one pointer per model input, tensor->bytes bytes each, in the graph's order;
 * bytes that are no codes of an input below 8 bits are limited to its codes
 * @param outputs  one pointer per model output, likewise; NULL pointers are skipped
 */
void qi_run(const qi_model *model, void *arena, const void *const *inputs, void *const *outputs);

/** Called after each op for each of its outputs: the tensor's index and its bytes. */
typedef void qi_visit(void *context, const qi_model *model, int32_t tensor, const void *data);

/** As qi_run, and calls visit for every input and for every op's outputs in execution order. */
void qi_run_visit(const qi_model *model, void *arena, const void *const *inputs,
                  void *const *outputs, qi_visit *visit, void *context);

/**
 * Run the model on its stored known-answer input; QI_OK, or QI_ERR_KAT with the first differing
 * byte (value: what came out, limit: what is stored), or where the file holds no such test.
 */
qi_status qi_self_test(const qi_model *model, void *arena, qi_error *err);

int32_t qi_tensor_count(const qi_model *model);
const qi_tensor *qi_tensor_at(const qi_model *model, int32_t index);
int32_t qi_node_count(const qi_model *model);
const qi_node *qi_node_at(const qi_model *model, int32_t index);
int32_t qi_input_count(const qi_model *model);
int32_t qi_input_at(const qi_model *model, int32_t i); /* tensor index */
int32_t qi_output_count(const qi_model *model);
int32_t qi_output_at(const qi_model *model, int32_t i); /* tensor index */

/** How a picture, or real numbers, become the bytes of input 0; docs/qm-format.md, section
 *  "Preprocessing". */
typedef struct qi_preprocessing {
    int32_t kind; /* 0: none, the input is codes; 1: image pixels, one byte a channel; 2: reals */
    int32_t height, width, channels;
    int32_t resize_short;  /* resize the short side to this before the crop; 0: none (squash) */
    int32_t channel_order; /* 0: grey, 1: RGB, 2: BGR */
    uint32_t mean_bits[4]; /* float32 bits: (pixel - mean) / std, (value - mean) / std */
    uint32_t std_bits[4];
} qi_preprocessing;

/** Metadata; all pointers into the file, none of them needed to run. */
const qi_preprocessing *qi_model_preprocessing(const qi_model *model);
int32_t qi_label_count(const qi_model *model);
const char *qi_label_at(const qi_model *model, int32_t i);
const uint8_t *qi_model_digest(const qi_model *model); /* SHA-256 of the checkpoint, 32 bytes */
const char *qi_model_description(const qi_model *model);
/**
 * What follows the model's outputs and is computed outside the engine, by name (docs/qm-format.md,
 * section "Epilogue"). The engine checks that inputs are tensors and carries the rest.
 */
typedef struct qi_epilogue {
    const char *name;      /* NULL: none */
    const int32_t *inputs; /* tensor indices: model outputs and constants */
    const int32_t *params;
    int32_t n_inputs, n_params;
} qi_epilogue;
const qi_epilogue *qi_model_epilogue(const qi_model *model); /* never NULL */
/** Known-answer test: bytes of input i / output i, or NULL where the file holds none. */
const void *qi_kat_input(const qi_model *model, int32_t i);
const void *qi_kat_output(const qi_model *model, int32_t i);

/* ------------------------------------------------------------------ host: lib/infer/host */

/** How a model is run on a host; zeros, or a NULL pointer to them, are the defaults. */
typedef struct qi_host_options {
    const qi_kernel_list *custom; /* kernels beyond the built-in ones, or NULL; borrowed */
    const char *isa; /* instruction set, one of qi_isa_name; NULL: the best of this processor */
    int threads;     /* of one run, 1..QI_HOST_MAX_THREADS; 0: 1 */
} qi_host_options;

enum { QI_HOST_MAX_THREADS = 256 };

/** Instruction sets that this build has inner loops for, the best first, "scalar" last; NULL behind
 *  the last. All give the same bytes. */
const char *qi_isa_name(int i);
/** 1: this processor (and its operating system) runs the named set. */
int qi_isa_runs_here(const char *name);

struct qi_steps;

/**
 * A model opened on a machine with an operating system: the file mapped, weights packed for the
 * instruction set, memory and arena allocated. Not part of the freestanding core.
 * One thread at a time may call qi_host_run, which uses the host's own arena. Any number of threads
 * may call qi_host_run_visit with an arena each, and read the host.
 */
typedef struct qi_host {
    qi_model *model;
    void *arena;
    void *memory;
    struct qi_steps *steps; /* how each node runs here */
    const char *isa;        /* the instruction set in use, static text */
    int threads;
    size_t arena_bytes;      /* what qi_host_run_visit needs, slack included */
    size_t core_arena_bytes; /* what qi_run needs on a device: qi_arena_bytes of the core's kernels,
                                before the host's own, which need more, were chosen */
    const void *qm;
    size_t qm_bytes;
    int mapped; /* how qm is owned: 1 mmap, 0 malloc */
} qi_host;

enum { QI_HOST_MESSAGE_MAX = 512 };

/**
 * Map path, validate it, choose and pack for the instruction set, and allocate what a run needs.
 * On failure returns the status, writes a sentence naming the file to message (may be NULL), and
 * leaves host zeroed. An instruction set that does not exist or does not run here is QI_ERR_PARAM.
 * Close with qi_host_close, which accepts a zeroed host.
 */
qi_status qi_host_open(qi_host *host, const char *path, const qi_host_options *options,
                       char message[QI_HOST_MESSAGE_MAX]);
/** The same for bytes in memory, which are copied. name stands for the path in messages. */
qi_status qi_host_open_bytes(qi_host *host, const void *qm, size_t qm_bytes, const char *name,
                             const qi_host_options *options, char message[QI_HOST_MESSAGE_MAX]);
void qi_host_close(qi_host *host);

/**
 * Run the model once, with the host's instruction set and threads: the bytes of qi_run, sooner.
 * @param inputs, outputs  as qi_run's
 */
void qi_host_run(const qi_host *host, const void *const *inputs, void *const *outputs);
/**
 * As qi_host_run, in an arena of the caller's (64-byte aligned, host->arena_bytes; NULL: the host's
 * own), calling visit (may be NULL) after each op. Pure in host: two threads may run with two
 * arenas.
 */
void qi_host_run_visit(const qi_host *host, void *arena, const void *const *inputs,
                       void *const *outputs, qi_visit *visit, void *context);

/** 1: inner loops of host->isa run this node; 0: the core's scalar kernel does. */
int qi_host_node_is_fast(const qi_host *host, int32_t node);
/** The instructions of a node's matrix product, where the instruction set has several ways and
 *  chose one by the weights; NULL: its only way, or no product. Static text. */
const char *qi_host_node_sequence(const qi_host *host, int32_t node);

struct qi_parts;
/** For libqat of the same version only: the engine's inner loops, which training with integers runs
 *  on. Opaque: it may change with every version. */
const struct qi_parts *qi_host_parts(void);

/** Write err as one sentence with its numbers. */
void qi_error_text(const qi_error *err, const char *name, char message[QI_HOST_MESSAGE_MAX]);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
