/**
 * Two tones that fade, as a signal of 96 real values, which are a second: their frequencies in
 * hertz are to be learned, first the lower one. A signal is made in this order:
 *
 * - choose both frequencies, at least 2 Hz apart, loudness, phases, and how fast each tone fades
 * - add a hum of a third, fainter tone, a drift, and noise
 */
#include "datasets/procedural/draw.h"
#include "datasets/procedural/procedural.h"
#include "datasets/procedural/waves.h"

enum { LENGTH = 96, TONES = 2, DEFAULT_TRAIN = 8000, DEFAULT_TEST = 2000 };

/** Add a tone of some loudness, which a step multiplies by `fade`. */
static void add_tone(qat_rng *rng, float hertz, float loudness, float fade, float *values)
{
    wave w = wave_make((double)draw_uniform(rng, 0, 1), (double)hertz / LENGTH);
    for (int i = 0; i < LENGTH; i++, loudness *= fade)
        values[i] += loudness * (float)wave_next(&w);
}

static void draw_tones(qat_rng *rng, float *values, float *hertz)
{
    float const drift = draw_uniform(rng, -0.3F, 0.3F);
    float const noise = draw_uniform(rng, 0.02F, 0.25F);
    hertz[0] = draw_uniform(rng, 2, 18);
    hertz[1] = draw_uniform(rng, hertz[0] + 2, 22);
    for (int i = 0; i < LENGTH; i++)
        values[i] = drift * (float)i / LENGTH;
    for (int k = 0; k < TONES; k++) {
        float const loudness = draw_uniform(rng, 0.3F, 0.8F);
        float const fade = draw_uniform(rng, 0.975F, 1);
        add_tone(rng, hertz[k], loudness, fade, values);
    }
    float const hum = draw_uniform(rng, 0, 0.15F), at = draw_uniform(rng, 2, 30);
    add_tone(rng, at, hum, 1, values);
    for (int i = 0; i < LENGTH; i++)
        values[i] += noise * draw_normal(rng);
}

static qat_status tones_open(qat_dataset *d, const qat_dataset_options *o, qat_split split,
                             qat_error *err)
{
    int64_t const hwc[3] = {1, LENGTH, 1};
    int const wanted = qat_split_count(o, split);
    int const count = wanted ? wanted : split == QAT_SPLIT_TRAIN ? DEFAULT_TRAIN : DEFAULT_TEST;
    uint64_t const stream =
        qat_hash(qat_hash_name(d->kind->name), qat_hash_name(qat_split_name(split)));
    qat_status st = qat_dataset_set_shape(d, d->kind->name, count, hwc, QAT_SAMPLE_F32, err);
    if (!st)
        st = qat_dataset_allocate(d, err);
    if (!st)
        st = qat_dataset_allocate_values(d, QAT_TARGETS_VALUES, TONES, err);
    for (int i = 0; !st && i < count; i++) {
        qat_rng rng = qat_rng_at(o->seed, stream, (uint64_t)i);
        d->labels[i] = 0;
        if (!d->undrawn)
            draw_tones(&rng, (float *)d->values + (size_t)i * LENGTH,
                       d->targets + (size_t)i * TONES);
    }
    d->info.min = -2;
    d->info.max = 2;
    return st;
}

const qat_dataset_kind qat_kind_tones = {
    .name = "tones", .needs_path = false, .open = tones_open, .get = qat_dataset_get_kept};
