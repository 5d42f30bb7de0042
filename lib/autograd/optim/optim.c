/**
 * Optimizers make one pass over all trainable parameters, their gradients and their state.
 * Parameters are cut into tiles of fixed size, in one list that the threads share. Clipping, the
 * rule (optim_rules.c) and the average all run on a tile while it is in the cache.
 *
 * One block holds all state. Each slot has every trainable parameter in the graph's order, at a
 * multiple of 64 bytes. Averages are the last slot.
 *
 *     slot 0: | conv1/weights | conv1/bias | ... |   slot 1 (Adam): | conv1/weights | ...
 */
#include "autograd/optim/optim.h"

#include "autograd/graph/core.h"
#include "autograd/loops/real.h"
#include "autograd/loops/tiles.h"
#include "autograd/loops/vector.h"

#include <stdlib.h>
#include <string.h>

/** Values [from, from + count) of a parameter; `offset` is their place in every slot. */
typedef struct optim_tile {
    qat_node *node;
    size_t from, count, offset;
} optim_tile;

struct qat_optimizer {
    qat_graph *graph;
    qat_optimizer_options options;
    const optim_rule *rule;
    int64_t steps;
    int n_slots;        /* including averages */
    size_t slot_values; /* values of one slot, padding included */
    size_t *offsets;    /* by node index: the parameter's place in a slot; SIZE_MAX: it has none */
    double *rate_scale; /* by node index */
    int n_tiles;
    optim_tile *tiles;
    double *squares; /* by tile: the gradient's sum of squares */
    qat_real *state;
};

qat_optimizer_options qat_optimizer_defaults(qat_optimizer_kind kind)
{
    bool const rmsprop = kind == QAT_OPTIMIZER_RMSPROP;
    return (qat_optimizer_options){.kind = kind,
                                   .momentum = 0.9,
                                   .decay = 0.9,
                                   .beta1 = 0.9,
                                   .beta2 = 0.999,
                                   .epsilon = rmsprop ? 1 : 1e-8,
                                   .initial = rmsprop ? 1 : 0.1};
}

/* ------------------------------------------------------------------ options */

/** What a member must be: in [0, 1), >= 0, or > 0; and finite. */
typedef enum bound { FRACTION, NOT_NEGATIVE, POSITIVE } bound;

static bool within(double x, bound wanted)
{
    if (wanted == FRACTION)
        return x >= 0 && x < 1;
    return isfinite(x) && (wanted == POSITIVE ? x > 0 : x >= 0);
}

static unsigned bit(qat_optimizer_kind kind)
{
    return 1u << kind;
}

static qat_status check_options(const qat_optimizer_options *o, qat_error *err)
{
    static const char *const words[] = {"outside [0, 1)", "not a finite number >= 0",
                                        "not a finite number > 0"};
    unsigned const sgd = bit(QAT_OPTIMIZER_SGD), rmsprop = bit(QAT_OPTIMIZER_RMSPROP),
                   adagrad = bit(QAT_OPTIMIZER_ADAGRAD),
                   adam = bit(QAT_OPTIMIZER_ADAM) | bit(QAT_OPTIMIZER_ADAMW);
    struct {
        const char *name;
        double value;
        bound wanted;
        unsigned kinds; /* the optimizers that use it */
    } const members[] = {
        {"weight decay", o->weight_decay, NOT_NEGATIVE, ~0u},
        {"clip_norm", o->clip_norm, NOT_NEGATIVE, ~0u},
        {"clip_value", o->clip_value, NOT_NEGATIVE, ~0u},
        {"average_decay", o->average_decay, FRACTION, ~0u},
        {"momentum", o->momentum, FRACTION, sgd | rmsprop},
        {"decay", o->decay, FRACTION, rmsprop},
        {"beta1", o->beta1, FRACTION, adam},
        {"beta2", o->beta2, FRACTION, adam},
        {"epsilon", o->epsilon, POSITIVE, adam | rmsprop},
        {"initial", o->initial, POSITIVE, rmsprop | adagrad},
    };
    if ((int)o->kind < 0 || o->kind >= QAT_OPTIMIZERS)
        return qat_fail(err, QAT_ERR_ARGUMENT, "unknown optimizer %d", (int)o->kind);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if ((members[i].kinds & bit(o->kind)) && !within(members[i].value, members[i].wanted))
            return qat_fail(err, QAT_ERR_ARGUMENT, "%s %g is %s", members[i].name, members[i].value,
                            words[members[i].wanted]);
    if (o->clip_norm > 0 && o->clip_value > 0)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "clip_norm %g and clip_value %g: only one of them may be given",
                        o->clip_norm, o->clip_value);
    return QAT_OK;
}

/* ------------------------------------------------------------------ creation */

