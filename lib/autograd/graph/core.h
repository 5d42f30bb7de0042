/**
 * The private part of a graph. Only autograd's own sources include this (this folder,
 * optim, shards); ops see only graph.h.
 */
#ifndef QAT_AUTOGRAD_CORE_H
#define QAT_AUTOGRAD_CORE_H

#include "autograd/graph/backend.h"
#include "autograd/graph/pack.h"
#include "base/arena.h"
#include "qat/graph.h"

enum {
    CORE_BUCKETS = 256, /* of the name index */
    /*
     * Planning compares each buffer with all others: at this many nodes it takes seconds. The
     * training graph of ResNet-152 has less than 5,000.
     */
    CORE_MAX_NODES = 1 << 15
};

/** What the first dimension of a node's value is, in a graph of one shard (shards.h). */
typedef enum core_kind {
    CORE_SAMPLES, /* the batch */
    CORE_FIXED, /* no batch, and no sample has a share in it: parameters, and what follows from them
                 */
    CORE_TOTAL  /* no batch, but made of samples: losses */
} core_kind;

typedef struct core_node {
    qat_node node;          /* first member: a qat_node of a graph can be cast to its core_node */
    struct core_node *next; /* next node in the same bucket of the name index */
    qat_shape built;        /* shape of an input as declared, before any batch was set */
    int consumers;          /* number of input slots that this node fills */
    int last_consumer;      /* index of the last node that reads it; -1: none */
    bool wanted;            /* an input whose gradient was asked for */
    bool is_output;
    bool keeps_value;  /* the value stays readable after forward */
    qat_node *head;    /* head of the chain in whose tail this node is; NULL: none (tail.h) */
    int grad_owner;    /* index of the node whose buffer holds this node's gradient */
    size_t max_values; /* planned: size of value and scratch at the largest batch */
    size_t max_scratch;
    bool has_codes, coded; /* codes.c; coded: only the codes of its value are kept */
    unsigned char *codes;
    void *notes;
    const qat_node *last_reader; /* last reader in forward, if backward reads notes; else NULL */
    bool outlives_readers;       /* its value is read after backward */
    qat_real *own_reals, *own_reals_again; /* its reals during its forward, its backward */
    qat_real **borrowed; /* by data input: reals in forward, in backward; NULL: none */
    bool idle;           /* not computed in the last forward, because no node reads it */
    /* State of the last backward: */
    bool active;      /* the loss depends on it through differentiable ops */
    int first_writer; /* index of the active consumer whose backward runs first; -1: none */
    int last_writer;  /* the last one of those that are not CORE_FIXED; -1: none */
    core_kind kind;
    bool partial; /* CORE_FIXED: each shard has its own part of the gradient */
} core_node;

struct qat_graph {
    const qat_registry *registry;
    qat_arena arena; /* nodes, names, input lists, annotation */
    core_node **nodes;
    int count, capacity;
    core_node *buckets[CORE_BUCKETS];
    qat_node **outputs;
    int n_outputs, outputs_capacity;
    const void *annotation;
    qat_error error; /* the first error of building */

    bool planned;
    qat_plan plan;
    int batch, max_batch;
    bool behind_backward;  /* the last run is past its backward: values that end with their backward
                              are gone */
    unsigned char *memory; /* the one block for values, gradients and scratch */
    size_t memory_bytes;
    qat_watch *watch; /* NULL: none */
    void *watch_context;
    const qat_backend *backend; /* NULL: none */
    void *backend_context;
    bool backend_runs; /* it takes part in this run */

    /* Graphs of shards (shards.h): */
    const qat_graph *first; /* the graph that has the parameters of all; NULL: an ordinary graph */
    int shard, shards;      /* which of the batch's, of how many */
    bool split_batch_norm;  /* batch norm is that of the shard, not that of the batch */
    size_t bytes_before;    /* of the graphs that are planned already */
};

static inline core_node *core_of(const qat_node *node)
{
    return (core_node *)node;
}

/** Does this plan have gradients? */
static inline bool qat_core_trains(const qat_graph *graph)
{
    return graph->plan == QAT_PLAN_TRAIN || graph->plan == QAT_PLAN_TRAIN_KEEP;
}

/**
 * Set head, tail and grad_owner of all nodes; the shapes are known. The plan says whether chains
 * are made and gradients share memory; otherwise each node stands alone. needed: by index, does the
 * node have a gradient?
 */
