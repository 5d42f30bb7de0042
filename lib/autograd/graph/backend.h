/**
 * A backend is another way to compute the values of a graph. A graph with a backend is planned,
 * differentiated and updated like any other. In a run in which the backend takes part, it computes
 * each node that forward would have run, in the graph's order:
 *
 *     plan -> backend.plan          run -> backend.begin: no  -> node->op->forward, and its tail
 *                                                       yes -> backend.forward, which may call
 *                                                              qat_node_forward
 *
 * The backend leaves everything that backward reads (values, the op's scratch) as the op would
 * have.
 *
 * The backend may give nodes codes: one byte per value, from which the reals can be made again. If
 * it takes part in every run, a training plan (QAT_PLAN_TRAIN) keeps only the codes of such a node.
 * Its value is made again for each reader and is meaningless afterwards (codes.c).
 *
 * In such a plan the backend may also give nodes notes: memory that lasts from a node's forward to
 * its backward. Backward then reads the notes instead of some values, and those values need no
 * memory.
 */
#ifndef QAT_AUTOGRAD_BACKEND_H
#define QAT_AUTOGRAD_BACKEND_H

#include "qat/graph.h"

enum { CORE_CODES_SLACK = 64 }; /* QI_SLACK of lib/infer */

typedef struct qat_backend {
    /** Called when shapes are known and memory is not yet planned. */
    qat_status (*plan)(void *context, qat_graph *graph, qat_error *err);
    /**
     * Valid after plan. has_codes: does this node have codes? reads_codes: will node, in forward,
     * read an input's codes instead of its value? always: does the backend take part in every run?
     */
    bool (*has_codes)(const void *context, const qat_node *node);
    bool (*reads_codes)(const void *context, const qat_node *node, int input);
    bool (*always)(const void *context);
    /** The node whose forward makes the codes of `node`; NULL: its own, or that of its chain. */
    const qat_node *(*makes_codes)(const void *context, const qat_node *node);
    /**
     * note_bytes: size of a node's notes. last_reader: if backward reads notes instead of the value
     * of `node`, the node whose forward reads that value last; NULL: backward reads the value.
     */
    size_t (*note_bytes)(const void *context, const qat_node *node);
    const qat_node *(*last_reader)(const void *context, const qat_node *node);
    /**
     * Is the node's value also read by others than its consumers: by later nodes, or after
     * backward by an update or a log? NULL: no value is.
     */
    bool (*outlives_readers)(const void *context, const qat_node *node);
    /** Set node->value from its codes. */
    void (*decode)(void *context, const qat_node *node);
    /** Does the backend take part in this run? */
    bool (*begin)(void *context, const qat_run *run);
    /** The sums of a node that adds up over samples (shared.h). NULL: those of its op. */
    int (*forward_sums)(void *context, qat_node *node, const qat_run *run, double **sums);
    /**
     * Compute node and the tail that it runs. In the graph of a shard, a node that adds up over
     * samples has had its forward_sums.
     */
    void (*forward)(void *context, qat_node *node, const qat_run *run);
    /** The first error since the last begin, if there was one. */
    qat_status (*status)(const void *context, qat_error *err);
    void (*free)(void *context);
} qat_backend;

/** Set the backend before planning. context is freed with the graph. */
void qat_graph_set_backend(qat_graph *graph, const qat_backend *backend, void *context);
/** The backend's context if the graph has this backend, else NULL. */
void *qat_graph_backend(const qat_graph *graph, const qat_backend *backend);

/** Run the node's own forward, with its tail (tail.h). */
void qat_node_forward(qat_node *node, const qat_run *run);

/** A node's codes, with CORE_CODES_SLACK readable bytes after them; NULL: it has none. */
uint8_t *qat_node_codes(const qat_node *node);
/** A node's notes, which last from its forward to its backward; NULL: it has none in this plan. */
void *qat_node_notes(const qat_node *node);
/** Are the codes all that is kept of its value? */
bool qat_node_is_coded(const qat_node *node);

#endif
