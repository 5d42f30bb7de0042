/**
 * Makes the graph in which tensors of few bits lie packed between ops. First each of them gets a
 * pack behind the op that makes it, and an unpack before each op that reads it:
 *
 *     a -> T -> b        a -> T -> pack -> P -> unpack -> T' -> b
 *
 * Then each op with its packs becomes a stage of its own, which runs in bands (build.c). No row is
 * computed twice: every row of P is there when b begins. A stage that cannot be cut runs whole.
 */
#include "bands/copy.h"

#include "infer/model/op.h"
#include "infer/model/qm_layout.h"

#include <stdio.h>

typedef struct packer {
    band_copy copy;
    const bool *chosen;
    qat_stage *stages; /* of the new graph, one for each op that has packs */
    int n_stages;
    int *packed; /* P of each chosen tensor */
} packer;

static int maker_of(const qat_qgraph *graph, int tensor)
{
    for (int i = 0; i < graph->n_ops; i++)
        for (int k = 0; k < graph->ops[i].n_outputs; k++)
            if (graph->ops[i].outputs[k] == tensor)
                return i;
    return -1;
}

/** P: a byte for several codes of T's last axis. */
static qat_qtensor packed_like(const qat_qtensor *t)
{
    int32_t const n = qi_codes_of_byte(t->bits);
    qat_qtensor p = *t;
    int32_t *last = &p.dims[t->rank - 1];
    *last = (*last + n - 1) / n;
    p.type = QI_U8;
    p.bits = 8;
    p.scale = 1;
    p.zero_point = 0;
    p.channel_scales = NULL;
    p.n_channels = 0;
    p.range_min = p.range_max = 0;
    p.source_index = -1;
    p.border = QI_BORDER_NONE;
    return p;
}

bool qat_can_pack(const qat_qgraph *graph, int tensor)
{
    const qat_qtensor *t = &graph->tensors[tensor];
    if (t->bits > QI_SHARED_BITS || t->data || t->is_state || qat_is_result(graph, tensor))
        return false;
    int const maker = maker_of(graph, tensor);
    qat_qtensor const packed = packed_like(t);
    return maker >= 0 && qat_op_has_rows(graph, &graph->ops[maker]) &&
           qat_qtensor_bytes(&packed) < qat_qtensor_bytes(t);
}

/* ------------------------------------------------------------------ packs between ops */

static qat_status add_move(packer *p, const char *op, const char *name, int x, int y)
{
    qat_qop move = {
        .n_inputs = 1, .n_outputs = 1, .inputs = &x, .outputs = &y, .rounding = QI_ROUND_NONE};
    snprintf(move.op, sizeof move.op, "%s", op);
    snprintf(move.name, sizeof move.name, "%s", name);
    return band_copy_new_op(&p->copy, &move, -1);
}

static qat_status pack(packer *p, int tensor)
{
    const qat_qtensor *t = &p->copy.from->tensors[tensor];
    qat_qtensor packed = packed_like(t);
    band_copy_name(packed.name, t->name, "packed");
    qat_status const st = band_copy_tensor(&p->copy, &packed, tensor, &p->packed[tensor]);
    return st ? st : add_move(p, "pack", packed.name, p->copy.map[tensor], p->packed[tensor]);
}

static qat_status unpack(packer *p, int tensor, int *unpacked)
{
    qat_qtensor t = p->copy.from->tensors[tensor];
    t.source_index = -1;
    band_copy_name(t.name, t.name, "unpacked");
    qat_status const st = band_copy_tensor(&p->copy, &t, tensor, unpacked);
    return st ? st : add_move(p, "unpack", t.name, p->packed[tensor], *unpacked);
}

