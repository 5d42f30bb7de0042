/**
 * Runs a model on a host: node after node, whose tiles are spread over threads. One job of the pool
 * lasts a whole run, a round of it is a node. A thread takes one contiguous range of a node's
 * tiles, so it finds in its own cache what it wrote in the node before. A node without a driver is
 * one part. A share is one piece: some drivers load weights once for all tiles that they are given.
 */
#include "infer/host/host.h"
#include "infer/host/loops/gemm.h"
#include "infer/host/pool.h"
#include "infer/model/op.h"

/** One run. */
struct run {
    const qi_model *model;
    const qi_steps *steps;
    void *arena;
    int32_t only; /* the node to run, or -1: all that are read */
};

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

/** The first tile of a part. Parts differ by at most one tile. */
static int32_t tile_of(const struct run *r, const qi_step *step, int32_t part)
{
    return (int32_t)((int64_t)step->tiles * part / r->steps->threads);
}

/** Run some parts of a node. */
static void run_parts(void *context, int32_t round, int32_t part, int32_t end_part, int thread)
{
    const struct run *r = context;
    int32_t const index = r->only < 0 ? r->steps->steps[round].order : r->only;
    const qi_node *node = &r->model->nodes[index];
    const qi_step *step = &r->steps->steps[index];
    if (!step->fast) {
        if (part == 0)
            qi_run_node(r->model, node, r->arena);
        return;
    }
    int32_t const first = tile_of(r, step, part), end = tile_of(r, step, end_part);
    if (first == end)
        return;
    qi_fast_call const call = call_of(r, node, step, thread);
    qi_fast_run_tiles(step->fast, &call, first, end);
}

static void run_nodes(struct run *r, int32_t only)
{
    r->only = only;
    qi_pool_run(&(qi_pool_job){.fn = run_parts,
                               .context = r,
                               .rounds = only < 0 ? r->steps->n_read : 1,
                               .threads = r->steps->threads,
                               .pieces = 1});
}

static void visit_outputs(const struct run *r, const qi_node *node, qi_visit *visit, void *context)
{
    for (int32_t j = 0; j < node->n_outputs; j++)
        visit(context, r->model, node->outputs[j],
              qi_tensor_bytes_in(r->model, r->arena, node->outputs[j]));
}

/** A visitor is called by the thread that runs the model: each node is a job of its own. */
static void run_visited(struct run *r, qi_visit *visit, void *context)
{
    const qi_model *m = r->model;
    for (int32_t i = 0; i < m->n_inputs; i++)
        visit(context, m, m->inputs[i], qi_tensor_bytes_in(m, r->arena, m->inputs[i]));
    for (int32_t i = 0; i < m->n_nodes; i++) {
        run_nodes(r, i);
        visit_outputs(r, &m->nodes[i], visit, context);
    }
}

void qi_host_run_visit(const qi_host *host, void *arena, const void *const *inputs,
                       void *const *outputs, qi_visit *visit, void *context)
{
    struct run r = {
        .model = host->model, .steps = host->steps, .arena = arena ? arena : host->arena};
    qi_put_inputs(r.model, r.arena, inputs);
    if (visit)
        run_visited(&r, visit, context);
    else
        run_nodes(&r, -1);
    qi_carry_on(r.model, r.arena);
    qi_get_outputs(r.model, r.arena, outputs);
}

void qi_host_run(const qi_host *host, const void *const *inputs, void *const *outputs)
{
    qi_host_run_visit(host, NULL, inputs, outputs, NULL, NULL);
}

void qi_host_reset(const qi_host *host, void *arena)
{
    qi_reset(host->model, arena ? arena : host->arena);
}

const qi_model *qi_host_model(const qi_host *host)
{
    return host->model;
}

const char *qi_host_isa(const qi_host *host)
{
    return host->isa;
}

int qi_host_threads(const qi_host *host)
{
    return host->threads;
}

qi_sizes qi_host_sizes(const qi_host *host)
{
    return host->sizes;
}

int qi_host_node_is_fast(const qi_host *host, int32_t node)
{
    return host->steps->steps[node].fast != NULL;
}

const char *qi_host_node_sequence(const qi_host *host, int32_t node)
{
    const qi_step *step = &host->steps->steps[node];
    const qi_gemm *gemm = host->steps->isa->gemm;
    if (!step->fast || !step->fast->product || !step->packed || !gemm->sequence)
        return NULL;
    return gemm->sequence(step->fast->product(step->packed));
}
