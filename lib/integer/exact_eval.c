/**
 * Exact evaluation of an integer graph. It runs one op after the other and keeps every activation.
 * An op is run as the row in its family's file says or, if it is custom, by the function in the
 * registry.
 */
#include "base/arena.h"
#include "integer/quant_ops.h"

#include <string.h>

#define POINTER(name) &qat_integer_##name,
static const qat_integer_op *const rows[] = {QAT_INTEGER_OPS(POINTER)};

const qat_integer_op *qat_integer_op_named(const char *name)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i]->name, name) == 0)
            return rows[i];
    return NULL;
}

/** How an op is evaluated: the whole batch, or sample by sample. */
struct evaluation {
    qat_exact_fn *exact;
    qat_exact_sample_fn *sample;
};

struct qat_exact {
    qat_arena memory; /* of all that follows, if it is its own */
    const qat_qgraph *graph;
    int max_batch;
    struct evaluation *fns; /* by op */
    void **activations;     /* by tensor: max_batch samples; NULL: a constant */
    const void **in;        /* of the running op */
    void **out;
    qat_requantize_fn *requantize;
};

/** Find the function for an op with a custom integer kernel in the registry. */
static qat_exact_fn *find_custom(const qat_registry *registry, const char *op)
{
    for (int i = 0; registry && i < qat_registry_count(registry); i++) {
        const qat_quant *quant = qat_registry_at(registry, i)->quant;
        if (quant && quant->exact_op && quant->exact && strcmp(quant->exact_op, op) == 0)
            return quant->exact;
    }
    return NULL;
}

/** Has the op as many inputs and parameters as its row in the engine names? */
static qat_status check_counts(const qat_qop *op, qat_error *err)
{
    const qi_op *row = qi_op_named(op->op);
    int inputs = 0, params = 0;
    while (row->inputs[inputs])
        inputs++;
    while (row->params[params].name)
        params++;
    if (op->n_params == params && op->n_inputs >= inputs && op->n_outputs == 1)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_ARGUMENT,
                    "%s: op %s has %d inputs, %d outputs, %d parameters; %d, 1, %d are needed",
                    op->name, op->op, op->n_inputs, op->n_outputs, op->n_params, inputs, params);
}

/** Of some ops only 8-bit codes are evaluated. */
static qat_status check_types(const qat_qgraph *graph, const qat_qop *op, const qat_integer_op *row,
                              qat_error *err)
{
    bool is_wide = false;
    for (int i = 0; i < op->n_inputs; i++)
        is_wide |= graph->tensors[op->inputs[i]].type == QI_S16;
    for (int i = 0; i < op->n_outputs; i++)
        is_wide |= graph->tensors[op->outputs[i]].type == QI_S16;
    if (!is_wide || row->is_wide)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_UNSUPPORTED, "%s: exact evaluation of %s on 16-bit codes",
                    op->name, op->op);
}

static qat_status find_fn(const qat_qgraph *graph, const qat_qop *op, const qat_registry *registry,
                          struct evaluation *fn, qat_error *err)
{
    const qat_integer_op *row = qat_integer_op_named(op->op);
    *fn = row ? (struct evaluation){row->exact, row->sample}
              : (struct evaluation){.exact = find_custom(registry, op->op)};
    if (row) {
        qat_status const st = check_counts(op, err);
        return st ? st : check_types(graph, op, row, err);
    }
    if (fn->exact)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_UNSUPPORTED,
                    "%s: no exact evaluation of the integer op %s is registered", op->name, op->op);
}

static qat_status allocate_activations(qat_exact *e, qat_arena *memory, qat_error *err)
{
    for (int i = 0; i < e->graph->n_tensors; i++) {
        const qat_qtensor *t = &e->graph->tensors[i];
        size_t const bytes = qat_qtensor_bytes(t);
        if (t->data)
            continue;
        e->activations[i] = qat_arena_array(memory, bytes, (size_t)e->max_batch);
        if (!e->activations[i])
            return qat_out_of_memory(err, t->name);
        if (t->is_state) /* every run is the first after a reset */
            memset(e->activations[i], t->type == QI_S16 ? 0 : t->zero_point,
                   bytes * (size_t)e->max_batch);
    }
    return QAT_OK;
}

