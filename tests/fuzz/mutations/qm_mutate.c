/**
 * Mutations that know what a .qm is. They change fields of records, ranges, and dims with their
 * sizes; they connect nodes in another way; they put two models side by side; they pack constants,
 * and write compact records. One change makes other fields wrong (max_accumulator, size, room in
 * the data). These are mostly repaired afterwards, with the values that the reader expects, so that
 * the reader looks at the change itself.
 */
#include "fuzz/fuzz.h"
#include "fuzz/fuzz_run.h"
#include "fuzz/mutations/qm_image.h"
#include "fuzz/mutations/qm_packing.h"

#include "qat/convert.h"

#include <stdlib.h>
#include <string.h>

/** One call of the mutator. */
struct mutation {
    qm_image *image;
    uint64_t x; /* random state */
};

static size_t count_of(const struct mutation *m, qm_part part)
{
    return m->image->part[part].count;
}

static uint8_t *some_record(struct mutation *m, qm_part part, size_t *index)
{
    *index = fuzz_below(&m->x, count_of(m, part));
    return qm_record(m->image, part, *index);
}

/* ------------------------------------------------------------------ one field */

struct field {
    int at, bytes;
};

static void change_field(struct mutation *m, uint8_t *record, const struct field *fields, size_t n)
{
    struct field const f = fields[fuzz_below(&m->x, n)];
    if (f.bytes == 1)
        record[f.at] = (uint8_t)fuzz_number(&m->x, record[f.at]);
    else
        qm_put(record + f.at, fuzz_number(&m->x, qm_get(record + f.at)));
}

static void change_header(struct mutation *m)
{
    static const struct field fields[] = {
        {QM_AT_FLAGS, 4},       {QM_AT_INPUTS, 4},   {QM_AT_INPUTS + 4, 4},  {QM_AT_OUTPUTS, 4},
        {QM_AT_OUTPUTS + 4, 4}, {QM_AT_LABELS, 4},   {QM_AT_LABELS + 4, 4},  {QM_AT_KAT, 4},
        {QM_AT_DESCRIPTION, 4}, {QM_AT_EPILOGUE, 4}, {QM_AT_EPILOGUE + 4, 4}};
    struct field pre = {QM_AT_PREPROCESSING + 4 * (int)fuzz_below(&m->x, 14), 4};
    if (fuzz_below(&m->x, 3) == 0)
        change_field(m, m->image->header, &pre, 1);
    else
        change_field(m, m->image->header, fields, sizeof fields / sizeof *fields);
}

static void change_tensor(struct mutation *m)
{
    static const struct field fields[] = {
        {QM_TENSOR_NAME, 4},         {QM_TENSOR_TYPE, 1},     {QM_TENSOR_KIND, 1},
        {QM_TENSOR_RANK, 1},         {QM_TENSOR_BITS, 1},     {QM_TENSOR_DIMS, 4},
        {QM_TENSOR_DIMS + 4, 4},     {QM_TENSOR_DIMS + 8, 4}, {QM_TENSOR_DIMS + 12, 4},
        {QM_TENSOR_ZERO_POINT, 4},   {QM_TENSOR_SCALE, 4},    {QM_TENSOR_CHANNEL_SCALES, 4},
        {QM_TENSOR_SOURCE_INDEX, 4}, {QM_TENSOR_DATA, 4},     {QM_TENSOR_SIZE, 4},
        {QM_TENSOR_BORDER, 1},       {QM_TENSOR_RESERVED, 1}, {QM_TENSOR_NEXT, 4},
        {QM_TENSOR_PACKING, 1},      {QM_TENSOR_LISTED, 1}};
    size_t index;
    if (count_of(m, QM_TENSORS))
        change_field(m, some_record(m, QM_TENSORS, &index), fields, sizeof fields / sizeof *fields);
}

static void change_node(struct mutation *m)
{
    static const struct field fields[] = {{QM_NODE_OP, 4},
                                          {QM_NODE_NAME, 4},
                                          {QM_NODE_INPUTS, 4},
                                          {QM_NODE_INPUTS + 4, 4},
                                          {QM_NODE_OUTPUTS, 4},
                                          {QM_NODE_OUTPUTS + 4, 4},
                                          {QM_NODE_PARAMS, 4},
                                          {QM_NODE_PARAMS + 4, 4},
                                          {QM_NODE_ROUNDING, 4},
                                          {QM_NODE_FRACTION, 4},
                                          {QM_NODE_MAX_ACCUMULATOR, 4},
                                          {QM_NODE_MAX_ACCUMULATOR + 4, 4}};
    size_t index;
    if (count_of(m, QM_NODES))
        change_field(m, some_record(m, QM_NODES, &index), fields, sizeof fields / sizeof *fields);
}

