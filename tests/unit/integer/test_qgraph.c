/* The integer graph: appending, limits, ownership, exhausted memory; multipliers against the
 * goldens.
 */
#include "base/files/npy.h"
#include "common/common.h"
#include "common/fail_alloc.h"
#include "common/suite.h"
#include "integer/quant_ops.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static qat_qtensor activation(const char *name, int size)
{
    qat_qtensor t = {
        .type = QI_U8, .bits = 8, .rank = 2, .dims = {1, size}, .scale = 0.5f, .source_index = -1};
    snprintf(t.name, sizeof t.name, "%s", name);
    return t;
}

START_TEST(test_appending)
{
    qat_error err;
    qat_qgraph *g = qat_qgraph_new();
    for (int i = 0; i < 100; i++) { /* beyond every first capacity */
        qat_qtensor const t = activation("x", i + 1);
        ck_assert_int_eq(qat_qgraph_tensor(g, &t, &err), i);
    }
    ck_assert_int_eq(g->tensors[99].dims[1], 100);
    ck_assert_int_eq(g->tensors[99].dims[2], 1);
    int32_t const values[] = {1, -2, 3, -4};
    int const c = qat_qgraph_constant_s32(g, "c", 2, 2, values, &err);
    ck_assert_int_eq(c, 100);
    ck_assert_int_eq(g->tensors[c].rank, 2);
    ck_assert_uint_eq(qat_qtensor_bytes(&g->tensors[c]), sizeof values);
    ck_assert_mem_eq(g->tensors[c].data, values, sizeof values);
    int const in[] = {0, c}, out[] = {1};
    int32_t const params[] = {7, 8};
    for (int i = 0; i < 40; i++)
        ck_assert_int_eq(
            qat_qgraph_op(g, "mul", "layer", QI_ROUND_TWICE, 2, in, 1, out, 2, params, 9, &err), i);
    ck_assert_str_eq(g->ops[39].op, "mul");
    ck_assert_int_eq(g->ops[39].inputs[1], c);
    ck_assert_int_eq(g->ops[39].params[1], 8);
    ck_assert_int_eq(qat_qgraph_set_io(g, 1, in, 1, out, &err), QAT_OK);
    ck_assert_int_eq(g->outputs[0], 1);
    qat_qgraph_free(g);
    qat_qgraph_free(NULL);
}
END_TEST

START_TEST(test_refusals)
{
    qat_error err;
    qat_qgraph *g = qat_qgraph_new();
    qat_qtensor t = activation("deep", 1);
    t.rank = 5;
    ck_assert_int_eq(qat_qgraph_tensor(g, &t, &err), -1);
    ck_assert_ptr_nonnull(strstr(err.message, "deep: rank 5"));
    int const missing[] = {3};
    ck_assert_int_eq(
        qat_qgraph_op(g, "relu", "r", QI_ROUND_NONE, 1, missing, 0, NULL, 0, NULL, 0, &err), -1);
    ck_assert_ptr_nonnull(strstr(err.message, "r: tensor 3 of 0"));
    int32_t const params[QI_MAX_PARAMS + 1] = {0};
    ck_assert_int_eq(qat_qgraph_op(g, "x", "x", QI_ROUND_NONE, 0, NULL, 0, NULL, QI_MAX_PARAMS + 1,
                                   params, 0, &err),
                     -1);
    ck_assert_int_eq(err.status, QAT_ERR_ARGUMENT);
    ck_assert_int_eq(qat_qgraph_set_io(g, 1, missing, 0, NULL, NULL), QAT_ERR_ARGUMENT);
    ck_assert_int_eq(g->n_ops, 0);
    qat_qgraph_free(g);
}
END_TEST

