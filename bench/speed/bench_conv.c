/**
 * Times convolutions in groups and transposed ones on one thread, with random int8 weights: the
 * core's scalar kernel, and the driver on each instruction set that runs here. They take turns. A
 * time is the least of all rounds; the figure of an instruction set is how many times as fast it is
 * as the kernel.
 *
 *   bench_conv [rounds [small]]      default: 20; small: layers of few pixels and channels
 */
#include "bench/speed/node_timer.h"

#include <stdio.h>
#include <stdlib.h>

struct layer {
    const char *name;
    int32_t side, c, o, kernel, stride, pad, groups; /* groups 0: transposed */
};

static const struct layer large[] = {
    {"3x3, 56x56x128, 32 groups", 56, 128, 128, 3, 1, 1, 32},
    {"3x3, 28x28x256, 32 groups", 28, 256, 256, 3, 1, 1, 32},
    {"3x3, 14x14x512, 32 groups", 14, 512, 512, 3, 1, 1, 32},
    {"3x3, 14x14x1024, 32 groups", 14, 1024, 1024, 3, 1, 1, 32},
    {"3x3, stride 2, 56x56x256, 32 groups", 56, 256, 256, 3, 2, 1, 32},
    {"3x3, 14x14x440, 11 groups", 14, 440, 440, 3, 1, 1, 11},
    {"1x1, 28x28x240, 3 groups", 28, 240, 240, 1, 1, 0, 3},
    {"1x1, 14x14x480, 8 groups", 14, 480, 480, 1, 1, 0, 8},
    {"3x3, 28x28x64, 64 groups", 28, 64, 64, 3, 1, 1, 64},
    {"transposed 2x2, stride 2, 32x32x128 to 64", 32, 128, 64, 2, 2, 0, 0},
    {"transposed 2x2, stride 2, 8x8x512 to 256", 8, 512, 256, 2, 2, 0, 0},
    {"transposed 3x3, stride 2, 32x32x128 to 64", 32, 128, 64, 3, 2, 1, 0},
    {"transposed 4x4, stride 2, 32x32x128 to 64", 32, 128, 64, 4, 2, 1, 0},
    {"transposed 4x4, stride 2, 4x4x512 to 256", 4, 512, 256, 4, 2, 1, 0},
    {"transposed 9x9, stride 3, 32x32x56 to 1", 32, 56, 1, 9, 3, 4, 0},
    {"transposed 16x16, stride 8, 28x28x21 to 21", 28, 21, 21, 16, 8, 4, 0},
};

static const struct layer small[] = {
    {"1x1, 1x1x16, 16 groups", 1, 16, 16, 1, 1, 0, 16},
    {"1x1, 1x1x62, 31 groups", 1, 62, 62, 1, 1, 0, 31},
    {"1x1, 4x4x62, 31 groups", 4, 62, 62, 1, 1, 0, 31},
    {"1x1, 16x16x62, 31 groups", 16, 62, 62, 1, 1, 0, 31},
    {"1x1, 16x16x31, 31 groups", 16, 31, 31, 1, 1, 0, 31},
    {"3x3, 16x16x31, 31 groups", 16, 31, 31, 3, 1, 1, 31},
    {"3x3, 4x4x31, 31 groups", 4, 31, 31, 3, 1, 1, 31},
    {"3x3, 4x4x8, 2 groups", 4, 8, 8, 3, 1, 1, 2},
    {"3x3, 8x8x16, 4 groups", 8, 16, 16, 3, 1, 1, 4},
    {"3x3, 2x2x256, 64 groups", 2, 256, 256, 3, 1, 1, 64},
    {"1x1, 2x2x256, 64 groups", 2, 256, 256, 1, 1, 0, 64},
    {"transposed 2x2, stride 2, 4x4x1 to 1", 4, 1, 1, 2, 2, 0, 0},
    {"transposed 2x2, stride 2, 32x32x1 to 1", 32, 1, 1, 2, 2, 0, 0},
    {"transposed 2x2, stride 2, 2x2x16 to 8", 2, 16, 8, 2, 2, 0, 0},
    {"transposed 4x4, stride 4, 2x2x4 to 2", 2, 4, 2, 4, 4, 0, 0},
    {"transposed 1x1, stride 2, 16x16x8 to 8", 16, 8, 8, 1, 2, 0, 0},
    {"transposed 32x32, stride 32, 1x1x4 to 4", 1, 4, 4, 32, 32, 0, 0},
    {"transposed 32x32, stride 32, 1x1x1 to 1", 1, 1, 1, 32, 32, 0, 0},
    {"transposed 3x3, stride 1, 8x8x2 to 2", 8, 2, 2, 3, 1, 1, 0},
};

