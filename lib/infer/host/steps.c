/** Steps: choose the driver of each node, its packed weights and scratch; plan the arena. */
#include "infer/host/loops/fast.h"
#include "infer/host/pages.h"

#include <stdlib.h>
#include <string.h>

static size_t align_up(size_t bytes)
{
    return (bytes + QI_FAST_ALIGN - 1) / QI_FAST_ALIGN * QI_FAST_ALIGN;
}

/** Choose a node's driver. */
static void choose(const qi_steps *s, const qi_model *m, const qi_node *node, qi_step *step)
{
    const qi_fast *fast = step->fast = qi_fast_for(s->isa, m, node);
    step->shared = -1;
    if (!fast)
        return;
    step->tiles = fast->tiles(s->isa, m, node);
    if (fast->scratch)
        step->thread_scratch = align_up(fast->scratch(s->isa, m, node));
    if (fast->packed_bytes)
        step->packed_bytes = align_up(fast->packed_bytes(s->isa, m, node));
}

/** A node that is equal to an earlier one runs as that one does, with its packed weights. */
static void choose_same(const qi_step *first, int32_t index, qi_step *step)
{
    *step = *first;
    if (first->packed_bytes)
        step->shared = index;
    step->packed_bytes = 0;
}

/** Mark the functions whose output only one add, sub or mul of qi_function_input would read. */
static qi_status mark_unread(const qi_steps *s, const qi_model *m, qi_error *err)
{
    int32_t *readers = calloc((size_t)m->n_tensors + 1, sizeof *readers);
    if (!readers)
        return qi_fail(err, QI_ERR_NOMEM, "no room to count readers", -1, m->n_tensors, 0);
    for (int32_t i = 0; i < m->n_outputs; i++)
        readers[m->outputs[i]]++;
    for (int32_t i = 0; m->n_states && i < m->n_tensors; i++)
        if (m->tensors[i].kind == QI_STATE)
            readers[m->tensors[i].next]++;
    for (int32_t i = 0; i < m->n_nodes; i++)
        for (int32_t j = 0; j < m->nodes[i].n_inputs; j++)
            readers[m->nodes[i].inputs[j]]++;
    for (int32_t i = 0; i < m->n_nodes; i++) {
        const qi_node *f = s->steps[i].fast ? qi_function_input(m, &m->nodes[i]) : NULL;
        if (f && readers[f->outputs[0]] == 1)
            s->steps[f - m->nodes].unread = 1;
    }
    free(readers);
    return QI_OK;
}

static void list_read(qi_steps *s, const qi_model *m)
{
    for (int32_t i = 0; i < m->n_nodes; i++)
        if (!s->steps[i].unread)
            s->steps[s->n_read++].order = i;
}

/**
 * Note the scratch of a node's driver for all threads, and whether it may run in place. A driver
 * that wants too much for so many threads leaves the node to the core's kernel.
 */
static void note_scratch(qi_steps *s, qi_model *m, int32_t index)
{
    enum { MOST = QM_MAX_ARENA_BYTES - QI_FAST_ALIGN }; /* the planner counts in 32 bits */
    qi_step *step = &s->steps[index];
    qi_node *node = &m->nodes[index];
    uint64_t const scratch = (uint64_t)step->thread_scratch * (uint64_t)s->threads;
    if (scratch > MOST)
        *step = (qi_step){.shared = -1};
    if (!step->fast)
        return;
    node->scratch_bytes = scratch > node->scratch_bytes ? (size_t)scratch : node->scratch_bytes;
    if (!step->fast->in_place)
        node->in_place = 0;
}

/**
 * Choose drivers for all nodes, and plan the arena. Without any driver it is the same arena as the
 * core's.
 */
static qi_status plan(qi_steps *s, qi_model *m, const int32_t *equal, qi_error *err)
{
    for (int32_t i = 0; i < m->n_nodes; i++) {
        qi_step *step = &s->steps[i];
        if (equal[i] < i)
            choose_same(&s->steps[equal[i]], equal[i], step);
        else
            choose(s, m, &m->nodes[i], step);
        note_scratch(s, m, i);
        s->packed_bytes += step->packed_bytes; /* at most 4096 times 2^33 */
        if (step->fast)
            m->alignment = QI_FAST_ALIGN;
    }
    qi_status st = mark_unread(s, m, err);
    list_read(s, m);
    if (!st)
        st = qi_plan_lifetimes(m, err);
    return st ? st : qi_plan_arena(m, err);
}

/** Pack the weights of all nodes, one after the other; equal nodes share them. */
static void pack(qi_steps *s, const qi_model *m)
{
    uint8_t *at = s->memory;
    for (int32_t i = 0; i < m->n_nodes; i++) {
        qi_step *step = &s->steps[i];
        if (step->shared >= 0)
            step->packed = s->steps[step->shared].packed;
        if (!step->packed_bytes)
            continue;
        step->fast->pack(s->isa, m, &m->nodes[i], at);
        step->packed = at;
        at += step->packed_bytes;
    }
    memset(at, 0, QI_SLACK);
}

/** Allocate packed weights and arena at once, if they may take so much. */
static qi_status allocate(qi_steps *s, qi_model *m, uint64_t most, qi_error *err)
{
    s->arena_bytes = qi_arena_bytes(m) + QI_SLACK;
    uint64_t const packed = s->packed_bytes + QI_SLACK, bytes = packed + s->arena_bytes;
    if (bytes > most)
        return qi_fail(err, QI_ERR_LIMIT, "bytes of packed weights and the arena", -1,
                       (int64_t)bytes, (int64_t)most);
    if (bytes <= PTRDIFF_MAX)
        s->memory = qi_pages_allocate((size_t)bytes);
    if (!s->memory)
        return qi_fail(err, QI_ERR_NOMEM, "no room for packed weights and the arena", -1,
                       (int64_t)bytes, 0);
    s->arena = (uint8_t *)s->memory + packed;
    return QI_OK;
}

static qi_status make(qi_steps *s, qi_model *m, uint64_t most, qi_error *err)
{
    int32_t *equal = calloc((size_t)m->n_nodes + 1, sizeof *equal);
    s->steps = calloc((size_t)m->n_nodes + 1, sizeof *s->steps);
    qi_status st = QI_OK;
    if (!s->steps || !equal)
        st = qi_fail(err, QI_ERR_NOMEM, "no room for the steps", -1, m->n_nodes, 0);
    if (!st)
        st = qi_equal_nodes(m, equal, err);
    if (!st)
        st = plan(s, m, equal, err);
    free(equal);
    if (!st)
        st = allocate(s, m, most, err);
    if (st)
        return st;
    pack(s, m);
    memset(s->arena, 0, s->arena_bytes);
    return QI_OK;
}

qi_status qi_steps_make(qi_steps **steps, qi_model *model, const qi_isa *isa, int threads,
                        uint64_t most, qi_error *err)
{
    qi_steps *s = calloc(1, sizeof *s);
    *steps = NULL;
    if (!s)
        return qi_fail(err, QI_ERR_NOMEM, "no room for the steps", -1, (int64_t)sizeof *s, 0);
    s->isa = isa;
    s->threads = threads;
    qi_status const st = make(s, model, most, err);
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
