#include "convert/qm_pack.h"
#include "infer/arithmetic/scale_bits.h"
#include "infer/model/qm_layout.h"

#include <stdlib.h>
#include <string.h>

enum { X, WEIGHTS, BIAS, MULT, SHIFT, INPUTS }; /* of a layer */

/* ------------------------------------------------------------------ which constants */

static bool has_few_codes(const qat_qgraph *graph, const qat_qtensor *t)
{
    return t->data && (t->type == QI_U8 || t->type == QI_S8) && t->bits < 8 &&
           !graph->form.unpacked;
}

/** Integers that a kernel may read narrow, in files that may have them. */
static bool may_be_narrow(const qat_qgraph *graph, const qat_qtensor *t)
{
    return t->data && t->type == QI_S32 && !graph->form.fixed;
}

static bool are_alike(const qat_qtensor *a, const qat_qtensor *b)
{
    return a->type == b->type && a->bits == b->bits && a->dims[0] == b->dims[0] &&
           qat_qtensor_count(a) == qat_qtensor_count(b);
}

/** The tensors with the numbers of `index` must not be packed. */
static void forbid(const qat_qgraph *graph, int index, bool *may)
{
    for (int i = 0; i < graph->n_tensors; i++)
        if (graph->tensors[i].data == graph->tensors[index].data)
            may[i] = false;
}

/** Does an op of this row read its input i packed? */
static bool reads_packed(const qi_op *row, int i, bool is_integers)
{
    int const how = row ? row->kernel->reads_packed : 0;
    return is_integers ? (how & QI_READS_NARROW) && i == SHIFT
                       : (how & QI_READS_CODES) && i == WEIGHTS;
}

static void forbid_readers(const qat_qgraph *graph, const qat_qop *op, bool *may)
{
    const qi_op *row = qi_op_named(op->op);
    for (int i = 0; i < op->n_inputs; i++) {
        const qat_qtensor *t = &graph->tensors[op->inputs[i]];
        if (may[op->inputs[i]] && !reads_packed(row, i, t->type == QI_S32))
            forbid(graph, op->inputs[i], may);
    }
}

void qm_may_pack(const qat_qgraph *graph, bool *may)
{
    for (int i = 0; i < graph->n_tensors; i++)
        may[i] =
            has_few_codes(graph, &graph->tensors[i]) || may_be_narrow(graph, &graph->tensors[i]);
    for (int i = 0; i < graph->n_tensors; i++)
        for (int j = 0; may[i] && j < i; j++)
            if (graph->tensors[j].data == graph->tensors[i].data &&
                !are_alike(&graph->tensors[j], &graph->tensors[i]))
                forbid(graph, i, may);
    for (int i = 0; i < graph->n_ops; i++)
        forbid_readers(graph, &graph->ops[i], may);
    for (int i = 0; i < graph->epilogue.n_inputs; i++)
        forbid(graph, graph->epilogue.inputs[i], may);
}

/* ------------------------------------------------------------------ forms */

/** A way to pack the rows of a constant. */
struct form {
    const qat_qtensor *t;
    size_t rows, values; /* values of a row */
    int packing, listed;
    uint8_t list[256];    /* codes, as bytes, by index */
    uint8_t indices[256]; /* the index of each byte */
};

static size_t form_bytes(const struct form *f, int packing, int listed)
{
    return (size_t)listed + f->rows * qm_packed_row_bytes(packing, f->values);
}

static int lowest_code(const qat_qtensor *t)
{
    return t->type == QI_U8 ? 0 : -(1 << (t->bits - 1));
}

/** List the codes that occur, in rising order. Returns how many there are. */
static int list_codes(struct form *f)
{
    const uint8_t *bytes = f->t->data;
    bool seen[256] = {false};
    int n = 0;
    for (size_t i = 0; i < f->rows * f->values; i++)
        seen[bytes[i]] = true;
    for (int i = 0; i < 1 << f->t->bits; i++) {
        uint8_t const byte = (uint8_t)(lowest_code(f->t) + i);
        if (seen[byte])
            f->list[n++] = byte;
    }
    return n;
}

/** Take a form if it needs fewer bytes than the one chosen so far. */
static void consider(struct form *f, size_t *least, int packing, int listed)
{
    size_t const bytes = form_bytes(f, packing, listed);
    if (bytes >= *least)
        return;
    *least = bytes;
    f->packing = packing;
    f->listed = listed;
}

static void choose(struct form *f)
{
    int const n = list_codes(f);
    size_t least = f->rows * f->values;
    int bits = 1;
    while (1 << bits < n)
        bits++;
    consider(f, &least, f->t->bits, 0);
    if (bits < f->t->bits)
        consider(f, &least, bits, n);
    if (n <= QM_MOST_TRITS)
        consider(f, &least, QI_PACKING_TRITS, n);
    for (int i = 0; i < (f->listed ? f->listed : 1 << f->t->bits); i++) {
        uint8_t const byte = f->listed ? f->list[i] : (uint8_t)(lowest_code(f->t) + i);
        f->indices[byte] = (uint8_t)i;
    }
}

