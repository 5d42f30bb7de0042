/** Makes the graph whose stages run in bands. */
#include "bands/copy.h"

#include "infer/model/op.h"
#include "infer/model/qm_layout.h"

#include <stdio.h>
#include <string.h>

/** Rows of a tensor, as a tensor of the new graph. */
typedef struct part {
    int tensor; /* of the first graph */
    qat_rows rows;
    int made;
} part;

typedef struct builder {
    band_copy copy;
    const qat_qgraph *from;
    const qat_stage *stages;
    int n_stages;
    const qat_stage *stage; /* the one that is being made */
    qat_rows *need;         /* of each tensor of the first graph, in this band */
    part *parts;            /* of this band: the outputs of the stage's ops, and slices */
    int n_parts;
    qat_error *err;
} builder;

/** Is the tensor between ops of the stage? */
static bool is_inside(const qat_qgraph *graph, const qat_stage *stage, int tensor)
{
    for (int i = stage->first; i < stage->last; i++)
        if (graph->ops[i].outputs[0] == tensor)
            return true;
    return false;
}

/* ------------------------------------------------------------------ one band */

/** "conv1, rows 8 to 15" */
static void name_rows(char name[QAT_NAME_MAX], const char *of, qat_rows rows)
{
    char which[48];
    snprintf(which, sizeof which, "rows %d to %d", (int)rows.first, (int)rows.end - 1);
    band_copy_name(name, of, which);
}

/** Append a tensor for rows of a tensor of the first graph, and remember it. */
static qat_status add_part(builder *b, int tensor, qat_rows rows, int *made)
{
    qat_qtensor t = b->from->tensors[tensor];
    t.dims[1] = rows.end - rows.first;
    t.border = QI_BORDER_NONE;
    t.source_index = -1;
    name_rows(t.name, b->from->tensors[tensor].name, rows);
    qat_status const st = band_copy_tensor(&b->copy, &t, tensor, made);
    if (!st)
        b->parts[b->n_parts++] = (part){tensor, rows, *made};
    return st;
}

static int part_of(const builder *b, int tensor, qat_rows rows)
{
    for (int i = 0; i < b->n_parts; i++)
        if (b->parts[i].tensor == tensor && b->parts[i].rows.first == rows.first &&
            b->parts[i].rows.end == rows.end)
            return b->parts[i].made;
    return -1;
}

/** Rows of a tensor for an op of the stage: the whole tensor, what an op made, or a slice of it. */
static qat_status take_rows(builder *b, int tensor, qat_rows rows, int *taken)
{
    const qat_qtensor *t = &b->from->tensors[tensor];
    bool const is_made = is_inside(b->from, b->stage, tensor);
    qat_rows const there = is_made ? b->need[tensor] : (qat_rows){0, t->dims[1]};
    int whole = is_made ? part_of(b, tensor, there) : b->copy.map[tensor];
    *taken = rows.first == there.first && rows.end == there.end ? whole : part_of(b, tensor, rows);
    if (*taken >= 0)
        return QAT_OK;
    qat_qop op = {.op = "strided_slice",
                  .n_inputs = 1,
                  .n_outputs = 1,
                  .inputs = &whole,
                  .outputs = taken,
                  .rounding = QI_ROUND_NONE,
                  .n_params = QI_SLICE_PARAMS};
    op.params[QI_SLICE_BEGIN + 1] = rows.first - there.first;
    for (int d = 0; d < QI_MAX_RANK; d++)
        op.params[QI_SLICE_STRIDE + d] = 1;
    name_rows(op.name, t->name, rows);
    qat_status const st = add_part(b, tensor, rows, taken);
    return st ? st : band_copy_new_op(&b->copy, &op, -1);
}

static void widen(qat_rows *all, qat_rows more)
{
    if (all->first == all->end)
        *all = more;
    all->first = more.first < all->first ? more.first : all->first;
    all->end = more.end > all->end ? more.end : all->end;
}

/** Find the rows of each tensor that this band of the output needs. False: some op, only padding.
 */
static bool find_needs(const qat_qgraph *graph, const qat_stage *stage, qat_rows band,
                       qat_rows *need)
{
    memset(need, 0, (size_t)graph->n_tensors * sizeof *need);
    need[qat_stage_output(graph, stage)] = band;
    for (int i = stage->last; i >= stage->first; i--) {
        const qat_qop *op = &graph->ops[i];
        qat_rows const output = need[op->outputs[0]];
        for (int k = 0; output.first < output.end && k < op->n_inputs; k++) {
            if (!qat_input_has_rows(graph, op, k))
                continue;
            qat_rows const rows = qat_rows_needed(graph, op, output);
            if (rows.first == rows.end)
                return false;
            widen(&need[op->inputs[k]], rows);
        }
    }
    return true;
}

static qat_rows band_at(const qat_qgraph *graph, const qat_stage *stage, int32_t first)
{
    int32_t const height = graph->tensors[qat_stage_output(graph, stage)].dims[1];
    return (qat_rows){first, first + stage->rows < height ? first + stage->rows : height};
}

