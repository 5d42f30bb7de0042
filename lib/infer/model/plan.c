/**
 * The memory planner. Activations share memory if their lifetimes do not overlap.
 *
 *   arena  | pointers of one call | states | activations and scratch, at planned offsets |
 *
 * A span lives from the step that writes it to the last step that reads it, both included. So the
 * inputs, outputs and scratch of an op never overlap, but for those that share memory (share.c).
 * States live always, and what a state becomes lives until the end of the run. The largest span is
 * placed first, each at the lowest offset where it overlaps no placed span of its own time (first
 * fit).
 */
#include "infer/model/model.h"

/* ------------------------------------------------------------------ lifetimes */

/** Note that step writes the tensor. */
static qi_status write_at(qi_model *m, int32_t tensor, int32_t step, qi_error *err)
{
    qi_span *s = &m->spans[tensor];
    if (s->first != QI_NEVER)
        return qi_fail(err, QI_ERR_FORMAT, "an activation written a second time, by op", tensor,
                       step, s->first);
    s->first = s->last = step;
    return QI_OK;
}

static qi_status read_at(qi_model *m, int32_t tensor, int32_t step, qi_error *err)
{
    if (m->tensors[tensor].kind == QI_CONSTANT)
        return QI_OK;
    qi_span *s = &m->spans[tensor];
    if (s->first == QI_NEVER)
        return qi_fail(err, QI_ERR_FORMAT, "an activation read before it is written, by op", tensor,
                       step, m->n_nodes);
    s->last = step;
    return QI_OK;
}

static qi_status step_lifetimes(qi_model *m, int32_t step, qi_error *err)
{
    const qi_node *node = &m->nodes[step];
    qi_status st = QI_OK;
    for (int32_t i = 0; !st && i < node->n_inputs; i++)
        st = read_at(m, node->inputs[i], step, err);
    for (int32_t i = 0; !st && i < node->n_outputs; i++)
        st = write_at(m, node->outputs[i], step, err);
    return st;
}

static uint32_t align_up(const qi_model *m, size_t bytes)
{
    return (uint32_t)((bytes + m->alignment - 1) / m->alignment * m->alignment);
}

/** States are there before the first step. */
static void begin_states(qi_model *m)
{
    for (int32_t i = 0; m->n_states && i < m->n_tensors; i++)
        if (m->tensors[i].kind == QI_STATE)
            m->spans[i].first = m->spans[i].last = -1;
}

/** Check that each state was read. What it becomes is read at the end of a run. */
static qi_status end_states(qi_model *m, qi_error *err)
{
    qi_status st = QI_OK;
    for (int32_t i = 0; !st && m->n_states && i < m->n_tensors; i++) {
        if (m->tensors[i].kind != QI_STATE)
            continue;
        if (m->spans[i].last < 0)
            st = qi_fail(err, QI_ERR_FORMAT, "a state that nothing reads", i, 0, 1);
        else
            st = read_at(m, m->tensors[i].next, m->n_nodes, err);
    }
    return st;
}

qi_status qi_plan_lifetimes(qi_model *m, qi_error *err)
{
    qi_status st = QI_OK;
    for (int32_t i = 0; i < m->n_tensors; i++)
        m->spans[i] = (qi_span){.first = QI_NEVER,
                                .last = QI_NEVER,
                                .bytes = align_up(m, m->tensors[i].bytes),
                                .root = i,
                                .next = QI_UNPLACED};
    begin_states(m);
    for (int32_t i = 0; !st && i < m->n_inputs; i++)
        st = write_at(m, m->inputs[i], -1, err);
    for (int32_t i = 0; !st && i < m->n_nodes; i++)
        st = step_lifetimes(m, i, err);
    for (int32_t i = 0; !st && i < m->n_outputs; i++)
        st = read_at(m, m->outputs[i], m->n_nodes, err);
    for (int32_t i = 0; !st && i < m->n_tensors; i++)
        if (m->tensors[i].kind == QI_ACTIVATION && m->spans[i].first == QI_NEVER)
            st = qi_fail(err, QI_ERR_FORMAT, "an activation that nothing writes", i, 0, 1);
    return st ? st : end_states(m, err);
}

/* ------------------------------------------------------------------ offsets */

/** Does the span need memory of its own? */
static int is_placed_itself(const qi_model *m, int32_t i)
{
    if (i >= m->n_tensors)
        return m->spans[i].bytes > 0;
    return m->tensors[i].kind == QI_ACTIVATION && m->spans[i].root == i;
}

