/**
 * Writes the drawn words as a user's files: FOLDER/train/WORD/N.wav and FOLDER/val/WORD/N.wav, and
 * of each test sound its samples alone, FOLDER/raw/N.raw, and the codes that training takes,
 * FOLDER/raw/N.codes.
 *
 * usage: write_sounds FOLDER TRAINING TEST
 */
#include "base/files/file.h"
#include "datasets/dataset_kind.h"
#include "qat/sound.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FRAMES = 49, SAMPLES = (FRAMES - 1) * QI_SOUND_HOP + QI_SOUND_FRAME, HEAD = 44 };

static void require(qat_status st, const qat_error *err)
{
    if (st) {
        fprintf(stderr, "write_sounds: %s\n", err->message);
        exit(1);
    }
}

static void put(uint8_t *at, uint32_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        at[i] = (uint8_t)(value >> (8 * i));
}

static void write_bytes(const char *folder, const char *name, const void *bytes, size_t n)
{
    qat_error err;
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    char *slash = strrchr(path, '/');
    *slash = 0;
    require(qat_make_dirs(path, &err), &err);
    *slash = '/';
    require(qat_file_write_atomic(path, bytes, n, &err), &err);
}

/** A WAV file of 16 bits; the samples begin at HEAD. */
static size_t make_file(const int16_t *samples, uint8_t *file)
{
    memcpy(file, "RIFF____WAVEfmt ", 16);
    put(file + 4, HEAD - 8 + 2 * SAMPLES, 4);
    put(file + 16, 16, 4);
    put(file + 20, 1, 2);
    put(file + 22, 1, 2);
    put(file + 24, QI_SOUND_RATE, 4);
    put(file + 28, 2 * QI_SOUND_RATE, 4);
    put(file + 32, 2, 2);
    put(file + 34, 16, 2);
    memcpy(file + 36, "data", 4);
    put(file + 40, 2 * SAMPLES, 4);
    for (int i = 0; i < SAMPLES; i++)
        put(file + HEAD + 2 * i, (uint32_t)samples[i], 2);
    return HEAD + 2 * SAMPLES;
}

static void write_sample(const char *folder, const qat_dataset *d, int i, bool test)
{
    static int16_t samples[SAMPLES];
    static uint8_t file[HEAD + 2 * SAMPLES], codes[FRAMES * QI_SOUND_BANDS];
    const qat_dataset_info *info = qat_dataset_info_of(d);
    qat_error err;
    char name[128];
    int label;
    require(d->kind->sound(d, i, samples, &err), &err);
    require(qat_dataset_get(d, i, codes, &label, &err), &err);
    size_t const n = make_file(samples, file);
    snprintf(name, sizeof name, "%s/%s/%05d.wav", test ? "val" : "train", info->labels[label], i);
    write_bytes(folder, name, file, n);
    if (!test)
        return;
    snprintf(name, sizeof name, "raw/%05d.raw", i);
    write_bytes(folder, name, file + HEAD, n - HEAD);
    snprintf(name, sizeof name, "raw/%05d.codes", i);
    write_bytes(folder, name, codes, sizeof codes);
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: write_sounds FOLDER TRAINING TEST\n");
        return 2;
    }
    qat_dataset_options const o = {
        .kind = "keywords", .seed = 1, .train_count = atoi(argv[2]), .test_count = atoi(argv[3])};
    for (int test = 0; test < 2; test++) {
        qat_dataset *d;
        qat_error err;
        require(qat_dataset_open(&d, &o, test ? QAT_SPLIT_TEST : QAT_SPLIT_TRAIN, &err), &err);
        for (int i = 0; i < qat_dataset_info_of(d)->count; i++)
            write_sample(argv[1], d, i, test);
        qat_dataset_close(d);
    }
    return 0;
}
