/**
 * Writes an integer graph as the bytes of a .qm, as docs/qm-format.md specifies them. Five sections
 * are filled side by side, then placed one after the other after the header.
 *
 * Tensor i of the graph is tensor i of the file. After these, the file has tensors with the scales
 * of tensors that are quantized per channel.
 */
#include "base/bytes.h"
#include "base/rng.h"
#include "convert/convert.h"
#include "convert/qm_pack.h"
#include "infer/model/qm_layout.h"

#include <stdlib.h>
#include <string.h>

/** A range of ints. Nodes, labels and the model itself refer to lists by ranges. */
struct range {
    uint32_t first, count;
};

/** A string in the section: its hash, to find equal strings, and its place. */
struct string {
    uint64_t hash;
    uint32_t offset;
};

struct sections {
    qat_writer tensors, nodes, ints, strings, data;
    struct string *known; /* room for all strings of the graph */
    size_t n_known;
    uint32_t n_scales;    /* number of tensors of channel scales */
    struct place *places; /* of the graph's tensors */
    bool *may_pack;       /* by tensor of the graph */
    int without;          /* the parts that are left out: QAT_QM_NAMES .. */
};

/** Where the numbers of a tensor of the graph are in the file, and how. */
struct place {
    uint32_t data;  /* offset */
    int32_t scales; /* tensor with its channel scales, or -1 */
    uint32_t bytes;
    uint8_t packing, listed;
};

/** The offset of text in the strings section; equal strings are stored once. */
static uint32_t add_string(struct sections *s, const char *text)
{
    if (!*text)
        return 0;
    uint64_t const hash = qat_hash_name(text);
    for (size_t i = 0; i < s->n_known; i++)
        if (s->known[i].hash == hash && !s->strings.failed &&
            strcmp((const char *)s->strings.bytes + s->known[i].offset, text) == 0)
            return s->known[i].offset;
    uint32_t const offset = (uint32_t)s->strings.count;
    s->known[s->n_known++] = (struct string){hash, offset};
    qat_write_bytes(&s->strings, text, strlen(text) + 1);
    return offset;
}

/** The name of a tensor or layer. */
static uint32_t add_name(struct sections *s, const char *name)
{
    return s->without & QAT_QM_NAMES ? 0 : add_string(s, name);
}

/** Are tensors and nodes written as short records? They have neither names nor channel scales. */
static bool is_short(const struct sections *s)
{
    int const parts = QAT_QM_NAMES | QAT_QM_SCALES;
    return (s->without & parts) == parts;
}

static uint32_t add_data(struct sections *s, const void *bytes, size_t count, size_t alignment)
{
    qat_write_align(&s->data, alignment);
    uint32_t const offset = (uint32_t)s->data.count;
    qat_write_bytes(&s->data, bytes, count);
    return offset;
}

static struct range add_ints(struct sections *s, int count, const int *values)
{
    struct range const r = {(uint32_t)(s->ints.count / 4), (uint32_t)count};
    for (int i = 0; i < count; i++)
        qat_write_u32(&s->ints, (uint32_t)values[i]);
    return r;
}

static void write_range(qat_writer *w, struct range r)
{
    qat_write_u32(w, r.first);
    qat_write_u32(w, r.count);
}

/* ------------------------------------------------------------------ tensors and nodes */

/** The first tensor with the same numbers as tensor `index`: tensors of a graph may share them. */
static int first_with_data(const qat_qgraph *graph, int index)
{
    int i = 0;
    while (graph->tensors[i].data != graph->tensors[index].data)
        i++;
    return i;
}

static int first_with_scales(const qat_qgraph *graph, int index)
{
    int i = 0;
    while (graph->tensors[i].channel_scales != graph->tensors[index].channel_scales)
        i++;
    return i;
}

/** Does the file have the scales of this tensor's channels? */
static bool has_scales(const struct sections *s, const qat_qtensor *t)
{
    return t->channel_scales && !(s->without & QAT_QM_SCALES);
}

static uint8_t kind_of(const qat_qtensor *t)
{
    return t->data ? QI_CONSTANT : t->is_state ? QI_STATE : QI_ACTIVATION;
}

static void add_short_tensor(struct sections *s, const qat_qtensor *t, struct place place)
{
    qat_writer *w = &s->tensors;
    qat_write_u8(w, (uint8_t)t->type);
    qat_write_u8(w, (uint8_t)(kind_of(t) + 16 * (int)t->border));
    qat_write_u8(w, (uint8_t)t->rank);
    qat_write_u8(w, (uint8_t)t->bits);
    for (int i = 0; i < QI_MAX_RANK; i++)
        qat_write_u32(w, (uint32_t)t->dims[i]);
    qat_write_u16(w, (uint16_t)t->zero_point);
    qat_write_u8(w, place.packing);
    qat_write_u8(w, place.listed);
    qat_write_f32(w, t->channel_scales ? 0.0f : t->scale);
    qat_write_u32(w, t->is_state ? (uint32_t)t->next : place.data);
}

