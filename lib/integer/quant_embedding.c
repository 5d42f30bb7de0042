/**
 * embedding: rows of a table, whose values have codes on the grid of the output.
 *
 *     i = round(S (q - Z))     the number that the code stands for: scale 1, zero point 0; at most
 *                              that of the last row. A table; of 16-bit codes requantize
 *     y = T[i]                 T = code(w) of each value; cast makes i an int32 first
 *
 * A reshape before them drops the last dimension, of 1, in whose place the values of a row come.
 * Each row must have a code of its own: the input's scale is at most 1. Then the code of a whole
 * number is less than half from it, and requantize gives it too, whose first rounding is exact
 * then.
 */
#include "autograd/ops/op.h"
#include "base/arena.h"
#include "integer/quant_ops.h"

#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------ appending the ops */

/** A part of the layer like the input, without its last dimension. */
static qat_qtensor part_like_input(const qat_fused_layer *layer, const char *part)
{
    const qat_qtensor *x = &layer->graph->tensors[layer->inputs[0]];
    qat_qtensor t = qat_part_like(x, layer->head->name, part);
    t.rank--;
    t.dims[t.rank] = 1;
    return t;
}

static qat_status append(const qat_fused_layer *layer, const qat_qtensor *t, int *tensor,
                         qat_error *err)
{
    *tensor = qat_qgraph_tensor(layer->graph, t, err);
    return qat_append_status(*tensor, err);
}

static qat_status append_codes(const qat_fused_layer *layer, int *tensor, qat_error *err)
{
    qat_qtensor const t = part_like_input(layer, "codes");
    return append(layer, &t, tensor, err);
}

static qat_status append_numbers(const qat_fused_layer *layer, const char *part, qi_type type,
                                 int *tensor, qat_error *err)
{
    qat_qtensor t = part_like_input(layer, part);
    t.type = type;
    t.bits = 8 * (int)qi_type_bytes(type);
    t.scale = 1;
    t.zero_point = 0;
    t.range_min = t.range_max = 0;
    return append(layer, &t, tensor, err);
}

/** From codes to numbers, as the float layer rounds. */
static qat_status emit_numbers(const qat_fused_layer *layer, const qat_emit *e, qat_error *err)
{
    enum { ENTRIES = 256 };
    const qat_qparams *p = &layer->input_params[0];
    qi_type const type = e->graph->tensors[e->inputs[0]].type;
    uint8_t numbers[ENTRIES];
    if (type == QI_S16)
        return qat_emit_requantize(e, err);
    for (int i = 0; i < ENTRIES; i++) {
        float const real = qat_real_of(p, qi_clamp(qat_code_at(type, i), p->lo, p->hi));
        numbers[i] = (uint8_t)fminf(fmaxf(floorf(real + 0.5f), 0), e->act_max);
    }
    return qat_emit_table(e, 1, numbers, err);
}

static qat_emit part_of(const qat_fused_layer *layer, int n, const int *inputs, int output)
{
    qat_emit e = qat_emit_of(layer);
    e.n_inputs = n;
    e.inputs = inputs;
    e.output = output;
    e.act_min = -INFINITY;
    e.act_max = INFINITY;
    return e;
}

/** The codes of the table. */
static qat_status append_rows(const qat_fused_layer *layer, int *tensor, qat_error *err)
{
    const qat_node *w = layer->head->inputs[1];
    qat_qtensor t = layer->graph->tensors[layer->output];
    size_t const count = qat_shape_count(&w->shape);
    void *codes = qat_arena_array(layer->graph->memory, count, qi_type_bytes(t.type));
    if (!codes)
        return qat_out_of_memory(err, layer->head->name);
    for (size_t i = 0; i < count; i++)
        qat_store_code(t.type, codes, i, qat_code(&layer->output_params, w->value[i]));
    t.data = codes;
    t.rank = 2;
    memcpy(t.dims, (const int32_t[]){w->shape.dims[0], w->shape.dims[1], 1, 1}, sizeof t.dims);
    qat_part_name(t.name, layer->head->name, "rows");
    *tensor = qat_qgraph_tensor(layer->graph, &t, err);
    return qat_append_status(*tensor, err);
}

