/**
 * Features of sound have the same codes on every processor: their sum over tones, noise and silence
 * of all loudness is the one that an x86-64 once computed.
 */
#include "qat/sound.h"

#include <stdio.h>

enum { FRAMES = 400 };

/** 16 bits of noise. */
static int32_t noise(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (int32_t)(*state >> 16) - 32768;
}

/** A rough tone, its octaves, and noise; every 50th frame is silence. */
static void draw(int16_t samples[QI_SOUND_FRAME], int frame, uint32_t *state)
{
    uint32_t const step = 100u + 97u * (uint32_t)frame;
    uint32_t phase = 0;
    int32_t const loud = 1 << (frame % 16);
    for (int i = 0; i < QI_SOUND_FRAME; i++, phase += step) {
        int32_t const ramp = (int32_t)(phase % 65536) - 32768;
        int32_t const tone = ramp > 0 ? 16384 - ramp : 16384 + ramp;
        int32_t const mixed = frame % 3 ? tone : (tone + noise(state)) / 2;
        samples[i] = (int16_t)(frame % 50 == 49 ? 0 : (int64_t)mixed * loud / 32768);
    }
}

int main(void)
{
    static qi_sound sound;
    int16_t samples[QI_SOUND_FRAME];
    uint8_t codes[QI_SOUND_BANDS];
    uint32_t state = 1, sum = 0, largest = 0;
    uint32_t const expected = 0x3c43d562;
    qi_sound_init(&sound);
    for (int t = 0; t < FRAMES; t++) {
        draw(samples, t, &state);
        qi_sound_frame(&sound, samples, codes);
        for (int b = 0; b < QI_SOUND_BANDS; b++) {
            sum = (sum ^ codes[b]) * 16777619u; /* FNV */
            largest = codes[b] > largest ? codes[b] : largest;
        }
    }
    if (sum == expected) {
        printf("hear: %d codes, the largest %u, have the sum %08x\n", FRAMES * QI_SOUND_BANDS,
               (unsigned)largest, (unsigned)sum);
        return 0;
    }
    fprintf(stderr, "hear: the codes of %d frames have the sum %08x instead of %08x\n", FRAMES,
            (unsigned)sum, (unsigned)expected);
    return 1;
}
