/** Writes a checkpoint to bytes, and to a file that is complete at every moment. */
#include "checkpoint/checkpoint.h"

#include "base/files/file.h"
#include "task/task.h"

#include <string.h>
#include <zlib.h>

/** Begin a section; end_section fills in its size. */
static size_t begin_section(qat_writer *w, const char *tag)
{
    qat_write_bytes(w, tag, 4);
    qat_write_u32(w, 0);
    qat_write_u32(w, 0);
    return w->count;
}

static void patch_u64(qat_writer *w, size_t at, uint64_t v)
{
    qat_patch_u32(w, at, (uint32_t)v);
    qat_patch_u32(w, at + 4, (uint32_t)(v >> 32));
}

static void end_section(qat_writer *w, size_t start)
{
    if (!w->failed)
        patch_u64(w, start - 8, w->count - start);
}

static void write_text(qat_writer *w, const char *tag, const char *text)
{
    size_t const start = begin_section(w, tag);
    qat_write_bytes(w, text, strlen(text));
    end_section(w, start);
}

/** The name of the task, if the file has it; else "". */
static const char *task_name(const qat_checkpoint *c)
{
    const qat_task *task = qat_task_of(&c->input);
    return *c->task || task->implied ? c->task : task->name;
}

/** Write what a network answers: with attributes their number, with another task its name. */
static void write_task(qat_writer *w, const qat_checkpoint *c)
{
    const qat_attributes *a = &c->input.attributes;
    const char *name = task_name(c);
    if (!*name && !a->count)
        return;
    qat_write_u32(w, *name ? 0 : (uint32_t)a->count);
    if (*name)
        qat_write_string(w, name);
    qat_write_u32(w, (uint32_t)a->outputs);
    qat_write_f32(w, a->low);
    qat_write_f32(w, a->width);
    qat_write_f32(w, c->input.within);
    if (*name)
        qat_write_u32(w, (uint32_t)a->count);
}

static void write_input(qat_writer *w, const qat_checkpoint *c)
{
    const qat_input_info *in = &c->input;
    size_t const start = begin_section(w, QAT_TAG_INPUT);
    qat_write_u32(w, (uint32_t)in->height);
    qat_write_u32(w, (uint32_t)in->width);
    qat_write_u32(w, (uint32_t)in->channels);
    qat_write_u32(w, (uint32_t)in->classes);
    qat_write_u32(w, (uint32_t)in->type);
    qat_write_u32(w, (uint32_t)in->resize_short);
    for (int i = 0; i < QAT_CHANNEL_VALUES; i++)
        qat_write_f32(w, in->mean[i]);
    for (int i = 0; i < QAT_CHANNEL_VALUES; i++)
        qat_write_f32(w, in->std[i]);
    qat_write_f32(w, in->min);
    qat_write_f32(w, in->max);
    qat_write_u32(w, c->labels ? (uint32_t)in->classes : 0);
    for (int i = 0; c->labels && i < in->classes; i++)
        qat_write_string(w, c->labels[i]);
    write_task(w, c);
    end_section(w, start);
}

static void write_override(qat_writer *w, const qat_quant_layer *layer)
{
    qat_write_string(w, layer->pattern);
    qat_write_string(w, layer->where);
    qat_write_u32(w, (uint32_t)layer->weight_bits);
    qat_write_u32(w, (uint32_t)layer->activation_bits);
    qat_write_u32(w, (uint32_t)layer->per_channel);
    qat_write_u32(w, (uint32_t)layer->symmetric);
    qat_write_u32(w, (uint32_t)layer->power_of_two);
    qat_write_u32(w, (uint32_t)layer->is_float);
    qat_write_string(w, layer->weight_ranges);
    qat_write_string(w, layer->activation_ranges);
}

/** Write where ranges come from, and the overrides of single layers. */
static void write_ranges(qat_writer *w, const qat_quant_options *q)
{
    qat_write_string(w, q->weight_ranges);
    qat_write_string(w, q->activation_ranges);
    qat_write_u32(w, q->power_of_two);
    qat_write_u64(w, (uint64_t)q->learn_delay);
    qat_write_f64(w, q->range_rate);
    qat_write_u32(w, (uint32_t)q->n_layers);
    for (int i = 0; i < q->n_layers; i++)
        write_override(w, &q->layers[i]);
}

static bool reads_fewer_bits(const qat_quant_options *q)
{
    bool any = q->input_bits != 0;
    for (int i = 0; i < q->n_layers; i++)
        any |= q->layers[i].input_bits != 0;
    return any;
}

