#include "datasets/sounds/wave.h"

#include "qat/sound.h"

#include <string.h>
#include <strings.h>

bool qat_wave_has_ending(const char *name)
{
    size_t const n = strlen(name);
    return n > 4 && strcasecmp(name + n - 4, ".wav") == 0;
}

size_t qat_wave_samples(int frames)
{
    return frames < 1 ? 0 : (size_t)(frames - 1) * QI_SOUND_HOP + QI_SOUND_FRAME;
}

void qat_wave_codes(const int16_t *samples, int frames, uint8_t *codes)
{
    qi_sound sound;
    qi_sound_init(&sound);
    for (int t = 0; t < frames; t++)
        qi_sound_frame(&sound, samples + (size_t)t * QI_SOUND_HOP,
                       codes + (size_t)t * QI_SOUND_BANDS);
}

int16_t qat_wave_clamp(int64_t value)
{
    return (int16_t)(value < INT16_MIN ? INT16_MIN : value > INT16_MAX ? INT16_MAX : value);
}
