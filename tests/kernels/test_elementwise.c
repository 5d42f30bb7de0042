/**
 * Compares everything that is not a product of matrices with the scalar kernels: tables,
 * requantize, logistic, tanh, add, sub, mul, pools, mean, concat, pad, resizes, softmax. The
 * variants run natively if the processor has the instructions, and always through SIMDe.
 */
#include "common/suite.h"
#include "infer/host/drivers/resize_plan.h"
#include "infer/host/lines/code_lines.h"
#include "infer/host/lines/pair_line.h"
#include "infer/host/lines/product_line.h"
#include "kernels/one_node.h"
#include "kernels/variants.h"
#include "slow.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** Type, bits and zero-point of codes. */
typedef struct codes {
    qi_type type;
    int bits;
    int32_t zero_point;
} codes;

static int32_t lowest(codes c)
{
    return c.type == QI_S8 ? -(1 << (c.bits - 1)) : 0;
}

static codes random_codes(uint64_t *seed)
{
    codes c = {node_random(seed) & 1 ? QI_U8 : QI_S8,
               node_random_in(seed, 0, 3) ? 8 : node_random_in(seed, 2, 7), 0};
    c.zero_point = lowest(c) + node_random_in(seed, 0, (1 << c.bits) - 1);
    return c;
}

/** clamp_lo <= clamp_hi, often the whole range. */
static qi_rounding some_rounding(uint64_t *seed, qi_rounding usual)
{
    return node_random_in(seed, 0, 1) ? QI_ROUND_ONCE : usual;
}

static void random_clamp(codes c, int32_t clamp[2], uint64_t *seed)
{
    int32_t const highest = lowest(c) + (1 << c.bits) - 1;
    int const whole = node_random_in(seed, 0, 1);
    clamp[0] = whole ? lowest(c) : node_random_in(seed, lowest(c), highest);
    clamp[1] = whole ? highest : node_random_in(seed, clamp[0], highest);
}

static node_fill random_fill(uint64_t *seed)
{
    return (node_fill)node_random_in(seed, 0, FILLS - 1);
}

static int32_t random_mult(uint64_t *seed)
{
    int const any = node_random_in(seed, 0, 15) == 0;
    return node_random_in(seed, any ? 0 : 1 << 30, INT32_MAX);
}

static void input(one_node *n, codes c, int rank, const int32_t *dims)
{
    node_codes(n, QI_ACTIVATION, c.type, c.bits, c.zero_point, rank, dims, random_fill(n->seed));
}

static void output(one_node *n, codes c, int rank, const int32_t *dims)
{
    node_output(n, c.type, c.bits, c.zero_point, rank, dims);
}

/** A node built anew for every variant, from the same numbers. */
typedef void build_fn(one_node *n, const int32_t *sizes, uint64_t *seed);

static void compare(build_fn *build, const qi_fast *fast, const int32_t *sizes, bool may_leave,
                    uint64_t *seed)
{
    for (int i = 0; variants[i].name; i++) {
        const qi_isa isa = {.name = variants[i].name, .elementwise = variants[i].elementwise};
        char what[200];
        one_node n;
        if (!variants[i].runs_here())
            continue;
        snprintf(what, sizeof what, "%s on %s: sizes %d %d %d %d", fast->kernel->name, isa.name,
                 sizes[0], sizes[1], sizes[2], sizes[3]);
        build(&n, sizes, seed);
        n.node.kernel = fast->kernel;
        ck_assert_msg(node_check(&n), "%s", what);
        ck_assert_msg(node_compare(&n, fast, &isa, what, may_leave), "%s", what);
        node_free(&n);
    }
}

/* ------------------------------------------------------------------ one code to one code */

static void build_requantize(one_node *n, const int32_t *sizes, uint64_t *seed)
{
    codes const x = random_codes(seed), y = random_codes(seed);
    int32_t params[4] = {random_mult(seed), node_random_in(seed, -10, 3)};
    random_clamp(y, params + 2, seed);
    node_init(n, &qi_kernel_requantize, some_rounding(seed, QI_ROUND_TWICE), seed);
    input(n, x, 1, sizes);
    output(n, y, 1, sizes);
    node_params(n, 4, params);
}

/** uint8 to int8 of one scale: a flipped bit. */
static void build_flip(one_node *n, const int32_t *sizes, uint64_t *seed)
{
    codes const x = {QI_U8, 8, node_random_in(seed, 0, 255)}, y = {QI_S8, 8, x.zero_point - 128};
    int32_t const params[4] = {1 << 30, 1, -128, 127};
    node_init(n, &qi_kernel_requantize, QI_ROUND_TWICE, seed);
    input(n, x, 1, sizes);
    output(n, y, 1, sizes);
    node_params(n, 4, params);
}

static void build_sigmoid(one_node *n, const int32_t *sizes, uint64_t *seed, int is_tanh)
{
    codes const x = random_codes(seed);
    codes y = random_codes(seed);
    int32_t const params[3] = {random_mult(seed), node_random_in(seed, 18, 22),
                               node_random_in(seed, 1, 300)};
    y.zero_point = lowest(y) + (is_tanh ? 1 << (y.bits - 1) : 0);
    node_init(n, is_tanh ? &qi_kernel_tanh : &qi_kernel_logistic, QI_ROUND_NONE, seed);
    input(n, x, 1, sizes);
    output(n, y, 1, sizes);
    node_params(n, 3, params);
}

