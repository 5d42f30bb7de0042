/**
 * Spoken words of an invented language, as sounds of a second at 16 kHz, of which a sample is the
 * log-mel spectrogram that a device computes. A sound is made in this order:
 *
 * - choose a voice, and speak the word somewhere in the second
 * - choose how loud it is, and how loud the noise around it
 *
 * The words have the same few letters, so that their order tells most of them apart.
 */
#include "datasets/procedural/draw.h"
#include "datasets/procedural/procedural.h"
#include "datasets/sounds/wave.h"
#include "datasets/voices/voice.h"
#include "qat/sound.h"

#include <math.h>
#include <stdlib.h>

enum { FRAMES = 49, SAMPLES = (FRAMES - 1) * QI_SOUND_HOP + QI_SOUND_FRAME };

static const char *const names[QAT_PROCEDURAL_CLASSES] = {"sami", "masi", "nami", "mina", "kito",
                                                          "toki", "tiko", "koti", "suke", "kuse"};

/** Which samples these are; the data set's `own`. */
typedef struct keywords {
    uint64_t seed, stream;
    int *drawn; /* by sample: its number when the set was drawn */
} keywords;

static int16_t sample_of(double value)
{
    return qat_wave_clamp((int64_t)floor(value + 0.5));
}

static void draw_sound(qat_rng *rng, int label, int16_t *samples)
{
    double spoken[SAMPLES], noise[SAMPLES];
    voice const v = voice_random(rng);
    voice_speak(&v, names[label], rng, spoken, SAMPLES);
    voice_noise(rng, noise, SAMPLES);
    double const u = (double)draw_uniform(rng, 0, 1), w = (double)draw_uniform(rng, 0, 1);
    double const loudness = 1500 + 12000 * u * u, around = loudness * (0.01 + 0.35 * w * w);
    for (int i = 0; i < SAMPLES; i++)
        samples[i] = sample_of(loudness * spoken[i] + around * noise[i]);
}

static void paint_keyword(qat_rng *rng, int label, void *codes)
{
    int16_t samples[SAMPLES];
    draw_sound(rng, label, samples);
    qat_wave_codes(samples, FRAMES, codes);
}

static qat_status keywords_open(qat_dataset *d, const qat_dataset_options *options, qat_split split,
                                qat_error *err)
{
    static const qat_drawn drawn = {
        {FRAMES, QI_SOUND_BANDS, 1}, QAT_SAMPLE_SOUND, names, paint_keyword};
    keywords *k = d->own = qat_arena_take(&d->arena, sizeof *k);
    qat_status const st = qat_procedural_open(d, options, split, &drawn, err);
    if (st)
        return st;
    int *numbers = qat_arena_array(&d->arena, (size_t)d->info.count, sizeof *numbers);
    if (!k || !numbers)
        return qat_out_of_memory(err, d->info.name);
    for (int i = 0; i < d->info.count; i++)
        numbers[i] = i;
    *k = (keywords){options->seed, qat_procedural_stream(d, split), numbers};
    return QAT_OK;
}

/** A sound is drawn again: its samples take 20 times the memory of its codes. */
static qat_status keywords_sound(const qat_dataset *d, int index, int16_t *samples, qat_error *err)
{
    const keywords *k = d->own;
    (void)err;
    qat_rng rng = qat_rng_at(k->seed, k->stream, (uint64_t)k->drawn[index]);
    draw_sound(&rng, d->labels[index], samples);
    return QAT_OK;
}

static bool keywords_background(const qat_dataset *d, qat_rng *rng, int16_t *samples)
{
    double noise[SAMPLES];
    (void)d;
    if (!rng)
        return true;
    voice_noise(rng, noise, SAMPLES);
    for (int i = 0; i < SAMPLES; i++)
        samples[i] = sample_of(INT16_MAX * noise[i]);
    return true;
}

static void keywords_keep(qat_dataset *d, const int *kept, int n)
{
    keywords *k = d->own;
    qat_keep_items(k->drawn, sizeof *k->drawn, kept, n);
}

const qat_dataset_kind qat_kind_keywords = {.name = "keywords",
                                            .needs_path = false,
                                            .open = keywords_open,
                                            .get = qat_dataset_get_kept,
                                            .sound = keywords_sound,
                                            .background = keywords_background,
                                            .keep = keywords_keep};
