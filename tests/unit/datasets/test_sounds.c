/**
 * WAV files: what is read of each coding, what is refused; folders of them, in the layout of
 * pictures and of Speech Commands; the words that are drawn; augmentation.
 */
#include "common/fail_alloc.h"
#include "common/suite.h"
#include "common/temp.h"
#include "datasets/dataset_kind.h"
#include "qat/sound.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

enum { PCM = 1, FLOAT = 3, RATE = QI_SOUND_RATE, CODES = 49 * QI_SOUND_BANDS };

/* ------------------------------------------------------------------ WAV files by hand */

typedef struct form {
    int coding, channels, bits, rate;
} form;

static const form mono = {PCM, 1, 16, RATE};

static uint8_t file[1 << 18];
static size_t length;

static void put(uint32_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        file[length++] = (uint8_t)(value >> (8 * i));
}

static void put_text(const char *text)
{
    memcpy(file + length, text, strlen(text));
    length += strlen(text);
}

/** A WAV file of `count` values (of all channels) of so many bytes each. */
static void make_wav(form f, const void *values, size_t count)
{
    size_t const each = (size_t)f.bits / 8, bytes = count * each;
    uint32_t const block = (uint32_t)f.channels * (uint32_t)each;
    length = 0;
    put_text("RIFF");
    put((uint32_t)(36 + bytes), 4);
    put_text("WAVEfmt ");
    put(16, 4);
    put((uint32_t)f.coding, 2);
    put((uint32_t)f.channels, 2);
    put((uint32_t)f.rate, 4);
    put((uint32_t)f.rate * block, 4);
    put(block, 2);
    put((uint32_t)f.bits, 2);
    put_text("data");
    put((uint32_t)bytes, 4);
    memcpy(file + length, values, bytes);
    length += bytes;
}

static void write_file(const char *name)
{
    test_temp_write(folder, name, file, length);
}

/** A sound that rises by `step`, n samples long. */
static void write_ramp(const char *name, int n, int step)
{
    static int16_t samples[1 << 16];
    for (int i = 0; i < n; i++)
        samples[i] = (int16_t)(i * step);
    make_wav(mono, samples, (size_t)n);
    write_file(name);
}

static qat_wave read_file(const char *name, size_t most)
{
    char path[TEST_PATH_MAX];
    qat_wave wave;
    qat_error err;
    ck_assert_msg(qat_wave_read(&wave, test_temp_path(path, folder, name), most, &err) == QAT_OK,
                  "%s", err.message);
    return wave;
}

static void check_samples(const char *name, const int16_t *expected, size_t n)
{
    qat_wave wave = read_file(name, 0);
    ck_assert_uint_eq(wave.count, n);
    for (size_t i = 0; i < n; i++)
        ck_assert_int_eq(wave.samples[i], expected[i]);
    free(wave.samples);
}

static void refuse(const char *name, qat_status status, const char *says)
{
    char path[TEST_PATH_MAX];
    qat_wave wave;
    qat_error err;
    ck_assert_int_eq(qat_wave_read(&wave, test_temp_path(path, folder, name), 0, &err), status);
    free(wave.samples);
    ck_assert_msg(strstr(err.message, path) && strstr(err.message, says), "\"%s\" not in \"%s\"",
                  says, err.message);
}

START_TEST(each_coding_becomes_16_bits)
{
    static const int16_t s16[] = {0, 1, -1, 32767, -32768};
    static const uint8_t u8[] = {128, 129, 0, 255};
    static const uint8_t s24[] = {0xff, 0x01, 0, 0xff, 0xff, 0xff, 0, 0, 0x80};
    static const int32_t s32[] = {65535, 65536, -1, INT32_MAX, INT32_MIN};
    static const float f32[] = {0, 1, -1, 0.5f, 1.0f / 65536, -1.0f / 65536, 7, -7};
    make_wav(mono, s16, 5);
    write_file("a.wav");
    check_samples("a.wav", s16, 5);
    make_wav((form){PCM, 1, 8, RATE}, u8, 4);
    write_file("a.wav");
    check_samples("a.wav", (const int16_t[]){0, 256, -32768, 127 * 256}, 4);
    make_wav((form){PCM, 1, 24, RATE}, s24, 3);
    write_file("a.wav");
    check_samples("a.wav", (const int16_t[]){1, -1, -32768}, 3);
    make_wav((form){PCM, 1, 32, RATE}, s32, 5);
    write_file("a.wav");
    check_samples("a.wav", (const int16_t[]){0, 1, -1, 32767, -32768}, 5);
    make_wav((form){FLOAT, 1, 32, RATE}, f32, 8);
    write_file("a.wav");
    check_samples("a.wav", (const int16_t[]){0, 32767, -32768, 16384, 1, 0, 32767, -32768}, 8);
}
END_TEST

