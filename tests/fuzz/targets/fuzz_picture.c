/**
 * Fuzz targets: picture files of one format each (fuzz_png, fuzz_jpeg, fuzz_bmp, fuzz_pnm). The
 * bytes are decoded into three channels and into one. Both are refused, or both are read and have
 * the same size; the second is then the grey of the first (except of a JPEG, which stores its
 * grey).
 */
#include "fuzz/fuzz.h"

#include "datasets/pictures/picture.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_PIXELS = 1 << 17 };

static qat_status decode(qat_picture *p, const uint8_t *data, size_t size, int channels)
{
    qat_picture_file const file = {.path = "fuzz",
                                   .bytes = data,
                                   .count = size,
                                   .channels = channels,
                                   .max_pixels = MOST_PIXELS};
    qat_error err = {0};
    qat_status const st = qat_picture_decode(p, &file, &err);
    fuzz_require(st == QAT_OK || st == QAT_ERR_FORMAT || st == QAT_ERR_NOMEM ||
                     st == QAT_ERR_UNSUPPORTED,
                 "a picture is read or refused");
    fuzz_require(st == QAT_OK || strncmp(err.message, "fuzz: ", 6) == 0,
                 "a message that names the file where something is wrong");
    fuzz_require(st || (p->pixels && p->height > 0 && p->width > 0 &&
                        (int64_t)p->height * p->width <= MOST_PIXELS),
                 "pixels within the limit");
    return st;
}

static void compare(const qat_picture *colour, const qat_picture *grey)
{
    size_t const n = (size_t)colour->height * (size_t)colour->width;
    const uint8_t *rgb = colour->pixels;
    for (size_t i = 0; i < n; i++, rgb += 3)
        fuzz_require(grey->pixels[i] == (77 * rgb[0] + 150 * rgb[1] + 29 * rgb[2]) >> 8,
                     "one channel is the grey of three");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    qat_picture colour, grey;
    qat_status const three = decode(&colour, data, size, 3), one = decode(&grey, data, size, 1);
    fuzz_require((three == QAT_OK) == (one == QAT_OK), "both are read or both are refused");
    if (!three) {
        fuzz_require(colour.height == grey.height && colour.width == grey.width, "one size");
        if (data[0] != 0xff)
            compare(&colour, &grey);
    }
    free(colour.pixels);
    free(grey.pixels);
    return 0;
}
