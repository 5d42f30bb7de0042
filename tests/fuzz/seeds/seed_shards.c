/**
 * Writes seeds of fuzz_shards: small archives and TFRecords, with and without an index.
 *
 * usage: seed_shards FOLDER
 */
#include "fuzz/seeds/seed.h"

#include "base/bytes.h"
#include "base/checksums/crc32c.h"
#include "datasets/packed/tar.h"
#include "fuzz/fuzz.h"

#include <stdio.h>
#include <string.h>

static const char ppm[] = "P6\n2 2\n255\nabcdefghijkl";
enum { PPM = sizeof ppm - 1 };

static void put_file(qat_writer *w, const char *name, char type, const void *bytes, size_t n)
{
    uint8_t block[QAT_TAR_BLOCK];
    unsigned sum = 0;
    qat_tar_make_header(block, name, n);
    block[156] = (uint8_t)type;
    memset(block + 148, ' ', 8);
    for (int i = 0; i < QAT_TAR_BLOCK; i++)
        sum += block[i];
    snprintf((char *)block + 148, 8, "%06o", sum);
    qat_write_bytes(w, block, sizeof block);
    qat_write_bytes(w, bytes, n);
    qat_write_align(w, QAT_TAR_BLOCK);
}

static qat_writer tar(void)
{
    static const uint8_t end[2 * QAT_TAR_BLOCK];
    qat_writer w = {0};
    put_file(&w, "0.ppm", '0', ppm, PPM);
    put_file(&w, "0.cls", '0', "1\n", 2);
    put_file(&w, "pax", 'x', "14 path=1.ppm\n", 14);
    put_file(&w, "long", '0', ppm, PPM);
    put_file(&w, "1.json", '0', "{\"label\": 0}", 12);
    put_file(&w, "././@LongLink", 'L', "2.ppm", 6);
    put_file(&w, "cut", '0', ppm, PPM);
    put_file(&w, "2.cls", '0', "0", 1);
    qat_write_bytes(&w, end, sizeof end);
    return w;
}

static void put_bytes(qat_writer *w, int tag, const void *bytes, size_t n)
{
    fuzz_require(n < 128, "a length of one byte");
    qat_write_u8(w, (uint8_t)(tag << 3 | 2));
    qat_write_u8(w, (uint8_t)n);
    qat_write_bytes(w, bytes, n);
}

/** An entry of the features; a list of bytes (1) or of integers (3). */
static void put_entry(qat_writer *w, const char *key, int kind, const void *bytes, size_t n)
{
    qat_writer list = {0}, feature = {0}, entry = {0};
    put_bytes(&list, 1, bytes, n);
    put_bytes(&feature, kind, list.bytes, list.count);
    put_bytes(&entry, 1, key, strlen(key));
    put_bytes(&entry, 2, feature.bytes, feature.count);
    put_bytes(w, 1, entry.bytes, entry.count);
    qat_writer_free(&list);
    qat_writer_free(&feature);
    qat_writer_free(&entry);
}

static void put_record(qat_writer *w, int label)
{
    qat_writer features = {0}, example = {0};
    uint8_t const number = (uint8_t)label;
    put_entry(&features, "image", 1, ppm, PPM);
    put_entry(&features, "label", 3, &number, 1);
    put_entry(&features, "file_name", 1, "a/b.ppm", 7);
    put_bytes(&example, 1, features.bytes, features.count);
    size_t const at = w->count;
    qat_write_u64(w, example.count);
    qat_write_u32(w, qat_masked_crc32c(w->bytes + at, 8));
    qat_write_bytes(w, example.bytes, example.count);
    qat_write_u32(w, qat_masked_crc32c(example.bytes, example.count));
    qat_writer_free(&features);
    qat_writer_free(&example);
}

int main(int argc, char **argv)
{
    qat_writer archive = tar(), records = {0};
    if (argc != 2) {
        fprintf(stderr, "usage: seed_shards FOLDER\n");
        return 2;
    }
    put_record(&records, 1);
    put_record(&records, 0);
    struct seed_part parts[] = {
        seed_text("cat\ndog\n"), seed_text("512 23 1 0.ppm\n"), {archive.bytes, archive.count}};
    static const int options[] = {0, 2, 4, 8 | 16, 8, 32, 1 | 2 | 32};
    char name[32];
    for (int mode = 0; mode < 3; mode++) {
        if (mode)
            parts[2] = (struct seed_part){records.bytes, records.count};
        for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
            snprintf(name, sizeof name, "mode%d-%zu", mode, i);
            seed_parts(argv[1], name, mode, options[i], 3, parts);
        }
    }
    qat_writer_free(&archive);
    qat_writer_free(&records);
    return 0;
}
