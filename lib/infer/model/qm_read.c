/**
 * Makes a model from the bytes of a .qm. Every count, offset, shape and index is checked here,
 * once, against the rules of docs/qm-format.md. Counts are compared with their limits before they
 * are multiplied.
 */
#include "infer/model/packing.h"
#include "infer/model/records.h"

/* ------------------------------------------------------------------ the file as a whole */

qi_status qm_check_file(const void *qm, size_t qm_bytes, qm_crc32_fn *crc32, qi_error *err)
{
    const uint8_t *p = qm;
    if ((uintptr_t)qm % QM_ALIGNMENT)
        return qi_fail(err, QI_ERR_MEMORY, "address of the file modulo 16", -1,
                       (int64_t)((uintptr_t)qm % QM_ALIGNMENT), 0);
    if (qm_bytes < QM_MAGIC_BYTES)
        return qi_fail(err, QI_ERR_TRUNCATED, "bytes of the file", -1, (int64_t)qm_bytes,
                       QM_HEADER_BYTES);
    for (int i = 0; i < QM_MAGIC_BYTES; i++)
        if (p[i] != (uint8_t)QM_MAGIC[i])
            return qi_fail(err, QI_ERR_MAGIC, "a byte of the magic number", i, p[i],
                           (uint8_t)QM_MAGIC[i]);
    if (qm_bytes < QM_HEADER_BYTES)
        return qi_fail(err, QI_ERR_TRUNCATED, "bytes of the file", -1, (int64_t)qm_bytes,
                       QM_HEADER_BYTES);
    if (qm_u32(p + QM_AT_VERSION) != QM_VERSION)
        return qi_fail(err, QI_ERR_VERSION, "version", -1, qm_u32(p + QM_AT_VERSION), QM_VERSION);

    uint32_t const file_bytes = qm_u32(p + QM_AT_FILE_BYTES);
    if (file_bytes < QM_HEADER_BYTES || file_bytes > QM_MAX_FILE_BYTES)
        return qi_fail(err, QI_ERR_FORMAT, "file_bytes", -1, file_bytes, QM_MAX_FILE_BYTES);
    if (qm_bytes < file_bytes)
        return qi_fail(err, QI_ERR_TRUNCATED, "bytes of the file", -1, (int64_t)qm_bytes,
                       file_bytes);
    if (qm_bytes > file_bytes)
        return qi_fail(err, QI_ERR_FORMAT, "bytes of the file", -1, (int64_t)qm_bytes, file_bytes);

    uint32_t crc = crc32(0, p, QM_AT_CRC);
    crc = crc32(crc, p + QM_AT_CRC + 4, file_bytes - QM_AT_CRC - 4);
    if (crc != qm_u32(p + QM_AT_CRC))
        return qi_fail(err, QI_ERR_CRC, "CRC-32 of the content", -1, crc, qm_u32(p + QM_AT_CRC));
    return QI_OK;
}

/* ------------------------------------------------------------------ header */

/** One section in the header's table. */
struct section {
    int at;               /* its field in the header */
    uint32_t bytes;       /* of one value; 0: of tensors and nodes, which depends on their form */
    uint32_t least, most; /* how many records are allowed */
    const char *what;
};

static const struct section sections[] = {
    {QM_AT_TENSORS, 0, 1, QM_MAX_TENSORS, "tensor section"},
    {QM_AT_NODES, 0, 0, QM_MAX_NODES, "node section"},
    {QM_AT_INTS, 4, 0, QM_MAX_INTS, "int section"},
    {QM_AT_STRINGS, 1, 1, QM_MAX_FILE_BYTES, "string section"},
    {QM_AT_DATA, 1, 0, QM_MAX_FILE_BYTES, "data section"},
};

/** The bytes of a record of this section; of compact ones the fewest. */
static uint32_t record_bytes(const struct section *s, uint32_t form)
{
    return s->bytes                 ? s->bytes
           : s->at == QM_AT_TENSORS ? qm_tensor_record_bytes(form)
                                    : qm_node_record_bytes(form);
}

