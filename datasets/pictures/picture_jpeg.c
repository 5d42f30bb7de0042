/**
 * JPEG, by libjpeg-turbo: sequential and progressive, grey, YCbCr, RGB, CMYK and YCCK, 8 bits.
 *
 * The inverse DCT is the accurate integer one, and chroma is interpolated ("fancy upsampling").
 * Both give the same bytes with and without SIMD. A warning of libjpeg that means lost data is an
 * error here: libjpeg would fill the gap with grey. An end marker may be missing if all data are
 * there.
 */
#define _GNU_SOURCE /* dladdr, realpath */
#include "datasets/pictures/picture.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jerror.h>
#include <jpeglib.h>

enum {
    MAX_SCANS = 100,       /* encoders write about 10; each one costs a walk over the picture */
    BLOCKS_OF_A_BYTE = 16, /* see least_bytes */
    COMPONENTS = 4
};

typedef struct reader {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    struct jpeg_progress_mgr progress;
    jmp_buf failed;
    const qat_picture_file *file;
    bool cut; /* the file ended before its end marker */
    char message[JMSG_LENGTH_MAX];
    uint64_t sent[COMPONENTS];  /* coefficients that came in full, one bit each */
    bool has_means[COMPONENTS]; /* the first coefficients came, perhaps without their last bits */
    uint8_t *row;               /* [width, 4] of CMYK */
    int channels;               /* of the decoded picture: 1, 3 or 4 */
} reader;

/* ------------------------------------------------------------------ what libjpeg calls */

static void leave_because(reader *r, const char *message)
{
    (void)snprintf(r->message, sizeof r->message, "%s", message);
    longjmp(r->failed, 1);
}

static void leave(j_common_ptr jpeg)
{
    reader *r = jpeg->client_data;
    r->errors.format_message(jpeg, r->message);
    longjmp(r->failed, 1);
}

/** Warnings after which the picture is still what was stored. */
static bool is_harmless(int code)
{
    return code == JWRN_EXTRANEOUS_DATA || code == JWRN_ADOBE_XFORM || code == JWRN_JFIF_MAJOR ||
           code == JWRN_NOT_SEQUENTIAL;
}

static void hear_message(j_common_ptr jpeg, int level)
{
    if (level < 0 && !is_harmless(jpeg->err->msg_code))
        leave(jpeg);
}

static void start_source(j_decompress_ptr jpeg)
{
    (void)jpeg;
}

/** The file ends here: an end marker follows. */
static boolean fill_source(j_decompress_ptr jpeg)
{
    static const JOCTET end[] = {0xff, JPEG_EOI};
    reader *r = jpeg->client_data;
    r->cut = true;
    jpeg->src->next_input_byte = end;
    jpeg->src->bytes_in_buffer = sizeof end;
    return TRUE;
}

static void skip_source(j_decompress_ptr jpeg, long n)
{
    if (n <= 0)
        return;
    if ((size_t)n > jpeg->src->bytes_in_buffer) {
        (void)fill_source(jpeg);
    } else {
        jpeg->src->next_input_byte += n;
        jpeg->src->bytes_in_buffer -= (size_t)n;
    }
}

/** Note which coefficients the present scan sends. libjpeg calls this at least once a scan. */
static void note_scan(j_common_ptr common)
{
    reader *r = common->client_data;
    const struct jpeg_decompress_struct *jpeg = &r->jpeg;
    uint64_t sent = jpeg->progressive_mode ? 0 : UINT64_MAX;
    if (jpeg->input_scan_number > MAX_SCANS)
        leave_because(r, "more than 100 scans");
    for (int i = jpeg->Ss; jpeg->progressive_mode && jpeg->Al == 0 && i <= jpeg->Se; i++)
        sent |= UINT64_C(1) << (i & 63);
    for (int i = 0; i < jpeg->comps_in_scan; i++) {
        int const component = jpeg->cur_comp_info[i]->component_index % COMPONENTS;
        r->sent[component] |= sent;
        r->has_means[component] |= jpeg->Ss == 0 || !jpeg->progressive_mode;
    }
}

static void term_source(j_decompress_ptr jpeg)
{
    (void)jpeg;
}

