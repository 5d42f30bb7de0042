/**
 * The metadata that programs read beside the network: TensorFlow Lite's own schema of it
 * (metadata_schema.fbs, in a buffer named TFLITE_METADATA), and our known answer. The file of
 * labels is where the Task Library looks for it: in a zip archive after the FlatBuffer's end.
 */
#include "export/tflite/out.h"

#include "base/shown.h"
#include "qat/runtime.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h>

static const char labels_name[] = "labels.txt";

enum { META_NAME, META_DESCRIPTION, META_SUBGRAPHS = 3, META_AUTHOR = 4, META_PARSER = 7 };
enum { SUBGRAPH_INPUT_METADATA = 2, SUBGRAPH_OUTPUT_METADATA = 3 };
enum { TENSOR_META_NAME, TENSOR_META_CONTENT = 3, TENSOR_META_UNITS = 4, TENSOR_META_FILES = 6 };
enum { CONTENT_TYPE, CONTENT_PROPERTIES };
enum { CONTENT_FEATURES = 1, CONTENT_IMAGE = 2 };
enum { IMAGE_COLORS, IMAGE_SIZE };
enum { SIZE_WIDTH, SIZE_HEIGHT };
enum { UNIT_TYPE, UNIT_OPTIONS, UNIT_NORMALIZATION = 1 };
enum { NORMALIZATION_MEAN, NORMALIZATION_STD };
enum { ASSOCIATED_NAME, ASSOCIATED_TYPE = 2, ASSOCIATED_AXIS_LABELS = 2 };

/* ------------------------------------------------------------------ TFLITE_METADATA */

static void put_floats(qat_writer *w, const fbw_table *t, int field, int n, const uint32_t *bits)
{
    fbw_vector(w, t, field, (size_t)n, 4);
    for (int i = 0; i < n; i++)
        qat_write_u32(w, bits[i]);
}

/** (value - mean) / std; where a table has become part of the model, it takes plain pixels. */
static void put_normalization(const tfo *o, qat_writer *w, const fbw_table *tensor)
{
    const qi_preprocessing *p = qi_model_preprocessing(o->model);
    static const uint32_t zeros[4], ones[4] = {0x3f800000, 0x3f800000, 0x3f800000, 0x3f800000};
    bool const plain =
        p->kind != 2 && o->pixels_table < 0 && o->file.tensors[o->file.inputs[0]].scale == 1.0f;
    int const n = p->channels > 4 ? 1 : p->channels;
    size_t const slot = fbw_tables(w, tensor, TENSOR_META_UNITS, 1);
    fbw_table const unit = fbw_item(w, slot, 1u << UNIT_TYPE | 1u << UNIT_OPTIONS);
    fbw_set(w, &unit, UNIT_TYPE, UNIT_NORMALIZATION);
    fbw_table const t =
        fbw_subtable(w, &unit, UNIT_OPTIONS, 1u << NORMALIZATION_MEAN | 1u << NORMALIZATION_STD);
    put_floats(w, &t, NORMALIZATION_MEAN, n, plain ? zeros : p->mean_bits);
    put_floats(w, &t, NORMALIZATION_STD, n, plain ? ones : p->std_bits);
}

static void put_content(const tfo *o, qat_writer *w, const fbw_table *tensor, bool picture)
{
    static const int colors[] = {2, 1, 0}; /* by channel_order: grey, RGB, and BGR has no number */
    const qi_preprocessing *p = qi_model_preprocessing(o->model);
    fbw_table const content =
        fbw_subtable(w, tensor, TENSOR_META_CONTENT, 1u << CONTENT_TYPE | 1u << CONTENT_PROPERTIES);
    fbw_set(w, &content, CONTENT_TYPE, picture ? CONTENT_IMAGE : CONTENT_FEATURES);
    fbw_table const t = fbw_subtable(w, &content, CONTENT_PROPERTIES,
                                     picture ? 1u << IMAGE_COLORS | 1u << IMAGE_SIZE : 0);
    if (!picture)
        return;
    fbw_set(w, &t, IMAGE_COLORS, (uint32_t)colors[p->channel_order]);
    fbw_table const size = fbw_subtable(w, &t, IMAGE_SIZE, 1u << SIZE_WIDTH | 1u << SIZE_HEIGHT);
    fbw_set(w, &size, SIZE_WIDTH, (uint32_t)p->width);
    fbw_set(w, &size, SIZE_HEIGHT, (uint32_t)p->height);
}

