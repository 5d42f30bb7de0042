#include "unit/train/npz_write.h"

#include "base/bytes.h"
#include "common/temp.h"

#include <check.h>
#include <stdint.h>
#include <zip.h>

/** The bytes of a .npy; free() them. */
static uint8_t *npy(const char *type, const char *shape, const void *items, size_t bytes,
                    size_t *count)
{
    qat_writer w = {0};
    char text[128];
    snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", type,
             shape);
    size_t const header = 118; /* 10 + 118 is a multiple of 64 */
    qat_write_bytes(&w, "\x93NUMPY\x01\x00", 8);
    qat_write_u16(&w, (uint16_t)header);
    qat_write_text(&w, "%-*s\n", (int)header - 1, text);
    qat_write_bytes(&w, items, bytes);
    *count = w.count;
    return w.bytes;
}

void npz_write(const char *under, const char *name, const npz_array *arrays, int n)
{
    char path[TEST_PATH_MAX];
    int code;
    zip_t *zip = zip_open(test_temp_path(path, under, name), ZIP_CREATE | ZIP_TRUNCATE, &code);
    ck_assert_ptr_nonnull(zip);
    for (int i = 0; i < n; i++) {
        size_t count;
        uint8_t *bytes =
            npy(arrays[i].type, arrays[i].shape, arrays[i].items, arrays[i].bytes, &count);
        zip_source_t *source = zip_source_buffer(zip, bytes, count, 1); /* frees them */
        ck_assert_int_eq(zip_file_add(zip, arrays[i].name, source, ZIP_FL_ENC_UTF_8), i);
        zip_set_file_compression(zip, (zip_uint64_t)i, i % 2 ? ZIP_CM_STORE : ZIP_CM_DEFLATE, 0);
    }
    ck_assert_int_eq(zip_close(zip), 0);
}
