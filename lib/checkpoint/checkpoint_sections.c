/** Reads the sections of a checkpoint and checks every field against its limits. */
#include "checkpoint/checkpoint.h"
#include "checkpoint/checkpoint_read.h"
#include "task/task.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/** Copy all bytes of the reader as a text. */
static qat_status copy_text(ckpt_reading *p, char **text)
{
    size_t const n = (size_t)(p->r.end - p->r.at);
    const void *from = qat_read_bytes(&p->r, n);
    if (n && (!from || memchr(from, 0, n)))
        return ckpt_bad_section(p, "a text with a byte 0");
    *text = malloc(n + 1);
    if (!*text)
        return qat_out_of_memory(p->err, p->name);
    if (n)
        memcpy(*text, from, n);
    (*text)[n] = 0;
    return QAT_OK;
}

qat_status ckpt_read_text(ckpt_reading *p, const char *tag, char **text)
{
    qat_reader rest;
    qat_status st = ckpt_open_section(p, tag, &rest);
    if (!st)
        st = copy_text(p, text);
    return st ? st : ckpt_close_section(p, rest);
}

static qat_status read_labels(ckpt_reading *p)
{
    qat_checkpoint *c = p->c;
    uint32_t const n = qat_read_u32(&p->r);
    if (n == 0)
        return QAT_OK;
    if (n != (uint32_t)c->input.classes)
        return ckpt_bad_section(p, "not as many labels as classes");
    c->labels = calloc(n, sizeof *c->labels);
    if (!c->labels)
        return qat_out_of_memory(p->err, p->name);
    for (uint32_t i = 0; i < n; i++) {
        char label[QAT_LABEL_MAX + 1];
        qat_read_string(&p->r, label, sizeof label);
        if (p->r.bad)
            return ckpt_bad_section(p, "a label that is cut or too long");
        c->labels[i] = malloc(strlen(label) + 1);
        if (!c->labels[i])
            return qat_out_of_memory(p->err, p->name);
        strcpy(c->labels[i], label);
    }
    return QAT_OK;
}

static bool between(int64_t v, int64_t low, int64_t high)
{
    return v >= low && v <= high;
}

static bool input_good(const qat_input_info *in)
{
    bool good = between(in->height, 1, 65535) && between(in->width, 1, 65535) &&
                between(in->channels, 1, 65535) &&
                between(in->classes, 1, QAT_CHECKPOINT_MAX_CLASSES) &&
                between((int64_t)in->type, QAT_SAMPLE_U8, QAT_SAMPLE_SOUND) &&
                between(in->resize_short, 0, 65535) && isfinite(in->min) && isfinite(in->max) &&
                in->min < in->max;
    for (int i = 0; i < QAT_CHANNEL_VALUES; i++)
        good = good && isfinite(in->mean[i]) && isfinite(in->std[i]) && in->std[i] > 0;
    return good;
}

/** Is it the name of a task that checkpoints name? */
static bool is_named(const char *task)
{
    const qat_task *built_in = qat_task_find(NULL, task);
    return *task && (!built_in || !built_in->implied);
}

/** Read what a network answers: with attributes their number, with another task its name. */
static bool read_task(ckpt_reading *p)
{
    qat_input_info *in = &p->c->input;
    qat_attributes *a = &in->attributes;
    a->count = (int)qat_read_u32(&p->r);
    bool const named = !a->count;
    in->task = named ? NULL : &qat_task_attributes;
    if (named)
        qat_read_string(&p->r, p->c->task, sizeof p->c->task);
    a->outputs = (int)qat_read_u32(&p->r);
    a->low = qat_read_f32(&p->r);
    a->width = qat_read_f32(&p->r);
    in->within = qat_read_f32(&p->r);
    if (named && p->r.at < p->r.end) /* the first versions had none */
        a->count = (int)qat_read_u32(&p->r);
    return !p->r.bad && (named ? is_named(p->c->task) : a->count == in->classes) &&
           between(a->count, 0, QAT_CHECKPOINT_MAX_CLASSES) && between(a->outputs, 0, 65536) &&
           isfinite(a->low) && isfinite(a->width) && in->within >= 0;
}

