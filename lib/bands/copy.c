/** Copies of graphs (copy.h). */
#include "bands/copy.h"

#include "infer/model/qm_layout.h"

#include <stdio.h>

qat_status band_copy_tensor(band_copy *c, const qat_qtensor *t, int from, int *made)
{
    if (c->to->graph->n_tensors >= c->tensors_room)
        return qat_fail(c->err, QAT_ERR_UNSUPPORTED, "too many bands");
    *made = qat_qgraph_tensor(c->to->graph, t, c->err);
    if (*made < 0)
        return c->err->status;
    c->to->tensor_from[*made] = from;
    return QAT_OK;
}

qat_status band_copy_new_op(band_copy *c, const qat_qop *op, int from)
{
    if (c->to->graph->n_ops >= c->ops_room)
        return qat_fail(c->err, QAT_ERR_UNSUPPORTED, "too many bands");
    int const made = qat_qgraph_op(c->to->graph, op->op, op->name, op->rounding, op->n_inputs,
                                   op->inputs, op->n_outputs, op->outputs, op->n_params, op->params,
                                   op->max_accumulator, c->err);
    if (made < 0)
        return c->err->status;
    c->to->graph->ops[made].fraction = op->fraction;
    c->to->op_from[made] = from;
    return QAT_OK;
}

/** Tensors that share numbers do so in the new graph, too. */
static void share_numbers(const band_copy *c, qat_qtensor *t, int index)
{
    if (!t->data && !t->channel_scales)
        return;
    for (int i = 0; i < index; i++) {
        const qat_qtensor *old = &c->from->tensors[i];
        if (c->map[i] < 0)
            continue;
        if (t->data && old->data == t->data)
            t->data = c->to->graph->tensors[c->map[i]].data;
        if (t->channel_scales && old->channel_scales == t->channel_scales)
            t->channel_scales = c->to->graph->tensors[c->map[i]].channel_scales;
    }
}

qat_status band_copy_same_tensor(band_copy *c, int i)
{
    qat_qtensor t = c->from->tensors[i];
    share_numbers(c, &t, i);
    return band_copy_tensor(c, &t, i, &c->map[i]);
}

static void map_all(const band_copy *c, int n, const int *from, int *to)
{
    for (int i = 0; i < n; i++)
        to[i] = c->map[from[i]];
}

qat_status band_copy_same_op(band_copy *c, int i)
{
    qat_qop op = c->from->ops[i];
    int inputs[QM_MAX_NODE_INPUTS], outputs[QM_MAX_NODE_OUTPUTS];
    map_all(c, op.n_inputs, op.inputs, inputs);
    map_all(c, op.n_outputs, op.outputs, outputs);
    op.inputs = inputs;
    op.outputs = outputs;
    return band_copy_new_op(c, &op, i);
}

static void end_states(const band_copy *c)
{
    for (int i = 0; i < c->from->n_tensors; i++) {
        const qat_qtensor *t = &c->from->tensors[i];
        if (t->is_state && c->map[i] >= 0)
            c->to->graph->tensors[c->map[i]].next = c->map[t->next];
    }
}

qat_status band_copy_end(band_copy *c)
{
    const qat_qgraph *g = c->from;
    const qat_qepilogue *e = &g->epilogue;
    int inputs[QAT_EPILOGUE_INPUTS_MAX];
    int *io =
        qat_arena_array(c->to->graph->memory, (size_t)(g->n_inputs + g->n_outputs) + 1, sizeof *io);
    if (!io)
        return qat_out_of_memory(c->err, "bands");
    end_states(c);
    map_all(c, g->n_inputs, g->inputs, io);
    map_all(c, g->n_outputs, g->outputs, io + g->n_inputs);
    qat_status st =
        qat_qgraph_set_io(c->to->graph, g->n_inputs, io, g->n_outputs, io + g->n_inputs, c->err);
    if (st || !*e->name)
        return st;
    map_all(c, e->n_inputs, e->inputs, inputs);
    return qat_qgraph_set_epilogue(c->to->graph, e->name, e->n_inputs, inputs, e->n_params,
                                   e->params, c->err);
}

qat_status band_copy_begin(band_copy *c, qat_banded *to, const qat_qgraph *from, qat_error *err)
{
    *c = (band_copy){.from = from,
                     .to = to,
                     .tensors_room = QM_MAX_TENSORS / 2, /* the file adds tensors for scales */
                     .ops_room = QM_MAX_NODES,
                     .err = err};
    *to = (qat_banded){.graph = qat_qgraph_new()};
    if (!to->graph)
        return qat_out_of_memory(err, "bands");
    qat_arena *memory = to->graph->memory;
    c->map = qat_arena_array(memory, (size_t)from->n_tensors + 1, sizeof *c->map);
    to->tensor_from = qat_arena_array(memory, (size_t)c->tensors_room, sizeof *to->tensor_from);
    to->op_from = qat_arena_array(memory, (size_t)c->ops_room, sizeof *to->op_from);
    if (!c->map || !to->tensor_from || !to->op_from) {
        qat_banded_free(to);
        return qat_out_of_memory(err, "bands");
    }
    for (int i = 0; i < from->n_tensors; i++)
        c->map[i] = -1;
    return QAT_OK;
}

void band_copy_name(char name[QAT_NAME_MAX], const char *of, const char *what)
{
    char made[QAT_NAME_MAX];
    snprintf(made, sizeof made, "%.*s, %s", QAT_NAME_MAX - 40, of, what);
    snprintf(name, QAT_NAME_MAX, "%s", *of ? made : "");
}

void qat_banded_free(qat_banded *banded)
{
    qat_qgraph_free(banded->graph);
    *banded = (qat_banded){0};
}
