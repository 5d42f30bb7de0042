/**
 * Float .tflite models that others have published (data/models/mlperf-tiny), as trainable graphs:
 * their outputs lie within the goldens' tolerance of TensorFlow Lite's.
 */
#include "base/files/npy.h"
#include "common/common.h"
#include "common/suite.h"
#include "foreign/foreign.h"
#include "qat/qat.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 2048, LINE_BYTES = 512 };

/** The array in the file that a key of golden.txt names. */
static qat_npy array_of(const char *folder, int picture, const char *key)
{
    char golden[PATH_BYTES], path[PATH_BYTES], line[64], name[LINE_BYTES];
    qat_npy array = {0};
    qat_error err;
    snprintf(golden, sizeof golden, "%s/golden.txt", folder);
    snprintf(line, sizeof line, "pic%d.%s", picture, key);
    ck_assert_msg(test_case_value(golden, line, name, sizeof name), "no %s", line);
    snprintf(path, sizeof path, "%.1500s/%s", folder, name);
    ck_assert_msg(!qat_npy_read(&array, path, &err), "%s", err.message);
    ck_assert_int_eq(array.type, QAT_NPY_F32);
    return array;
}

/** The largest difference, as a share of the largest magnitude, or of 1. Infinity: one is no
 * number. */
static double difference(const qat_node *y, const qat_npy *want)
{
    const float *to = want->data;
    double worst = 0, largest = 1;
    ck_assert_uint_eq(qat_shape_count(&y->shape), want->count);
    for (size_t i = 0; i < want->count; i++) {
        double const d = fabs((double)y->value[i] - (double)to[i]);
        if (isnan(d))
            return INFINITY;
        worst = fmax(worst, d);
        largest = fmax(largest, fabs((double)to[i]));
    }
    return worst / largest;
}

static double compare(const char *folder, qat_graph *graph, qat_node *input, const qat_node *last)
{
    double worst = 0;
    for (int k = 0; k < 8; k++) {
        qat_npy x = array_of(folder, k, "in0"), want = array_of(folder, k, "out0.ref");
        ck_assert_uint_eq(x.count, qat_shape_count(&input->shape));
        memcpy(input->value, x.data, x.count * sizeof(float));
        qat_graph_forward(graph, &(qat_run){.mode = QAT_MODE_EVAL});
        worst = fmax(worst, difference(last, &want));
        qat_npy_free(&x);
        qat_npy_free(&want);
    }
    return worst;
}

static const struct {
    const char *name;
    qat_foreign_options options;
} models[] = {{"resnet8_float", {.height = 32, .width = 32, .channels = 3}},
              {"vww_96_float", {.height = 96, .width = 96, .channels = 3}},
              {"toycar_float", {.height = 1, .width = 1, .channels = 640}}};

START_TEST(answers_lie_within_the_tolerance)
{
    const qat_foreign_options *o = &models[_i].options;
    char below[LINE_BYTES], folder[PATH_BYTES / 2], golden[PATH_BYTES], path[PATH_BYTES];
    char file[LINE_BYTES / 2], tolerance[LINE_BYTES];
    qat_registry *registry;
    qat_graph *graph;
    qat_node *last;
    qat_foreign_params params = {0};
    qat_error err = {0};
    snprintf(below, sizeof below, "golden/models/%s", models[_i].name);
    if (!test_data_path(folder, sizeof folder, below)) {
        test_skip(models[_i].name, "no golden/models");
        return;
    }
    snprintf(golden, sizeof golden, "%s/golden.txt", folder);
    ck_assert(test_case_value(golden, "model", file, sizeof file));
    ck_assert(test_case_value(golden, "tolerance", tolerance, sizeof tolerance));
    snprintf(below, sizeof below, "models/%s", file);
    ck_assert(test_data_path(path, sizeof path, below));
    ck_assert_int_eq(qat_registry_create(&registry, &err), QAT_OK);
    ck_assert_int_eq(qat_graph_create(&graph, registry, &err), QAT_OK);
    qat_node *input =
        qat_graph_input(graph, "input", QAT_SHAPE(1, o->height, o->width, o->channels));
    ck_assert_msg(!qat_foreign_open(path, 0, graph, input, o, &last, &params, &err), "%s",
                  err.message);
    qat_graph_output(graph, last);
    ck_assert_msg(!qat_graph_plan(graph, 1, QAT_PLAN_EVAL, &err), "%s", err.message);
    qat_graph_init_params(graph, 1);
    ck_assert_int_eq(qat_foreign_fill(&params, graph), params.count);
    double const worst = compare(folder, graph, input, last);
    printf("%s: 8 inputs, largest difference %.3g\n", models[_i].name, worst);
    fflush(stdout);
    ck_assert_double_le(worst, strtod(tolerance, NULL));
    qat_foreign_params_free(&params);
    qat_graph_free(graph);
    qat_registry_free(registry);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("float_models");
    TCase *tcase = tcase_create("golden");
    tcase_add_loop_test(tcase, answers_lie_within_the_tolerance, 0,
                        (int)(sizeof models / sizeof *models));
    suite_add_tcase(suite, tcase);
    return test_run_suite(suite);
}