static qi_status all_zero(const uint8_t *bytes, uint64_t count, const char *what, int32_t index,
                          qi_error *err)
{
    for (uint64_t i = 0; i < count; i++)
        if (bytes[i])
            return qi_fail(err, QI_ERR_FORMAT, what, index, bytes[i], 0);
    return QI_OK;
}

/**
 * Check that the sections follow each other, each at the next multiple of 16, up to the end of the
 * file. A section of compact records ends where the next one begins: check_rest sees whether they
 * do.
 */
static qi_status check_sections(const uint8_t *qm, qi_error *err)
{
    uint64_t const file_bytes = qm_u32(qm + QM_AT_FILE_BYTES);
    uint32_t const form = qm_form(qm);
    uint64_t end = QM_HEADER_BYTES;
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++) {
        const struct section *s = &sections[i];
        uint64_t const offset = qm_u32(qm + s->at), count = qm_u32(qm + s->at + 4);
        uint64_t const start = (end + QM_ALIGNMENT - 1) / QM_ALIGNMENT * QM_ALIGNMENT;
        uint32_t const record = record_bytes(s, form);
        if (count < s->least || count > s->most)
            return qi_fail(err, QI_ERR_FORMAT, s->what, -1, (int64_t)count, s->most);
        if (offset != start)
            return qi_fail(err, QI_ERR_FORMAT, s->what, -1, (int64_t)offset, (int64_t)start);
        if (start + count * record > file_bytes)
            return qi_fail(err, QI_ERR_FORMAT, s->what, -1, (int64_t)(start + count * record),
                           (int64_t)file_bytes);
        qi_status const st = all_zero(qm + end, start - end, "padding before a section", -1, err);
        if (st)
            return st;
        end = start + count * record;
        uint32_t const next = qm_u32(qm + s->at + 8);
        if (form == QM_FLAG_COMPACT && !s->bytes && next > end)
            end = next;
    }
    if (end != file_bytes)
        return qi_fail(err, QI_ERR_FORMAT, "end of the data section", -1, (int64_t)end,
                       (int64_t)file_bytes);
    return QI_OK;
}

qi_status qm_read_header(qi_model *m, qi_error *err)
{
    const uint8_t *qm = m->qm;
    uint32_t const flags = qm_u32(qm + QM_AT_FLAGS);
    if (flags & UINT32_C(0xffff) & ~(uint32_t)QM_FLAGS ||
        qm_form(qm) == (QM_FLAG_SHORT | QM_FLAG_COMPACT))
        return qi_fail(err, QI_ERR_FORMAT, "flags", -1, flags, QM_FLAGS);
    qi_status const st = check_sections(qm, err);
    if (st)
        return st;
    m->n_tensors = (int32_t)qm_u32(qm + QM_AT_TENSORS + 4);
    m->n_nodes = (int32_t)qm_u32(qm + QM_AT_NODES + 4);
    m->n_ints = qm_u32(qm + QM_AT_INTS + 4);
    m->ints = (const int32_t *)(const void *)(qm + qm_u32(qm + QM_AT_INTS));
    m->n_strings = qm_u32(qm + QM_AT_STRINGS + 4);
    m->strings = (const char *)(qm + qm_u32(qm + QM_AT_STRINGS));
    m->n_data = qm_u32(qm + QM_AT_DATA + 4);
    m->data = qm + qm_u32(qm + QM_AT_DATA);
    if (m->strings[0] || m->strings[m->n_strings - 1])
        return qi_fail(err, QI_ERR_FORMAT, "first and last byte of the string section", -1, 1, 0);
    return QI_OK;
}

qi_status qm_read_string(const qi_model *m, uint32_t offset, const char **text, qi_error *err)
{
    if (offset >= m->n_strings)
        return qi_fail(err, QI_ERR_FORMAT, "offset of a string", -1, offset,
                       (int64_t)m->n_strings - 1);
    *text = m->strings + offset;
    return QI_OK;
}

qi_status qm_read_range(const qi_model *m, const uint8_t *p, uint32_t least, uint32_t most,
                        const char *what, int32_t index, const int32_t **ints, int32_t *count,
                        qi_error *err)
{
    uint32_t const first = qm_u32(p), n = qm_u32(p + 4);
    if (n < least || n > most)
        return qi_fail(err, QI_ERR_FORMAT, what, index, n, most);
    if (first > m->n_ints || n > m->n_ints - first)
        return qi_fail(err, QI_ERR_FORMAT, what, index, (int64_t)first + n, m->n_ints);
    *ints = m->ints + first;
    *count = (int32_t)n;
    return QI_OK;
}