static void build_logistic(one_node *n, const int32_t *sizes, uint64_t *seed)
{
    build_sigmoid(n, sizes, seed, 0);
}

static void build_tanh(one_node *n, const int32_t *sizes, uint64_t *seed)
{
    build_sigmoid(n, sizes, seed, 1);
}

/** sizes: pixels, channels, rows of the table. */
static void build_table(one_node *n, const int32_t *sizes, uint64_t *seed)
{
    codes const x = random_codes(seed), y = random_codes(seed);
    int32_t const table[] = {sizes[2], 256};
    node_init(n, &qi_kernel_table, QI_ROUND_NONE, seed);
    input(n, x, 2, sizes);
    node_codes(n, QI_CONSTANT, y.type, y.bits, y.zero_point, 2, table, FILL_RANDOM);
    output(n, y, 2, sizes);
}

/** Pictures normalized by channel: each table is a line. */
static void build_normalize(one_node *n, const int32_t *sizes, uint64_t *seed)
{
    build_table(n, sizes, seed);
    const qi_tensor *t = &n->tensors[1];
    uint8_t *table = (uint8_t *)(uintptr_t)n->in[1];
    for (int32_t c = 0; c < sizes[2]; c++) {
        int32_t const mult = random_mult(seed), zero = node_random_in(seed, 0, 255);
        int32_t const shift = node_random_in(seed, -2, 1), sign = node_random(seed) & 1 ? 1 : -1;
        for (int32_t i = 0; i < 256; i++)
            table[c * 256 + i] =
                (uint8_t)qi_clamp(sign * qi_requantize(i - zero, mult, shift) + t->zero_point,
                                  qi_code_lo(t), qi_code_hi(t));
    }
}

START_TEST(test_maps)
{
    uint64_t seed = 1;
    for (int32_t length = 257; length < 700; length += length < 400 ? 1 : 13) {
        const int32_t sizes[4] = {length};
        compare(build_requantize, &qi_fast_requantize, sizes, false, &seed);
        compare(build_flip, &qi_fast_requantize, sizes, false, &seed);
        compare(build_logistic, &qi_fast_logistic, sizes, false, &seed);
        compare(build_tanh, &qi_fast_tanh, sizes, false, &seed);
    }
    const int32_t large[4] = {40001};
    compare(build_requantize, &qi_fast_requantize, large, false, &seed);
}
END_TEST

START_TEST(test_tables)
{
    uint64_t seed = 2;
    for (int32_t channels = 1; channels <= 9; channels++)
        for (int32_t pixels = 257; pixels < 330; pixels++) {
            const int32_t each[4] = {pixels, channels, channels}, one[4] = {pixels, channels, 1};
            compare(build_table, &qi_fast_table, each, false, &seed);
            compare(build_table, &qi_fast_table, one, false, &seed);
            compare(build_normalize, &qi_fast_table, each, false, &seed);
            compare(build_normalize, &qi_fast_table, one, false, &seed);
        }
    const int32_t large[4] = {30001, 3, 3};
    compare(build_table, &qi_fast_table, large, false, &seed);
}
END_TEST

/* ------------------------------------------------------------------ add, sub, mul */

/** sizes: the output's four dims; each operand may stretch along the first three. */
static void operands(one_node *n, const int32_t *sizes, codes y)
{
    for (int i = 0; i < 2; i++) {
        int32_t dims[4];
        for (int d = 0; d < 4; d++)
            dims[d] = d < 3 && node_random_in(n->seed, 0, 5) == 0 ? 1 : sizes[d];
        if (i == 1)
            for (int d = 0; d < 4; d++) /* some operand has the whole dimension */
                dims[d] = n->tensors[0].dims[d] == 1 ? sizes[d] : dims[d];
        input(n, random_codes(n->seed), 4, dims);
    }
    output(n, y, 4, sizes);
}

static void build_add(one_node *n, const int32_t *sizes, uint64_t *seed)
{
    codes const y = random_codes(seed);
    int32_t params[9] = {node_random_in(seed, 0, 20)};
    for (int i = 1; i < 7; i += 2) {
        params[i] = random_mult(seed);
        params[i + 1] = -node_random_in(seed, 0, i == 5 ? 22 : 6);
    }
    random_clamp(y, params + 7, seed);
    node_init(n, &qi_kernel_add, some_rounding(seed, QI_ROUND_TWICE), seed);
    operands(n, sizes, y);
    node_params(n, 9, params);
}

/** add with rounding EVEN; one in some has ties, or multipliers of 4 and more. */
static void build_even_add(one_node *n, const int32_t *sizes, uint64_t *seed)
{
    codes const y = random_codes(seed);
    int32_t params[9] = {0};
    int const ties = node_random_in(seed, 0, 7) == 0, most = node_random_in(seed, 0, 7) ? 1 : 31;
    for (int i = 1; i < 5; i += 2) {
        params[i] = ties ? 1 << 30 : node_random_in(seed, 1 << 30, INT32_MAX);
        params[i] = node_random_in(seed, 0, 15) ? params[i] : 0;
        params[i + 1] = node_random_in(seed, -4, most);
    }
    random_clamp(y, params + 7, seed);
    node_init(n, &qi_kernel_add, QI_ROUND_EVEN, seed);
    operands(n, sizes, y);
    node_params(n, 9, params);
}

