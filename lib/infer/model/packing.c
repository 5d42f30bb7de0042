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

/** Write n values of `bits` bits each, from bit `bit` of a byte on. */
static void unpack_bits(uint8_t *restrict to, const uint8_t *restrict from, unsigned bit, size_t n,
                        unsigned bits)
{
    uint32_t const mask = (UINT32_C(1) << bits) - 1;
    uint32_t waiting = 0;
    unsigned have = 0; /* bits that wait */
    for (size_t i = 0; i < n; i++) {
        if (have < bits) {
            waiting |= (uint32_t)(*from++ >> bit) << have;
            have += 8 - bit;
            bit = 0;
        }
        if (have < bits) { /* the first byte had too few */
            waiting |= (uint32_t)*from++ << have;
            have += 8;
        }
        to[i] = (uint8_t)(waiting & mask);
        waiting >>= bits;
        have -= bits;
    }
}

/** The same from a byte's first bit on, where bytes hold whole values: bits is 1, 2 or 4. */
static inline void unpack_whole(uint8_t *restrict to, const uint8_t *restrict from, size_t n,
                                unsigned bits)
{
    size_t const each = 8 / bits, bytes = n / each;
    unsigned const mask = (1u << bits) - 1;
    for (size_t i = 0; i < bytes; i++)
        for (size_t j = 0; j < each; j++)
            to[i * each + j] = (uint8_t)(from[i] >> (j * bits) & mask);
    for (size_t j = 0; j < n % each; j++)
        to[bytes * each + j] = (uint8_t)(from[bytes] >> (j * bits) & mask);
}

/** Write n values of base 3, after `skip` others of the first byte. */
static void unpack_trits(uint8_t *restrict to, const uint8_t *restrict from, unsigned skip,
                         size_t n)
{
    for (size_t i = 0; i < n; skip = 0) {
        unsigned byte = *from++;
        for (unsigned j = 0; j < QM_TRITS_OF_BYTE && i < n; j++, byte /= 3)
            if (j >= skip)
                to[i++] = (uint8_t)(byte % 3);
    }
}

/** Write the indices of n values of a row. */
static void unpack_indices(const qi_rows *rows, size_t row, size_t at, size_t n, uint8_t *indices)
{
    const uint8_t *from = rows->first + row * rows->bytes;
    if (rows->packing == QM_TRITS) {
        unpack_trits(indices, from + at / QM_TRITS_OF_BYTE, (unsigned)(at % QM_TRITS_OF_BYTE), n);
        return;
    }
    size_t const bit = at * rows->packing;
    from += bit / 8;
    if (bit % 8 == 0 && rows->packing == 4)
        unpack_whole(indices, from, n, 4);
    else if (bit % 8 == 0 && rows->packing == 2)
        unpack_whole(indices, from, n, 2);
    else if (bit % 8 == 0 && rows->packing == 1)
        unpack_whole(indices, from, n, 1);
    else
        unpack_bits(indices, from, (unsigned)(bit % 8), n, rows->packing);
}

void qi_unpack_row(const qi_rows *rows, size_t row, size_t at, size_t n, uint8_t *codes)
{
    unpack_indices(rows, row, at, n, codes);
    for (size_t i = 0; rows->list && i < n; i++)
        codes[i] = rows->list[codes[i]];
    for (size_t i = 0; !rows->list && i < n; i++)
        codes[i] = (uint8_t)(codes[i] + rows->lowest);
}

void qi_unpack(const qi_tensor *t, uint8_t *codes)
{
    qi_rows const rows = qi_rows_of(t, t->data);
    if (!t->is_packed) {
        memcpy(codes, t->data, t->bytes);
        return;
    }
    for (size_t row = 0; row < (size_t)t->dims[0]; row++)
        qi_unpack_row(&rows, row, 0, rows.values, codes + row * rows.values);
}

/* ------------------------------------------------------------------ checking */

qi_status qm_read_packing(qi_tensor *t, const uint8_t *record, int32_t index, qi_error *err)
{
    uint8_t const packing = record[QM_TENSOR_PACKING], listed = record[QM_TENSOR_LISTED];
    int const is_trits = packing == QM_TRITS;
    if (!packing)
        return listed ? qi_fail(err, QI_ERR_FORMAT, "list of a tensor that is not packed", index,
                                listed, 0)
                      : QI_OK;
    if (packing > QM_TRITS)
        return qi_fail(err, QI_ERR_FORMAT, "packing", index, packing, QM_TRITS);
    if (t->kind != QI_CONSTANT)
        return qi_fail(err, QI_ERR_FORMAT, "packing of an activation", index, packing, 0);
    if (t->type > QI_S8)
        return qi_fail(err, QI_ERR_FORMAT, "packing: type, not of 8 bits", index, t->type, QI_S8);
    if (!listed && (is_trits || packing != t->bits))
        return qi_fail(err, QI_ERR_FORMAT, "packing without a list: bits", index, packing,
                       is_trits ? 0 : t->bits);
    int32_t const most = is_trits ? QM_MOST_TRITS : 1 << packing;
    if (listed > most)
        return qi_fail(err, QI_ERR_FORMAT, "codes of a list", index, listed, most);
    t->packing = packing;
    t->listed = listed;
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
    if (t->packing != QM_TRITS) {
        unsigned const bits = (unsigned)(values * t->packing % 8);
        return UINT32_C(1) << (bits ? bits : 8);
    }
    uint32_t most = 3;
    for (size_t i = 1; i < (values - 1) % QM_TRITS_OF_BYTE + 1; i++)
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
        unpack_indices(rows, row, at, n, indices);
        for (size_t i = 0; i < n; i++)
            highest = indices[i] > highest ? indices[i] : highest;
        if (highest >= most)
            return qi_fail(err, QI_ERR_FORMAT, "index of a packed code", index, highest, most - 1);
    }
    return QI_OK;
}

qi_status qm_check_packed(const qi_tensor *t, int32_t index, qi_error *err)
{
    qi_rows const rows = qi_rows_of(t, t->data);
    int const all =
        !t->listed || t->listed == 1 << t->packing ||
        (t->packing == QM_TRITS && t->listed == QM_MOST_TRITS); /* every index has one */
    uint32_t const last = last_byte_values(t);
    qi_status st = check_list(t, index, err);
    for (size_t row = 0; !st && row < (size_t)t->dims[0]; row++) {
        uint8_t const end = rows.first[(row + 1) * rows.bytes - 1];
        if (end >= last)
            st = qi_fail(err, QI_ERR_FORMAT, "padding of a packed row", index, end, last - 1);
        if (!st && t->packing == QM_TRITS)
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

qi_status qm_check_packed_inputs(const qi_model *m, qi_error *err)
{
    for (int32_t i = 0; i < m->n_nodes; i++) {
        const qi_node *node = &m->nodes[i];
        for (int32_t j = 0; j < node->n_inputs; j++)
            if (qi_input(m, node, j)->packing && !(j == 1 && node->kernel->reads_packed))
                return qi_fail(err, QI_ERR_SHAPE, "packed codes, which this input does not take", i,
                               j, 1);
    }
    for (int32_t i = 0; i < m->epilogue.n_inputs; i++)
        if (m->tensors[m->epilogue.inputs[i]].packing)
            return qi_fail(err, QI_ERR_FORMAT, "packed codes of the epilogue", -1, i, 0);
    return QI_OK;
}