qi_status qm_check_data(const qi_model *m, uint32_t offset, uint64_t bytes, uint32_t alignment,
                        const char *what, int32_t index, qi_error *err)
{
    if (offset % alignment)
        return qi_fail(err, QI_ERR_FORMAT, what, index, offset % alignment, 0);
    if (offset > m->n_data || bytes > m->n_data - offset)
        return qi_fail(err, QI_ERR_FORMAT, what, index, (int64_t)(offset + bytes), m->n_data);
    return QI_OK;
}

/* ------------------------------------------------------------------ tensors */

int qm_is_scale(uint32_t bits)
{
    return bits < UINT32_C(0x7f800000);
}

static qi_status read_dims(qi_tensor *t, const uint8_t *p, int32_t index, qi_error *err)
{
    int64_t values = 1;
    if (t->rank < 1 || t->rank > QI_MAX_RANK)
        return qi_fail(err, QI_ERR_FORMAT, "rank", index, t->rank, QI_MAX_RANK);
    for (int i = 0; i < QI_MAX_RANK; i++) {
        t->dims[i] = qm_i32(p + QM_TENSOR_DIMS + 4 * i);
        if (i >= t->rank && t->dims[i] != 1)
            return qi_fail(err, QI_ERR_FORMAT, "dimension beyond the rank", index, t->dims[i], 1);
        if (t->dims[i] < 1 || t->dims[i] > QM_MAX_TENSOR_VALUES)
            return qi_fail(err, QI_ERR_FORMAT, "dimension", index, t->dims[i],
                           QM_MAX_TENSOR_VALUES);
        values *= t->dims[i]; /* at most 2^28 2^28 */
        if (values > QM_MAX_TENSOR_VALUES)
            return qi_fail(err, QI_ERR_FORMAT, "values of a tensor", index, values,
                           QM_MAX_TENSOR_VALUES);
    }
    t->bytes = (size_t)values * qi_type_bytes(t->type);
    return QI_OK;
}

/** The fewest bits of a type; a QI_U8 of one bit is a truth value. */
static int32_t least_bits(uint8_t type)
{
    return type == QI_U8    ? 1
           : type == QI_S8  ? 2
           : type == QI_S16 ? 9
                            : 8 * (int32_t)qi_type_bytes(type);
}

/** Read type, bits, zero_point and scale. */
static qi_status read_quantization(qi_tensor *t, const uint8_t *p, int32_t index, qi_error *err)
{
    t->type = p[QM_TENSOR_TYPE];
    t->bits = p[QM_TENSOR_BITS];
    t->zero_point = qm_i32(p + QM_TENSOR_ZERO_POINT);
    t->scale_bits = qm_u32(p + QM_TENSOR_SCALE);
    t->range_bits[0] = qm_u32(p + QM_TENSOR_RANGE_MIN);
    t->range_bits[1] = qm_u32(p + QM_TENSOR_RANGE_MAX);
    if (t->type >= QI_TYPES)
        return qi_fail(err, QI_ERR_FORMAT, "type", index, t->type, QI_TYPES - 1);
    int const codes = qi_type_has_codes(t->type);
    int32_t const bits = 8 * (int32_t)qi_type_bytes(t->type);
    if (t->bits > bits || t->bits < least_bits(t->type))
        return qi_fail(err, QI_ERR_FORMAT, "bits", index, t->bits, bits);
    int32_t const lo = codes && t->type != QI_U8 ? -(1 << (t->bits - 1)) : 0;
    int32_t const hi = codes ? lo + (1 << t->bits) - 1 : 0;
    if (t->zero_point < lo || t->zero_point > hi)
        return qi_fail(err, QI_ERR_FORMAT, "zero_point", index, t->zero_point,
                       t->zero_point < lo ? lo : hi);
    if (!qm_is_scale(t->scale_bits))
        return qi_fail(err, QI_ERR_FORMAT, "bits of the scale", index, t->scale_bits, 0x7f7fffff);
    return QI_OK;
}

