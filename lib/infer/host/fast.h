/**
 * How the host runs an op faster than the core, with the same bytes.
 *
 *   node --core kernel--> check, scratch, scalar run       always there, any processor
 *        \--qi_fast-----> accepts, pack, tiles, run        one driver a family, for every
 *                           |                              instruction set
 *                           v
 *                         qi_isa: tables of inner loops    one folder an architecture
 *
 * A driver (fast_*.c) knows the op: its geometry, its padding, how its work falls into tiles. An
 * instruction set (qi_isa) knows inner loops: a matrix product with a fused requantization, a row
 * of a depthwise convolution, runs of codes. Neither knows threads: host_run.c hands out tiles,
 * whose number does not depend on how many threads there are.
 *
 * Weights are packed once, when a model is opened, in the order in which the inner loops read them;
 * the zero-point terms of eq. 7-8 are folded into the bias then.
 */
#ifndef QI_HOST_FAST_H
#define QI_HOST_FAST_H

#include "infer/model.h"

enum {
    QI_FAST_MAX_INPUTS = 8,
    QI_FAST_ALIGN = 64, /* of packed weights, of a thread's scratch, of the arena */
    QI_SLACK = 64       /* readable bytes behind the arena and behind packed weights: inner loops
                           may read, never write, so far past the end of a tensor in the arena;
                           whatever lies there, even what another thread is writing, changes
                           nothing that is stored */
};

struct qi_gemm;
struct qi_depthwise;
struct qi_elementwise;

/** An instruction set: its inner loops. A NULL table: the core's scalar kernels do that work. */
typedef struct qi_isa {
    const char *name;
    int (*runs_here)(void); /* does this processor have it, and its operating system allow it? */
    const struct qi_gemm *gemm;               /* gemm.h */
    const struct qi_depthwise *depthwise;     /* depthwise.h */
    const struct qi_elementwise *elementwise; /* elementwise.h */
} qi_isa;

/** Instruction sets of this build, the best first; scalar is last. NULL behind the last. */
const qi_isa *qi_isa_entry(int i);
/** The first that runs here. */
const qi_isa *qi_isa_best(void);

/** One call of a driver for one tile. */
typedef struct qi_fast_call {
    const qi_isa *isa;
    const qi_model *model;
    const qi_node *node;
    const void *in[QI_FAST_MAX_INPUTS]; /* constants and activations alike */
    void *out;
    const void *packed; /* what pack made, or NULL */
    void *scratch;      /* this thread's own, QI_FAST_ALIGN-aligned */
} qi_fast_call;

/** A driver: a table entry. Nodes have one output and at most QI_FAST_MAX_INPUTS inputs. */
typedef struct qi_fast {
    const qi_kernel *kernel; /* of the core, for which it stands in */
    /** Can it run this (checked) node with the inner loops of isa? Otherwise the core does. */
    int (*accepts)(const qi_isa *isa, const qi_model *model, const qi_node *node);
    /** Bytes that pack fills; NULL: none. */
    size_t (*packed_bytes)(const qi_isa *isa, const qi_model *model, const qi_node *node);
    void (*pack)(const qi_isa *isa, const qi_model *model, const qi_node *node, void *packed);
    /** Bytes one thread needs while it runs; NULL: none. */
    size_t (*scratch)(const qi_isa *isa, const qi_model *model, const qi_node *node);
    /** Independent pieces of the work, >= 1: no two write the same byte. */
    int32_t (*tiles)(const qi_isa *isa, const qi_model *model, const qi_node *node);
    void (*run)(const qi_fast_call *call, int32_t tile);
    /** Nonzero: right with out == in[0] too, where the core's kernel is: a tile writes no byte of
     *  input 0 before it, or another tile, has read it for the last time. */
    int in_place;
} qi_fast;

/** Drivers, each in the file of its op family. */
extern const qi_fast qi_fast_conv2d, qi_fast_depthwise_conv2d, qi_fast_fully_connected;
extern const qi_fast qi_fast_requantize, qi_fast_logistic, qi_fast_tanh, qi_fast_table;
extern const qi_fast qi_fast_add, qi_fast_sub, qi_fast_mul;
extern const qi_fast qi_fast_average_pool2d, qi_fast_max_pool2d, qi_fast_mean, qi_fast_softmax;

/** The driver for a node, or NULL. */
const qi_fast *qi_fast_for(const qi_isa *isa, const qi_model *model, const qi_node *node);

/** How the host runs one node. */
typedef struct qi_step {
    const qi_fast *fast;   /* NULL: the core's scalar kernel */
    const void *packed;    /* NULL: nothing is */
    size_t packed_bytes;   /* aligned */
    size_t thread_scratch; /* bytes of one thread's scratch, aligned */
    int32_t tiles;
} qi_step;

/**
 * A model's steps, and their memory: one allocation, as the system clears large pages whole before
 * it gives them, which takes longer than packing does.
 *
 *   memory  | packed weights of node 0 | of node 1 | .. | slack | arena | slack |
 */
typedef struct qi_steps {
    const qi_isa *isa;
    int threads;
    qi_step *steps; /* one for each node */
    void *memory;
    void *arena;
    size_t packed_bytes; /* of all nodes */
    size_t arena_bytes;  /* slack included */
} qi_steps;

/** For a model whose nodes are checked: choose drivers, plan the arena with their scratch, pack
 *  weights; 0 or QI_ERR_NOMEM, or the planner's error. */
qi_status qi_steps_make(qi_steps **steps, qi_model *model, const qi_isa *isa, int threads,
                        qi_error *err);
void qi_steps_free(qi_steps *steps);

#endif