bool qat_stage_has_bands(const qat_qgraph *graph, const qat_stage *stage, qat_rows *need)
{
    int32_t const height = graph->tensors[qat_stage_output(graph, stage)].dims[1];
    bool has = qat_stage_bands(graph, stage) <= QM_MAX_NODE_INPUTS;
    for (int32_t at = 0; has && at < height; at += stage->rows)
        has = find_needs(graph, stage, band_at(graph, stage, at), need);
    return has;
}

/** One op of the stage, for the rows that this band needs. */
static qat_status add_band_op(builder *b, int index)
{
    const qat_qop *from = &b->from->ops[index];
    qat_rows const output = b->need[from->outputs[0]];
    int inputs[QM_MAX_NODE_INPUTS], made = -1;
    qat_qop op = *from;
    qat_status st = QAT_OK;
    if (output.first == output.end)
        return QAT_OK; /* no row of this band needs it */
    qat_rows const input = qat_rows_needed(b->from, from, output);
    for (int k = 0; !st && k < from->n_inputs; k++) {
        inputs[k] = b->copy.map[from->inputs[k]];
        if (qat_input_has_rows(b->from, from, k))
            st = take_rows(b, from->inputs[k], input, &inputs[k]);
    }
    if (!st)
        st = add_part(b, from->outputs[0], output, &made);
    op.inputs = inputs;
    op.outputs = &made;
    name_rows(op.name, from->name, output);
    qat_set_rows(b->from, &op, input, output);
    return st ? st : band_copy_new_op(&b->copy, &op, index);
}

/* ------------------------------------------------------------------ all bands */

static qat_status join_bands(builder *b, int n, int *bands)
{
    int const y = qat_stage_output(b->from, b->stage);
    qat_qop op = {.op = "concat",
                  .n_inputs = n,
                  .n_outputs = 1,
                  .inputs = bands,
                  .outputs = &b->copy.map[y],
                  .rounding = QI_ROUND_NONE,
                  .n_params = QI_CONCAT_PARAMS,
                  .params = {1}};
    snprintf(op.name, sizeof op.name, "%s", b->from->ops[b->stage->last].name);
    return band_copy_new_op(&b->copy, &op, -1);
}

static qat_status add_stage(builder *b)
{
    int const y = qat_stage_output(b->from, b->stage);
    int32_t const height = b->from->tensors[y].dims[1];
    int bands[QM_MAX_NODE_INPUTS];
    qat_status st = QAT_OK;
    int n = 0;
    if (!qat_stage_has_bands(b->from, b->stage, b->need))
        return qat_fail(b->err, QAT_ERR_UNSUPPORTED, "too many bands, or a band of padding alone");
    for (int32_t at = 0; !st && at < height; at += b->stage->rows) {
        qat_rows const band = band_at(b->from, b->stage, at);
        b->n_parts = 0;
        find_needs(b->from, b->stage, band, b->need);
        for (int i = b->stage->first; !st && i <= b->stage->last; i++)
            st = add_band_op(b, i);
        if (!st)
            bands[n++] = part_of(b, y, band);
    }
    return st ? st : join_bands(b, n, bands);
}

/** All tensors but those between a stage's ops. */
static qat_status copy_tensors(builder *b)
{
    qat_status st = QAT_OK;
    for (int i = 0; !st && i < b->from->n_tensors; i++) {
        bool inside = false;
        for (int k = 0; !inside && k < b->n_stages; k++)
            inside = is_inside(b->from, &b->stages[k], i);
        if (!inside)
            st = band_copy_same_tensor(&b->copy, i);
    }
    return st;
}

static qat_status build(builder *b)
{
    const qat_stage *const end = b->stages + b->n_stages;
    qat_status st = copy_tensors(b);
    b->stage = b->stages;
    for (int i = 0; !st && i < b->from->n_ops; i++) {
        if (b->stage == end || i < b->stage->first) {
            st = band_copy_same_op(&b->copy, i);
            continue;
        }
        st = add_stage(b);
        i = b->stage++->last;
    }
    return st ? st : band_copy_end(&b->copy);
}

/** Room for what a builder needs; in the memory of the new graph. */
static bool make_room(builder *b, qat_arena *memory)
{
    b->need = qat_arena_array(memory, (size_t)b->from->n_tensors + 1, sizeof *b->need);
    b->parts = qat_arena_array(memory, (size_t)b->copy.tensors_room, sizeof *b->parts);
    return b->need && b->parts;
}

qat_status qat_banded_build(qat_banded *banded, const qat_qgraph *graph, const qat_stage *stages,
                            int n_stages, qat_error *err)
{
    builder b = {.from = graph, .stages = stages, .n_stages = n_stages, .err = err};
    qat_status st = band_copy_begin(&b.copy, banded, graph, err);
    if (!st)
        st = make_room(&b, banded->graph->memory) ? build(&b) : qat_out_of_memory(err, "bands");
    if (st)
        qat_banded_free(banded);
    return st;
}