enum { MOST_LAYERS = 32, MOST_SETS = 8, MOST_CHANNELS = 1024 };

static void add_requantization(one_node *n, int32_t o, uint64_t *seed)
{
    int32_t values[MOST_CHANNELS];
    for (int which = 0; which < 3; which++) {
        for (int32_t i = 0; i < o; i++)
            values[i] = which == 0   ? node_random_in(seed, -2000, 2000)
                        : which == 1 ? node_random_in(seed, 1 << 30, INT32_MAX)
                                     : node_random_in(seed, -10, -8);
        node_s32(n, o, values);
    }
}

static void build(one_node *n, const struct layer *l, uint64_t *seed)
{
    int const is_transposed = l->groups == 0;
    int32_t const side = l->side, k = l->kernel, s = l->stride, p = l->pad;
    int32_t const out = is_transposed ? side * s : (side + 2 * p - k) / s + 1;
    int32_t const x[] = {1, side, side, l->c}, y[] = {1, out, out, l->o};
    int32_t const w[] = {l->o, k, k, is_transposed ? l->c : l->c / l->groups};
    int32_t const params[] = {s, s, 1, 1, p, p, l->groups, -128, 127};
    int32_t const transposed_params[] = {s, s, p, p, -128, 127};
    node_init(n, is_transposed ? &qi_kernel_transpose_conv2d : &qi_kernel_conv2d, QI_ROUND_TWICE,
              seed);
    node_codes(n, QI_ACTIVATION, QI_S8, 8, -128, 4, x, FILL_RANDOM);
    node_codes(n, QI_CONSTANT, QI_S8, 8, 0, 4, w, FILL_RANDOM);
    add_requantization(n, l->o, seed);
    node_output(n, QI_S8, 8, -128, 4, y);
    if (is_transposed)
        node_params(n, 6, transposed_params);
    else
        node_params(n, 9, params);
}

/** The sets that run here, but scalar; returns how many. */
static int sets_here(const qi_isa *sets[MOST_SETS])
{
    const qi_isa *isa;
    int n = 0;
    for (int i = 0; (isa = qi_isa_entry(i)) && n < MOST_SETS; i++)
        if (isa->gemm && isa->runs_here())
            sets[n++] = isa;
    return n;
}

/** The timers of a layer: the kernel's, then those of the sets. */
static void prepare(node_timer *timers, const struct layer *l, const qi_isa *const *sets, int n)
{
    const qi_fast *fast = l->groups ? &qi_fast_conv2d : &qi_fast_transpose_conv2d;
    for (int i = 0; i <= n; i++) {
        uint64_t seed = 1;
        build(&timers[i].n, l, &seed);
        one_node *node = &timers[i].n;
        if (i > 0 && node_check(node) && fast->accepts(sets[i - 1], &node->model, &node->node))
            node_timer_prepare(&timers[i], fast, sets[i - 1]);
        else
            node_timer_prepare_core(&timers[i]);
    }
}

static void print(const struct layer *l, const node_timer *timers, int n)
{
    printf("| %s | %.1f |", l->name, timers[0].best * 1e6);
    for (int i = 1; i <= n; i++)
        if (timers[i].fast)
            printf(" %.1f |", timers[0].best / timers[i].best);
        else
            printf(" (the core runs it) |");
    printf("\n");
}

int main(int argc, char **argv)
{
    static node_timer timers[MOST_LAYERS][MOST_SETS + 1];
    const qi_isa *sets[MOST_SETS];
    int const rounds = argc > 1 ? atoi(argv[1]) : 20, n = sets_here(sets);
    const struct layer *layers = argc > 2 ? small : large;
    size_t const count = argc > 2 ? sizeof small / sizeof *small : sizeof large / sizeof *large;
    for (size_t i = 0; i < count; i++)
        prepare(timers[i], &layers[i], sets, n);
    for (int r = 0; r < rounds; r++)
        for (size_t i = 0; i < count; i++)
            for (int k = 0; k <= n; k++)
                node_timer_run(&timers[i][k]);
    printf("| one thread, minimum of %d | scalar, us |", rounds);
    for (int k = 0; k < n; k++)
        printf(" %s |", sets[k]->name);
    printf("\n");
    for (size_t i = 0; i < count; i++)
        print(&layers[i], timers[i], n);
    return 0;
}
