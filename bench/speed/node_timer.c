#include "bench/speed/node_timer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *aligned(size_t bytes)
{
    void *p = aligned_alloc(QI_FAST_ALIGN, (bytes + 127) / 64 * 64);
    if (!p)
        abort();
    memset(p, 0, (bytes + 127) / 64 * 64);
    return p;
}

/** What driver and kernel need alike: inputs and output as the planner places them. */
static void prepare(node_timer *t, size_t scratch)
{
    const qi_model *m = &t->n.model;
    const qi_node *node = &t->n.node;
    t->outputs = t->n.tensors[t->n.output].bytes;
    t->call = (qi_fast_call){.model = m,
                             .node = node,
                             .out = aligned(t->outputs),
                             .scratch = scratch ? aligned(scratch) : NULL};
    for (int32_t i = 0; i < node->n_inputs; i++) {
        size_t const bytes = qi_input(m, node, i)->bytes;
        t->call.in[i] = memcpy(aligned(bytes), t->n.in[i], bytes);
    }
    t->best = 1;
}

static void check(node_timer *t)
{
    if (!node_check(&t->n))
        exit(EXIT_FAILURE);
}

void node_timer_prepare(node_timer *t, const qi_fast *fast, const qi_isa *isa)
{
    const qi_model *m = &t->n.model;
    const qi_node *node = &t->n.node;
    check(t);
    if (!fast->accepts(isa, m, node)) {
        fprintf(stderr, "%s has no %s\n", isa->name, fast->kernel->name);
        exit(EXIT_FAILURE);
    }
    void *packed = fast->packed_bytes ? aligned(fast->packed_bytes(isa, m, node)) : NULL;
    if (packed)
        fast->pack(isa, m, node, packed);
    prepare(t, fast->scratch ? fast->scratch(isa, m, node) : 0);
    t->fast = fast;
    t->call.isa = isa;
    t->call.packed = packed;
    t->tiles = fast->tiles(isa, m, node);
}

void node_timer_prepare_core(node_timer *t)
{
    const qi_kernel *kernel = t->n.node.kernel;
    check(t);
    prepare(t, kernel->scratch ? kernel->scratch(&t->n.model, &t->n.node) : 0);
}

static void run_once(node_timer *t)
{
    void *out[] = {t->call.out};
    qi_call const call = {&t->n.model, &t->n.node, t->call.in, out, t->call.scratch};
    if (t->fast)
        qi_fast_run_tiles(t->fast, &t->call, 0, t->tiles);
    else
        t->n.node.kernel->run(&call);
}

void node_timer_run(node_timer *t)
{
    double const start = now();
    run_once(t);
    double const took = now() - start;
    t->best = took < t->best ? took : t->best;
}

const qi_isa *node_timer_isa(const char *name)
{
    const qi_isa *isa;
    for (int i = 0; (isa = qi_isa_entry(i)); i++)
        if (name ? strcmp(isa->name, name) == 0 : isa->runs_here())
            return isa;
    fprintf(stderr, "no instruction set %s\n", name);
    exit(EXIT_FAILURE);
}
