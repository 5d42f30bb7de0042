/**
 * Fuzz target: lists of pictures and classes, and folders of pictures.
 *
 * Parts: two texts. Mode 0: they are train.txt and test.txt of a folder; 1: the first is a list for
 * both splits; 2: the first has names of files, one per line, that are made in a folder of classes.
 * Options: bit 0 the test split, bit 1 data.split, bit 2 a limit, bit 3 a number of classes.
 */
#include "fuzz/fuzz.h"
#include "fuzz/fuzz_data.h"
#include "fuzz/fuzz_files.h"
#include "fuzz/fuzz_parts.h"
#include "fuzz/mutations/text_mutate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FIRST, SECOND, PARTS };
enum { MODE_FOLDER, MODE_LIST, MODE_CLASSES, MODES };

/** Make the folders in a name and an empty file. Skip a name that leads out of the folder. */
static void make_file(char *name)
{
    char path[FUZZ_PATH_MAX];
    if (strlen(name) > FUZZ_PATH_MAX / 2 || strstr(name, "..") || name[0] == '/')
        return;
    for (char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        (void)mkdir(fuzz_path(path, name), 0700);
        *slash = '/';
    }
    FILE *file = fopen(fuzz_path(path, name), "wbx");
    if (file)
        fclose(file);
}

/** A folder of classes. */
static void make_classes(const struct fuzz_parts *p)
{
    enum { MOST_FILES = 24 };
    char *text = fuzz_parts_text(p, FIRST), *next;
    int n = 0;
    for (char *line = text; line && *line && n < MOST_FILES; line = next, n++) {
        char name[FUZZ_PATH_MAX];
        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        snprintf(name, sizeof name, "c/%.200s", line);
        make_file(name);
    }
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_parts p;
    char path[FUZZ_PATH_MAX];
    fuzz_parts_read(&p, data, size, PARTS);
    int const mode = p.mode % MODES, limit = p.options & 4 ? 2 : 0;
    qat_dataset_options o = {.kind = mode == MODE_CLASSES ? "folder" : "list",
                             .path = fuzz_folder(),
                             .train_count = limit,
                             .test_count = limit,
                             .classes = p.options & 8 && mode != MODE_CLASSES ? 10 : 0,
                             .height = 6,
                             .split = p.options & 2 ? 0.5 : 0};
    fuzz_picture("a.png");
    if (mode == MODE_CLASSES) {
        make_classes(&p);
        o.path = fuzz_path(path, "c");
    } else {
        fuzz_file(path, "train.txt", p.at[FIRST], p.size[FIRST]);
        if (mode == MODE_LIST)
            o.path = path;
        if (p.size[SECOND]) {
            char test[FUZZ_PATH_MAX];
            fuzz_file(test, "test.txt", p.at[SECOND], p.size[SECOND]);
        }
    }
    fuzz_dataset(&o, p.options & 1 ? QAT_SPLIT_TEST : QAT_SPLIT_TRAIN, size);
    fuzz_remove(mode == MODE_CLASSES ? "c" : "train.txt");
    fuzz_remove("test.txt");
    return 0;
}

static size_t mutate(uint8_t *bytes, size_t size, size_t most, const struct fuzz_parts *p, int part,
                     uint64_t *x)
{
    static const char *const lists[] = {"a.png 0\n", "a.png",   "b.png",      "65535",
                                        "65536",     "./a.png", "x/../a.png", " 1",
                                        "\t2\r\n",   "\r",      "  ",         NULL};
    static const char *const names[] = {"train/cat/a.png\n",
                                        "train/dog/b.jpg\n",
                                        "val/cat/c.png\n",
                                        "test/cat/d.gif\n",
                                        "cat/e.ppm\n",
                                        "train/",
                                        "val/",
                                        "test/",
                                        "cat/",
                                        "dog/",
                                        ".png",
                                        ".webp",
                                        ".JPG",
                                        "/",
                                        "train/cat/x/y.png\n",
                                        "train/cat/.hidden\n",
                                        NULL};
    return fuzz_text_mutate(bytes, size, most, x, p->mode % MODES == MODE_CLASSES ? names : lists);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned int seed)
{
    return fuzz_parts_mutate(data, size, most, seed, PARTS, mutate);
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                                 uint8_t *out, size_t most, unsigned int seed)
{
    return fuzz_parts_cross(a, a_size, b, b_size, out, most, seed, PARTS);
}
