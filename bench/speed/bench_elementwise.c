/**
 * Times the ops that are not products of matrices, on one thread, beside memcpy. Tensors have the
 * sizes of common networks and fit the second-level cache.
 *
 *   bench_elementwise [--isa NAME]... [--rounds N] [--op TEXT]
 *
 * Default: every instruction set of this processor, 2000 rounds, every op; else those whose names
 * contain the text.
 *
 * For each op it prints the bytes that it reads and writes in a nanosecond, those of a memcpy that
 * reads and writes as many, and the ratio; then the time of the core's kernel as a multiple of its
 * own. All are the fastest of one run, in which they alternate. The core, which takes longest, runs
 * in one round of CORE_EACH.
 */
#include "bench/speed/node_timer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

/** Each channel's table is a line, as where mean and scale of pixels differ by channel. */
static void normalize(one_node *n, uint64_t *seed)
{
    input_table(n, seed);
    uint8_t *table = (uint8_t *)(uintptr_t)n->in[1];
    for (int32_t c = 0; c < 3; c++)
        for (int32_t i = 0; i < 256; i++)
            table[c * 256 + i] = (uint8_t)(((i - 120 - 3 * c) * (900 + 20 * c)) >> 10);
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

/** Windows over x [1,h,w,c], every pixel, 3x3: Inception's average pools; or 2x2, stride 2. */
static void pool(one_node *n, uint64_t *seed, const qi_kernel *kernel, int32_t size, int32_t c,
                 int32_t k)
{
    int32_t const stride = k == 3 ? 1 : k, pad = k == 3, to = k == 3 ? size : size / k;
    int32_t const x[] = {1, size, size, c}, y[] = {1, to, to, c};
    int32_t const params[] = {k, k, stride, stride, pad, pad, -128, 127};
    node_init(n, kernel, QI_ROUND_NONE, seed);
    codes(n, QI_S8, 4, x);
    node_output(n, QI_S8, 8, 0, 4, y);
    node_params(n, 8, params);
}

static void average_3x3(one_node *n, uint64_t *seed)
{
    pool(n, seed, &qi_kernel_average_pool2d, 35, 192, 3);
}

static void average_2x2(one_node *n, uint64_t *seed)
{
    pool(n, seed, &qi_kernel_average_pool2d, 56, 128, 2);
}

/** A table for all channels: logistic, for example. */
static void one_table(one_node *n, uint64_t *seed)
{
    int32_t const dims[] = {1, 56, 56, 96}, table[] = {1, 256};
    node_init(n, &qi_kernel_table, QI_ROUND_NONE, seed);
    codes(n, QI_S8, 4, dims);
    node_codes(n, QI_CONSTANT, QI_S8, 8, 0, 2, table, FILL_RANDOM);
    node_output(n, QI_S8, 8, 0, 4, dims);
}

static void multipliers(one_node *n, const qi_kernel *kernel, int32_t of_mul)
{
    int32_t const add[] = {20, 1 << 30, 0, 1717986918, -1, 1340000000, -18, -128, 127};
    int32_t const mul[] = {of_mul, -7, -128, 127};
    if (kernel == &qi_kernel_mul)
        node_params(n, 4, mul);
    else
        node_params(n, 9, add);
}

static void binary(one_node *n, uint64_t *seed, const qi_kernel *kernel, int32_t size, int32_t c)
{
    int32_t const dims[] = {1, size, size, c};
    node_init(n, kernel, QI_ROUND_TWICE, seed);
    codes(n, QI_S8, 4, dims);
    codes(n, QI_S8, 4, dims);
    node_output(n, QI_S8, 8, 0, 4, dims);
    multipliers(n, kernel, 1500000000);
}

/** The sum of a residual block. */
static void add(one_node *n, uint64_t *seed)
{
    binary(n, seed, &qi_kernel_add, 56, 64);
}

static void sub(one_node *n, uint64_t *seed)
{
    binary(n, seed, &qi_kernel_sub, 56, 64);
}

static void mul(one_node *n, uint64_t *seed)
{
    binary(n, seed, &qi_kernel_mul, 56, 64);
}

/** x [1,size,size,c] and a row of channels. */
static void by_row(one_node *n, uint64_t *seed, const qi_kernel *kernel, int is_constant,
                   int32_t size, int32_t c)
{
    int32_t const dims[] = {1, size, size, c}, row[] = {1, 1, 1, c};
    node_init(n, kernel, QI_ROUND_TWICE, seed);
    codes(n, QI_S8, 4, dims);
    node_codes(n, is_constant ? QI_CONSTANT : QI_ACTIVATION, QI_S8, 8, -128, 4, row, FILL_RANDOM);
    node_output(n, QI_S8, 8, 0, 4, dims);
    multipliers(n, kernel, 1 << 30);
}

static void excite(one_node *n, uint64_t *seed)
{
    by_row(n, seed, &qi_kernel_mul, 0, 28, 240);
}

static void excite_deep(one_node *n, uint64_t *seed)
{
    by_row(n, seed, &qi_kernel_mul, 0, 14, 672);
}

static void scale(one_node *n, uint64_t *seed)
{
    by_row(n, seed, &qi_kernel_mul, 1, 28, 256);
}

static void scale_narrow(one_node *n, uint64_t *seed)
{
    by_row(n, seed, &qi_kernel_mul, 1, 56, 24);
}

static void add_row(one_node *n, uint64_t *seed)
{
    by_row(n, seed, &qi_kernel_add, 1, 28, 256);
}

/** Parts of a module of Inception, side by side; or the newest part of a dense block. */
static void concat(one_node *n, uint64_t *seed, int32_t size, int count, const int32_t *parts)
{
    int32_t const axis[] = {3};
    int32_t y[] = {1, size, size, 0};
    node_init(n, &qi_kernel_concat, QI_ROUND_NONE, seed);
    for (int i = 0; i < count; i++) {
        int32_t const x[] = {1, size, size, parts[i]};
        codes(n, QI_S8, 4, x);
        y[3] += parts[i];
    }
    node_output(n, QI_S8, 8, 0, 4, y);
    node_params(n, 1, axis);
}

static void concat_module(one_node *n, uint64_t *seed)
{
    static const int32_t parts[] = {64, 64, 96, 32};
    concat(n, seed, 35, 4, parts);
}

static void concat_dense(one_node *n, uint64_t *seed)
{
    static const int32_t parts[] = {256, 32};
    concat(n, seed, 28, 2, parts);
}

/** A row and a column behind a picture, as an imported layer of stride 2 has them. */
static void pad(one_node *n, uint64_t *seed, int32_t side, int32_t c)
{
    int32_t const x[] = {1, side, side, c}, y[] = {1, side + 1, side + 1, c};
    int32_t const params[] = {0, 0, 0, 0, 0, 1, 1, 0, 0};
    node_init(n, &qi_kernel_pad, QI_ROUND_NONE, seed);
    codes(n, QI_S8, 4, x);
    node_output(n, QI_S8, 8, 0, 4, y);
    node_params(n, 9, params);
}

static void pad_pixels(one_node *n, uint64_t *seed)
{
    pad(n, seed, 224, 3);
}

static void pad_narrow(one_node *n, uint64_t *seed)
{
    pad(n, seed, 32, 3);
}

static void pad_layer(one_node *n, uint64_t *seed)
{
    pad(n, seed, 56, 96);
}

/** From one side to another, with corners aligned or half pixel centers. */
static void resize_codes(one_node *n, uint64_t *seed, const qi_kernel *kernel, qi_type type,
                         qi_rounding rounding, int32_t from, int32_t to, int32_t c, int align)
{
    int32_t const x[] = {1, from, from, c}, y[] = {1, to, to, c}, params[] = {align, !align};
    node_init(n, kernel, rounding, seed);
    codes(n, type, 4, x);
    node_output(n, type, 8, type == QI_U8 ? 128 : 0, 4, y);
    node_params(n, 2, params);
}

static void resize(one_node *n, uint64_t *seed, const qi_kernel *kernel, qi_rounding rounding,
                   int32_t from, int32_t to, int32_t c, int align)
{
    resize_codes(n, seed, kernel, QI_S8, rounding, from, to, c, align);
}

static void nearest(one_node *n, uint64_t *seed)
{
    resize(n, seed, &qi_kernel_resize_nearest, QI_ROUND_NONE, 28, 56, 64, 0);
}

static void bilinear(one_node *n, uint64_t *seed)
{
    resize(n, seed, &qi_kernel_resize_bilinear, QI_ROUND_NONE, 32, 64, 64, 0);
}

static void bilinear_even(one_node *n, uint64_t *seed)
{
    resize(n, seed, &qi_kernel_resize_bilinear, QI_ROUND_EVEN, 32, 64, 64, 0);
}

/** No power of two: sums of 32 bits. */
static void bilinear_odd(one_node *n, uint64_t *seed)
{
    resize(n, seed, &qi_kernel_resize_bilinear, QI_ROUND_NONE, 32, 75, 64, 0);
}

/** float32 rounds. */
static void bilinear_float(one_node *n, uint64_t *seed)
{
    resize_codes(n, seed, &qi_kernel_resize_bilinear, QI_U8, QI_ROUND_NONE, 32, 75, 64, 0);
}

static void bilinear_deep(one_node *n, uint64_t *seed)
{
    resize(n, seed, &qi_kernel_resize_bilinear, QI_ROUND_NONE, 33, 65, 256, 1);
}

/** The classes of a segmentation. */
static void bilinear_classes(one_node *n, uint64_t *seed)
{
    resize(n, seed, &qi_kernel_resize_bilinear, QI_ROUND_NONE, 65, 513, 21, 1);
}

/* ------------------------------------------------------------------ all of them */

static const struct {
    const char *name;
    void (*build)(one_node *n, uint64_t *seed);
    const qi_fast *fast;
} ops[] = {{"requantize 224x224x3, a flipped bit", flip, &qi_fast_requantize},
           {"requantize 224x224x3", rescale, &qi_fast_requantize},
           {"table 56x56x96", one_table, &qi_fast_table},
           {"table of 3 channels 224x224x3", input_table, &qi_fast_table},
           {"table of 3 channels, normalization", normalize, &qi_fast_table},
           {"add 56x56x64", add, &qi_fast_add},
           {"sub 56x56x64", sub, &qi_fast_sub},
           {"mul 56x56x64", mul, &qi_fast_mul},
           {"mul 28x28x240 by a computed row", excite, &qi_fast_mul_row},
           {"mul 14x14x672 by a computed row", excite_deep, &qi_fast_mul_row},
           {"mul 28x28x256 by a constant row", scale, &qi_fast_mul_row},
           {"mul 56x56x24 by a constant row", scale_narrow, &qi_fast_mul_row},
           {"add 28x28x256 and a constant row", add_row, &qi_fast_add_row},
           {"average_pool2d 3x3 35x35x192", average_3x3, &qi_fast_average_pool2d},
           {"average_pool2d 2x2 56x56x128", average_2x2, &qi_fast_average_pool2d},
           {"average_pool2d 7x7 7x7x1024", average, &qi_fast_average_pool2d},
           {"max_pool2d 3x3 112x112x64, stride 2", max_pool, &qi_fast_max_pool2d},
           {"mean 7x7x1024", mean, &qi_fast_mean},
           {"concat 35x35x(64+64+96+32)", concat_module, &qi_fast_concat},
           {"concat 28x28x(256+32)", concat_dense, &qi_fast_concat},
           {"pad 224x224x3 to 225x225", pad_pixels, &qi_fast_pad},
           {"pad 56x56x96 to 57x57", pad_layer, &qi_fast_pad},
           {"pad 32x32x3 to 33x33", pad_narrow, &qi_fast_pad},
           {"resize_nearest 28x28x64 to 56x56", nearest, &qi_fast_resize_nearest},
           {"resize_bilinear 32x32x64 to 64x64", bilinear, &qi_fast_resize_bilinear},
           {"resize_bilinear with rounding EVEN", bilinear_even, &qi_fast_resize_bilinear},
           {"resize_bilinear 32x32x64 to 75x75", bilinear_odd, &qi_fast_resize_bilinear},
           {"resize_bilinear of uint8 to 75x75", bilinear_float, &qi_fast_resize_float},
           {"resize_bilinear 33x33x256 to 65x65", bilinear_deep, &qi_fast_resize_bilinear},
           {"resize_bilinear 65x65x21 to 513x513", bilinear_classes, &qi_fast_resize_bilinear},
           {"softmax 1001", softmax, &qi_fast_softmax}};

enum { OPS = sizeof ops / sizeof ops[0] };

/* ------------------------------------------------------------------ memcpy */

/** A copy that reads and writes as many bytes as an op. */
struct copy {
    uint8_t *from, *to;
    size_t bytes; /* copied: half of those read and written */
    double best;  /* seconds */
};

static struct copy copy_like(const node_timer *t)
{
    size_t moved = t->outputs;
    for (int32_t i = 0; i < t->n.node.n_inputs; i++)
        moved += t->n.tensors[t->n.inputs[i]].bytes;
    size_t const bytes = moved / 2, room = (bytes + 63) / 64 * 64;
    struct copy c = {aligned_alloc(64, room), aligned_alloc(64, room), bytes, 1};
    if (!c.from || !c.to)
        exit(EXIT_FAILURE);
    memset(c.from, 1, room);
    memset(c.to, 2, room);
    return c;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void copy_once(struct copy *c)
{
    double const start = now();
    memcpy(c->to, c->from, c->bytes);
    __asm__ volatile("" : : "r"(c->to) : "memory");
    double const took = now() - start;
    c->best = took < c->best ? took : c->best;
}

/* ------------------------------------------------------------------ rows */

enum { CORE_EACH = 20 };

/** Each op by itself, so that its tensors stay in the cache. */
static void print_op(int i, const qi_isa *isa, int rounds)
{
    node_timer t = {0}, by_core = {0};
    uint64_t seed = 1, same_seed = 1;
    ops[i].build(&t.n, &seed);
    ops[i].build(&by_core.n, &same_seed);
    if (!ops[i].fast->accepts(isa, &t.n.model, &t.n.node)) {
        printf("%-38s the core runs it\n", ops[i].name);
        return;
    }
    node_timer_prepare(&t, ops[i].fast, isa);
    node_timer_prepare_core(&by_core);
    struct copy c = copy_like(&t);
    for (int r = 0; r < rounds; r++) {
        node_timer_run(&t);
        copy_once(&c);
        if (r % CORE_EACH == 0)
            node_timer_run(&by_core);
    }
    double const moved = 2 * (double)c.bytes;
    printf("%-38s %8.2f %7.1f %7.1f %7.2f %7.1f\n", ops[i].name, t.best * 1e6,
           moved / t.best * 1e-9, moved / c.best * 1e-9, c.best / t.best, by_core.best / t.best);
    free(c.from);
    free(c.to);
}

static void print_isa(const qi_isa *isa, int rounds, const char *op)
{
    printf("%s, one thread, fastest of %d\n%-38s %8s %7s %7s %7s %7s\n", isa->name, rounds, "",
           "us", "B/ns", "memcpy", "ratio", "core");
    for (int i = 0; i < OPS; i++)
        if (strstr(ops[i].name, op))
            print_op(i, isa, rounds);
}

int main(int argc, char **argv)
{
    const char *op = "";
    int rounds = 2000, named = 0;
    for (int i = 1; i + 1 < argc; i += 2)
        if (strcmp(argv[i], "--rounds") == 0)
            rounds = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--op") == 0)
            op = argv[i + 1];
    for (int i = 1; i + 1 < argc; i += 2)
        if (strcmp(argv[i], "--isa") == 0) {
            print_isa(node_timer_isa(argv[i + 1]), rounds, op);
            named = 1;
        }
    for (int i = 0; !named && qi_isa_entry(i); i++)
        if (qi_isa_entry(i)->runs_here() && qi_isa_entry(i)->elementwise)
            print_isa(qi_isa_entry(i), rounds, op);
    return 0;
}
