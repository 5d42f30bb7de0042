/**
 * From sound to the codes that a network takes: the log-mel spectrogram of qat/sound.h. Training
 * and qat-run compute it here, and so does a network as C source.
 */
#ifndef QK_SOUND_H
#define QK_SOUND_H

#include "infer/kernels/parts/memory.h"

#include <stddef.h>
#include <stdint.h>

enum {
    QK_SOUND_LOG = 9,
    QK_SOUND_FRAME = 1 << QK_SOUND_LOG, /* samples of a frame */
    QK_SOUND_HOP = 320,                 /* from one frame's begin to the next one's */
    QK_SOUND_BANDS = 32,                /* codes of a frame */
    QK_SOUND_SINE_BITS = 15,
    QK_SOUND_HEADROOM = 12,
    QK_SOUND_EDGE = 16, /* corners of triangles are in sixteenths of a bin */
    QK_SOUND_WEIGHT_BITS = 12
};

/** The sine of the first quarter of a turn, which has 512 steps. */
static const int16_t qk_sound_sines[QK_SOUND_FRAME / 4 + 1] = {
    0,     402,   804,   1206,  1608,  2009,  2411,  2811,  3212,  3612,  4011,  4410,  4808,
    5205,  5602,  5998,  6393,  6787,  7180,  7571,  7962,  8351,  8740,  9127,  9512,  9896,
    10279, 10660, 11039, 11417, 11793, 12167, 12540, 12910, 13279, 13646, 14010, 14373, 14733,
    15091, 15447, 15800, 16151, 16500, 16846, 17190, 17531, 17869, 18205, 18538, 18868, 19195,
    19520, 19841, 20160, 20475, 20788, 21097, 21403, 21706, 22006, 22302, 22595, 22884, 23170,
    23453, 23732, 24008, 24279, 24548, 24812, 25073, 25330, 25583, 25833, 26078, 26320, 26557,
    26791, 27020, 27246, 27467, 27684, 27897, 28106, 28311, 28511, 28707, 28899, 29086, 29269,
    29448, 29622, 29792, 29957, 30118, 30274, 30425, 30572, 30715, 30853, 30986, 31114, 31238,
    31357, 31471, 31581, 31686, 31786, 31881, 31972, 32058, 32138, 32214, 32286, 32352, 32413,
    32470, 32522, 32568, 32610, 32647, 32679, 32706, 32729, 32746, 32758, 32766, 32767,
};

/** The triangles' corners: round(16 * 512 / 16000 * frequency). */
static const int16_t qk_sound_edges[QK_SOUND_BANDS + 2] = {
    31,   60,   91,   125,  162,  201,  243,  288,  336,  388,  445,  505,
    570,  640,  715,  795,  882,  975,  1075, 1183, 1299, 1423, 1557, 1701,
    1856, 2022, 2201, 2393, 2600, 2822, 3061, 3318, 3594, 3891};

QK_INLINE int32_t qk_sound_sine(int32_t i)
{
    int32_t const half = i & (QK_SOUND_FRAME / 2 - 1);
    int32_t const sine =
        qk_sound_sines[half <= QK_SOUND_FRAME / 4 ? half : QK_SOUND_FRAME / 2 - half];
    return i & QK_SOUND_FRAME / 2 ? -sine : sine;
}

QK_INLINE int32_t qk_sound_cosine(int32_t i)
{
    return qk_sound_sine(i + QK_SOUND_FRAME / 4);
}

/* ------------------------------------------------------------------ spectrum */

/** The next number in the order of reversed bits. */
QK_INLINE int32_t qk_sound_after(int32_t at)
{
    int32_t bit = QK_SOUND_FRAME / 2;
    for (; at & bit; bit /= 2)
        at -= bit;
    return at + bit;
}

