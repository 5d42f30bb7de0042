/**
 * Features of sound for networks, in integers alone, so that a device computes the bytes that a
 * network was trained with: a log-mel spectrogram of 16 kHz sound. It is part of libqatinfer and
 * needs nothing of the rest of it.
 *
 *     frame t     samples 320 t .. 320 t + 511 (32 ms, a frame each 20 ms), times a Hann window
 *     power[k]    |FFT|^2 of the frame, k = 0..256
 *     band b      sum of power[k] times a triangle in k; the triangles' corners are equally far
 *                 apart on the mel scale, from 60 to 7600 Hz
 *     code        floor(4 log2(energy of the band)), 0..255: a step is 0.75 dB
 */
#ifndef QAT_SOUND_H
#define QAT_SOUND_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

enum {
    QI_SOUND_RATE = 16000, /* samples a second */
    QI_SOUND_FRAME = 512,  /* samples of a frame */
    QI_SOUND_HOP = 320,    /* from one frame's begin to the next one's */
    QI_SOUND_BANDS = 32    /* codes of a frame */
};

/** Working memory, 4 KiB. Frames do not depend on earlier ones. */
typedef struct qi_sound {
    int32_t work[2][QI_SOUND_FRAME]; /* real, imaginary */
} qi_sound;

/** Before the first frame. */
void qi_sound_init(qi_sound *sound);
/**
 * The codes of one frame.
 * @param samples  [QI_SOUND_FRAME]
 * @param codes    [QI_SOUND_BANDS]
 */
void qi_sound_frame(qi_sound *sound, const int16_t *samples, uint8_t *codes);
/** How many whole frames n samples have. */
size_t qi_sound_frames(size_t n);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
