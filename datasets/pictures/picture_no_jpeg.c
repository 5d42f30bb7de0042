/** In the place of picture_jpeg.c and encode_jpeg.c in a build without libjpeg-turbo: JPEG is
 * refused. */
#include "datasets/pictures/encode.h"
#include "datasets/pictures/picture.h"

#include <stdio.h>

qat_status qat_picture_read_jpeg(qat_picture *picture, const qat_picture_file *file, qat_error *err)
{
    (void)picture;
    return qat_fail(err, QAT_ERR_UNSUPPORTED,
                    "%s: a JPEG file, and this build of qat cannot read JPEG: there was no "
                    "libjpeg-turbo when it was made",
                    file->path);
}

void qat_jpeg_decoder(char *text, size_t max)
{
    (void)snprintf(text, max, "nothing");
}

qat_status qat_picture_encode_jpeg(const qat_picture *picture, int channels, int quality,
                                   const char *about, uint8_t **bytes, size_t *count,
                                   qat_error *err)
{
    (void)picture, (void)channels, (void)quality, (void)bytes, (void)count;
    return qat_fail(err, QAT_ERR_UNSUPPORTED,
                    "%s: cannot be written as a JPEG: there was no libjpeg-turbo when this build "
                    "of qat was made",
                    about);
}
