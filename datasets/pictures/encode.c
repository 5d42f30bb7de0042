#include "datasets/pictures/encode.h"

#include <png.h>
#include <stdlib.h>
#include <string.h>

static qat_status encode_png(const qat_picture *p, int channels, const char *about, uint8_t **bytes,
                             size_t *count, qat_error *err)
{
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (png_uint_32)p->width,
                       .height = (png_uint_32)p->height,
                       .format = channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY};
    png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
    uint8_t *room = malloc(size);
    if (!room)
        return qat_out_of_memory(err, about);
    if (!png_image_write_to_memory(&image, room, &size, 0, p->pixels, 0, NULL)) {
        free(room);
        return qat_fail(err, QAT_ERR_IO, "%s: cannot be written as a PNG: %s", about,
                        image.message);
    }
    uint8_t *fitting = realloc(room, size); /* room is for the worst picture */
    *bytes = fitting ? fitting : room;
    *count = size;
    return QAT_OK;
}

qat_status qat_picture_encode(const qat_picture *p, int channels, int quality, const char *about,
                              uint8_t **bytes, size_t *count, qat_error *err)
{
    *bytes = NULL;
    *count = 0;
    return quality ? qat_picture_encode_jpeg(p, channels, quality, about, bytes, count, err)
                   : encode_png(p, channels, about, bytes, count, err);
}