static void build_even_mul(one_node *n, const int32_t *sizes, uint64_t *seed)
{
    codes const y = random_codes(seed);
    int const ties = node_random_in(seed, 0, 7) == 0;
    int const any = node_random_in(seed, 0, 7) == 0;
    int32_t params[4] = {ties ? 1 << 30 : random_mult(seed),
                         any ? node_random_in(seed, -31, 31) : node_random_in(seed, -12, 3)};
    random_clamp(y, params + 2, seed);
    node_init(n, &qi_kernel_mul, QI_ROUND_EVEN, seed);
    operands(n, sizes, y);
    node_params(n, 4, params);
}

static void build_mul(one_node *n, const int32_t *sizes, uint64_t *seed)
{
    codes const y = random_codes(seed);
    int32_t params[4] = {random_mult(seed), -node_random_in(seed, 0, 12)};
    random_clamp(y, params + 2, seed);
    node_init(n, &qi_kernel_mul, some_rounding(seed, QI_ROUND_TWICE), seed);
    operands(n, sizes, y);
    node_params(n, 4, params);
}

START_TEST(test_binary)
{
    uint64_t seed = 3;
    for (int32_t c = 16; c < 200; c++) {
        const int32_t sizes[4] = {node_random_in(&seed, 1, 2), node_random_in(&seed, 1, 4),
                                  node_random_in(&seed, 1, 5), c};
        compare(build_add, &qi_fast_add, sizes, false, &seed);
        compare(build_add, &qi_fast_sub, sizes, false, &seed);
        compare(build_mul, &qi_fast_mul, sizes, false, &seed);
        compare(build_even_add, &qi_fast_add, sizes, false, &seed);
        compare(build_even_mul, &qi_fast_mul, sizes, false, &seed);
    }
    const int32_t large[4] = {1, 60, 61, 17};
    for (int i = 0; i < 4; i++)
        compare(build_add, &qi_fast_add, large, false, &seed);
}
END_TEST

/** Build a node of add, sub or mul again, with other dims. Those of operand `small` are its own. */
static void rebuild(one_node *n, uint64_t *seed, int rank, const int32_t *dims, int small,
                    const int32_t *small_dims, bool is_constant)
{
    for (int i = 0; i < n->model.n_tensors; i++)
        free(n->memory[i]);
    one_node const built = *n;
    node_init(n, built.node.kernel, built.node.rounding, seed);
    for (int i = 0; i < 2; i++) {
        const qi_tensor *t = &built.tensors[i];
        node_codes(n, i == small && is_constant ? QI_CONSTANT : QI_ACTIVATION, t->type, t->bits,
                   t->zero_point, rank, i == small ? small_dims : dims, random_fill(seed));
    }
    const qi_tensor *y = &built.tensors[2];
    node_output(n, y->type, y->bits, y->zero_point, rank, dims);
    node_params(n, built.node.n_params, built.params);
}

/** sizes: the values of x; the other operand is one constant, either of the two. */
static void build_by_constant(one_node *n, const int32_t *sizes, uint64_t *seed, build_fn *build)
{
    int32_t const one[4] = {1, 1, 1, 1};
    build(n, one, seed);
    rebuild(n, seed, 1, sizes, node_random_in(seed, 0, 1), one, true);
}

static void build_add_constant(one_node *n, const int32_t *sizes, uint64_t *seed)
{
    build_by_constant(n, sizes, seed, build_add);
}

static void build_mul_constant(one_node *n, const int32_t *sizes, uint64_t *seed)
{
    build_by_constant(n, sizes, seed, build_mul);
}

static void build_even_add_constant(one_node *n, const int32_t *sizes, uint64_t *seed)
{
    build_by_constant(n, sizes, seed, build_even_add);
}

static void build_even_mul_constant(one_node *n, const int32_t *sizes, uint64_t *seed)
{
    build_by_constant(n, sizes, seed, build_even_mul);
}

START_TEST(test_binary_with_one_constant)
{
    uint64_t seed = 7;
    for (int32_t length = 257; length < 500; length += 7) {
        const int32_t sizes[4] = {length};
        compare(build_add_constant, &qi_fast_add_function, sizes, false, &seed);
        compare(build_add_constant, &qi_fast_sub_function, sizes, false, &seed);
        compare(build_mul_constant, &qi_fast_mul_function, sizes, false, &seed);
        compare(build_even_add_constant, &qi_fast_add_function, sizes, false, &seed);
        compare(build_even_mul_constant, &qi_fast_mul_function, sizes, false, &seed);
    }
}
END_TEST

/** sizes: the output's four dims; one operand is a row of channels, often a constant. */
static void build_by_row(one_node *n, const int32_t *sizes, uint64_t *seed, build_fn *build)
{
    int const row = node_random_in(seed, 0, 1);
    bool const is_constant = node_random_in(seed, 0, 1);
    int32_t const dims[] = {node_random_in(seed, 0, 1) ? sizes[0] : 1, 1, 1, sizes[3]};
    build(n, sizes, seed);
    rebuild(n, seed, 4, sizes, row, dims, is_constant);
}

