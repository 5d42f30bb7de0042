/**
 * Packed files among the bombs. The packed form of a mebibyte of zeros is made once and repeated:
 * zlib ends it at a whole byte (Z_FULL_FLUSH), so that gigabytes of zeros are made at once.
 */
#include "hostile/bombs.h"

#include "base/bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { PIECE = 1 << 20, NPY_HEADER = 128 };

/** Pack bytes as raw deflate; `last` ends the stream. */
static void deflate_to(qat_writer *w, const void *bytes, size_t count, int last)
{
    z_stream z = {0};
    size_t const room = count + 1024;
    uint8_t *out = malloc(room);
    if (!out || deflateInit2(&z, 9, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY) != Z_OK)
        exit(3);
    z.next_in = (Bytef *)(uintptr_t)bytes;
    z.avail_in = (uInt)count;
    z.next_out = out;
    z.avail_out = (uInt)room;
    deflate(&z, last ? Z_FINISH : Z_FULL_FLUSH);
    qat_write_bytes(w, out, room - z.avail_out);
    deflateEnd(&z);
    free(out);
}

/** What was packed. */
typedef struct packed {
    qat_writer bytes;
    uint32_t crc;
    uint64_t size;
} packed;

/** `start`, then so many pieces of a text that is repeated. */
static packed pack_text(const void *start, size_t count, int pieces, const void *text,
                        size_t length)
{
    packed p = {.crc = (uint32_t)crc32_z(0, start, count),
                .size = count + (uint64_t)pieces * PIECE};
    uint8_t *bytes = malloc(PIECE);
    qat_writer piece = {0};
    for (size_t i = 0; i < PIECE; i++)
        bytes[i] = ((const uint8_t *)text)[i % length];
    uint32_t const of_piece = (uint32_t)crc32_z(0, bytes, PIECE);
    deflate_to(&piece, bytes, PIECE, 0);
    deflate_to(&p.bytes, start, count, 0);
    for (int i = 0; i < pieces; i++) {
        qat_write_bytes(&p.bytes, piece.bytes, piece.count);
        p.crc = (uint32_t)crc32_combine(p.crc, of_piece, PIECE);
    }
    deflate_to(&p.bytes, "", 0, 1);
    qat_writer_free(&piece);
    free(bytes);
    return p;
}

/** `start`, then so many pieces of zeros. */
static packed pack(const void *start, size_t count, int pieces)
{
    return pack_text(start, count, pieces, "", 1);
}

/** Write a .gz. said: the size that its end gives. */
static void gzip(const char *dir, const char *name, const packed *p, uint64_t said)
{
    qat_writer w = {0};
    qat_write_bytes(&w, "\x1f\x8b\x08\0\0\0\0\0\0\x03", 10);
    qat_write_bytes(&w, p->bytes.bytes, p->bytes.count);
    qat_write_u32(&w, p->crc);
    qat_write_u32(&w, (uint32_t)said);
    bomb_write(dir, name, w.bytes, w.count);
    qat_writer_free(&w);
}

/* ------------------------------------------------------------------ IDX */

static void put_big(uint8_t *to, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(v >> (24 - 8 * i));
}

/** Images of 1024 x 1024, one a piece. said_images, said_size: what header and end of file say. */
static void idx_images(const char *dir, const char *name, int images, uint32_t said_images,
                       uint64_t said_size)
{
    uint8_t header[16];
    uint32_t const numbers[] = {0x803, said_images, 1024, 1024};
    for (int i = 0; i < 4; i++)
        put_big(header + 4 * i, numbers[i]);
    packed p = pack(header, sizeof header, images);
    gzip(dir, name, &p, said_size ? said_size : p.size);
    qat_writer_free(&p.bytes);
}

static void idx_labels(const char *dir, const char *name, uint32_t images)
{
    uint8_t *file = calloc(8 + images, 1);
    put_big(file, 0x801);
    put_big(file + 4, images);
    packed p = pack(file, 8 + images, 0);
    gzip(dir, name, &p, p.size);
    qat_writer_free(&p.bytes);
    free(file);
}

/* ------------------------------------------------------------------ NumPy */

static void npy_header(uint8_t header[NPY_HEADER], const char *type, const char *shape)
{
    char text[NPY_HEADER];
    snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", type,
             shape);
    memcpy(header, "\x93NUMPY\x01\0", 8);
    header[8] = NPY_HEADER - 10;
    header[9] = 0;
    memset(header + 10, ' ', NPY_HEADER - 10);
    memcpy(header + 10, text, strlen(text));
    header[NPY_HEADER - 1] = '\n';
}

/** The directory's record of an entry, or, without an offset, the one before its bytes. */
static void zip_record(qat_writer *w, const packed *p, const char *name, const uint32_t *offset)
{
    uint16_t const version = 20, deflated = 8;
    qat_write_u32(w, offset ? 0x02014b50 : 0x04034b50);
    if (offset)
        qat_write_u16(w, version);
    qat_write_u16(w, version);
    qat_write_u16(w, 0);
    qat_write_u16(w, deflated);
    qat_write_u32(w, 0x00210000); /* 1980-01-01 */
    qat_write_u32(w, p->crc);
    qat_write_u32(w, (uint32_t)p->bytes.count);
    qat_write_u32(w, (uint32_t)p->size);
    qat_write_u16(w, (uint16_t)strlen(name));
    qat_write_u16(w, 0);
    if (offset) {
        qat_write_u16(w, 0);
        qat_write_u16(w, 0);
        qat_write_u16(w, 0);
        qat_write_u32(w, 0);
        qat_write_u32(w, *offset);
    }
    qat_write_bytes(w, name, strlen(name));
}

