/**
 * Finds the nodes that are equal in everything that packing reads. A hash of each node, with open
 * addressing, makes this linear in the number of nodes.
 */
#include "infer/host/loops/fast.h"
#include "infer/model/op.h"

#include <stdlib.h>

/* ------------------------------------------------------------------ equality */

/** Do two tensors have the same shape and codes, and are they the same constant or no constants? */
static int tensors_are_equal(const qi_tensor *a, const qi_tensor *b)
{
    int equal = a->type == b->type && a->kind == b->kind && a->bits == b->bits &&
                a->rank == b->rank && a->zero_point == b->zero_point && a->data == b->data;
    for (int d = 0; d < QI_MAX_RANK; d++)
        equal = equal && a->dims[d] == b->dims[d];
    return equal;
}

static int lists_are_equal(const qi_model *m, const int32_t *a, const int32_t *b, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        if (a[i] != b[i] && !tensors_are_equal(&m->tensors[a[i]], &m->tensors[b[i]]))
            return 0;
    return 1;
}

static int params_are_equal(const qi_node *a, const qi_node *b)
{
    for (int32_t i = 0; i < a->n_params; i++)
        if (a->params[i] != b->params[i])
            return 0;
    return 1;
}

static int nodes_are_equal(const qi_model *m, const qi_node *a, const qi_node *b)
{
    return a->kernel == b->kernel && a->rounding == b->rounding && a->fraction == b->fraction &&
           a->max_accumulator == b->max_accumulator && a->in_place == b->in_place &&
           a->n_inputs == b->n_inputs && a->n_outputs == b->n_outputs &&
           a->n_params == b->n_params && params_are_equal(a, b) &&
           lists_are_equal(m, a->inputs, b->inputs, a->n_inputs) &&
           lists_are_equal(m, a->outputs, b->outputs, a->n_outputs);
}

/* ------------------------------------------------------------------ the table */

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

static uint64_t hash_of_tensor(uint64_t hash, const qi_tensor *t)
{
    hash = mix(hash, (uintptr_t)t->data);
    hash = mix(hash, (uint32_t)t->zero_point);
    hash = mix(hash, (uint64_t)t->bits << 16 | (uint64_t)t->type << 8 | t->rank);
    for (int d = 0; d < QI_MAX_RANK; d++)
        hash = mix(hash, (uint32_t)t->dims[d]);
    return hash;
}

static uint64_t hash_of(const qi_model *m, const qi_node *node)
{
    uint64_t hash = mix(0, (uintptr_t)node->kernel);
    for (int32_t i = 0; i < node->n_params; i++)
        hash = mix(hash, (uint32_t)node->params[i]);
    for (int32_t i = 0; i < node->n_inputs; i++)
        hash = hash_of_tensor(hash, &m->tensors[node->inputs[i]]);
    for (int32_t i = 0; i < node->n_outputs; i++)
        hash = hash_of_tensor(hash, &m->tensors[node->outputs[i]]);
    return hash;
}

/** A place of the table. */
struct place {
    uint64_t hash;
    int32_t node; /* -1: free */
};

/** The place that holds an equal node, or a free one. */
static struct place *find(const qi_model *m, struct place *table, size_t mask, uint64_t hash,
                          const qi_node *node)
{
    size_t at = (size_t)hash & mask;
    while (table[at].node >= 0 &&
           (table[at].hash != hash || !nodes_are_equal(m, &m->nodes[table[at].node], node)))
        at = (at + 1) & mask;
    return &table[at];
}

qi_status qi_equal_nodes(const qi_model *model, int32_t *equal, qi_error *err)
{
    size_t places = 2;
    while (places < 2 * (size_t)model->n_nodes)
        places *= 2;
    struct place *table = malloc(places * sizeof *table);
    if (!table)
        return qi_fail(err, QI_ERR_NOMEM, "no room to compare nodes", -1, model->n_nodes, 0);
    for (size_t i = 0; i < places; i++)
        table[i].node = -1;
    for (int32_t i = 0; i < model->n_nodes; i++) {
        equal[i] = i;
        if (qi_function_input(model, &model->nodes[i]))
            continue;
        uint64_t const hash = hash_of(model, &model->nodes[i]);
        struct place *p = find(model, table, places - 1, hash, &model->nodes[i]);
        if (p->node < 0)
            *p = (struct place){hash, i};
        equal[i] = p->node;
    }
    free(table);
    return QI_OK;
}