static void build_add_row(one_node *n, const int32_t *sizes, uint64_t *seed)
{
    build_by_row(n, sizes, seed, build_add);
}

static void build_mul_row(one_node *n, const int32_t *sizes, uint64_t *seed)
{
    build_by_row(n, sizes, seed, build_mul);
}

static void build_even_add_row(one_node *n, const int32_t *sizes, uint64_t *seed)
{
    build_by_row(n, sizes, seed, build_even_add);
}

static void build_even_mul_row(one_node *n, const int32_t *sizes, uint64_t *seed)
{
    build_by_row(n, sizes, seed, build_even_mul);
}

enum { CODES = 256, PAIRS = CODES * CODES };

/** Both operands: all pairs of bytes. */
static void all_pairs_of(one_node *n, const codes c[2])
{
    int32_t const dims[4] = {1, 1, CODES, CODES};
    for (int i = 0; i < 2; i++) {
        node_codes(n, QI_ACTIVATION, c[i].type, 8, c[i].zero_point, 4, dims, FILL_RANDOM);
        uint8_t *bytes = (uint8_t *)(uintptr_t)n->in[i];
        for (int k = 0; k < PAIRS; k++)
            bytes[k] = (uint8_t)(i ? k % CODES : k / CODES);
    }
}

/** Codes of 8 bits; their zero-point is often that of codes which have two signs, or one. */
static codes pair_codes(uint64_t *seed)
{
    codes c = {node_random(seed) & 1 ? QI_U8 : QI_S8, 8, 0};
    int const where = node_random_in(seed, 0, 2);
    c.zero_point = lowest(c) + (where == 0 ? 0 : where == 1 ? 128 : node_random_in(seed, 0, 255));
    return c;
}

/** add with scales as networks have them. All pairs of codes. */
static void build_all_sums(one_node *n, const int32_t *sizes, uint64_t *seed)
{
    codes const c[2] = {pair_codes(seed), pair_codes(seed)}, y = pair_codes(seed);
    int32_t const dims[4] = {1, 1, CODES, CODES};
    int32_t params[9] = {20,
                         node_random_in(seed, 1 << 30, INT32_MAX),
                         -node_random_in(seed, 0, 2),
                         1 << 30,
                         0,
                         node_random_in(seed, 1 << 30, INT32_MAX),
                         -18};
    random_clamp(y, params + 7, seed);
    node_init(n, &qi_kernel_add, some_rounding(seed, QI_ROUND_TWICE), seed);
    all_pairs_of(n, c);
    output(n, y, 4, dims);
    node_params(n, 9, params);
}

/** add with rounding EVEN, likewise. */
static void build_all_even_sums(one_node *n, const int32_t *sizes, uint64_t *seed)
{
    codes const c[2] = {pair_codes(seed), pair_codes(seed)}, y = pair_codes(seed);
    int32_t const dims[4] = {1, 1, CODES, CODES};
    int32_t params[9] = {0, node_random_in(seed, 1 << 30, INT32_MAX), node_random_in(seed, -2, 2),
                         node_random_in(seed, 1 << 30, INT32_MAX), node_random_in(seed, -2, 2)};
    random_clamp(y, params + 7, seed);
    node_init(n, &qi_kernel_add, QI_ROUND_EVEN, seed);
    all_pairs_of(n, c);
    output(n, y, 4, dims);
    node_params(n, 9, params);
}

/** mul, likewise. */
static void build_all_products(one_node *n, const int32_t *sizes, uint64_t *seed)
{
    codes const c[2] = {pair_codes(seed), pair_codes(seed)}, y = pair_codes(seed);
    int32_t const dims[4] = {1, 1, CODES, CODES};
    int32_t params[4] = {node_random_in(seed, 1 << 30, INT32_MAX), -node_random_in(seed, 4, 9)};
    random_clamp(y, params + 2, seed);
    node_init(n, &qi_kernel_mul, some_rounding(seed, QI_ROUND_TWICE), seed);
    all_pairs_of(n, c);
    output(n, y, 4, dims);
    node_params(n, 4, params);
}

static void build_all_even_products(one_node *n, const int32_t *sizes, uint64_t *seed)
{
    build_all_products(n, sizes, seed);
    n->node.rounding = QI_ROUND_EVEN;
}

START_TEST(test_all_pairs)
{
    enum { REPEATS = 40 };
    const int32_t sizes[4] = {0};
    uint64_t seed = 10;
    for (int i = 0; i < REPEATS; i++) {
        compare(build_all_sums, &qi_fast_add, sizes, false, &seed);
        compare(build_all_sums, &qi_fast_sub, sizes, false, &seed);
        compare(build_all_even_sums, &qi_fast_add, sizes, false, &seed);
        compare(build_all_products, &qi_fast_mul, sizes, false, &seed);
        compare(build_all_even_products, &qi_fast_mul, sizes, false, &seed);
    }
}
END_TEST

/** The core's codes of all pairs of a node that was built with them. */
static uint8_t *core_of_pairs(const one_node *n)
{
    static uint8_t y[PAIRS];
    static int32_t scratch[2 * CODES];
    void *out[] = {y};
    qi_call const call = {&n->model, &n->node, n->in, out, scratch};
    n->node.kernel->run(&call);
    return y;
}

static uint8_t of_line[PAIRS];

