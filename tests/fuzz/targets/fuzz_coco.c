/**
 * Fuzz target: annotations in COCO's format (JSON).
 *
 * One part, the file. Options: bit 0 the test split, bit 1 data.split, bit 2 a limit, bit 3 one
 * class.
 */
#include "fuzz/fuzz.h"
#include "fuzz/fuzz_data.h"
#include "fuzz/fuzz_files.h"
#include "fuzz/fuzz_parts.h"
#include "fuzz/mutations/text_mutate.h"

enum { PARTS = 1 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_parts p;
    char path[FUZZ_PATH_MAX];
    fuzz_parts_read(&p, data, size, PARTS);
    int const limit = p.options & 4 ? 1 : 0;
    qat_dataset_options const o = {.kind = "coco",
                                   .path = fuzz_folder(),
                                   .annotations = {"a.json", "a.json"},
                                   .images = {".", "."},
                                   .one_class = p.options & 8,
                                   .train_count = limit,
                                   .test_count = limit,
                                   .height = 6,
                                   .split = p.options & 2 ? 0.5 : 0};
    fuzz_file(path, "a.json", p.at[0], p.size[0]);
    fuzz_picture("a.png");
    fuzz_dataset(&o, p.options & 1 ? QAT_SPLIT_TEST : QAT_SPLIT_TRAIN, size);
    return 0;
}

static size_t mutate(uint8_t *bytes, size_t size, size_t most, const struct fuzz_parts *p, int part,
                     uint64_t *x)
{
    static const char *const words[] = {
        "\"images\"",
        "\"annotations\"",
        "\"categories\"",
        "\"id\"",
        "\"file_name\"",
        "\"height\"",
        "\"width\"",
        "\"image_id\"",
        "\"category_id\"",
        "\"bbox\"",
        "\"area\"",
        "\"iscrowd\"",
        "\"name\"",
        "\"a.png\"",
        "[0, 0, 2, 2]",
        "[1.5, 1, 2, 1e-300]",
        "true",
        "false",
        "null",
        "[]",
        "{}",
        "\"\"",
        "\"\\u0000\"",
        "\"\\ud800\"",
        "\"\\ud83d\\ude00\"",
        "{\"id\": 1, \"file_name\": \"a.png\", \"height\": 4, \"width\": 5}",
        "{\"id\": 2, \"image_id\": 1, \"category_id\": 3, \"bbox\": [0, 1, 2, 3]}",
        "{\"id\": 3, \"name\": \"cat\"}",
        ",",
        ":",
        NULL};
    return fuzz_text_mutate(bytes, size, most, x, words);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned int seed)
{
    return fuzz_parts_mutate(data, size, most, seed, PARTS, mutate);
}

/** Join the beginning of one input and the end of the other. */
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                                 uint8_t *out, size_t most, unsigned int seed)
{
    uint64_t x = seed;
    size_t const n = fuzz_below(&x, a_size + 1), from = fuzz_below(&x, b_size + 1);
    size_t const size = fuzz_replace(out, 0, most, 0, 0, a, n < most ? n : most);
    return fuzz_replace(out, size, most, size, 0, b + from, b_size - from);
}