/** Allocate arrays by tensor and by op, and pointers for the op with the most inputs or outputs. */
static qat_status allocate_tables(qat_exact *e, qat_arena *memory, qat_error *err)
{
    int in = 1, out = 1;
    for (int i = 0; i < e->graph->n_ops; i++) {
        const qat_qop *op = &e->graph->ops[i];
        in = op->n_inputs > in ? op->n_inputs : in;
        out = op->n_outputs > out ? op->n_outputs : out;
    }
    e->fns = qat_arena_array(memory, (size_t)e->graph->n_ops, sizeof *e->fns);
    e->activations = qat_arena_array(memory, (size_t)e->graph->n_tensors, sizeof *e->activations);
    e->in = qat_arena_array(memory, (size_t)in, sizeof *e->in);
    e->out = qat_arena_array(memory, (size_t)out, sizeof *e->out);
    if (e->fns && e->activations && e->in && e->out)
        return QAT_OK;
    return qat_out_of_memory(err, "exact evaluation");
}

qat_status qat_exact_create_in(qat_exact **exact, qat_arena *memory, const qat_qgraph *graph,
                               const qat_registry *registry, int max_batch, qat_error *err)
{
    *exact = NULL;
    if (max_batch < 1)
        return qat_fail(err, QAT_ERR_ARGUMENT, "exact evaluation: a batch of %d", max_batch);
    qat_exact *e = qat_arena_take(memory, sizeof *e);
    if (!e)
        return qat_out_of_memory(err, "exact evaluation");
    e->graph = graph;
    e->max_batch = max_batch;
    qat_status st = allocate_tables(e, memory, err);
    for (int i = 0; !st && i < graph->n_ops; i++)
        st = find_fn(graph, &graph->ops[i], registry, &e->fns[i], err);
    if (!st)
        st = allocate_activations(e, memory, err);
    if (!st)
        *exact = e;
    return st;
}

qat_status qat_exact_create(qat_exact **exact, const qat_qgraph *graph,
                            const qat_registry *registry, int max_batch, qat_error *err)
{
    qat_arena memory = {0};
    qat_status const st = qat_exact_create_in(exact, &memory, graph, registry, max_batch, err);
    if (st)
        qat_arena_free(&memory);
    else
        (*exact)->memory = memory;
    return st;
}

void qat_exact_free(qat_exact *exact)
{
    if (!exact)
        return;
    qat_arena memory = exact->memory; /* exact is in it */
    qat_arena_free(&memory);
}

static qat_status run_op(qat_exact *e, int i, int batch, qat_error *err)
{
    const qat_qop *op = &e->graph->ops[i];
    for (int k = 0; k < op->n_inputs; k++)
        e->in[k] = qat_exact_tensor(e, op->inputs[k]);
    for (int k = 0; k < op->n_outputs; k++)
        e->out[k] = e->activations[op->outputs[k]];
    qat_exact_call const call = {e->graph, op, batch, e->in, e->out, e->requantize};
    if (e->fns[i].exact)
        return e->fns[i].exact(&call, err);
    qat_exact_each(&call, e->fns[i].sample);
    return QAT_OK;
}

qat_status qat_exact_run(qat_exact *exact, const void *const *inputs, int batch, qat_error *err)
{
    const qat_qgraph *g = exact->graph;
    if (batch < 1 || batch > exact->max_batch)
        return qat_fail(err, QAT_ERR_ARGUMENT, "exact evaluation: a batch of %d, of at most %d",
                        batch, exact->max_batch);
    for (int i = 0; i < g->n_inputs; i++)
        memcpy(exact->activations[g->inputs[i]], inputs[i],
               (size_t)batch * qat_qtensor_bytes(&g->tensors[g->inputs[i]]));
    qat_status st = QAT_OK;
    for (int i = 0; !st && i < g->n_ops; i++)
        st = run_op(exact, i, batch, err);
    return st;
}

void qat_exact_set_requantize(qat_exact *exact, qat_requantize_fn *requantize)
{
    exact->requantize = requantize;
}

const void *qat_exact_tensor(const qat_exact *exact, int tensor)
{
    const qat_qtensor *t = &exact->graph->tensors[tensor];
    return t->data ? t->data : exact->activations[tensor];
}