/** Windowed samples, in the order of reversed bits. |real| <= 2^27. */
QK_INLINE void qk_sound_window(int32_t *real, int32_t *imaginary, const int16_t *first,
                               const int16_t *rest)
{
    int const bits = QK_SOUND_SINE_BITS - QK_SOUND_HEADROOM;
    int32_t at = 0;
    for (int32_t i = 0; i < QK_SOUND_FRAME; i++, at = qk_sound_after(at)) {
        int32_t const sample = i < QK_SOUND_HOP ? first[i] : rest[i - QK_SOUND_HOP];
        int32_t const window = (32768 - qk_sound_cosine(i)) / 2; /* 0 .. 2^15 */
        real[at] = (sample * window + (1 << (bits - 1))) >> bits;
        imaginary[at] = 0;
    }
}

/**
 * p c - q d, for |p|, |q| <= 2^27 and |c|, |d| < 2^15, as whole 2^15 + part with 0 <= part < 2^15,
 * in 32 bits: with p = 2^15 p1 + p0 and q likewise it is 2^15 (p1 c - q1 d) + (p0 c - q0 d).
 */
QK_INLINE int32_t qk_sound_product(int32_t p, int32_t c, int32_t q, int32_t d, int32_t *part)
{
    int32_t const mask = (1 << QK_SOUND_SINE_BITS) - 1;
    int32_t const lower = (p & mask) * c - (q & mask) * d;
    *part = lower & mask;
    return (p >> QK_SOUND_SINE_BITS) * c - (q >> QK_SOUND_SINE_BITS) * d +
           (lower >> QK_SOUND_SINE_BITS);
}

/**
 * a and b become (a + x) / 2 and (a - x) / 2, rounded half up, with x = whole + part / 2^15. The
 * part of a + x is too small to change its half; it makes the floor of -x one less than -whole.
 */
QK_INLINE void qk_sound_halves(int32_t *a, int32_t *b, int32_t whole, int32_t part)
{
    int32_t const v = *a;
    *a = (v + whole + 1) >> 1;
    *b = (v - whole + (part == 0)) >> 1;
}

/** All pairs of a stage that turn by the same angle. */
QK_INLINE void qk_sound_turn(int32_t *real, int32_t *imaginary, int32_t k, int32_t half)
{
    int32_t const turn = k * (QK_SOUND_FRAME / 2 / half);
    int32_t const c = qk_sound_cosine(turn), d = -qk_sound_sine(turn);
    for (int32_t a = k; a < QK_SOUND_FRAME; a += 2 * half) {
        int32_t const b = a + half;
        int32_t x_part, y_part;
        int32_t const x = qk_sound_product(real[b], c, imaginary[b], d, &x_part);
        int32_t const y = qk_sound_product(real[b], d, imaginary[b], -c, &y_part);
        qk_sound_halves(&real[a], &real[b], x, x_part);
        qk_sound_halves(&imaginary[a], &imaginary[b], y, y_part);
    }
}

/** FFT. Each of the nine stages halves, so that no value grows. */
QK_INLINE void qk_sound_transform(int32_t *real, int32_t *imaginary)
{
    for (int32_t half = 1; half < QK_SOUND_FRAME; half *= 2)
        for (int32_t k = 0; k < half; k++)
            qk_sound_turn(real, imaginary, k, half);
}

/* ------------------------------------------------------------------ bands */

/** floor(4 log2 v), 0 of 0 and 1: each squaring of the mantissa gives a bit. */
QK_INLINE uint8_t qk_sound_logarithm(uint64_t v)
{
    int code = 63;
    if (v < 2)
        return 0;
    for (; !(v >> 63); code--)
        v <<= 1;
    uint32_t m = (uint32_t)(v >> 32); /* 2^31 .. 2^32 - 1 */
    for (int i = 0; i < 2; i++) {
        uint64_t const square = (uint64_t)m * m; /* below 2^64 */
        int const bit = (int)(square >> 63);
        m = (uint32_t)(square >> (31 + bit));
        code = 2 * code + bit;
    }
    return (uint8_t)(code > 255 ? 255 : code);
}

QK_INLINE uint64_t qk_sound_power(int32_t x, int32_t y)
{
    return (uint64_t)((int64_t)x * x + (int64_t)y * y) >> 8;
}

