/**
 * Reads, augments and normalises the samples of a batch:
 *
 *     real = (value - mean[c]) / std[c]
 *
 * Each sample is a function of (seed, epoch, index).
 */
#include "datasets/dataset_kind.h"
#include "datasets/loader/augment.h"
#include "datasets/loader/box_augment.h"
#include "datasets/loader/loader.h"
#include "datasets/loader/sound_augment.h"
#include "datasets/loader/window.h"

#include <stdlib.h>
#include <string.h>

static void normalise_bytes(const qat_loader *l, const uint8_t *bytes, float *real)
{
    int const channels = l->info->channels;
    for (size_t i = 0; i < l->sample_values; i += (size_t)channels) {
        for (int c = 0; c < channels; c++)
            real[i + (size_t)c] = l->table[c * 256 + bytes[i + (size_t)c]];
    }
}

static void normalise_real(const qat_loader *l, float *real)
{
    int const channels = l->info->channels;
    for (size_t i = 0; i < l->sample_values; i += (size_t)channels) {
        for (int c = 0; c < channels; c++)
            real[i + (size_t)c] = (real[i + (size_t)c] - l->mean[c]) / l->std[c];
    }
}

/** Fill one sample with boxes, augmented. */
static qat_status fill_boxes(const qat_loader *l, qat_slot *s, int i, uint8_t *bytes,
                             uint8_t *scratch)
{
    const qat_dataset_info *info = l->info;
    const qat_objects *o = qat_dataset_objects(l->dataset, (int)s->order[i]);
    qat_boxed_sample sample = {.values = bytes,
                               .height = info->height,
                               .width = info->width,
                               .channels = info->channels,
                               .truth = s->truth + (size_t)i * (size_t)info->most_objects,
                               .scratch = scratch};
    qat_picture picture = {0};
    qat_status st = qat_dataset_picture(l->dataset, (int)s->order[i], &picture, &s->err);
    if (!st)
        st = qat_augment_boxes(&l->options.augment, &picture, o, &sample, l->options.seed,
                               s->batch.epoch, s->order[i], &s->err);
    free(picture.pixels);
    s->objects[i] = (qat_objects){o->height, o->width, sample.count, sample.truth};
    s->labels[i] = 0;
    return st;
}

/** Read bytes and label of a sample without boxes: a random part of the picture, or all of it; the
 *  codes of a sound, which may be changed first. */
static qat_status read_bytes(const qat_loader *l, qat_slot *s, int i, uint8_t *bytes)
{
    const qat_dataset_info *info = l->info;
    const qat_augment *a = &l->options.augment;
    int const index = (int)s->order[i];
    qat_picture picture = {0};
    int label = 0;
    if (qat_sound_augmented(a)) {
        s->labels[i] = qat_dataset_label(l->dataset, index);
        return qat_augment_sound(a, l->dataset, index, l->options.seed, s->batch.epoch, bytes,
                                 &s->err);
    }
    if (!qat_window_crops(a)) {
        qat_status const st = qat_dataset_get(l->dataset, index, bytes, &label, &s->err);
        s->labels[i] = label;
        return st;
    }
    qat_status st = qat_dataset_picture(l->dataset, index, &picture, &s->err);
    if (!st)
        st = qat_augment_part(a, &picture, bytes, info->height, info->width, info->channels,
                              l->options.seed, s->batch.epoch, index, &s->err);
    free(picture.pixels);
    s->labels[i] = qat_dataset_label(l->dataset, index);
    return st;
}

/** Fill one sample of bytes. */
static qat_status fill_bytes(const qat_loader *l, qat_slot *s, int i, uint8_t *bytes,
                             uint8_t *scratch)
{
    const qat_loader_options *o = &l->options;
    bool const augmented = qat_augment_any(&o->augment);
    if (l->info->has_objects && augmented)
        return fill_boxes(l, s, i, bytes, scratch);
    qat_status const st = read_bytes(l, s, i, bytes);
    if (st)
        return st;
    if (augmented)
        qat_augment_u8(&o->augment, bytes, l->info->height, l->info->width, l->info->channels,
                       o->seed, s->batch.epoch, s->order[i], scratch);
    if (l->info->has_objects)
        s->objects[i] = *qat_dataset_objects(l->dataset, (int)s->order[i]);
    return QAT_OK;
}

static void fill_targets(const qat_loader *l, qat_slot *s, int i)
{
    size_t const values = (size_t)l->info->n_targets;
    memcpy(s->targets + (size_t)i * values, qat_dataset_targets(l->dataset, (int)s->order[i]),
           values * sizeof *s->targets);
    if (l->info->targets == QAT_TARGETS_PIXELS)
        qat_augment_classes(&l->options.augment, s->targets + (size_t)i * values, l->info->height,
                            l->info->width, l->options.seed, s->batch.epoch, s->order[i]);
}

/** Fill sample number i of a batch. scratch: one sample of bytes if bytes are augmented. */
static qat_status fill_sample(const qat_loader *l, qat_slot *s, int i, uint8_t *scratch)
{
    const qat_loader_options *o = &l->options;
    uint32_t const index = s->order[i];
    float *real = s->real + (size_t)i * l->sample_values;
    qat_status st;
    if (l->info->n_targets)
        fill_targets(l, s, i);
    if (l->info->type == QAT_SAMPLE_F32) {
        int label;
        st = qat_dataset_get(l->dataset, (int)index, real, &label, &s->err);
        if (st)
            return st;
        if (qat_augment_any(&o->augment))
            qat_augment_f32(&o->augment, real, l->sample_values, o->seed, s->batch.epoch, index);
        normalise_real(l, real);
        s->labels[i] = label;
        return QAT_OK;
    }
    uint8_t *bytes = s->bytes + (size_t)i * l->sample_values;
    st = fill_bytes(l, s, i, bytes, scratch);
    if (!st)
        normalise_bytes(l, bytes, real);
    return st;
}

/** What is true of a sample, without its values. */
static void fill_truth(const qat_loader *l, qat_slot *s, int i)
{
    s->labels[i] = qat_dataset_label(l->dataset, (int)s->order[i]);
    if (l->info->n_targets)
        fill_targets(l, s, i);
    if (l->info->has_objects)
        s->objects[i] = *qat_dataset_objects(l->dataset, (int)s->order[i]);
}

void qat_loader_fill(const qat_loader *l, qat_slot *s, uint8_t *scratch)
{
    s->status = QAT_OK;
    for (int i = 0; i < s->batch.count && !s->status; i++)
        if (l->no_values)
            fill_truth(l, s, i);
        else
            s->status = fill_sample(l, s, i, scratch);
}