qat_status ckpt_read_input(ckpt_reading *p)
{
    qat_input_info *in = &p->c->input;
    qat_reader rest;
    qat_status st = ckpt_open_section(p, QAT_TAG_INPUT, &rest);
    if (st)
        return st;
    in->height = (int)qat_read_u32(&p->r);
    in->width = (int)qat_read_u32(&p->r);
    in->channels = (int)qat_read_u32(&p->r);
    in->classes = (int)qat_read_u32(&p->r);
    in->type = (qat_sample_type)qat_read_u32(&p->r);
    in->resize_short = (int)qat_read_u32(&p->r);
    for (int i = 0; i < QAT_CHANNEL_VALUES; i++)
        in->mean[i] = qat_read_f32(&p->r);
    for (int i = 0; i < QAT_CHANNEL_VALUES; i++)
        in->std[i] = qat_read_f32(&p->r);
    in->min = qat_read_f32(&p->r);
    in->max = qat_read_f32(&p->r);
    if (p->r.bad || !input_good(in))
        return ckpt_bad_section(p, "a number outside its limits");
    st = read_labels(p);
    if (!st && p->r.at < p->r.end && !read_task(p))
        st = ckpt_bad_section(p, "a number outside its limits");
    return st ? st : ckpt_close_section(p, rest);
}

static bool activation_bits_good(int bits)
{
    return between(bits, 2, 8) || bits == QAT_WIDE_BITS;
}

static bool quant_good(const qat_quant_options *q, uint32_t quantized, uint32_t profile)
{
    return quantized <= 1 && profile <= QAT_PROFILE_ONNX && between(q->layout, 0, 1) &&
           between(q->bn_fold, 0, 1) && between(q->weight_bits, 2, 8) &&
           activation_bits_good(q->activation_bits) && q->ema_decay >= 0 && q->ema_decay < 1 &&
           q->weight_delay >= 0 && q->activation_delay >= 0 && q->bn_freeze_delay >= 0 &&
           isfinite(q->input_min) && isfinite(q->input_max) && q->input_min < q->input_max;
}

/** -1: same as all others. */
static int read_choice(ckpt_reading *p)
{
    return (int)(int32_t)qat_read_u32(&p->r);
}

static bool read_override(ckpt_reading *p, qat_quant_layer *layer)
{
    qat_read_string(&p->r, layer->pattern, sizeof layer->pattern);
    qat_read_string(&p->r, layer->where, sizeof layer->where);
    layer->weight_bits = (int)qat_read_u32(&p->r);
    layer->activation_bits = (int)qat_read_u32(&p->r);
    layer->per_channel = read_choice(p);
    layer->symmetric = read_choice(p);
    layer->power_of_two = read_choice(p);
    layer->is_float = read_choice(p);
    qat_read_string(&p->r, layer->weight_ranges, sizeof layer->weight_ranges);
    qat_read_string(&p->r, layer->activation_ranges, sizeof layer->activation_ranges);
    return !p->r.bad && (!layer->weight_bits || between(layer->weight_bits, 2, 8)) &&
           (!layer->activation_bits || activation_bits_good(layer->activation_bits)) &&
           between(layer->per_channel, -1, 1) && between(layer->symmetric, -1, 1) &&
           between(layer->power_of_two, -1, 1) && between(layer->is_float, -1, 1);
}

