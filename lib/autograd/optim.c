/**
 * Optimizers: elementwise updates of every trainable parameter, in tiles of fixed size.
 *
 * One block holds all state: for each slot, every trainable parameter in the graph's order, each
 * at a multiple of 64 bytes.
 *
 *     slot 0: | conv1/weights | conv1/bias | ... |   slot 1 (Adam): | conv1/weights | ...
 */
#include "autograd/core.h"
#include "autograd/real.h"
#include "base/parallel.h"

#include <stdlib.h>

enum { TILE = 16384, MAX_SLOTS = 2 };

struct qat_optimizer {
    qat_graph *graph;
    qat_optimizer_options options;
    int64_t steps;
    int n_slots;
    size_t slot_values; /* values of one slot, padding included */
    size_t *offsets;    /* by node index: a parameter's place in a slot; SIZE_MAX: has none */
    qat_real *state;
};

/** One parameter's update, as its tiles see it. */
typedef struct update {
    qat_real *w, *slot[MAX_SLOTS];
    const qat_real *g;
    size_t count;
    qat_real rate, decay, momentum, beta1, beta2, epsilon;
    qat_real unbias1, unbias2; /* Adam: 1 / (1 - beta^t) */
    bool nesterov;
} update;

qat_optimizer_options qat_optimizer_defaults(qat_optimizer_kind kind)
{
    return (qat_optimizer_options){.kind = kind,
                                   .momentum = 0.9,
                                   .beta1 = 0.9,
                                   .beta2 = 0.999,
                                   .epsilon = kind == QAT_OPTIMIZER_ADAM ? 1e-8 : 0};
}

/* ------------------------------------------------------------------ creation */

static bool fraction(double x)
{
    return x >= 0 && x < 1;
}

static qat_status check_options(const qat_optimizer_options *o, qat_error *err)
{
    if (o->kind != QAT_OPTIMIZER_SGD && o->kind != QAT_OPTIMIZER_ADAM)
        return qat_fail(err, QAT_ERR_ARGUMENT, "unknown optimizer %d", (int)o->kind);
    if (!(o->weight_decay >= 0) || !isfinite(o->weight_decay))
        return qat_fail(err, QAT_ERR_ARGUMENT, "weight decay %g is not a finite number >= 0",
                        o->weight_decay);
    if (o->kind == QAT_OPTIMIZER_SGD && !fraction(o->momentum))
        return qat_fail(err, QAT_ERR_ARGUMENT, "momentum %g is outside [0, 1)", o->momentum);
    if (o->kind == QAT_OPTIMIZER_ADAM && (!fraction(o->beta1) || !fraction(o->beta2)))
        return qat_fail(err, QAT_ERR_ARGUMENT, "beta1 %g or beta2 %g is outside [0, 1)", o->beta1,
                        o->beta2);
    if (o->kind == QAT_OPTIMIZER_ADAM && (!(o->epsilon > 0) || !isfinite(o->epsilon)))
        return qat_fail(err, QAT_ERR_ARGUMENT, "epsilon %g is not a finite number > 0", o->epsilon);
    return QAT_OK;
}

/** Give every trainable parameter its place; offsets come zeroed. */
static void lay_out(qat_optimizer *o)
{
    size_t const align = 64 / sizeof(qat_real);
    for (int i = 0; i < o->graph->count; i++) {
        const qat_node *node = &o->graph->nodes[i]->node;
        o->offsets[i] = SIZE_MAX;
        if (!node->is_param || !node->trainable)
            continue;
        o->offsets[i] = o->slot_values;
        o->slot_values += (qat_shape_count(&node->shape) + align - 1) / align * align;
    }
}

static qat_status allocate(qat_optimizer *o, qat_error *err)
{
    size_t const nodes = (size_t)o->graph->count;
    o->offsets = calloc(nodes ? nodes : 1, sizeof *o->offsets);
    if (!o->offsets)
        return qat_fail(err, QAT_ERR_NOMEM, "no memory for an optimizer");
    lay_out(o);
    size_t const bytes = (size_t)o->n_slots * o->slot_values * sizeof(qat_real);
    o->state = qat_aligned_alloc(bytes);
    return o->state ? QAT_OK : qat_fail(err, QAT_ERR_NOMEM, "the optimizer needs %zu bytes", bytes);
}