static void set_up(reader *r)
{
    r->jpeg.client_data = r;
    r->jpeg.err = jpeg_std_error(&r->errors);
    r->errors.error_exit = leave;
    r->errors.emit_message = hear_message;
    r->source = (struct jpeg_source_mgr){.next_input_byte = r->file->bytes,
                                         .bytes_in_buffer = r->file->count,
                                         .init_source = start_source,
                                         .fill_input_buffer = fill_source,
                                         .skip_input_data = skip_source,
                                         .resync_to_restart = jpeg_resync_to_restart,
                                         .term_source = term_source};
    r->progress.progress_monitor = note_scan;
}

/* ------------------------------------------------------------------ decoding */

/** Choose the colours that libjpeg hands out. */
static void choose_colours(reader *r)
{
    struct jpeg_decompress_struct *jpeg = &r->jpeg;
    J_COLOR_SPACE const stored = jpeg->jpeg_color_space;
    bool const inks = stored == JCS_CMYK || stored == JCS_YCCK;
    bool const has_luma = stored == JCS_GRAYSCALE || stored == JCS_YCbCr;
    bool const grey = stored == JCS_GRAYSCALE || (has_luma && r->file->channels == 1);
    jpeg->out_color_space = inks ? JCS_CMYK : grey ? JCS_GRAYSCALE : JCS_RGB;
    r->channels = inks ? 4 : grey ? 1 : 3;
    jpeg->dct_method = JDCT_ISLOW;
    jpeg->do_fancy_upsampling = TRUE;
    jpeg->do_block_smoothing = FALSE;
    if (!inks && !has_luma && stored != JCS_RGB)
        leave_because(r, "neither grey, YCbCr, RGB, CMYK nor YCCK");
    if (jpeg->arith_code)
        leave_because(r, "arithmetic coding is not supported");
}

/** As Photoshop stores them: 255 is no ink. Products rounded half up. */
static void inks_to_rgb(const uint8_t *cmyk, uint8_t *rgb, int width)
{
    for (int x = 0; x < width; x++, cmyk += 4, rgb += 3)
        for (int k = 0; k < 3; k++)
            rgb[k] = (uint8_t)((2 * cmyk[k] * cmyk[3] + 255) / 510);
}

/** Choose the size at which the picture is decoded. */
static void choose_scale(reader *r)
{
    struct jpeg_decompress_struct *jpeg = &r->jpeg;
    unsigned const height = (unsigned)r->file->least_height, width = (unsigned)r->file->least_width;
    unsigned by = height && width ? 8 : 1;
    while (by > 1 && ((jpeg->image_height + by - 1) / by < height ||
                      (jpeg->image_width + by - 1) / by < width))
        by /= 2;
    jpeg->scale_num = 1;
    jpeg->scale_denom = by;
    jpeg_calc_output_dimensions(jpeg);
}

static void read_rows(reader *r, qat_picture *p)
{
    size_t const stride = (size_t)p->width * (size_t)(r->channels == 4 ? 3 : r->channels);
    for (int y = 0; y < p->height; y++) {
        uint8_t *to = p->pixels + (size_t)y * stride;
        JSAMPROW row = r->row ? r->row : to;
        (void)jpeg_read_scanlines(&r->jpeg, &row, 1);
        if (r->row)
            inks_to_rgb(r->row, to, p->width);
    }
    (void)jpeg_finish_decompress(&r->jpeg);
}

/** Has every component come? A file that has an end may be a progressive picture that was made
 *  coarser on purpose; without an end every bit must be there. */
static qat_status check_complete(const reader *r, qat_error *err)
{
    for (int i = 0; i < r->jpeg.num_components; i++) {
        if (r->cut && r->sent[i] != UINT64_MAX)
            return qat_picture_truncated(r->file, err);
        if (!r->has_means[i])
            return qat_picture_broken(r->file, "JPEG", "no scan of one of its components", err);
    }
    return QAT_OK;
}

/**
 * No complete file is smaller. Each 8 x 8 block of each component takes a code, so one bit or more.
 * All components together have at least half a block for every 8 x 8 pixels (where one is sampled
 * 4 x 1 and the other 1 x 4).
 */
