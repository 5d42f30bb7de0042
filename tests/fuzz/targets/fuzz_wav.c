/**
 * Fuzz target: WAV files. The bytes are read whole, then their first samples, which must be the
 * same; then as a sample of a data set, in the layout of Speech Commands (a word, a list of tests,
 * background noise).
 */
#include "fuzz/fuzz.h"
#include "fuzz/fuzz_data.h"
#include "fuzz/fuzz_files.h"

#include "qat/sound.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FIRST = 700, MOST = 1 << 17 };

static qat_status read_wave(qat_wave *wave, const char *path, size_t most)
{
    qat_error err = {0};
    qat_status const st = qat_wave_read(wave, path, most, &err);
    fuzz_check_status(st, &err);
    fuzz_require(st == QAT_OK || strstr(err.message, path) != NULL,
                 "a message that names the file where something is wrong");
    return st;
}

/** All of it, and its beginning. */
static void read_both(const char *path, size_t size)
{
    qat_wave all, first;
    qat_status const whole = read_wave(&all, path, 0), part = read_wave(&first, path, FIRST);
    fuzz_require(whole || !part, "what can be read whole can be read in part");
    if (!whole) {
        fuzz_require(all.count <= size, "a sample takes at least a byte");
        fuzz_require(first.count == (all.count < FIRST ? all.count : FIRST), "so many samples");
        fuzz_require(!memcmp(first.samples, all.samples, first.count * sizeof *first.samples),
                     "the first samples are the same");
    }
    free(all.samples);
    free(first.samples);
}

/** Where a file of the folder is. */
static void put(const char *name, const void *bytes, size_t n)
{
    char path[FUZZ_PATH_MAX];
    fuzz_file(path, name, bytes, n);
}

static void make_folders(void)
{
    static const char *const names[] = {"yes", "no", "_background_noise_"};
    static bool made;
    char path[FUZZ_PATH_MAX];
    for (size_t i = 0; !made && i < sizeof names / sizeof *names; i++)
        (void)mkdir(fuzz_path(path, names[i]), 0700);
    made = true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char tests[] = "yes/b.wav\r\nno/a.wav\n\n";
    char path[FUZZ_PATH_MAX];
    if (size > MOST)
        return 0;
    make_folders();
    put("yes/a.wav", data, size);
    put("yes/b.wav", data, size);
    put("no/a.wav", data, size);
    put("no/b.wav", data, size);
    put("testing_list.txt", tests, sizeof tests - 1);
    put("_background_noise_/a.wav", data, size % 3 ? size : 0);
    read_both(fuzz_path(path, "yes/a.wav"), size);
    qat_dataset_options const o = {.kind = "wav",
                                   .path = fuzz_folder(),
                                   .seconds = size % 16 ? 0.04 : 0.1,
                                   .words = size % 5 ? NULL : "yes"};
    fuzz_dataset(&o, size % 7 ? QAT_SPLIT_TRAIN : QAT_SPLIT_TEST, size);
    return 0;
}