qat_status qat_optimizer_create(qat_optimizer **optimizer, qat_graph *graph,
                                const qat_optimizer_options *options, qat_error *err)
{
    *optimizer = NULL;
    qat_status st = check_options(options, err);
    if (!st && (!graph->planned || graph->plan != QAT_PLAN_TRAIN))
        st = qat_fail(err, QAT_ERR_STATE, "an optimizer needs a graph planned for training");
    if (st)
        return st;
    qat_optimizer *o = calloc(1, sizeof *o);
    if (!o)
        return qat_fail(err, QAT_ERR_NOMEM, "no memory for an optimizer");
    o->graph = graph;
    o->options = *options;
    o->n_slots = options->kind == QAT_OPTIMIZER_ADAM ? 2 : 1;
    st = allocate(o, err);
    if (st) {
        qat_optimizer_free(o);
        return st;
    }
    *optimizer = o;
    return QAT_OK;
}

void qat_optimizer_free(qat_optimizer *optimizer)
{
    if (!optimizer)
        return;
    qat_aligned_free(optimizer->state);
    free(optimizer->offsets);
    free(optimizer);
}

/* ------------------------------------------------------------------ steps */

/** v = momentum v + g; w -= rate v, or with Nesterov's look ahead w -= rate (g + momentum v) */
static void sgd(const update *u, size_t from, size_t to)
{
    qat_real *v = u->slot[0];
    for (size_t i = from; i < to; i++) {
        qat_real const g = u->g[i] + u->decay * u->w[i];
        v[i] = u->momentum * v[i] + g;
        u->w[i] -= u->rate * (u->nesterov ? g + u->momentum * v[i] : v[i]);
    }
}

/** Kingma and Ba, algorithm 1. */
static void adam(const update *u, size_t from, size_t to)
{
    qat_real *m = u->slot[0], *v = u->slot[1];
    for (size_t i = from; i < to; i++) {
        qat_real const g = u->g[i] + u->decay * u->w[i];
        m[i] = u->beta1 * m[i] + (1 - u->beta1) * g;
        v[i] = u->beta2 * v[i] + (1 - u->beta2) * g * g;
        u->w[i] -= u->rate * (m[i] * u->unbias1) / (QAT_SQRT(v[i] * u->unbias2) + u->epsilon);
    }
}

static void update_tile(void *context, int tile, int thread)
{
    const update *u = context;
    size_t const from = (size_t)tile * TILE;
    size_t const to = u->count - from < TILE ? u->count : from + TILE;
    if (u->slot[1])
        adam(u, from, to);
    else
        sgd(u, from, to);
}

void qat_optimizer_step(qat_optimizer *optimizer, double learning_rate)
{
    const qat_optimizer_options *o = &optimizer->options;
    double const t = (double)++optimizer->steps;
    update u = {.rate = (qat_real)learning_rate,
                .momentum = (qat_real)o->momentum,
                .beta1 = (qat_real)o->beta1,
                .beta2 = (qat_real)o->beta2,
                .epsilon = (qat_real)o->epsilon,
                .unbias1 = (qat_real)(1 / (1 - pow(o->beta1, t))),
                .unbias2 = (qat_real)(1 / (1 - pow(o->beta2, t))),
                .nesterov = o->nesterov};
    for (int i = 0; i < optimizer->graph->count; i++) {
        qat_node *node = &optimizer->graph->nodes[i]->node;
        if (optimizer->offsets[i] == SIZE_MAX)
            continue;
        u.w = node->value;
        u.g = node->grad;
        u.count = qat_shape_count(&node->shape);
        u.decay = node->decay ? (qat_real)o->weight_decay : 0;
        for (int s = 0; s < MAX_SLOTS; s++)
            u.slot[s] = qat_optimizer_slot(optimizer, node, s);
        qat_parallel((int)((u.count + TILE - 1) / TILE), update_tile, &u);
    }
}

/* ------------------------------------------------------------------ state */

int qat_optimizer_slots(const qat_optimizer *optimizer)
{
    return optimizer->n_slots;
}

qat_real *qat_optimizer_slot(const qat_optimizer *optimizer, const qat_node *param, int slot)
{
    size_t const offset = optimizer->offsets[param->index];
    if (slot < 0 || slot >= optimizer->n_slots || offset == SIZE_MAX)
        return NULL;
    return optimizer->state + (size_t)slot * optimizer->slot_values + offset;
}

int64_t qat_optimizer_steps(const qat_optimizer *optimizer)
{
    return optimizer->steps;
}

void qat_optimizer_set_steps(qat_optimizer *optimizer, int64_t steps)
{
    optimizer->steps = steps;
}
