/**
 * What the engine keeps beside the public part of a graph. Only the engine's own sources (graph,
 * apply, plan, run, text, init, optim, gradcheck) include this; ops see graph.h alone.
 */
#ifndef QAT_AUTOGRAD_CORE_H
#define QAT_AUTOGRAD_CORE_H

#include "autograd/engine.h"
#include "autograd/pack.h"
#include "base/arena.h"
#include "qat/graph.h"

enum {
    CORE_BUCKETS = 256,      /* of the name index */
    CORE_MAX_NODES = 1 << 20 /* so that 2 * nodes + 1 fits an int */
};

typedef struct core_node {
    qat_node node;          /* first: every qat_node of a graph is the head of a core_node */
    struct core_node *next; /* in the same bucket of the name index */
    qat_shape built;        /* an input's shape as it was declared, before any batch was set */
    int consumers;          /* input slots that this node fills */
    int last_consumer;      /* index of the last node that reads it; -1: none */
    bool wanted;            /* an input whose gradient was asked for */
    bool is_output;
    bool keeps_value;  /* value stays readable after forward */
    qat_node *head;    /* of the chain in whose tail it is; NULL: none (tail.h) */
    int grad_owner;    /* index of the node in whose buffer its gradient lies */
    size_t max_values; /* planned: values and scratch at the largest batch */
    size_t max_scratch;
    bool has_codes, coded; /* codes.c: coded: codes are all that is kept of its value */
    unsigned char *codes;
    void *notes;
    const qat_node *last_reader;           /* in forward, where backward reads notes; else NULL */
    qat_real *own_reals, *own_reals_again; /* in its forward, in its backward */
    qat_real **borrowed;                   /* by data input: in forward, in backward; NULL: none */
    bool idle; /* of the last forward: nobody reads it, so it was not computed */
    /* Of the last backward: */
    bool active;      /* the loss depends on it, through differentiable ops */
    int first_writer; /* the active consumer whose backward comes first; -1: none */
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
    qat_error error; /* the first one of building */

    bool planned;
    qat_plan plan;
    int batch, max_batch;
    bool behind_backward;  /* of the last run: values that end with their backward are gone */
    unsigned char *memory; /* the one arena of values, gradients and scratch */
    size_t memory_bytes;
    qat_watch *watch; /* NULL: none */
    void *watch_context;
    const qat_engine *engine; /* NULL: none */
    void *engine_context;
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
 * Set head, tail and grad_owner of all nodes of a planned graph's shapes: chains and gradients in
 * one place where the plan allows, each by itself where not. needed: by index, has it a gradient?
 */
qat_status qat_core_find_chains(qat_graph *graph, const bool *needed, qat_error *err);

/* codes.c: which nodes have codes; the buffers of codes and of reals made from them, at most so
 * many, how they are handed out, and how a node gets the reals it looks at. */
enum { /* kinds of buffers */
       CORE_CODES = 8,
       CORE_NOTES,
       CORE_OWN_REALS,
       CORE_OWN_REALS_AGAIN,
       CORE_BORROWED
};
qat_status qat_core_find_coded(qat_graph *graph, qat_error *err);
/** Where codes are all that is kept of some values, others too live only until their node's
 *  backward, unless somebody may ask for them later. */
bool qat_core_ends_with_backward(const core_node *core);
int qat_core_most_code_buffers(const qat_graph *graph);
int qat_core_code_buffers(const qat_graph *graph, pack_buffer *buffers);
void qat_core_hand_out_codes(qat_graph *graph, const pack_buffer *buffer);
void qat_core_borrow(qat_graph *graph, qat_node *node, qat_pass pass);

/** Keep the first error of building; returns NULL, for building functions to return. */
void *qat_core_fail(qat_graph *graph, qat_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** A node with a checked, unique name, not yet part of the graph; NULL after qat_core_fail. */
core_node *qat_core_new_node(qat_graph *graph, const char *name);
/** Make it part of the graph; NULL after qat_core_fail. */
qat_node *qat_core_append(qat_graph *graph, core_node *node);

/** Apply an op to inputs of which the first n_data are data and the rest its parameters. */
qat_node *qat_core_apply(qat_graph *graph, const qat_op *op, const char *name, const double *attrs,
                         int n_data, int n_inputs, qat_node *const *inputs);

/** Why a shape cannot be a tensor's, in at most 127 characters; false if it can. */
bool qat_core_shape_bad(const qat_shape *shape, char why[128]);

/** Call op->shape and check what it sets; messages name the node and the op. */
qat_status qat_core_infer(qat_node *node, qat_error *err);
/** Call op->params for a node whose n_data is set: how many, or -1 with a message as above. */
int qat_core_params(const qat_node *node, qat_param_def *defs, qat_error *err);

/** Values of an op's attributes from "name=value name=value" text (defaults for the others). */
qat_status qat_core_attrs_parse(const qat_op *op, const char *text, double *values, qat_error *err);
/** Are all within their definitions' ranges? */
qat_status qat_core_attrs_check(const qat_op *op, const double *values, qat_error *err);
/** One value as it is written in text: a choice's word, or 17 digits. */
void qat_core_attr_text(const qat_attr_def *def, double value, char *text, size_t max);
/** A finite number that is all of text, or false. */
bool qat_core_number(const char *text, double *value);

/** Values of one parameter by its init rule; see init.c. */
void qat_core_init_values(const qat_param_def *def, const char *name, uint64_t seed,
                          qat_real *values, size_t count);

#endif
