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
#include "convert/qm_records.h"
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
    uint32_t n_scales;       /* number of tensors of channel scales */
    qm_tensor_place *places; /* of the graph's tensors */
    bool *may_pack;          /* by tensor of the graph */
    qm_reader *readers;      /* by tensor of the graph */
    int without;             /* the parts that are left out: QAT_QM_NAMES .. */
    qm_record_form form;
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

/** Are both the names and the channel scales left out? Then ranges are, too. */
static bool is_bare(int without)
{
    int const parts = QAT_QM_NAMES | QAT_QM_SCALES;
    return (without & parts) == parts;
}

static qm_record_form form_of(const qat_qm_form *form)
{
    return !form->fixed ? QM_COMPACT : is_bare(form->without) ? QM_SHORT : QM_LONG;
}

/** A constant of so many bytes, of values of this type, begins at a multiple of this. */
static size_t alignment_of(const struct sections *s, qi_type type, size_t bytes)
{
    bool const is_aligned = s->form == QM_LONG || (s->form == QM_COMPACT && bytes >= QM_ALIGNMENT);
    return is_aligned ? QM_ALIGNMENT : qi_type_bytes(type);
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

/** The name of a tensor in its record; a compact one has none that its reader knows. */
static uint32_t add_tensor_name(struct sections *s, const qat_qtensor *t, const qm_reader *reader)
{
    char known[QAT_NAME_MAX];
    bool const is_known =
        s->form == QM_COMPACT && qm_name_of(reader, t, known) && strcmp(known, t->name) == 0;
    return is_known ? 0 : add_name(s, t->name);
}

/** Add the scales of a per-channel tensor, their bits as int32; none if they follow from
 * multipliers. */
static void add_channel_scales(struct sections *s, const qat_qgraph *graph, int index)
{
    const qat_qtensor *of = &graph->tensors[index];
    bool const is_derived = s->form == QM_COMPACT && qm_scales_follow(graph, index);
    qat_qtensor t = {.type = QI_S32,
                     .bits = 32,
                     .rank = 1,
                     .dims = {of->n_channels, 1, 1, 1},
                     .scale = 1.0f,
                     .data = of->channel_scales, /* same size and byte order as their bits */
                     .source_index = -1};
    _Static_assert(sizeof(float) == sizeof(int32_t), "scales are stored as their bits");
    uint32_t const bytes = is_derived ? 0 : (uint32_t)qat_qtensor_bytes(&t);
    qm_tensor_place const place = {.data =
                                       add_data(s, t.data, bytes, alignment_of(s, QI_S32, bytes)),
                                   .follows = true,
                                   .scales = -1,
                                   .scale = t.scale,
                                   .bytes = bytes,
                                   .packing = is_derived ? QM_DERIVED : 0};
    qm_write_tensor(&s->tensors, s->form, &t, &place);
}

/** Add the numbers of a constant, packed if they may be and take less room so. */
static qat_status add_constant(struct sections *s, const qat_qtensor *t, bool may_pack,
                               qm_tensor_place *p, qat_error *err)
{
    qm_packed packed = {.count = qat_qtensor_bytes(t)};
    qat_status const st = may_pack ? qm_pack(t, &packed, err) : QAT_OK;
    if (st)
        return st;
    size_t const alignment = alignment_of(s, t->type, packed.count);
    *p = (qm_tensor_place){
        .data = add_data(s, packed.packing ? packed.bytes : t->data, packed.count, alignment),
        .follows = true,
        .bytes = (uint32_t)packed.count,
        .packing = packed.packing,
        .listed = packed.listed,
    };
    free(packed.bytes);
    if (s->form == QM_COMPACT && qi_type_has_codes((int)t->type))
        qat_write_align(&s->data,
                        QM_ALIGNMENT); /* so the places of others do not depend on its bits */
    return QAT_OK;
}

/** Find or make the place of a tensor's numbers. */
static qat_status place_tensor(struct sections *s, const qat_qgraph *graph, int index,
                               qat_error *err)
{
    const qat_qtensor *t = &graph->tensors[index];
    qm_tensor_place *p = &s->places[index];
    int const first = t->data ? first_with_data(graph, index) : index;
    if (t->data && first == index)
        return add_constant(s, t, s->may_pack[index], p, err);
    *p = s->places[first];
    p->follows = false;
    p->bytes = p->packing ? p->bytes : (uint32_t)qat_qtensor_bytes(t);
    return QAT_OK;
}

/** The number of the tensor with a tensor's channel scales, or -1. */
static int32_t scales_of(struct sections *s, const qat_qgraph *graph, int index)
{
    if (!has_scales(s, &graph->tensors[index]))
        return -1;
    int const first = first_with_scales(graph, index);
    return first < index ? s->places[first].scales : graph->n_tensors + (int32_t)s->n_scales++;
}

static qat_status add_tensors(struct sections *s, const qat_qgraph *graph, qat_error *err)
{
    for (int i = 0; i < graph->n_tensors; i++) {
        const qat_qtensor *t = &graph->tensors[i];
        qm_tensor_place *p = &s->places[i];
        qat_status const st = place_tensor(s, graph, i, err);
        if (st)
            return st;
        p->scales = scales_of(s, graph, i);
        p->scale = !t->channel_scales || has_scales(s, t) ? t->scale : 0.0f;
        p->name = add_tensor_name(s, t, &s->readers[i]);
        p->is_bare = is_bare(s->without);
        qm_write_tensor(&s->tensors, s->form, t, p);
    }
    for (int i = 0; i < graph->n_tensors; i++)
        if (has_scales(s, &graph->tensors[i]) && first_with_scales(graph, i) == i)
            add_channel_scales(s, graph, i);
    return QAT_OK;
}

static void add_node(struct sections *s, const qat_qop *op)
{
    qm_node_place p = {.op = add_string(s, op->op)};
    p.name = add_name(s, op->name);
    p.inputs = add_ints(s, op->n_inputs, op->inputs).first;
    p.outputs = add_ints(s, op->n_outputs, op->outputs).first;
    p.params = add_ints(s, op->n_params, op->params).first;
    qm_write_node(&s->nodes, s->form, op, &p);
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
    static const uint32_t forms[] = {[QM_SHORT] = QM_FLAG_SHORT, [QM_COMPACT] = QM_FLAG_COMPACT};
    uint32_t const flags = QM_FLAG_KAT | (steps_of(m) - 1) << QM_KAT_STEPS_SHIFT;
    qat_write_u32(w, (m->kat_inputs ? flags : 0) | forms[s->form]);
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

static void append_sections(qat_writer *w, const struct sections *s, const qat_qgraph *graph)
{
    append_section(w, QM_AT_TENSORS, &s->tensors, (size_t)graph->n_tensors + s->n_scales);
    append_section(w, QM_AT_NODES, &s->nodes, (size_t)graph->n_ops);
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
    free(s->readers);
}

static qat_status sections_new(struct sections *s, const qat_qgraph *graph,
                               const qat_qm_metadata *metadata, qat_error *err)
{
    size_t const tensors = (size_t)graph->n_tensors + 1, ops = (size_t)graph->n_ops + 1;
    s->without = graph->form.without;
    s->form = form_of(&graph->form);
    s->known = calloc(tensors + 2 * ops + (size_t)metadata->n_labels, sizeof *s->known);
    s->places = calloc(tensors, sizeof *s->places);
    s->may_pack = calloc(tensors, sizeof *s->may_pack);
    if (!s->known || !s->places || !s->may_pack)
        return qat_out_of_memory(err, ".qm");
    qm_may_pack(graph, s->may_pack);
    qat_write_u8(&s->strings, 0);
    return qm_readers_find(&s->readers, graph, err);
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
    st = sections_new(&s, graph, metadata, err);
    if (!st)
        st = add_tensors(&s, graph, err);
    if (st) {
        sections_free(&s);
        return st;
    }
    for (int i = 0; i < graph->n_ops; i++)
        add_node(&s, &graph->ops[i]);
    write_header(&file, &s, graph, metadata);
    append_sections(&file, &s, graph);
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