static void change_int(struct mutation *m)
{
    size_t index;
    if (!count_of(m, QM_INTS))
        return;
    uint8_t *p = some_record(m, QM_INTS, &index);
    qm_put(p, fuzz_number(&m->x, qm_get(p)));
}

/** One of a node's parameters. */
static void change_param(struct mutation *m)
{
    size_t index;
    if (!count_of(m, QM_NODES))
        return;
    const uint8_t *node = some_record(m, QM_NODES, &index);
    size_t const at =
        qm_get(node + QM_NODE_PARAMS) + fuzz_below(&m->x, qm_get(node + QM_NODE_PARAMS + 4));
    if (at >= count_of(m, QM_INTS))
        return;
    uint8_t *p = qm_record(m->image, QM_INTS, at);
    qm_put(p, fuzz_number(&m->x, qm_get(p)));
}

/** Bytes of one section, blindly; it keeps its size. */
static void change_bytes(struct mutation *m)
{
    qm_part const part = (qm_part)fuzz_below(&m->x, QM_PARTS);
    size_t const bytes = count_of(m, part) * qm_record_bytes(part);
    if (bytes)
        LLVMFuzzerMutate(m->image->part[part].bytes, bytes, bytes);
}

/* ------------------------------------------------------------------ dims */

static uint32_t value_bytes(const uint8_t *tensor)
{
    static const uint32_t bytes[] = {1, 1, 4, 8, 2, 1, 1, 1};
    return bytes[tensor[QM_TENSOR_TYPE] & 7];
}

/** size = product of dims times the bytes of one value. */
static void repair_size(uint8_t *tensor)
{
    uint32_t size = value_bytes(tensor);
    for (int d = 0; d < 4; d++)
        size *= qm_get(tensor + QM_TENSOR_DIMS + 4 * d);
    qm_put(tensor + QM_TENSOR_SIZE, size);
}

/** Give one tensor a new dimension. Often all tensors with the old one at this place get it. */
static void change_dim(struct mutation *m)
{
    size_t index;
    if (!count_of(m, QM_TENSORS))
        return;
    uint8_t *some = some_record(m, QM_TENSORS, &index);
    int const at = QM_TENSOR_DIMS + 4 * (int)fuzz_below(&m->x, 4),
              alone = fuzz_below(&m->x, 3) == 0;
    uint32_t const old = qm_get(some + at);
    uint32_t const dim =
        fuzz_below(&m->x, 4) ? 1 + (uint32_t)fuzz_below(&m->x, 24) : fuzz_number(&m->x, old);
    for (size_t i = 0; i < count_of(m, QM_TENSORS); i++) {
        uint8_t *tensor = qm_record(m->image, QM_TENSORS, i);
        if (alone ? i != index : qm_get(tensor + at) != old)
            continue;
        qm_put(tensor + at, dim);
        repair_size(tensor);
    }
}

/**
 * Type and bits of codes, of one tensor or of all; zero_point goes to its range. Sometimes all
 * activations get 16 bits.
 */
static void change_codes(struct mutation *m)
{
    size_t index;
    if (!count_of(m, QM_TENSORS))
        return;
    some_record(m, QM_TENSORS, &index);
    int const all = fuzz_below(&m->x, 2) == 0, is_signed = fuzz_below(&m->x, 2) == 0;
    uint8_t const bits = (uint8_t)(fuzz_below(&m->x, 2) ? 8 : 2 + fuzz_below(&m->x, 7));
    int const wide = fuzz_below(&m->x, 4) == 0;
    for (size_t i = 0; i < count_of(m, QM_TENSORS); i++) {
        uint8_t *tensor = qm_record(m->image, QM_TENSORS, i);
        uint8_t const type = tensor[QM_TENSOR_TYPE];
        if ((!all && i != index) || type == QI_S32 || type == QI_S64)
            continue;
        if (wide && tensor[QM_TENSOR_KIND] != QI_CONSTANT) {
            tensor[QM_TENSOR_TYPE] = QI_S16;
            tensor[QM_TENSOR_BITS] = (uint8_t)(8 + bits);
            qm_put(tensor + QM_TENSOR_ZERO_POINT, 0);
            repair_size(tensor);
            continue;
        }
        tensor[QM_TENSOR_TYPE] = (uint8_t)is_signed;
        tensor[QM_TENSOR_BITS] = bits;
        qm_put(tensor + QM_TENSOR_ZERO_POINT, is_signed ? 0 : (1u << bits) / 2);
        repair_size(tensor);
    }
}

