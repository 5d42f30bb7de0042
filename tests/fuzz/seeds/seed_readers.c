/**
 * Writes seeds of a target that reads data sets, arrays or recipes.
 *
 * usage: seed_readers TARGET FOLDER
 */
#include "fuzz/mutations/zip_image.h"
#include "fuzz/seeds/seed.h"

#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ .npy and .npz */

enum { NPY_MAX = 4096 };

/** The bytes of a .npy with items 1, 2, ... in their lowest byte; their number. */
static size_t npy(uint8_t bytes[NPY_MAX], const char *type, const char *shape, size_t items,
                  size_t each)
{
    enum { HEADER = 118 };
    memset(bytes, 0, NPY_MAX);
    memcpy(bytes, "\x93NUMPY\x01\x00\x76", 9);
    int const n = snprintf((char *)bytes + 10, HEADER,
                           "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", type, shape);
    memset(bytes + 10 + n, ' ', (size_t)(HEADER - n));
    bytes[10 + HEADER - 1] = '\n';
    for (size_t i = 0; i < items; i++)
        bytes[10 + HEADER + i * each + (type[1] == 'f' ? each - 1 : 0)] = (uint8_t)(1 + i % 60);
    return 10 + HEADER + items * each;
}

static void single_arrays(const char *folder)
{
    static const struct {
        const char *type, *shape;
        size_t items, each;
    } arrays[] = {{"<f4", "2, 3", 6, 4},       {"<f8", "", 1, 8},     {"|u1", "3,", 3, 1},
                  {"|i1", "1, 1, 1, 2", 2, 1}, {"<i2", "0, 4", 0, 2}, {"<i4", "2,", 2, 4},
                  {"<i8", "2, 1", 2, 8},       {">f4", "2, 1", 2, 4}};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        uint8_t bytes[NPY_MAX];
        char name[32];
        snprintf(name, sizeof name, "seed-npy-%zu", i);
        size_t const n =
            npy(bytes, arrays[i].type, arrays[i].shape, arrays[i].items, arrays[i].each);
        seed_parts(folder, name, 0, 0, 2, (struct seed_part[]){{"", 0}, {bytes, n}});
    }
}

static void add(struct zip_image *z, const char *name, const char *type, const char *shape,
                size_t items, size_t each)
{
    uint8_t bytes[NPY_MAX];
    struct zip_entry *e = zip_image_add(z, name, bytes, npy(bytes, type, shape, items, each));
    if (e)
        e->packed = z->n % 2;
}

static void write_archive(const char *folder, const char *name, int options, const char *map,
                          struct zip_image *z)
{
    static uint8_t bytes[1 << 15];
    size_t const n = zip_image_write(z, bytes, sizeof bytes);
    seed_parts(folder, name, 1, options, 2, (struct seed_part[]){seed_text(map), {bytes, n}});
    zip_image_free(z);
}

static void archives(const char *folder)
{
    struct zip_image z = {0};
    add(&z, "conv1/weights.npy", "<f4", "4, 3, 3, 2", 72, 4);
    add(&z, "bn1/gamma.npy", "<f4", "4,", 4, 4);
    add(&z, "bn1/beta.npy", "<f8", "4,", 4, 8);
    add(&z, "bn1/ema_mean.npy", "<f4", "4,", 4, 4);
    add(&z, "fc/weights.npy", "<f4", "3, 64", 192, 4);
    write_archive(folder, "seed-npz-own", 2, "", &z);
    add(&z, "m.conv1.weight.npy", "<f4", "4, 2, 3, 3", 72, 4);
    add(&z, "m.bn1.weight.npy", "<f4", "4,", 4, 4);
    add(&z, "m.bn1.bias.npy", "<f4", "4,", 4, 4);
    add(&z, "m.bn1.running_mean.npy", "<f4", "4,", 4, 4);
    add(&z, "m.bn1.running_var.npy", "<f4", "4,", 4, 4);
    add(&z, "m.bn1.num_batches_tracked.npy", "<i8", "", 1, 8);
    add(&z, "m.dw.weight.npy", "<f4", "4, 1, 3, 3", 36, 4);
    add(&z, "m.fc.weight.npy", "<f4", "3, 64", 192, 4);
    add(&z, "m.bias.bias.npy", "<f4", "3,", 3, 4);
    write_archive(folder, "seed-npz-pytorch", 1, "m.:", &z);
    add(&z, "a.npy", "<i4", "2,", 2, 4);
    write_archive(folder, "seed-npz-integers", 0, "a:b, c:d", &z);
}