/** A graph of a few tensors and ops; the status of the first failure. */
static qat_status build(qat_qgraph **graph, qat_error *err)
{
    qat_qgraph *g = *graph = qat_qgraph_new();
    if (!g)
        return qat_fail(err, QAT_ERR_NOMEM, "graph");
    for (int i = 0; i < 20; i++) {
        qat_qtensor const t = activation("x", 4);
        if (qat_qgraph_tensor(g, &t, err) < 0)
            return err->status;
    }
    int32_t const value = 5;
    if (qat_qgraph_constant_s32(g, "c", 1, 1, &value, err) < 0)
        return err->status;
    for (int i = 0; i < 19; i++) {
        int const next = i + 1;
        if (qat_qgraph_op(g, "reshape", "r", QI_ROUND_NONE, 1, &i, 1, &next, 0, NULL, 0, err) < 0)
            return err->status;
    }
    int const first = 0, last = 19;
    return qat_qgraph_set_io(g, 1, &first, 1, &last, err);
}

START_TEST(test_exhausted_memory)
{
    bool failed;
    long n = 0;
    do {
        qat_error err;
        qat_qgraph *g;
        test_fail_alloc_after(n++);
        qat_status const st = build(&g, &err);
        failed = test_fail_alloc_stop();
        ck_assert_int_eq(st, failed ? QAT_ERR_NOMEM : QAT_OK);
        qat_qgraph_free(g);
    } while (failed);
    ck_assert_int_gt(n, 40);
}
END_TEST

static void read_golden(qat_npy *array, const char *name)
{
    char path[1024], below[128];
    qat_error err;
    snprintf(below, sizeof below, "fixedpoint/quantize_multiplier/%s.npy", name);
    ck_assert(test_golden_path(path, sizeof path, below));
    ck_assert_msg(qat_npy_read(array, path, &err) == QAT_OK, "%s", err.message);
}

START_TEST(test_multipliers_equal_goldens)
{
    char path[1024];
    qat_npy real = {0}, mult = {0}, shift = {0};
    if (!test_golden_path(path, sizeof path, "fixedpoint/quantize_multiplier/real.npy")) {
        test_skip("quantize_multiplier", "no golden data");
        return;
    }
    read_golden(&real, "real");
    read_golden(&mult, "multiplier");
    read_golden(&shift, "shift");
    ck_assert_uint_gt(real.count, 100);
    for (size_t i = 0; i < real.count; i++) {
        int32_t m;
        int s;
        qat_quantize_multiplier(((double *)real.data)[i], &m, &s);
        ck_assert_int_eq(m, ((int32_t *)mult.data)[i]);
        ck_assert_int_eq(s, ((int32_t *)shift.data)[i]);
    }
    printf("quantize_multiplier: %zu values\n", real.count);
    qat_npy_free(&real);
    qat_npy_free(&mult);
    qat_npy_free(&shift);
}
END_TEST

START_TEST(test_multiplier_limits)
{
    int32_t m, s32;
    int s;
    qat_quantize_multiplier(0, &m, &s);
    ck_assert(m == 0 && s == 0);
    qat_quantize_multiplier(0.5, &m, &s);
    ck_assert(m == 1 << 30 && s == 0);
    qat_quantize_multiplier(1, &m, &s);
    ck_assert(m == 1 << 30 && s == 1);
    qat_quantize_multiplier(1 - 0x1p-40, &m, &s); /* rounds up to 1 */
    ck_assert(m == 1 << 30 && s == 1);
    qat_quantize_multiplier(INFINITY, &m, &s);
    ck_assert(m == 0 && s == 0);
    qat_requantize_multiplier(0x1p40, &m, &s32);
    ck_assert(m == INT32_MAX && s32 == 30);
    qat_requantize_multiplier(0x1p-50, &m, &s32);
    ck_assert(m == 0 && s32 == 0);
}
END_TEST