START_TEST(two_channels_are_mixed)
{
    static const int16_t s16[] = {1, 2, -1, -2, 32767, 32767, -32768, 32767};
    static const float f32[] = {0.25f, 0.75f, 1, -1};
    make_wav((form){PCM, 2, 16, RATE}, s16, 8);
    write_file("a.wav");
    check_samples("a.wav", (const int16_t[]){1, -2, 32767, -1}, 4);
    make_wav((form){FLOAT, 2, 32, RATE}, f32, 4);
    write_file("a.wav");
    check_samples("a.wav", (const int16_t[]){16384, 0}, 2);
}
END_TEST

START_TEST(the_beginning_alone_is_read)
{
    write_ramp("a.wav", 5000, 3);
    qat_wave wave = read_file("a.wav", 1500);
    ck_assert_uint_eq(wave.count, 1500);
    ck_assert_int_eq(wave.samples[1499], 1499 * 3);
    free(wave.samples);
}
END_TEST

START_TEST(what_is_no_sound_is_refused)
{
    static const int16_t values[64] = {1, 2, 3};
    test_temp_write(folder, "text.wav", "hello", 5);
    refuse("text.wav", QAT_ERR_FORMAT, "not a WAV file");
    test_temp_write(folder, "head.wav", "RIFF\4\0\0\0WAVE", 12);
    refuse("head.wav", QAT_ERR_FORMAT, "a WAV file that cannot be read; PCM of 8, 16");
    make_wav((form){PCM, 1, 16, 8000}, values, 64);
    write_file("slow.wav");
    refuse("slow.wav", QAT_ERR_UNSUPPORTED,
           "8000 samples a second, but 16000 are wanted: sox IN.wav -r 16000 OUT.wav");
    make_wav((form){PCM, 3, 16, RATE}, values, 63);
    write_file("three.wav");
    refuse("three.wav", QAT_ERR_UNSUPPORTED, "a WAV file of 3 channels");
    make_wav((form){6, 1, 8, RATE}, values, 64); /* A-law */
    write_file("law.wav");
    refuse("law.wav", QAT_ERR_UNSUPPORTED, "a WAV file of 1 channels and coding 0x11");
    make_wav(mono, values, 64);
    length -= 10;
    write_file("cut.wav");
    refuse("cut.wav", QAT_ERR_FORMAT, "the file ends before its sound does: 162 bytes, 172");
    refuse("none.wav", QAT_ERR_IO, "cannot open");
    refuse(".", QAT_ERR_IO, "not a file");
}
END_TEST

/* A header may announce more samples than QAT_WAVE_MOST_SAMPLES: the file is long, but has holes.
 */
START_TEST(a_sound_may_not_be_too_long)
{
    char path[TEST_PATH_MAX];
    static const uint8_t values[1] = {0};
    uint32_t const n = QAT_WAVE_MOST_SAMPLES + 1;
    make_wav((form){PCM, 1, 8, RATE}, values, 1);
    memcpy(file + 4, &(uint32_t){36 + n}, 4);
    memcpy(file + 40, &(uint32_t){n}, 4);
    write_file("long.wav");
    FILE *f = fopen(test_temp_path(path, folder, "long.wav"), "r+b");
    ck_assert(f && !fseek(f, 44 + (long)n - 1, SEEK_SET) && fputc(0, f) == 0 && !fclose(f));
    refuse("long.wav", QAT_ERR_LIMIT, "a sound of 67108865 samples; at most 67108864 can be read");
    qat_wave wave = read_file("long.wav", 100);
    ck_assert_uint_eq(wave.count, 100);
    free(wave.samples);
}
END_TEST

/* ------------------------------------------------------------------ folders */

static qat_dataset *open_with(qat_dataset_options o, qat_split split)
{
    qat_dataset *d;
    qat_error err;
    o.kind = "wav";
    o.path = folder;
    ck_assert_msg(qat_dataset_open(&d, &o, split, &err) == QAT_OK, "%s", err.message);
    return d;
}