/* ------------------------------------------------------------------ records */

static void copy_record(struct mutation *m)
{
    qm_part const part = (qm_part)fuzz_below(&m->x, QM_INTS + 1);
    size_t from, to;
    if (!count_of(m, part))
        return;
    const uint8_t *source = some_record(m, part, &from);
    memmove(some_record(m, part, &to), source, qm_record_bytes(part));
}

static void insert_record(struct mutation *m)
{
    qm_part const part = (qm_part)fuzz_below(&m->x, QM_INTS + 1);
    size_t from, to;
    if (!count_of(m, part))
        return;
    some_record(m, part, &from);
    some_record(m, part, &to);
    qm_insert_copy(m->image, part, part == QM_NODES ? to : count_of(m, part), from);
}

static void remove_record(struct mutation *m)
{
    qm_part const part = (qm_part)fuzz_below(&m->x, QM_PARTS);
    size_t index;
    if (!count_of(m, part))
        return;
    some_record(m, part, &index);
    qm_remove(m->image, part, part == QM_NODES ? index : count_of(m, part) - 1);
}

static void grow_data(struct mutation *m)
{
    qm_part const part = fuzz_below(&m->x, 4) ? QM_DATA : QM_STRINGS;
    qm_append(m->image, part, NULL, 1 + fuzz_below(&m->x, 64));
}

/** A tensor index of a node, or of the model's inputs and outputs, becomes another. */
static void rewire(struct mutation *m)
{
    size_t index;
    if (!count_of(m, QM_NODES) || !count_of(m, QM_TENSORS))
        return;
    const uint8_t *node = some_record(m, QM_NODES, &index);
    const uint8_t *ranges[] = {node + QM_NODE_INPUTS, node + QM_NODE_OUTPUTS,
                               m->image->header + QM_AT_INPUTS, m->image->header + QM_AT_OUTPUTS};
    const uint8_t *range = ranges[fuzz_below(&m->x, 4)];
    size_t const at = qm_get(range) + fuzz_below(&m->x, qm_get(range + 4));
    if (at < count_of(m, QM_INTS))
        qm_put(qm_record(m->image, QM_INTS, at),
               (uint32_t)fuzz_below(&m->x, count_of(m, QM_TENSORS)));
}

/** A copy of a range of ints at their end; -1: no room. */
static long copy_range(struct mutation *m, uint8_t *range)
{
    size_t const first = qm_get(range), n = qm_get(range + 4);
    if (first > count_of(m, QM_INTS) || n > count_of(m, QM_INTS) - first)
        return -1;
    long const at = qm_append(m->image, QM_INTS, qm_record(m->image, QM_INTS, first), n);
    if (at >= 0)
        qm_put(range, (uint32_t)at);
    return at;
}

/**
 * Append a node again behind itself. It reads its own output and writes a new tensor, which becomes
 * an output of the model.
 */
static void repeat_node(struct mutation *m)
{
    size_t index;
    if (!count_of(m, QM_NODES) || !count_of(m, QM_INTS))
        return;
    some_record(m, QM_NODES, &index);
    if (!qm_insert_copy(m->image, QM_NODES, index + 1, index))
        return;
    uint8_t *node = qm_record(m->image, QM_NODES, index + 1);
    long const in = copy_range(m, node + QM_NODE_INPUTS),
               out = copy_range(m, node + QM_NODE_OUTPUTS);
    size_t const outputs = qm_get(m->image->header + QM_AT_OUTPUTS);
    if (in < 0 || out < 0 || outputs >= count_of(m, QM_INTS) || (size_t)out >= count_of(m, QM_INTS))
        return;
    uint8_t *to = qm_record(m->image, QM_INTS, (size_t)out);
    uint32_t const old = qm_get(to);
    if (old >= count_of(m, QM_TENSORS))
        return;
    long const fresh = qm_append(m->image, QM_TENSORS, qm_record(m->image, QM_TENSORS, old), 1);
    if (fresh < 0)
        return;
    qm_put(qm_record(m->image, QM_INTS, (size_t)in), old);
    qm_put(to, (uint32_t)fresh);
    qm_put(qm_record(m->image, QM_INTS, outputs), (uint32_t)fresh);
}