static bool is_trained(const qat_node *node)
{
    return node->is_param && node->trainable;
}

/** Give each trainable parameter its place, and count the tiles. */
static void lay_out(qat_optimizer *o)
{
    size_t const align = 64 / sizeof(qat_real);
    for (int i = 0; i < o->graph->count; i++) {
        const qat_node *node = &o->graph->nodes[i]->node;
        size_t const count = qat_shape_count(&node->shape);
        o->rate_scale[i] = 1;
        o->offsets[i] = SIZE_MAX;
        if (!is_trained(node))
            continue;
        o->offsets[i] = o->slot_values;
        o->slot_values += (count + align - 1) / align * align;
        o->n_tiles += qat_tiles_of(count, QAT_TILE_VALUES);
    }
}

static void cut_tiles(qat_optimizer *o)
{
    optim_tile *tile = o->tiles;
    for (int i = 0; i < o->graph->count; i++) {
        qat_node *node = &o->graph->nodes[i]->node;
        size_t const count = qat_shape_count(&node->shape);
        for (size_t from = 0; is_trained(node) && from < count; from += QAT_TILE_VALUES) {
            size_t const left = count - from;
            *tile++ = (optim_tile){.node = node,
                                   .from = from,
                                   .count = left < QAT_TILE_VALUES ? left : QAT_TILE_VALUES,
                                   .offset = o->offsets[i] + from};
        }
    }
}

static qat_real *slot_of(const qat_optimizer *o, int slot)
{
    return o->state + (size_t)slot * o->slot_values;
}

/** The slot of the averages, or NULL. */
static qat_real *averages_of(const qat_optimizer *o)
{
    return o->options.average_decay > 0 ? slot_of(o, o->rule->slots) : NULL;
}

static void begin_averages(const qat_optimizer *o)
{
    for (int i = 0; averages_of(o) && i < o->n_tiles; i++) {
        const optim_tile *t = &o->tiles[i];
        memcpy(averages_of(o) + t->offset, t->node->value + t->from, t->count * sizeof(qat_real));
    }
}

static void begin_state(const qat_optimizer *o)
{
    for (size_t i = 0; o->rule->has_initial && i < o->slot_values; i++)
        o->state[i] = (qat_real)o->options.initial;
    begin_averages(o);
}

/** Check the limit of the graph's registry for graph and optimizer together. */
static qat_status check_limit(const qat_optimizer *o, size_t bytes, qat_error *err)
{
    const qat_graph *graph = o->graph;
    uint64_t const limit = graph->registry ? qat_registry_memory(graph->registry) : 0;
    uint64_t const all = (uint64_t)bytes + graph->memory_bytes, mib = (uint64_t)1 << 20;
    if (!limit || all <= limit)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_LIMIT,
                    "the network and its optimizer need %llu MiB of memory, but %llu MiB are "
                    "allowed (--max-memory)",
                    (unsigned long long)((all - 1) / mib + 1),
                    (unsigned long long)((limit - 1) / mib + 1));
}

static qat_status allocate(qat_optimizer *o, qat_error *err)
{
    size_t const nodes = (size_t)o->graph->count + 1;
    o->offsets = calloc(nodes, sizeof *o->offsets);
    o->rate_scale = calloc(nodes, sizeof *o->rate_scale);
    if (!o->offsets || !o->rate_scale)
        return qat_out_of_memory(err, "optimizer");
    lay_out(o);
    o->tiles = calloc((size_t)o->n_tiles + 1, sizeof *o->tiles);
    o->squares = calloc((size_t)o->n_tiles + 1, sizeof *o->squares);
    if (!o->tiles || !o->squares)
        return qat_out_of_memory(err, "optimizer");
    cut_tiles(o);
    size_t const bytes = (size_t)o->n_slots * o->slot_values * sizeof(qat_real);
    qat_status const st = check_limit(o, bytes, err);
    if (st)
        return st;
    o->state = qat_aligned_alloc(bytes ? bytes : 1);
    if (!o->state)
        return qat_out_of_memory(err, "optimizer");
    begin_state(o);
    return QAT_OK;
}

qat_status qat_optimizer_create(qat_optimizer **optimizer, qat_graph *graph,
                                const qat_optimizer_options *options, qat_error *err)
{
    *optimizer = NULL;
    qat_status st = check_options(options, err);
    if (!st && (!graph->planned || !qat_core_trains(graph)))
        st = qat_fail(err, QAT_ERR_STATE, "an optimizer needs a graph planned for training");
    if (st)
        return st;
    qat_optimizer *o = calloc(1, sizeof *o);
    if (!o)
        return qat_out_of_memory(err, "optimizer");
    o->graph = graph;
    o->options = *options;
    o->rule = qat_optim_rule(options);
    o->n_slots = o->rule->slots + (options->average_decay > 0);
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
    free(optimizer->squares);
    free(optimizer->tiles);
    free(optimizer->rate_scale);
    free(optimizer->offsets);
    free(optimizer);
}