/** Read where ranges come from, and the overrides of single layers. */
static bool read_ranges(ckpt_reading *p, qat_quant_options *q)
{
    qat_read_string(&p->r, q->weight_ranges, sizeof q->weight_ranges);
    qat_read_string(&p->r, q->activation_ranges, sizeof q->activation_ranges);
    uint32_t const power_of_two = qat_read_u32(&p->r);
    q->power_of_two = power_of_two == 1;
    q->learn_delay = (int64_t)qat_read_u64(&p->r);
    q->range_rate = qat_read_f64(&p->r);
    q->n_layers = (int)qat_read_u32(&p->r);
    bool good = !p->r.bad && power_of_two <= 1 && q->learn_delay >= 0 && q->range_rate >= 0 &&
                isfinite(q->range_rate) && between(q->n_layers, 0, QAT_QUANT_LAYERS_MAX);
    for (int i = 0; good && i < q->n_layers; i++)
        good = read_override(p, &q->layers[i]);
    return good;
}

/** Not there if all layers read tensors as they come and nothing follows. */
static bool read_input_bits(ckpt_reading *p, qat_quant_options *q)
{
    bool good = true;
    q->input_bits = (int)qat_read_u32(&p->r);
    good = !q->input_bits || between(q->input_bits, 2, 8);
    for (int i = 0; i < q->n_layers; i++) {
        int *bits = &q->layers[i].input_bits;
        *bits = (int)qat_read_u32(&p->r);
        good &= !*bits || between(*bits, 2, 8);
    }
    return good && !p->r.bad;
}

/** Bits of 2..8, or 0. */
static bool read_bits(ckpt_reading *p, int *bits)
{
    *bits = (int)qat_read_u32(&p->r);
    return !p->r.bad && (!*bits || between(*bits, 2, 8));
}

qat_status ckpt_read_quant(ckpt_reading *p)
{
    qat_quant_options *q = &p->c->quant;
    qat_reader rest;
    qat_status const st = ckpt_open_section(p, QAT_TAG_QUANT, &rest);
    if (st)
        return st;
    *q = qat_quant_defaults();
    uint32_t const quantized = qat_read_u32(&p->r), profile = qat_read_u32(&p->r);
    p->c->quantized = quantized == 1;
    p->c->profile = profile <= QAT_PROFILE_ONNX ? (qat_profile)profile : QAT_PROFILE_PAPER;
    q->layout = (qat_layout)qat_read_u32(&p->r);
    q->bn_fold = (qat_bn_fold)qat_read_u32(&p->r);
    q->weight_bits = (int)qat_read_u32(&p->r);
    q->activation_bits = (int)qat_read_u32(&p->r);
    q->ema_decay = qat_read_f64(&p->r);
    q->weight_delay = (int64_t)qat_read_u64(&p->r);
    q->activation_delay = (int64_t)qat_read_u64(&p->r);
    q->bn_freeze_delay = (int64_t)qat_read_u64(&p->r);
    q->input_min = qat_read_f32(&p->r);
    q->input_max = qat_read_f32(&p->r);
    if (p->r.bad || !quant_good(q, quantized, profile))
        return ckpt_bad_section(p, "a number outside its limits");
    if (p->r.at < p->r.end && !read_ranges(p, q)) /* version 1 had none */
        return ckpt_bad_section(p, "a range's option outside its limits");
    if (p->r.at < p->r.end && !read_input_bits(p, q))
        return ckpt_bad_section(p, "input_bits outside its limits");
    if (p->r.at < p->r.end && !read_bits(p, &q->freeze_bits)) /* not there if no weight freezes */
        return ckpt_bad_section(p, "freeze_bits outside its limits");
    bool const in_stage = p->r.at < p->r.end;
    if (in_stage &&
        !(read_bits(p, &q->least_weight_bits) && read_bits(p, &q->least_activation_bits)))
        return ckpt_bad_section(p, "the bits of a stage outside their limits");
    return ckpt_close_section(p, rest);
}

