/** Times a driver, or the core's kernel, on one node in memory, on one thread. The benchmarks of
 * single ops use it. */
#ifndef QAT_BENCH_NODE_TIMER_H
#define QAT_BENCH_NODE_TIMER_H

#include "kernels/one_node.h"

typedef struct node_timer {
    const qi_fast *fast; /* NULL: the core's kernel */
    one_node n;          /* built by the caller */
    qi_fast_call call;
    int32_t tiles;
    size_t outputs;
    double best; /* seconds, of all runs so far */
} node_timer;

/** Check and pack. If the instruction set has no such driver, the program ends. */
void node_timer_prepare(node_timer *t, const qi_fast *fast, const qi_isa *isa);
/** The same for the core's kernel. */
void node_timer_prepare_core(node_timer *t);
void node_timer_run(node_timer *t);
/**
 * Find an instruction set by name, or the best of this processor (NULL). If there is none, the
 * program ends.
 */
const qi_isa *node_timer_isa(const char *name);

#endif