/** A node reads what an activation was in the run before: a new state. */
static void add_state(struct mutation *m)
{
    size_t index;
    if (!count_of(m, QM_NODES))
        return;
    uint8_t *node = some_record(m, QM_NODES, &index);
    uint32_t const n = qm_get(node + QM_NODE_INPUTS + 4);
    long const in = n ? copy_range(m, node + QM_NODE_INPUTS) : -1;
    if (in < 0)
        return;
    uint8_t *input = qm_record(m->image, QM_INTS, (size_t)in + fuzz_below(&m->x, n));
    uint32_t const old = qm_get(input);
    if (old >= count_of(m, QM_TENSORS) ||
        qm_record(m->image, QM_TENSORS, old)[QM_TENSOR_KIND] != QI_ACTIVATION)
        return;
    long const fresh = qm_append(m->image, QM_TENSORS, qm_record(m->image, QM_TENSORS, old), 1);
    if (fresh < 0)
        return;
    uint8_t *state = qm_record(m->image, QM_TENSORS, (size_t)fresh);
    state[QM_TENSOR_KIND] = QI_STATE;
    state[QM_TENSOR_BORDER] = QI_BORDER_NONE;
    qm_put(state + QM_TENSOR_NEXT, old);
    qm_put(input, (uint32_t)fresh);
}

/** Input k of a node if it is a constant of one of two types, or NULL. */
static uint8_t *constant_of(struct mutation *m, size_t k, qi_type type, qi_type or_type)
{
    size_t index;
    if (!count_of(m, QM_NODES))
        return NULL;
    const uint8_t *node = some_record(m, QM_NODES, &index);
    size_t const at = qm_get(node + QM_NODE_INPUTS) + k;
    if (at >= count_of(m, QM_INTS))
        return NULL;
    size_t const tensor = qm_get(qm_record(m->image, QM_INTS, at));
    uint8_t *t = tensor < count_of(m, QM_TENSORS) ? qm_record(m->image, QM_TENSORS, tensor) : NULL;
    if (!t || t[QM_TENSOR_KIND] != QI_CONSTANT)
        return NULL;
    return t[QM_TENSOR_TYPE] == type || t[QM_TENSOR_TYPE] == or_type ? t : NULL;
}

/** The weights of a node become packed ones; their zero_point stays one of their codes. */
static void pack_weights(struct mutation *m)
{
    uint8_t *tensor = constant_of(m, fuzz_below(&m->x, 16) != 0, QI_U8, QI_S8);
    if (!tensor)
        return;
    qm_pack_weights(m->image, tensor, &m->x);
    if (qm_get(tensor + QM_TENSOR_ZERO_POINT) >> (tensor[QM_TENSOR_BITS] - 1) % 8)
        qm_put(tensor + QM_TENSOR_ZERO_POINT, 0);
}

/** The shifts of a node become narrow integers; sometimes another constant does. */
static void narrow_shifts(struct mutation *m)
{
    enum { SHIFT = 4 };
    size_t const k = fuzz_below(&m->x, 8) ? SHIFT : fuzz_below(&m->x, SHIFT);
    uint8_t *tensor = constant_of(m, k, QI_S32, QI_S32);
    if (tensor)
        qm_narrow(m->image, tensor, &m->x);
}

/** The scales of the weights of a node are derived from its multipliers. */
static void derive_scales(struct mutation *m)
{
    const uint8_t *weights = constant_of(m, 1, QI_U8, QI_S8);
    size_t const scales = weights ? qm_get(weights + QM_TENSOR_CHANNEL_SCALES) : UINT32_MAX;
    if (scales < count_of(m, QM_TENSORS))
        qm_derive(qm_record(m->image, QM_TENSORS, scales));
}

/* ------------------------------------------------------------------ two models */

static void shift_range(uint8_t *range, size_t by)
{
    qm_put(range, qm_get(range) + (uint32_t)by);
}

/** Tensor indices of a range of the appended ints. */
static void shift_indices(qm_image *a, const uint8_t *range, size_t by)
{
    size_t const first = qm_get(range), n = qm_get(range + 4);
    for (size_t i = first; i < a->part[QM_INTS].count && i - first < n; i++) {
        uint8_t *p = qm_record(a, QM_INTS, i);
        qm_put(p, qm_get(p) + (uint32_t)by);
    }
}

