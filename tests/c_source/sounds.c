/**
 * Writes a C program that gives a sound to a network written as C source, and compares the inputs
 * that NAME_sound makes of it with those that qi_sound_frame makes, as training does:
 *
 *     sounds MODEL.qm NAME > check.c
 *
 * The program has `int check_input(void)`, which returns 0, or the number of the first input that
 * differs, or -1 if there are more or fewer inputs. Samples are a fixed sequence.
 */
#include "qat/infer.h"
#include "qat/sound.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MORE = 9 }; /* frames after those of the first input */

/** Code, and the same as text. */
#define BOTH(text, ...) __VA_ARGS__ static const char text[] = #__VA_ARGS__

/** Noise that is loud and quiet in turn, and a rough tone. */
BOTH(
    draw_text, static int16_t draw(uint32_t i, uint32_t *state) {
        int32_t const tone = (int32_t)(i * 4099u % 65536u) - 32768;
        *state = *state * 1664525u + 1013904223u;
        int32_t const noise = (int32_t)(*state >> 16) - 32768;
        return (int16_t)((noise / (1 << i / 320 % 9) + tone / (1 << i / 640 % 7)) / 2);
    });

static uint32_t digest_of(const uint8_t *bytes, size_t n)
{
    uint32_t d = 2166136261u;
    for (size_t i = 0; i < n; i++)
        d = (d ^ bytes[i]) * 16777619u;
    return d;
}

/** Print the digest of each input; returns how many there are. Inputs overlap without states. */
static int print_digests(int frames, int has_states)
{
    int const all = frames + MORE, step = has_states ? frames : 1;
    size_t const count = (size_t)all * QI_SOUND_HOP + QI_SOUND_FRAME;
    int16_t *samples = calloc(count, sizeof *samples);
    uint8_t *codes = malloc((size_t)all * QI_SOUND_BANDS);
    uint32_t state = 1;
    static qi_sound sound;
    int n = 0;
    if (!samples || !codes)
        abort();
    for (uint32_t i = 0; i < count; i++)
        samples[i] = draw(i, &state);
    qi_sound_init(&sound);
    for (int t = 0; t < all; t++)
        qi_sound_frame(&sound, samples + t * QI_SOUND_HOP, codes + t * QI_SOUND_BANDS);
    for (int t = 0; t + frames <= all; t += step, n++)
        printf("    0x%08xu,\n",
               (unsigned)digest_of(codes + t * QI_SOUND_BANDS, (size_t)frames * QI_SOUND_BANDS));
    free(samples);
    free(codes);
    return n;
}

static void print_program(const char *name, int frames, int has_states)
{
    printf("#include \"%s.h\"\n\n#ifndef MEMORY\n#define MEMORY\n#define MEMORY_AND\n#endif\n\n"
           "static const uint32_t wanted[] = {\n",
           name);
    int const n = print_digests(frames, has_states);
    printf("};\nstatic int16_t samples[320];\nstatic uint8_t in[%d];\n\n", frames * QI_SOUND_BANDS);
    printf("%s\n\n", draw_text);
    printf("static uint32_t digest(void)\n{\n    uint32_t d = 2166136261u;\n"
           "    for (uint32_t i = 0; i < sizeof in; i++)\n        d = (d ^ in[i]) * 16777619u;\n"
           "    return d;\n}\n\n"
           "int check_input(void);\nint check_input(void)\n{\n"
           "    uint32_t state = 1, at = 0;\n    int n = 0;\n    %s_sound_start(MEMORY);\n",
           name);
    printf("    for (int block = 0; block <= %d; block++) {\n"
           "        for (int i = 0; i < 320; i++, at++)\n"
           "            samples[i] = draw(at, &state);\n"
           "        if (%s_sound(MEMORY_AND samples, in)) {\n"
           "            if (n == %d)\n                return -1;\n"
           "            if (digest() != wanted[n++])\n                return n;\n        }\n    }\n"
           "    return n == %d ? 0 : -1;\n}\n",
           frames + MORE, name, n, n);
}

int main(int argc, char **argv)
{
    qi_host *host = NULL;
    qat_error err;
    qi_host_options const options = {.limits = QI_NO_LIMITS};
    if (argc != 3) {
        fprintf(stderr, "usage: sounds MODEL.qm NAME\n");
        return 2;
    }
    if (qi_host_open(&host, argv[1], &options, &err) != QAT_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    const qi_model *m = qi_host_model(host);
    print_program(argv[2], qi_model_preprocessing(m)->height, qi_state_count(m) > 0);
    qi_host_close(host);
    return 0;
}