/** Do two constants have the same bytes of the file? */
static int are_same_bytes(const qi_tensor *a, const qi_tensor *b)
{
    return a->data == b->data && a->bytes == b->bytes;
}

/** The first tensor whose constant is the one of tensor `index`: that tensor itself, or an earlier
 *  one. */
static int32_t first_with_bytes(const qi_model *m, int32_t index)
{
    int32_t i = 0;
    while (!are_same_bytes(&m->tensors[i], &m->tensors[index]))
        i++;
    return i;
}

/** Check that every value of a constant of two-byte codes is one of its bits. */
static qi_status check_codes_s16(const qi_tensor *t, int32_t index, qi_error *err)
{
    int32_t const bias = 1 << (t->bits - 1);
    const int16_t *codes = t->data;
    for (size_t i = 0; t->bits < 16 && i < t->bytes / sizeof *codes; i++)
        if ((uint32_t)(codes[i] + bias) >> t->bits)
            return qi_fail(err, QI_ERR_FORMAT, "value of a constant outside its bits", index,
                           codes[i], bias - 1);
    return QI_OK;
}

/** Check that every value of a constant of codes is one of its bits. */
static qi_status check_codes(const qi_tensor *t, int32_t index, qi_error *err)
{
    if (t->type == QI_S16)
        return check_codes_s16(t, index, err);
    if (t->bits >= 8)
        return QI_OK;
    uint8_t const bias = (uint8_t)(t->type == QI_S8 ? 1 << (t->bits - 1) : 0);
    const uint8_t *codes = t->data;
    uint8_t highest =
        0; /* this loop vectorizes; the slow loop that names the byte runs only on failure */
    for (size_t i = 0; i < t->bytes; i++) {
        uint8_t const code = (uint8_t)(codes[i] + bias);
        highest = code > highest ? code : highest;
    }
    for (size_t i = 0; highest >> t->bits && i < t->bytes; i++)
        if ((uint8_t)(codes[i] + bias) >> t->bits)
            return qi_fail(err, QI_ERR_FORMAT, "byte of a constant outside its bits", index,
                           codes[i], (1 << t->bits) - 1);
    return QI_OK;
}

/** A constant begins at a multiple of this. */
static uint32_t alignment_of(const qi_tensor *t, uint32_t form)
{
    int const is_aligned = !form || (form == QM_FLAG_COMPACT && t->bytes >= QM_ALIGNMENT);
    return is_aligned ? QM_ALIGNMENT : (uint32_t)qi_type_bytes(t->type);
}

/** The offset that the place of a compact constant means. */
static uint32_t offset_of(const qm_walk *walk, uint32_t place, uint32_t alignment)
{
    return place ? place - 1 : (walk->data + alignment - 1) / alignment * alignment;
}

/** After codes, the next constant begins at a multiple of 16. */
static uint32_t end_of(const qi_tensor *t, uint32_t offset)
{
    uint32_t const end = offset + (uint32_t)t->bytes;
    return qi_type_has_codes(t->type) ? (end + QM_ALIGNMENT - 1) / QM_ALIGNMENT * QM_ALIGNMENT
                                      : end;
}

static qi_status read_storage(const qi_model *m, qm_walk *walk, qi_tensor *t, const uint8_t *p,
                              int32_t index, qi_error *err)
{
    uint32_t offset = qm_u32(p + QM_TENSOR_DATA);
    t->kind = p[QM_TENSOR_KIND];
    if (t->kind > QI_STATE)
        return qi_fail(err, QI_ERR_FORMAT, "kind", index, t->kind, QI_STATE);
    qi_status const packing = qm_read_packing(t, p, index, err);
    if (packing)
        return packing;
    if (!walk->form && qm_u32(p + QM_TENSOR_SIZE) != t->bytes)
        return qi_fail(err, QI_ERR_FORMAT, "size", index, qm_u32(p + QM_TENSOR_SIZE),
                       (int64_t)t->bytes);
    if (t->kind != QI_CONSTANT)
        return offset ? qi_fail(err, QI_ERR_FORMAT, "data of an activation", index, offset, 0)
                      : QI_OK;
    uint32_t const alignment = alignment_of(t, walk->form);
    if (walk->form == QM_FLAG_COMPACT)
        offset = offset_of(walk, offset, alignment);
    qi_status const st =
        qm_check_data(m, offset, t->bytes, alignment, "data of a tensor", index, err);
    if (st)
        return st;
    t->data = t->packing == QM_DERIVED ? NULL : m->data + offset;
    uint32_t const end = end_of(t, offset);
    walk->data = end > walk->data ? end : walk->data;
    return QI_OK;
}

