/**
 * Products, pools, convolutions and Resize of other frameworks' files: what the ONNX project's own
 * tests do not have.
 */
#include "common/foreign_made.h"
#include "common/suite.h"

#include <check.h>
#include <math.h>

/* ------------------------------------------------------------------ products */

START_TEST(a_constant_may_be_the_first_factor)
{
    /* [1 0 2] [1 2]   [11 14]
       [0 1 2] [3 4] = [13 16]
               [5 6]            */
    static const float want[] = {11, 14, 13, 16};
    made_network n;
    made_begin(&n, 2, (const int64_t[]){3, 2});
    int const w =
        made_constant(&n, 2, (const int64_t[]){2, 3}, (const float[]){1, 0, 2, 0, 1, 2}, NULL);
    made_node(&n, "MatMul", w, 0, -1);
    made_gives(&n, 1, 3, 2, made_counted, 4, want, 3);
}
END_TEST

START_TEST(gemm_has_its_constant_on_either_side)
{
    /* [1 0] [1 3 5]   [0]    [1  3  5]
       [0 1] [2 4 6] - [1] =  [1  3  5] */
    static const float want[] = {1, 3, 5, 1, 3, 5};
    made_network n;
    made_begin(&n, 2, (const int64_t[]){3, 2});
    int const w = made_constant(&n, 2, (const int64_t[]){2, 2}, (const float[]){1, 0, 0, 1}, NULL);
    int const bias = made_constant(&n, 2, (const int64_t[]){2, 1}, (const float[]){0, 1}, NULL);
    made_node(&n, "Gemm", w, 0, bias);
    made_int(&n, "transB", 1);
    made_attr(&n, (qat_foreign_attr){.name = "beta", .kind = QAT_FOREIGN_ATTR_FLOAT, .f = -1});
    made_gives(&n, 1, 3, 2, made_counted, 6, want, 1);
}
END_TEST

/** A row is added to the columns of the product, also if the constant is the first factor. */
START_TEST(gemm_adds_its_row_to_columns)
{
    /* [1 0] [1 3 5]
       [0 1] [2 4 6] + [10 20 30]
       [1 0]                      */
    static const float want[] = {11, 23, 35, 12, 24, 36, 11, 23, 35};
    made_network n;
    made_begin(&n, 2, (const int64_t[]){3, 2});
    int const w =
        made_constant(&n, 2, (const int64_t[]){3, 2}, (const float[]){1, 0, 0, 1, 1, 0}, NULL);
    int const row = made_constant(&n, 1, (const int64_t[]){3}, (const float[]){10, 20, 30}, NULL);
    made_node(&n, "Gemm", w, 0, row);
    made_int(&n, "transB", 1);
    made_gives(&n, 1, 3, 2, made_counted, 9, want, 1);
}
END_TEST

/** output_padding is less than the stride, however large it is. */
START_TEST(transposed_outputs_are_not_much_longer)
{
    made_network n;
    made_begin(&n, 4, (const int64_t[]){1, 1, 2, 2});
    int const w =
        made_constant(&n, 4, (const int64_t[]){1, 1, 1, 1}, (const float[]){1, 0, 0, 1}, NULL);
    made_node(&n, "ConvTranspose", 0, w, -1);
    made_ints(&n, "output_padding", 2, (const int64_t[]){INT64_MAX, 0});
    made_refuses(&n, 2, 2, 1, "an output 9223372036854775807 longer than its windows");
}
END_TEST

START_TEST(products_with_lists)
{
    static const float want[] = {5, 11};
    made_network n;
    made_begin(&n, 2, (const int64_t[]){2, 2});
    int const w = made_constant(&n, 1, (const int64_t[]){2}, made_counted, NULL);
    made_node(&n, "MatMul", 0, w, -1);
    made_gives(&n, 1, 1, 4, made_counted, 2, want, 3);
    made_begin(&n, 1, (const int64_t[]){2});
    int const v = made_constant(&n, 1, (const int64_t[]){2}, made_counted, NULL);
    made_node(&n, "MatMul", v, 0, -1);
    made_gives(&n, 1, 1, 2, made_counted, 1, want, 3);
}
END_TEST

START_TEST(matrices_for_each_of_some_dimensions)
{
    /* Of two rows of [1, 2, 1, 2]: times 1 and 10, 100 and 1000. */
    static const float want[] = {21, 4300};
    made_network n;
    made_begin(&n, 4, (const int64_t[]){1, 2, 1, 2});
    int const w =
        made_constant(&n, 3, (const int64_t[]){2, 2, 1}, (const float[]){1, 10, 100, 1000}, NULL);
    made_node(&n, "MatMul", 0, w, -1);
    made_gives(&n, 1, 1, 4, made_counted, 2, want, NAN);
}
END_TEST

/* ------------------------------------------------------------------ Resize */