START_TEST(test_split_multiplier)
{
    static const double reals[] = {0.5, 1, 0.1, 1.0 / 3, 123456.789, 0x1.fffffffffffffp-30, 1e-12};
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++) {
        int64_t significand;
        int exponent;
        qat_split_multiplier(reals[i], &significand, &exponent);
        ck_assert(significand >= INT64_C(1) << 52 && significand < INT64_C(1) << 53);
        ck_assert_double_eq(ldexp((double)significand, exponent - 53), reals[i]);
    }
}
END_TEST

/** Bounds as codes: rounded half away in float32, within the codes of the tensor. */
START_TEST(test_clamp_codes)
{
    qat_qtensor t = activation("y", 1);
    int32_t lo, hi;
    t.scale = 0.5f;
    t.zero_point = 10;
    qat_clamp_codes(&t, 0, 6, &lo, &hi);
    ck_assert(lo == 10 && hi == 22);
    qat_clamp_codes(&t, -INFINITY, INFINITY, &lo, &hi);
    ck_assert(lo == 0 && hi == 255);
    qat_clamp_codes(&t, -1.25f, 1.25f, &lo, &hi); /* 2.5 steps */
    ck_assert(lo == 7 && hi == 13);
    t.bits = 4;
    qat_clamp_codes(&t, -100, 6, &lo, &hi);
    ck_assert(lo == 0 && hi == 15);
    t.type = QI_S8;
    t.zero_point = -8;
    t.scale = 1e-30f;
    qat_clamp_codes(&t, 0, 6, &lo, &hi);
    ck_assert(lo == -8 && hi == 7);
}
END_TEST

START_TEST(test_epilogue)
{
    qat_qgraph *g = qat_qgraph_new();
    int32_t const one = 1, params[QI_MAX_PARAMS + 1] = {4, 5};
    int const inputs[QAT_EPILOGUE_INPUTS_MAX + 1] = {0};
    const char *long_name = "a name of thirty-two characters .";
    qat_error err;
    ck_assert_int_eq(qat_qgraph_constant_s32(g, "c", 1, 1, &one, NULL), 0);
    ck_assert_str_eq(g->epilogue.name, "");
    ck_assert_int_eq(qat_qgraph_set_epilogue(g, "tail", 1, inputs, 2, params, NULL), QAT_OK);
    ck_assert_str_eq(g->epilogue.name, "tail");
    ck_assert_int_eq(g->epilogue.n_inputs, 1);
    ck_assert_int_eq(g->epilogue.params[1], 5);
    ck_assert_int_eq(qat_qgraph_set_epilogue(g, "", 1, inputs, 0, NULL, &err), QAT_ERR_ARGUMENT);
    ck_assert_int_eq(qat_qgraph_set_epilogue(g, long_name, 1, inputs, 0, NULL, &err),
                     QAT_ERR_ARGUMENT);
    ck_assert_int_eq(qat_qgraph_set_epilogue(g, "t", 0, inputs, 0, NULL, &err), QAT_ERR_ARGUMENT);
    ck_assert_int_eq(
        qat_qgraph_set_epilogue(g, "t", QAT_EPILOGUE_INPUTS_MAX + 1, inputs, 0, NULL, &err),
        QAT_ERR_ARGUMENT);
    ck_assert_int_eq(qat_qgraph_set_epilogue(g, "t", 1, inputs, QI_MAX_PARAMS + 1, params, &err),
                     QAT_ERR_ARGUMENT);
    ck_assert_int_eq(qat_qgraph_set_epilogue(g, "t", 1, (const int[]){1}, 0, NULL, &err),
                     QAT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.message, "tensor 1 of 1"));
    qat_qgraph_free(g);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("qgraph");
    TCase *tc = tcase_create("qgraph");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, test_appending);
    tcase_add_test(tc, test_refusals);
    tcase_add_test(tc, test_exhausted_memory);
    tcase_add_test(tc, test_multipliers_equal_goldens);
    tcase_add_test(tc, test_multiplier_limits);
    tcase_add_test(tc, test_split_multiplier);
    tcase_add_test(tc, test_clamp_codes);
    tcase_add_test(tc, test_epilogue);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
