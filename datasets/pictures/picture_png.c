/**
 * PNG, by libpng. Every colour type and depth becomes 8-bit grey or RGB: 1, 2 and 4 bits of grey
 * are scaled to 0..255, 16 bits keep their upper byte, a palette is looked up, alpha is dropped.
 * Ancillary chunks (texts, colour profiles) are passed over without unpacking them.
 */
#include "datasets/pictures/picture.h"

#include <png.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

/** The most that deflate can pack into one byte. */
enum { DEFLATE_MOST = 1032 };

typedef struct reader {
    const qat_picture_file *file;
    size_t at;
    bool mask;           /* the stored numbers are wanted */
    bool cut, no_memory; /* more bytes were needed than there are; an allocation failed */
    char message[128];   /* libpng's, after an error */
    int channels;        /* of the stored picture, 1 or 3 */
} reader;

static void read_bytes(png_structp png, png_bytep to, size_t n)
{
    reader *r = png_get_io_ptr(png);
    if (n > r->file->count - r->at) {
        r->cut = true;
        png_error(png, "truncated");
    }
    memcpy(to, r->file->bytes + r->at, n);
    r->at += n;
}

static void keep_error(png_structp png, png_const_charp text)
{
    reader *r = png_get_error_ptr(png);
    (void)strncpy(r->message, text, sizeof r->message - 1);
    png_longjmp(png, 1);
}

static void ignore_warning(png_structp png, png_const_charp text)
{
    (void)png;
    (void)text;
}

static png_voidp allocate(png_structp png, png_alloc_size_t n)
{
    reader *r = png_get_mem_ptr(png);
    void *bytes = malloc(n);
    r->no_memory |= !bytes;
    return bytes;
}

static void release(png_structp png, png_voidp bytes)
{
    (void)png;
    free(bytes);
}

/** Ask for 8 bits of grey or RGB. Returns the number of passes over the picture. */
static int set_transforms(png_structp png, png_infop info, reader *r)
{
    int const type = png_get_color_type(png, info), depth = png_get_bit_depth(png, info);
    if (r->mask)
        png_set_packing(png);
    else if (type == PNG_COLOR_TYPE_PALETTE)
        png_set_palette_to_rgb(png);
    else if (depth < 8)
        png_set_expand_gray_1_2_4_to_8(png);
    if (depth == 16)
        png_set_strip_16(png);
    png_set_strip_alpha(png);
    int const passes = png_set_interlace_handling(png);
    png_read_update_info(png, info);
    if (png_get_rowbytes(png, info) != (size_t)png_get_image_width(png, info) * (size_t)r->channels)
        png_error(png, "unexpected size of a row");
    return passes;
}

/** The bytes of a complete file, at least: each row has a byte of its own before its pixels. */
static int64_t least_bytes(png_structp png, png_infop info)
{
    int64_t const row = 1 + (int64_t)png_get_rowbytes(png, info);
    return row * (int64_t)png_get_image_height(png, info) / DEFLATE_MOST;
}

/** The pixels of a mask are numbers of at most 8 bits. */
static qat_status check_mask(png_structp png, png_infop info, const reader *r, qat_error *err)
{
    int const type = png_get_color_type(png, info), depth = png_get_bit_depth(png, info);
    if (!r->mask || ((type == PNG_COLOR_TYPE_PALETTE || type == PNG_COLOR_TYPE_GRAY) && depth <= 8))
        return QAT_OK;
    return qat_fail(err, QAT_ERR_FORMAT,
                    "%s: a PNG of %d-bit %s; a mask has the indices of a palette, or grey of at "
                    "most 8 bits",
                    r->file->path, depth,
                    type & PNG_COLOR_MASK_COLOR   ? "colours"
                    : type & PNG_COLOR_MASK_ALPHA ? "grey with alpha"
                                                  : "grey");
}

/** Leaves by longjmp if anything is wrong with the file. Returns an error of our own. */
static qat_status read_picture(png_structp png, png_infop info, reader *r, qat_picture *p,
                               qat_error *err)
{
    png_read_info(png, info);
    bool const coloured = png_get_color_type(png, info) & PNG_COLOR_MASK_COLOR;
    r->channels = coloured && !r->mask ? 3 : 1;
    qat_status st = check_mask(png, info, r, err);
    if (!st)
        st = qat_picture_set_size(p, r->file, png_get_image_height(png, info),
                                  png_get_image_width(png, info), err);
    if (!st)
        st = qat_picture_allocate(p, r->file, r->channels, least_bytes(png, info), err);
    if (st)
        return st;
    size_t const stride = (size_t)p->width * (size_t)r->channels;
    for (int pass = set_transforms(png, info, r); pass > 0; pass--)
        for (int y = 0; y < p->height; y++)
            png_read_row(png, p->pixels + (size_t)y * stride, NULL);
    png_read_end(png, NULL);
    return QAT_OK;
}

/** Limits: chunks that no picture needs are neither kept nor unpacked. */
static void set_limits(png_structp png)
{
    png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX); /* our own check follows */
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
}

static qat_status fail(const reader *r, qat_error *err)
{
    if (r->no_memory)
        return qat_out_of_memory(err, r->file->path);
    return r->cut ? qat_picture_truncated(r->file, err)
                  : qat_picture_broken(r->file, "PNG", r->message, err);
}

/** The frame to which libpng's errors return; nothing in it changes after setjmp. */
static qat_status guarded(png_structp png, png_infop info, reader *r, qat_picture *p,
                          qat_error *err)
{
    if (setjmp(png_jmpbuf(png)))
        return fail(r, err);
    png_set_read_fn(png, r, read_bytes);
    set_limits(png);
    return read_picture(png, info, r, p, err);
}

static qat_status read_png(qat_picture *picture, reader *r, qat_error *err)
{
    png_structp png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, r, keep_error, ignore_warning,
                                               r, allocate, release);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    qat_status st =
        info ? guarded(png, info, r, picture, err) : qat_out_of_memory(err, r->file->path);
    png_destroy_read_struct(&png, &info, NULL);
    if (!st)
        qat_picture_set_channels(picture, r->channels, r->file->channels);
    return st;
}

qat_status qat_picture_read_png(qat_picture *picture, const qat_picture_file *file, qat_error *err)
{
    reader r = {.file = file};
    return read_png(picture, &r, err);
}

qat_status qat_picture_read_png_mask(qat_picture *mask, const qat_picture_file *file,
                                     qat_error *err)
{
    reader r = {.file = file, .mask = true};
    return read_png(mask, &r, err);
}
