/*
 * NumPy files: every type and rank is written and read again, the layout is compared byte for byte,
 * and what is refused.
 */
#include "base/arena.h"
#include "base/files/file.h"
#include "base/files/npy.h"
#include "common/common.h"
#include "common/fail_alloc.h"
#include "common/suite.h"
#include "common/temp.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char path[TEST_PATH_MAX];

START_TEST(test_round_trip)
{
    static const char *const names[] = {"|u1", "|i1", "<i2", "<i4", "<i8", "<f4", "<f8"};
    static const int64_t dims[QAT_NPY_MAX_RANK] = {2, 1, 3, 1, 2, 1, 1, 2};
    uint8_t data[24 * 8];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * 37);
    test_temp_path(path, folder, "x.npy");
    for (int t = QAT_NPY_U8; t <= QAT_NPY_F64; t++) {
        ck_assert_str_eq(qat_npy_type_name((qat_npy_type)t), names[t]);
        for (int rank = 0; rank <= QAT_NPY_MAX_RANK; rank++) {
            qat_npy x;
            qat_error err;
            size_t count = 1;
            for (int i = 0; i < rank; i++)
                count *= (size_t)dims[i];
            ck_assert_int_eq(qat_npy_write(path, (qat_npy_type)t, rank, dims, data, &err), QAT_OK);
            qat_status st = qat_npy_read(&x, path, &err);
            ck_assert_msg(st == QAT_OK, "%s", err.message);
            ck_assert_int_eq(x.type, t);
            ck_assert_int_eq(x.rank, rank);
            ck_assert_uint_eq(x.count, count);
            for (int i = 0; i < rank; i++)
                ck_assert_int_eq(x.dims[i], dims[i]);
            ck_assert_mem_eq(x.data, data, count * qat_npy_item_bytes((qat_npy_type)t));
            ck_assert_uint_eq((uintptr_t)x.data % 64, 0);
            qat_npy_free(&x);
            ck_assert_ptr_null(x.data);
        }
    }
}
END_TEST

/* What numpy.save writes for numpy.array([[1, 2, 3], [4, 5, 6]], 'i2'). */
START_TEST(test_layout)
{
    static const int64_t dims[2] = {2, 3};
    static const int16_t data[6] = {1, 2, 3, 4, 5, -6};
    static const char text[] = "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }";
    uint8_t expected[128 + 12] = "\x93NUMPY\x01\x00\x76\x00", *got;
    size_t count;
    memcpy(expected + 10, text, sizeof text - 1);
    memset(expected + 10 + sizeof text - 1, ' ', 128 - 10 - sizeof text);
    expected[127] = '\n';
    memcpy(expected + 128, data, sizeof data);
    ck_assert_int_eq(
        qat_npy_write(test_temp_path(path, folder, "x.npy"), QAT_NPY_I16, 2, dims, data, NULL),
        QAT_OK);
    ck_assert_int_eq(qat_file_read(path, SIZE_MAX, &got, &count, NULL), QAT_OK);
    ck_assert_uint_eq(count, sizeof expected);
    ck_assert_mem_eq(got, expected, count);
    test_temp_write(folder, "x.npy.gz", got, count);
    free(got);
    qat_npy x;
    ck_assert_int_eq(qat_npy_read(&x, test_temp_path(path, folder, "x.npy.gz"), NULL), QAT_OK);
    ck_assert_mem_eq(x.data, data, sizeof data);
    qat_npy_free(&x);
}
END_TEST

/** A file with this header text and data_bytes of data, parsed; the error's message into err. */
static qat_status parse(qat_npy *x, const char *header, size_t data_bytes, qat_error *err)
{
    uint8_t bytes[2048] = "\x93NUMPY\x01";
    size_t const length = strlen(header);
    bytes[8] = (uint8_t)length;
    bytes[9] = (uint8_t)(length >> 8);
    memcpy(bytes + 10, header, length);
    return qat_npy_parse(x, bytes, 10 + length + data_bytes, "x.npy", err);
}

