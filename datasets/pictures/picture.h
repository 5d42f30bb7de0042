/**
 * Private to datasets: decoders of picture files. This module is the only one that decodes
 * pictures.
 *
 * The content decides on the format: the first bytes of the file, never its name. Each format is
 * one entry of a table (picture_format.c) with one reader (picture_png.c, picture_jpeg.c,
 * picture_bmp.c, picture_pnm.c). Nothing is allocated before a reader has checked the size that the
 * header announces: against the limits, and against the number of bytes that such a picture needs
 * at least.
 */
#ifndef QAT_DATASETS_PICTURE_H
#define QAT_DATASETS_PICTURE_H

#include "qat/dataset.h"

enum { QAT_PICTURE_MAX_SIDE = 1000000 };

/** A picture file in memory, and what the caller wants. */
typedef struct qat_picture_file {
    const char *path; /* for messages */
    const uint8_t *bytes;
    size_t count;
    int channels;       /* 1 or 3 */
    int64_t max_pixels; /* in 1..QAT_PICTURE_MOST_PIXELS */
    /* A JPEG is decoded at 1/2, 1/4 or 1/8 of its size, the smallest of these that has at least so
     * many pixels in both directions. 0: at its stored size */
    int least_height, least_width;
} qat_picture_file;

typedef struct qat_picture_format {
    const char *name;
    /** Do the first bytes say that it is this format? */
    bool (*matches)(const uint8_t *bytes, size_t count);
    /** Decode. After an error the caller frees picture->pixels, too. */
    qat_status (*read)(qat_picture *picture, const qat_picture_file *file, qat_error *err);
} qat_picture_format;

/** The format of a file; NULL: none of those that can be read. */
const qat_picture_format *qat_picture_format_of(const uint8_t *bytes, size_t count);
/** An error that says what the file is, if that is known, and which formats can be read. */
qat_status qat_picture_unknown(const qat_picture_file *file, qat_error *err);
/** The endings of qat_picture_has_ending, for messages: ".png .jpg ...". */
extern const char qat_picture_endings[];

/**
 * Decode the bytes of a picture file into 1 or 3 channels. Errors: QAT_ERR_FORMAT and a sentence
 * with the path, or QAT_ERR_NOMEM. free(picture->pixels) also after an error. Any thread may call
 * this.
 */
qat_status qat_picture_decode(qat_picture *picture, const qat_picture_file *file, qat_error *err);

/** Read a picture file as qat_picture_read_within does, a JPEG perhaps at a smaller size. */
qat_status qat_picture_read_scaled(qat_picture *picture, const char *path, int channels,
                                   int max_pixels, int least_height, int least_width,
                                   qat_error *err);
/**
 * Set file->least_height and least_width for samples of this size, if it says jpeg_scale. part: a
 * random part will be cut out; a quarter of the picture's area then still has the size.
 */
void qat_image_least(const qat_image_size *size, bool part, int *height, int *width);

/**
 * Bring a decoded picture to the wanted size, as qat_image_read does. The picture is work space.
 * path: for messages.
 */
qat_status qat_image_fit(qat_picture *picture, const char *path, const qat_image_size *size,
                         uint8_t *values, qat_error *err);

/**
 * Read a mask: a PNG whose pixels are numbers, indices of a palette or grey of up to 8 bits, as
 * they are stored. Limits, errors and memory are those of qat_picture_read_within.
 */
qat_status qat_mask_read(qat_picture *mask, const char *path, int max_pixels, qat_error *err);

qat_status qat_picture_read_png(qat_picture *picture, const qat_picture_file *file, qat_error *err);
/** The numbers in a PNG of a palette or of grey, as they are stored: [height, width]. */
qat_status qat_picture_read_png_mask(qat_picture *mask, const qat_picture_file *file,
                                     qat_error *err);
qat_status qat_picture_read_jpeg(qat_picture *picture, const qat_picture_file *file,
                                 qat_error *err);
qat_status qat_picture_read_bmp(qat_picture *picture, const qat_picture_file *file, qat_error *err);
qat_status qat_picture_read_pnm(qat_picture *picture, const qat_picture_file *file, qat_error *err);

/* ------------------------------------------------------------------ for the readers */

/**
 * Check the size that a header announces, and set the picture's. These are errors: a side that is
 * not in 1..QAT_PICTURE_MAX_SIDE, more than file->max_pixels pixels.
 */
qat_status qat_picture_set_size(qat_picture *picture, const qat_picture_file *file, int64_t height,
                                int64_t width, qat_error *err);
/**
 * Allocate the pixels of a picture whose size is set: each with the stored number of channels (1 or
 * 3) or the wanted one, whichever is larger. It is an error if the file has fewer than least_bytes
 * bytes: no complete file with such a picture is smaller.
 */
qat_status qat_picture_allocate(qat_picture *picture, const qat_picture_file *file,
                                int stored_channels, int64_t least_bytes, qat_error *err);
/** Grey to three equal channels, or colour to grey, (77 R + 150 G + 29 B) >> 8, in place. */
void qat_picture_set_channels(qat_picture *picture, int stored_channels, int channels);
/** An error: the file ends before its picture does. */
qat_status qat_picture_truncated(const qat_picture_file *file, qat_error *err);
/** An error: "path: broken NAME (what)". */
qat_status qat_picture_broken(const qat_picture_file *file, const char *name, const char *what,
                              qat_error *err);

#endif