void qat_optimizer_set_rate_scale(qat_optimizer *optimizer, const qat_node *param, double scale)
{
    optimizer->rate_scale[param->index] = scale;
}

/* ------------------------------------------------------------------ steps */

static void squares_tile(void *context, int tile, int thread)
{
    qat_optimizer *o = context;
    const optim_tile *t = &o->tiles[tile];
    o->squares[tile] = qat_vector_squares(t->node->grad + t->from, NULL, t->count);
}

double qat_optimizer_gradient_norm(qat_optimizer *optimizer)
{
    double sum = 0;
    qat_parallel(optimizer->n_tiles, squares_tile, optimizer);
    for (int i = 0; i < optimizer->n_tiles; i++)
        sum += optimizer->squares[i];
    return sqrt(sum);
}

/** One step, as its tiles see it. */
typedef struct optim_step {
    const qat_optimizer *optimizer;
    double rate;
    optim_numbers numbers; /* except rate and weight decay, which may differ between parameters */
    qat_real clip_scale;   /* 1: gradients stay */
    qat_real average_take; /* 1 - d */
} optim_step;

static void clip(const optim_step *s, qat_real *g, size_t n)
{
    double const limit = s->optimizer->options.clip_value;
    if (limit > 0)
        qat_optim_clamp(g, (qat_real)limit, n);
    if (s->clip_scale != 1)
        qat_optim_scale(g, s->clip_scale, n);
}

static void step_tile(void *context, int tile, int thread)
{
    const optim_step *s = context;
    const qat_optimizer *o = s->optimizer;
    const optim_tile *t = &o->tiles[tile];
    qat_real *w = t->node->value + t->from, *g = t->node->grad + t->from;
    optim_numbers numbers = s->numbers;
    numbers.rate = (qat_real)(s->rate * o->rate_scale[t->node->index]);
    numbers.weight_decay = t->node->decay ? (qat_real)o->options.weight_decay : 0;
    clip(s, g, t->count);
    o->rule->update(&numbers, w, g, slot_of(o, 0) + t->offset,
                    o->rule->slots > 1 ? slot_of(o, 1) + t->offset : NULL, t->count);
    if (averages_of(o))
        qat_optim_average(averages_of(o) + t->offset, w, s->average_take, t->count);
}

/**
 * A norm that is not a number clips nothing. The step then spoils the parameters, and the error is
 * found.
 */
static qat_real clip_scale(qat_optimizer *o)
{
    double const limit = o->options.clip_norm;
    double const norm = limit > 0 ? qat_optimizer_gradient_norm(o) : 0;
    return norm > limit ? (qat_real)(limit / norm) : 1;
}

static double average_decay(const qat_optimizer_options *o, double t)
{
    double const ramp = (1 + t) / (10 + t);
    return o->average_ramp && ramp < o->average_decay ? ramp : o->average_decay;
}

void qat_optimizer_step(qat_optimizer *optimizer, double learning_rate)
{
    const qat_optimizer_options *o = &optimizer->options;
    if (optimizer->steps == 0)
        begin_averages(
            optimizer); /* parameters may have been set since the optimizer was created */
    double const t = (double)++optimizer->steps;
    optim_step s = {.optimizer = optimizer,
                    .rate = learning_rate,
                    .numbers = {.momentum = (qat_real)o->momentum,
                                .decay = (qat_real)o->decay,
                                .beta1 = (qat_real)o->beta1,
                                .beta2 = (qat_real)o->beta2,
                                .epsilon = (qat_real)o->epsilon,
                                .unbias1 = (qat_real)(1 / (1 - pow(o->beta1, t))),
                                .unbias2 = (qat_real)(1 / (1 - pow(o->beta2, t)))},
                    .clip_scale = clip_scale(optimizer),
                    .average_take = (qat_real)(1 - average_decay(o, t))};
    qat_parallel(optimizer->n_tiles, step_tile, &s);
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
    return slot_of(optimizer, slot) + offset;
}

qat_real *qat_optimizer_average(const qat_optimizer *optimizer, const qat_node *param)
{
    return averages_of(optimizer) ? qat_optimizer_slot(optimizer, param, optimizer->rule->slots)
                                  : NULL;
}

int64_t qat_optimizer_steps(const qat_optimizer *optimizer)
{
    return optimizer->steps;
}

void qat_optimizer_set_steps(qat_optimizer *optimizer, int64_t steps)
{
    optimizer->steps = steps;
}
