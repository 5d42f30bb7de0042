/**
 * Compares conv2d, transpose_conv2d and fully_connected as matrix products with the scalar kernels:
 * how windows become rows, how rows are divided into tiles, and where a tile's codes go. The
 * variants run natively if the processor has the instructions, and always through SIMDe. test_gemm
 * tests the products themselves.
 */
#include "common/suite.h"
#include "kernels/layer.h"
#include "kernels/variants.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** A driver that leaves a layer to the core fails the test. */
static void compare_with(const struct layer *l, const qi_fast *fast, uint64_t *seed)
{
    for (int i = 0; gemm_variant[i].name; i++) {
        const qi_isa isa = {.name = gemm_variant[i].name, .gemm = gemm_variant[i].table};
        if (gemm_variant[i].runs_here())
            layer_compare(l, fast->kernel, fast, &isa, false, seed);
    }
}

/** Does the driver run it? The layer that it is asked for is the next one with this seed. */
static bool is_accepted(const struct layer *l, const qi_fast *fast, const qi_isa *isa,
                        uint64_t seed)
{
    one_node n;
    layer_build(&n, l, fast->kernel, &seed);
    ck_assert(node_check(&n));
    bool const accepted = fast->accepts(isa, &n.model, &n.node);
    node_free(&n);
    return accepted;
}

static void compare(const struct layer *l, uint64_t *seed)
{
    compare_with(l, l->kernel_h ? &qi_fast_conv2d : &qi_fast_fully_connected, seed);
}

/** A first layer: stride 2, three channels. */
static const struct layer plain = {
    LAYER_3X3,     .h = 11,       .w = 11,         .c = 3,         .o = 16,
    .stride_h = 2, .stride_w = 2, .shift_lo = -11, .shift_hi = -4,
};

