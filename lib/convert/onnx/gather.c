/**
 * Gather: parts of codes at positions that are constants or an input of the network; rows of a
 * constant table at such positions are an embedding.
 *
 *     codes, or reals of one scale     the codes move
 *     a table of floats                its codes are those of the QuantizeLinear behind it, or 256
 *                                      from its least value to its largest
 */
#include "convert/onnx/import.h"

#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------ positions */

/** Constant positions as a tensor of int32; those below 0 count from the end. */
static qat_status append_positions(oq_importer *q, const qat_foreign_tensor *c, int64_t length,
                                   int *tensor)
{
    if (c->type != QAT_FOREIGN_INT || !c->count || c->count > INT32_MAX)
        return fv_refuse(&q->b, "its indices are no list of integers");
    int32_t *at = fv_take(&q->b, &q->b.arena, c->count, sizeof *at);
    if (!at)
        return fv_graph_error(&q->b);
    for (size_t i = 0; i < c->count; i++) {
        if (c->ints[i] < -length || c->ints[i] >= length)
            return fv_refuse(&q->b, "an index of %lld, outside the %lld positions",
                             (long long)c->ints[i], (long long)length);
        at[i] = (int32_t)(c->ints[i] < 0 ? c->ints[i] + length : c->ints[i]);
    }
    qat_qtensor t = {.type = QI_S32,
                     .bits = 32,
                     .rank = 1,
                     .dims = {(int32_t)c->count, 1, 1, 1},
                     .scale = 1,
                     .data = (uint8_t *)at,
                     .source_index = -1};
    qat_part_name(t.name, q->b.name, "indices");
    qat_status const st = oq_append_constant(q, &t);
    *tensor = t.source_index;
    if (!st)
        q->graph->tensors[*tensor].source_index = -1;
    return st;
}

/** The positions and their dimensions. */
static qat_status positions_of(oq_importer *q, int64_t length, int *tensor, fv *shape)
{
    const oq_operand x = oq_input(q, 1);
    const qat_foreign_tensor *c = x.shape.constant;
    *shape = x.shape;
    if (c) {
        shape->rank = c->rank;
        memcpy(shape->dims, c->dims, sizeof shape->dims);
        return append_positions(q, c, length, tensor);
    }
    *tensor = x.v.index - 1;
    return x.v.index
               ? QAT_OK
               : fv_refuse(&q->b, "its indices are neither constants nor an input of int32 or "
                                  "int64");
}

/* ------------------------------------------------------------------ a constant table */

/** Codes of a table of reals, on the grid of what quantizes them, or on one of its own. */
static qat_status quantize_table(oq_importer *q, oq_operand *x)
{
    const qat_foreign_tensor *from = x->v.constant.codes ? x->v.constant.codes : x->shape.constant;
    const float *reals = oq_reals_of(q, x);
    qat_foreign_tensor *t = fv_constant(&q->b, QAT_FOREIGN_INT, from->rank, from->dims);
    oq_target *grid = fv_take(&q->b, &q->b.arena, 1, sizeof *grid);
    if (!reals || !t || !grid)
        return from->type == QAT_FOREIGN_FLOAT || x->v.constant.codes
                   ? fv_graph_error(&q->b)
                   : fv_refuse(&q->b, "its data are constants, but not of floats or of codes");
    if (!oq_grid_behind(q, q->b.node->outputs[0], grid)) {
        float lo = 0, hi = 0;
        for (size_t i = 0; i < t->count; i++) {
            lo = reals[i] < lo ? reals[i] : lo;
            hi = reals[i] > hi ? reals[i] : hi;
        }
        if (!isfinite(hi - lo))
            return fv_refuse(&q->b, "a table whose values are not finite");
        *grid = oq_grid_of(lo, hi);
    }
    for (size_t i = 0; i < t->count; i++)
        ((int64_t *)t->ints)[i] = oq_code_of(reals[i], grid);
    t->stored = grid->type == QI_S8 ? OQ_INT8 : OQ_UINT8;
    x->v.constant = (oq_constant){
        .codes = t, .scales = &grid->scale, .n_scales = 1, .zero_point = grid->zero_point};
    return QAT_OK;
}

