/* Fake quantization equals TensorFlow's CPU op bit for bit: y, dx, dmin, dmax of every case. */
#include "base/files/npy.h"
#include "common/common.h"
#include "common/suite.h"
#include "fakequant/range.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CHANNELS = 64 };

struct fq_case {
    char name[64];
    int bits, channels;
    bool narrow, per_channel;
    qat_npy x, min, max, y, grad, dx, dmin, dmax;
};

static int number(const char *file, const char *key)
{
    char value[64];
    ck_assert_msg(test_case_value(file, key, value, sizeof value), "%s: no %s", file, key);
    return atoi(value);
}

static void read_array(qat_npy *array, const char *folder, const char *name)
{
    char path[1300];
    qat_error err;
    snprintf(path, sizeof path, "%s/%s.npy", folder, name);
    ck_assert_msg(qat_npy_read(array, path, &err) == QAT_OK, "%s", err.message);
    ck_assert_int_eq(array->type, QAT_NPY_F32);
}

static void case_open(struct fq_case *c, const char *root, const char *name)
{
    char folder[1100], file[1200];
    memset(c, 0, sizeof *c);
    snprintf(c->name, sizeof c->name, "%s", name);
    snprintf(folder, sizeof folder, "%s/%s", root, name);
    snprintf(file, sizeof file, "%s/case.txt", folder);
    c->bits = number(file, "num_bits");
    c->narrow = number(file, "narrow_range");
    c->per_channel = number(file, "per_channel");
    c->channels = number(file, "channels");
    ck_assert_int_le(c->channels, MAX_CHANNELS);
    read_array(&c->x, folder, "x");
    read_array(&c->min, folder, "min");
    read_array(&c->max, folder, "max");
    read_array(&c->y, folder, "y");
    read_array(&c->grad, folder, "grad");
    read_array(&c->dx, folder, "dx");
    read_array(&c->dmin, folder, "dmin");
    read_array(&c->dmax, folder, "dmax");
}

static void case_close(struct fq_case *c)
{
    qat_npy *all[] = {&c->x, &c->min, &c->max, &c->y, &c->grad, &c->dx, &c->dmin, &c->dmax};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        qat_npy_free(all[i]);
}

/* Equal bits, except that 0 and -0 count as one number. */
static void same(const struct fq_case *c, const char *what, size_t i, float got, float expected)
{
    ck_assert_msg(got == expected, "%s: %s[%zu] is %.9g, TensorFlow's %.9g", c->name, what, i,
                  (double)got, (double)expected);
}

/* One channel's values, gathered from the last axis. */
static float *column(const qat_npy *array, int channel, int channels, size_t rows)
{
    float *values = malloc(rows * sizeof *values);
    ck_assert_ptr_nonnull(values);
    for (size_t r = 0; r < rows; r++)
        values[r] = ((const float *)array->data)[r * (size_t)channels + (size_t)channel];
    return values;
}

static void check_codes(const struct fq_case *c, const qat_qparams *p, const float *x,
                        const float *y, size_t rows)
{
    for (size_t r = 0; r < rows; r++) {
        int32_t const code = c->per_channel ? qat_code_per_channel(p, x[r]) : qat_code(p, x[r]);
        ck_assert_int_ge(code, p->lo);
        ck_assert_int_le(code, p->hi);
        same(c, "real of code", r, qat_real_of(p, code), y[r]);
    }
}

static void check_channel(const struct fq_case *c, int channel)
{
    size_t const rows = c->x.count / (size_t)c->channels;
    float *x = column(&c->x, channel, c->channels, rows);
    float *y = column(&c->y, channel, c->channels, rows);
    float *grad = column(&c->grad, channel, c->channels, rows);
    float *dx = column(&c->dx, channel, c->channels, rows);
    float *got = calloc(rows, sizeof *got);
    ck_assert_ptr_nonnull(got);
    qat_qparams const p = qat_choose_qparams(
        ((const float *)c->min.data)[channel], ((const float *)c->max.data)[channel],
        c->narrow ? 1 : 0, (int32_t)(((int64_t)1 << c->bits) - 1), false);

    qat_fake_quant_gradient(&p, x, grad, got, rows);
    for (size_t r = 0; r < rows; r++)
        same(c, "dx", r, got[r], dx[r]);
    if (c->per_channel)
        qat_fake_quant_values_per_channel(&p, x, got, rows);
    else
        qat_fake_quant_values(&p, x, got, rows);
    for (size_t r = 0; r < rows; r++)
        same(c, "y", r, got[r], y[r]);
    check_codes(c, &p, x, y, rows);

    float dmin, dmax;
    qat_fake_quant_range_gradient(&p, x, grad, rows, &dmin, &dmax);
    same(c, "dmin", (size_t)channel, dmin, ((const float *)c->dmin.data)[channel]);
    same(c, "dmax", (size_t)channel, dmax, ((const float *)c->dmax.data)[channel]);
    free(x);
    free(y);
    free(grad);
    free(dx);
    free(got);
}

START_TEST(test_all_cases)
{
    char index[1024], root[1024], line[256], name[64];
    if (!test_golden_path(index, sizeof index, "fakequant/index.txt")) {
        test_skip("golden fakequant", "no golden data");
        return;
    }
    snprintf(root, sizeof root, "%s", index);
    *strrchr(root, '/') = 0;
    FILE *file = fopen(index, "r");
    ck_assert_ptr_nonnull(file);
    int cases = 0;
    while (fgets(line, sizeof line, file)) {
        struct fq_case c;
        if (sscanf(line, "%63s", name) != 1)
            continue;
        case_open(&c, root, name);
        for (int channel = 0; channel < c.channels; channel++)
            check_channel(&c, channel);
        case_close(&c);
        cases++;
    }
    fclose(file);
    ck_assert_int_gt(cases, 0);
    printf("golden fakequant: %d cases equal\n", cases);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("golden_fakequant");
    TCase *tests = tcase_create("cases");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, test_all_cases);
    suite_add_tcase(suite, tests);
    return test_run_suite(suite);
}
