/** The RAM and the multiply-adds of a banded graph, as the engine's own planner has them. */
#include "bands/bands.h"

#include "infer/host/parts.h"

#include <stdlib.h>
#include <string.h>

/** A model that can be planned, but not run. */
typedef struct plan {
    qi_model model;
    qi_tensor *tensors;
    qi_node *nodes;
    qi_span *spans;
} plan;

static bool allocate(plan *p, const qat_qgraph *g)
{
    size_t const tensors = (size_t)g->n_tensors + 1, nodes = (size_t)g->n_ops + 1;
    p->tensors = calloc(tensors, sizeof *p->tensors);
    p->nodes = calloc(nodes, sizeof *p->nodes);
    p->spans = calloc(tensors + nodes, sizeof *p->spans);
    p->model = (qi_model){.tensors = p->tensors,
                          .nodes = p->nodes,
                          .spans = p->spans,
                          .inputs = g->inputs,
                          .outputs = g->outputs,
                          .n_tensors = g->n_tensors,
                          .n_nodes = g->n_ops,
                          .n_inputs = g->n_inputs,
                          .n_outputs = g->n_outputs,
                          .alignment = QI_ALIGN};
    return p->tensors && p->nodes && p->spans;
}

static void fill_tensor(plan *p, int index, const qat_qtensor *t, const qi_tensor *from)
{
    qi_tensor *to = &p->tensors[index];
    *to = *from;
    if (to->kind == QI_CONSTANT)
        return;
    memcpy(to->dims, t->dims, sizeof to->dims);
    to->type = (uint8_t)t->type; /* those of packed tensors differ */
    to->bits = (uint8_t)t->bits;
    to->bytes = qat_qtensor_bytes(t);
    to->next = t->is_state ? t->next : -1;
    p->model.n_states += t->is_state;
}

static void fill_node(plan *p, int index, const qat_qop *op, const qi_node *from)
{
    qi_node *to = &p->nodes[index];
    if (from)
        *to = *from;
    else
        to->kernel = qi_op_named(op->op)->kernel;
    to->inputs = op->inputs;
    to->outputs = op->outputs;
    to->params = op->params;
    to->n_inputs = op->n_inputs;
    to->n_outputs = op->n_outputs;
    to->n_params = op->n_params;
    to->in_place = to->kernel->in_place;
    to->scratch_bytes = to->kernel->scratch ? to->kernel->scratch(&p->model, to) : 0;
}

static qat_status measure(plan *p, const qat_banded *banded, const qi_model *device, qat_error *err)
{
    const qat_qgraph *g = banded->graph;
    qi_error inner;
    for (int i = 0; i < g->n_tensors; i++)
        fill_tensor(p, i, &g->tensors[i], qi_tensor_at(device, banded->tensor_from[i]));
    for (int i = 0; i < g->n_ops; i++) {
        int const from = banded->op_from[i];
        fill_node(p, i, &g->ops[i], from < 0 ? NULL : qi_node_at(device, from));
    }
    qi_status st = qi_host_parts()->plan_lifetimes(&p->model, &inner);
    if (!st)
        st = qi_host_parts()->plan_arena(&p->model, &inner);
    return st ? qi_error_tell(&inner, "bands", err) : QAT_OK;
}

qat_status qat_banded_measure(const qat_banded *banded, const qi_model *device, size_t *ram,
                              int64_t *macs, qat_error *err)
{
    plan p = {.tensors = NULL};
    qat_status const st = allocate(&p, banded->graph) ? measure(&p, banded, device, err)
                                                      : qat_out_of_memory(err, "bands");
    *ram = st ? 0 : qi_model_ram(&p.model);
    *macs = st ? 0 : qi_model_macs(&p.model);
    free(p.tensors);
    free(p.nodes);
    free(p.spans);
    return st;
}