/** Were these bytes checked already as codes of this type and these bits? */
static int were_checked(const qi_model *m, int32_t index)
{
    const qi_tensor *t = &m->tensors[index];
    int32_t i = 0;
    while (!(are_same_bytes(&m->tensors[i], t) && m->tensors[i].type == t->type &&
             m->tensors[i].bits == t->bits))
        i++;
    return i < index;
}

/** Check the values of a constant; known: the first tensor with these bytes, or NULL. */
static qi_status check_constant(const qi_model *m, const qi_tensor *known, int32_t index,
                                qi_error *err)
{
    const qi_tensor *t = &m->tensors[index];
    if (known && (t->packing || known->packing))
        return qi_same_packing(t, known)
                   ? QI_OK
                   : qi_fail(err, QI_ERR_FORMAT, "packed codes that are shared, but differ", index,
                             t->packing, known->packing);
    if (t->packing)
        return qm_check_packed(t, index, err);
    return known && were_checked(m, index) ? QI_OK : check_codes(t, index, err);
}

/**
 * Check the bytes of all constants. Tensors may share a constant, which is checked once for each
 * form. But constants that overlap otherwise must not be longer together than the section: 16,384
 * of them could ask for as many times the memory and time that the size of the file suggests.
 */
static qi_status check_constants(const qi_model *m, qi_error *err)
{
    uint64_t bytes = 0;
    for (int32_t i = 0; i < m->n_tensors; i++) {
        const qi_tensor *t = &m->tensors[i];
        if (t->kind != QI_CONSTANT || !t->data)
            continue;
        int32_t const first = first_with_bytes(m, i);
        bytes += first == i ? t->bytes : 0;
        if (bytes > m->n_data)
            return qi_fail(err, QI_ERR_FORMAT, "bytes of constants that overlap", i, (int64_t)bytes,
                           m->n_data);
        qi_status const st = check_constant(m, first < i ? &m->tensors[first] : NULL, i, err);
        if (st)
            return st;
    }
    return QI_OK;
}

/** A compact record that is cut off, or has a number that is none. */
static qi_status bad_record(const qi_model *m, const char *what, int32_t index, qi_error *err)
{
    return qi_fail(err, QI_ERR_FORMAT, what, index, qm_form(m->qm), 0);
}

/** After the last record of a section only its padding is left: fewer than 16 bytes, zeros. */
static qi_status check_rest(const qm_walk *walk, const char *what, qi_error *err)
{
    uint64_t const left = (uint64_t)(walk->end - walk->at);
    if (left >= QM_ALIGNMENT)
        return qi_fail(err, QI_ERR_FORMAT, what, -1, (int64_t)left, QM_ALIGNMENT - 1);
    return all_zero(walk->at, left, what, -1, err);
}

