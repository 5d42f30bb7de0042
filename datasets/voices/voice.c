/**
 *     pulses + breath --> resonance 1 --> 2 --> 3 --+--> samples
 *     noise --> resonance of a hiss or a burst -----'
 *
 * Every 5 ms the resonances and the loudness of both sources go a part of the way to what the
 * present letter wants, so that neighbours run into each other.
 */
#include "datasets/voices/voice.h"

#include "datasets/procedural/draw.h"
#include "datasets/procedural/waves.h"

#include <string.h>

enum { RATE = 16000, CONTROL = 80, FORMANTS = 3, RESONANCES = FORMANTS + 1, MOST_PARTS = 16 };

/** What a letter wants. A stop is silence, then a burst of noise. */
typedef struct letter {
    char name;
    double at[RESONANCES]; /* Hz: three resonances, and that of the noise */
    double voiced, noisy;  /* loudness of both sources */
    double seconds;
    int stops;
} letter;

static const letter letters[] = {
    {'a', {760, 1250, 2550, 2500}, 1.0, 0, 0.13, 0},
    {'e', {480, 1900, 2600, 2500}, 0.9, 0, 0.12, 0},
    {'i', {300, 2250, 3000, 2500}, 0.8, 0, 0.12, 0},
    {'o', {480, 880, 2450, 2500}, 0.9, 0, 0.12, 0},
    {'u', {330, 760, 2300, 2500}, 0.8, 0, 0.12, 0},
    {'m', {250, 1050, 2200, 2500}, 0.35, 0, 0.08, 0},
    {'n', {270, 1650, 2500, 2500}, 0.35, 0, 0.08, 0},
    {'s', {350, 1700, 2600, 5300}, 0, 0.5, 0.11, 0},
    {'k', {320, 1900, 2500, 1900}, 0, 0.9, 0.07, 1},
    {'t', {350, 1750, 2650, 4200}, 0, 0.8, 0.07, 1},
};

/** One letter in time, as this voice says it now. */
typedef struct part {
    const letter *of;
    size_t begin, end;
    double detune;
} part;

typedef struct resonance {
    double a, b, c, y1, y2;
} resonance;

/** A resonance at a frequency of some width, whose gain is 1 at frequency 0. */
static void tune(resonance *r, double hertz, double width)
{
    double const x = 3.14159265358979323846 * width / RATE, radius = 1 - x + x * x / 2;
    wave const turn = wave_make(0, hertz / RATE);
    r->c = -radius * radius;
    r->b = 2 * radius * turn.turn_x;
    r->a = 1 - r->b - r->c;
}

static double ring(resonance *r, double x)
{
    double const y = r->a * x + r->b * r->y1 + r->c * r->y2;
    r->y2 = r->y1;
    r->y1 = y;
    return y;
}

static double hiss(qat_rng *rng)
{
    return 2 * qat_rng_uniform(rng) - 1;
}

voice voice_random(qat_rng *rng)
{
    voice v;
    v.pitch = (double)draw_uniform(rng, 85, 250);
    v.glide = (double)draw_uniform(rng, 0.7F, 1.2F);
    v.formants = (double)draw_uniform(rng, 0.84F, 1.06F) + v.pitch * 0.0006;
    v.breath = (double)draw_uniform(rng, 0.01F, 0.12F);
    v.pace = (double)draw_uniform(rng, 0.7F, 1.4F);
    return v;
}

/** Where the letters stand in time; returns their number. */
static int place(const voice *v, const char *word, qat_rng *rng, part parts[MOST_PARTS],
                 size_t count)
{
    int n = 0;
    size_t at = 0;
    for (; n < MOST_PARTS && word[n]; n++) {
        const letter *l = letters;
        while (l->name != word[n])
            l++;
        double const seconds = l->seconds * v->pace * (double)draw_uniform(rng, 0.75F, 1.35F);
        parts[n].of = l;
        parts[n].detune = v->formants * (double)draw_uniform(rng, 0.95F, 1.05F);
        parts[n].begin = at;
        parts[n].end = at += (size_t)(seconds * RATE);
    }
    size_t const room = at + CONTROL < count ? count - at - CONTROL : 1;
    size_t const begin = qat_rng_below(rng, (uint32_t)room);
    for (int i = 0; i < n; i++) {
        parts[i].begin += begin;
        parts[i].end += begin;
    }
    return n;
}

/** What sounds at present. */
typedef struct state {
    double at[RESONANCES], voiced, noisy;
    resonance rings[RESONANCES];
} state;

/** Go a part of the way to what the letter at this time wants; before and after the word, silence.
 */
static void control(state *s, const part *parts, int n, size_t t)
{
    static const double widths[RESONANCES] = {80, 110, 160, 900};
    const part *now = NULL;
    double voiced = 0, noisy = 0;
    for (int i = 0; i < n; i++)
        if (t >= parts[i].begin && t < parts[i].end)
            now = &parts[i];
    if (now) {
        size_t const length = now->end - now->begin;
        bool const closed = now->of->stops && t < now->begin + length * 6 / 10;
        voiced = now->of->voiced;
        noisy = closed ? 0 : now->of->noisy;
        for (int k = 0; k < RESONANCES; k++) {
            double const wanted = now->of->at[k] * now->detune;
            s->at[k] += (wanted - s->at[k]) * (k < FORMANTS ? 0.22 : 0.8);
        }
    }
    s->voiced += (voiced - s->voiced) * 0.35;
    s->noisy += (noisy - s->noisy) * 0.6;
    for (int k = 0; k < RESONANCES; k++)
        tune(&s->rings[k], s->at[k], widths[k]);
}

static void scale_to_one(double *samples, size_t count)
{
    double most = 1e-9;
    for (size_t i = 0; i < count; i++) {
        double const size = samples[i] < 0 ? -samples[i] : samples[i];
        most = size > most ? size : most;
    }
    for (size_t i = 0; i < count; i++)
        samples[i] /= most;
}

void voice_speak(const voice *v, const char *word, qat_rng *rng, double *samples, size_t count)
{
    part parts[MOST_PARTS];
    int const n = place(v, word, rng, parts, count);
    state s = {.at = {500, 1500, 2500, 3000}};
    double phase = 0, source = 0;
    for (size_t t = 0; t < count; t++) {
        if (t % CONTROL == 0)
            control(&s, parts, n, t);
        double const along = (double)t / (double)count;
        phase += v->pitch * (1 + (v->glide - 1) * along) / RATE;
        bool const pulse = phase >= 1;
        phase -= pulse;
        double const noise = hiss(rng);
        source = 0.9 * source + (pulse ? 1.0 : 0.0); /* a pulse fades, as the throat closes */
        double x = s.voiced * (source + v->breath * noise);
        for (int k = 0; k < FORMANTS; k++)
            x = ring(&s.rings[k], x);
        samples[t] = x + 0.25 * ring(&s.rings[FORMANTS], s.noisy * noise);
    }
    scale_to_one(samples, count);
}

void voice_noise(qat_rng *rng, double *samples, size_t count)
{
    double const keeps = (double)draw_uniform(rng, 0, 0.97F);
    double const hum = (double)draw_uniform(rng, 0, 0.3F);
    double const hertz = (double)draw_uniform(rng, 50, 400);
    wave w = wave_make(qat_rng_uniform(rng), hertz / RATE);
    double low = 0;
    for (size_t i = 0; i < count; i++) {
        low = keeps * low + (1 - keeps) * hiss(rng);
        samples[i] = low + hum * (1 - keeps) * wave_next(&w);
    }
    scale_to_one(samples, count);
}