static struct layer random_layer(uint64_t *seed)
{
    static const struct layer most = {.h = 12,
                                      .w = 16,
                                      .c = 20,
                                      .o = 40,
                                      .batch = 3,
                                      .kernel_h = 5,
                                      .kernel_w = 5,
                                      .stride_h = 3,
                                      .stride_w = 3,
                                      .shift_lo = -11,
                                      .shift_hi = -4};
    return layer_random(&most, seed);
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

/**
 * Windows that are read where they lie: lines long and short, strides, dilation, borders, so many
 * bytes that a piece has only some lines, and batches.
 */
START_TEST(test_lines)
{
    uint64_t seed = 6;
    for (int i = 0; i < 60; i++) {
        struct layer l = random_layer(&seed);
        l.h = node_random_in(&seed, 3, 16);
        l.w = node_random_in(&seed, 7, 70);
        l.c = 4 * node_random_in(&seed, 1, i % 8 ? 6 : 40);
        l.kernel_h = node_random_in(&seed, 1, 3);
        l.kernel_w = node_random_in(&seed, 1, 3);
        l.stride_h = node_random_in(&seed, 1, l.kernel_h);
        l.stride_w = node_random_in(&seed, 1, l.kernel_w);
        l.pad_top = node_random_in(&seed, 0, l.kernel_h - 1);
        l.pad_left = node_random_in(&seed, 0, l.kernel_w - 1);
        compare(&l, &seed);
    }
    struct layer wide = plain;
    wide.h = 4;
    wide.w = 530;
    wide.c = 8;
    compare(&wide, &seed);
    wide.stride_h = wide.stride_w = 1;
    compare(&wide, &seed);
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

/**
 * Groups with few channels, which are merged, and with many; lines, patches, 1x1. Some of few
 * channels and pixels are left to the core.
 */
START_TEST(test_groups)
{
    uint64_t seed = 9 + (uint64_t)_i * 1000;
    int tried = 0, compared = 0;
    for (int i = 0; i < 120; i++) {
        struct layer l = random_layer(&seed);
        int32_t const most = i % 4 == 0 ? 24 : i % 4 == 1 ? 9 : 3;
        l.w = node_random_in(&seed, 1, i % 3 ? 16 : 40);
        l.groups = node_random_in(&seed, 2, i % 5 ? 8 : 40);
        l.c = l.groups * (i % 2 ? node_random_in(&seed, 1, most) : most / 2);
        l.o = l.groups * node_random_in(&seed, 1, most);
        if (i % 6 == 0) {
            l.kernel_h = l.kernel_w = 1;
            l.pad_top = l.pad_left = 0;
            l.stride_h = l.stride_w = 1 + i % 12 / 6;
        }
        for (int k = 0; gemm_variant[k].name; k++) {
            const qi_isa isa = {.name = gemm_variant[k].name, .gemm = gemm_variant[k].table};
            if (!gemm_variant[k].runs_here())
                continue;
            tried++;
            if (!is_accepted(&l, &qi_fast_conv2d, &isa, seed))
                continue;
            compared++;
            layer_compare(&l, &qi_kernel_conv2d, &qi_fast_conv2d, &isa, false, &seed);
        }
    }
    ck_assert_int_gt(compared, tried * 3 / 4);
}
END_TEST

/** Kernels smaller than the stride, as large, and larger; any number of outputs. */
START_TEST(test_transposed)
{
    uint64_t seed = 10 + (uint64_t)_i * 1000;
    for (int i = 0; i < 120; i++) {
        struct layer l = random_layer(&seed);
        l.h = node_random_in(&seed, 1, 9);
        l.w = node_random_in(&seed, 1, i % 3 ? 9 : 40);
        l.c = i % 2 ? l.c : 4 * node_random_in(&seed, 1, 10);
        l.stride_h = node_random_in(&seed, 1, 4);
        l.stride_w = node_random_in(&seed, 1, 4);
        l.dilation_h = l.dilation_w = 1;
        if (i % 4 == 0) {
            l.kernel_h = l.stride_h;
            l.kernel_w = l.stride_w;
        }
        l.pad_top = node_random_in(&seed, 0, i % 4 ? l.kernel_h - 1 : 0);
        l.pad_left = node_random_in(&seed, 0, i % 4 ? l.kernel_w - 1 : 0);
        compare_with(&l, &qi_fast_transpose_conv2d, &seed);
    }
}
END_TEST

/** Groups that compute little, and phases that would take much memory, are the core's. */
START_TEST(test_left_to_core)
{
    for (int i = 0; gemm_variant[i].name; i++) {
        const qi_isa isa = {.name = gemm_variant[i].name, .gemm = gemm_variant[i].table};
        struct layer l = plain;
        l.stride_h = l.stride_w = 1;
        l.c = l.o = l.groups = 31; /* a prime: they cannot be merged */
        l.h = l.w = 3;
        ck_assert(!is_accepted(&l, &qi_fast_conv2d, &isa, 1));
        l.h = l.w = 20;
        ck_assert(is_accepted(&l, &qi_fast_conv2d, &isa, 1));
        l.c = l.o = l.groups = 1031; /* a prime: so many products */
        ck_assert(!is_accepted(&l, &qi_fast_conv2d, &isa, 1));
        l.c = l.o = l.groups = 4; /* one product */
        l.h = l.w = 3;
        ck_assert(is_accepted(&l, &qi_fast_conv2d, &isa, 1));
        l.stride_h = l.stride_w = 32;
        ck_assert(is_accepted(&l, &qi_fast_transpose_conv2d, &isa, 1));
        l.o = 257;
        ck_assert(!is_accepted(&l, &qi_fast_transpose_conv2d, &isa, 1));
        l.o = 1;
        l.stride_w = 33;
        ck_assert(!is_accepted(&l, &qi_fast_transpose_conv2d, &isa, 1));
    }
}
END_TEST

/** So much input that each of several products is cut into blocks. */
START_TEST(test_many_products)
{
    uint64_t seed = 11;
    struct layer l = plain;
    l.stride_h = l.stride_w = 1;
    l.h = l.w = 66;
    l.c = 96;
    l.o = 72;
    l.groups = 12;
    compare(&l, &seed);
    l.h = l.w = 40;
    l.c = 33;
    l.groups = 0;
    l.stride_h = l.stride_w = 2;
    compare_with(&l, &qi_fast_transpose_conv2d, &seed);
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

/** Weights of -1 and 1, and inputs of two bits or three: a layer whose bits avx512vbmi counts, or
 * not. */
static struct layer binary(int bits)
{
    struct layer l = plain;
    l.w_fill = FILL_SIGNS;
    l.bits = bits;
    l.stride_h = l.stride_w = 1;
    l.c = l.o = 64;
    return l;
}

/** Each phase has weights whose bits are counted; 128 channels: two panels. */
START_TEST(test_transposed_binary)
{
    uint64_t seed = 12;
    for (int i = 0; i < 8; i++) {
        struct layer l = binary(2);
        l.h = node_random_in(&seed, 1, 9);
        l.w = node_random_in(&seed, 1, 40);
        l.weights = QI_S8;
        l.c = 256;
        l.o = i % 2 ? 64 : 128;
        l.kernel_h = l.kernel_w = 2 + i / 4;
        l.stride_h = l.stride_w = 2;
        compare_with(&l, &qi_fast_transpose_conv2d, &seed);
    }
}
END_TEST

START_TEST(test_binary_is_counted)
{
    uint64_t seed = 8;
    for (int i = 0; gemm_variant[i].name; i++)
        for (int bits = 2; bits <= 3; bits++) {
            const qi_gemm *gemm = gemm_variant[i].table;
            struct layer const l = binary(bits);
            one_node n;
            if (!gemm_variant[i].runs_here() || strcmp(gemm->name, "avx512vbmi") != 0)
                continue;
            layer_build(&n, &l, &qi_kernel_conv2d, &seed);
            ck_assert(node_check(&n));
            qi_gemm_layer const layer = qi_gemm_layer_of(&n.model, &n.node, QI_CONV_CLAMP_LO);
            size_t const bytes = gemm->packed_bytes(&layer);
            void *packed =
                aligned_alloc(QI_FAST_ALIGN, (bytes / QI_FAST_ALIGN + 1) * QI_FAST_ALIGN);
            ck_assert_ptr_nonnull(packed);
            gemm->pack(&layer, packed);
            ck_assert_int_eq(gemm->sequence(packed) != NULL, bits == 2);
            free(packed);
            node_free(&n);
        }
}
END_TEST

/** Windows as lines, as patches, and rows of fully_connected. */
START_TEST(test_binary)
{
    uint64_t seed = 7;
    for (int i = 0; i < 80; i++) {
        struct layer l = i % 2 ? binary(0) : random_layer(&seed);
        l.w = node_random_in(&seed, 7, i % 2 ? 30 : 16);
        l.stride_h = l.stride_w = 1;
        l.pad_top = l.kernel_h > 1;
        l.pad_left = l.kernel_w > 1;
        l.weights = QI_S8;
        l.w_fill = FILL_SIGNS;
        l.bits = node_random_in(&seed, 2, 3);
        l.c = i % 2 ? 4 * node_random_in(&seed, 8, 30) : node_random_in(&seed, 30, 140);
        l.o = node_random_in(&seed, 30, 140);
        if (i % 5 == 0) {
            l.kernel_h = l.kernel_w = 0;
            l.c = node_random_in(&seed, 250, 1100);
        }
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
    tcase_add_test(t, test_lines);
    tcase_add_loop_test(t, test_random_layers, 0, 3);
    tcase_add_loop_test(t, test_groups, 0, 3);
    tcase_add_loop_test(t, test_transposed, 0, 3);
    tcase_add_test(t, test_left_to_core);
    tcase_add_test(t, test_many_products);
    tcase_add_test(t, test_fully_connected);
    tcase_add_test(t, test_transposed_binary);
    tcase_add_test(t, test_binary_is_counted);
    tcase_add_test(t, test_binary);
    suite_add_tcase(s, t);
    for (int i = 0; gemm_variant[i].name; i++)
        printf("%s: %s\n", gemm_variant[i].name,
               gemm_variant[i].runs_here() ? "checked" : "not on this processor");
    return test_run_suite(s);
}
