/**
 * Fuzz target: tables of pictures (CSV) with attributes and values.
 *
 * Parts: data.attributes, data.value, the table. Options: bit 0 the test split, bit 1 data.split,
 * bit 2 a limit, bit 3 the short side.
 */
#include "fuzz/fuzz.h"
#include "fuzz/fuzz_data.h"
#include "fuzz/fuzz_files.h"
#include "fuzz/fuzz_parts.h"
#include "fuzz/mutations/text_mutate.h"

#include <stdlib.h>

enum { ATTRIBUTES, VALUE, TABLE, PARTS };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_parts p;
    char path[FUZZ_PATH_MAX];
    fuzz_parts_read(&p, data, size, PARTS);
    char *attributes = fuzz_parts_text(&p, ATTRIBUTES), *value = fuzz_parts_text(&p, VALUE);
    int const limit = p.options & 4 ? 2 : 0;
    qat_dataset_options const o = {.kind = "table",
                                   .path = fuzz_file(path, "t.csv", p.at[TABLE], p.size[TABLE]),
                                   .images = {"", "."},
                                   .attributes = attributes,
                                   .value = value,
                                   .train_count = limit,
                                   .test_count = limit,
                                   .height = 6,
                                   .resize_short = p.options & 8 ? 7 : 0,
                                   .split = p.options & 2 ? 0.5 : 0};
    fuzz_picture("a.png");
    fuzz_dataset(&o, p.options & 1 ? QAT_SPLIT_TEST : QAT_SPLIT_TRAIN, size);
    free(attributes);
    free(value);
    return 0;
}

static size_t mutate(uint8_t *bytes, size_t size, size_t most, const struct fuzz_parts *p, int part,
                     uint64_t *x)
{
    static const char *const words[] = {"file",
                                        "split",
                                        "train",
                                        "val",
                                        "test",
                                        "NA",
                                        "age",
                                        "gender",
                                        "female",
                                        "male",
                                        "a.png",
                                        "b.png",
                                        "gender=female",
                                        "age=",
                                        "=",
                                        "\"a\"\"b\"",
                                        "\"",
                                        "\"\"",
                                        "\xef\xbb\xbf",
                                        ",",
                                        "\n",
                                        "\r\n",
                                        ",,,,,,,,",
                                        "file,split,age,gender\n",
                                        "a.png,train,24,female\n",
                                        "a.png,test,,NA\n",
                                        NULL};
    return fuzz_text_mutate(bytes, size, most, x, words);
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