enum { LINES = TEST_IS_SLOW ? 40 : 400 }; /* they are the same C everywhere */

/** A line that is found gives the core's codes, by its definition; and most nodes have one. */
static void check_lines_of_sums(build_fn *build, const qi_kernel *const kernels[2], uint64_t seed)
{
    const int32_t sizes[4] = {0};
    int found = 0;
    for (int i = 0; i < LINES; i++) {
        qi_pair_line line;
        one_node n;
        build(&n, sizes, &seed);
        n.node.kernel = kernels[i % 2];
        if (qi_pair_line_of_node(&n.model, &n.node, &line)) {
            const uint8_t *y = core_of_pairs(&n);
            for (int k = 0; k < PAIRS; k++)
                of_line[k] = qi_pair_line_code(&line, (uint8_t)(k / CODES), (uint8_t)(k % CODES));
            ck_assert_int_eq(memcmp(of_line, y, PAIRS), 0);
            found++;
        }
        node_free(&n);
    }
    printf("%d of %d sums have a line\n", found, LINES);
    ck_assert_int_gt(found, LINES * 9 / 10);
}

START_TEST(test_lines_of_sums)
{
    const qi_kernel *const kernels[] = {&qi_kernel_add, &qi_kernel_sub};
    check_lines_of_sums(build_all_sums, kernels, 11);
}
END_TEST

START_TEST(test_lines_of_even_sums)
{
    const qi_kernel *const kernels[] = {&qi_kernel_add, &qi_kernel_add};
    check_lines_of_sums(build_all_even_sums, kernels, 12);
}
END_TEST

static void check_lines_of_products(build_fn *build, uint64_t seed)
{
    const int32_t sizes[4] = {0};
    int found = 0;
    for (int i = 0; i < LINES; i++) {
        qi_product_line line;
        one_node n;
        build(&n, sizes, &seed);
        if (qi_product_line_of_node(&n.model, &n.node, &line)) {
            const uint8_t *y = core_of_pairs(&n);
            for (int k = 0; k < PAIRS; k++)
                of_line[k] =
                    qi_product_line_code(&line, (uint8_t)(k / CODES), (uint8_t)(k % CODES));
            ck_assert_int_eq(memcmp(of_line, y, PAIRS), 0);
            found++;
        }
        node_free(&n);
    }
    printf("%d of %d products have a line\n", found, LINES);
    ck_assert_int_gt(found, LINES * 9 / 10);
}

START_TEST(test_lines_of_products)
{
    check_lines_of_products(build_all_products, 13);
}
END_TEST

START_TEST(test_lines_of_even_products)
{
    check_lines_of_products(build_all_even_products, 14);
}
END_TEST

/** Some lines do not fit int32, or do not exist; and NEON has none, so it may leave them. */
START_TEST(test_rows)
{
    uint64_t seed = 8;
    for (int32_t c = 1; c < 140; c += c < 70 ? 1 : 7) {
        const int32_t sizes[4] = {node_random_in(&seed, 1, 2), node_random_in(&seed, 4, 9),
                                  node_random_in(&seed, 4, 9), c};
        compare(build_add_row, &qi_fast_add_row, sizes, true, &seed);
        compare(build_add_row, &qi_fast_sub_row, sizes, true, &seed);
        compare(build_mul_row, &qi_fast_mul_row, sizes, true, &seed);
        compare(build_even_add_row, &qi_fast_add_row, sizes, true, &seed);
        compare(build_even_mul_row, &qi_fast_mul_row, sizes, true, &seed);
    }
    static const int32_t large[][4] = {{1, 40, 50, 67}, {2, 30, 40, 32}, {1, 5, 5, 1001}};
    for (size_t i = 0; i < sizeof large / sizeof large[0]; i++) {
        compare(build_mul_row, &qi_fast_mul_row, large[i], true, &seed);
        compare(build_add_row, &qi_fast_add_row, large[i], true, &seed);
    }
}
END_TEST

/** A line that is found gives every code; codes that are on no line are refused. */
START_TEST(test_lines)
{
    enum { RIGHT = 7, REPEATS = 4000 };
    uint64_t seed = 9;
    int fitted = 0;
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        int32_t const w = node_random_in(&seed, -255, 255), mult = random_mult(&seed);
        int32_t const r = node_random_in(&seed, 6, 9), zero = node_random_in(&seed, 0, 255);
        uint8_t const flip = node_random(&seed) & 1 ? 0x80 : 0;
        int8_t code[256];
        qi_code_line line;
        for (int32_t u = 0; u < 256; u++)
            code[u] = (int8_t)qi_clamp(qi_requantize((u - zero) * w, mult, -r), -128, 127);
        if (!qi_code_line_fit(code, -128, 127, flip, zero, RIGHT, 0, &line))
            continue;
        fitted++;
        for (int32_t u = 0; u < 256; u++)
            ck_assert_int_eq(qi_code_line_code(&line, RIGHT, -128, 127, (uint8_t)(u ^ 0x80 ^ flip)),
                             code[u]);
        int32_t const u = node_random_in(&seed, 1, 254);
        code[u] = (int8_t)(code[u] > 0 ? code[u] - 3 : code[u] + 3);
        ck_assert(!qi_code_line_fit(code, -128, 127, flip, zero, RIGHT, 0, &line));
    }
    printf("%d of %d products have a line\n", fitted, REPEATS);
    ck_assert_int_gt(fitted, REPEATS * 7 / 10); /* most of the others are too steep */
}
END_TEST