/* ------------------------------------------------------------------ writing */

static void write_row(const struct form *f, const uint8_t *codes, uint8_t *to)
{
    static const uint8_t power[QI_TRITS_OF_BYTE] = {1, 3, 9, 27, 81};
    for (size_t i = 0; i < f->values; i++) {
        unsigned const index = f->indices[codes[i]];
        if (f->packing == QI_PACKING_TRITS) {
            to[i / QI_TRITS_OF_BYTE] += (uint8_t)(index * power[i % QI_TRITS_OF_BYTE]);
            continue;
        }
        size_t const bit = i * (size_t)f->packing;
        unsigned const word = index << bit % 8;
        to[bit / 8] |= (uint8_t)word;
        if (word >> 8)
            to[bit / 8 + 1] |= (uint8_t)(word >> 8);
    }
}

/** Integers of a byte each, if all of them fit. */
static qat_status pack_narrow(const qat_qtensor *t, qm_packed *packed, qat_error *err)
{
    const int32_t *values = t->data;
    size_t const n = qat_qtensor_count(t);
    bool fit = true;
    for (size_t i = 0; i < n; i++)
        fit = fit && values[i] >= INT8_MIN && values[i] <= INT8_MAX;
    *packed = (qm_packed){.count = fit ? n : qat_qtensor_bytes(t)};
    if (!fit)
        return QAT_OK;
    packed->packing = QM_NARROW;
    packed->bytes = malloc(n);
    if (!packed->bytes)
        return qat_out_of_memory(err, t->name);
    for (size_t i = 0; i < n; i++)
        packed->bytes[i] = (uint8_t)values[i];
    return QAT_OK;
}

qat_status qm_pack(const qat_qtensor *t, qm_packed *packed, qat_error *err)
{
    if (t->type == QI_S32)
        return pack_narrow(t, packed, err);
    size_t const rows = (size_t)t->dims[0];
    struct form f = {.t = t, .rows = rows, .values = qat_qtensor_count(t) / rows};
    choose(&f);
    *packed = (qm_packed){
        .packing = (uint8_t)f.packing, .listed = (uint8_t)f.listed, .count = qat_qtensor_bytes(t)};
    if (!f.packing)
        return QAT_OK;
    packed->count = form_bytes(&f, f.packing, f.listed);
    packed->bytes = calloc(packed->count, 1);
    if (!packed->bytes)
        return qat_out_of_memory(err, t->name);
    memcpy(packed->bytes, f.list, (size_t)f.listed);
    uint8_t *to = packed->bytes + f.listed;
    const uint8_t *codes = t->data;
    for (size_t row = 0; row < rows; row++, codes += f.values)
        write_row(&f, codes, to + row * qm_packed_row_bytes(f.packing, f.values));
    return QAT_OK;
}

/* ------------------------------------------------------------------ derived scales */

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/** The first layer that multiplies by these weights, or NULL. As qm_scaled_node finds it. */
static const qat_qop *layer_of(const qat_qgraph *graph, int weights)
{
    for (int i = 0; i < graph->n_ops; i++) {
        const qat_qop *op = &graph->ops[i];
        const qi_op *row = qi_op_named(op->op);
        if (op->n_inputs > WEIGHTS && op->inputs[WEIGHTS] == weights)
            return row && row->kernel->reads_packed & QI_READS_NARROW && op->n_inputs == INPUTS
                       ? op
                       : NULL;
    }
    return NULL;
}

bool qm_scales_follow(const qat_qgraph *graph, int index)
{
    const qat_qtensor *t = graph->tensors, *w = &t[index];
    const qat_qop *op = layer_of(graph, index);
    if (!op || op->rounding == QI_ROUND_DOUBLE)
        return false;
    const qat_qtensor *x = &t[op->inputs[X]], *mult = &t[op->inputs[MULT]],
                      *shift = &t[op->inputs[SHIFT]];
    size_t const n = (size_t)w->n_channels, shifts = qat_qtensor_count(shift);
    bool follow =
        !x->channel_scales && qat_qtensor_count(mult) == n && (shifts == n || shifts == 1);
    uint32_t const x_bits = bits_of(x->scale), y_bits = bits_of(t[op->outputs[0]].scale);
    for (size_t i = 0; follow && i < n; i++)
        follow = qi_scale_bits(((const int32_t *)mult->data)[i],
                               ((const int32_t *)shift->data)[shifts > 1 ? i : 0], op->fraction,
                               x_bits, y_bits) == bits_of(w->channel_scales[i]);
    return follow;
}
