/**
 * How a host runs an op faster than the core, with the same bytes.
 *
 *   node --core kernel--> check, scratch, scalar run       always there, any processor
 *        \--qi_fast-----> accepts, pack, tiles, run        one driver a family, for every
 *                           |                              instruction set
 *                           v
 *                         qi_isa: tables of inner loops    one folder an architecture
 *
 * A driver (fast_*.c) knows the op: its geometry, its padding, and how to cut its work into tiles.
 * An instruction set (qi_isa) has the inner loops: a matrix product with fused requantization, a
 * row of a depthwise convolution, runs of codes. Neither knows about threads. host_run.c gives
 * tiles to threads; the number of tiles does not depend on the number of threads.
 *
 * Weights are packed once, when a model is opened, in the order in which the inner loops read them.
 * The zero-point terms of eq. 7-8 are then folded into the bias. Equal nodes (equal_nodes.c) share
 * what is packed, so that a network that applies one layer many times needs its weights once.
 */
#ifndef QI_HOST_FAST_H
#define QI_HOST_FAST_H

#include "infer/model/model.h"

enum {
    QI_FAST_MAX_INPUTS = 8,
    QI_FAST_ALIGN = 64, /* alignment of packed weights, of a thread's scratch, of the arena */
    QI_SLACK = 64 /* readable bytes after the arena and after packed weights. Inner loops may read
                     (never write) this far past the end of a tensor in the arena. The bytes there,
                     which another thread may be writing, do not change any stored result */
};

struct qi_gemm;
struct qi_depthwise;
struct qi_elementwise;

/**
 * An instruction set and its inner loops. If a table is NULL, the core's scalar kernels do that
 * work.
 */
typedef struct qi_isa {
    const char *name;
    int (*runs_here)(void);     /* do this processor and its operating system support it? */
    const struct qi_gemm *gemm; /* gemm.h */
    const struct qi_depthwise *depthwise;     /* depthwise.h */
    const struct qi_elementwise *elementwise; /* elementwise.h */
} qi_isa;

/** The instruction sets of this build, the best first, scalar last. NULL after the last. */
const qi_isa *qi_isa_entry(int i);
/** The first one that runs here. */
const qi_isa *qi_isa_best(void);

/** One call of a driver, for one tile. */
typedef struct qi_fast_call {
    const qi_isa *isa;
    const qi_model *model;
    const qi_node *node;
    const void *in[QI_FAST_MAX_INPUTS]; /* constants and activations */
    void *out;
    const void *packed; /* made by pack, or NULL */
    void *scratch;      /* of this thread, QI_FAST_ALIGN-aligned */
} qi_fast_call;

/** A driver is a table entry. Its nodes have one output and at most QI_FAST_MAX_INPUTS inputs. */
typedef struct qi_fast {
    const qi_kernel *kernel; /* the core's kernel that it replaces */
    /** Can it run this (checked) node, and its rounding, with the inner loops of isa? If not, the
     * core runs it. */
    int (*accepts)(const qi_isa *isa, const qi_model *model, const qi_node *node);
    /** Bytes that pack fills. NULL: there is nothing to pack. */
    size_t (*packed_bytes)(const qi_isa *isa, const qi_model *model, const qi_node *node);
    void (*pack)(const qi_isa *isa, const qi_model *model, const qi_node *node, void *packed);
    /** Nonzero: zeros in the place of what pack makes give the same codes. pack takes the time of
     * some thousand of them. */
    int zeros_do;
    /** The matrix product (gemm.h) in what pack made; of several the first. NULL: there is none. */
    const void *(*product)(const void *packed);
    /** Bytes of scratch that one thread needs. NULL: none. */
    size_t (*scratch)(const qi_isa *isa, const qi_model *model, const qi_node *node);
    /** The number of independent pieces of the work, >= 1. No two pieces write the same byte. */
    int32_t (*tiles)(const qi_isa *isa, const qi_model *model, const qi_node *node);
    void (*run)(const qi_fast_call *call, int32_t tile);
    /** If tiles share work, this takes the place of run: the tiles first..end - 1, first < end. */
    void (*run_tiles)(const qi_fast_call *call, int32_t first, int32_t end);
    /**
     * Nonzero: the driver is also correct with out == in[0] and out == in[1], if the core's kernel
     * is. A tile then writes no byte of that input that it, or another tile, still has to read.
     */
    int in_place;
    int is_wide; /* for nodes that read or write values of more than a byte; else for bytes */
} qi_fast;

