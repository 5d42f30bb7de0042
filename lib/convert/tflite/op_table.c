/**
 * A table of 256 codes, or one for each channel, as other operators spell it:
 *
 *     q (uint8, int8) -> CAST to int32 -> ADD the first position of the channel's table, plus 128
 *         for int8 -> GATHER of a constant -> y
 *
 * Together they are one op of the engine, with a QUANTIZE before them that only makes int8 of
 * uint8. Where positions are read by anything else, or reach past a channel's 256 codes, each
 * operator is left to its own handler.
 */
#include "convert/tflite/import.h"

enum { ENTRIES = 256 };

/** The operators, and what the table needs. quantize NULL: there is none. add NULL: q counts from
 * the table's start. */
struct lookup {
    const tfl_op *quantize, *cast, *add, *gather;
    const tfl_tensor *q, *table;
    int offsets; /* tensor of the file: what is added */
    int source;  /* tensor of the file that the op of the engine reads */
};

static const tfl_tensor *tensor_of(const tfl_importer *im, const tfl_op *op, int i)
{
    return i < op->n_inputs && op->inputs[i] >= 0 ? &im->model->tensors[op->inputs[i]] : NULL;
}

/** Who writes and who reads a tensor: the number of an operator, or one of these. */
enum { NOBODY = -1, SEVERAL = -2 };

qat_status tfl_know_readers(tfl_importer *im)
{
    const tfl_model *m = im->model;
    im->writer = qat_arena_array(&im->arena, (size_t)m->n_tensors + 1, sizeof *im->writer);
    im->reader = qat_arena_array(&im->arena, (size_t)m->n_tensors + 1, sizeof *im->reader);
    if (!im->writer || !im->reader)
        return qat_out_of_memory(im->err, NULL);
    for (int i = 0; i < m->n_tensors; i++)
        im->writer[i] = im->reader[i] = NOBODY;
    for (int i = 0; i < m->n_ops; i++) {
        const tfl_op *op = &m->ops[i];
        for (int j = 0; j < op->n_inputs; j++)
            if (op->inputs[j] >= 0)
                im->reader[op->inputs[j]] = im->reader[op->inputs[j]] == NOBODY ? i : SEVERAL;
        if (op->n_outputs == 1)
            im->writer[op->outputs[0]] = i;
    }
    for (int i = 0; i < m->n_outputs; i++)
        im->reader[m->outputs[i]] = SEVERAL;
    return QAT_OK;
}

static const tfl_op *writer_of(const tfl_importer *im, int tensor)
{
    return tensor < 0 || im->writer[tensor] < 0 ? NULL : &im->model->ops[im->writer[tensor]];
}

static const tfl_op *only_reader_of(const tfl_importer *im, int tensor)
{
    return im->reader[tensor] < 0 ? NULL : &im->model->ops[im->reader[tensor]];
}

static bool is_codes(const tfl_tensor *t)
{
    return t && (t->type == TFL_UINT8 || t->type == TFL_INT8) && !t->sparse;
}

static bool is_grid(const tfl_tensor *t, int type, float scale, int64_t zero)
{
    return t && t->type == type && t->scales.count == 1 && t->zero_points.count == 1 &&
           fb_f32_at(&t->scales, 0) == scale && fb_i64_at(&t->zero_points, 0) == zero;
}

/** Does QUANTIZE make the int8 codes that CAST reads, and nothing else, of uint8 codes of the same
 * meaning? */
static void find_quantize(const tfl_importer *im, struct lookup *l)
{
    int const q = l->cast->inputs[0];
    const tfl_op *before = writer_of(im, q);
    l->source = q;
    if (!before || before->code != TFL_QUANTIZE || before->n_inputs != 1 || before >= l->cast ||
        only_reader_of(im, q) != l->cast || !l->q || l->q->scales.count != 1 ||
        l->q->zero_points.count != 1)
        return;
    float const scale = fb_f32_at(&l->q->scales, 0);
    int64_t const zero = fb_i64_at(&l->q->zero_points, 0);
    if (!is_grid(l->q, TFL_INT8, scale, zero) || zero < INT8_MIN || zero > INT8_MAX ||
        !is_grid(tensor_of(im, before, 0), TFL_UINT8, scale, zero + ENTRIES / 2))
        return;
    l->quantize = before;
    l->source = before->inputs[0];
}

/** Tables hold codes of 8 bits, or of 16. */
static bool is_table(const tfl_tensor *t)
{
    return (is_codes(t) || (t && t->type == TFL_INT16 && !t->sparse)) && t->data && t->rank == 1 &&
           t->data_bytes == (size_t)t->dims[0] * (t->type == TFL_INT16 ? sizeof(int16_t) : 1);
}