/* ------------------------------------------------------------------ pools, mean */

/** sizes: height, width, channels, kernel. */
static void build_pool(one_node *n, const int32_t *sizes, uint64_t *seed)
{
    codes const c = random_codes(seed);
    int32_t const k = sizes[3], stride = node_random_in(seed, 1, 3);
    int32_t const pad = node_random_in(seed, 0, k - 1);
    int32_t const x[] = {node_random_in(seed, 1, 2), sizes[0], sizes[1], sizes[2]};
    int32_t const y[] = {x[0], (sizes[0] - 1 + pad) / stride + 1, (sizes[1] - 1 + pad) / stride + 1,
                         sizes[2]};
    int32_t params[8] = {k, k, stride, stride, pad, pad};
    random_clamp(c, params + 6, seed);
    node_init(n, &qi_kernel_average_pool2d, QI_ROUND_NONE, seed);
    input(n, c, 4, x);
    output(n, c, 4, y);
    node_params(n, 8, params);
}

static void build_average(one_node *n, const int32_t *sizes, uint64_t *seed)
{
    qi_rounding const rounding = some_rounding(seed, QI_ROUND_NONE);
    build_pool(n, sizes, seed);
    n->node.rounding = rounding;
}

static void build_mean(one_node *n, const int32_t *sizes, uint64_t *seed)
{
    codes const y = random_codes(seed);
    int32_t const x[] = {node_random_in(seed, 1, 2), sizes[0], sizes[1], sizes[2]};
    int32_t const to[] = {x[0], sizes[2]};
    int32_t params[5] = {6, random_mult(seed), -node_random_in(seed, 0, 12)};
    random_clamp(y, params + 3, seed);
    node_init(n, &qi_kernel_mean, QI_ROUND_TWICE, seed);
    input(n, random_codes(seed), 4, x);
    output(n, y, 2, to);
    node_params(n, 5, params);
}

START_TEST(test_pools)
{
    uint64_t seed = 4;
    for (int32_t c = 1; c < 80; c++) {
        const int32_t sizes[4] = {node_random_in(&seed, 1, 9), node_random_in(&seed, 1, 9), c,
                                  node_random_in(&seed, 1, 9)};
        compare(build_average, &qi_fast_average_pool2d, sizes, false, &seed);
        compare(build_pool, &qi_fast_max_pool2d, sizes, false, &seed);
        compare(build_mean, &qi_fast_mean, sizes, false, &seed);
    }
    static const int32_t large[][4] = {
        {20, 20, 5, 19}, {3, 3, 300, 3}, {40, 41, 9, 1}, {7, 7, 1024, 7}};
    for (size_t i = 0; i < sizeof large / sizeof large[0]; i++)
        for (int repeat = 0; repeat < 4; repeat++) {
            compare(build_average, &qi_fast_average_pool2d, large[i], false, &seed);
            compare(build_pool, &qi_fast_max_pool2d, large[i], false, &seed);
            compare(build_mean, &qi_fast_mean, large[i], false, &seed);
        }
}
END_TEST

/** All codes equal, all counts that have a reciprocal: every quotient near a half. */
START_TEST(test_average_of_small_counts)
{
    uint64_t seed = 5;
    for (int32_t k = 1; k <= 9; k++)
        for (int repeat = 0; repeat < 30; repeat++) {
            const int32_t sizes[4] = {k, node_random_in(&seed, 1, 9), 33, k};
            compare(build_average, &qi_fast_average_pool2d, sizes, false, &seed);
        }
}
END_TEST

/* ------------------------------------------------------------------ concat */

/** sizes: three dims; the third of each of some inputs is random. */
static void build_concat(one_node *n, const int32_t *sizes, uint64_t *seed)
{
    codes const c = random_codes(seed);
    int32_t const axis[] = {2};
    int const inputs = node_random_in(seed, 1, 4);
    int32_t y[] = {sizes[0], sizes[1], 0};
    node_init(n, &qi_kernel_concat, QI_ROUND_NONE, seed);
    for (int i = 0; i < inputs; i++) {
        int32_t const x[] = {sizes[0], sizes[1], node_random_in(seed, 1, sizes[2])};
        input(n, c, 3, x);
        y[2] += x[2];
    }
    output(n, c, 3, y);
    node_params(n, 1, axis);
}

START_TEST(test_concat)
{
    uint64_t seed = 12;
    for (int repeat = 0; repeat < 40; repeat++) {
        const int32_t sizes[4] = {node_random_in(&seed, 1, 40), node_random_in(&seed, 1, 40),
                                  repeat % 2 ? 100 : 700};
        compare(build_concat, &qi_fast_concat, sizes, false, &seed);
    }
}
END_TEST

/* ------------------------------------------------------------------ pad */