/** Append the directory, and the record that ends an archive. */
static void zip_end(qat_writer *w, const qat_writer *directory, int entries)
{
    uint32_t const start = (uint32_t)w->count;
    qat_write_bytes(w, directory->bytes, directory->count);
    qat_write_u32(w, 0x06054b50);
    qat_write_u32(w, 0);
    qat_write_u16(w, (uint16_t)entries);
    qat_write_u16(w, (uint16_t)entries);
    qat_write_u32(w, (uint32_t)directory->count);
    qat_write_u32(w, start);
    qat_write_u16(w, 0);
}

/** `entries` arrays of a gibibyte each. */
static void npz(const char *dir, const char *name, int entries)
{
    uint8_t header[NPY_HEADER];
    qat_writer w = {0}, directory = {0};
    char entry[32];
    npy_header(header, "<f4", "1024, 262144");
    packed p = pack(header, sizeof header, 1024);
    for (int i = 0; i < entries; i++) {
        uint32_t const offset = (uint32_t)w.count;
        snprintf(entry, sizeof entry, "layer%d/weights.npy", i);
        zip_record(&w, &p, entry, NULL);
        qat_write_bytes(&w, p.bytes.bytes, p.bytes.count);
        zip_record(&directory, &p, entry, &offset);
    }
    zip_end(&w, &directory, entries);
    bomb_write(dir, name, w.bytes, w.count);
    qat_writer_free(&w);
    qat_writer_free(&directory);
    qat_writer_free(&p.bytes);
}

/** One array of a few bytes, of which the directory says that it has a byte more than 2 GiB. */
static void npz_large(const char *dir, const char *name)
{
    uint8_t header[NPY_HEADER];
    npy_header(header, "<f4", "1");
    packed p = pack(header, sizeof header, 0);
    p.size = (UINT64_C(1) << 31) + 1;
    qat_writer w = {0}, directory = {0};
    uint32_t const offset = 0;
    zip_record(&w, &p, "a.npy", NULL);
    qat_write_bytes(&w, p.bytes.bytes, p.bytes.count);
    zip_record(&directory, &p, "a.npy", &offset);
    zip_end(&w, &directory, 1);
    bomb_write(dir, name, w.bytes, w.count);
    qat_writer_free(&w);
    qat_writer_free(&directory);
    qat_writer_free(&p.bytes);
}

static void npy_gz(const char *dir, const char *name, const char *type, const char *shape,
                   int pieces)
{
    uint8_t header[NPY_HEADER];
    npy_header(header, type, shape);
    packed p = pack(header, sizeof header, pieces);
    gzip(dir, name, &p, p.size);
    qat_writer_free(&p.bytes);
}

/* ------------------------------------------------------------------ COCO */

/** Annotations of so many MiB; `text` has a power of two of bytes. said: the size that its end
 * gives. */
static void coco(const char *dir, const char *name, int pieces, const char *text, uint64_t said)
{
    static const char start[] = "{\"images\": [";
    packed p = pack_text(start, sizeof start - 1, pieces, text, strlen(text));
    gzip(dir, name, &p, said ? said : p.size);
    qat_writer_free(&p.bytes);
}

void bomb_archives(const char *dir)
{
    npz(dir, "weights.npz", 6);
    npz_large(dir, "large.npz");
    idx_images(dir, "idx/train-images-idx3-ubyte.gz", 3072, 3072, 0);
    idx_labels(dir, "idx/train-labels-idx1-ubyte.gz", 3072);
    idx_images(dir, "longer/train-images-idx3-ubyte.gz", 3072, 4, 0);
    idx_labels(dir, "longer/train-labels-idx1-ubyte.gz", 4);
    idx_images(dir, "lying/train-images-idx3-ubyte.gz", 3072, 4, 16 + 4 * PIECE);
    idx_labels(dir, "lying/train-labels-idx1-ubyte.gz", 4);
    npy_gz(dir, "npy/train_x.npy.gz", "|u1", "3072, 1024, 1024, 1", 3072);
    npy_gz(dir, "npy/train_y.npy.gz", "|u1", "1048576", 1);
    npy_gz(dir, "short/train_x.npy.gz", "|u1", "4, 512, 512, 1", 3072);
    npy_gz(dir, "short/train_y.npy.gz", "|u1", "1048576", 1);
    coco(dir, "coco/instances_train.json.gz", 1000, "{}, ", 0);
    coco(dir, "coco/instances_val.json.gz", 1000, "    ", 0);
    coco(dir, "coco/lying.json.gz", 3072, "    ", 100);
    packed p = pack("", 0, 3072);
    gzip(dir, "cifar/data_batch_1.bin.gz", &p, p.size);
    gzip(dir, "list.txt.gz", &p, p.size);
    gzip(dir, "small.txt.gz", &p, 100);
    qat_writer_free(&p.bytes);
}
