/**
 * A build without libjpeg-turbo. The test is linked with picture_no_jpeg.c, which replaces the
 * reader.
 */
#include "common/decode.h"
#include "common/suite.h"

START_TEST(a_jpeg_is_refused_with_the_reason)
{
    qat_picture p;
    qat_error err;
    ck_assert_int_eq(test_decode(&p, "\xff\xd8\xff\xe0", 4, 3, &err), QAT_ERR_UNSUPPORTED);
    ck_assert_str_eq(err.message,
                     "the file: a JPEG file, and this build of qat cannot read JPEG: there was no "
                     "libjpeg-turbo when it was made");
    ck_assert_int_eq(test_decode(&p, "P5 1 1 255 a", 12, 1, &err), QAT_OK);
    free(p.pixels);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("no jpeg");
    TCase *tc = tcase_create("no jpeg");
    tcase_add_test(tc, a_jpeg_is_refused_with_the_reason);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