static qat_status read_tensor(ckpt_reading *p, qat_named_tensor *t)
{
    qat_read_string(&p->r, t->name, sizeof t->name);
    uint32_t const rank = qat_read_u32(&p->r);
    if (p->r.bad || rank < 1 || rank > QAT_MAX_RANK)
        return ckpt_bad_section(p, "a tensor's name or rank outside its limits");
    int dims[QAT_MAX_RANK];
    uint64_t count = 1;
    for (uint32_t d = 0; d < rank; d++) {
        uint32_t const size = qat_read_u32(&p->r);
        if (size < 1 || size > INT32_MAX || (count *= size) > INT32_MAX)
            return ckpt_bad_section(p, "a tensor's dimension outside its limits");
        dims[d] = (int)size;
    }
    t->shape = qat_shape_of(dims, (int)rank);
    const void *values = qat_read_bytes(&p->r, (size_t)count * 4);
    if (!values)
        return ckpt_bad_section(p, "a tensor longer than the file");
    t->values = malloc((size_t)count * sizeof *t->values);
    if (!t->values)
        return qat_out_of_memory(p->err, p->name);
    qat_reader bytes = qat_reader_of(values, (size_t)count * 4);
    for (uint64_t i = 0; i < count; i++)
        t->values[i] = qat_read_f32(&bytes);
    return QAT_OK;
}

static qat_status read_tensors(ckpt_reading *p, qat_named_tensor **tensors, int *count,
                               uint32_t most)
{
    enum { LEAST_BYTES = 4 + 4 + 4 + 4 }; /* empty name, rank, one dimension, one value */
    uint32_t const n = qat_read_u32(&p->r);
    if (n > most)
        return qat_fail(p->err, QAT_ERR_FORMAT, "%s: section %s: %u tensors, at most %u", p->name,
                        p->tag, n, most);
    if (p->r.bad || n > (size_t)(p->r.end - p->r.at) / LEAST_BYTES)
        return ckpt_bad_section(p, "more tensors than bytes");
    *tensors = calloc((size_t)n + 1, sizeof **tensors);
    if (!*tensors)
        return qat_out_of_memory(p->err, p->name);
    *count = (int)n;
    qat_status st = QAT_OK;
    for (uint32_t i = 0; i < n && !st; i++)
        st = read_tensor(p, &(*tensors)[i]);
    return st;
}

qat_status ckpt_read_parameters(ckpt_reading *p)
{
    qat_reader rest;
    qat_status st = ckpt_open_section(p, QAT_TAG_PARAMETERS, &rest);
    if (!st)
        st = read_tensors(p, &p->c->params, &p->c->n_params, QAT_CHECKPOINT_MAX_PARAMETERS);
    return st ? st : ckpt_close_section(p, rest);
}

static qat_status read_averaged(ckpt_reading *p)
{
    uint32_t const averaged = qat_read_u32(&p->r);
    if (p->r.bad || averaged > 1 || (int)averaged > p->c->n_slots)
        return ckpt_bad_section(p, "a number outside its limits");
    p->c->averaged = averaged == 1;
    return QAT_OK;
}

static qat_status read_plateau(ckpt_reading *p)
{
    qat_plateau *plateau = &p->c->plateau;
    uint32_t const flags = qat_read_u32(&p->r);
    plateau->watched = flags & QAT_PLATEAU_WATCHED;
    plateau->ended = flags & QAT_PLATEAU_ENDED;
    plateau->stage = (int64_t)qat_read_u64(&p->r);
    plateau->best = qat_read_f64(&p->r);
    plateau->since = (int64_t)qat_read_u64(&p->r);
    plateau->since_drop = (int64_t)qat_read_u64(&p->r);
    plateau->drops = (int64_t)qat_read_u64(&p->r);
    plateau->loss_sum = qat_read_f64(&p->r);
    plateau->losses = (int64_t)qat_read_u64(&p->r);
    bool const good = flags <= (QAT_PLATEAU_WATCHED | QAT_PLATEAU_ENDED) &&
                      between(plateau->stage, 0, QAT_QUANT_CHANGES) && isfinite(plateau->best) &&
                      isfinite(plateau->loss_sum) && plateau->losses >= 0 && plateau->since >= 0 &&
                      between(plateau->since_drop, 0, plateau->since) && plateau->drops >= 0;
    return p->r.bad || !good ? ckpt_bad_section(p, "a plateau outside its limits") : QAT_OK;
}