static void refuse_set(qat_dataset_options o, qat_split split, const char *says)
{
    qat_dataset *d;
    qat_error err;
    o.kind = "wav";
    o.path = folder;
    ck_assert_int_ne(qat_dataset_open(&d, &o, split, &err), QAT_OK);
    ck_assert_msg(strstr(err.message, says), "\"%s\" not in \"%s\"", says, err.message);
}

/** The codes of a ramp of n samples, with silence after it. */
static void codes_of_ramp(int n, int step, uint8_t *codes)
{
    int16_t samples[(49 - 1) * QI_SOUND_HOP + QI_SOUND_FRAME] = {0};
    qi_sound sound;
    for (size_t i = 0; i < (size_t)n && i < sizeof samples / sizeof *samples; i++)
        samples[i] = (int16_t)((int)i * step);
    qi_sound_init(&sound);
    for (int t = 0; t < 49; t++)
        qi_sound_frame(&sound, samples + t * QI_SOUND_HOP, codes + t * QI_SOUND_BANDS);
}

START_TEST(a_folder_a_class)
{
    uint8_t codes[CODES], expected[CODES];
    qat_error err;
    char *text;
    int label;
    write_ramp("train/no/1.wav", 8000, 5);
    write_ramp("train/yes/1.WAV", 20000, 7);
    write_ramp("train/yes/2.wav", 16000, 9);
    write_ramp("val/yes/1.wav", 16000, 11);
    test_temp_write(folder, "train/yes/notes.txt", "x", 1);
    qat_dataset *d = open_with((qat_dataset_options){0}, QAT_SPLIT_TRAIN);
    qat_dataset *test = open_with((qat_dataset_options){0}, QAT_SPLIT_TEST);
    const qat_dataset_info *info = qat_dataset_info_of(d);
    ck_assert(info->count == 3 && info->classes == 2 && info->type == QAT_SAMPLE_SOUND);
    ck_assert(info->height == 49 && info->width == QI_SOUND_BANDS && info->channels == 1);
    ck_assert_str_eq(info->labels[1], "yes");
    static const int ramps[][2] = {{8000, 5}, {20000, 7}, {16000, 9}};
    for (int i = 0; i < 3; i++) { /* shorter, longer, of the length */
        ck_assert_int_eq(qat_dataset_get(d, i, codes, &label, &err), QAT_OK);
        codes_of_ramp(ramps[i][0], ramps[i][1], expected);
        ck_assert_mem_eq(codes, expected, CODES);
        ck_assert_int_eq(label, i > 0);
    }
    ck_assert_int_eq(qat_dataset_get(test, 0, codes, &label, &err), QAT_OK);
    ck_assert_int_eq(label, 1);
    ck_assert_int_eq(qat_dataset_describe(d, test, &text, &err), QAT_OK);
    ck_assert_msg(strstr(text, ": 3 training sounds, 1 test sound, 2 classes (no 1, yes 3), of 49 "
                               "frames (0.992 s): shorter ones end with silence, longer ones are "
                               "cut off; ignored: 1 file (.txt 1)"),
                  "%s", text);
    free(text);
    qat_dataset_close(d);
    qat_dataset_close(test);
}
END_TEST

START_TEST(seconds_and_splits)
{
    write_ramp("no/1.wav", 100, 5);
    write_ramp("no/2.wav", 100, 5);
    write_ramp("yes/1.wav", 100, 7);
    write_ramp("yes/2.wav", 100, 9);
    qat_dataset *d = open_with((qat_dataset_options){.split = 0.5, .seconds = 0.1}, QAT_SPLIT_TEST);
    ck_assert_int_eq(qat_dataset_info_of(d)->count, 2);
    ck_assert_int_eq(qat_dataset_info_of(d)->height, (1600 - 512) / 320 + 1);
    qat_dataset_close(d);
    refuse_set((qat_dataset_options){0}, QAT_SPLIT_TRAIN, "data.split = 0.8 trains on 80 %");
    /* more than MAX_SECONDS of wav.c, less than a frame */
    refuse_set((qat_dataset_options){.split = 0.5, .seconds = 61}, QAT_SPLIT_TRAIN,
               "seconds 61, more than 60");
    refuse_set((qat_dataset_options){.split = 0.5, .seconds = 0.02}, QAT_SPLIT_TRAIN,
               "0.02 seconds are shorter than a frame");
    test_temp_write(folder, "empty/a.txt", "x", 1);
    refuse_set((qat_dataset_options){.split = 0.5}, QAT_SPLIT_TRAIN,
               "empty: no sounds (.wav), but 1 file (.txt 1)");
}
END_TEST

