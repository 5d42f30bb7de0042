/**
 * Real numbers as input of a model: preprocessing kind 2 and float32 borders, written, read back
 * and used.
 */
#include "common/suite.h"
#include "evaluate/data.h"
#include "qat/convert.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/** [1, 1, 2, channels] codes, passed on by a reshape. */
static qat_qgraph *make_graph(qi_type type, int channels, qi_border border)
{
    qat_qgraph *g = qat_qgraph_new();
    qat_qtensor t = {.name = "x",
                     .type = type,
                     .bits = 8,
                     .rank = 4,
                     .dims = {1, 1, 2, channels},
                     .scale = 0.25f,
                     .zero_point = 3,
                     .border = border,
                     .source_index = -1};
    ck_assert_ptr_nonnull(g);
    ck_assert_int_eq(qat_qgraph_tensor(g, &t, NULL), 0);
    strcpy(t.name, "y");
    t.border = QI_BORDER_NONE;
    ck_assert_int_eq(qat_qgraph_tensor(g, &t, NULL), 1);
    ck_assert_int_ge(qat_qgraph_op(g, "reshape", "y", QI_ROUND_NONE, 1, (const int[]){0}, 1,
                                   (const int[]){1}, 0, NULL, 0, NULL),
                     0);
    ck_assert_int_eq(qat_qgraph_set_io(g, 1, (const int[]){0}, 1, (const int[]){1}, NULL), QAT_OK);
    return g;
}

static qat_qm_metadata reals(int channels)
{
    qat_qm_metadata m = {.preprocessing = {.kind = 2, .channels = channels}};
    for (int c = 0; c < 4; c++) {
        m.preprocessing.mean_bits[c] = bits_of(10.0f * (float)c);
        m.preprocessing.std_bits[c] = bits_of(2.0f + (float)c);
    }
    return m;
}

static void open_model(qi_host **host, qat_qgraph *g, const qat_qm_metadata *m)
{
    uint8_t *bytes;
    size_t count;
    qat_error err;
    ck_assert_msg(qat_qm_write(g, m, &bytes, &count, &err) == QAT_OK, "%s", err.message);
    ck_assert_msg(qi_host_open_bytes(host, bytes, count, "m", NULL, &err) == QAT_OK, "%s",
                  err.message);
    free(bytes);
    qat_qgraph_free(g);
}

/** (value - mean) / std per channel, then round(x / 0.25), ties up, + 3. */
START_TEST(test_normalised)
{
    qi_host *host = NULL;
    int8_t codes[4];
    qat_qm_metadata const m = reals(2);
    open_model(&host, make_graph(QI_S8, 2, QI_BORDER_NONE), &m);
    ck_assert_mem_eq(qi_model_preprocessing(qi_host_model(host)), &m.preprocessing,
                     sizeof m.preprocessing);
    float const values[] = {1.0f, 10.0f, 0.25f, -1000.0f};
    ck_assert_int_eq(qat_model_codes(qi_host_model(host), 0, values, codes, NULL), QAT_OK);
    ck_assert_int_eq(codes[0], 5);    /* 0.5 */
    ck_assert_int_eq(codes[1], 3);    /* 0 */
    ck_assert_int_eq(codes[2], 4);    /* half a quantum: up */
    ck_assert_int_eq(codes[3], -128); /* beyond the range */
    float const down[] = {-0.25f, 10.0f, NAN, 10.0f};
    ck_assert_int_eq(qat_model_codes(qi_host_model(host), 0, down, codes, NULL), QAT_OK);
    ck_assert_int_eq(codes[0], 3); /* minus half a quantum: up */
    ck_assert_int_eq(codes[2], 3); /* NaN */
    qi_host_close(host);
}
END_TEST

START_TEST(test_many_channels_share_the_first)
{
    qi_host *host = NULL;
    uint8_t codes[12];
    float values[12];
    qat_qm_metadata const m = reals(6);
    open_model(&host, make_graph(QI_U8, 6, QI_BORDER_NONE), &m);
    for (int i = 0; i < 12; i++)
        values[i] = 0.5f * (float)i;
    ck_assert_int_eq(qat_model_codes(qi_host_model(host), 0, values, codes, NULL), QAT_OK);
    for (int i = 0; i < 12; i++)
        ck_assert_int_eq(codes[i], 3 + i);
    qi_host_close(host);
}
END_TEST

