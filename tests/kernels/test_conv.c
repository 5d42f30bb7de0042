/**
 * conv2d and fully_connected as matrix products against the scalar kernels: how windows become
 * rows, how rows fall into tiles, and where a tile's codes go; native where the processor has the
 * instructions, and through SIMDe always. test_gemm sweeps the products themselves.
 */
#include "kernels/one_node.h"
#include "kernels/variants.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

/** One layer's numbers; fully_connected has batch rows of c values, and kernel 0. */
struct layer {
    int32_t h, w, c, o, batch;
    int32_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_left;
    qi_type x, weights, y;
    int bits; /* of x and the weights */
    int relu; /* clamp_lo is the zero-point */
    node_fill x_fill, w_fill;
};

/** Weights' zero-point, the output's, and its clamp. */
struct zero_points {
    int32_t weights, y, lo, hi;
};

static struct zero_points zero_points_of(const struct layer *l, uint64_t *seed)
{
    struct zero_points z = {.y = node_zero_point(seed, l->y, 8)};
    int32_t const lowest = node_lowest(l->y, 8);
    z.weights = l->weights == QI_S8 ? 0 : node_zero_point(seed, QI_U8, l->bits);
    z.lo = l->relu ? z.y : lowest;
    z.hi = node_random_in(seed, 0, 1) ? lowest + 255 : node_random_in(seed, z.lo, lowest + 255);
    return z;
}

static void build_conv(one_node *n, const struct layer *l, uint64_t *seed)
{
    struct zero_points const z = zero_points_of(l, seed);
    int32_t const x[] = {l->batch, l->h, l->w, l->c}, w[] = {l->o, l->kernel_h, l->kernel_w, l->c};
    int32_t const y[] = {
        l->batch, node_outputs(l->h, l->pad_top, l->kernel_h, l->dilation_h, l->stride_h, seed),
        node_outputs(l->w, l->pad_left, l->kernel_w, l->dilation_w, l->stride_w, seed), l->o};
    int32_t const params[] = {l->stride_h, l->stride_w, l->dilation_h, l->dilation_w, l->pad_top,
                              l->pad_left, 1,           z.lo,          z.hi};
    node_init(n, &qi_kernel_conv2d, QI_ROUND_TWICE, seed);
    node_codes(n, QI_ACTIVATION, l->x, l->bits, node_zero_point(seed, l->x, l->bits), 4, x,
               l->x_fill);
    node_codes(n, QI_CONSTANT, l->weights, l->bits, z.weights, 4, w, l->w_fill);
    node_requantization(n, l->o, -11, -4);
    node_output(n, l->y, 8, z.y, 4, y);
    node_params(n, 9, params);
}

static void build_fully_connected(one_node *n, const struct layer *l, uint64_t *seed)
{
    struct zero_points const z = zero_points_of(l, seed);
    int32_t const x[] = {l->batch, l->c}, w[] = {l->o, l->c}, y[] = {l->batch, l->o};
    int32_t const params[] = {z.lo, z.hi};
    node_init(n, &qi_kernel_fully_connected, QI_ROUND_TWICE, seed);
    node_codes(n, QI_ACTIVATION, l->x, l->bits, node_zero_point(seed, l->x, l->bits), 2, x,
               l->x_fill);
    node_codes(n, QI_CONSTANT, l->weights, l->bits, z.weights, 2, w, l->w_fill);
    node_requantization(n, l->o, -11, -4);
    node_output(n, l->y, 8, z.y, 2, y);
    node_params(n, 2, params);
}

static void compare(const struct layer *l, uint64_t *seed)
{
    int const is_conv = l->kernel_h != 0;
    for (int i = 0; gemm_variant[i].name; i++) {
        const qi_isa isa = {.name = gemm_variant[i].name, .gemm = gemm_variant[i].table};
        char what[250];
        one_node n;
        if (!gemm_variant[i].runs_here())
            continue;
        snprintf(what, sizeof what,
                 "%s: x %dx%dx%dx%d to %d channels, kernel %dx%d stride %d,%d dilation %d,%d pad "
                 "%d,%d types %d %d %d bits %d relu %d fills %d %d",
                 isa.name, l->batch, l->h, l->w, l->c, l->o, l->kernel_h, l->kernel_w, l->stride_h,
                 l->stride_w, l->dilation_h, l->dilation_w, l->pad_top, l->pad_left, l->x,
                 l->weights, l->y, l->bits, l->relu, l->x_fill, l->w_fill);
        (is_conv ? build_conv : build_fully_connected)(&n, l, seed);
        ck_assert_msg(node_check(&n), "%s", what);
        ck_assert_msg(node_compare(&n, is_conv ? &qi_fast_conv2d : &qi_fast_fully_connected, &isa,
                                   what, false),
                      "%s", what);
        node_free(&n);
    }
}

/** A first layer: 3x3, stride 2, three channels. */
static const struct layer plain = {.h = 11,
                                   .w = 11,
                                   .c = 3,
                                   .o = 16,
                                   .batch = 1,
                                   .kernel_h = 3,
                                   .kernel_w = 3,
                                   .stride_h = 2,
                                   .stride_w = 2,
                                   .dilation_h = 1,
                                   .dilation_w = 1,
                                   .x = QI_S8,
                                   .weights = QI_S8,
                                   .y = QI_S8,
                                   .bits = 8,
                                   .relu = 1};

