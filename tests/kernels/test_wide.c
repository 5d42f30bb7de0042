/** conv2d and fully_connected of 16-bit codes against the scalar kernels, for every instruction
 * set. */
#include "common/suite.h"
#include "kernels/one_node.h"
#include "kernels/variants.h"

#include <check.h>
#include <stdio.h>

enum { TRIALS = 150 };

/** Both on all variants; what they get is the same as the core's. */
static void compare(one_node *n, const qi_fast *fast, const char *what)
{
    ck_assert(node_check(n));
    for (int i = 0; variants[i].name; i++) {
        qi_isa const isa = {.name = variants[i].name, .elementwise = variants[i].elementwise};
        if (variants[i].runs_here() && isa.elementwise)
            ck_assert_msg(node_compare(n, fast, &isa, what, false), "%s", variants[i].name);
    }
    node_free(n);
}

static qi_rounding rounding_of(uint64_t *seed)
{
    return node_random_in(seed, 0, 1) ? QI_ROUND_LONG : QI_ROUND_TWICE;
}

/** TWICE has 32-bit accumulators, so few products. */
static int32_t depth_of(uint64_t *seed, qi_rounding rounding)
{
    return node_random_in(seed, 1, rounding == QI_ROUND_TWICE ? 200 : 700);
}

static void fully_connected(uint64_t *seed)
{
    one_node n;
    qi_rounding const rounding = rounding_of(seed);
    int32_t const rows = node_random_in(seed, 1, 20), channels = node_random_in(seed, 1, 50);
    int32_t const depth = depth_of(seed, rounding), params[] = {INT16_MIN, INT16_MAX};
    node_fill const fill = (node_fill)node_random_in(seed, 0, FILLS - 1);
    node_init(&n, &qi_kernel_fully_connected, rounding, seed);
    node_codes(&n, QI_ACTIVATION, QI_S16, 16, 0, 2, (const int32_t[]){rows, depth}, fill);
    node_codes(&n, QI_CONSTANT, QI_S8, 8, 0, 2, (const int32_t[]){channels, depth}, fill);
    node_requantization(&n, channels, -20, -3);
    node_output(&n, QI_S16, 16, 0, 2, (const int32_t[]){rows, channels});
    node_params(&n, 2, params);
    compare(&n, &qi_fast_wide_fully_connected, "fully_connected");
}

static void conv2d(uint64_t *seed)
{
    one_node n;
    qi_rounding const rounding = rounding_of(seed);
    int32_t const side = node_random_in(seed, 1, 9), kernel = node_random_in(seed, 1, 3);
    int32_t const groups = node_random_in(seed, 1, 2), stride = node_random_in(seed, 1, 2);
    int32_t const c = groups * node_random_in(seed, 1, 9), o = groups * node_random_in(seed, 1, 9);
    int32_t const pad = node_random_in(seed, 0, kernel - 1);
    int32_t const out = node_outputs(side, pad, kernel, 1, stride, seed);
    int32_t const params[] = {stride, stride, 1, 1, pad, pad, groups, INT16_MIN, INT16_MAX};
    node_fill const fill = (node_fill)node_random_in(seed, 0, FILLS - 1);
    node_init(&n, &qi_kernel_conv2d, rounding, seed);
    node_codes(&n, QI_ACTIVATION, QI_S16, 16, 0, 4, (const int32_t[]){2, side, side, c}, fill);
    node_codes(&n, QI_CONSTANT, QI_S8, 8, 0, 4, (const int32_t[]){o, kernel, kernel, c / groups},
               fill);
    node_requantization(&n, o, -20, -3);
    node_output(&n, QI_S16, 16, 0, 4, (const int32_t[]){2, out, out, o});
    node_params(&n, 9, params);
    compare(&n, &qi_fast_wide_conv2d, "conv2d");
}

START_TEST(test_random_layers)
{
    uint64_t seed = 21;
    for (int i = 0; i < TRIALS; i++) {
        fully_connected(&seed);
        conv2d(&seed);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("wide");
    TCase *t = tcase_create("against the scalar kernel");
    tcase_set_timeout(t, 300);
    tcase_add_test(t, test_random_layers);
    suite_add_tcase(s, t);
    return test_run_suite(s);
}