/** No normalisation, and ties away from zero. */
START_TEST(test_border)
{
    qi_host *host = NULL;
    uint8_t codes[4];
    qat_qm_metadata const m = {0};
    open_model(&host, make_graph(QI_U8, 2, QI_BORDER_FLOAT32), &m);
    float const values[] = {0.125f, -0.125f, 1e9f, NAN};
    ck_assert_int_eq(qat_model_codes(qi_host_model(host), 0, values, codes, NULL), QAT_OK);
    ck_assert_mem_eq(codes, ((const uint8_t[]){4, 2, 255, 3}), sizeof codes);
    qi_host_close(host);
    open_model(&host, make_graph(QI_U8, 2, QI_BORDER_TRUNCATED), &m);
    float const others[] = {0.49f, -0.49f, -1e9f, NAN}; /* less than two steps of 1/4 */
    ck_assert_int_eq(qat_model_codes(qi_host_model(host), 0, others, codes, NULL), QAT_OK);
    ck_assert_mem_eq(codes, ((const uint8_t[]){4, 2, 0, 3}), sizeof codes);
    qi_host_close(host);
}
END_TEST

START_TEST(test_codes_only)
{
    qi_host *host = NULL;
    qat_error err;
    uint8_t codes[4];
    float const values[4] = {0};
    qat_qm_metadata const m = {0};
    open_model(&host, make_graph(QI_U8, 2, QI_BORDER_NONE), &m);
    ck_assert_int_eq(qat_model_codes(qi_host_model(host), 0, values, codes, &err),
                     QAT_ERR_UNSUPPORTED);
    ck_assert_str_eq(err.message, "input 0 of the model, x, takes codes, not real numbers");
    qi_host_close(host);
}
END_TEST

static void expect_refused(qi_border border, const qat_qm_metadata *m, const char *message)
{
    uint8_t *bytes = NULL;
    size_t count;
    qat_error err;
    qat_qgraph *g = make_graph(QI_U8, 2, border);
    ck_assert_int_eq(qat_qm_write(g, m, &bytes, &count, &err), QAT_ERR_ARGUMENT);
    ck_assert_msg(strstr(err.message, message), "%s", err.message);
    ck_assert_ptr_null(bytes);
    qat_qgraph_free(g);
}

START_TEST(test_refused)
{
    qat_qm_metadata m = reals(2);
    expect_refused(QI_BORDER_FLOAT32, &m, "the border of its tensor is 1");
    m = reals(3);
    expect_refused(QI_BORDER_NONE, &m, "channels is 3, the format allows 2..2");
    m = reals(2);
    m.preprocessing.resize_short = 5;
    expect_refused(QI_BORDER_NONE, &m, "a picture's size is 5");
    m = reals(2);
    m.preprocessing.central_crop = 500000;
    expect_refused(QI_BORDER_NONE, &m, "a picture's size is 500000");
    m = reals(2);
    m.preprocessing.std_bits[1] = bits_of(0);
    expect_refused(QI_BORDER_NONE, &m, "channel 1 has mean 10 and std 0");
    m.preprocessing.kind = 3;
    expect_refused(QI_BORDER_NONE, &m, "(sounds): a dimension of its tensor is 1, the format");
    m.preprocessing.kind = 4;
    expect_refused(QI_BORDER_NONE, &m, "kind is 4, the format allows 0..3");
}
END_TEST

/** Data of other classes than the network's are refused; those that only know their labels may lack
 *  the last ones. */
START_TEST(test_classes)
{
    static const struct {
        const char *kind;
        int classes, network;
        const char *says;
    } cases[] = {{"digits", 0, 10, NULL},
                 {"digits", 0, 9, "10 classes, but the network has 9"},
                 {"digits", 0, 11, "10 classes, but the network has 11"},
                 {"digits", 12, 10, "data.classes = 12, but digits/test has 10"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qat_input_info const input = {.height = 28,
                                      .width = 28,
                                      .channels = 1,
                                      .classes = cases[i].network,
                                      .type = QAT_SAMPLE_U8};
        char text[128];
        qat_recipe *r;
        qat_dataset *d;
        qat_error err;
        snprintf(text, sizeof text, "[data]\nkind = %s\ntest_count = 20\nclasses = %d\n",
                 cases[i].kind, cases[i].classes);
        ck_assert_int_eq(qat_recipe_parse(&r, text, "r.ini", NULL, 0, &err), QAT_OK);
        qat_status st = qat_recipe_open_data(&d, r, NULL, QAT_SPLIT_TEST, &err);
        if (!st)
            st = qat_input_check(&input, d, &err);
        ck_assert_msg(!st == !cases[i].says, "%zu: %s", i, st ? err.message : "accepted");
        ck_assert_msg(!st || strstr(err.message, cases[i].says), "%s", err.message);
        qat_dataset_close(d);
        qat_recipe_free(r);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("model_input");
    TCase *tcase = tcase_create("model_input");
    tcase_add_test(tcase, test_normalised);
    tcase_add_test(tcase, test_many_channels_share_the_first);
    tcase_add_test(tcase, test_border);
    tcase_add_test(tcase, test_codes_only);
    tcase_add_test(tcase, test_refused);
    tcase_add_test(tcase, test_classes);
    suite_add_tcase(suite, tcase);
    return test_run_suite(suite);
}