/** Do layers have more bits than they will have at the end of a schedule? */
static bool in_stage(const qat_quant_options *q)
{
    return q->least_weight_bits || q->least_activation_bits;
}

/** Nothing, if all layers read tensors as they come and nothing follows. */
static void write_input_bits(qat_writer *w, const qat_quant_options *q)
{
    if (!reads_fewer_bits(q) && !q->freeze_bits && !in_stage(q))
        return;
    qat_write_u32(w, (uint32_t)q->input_bits);
    for (int i = 0; i < q->n_layers; i++)
        qat_write_u32(w, (uint32_t)q->layers[i].input_bits);
}

static void write_quant(qat_writer *w, const qat_checkpoint *c)
{
    const qat_quant_options *q = &c->quant;
    size_t const start = begin_section(w, QAT_TAG_QUANT);
    qat_write_u32(w, c->quantized);
    qat_write_u32(w, (uint32_t)c->profile);
    qat_write_u32(w, (uint32_t)q->layout);
    qat_write_u32(w, (uint32_t)q->bn_fold);
    qat_write_u32(w, (uint32_t)q->weight_bits);
    qat_write_u32(w, (uint32_t)q->activation_bits);
    qat_write_f64(w, q->ema_decay);
    qat_write_u64(w, (uint64_t)q->weight_delay);
    qat_write_u64(w, (uint64_t)q->activation_delay);
    qat_write_u64(w, (uint64_t)q->bn_freeze_delay);
    qat_write_f32(w, q->input_min);
    qat_write_f32(w, q->input_max);
    write_ranges(w, q);
    write_input_bits(w, q);
    if (q->freeze_bits || in_stage(q))
        qat_write_u32(w, (uint32_t)q->freeze_bits);
    if (in_stage(q)) {
        qat_write_u32(w, (uint32_t)q->least_weight_bits);
        qat_write_u32(w, (uint32_t)q->least_activation_bits);
    }
    end_section(w, start);
}

static void write_tensors(qat_writer *w, const qat_named_tensor *tensors, int count)
{
    qat_write_u32(w, (uint32_t)count);
    for (int i = 0; i < count; i++) {
        const qat_named_tensor *t = &tensors[i];
        qat_write_string(w, t->name);
        qat_write_u32(w, (uint32_t)t->shape.rank);
        for (int d = 0; d < t->shape.rank; d++)
            qat_write_u32(w, (uint32_t)t->shape.dims[d]);
        size_t const n = qat_shape_count(&t->shape);
        for (size_t k = 0; k < n; k++)
            qat_write_f32(w, t->values[k]);
    }
}

static void write_accuracy(qat_writer *w, const qat_accuracy *a, bool counts)
{
    qat_write_u64(w, (uint64_t)a->n);
    qat_write_u64(w, counts ? (uint64_t)a->figures[QAT_TOP1] : 0);
    qat_write_u64(w, counts ? (uint64_t)a->figures[QAT_TOP5] : 0);
}

static void write_progress(qat_writer *w, const qat_checkpoint *c)
{
    const qat_accuracy *of[] = {&c->float_accuracy, &c->simulated_accuracy, &c->integer_accuracy};
    size_t const start = begin_section(w, QAT_TAG_PROGRESS);
    qat_write_u64(w, (uint64_t)c->step);
    qat_write_f64(w, c->loss_sum);
    qat_write_u64(w, (uint64_t)c->loss_count);
    qat_write_u64(w, (uint64_t)c->sample_count);
    qat_write_u64(w, (uint64_t)c->correct_count);
    qat_write_f64(w, c->gradient_norm);
    const qat_task *task = c->input.attributes.count ? qat_task_of(&c->input) : NULL;
    for (int i = 0; i < 3; i++)
        task = of[i]->n ? of[i]->task : task;
    bool const named = *task_name(c), counts = task == &qat_task_classes;
    for (int i = 0; i < 3; i++)
        write_accuracy(w, of[i], !named && counts);
    qat_write_f64(w, c->last_loss);
    qat_write_bytes(w, c->teacher, sizeof c->teacher);
    int const n = named ? QAT_MAX_FIGURES : task ? task->n_kept : 0;
    for (int i = 0; i < 3 * n; i++)
        qat_write_f64(w, of[i / n]->figures[i % n]);
    end_section(w, start);
}

