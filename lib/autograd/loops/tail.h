/**
 * A chain runs elementwise ops inside the op before them, strip by strip, while the strip is in the
 * cache. A strip is a few successive values of a tensor. The first op of a chain is its head, the
 * others are its tail.
 *
 *     batch_norm -> relu -> fake_quant -> conv          one pass over memory in place of three:
 *     '- head       '------------ tail                  only fake_quant's value is ever stored
 *
 * A training plan (QAT_PLAN_TRAIN) makes a chain from an op that runs tails (qat_op.runs_tail) and
 * the elementwise ops that follow it, if each is the only reader of the one before. Inner nodes
 * have no stored value. All nodes of a chain share one gradient buffer, which is masked in place.
 * The result has the same bits as running the ops one by one.
 *
 *     forward    for each strip: y = head(inputs); y = tail[0](y); y = tail[1](y); ...
 *     backward   for each strip: x = head(inputs) again, into a buffer; the inputs of all tail ops
 *                from that; then grad = tail[1]'(tail[0](x)) grad; grad = tail[0]'(x) grad
 */
#ifndef QAT_AUTOGRAD_TAIL_H
#define QAT_AUTOGRAD_TAIL_H

#include "qat/graph.h"

enum {
    QAT_TAIL_MAX = 3,
    QAT_STRIP_VALUES =
        1024 /* 4 KB of float: the arrays of a strip fit together in the first-level cache */
};

/**
 * What an elementwise op (one data input, same shape as its output) does to strips of values. A
 * strip does not cross tiles (QAT_TILE_VALUES). The strips of one tile come in order, from one
 * thread.
 */
typedef struct qat_elementwise {
    /** Called before the first strip of a forward pass. May be NULL. */
    void (*begin)(qat_node *node, const qat_run *run);
    /** y[i] = f(x[i]), i < n; y may be x. y[0] is value number `at` of the tensor. */
    void (*forward)(const qat_node *node, size_t at, const qat_real *x, qat_real *y, size_t n);
    /** Called after the last strip, when node->value is complete. May be NULL. */
    void (*end)(qat_node *node, const qat_run *run);
    /** grad[i] = df/dx(x[i]) grad[i] */
    void (*backward)(const qat_node *node, const qat_real *x, qat_real *grad, size_t n);
    /**
     * forward takes notes and cannot be repeated in backward, so the op must be the last of its
     * chain.
     */
    bool ends_chain;
} qat_elementwise;

/** The elementwise ops that a head runs. */
typedef struct qat_tail {
    int n;
    qat_node *ops[QAT_TAIL_MAX];
} qat_tail;

/** The node whose value this node's op writes: itself, or the last of its chain. */
static inline qat_node *qat_tail_last(const qat_node *node)
{
    return node->tail ? node->tail->ops[node->tail->n - 1] : (qat_node *)node;
}

/** A value for qat_op.runs_tail: yes for every node. */
bool qat_runs_any_tail(const qat_node *node);

/** For heads, with or without a tail. Values and strips are as in qat_elementwise. */
void qat_tail_forward(const qat_node *head, size_t at, qat_real *y, size_t n);
/** x: the head's own values, n <= QAT_STRIP_VALUES. */
void qat_tail_backward(const qat_node *head, const qat_real *x, qat_real *grad, size_t n);

/** For the graph: called before and after a head's forward. */
void qat_tail_begin(const qat_node *head, const qat_run *run);
void qat_tail_end(const qat_node *head, const qat_run *run);

/** Forward and backward of an elementwise op that is not in a tail. */
void qat_elementwise_forward(qat_node *node, const qat_run *run);
void qat_elementwise_backward(qat_node *node, const qat_run *run);

/** Call fn for each strip in [begin, end). */
typedef void qat_strip_fn(void *context, size_t at, size_t n);
void qat_each_strip(size_t begin, size_t end, qat_strip_fn *fn, void *context);
/** Call fn for each strip of each tile of n values. Tiles run in parallel. */
void qat_run_strips(size_t n, qat_strip_fn *fn, void *context);

#endif
