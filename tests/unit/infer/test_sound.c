/** The log-mel spectrogram in integers beside one in float64, and by hand. */
#include "common/suite.h"
#include "qat/sound.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>

enum { N = QI_SOUND_FRAME, BANDS = QI_SOUND_BANDS };

static double mel_of(double hertz)
{
    return 1127 * log(1 + hertz / 700);
}

/** The same formulas in float64, with the corners at the same sixteenths of a bin. */
static void reference(const int16_t *samples, double *energy)
{
    double power[N / 2 + 1], edges[BANDS + 2], const_pi = acos(-1);
    for (int k = 0; k <= N / 2; k++) {
        double x = 0, y = 0;
        for (int i = 0; i < N; i++) {
            double const v = samples[i] * (1 - cos(2 * const_pi * i / N)) / 2 / N * 4096;
            x += v * cos(2 * const_pi * i * k / N);
            y += v * sin(2 * const_pi * i * k / N);
        }
        power[k] = x * x + y * y;
    }
    for (int i = 0; i < BANDS + 2; i++) {
        double const mel = mel_of(60) + (mel_of(7600) - mel_of(60)) * i / (BANDS + 1);
        edges[i] = round(16 * 700 * (exp(mel / 1127) - 1) * N / QI_SOUND_RATE) / 16;
    }
    for (int b = 0; b < BANDS; b++) {
        energy[b] = 0;
        for (int k = 0; k <= N / 2; k++) {
            double const up = (k - edges[b]) / (edges[b + 1] - edges[b]);
            double const down = (edges[b + 2] - k) / (edges[b + 2] - edges[b + 1]);
            energy[b] += fmax(0, fmin(up, down)) * power[k] * 16;
        }
    }
}

/* Of tones and noise of all loudness a code is at most a step, 0.75 dB, from 4 log2 of float64's.
 */
START_TEST(codes_are_those_of_float64)
{
    qi_sound s;
    qi_sound_init(&s);
    uint32_t state = 1;
    for (int trial = 0; trial < 30; trial++) {
        int16_t samples[N];
        uint8_t codes[BANDS];
        double energy[BANDS];
        double const loud = trial == 0 ? 32767 : 20 * pow(1.28, trial), step = 0.01 + 0.1 * trial;
        for (int i = 0; i < N; i++) {
            state = state * 1664525u + 1013904223u;
            double const noise = (double)(state >> 8) / (1 << 24) - 0.5;
            double const v = trial == 0 ? (i % 7 < 3 ? 32767 : -32768)
                                        : loud * (0.6 * sin(step * i) + 0.8 * noise);
            samples[i] = (int16_t)fmax(-32768, fmin(32767, v));
        }
        qi_sound_frame(&s, samples, codes);
        reference(samples, energy);
        double most = 1;
        for (int b = 0; b < BANDS; b++)
            most = fmax(most, energy[b]);
        for (int b = 0; b < BANDS; b++) {
            if (energy[b] < most * 1e-6) /* 60 dB below the loudest band: rounding may be louder */
                continue;
            double const expected = floor(4 * log2(fmax(1, energy[b])));
            ck_assert_msg(fabs(codes[b] - expected) <= 1, "trial %d band %d: %d, not %g", trial, b,
                          codes[b], expected);
        }
    }
}
END_TEST

START_TEST(silence_and_counts)
{
    static qi_sound s;
    int16_t samples[N] = {0};
    uint8_t codes[BANDS];
    qi_sound_init(&s);
    qi_sound_frame(&s, samples, codes);
    for (int b = 0; b < BANDS; b++)
        ck_assert_uint_eq(codes[b], 0);
    ck_assert_uint_eq(qi_sound_frames(511), 0);
    ck_assert_uint_eq(qi_sound_frames(512), 1);
    ck_assert_uint_eq(qi_sound_frames(16000), 49);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sound");
    TCase *tc = tcase_create("sound");
    tcase_add_test(tc, codes_are_those_of_float64);
    tcase_add_test(tc, silence_and_counts);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