/** sizes: the rank, the least and the largest last dimension; any axes are padded. */
static void build_pad(one_node *n, const int32_t *sizes, uint64_t *seed)
{
    codes const c = random_codes(seed);
    int32_t x[4] = {1, 1, 1, 1}, y[4] = {1, 1, 1, 1}, params[9] = {0};
    for (int d = 0; d < sizes[0]; d++) {
        x[d] = d == sizes[0] - 1 ? node_random_in(seed, sizes[1], sizes[2])
                                 : node_random_in(seed, 1, 9);
        for (int after = 0; after < 2 && node_random_in(seed, 0, 1); after++)
            params[d + 4 * after] = node_random_in(seed, 0, 3);
        y[d] = x[d] + params[d] + params[d + 4];
    }
    params[8] = node_random_in(seed, 0, 1) ? c.zero_point : lowest(c);
    node_init(n, &qi_kernel_pad, QI_ROUND_NONE, seed);
    input(n, c, sizes[0], x);
    output(n, c, sizes[0], y);
    node_params(n, 9, params);
}

START_TEST(test_pad)
{
    uint64_t seed = 14;
    for (int repeat = 0; repeat < 100; repeat++) {
        int32_t const rank = node_random_in(&seed, 0, 2) ? 4 : node_random_in(&seed, 1, 3);
        const int32_t any[4] = {rank, 1, 70}, wide[4] = {rank, 256, 300};
        compare(build_pad, &qi_fast_pad, any, true, &seed); /* some rows are the core's */
        compare(build_pad, &qi_fast_pad, wide, false, &seed);
    }
}
END_TEST

/* ------------------------------------------------------------------ resizes */

/** Corners aligned, half pixel centers, or neither. */
enum { ALIGNED, CENTERS, NEITHER, CONVENTIONS };

/** Sides of which float32 makes no error: larger or smaller by powers of two. */
static void related_sides(int convention, int32_t *in, int32_t *out, uint64_t *seed)
{
    int32_t const by = 1 << node_random_in(seed, 0, 3), steps = node_random_in(seed, 1, 9);
    int const corner = convention == ALIGNED, grows = node_random_in(seed, 0, 2) > 0;
    *in = (grows ? steps : steps * by) + corner;
    *out = (grows ? steps * by : steps) + corner;
}

/** Any sides; one in some has more than QK_NARROW outputs, or is far smaller than the input. */
static void any_sides(int32_t *in, int32_t *out, uint64_t *seed)
{
    int const which = node_random_in(seed, 0, 15);
    *in = which == 0 ? node_random_in(seed, 90, 190) : node_random_in(seed, 1, 16);
    *out = which == 1 ? node_random_in(seed, 1020, 1100) : node_random_in(seed, 1, 30);
}

/** sizes: channels, rounding, are sides related, 1: uint8, 2: any codes. */
static void build_resize(one_node *n, const int32_t *sizes, uint64_t *seed)
{
    codes c = random_codes(seed);
    int const convention = node_random_in(seed, 0, CONVENTIONS - 1);
    int32_t x[4] = {node_random_in(seed, 1, 2), 0, 0, sizes[0]};
    int32_t y[4] = {x[0], 0, 0, sizes[0]};
    int32_t const params[] = {convention == ALIGNED, convention == CENTERS};
    if (sizes[3] < 2) {
        c.type = sizes[3] ? QI_U8 : QI_S8;
        c.zero_point = lowest(c) + node_random_in(seed, 0, (1 << c.bits) - 1);
    }
    for (int d = 1; d < 3; d++)
        if (sizes[2])
            related_sides(convention, &x[d], &y[d], seed);
        else
            any_sides(&x[d], &y[d], seed);
    y[1] = y[2] > 1000 && y[1] > 1000 ? 3 : y[1];
    node_init(n, &qi_kernel_resize_bilinear, (qi_rounding)sizes[1], seed);
    input(n, c, 4, x);
    output(n, c, 4, y);
    node_params(n, 2, params);
}

/** Another driver does uint8 where float32 rounds. */
START_TEST(test_bilinear)
{
    uint64_t seed = 15;
    for (int32_t c = 1; c < 150; c += c < 70 ? 1 : 7) {
        const int32_t of[][4] = {{c, QI_ROUND_NONE, 0, 0}, {c, QI_ROUND_NONE, 1, 0},
                                 {c, QI_ROUND_NONE, 1, 1}, {c, QI_ROUND_ONCE, 0, 2},
                                 {c, QI_ROUND_ONCE, 1, 2}, {c, QI_ROUND_EVEN, 0, 2},
                                 {c, QI_ROUND_EVEN, 1, 2}, {c, QI_ROUND_NONE, 0, 1}};
        for (size_t i = 0; i < sizeof of / sizeof of[0]; i++)
            compare(build_resize, &qi_fast_resize_bilinear, of[i], i == 7, &seed);
        compare(build_resize, &qi_fast_resize_float, of[2], false, &seed);
        compare(build_resize, &qi_fast_resize_float, of[7], false, &seed);
    }
}
END_TEST

START_TEST(test_nearest)
{
    uint64_t seed = 16;
    for (int32_t c = 1; c < 150; c += c < 70 ? 1 : 7) {
        const int32_t any[4] = {c, QI_ROUND_NONE, 0, 2}, related[4] = {c, QI_ROUND_NONE, 1, 2};
        compare(build_resize, &qi_fast_resize_nearest, any, false, &seed);
        compare(build_resize, &qi_fast_resize_nearest, related, false, &seed);
    }
}
END_TEST