static void append_tensors(qm_image *a, const qm_image *b, const size_t at[QM_PARTS])
{
    for (size_t i = 0; i < b->part[QM_TENSORS].count; i++) {
        uint8_t *t = qm_record(a, QM_TENSORS, at[QM_TENSORS] + i);
        shift_range(t + QM_TENSOR_NAME, at[QM_STRINGS]);
        if (t[QM_TENSOR_KIND] == QI_CONSTANT)
            shift_range(t + QM_TENSOR_DATA, at[QM_DATA]);
        if (t[QM_TENSOR_KIND] == QI_STATE)
            shift_range(t + QM_TENSOR_NEXT, at[QM_TENSORS]);
        if (qm_get(t + QM_TENSOR_CHANNEL_SCALES) != UINT32_MAX)
            shift_range(t + QM_TENSOR_CHANNEL_SCALES, at[QM_TENSORS]);
    }
}

static void append_nodes(qm_image *a, const qm_image *b, const size_t at[QM_PARTS])
{
    for (size_t i = 0; i < b->part[QM_NODES].count; i++) {
        uint8_t *node = qm_record(a, QM_NODES, at[QM_NODES] + i);
        shift_range(node + QM_NODE_OP, at[QM_STRINGS]);
        shift_range(node + QM_NODE_NAME, at[QM_STRINGS]);
        shift_range(node + QM_NODE_INPUTS, at[QM_INTS]);
        shift_range(node + QM_NODE_OUTPUTS, at[QM_INTS]);
        shift_range(node + QM_NODE_PARAMS, at[QM_INTS]);
        shift_indices(a, node + QM_NODE_INPUTS, at[QM_TENSORS]);
        shift_indices(a, node + QM_NODE_OUTPUTS, at[QM_TENSORS]);
    }
}

/** The range of both models' inputs or outputs, at the end of the ints; b's are shifted already. */
static void join_range(qm_image *a, uint8_t *range, const uint8_t *other)
{
    uint8_t *ints = a->part[QM_INTS].bytes;
    size_t const n = qm_get(range + 4), m = qm_get(other + 4), count = a->part[QM_INTS].count;
    size_t const first = qm_get(range), second = qm_get(other);
    if (first > count || n > count - first || second > count || m > count - second)
        return;
    long const at = qm_append(a, QM_INTS, ints + 4 * first, n);
    if (at < 0 || qm_append(a, QM_INTS, ints + 4 * second, m) < 0)
        return;
    qm_put(range, (uint32_t)at);
    qm_put(range + 4, (uint32_t)(n + m));
}

/** Model b behind model a, side by side; 0: no room. */
static int append_model(qm_image *a, const qm_image *b)
{
    size_t at[QM_PARTS];
    uint8_t in[8], out[8];
    qm_append(a, QM_DATA, NULL,
              (QM_ALIGNMENT - a->part[QM_DATA].count % QM_ALIGNMENT) % QM_ALIGNMENT);
    for (int i = 0; i < QM_PARTS; i++) {
        at[i] = a->part[i].count;
        if (qm_append(a, (qm_part)i, b->part[i].bytes, b->part[i].count) < 0)
            return 0;
    }
    append_tensors(a, b, at);
    append_nodes(a, b, at);
    memcpy(in, b->header + QM_AT_INPUTS, 8);
    memcpy(out, b->header + QM_AT_OUTPUTS, 8);
    shift_range(in, at[QM_INTS]);
    shift_range(out, at[QM_INTS]);
    shift_indices(a, in, at[QM_TENSORS]);
    shift_indices(a, out, at[QM_TENSORS]);
    join_range(a, a->header + QM_AT_INPUTS, in);
    join_range(a, a->header + QM_AT_OUTPUTS, out);
    a->header[QM_AT_FLAGS] = 0; /* known answers of one of the two would not do */
    qm_put(a->header + QM_AT_KAT, 0);
    return 1;
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                                 uint8_t *out, size_t most, unsigned int seed)
{
    enum { USUAL_BYTES = 6000 }; /* small files are fast: few executions with large ones */
    static qm_image first, second;
    if (seed % 32 && a_size + b_size > USUAL_BYTES)
        return 0;
    if (!qm_split(&first, a, a_size) || !qm_split(&second, b, b_size))
        return 0;
    return append_model(&first, &second) ? qm_join(&first, out, most) : 0;
}

