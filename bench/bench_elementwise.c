/**
 * Times the ops of MobileNet v1 (224 pixels) and v2 that are not products of matrices, on one
 * thread.
 *
 *   bench_elementwise [isa [rounds]]      default: the best, 2000
 */
#include "node_timer.h"

#include <stdio.h>
#include <stdlib.h>

static void codes(one_node *n, qi_type type, int rank, const int32_t *dims)
{
    node_codes(n, QI_ACTIVATION, type, 8, type == QI_U8 ? 128 : 0, rank, dims, FILL_RANDOM);
}

/** uint8 pixels to int8: mult 2^30, shift 1 is a scale of 1. */
static void quantize(one_node *n, uint64_t *seed, int32_t mult)
{
    int32_t const dims[] = {1, 224, 224, 3}, params[] = {mult, 1, -128, 127};
    node_init(n, &qi_kernel_requantize, QI_ROUND_TWICE, seed);
    codes(n, QI_U8, 4, dims);
    node_output(n, QI_S8, 8, 0, 4, dims);
    node_params(n, 4, params);
}

static void flip(one_node *n, uint64_t *seed)
{
    quantize(n, seed, 1 << 30);
}

static void rescale(one_node *n, uint64_t *seed)
{
    quantize(n, seed, 1234567890);
}

static void input_table(one_node *n, uint64_t *seed)
{
    int32_t const dims[] = {1, 224, 224, 3}, table[] = {3, 256};
    node_init(n, &qi_kernel_table, QI_ROUND_NONE, seed);
    codes(n, QI_U8, 4, dims);
    node_codes(n, QI_CONSTANT, QI_S8, 8, 0, 2, table, FILL_RANDOM);
    node_output(n, QI_S8, 8, 0, 4, dims);
}

static void average(one_node *n, uint64_t *seed)
{
    int32_t const x[] = {1, 7, 7, 1024}, y[] = {1, 1, 1, 1024};
    int32_t const params[] = {7, 7, 2, 2, 0, 0, -128, 127};
    node_init(n, &qi_kernel_average_pool2d, QI_ROUND_NONE, seed);
    codes(n, QI_S8, 4, x);
    node_output(n, QI_S8, 8, 0, 4, y);
    node_params(n, 8, params);
}

static void mean(one_node *n, uint64_t *seed)
{
    int32_t const x[] = {1, 7, 7, 1024}, y[] = {1, 1024}, params[] = {6, 1402438301, -5, -128, 127};
    node_init(n, &qi_kernel_mean, QI_ROUND_TWICE, seed);
    codes(n, QI_S8, 4, x);
    node_output(n, QI_S8, 8, 0, 2, y);
    node_params(n, 5, params);
}

static void max_pool(one_node *n, uint64_t *seed)
{
    int32_t const x[] = {1, 112, 112, 64}, y[] = {1, 56, 56, 64};
    int32_t const params[] = {3, 3, 2, 2, 0, 0, -128, 127};
    node_init(n, &qi_kernel_max_pool2d, QI_ROUND_NONE, seed);
    codes(n, QI_S8, 4, x);
    node_output(n, QI_S8, 8, 0, 4, y);
    node_params(n, 8, params);
}

static void softmax(one_node *n, uint64_t *seed)
{
    int32_t const dims[] = {1, 1001}, params[] = {1340000000, 22, -496};
    node_init(n, &qi_kernel_softmax, QI_ROUND_NONE, seed);
    codes(n, QI_S8, 2, dims);
    node_output(n, QI_S8, 8, -128, 2, dims);
    node_params(n, 3, params);
}

/** The sum of a residual block. */
static void add(one_node *n, uint64_t *seed)
{
    int32_t const dims[] = {1, 56, 56, 24};
    int32_t const params[] = {20, 1 << 30, 0, 1717986918, -1, 1340000000, -18, -128, 127};
    node_init(n, &qi_kernel_add, QI_ROUND_TWICE, seed);
    codes(n, QI_S8, 4, dims);
    codes(n, QI_S8, 4, dims);
    node_output(n, QI_S8, 8, 0, 4, dims);
    node_params(n, 9, params);
}

static const struct {
    const char *name;
    void (*build)(one_node *n, uint64_t *seed);
    const qi_fast *fast;
} ops[] = {{"quantize 224x224x3 by a flipped bit", flip, &qi_fast_requantize},
           {"requantize 224x224x3", rescale, &qi_fast_requantize},
           {"table of 3 channels 224x224x3", input_table, &qi_fast_table},
           {"average_pool2d 7x7x1024", average, &qi_fast_average_pool2d},
           {"mean 7x7x1024", mean, &qi_fast_mean},
           {"softmax 1001", softmax, &qi_fast_softmax},
           {"max_pool2d 3x3 112x112x64, stride 2", max_pool, &qi_fast_max_pool2d},
           {"add 56x56x24", add, &qi_fast_add}};

enum { OPS = sizeof ops / sizeof ops[0] };

int main(int argc, char **argv)
{
    static node_timer timers[OPS];
    const qi_isa *isa = node_timer_isa(argc > 1 ? argv[1] : NULL);
    int const rounds = argc > 2 ? atoi(argv[2]) : 2000;
    uint64_t seed = 1;
    for (int i = 0; i < OPS; i++) {
        ops[i].build(&timers[i].n, &seed);
        node_timer_prepare(&timers[i], ops[i].fast, isa);
    }
    for (int r = 0; r < rounds; r++)
        for (int i = 0; i < OPS; i++)
            node_timer_run(&timers[i]);
    printf("%s, one thread, minimum of %d\n", isa->name, rounds);
    for (int i = 0; i < OPS; i++)
        printf("%-36s %8.2f us, %.3f ns an output\n", ops[i].name, timers[i].best * 1e6,
               timers[i].best * 1e9 / (double)timers[i].outputs);
    return 0;
}
