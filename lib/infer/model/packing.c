/** Reads packed codes; see packing.h. */
#include "infer/model/packing.h"
#include "infer/model/op.h"

enum { BLOCK = 240 }; /* indices checked at a time */

size_t qi_unpacked_bytes(const qi_tensor *t)
{
    return (size_t)qi_count(t) * qi_type_bytes(t->type);
}

/** The values of a row. */
static size_t row_values(const qi_tensor *t)
{
    return (size_t)(qi_count(t) / t->dims[0]);
}

static size_t packed_bytes(const qi_tensor *t)
{
    if (t->packing >= QM_NARROW)
        return t->packing == QM_NARROW ? (size_t)qi_count(t) : 0;
    return t->listed + (size_t)t->dims[0] * qm_packed_row_bytes(t->packing, row_values(t));
}

size_t qi_bytes_in_file(const qi_tensor *t)
{
    return t->packing ? packed_bytes(t) : qi_unpacked_bytes(t);
}

qi_rows qi_rows_of(const qi_tensor *t, const void *data)
{
    const uint8_t *bytes = data;
    size_t const values = row_values(t);
    if (!t->is_packed)
        return (qi_rows){.first = bytes, .bytes = values, .values = values};
    return (qi_rows){.first = bytes + t->listed,
                     .bytes = qm_packed_row_bytes(t->packing, values),
                     .values = values,
                     .list = t->listed ? bytes : NULL,
                     .packing = t->packing,
                     .lowest = (uint8_t)qi_code_lo(t)};
}

/* ------------------------------------------------------------------ unpacking */

static void unpack_narrow(const qi_tensor *t, uint8_t *to)
{
    for (size_t i = 0; i < (size_t)qi_count(t); i++) {
        int32_t const value = ((const int8_t *)t->data)[i];
        memcpy(to + sizeof value * i, &value, sizeof value);
    }
}

void qi_unpack(const qi_tensor *t, uint8_t *codes)
{
    if (t->is_packed && t->packing == QM_DERIVED) {
        memset(codes, 0, qi_unpacked_bytes(t));
        return;
    }
    if (t->is_packed && t->packing == QM_NARROW) {
        unpack_narrow(t, codes);
        return;
    }
    qi_rows const rows = qi_rows_of(t, t->data);
    if (!t->is_packed) {
        memcpy(codes, t->data, t->bytes);
        return;
    }
    for (size_t row = 0; row < (size_t)t->dims[0]; row++)
        qi_unpack_row(&rows, row, 0, rows.values, codes + row * rows.values);
}

/* ------------------------------------------------------------------ checking */

/** Is it the packing of codes, and are they packed as it says? */
static qi_status check_codes_packing(const qi_tensor *t, int32_t index, qi_error *err)
{
    int const is_trits = t->packing == QI_TRITS;
    if (t->type > QI_S8)
        return qi_fail(err, QI_ERR_FORMAT, "packing: type, not of 8 bits", index, t->type, QI_S8);
    if (!t->listed && (is_trits || t->packing != t->bits))
        return qi_fail(err, QI_ERR_FORMAT, "packing without a list: bits", index, t->packing,
                       is_trits ? 0 : t->bits);
    int32_t const most = is_trits ? QM_MOST_TRITS : 1 << t->packing;
    if (t->listed > most)
        return qi_fail(err, QI_ERR_FORMAT, "codes of a list", index, t->listed, most);
    return QI_OK;
}

/** Of integers in a byte each, or of scales. */
static qi_status check_integer_packing(const qi_tensor *t, int32_t index, qi_error *err)
{
    if (t->type != QI_S32)
        return qi_fail(err, QI_ERR_FORMAT, "packing of integers: type", index, t->type, QI_S32);
    return t->listed ? qi_fail(err, QI_ERR_FORMAT, "list of packed integers", index, t->listed, 0)
                     : QI_OK;
}

qi_status qm_read_packing(qi_tensor *t, const uint8_t *record, int32_t index, qi_error *err)
{
    uint8_t const packing = record[QM_TENSOR_PACKING], listed = record[QM_TENSOR_LISTED];
    if (!packing)
        return listed ? qi_fail(err, QI_ERR_FORMAT, "list of a tensor that is not packed", index,
                                listed, 0)
                      : QI_OK;
    if (packing > QM_DERIVED)
        return qi_fail(err, QI_ERR_FORMAT, "packing", index, packing, QM_DERIVED);
    if (t->kind != QI_CONSTANT)
        return qi_fail(err, QI_ERR_FORMAT, "packing of an activation", index, packing, 0);
    t->packing = packing;
    t->listed = listed;
    qi_status const st = packing < QM_NARROW ? check_codes_packing(t, index, err)
                                             : check_integer_packing(t, index, err);
    if (st)
        return st;
    t->is_packed = 1;
    t->bytes = packed_bytes(t);
    return QI_OK;
}

/** Codes rise, and each is one of the tensor's bits. */
static qi_status check_list(const qi_tensor *t, int32_t index, qi_error *err)
{
    int32_t least = qi_code_lo(t);
    for (size_t i = 0; i < t->listed; i++) {
        int32_t const code = (int32_t)qi_value_at(t->type, t->data, i);
        if (code < least || code > qi_code_hi(t))
            return qi_fail(err, QI_ERR_FORMAT, "code of a list", index, code,
                           code < least ? least : qi_code_hi(t));
        least = code + 1;
    }
    return QI_OK;
}