static qat_status check_codes(const qat_fused_layer *layer, qat_error *err)
{
    const qat_qparams *p = &layer->input_params[0];
    bool const is_wide = layer->graph->tensors[layer->inputs[0]].type == QI_S16;
    if (p->min < -0.5f && !is_wide) /* 16-bit codes reach as far below 0 as above it */
        return qat_fail(err, QAT_ERR_UNSUPPORTED,
                        "%s: its input has numbers from %g on, but its table has rows for those "
                        "from 0 on: data.mean = 0 and data.std = 1 leave numbers as they are",
                        layer->head->name, (double)p->min);
    if (p->scale <= 1)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_UNSUPPORTED,
                    "%s: its input has numbers up to %g in codes that are %g apart, which do not "
                    "tell the rows of its table apart: quant.activation_bits = 16",
                    layer->head->name, (double)p->max, (double)p->scale);
}

static qat_status freeze_embedding(const qat_fused_layer *layer, qat_error *err)
{
    static const int32_t params[] = {0, 0}; /* along dimension 0, which is no batch */
    const qat_qtensor *x = &layer->graph->tensors[layer->inputs[0]];
    qi_type const type = x->type == QI_S16 ? QI_S16 : QI_U8;
    int codes = -1, numbers = -1, indices = -1, rows = -1;
    qat_status st = check_codes(layer, err);
    if (!st)
        st = append_codes(layer, &codes, err);
    qat_emit e = part_of(layer, 1, layer->inputs, codes);
    if (!st)
        st = qat_emit_reshape(&e, err);
    if (!st)
        st = append_numbers(layer, "numbers", type, &numbers, err);
    e = part_of(layer, 1, &codes, numbers);
    e.act_max = (float)(layer->head->inputs[1]->shape.dims[0] - 1);
    if (!st)
        st = emit_numbers(layer, &e, err);
    if (!st)
        st = append_numbers(layer, "indices", QI_S32, &indices, err);
    e = part_of(layer, 1, &numbers, indices);
    if (!st)
        st = qat_emit_op(&e, "cast", QI_ROUND_NONE, 0, NULL, 0, err);
    if (!st)
        st = append_rows(layer, &rows, err);
    int const inputs[] = {rows, indices};
    e = part_of(layer, 2, inputs, layer->output);
    return st ? st : qat_emit_op(&e, "gather", QI_ROUND_NONE, 2, params, 0, err);
}

const qat_quant qat_quant_embedding = {
    .role = QAT_ROLE_CUSTOM, .freeze = freeze_embedding, .takes_wide = true};

/* ------------------------------------------------------------------ exact evaluation */

/** From codes to int32. */
static void cast_sample(const qat_exact_call *call, int sample)
{
    const qat_qtensor *x = qat_exact_input(call, 0), *y = qat_exact_output(call);
    for (size_t i = 0; i < qat_qtensor_count(y); i++)
        qat_exact_store(y, qat_exact_out(call, sample), i,
                        qat_exact_code(x, qat_exact_in(call, 0, sample), i));
}

/** Of rows of a constant table. */
static void gather_sample(const qat_exact_call *call, int sample)
{
    const qat_qtensor *rows = qat_exact_input(call, 0), *at = qat_exact_input(call, 1);
    size_t const units = (size_t)rows->dims[1];
    for (size_t i = 0; i < qat_qtensor_count(at); i++) {
        int32_t const wanted = qat_exact_code(at, qat_exact_in(call, 1, sample), i);
        int32_t const row = qi_clamp(wanted, 0, rows->dims[0] - 1);
        for (size_t k = 0; k < units; k++)
            qat_exact_store(
                qat_exact_output(call), qat_exact_out(call, sample), i * units + k,
                qat_exact_code(rows, qat_exact_in(call, 0, sample), (size_t)row * units + k));
    }
}

/**
 * A value of the table is the code of a real number. Of 16-bit codes that no whole number has,
 * requantize may give the row beside the float layer's.
 */
static double gather_bound(const qat_qgraph *graph, const qat_qop *op)
{
    return graph->tensors[op->outputs[0]].type == QI_S16 ? INFINITY : 0.5;
}

const qat_integer_op qat_integer_cast = {.name = "cast", .sample = cast_sample, .is_wide = true};
const qat_integer_op qat_integer_gather = {
    .name = "gather", .sample = gather_sample, .is_wide = true, .bound = gather_bound};