/** One op, what it reads unpacked and what it makes packed. */
static qat_status add_op(packer *p, int index)
{
    const qat_qop *from = &p->copy.from->ops[index];
    const qat_qgraph *made = p->copy.to->graph;
    int const first = made->n_ops;
    int inputs[QM_MAX_NODE_INPUTS], outputs[QM_MAX_NODE_OUTPUTS];
    qat_qop op = *from;
    qat_status st = QAT_OK;
    for (int k = 0; !st && k < op.n_inputs; k++) {
        int const x = from->inputs[k];
        int before = 0;
        while (before < k && from->inputs[before] != x)
            before++;
        inputs[k] = before < k ? inputs[before] : p->copy.map[x];
        if (before == k && p->chosen[x])
            st = unpack(p, x, &inputs[k]);
    }
    for (int k = 0; k < op.n_outputs; k++)
        outputs[k] = p->copy.map[from->outputs[k]];
    op.inputs = inputs;
    op.outputs = outputs;
    if (!st)
        st = band_copy_new_op(&p->copy, &op, index);
    for (int k = 0; !st && k < op.n_outputs; k++)
        if (p->chosen[from->outputs[k]])
            st = pack(p, from->outputs[k]);
    if (!st && made->n_ops > first + 1)
        p->stages[p->n_stages++] = (qat_stage){first, made->n_ops - 1, 0};
    return st;
}

static qat_status add_all(packer *p)
{
    qat_status st = QAT_OK;
    for (int i = 0; !st && i < p->copy.from->n_tensors; i++)
        st = band_copy_same_tensor(&p->copy, i);
    for (int i = 0; !st && i < p->copy.from->n_ops; i++)
        st = add_op(p, i);
    return st ? st : band_copy_end(&p->copy);
}

/* ------------------------------------------------------------------ bands */

/** What a graph of a graph was made of, in terms of the first. */
static void chain(const qat_banded *last, const qat_banded *before)
{
    for (int i = 0; i < last->graph->n_tensors; i++)
        last->tensor_from[i] = before->tensor_from[last->tensor_from[i]];
    for (int i = 0; i < last->graph->n_ops; i++)
        last->op_from[i] = last->op_from[i] < 0 ? -1 : before->op_from[last->op_from[i]];
}

/** Keep the stages that can be cut into bands of so many rows, and have more. The others run whole.
 */
static void keep_bands(packer *p, int32_t rows, qat_rows *need)
{
    const qat_qgraph *graph = p->copy.to->graph;
    int n = 0;
    for (int i = 0; i < p->n_stages; i++) {
        qat_stage const s = {p->stages[i].first, p->stages[i].last, rows};
        if (qat_stage_is_valid(graph, s.first, s.last) &&
            graph->tensors[qat_stage_output(graph, &s)].dims[1] > rows &&
            qat_stage_has_bands(graph, &s, need))
            p->stages[n++] = s;
    }
    p->n_stages = n;
}

static qat_status cut(packer *p, qat_banded *packed, int32_t rows, qat_arena *memory,
                      qat_error *err)
{
    qat_banded banded;
    qat_rows *need = qat_arena_array(memory, (size_t)packed->graph->n_tensors + 1, sizeof *need);
    if (!need)
        return qat_out_of_memory(err, "packed tensors");
    keep_bands(p, rows, need);
    qat_status const st = qat_banded_build(&banded, packed->graph, p->stages, p->n_stages, err);
    if (st)
        return st;
    chain(&banded, packed);
    qat_banded_free(packed);
    *packed = banded;
    return QAT_OK;
}

qat_status qat_packed_build(qat_banded *packed, const qat_qgraph *graph, const bool *chosen,
                            int32_t rows, qat_error *err)
{
    packer p = {.chosen = chosen};
    qat_arena memory = {NULL, NULL};
    *packed = (qat_banded){0};
    p.packed = qat_arena_array(&memory, (size_t)graph->n_tensors + 1, sizeof *p.packed);
    p.stages = qat_arena_array(&memory, (size_t)graph->n_ops + 1, sizeof *p.stages);
    qat_status st = p.packed && p.stages ? band_copy_begin(&p.copy, packed, graph, err)
                                         : qat_out_of_memory(err, "packed tensors");
    if (!st)
        st = add_all(&p);
    if (!st)
        st = cut(&p, packed, rows, &memory, err);
    if (st)
        qat_banded_free(packed);
    qat_arena_free(&memory);
    return st;
}