static bool is_code_type(int stored)
{
    return stored == OQ_UINT8 || stored == OQ_INT8;
}

/** Codes without a DequantizeLinear: of the scale with which they are read later. */
static qat_status name_codes(oq_importer *q, oq_operand *x)
{
    oq_target *grid = fv_take(&q->b, &q->b.arena, 1, sizeof *grid);
    if (!grid)
        return fv_graph_error(&q->b);
    *grid = oq_grid_read(q, q->b.node->outputs[0]);
    x->v.constant = (oq_constant){.codes = x->shape.constant,
                                  .scales = &grid->scale,
                                  .n_scales = 1,
                                  .zero_point = grid->zero_point};
    return QAT_OK;
}

/** The table as a tensor of one scale. */
static qat_status append_table(oq_importer *q, oq_operand *x)
{
    const oq_constant *c = &x->v.constant;
    const qat_foreign_tensor *plain = x->shape.constant;
    bool const are_codes =
        !c->codes && plain && plain->type == QAT_FOREIGN_INT && is_code_type(plain->stored);
    qat_status st = QAT_OK;
    if (are_codes)
        st = name_codes(q, x);
    else if (!c->codes || c->n_scales != 1 || !is_code_type(c->codes->stored))
        st = quantize_table(q, x);
    if (st)
        return st;
    x->shape.rank = c->codes->rank;
    memcpy(x->shape.dims, c->codes->dims, sizeof x->shape.dims);
    st = oq_append_operand(q, x, x->shape.rank, 0);
    x->v = (oq_value){.tensor = x->v.tensor, .is_real = !are_codes};
    return st;
}

/* ------------------------------------------------------------------ Gather */

/** The values, in the file's order. */
static qat_status data_of(builder *b, oq_operand *x)
{
    oq_importer *q = oq_of(b);
    *x = oq_input(q, 0);
    if (oq_is_empty(x))
        return fv_refuse(b, "its data have no values");
    if (x->v.constant.codes || x->shape.constant)
        return append_table(q, x);
    qat_status const st = oq_moved_input(b, false, x);
    return st ? st : oq_order(q, x, 0);
}

/** The dimensions of the result: those of the positions in place of the axis. */
static qat_status result_dims(const oq_importer *q, const fv *x, int axis, const fv *at, int *rank,
                              int64_t dims[QAT_FOREIGN_RANK])
{
    *rank = x->rank + at->rank - 1;
    if (*rank > QAT_FOREIGN_RANK)
        return fv_refuse(&q->b, "a result of %d dimensions", *rank);
    for (int i = 0; i < *rank; i++)
        dims[i] = i < axis              ? x->dims[i]
                  : i < axis + at->rank ? at->dims[i - axis]
                                        : x->dims[i - at->rank + 1];
    return QAT_OK;
}

qat_status oq_gather(builder *b)
{
    oq_importer *q = oq_of(b);
    oq_operand x;
    fv at;
    if (b->node->n_outputs < 1)
        return fv_refuse(b, "it has no output");
    int64_t dims[QAT_FOREIGN_RANK];
    int axis = 0, rank = 0, positions = -1, output = -1;
    qat_status st = data_of(b, &x);
    if (!st)
        st = oq_few_dims(q, x.shape.rank);
    if (!st)
        st = fv_axis(b, fv_attr_int(b, "axis", 0), x.shape.rank, &axis);
    if (!st)
        st = positions_of(q, x.shape.dims[axis], &positions, &at);
    if (!st)
        st = result_dims(q, &x.shape, axis, &at, &rank, dims);
    oq_target target = st ? (oq_target){.value = -1} : oq_same_codes(q, &x, b->node->outputs[0]);
    if (!st)
        st = oq_append_output(q, &target, 0, rank, dims, &output);
    if (st)
        return st;
    oq_value v = x.v;
    v.tensor = output;
    v.n_last = 0;
    oq_output(q, 0, &v, rank, dims);
    int const inputs[] = {x.v.tensor, positions};
    qat_emit const e = oq_emit(q, 2, inputs, output, NULL);
    return qat_emit_op(&e, "gather", QI_ROUND_NONE, 2, (const int32_t[]){axis, 0}, 0, q->err);
}
