/**
 * Integer forward of ops without weights (add, pool, softmax, table ..) with the engine's inner
 * loops. If the integer graph of a layer is one op, it becomes a model of one node in memory, for
 * the whole batch.
 */
#include "base/arena.h"
#include "base/parallel.h"
#include "infer/host/parts.h"
#include "live/live.h"

#include <string.h>

/** The op of a layer in the form that the engine needs. */
struct fwd_fast {
    const fwd_graph *f;
    const qi_fast *fast;
    qi_model model;
    qi_node node;
    int32_t inputs[QI_FAST_MAX_INPUTS], output;
    qi_fast_call call;
    size_t thread_scratch;
};

/** The first dimension of an activation is the batch. */
static qi_tensor tensor_of(const qat_qtensor *t, int batch)
{
    qi_tensor to = {.name = t->name,
                    .type = (uint8_t)t->type,
                    .kind = t->data ? QI_CONSTANT : QI_ACTIVATION,
                    .rank = (uint8_t)t->rank,
                    .bits = (uint8_t)t->bits,
                    .zero_point = t->zero_point,
                    .channel_scales = -1,
                    .source_index = -1,
                    .bytes = qat_qtensor_bytes(t),
                    .data = t->data};
    memcpy(to.dims, t->dims, sizeof to.dims);
    if (!t->data) {
        to.dims[0] = batch;
        to.bytes *= (size_t)batch;
    }
    return to;
}

/** Is it one op, whose activations all have the batch in the same place? */
static bool is_simple(const qat_qgraph *g)
{
    const qat_qop *op = g->ops;
    if (g->n_ops != 1 || op->n_outputs != 1 || op->n_inputs > QI_FAST_MAX_INPUTS)
        return false;
    for (int i = 0; i < op->n_inputs; i++) {
        const qat_qtensor *t = &g->tensors[op->inputs[i]];
        if (!t->data && (t->rank != g->tensors[op->outputs[0]].rank || t->dims[0] != 1))
            return false;
    }
    return true;
}

static bool describe(fwd_fast *o, const qat_qgraph *g, int batch)
{
    const qat_qop *op = g->ops;
    const qi_op *row = qi_op_named(op->op);
    qi_tensor *tensors = qat_arena_array(g->memory, (size_t)g->n_tensors, sizeof *tensors);
    for (int i = 0; tensors && i < g->n_tensors; i++)
        tensors[i] = tensor_of(&g->tensors[i], batch);
    for (int i = 0; i < op->n_inputs; i++)
        o->inputs[i] = op->inputs[i];
    o->output = op->outputs[0];
    o->node = (qi_node){.kernel = row ? row->kernel : NULL,
                        .name = op->name,
                        .inputs = o->inputs,
                        .outputs = &o->output,
                        .params = op->params,
                        .n_inputs = op->n_inputs,
                        .n_outputs = 1,
                        .n_params = op->n_params,
                        .rounding = op->rounding,
                        .fraction = op->fraction,
                        .max_accumulator = op->max_accumulator};
    o->model = (qi_model){.tensors = tensors, .nodes = &o->node};
    o->model.n_tensors = g->n_tensors;
    o->model.n_nodes = 1;
    o->call.model = &o->model;
    o->call.node = &o->node;
    return tensors;
}

/** Find a driver for it. */
static bool find_driver(fwd_fast *o)
{
    const qi_isa *isa = o->call.isa = qi_host_parts()->isa_best();
    qi_error err;
    if (!o->node.kernel || o->node.kernel->check(&o->model, &o->node, 0, &err))
        return false;
    o->fast = qi_host_parts()->fast_for(isa, &o->model, &o->node);
    if (o->fast && o->fast->scratch)
        o->thread_scratch = (o->fast->scratch(isa, &o->model, &o->node) + QI_FAST_ALIGN - 1) /
                            QI_FAST_ALIGN * QI_FAST_ALIGN;
    return o->fast != NULL;
}

/**
 * Make what the driver needs in this step, such as tables of answers. For a few values that is not
 * worth its time if the driver can do without. Returns false if out of memory.
 */
static bool pack(fwd_fast *o)
{
    enum { FEW_VALUES = 4096 };
    const qi_isa *isa = o->call.isa;
    if (!o->fast->packed_bytes)
        return true;
    size_t const bytes = o->fast->packed_bytes(isa, &o->model, &o->node) + QI_SLACK;
    void *packed = qat_arena_take(o->f->frozen->memory, bytes);
    if (packed && o->fast->zeros_do && o->model.tensors[o->output].bytes < FEW_VALUES)
        memset(packed, 0, bytes);
    else if (packed)
        o->fast->pack(isa, &o->model, &o->node, packed);
    o->call.packed = packed;
    return packed;
}

fwd_fast *fwd_fast_make(fwd_graph *f, int batch)
{
    fwd_fast *o = is_simple(f->frozen) ? qat_arena_take(f->frozen->memory, sizeof *o) : NULL;
    if (!o)
        return NULL;
    o->f = f;
    bool const ok = describe(o, f->frozen, batch) && find_driver(o) && pack(o) &&
                    fwd_reserve(f, o->thread_scratch);
    return ok ? o : NULL;
}

/** Point to the constants in the graph, and to the inputs that the caller gives. */
static void point(fwd_fast *o, const void *const *codes, uint8_t *out)
{
    const qat_qgraph *g = o->f->frozen;
    for (int i = 0; i < o->node.n_inputs; i++)
        o->call.in[i] = g->tensors[o->inputs[i]].data;
    for (int k = 0; k < g->n_inputs; k++)
        for (int i = 0; i < o->node.n_inputs; i++)
            if (o->inputs[i] == g->inputs[k])
                o->call.in[i] = codes[k];
    o->call.out = out;
}

static void run_tile(void *context, int tile, int thread)
{
    const fwd_fast *o = context;
    qi_fast_call call = o->call;
    if (o->thread_scratch)
        call.scratch = (char *)o->f->scratch + (size_t)thread * o->thread_scratch;
    qi_fast_run_tiles(o->fast, &call, tile, tile + 1);
}

void fwd_fast_run(fwd_fast *o, const void *const *codes, uint8_t *out)
{
    point(o, codes, out);
    qat_parallel(o->fast->tiles(o->call.isa, &o->model, &o->node), run_tile, o);
}