/** The number of values that the last byte of a row may have: those with zeros in the padding. */
static uint32_t last_byte_values(const qi_tensor *t)
{
    size_t const values = row_values(t);
    if (t->packing != QI_TRITS) {
        unsigned const bits = (unsigned)(values * t->packing % 8);
        return UINT32_C(1) << (bits ? bits : 8);
    }
    uint32_t most = 3;
    for (size_t i = 1; i < (values - 1) % QI_TRITS_OF_BYTE + 1; i++)
        most *= 3;
    return most;
}

/** Check that every byte before the last of a row stands for five values. */
static qi_status check_trits(const qi_rows *rows, size_t row, int32_t index, qi_error *err)
{
    const uint8_t *bytes = rows->first + row * rows->bytes;
    for (size_t i = 0; i + 1 < rows->bytes; i++)
        if (bytes[i] >= QM_TRITS_BYTES)
            return qi_fail(err, QI_ERR_FORMAT, "byte of packed codes of three values", index,
                           bytes[i], QM_TRITS_BYTES - 1);
    return QI_OK;
}

/** Check that every index of a row is less than `most`. */
static qi_status check_indices(const qi_rows *rows, size_t row, uint8_t most, int32_t index,
                               qi_error *err)
{
    uint8_t indices[BLOCK];
    for (size_t at = 0; at < rows->values; at += BLOCK) {
        size_t const left = rows->values - at, n = left < BLOCK ? left : BLOCK;
        uint8_t highest = 0;
        qi_unpack_indices(rows, row, at, n, indices);
        for (size_t i = 0; i < n; i++)
            highest = indices[i] > highest ? indices[i] : highest;
        if (highest >= most)
            return qi_fail(err, QI_ERR_FORMAT, "index of a packed code", index, highest, most - 1);
    }
    return QI_OK;
}

qi_status qm_check_packed(const qi_tensor *t, int32_t index, qi_error *err)
{
    if (t->packing >= QM_NARROW)
        return QI_OK; /* any bytes are integers */
    qi_rows const rows = qi_rows_of(t, t->data);
    int const all =
        !t->listed || t->listed == 1 << t->packing ||
        (t->packing == QI_TRITS && t->listed == QM_MOST_TRITS); /* every index has one */
    uint32_t const last = last_byte_values(t);
    qi_status st = check_list(t, index, err);
    for (size_t row = 0; !st && row < (size_t)t->dims[0]; row++) {
        uint8_t const end = rows.first[(row + 1) * rows.bytes - 1];
        if (end >= last)
            st = qi_fail(err, QI_ERR_FORMAT, "padding of a packed row", index, end, last - 1);
        if (!st && t->packing == QI_TRITS)
            st = check_trits(&rows, row, index, err);
        if (!st && !all)
            st = check_indices(&rows, row, t->listed, index, err);
    }
    return st;
}

int qi_same_packing(const qi_tensor *a, const qi_tensor *b)
{
    return a->packing == b->packing && a->listed == b->listed && a->type == b->type &&
           a->bits == b->bits && a->dims[0] == b->dims[0] && qi_count(a) == qi_count(b);
}

static int is_integers(const qi_tensor *t)
{
    return t->kind == QI_CONSTANT && t->type == QI_S32;
}

const qi_node *qm_scaled_node(const qi_model *m, int32_t scales)
{
    int32_t w = 0;
    while (w < m->n_tensors && m->tensors[w].channel_scales != scales)
        w++;
    for (int32_t i = 0; i < m->n_nodes; i++) {
        const qi_node *node = &m->nodes[i];
        if (node->n_inputs < 2 || node->inputs[1] != w)
            continue;
        if (!(node->kernel->reads_packed & QI_READS_NARROW) || node->n_inputs != 5)
            return NULL;
        const qi_tensor *mult = qi_input(m, node, 3), *shift = qi_input(m, node, 4);
        int64_t const n = m->tensors[scales].dims[0], shifts = qi_count(shift);
        int const fits = is_integers(mult) && !mult->is_packed && is_integers(shift) &&
                         qi_count(mult) == n && (shifts == n || shifts == 1);
        return fits && m->tensors[node->inputs[0]].channel_scales < 0 ? node : NULL;
    }
    return NULL;
}

/**
 * Scales that no file stores: each has its multipliers, and together they are not more than the
 * file has bytes.
 */
static qi_status check_derived(const qi_model *m, qi_error *err)
{
    uint64_t bytes = 0;
    for (int32_t i = 0; i < m->n_tensors; i++) {
        if (m->tensors[i].packing != QM_DERIVED)
            continue;
        bytes += qi_unpacked_bytes(&m->tensors[i]);
        if (!qm_scaled_node(m, i))
            return qi_fail(err, QI_ERR_FORMAT, "scales without multipliers", i,
                           m->tensors[i].dims[0], 0);
        if (bytes > m->n_data)
            return qi_fail(err, QI_ERR_FORMAT, "bytes of derived scales", i, (int64_t)bytes,
                           m->n_data);
    }
    return QI_OK;
}

qi_status qm_check_packed_inputs(const qi_model *m, qi_error *err)
{
    for (int32_t i = 0; i < m->n_nodes; i++) {
        const qi_node *node = &m->nodes[i];
        for (int32_t j = 0; j < node->n_inputs; j++)
            if (qi_input(m, node, j)->packing &&
                !qi_kernel_reads(node->kernel, j, qi_input(m, node, j)->packing))
                return qi_fail(err, QI_ERR_SHAPE, "packed codes, which this input does not take", i,
                               j, 1);
    }
    for (int32_t i = 0; i < m->epilogue.n_inputs; i++)
        if (m->tensors[m->epilogue.inputs[i]].packing)
            return qi_fail(err, QI_ERR_FORMAT, "packed codes of the epilogue", -1, i, 0);
    return check_derived(m, err);
}
