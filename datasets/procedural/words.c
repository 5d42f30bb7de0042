/**
 * Spoken words of an invented language, as frames of a spectrum: 24 frames of 12 bands, real
 * numbers of 0 .. 1. A word is three sounds in an order; the words have the same few sounds, so
 * only their order tells them apart. A word is made in this order:
 *
 * - choose when it begins, how long each sound lasts, how loud it is, how high its voice
 * - spread each sound over its frames and bands, so that neighbours run into each other
 * - sometimes let another sound stand before it
 * - add a hum in one band, and noise everywhere
 */
#include "datasets/procedural/draw.h"
#include "datasets/procedural/procedural.h"

#include <math.h>

enum { FRAMES = 24, BANDS = 12, SOUNDS = 4, SOUNDS_OF_A_WORD = 3 };

/** Where a sound has its energy, in bands; the last is a hiss. */
static const struct {
    float low, high, width;
} sounds[SOUNDS] = {{1.5F, 5, 0.8F}, {3, 7.5F, 0.8F}, {2, 9, 0.8F}, {7, 9.5F, 2.2F}};

static const char *const names[QAT_PROCEDURAL_CLASSES] = {"aiu", "aui", "iau", "iua", "uai",
                                                          "uia", "asi", "isa", "sai", "sia"};

static int sound_of(char letter)
{
    return letter == 'a' ? 0 : letter == 'i' ? 1 : letter == 'u' ? 2 : 3;
}

/** How a word is spoken. */
typedef struct voice {
    float loudness, pitch;
} voice;

static float bump(float x, float width)
{
    return 1 / (1 + x * x / (width * width));
}

/** Add a sound that lasts from begin to end, in frames. */
static void speak(const voice *v, int sound, float begin, float end, float *values)
{
    for (int t = 0; t < FRAMES; t++) {
        float const x = (float)t, up = x - begin, down = end - x;
        float const gain =
            v->loudness * fminf(fmaxf(up + 0.5F, 0), 1) * fminf(fmaxf(down + 0.5F, 0), 1);
        for (int b = 0; gain > 0 && b < BANDS; b++) {
            float const at = (float)b - v->pitch;
            values[t * BANDS + b] += gain * (bump(at - sounds[sound].low, sounds[sound].width) +
                                             bump(at - sounds[sound].high, sounds[sound].width));
        }
    }
}

static void paint_word(qat_rng *rng, int label, void *to)
{
    float *values = to;
    voice v;
    v.loudness = draw_uniform(rng, 0.25F, 0.7F);
    v.pitch = draw_uniform(rng, -0.9F, 0.9F);
    float begin = draw_uniform(rng, 0, 7);
    for (int i = 0; i < FRAMES * BANDS; i++)
        values[i] = 0;
    if (begin > 4 && draw_chance(rng, 0.4F))
        speak(&v, (int)qat_rng_below(rng, SOUNDS), begin - 3.5F, begin - 2, values);
    for (int i = 0; i < SOUNDS_OF_A_WORD; i++) {
        float const end = begin + draw_uniform(rng, 2, 5.5F);
        speak(&v, sound_of(names[label][i]), begin, end, values);
        begin = end;
    }
    float const hum = draw_uniform(rng, 0, 0.3F), noise = draw_uniform(rng, 0.03F, 0.2F);
    int const band = (int)qat_rng_below(rng, BANDS);
    for (int i = 0; i < FRAMES * BANDS; i++) {
        float const x = values[i] + (i % BANDS == band ? hum : 0) + noise * draw_normal(rng);
        values[i] = fminf(fmaxf(x, 0), 1);
    }
}

static qat_status words_open(qat_dataset *dataset, const qat_dataset_options *options,
                             qat_split split, qat_error *err)
{
    static const qat_drawn words = {{1, FRAMES, BANDS}, QAT_SAMPLE_F32, names, paint_word};
    qat_status const st = qat_procedural_open(dataset, options, split, &words, err);
    dataset->info.max = 1;
    return st;
}

const qat_dataset_kind qat_kind_words = {
    .name = "words", .needs_path = false, .open = words_open, .get = qat_dataset_get_kept};
