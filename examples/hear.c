/**
 * A keyword spotter without floating point: raw samples to features to an answer. A device does the
 * same with samples from its microphone, and with the .qm in flash.
 *
 *     hear MODEL.qm SOUND.raw          the answer; of a model with states, after each frame
 *     hear --codes SOUND.raw           the features alone, a byte each, to standard output
 *
 * SOUND.raw: 16-bit samples of one channel, 16,000 a second, low byte first. (sox SOUND.wav -t raw
 * -e signed -b 16 -L SOUND.raw)
 */
#include "qat/infer.h"
#include "qat/sound.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** What a device has in flash and in RAM. */
enum { SECONDS = 10, MODEL_BYTES = 1 << 20, RAM_BYTES = 1 << 20 };
static uint8_t raw[SECONDS * QI_SOUND_RATE * 2];
static _Alignas(QI_ALIGN) uint8_t qm[MODEL_BYTES];
static int16_t samples[SECONDS * QI_SOUND_RATE + QI_SOUND_FRAME - QI_SOUND_HOP];
static uint8_t codes[SECONDS * QI_SOUND_RATE / QI_SOUND_HOP * QI_SOUND_BANDS];
static _Alignas(QI_ALIGN) uint8_t memory[RAM_BYTES], arena[RAM_BYTES];
static uint8_t scores[1024];
static qi_sound sound; /* working memory */

static size_t read_file(const char *path, uint8_t *to, size_t most)
{
    FILE *file = fopen(path, "rb");
    size_t const n = file ? fread(to, 1, most, file) : 0;
    if (!file) {
        perror(path);
        exit(1);
    }
    if (fgetc(file) != EOF) {
        fprintf(stderr, "%s: more than %zu bytes\n", path, most);
        exit(1);
    }
    fclose(file);
    return n;
}

/** Read samples; what follows them is silence. Returns their number. */
static size_t read_samples(const char *path)
{
    size_t const n = read_file(path, raw, sizeof raw) / 2;
    for (size_t i = 0; i < n; i++) {
        int const value = raw[2 * i] | raw[2 * i + 1] << 8;
        samples[i] = (int16_t)(value < 32768 ? value : value - 65536);
    }
    return n;
}

static void make_codes(size_t frames)
{
    qi_sound_init(&sound);
    for (size_t t = 0; t < frames; t++)
        qi_sound_frame(&sound, samples + t * QI_SOUND_HOP, codes + t * QI_SOUND_BANDS);
}

static qi_model *open_model(const char *path)
{
    qi_model *model = NULL;
    qi_error err = {0};
    size_t const bytes = read_file(path, qm, sizeof qm);
    if (qi_model_init(&model, qm, bytes, NULL, memory, sizeof memory, &err) != QI_OK)
        fprintf(stderr, "%s: refused: %s\n", path, err.what ? err.what : "memory");
    else if (qi_model_preprocessing(model)->kind != 3 || qi_output_count(model) != 1 ||
             qi_tensor_at(model, qi_output_at(model, 0))->type > QI_S8 ||
             qi_tensor_at(model, qi_output_at(model, 0))->bytes > sizeof scores ||
             qi_arena_bytes(model) > sizeof arena)
        fprintf(stderr, "%s: no small keyword spotter\n", path);
    else
        return model;
    exit(1);
}

/** Print the class with the largest code. */
static void answer(const qi_model *model)
{
    const qi_tensor *t = qi_tensor_at(model, qi_output_at(model, 0));
    unsigned const sign = t->type == QI_S8 ? 128 : 0;
    int best = 0;
    for (int i = 1; i < (int)t->bytes; i++)
        best = (scores[i] ^ sign) > (scores[best] ^ sign) ? i : best;
    printf("%s\n", best < qi_label_count(model) ? qi_label_at(model, best) : "?");
}

/** Run the model on its first frames; a model with states on all, some frames a run. */
static void hear(const qi_model *model, size_t whole)
{
    size_t const frames = (size_t)qi_model_preprocessing(model)->height;
    size_t const runs = qi_state_count(model) && whole > frames ? whole / frames : 1;
    if (frames * QI_SOUND_BANDS > sizeof codes) {
        fprintf(stderr, "the model hears more than %d seconds at once\n", SECONDS);
        exit(1);
    }
    make_codes(runs * frames);
    qi_reset(model, arena);
    for (size_t i = 0; i < runs; i++) {
        const void *in[] = {codes + i * frames * QI_SOUND_BANDS};
        void *out[] = {scores};
        qi_run(model, arena, in, out);
        answer(model);
    }
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: hear MODEL.qm|--codes SOUND.raw\n");
        return 2;
    }
    size_t const whole = qi_sound_frames(read_samples(argv[2]));
    if (strcmp(argv[1], "--codes") != 0) {
        hear(open_model(argv[1]), whole);
        return 0;
    }
    make_codes(whole);
    return fwrite(codes, QI_SOUND_BANDS, whole, stdout) != whole;
}
