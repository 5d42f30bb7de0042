/**
 * BMP: 1, 2, 4 and 8 bits with a palette, 16, 24 and 32 bits, bit fields, either order of rows, the
 * headers of Windows and OS/2. Run-length coding is refused.
 */
#include "datasets/pictures/picture.h"

#include "base/bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FILE_HEADER = 14,
    OS2_HEADER = 12,
    WINDOWS_HEADER = 40,
    MASKS_INSIDE = 52, /* headers from this size on contain the masks */
    LARGEST_HEADER = 124,
    RGB = 0, /* kinds of compression */
    BIT_FIELDS = 3,
    ALPHA_BIT_FIELDS = 6,
    MAX_PALETTE = 256
};

typedef struct mask {
    uint32_t bits;
    int shift, width; /* of its lowest bit; bits */
} mask;

typedef struct bmp {
    const qat_picture_file *file;
    size_t header, pixels, stride; /* bytes: of the header, before the pixels, of a row */
    int64_t height, width;
    bool top_down;
    int bits; /* a pixel */
    uint32_t compression, colours;
    mask masks[3];                   /* red, green, blue; of 16 and 32 bits */
    uint8_t palette[MAX_PALETTE][3]; /* R, G, B */
    int n_palette;
} bmp;

static uint32_t two_at(const bmp *b, size_t at)
{
    const uint8_t *p = b->file->bytes + at;
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static uint32_t four_at(const bmp *b, size_t at)
{
    return two_at(b, at) | two_at(b, at + 2) << 16;
}

static qat_status broken(const bmp *b, const char *what, qat_error *err)
{
    return qat_picture_broken(b->file, "BMP", what, err);
}

/* ------------------------------------------------------------------ headers */

static void read_os2(bmp *b)
{
    b->width = two_at(b, FILE_HEADER + 4);
    b->height = two_at(b, FILE_HEADER + 6);
    b->bits = (int)two_at(b, FILE_HEADER + 10);
}

static void read_windows(bmp *b)
{
    int64_t const height = (int32_t)four_at(b, FILE_HEADER + 8);
    b->width = (int32_t)four_at(b, FILE_HEADER + 4);
    b->top_down = height < 0;
    b->height = height < 0 ? -height : height;
    b->bits = (int)two_at(b, FILE_HEADER + 14);
    b->compression = four_at(b, FILE_HEADER + 16);
    b->colours = four_at(b, FILE_HEADER + 32);
}

static bool has_bit_fields(const bmp *b)
{
    return b->compression == BIT_FIELDS || b->compression == ALPHA_BIT_FIELDS;
}

static qat_status check_coding(const bmp *b, qat_error *err)
{
    static const int depths[] = {1, 2, 4, 8, 16, 24, 32};
    bool known = false;
    for (size_t i = 0; i < sizeof depths / sizeof *depths; i++)
        known |= b->bits == depths[i];
    if (!known)
        return broken(b, "a pixel must have 1, 2, 4, 8, 16, 24 or 32 bits", err);
    if (b->compression != RGB && !has_bit_fields(b))
        return broken(b, "run-length coding and embedded files are not supported", err);
    if (has_bit_fields(b) && b->bits != 16 && b->bits != 32)
        return broken(b, "bit fields are for 16 or 32 bits", err);
    return QAT_OK;
}

static qat_status read_header(bmp *b, qat_error *err)
{
    size_t const count = b->file->count;
    if (count < FILE_HEADER + OS2_HEADER)
        return qat_picture_truncated(b->file, err);
    b->pixels = four_at(b, 10);
    b->header = four_at(b, FILE_HEADER);
    if (b->header != OS2_HEADER && (b->header < WINDOWS_HEADER || b->header > LARGEST_HEADER))
        return broken(b, "unknown size of its header", err);
    if (count < FILE_HEADER + b->header)
        return qat_picture_truncated(b->file, err);
    if (b->header == OS2_HEADER)
        read_os2(b);
    else
        read_windows(b);
    if (b->pixels < FILE_HEADER + b->header)
        return broken(b, "its pixels begin inside the header", err);
    return check_coding(b, err);
}

/* ------------------------------------------------------------------ colours */

/** The bits of a mask must be next to each other. */
static bool set_mask(mask *m, uint32_t bits)
{
    *m = (mask){.bits = bits};
    if (!bits)
        return false;
    while (!(bits >> m->shift & 1))
        m->shift++;
    while (m->shift + m->width < 32 && bits >> (m->shift + m->width) & 1)
        m->width++;
    return m->shift + m->width == 32 || bits >> (m->shift + m->width) == 0;
}

static qat_status read_masks(bmp *b, qat_error *err)
{
    static const uint32_t usual[2][3] = {{0x7c00, 0x3e0, 0x1f}, {0xff0000, 0xff00, 0xff}};
    /* behind a header of 40 bytes, or at the same place of a larger one */
    size_t const at = FILE_HEADER + WINDOWS_HEADER;
    if (has_bit_fields(b) && (b->file->count < at + 12 || b->pixels < at + 12))
        return broken(b, "no room for the masks of its bit fields", err);
    for (size_t i = 0; i < 3; i++)
        if (!set_mask(&b->masks[i],
                      has_bit_fields(b) ? four_at(b, at + 4 * i) : usual[b->bits == 32][i]))
            return broken(b, "the mask of a bit field is 0 or has gaps", err);
    return QAT_OK;
}

/** The palette lies behind the header; blue comes first. */
static qat_status read_palette(bmp *b, qat_error *err)
{
    size_t const start = FILE_HEADER + b->header, entry = b->header == OS2_HEADER ? 3 : 4;
    size_t const most = (size_t)1 << b->bits, room = (b->pixels - start) / entry;
    size_t n = b->colours && b->colours < most ? b->colours : most;
    n = n < room ? n : room;
    if (b->file->count < start + n * entry)
        return qat_picture_truncated(b->file, err);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < 3; k++)
            b->palette[i][k] = b->file->bytes[start + i * entry + 2 - k];
    b->n_palette = (int)n;
    return QAT_OK;
}