qat_status ckpt_read_optimizer(ckpt_reading *p)
{
    qat_reader rest;
    qat_status st = ckpt_open_section(p, QAT_TAG_OPTIMIZER, &rest);
    if (st)
        return st;
    p->c->n_slots = (int)qat_read_u32(&p->r);
    p->c->optimizer_steps = (int64_t)qat_read_u64(&p->r);
    if (p->r.bad || !between(p->c->n_slots, 0, 3) || p->c->optimizer_steps < 0)
        return ckpt_bad_section(p, "a number outside its limits");
    st = read_tensors(p, &p->c->slots, &p->c->n_slot_tensors, QAT_CHECKPOINT_MAX_SLOTS);
    if (!st && p->r.at < p->r.end) /* version 1 had none */
        st = read_averaged(p);
    if (!st && p->r.at < p->r.end)
        st = read_plateau(p);
    return st ? st : ckpt_close_section(p, rest);
}

static bool read_accuracy(ckpt_reading *p, qat_accuracy *a)
{
    a->n = (int64_t)qat_read_u64(&p->r);
    int64_t const top1 = (int64_t)qat_read_u64(&p->r), top5 = (int64_t)qat_read_u64(&p->r);
    a->figures[QAT_TOP1] = (double)top1;
    a->figures[QAT_TOP5] = (double)top5;
    a->figures[QAT_ONLY_ANSWER] = -1;
    a->task = a->n ? &qat_task_classes : NULL;
    return a->n >= 0 && between(top1, 0, a->n) && between(top5, top1, a->n);
}

/** Read figures. If the file names the task, it is NULL here: qat_checkpoint_set_task sets it. */
static bool read_figures(ckpt_reading *p, const qat_task *task, qat_accuracy *a)
{
    bool good = true;
    *a = (qat_accuracy){.n = a->n, .task = a->n ? task : NULL};
    for (int i = 0; i < (task ? task->n_kept : QAT_MAX_FIGURES); i++) {
        double const f = a->figures[i] = qat_read_f64(&p->r);
        bool const real = !task || task->figures[i].kind == QAT_FIGURE_REAL;
        good = good && (!task || f >= -1) && (real || f <= 1);
    }
    return good;
}

qat_status ckpt_read_progress(ckpt_reading *p)
{
    qat_checkpoint *c = p->c;
    qat_reader rest;
    qat_status const st = ckpt_open_section(p, QAT_TAG_PROGRESS, &rest);
    if (st)
        return st;
    c->step = (int64_t)qat_read_u64(&p->r);
    c->loss_sum = qat_read_f64(&p->r);
    c->loss_count = (int64_t)qat_read_u64(&p->r);
    c->sample_count = (int64_t)qat_read_u64(&p->r);
    c->correct_count = (int64_t)qat_read_u64(&p->r);
    c->gradient_norm = qat_read_f64(&p->r);
    qat_accuracy *of[] = {&c->float_accuracy, &c->simulated_accuracy, &c->integer_accuracy};
    int const evaluations = p->version < 3 ? 2 : 3;
    bool good = true;
    for (int i = 0; i < evaluations; i++)
        good = read_accuracy(p, of[i]) && good;
    c->last_loss = qat_read_f64(&p->r);
    const void *teacher = p->r.at < p->r.end ? qat_read_bytes(&p->r, sizeof c->teacher) : NULL;
    if (teacher) /* version 1 had none */
        memcpy(c->teacher, teacher, sizeof c->teacher);
    const qat_task *task = *c->task ? NULL : c->input.task ? c->input.task : &qat_task_boxes;
    bool const figures = c->input.attributes.count || p->r.at < p->r.end;
    for (int i = 0; figures && i < evaluations; i++)
        good = read_figures(p, task, of[i]) && good;
    good = good && c->step >= 0 && c->loss_count >= 0 && c->sample_count >= 0 &&
           between(c->correct_count, 0, c->sample_count) && isfinite(c->loss_sum) &&
           !isnan(c->gradient_norm); /* infinite, if train.clip_value made a step of it */
    if (p->r.bad || !good)
        return ckpt_bad_section(p, "a number outside its limits");
    return ckpt_close_section(p, rest);
}