/** Go from GATHER back to CAST. */
static bool find_lookup(const tfl_importer *im, const tfl_op *gather, struct lookup *l)
{
    *l = (struct lookup){.gather = gather, .offsets = -1};
    if (!gather || gather->code != TFL_GATHER || gather->n_inputs != 2)
        return false;
    l->table = tensor_of(im, gather, 0);
    const tfl_op *before = writer_of(im, gather->inputs[1]);
    if (before && before->code == TFL_ADD && before->n_inputs == 2) {
        l->add = before;
        l->offsets = before->inputs[1];
        before = writer_of(im, before->inputs[0]);
    }
    l->cast = before;
    if (!before || before->code != TFL_CAST || before->n_inputs != 1 || before >= gather)
        return false;
    l->q = tensor_of(im, before, 0);
    find_quantize(im, l);
    return is_codes(l->q) && !l->q->data && is_table(l->table) &&
           fb_i32(&gather->options, GATHER_AXIS, 0) == 0 &&
           fb_i32(&gather->options, GATHER_BATCH_DIMS, 0) == 0;
}

/** Does each channel of q have its own 256 codes? rows: how many tables there are. */
static bool fits(const tfl_importer *im, const struct lookup *l, int *rows)
{
    int32_t const first = l->q->type == TFL_INT8 ? ENTRIES / 2 : 0;
    *rows = 1;
    if (!l->add)
        return first == 0 && l->table->dims[0] == ENTRIES;
    const tfl_tensor *t = l->offsets < 0 ? NULL : &im->model->tensors[l->offsets];
    int const channels = l->q->rank ? l->q->dims[l->q->rank - 1] : 1;
    if (!t || t->type != TFL_INT32 || !t->data || t->rank != 1 || t->dims[0] < 1 ||
        t->data_bytes != (size_t)t->dims[0] * sizeof(int32_t) ||
        fb_u8(&l->add->options, BINARY_ACTIVATION, TFL_ACT_NONE) != TFL_ACT_NONE)
        return false;
    *rows = t->dims[0];
    fb_vector const items = {(fb_file *)&im->model->file, (size_t)(t->data - im->model->file.bytes),
                             (uint32_t)*rows};
    bool fit = (*rows == 1 || *rows == channels) && l->table->dims[0] / ENTRIES == *rows &&
               l->table->dims[0] % ENTRIES == 0;
    for (int32_t c = 0; fit && c < *rows; c++)
        fit = fb_i32_at(&items, (uint32_t)c) == c * ENTRIES + first;
    return fit;
}

/** Does nothing but the next operator read the positions? */
static bool is_closed(const tfl_importer *im, const struct lookup *l)
{
    const tfl_op *next = l->add ? l->add : l->gather;
    return im->model->tensors[l->cast->outputs[0]].type == TFL_INT32 &&
           only_reader_of(im, l->cast->outputs[0]) == next &&
           (!l->add || only_reader_of(im, l->add->outputs[0]) == l->gather);
}

/** The GATHER that the operator is or leads to. */
static const tfl_op *gather_of(const tfl_importer *im, const tfl_op *op)
{
    if (op->code == TFL_QUANTIZE && op->n_outputs == 1)
        op = only_reader_of(im, op->outputs[0]);
    for (int i = 0;
         i < 2 && op && op->n_outputs == 1 && (op->code == TFL_CAST || op->code == TFL_ADD); i++)
        op = im->model->tensors[op->outputs[0]].type == TFL_INT32
                 ? only_reader_of(im, op->outputs[0])
                 : NULL;
    return op;
}

static bool find_table(const tfl_importer *im, struct lookup *l, int *rows)
{
    return im->op->n_outputs == 1 && find_lookup(im, gather_of(im, im->op), l) &&
           (im->op == l->quantize || im->op == l->cast || im->op == l->add ||
            im->op == l->gather) &&
           fits(im, l, rows) && is_closed(im, l);
}

bool tfl_is_table(const tfl_importer *im)
{
    struct lookup l;
    int rows;
    return find_table(im, &l, &rows);
}

qat_status tfl_table(tfl_importer *im)
{
    struct lookup l;
    int rows, output = -1;
    if (!find_table(im, &l, &rows) || im->op != l.gather)
        return QAT_OK;
    const tfl_value *q = &im->values[l.source];
    if (q->tensor < 0)
        return tfl_refuse(im, "tensor %d (%s) is read before it is written", l.source,
                          im->model->tensors[l.source].name);
    int const input = q->tensor;
    tfl_shape const shape = q->shape;
    int32_t const channels = shape.rank ? shape.dims[shape.rank - 1] : 1;
    if (rows > 1 && rows != channels)
        return tfl_refuse(im, "%d tables for %d channels", rows, (int)channels);
    qat_status const st = tfl_output(im, 0, &shape, -1, &output);
    if (st)
        return st;
    qi_type const type = l.table->type == TFL_INT16  ? QI_S16
                         : l.table->type == TFL_INT8 ? QI_S8
                                                     : QI_U8;
    if (im->graph->tensors[output].type != type)
        return tfl_refuse(im, "its output is not of its table's type");
    qat_emit const e = tfl_emit(im, 1, &input, output);
    return qat_emit_table(&e, rows, l.table->data, im->err);
}