/** The layout of Speech Commands: four words, lists, noise. */
static void write_commands(void)
{
    static const char *const words[] = {"up", "down", "cat", "dog"};
    char name[64];
    for (int w = 0; w < 4; w++)
        for (int i = 0; i < 5; i++) {
            snprintf(name, sizeof name, "%s/%d.wav", words[w], i);
            write_ramp(name, 4000, 1 + 10 * w + i);
        }
    write_ramp("_background_noise_/hiss.wav", 30000, 777);
    write_ramp("_background_noise_/hum.wav", 300, 99);
    test_temp_write(folder, "_background_noise_/README.md", "x", 1);
    test_temp_write(folder, "README.md", "x", 1);
    static const char tests[] = "up/0.wav\ndown/0.wav\r\ncat/0.wav\ndog/0.wav\n",
                      validation[] = "up/1.wav\ncat/1.wav\ndown/1.wav\ndog/1.wav";
    test_temp_write(folder, "testing_list.txt", tests, sizeof tests - 1);
    test_temp_write(folder, "validation_list.txt", validation, sizeof validation - 1);
}

START_TEST(speech_commands)
{
    char *text;
    qat_error err;
    write_commands();
    qat_dataset *train = open_with((qat_dataset_options){0}, QAT_SPLIT_TRAIN);
    qat_dataset *test = open_with((qat_dataset_options){0}, QAT_SPLIT_TEST);
    qat_dataset *validation =
        open_with((qat_dataset_options){.validation = 0.1}, QAT_SPLIT_VALIDATION);
    ck_assert_int_eq(qat_dataset_info_of(train)->count, 12);
    ck_assert_int_eq(qat_dataset_info_of(train)->classes, 4);
    ck_assert_int_eq(qat_dataset_info_of(test)->count, 4);
    ck_assert_int_eq(qat_dataset_info_of(validation)->count, 4);
    for (int i = 0; i < 4; i++) {
        qat_file_name const a = test->kind->file(test, i);
        qat_file_name const b = validation->kind->file(validation, i);
        ck_assert(strstr(a.name, "/0.wav") && strstr(b.name, "/1.wav"));
    }
    ck_assert_int_eq(qat_dataset_describe(train, test, &text, &err), QAT_OK);
    ck_assert_msg(strstr(text, "; ignored: 4 sounds of validation_list.txt"), "%s", text);
    free(text);
    qat_dataset_close(train);
    qat_dataset_close(test);
    qat_dataset_close(validation);
    refuse_set((qat_dataset_options){.split = 0.8}, QAT_SPLIT_TRAIN,
               "testing_list.txt is there already: data.split would make another test split");
}
END_TEST

START_TEST(words_silence_and_the_unknown)
{
    uint8_t codes[CODES], again[CODES];
    int counts[4] = {0}, label;
    bool heard = false;
    qat_error err;
    write_commands();
    qat_dataset_options const o = {.words = " up , dog", .seed = 3};
    qat_dataset *d = open_with(o, QAT_SPLIT_TRAIN), *same = open_with(o, QAT_SPLIT_TRAIN);
    const qat_dataset_info *info = qat_dataset_info_of(d);
    ck_assert_int_eq(info->classes, 4);
    static const char *const labels[] = {"up", "dog", "_silence_", "_unknown_"};
    for (int i = 0; i < 4; i++)
        ck_assert_str_eq(info->labels[i], labels[i]);
    for (int i = 0; i < info->count; i++) {
        ck_assert_int_eq(qat_dataset_get(d, i, codes, &label, &err), QAT_OK);
        ck_assert_int_eq(qat_dataset_get(same, i, again, &label, &err), QAT_OK);
        ck_assert_mem_eq(codes, again, CODES);
        counts[label]++;
        for (int k = 0; label == 2 && k < CODES; k++)
            heard |= codes[k] > 0;
    }
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(counts[i], 3);
    ck_assert(heard);
    qat_dataset_close(d);
    qat_dataset_close(same);
    refuse_set((qat_dataset_options){.words = "up,bird"}, QAT_SPLIT_TRAIN,
               "data.words: there is no folder bird in ");
    refuse_set((qat_dataset_options){.words = "up,up"}, QAT_SPLIT_TRAIN, "up stands there twice");
    refuse_set((qat_dataset_options){.memory = 4000}, QAT_SPLIT_TRAIN, "data.memory allows");
}
END_TEST

