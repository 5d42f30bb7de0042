/**
 * Runs a model on a host. Node after node, the tiles are spread over threads.
 *
 *   thread 0   inputs | tiles 0..k-1 of node 0 | barrier | tiles of node 1 ..   | visit, outputs
 *   thread 1          | tiles k..n-1 of node 0 | barrier | tiles of node 1 ..   |
 *
 * A thread takes one contiguous range of a node's tiles. So it finds in its own cache what it wrote
 * in the node before. One parallel region lasts a whole run. Between nodes threads spin at a
 * barrier, which costs less than waking a thread. A node without a driver runs on thread 0.
 */
#include "infer/host/fast.h"
#include "infer/host/gemm.h"
#include "infer/op.h"

#include <sched.h>
#include <stdatomic.h>
#ifdef _OPENMP
#include <omp.h>
#endif

/** One run. */
struct run {
    const qi_model *model;
    const qi_steps *steps;
    void *arena;
    int threads;
    int patience;              /* pauses at a barrier before a thread gives up the processor */
    atomic_int arrived, round; /* of the barrier */
    qi_visit *visit;
    void *context;
};

/* ------------------------------------------------------------------ barrier */

/**
 * How long a thread spins. If each thread has its own processor: longer than the shares of a node
 * differ, about 50 microseconds. Otherwise the thread that is waited for may need this processor.
 */
static int patience_of(int threads)
{
    enum { PAUSES = 4000 };
#ifdef _OPENMP
    return threads <= omp_get_num_procs() ? PAUSES : 0;
#else
    return threads > 1 ? 0 : PAUSES;
#endif
}

static void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/** Returns when all threads of the run have called it as often as this one. */
static void wait_for_all(struct run *r)
{
    if (r->threads == 1)
        return;
    int const round = atomic_load_explicit(&r->round, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&r->arrived, 1, memory_order_acq_rel) == r->threads - 1) {
        atomic_store_explicit(&r->arrived, 0, memory_order_relaxed);
        atomic_store_explicit(&r->round, round + 1, memory_order_release);
        return;
    }
    for (int spins = 0; atomic_load_explicit(&r->round, memory_order_acquire) == round; spins++) {
        if (spins < r->patience)
            pause_briefly();
        else
            sched_yield();
    }
}

/* ------------------------------------------------------------------ nodes */

static qi_fast_call call_of(const struct run *r, const qi_node *node, const qi_step *step,
                            int thread)
{
    uint8_t *scratch = (uint8_t *)r->arena + node->scratch_offset;
    qi_fast_call call = {.isa = r->steps->isa,
                         .model = r->model,
                         .node = node,
                         .out = qi_tensor_bytes_in(r->model, r->arena, node->outputs[0]),
                         .packed = step->packed,
                         .scratch = scratch + (size_t)thread * step->thread_scratch};
    for (int32_t i = 0; i < node->n_inputs; i++)
        call.in[i] = qi_tensor_bytes_in(r->model, r->arena, node->inputs[i]);
    return call;
}

/** Run this thread's share of a node: tiles first..end-1. Shares differ by at most one tile. */
static void run_share(const struct run *r, int32_t index, int thread)
{
    const qi_node *node = &r->model->nodes[index];
    const qi_step *step = &r->steps->steps[index];
    if (!step->fast) {
        if (thread == 0)
            qi_run_node(r->model, node, r->arena);
        return;
    }
    qi_fast_call const call = call_of(r, node, step, thread);
    int64_t const tiles = step->tiles;
    int32_t const first = (int32_t)(tiles * thread / r->threads);
    int32_t const end = (int32_t)(tiles * (thread + 1) / r->threads);
    qi_fast_run_tiles(step->fast, &call, first, end);
}

static void visit_outputs(const struct run *r, int32_t index)
{
    const qi_node *node = &r->model->nodes[index];
    for (int32_t j = 0; j < node->n_outputs; j++)
        r->visit(r->context, r->model, node->outputs[j],
                 qi_tensor_bytes_in(r->model, r->arena, node->outputs[j]));
}

/** Run all nodes, as one of the threads. */
static void run_as(struct run *r, int thread)
{
    for (int32_t i = 0; i < r->model->n_nodes; i++) {
        if (r->steps->steps[i].unread && !r->visit)
            continue;
        run_share(r, i, thread);
        wait_for_all(r);
        if (!r->visit)
            continue;
        if (thread == 0)
            visit_outputs(r, i);
        wait_for_all(r);
    }
}

static void run_nodes(struct run *r)
{
#ifdef _OPENMP
    if (r->steps->threads > 1) {
#pragma omp parallel num_threads(r->steps->threads)
        {
#pragma omp single
            r->threads = omp_get_num_threads(); /* the system may grant fewer */
            run_as(r, omp_get_thread_num());
        }
        return;
    }
#endif
    run_as(r, 0);
}

void qi_host_run_visit(const qi_host *host, void *arena, const void *const *inputs,
                       void *const *outputs, qi_visit *visit, void *context)
{
    struct run r = {.model = host->model,
                    .steps = host->steps,
                    .arena = arena ? arena : host->arena,
                    .threads = 1,
                    .patience = patience_of(host->threads),
                    .visit = visit,
                    .context = context};
    qi_put_inputs(r.model, r.arena, inputs);
    for (int32_t i = 0; visit && i < r.model->n_inputs; i++)
        visit(context, r.model, r.model->inputs[i],
              qi_tensor_bytes_in(r.model, r.arena, r.model->inputs[i]));
    run_nodes(&r);
    qi_get_outputs(r.model, r.arena, outputs);
}

void qi_host_run(const qi_host *host, const void *const *inputs, void *const *outputs)
{
    qi_host_run_visit(host, NULL, inputs, outputs, NULL, NULL);
}

int qi_host_node_is_fast(const qi_host *host, int32_t node)
{
    return host->steps->steps[node].fast != NULL;
}

const char *qi_host_node_sequence(const qi_host *host, int32_t node)
{
    const qi_step *step = &host->steps->steps[node];
    const qi_gemm *gemm = host->steps->isa->gemm;
    int const is_product = step->fast == &qi_fast_conv2d || step->fast == &qi_fast_fully_connected;
    return is_product && step->packed && gemm->sequence ? gemm->sequence(step->packed) : NULL;
}