/* Headers of other writers: another order, other quotes and spacing, no last comma. */
START_TEST(test_other_headers)
{
    static const char *const fine[] = {
        "{'shape': (3, 2), 'descr': '<f4', 'fortran_order': False, }\n",
        "{\"descr\": \"<f4\", \"fortran_order\": False, \"shape\": (3,2)}",
        "{'descr':'<f4','fortran_order':False,'shape':( 3 , 2 , ),}   ",
    };
    for (size_t i = 0; i < sizeof fine / sizeof fine[0]; i++) {
        qat_npy x;
        qat_error err;
        qat_status st = parse(&x, fine[i], 24, &err);
        ck_assert_msg(st == QAT_OK, "%s: %s", fine[i], err.message);
        ck_assert_int_eq(x.rank, 2);
        ck_assert_int_eq(x.dims[0], 3);
        ck_assert_int_eq(x.dims[1], 2);
        qat_npy_free(&x);
    }
    qat_npy none;
    ck_assert_int_eq(
        parse(&none, "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 7), }", 0, NULL),
        QAT_OK);
    ck_assert_uint_eq(none.count, 0);
    qat_npy_free(&none);
}
END_TEST

START_TEST(test_refused)
{
    static const struct {
        const char *header;
        size_t data;
        qat_status status;
        const char *part;
    } cases[] = {
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }", 20, QAT_ERR_FORMAT,
         "truncated: the shape asks for 24 bytes of data, but the file has 20"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }", 25, QAT_ERR_FORMAT,
         "too long"},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (3, 2), }", 48, QAT_ERR_UNSUPPORTED,
         "'<c8'"},
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (3, 2), }", 24, QAT_ERR_UNSUPPORTED,
         "'>f4'"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,), }", 12, QAT_ERR_FORMAT,
         "'descr'"},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (3, 2), }", 24, QAT_ERR_UNSUPPORTED,
         "Fortran"},
        {"{'descr': '<f4', 'fortran_order': Maybe, 'shape': (3, 2), }", 24, QAT_ERR_FORMAT,
         "False"},
        {"{'descr': '<f4', 'fortran_order': False, }", 24, QAT_ERR_FORMAT, "shape"},
        {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }", 24,
         QAT_ERR_FORMAT, "once"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), 'x': 1}", 24, QAT_ERR_FORMAT,
         "once"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, -2), }", 24, QAT_ERR_FORMAT,
         "dimension"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3 2), }", 24, QAT_ERR_FORMAT, "','"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': 6, }", 24, QAT_ERR_FORMAT, "'('"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), ", 24, QAT_ERR_FORMAT, "key"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }", 4,
         QAT_ERR_UNSUPPORTED, "more than 8"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,), }", 4,
         QAT_ERR_FORMAT, "2^63"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807,), }", 4,
         QAT_ERR_FORMAT, "overflows at dimension 0 (9223372036854775807)"},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", 4,
         QAT_ERR_FORMAT, "overflows at dimension 1"},
        {"not a dict", 4, QAT_ERR_FORMAT, "'{'"},
        {"", 4, QAT_ERR_FORMAT, "'{'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        qat_npy x;
        qat_error err = {0};
        qat_status const st = parse(&x, cases[i].header, cases[i].data, &err);
        ck_assert_msg(st == cases[i].status, "%s: %s", cases[i].header, err.message);
        ck_assert_msg(strstr(err.message, "x.npy") && strstr(err.message, cases[i].part),
                      "\"%s\" lacks \"%s\"", err.message, cases[i].part);
        ck_assert_ptr_null(x.data);
    }
}
END_TEST