START_TEST(memory_may_end_anywhere)
{
    bool failed;
    long n = 0;
    write_commands();
    qat_dataset_options const o = {.kind = "wav", .path = folder, .words = "up,dog"};
    do {
        qat_dataset *d = NULL;
        qat_error err = {0};
        uint8_t codes[CODES];
        int label;
        test_fail_alloc_after(n++);
        qat_status st = qat_dataset_open(&d, &o, QAT_SPLIT_TRAIN, &err);
        if (!st)
            st = qat_dataset_get(d, 0, codes, &label, &err);
        failed = test_fail_alloc_stop();
        ck_assert_msg(failed ? st != QAT_OK : st == QAT_OK, "%ld: %s", n, err.message);
        qat_dataset_close(d);
    } while (failed);
    ck_assert_int_gt(n, 10);
}
END_TEST

/* ------------------------------------------------------------------ drawn words, augmentation */

static qat_dataset *drawn(int count, double validation, qat_split split)
{
    qat_dataset *d;
    qat_error err;
    qat_dataset_options const o = {.kind = "keywords",
                                   .seed = 1,
                                   .train_count = count,
                                   .test_count = count,
                                   .validation = validation};
    ck_assert_msg(qat_dataset_open(&d, &o, split, &err) == QAT_OK, "%s", err.message);
    return d;
}

/* The samples that augmentation takes are those of which the codes were made, in every part. */
START_TEST(drawn_words_are_drawn_again)
{
    static int16_t samples[16000];
    uint8_t codes[CODES], expected[CODES];
    int label;
    qat_error err;
    for (int split = 0; split < 3; split++) {
        qat_dataset *d = drawn(40, 0.25, (qat_split)split);
        for (int i = 0; i < qat_dataset_info_of(d)->count; i++) {
            ck_assert_int_eq(d->kind->sound(d, i, samples, &err), QAT_OK);
            qat_wave_codes(samples, 49, codes);
            ck_assert_int_eq(qat_dataset_get(d, i, expected, &label, &err), QAT_OK);
            ck_assert_mem_eq(codes, expected, CODES);
        }
        qat_dataset_close(d);
    }
}
END_TEST

/* Every machine draws the same. */
START_TEST(drawn_words_stay_as_they_are)
{
    uint8_t codes[CODES];
    uint32_t sum = 0;
    int label;
    qat_dataset *d = drawn(100, 0, QAT_SPLIT_TRAIN);
    for (int i = 0; i < 100; i++) {
        qat_dataset_get(d, i, codes, &label, NULL);
        for (int k = 0; k < CODES; k++)
            sum = (sum ^ codes[k]) * 16777619U;
    }
    ck_assert_msg(sum == 0xdbe1c788, "the codes of 100 words have the sum %#x", sum);
    qat_dataset_close(d);
}
END_TEST

static void load(const qat_dataset *d, qat_augment a, int threads, uint8_t *codes)
{
    qat_loader *loader;
    const qat_batch *batch;
    qat_error err;
    qat_loader_options const o = {
        .batch = 8, .shuffle = true, .seed = 5, .augment = a, .threads = threads, .prefetch = 3};
    ck_assert_msg(qat_loader_create(&loader, d, &o, &err) == QAT_OK, "%s", err.message);
    for (int i = 0; i < 10; i++) {
        ck_assert_int_eq(qat_loader_next(loader, &batch, &err), QAT_OK);
        memcpy(codes + (size_t)i * 8 * CODES, batch->bytes, 8 * CODES);
        ck_assert(batch->real[0] == (float)batch->bytes[0]);
    }
    qat_loader_free(loader);
}

