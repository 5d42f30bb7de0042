/**
 * Every depthwise convolution against the scalar kernel: native where the processor has the
 * instructions, and through SIMDe always.
 */
#include "kernels/one_node.h"
#include "kernels/variants.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

/** One layer's numbers. */
struct layer {
    int32_t h, w, c, multiplier, batch;
    int32_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_left;
    qi_type x, weights, y;
    int bits; /* of x and the weights */
    int relu; /* clamp_lo is the zero-point */
    int shift_lo, shift_hi;
    node_fill x_fill, w_fill;
};

static void build(one_node *n, const struct layer *l, uint64_t *seed)
{
    int32_t const o = l->c * l->multiplier;
    int32_t const oh =
        node_outputs(l->h, l->pad_top, l->kernel_h, l->dilation_h, l->stride_h, seed);
    int32_t const ow =
        node_outputs(l->w, l->pad_left, l->kernel_w, l->dilation_w, l->stride_w, seed);
    int32_t const x[] = {l->batch, l->h, l->w, l->c}, w[] = {1, l->kernel_h, l->kernel_w, o};
    int32_t const y[] = {l->batch, oh, ow, o};
    int32_t const zero_point = node_zero_point(seed, l->y, 8);
    int32_t const w_zero = l->weights == QI_S8 ? 0 : node_zero_point(seed, QI_U8, l->bits);
    int32_t const lo = l->relu ? zero_point : node_lowest(l->y, 8);
    int32_t const hi = node_random_in(seed, 0, 1)
                           ? node_lowest(l->y, 8) + 255
                           : node_random_in(seed, lo, node_lowest(l->y, 8) + 255);
    int32_t const params[] = {l->stride_h,   l->stride_w, l->dilation_h,
                              l->dilation_w, l->pad_top,  l->pad_left,
                              l->multiplier, lo,          hi};
    node_init(n, &qi_kernel_depthwise_conv2d, QI_ROUND_TWICE, seed);
    node_codes(n, QI_ACTIVATION, l->x, l->bits, node_zero_point(seed, l->x, l->bits), 4, x,
               l->x_fill);
    node_codes(n, QI_CONSTANT, l->weights, l->bits, w_zero, 4, w, l->w_fill);
    node_requantization(n, o, l->shift_lo, l->shift_hi);
    node_output(n, l->y, 8, zero_point, 4, y);
    node_params(n, 9, params);
}

static void compare(const struct layer *l, uint64_t *seed)
{
    for (int i = 0; variants[i].name; i++) {
        const qi_isa isa = {.name = variants[i].name, .depthwise = variants[i].depthwise};
        char what[300];
        one_node n;
        if (!variants[i].runs_here())
            continue;
        snprintf(what, sizeof what,
                 "%s: x %dx%dx%dx%d multiplier %d kernel %dx%d stride %d,%d dilation %d,%d pad "
                 "%d,%d types %d %d %d bits %d relu %d shifts %d..%d fills %d %d",
                 isa.name, l->batch, l->h, l->w, l->c, l->multiplier, l->kernel_h, l->kernel_w,
                 l->stride_h, l->stride_w, l->dilation_h, l->dilation_w, l->pad_top, l->pad_left,
                 l->x, l->weights, l->y, l->bits, l->relu, l->shift_lo, l->shift_hi, l->x_fill,
                 l->w_fill);
        build(&n, l, seed);
        ck_assert_msg(node_check(&n), "%s", what);
        ck_assert_msg(node_compare(&n, &qi_fast_depthwise_conv2d, &isa, what,
                                   n.tensors[1].type == QI_U8 && n.tensors[1].zero_point == 0),
                      "%s", what);
        node_free(&n);
    }
}

/** 3x3 of int8 with a rectifier, as in MobileNet. */
static const struct layer plain = {.h = 7,
                                   .w = 7,
                                   .c = 64,
                                   .multiplier = 1,
                                   .batch = 1,
                                   .kernel_h = 3,
                                   .kernel_w = 3,
                                   .stride_h = 1,
                                   .stride_w = 1,
                                   .dilation_h = 1,
                                   .dilation_w = 1,
                                   .pad_top = 1,
                                   .pad_left = 1,
                                   .x = QI_S8,
                                   .weights = QI_S8,
                                   .y = QI_S8,
                                   .bits = 8,
                                   .relu = 1,
                                   .shift_lo = -9,
                                   .shift_hi = -4};

START_TEST(test_every_channel_count)
{
    uint64_t seed = 1;
    for (int32_t c = 1; c <= 100; c++)
        for (int stride = 1; stride <= 2; stride++) {
            struct layer l = plain;
            l.c = c;
            l.stride_h = l.stride_w = stride;
            l.h = node_random_in(&seed, 1, 9);
            compare(&l, &seed);
        }
}
END_TEST

