/** Writes JPEG by libjpeg-turbo: the accurate integer DCT, chroma of half the size. */
#include "datasets/pictures/encode.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

#include <jerror.h>

enum {
    MOST_SIDE = 65500, /* JPEG_MAX_DIMENSION */
    FIRST_ROOM = 1 << 14
};

typedef struct writer {
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    struct jpeg_destination_mgr to;
    jmp_buf failed;
    uint8_t *bytes; /* of `room` */
    size_t room;
    char message[JMSG_LENGTH_MAX];
} writer;

static void leave(j_common_ptr jpeg)
{
    writer *w = jpeg->client_data;
    w->errors.format_message(jpeg, w->message);
    longjmp(w->failed, 1);
}

/*
 * libjpeg's own destination in memory loses track of its memory when that cannot grow.
 */

static boolean grow(j_compress_ptr jpeg)
{
    writer *w = jpeg->client_data;
    size_t const had = w->room, room = had ? 2 * had : FIRST_ROOM;
    uint8_t *bytes = realloc(w->bytes, room);
    if (!bytes)
        ERREXIT1(jpeg, JERR_OUT_OF_MEMORY, 0);
    w->bytes = bytes;
    w->room = room;
    w->to.next_output_byte = bytes + had;
    w->to.free_in_buffer = room - had;
    return TRUE;
}

static void begin(j_compress_ptr jpeg)
{
    (void)grow(jpeg);
}

static void end(j_compress_ptr jpeg)
{
    (void)jpeg;
}

static void write_picture(writer *w, const qat_picture *p, int channels, int quality)
{
    struct jpeg_compress_struct *jpeg = &w->jpeg;
    size_t const stride = (size_t)p->width * (size_t)channels;
    jpeg_create_compress(jpeg);
    w->to = (struct jpeg_destination_mgr){
        .init_destination = begin, .empty_output_buffer = grow, .term_destination = end};
    jpeg->dest = &w->to;
    jpeg->image_height = (JDIMENSION)p->height;
    jpeg->image_width = (JDIMENSION)p->width;
    jpeg->input_components = channels;
    jpeg->in_color_space = channels == 3 ? JCS_RGB : JCS_GRAYSCALE;
    jpeg_set_defaults(jpeg);
    jpeg_set_quality(jpeg, quality, TRUE);
    jpeg->dct_method = JDCT_ISLOW;
    jpeg_start_compress(jpeg, TRUE);
    for (int y = 0; y < p->height; y++) {
        JSAMPROW row = p->pixels + (size_t)y * stride;
        (void)jpeg_write_scanlines(jpeg, &row, 1);
    }
    jpeg_finish_compress(jpeg);
}

/** The frame to which libjpeg's errors return; nothing in it changes after setjmp. */
static bool guarded(writer *w, const qat_picture *p, int channels, int quality)
{
    if (setjmp(w->failed))
        return false;
    write_picture(w, p, channels, quality);
    return true;
}

qat_status qat_picture_encode_jpeg(const qat_picture *p, int channels, int quality,
                                   const char *about, uint8_t **bytes, size_t *count,
                                   qat_error *err)
{
    if (p->height > MOST_SIDE || p->width > MOST_SIDE)
        return qat_fail(err, QAT_ERR_ARGUMENT, "%s: a JPEG of %d x %d pixels; the most are %d",
                        about, p->height, p->width, MOST_SIDE);
    writer *w = calloc(1, sizeof *w);
    if (!w)
        return qat_out_of_memory(err, about);
    w->jpeg.client_data = w;
    w->jpeg.err = jpeg_std_error(&w->errors);
    w->errors.error_exit = leave;
    bool const good = guarded(w, p, channels, quality);
    jpeg_destroy_compress(&w->jpeg);
    qat_status st = QAT_OK;
    if (good) {
        *bytes = w->bytes;
        *count = w->room - w->to.free_in_buffer;
    } else {
        free(w->bytes);
        st = qat_fail(err, QAT_ERR_NOMEM, "%s: cannot be written as a JPEG: %s", about, w->message);
    }
    free(w);
    return st;
}
