/**
 * Writes seeds of fuzz_wav: short sounds of each coding that is read, and of some that are not,
 * with the chunks that other programs add.
 *
 * usage: seed_sounds fuzz_wav FOLDER
 */
#include "fuzz/seeds/seed.h"

#include "fuzz/fuzz.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { FRAMES = 620, MOST = 1 << 14, PCM = 1, FLOAT = 3, EXTENSIBLE = 0xfffe };

static uint8_t file[MOST];
static size_t count;

static void put(const void *bytes, size_t n)
{
    fuzz_require(count + n <= MOST, "room for a seed");
    memcpy(file + count, bytes, n);
    count += n;
}

static void put_number(uint32_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        put(&(uint8_t){(uint8_t)(value >> (8 * i))}, 1);
}

/** A chunk that programs add beside the sound. */
static void put_chunk(const char *name, size_t bytes)
{
    put(name, 4);
    put_number((uint32_t)bytes, 4);
    for (size_t i = 0; i < bytes; i++)
        put(&(uint8_t){(uint8_t)(i * 7 % 4)}, 1);
}

typedef struct sound {
    const char *name;
    int coding, channels, rate, bits;
    const char *chunk; /* before the samples, or NULL */
    size_t chunk_bytes;
} sound;

static void put_format(const sound *s)
{
    static const uint8_t rest[] = {0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xaa, 0, 0x38, 0x9b, 0x71};
    bool const extensible = s->coding == EXTENSIBLE;
    int const block = s->channels * s->bits / 8;
    put("fmt ", 4);
    put_number(extensible ? 40 : 16, 4);
    put_number((uint32_t)s->coding, 2);
    put_number((uint32_t)s->channels, 2);
    put_number((uint32_t)s->rate, 4);
    put_number((uint32_t)(s->rate * block), 4);
    put_number((uint32_t)block, 2);
    put_number((uint32_t)s->bits, 2);
    if (!extensible)
        return;
    put_number(22, 2);
    put_number((uint32_t)s->bits, 2);
    put_number(4, 4);
    put_number(PCM, 2);
    put(rest, sizeof rest);
}

static void put_samples(const sound *s)
{
    uint64_t x = 5;
    int const bytes = s->bits / 8;
    put("data", 4);
    put_number((uint32_t)(FRAMES * s->channels * bytes), 4);
    for (int i = 0; i < FRAMES * s->channels; i++) {
        float const real = (float)fuzz_below(&x, 2000) / 1000 - 1;
        uint32_t whole = (uint32_t)fuzz_random(&x);
        if (s->coding == FLOAT)
            memcpy(&whole, &real, sizeof whole);
        put_number(whole, (size_t)bytes);
    }
}

static void make(const char *folder, const sound *s)
{
    count = 0;
    put("RIFF    WAVE", 12);
    put_format(s);
    if (s->chunk)
        put_chunk(s->chunk, s->chunk_bytes);
    put_samples(s);
    for (int i = 0; i < 4; i++)
        file[4 + i] = (uint8_t)((count - 8) >> (8 * i));
    seed_write(folder, s->name, file, count);
}

int main(int argc, char **argv)
{
    static const sound sounds[] = {
        {"seed-8", PCM, 1, 16000, 8, NULL, 0},
        {"seed-16", PCM, 1, 16000, 16, NULL, 0},
        {"seed-24", PCM, 1, 16000, 24, NULL, 0},
        {"seed-32", PCM, 1, 16000, 32, NULL, 0},
        {"seed-float", FLOAT, 1, 16000, 32, NULL, 0},
        {"seed-stereo", PCM, 2, 16000, 16, NULL, 0},
        {"seed-three", PCM, 3, 16000, 8, NULL, 0},
        {"seed-rate", PCM, 1, 8000, 8, NULL, 0},
        {"seed-extensible", EXTENSIBLE, 1, 16000, 24, NULL, 0},
        {"seed-a-law", 6, 1, 16000, 8, NULL, 0},
        {"seed-list", PCM, 1, 16000, 8, "LIST", 26},
        {"seed-peak", FLOAT, 1, 16000, 32, "PEAK", 16},
        {"seed-cue", PCM, 1, 16000, 8, "cue ", 28},
        {"seed-smpl", PCM, 1, 16000, 8, "smpl", 60},
        {"seed-bext", PCM, 1, 16000, 8, "bext", 610},
    };
    if (argc != 3 || strcmp(argv[1], "fuzz_wav") != 0) {
        fprintf(stderr, "usage: seed_sounds fuzz_wav FOLDER\n");
        return 2;
    }
    for (size_t i = 0; i < sizeof sounds / sizeof *sounds; i++)
        make(argv[2], &sounds[i]);
    return 0;
}
