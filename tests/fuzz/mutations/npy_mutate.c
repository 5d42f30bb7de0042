#include "fuzz/mutations/npy_mutate.h"

#include "fuzz/fuzz.h"
#include "fuzz/mutations/text_mutate.h"
#include "fuzz/mutations/zip_image.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ .npy */

enum { PREFIX = 10, AT_LENGTH = 8 };

static size_t header_bytes(const uint8_t *bytes)
{
    return bytes[AT_LENGTH] | (size_t)bytes[AT_LENGTH + 1] << 8;
}

/** The header's text changes; its length follows. */
static size_t mutate_header(uint8_t *bytes, size_t size, size_t most, uint64_t *x)
{
    static const char *const words[] = {"'descr'", "'fortran_order'",
                                        "'shape'", "'<f4'",
                                        "'<f8'",   "'|u1'",
                                        "'|i1'",   "'<i2'",
                                        "'<i4'",   "'<i8'",
                                        "'>f4'",   "'|b1'",
                                        "True",    "False",
                                        "()",      "(3,)",
                                        "(2, 3)",  "(1, 2, 3, 4, 5, 6, 7, 8)",
                                        "(0, 3)",  "(4294967296, 4294967296)",
                                        "{",       "}",
                                        ":",       ",",
                                        "\"",      "'",
                                        "\n",      NULL};
    size_t const length = header_bytes(bytes);
    size_t const room = most - (size - length);
    uint8_t *text = fuzz_allocate(sizeof(void *), room + 1);
    memcpy(text, bytes + PREFIX, length);
    size_t const n = fuzz_text_mutate(text, length, room < 65535 ? room : 65535, x, words);
    size = fuzz_replace(bytes, size, most, PREFIX, length, text, n);
    bytes[AT_LENGTH] = (uint8_t)n;
    bytes[AT_LENGTH + 1] = (uint8_t)(n >> 8);
    free(text);
    return size;
}

/** Change one item of four bytes, or add or remove items. */
static size_t mutate_items(uint8_t *bytes, size_t size, size_t most, size_t start, uint64_t *x)
{
    static const uint8_t zeros[64];
    size_t const n = size - start, at = n ? start + (fuzz_below(x, n) & ~(size_t)3) : start;
    switch (fuzz_below(x, 4)) {
    case 0:
        return fuzz_replace(bytes, size, most, at, 0, zeros, 1 + fuzz_below(x, sizeof zeros));
    case 1:
        return fuzz_replace(bytes, size, most, at, fuzz_below(x, size - at + 1), NULL, 0);
    default: {
        uint32_t const item = fuzz_number(x, 3);
        for (size_t i = 0; i < 4 && at + i < size; i++)
            bytes[at + i] = (uint8_t)(item >> (8 * i));
        return size;
    }
    }
}

size_t fuzz_npy_mutate(uint8_t *bytes, size_t size, size_t most, uint64_t *x)
{
    bool const known = size >= PREFIX && !memcmp(bytes, "\x93NUMPY", 6) &&
                       header_bytes(bytes) <= size - PREFIX && size <= most;
    if (!known || fuzz_below(x, 10) == 0)
        return LLVMFuzzerMutate(bytes, size, most);
    return fuzz_below(x, 3) ? mutate_header(bytes, size, most, x)
                            : mutate_items(bytes, size, most, PREFIX + header_bytes(bytes), x);
}

/* ------------------------------------------------------------------ .npz */

static const char *const names[] = {"conv1/weights.npy",
                                    "conv1/bias.npy",
                                    "bn1/gamma.npy",
                                    "bn1/beta.npy",
                                    "bn1/ema_mean.npy",
                                    "bn1/ema_variance.npy",
                                    "bn1/ema_steps.npy",
                                    "fc/weights.npy",
                                    "conv1.weight.npy",
                                    "conv1.bias.npy",
                                    "bn1.weight.npy",
                                    "bn1.bias.npy",
                                    "bn1.running_mean.npy",
                                    "bn1.running_var.npy",
                                    "bn1.num_batches_tracked.npy",
                                    "fc.weight.npy",
                                    "fc.bias.npy",
                                    "dw.weight.npy",
                                    ".npy",
                                    "module.",
                                    "/",
                                    NULL};

static void mutate_entry(struct zip_image *z, uint64_t *x)
{
    struct zip_entry *e = &z->entries[fuzz_below(x, (size_t)z->n)];
    const struct zip_entry *other = &z->entries[fuzz_below(x, (size_t)z->n)];
    switch (fuzz_below(x, 9)) {
    case 0:
        e->name_bytes = fuzz_text_mutate((uint8_t *)e->name, e->name_bytes, ZIP_NAME - 1, x, names);
        break;
    case 1: {
        struct zip_entry *copy = zip_image_add(z, "copy.npy", other->bytes, other->size);
        if (copy && fuzz_below(x, 2))
            e->packed = !e->packed;
        break;
    }
    case 2: {
        struct zip_entry const gone = *e;
        *e = z->entries[--z->n];
        free(gone.bytes);
        break;
    }
    case 3:
        memmove(e->bytes, other->bytes, other->size);
        e->size = other->size;
        break;
    case 4:
        e->stated = fuzz_number(x, (uint32_t)e->size);
        break;
    default:
        e->size = fuzz_npy_mutate(e->bytes, e->size, ZIP_BYTES, x);
    }
}

size_t fuzz_npz_mutate(uint8_t *bytes, size_t size, size_t most, uint64_t *x)
{
    struct zip_image z;
    size_t made = 0;
    if (zip_image_read(&z, bytes, size) && fuzz_below(x, 6)) {
        mutate_entry(&z, x);
        made = zip_image_write(&z, bytes, most);
    }
    zip_image_free(&z);
    return made ? made : LLVMFuzzerMutate(bytes, size, most);
}

size_t fuzz_init_map_mutate(uint8_t *bytes, size_t size, size_t most, uint64_t *x)
{
    static const char *const words[] = {"conv1:conv1", "bn1:bn2", "module.:", ":", ",", "dw", NULL};
    return fuzz_text_mutate(bytes, size, most, x, words);
}