static qi_status read_tensor(qi_model *m, qm_walk *walk, int32_t index, qi_error *err)
{
    uint8_t room[QM_TENSOR_BYTES];
    const uint8_t *p = qm_next_tensor(walk, room);
    qi_tensor *t = &m->tensors[index];
    if (!p)
        return bad_record(m, "record of a tensor", index, err);
    *t = (qi_tensor){.rank = p[QM_TENSOR_RANK], .border = p[QM_TENSOR_BORDER]};
    t->channel_scales = qm_i32(p + QM_TENSOR_CHANNEL_SCALES);
    t->source_index = qm_i32(p + QM_TENSOR_SOURCE_INDEX);
    qi_status st = qm_read_string(m, qm_u32(p + QM_TENSOR_NAME), &t->name, err);
    if (!st)
        st = read_quantization(t, p, index, err);
    if (!st)
        st = read_dims(t, p, index, err);
    if (!st)
        st = read_storage(m, walk, t, p, index, err);
    if (!st && t->source_index < -1)
        st = qi_fail(err, QI_ERR_FORMAT, "source_index", index, t->source_index, -1);
    int const most_border = t->type == QI_S64 ? QI_BORDER_NONE : QI_BORDER_EVEN;
    if (!st && t->border > most_border)
        st = qi_fail(err, QI_ERR_FORMAT, "border", index, t->border, most_border);
    int const is_state = !st && t->kind == QI_STATE;
    size_t const reserved = (is_state ? QM_TENSOR_NEXT : QM_TENSOR_BYTES) - QM_TENSOR_RESERVED;
    if (!st)
        st = all_zero(p + QM_TENSOR_RESERVED, reserved, "reserved bytes of a tensor", index, err);
    t->next = is_state ? qm_i32(p + QM_TENSOR_NEXT) : -1;
    m->n_states += is_state;
    return st;
}

/** Are these the channel scales of a tensor before `index`, so that their bits are checked? */
static int is_checked(const qi_model *m, int32_t index, const qi_tensor *scales)
{
    for (int32_t i = 0; i < index; i++) {
        int32_t const s = m->tensors[i].channel_scales;
        if (s >= 0 && are_same_bytes(&m->tensors[s], scales))
            return 1;
    }
    return 0;
}

/**
 * channel_scales must be a constant vector of int32, as long as the first or the last dimension.
 */
static qi_status check_channel_scales(const qi_model *m, int32_t index, qi_error *err)
{
    const qi_tensor *t = &m->tensors[index];
    int32_t const s = t->channel_scales;
    if (s == -1)
        return QI_OK;
    if (s < 0 || s >= m->n_tensors)
        return qi_fail(err, QI_ERR_FORMAT, "channel_scales", index, s, m->n_tensors - 1);
    const qi_tensor *scales = &m->tensors[s];
    if (scales->kind != QI_CONSTANT || scales->type != QI_S32 || scales->rank != 1)
        return qi_fail(err, QI_ERR_FORMAT, "channel_scales: not a constant vector of int32", index,
                       s, m->n_tensors - 1);
    if (scales->packing && scales->packing != QM_DERIVED)
        return qi_fail(err, QI_ERR_FORMAT, "packing of channel_scales", index, scales->packing,
                       QM_DERIVED);
    if (scales->dims[0] != t->dims[0] && scales->dims[0] != t->dims[t->rank - 1])
        return qi_fail(err, QI_ERR_FORMAT, "length of channel_scales", index, scales->dims[0],
                       t->dims[0]);
    if (t->zero_point)
        return qi_fail(err, QI_ERR_FORMAT, "zero_point beside channel_scales", index, t->zero_point,
                       0);
    if (!scales->data || is_checked(m, index, scales))
        return QI_OK; /* qm_check_packed_inputs checks scales that follow from multipliers */
    const int32_t *bits = scales->data;
    for (int32_t i = 0; i < scales->dims[0]; i++)
        if (!qm_is_scale((uint32_t)bits[i]))
            return qi_fail(err, QI_ERR_FORMAT, "bits of a channel's scale", index,
                           (uint32_t)bits[i], 0x7f7fffff);
    return QI_OK;
}

qi_status qm_read_tensors(qi_model *m, qi_error *err)
{
    qm_walk walk = qm_walk_tensors(m->qm);
    qi_status st = QI_OK;
    for (int32_t i = 0; !st && i < m->n_tensors; i++)
        st = read_tensor(m, &walk, i, err);
    if (!st)
        st = check_rest(&walk, "bytes after the last tensor", err);
    if (!st)
        st = check_constants(m, err);
    for (int32_t i = 0; !st && i < m->n_tensors; i++)
        st = check_channel_scales(m, i, err);
    return st ? st : qm_check_states(m, err);
}

/* ------------------------------------------------------------------ nodes */

