/**
 * Another way to compute a graph's values. A graph with an engine is planned, differentiated and
 * updated as any other; in runs in which the engine takes part, it is asked to compute each node
 * that forward would have run, in the graph's order:
 *
 *     plan -> engine.plan          run -> engine.begin: no  -> node->op->forward, and its tail
 *                                                       yes -> engine.forward, which may call
 *                                                              qat_node_forward
 *
 * What backward reads (values, the op's scratch) the engine leaves as the op would have.
 *
 * It may give nodes codes, one byte a value, from which their reals can be made again. Where it
 * takes part in every run, a training plan (QAT_PLAN_TRAIN) keeps nothing else of such a node: its
 * value is made for each reader and is meaningless afterwards (codes.c).
 *
 * In such a plan it may also give nodes room for notes between their forward and their backward, in
 * place of values that backward then does not read.
 */
#ifndef QAT_AUTOGRAD_ENGINE_H
#define QAT_AUTOGRAD_ENGINE_H

#include "qat/graph.h"

enum { CORE_CODES_SLACK = 64 }; /* QI_SLACK of lib/infer */

typedef struct qat_engine {
    /** Shapes are known, memory is not yet planned. */
    qat_status (*plan)(void *context, qat_graph *graph, qat_error *err);
    /** After plan. Has this node codes? Will node, in forward, read an input's codes and not its
     *  value? Does the engine take part in every run? */
    bool (*has_codes)(const void *context, const qat_node *node);
    bool (*reads_codes)(const void *context, const qat_node *node, int input);
    bool (*always)(const void *context);
    /** Bytes of a node's notes. The node in whose forward the value of `node` is read last, as
     *  backward reads notes; NULL: backward reads it. */
    size_t (*note_bytes)(const void *context, const qat_node *node);
    const qat_node *(*last_reader)(const void *context, const qat_node *node);
    /** node->value from its codes. */
    void (*decode)(void *context, const qat_node *node);
    /** Does it take part in this run? */
    bool (*begin)(void *context, const qat_run *run);
    /** Compute node, and the tail that it runs. */
    void (*forward)(void *context, qat_node *node, const qat_run *run);
    /** What went wrong since the last begin, if anything. */
    qat_status (*status)(const void *context, qat_error *err);
    void (*free)(void *context);
} qat_engine;

/** Before planning; context is freed with the graph. */
void qat_graph_set_engine(qat_graph *graph, const qat_engine *engine, void *context);
/** The engine's context, if the graph has this engine; else NULL. */
void *qat_graph_engine(const qat_graph *graph, const qat_engine *engine);

/** The node's own forward, with its tail (tail.h). */
void qat_node_forward(qat_node *node, const qat_run *run);

/** A node's codes, CORE_CODES_SLACK readable bytes behind; NULL: it has none. */
uint8_t *qat_node_codes(const qat_node *node);
/** Room that lasts from its forward to its backward; NULL: none in this plan. */
void *qat_node_notes(const qat_node *node);
/** Is nothing else kept of its value? */
bool qat_node_is_coded(const qat_node *node);

#endif