static struct layer random_layer(uint64_t *seed)
{
    struct layer l = {.h = node_random_in(seed, 1, 12),
                      .w = node_random_in(seed, 1, 16),
                      .c = node_random_in(seed, 1, 20),
                      .o = node_random_in(seed, 1, 40),
                      .batch = node_random_in(seed, 1, 3),
                      .kernel_h = node_random_in(seed, 1, 5),
                      .kernel_w = node_random_in(seed, 1, 5),
                      .stride_h = node_random_in(seed, 1, 3),
                      .stride_w = node_random_in(seed, 1, 3),
                      .dilation_h = node_random_in(seed, 0, 2) ? 1 : node_random_in(seed, 2, 3),
                      .dilation_w = node_random_in(seed, 0, 2) ? 1 : node_random_in(seed, 2, 3),
                      .x = node_random(seed) & 1 ? QI_U8 : QI_S8,
                      .weights = node_random(seed) & 1 ? QI_U8 : QI_S8,
                      .y = node_random(seed) & 1 ? QI_U8 : QI_S8,
                      .bits = node_random_in(seed, 0, 2) ? 8 : node_random_in(seed, 2, 7),
                      .relu = (int)(node_random(seed) & 1),
                      .x_fill = (node_fill)node_random_in(seed, 0, FILLS - 1),
                      .w_fill = (node_fill)node_random_in(seed, 0, FILLS - 1)};
    l.pad_top = node_random_in(seed, 0, (l.kernel_h - 1) * l.dilation_h);
    l.pad_left = node_random_in(seed, 0, (l.kernel_w - 1) * l.dilation_w);
    return l;
}

/** Kernel rows of every length: copies that move whole words run past the end of each. */
START_TEST(test_every_run)
{
    uint64_t seed = 1;
    for (int32_t c = 1; c <= 34; c++)
        for (int pad = 0; pad <= 1; pad++) {
            struct layer l = plain;
            l.c = c;
            l.kernel_w = node_random_in(&seed, 1, 3);
            l.pad_top = l.pad_left = l.kernel_w > 1 ? pad : 0;
            compare(&l, &seed);
        }
    for (int32_t c = 84; c <= 88; c++) { /* 3 c on both sides of the longest run copied by words */
        struct layer l = plain;
        l.h = l.w = 5;
        l.c = c;
        compare(&l, &seed);
    }
}
END_TEST

/** 1x1: the input as it lies, and every second pixel of it. */
START_TEST(test_pointwise)
{
    uint64_t seed = 2;
    for (int i = 0; i < 60; i++) {
        struct layer l = random_layer(&seed);
        l.kernel_h = l.kernel_w = 1;
        l.pad_top = l.pad_left = 0;
        l.stride_h = l.stride_w = 1 + i % 2;
        l.c = node_random_in(&seed, 1, 100);
        l.o = node_random_in(&seed, 1, 80);
        compare(&l, &seed);
    }
}
END_TEST

/** So much input that a tile is limited by its size, and with few channels and with many. */
START_TEST(test_many_tiles)
{
    uint64_t seed = 3;
    struct layer l = plain;
    l.h = 70;
    l.w = 67;
    l.c = 4;
    l.o = 9;
    l.pad_top = l.pad_left = 1;
    compare(&l, &seed);
    l.stride_h = l.stride_w = 1;
    compare(&l, &seed);
    l.h = l.w = 4;
    l.c = 8;
    l.o = 500;
    compare(&l, &seed);
}
END_TEST

START_TEST(test_random_layers)
{
    uint64_t seed = 4 + (uint64_t)_i * 1000;
    for (int i = 0; i < 250; i++) {
        struct layer const l = random_layer(&seed);
        compare(&l, &seed);
    }
}
END_TEST

START_TEST(test_fully_connected)
{
    uint64_t seed = 5;
    for (int i = 0; i < 150; i++) {
        struct layer l = random_layer(&seed);
        l.kernel_h = l.kernel_w = 0;
        l.batch = i % 3 ? 1 : node_random_in(&seed, 1, 300);
        l.c = node_random_in(&seed, 1, i % 3 ? 1100 : 40);
        l.o = node_random_in(&seed, 1, i % 3 ? 300 : 70);
        compare(&l, &seed);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("conv");
    TCase *t = tcase_create("against the scalar kernels");
    tcase_set_timeout(t, 300);
    tcase_add_test(t, test_every_run);
    tcase_add_test(t, test_pointwise);
    tcase_add_test(t, test_many_tiles);
    tcase_add_loop_test(t, test_random_layers, 0, 3);
    tcase_add_test(t, test_fully_connected);
    suite_add_tcase(s, t);
    for (int i = 0; gemm_variant[i].name; i++)
        printf("%s: %s\n", gemm_variant[i].name,
               gemm_variant[i].runs_here() ? "checked" : "not on this processor");
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    int const failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
