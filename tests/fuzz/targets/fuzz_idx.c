/**
 * Fuzz target: IDX files and CIFAR-10's binary files, plain, packed or broken as gzip.
 *
 * Mode 0: IDX; the parts are labels, nothing, images. Mode 1: CIFAR-10; class names, the second
 * file, the first file. Options: bit 0 the test split, bit 1 a limit, bit 2 a number of classes,
 * bit 3 another size, bit 4 the last part is a gzip file as it is, bit 5 it is packed first, bit 6
 * the same for the one before.
 */
#include "fuzz/fuzz.h"
#include "fuzz/fuzz_data.h"
#include "fuzz/fuzz_files.h"
#include "fuzz/fuzz_parts.h"
#include "fuzz/mutations/text_mutate.h"

#include <stdio.h>
#include <string.h>

enum { SMALL, MIDDLE, LARGE, PARTS };
enum { MODE_IDX, MODE_CIFAR, MODES };
enum { TEST = 1, LIMIT = 2, CLASSES = 4, RESIZE = 8, GZIP = 16, PACKED = 32, GZIP_SMALL = 64 };
enum { RECORD = 3073 };

/** One file: plain, packed here, or a gzip file as it is. */
static void put(const char *name, const struct fuzz_parts *p, int part, int gzip)
{
    char path[FUZZ_PATH_MAX], packed[64];
    snprintf(packed, sizeof packed, "%s.gz", name);
    fuzz_remove(name);
    fuzz_remove(packed);
    if (gzip & GZIP)
        fuzz_file(path, packed, p->at[part], p->size[part]);
    else if (gzip & PACKED)
        fuzz_file_packed(path, packed, p->at[part], p->size[part]);
    else
        fuzz_file(path, name, p->at[part], p->size[part]);
}

static void put_idx(const struct fuzz_parts *p)
{
    bool const test = p->options & TEST;
    put(test ? "t10k-images-idx3-ubyte" : "train-images-idx3-ubyte", p, LARGE, p->options);
    put(test ? "t10k-labels-idx1-ubyte" : "train-labels-idx1-ubyte", p, SMALL,
        p->options & GZIP_SMALL ? GZIP : 0);
}

static void put_cifar(const struct fuzz_parts *p)
{
    put(p->options & TEST ? "test_batch.bin" : "data_batch_1.bin", p, LARGE, p->options);
    fuzz_remove("data_batch_2.bin");
    fuzz_remove("data_batch_2.bin.gz");
    if (p->size[MIDDLE])
        put("data_batch_2.bin", p, MIDDLE, p->options & GZIP_SMALL ? GZIP : 0);
    fuzz_remove("batches.meta.txt");
    if (p->size[SMALL])
        put("batches.meta.txt", p, SMALL, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_parts p;
    fuzz_parts_read(&p, data, size, PARTS);
    bool const cifar = p.mode % MODES == MODE_CIFAR;
    int const limit = p.options & LIMIT ? 1 : 0;
    qat_dataset_options const o = {.kind = cifar ? "cifar10" : "idx",
                                   .path = fuzz_folder(),
                                   .train_count = limit,
                                   .test_count = limit,
                                   .classes = p.options & CLASSES ? 10 : 0,
                                   .height = p.options & RESIZE ? 7 : 0};
    (cifar ? put_cifar : put_idx)(&p);
    fuzz_dataset(&o, p.options & TEST ? QAT_SPLIT_TEST : QAT_SPLIT_TRAIN, size);
    return 0;
}

/* ------------------------------------------------------------------ mutations */

static void put_big_endian(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> (24 - 8 * i));
}

static uint32_t get_big_endian(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/**
 * Change a field of an IDX header to another number, or, mostly, to the number that fits the bytes.
 */
static size_t mutate_idx(uint8_t *bytes, size_t size, size_t most, int part, uint64_t *x)
{
    size_t const header = part == LARGE ? 16 : 8;
    if (size < header || fuzz_below(x, 4) == 0)
        return LLVMFuzzerMutate(bytes, size, most);
    uint8_t *field = bytes + 4 * fuzz_below(x, header / 4);
    if (fuzz_below(x, 3))
        put_big_endian(field, fuzz_number(x, get_big_endian(field)));
    if (fuzz_below(x, 2) && part == SMALL)
        put_big_endian(bytes + 4, (uint32_t)(size - header));
    if (fuzz_below(x, 2) && part == LARGE && size > header) {
        put_big_endian(bytes + 4, 1);
        put_big_endian(bytes + 8, 1);
        put_big_endian(bytes + 12, (uint32_t)(size - header));
    }
    return size;
}

/** Records: one more, one less, another label. */
static size_t mutate_cifar(uint8_t *bytes, size_t size, size_t most, uint64_t *x)
{
    switch (fuzz_below(x, 4)) {
    case 0:
        return size >= RECORD ? fuzz_replace(bytes, size, most, 0, RECORD, NULL, 0) : size;
    case 1: {
        static const uint8_t record[RECORD] = {3, 1, 2};
        return fuzz_replace(bytes, size, most, 0, 0, record, RECORD);
    }
    case 2:
        if (size)
            bytes[fuzz_below(x, 1 + size / RECORD) * RECORD % size] = (uint8_t)fuzz_below(x, 12);
        return size;
    default:
        return LLVMFuzzerMutate(bytes, size, most);
    }
}

static size_t mutate(uint8_t *bytes, size_t size, size_t most, const struct fuzz_parts *p, int part,
                     uint64_t *x)
{
    static const char *const words[] = {"cat", "\n", "\r\n", "dog\ncow\n", NULL};
    bool const cifar = p->mode % MODES == MODE_CIFAR;
    bool const as_it_is = part == LARGE ? p->options & GZIP : p->options & GZIP_SMALL;
    if (as_it_is && fuzz_below(x, 8))
        return LLVMFuzzerMutate(bytes, size, most);
    if (!cifar)
        return mutate_idx(bytes, size, most, part, x);
    return part == SMALL ? fuzz_text_mutate(bytes, size, most, x, words)
                         : mutate_cifar(bytes, size, most, x);
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
