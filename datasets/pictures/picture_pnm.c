/**
 * PNM: PBM, PGM and PPM, plain (P1, P2, P3) and raw (P4, P5, P6). Values are scaled to 0..255:
 * those of maxval 65535 keep their upper byte, all others become round(255 value / maxval).
 */
#include "datasets/pictures/picture.h"

#include <stdlib.h>
#include <string.h>

enum { BITMAP = 1, GREY = 2, COLOUR = 3, RAW = 3 /* P4 is the raw form of P1, and so on */ };

typedef struct pnm {
    const qat_picture_file *file;
    size_t at;
    int kind; /* BITMAP, GREY or COLOUR */
    bool raw;
    int64_t height, width;
    int maxval;
    qat_status status; /* of the first thing that is wrong */
    qat_error *err;
} pnm;

static int64_t fail(pnm *f, const char *what)
{
    if (!f->status)
        f->status = what ? qat_picture_broken(f->file, "PNM", what, f->err)
                         : qat_picture_truncated(f->file, f->err);
    return 0;
}

static bool is_space(int byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

/** Pass white space, and comments up to the end of their lines. */
static void pass_space(pnm *f)
{
    bool comment = false;
    for (; f->at < f->file->count; f->at++) {
        int const byte = f->file->bytes[f->at];
        comment = comment ? byte != '\n' && byte != '\r' : byte == '#';
        if (!comment && !is_space(byte))
            return;
    }
}

/** The next number in decimal digits, at most `most`. */
static int64_t number(pnm *f, int64_t most, const char *what)
{
    int64_t n = 0;
    pass_space(f);
    if (f->at == f->file->count)
        return fail(f, NULL);
    size_t const start = f->at;
    for (; f->at < f->file->count; f->at++) {
        int const digit = f->file->bytes[f->at] - '0';
        if (digit < 0 || digit > 9)
            break;
        n = 10 * n + digit;
        if (n > most)
            return fail(f, what);
    }
    return f->at > start ? n : fail(f, what);
}

/** "P5 width height maxval", then one byte of white space. */
static void read_header(pnm *f)
{
    int const digit = f->file->bytes[1] - '0';
    f->raw = digit > RAW;
    f->kind = f->raw ? digit - RAW : digit;
    f->at = 2;
    f->width = number(f, INT32_MAX, "its width is not a number");
    f->height = f->status ? 0 : number(f, INT32_MAX, "its height is not a number");
    f->maxval = 1;
    if (!f->status && f->kind != BITMAP)
        f->maxval = (int)number(f, UINT16_MAX, "its maxval is not in 1..65535");
    if (!f->status && f->maxval < 1)
        (void)fail(f, "its maxval is not in 1..65535");
    if (!f->status && f->at == f->file->count)
        (void)fail(f, NULL);
    else if (!f->status && !is_space(f->file->bytes[f->at++]))
        (void)fail(f, "no white space after its header");
}

/** The bytes of a row, at least. In the plain form a number takes a digit and a space. */
static int64_t row_bytes(const pnm *f)
{
    int64_t const values = f->width * (f->kind == COLOUR ? 3 : 1);
    if (f->kind == BITMAP)
        return f->raw ? (values + 7) / 8 : values;
    return f->raw && f->maxval <= UINT8_MAX ? values : 2 * values;
}

/** The bytes of a complete file, at least; the last number of a plain one needs no space. */
static int64_t least_bytes(const pnm *f)
{
    return (int64_t)f->at + row_bytes(f) * f->height - (f->raw || f->kind == BITMAP ? 0 : 1);
}

/* ------------------------------------------------------------------ values */

static uint8_t scaled(int64_t value, int maxval)
{
    if (maxval == UINT8_MAX)
        return (uint8_t)value;
    if (maxval == UINT16_MAX)
        return (uint8_t)(value >> 8);
    return (uint8_t)((2 * UINT8_MAX * value + maxval) / (2 * maxval));
}

static void read_plain(pnm *f, uint8_t *to, size_t n)
{
    for (size_t i = 0; i < n && !f->status; i++)
        to[i] = scaled(number(f, f->maxval, "a value is not in 0..maxval"), f->maxval);
}

/** Digits of a plain bitmap need no space between them; 1 is black. */
static void read_plain_bits(pnm *f, uint8_t *to, size_t n)
{
    for (size_t i = 0; i < n && !f->status; i++) {
        pass_space(f);
        int const byte = f->at < f->file->count ? f->file->bytes[f->at++] : -1;
        to[i] = byte == '0' ? UINT8_MAX : 0;
        if (byte != '0' && byte != '1')
            (void)fail(f, byte < 0 ? NULL : "a pixel is neither 0 nor 1");
    }
}

static void read_raw_bits(const pnm *f, uint8_t *to)
{
    const uint8_t *row = f->file->bytes + f->at;
    for (int64_t y = 0; y < f->height; y++, row += (f->width + 7) / 8)
        for (int64_t x = 0; x < f->width; x++)
            *to++ = row[x / 8] >> (7 - x % 8) & 1 ? 0 : UINT8_MAX;
}

static void read_raw(pnm *f, uint8_t *to, size_t n)
{
    const uint8_t *at = f->file->bytes + f->at;
    bool const wide = f->maxval > UINT8_MAX;
    for (size_t i = 0; i < n && !f->status; i++) {
        int const value = wide ? at[2 * i] << 8 | at[2 * i + 1] : at[i];
        to[i] = scaled(value, f->maxval);
        if (value > f->maxval)
            (void)fail(f, "a value is not in 0..maxval");
    }
}

static void read_values(pnm *f, uint8_t *to, size_t n)
{
    if (f->kind == BITMAP && f->raw)
        read_raw_bits(f, to);
    else if (f->kind == BITMAP)
        read_plain_bits(f, to, n);
    else if (f->raw)
        read_raw(f, to, n);
    else
        read_plain(f, to, n);
}

qat_status qat_picture_read_pnm(qat_picture *picture, const qat_picture_file *file, qat_error *err)
{
    pnm f = {.file = file, .err = err};
    read_header(&f);
    if (f.status)
        return f.status;
    int const channels = f.kind == COLOUR ? 3 : 1;
    qat_status st = qat_picture_set_size(picture, file, f.height, f.width, err);
    if (!st)
        st = qat_picture_allocate(picture, file, channels, least_bytes(&f), err);
    if (st)
        return st;
    read_values(&f, picture->pixels, (size_t)f.height * (size_t)f.width * (size_t)channels);
    if (!f.status)
        qat_picture_set_channels(picture, channels, file->channels);
    return f.status;
}