qi_status qm_check_indices(const qi_model *m, const int32_t *tensors, int32_t count,
                           int activations, const char *what, int32_t index, qi_error *err)
{
    for (int32_t i = 0; i < count; i++) {
        if (tensors[i] < 0 || tensors[i] >= m->n_tensors)
            return qi_fail(err, QI_ERR_FORMAT, what, index, tensors[i], m->n_tensors - 1);
        if (activations && m->tensors[tensors[i]].kind != QI_ACTIVATION)
            return qi_fail(err, QI_ERR_FORMAT, "a constant or a state in place of an activation",
                           tensors[i], m->tensors[tensors[i]].kind, QI_ACTIVATION);
    }
    return QI_OK;
}

static qi_status read_node_ranges(qi_model *m, qi_node *node, const uint8_t *p, int32_t index,
                                  qi_error *err)
{
    qi_status st = qm_read_range(m, p + QM_NODE_INPUTS, 1, QM_MAX_NODE_INPUTS, "inputs of a node",
                                 index, &node->inputs, &node->n_inputs, err);
    if (!st)
        st = qm_read_range(m, p + QM_NODE_OUTPUTS, 1, QM_MAX_NODE_OUTPUTS, "outputs of a node",
                           index, &node->outputs, &node->n_outputs, err);
    if (!st)
        st = qm_read_range(m, p + QM_NODE_PARAMS, 0, QI_MAX_PARAMS, "params of a node", index,
                           &node->params, &node->n_params, err);
    if (!st)
        st = qm_check_indices(m, node->inputs, node->n_inputs, 0, "input of a node", index, err);
    if (!st)
        st = qm_check_indices(m, node->outputs, node->n_outputs, 1, "output of a node", index, err);
    return st;
}

static int equal(const char *a, const char *b)
{
    for (; *a && *a == *b; a++)
        b++;
    return *a == *b;
}

const qi_kernel *qi_kernel_in(const qi_kernel_list *list, const char *name)
{
    for (size_t i = 0; list && i < list->count; i++)
        if (equal(list->kernels[i]->name, name))
            return list->kernels[i];
    return NULL;
}

static qi_status read_node(qi_model *m, qm_walk *walk, const qi_kernel_set *kernels, int32_t index,
                           qi_error *err)
{
    uint8_t room[QM_NODE_BYTES];
    const uint8_t *p = qm_next_node(walk, room);
    qi_node *node = &m->nodes[index];
    const char *op = NULL;
    if (!p)
        return bad_record(m, "record of a node", index, err);
    uint32_t const rounding = qm_u32(p + QM_NODE_ROUNDING), fraction = qm_u32(p + QM_NODE_FRACTION);
    *node = (qi_node){.max_accumulator = qm_i64(p + QM_NODE_MAX_ACCUMULATOR)};
    qi_status st = read_node_ranges(m, node, p, index, err);
    if (!st)
        st = qm_read_string(m, qm_u32(p + QM_NODE_NAME), &node->name, err);
    if (!st)
        st = qm_read_string(m, qm_u32(p + QM_NODE_OP), &op, err);
    if (st)
        return st;
    if (rounding > QI_ROUND_ONCE)
        return qi_fail(err, QI_ERR_FORMAT, "rounding", index, rounding, QI_ROUND_ONCE);
    if (node->max_accumulator < 0)
        return qi_fail(err, QI_ERR_FORMAT, "max_accumulator", index, node->max_accumulator, 0);
    node->rounding = (int32_t)rounding;
    node->kernel = qi_kernel_in(kernels->first, op);
    if (!node->kernel)
        node->kernel = qi_kernel_in(kernels->second, op);
    if (!node->kernel)
        return qi_fail(err, QI_ERR_UNKNOWN_OP, op, index, 0, 0);
    int32_t const most = node->kernel->max_fraction;
    if (most < 0 || most > QI_MAX_FRACTION || fraction > (uint32_t)most)
        return qi_fail(err, QI_ERR_FORMAT, "fraction", index, fraction, most);
    node->fraction = (int32_t)fraction;
    return QI_OK;
}

qi_status qm_read_nodes(qi_model *m, const qi_kernel_set *kernels, qi_error *err)
{
    qm_walk walk = qm_walk_nodes(m->qm);
    qi_status st = QI_OK;
    for (int32_t i = 0; !st && i < m->n_nodes; i++)
        st = read_node(m, &walk, kernels, i, err);
    return st ? st : check_rest(&walk, "bytes after the last node", err);
}
