/**
 * Integer forward of ops without weights (add, pool, softmax, table ..) with the engine's inner
 * loops. If the integer graph of a layer is one op, it becomes a model of one node in memory, for
 * the whole batch.
 */
#include "base/arena.h"
#include "base/parallel.h"
#include "infer/host/parts.h"
#include "live/live.h"

#include <stdlib.h>
#include <string.h>

/** The op of a layer in the form that the engine needs. */
struct fast_op {
    const qi_fast *fast;
    qi_model model;
    qi_node node;
    int32_t inputs[QI_FAST_MAX_INPUTS], output;
    qi_fast_call call;
    void *packed;
    char *scratch; /* of all threads */
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

static void describe(struct fast_op *o, const qat_qgraph *g, qi_tensor *tensors, int batch)
{
    const qat_qop *op = g->ops;
    const qi_op *row = qi_op_named(op->op);
    for (int i = 0; i < g->n_tensors; i++)
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
                        .max_accumulator = op->max_accumulator};
    o->model = (qi_model){.tensors = tensors, .nodes = &o->node};
    o->model.n_tensors = g->n_tensors;
    o->model.n_nodes = 1;
}

/** Find a driver for it. */
static bool find_driver(struct fast_op *o)
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

/** Make the tables of this step if the op looks answers up. Returns false if out of memory. */
static bool pack(struct fast_op *o)
{
    const qi_isa *isa = o->call.isa;
    if (!o->fast->packed_bytes)
        return true;
    o->packed = qat_aligned_alloc(o->fast->packed_bytes(isa, &o->model, &o->node) + QI_SLACK);
    if (o->packed)
        o->fast->pack(isa, &o->model, &o->node, o->packed);
    o->call.packed = o->packed;
    return o->packed != NULL;
}

/** Point to the constants in the graph, and to the inputs that the caller gives. */
static void point(struct fast_op *o, const qat_qgraph *g, const void *const *codes, uint8_t *out)
{
    for (int i = 0; i < o->node.n_inputs; i++)
        o->call.in[i] = g->tensors[o->inputs[i]].data;
    for (int k = 0; k < g->n_inputs; k++)
        for (int i = 0; i < o->node.n_inputs; i++)
            if (o->inputs[i] == g->inputs[k])
                o->call.in[i] = codes[k];
    o->call.out = out;
    o->call.model = &o->model;
    o->call.node = &o->node;
}

static void run_tile(void *context, int tile, int thread)
{
    const struct fast_op *o = context;
    qi_fast_call call = o->call;
    if (o->thread_scratch)
        call.scratch = o->scratch + (size_t)thread * o->thread_scratch;
    qi_fast_run_tiles(o->fast, &call, tile, tile + 1);
}

bool fwd_run_fast(fwd_graph *f, const qat_qgraph *g, const void *const *codes, uint8_t *out,
                  int batch)
{
    struct fast_op o = {0};
    qi_tensor *tensors = is_simple(g) ? calloc((size_t)g->n_tensors, sizeof *tensors) : NULL;
    if (!tensors)
        return false;
    describe(&o, g, tensors, batch);
    bool const ok =
        find_driver(&o) && pack(&o) && fwd_reserve(f, o.thread_scratch * (size_t)qat_threads());
    if (ok) {
        o.scratch = f->scratch;
        point(&o, g, codes, out);
        qat_parallel(o.fast->tiles(o.call.isa, &o.model, &o.node), run_tile, &o);
    }
    qat_aligned_free(o.packed);
    free(tensors);
    return ok;
}