static void put_labels_file(qat_writer *w, const fbw_table *tensor)
{
    size_t const slot = fbw_tables(w, tensor, TENSOR_META_FILES, 1);
    fbw_table const t = fbw_item(w, slot, 1u << ASSOCIATED_NAME | 1u << ASSOCIATED_TYPE);
    fbw_set(w, &t, ASSOCIATED_TYPE, ASSOCIATED_AXIS_LABELS);
    fbw_text(w, &t, ASSOCIATED_NAME, labels_name);
}

static void put_input(const tfo *o, qat_writer *w, size_t slot, int i)
{
    int const kind = i == 0 ? qi_model_preprocessing(o->model)->kind : 0;
    fbw_table const t = fbw_item(w, slot,
                                 1u << TENSOR_META_NAME | 1u << TENSOR_META_CONTENT |
                                     (kind ? 1u << TENSOR_META_UNITS : 0));
    fbw_text(w, &t, TENSOR_META_NAME, o->file.tensors[o->file.inputs[i]].name);
    put_content(o, w, &t, kind == 1);
    if (kind)
        put_normalization(o, w, &t);
}

/** Labels are those of the positions of a tensor's last dimension. */
static bool has_labels(const tfo *o, int output)
{
    const tfo_tensor *t = &o->file.tensors[o->file.outputs[output]];
    int const n = qi_label_count(o->model);
    return n > 0 && t->dims[t->rank - 1] == n;
}

static void put_output(const tfo *o, qat_writer *w, size_t slot, int i)
{
    fbw_table const t = fbw_item(w, slot,
                                 1u << TENSOR_META_NAME | 1u << TENSOR_META_CONTENT |
                                     (has_labels(o, i) ? 1u << TENSOR_META_FILES : 0));
    fbw_text(w, &t, TENSOR_META_NAME, o->file.tensors[o->file.outputs[i]].name);
    put_content(o, w, &t, false);
    if (has_labels(o, i))
        put_labels_file(w, &t);
}

static void put_model(const tfo *o, qat_writer *w)
{
    char name[TFO_DESCRIPTION_MAX];
    const tfo_file *f = &o->file;
    qat_shown(name, sizeof name, qi_model_description(o->model), false);
    fbw_table const root =
        fbw_root(w, "M001",
                 1u << META_NAME | 1u << META_DESCRIPTION | 1u << META_SUBGRAPHS |
                     1u << META_AUTHOR | 1u << META_PARSER);
    fbw_text(w, &root, META_NAME, name);
    fbw_text(w, &root, META_DESCRIPTION, f->description);
    fbw_text(w, &root, META_AUTHOR, "qat");
    fbw_text(w, &root, META_PARSER, "1.0.0");
    size_t const slot = fbw_tables(w, &root, META_SUBGRAPHS, 1);
    fbw_table const subgraph =
        fbw_item(w, slot, 1u << SUBGRAPH_INPUT_METADATA | 1u << SUBGRAPH_OUTPUT_METADATA);
    size_t const inputs = fbw_tables(w, &subgraph, SUBGRAPH_INPUT_METADATA, f->n_inputs);
    for (int i = 0; i < f->n_inputs; i++)
        put_input(o, w, inputs + 4 * (size_t)i, i);
    size_t const outputs = fbw_tables(w, &subgraph, SUBGRAPH_OUTPUT_METADATA, f->n_outputs);
    for (int i = 0; i < f->n_outputs; i++)
        put_output(o, w, outputs + 4 * (size_t)i, i);
}

/* ------------------------------------------------------------------ the known answer */

static size_t answer_bytes(const qi_model *m)
{
    size_t bytes = 0;
    for (int32_t i = 0; i < qi_input_count(m); i++)
        bytes += qi_tensor_at(m, qi_input_at(m, i))->bytes;
    for (int32_t i = 0; i < qi_output_count(m); i++)
        bytes += qi_tensor_at(m, qi_output_at(m, i))->bytes;
    return bytes;
}

/** The codes of all inputs, then of all outputs. */
static uint8_t *known_answer(tfo *o, size_t *bytes)
{
    const qi_model *m = o->model;
    *bytes = answer_bytes(m);
    uint8_t *all = qat_arena_take(&o->file.arena, *bytes), *at = all;
    for (int32_t i = 0; all && i < qi_input_count(m); i++) {
        size_t const n = qi_tensor_at(m, qi_input_at(m, i))->bytes;
        memcpy(at, qi_kat_input(m, i), n);
        at += n;
    }
    for (int32_t i = 0; all && i < qi_output_count(m); i++) {
        size_t const n = qi_tensor_at(m, qi_output_at(m, i))->bytes;
        memcpy(at, qi_kat_output(m, i), n);
        at += n;
    }
    return all;
}