static void refuse_augment(const qat_dataset *d, qat_augment a, const char *says)
{
    qat_loader *loader;
    qat_error err;
    qat_loader_options const o = {.batch = 8, .augment = a, .threads = 1, .prefetch = 1};
    ck_assert_int_eq(qat_loader_create(&loader, d, &o, &err), QAT_ERR_ARGUMENT);
    ck_assert_msg(strstr(err.message, says), "\"%s\" not in \"%s\"", says, err.message);
}

START_TEST(sounds_are_augmented)
{
    static uint8_t plain[80 * CODES], once[80 * CODES], again[80 * CODES];
    qat_dataset *d = drawn(40, 0, QAT_SPLIT_TRAIN);
    qat_augment const all[] = {
        {.time_shift = 100},
        {.gain = 0.5f},
        {.background = 0.5f, .background_chance = 1},
        {.time_shift = 50, .gain = 0.1f, .background = 0.1f, .background_chance = 0.5f}};
    load(d, (qat_augment){0}, 1, plain);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        load(d, all[i], 1, once);
        load(d, all[i], 3, again);
        ck_assert_mem_eq(once, again, sizeof once);
        ck_assert_mem_ne(once, plain, sizeof once);
        ck_assert_mem_ne(once, once + 40 * CODES, 40 * CODES); /* another epoch */
    }
    load(d, (qat_augment){.background = 0.5f}, 1, once); /* of no sound */
    ck_assert_mem_eq(once, plain, sizeof once);
    refuse_augment(d, (qat_augment){.gain = 1.5f}, "gain 1.5, not in 0..1");
    refuse_augment(d, (qat_augment){.time_shift = -1}, "time_shift -1, not in 0..10000 ms");
    refuse_augment(d, (qat_augment){.flip = true},
                   "has sounds; only time_shift, gain and background");
    qat_dataset_close(d);
}
END_TEST

/* Shifted by whole hops, frames move. */
START_TEST(a_shift_moves_frames)
{
    static uint8_t plain[80 * CODES], moved[80 * CODES];
    int same = 0;
    qat_dataset *d = drawn(40, 0, QAT_SPLIT_TRAIN);
    load(d, (qat_augment){0}, 1, plain);
    load(d, (qat_augment){.time_shift = 1}, 1, moved);
    for (int i = 0; i < 80 * CODES; i++)
        same += plain[i] >= moved[i] - 8 && plain[i] <= moved[i] + 8;
    ck_assert_int_gt(same, 80 * CODES * 6 / 10); /* a ms changes little */
    qat_dataset_close(d);
}
END_TEST

START_TEST(background_needs_noise)
{
    write_ramp("no/1.wav", 100, 5);
    write_ramp("no/2.wav", 100, 5);
    qat_dataset *d = open_with((qat_dataset_options){.split = 0.5}, QAT_SPLIT_TRAIN);
    refuse_augment(d, (qat_augment){.background = 0.5f},
                   "has no sounds in a folder _background_noise_");
    qat_dataset_close(d);
    qat_error err;
    qat_dataset_options const digits = {.kind = "digits", .train_count = 10};
    ck_assert_int_eq(qat_dataset_open(&d, &digits, QAT_SPLIT_TRAIN, &err), QAT_OK);
    refuse_augment(d, (qat_augment){.gain = 0.5f}, "are for sounds; digits/train has none");
    qat_dataset_close(d);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sounds");
    TCase *tc = tcase_create("sounds");
    tcase_add_checked_fixture(tc, test_folder_make, test_folder_remove);
    if (qat_wave_can_read()) {
        tcase_add_test(tc, each_coding_becomes_16_bits);
        tcase_add_test(tc, two_channels_are_mixed);
        tcase_add_test(tc, the_beginning_alone_is_read);
        tcase_add_test(tc, what_is_no_sound_is_refused);
        tcase_add_test(tc, a_sound_may_not_be_too_long);
        tcase_add_test(tc, a_folder_a_class);
        tcase_add_test(tc, seconds_and_splits);
        tcase_add_test(tc, speech_commands);
        tcase_add_test(tc, words_silence_and_the_unknown);
        tcase_add_test(tc, memory_may_end_anywhere);
        tcase_add_test(tc, background_needs_noise);
    }
    tcase_add_test(tc, drawn_words_are_drawn_again);
    tcase_add_test(tc, drawn_words_stay_as_they_are);
    tcase_add_test(tc, sounds_are_augmented);
    tcase_add_test(tc, a_shift_moves_frames);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