/** Hashes of samples: none, or as many as there are. */
static qat_status read_hashes(ckpt_reading *p, qat_data_digest *d, uint32_t n)
{
    const void *bytes = qat_read_bytes(&p->r, (size_t)n * 8);
    if (!bytes || (n && (int64_t)n != d->count))
        return ckpt_bad_section(p, "a number outside its limits");
    d->names = calloc((size_t)n + 1, sizeof *d->names);
    d->contents = calloc((size_t)n + 1, sizeof *d->contents);
    if (!d->names || !d->contents)
        return qat_out_of_memory(p->err, p->name);
    qat_reader r = qat_reader_of(bytes, (size_t)n * 8);
    d->n = (int)n;
    for (uint32_t i = 0; i < n; i++) {
        d->names[i] = qat_read_u32(&r);
        d->contents[i] = qat_read_u32(&r);
    }
    return QAT_OK;
}

static qat_status read_digest(ckpt_reading *p, qat_data_digest *d)
{
    d->count = (int64_t)qat_read_u64(&p->r);
    d->bytes = (int64_t)qat_read_u64(&p->r);
    const void *sha256 = qat_read_bytes(&p->r, sizeof d->sha256);
    uint32_t const n = qat_read_u32(&p->r);
    if (p->r.bad || !between(d->count, 0, INT32_MAX) || d->bytes < 0 || n > INT32_MAX)
        return ckpt_bad_section(p, "a number outside its limits");
    memcpy(d->sha256, sha256, sizeof d->sha256);
    return read_hashes(p, d, n);
}

qat_status ckpt_read_digests(ckpt_reading *p)
{
    qat_reader rest;
    qat_status st = ckpt_open_section(p, QAT_TAG_DIGESTS, &rest);
    if (!st)
        st = read_digest(p, &p->c->data[QAT_SPLIT_TRAIN]);
    if (!st)
        st = read_digest(p, &p->c->data[QAT_SPLIT_TEST]);
    return st ? st : ckpt_close_section(p, rest);
}

/** A plugin's name is that of a file, without folders. */
static bool read_plugin(ckpt_reading *p, qat_plugin_file *plugin)
{
    qat_read_string(&p->r, plugin->name, sizeof plugin->name);
    const void *sha256 = qat_read_bytes(&p->r, sizeof plugin->sha256);
    if (p->r.bad || !sha256 || !*plugin->name || strchr(plugin->name, '/'))
        return false;
    memcpy(plugin->sha256, sha256, sizeof plugin->sha256);
    return true;
}

qat_status ckpt_read_plugins(ckpt_reading *p)
{
    qat_checkpoint *c = p->c;
    qat_reader rest;
    qat_status const st = ckpt_open_section(p, QAT_TAG_PLUGINS, &rest);
    if (st)
        return st;
    uint32_t const n = qat_read_u32(&p->r);
    if (n > QAT_CHECKPOINT_MAX_PLUGINS)
        return ckpt_bad_section(p, "more plugins than a checkpoint may name");
    c->plugins = calloc((size_t)n + 1, sizeof *c->plugins);
    if (!c->plugins)
        return qat_out_of_memory(p->err, p->name);
    for (; c->n_plugins < (int)n; c->n_plugins++)
        if (!read_plugin(p, &c->plugins[c->n_plugins]))
            return ckpt_bad_section(p, "a plugin's name that is cut, too long or no file's name");
    return ckpt_close_section(p, rest);
}