static void write_plateau(qat_writer *w, const qat_plateau *p)
{
    qat_write_u32(w, (p->watched ? QAT_PLATEAU_WATCHED : 0) | (p->ended ? QAT_PLATEAU_ENDED : 0));
    qat_write_u64(w, (uint64_t)p->stage);
    qat_write_f64(w, p->best);
    qat_write_u64(w, (uint64_t)p->since);
    qat_write_u64(w, (uint64_t)p->since_drop);
    qat_write_u64(w, (uint64_t)p->drops);
    qat_write_f64(w, p->loss_sum);
    qat_write_u64(w, (uint64_t)p->losses);
}

static void write_digest(qat_writer *w, const qat_data_digest *d)
{
    qat_write_u64(w, (uint64_t)d->count);
    qat_write_u64(w, (uint64_t)d->bytes);
    qat_write_bytes(w, d->sha256, sizeof d->sha256);
    qat_write_u32(w, (uint32_t)d->n);
    for (int i = 0; i < d->n; i++) {
        qat_write_u32(w, d->names[i]);
        qat_write_u32(w, d->contents[i]);
    }
}

static void write_digests(qat_writer *w, const qat_checkpoint *c)
{
    size_t const start = begin_section(w, QAT_TAG_DIGESTS);
    write_digest(w, &c->data[QAT_SPLIT_TRAIN]);
    write_digest(w, &c->data[QAT_SPLIT_TEST]);
    end_section(w, start);
}

static void write_plugins(qat_writer *w, const qat_checkpoint *c)
{
    size_t const start = begin_section(w, QAT_TAG_PLUGINS);
    qat_write_u32(w, (uint32_t)c->n_plugins);
    for (int i = 0; i < c->n_plugins; i++) {
        qat_write_string(w, c->plugins[i].name);
        qat_write_bytes(w, c->plugins[i].sha256, sizeof c->plugins[i].sha256);
    }
    end_section(w, start);
}

static void write_all(qat_writer *w, const qat_checkpoint *c)
{
    qat_write_bytes(w, QAT_CHECKPOINT_MAGIC, 8);
    qat_write_u32(w, QAT_CHECKPOINT_VERSION);
    qat_write_u32(w, QAT_CHECKPOINT_SECTIONS);
    qat_write_u64(w, 0);
    write_text(w, QAT_TAG_RECIPE, c->recipe);
    write_text(w, QAT_TAG_GRAPH, c->graph);
    write_input(w, c);
    write_quant(w, c);
    size_t start = begin_section(w, QAT_TAG_PARAMETERS);
    write_tensors(w, c->params, c->n_params);
    end_section(w, start);
    start = begin_section(w, QAT_TAG_OPTIMIZER);
    qat_write_u32(w, (uint32_t)c->n_slots);
    qat_write_u64(w, (uint64_t)c->optimizer_steps);
    write_tensors(w, c->slots, c->n_slot_tensors);
    qat_write_u32(w, c->averaged);
    if (c->plateau.watched || c->plateau.losses)
        write_plateau(w, &c->plateau);
    end_section(w, start);
    write_progress(w, c);
    write_text(w, QAT_TAG_LOG, c->log);
    write_digests(w, c);
    write_plugins(w, c);
    if (!w->failed)
        patch_u64(w, 16, w->count + QAT_CHECKPOINT_TRAILER);
    if (!w->failed)
        qat_write_u32(w, (uint32_t)crc32_z(0, w->bytes, w->count));
}

qat_status qat_checkpoint_bytes(const qat_checkpoint *checkpoint, qat_writer *w, const char *path,
                                qat_error *err)
{
    size_t const before = w->count;
    write_all(w, checkpoint);
    if (w->failed)
        return qat_out_of_memory(err, path);
    if (w->count - before > QAT_CHECKPOINT_MAX_BYTES)
        return qat_fail(err, QAT_ERR_UNSUPPORTED, "%s: %zu bytes, but a checkpoint has at most %d",
                        path, w->count - before, QAT_CHECKPOINT_MAX_BYTES);
    return QAT_OK;
}

qat_status qat_checkpoint_save(const qat_checkpoint *checkpoint, const char *path, qat_error *err)
{
    qat_writer w = {0};
    qat_status st = qat_checkpoint_bytes(checkpoint, &w, path, err);
    if (!st)
        st = qat_file_write_atomic(path, w.bytes, w.count, err);
    qat_writer_free(&w);
    return st;
}
