#include "tools/run_sound.h"

#include "qat/sound.h"

#include <stdlib.h>
#include <string.h>

/** How many runs a sound is enough for; at least one. */
static int64_t runs_of(const qi_model *model, size_t samples, int frames)
{
    int64_t const runs = (int64_t)qi_sound_frames(samples) / frames;
    return qi_state_count(model) && runs > 1 ? runs : 1;
}

qat_status run_sound_read(run_sound *sound, const qi_model *model, const char *path, qat_error *err)
{
    int const frames = qi_model_preprocessing(model)->height;
    size_t const one = qat_wave_samples(frames);
    qat_wave wave;
    *sound = (run_sound){.run_samples = frames * QI_SOUND_HOP};
    qat_status const st = qat_wave_read(&wave, path, qi_state_count(model) ? 0 : one, err);
    int64_t const runs = runs_of(model, wave.count, frames);
    size_t const taken = qat_wave_samples((int)runs * frames);
    int16_t *samples = st ? NULL : calloc(taken, sizeof *samples);
    sound->codes = st ? NULL : malloc((size_t)runs * (size_t)frames * QI_SOUND_BANDS);
    if (samples && sound->codes) {
        memcpy(samples, wave.samples, (wave.count < taken ? wave.count : taken) * sizeof *samples);
        qat_wave_codes(samples, (int)runs * frames, sound->codes);
        sound->runs = runs;
    }
    free(samples);
    free(wave.samples);
    return st || sound->runs ? st : qat_out_of_memory(err, path);
}
