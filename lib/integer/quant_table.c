/**
 * table: y = T[q], or T[c][q] with one table per channel. Any elementwise layer can become a table:
 * when the model is built, its float forward is run on the real value of every input code.
 *
 *     T[q] = code of clamp(f(S (q - Z)))      by the fake-quant formula of the output's range
 */
#include "base/arena.h"
#include "infer/arithmetic/code_functions_i16.h"
#include "integer/quant_ops.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ENTRIES = 256 };

/* ------------------------------------------------------------------ appending the op */

qat_status qat_emit_table(const qat_emit *e, int rows, const void *codes, qat_error *err)
{
    const qat_qtensor *x = &e->graph->tensors[e->inputs[0]], *y = &e->graph->tensors[e->output];
    if (qi_type_bytes(x->type) > 1)
        return qat_fail(err, QAT_ERR_UNSUPPORTED, "%s: a table of %d entries for 16-bit codes",
                        e->name, (int)ENTRIES);
    qat_qtensor t = {.type = y->type,
                     .bits = y->bits,
                     .rank = rows > 1 ? 2 : 1,
                     .scale = y->scale,
                     .zero_point = y->zero_point,
                     .range_min = y->range_min,
                     .range_max = y->range_max,
                     .data = (void *)codes, /* copied */
                     .source_index = -1};
    qat_part_name(t.name, e->name, "table");
    t.dims[0] = rows > 1 ? rows : ENTRIES;
    t.dims[1] = ENTRIES;
    int const table = qat_qgraph_tensor(e->graph, &t, err);
    if (table < 0)
        return qat_append_status(table, err);
    qat_emit with_table = *e;
    with_table.n_inputs = 2;
    with_table.inputs = (const int[]){e->inputs[0], table};
    return qat_emit_op(&with_table, "table", QI_ROUND_NONE, 0, NULL, 0, err);
}

/** The layer's op on one sample, whose input is written here. */
struct trial {
    const qat_fused_layer *layer;
    qat_node x, y; /* copies of head's input and of head, for a batch of one */
    qat_node **inputs;
    size_t values, channels; /* of the sample */
};

/** Make copies with buffers in the integer graph's memory, so that the float graph is only read. */
static qat_status trial_init(struct trial *t, qat_error *err)
{
    const qat_node *head = t->layer->head;
    qat_arena *memory = t->layer->graph->memory;
    t->x = *head->inputs[0];
    t->y = *head;
    t->x.shape.dims[0] = 1;
    t->x.grad = t->y.grad = NULL;
    t->y.scratch = NULL;
    t->values = qat_shape_count(&t->x.shape);
    t->channels = (size_t)t->x.shape.dims[t->x.shape.rank - 1];
    t->x.value = qat_arena_array(memory, t->values, sizeof *t->x.value);
    t->y.value = qat_arena_array(memory, t->values, sizeof *t->y.value);
    t->inputs = qat_arena_array(memory, (size_t)head->n_inputs, sizeof(qat_node *));
    if (!t->x.value || !t->y.value || !t->inputs)
        return qat_out_of_memory(err, head->name);
    memcpy(t->inputs, head->inputs, (size_t)head->n_inputs * sizeof(qat_node *));
    t->inputs[0] = &t->x;
    t->y.inputs = t->inputs;
    qat_status const st = head->op->shape(&t->y, err);
    if (st)
        return st;
    if (!qat_shape_equal(&t->x.shape, &t->y.shape))
        return qat_fail(err, QAT_ERR_UNSUPPORTED,
                        "%s: op %s changes the shape, so it cannot become a table", head->name,
                        head->op->name);
    t->y.scratch = qat_arena_take(memory, t->y.scratch_bytes);
    if (!t->y.scratch)
        return qat_out_of_memory(err, head->name);
    return QAT_OK;
}

static void trial_run(struct trial *t)
{
    t->y.op->forward(&t->y, &(qat_run){.mode = QAT_MODE_EVAL});
}

/** The code at a byte position; for 2..7 bits the nearest one in use. */
static int32_t input_code(const struct trial *t, int position)
{
    const qat_qparams *p = &t->layer->input_params[0];
    qi_type const type = (qi_type)t->layer->graph->tensors[t->layer->inputs[0]].type;
    int32_t const code = qat_code_at(type, position);
    return code < p->lo ? p->lo : code > p->hi ? p->hi : code;
}

static uint8_t output_code(const struct trial *t, size_t i)
{
    const qat_fused_layer *layer = t->layer;
    float const y = t->y.value[i];
    float const clamped =
        y < layer->act_min ? layer->act_min : (y > layer->act_max ? layer->act_max : y);
    return (uint8_t)qat_code(&layer->output_params, clamped);
}