START_TEST(test_every_width)
{
    uint64_t seed = 2;
    static const int32_t channels[] = {1, 3, 8, 16, 24, 32, 96};
    for (size_t i = 0; i < sizeof channels / sizeof channels[0]; i++)
        for (int32_t w = 1; w <= 36; w++) {
            struct layer l = plain;
            l.c = channels[i];
            l.w = w;
            l.h = 3;
            l.stride_w = node_random_in(&seed, 1, 2);
            compare(&l, &seed);
        }
}
END_TEST

START_TEST(test_adversarial_fills)
{
    uint64_t seed = 3;
    for (int x = 0; x < FILLS; x++)
        for (int w = 0; w < FILLS; w++)
            for (int type = 0; type < 4; type++) {
                struct layer l = plain;
                l.x_fill = (node_fill)x;
                l.w_fill = (node_fill)w;
                l.x = type & 1 ? QI_U8 : QI_S8;
                l.weights = type & 2 ? QI_U8 : QI_S8;
                compare(&l, &seed);
                l.relu = 0;
                l.c = 8;
                compare(&l, &seed);
            }
}
END_TEST

/** Blocks of channels that share a strip, the last smaller. */
START_TEST(test_blocks_of_channels)
{
    uint64_t seed = 4;
    static const int32_t channels[] = {144, 320, 528};
    for (size_t i = 0; i < sizeof channels / sizeof channels[0]; i++)
        for (int32_t w = 15; w <= 60; w += 15) {
            struct layer l = plain;
            l.c = channels[i];
            l.w = w;
            l.h = 4;
            compare(&l, &seed);
        }
}
END_TEST

START_TEST(test_shifts)
{
    uint64_t seed = 5;
    for (int lo = -31; lo <= 31; lo += 2)
        for (int relu = 0; relu <= 1; relu++) {
            struct layer l = plain;
            l.relu = relu;
            l.shift_lo = lo;
            l.shift_hi = lo + 1 < 31 ? lo + 1 : 31;
            compare(&l, &seed);
            l.shift_hi = 31;
            compare(&l, &seed);
            l.shift_hi = lo < 0 ? -1 : lo;
            compare(&l, &seed);
        }
}
END_TEST

static struct layer random_layer(uint64_t *seed)
{
    struct layer l = {.h = node_random_in(seed, 1, 14),
                      .w = node_random_in(seed, 1, 20),
                      .c = node_random_in(seed, 1, 40),
                      .multiplier = node_random_in(seed, 0, 2) ? 1 : node_random_in(seed, 2, 5),
                      .batch = node_random_in(seed, 1, 2),
                      .kernel_h = node_random_in(seed, 1, 7),
                      .kernel_w = node_random_in(seed, 1, 7),
                      .stride_h = node_random_in(seed, 1, 4),
                      .stride_w = node_random_in(seed, 1, 4),
                      .dilation_h = node_random_in(seed, 0, 2) ? 1 : node_random_in(seed, 2, 3),
                      .dilation_w = node_random_in(seed, 0, 2) ? 1 : node_random_in(seed, 2, 3),
                      .x = node_random(seed) & 1 ? QI_U8 : QI_S8,
                      .weights = node_random(seed) & 1 ? QI_U8 : QI_S8,
                      .y = node_random(seed) & 1 ? QI_U8 : QI_S8,
                      .bits = node_random_in(seed, 0, 2) ? 8 : node_random_in(seed, 2, 7),
                      .relu = (int)(node_random(seed) & 1),
                      .shift_lo = -12,
                      .shift_hi = node_random_in(seed, 0, 3) ? -1 : 2,
                      .x_fill = (node_fill)node_random_in(seed, 0, FILLS - 1),
                      .w_fill = (node_fill)node_random_in(seed, 0, FILLS - 1)};
    l.pad_top = node_random_in(seed, 0, (l.kernel_h - 1) * l.dilation_h);
    l.pad_left = node_random_in(seed, 0, (l.kernel_w - 1) * l.dilation_w);
    return l;
}

START_TEST(test_random_layers)
{
    uint64_t seed = 6 + (uint64_t)_i * 1000;
    for (int i = 0; i < 400; i++) {
        struct layer const l = random_layer(&seed);
        compare(&l, &seed);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("depthwise");
    TCase *t = tcase_create("against the scalar kernel");
    tcase_set_timeout(t, 300);
    tcase_add_test(t, test_every_channel_count);
    tcase_add_test(t, test_every_width);
    tcase_add_test(t, test_adversarial_fills);
    tcase_add_test(t, test_blocks_of_channels);
    tcase_add_test(t, test_shifts);
    tcase_add_loop_test(t, test_random_layers, 0, 4);
    suite_add_tcase(s, t);
    for (int i = 0; variants[i].name; i++)
        printf("%s: %s\n", variants[i].name,
               variants[i].runs_here() ? "checked" : "not on this processor");
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    int const failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