qat_status qat_core_find_chains(qat_graph *graph, const bool *needed, qat_error *err);

/*
 * codes.c: finds the nodes that have codes; lists the buffers of codes and of the reals made from
 * them, and their largest number; hands the buffers out; makes the reals that a node reads.
 */
enum { /* kinds of buffers */
       CORE_CODES = 8,
       CORE_NOTES,
       CORE_OWN_REALS,
       CORE_OWN_REALS_AGAIN,
       CORE_BORROWED
};
qat_status qat_core_find_coded(qat_graph *graph, qat_error *err);
/**
 * If only codes are kept of some values, other values live only until their node's backward, unless
 * somebody may ask for them later.
 */
bool qat_core_ends_with_backward(const core_node *core);
int qat_core_most_code_buffers(const qat_graph *graph);
int qat_core_code_buffers(const qat_graph *graph, pack_buffer *buffers);
void qat_core_hand_out_codes(qat_graph *graph, const pack_buffer *buffer);
void qat_core_borrow(qat_graph *graph, qat_node *node, qat_pass pass);

/*
 * run.c: the parts of a run, for those that run several graphs side by side (shards.c). Nodes run
 * forward by rising index, backward by falling index; of a graph with shards, CORE_FIXED nodes run
 * before all others, and backward after them.
 */
void qat_core_begin_forward(qat_graph *graph, const qat_run *run);
/** Does the node take part by itself? The nodes of a tail are run by their head. */
bool qat_core_runs(const core_node *core);
void qat_core_forward(qat_graph *graph, int i, const qat_run *run);
void qat_core_begin_backward(qat_graph *graph, qat_node *loss, const qat_run *run);
bool qat_core_runs_backward(const core_node *core);
void qat_core_backward(qat_graph *graph, int i, const qat_run *run);
/** What comes before a node's backward; of a shared node, before its backward_sums. */
void qat_core_prepare_backward(qat_graph *graph, int i);

/** shards.c: set kind and partial of all nodes; the shapes are those of the largest batch. */
qat_status qat_core_find_kinds(qat_graph *graph, qat_error *err);

/** Keep the first error of building. Returns NULL, so that building functions can return it. */
void *qat_core_fail(qat_graph *graph, qat_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/** The same for qat_out_of_memory. */
void *qat_core_no_memory(qat_graph *graph, const char *what);

/** A new node with a valid, unique name, not yet part of the graph; NULL after qat_core_fail. */
core_node *qat_core_new_node(qat_graph *graph, const char *name);
/** Make the node part of the graph; NULL after qat_core_fail. */
qat_node *qat_core_append(qat_graph *graph, core_node *node);

/** Apply an op to inputs. The first n_data are data, the others its parameters. */
qat_node *qat_core_apply(qat_graph *graph, const qat_op *op, const char *name, const double *attrs,
                         int n_data, int n_inputs, qat_node *const *inputs);

/** If a tensor cannot have this shape, return true and the reason. */
bool qat_core_shape_bad(const qat_shape *shape, char why[128]);

/** Set the shapes of all nodes for this batch (plan.c). */
qat_status qat_core_infer_all(qat_graph *graph, int batch, qat_error *err);
/** Call op->shape and check the shape that it sets. Messages name the node and the op. */
qat_status qat_core_infer(qat_node *node, qat_error *err);
/**
 * Call op->params for a node with n_data set. Returns the number of parameters, or -1 and such a
 * message.
 */
int qat_core_params(const qat_node *node, qat_param_def *defs, qat_error *err);

/**
 * Read an op's attributes from "name=value name=value" text. Attributes not in the text get their
 * defaults.
 */
qat_status qat_core_attrs_parse(const qat_op *op, const char *text, double *values, qat_error *err);
/** Check that all values are within the ranges of their definitions. */
qat_status qat_core_attrs_check(const qat_op *op, const double *values, qat_error *err);
/** Write one value as text: the word of a choice, or 17 digits. */
void qat_core_attr_text(const qat_attr_def *def, double value, char *text, size_t max);
/** Read a finite number. Returns false unless it is all of text. */
bool qat_core_number(const char *text, double *value);

/** Initial values of one parameter by its init rule; see init.c. */
void qat_core_init_values(const qat_param_def *def, const char *name, uint64_t seed,
                          qat_real *values, size_t count);

#endif