/** Does the file take or give real numbers? The answer is codes. */
static bool has_reals(const tfo *o)
{
    const tfo_file *f = &o->file;
    bool found = false;
    for (int i = 0; i < f->n_inputs; i++)
        found = found || f->tensors[f->inputs[i]].type == TFL_FLOAT32;
    for (int i = 0; i < f->n_outputs; i++)
        found = found || f->tensors[f->outputs[i]].type == TFL_FLOAT32;
    return found;
}

static void add(tfo *o, const char *name, const void *data, size_t bytes)
{
    tfo_file *f = &o->file;
    f->metadata[f->n_metadata++] =
        (tfo_metadata){.name = name, .buffer = tfo_add_buffer(f, data, bytes)};
}

qat_status tfo_add_metadata(tfo *o, qat_error *err)
{
    qat_writer w = {0};
    tfo_file *f = &o->file;
    char name[TFO_DESCRIPTION_MAX - 64];
    qat_shown(name, sizeof name, qi_model_description(o->model), false);
    snprintf(f->description, sizeof f->description, "%s%smade by qat %s", name, *name ? ", " : "",
             qat_version());
    put_model(o, &w);
    void *copy = w.failed ? NULL : qat_arena_take(&f->arena, w.count);
    if (copy)
        memcpy(copy, w.bytes, w.count);
    size_t const count = w.count;
    qat_writer_free(&w);
    if (!copy)
        return qat_out_of_memory(err, NULL);
    add(o, "TFLITE_METADATA", copy, count);
    if (qi_kat_input(o->model, 0) && !has_reals(o)) {
        size_t bytes;
        const uint8_t *answer = known_answer(o, &bytes);
        add(o, "qat_known_answer", answer, bytes);
    }
    return f->failed ? qat_out_of_memory(err, NULL) : QAT_OK;
}

/* ------------------------------------------------------------------ labels */

/** One label a line, as people see it. */
static void put_lines(const tfo *o, qat_writer *w)
{
    char line[1024];
    for (int32_t i = 0; i < qi_label_count(o->model); i++) {
        qat_shown(line, sizeof line, qi_label_at(o->model, i), false);
        qat_write_text(w, "%s\n", line);
    }
}

/** What the local and the central record of a stored entry share; without a date: 1980-01-01. */
static void put_entry(qat_writer *w, const qat_writer *content)
{
    enum { VERSION = 10, UTF8_NAMES = 1 << 11, STORED = 0, FIRST_DAY = 1 << 5 | 1 };
    uint32_t const crc = (uint32_t)crc32(0, content->bytes, (uInt)content->count);
    qat_write_u16(w, VERSION);
    qat_write_u16(w, UTF8_NAMES);
    qat_write_u16(w, STORED);
    qat_write_u16(w, 0);
    qat_write_u16(w, FIRST_DAY);
    qat_write_u32(w, crc);
    qat_write_u32(w, (uint32_t)content->count);
    qat_write_u32(w, (uint32_t)content->count);
    qat_write_u16(w, sizeof labels_name - 1);
    qat_write_u16(w, 0); /* no extra fields */
}

void tfo_append_labels(const tfo *o, qat_writer *w)
{
    enum { VERSION = 10, ENTRIES = 1, CENTRAL_ENTRY = 46 };
    qat_writer lines = {0};
    bool used = false;
    for (int i = 0; i < o->file.n_outputs; i++)
        used = used || has_labels(o, i);
    if (!used)
        return;
    put_lines(o, &lines);
    size_t const local = w->count;
    qat_write_bytes(w, "PK\3\4", 4);
    put_entry(w, &lines);
    qat_write_bytes(w, labels_name, sizeof labels_name - 1);
    qat_write_bytes(w, lines.bytes, lines.count);
    size_t const central = w->count;
    qat_write_bytes(w, "PK\1\2", 4);
    qat_write_u16(w, VERSION);
    put_entry(w, &lines);
    qat_write_u16(w, 0); /* no comment */
    qat_write_u16(w, 0); /* disk */
    qat_write_u16(w, 0); /* attributes */
    qat_write_u32(w, 0);
    qat_write_u32(w, (uint32_t)local);
    qat_write_bytes(w, labels_name, sizeof labels_name - 1);
    qat_write_bytes(w, "PK\5\6", 4);
    qat_write_u32(w, 0); /* disks */
    qat_write_u16(w, ENTRIES);
    qat_write_u16(w, ENTRIES);
    qat_write_u32(w, CENTRAL_ENTRY + sizeof labels_name - 1);
    qat_write_u32(w, (uint32_t)central);
    qat_write_u16(w, 0); /* no comment */
    w->failed = w->failed || lines.failed;
    qat_writer_free(&lines);
}
