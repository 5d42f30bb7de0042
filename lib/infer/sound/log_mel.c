/** Log-mel spectrograms in integers: an FFT of 512 points, triangles, logarithms. */
#include "qat/sound.h"

enum { N = QI_SOUND_FRAME, LOG_N = 9, BITS = 15, HEADROOM = 12, EDGE_ONE = 16, WEIGHT_BITS = 12 };

/** The triangles' corners in sixteenths of a bin: round(16 * 512 / 16000 * frequency). */
static const int16_t edges[QI_SOUND_BANDS + 2] = {
    31,   60,   91,   125,  162,  201,  243,  288,  336,  388,  445,  505,
    570,  640,  715,  795,  882,  975,  1075, 1183, 1299, 1423, 1557, 1701,
    1856, 2022, 2201, 2393, 2600, 2822, 3061, 3318, 3594, 3891};

/** x / 2^bits, rounded half up, without shifting negative numbers. */
static int64_t divided(int64_t x, int bits)
{
    int64_t const one = (int64_t)1 << bits, up = x + one / 2;
    return up >= 0 ? up / one : -((-up + one - 1) / one);
}

/** A point turns by a 512th of a circle: cos and sin of it in 30 bits. */
void qi_sound_init(qi_sound *s)
{
    int64_t const turn_x = 1073660973, turn_y = 13176464;
    int64_t x = (int64_t)1 << 30, y = 0;
    for (int i = 0; i <= N / 4; i++) { /* the first quarter; the others are its mirrors */
        int64_t const v = divided(y, 15), most = 32767;
        int16_t const sine = (int16_t)(v > most ? most : v);
        s->sine[i] = s->sine[N / 2 - i] = sine;
        s->sine[N / 2 + i] = s->sine[(N - i) % N] = (int16_t)-sine;
        int64_t const next = divided(x * turn_x - y * turn_y, 30);
        y = divided(x * turn_y + y * turn_x, 30);
        x = next;
    }
    s->sine[0] = s->sine[N / 2] = 0;
}

static int32_t cosine(const qi_sound *s, int i)
{
    return s->sine[(i + N / 4) % N];
}

/** Windowed samples, in the order of reversed bits. |real| <= 2^27. */
static void take(qi_sound *s, const int16_t *samples)
{
    for (int i = 0; i < N; i++) {
        int at = 0;
        for (int b = 0; b < LOG_N; b++)
            at |= (i >> b & 1) << (LOG_N - 1 - b);
        int32_t const window = (32768 - cosine(s, i)) / 2; /* 0 .. 2^15 */
        s->real[at] = (int32_t)divided((int64_t)samples[i] * window, BITS - HEADROOM);
        s->imaginary[at] = 0;
    }
}

/** Each of the nine stages halves, so that no value grows. */
static void transform(qi_sound *s)
{
    for (int half = 1; half < N; half *= 2)
        for (int first = 0; first < N; first += 2 * half)
            for (int k = 0; k < half; k++) {
                int const a = first + k, b = a + half, turn = k * (N / 2 / half);
                int64_t const c = cosine(s, turn), d = -s->sine[turn];
                int64_t const x = s->real[b] * c - s->imaginary[b] * d;
                int64_t const y = s->real[b] * d + s->imaginary[b] * c;
                int64_t const ax = (int64_t)s->real[a] * 32768,
                              ay = (int64_t)s->imaginary[a] * 32768;
                s->real[a] = (int32_t)divided(ax + x, BITS + 1);
                s->imaginary[a] = (int32_t)divided(ay + y, BITS + 1);
                s->real[b] = (int32_t)divided(ax - x, BITS + 1);
                s->imaginary[b] = (int32_t)divided(ay - y, BITS + 1);
            }
}

/** floor(4 log2 v), 0 of 0 and 1: each squaring of the mantissa gives a bit. */
static uint8_t logarithm(uint64_t v)
{
    int whole = 0, code;
    if (v < 2)
        return 0;
    while (v >> whole > 1)
        whole++;
    uint64_t m = whole > 31 ? v >> (whole - 31) : v << (31 - whole); /* 2^31 .. 2^32 - 1 */
    code = whole;
    for (int i = 0; i < 2; i++) {
        m = m * m >> 31;
        int const bit = m >> 32 != 0;
        m >>= bit;
        code = 2 * code + bit;
    }
    return (uint8_t)(code > 255 ? 255 : code);
}

void qi_sound_frame(qi_sound *s, const int16_t *samples, uint8_t *codes)
{
    take(s, samples);
    transform(s);
    for (int b = 0; b < QI_SOUND_BANDS; b++) {
        int32_t const low = edges[b], top = edges[b + 1], high = edges[b + 2];
        uint64_t energy = 0; /* at most 2^55 of all bins together, times 2^(12 - 8) */
        for (int k = low / EDGE_ONE; k <= high / EDGE_ONE; k++) {
            int32_t const at = k * EDGE_ONE;
            int32_t const weight = at <= low || at >= high ? 0
                                   : at <= top ? (at - low) * (1 << WEIGHT_BITS) / (top - low)
                                               : (high - at) * (1 << WEIGHT_BITS) / (high - top);
            int64_t const x = s->real[k], y = s->imaginary[k];
            energy += ((uint64_t)(x * x + y * y) >> 8) * (uint64_t)weight;
        }
        codes[b] = logarithm(energy);
    }
}

size_t qi_sound_frames(size_t n)
{
    return n < QI_SOUND_FRAME ? 0 : (n - QI_SOUND_FRAME) / QI_SOUND_HOP + 1;
}