static void add_tensor(struct sections *s, const qat_qtensor *t, struct place place)
{
    if (is_short(s)) {
        add_short_tensor(s, t, place);
        return;
    }
    qat_writer *w = &s->tensors;
    qat_write_u32(w, add_name(s, t->name));
    qat_write_u8(w, (uint8_t)t->type);
    qat_write_u8(w, kind_of(t));
    qat_write_u8(w, (uint8_t)t->rank);
    qat_write_u8(w, (uint8_t)t->bits);
    for (int i = 0; i < QI_MAX_RANK; i++)
        qat_write_u32(w, (uint32_t)t->dims[i]);
    qat_write_u32(w, (uint32_t)t->zero_point);
    qat_write_f32(w, !t->channel_scales || has_scales(s, t) ? t->scale : 0.0f);
    qat_write_u32(w, (uint32_t)place.scales);
    qat_write_u32(w, (uint32_t)t->source_index);
    qat_write_u32(w, place.data);
    qat_write_u32(w, place.bytes);
    qat_write_f32(w, t->range_min);
    qat_write_f32(w, t->range_max);
    qat_write_u8(w, (uint8_t)t->border);
    qat_write_u8(w, place.packing);
    qat_write_u8(w, place.listed);
    qat_write_u8(w, 0); /* reserved */
    qat_write_u32(w, t->is_state ? (uint32_t)t->next : 0);
}

/** Add the scales of a per-channel tensor, their bits as int32. */
static void add_channel_scales(struct sections *s, const qat_qtensor *of)
{
    qat_qtensor t = {.type = QI_S32,
                     .bits = 32,
                     .rank = 1,
                     .dims = {of->n_channels, 1, 1, 1},
                     .scale = 1.0f,
                     .data = of->channel_scales, /* same size and byte order as their bits */
                     .source_index = -1};
    _Static_assert(sizeof(float) == sizeof(int32_t), "scales are stored as their bits");
    uint32_t const bytes = (uint32_t)qat_qtensor_bytes(&t);
    add_tensor(s, &t, (struct place){add_data(s, t.data, bytes, QM_ALIGNMENT), -1, bytes, 0, 0});
}

/** Add the numbers of a constant, packed if they may be and take less room so. */
static qat_status add_constant(struct sections *s, const qat_qtensor *t, bool may_pack,
                               struct place *p, qat_error *err)
{
    qm_packed packed = {.count = qat_qtensor_bytes(t)};
    qat_status const st = may_pack ? qm_pack(t, &packed, err) : QAT_OK;
    if (st)
        return st;
    size_t const alignment = is_short(s) ? qi_type_bytes(t->type) : QM_ALIGNMENT;
    *p = (struct place){
        .data = add_data(s, packed.packing ? packed.bytes : t->data, packed.count, alignment),
        .scales = -1,
        .bytes = (uint32_t)packed.count,
        .packing = packed.packing,
        .listed = packed.listed,
    };
    free(packed.bytes);
    return QAT_OK;
}

/** Find or make the place of a tensor's numbers. */
static qat_status place_tensor(struct sections *s, const qat_qgraph *graph, int index,
                               qat_error *err)
{
    const qat_qtensor *t = &graph->tensors[index];
    struct place *p = &s->places[index];
    int const first = t->data ? first_with_data(graph, index) : index;
    if (t->data && first == index)
        return add_constant(s, t, s->may_pack[index], p, err);
    *p = s->places[first];
    p->scales = -1;
    p->bytes = p->packing ? p->bytes : (uint32_t)qat_qtensor_bytes(t);
    return QAT_OK;
}

static qat_status add_tensors(struct sections *s, const qat_qgraph *graph, qat_error *err)
{
    for (int i = 0; i < graph->n_tensors; i++) {
        const qat_qtensor *t = &graph->tensors[i];
        struct place *p = &s->places[i];
        int const scales = has_scales(s, t) ? first_with_scales(graph, i) : i;
        qat_status const st = place_tensor(s, graph, i, err);
        if (st)
            return st;
        if (has_scales(s, t))
            p->scales =
                scales < i ? s->places[scales].scales : graph->n_tensors + (int32_t)s->n_scales++;
        add_tensor(s, t, *p);
    }
    for (int i = 0; i < graph->n_tensors; i++)
        if (has_scales(s, &graph->tensors[i]) && first_with_scales(graph, i) == i)
            add_channel_scales(s, &graph->tensors[i]);
    return QAT_OK;
}