/** Resize the last two dimensions of [1, 1, h, w] by sizes or scales. */
static void resize(made_network *n, int h, int w, const int64_t *sizes, const float *scales)
{
    static int inputs[4];
    made_begin(n, 4, (const int64_t[]){1, 1, h, w});
    inputs[0] = 0;
    inputs[1] = -1;
    inputs[2] = scales ? made_constant(n, 1, (const int64_t[]){2}, scales, NULL) : -1;
    inputs[3] = sizes ? made_list(n, 2, sizes) : -1;
    made_node(n, "Resize", 0, -1, -1);
    n->nodes[0].inputs = inputs;
    n->nodes[0].n_inputs = 4;
    static const int64_t axes[] = {2, 3};
    made_ints(n, "axes", 2, axes);
}

/* The numbers are those of ONNX's own examples of later versions. */
START_TEST(smaller_pictures_are_smoothed)
{
    static const float scales[] = {0.6F, 0.6F}, linear[] = {2.875F, 4.5F, 9.375F, 11};
    static const float cubic[] = {2.5180721F, 4.2858863F, 9.589329F, 11.357142F};
    made_network n;
    resize(&n, 4, 4, NULL, scales);
    made_text(&n, "mode", "linear");
    made_int(&n, "antialias", 1);
    made_gives(&n, 4, 4, 1, made_counted, 4, linear, 1);
    resize(&n, 4, 4, NULL, scales);
    made_text(&n, "mode", "cubic");
    made_int(&n, "antialias", 1);
    made_gives(&n, 4, 4, 1, made_counted, 4, cubic, 1);
}
END_TEST

START_TEST(half_pixels_may_be_symmetric)
{
    static const float scales[] = {1, 0.6F}, want[] = {1.6666667F, 3.3333333F};
    made_network n;
    resize(&n, 1, 4, NULL, scales);
    made_text(&n, "mode", "linear");
    made_text(&n, "coordinate_transformation_mode", "half_pixel_symmetric");
    made_gives(&n, 1, 4, 1, made_counted, 2, want, 1);
}
END_TEST

START_TEST(sizes_may_keep_their_ratio)
{
    static const float want[] = {1, 1, 2, 1, 1, 2, 3, 3, 4};
    made_network n;
    resize(&n, 2, 2, (const int64_t[]){3, 4}, NULL);
    made_text(&n, "keep_aspect_ratio_policy", "not_larger");
    made_gives(&n, 2, 2, 1, made_counted, 9, want, 1);
}
END_TEST

START_TEST(modes_are_checked)
{
    static const float region[] = {0, 0, NAN, 1};
    made_network n;
    resize(&n, 2, 2, (const int64_t[]){3, 4}, NULL);
    ((int *)n.nodes[0].inputs)[1] = made_constant(&n, 1, (const int64_t[]){4}, region, NULL);
    made_text(&n, "coordinate_transformation_mode", "tf_crop_and_resize");
    made_refuses(&n, 2, 2, 1, "roi holds nan");
    resize(&n, 2, 2, (const int64_t[]){3, 4}, NULL);
    made_text(&n, "mode", "lanczos");
    made_refuses(&n, 2, 2, 1, "attribute mode = lanczos");
    resize(&n, 2, 2, (const int64_t[]){0, 4}, NULL);
    made_refuses(&n, 2, 2, 1, "dimension 2 would have 0 positions");
}
END_TEST

/* ------------------------------------------------------------------ windows */

START_TEST(signals_are_pooled_with_gaps)
{
    static const float want[] = {3, 4, 5, 4};
    made_network n;
    made_begin(&n, 3, (const int64_t[]){1, 1, 5});
    made_node(&n, "MaxPool", 0, -1, -1);
    made_ints(&n, "kernel_shape", 1, (const int64_t[]){2});
    made_ints(&n, "dilations", 1, (const int64_t[]){2});
    made_ints(&n, "pads", 2, (const int64_t[]){0, 1});
    made_gives(&n, 1, 5, 1, made_counted, 4, want, 1);
}
END_TEST

START_TEST(padding_of_gaps_is_left_out)
{
    /* The first window holds positions -1 and 1 of 9 1 5: the larger one inside is 1. */
    static const float x[] = {9, 1, 5}, want[] = {1, 9};
    made_network n;
    made_begin(&n, 3, (const int64_t[]){1, 1, 3});
    made_node(&n, "MaxPool", 0, -1, -1);
    made_ints(&n, "kernel_shape", 1, (const int64_t[]){2});
    made_ints(&n, "dilations", 1, (const int64_t[]){2});
    made_ints(&n, "pads", 2, (const int64_t[]){1, 0});
    made_gives(&n, 1, 3, 1, x, 2, want, 1);
}
END_TEST

