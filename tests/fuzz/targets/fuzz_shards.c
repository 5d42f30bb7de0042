/**
 * Fuzz target: shards of pictures, tar archives and TFRecords, and their indices.
 *
 * Parts: classes.txt, the lines of the index, the shard. Mode 0: tar; 1: TFRecords; 2: the same,
 * packed by gzip. Options: bit 0 the test split, bit 1 data.split, bit 2 a limit, bit 3 there is an
 * index, bit 4 whose head fits it, bit 5 classes.txt is there.
 */
#include "fuzz/fuzz.h"
#include "fuzz/fuzz_data.h"
#include "fuzz/fuzz_files.h"
#include "fuzz/fuzz_parts.h"
#include "fuzz/mutations/text_mutate.h"

#include "base/bytes.h"
#include "base/checksums/crc32c.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { CLASSES, INDEX, SHARD, PARTS };
enum { MODE_TAR, MODE_TFRECORD, MODE_GZIP, MODES };
enum { BLOCK = 512, HEAD = 12, TAIL = 4 };

static const char *const names[] = {"train.tar", "train.tfrecord", "train.tfrecord.gz"};

/** The index, with the head that belongs to it or with whatever there is. */
static void write_index(const struct fuzz_parts *p, const char *name)
{
    char file[64], path[FUZZ_PATH_MAX];
    qat_writer w = {0};
    size_t lines = 0;
    for (size_t i = 0; i < p->size[INDEX]; i++)
        lines += p->at[INDEX][i] == '\n';
    if (p->options & 16)
        qat_write_text(&w, "qat-index 1 %zu %zu %08" PRIx32 "\n", p->size[SHARD], lines,
                       (uint32_t)crc32_z(0, p->at[INDEX], p->size[INDEX]));
    qat_write_bytes(&w, p->at[INDEX], p->size[INDEX]);
    snprintf(file, sizeof file, "%s.idx", name);
    fuzz_require(!w.failed, "memory");
    fuzz_file(path, file, w.bytes, w.count);
    qat_writer_free(&w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_parts p;
    char path[FUZZ_PATH_MAX], index[64];
    fuzz_parts_read(&p, data, size, PARTS);
    int const mode = p.mode % MODES, limit = p.options & 4 ? 2 : 0;
    const char *name = names[mode];
    qat_dataset_options const o = {.kind = mode == MODE_TAR ? "tar" : "tfrecord",
                                   .path = fuzz_folder(),
                                   .train_count = limit,
                                   .test_count = limit,
                                   .height = 6,
                                   .split = p.options & 2 ? 0.5 : 0};
    if (mode == MODE_GZIP)
        fuzz_file_packed(path, name, p.at[SHARD], p.size[SHARD]);
    else
        fuzz_file(path, name, p.at[SHARD], p.size[SHARD]);
    if (p.options & 8)
        write_index(&p, name);
    if (p.options & 32)
        fuzz_file(path, "classes.txt", p.at[CLASSES], p.size[CLASSES]);
    fuzz_dataset(&o, p.options & 1 ? QAT_SPLIT_TEST : QAT_SPLIT_TRAIN, size);
    fuzz_remove(name);
    snprintf(index, sizeof index, "%s.idx", name);
    fuzz_remove(index);
    fuzz_remove("classes.txt");
    return 0;
}

/* ------------------------------------------------------------------ sums that are right again */

static void mend_tar(uint8_t *bytes, size_t size)
{
    for (size_t at = 0; at + BLOCK <= size; at += BLOCK) {
        uint8_t *block = bytes + at;
        unsigned sum = 0;
        char text[8];
        if (memcmp(block + 257, "ustar", 5) != 0)
            continue;
        memset(block + 148, ' ', 8);
        for (int i = 0; i < BLOCK; i++)
            sum += block[i];
        snprintf(text, sizeof text, "%06o", sum);
        memcpy(block + 148, text, 7);
    }
}

static void put_u32(uint8_t *to, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(v >> (8 * i));
}

static void mend_records(uint8_t *bytes, size_t size)
{
    size_t at = 0;
    while (size - at >= HEAD + TAIL) {
        qat_reader r = qat_reader_of(bytes + at, HEAD);
        uint64_t const length = qat_read_u64(&r);
        put_u32(bytes + at + 8, qat_masked_crc32c(bytes + at, 8));
        if (length > size - at - HEAD - TAIL)
            return;
        put_u32(bytes + at + HEAD + length, qat_masked_crc32c(bytes + at + HEAD, (size_t)length));
        at += HEAD + (size_t)length + TAIL;
    }
}

static size_t mutate(uint8_t *bytes, size_t size, size_t most, const struct fuzz_parts *p, int part,
                     uint64_t *x)
{
    static const char *const lines[] = {
        "512 1213 0 1.ppm\n",   "0",         "512", "65535", "65536",
        "4294967295",           " ",         "\n",  "-1",    "1e3",
        "99999999999999999999", "0 0 0 x\n", NULL};
    static const char *const tars[] = {
        "ustar", ".cls", ".json", ".ppm", "{\"label\": 1}", "12 path=a.b\n", "11 size=59\n",
        "x",     "L",    "\x80",  NULL};
    static const char *const records[] = {
        "image/encoded", "image/class/label", "image", "label", "file_name", "\x0a", "\x12",
        "\x1a",          "\xff\xff\x7f",      NULL};
    bool const tar = p->mode % MODES == MODE_TAR;
    size_t const n = fuzz_text_mutate(bytes, size, most, x,
                                      part != SHARD ? lines
                                      : tar         ? tars
                                                    : records);
    if (part == SHARD && fuzz_below(x, 8))
        (tar ? mend_tar : mend_records)(bytes, n);
    return n;
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
