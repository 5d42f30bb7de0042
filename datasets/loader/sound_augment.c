/**
 * Sounds are moved in time, made louder and mixed with noise, in integers (docs/preprocessing.md).
 * All changes draw their random numbers in this order from one generator, keyed by (seed, epoch,
 * index). A change that is switched off draws none.
 */
#include "datasets/loader/sound_augment.h"

#include "datasets/sounds/wave.h"
#include "qat/sound.h"

#include <stdlib.h>
#include <string.h>

enum { ONE = 1 << 16, MOST_SHIFT = 10000, SAMPLES_A_MS = QI_SOUND_RATE / 1000 };

bool qat_sound_augmented(const qat_augment *a)
{
    return a->time_shift > 0 || a->gain > 0 || a->background > 0;
}

static qat_status check_share(const char *key, float value, qat_error *err)
{
    if (value >= 0 && value <= 1)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_ARGUMENT, "augment: %s %g, not in 0..1", key, (double)value);
}

qat_status qat_sound_augment_check(const qat_augment *a, const qat_dataset *d, qat_error *err)
{
    qat_status st = check_share("gain", a->gain, err);
    if (!st)
        st = check_share("background", a->background, err);
    if (!st)
        st = check_share("background_chance", a->background_chance, err);
    if (!st && (a->time_shift < 0 || a->time_shift > MOST_SHIFT))
        st = qat_fail(err, QAT_ERR_ARGUMENT, "augment: time_shift %d, not in 0..%d ms",
                      a->time_shift, MOST_SHIFT);
    if (st || !qat_sound_augmented(a))
        return st;
    if (d->info.type != QAT_SAMPLE_SOUND)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "augment: time_shift, gain and background are for sounds; %s has none",
                        d->info.name);
    if (a->background > 0 && !(d->kind->background && d->kind->background(d, NULL, NULL)))
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "augment: background %g, but %s has no sounds in a folder "
                        "_background_noise_",
                        (double)a->background, d->info.name);
    return QAT_OK;
}

/** v times a factor in 16 bits after the point, rounded half up. */
static int64_t times(int64_t v, int64_t factor)
{
    int64_t const x = v * factor + ONE / 2;
    return x >= 0 ? x / ONE : -((-x + ONE - 1) / ONE);
}

static uint32_t share_of(float v)
{
    return (uint32_t)(v * ONE + 0.5F);
}

/** What comes to place i is the sample at i + by, or silence. */
static void shift(int16_t *samples, size_t count, int64_t by)
{
    size_t const far = (size_t)(by < 0 ? -by : by), moved = far < count ? far : count;
    size_t const left = count - moved;
    memmove(samples + (by < 0 ? moved : 0), samples + (by < 0 ? 0 : moved), left * sizeof *samples);
    memset(samples + (by < 0 ? 0 : left), 0, moved * sizeof *samples);
}

static void change(const qat_augment *a, const qat_dataset *d, qat_rng *rng, int16_t *samples,
                   int16_t *noise)
{
    size_t const count = qat_wave_samples(d->info.height);
    if (a->time_shift > 0) {
        uint32_t const most = (uint32_t)a->time_shift * SAMPLES_A_MS;
        shift(samples, count, (int64_t)qat_rng_below(rng, 2 * most + 1) - most);
    }
    if (a->gain > 0) {
        uint32_t const reach = share_of(a->gain);
        int64_t const factor = (int64_t)ONE - reach + qat_rng_below(rng, 2 * reach + 1);
        for (size_t i = 0; i < count; i++)
            samples[i] = qat_wave_clamp(times(samples[i], factor));
    }
    if (a->background > 0 && qat_rng_below(rng, ONE) < share_of(a->background_chance)) {
        int64_t const volume = qat_rng_below(rng, share_of(a->background) + 1);
        (void)d->kind->background(d, rng, noise);
        for (size_t i = 0; i < count; i++)
            samples[i] = qat_wave_clamp(samples[i] + times(noise[i], volume));
    }
}

qat_status qat_augment_sound(const qat_augment *a, const qat_dataset *d, int index, uint64_t seed,
                             int64_t epoch, uint8_t *codes, qat_error *err)
{
    qat_rng rng =
        qat_rng_at(qat_hash(seed, qat_hash_name("augment")), (uint64_t)epoch, (uint64_t)index);
    size_t const count = qat_wave_samples(d->info.height);
    int16_t *samples = malloc(2 * count * sizeof *samples);
    if (!samples)
        return qat_out_of_memory(err, d->info.name);
    qat_status const st = d->kind->sound(d, index, samples, err);
    if (!st) {
        change(a, d, &rng, samples, samples + count);
        qat_wave_codes(samples, d->info.height, codes);
    }
    free(samples);
    return st;
}