static void add_short_node(struct sections *s, const qat_qop *op)
{
    qat_writer *w = &s->nodes;
    qat_write_u32(w, add_string(s, op->op));
    qat_write_u32(w, add_ints(s, op->n_inputs, op->inputs).first);
    add_ints(s, op->n_outputs, op->outputs);
    add_ints(s, op->n_params, op->params);
    qat_write_u16(w, (uint16_t)op->n_inputs);
    qat_write_u8(w, (uint8_t)op->n_outputs);
    qat_write_u8(w, (uint8_t)op->n_params);
    qat_write_u8(w, (uint8_t)op->rounding);
    qat_write_u8(w, (uint8_t)op->fraction);
    qat_write_u16(w, 0);
    qat_write_u64(w, (uint64_t)op->max_accumulator);
}

static void add_node(struct sections *s, const qat_qop *op)
{
    if (is_short(s)) {
        add_short_node(s, op);
        return;
    }
    qat_writer *w = &s->nodes;
    qat_write_u32(w, add_string(s, op->op));
    qat_write_u32(w, add_name(s, op->name));
    write_range(w, add_ints(s, op->n_inputs, op->inputs));
    write_range(w, add_ints(s, op->n_outputs, op->outputs));
    write_range(w, add_ints(s, op->n_params, op->params));
    qat_write_u32(w, (uint32_t)op->rounding);
    qat_write_u32(w, (uint32_t)op->fraction);
    qat_write_u64(w, (uint64_t)op->max_accumulator);
}

/* ------------------------------------------------------------------ known-answer test, labels */

static struct range add_labels(struct sections *s, const qat_qm_metadata *m)
{
    struct range const r = {(uint32_t)(s->ints.count / 4), (uint32_t)m->n_labels};
    for (int i = 0; i < m->n_labels; i++)
        qat_write_u32(&s->ints, add_string(s, m->labels[i]));
    return r;
}

static uint32_t steps_of(const qat_qm_metadata *m)
{
    return m->kat_steps ? (uint32_t)m->kat_steps : 1;
}

static void add_answers(struct sections *s, const qat_qgraph *graph, int count, const int *tensors,
                        const void *const *values, uint32_t steps)
{
    for (int i = 0; i < count; i++)
        qat_write_u32(&s->ints,
                      add_data(s, values[i], steps * qat_qtensor_bytes(&graph->tensors[tensors[i]]),
                               QM_ALIGNMENT));
}

static uint32_t add_known_answers(struct sections *s, const qat_qgraph *graph,
                                  const qat_qm_metadata *m)
{
    uint32_t const first = (uint32_t)(s->ints.count / 4);
    if (!m->kat_inputs)
        return 0;
    add_answers(s, graph, graph->n_inputs, graph->inputs, m->kat_inputs, steps_of(m));
    add_answers(s, graph, graph->n_outputs, graph->outputs, m->kat_outputs, steps_of(m));
    return first;
}

static struct range add_epilogue(struct sections *s, const qat_qepilogue *e)
{
    if (!*e->name)
        return (struct range){0, 0};
    int const head[] = {(int)add_string(s, e->name), e->n_inputs};
    struct range r = add_ints(s, 2, head);
    r.count += add_ints(s, e->n_inputs, e->inputs).count;
    r.count += add_ints(s, e->n_params, e->params).count;
    return r;
}

/* ------------------------------------------------------------------ the file */

static void write_preprocessing(qat_writer *w, const qi_preprocessing *p)
{
    qat_write_u32(w, (uint32_t)p->kind);
    qat_write_u32(w, (uint32_t)p->height);
    qat_write_u32(w, (uint32_t)p->width);
    qat_write_u32(w, (uint32_t)p->channels);
    qat_write_u32(w, (uint32_t)(p->central_crop ? -p->central_crop : p->resize_short));
    qat_write_u32(w, (uint32_t)p->channel_order);
    for (int c = 0; c < 4; c++)
        qat_write_u32(w, p->mean_bits[c]);
    for (int c = 0; c < 4; c++)
        qat_write_u32(w, p->std_bits[c]);
}

/** Write the header with zeros for the checksum, the size and the places of the sections. */
static void write_header(qat_writer *w, struct sections *s, const qat_qgraph *graph,
                         const qat_qm_metadata *m)
{
    qat_write_bytes(w, QM_MAGIC, QM_MAGIC_BYTES);
    qat_write_u32(w, QM_VERSION);
    qat_write_u32(w, 0);
    qat_write_u32(w, 0);
    uint32_t const form = is_short(s) ? QM_FLAG_SHORT : 0;
    uint32_t const flags = QM_FLAG_KAT | (steps_of(m) - 1) << QM_KAT_STEPS_SHIFT;
    qat_write_u32(w, (m->kat_inputs ? flags : 0) | form);
    for (int section = 0; section < 5; section++)
        qat_write_u64(w, 0);
    write_range(w, add_ints(s, graph->n_inputs, graph->inputs));
    write_range(w, add_ints(s, graph->n_outputs, graph->outputs));
    write_range(w, add_labels(s, m));
    qat_write_u32(w, add_known_answers(s, graph, m));
    qat_write_u32(w, add_string(s, m->description ? m->description : ""));
    qat_write_bytes(w, m->digest, QM_DIGEST_BYTES);
    write_preprocessing(w, &m->preprocessing);
    write_range(w, add_epilogue(s, &graph->epilogue));
}