static void array_sets(const char *folder)
{
    static const struct {
        const char *type, *shape;
        size_t items, each;
        int options;
    } sets[] = {{"|u1", "4, 3, 5, 1", 60, 1, 8}, {"<f4", "4, 6", 24, 4, 0},
                {"<f8", "4, 2, 3", 24, 8, 1},    {"|i1", "4, 6", 24, 1, 2},
                {"<i2", "4, 6", 24, 2, 32 + 4},  {"<f4", "3, 6", 18, 4, 64}};
    static const char *const labels[] = {"|u1", "<i8", "<i4", "|i1", "<i2", "|u1"};
    static const size_t each[] = {1, 8, 4, 1, 2, 1};
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        uint8_t x[NPY_MAX], y[NPY_MAX];
        char name[32];
        snprintf(name, sizeof name, "seed-set-%zu", i);
        size_t const n = npy(x, sets[i].type, sets[i].shape, sets[i].items, sets[i].each);
        size_t const m = npy(y, labels[i], "4,", 4, each[i]);
        seed_parts(folder, name, 2, sets[i].options, 2, (struct seed_part[]){{y, m}, {x, n}});
    }
}

/* ------------------------------------------------------------------ IDX and CIFAR-10 */

static void idx(const char *folder)
{
    static const uint8_t labels[] = {0, 0, 8, 1, 0, 0, 0, 3, 4, 0, 9};
    static const uint8_t images[] = {0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, 2,  0,  0,
                                     0, 2, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 255};
    static const uint8_t packed[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0x63, 0, 0};
    struct seed_part const parts[] = {{labels, sizeof labels}, {"", 0}, {images, sizeof images}};
    struct seed_part const broken[] = {{labels, sizeof labels}, {"", 0}, {packed, sizeof packed}};
    static const int options[] = {0, 1, 2 + 4, 8, 32, 32 + 1};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        char name[32];
        snprintf(name, sizeof name, "seed-idx-%zu", i);
        seed_parts(folder, name, 0, options[i], 3, parts);
    }
    seed_parts(folder, "seed-idx-gzip", 0, 16, 3, broken);
}

static void cifar(const char *folder)
{
    static uint8_t record[2 * 3073];
    static const char names[] = "a\nb\nc\nd\ne\r\nf\ng\nh\ni\nj\n";
    record[0] = 9;
    record[3073] = 1;
    struct seed_part const two[] = {seed_text(names), {record, 3073}, {record, 3073}};
    struct seed_part const one[] = {seed_text("a\nb\n"), {"", 0}, {record, 2 * 3073}};
    struct seed_part const bare[] = {{"", 0}, {"", 0}, {record, 3073}};
    seed_parts(folder, "seed-cifar-two", 1, 0, 3, two);
    seed_parts(folder, "seed-cifar-labels", 1, 1, 3, one);
    seed_parts(folder, "seed-cifar-packed", 1, 32 + 8, 3, bare);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: seed_readers TARGET FOLDER\n");
        return 2;
    }
    if (strcmp(argv[1], "fuzz_npy") == 0) {
        single_arrays(argv[2]);
        archives(argv[2]);
        array_sets(argv[2]);
    } else if (strcmp(argv[1], "fuzz_idx") == 0) {
        idx(argv[2]);
        cifar(argv[2]);
    } else if (!seed_texts(argv[1], argv[2])) {
        fprintf(stderr, "seed_readers: no target %s\n", argv[1]);
        return 2;
    }
    return 0;
}