static qat_status read_colours(bmp *b, qat_error *err)
{
    if (b->bits == 16 || b->bits == 32)
        return read_masks(b, err);
    return b->bits <= 8 ? read_palette(b, err) : QAT_OK;
}

/* ------------------------------------------------------------------ pixels */

/** Returns false if a pixel is not in the palette. */
static bool read_indices(const bmp *b, const uint8_t *row, uint8_t *rgb)
{
    int const per_byte = 8 / b->bits, most = (1 << b->bits) - 1;
    for (int64_t x = 0; x < b->width; x++) {
        int const right = (int)(per_byte - 1 - x % per_byte) * b->bits;
        int const index = row[x / per_byte] >> right & most;
        if (index >= b->n_palette)
            return false;
        memcpy(rgb + 3 * x, b->palette[index], 3);
    }
    return true;
}

/** 8 bits of a field: the upper ones, or fewer ones repeated. */
static uint8_t field(uint32_t pixel, const mask *m)
{
    uint32_t const v = (pixel & m->bits) >> m->shift;
    if (m->width >= 8)
        return (uint8_t)(v >> (m->width - 8));
    uint32_t filled = v << (8 - m->width);
    for (int have = m->width; have < 8; have *= 2)
        filled |= filled >> have;
    return (uint8_t)filled;
}

static void read_fields(const bmp *b, const uint8_t *row, uint8_t *rgb)
{
    size_t const bytes = (size_t)b->bits / 8;
    for (int64_t x = 0; x < b->width; x++, row += bytes, rgb += 3) {
        uint32_t pixel = 0;
        for (size_t i = 0; i < bytes; i++)
            pixel |= (uint32_t)row[i] << (8 * i);
        for (int k = 0; k < 3; k++)
            rgb[k] = field(pixel, &b->masks[k]);
    }
}

static void read_bgr(const bmp *b, const uint8_t *row, uint8_t *rgb)
{
    for (int64_t x = 0; x < b->width; x++, row += 3, rgb += 3) {
        rgb[0] = row[2];
        rgb[1] = row[1];
        rgb[2] = row[0];
    }
}

static qat_status read_rows(const bmp *b, qat_picture *p, qat_error *err)
{
    for (int64_t y = 0; y < b->height; y++) {
        const uint8_t *row = b->file->bytes + b->pixels + (size_t)y * b->stride;
        int64_t const to = b->top_down ? y : b->height - 1 - y;
        uint8_t *rgb = p->pixels + (size_t)to * (size_t)b->width * 3;
        if (b->bits == 24)
            read_bgr(b, row, rgb);
        else if (b->bits > 8)
            read_fields(b, row, rgb);
        else if (!read_indices(b, row, rgb))
            return broken(b, "a pixel is not in the palette", err);
    }
    return QAT_OK;
}

/** Rows are filled up to four bytes; the last one need not be. */
static int64_t least_bytes(bmp *b)
{
    int64_t const row_bits = b->width * b->bits;
    b->stride = (size_t)((row_bits + 31) / 32 * 4);
    return (int64_t)b->pixels + (b->height - 1) * (int64_t)b->stride + (row_bits + 7) / 8;
}

qat_status qat_picture_read_bmp(qat_picture *picture, const qat_picture_file *file, qat_error *err)
{
    bmp b = {.file = file};
    qat_status st = read_header(&b, err);
    if (!st)
        st = read_colours(&b, err);
    if (!st)
        st = qat_picture_set_size(picture, file, b.height, b.width, err);
    if (!st)
        st = qat_picture_allocate(picture, file, 3, least_bytes(&b), err);
    if (!st)
        st = read_rows(&b, picture, err);
    if (!st)
        qat_picture_set_channels(picture, 3, file->channels);
    return st;
}
