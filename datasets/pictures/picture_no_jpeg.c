/** In the place of picture_jpeg.c in a build without libjpeg-turbo: JPEG is refused. */
#include "datasets/pictures/picture.h"

qat_status qat_picture_read_jpeg(qat_picture *picture, const qat_picture_file *file, qat_error *err)
{
    (void)picture;
    return qat_fail(err, QAT_ERR_UNSUPPORTED,
                    "%s: a JPEG file, and this build of qat cannot read JPEG: there was no "
                    "libjpeg-turbo when it was made",
                    file->path);
}
