/** Decodes a picture file that a test holds in memory. */
#ifndef QAT_TESTS_DECODE_H
#define QAT_TESTS_DECODE_H

#include "datasets/pictures/picture.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/** Give the decoder exactly n bytes, so that a sanitizer notices if it reads one more. */
static inline qat_status test_decode_within(qat_picture *p, const void *bytes, size_t n,
                                            int channels, int64_t max_pixels, qat_error *err)
{
    uint8_t *exact = malloc(n ? n : 1);
    ck_assert_ptr_nonnull(exact);
    memcpy(exact, bytes, n);
    qat_picture_file const file = {.path = "the file",
                                   .bytes = exact,
                                   .count = n,
                                   .channels = channels,
                                   .max_pixels = max_pixels};
    *err = (qat_error){0};
    qat_status const st = qat_picture_decode(p, &file, err);
    free(exact);
    return st;
}

static inline qat_status test_decode(qat_picture *p, const void *bytes, size_t n, int channels,
                                     qat_error *err)
{
    return test_decode_within(p, bytes, n, channels, QAT_PICTURE_MAX_PIXELS, err);
}

/** Assert that the bytes are refused with QAT_ERR_FORMAT, and that the message contains `says`. */
static inline void test_refused(const void *bytes, size_t n, const char *says)
{
    for (int channels = 1; channels <= 3; channels += 2) {
        qat_picture p;
        qat_error err;
        qat_status const st = test_decode(&p, bytes, n, channels, &err);
        free(p.pixels);
        ck_assert_msg(st == QAT_ERR_FORMAT, "%zu bytes: status %d, not \"%s\"", n, st, says);
        ck_assert_msg(strstr(err.message, "the file: ") && strstr(err.message, says), "\"%s\"",
                      err.message);
    }
}

/** The pixels, which must have this size; free() them. */
static inline uint8_t *test_decoded(const void *bytes, size_t n, int height, int width,
                                    int channels)
{
    qat_picture p;
    qat_error err;
    ck_assert_msg(test_decode(&p, bytes, n, channels, &err) == QAT_OK, "%s", err.message);
    ck_assert_int_eq(p.height, height);
    ck_assert_int_eq(p.width, width);
    return p.pixels;
}

/** Assert that every file that is cut off is refused. At the end, `spare` bytes may be missing. */
static inline void test_cut_refused(const uint8_t *bytes, size_t n, size_t spare)
{
    for (size_t cut = 0; cut + spare < n; cut++)
        test_refused(bytes, cut, cut >= 16 ? "truncated" : "");
}

/** 77 R + 150 G + 29 B, over 256. */
static inline int test_grey(const int rgb[3])
{
    return (77 * rgb[0] + 150 * rgb[1] + 29 * rgb[2]) >> 8;
}

#endif
