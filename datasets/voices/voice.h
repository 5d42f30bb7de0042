/**
 * A voice: sounds of a language as 16 kHz samples, from a source (pulses, or noise) through
 * resonances. Of + - * / alone, so that every machine draws the same.
 */
#ifndef QAT_DATASETS_VOICE_H
#define QAT_DATASETS_VOICE_H

#include "base/rng.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Who speaks, and how. */
typedef struct voice {
    double pitch;    /* Hz, at the begin */
    double glide;    /* what it becomes at the end, as a factor */
    double formants; /* factor of all resonances: a short or a long throat */
    double breath;   /* share of noise in the source */
    double pace;     /* factor of all lengths */
} voice;

voice voice_random(qat_rng *rng);

/**
 * Speak a word of the letters a e i o u m n s k t, somewhere in `count` samples, which are set; its
 * largest value is 1.
 */
void voice_speak(const voice *v, const char *word, qat_rng *rng, double *samples, size_t count);

/** Noise of some colour, with a hum in it; its largest value is about 1. */
void voice_noise(qat_rng *rng, double *samples, size_t count);

#endif
