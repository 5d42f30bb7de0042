/** Steps: which driver runs each node, its packed weights, its scratch. */
#include "infer/host/fast.h"
#include "infer/host/pages.h"

#include <stdlib.h>
#include <string.h>

/** Drivers of all families. */
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

/** Drivers for all nodes; returns the bytes of all packed weights. */
static size_t choose(qi_steps *s, qi_model *m)
{
    size_t packed = 0;
    for (int32_t i = 0; i < m->n_nodes; i++) {
        qi_node *node = &m->nodes[i];
        qi_step *step = &s->steps[i];
        step->fast = qi_fast_for(s->isa, m, node);
        if (!step->fast)
            continue;
        step->tiles = step->fast->tiles(s->isa, m, node);
        node->in_place = node->in_place && step->fast->in_place;
        if (step->fast->scratch)
            step->thread_scratch = align_up(step->fast->scratch(s->isa, m, node));
        size_t const scratch = step->thread_scratch * (size_t)s->threads;
        node->scratch_bytes = scratch > node->scratch_bytes ? scratch : node->scratch_bytes;
        if (step->fast->packed_bytes)
            packed += align_up(step->fast->packed_bytes(s->isa, m, node));
    }
    return packed;
}

/** Weights of all nodes, one behind the other. */
static void pack(qi_steps *s, qi_model *m)
{
    uint8_t *at = s->packed;
    for (int32_t i = 0; i < m->n_nodes; i++) {
        qi_step *step = &s->steps[i];
        if (!step->fast || !step->fast->packed_bytes)
            continue;
        step->fast->pack(s->isa, m, &m->nodes[i], at);
        step->packed = at;
        at += align_up(step->fast->packed_bytes(s->isa, m, &m->nodes[i]));
    }
}

static int any_driver(const qi_steps *s, const qi_model *m)
{
    for (int32_t i = 0; i < m->n_nodes; i++)
        if (s->steps[i].fast)
            return 1;
    return 0;
}

static qi_status make(qi_steps *s, qi_model *m, qi_error *err)
{
    s->steps = calloc((size_t)m->n_nodes + 1, sizeof *s->steps);
    if (!s->steps)
        return qi_fail(err, QI_ERR_NOMEM, "no room for the steps", -1, m->n_nodes, 0);
    s->packed_bytes = align_up(choose(s, m) + QI_SLACK);
    s->packed = qi_pages_allocate(s->packed_bytes);
    if (!s->packed)
        return qi_fail(err, QI_ERR_NOMEM, "no room for packed weights", -1,
                       (int64_t)s->packed_bytes, 0);
    memset((uint8_t *)s->packed + s->packed_bytes - QI_SLACK, 0, QI_SLACK);
    pack(s, m);
    if (!any_driver(s, m))
        return QI_OK; /* the core's own plan holds */
    m->alignment = QI_FAST_ALIGN;
    qi_status const st = qi_plan_lifetimes(m, err);
    return st ? st : qi_plan_arena(m, err);
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
    free(s->packed);
    free(s->steps);
    free(s);
}