START_TEST(windows_in_the_padding_alone_are_refused)
{
    made_network n;
    made_begin(&n, 3, (const int64_t[]){1, 1, 1});
    made_node(&n, "MaxPool", 0, -1, -1);
    made_ints(&n, "kernel_shape", 1, (const int64_t[]){2});
    made_ints(&n, "dilations", 1, (const int64_t[]){2});
    made_ints(&n, "pads", 2, (const int64_t[]){1, 1});
    made_refuses(&n, 1, 1, 1, "lies in the padding");
    made_begin(&n, 3, (const int64_t[]){1, 1, 5});
    made_node(&n, "AveragePool", 0, -1, -1);
    made_ints(&n, "kernel_shape", 1, (const int64_t[]){2});
    made_ints(&n, "dilations", 1, (const int64_t[]){2});
    made_refuses(&n, 1, 5, 1, "attribute dilations: only 1");
}
END_TEST

START_TEST(pictures_of_one_sample_are_convolved)
{
    /* Two pictures of 2 x 2; the window adds a pixel and the one below it, once and ten times. */
    static const float want[] = {1 + 3, 2 + 4, 10 + 30, 20 + 40, 5 + 7, 6 + 8, 50 + 70, 60 + 80};
    made_network n;
    made_begin(&n, 4, (const int64_t[]){2, 1, 2, 2});
    int const w =
        made_constant(&n, 4, (const int64_t[]){2, 1, 2, 1}, (const float[]){1, 1, 10, 10}, NULL);
    made_node(&n, "Conv", 0, w, -1);
    made_gives(&n, 1, 1, 8, made_counted, 8, want, NAN);
    made_begin(&n, 4, (const int64_t[]){2, 1, 2, 2});
    int const v = made_constant(&n, 4, (const int64_t[]){1, 1, 1, 1}, made_counted, NULL);
    made_node(&n, "ConvTranspose", 0, v, -1);
    made_refuses(&n, 1, 1, 8, "has 2 in the first dimension, which is no batch here");
}
END_TEST

START_TEST(signals_of_one_sample_are_convolved)
{
    static const float want[] = {3, 5, 9, 11};
    made_network n;
    made_begin(&n, 3, (const int64_t[]){2, 1, 3});
    int const w = made_constant(&n, 3, (const int64_t[]){1, 1, 2}, (const float[]){1, 1}, NULL);
    made_node(&n, "Conv", 0, w, -1);
    made_gives(&n, 1, 1, 6, made_counted, 4, want, 2);
}
END_TEST

START_TEST(planes_are_enlarged)
{
    /* Two channels of two planes become two of five: strides of 2 with a window of 3. */
    enum { CHANNELS = 2, PLANES = 2, TAPS = 3, LENGTH = 5 };
    float want[CHANNELS * LENGTH] = {0};
    made_network n;
    for (int c = 0; c < CHANNELS; c++)
        for (int o = 0; o < CHANNELS; o++)
            for (int i = 0; i < PLANES; i++)
                for (int k = 0; k < TAPS; k++)
                    want[o * LENGTH + 2 * i + k] +=
                        made_counted[c * PLANES + i] * made_counted[(c * CHANNELS + o) * TAPS + k];
    made_begin(&n, 5, (const int64_t[]){1, CHANNELS, PLANES, 1, 1});
    int const w =
        made_constant(&n, 5, (const int64_t[]){CHANNELS, CHANNELS, TAPS, 1, 1}, made_counted, NULL);
    made_node(&n, "ConvTranspose", 0, w, -1);
    made_ints(&n, "strides", 3, (const int64_t[]){2, 1, 1});
    made_gives(&n, 1, 1, 4, made_counted, CHANNELS * LENGTH, want, NAN);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("foreign_layers");
    TCase *tc = tcase_create("foreign_layers");
    tcase_add_test(tc, a_constant_may_be_the_first_factor);
    tcase_add_test(tc, gemm_has_its_constant_on_either_side);
    tcase_add_test(tc, gemm_adds_its_row_to_columns);
    tcase_add_test(tc, transposed_outputs_are_not_much_longer);
    tcase_add_test(tc, products_with_lists);
    tcase_add_test(tc, matrices_for_each_of_some_dimensions);
    tcase_add_test(tc, smaller_pictures_are_smoothed);
    tcase_add_test(tc, half_pixels_may_be_symmetric);
    tcase_add_test(tc, sizes_may_keep_their_ratio);
    tcase_add_test(tc, modes_are_checked);
    tcase_add_test(tc, signals_are_pooled_with_gaps);
    tcase_add_test(tc, padding_of_gaps_is_left_out);
    tcase_add_test(tc, windows_in_the_padding_alone_are_refused);
    tcase_add_test(tc, pictures_of_one_sample_are_convolved);
    tcase_add_test(tc, signals_of_one_sample_are_convolved);
    tcase_add_test(tc, planes_are_enlarged);
    suite_add_tcase(s, tc);
    return test_run_suite(s);
}