/* ------------------------------------------------------------------ repair */

/**
 * Store what the reader expects. Return 0 if there is nothing to repair, or if it cannot be
 * repaired.
 */
static int repair(qm_image *image, const qi_error *e)
{
    size_t const i = (size_t)e->index;
    if (e->index < 0)
        return 0;
    if (e->status == QI_ERR_OVERFLOW && strncmp(e->what, "max_accumulator", 15) == 0) {
        uint8_t *node = qm_record(image, QM_NODES, i);
        qm_put(node + QM_NODE_MAX_ACCUMULATOR, (uint32_t)e->limit);
        qm_put(node + QM_NODE_MAX_ACCUMULATOR + 4, (uint32_t)(e->limit >> 32));
        return 1;
    }
    if (strcmp(e->what, "size") == 0) {
        qm_put(qm_record(image, QM_TENSORS, i) + QM_TENSOR_SIZE, (uint32_t)e->limit);
        return 1;
    }
    if (strcmp(e->what, "data of a tensor") == 0 && e->value > e->limit) /* past the end */
        return qm_append(image, QM_DATA, NULL, (size_t)(e->value - e->limit)) >= 0;
    return 0;
}

/* Where files are opened that a mutation makes. */
static _Alignas(QI_ALIGN) uint8_t memory[1 << 18], copy[QM_IMAGE_BYTES];

/**
 * Put the parts together. While the reader complains about something that can be repaired, repair
 * it.
 */
static size_t join_repaired(qm_image *image, uint8_t *file, size_t most)
{
    enum { MOST_REPAIRS = 12 };
    size_t size = 0;
    for (int i = 0; i < MOST_REPAIRS; i++) {
        qi_model *model;
        qi_error err = {.index = -1, .what = ""};
        size = qm_join(image, copy, most < sizeof copy ? most : sizeof copy);
        qi_model_init(&model, copy, size, NULL, memory, sizeof memory, &err);
        if (!size || model || !repair(image, &err))
            break;
    }
    memcpy(file, copy, size);
    return size;
}

/* ------------------------------------------------------------------ the compact form */

/** Write an accepted file again in the form that tools write, and mostly change bytes of it. */
static size_t make_compact(struct mutation *m, uint8_t *file, size_t size, size_t most)
{
    qi_model *model;
    qi_error ignored;
    qat_error err;
    qat_qgraph *graph = NULL;
    uint8_t *bytes = NULL;
    size_t count = 0;
    memcpy(copy, file, size);
    if (!size || qi_model_init(&model, copy, size, NULL, memory, sizeof memory, &ignored) ||
        qat_qm_read(&graph, model, &err))
        return size;
    qat_qm_metadata const metadata = {.description = qi_model_description(model)};
    graph->form = (qat_qm_form){0};
    if (!qat_qm_write(graph, &metadata, &bytes, &count, &err) && count <= most) {
        memcpy(file, bytes, count);
        size = fuzz_below(&m->x, 4) ? LLVMFuzzerMutate(file, count, most) : count;
    }
    free(bytes);
    qat_qgraph_free(graph);
    return size;
}

/* ------------------------------------------------------------------ the mutator */

static void (*const changes[])(struct mutation *) = {
    change_header, change_tensor, change_tensor, change_node,   change_int,   change_param,
    change_param,  change_param,  change_bytes,  change_dim,    change_dim,   change_codes,
    copy_record,   insert_record, remove_record, grow_data,     rewire,       repeat_node,
    add_state,     pack_weights,  pack_weights,  narrow_shifts, derive_scales};

static size_t mutate_image(qm_image *image, uint8_t *data, size_t most, uint64_t x)
{
    struct mutation m = {image, x};
    for (size_t n = 1 + fuzz_below(&m.x, 3); n > 0; n--)
        changes[fuzz_below(&m.x, sizeof changes / sizeof *changes)](&m);
    if (!fuzz_below(&m.x, 4))
        return qm_join(image, data, most);
    size_t const size = join_repaired(image, data, most);
    return fuzz_below(&m.x, 8) ? size : make_compact(&m, data, size, most);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned int seed)
{
    static qm_image image;
    uint64_t x = seed;
    size_t changed = 0;
    if (fuzz_below(&x, 16) && qm_split(&image, data, size))
        changed = mutate_image(&image, data, most, x);
    return changed ? changed : LLVMFuzzerMutate(data, size, most);
}
