/**
 * Which tensors share memory. Four kinds of op take none, or less, for their output:
 *
 *   reshape         y is x.
 *   an op in place  y replaces x, if nothing else needs what it overwrites:
 *
 *       x  |-----------|            last read by the op
 *       y              |--------|   as many bytes as x, and no other input of the op in x's memory
 *
 *   strided_slice   y is a part of x, if its values lie side by side there.
 *   concat          an input is a part of y from the step that writes it, if its values lie side by
 *                   side there. The op then copies only the other inputs.
 *
 * Tensors that share memory are a tree. Its root has the memory; each other one lies at an offset
 * in the memory of its parent.
 */
#include "infer/model/op.h"

int32_t qi_root_of(const qi_model *m, int32_t tensor, uint32_t *at)
{
    *at = 0;
    while (m->spans[tensor].root != tensor) {
        *at += m->spans[tensor].offset;
        tensor = m->spans[tensor].root;
    }
    return tensor;
}

/** From now on the memory of tensor, itself a root, is a part of that of `root`. */
static void join(qi_model *m, int32_t tensor, int32_t root, uint32_t at)
{
    qi_span *s = &m->spans[tensor], *r = &m->spans[root];
    s->root = root;
    s->offset = at;
    r->first = s->first < r->first ? s->first : r->first;
    r->last = s->last > r->last ? s->last : r->last;
}

/** The tensor at the root of the memory of tensor if that is all of its memory, else -1. */
static int32_t whole_root(const qi_model *m, int32_t tensor)
{
    uint32_t at;
    int32_t const root = qi_root_of(m, tensor, &at);
    int const is_whole = m->tensors[tensor].kind == QI_ACTIVATION && at == 0 &&
                         m->tensors[root].bytes == m->tensors[tensor].bytes;
    return is_whole ? root : -1;
}

/* ------------------------------------------------------------------ in place */

/** Is input k the only input that lies in its memory? */
static int is_alone(const qi_model *m, const qi_node *node, int32_t k)
{
    uint32_t at;
    int32_t const root = qi_root_of(m, node->inputs[k], &at);
    for (int32_t i = 0; i < node->n_inputs; i++)
        if (i != k && m->tensors[node->inputs[i]].kind == QI_ACTIVATION &&
            qi_root_of(m, node->inputs[i], &at) == root)
            return 0;
    return 1;
}

/** May the output of the node at `step` replace input k? */
static int may_replace(const qi_model *m, int32_t step, int32_t k)
{
    const qi_node *node = &m->nodes[step];
    if (k >= node->n_inputs ||
        m->tensors[node->inputs[k]].bytes != m->tensors[node->outputs[0]].bytes)
        return 0;
    int32_t const root = whole_root(m, node->inputs[k]);
    return root >= 0 && m->spans[root].last == step && is_alone(m, node, k);
}

static void share_in_place(qi_model *m, int32_t step)
{
    const qi_node *node = &m->nodes[step];
    int32_t const most = node->in_place == QI_OVER_EITHER ? 2 : node->in_place ? 1 : 0;
    for (int32_t k = 0; k < most; k++)
        if (may_replace(m, step, k)) {
            join(m, node->outputs[0], whole_root(m, node->inputs[k]), 0);
            return;
        }
}

/* ------------------------------------------------------------------ parts */

/** Do the dims before d leave one position, so that positions along d lie side by side? */
static int is_outermost(const qi_tensor *t, int d)
{
    while (--d >= 0)
        if (t->dims[d] != 1)
            return 0;
    return 1;
}

/** Where the output of strided_slice begins in its input, in bytes; -1: it is no part of it. */
static int64_t place_of_slice(const qi_model *m, const qi_node *node)
{
    const qi_tensor *x = qi_input(m, node, 0), *y = qi_output(m, node);
    const int32_t *begin = node->params + QI_SLICE_BEGIN, *stride = node->params + QI_SLICE_STRIDE;
    size_t distance[QI_MAX_RANK];
    int64_t at = 0;
    qi_strides(x, distance);
    for (int d = 0; d < QI_MAX_RANK; d++) {
        int const is_run = y->dims[d] == 1 || stride[d] == 1;
        if (!is_run || (y->dims[d] != x->dims[d] && !is_outermost(y, d)))
            return -1;
        at += (int64_t)begin[d] * (int64_t)distance[d];
    }
    return at * (int64_t)qi_type_bytes(x->type);
}

static int is_aligned(const qi_model *m, int64_t at)
{
    return at >= 0 && at % (int64_t)m->alignment == 0;
}

static int share_input(qi_model *m, const qi_node *node)
{
    uint32_t from;
    int32_t const root = qi_root_of(m, node->inputs[0], &from);
    int64_t const at = place_of_slice(m, node);
    if (qi_input(m, node, 0)->kind != QI_ACTIVATION || !is_aligned(m, at))
        return 0;
    join(m, node->outputs[0], root, from + (uint32_t)at);
    return 1;
}

static int share_output(qi_model *m, const qi_node *node)
{
    int32_t const y = node->outputs[0];
    int shared = 0;
    int64_t at = 0;
    if (!is_outermost(&m->tensors[y], node->params[QI_CONCAT_AXIS]))
        return 0;
    for (int32_t i = 0; i < node->n_inputs; i++) {
        int32_t const root = whole_root(m, node->inputs[i]);
        if (root >= 0 && root != y && is_aligned(m, at)) {
            join(m, root, y, (uint32_t)at);
            shared = 1;
        }
        at += (int64_t)m->tensors[node->inputs[i]].bytes;
    }
    return shared;
}

/* ------------------------------------------------------------------ all */

static int share(qi_model *m, int32_t step, int parts)
{
    const qi_node *node = &m->nodes[step];
    uint32_t at;
    switch (node->kernel->in_place) {
    case QI_SAME_BYTES:
        if (qi_input(m, node, 0)->kind == QI_ACTIVATION) {
            int32_t const root = qi_root_of(m, node->inputs[0], &at);
            join(m, node->outputs[0], root, at);
        }
        return 0;
    case QI_PART_OF_INPUT:
        return parts && share_input(m, node);
    case QI_PARTS_OF_OUTPUT:
        return parts && share_output(m, node);
    default:
        share_in_place(m, step);
        return 0;
    }
}

int qi_share_memory(qi_model *m, int parts)
{
    int has_parts = 0;
    for (int32_t i = 0; i < m->n_nodes; i++)
        has_parts |= share(m, i, parts);
    return has_parts;
}