static int meet_in_time(const qi_span *a, const qi_span *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/**
 * The lowest offset where span overlaps none of the placed spans; head: their list, ordered by
 * offset.
 */
static uint64_t first_fit(const qi_span *spans, int32_t head, const qi_span *span)
{
    uint64_t offset = 0;
    for (int32_t i = head; i >= 0; i = spans[i].next) {
        const qi_span *placed = &spans[i];
        if (!meet_in_time(span, placed))
            continue;
        if (offset + span->bytes <= placed->offset)
            break;
        uint64_t const end = (uint64_t)placed->offset + placed->bytes;
        offset = end > offset ? end : offset;
    }
    return offset;
}

static void insert(qi_span *spans, int32_t *head, int32_t index)
{
    int32_t *link = head;
    while (*link >= 0 && spans[*link].offset <= spans[index].offset)
        link = &spans[*link].next;
    spans[index].next = *link;
    *link = index;
}

/** The largest span that is not placed yet, the first among equals; -1: all are placed. */
static int32_t largest_unplaced(const qi_model *m)
{
    int32_t best = -1;
    for (int32_t i = 0; i < m->n_tensors + m->n_nodes; i++)
        if (m->spans[i].next == QI_UNPLACED && is_placed_itself(m, i) &&
            (best < 0 || m->spans[i].bytes > m->spans[best].bytes))
            best = i;
    return best;
}

uint32_t qi_pointer_bytes(const qi_model *m)
{
    int32_t most = 0;
    for (int32_t i = 0; i < m->n_nodes; i++) {
        int32_t const n = m->nodes[i].n_inputs + m->nodes[i].n_outputs;
        most = n > most ? n : most;
    }
    return align_up(m, (size_t)most * sizeof(void *));
}

/** Give the states their offsets, one behind the other from `start` on; returns their end. */
static uint64_t place_states(qi_model *m, uint64_t start)
{
    for (int32_t i = 0; m->n_states && i < m->n_tensors; i++) {
        if (m->tensors[i].kind != QI_STATE)
            continue;
        m->tensors[i].offset = (size_t)start;
        start += m->spans[i].bytes;
    }
    return start;
}

/** Copy the offsets from the spans to the tensors and nodes. */
static void publish(qi_model *m, uint32_t start)
{
    for (int32_t i = 0; i < m->n_tensors; i++)
        if (m->tensors[i].kind == QI_ACTIVATION) {
            uint32_t at;
            int32_t const root = qi_root_of(m, i, &at);
            m->tensors[i].offset = start + m->spans[root].offset + at;
        }
    for (int32_t i = 0; i < m->n_nodes; i++)
        m->nodes[i].scratch_offset = start + m->spans[m->n_tensors + i].offset;
}

/** Plan the arena from lifetimes that were just found. */
static qi_status plan_once(qi_model *m, int parts, int *has_parts, qi_error *err)
{
    uint64_t end = place_states(m, qi_pointer_bytes(m));
    int32_t head = -1;
    if (end > QM_MAX_ARENA_BYTES)
        return qi_fail(err, QI_ERR_MEMORY, "bytes of states", -1, (int64_t)end, QM_MAX_ARENA_BYTES);
    uint32_t const start = (uint32_t)end;
    *has_parts = qi_share_memory(m, parts);
    for (int32_t i = 0; i < m->n_nodes; i++)
        m->spans[m->n_tensors + i] = (qi_span){.first = i,
                                               .last = i,
                                               .bytes = align_up(m, m->nodes[i].scratch_bytes),
                                               .root = m->n_tensors + i,
                                               .next = QI_UNPLACED};
    for (int32_t i; (i = largest_unplaced(m)) >= 0;) {
        uint64_t const offset = first_fit(m->spans, head, &m->spans[i]);
        uint64_t const top = start + offset + m->spans[i].bytes;
        if (top > QM_MAX_ARENA_BYTES && i < m->n_tensors)
            return qi_fail(err, QI_ERR_MEMORY, "bytes of the arena up to a tensor", i, (int64_t)top,
                           QM_MAX_ARENA_BYTES);
        if (top > QM_MAX_ARENA_BYTES)
            return qi_fail(err, QI_ERR_MEMORY, "bytes of the arena up to the scratch of an op",
                           i - m->n_tensors, (int64_t)top, QM_MAX_ARENA_BYTES);
        m->spans[i].offset = (uint32_t)offset;
        insert(m->spans, &head, i);
        end = top > end ? top : end;
    }
    publish(m, start);
    m->arena_bytes = (size_t)end;
    return QI_OK;
}

static qi_status plan_again(qi_model *m, int parts, qi_error *err)
{
    int has_parts;
    qi_status const st = qi_plan_lifetimes(m, err);
    return st ? st : plan_once(m, parts, &has_parts, err);
}

/** Parts inside of other tensors mostly save memory, but not always: the smaller plan is taken. */
qi_status qi_plan_arena(qi_model *m, qi_error *err)
{
    int has_parts = 0;
    qi_status const with = plan_once(m, 1, &has_parts, err);
    size_t const bytes = m->arena_bytes;
    if (!has_parts)
        return with;
    qi_status const without = plan_again(m, 0, err);
    if (!with && (without || m->arena_bytes >= bytes))
        return plan_again(m, 1, err);
    return without;
}
