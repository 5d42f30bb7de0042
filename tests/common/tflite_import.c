#include "common/tflite_import.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/** The bytes of the .qm, or NULL with err filled. */
static uint8_t *import(const build_model *m, size_t *qm_bytes, qat_error *err)
{
    uint8_t *qm = NULL;
    size_t count;
    uint8_t *bytes = build_tflite(m, &count);
    ck_assert_ptr_nonnull(bytes);
    *err = (qat_error){0};
    (void)qat_tflite_to_qm(bytes, count, &(qat_import_options){.known_answers = true}, &qm,
                           qm_bytes, err);
    free(bytes);
    return qm;
}

void test_open_built(qi_host **host, const build_model *m)
{
    qat_error err;
    size_t count;
    uint8_t *qm = import(m, &count, &err);
    ck_assert_msg(qm != NULL, "%s", err.message);
    ck_assert_msg(qi_host_open_bytes(host, qm, count, "imported", NULL, &err) == QAT_OK, "%s",
                  err.message);
    free(qm);
}

void test_refuse_built(const build_model *m, const char *says)
{
    qat_error err;
    size_t count;
    uint8_t *qm = import(m, &count, &err);
    ck_assert_ptr_null(qm);
    ck_assert_msg(strstr(err.message, says) != NULL, "\"%s\" lacks \"%s\"", err.message, says);
}