START_TEST(test_foreign)
{
    qat_npy x;
    qat_error err;
    ck_assert_int_eq(qat_npy_parse(&x, "PK\x03\x04........", 12, "x.npz", &err), QAT_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "x.npz: not an .npy file"));
    ck_assert_int_eq(qat_npy_parse(&x, "\x93NUMPY\x02\x00\x02\x00{}..", 14, "x.npy", &err),
                     QAT_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.message, "version 2.0"));
    ck_assert_int_eq(qat_npy_read(&x, test_temp_path(path, folder, "none.npy"), &err), QAT_ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.message, "none.npy"));
    ck_assert_int_eq(qat_npy_write(path, QAT_NPY_U8, 9, (int64_t[9]){0}, "", &err),
                     QAT_ERR_ARGUMENT);
}
END_TEST

/*
 * A file that is cut at any place is refused. If any byte of the header is changed, it is refused
 * or read, but nothing crashes.
 */
START_TEST(test_damaged)
{
    static const int64_t dims[2] = {3, 5};
    uint8_t *bytes;
    size_t count;
    ck_assert_int_eq(qat_npy_write(test_temp_path(path, folder, "x.npy"), QAT_NPY_U8, 2, dims,
                                   "abcdefghijklmno", NULL),
                     QAT_OK);
    ck_assert_int_eq(qat_file_read(path, SIZE_MAX, &bytes, &count, NULL), QAT_OK);
    for (size_t cut = 0; cut < count; cut++) {
        qat_npy x;
        uint8_t *exact = malloc(cut + 1); /* for the address sanitizer */
        ck_assert_ptr_nonnull(exact);
        memcpy(exact, bytes, cut);
        ck_assert_int_eq(qat_npy_parse(&x, cut ? exact : NULL, cut, "x", NULL), QAT_ERR_FORMAT);
        free(exact);
    }
    for (size_t at = 0; at < 128; at++) {
        uint8_t const kept = bytes[at];
        for (int v = 0; v < 256; v++) {
            qat_npy x;
            bytes[at] = (uint8_t)v;
            if (qat_npy_parse(&x, bytes, count, "x", NULL) == QAT_OK)
                ck_assert_uint_eq(x.count * qat_npy_item_bytes(x.type), 15);
            qat_npy_free(&x);
        }
        bytes[at] = kept;
    }
    free(bytes);
}
END_TEST

START_TEST(test_out_of_memory)
{
    static const int64_t dims[1] = {1000};
    static const uint8_t data[1000];
    bool failed;
    long n = 0;
    test_temp_path(path, folder, "x.npy");
    do {
        qat_npy x = {0};
        test_fail_alloc_after(n++);
        qat_status st = qat_npy_write(path, QAT_NPY_U8, 1, dims, data, NULL);
        if (!st)
            st = qat_npy_read(&x, path, NULL);
        failed = test_fail_alloc_stop();
        ck_assert_int_eq(st, failed ? QAT_ERR_NOMEM : QAT_OK);
        qat_npy_free(&x);
    } while (failed);
    ck_assert_int_gt(n, 4);
}
END_TEST

/* NumPy's own files. */
START_TEST(test_golden_files)
{
    char golden[TEST_PATH_MAX];
    qat_npy x;
    if (!test_golden_path(golden, sizeof golden, "fixedpoint/mbqm_i64/x.npy")) {
        test_skip("NumPy's files", "golden data are absent");
        return;
    }
    ck_assert_int_eq(qat_npy_read(&x, golden, NULL), QAT_OK);
    ck_assert_int_eq(x.type, QAT_NPY_I64);
    ck_assert_int_eq(x.rank, 1);
    ck_assert_int_gt(x.dims[0], 0);
    qat_npy_free(&x);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("npy");
    TCase *tc = tcase_create("npy");
    tcase_add_checked_fixture(tc, test_folder_make, test_folder_remove);
    tcase_add_test(tc, test_round_trip);
    tcase_add_test(tc, test_layout);
    tcase_add_test(tc, test_other_headers);
    tcase_add_test(tc, test_refused);
    tcase_add_test(tc, test_foreign);
    tcase_add_test(tc, test_damaged);
    tcase_add_test(tc, test_out_of_memory);
    tcase_add_test(tc, test_golden_files);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