/** Run the tiles first..end - 1 of a node. */
static inline void qi_fast_run_tiles(const qi_fast *fast, const qi_fast_call *call, int32_t first,
                                     int32_t end)
{
    if (fast->run_tiles)
        fast->run_tiles(call, first, end);
    for (int32_t tile = first; tile < end && !fast->run_tiles; tile++)
        fast->run(call, tile);
}

/** The drivers; each is in the file of its op family. */
extern const qi_fast qi_fast_conv2d, qi_fast_depthwise_conv2d, qi_fast_transpose_conv2d,
    qi_fast_fully_connected;
extern const qi_fast qi_fast_wide_conv2d, qi_fast_wide_fully_connected; /* 16-bit codes */
extern const qi_fast qi_fast_requantize, qi_fast_logistic, qi_fast_tanh, qi_fast_table;
extern const qi_fast qi_fast_add, qi_fast_sub, qi_fast_mul;
/** add, sub and mul of pictures and a row of channels. */
extern const qi_fast qi_fast_add_row, qi_fast_sub_row, qi_fast_mul_row;
/** add, sub and mul whose output depends on the codes of one input alone. */
extern const qi_fast qi_fast_add_function, qi_fast_sub_function, qi_fast_mul_function;
extern const qi_fast qi_fast_average_pool2d, qi_fast_max_pool2d, qi_fast_mean, qi_fast_softmax,
    qi_fast_concat;
extern const qi_fast qi_fast_pad, qi_fast_resize_bilinear, qi_fast_resize_nearest;
/** resize_bilinear of uint8 where qi_fast_resize_bilinear does not accept it. */
extern const qi_fast qi_fast_resize_float;

/**
 * For add, sub or mul of a tensor with a function of the same tensor: the node of that function,
 * whose output the driver does not read. Else NULL.
 */
const qi_node *qi_function_input(const qi_model *model, const qi_node *node);

/** The driver of a node, or NULL. */
const qi_fast *qi_fast_for(const qi_isa *isa, const qi_model *model, const qi_node *node);

/** How the host runs one node. */
typedef struct qi_step {
    const qi_fast *fast;   /* NULL: the core's scalar kernel */
    const void *packed;    /* NULL: nothing is packed */
    size_t packed_bytes;   /* rounded up to the alignment; 0: also if another node's are shared */
    int32_t shared;        /* the earlier node whose packed weights these are, or -1 */
    size_t thread_scratch; /* bytes of one thread's scratch, aligned */
    int32_t tiles;
    int32_t unread; /* no other step reads what it writes: it runs only for a visitor */
    int32_t order;  /* of step k: the k-th node that runs without a visitor */
} qi_step;

/**
 * Fill equal[i] with the first node to which node i is equal: they have the same kernel,
 * parameters, rounding and constants, and tensors of the same shapes and codes. So a driver packs
 * the same bytes for both. equal[i] = i: node i is the first. A node with a function of its other
 * input (qi_function_input) equals no other, because its driver packs that function.
 * @param equal  one number per node
 * @return       0, or QI_ERR_NOMEM
 */
qi_status qi_equal_nodes(const qi_model *model, int32_t *equal, qi_error *err);

/**
 * The steps of a model and their memory. The memory is one allocation, because the system clears
 * whole large pages before it gives them, and this takes longer than packing.
 *
 *   memory  | packed weights of node 0 | of node 1 | .. | slack | arena | slack |
 *
 * A node whose packed weights are those of an earlier node has none here.
 */
typedef struct qi_steps {
    const qi_isa *isa;
    int threads;
    qi_step *steps; /* one per node */
    int32_t n_read; /* nodes that run without a visitor */
    void *memory;
    void *arena;
    uint64_t packed_bytes; /* of all nodes */
    size_t arena_bytes;    /* includes the slack */
} qi_steps;

/**
 * For a model whose nodes are checked: choose drivers, plan the arena with their scratch, pack the
 * weights.
 * @param most  the bytes that this may allocate for weights and arena
 * @return      0, QI_ERR_NOMEM, QI_ERR_LIMIT (err->value: the bytes needed), or the error of the
 *              planner
 */
qi_status qi_steps_make(qi_steps **steps, qi_model *model, const qi_isa *isa, int threads,
                        uint64_t most, qi_error *err);
void qi_steps_free(qi_steps *steps);

#endif