static void append_section(qat_writer *w, size_t place, const qat_writer *section, size_t count)
{
    qat_write_align(w, QM_ALIGNMENT);
    qat_patch_u32(w, place, (uint32_t)w->count);
    qat_patch_u32(w, place + 4, (uint32_t)count);
    qat_write_bytes(w, section->bytes, section->count);
}

static void append_sections(qat_writer *w, const struct sections *s)
{
    size_t const tensor = is_short(s) ? QM_SHORT_TENSOR_BYTES : QM_TENSOR_BYTES;
    size_t const node = is_short(s) ? QM_SHORT_NODE_BYTES : QM_NODE_BYTES;
    append_section(w, QM_AT_TENSORS, &s->tensors, s->tensors.count / tensor);
    append_section(w, QM_AT_NODES, &s->nodes, s->nodes.count / node);
    append_section(w, QM_AT_INTS, &s->ints, s->ints.count / 4);
    append_section(w, QM_AT_STRINGS, &s->strings, s->strings.count);
    append_section(w, QM_AT_DATA, &s->data, s->data.count);
}

static qat_status check_size(const struct sections *s, const qat_writer *w, qat_error *err)
{
    if (s->tensors.failed || s->nodes.failed || s->ints.failed || s->strings.failed ||
        s->data.failed || w->failed)
        return qat_out_of_memory(err, ".qm");
    if (s->ints.count / 4 > QM_MAX_INTS)
        return qat_fail(err, QAT_ERR_ARGUMENT, ".qm: %zu ints, the format allows %d",
                        s->ints.count / 4, (int)QM_MAX_INTS);
    if (w->count > QM_MAX_FILE_BYTES)
        return qat_fail(err, QAT_ERR_ARGUMENT, ".qm: %zu bytes, the format allows %d", w->count,
                        (int)QM_MAX_FILE_BYTES);
    return QAT_OK;
}

static void seal(qat_writer *w)
{
    qat_patch_u32(w, QM_AT_FILE_BYTES, (uint32_t)w->count);
    uint32_t const head = qm_crc32(0, w->bytes, QM_AT_CRC);
    size_t const rest = QM_AT_CRC + 4;
    qat_patch_u32(w, QM_AT_CRC, qm_crc32(head, w->bytes + rest, w->count - rest));
}

static void sections_free(struct sections *s)
{
    qat_writer_free(&s->tensors);
    qat_writer_free(&s->nodes);
    qat_writer_free(&s->ints);
    qat_writer_free(&s->strings);
    qat_writer_free(&s->data);
    free(s->known);
    free(s->places);
    free(s->may_pack);
}

qat_status qat_qm_write(const qat_qgraph *graph, const qat_qm_metadata *metadata, uint8_t **bytes,
                        size_t *count, qat_error *err)
{
    struct sections s = {0};
    qat_writer file = {0};
    *bytes = NULL;
    *count = 0;
    qat_status st = qat_qm_check(graph, metadata, err);
    if (st)
        return st;
    s.known =
        calloc((size_t)graph->n_tensors + 2 * (size_t)graph->n_ops + (size_t)metadata->n_labels + 2,
               sizeof *s.known);
    s.places = calloc((size_t)graph->n_tensors + 1, sizeof *s.places);
    s.may_pack = calloc((size_t)graph->n_tensors + 1, sizeof *s.may_pack);
    if (!s.known || !s.places || !s.may_pack) {
        sections_free(&s);
        return qat_out_of_memory(err, ".qm");
    }
    s.without = graph->form.without;
    if (!graph->form.unpacked)
        qm_may_pack(graph, s.may_pack);
    qat_write_u8(&s.strings, 0);
    st = add_tensors(&s, graph, err);
    for (int i = 0; i < graph->n_ops; i++)
        add_node(&s, &graph->ops[i]);
    write_header(&file, &s, graph, metadata);
    append_sections(&file, &s);
    if (!st)
        st = check_size(&s, &file, err);
    if (st) {
        qat_writer_free(&file);
    } else {
        seal(&file);
        *bytes = file.bytes;
        *count = file.count;
    }
    sections_free(&s);
    return st;
}