/** Weights in lowest terms: how many bits the sums have, and what does not fit. */
START_TEST(test_bits_of_blends)
{
    static const struct {
        int32_t rounding, is_u8, in, out, align, bits; /* 0 bits: does not fit */
    } of[] = {{QI_ROUND_NONE, 0, 32, 64, 0, 16},
              {QI_ROUND_NONE, 0, 16, 128, 0, 16},
              {QI_ROUND_NONE, 0, 65, 513, 1, 16},
              {QI_ROUND_NONE, 0, 33, 513, 1, 16},
              {QI_ROUND_NONE, 0, 32, 75, 0, 32},
              {QI_ROUND_NONE, 0, 99, 2000, 0, 32},
              {QI_ROUND_NONE, 1, 32, 64, 0, 16},
              {QI_ROUND_NONE, 1, 33, 65, 1, 16},
              {QI_ROUND_NONE, 1, 2, 128, 0, 0},
              {QI_ROUND_NONE, 1, 32, 75, 0, 0},
              {QI_ROUND_ONCE, 0, 32, 64, 0, 16},
              {QI_ROUND_EVEN, 1, 10, 30, 0, 16},
              {QI_ROUND_ONCE, 1, 10, 300, 0, 32},
              {QI_ROUND_EVEN, 0, 56, 224, 0, 16},
              {QI_ROUND_ONCE, 0, 999, 1000, 0, 32},
              {QI_ROUND_EVEN, 0, 9999, 9998, 1, 0},
              {QI_ROUND_EVEN, 0, 1, 1, 0, 16},
              {QI_ROUND_NONE, 0, 5, 1, 1, 16},
              /* t fits 16, 32 bits, but not the division */
              {QI_ROUND_EVEN, 0, 4, 15, 1, 32},
              {QI_ROUND_EVEN, 0, 3474, 3475, 1, 0}};
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
        int32_t const x[] = {1, of[i].in, of[i].in, 1}, y[] = {1, of[i].out, of[i].out, 1};
        int32_t const params[] = {of[i].align, !of[i].align};
        uint64_t seed = 1;
        one_node n;
        node_init(&n, &qi_kernel_resize_bilinear, (qi_rounding)of[i].rounding, &seed);
        node_codes(&n, QI_ACTIVATION, of[i].is_u8 ? QI_U8 : QI_S8, 8, 0, 4, x, FILL_RANDOM);
        node_output(&n, of[i].is_u8 ? QI_U8 : QI_S8, 8, 0, 4, y);
        node_params(&n, 2, params);
        qi_resize_plan const plan = qi_resize_plan_of(&n.model, &n.node);
        ck_assert_msg((plan.fits ? plan.blend.bits : 0) == of[i].bits, "%d to %d: %d bits",
                      of[i].in, of[i].out, plan.fits ? plan.blend.bits : 0);
        node_free(&n);
    }
}
END_TEST

/* ------------------------------------------------------------------ softmax */

static void build_softmax(one_node *n, const int32_t *sizes, uint64_t *seed)
{
    codes y = random_codes(seed);
    int32_t const shift = node_random_in(seed, 15, 28);
    int64_t const least = -((INT64_C(31) << 26) >> shift);
    int32_t const params[3] = {node_random_in(seed, 1 << 30, INT32_MAX), shift,
                               (int32_t)(node_random(seed) & 1 ? least : least / 2)};
    y.zero_point = lowest(y);
    node_init(n, &qi_kernel_softmax, QI_ROUND_NONE, seed);
    input(n, random_codes(seed), 2, sizes);
    output(n, y, 2, sizes);
    node_params(n, 3, params);
}

START_TEST(test_softmax)
{
    uint64_t seed = 6;
    for (int32_t length = 64; length < 200; length++) {
        const int32_t sizes[4] = {3, length};
        compare(build_softmax, &qi_fast_softmax, sizes, false, &seed);
    }
    for (int repeat = 0; repeat < 20; repeat++) {
        const int32_t sizes[4] = {2, node_random_in(&seed, 1000, 4096)};
        compare(build_softmax, &qi_fast_softmax, sizes, false, &seed);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("elementwise");
    TCase *t = tcase_create("against the scalar kernels");
    tcase_set_timeout(t, 300);
    tcase_add_test(t, test_maps);
    tcase_add_test(t, test_tables);
    tcase_add_test(t, test_binary);
    tcase_add_test(t, test_binary_with_one_constant);
    tcase_add_test(t, test_all_pairs);
    tcase_add_test(t, test_lines_of_sums);
    tcase_add_test(t, test_lines_of_even_sums);
    tcase_add_test(t, test_lines_of_products);
    tcase_add_test(t, test_lines_of_even_products);
    tcase_add_test(t, test_rows);
    tcase_add_test(t, test_lines);
    tcase_add_test(t, test_pools);
    tcase_add_test(t, test_average_of_small_counts);
    tcase_add_test(t, test_concat);
    tcase_add_test(t, test_pad);
    tcase_add_test(t, test_bilinear);
    tcase_add_test(t, test_nearest);
    tcase_add_test(t, test_bits_of_blends);
    tcase_add_test(t, test_softmax);
    suite_add_tcase(s, t);
    for (int i = 0; variants[i].name; i++)
        printf("%s: %s\n", variants[i].name,
               variants[i].runs_here() ? "checked" : "not on this processor");
    return test_run_suite(s);
}
