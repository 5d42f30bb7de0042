/** Steps: choose the driver of each node, its packed weights and scratch; plan the arena. */
#include "infer/host/fast.h"
#include "infer/host/pages.h"

#include <stdlib.h>
#include <string.h>

/** The drivers of all families. */
static const qi_fast *const drivers[] = {
    &qi_fast_conv2d,
    &qi_fast_depthwise_conv2d,
    &qi_fast_fully_connected,
    &qi_fast_add,
    &qi_fast_sub,
    &qi_fast_mul,
    &qi_fast_average_pool2d,
    &qi_fast_max_pool2d,
    &qi_fast_mean,
    &qi_fast_softmax,
    &qi_fast_requantize,
    &qi_fast_logistic,
    &qi_fast_tanh,
    &qi_fast_table,
};

const qi_fast *qi_fast_for(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    if (node->n_inputs > QI_FAST_MAX_INPUTS || node->n_outputs != 1)
        return NULL;
    for (size_t i = 0; i < sizeof drivers / sizeof drivers[0]; i++)
        if (drivers[i]->kernel == node->kernel && drivers[i]->accepts(isa, model, node))
            return drivers[i];
    return NULL;
}

static size_t align_up(size_t bytes)
{
    return (bytes + QI_FAST_ALIGN - 1) / QI_FAST_ALIGN * QI_FAST_ALIGN;
}

/** Choose a node's driver. Its scratch is noted in the node, everything else in the step. */
static void choose(const qi_steps *s, qi_model *m, qi_node *node, qi_step *step)
{
    const qi_fast *fast = step->fast = qi_fast_for(s->isa, m, node);
    if (!fast)
        return;
    step->tiles = fast->tiles(s->isa, m, node);
    if (fast->scratch)
        step->thread_scratch = align_up(fast->scratch(s->isa, m, node));
    if (fast->packed_bytes)
        step->packed_bytes = align_up(fast->packed_bytes(s->isa, m, node));
    size_t const scratch = step->thread_scratch * (size_t)s->threads;
    node->scratch_bytes = scratch > node->scratch_bytes ? scratch : node->scratch_bytes;
    node->in_place = node->in_place && fast->in_place;
}

/**
 * Choose drivers for all nodes, and plan the arena. Without any driver it is the same arena as the
 * core's.
 */
static qi_status plan(qi_steps *s, qi_model *m, qi_error *err)
{
    for (int32_t i = 0; i < m->n_nodes; i++) {
        choose(s, m, &m->nodes[i], &s->steps[i]);
        s->packed_bytes += s->steps[i].packed_bytes;
        if (s->steps[i].fast)
            m->alignment = QI_FAST_ALIGN;
    }
    qi_status const st = qi_plan_lifetimes(m, err);
    return st ? st : qi_plan_arena(m, err);
}

/** Pack the weights of all nodes, one after the other. */
static void pack(qi_steps *s, const qi_model *m)
{
    uint8_t *at = s->memory;
    for (int32_t i = 0; i < m->n_nodes; i++) {
        qi_step *step = &s->steps[i];
        if (!step->packed_bytes)
            continue;
        step->fast->pack(s->isa, m, &m->nodes[i], at);
        step->packed = at;
        at += step->packed_bytes;
    }
    memset(at, 0, QI_SLACK);
}

static qi_status make(qi_steps *s, qi_model *m, qi_error *err)
{
    s->steps = calloc((size_t)m->n_nodes + 1, sizeof *s->steps);
    if (!s->steps)
        return qi_fail(err, QI_ERR_NOMEM, "no room for the steps", -1, m->n_nodes, 0);
    qi_status const st = plan(s, m, err);
    if (st)
        return st;
    s->arena_bytes = qi_arena_bytes(m) + QI_SLACK;
    uint64_t const packed = (uint64_t)s->packed_bytes + QI_SLACK, bytes = packed + s->arena_bytes;
    if (bytes <= PTRDIFF_MAX)
        s->memory = qi_pages_allocate((size_t)bytes);
    if (!s->memory)
        return qi_fail(err, QI_ERR_NOMEM, "no room for packed weights and the arena", -1,
                       (int64_t)bytes, 0);
    pack(s, m);
    s->arena = (uint8_t *)s->memory + packed;
    memset(s->arena, 0, s->arena_bytes);
    return QI_OK;
}

qi_status qi_steps_make(qi_steps **steps, qi_model *model, const qi_isa *isa, int threads,
                        qi_error *err)
{
    qi_steps *s = calloc(1, sizeof *s);
    *steps = NULL;
    if (!s)
        return qi_fail(err, QI_ERR_NOMEM, "no room for the steps", -1, (int64_t)sizeof *s, 0);
    s->isa = isa;
    s->threads = threads;
    qi_status const st = make(s, model, err);
    if (st)
        qi_steps_free(s);
    else
        *steps = s;
    return st;
}

void qi_steps_free(qi_steps *s)
{
    if (!s)
        return;
    free(s->memory);
    free(s->steps);
    free(s);
}