static int64_t least_bytes(const struct jpeg_decompress_struct *jpeg)
{
    int64_t const across = ((int64_t)jpeg->image_width + DCTSIZE - 1) / DCTSIZE;
    int64_t const down = ((int64_t)jpeg->image_height + DCTSIZE - 1) / DCTSIZE;
    return across * down / BLOCKS_OF_A_BYTE;
}

/**
 * libjpeg keeps all coefficients of a picture in several scans, two bytes each. So it takes as much
 * memory as a picture of several times its pixels, and counts as one.
 */
static qat_status check_memory(reader *r, qat_error *err)
{
    struct jpeg_decompress_struct *jpeg = &r->jpeg;
    int64_t const pixels = (int64_t)jpeg->image_height * jpeg->image_width;
    int const bytes = 3 + (jpeg_has_multiple_scans(jpeg) ? 2 * jpeg->num_components : 0);
    int const times = (bytes + 2) / 3;
    if (pixels * times <= r->file->max_pixels)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_FORMAT,
                    "%s: %u x %u pixels in several scans take the memory of %lld pixels, more than "
                    "the %lld allowed (max_pixels)",
                    r->file->path, jpeg->image_height, jpeg->image_width,
                    (long long)(pixels * times), (long long)r->file->max_pixels);
}

/** Leaves by longjmp if anything is wrong with the file. Returns an error of our own. */
static qat_status read_picture(reader *r, qat_picture *p, qat_error *err)
{
    struct jpeg_decompress_struct *jpeg = &r->jpeg;
    jpeg_create_decompress(jpeg);
    jpeg->src = &r->source;
    jpeg->progress = &r->progress;
    (void)jpeg_read_header(jpeg, TRUE);
    choose_colours(r);
    qat_status st = qat_picture_set_size(p, r->file, jpeg->image_height, jpeg->image_width, err);
    if (!st)
        st = check_memory(r, err);
    if (st)
        return st;
    choose_scale(r);
    p->height = (int)jpeg->output_height;
    p->width = (int)jpeg->output_width;
    st = qat_picture_allocate(p, r->file, r->channels == 1 ? 1 : 3, least_bytes(jpeg), err);
    if (st)
        return st;
    r->row = r->channels == 4 ? malloc((size_t)p->width * 4) : NULL;
    if (r->channels == 4 && !r->row)
        return qat_out_of_memory(err, r->file->path);
    (void)jpeg_start_decompress(jpeg);
    read_rows(r, p);
    return check_complete(r, err);
}

static qat_status fail(const reader *r, qat_error *err)
{
    if (r->errors.msg_code == JERR_OUT_OF_MEMORY)
        return qat_out_of_memory(err, r->file->path);
    return r->cut ? qat_picture_truncated(r->file, err)
                  : qat_picture_broken(r->file, "JPEG", r->message, err);
}

/** The frame to which libjpeg's errors return; nothing in it changes after setjmp. */
static qat_status guarded(reader *r, qat_picture *p, qat_error *err)
{
    return setjmp(r->failed) ? fail(r, err) : read_picture(r, p, err);
}

#define TEXT_OF(value)    #value
#define VERSION_OF(value) TEXT_OF(value)

void qat_jpeg_decoder(char *text, size_t max)
{
    Dl_info found;
    void *address;
    boolean (*const function)(j_decompress_ptr) = jpeg_start_decompress;
    memcpy(&address, &function, sizeof address);
    bool const known = dladdr(address, &found) && found.dli_fname;
    char *path = known ? realpath(found.dli_fname, NULL) : NULL;
    const char *slash = path ? strrchr(path, '/') : NULL;
    (void)snprintf(text, max, "libjpeg-turbo " VERSION_OF(LIBJPEG_TURBO_VERSION) "%s%.80s",
                   slash ? ", " : "", slash ? slash + 1 : "");
    free(path);
}

qat_status qat_picture_read_jpeg(qat_picture *picture, const qat_picture_file *file, qat_error *err)
{
    reader *r = calloc(1, sizeof *r);
    if (!r)
        return qat_out_of_memory(err, file->path);
    r->file = file;
    set_up(r);
    qat_status const st = guarded(r, picture, err);
    if (!st)
        qat_picture_set_channels(picture, r->channels == 1 ? 1 : 3, file->channels);
    jpeg_destroy_decompress(&r->jpeg);
    free(r->row);
    free(r);
    return st;
}