static qat_status refuse(const struct trial *t, size_t i, qat_error *err)
{
    const qat_node *head = t->layer->head;
    return qat_fail(
        err, QAT_ERR_UNSUPPORTED,
        "%s: op %s is not elementwise (value %zu of a sample depends on more than its own input "
        "and channel), so it cannot become a table; give it an integer kernel",
        head->name, head->op->name, i);
}

/** Fill tables[c][position] from samples that have the same code everywhere. */
static qat_status fill_tables(struct trial *t, uint8_t *tables, qat_error *err)
{
    for (int position = 0; position < ENTRIES; position++) {
        float const real = qat_real_of(&t->layer->input_params[0], input_code(t, position));
        for (size_t i = 0; i < t->values; i++)
            t->x.value[i] = real;
        trial_run(t);
        for (size_t i = 0; i < t->values; i++) {
            uint8_t *entry = &tables[i % t->channels * ENTRIES + (size_t)position];
            uint8_t const code = output_code(t, i);
            if (i < t->channels)
                *entry = code;
            else if (*entry != code)
                return refuse(t, i, err);
        }
    }
    return QAT_OK;
}

/** Check that the tables are also right if neighbouring values differ. */
static qat_status probe_tables(struct trial *t, const uint8_t *tables, qat_error *err)
{
    for (size_t i = 0; i < t->values; i++)
        t->x.value[i] =
            qat_real_of(&t->layer->input_params[0], input_code(t, (int)(i * 37 % ENTRIES)));
    trial_run(t);
    for (size_t i = 0; i < t->values; i++)
        if (output_code(t, i) != tables[i % t->channels * ENTRIES + i * 37 % ENTRIES])
            return refuse(t, i, err);
    return QAT_OK;
}

static bool all_equal(const uint8_t *tables, size_t channels)
{
    for (size_t c = 1; c < channels; c++)
        if (memcmp(tables, tables + c * ENTRIES, ENTRIES) != 0)
            return false;
    return true;
}

qat_status qat_freeze_table(const qat_fused_layer *layer, qat_error *err)
{
    if (layer->n_inputs != 1)
        return qat_fail(err, QAT_ERR_UNSUPPORTED, "%s: a table has one input, but op %s has %d",
                        layer->head->name, layer->head->op->name, layer->n_inputs);
    struct trial trial = {.layer = layer};
    qat_arena *memory = layer->graph->memory;
    const qat_shape *shape = &layer->head->inputs[0]->shape;
    size_t const channels = (size_t)shape->dims[shape->rank - 1];
    uint8_t *tables = qat_arena_array(memory, channels, ENTRIES);
    qat_arena_mark const before = qat_arena_now(memory);
    qat_status st = tables ? trial_init(&trial, err) : qat_out_of_memory(err, layer->head->name);
    if (!st)
        st = fill_tables(&trial, tables, err);
    if (!st)
        st = probe_tables(&trial, tables, err);
    qat_arena_back(memory, before);
    qat_emit const e = qat_emit_of(layer);
    int const rows = st || all_equal(tables, channels) ? 1 : (int)channels;
    return st ? st : qat_emit_table(&e, rows, tables, err);
}

/* ------------------------------------------------------------------ exact evaluation */

static void table_sample(const qat_exact_call *call, int sample)
{
    const qat_qtensor *x = qat_exact_input(call, 0), *table = qat_exact_input(call, 1);
    size_t const channels = table->rank == 2 ? (size_t)table->dims[0] : 1;
    size_t const count = qat_qtensor_count(x);
    const uint8_t *entries = call->in[1], *from = qat_exact_in(call, 0, sample);
    if (x->type == QI_S16) {
        for (size_t i = 0; i < count; i++)
            ((int16_t *)(void *)qat_exact_out(call, sample))[i] =
                (int16_t)qi_lookup_i16(call->in[1], qat_exact_code(x, from, i));
        return;
    }
    uint8_t const first = x->type == QI_S8 ? 128 : 0; /* byte at position 0 */
    uint8_t *to = qat_exact_out(call, sample);
    for (size_t i = 0; i < count; i++) {
        size_t const at = i % channels * ENTRIES + (uint8_t)(from[i] - first);
        qat_exact_store(qat_exact_output(call), to, i, qat_exact_code(table, entries, at));
    }
}

/** An entry is the code of a real number. */
static double table_bound(const qat_qgraph *graph, const qat_qop *op)
{
    return 0.5 + qat_float_quanta(graph, op, 1.0);
}

const qat_integer_op qat_integer_table = {
    .name = "table", .sample = table_sample, .is_wide = true, .bound = table_bound};