/**
 * Add the power between two corners, from above `low` to `high`, to the energy of the triangle that
 * falls there and of the one that rises. Of a triangle over low, top and high the weights are
 * floor(2^12 (at - low) / (top - low)) and floor(2^12 (high - at) / (high - top)); from bin to bin
 * the first one grows by the same quotient and rest.
 */
QK_INLINE void qk_sound_between(const int32_t *real, const int32_t *imaginary, int32_t low,
                                int32_t high, uint64_t *falling, uint64_t *rising)
{
    uint32_t const one = 1u << QK_SOUND_WEIGHT_BITS, width = (uint32_t)(high - low);
    int32_t const first = low / QK_SOUND_EDGE + 1, last = high / QK_SOUND_EDGE;
    uint32_t const begin = (uint32_t)(first * QK_SOUND_EDGE - low) * one;
    uint32_t const step = QK_SOUND_EDGE * one / width, step_rest = QK_SOUND_EDGE * one % width;
    uint32_t weight = begin / width, rest = begin % width;
    for (int32_t k = first; k <= last; k++) {
        uint64_t const power = qk_sound_power(real[k], imaginary[k]);
        *rising += power * weight;
        *falling += power * (one - weight - (rest != 0));
        weight += step;
        rest += step_rest;
        if (rest >= width) {
            rest -= width;
            weight++;
        }
    }
}

/** Energies are at most 2^55 of all bins together, times 2^(12 - 8). */
QK_INLINE void qk_sound_codes(const int32_t *real, const int32_t *imaginary, uint8_t *codes)
{
    uint64_t falling = 0, rising = 0;
    for (int32_t b = 0; b <= QK_SOUND_BANDS; b++) {
        qk_sound_between(real, imaginary, qk_sound_edges[b], qk_sound_edges[b + 1], &falling,
                         &rising);
        if (b > 0)
            codes[b - 1] = qk_sound_logarithm(falling);
        falling = rising;
        rising = 0;
    }
}

/* ------------------------------------------------------------------ frames */

/**
 * The codes of a frame.
 * @param work   [2, QK_SOUND_FRAME]
 * @param first  [QK_SOUND_HOP] of its samples
 * @param rest   the other ones
 */
QK_INLINE void qk_sound_frame(int32_t *work, const int16_t *first, const int16_t *rest,
                              uint8_t *codes)
{
    int32_t *imaginary = work + QK_SOUND_FRAME;
    qk_sound_window(work, imaginary, first, rest);
    qk_sound_transform(work, imaginary);
    qk_sound_codes(work, imaginary, codes);
}

/** What a network has heard; zeros: nothing. */
typedef struct qk_sound {
    int16_t before[QK_SOUND_HOP]; /* the samples that came last */
    int32_t heard;                /* 0: no samples came yet; else 1 + frames in the input */
} qk_sound;

/**
 * Take QK_SOUND_HOP samples more, which complete a frame.
 * @param work    [2, QK_SOUND_FRAME]
 * @param frames  of an input
 * @param keeps   after an input the next one begins with its frames but the first; 0: with none
 * @param in      [frames, QK_SOUND_BANDS]; the frames that it has must stay
 * Returns 1 if the input is complete.
 */
QK_INLINE int qk_sound_take(qk_sound *s, int32_t *work, const int16_t *samples, int32_t frames,
                            int keeps, uint8_t *in)
{
    uint8_t *to = in;
    if (s->heard == frames + 1) {
        s->heard = keeps ? frames : 1;
        for (int32_t t = 1; t < s->heard; t++, to += QK_SOUND_BANDS)
            (void)memcpy(to, to + QK_SOUND_BANDS, QK_SOUND_BANDS);
    }
    if (s->heard)
        qk_sound_frame(work, s->before, samples, in + (s->heard - 1) * QK_SOUND_BANDS);
    s->heard++;
    (void)memcpy(s->before, samples, sizeof s->before);
    return s->heard == frames + 1;
}

#endif
