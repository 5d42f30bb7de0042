/**
 * Compares every depthwise convolution with the scalar kernel. The variants run natively if the
 * processor has the instructions, and always through SIMDe.
 */
#include "common/suite.h"
#include "kernels/layer.h"
#include "kernels/variants.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

/** With its own rounding, and with EVEN. */
static void compare(const struct layer *l, uint64_t *seed)
{
    struct layer even = *l;
    even.even = 1;
    for (int i = 0; variants[i].name; i++) {
        const qi_isa isa = {.name = variants[i].name, .depthwise = variants[i].depthwise};
        if (!variants[i].runs_here())
            continue;
        layer_compare(l, &qi_kernel_depthwise_conv2d, &qi_fast_depthwise_conv2d, &isa, true, seed);
        layer_compare(&even, &qi_kernel_depthwise_conv2d, &qi_fast_depthwise_conv2d, &isa, true,
                      seed);
    }
}

/** As in MobileNet. */
static const struct layer plain = {
    LAYER_3X3,     .h = 7,       .w = 7,        .c = 64,        .multiplier = 1, .stride_h = 1,
    .stride_w = 1, .pad_top = 1, .pad_left = 1, .shift_lo = -9, .shift_hi = -4,
};

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
    static const struct layer most = {.h = 14,
                                      .w = 20,
                                      .c = 40,
                                      .batch = 2,
                                      .kernel_h = 7,
                                      .kernel_w = 7,
                                      .stride_h = 4,
                                      .stride_w = 4,
                                      .shift_lo = -12};
    struct layer l = layer_random(&most, seed);
    l.multiplier = node_random_in(seed, 0, 2) ? 1 : node_random_in(seed, 2, 5);
    l.shift_hi = node_random_in(seed, 0, 3) ? -1 : 2;
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

/** An instruction set that only notes the tail of what it packs. */
static qi_depthwise_tail noted;

static size_t note_bytes(int32_t rows, int32_t taps, int32_t wide)
{
    return 64;
}

static void note_tail(const qi_depthwise_group *group, void *to)
{
    noted = group->tail;
}

static qi_depthwise_tail tail_with(int shift)
{
    static const qi_depthwise note = {.group_bytes = note_bytes, .pack = note_tail};
    const qi_isa isa = {.name = "note", .depthwise = &note};
    struct layer l = plain;
    uint64_t seed = 7;
    one_node n;
    l.even = 1;
    l.shift_lo = l.shift_hi = shift;
    layer_build(&n, &l, &qi_kernel_depthwise_conv2d, &seed);
    ck_assert(node_check(&n));
    void *packed = malloc(qi_fast_depthwise_conv2d.packed_bytes(&isa, &n.model, &n.node));
    qi_fast_depthwise_conv2d.pack(&isa, &n.model, &n.node, packed);
    free(packed);
    node_free(&n);
    return noted;
}

/** Usual layers of rounding EVEN are requantized in lanes; others are not. */
START_TEST(test_even_in_lanes)
{
    ck_assert_int_eq(tail_with(-7), QI_DEPTHWISE_EVEN);
    ck_assert_int_eq(tail_with(20), QI_DEPTHWISE_ANY);
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
    tcase_add_test(t, test_even_in_lanes);
    tcase_add_loop_test(t, test_random_layers, 0, 4);
    suite_add_tcase(s, t);
    for (int i = 0; variants[i].name; i++)
        printf("%s: %s\n", variants[i].name,
               variants[i].runs_here() ? "checked" : "not on this processor");
    return test_run_suite(s);
}
