/**
 * Ops of 16-bit codes: layers against sums in 64 bits, add of shifted codes, lines of tables, and
 * what is refused. Also batch_matmul of both widths. TensorFlow Lite's own results are in
 * golden/ops2.
 */
#include "common/suite.h"
#include "infer/arithmetic/code_functions_i16.h"
#include "infer/arithmetic/fixedpoint.h"
#include "unit/infer/test_infer_build.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEPTH = 1500, MOST_CHANNELS = 5, MOST_ROWS = 11 };

static const codes_of s16 = {QI_S16, 16, 0}, s8 = {QI_S8, 8, 0};

static int64_t random_i64(uint64_t *seed)
{
    uint64_t const high = test_random(seed), low = test_random(seed);
    return (int64_t)(high << 32 | low);
}

/* ------------------------------------------------------------------ rounding */

START_TEST(test_double_of_48_bits)
{
    uint64_t seed = 5, top = UINT64_C(1) << 53;
    for (int i = 0; i < 300000; i++) {
        int64_t const acc = random_i64(&seed) >> (16 + test_random(&seed) % 48);
        uint64_t significand = top / 2 | (uint64_t)random_i64(&seed) >> 12;
        int const exponent = test_random_in(&seed, -60, 20);
        if (i & 1) /* few bits set: many products lie on ties */
            significand &= ~((UINT64_C(1) << (20 + test_random(&seed) % 32)) - 1);
        double const real = round((double)acc * ldexp((double)significand, exponent - 53));
        double const limited = fmin(fmax(real, INT32_MIN), INT32_MAX);
        ck_assert_int_eq(qi_requantize_double_i64(acc, (int64_t)significand, exponent),
                         (int32_t)limited);
        if (acc >= INT32_MIN && acc <= INT32_MAX)
            ck_assert_int_eq(qi_requantize_double((int32_t)acc, (int64_t)significand, exponent),
                             (int32_t)limited);
    }
}
END_TEST

/* ------------------------------------------------------------------ layers */

/** A fully connected layer, or a depthwise one of one pixel and `depth` taps. */
struct layer {
    uint64_t seed;
    qi_rounding rounding;
    bool depthwise, is_long; /* is_long: a bias of 64 bits */
    int32_t rows, depth, channels;
    int16_t x[MOST_ROWS * MOST_DEPTH];
    int8_t w[MOST_CHANNELS * MOST_DEPTH];
    int64_t bias[MOST_CHANNELS];
    int32_t mult[2 * MOST_CHANNELS], shift[MOST_CHANNELS];
    int16_t got[MOST_ROWS * MOST_CHANNELS];
};

static int constant(qat_qgraph *g, qi_type type, int rank, const int32_t *dims, const void *values)
{
    qat_error err;
    qat_qtensor t = {.type = type,
                     .bits = 8 * (int)qi_type_bytes(type),
                     .rank = rank,
                     .dims = {1, 1, 1, 1},
                     .scale = 1,
                     .data = (void *)values, /* copied */
                     .source_index = -1};
    memcpy(t.dims, dims, (size_t)rank * sizeof *dims);
    int const index = qat_qgraph_tensor(g, &t, &err);
    ck_assert_int_ge(index, 0);
    return index;
}

/** The weight of a channel at a place of its depth. */
static int32_t weight_at(const struct layer *l, int32_t o, int32_t k)
{
    return l->depthwise ? l->w[k * l->channels + o] : l->w[o * l->depth + k];
}

static int64_t bound_of(const struct layer *l)
{
    int64_t most = 0;
    for (int32_t o = 0; o < l->channels; o++) {
        int64_t bound = llabs((long long)l->bias[o]);
        for (int32_t k = 0; k < l->depth; k++)
            bound += 32768 * (int64_t)abs(weight_at(l, o, k));
        most = bound > most ? bound : most;
    }
    return most;
}

static qat_qgraph *graph_of(const struct layer *l, codes_of cx, codes_of cy, int64_t bound)
{
    qat_qgraph *g = qat_qgraph_new();
    int32_t const c = l->channels;
    int32_t const flat[] = {l->rows, l->depth}, picture[] = {l->rows, 1, l->depth, c};
    int32_t const out[] = {l->rows, c}, pixels[] = {l->rows, 1, 1, c};
    int32_t const rows_of[] = {c, l->depth}, taps[] = {1, 1, l->depth, c};
    int32_t bias[MOST_CHANNELS];
    for (int32_t o = 0; o < c; o++)
        bias[o] = (int32_t)l->bias[o];
    bool const d = l->depthwise;
    int const x = net_activation(g, cx, d ? 4 : 2, d ? picture : flat);
    int const inputs[] = {x, constant(g, QI_S8, d ? 4 : 2, d ? taps : rows_of, l->w),
                          l->is_long ? constant(g, QI_S64, 1, &c, l->bias) : net_s32(g, c, 1, bias),
                          net_s32(g, c, l->rounding == QI_ROUND_DOUBLE ? 2 : 1, l->mult),
                          net_s32(g, c, 1, l->shift)};
    int const y = net_activation(g, cy, d ? 4 : 2, d ? pixels : out);
    int32_t const window[] = {1, 1, 1, 1, 0, 0, 1, INT16_MIN, INT16_MAX};
    net_op(g, d ? "depthwise_conv2d" : "fully_connected", l->rounding, 5, inputs, y, d ? 9 : 2,
           d ? window : window + 7, bound);
    net_io(g, x, y);
    return g;
}

static void fill(struct layer *l, int number)
{
    int const how = number % 3; /* random, or all products at one end */
    for (int i = 0; i < MOST_ROWS * MOST_DEPTH; i++)
        l->x[i] = (int16_t)(how ? INT16_MIN : test_random_in(&l->seed, INT16_MIN, INT16_MAX));
    for (int i = 0; i < MOST_CHANNELS * MOST_DEPTH; i++)
        l->w[i] = (int8_t)(how == 1   ? INT8_MIN
                           : how == 2 ? INT8_MAX
                                      : test_random_in(&l->seed, INT8_MIN, INT8_MAX));
    for (int o = 0; o < l->channels; o++) {
        l->bias[o] = l->is_long ? random_i64(&l->seed) >> 20 : random_i64(&l->seed) >> 34;
        l->mult[o] = test_random_in(&l->seed, 1 << 30, INT32_MAX);
        l->shift[o] = test_random_in(&l->seed, -26, -8);
    }
    for (int o = 0; o < l->channels && l->rounding == QI_ROUND_DOUBLE; o++) {
        l->mult[2 * o] = (int32_t)test_random(&l->seed);
        l->mult[2 * o + 1] = test_random_in(&l->seed, 1 << 20, (1 << 21) - 1);
    }
}

static int32_t expected(const struct layer *l, int32_t r, int32_t o)
{
    int64_t acc = l->bias[o];
    int32_t value;
    for (int32_t k = 0; k < l->depth; k++) {
        int32_t const at = l->depthwise ? (r * l->depth + k) * l->channels + o : r * l->depth + k;
        acc += (int64_t)l->x[at] * weight_at(l, o, k);
    }
    if (l->rounding == QI_ROUND_DOUBLE)
        value = qi_requantize_double_i64(
            acc, (int64_t)l->mult[2 * o + 1] << 32 | (uint32_t)l->mult[2 * o], l->shift[o]);
    else if (l->rounding == QI_ROUND_LONG)
        value = qi_requantize_i64(acc, l->mult[o], l->shift[o]);
    else
        value = qi_requantize((int32_t)acc, l->mult[o], l->shift[o]);
    return qi_clamp(value, INT16_MIN, INT16_MAX);
}

START_TEST(test_layers)
{
    static struct layer l;
    for (int number = 0; number < 120; number++) {
        l = (struct layer){.seed = (uint64_t)number * 77 + 3};
        l.depthwise = number % 2;
        l.rounding = number % 4 == 0 ? QI_ROUND_DOUBLE : QI_ROUND_LONG;
        l.is_long = test_random(&l.seed) % 2;
        l.channels = test_random_in(&l.seed, 1, MOST_CHANNELS);
        l.depth = test_random_in(&l.seed, 1, l.depthwise ? 40 : MOST_DEPTH);
        l.rows = test_random_in(&l.seed, 1, MOST_ROWS);
        if (number % 5 == 0) { /* 32-bit accumulators */
            l.rounding = QI_ROUND_TWICE;
            l.is_long = false;
            l.depth = l.depth % 200 + 1;
        }
        fill(&l, number);
        qat_qgraph *g = graph_of(&l, s16, s16, bound_of(&l));
        net_run_kept(g, (const void *[]){l.x}, (void *[]){l.got}, "wide_layer", number);
        for (int32_t r = 0; r < l.rows; r++)
            for (int32_t o = 0; o < l.channels; o++)
                ck_assert_int_eq(l.got[r * l.channels + o], expected(&l, r, o));
        qat_qgraph_free(g);
    }
}
END_TEST

static void refuse(const struct layer *l, codes_of cx, codes_of cy, int64_t bound, qi_status status)
{
    qi_host *host;
    qat_qgraph *g = graph_of(l, cx, cy, bound);
    net_open(&host, g, status);
    if (!status)
        qi_host_close(host);
    qat_qgraph_free(g);
}

START_TEST(test_layers_refused)
{
    static struct layer l;
    l = (struct layer){.rounding = QI_ROUND_LONG, .rows = 1, .depth = 3, .channels = 1};
    l.is_long = true;
    l.mult[0] = 1 << 30;
    codes_of const shifted = {QI_S16, 16, 1}, few = {QI_S16, 9, 0};
    refuse(&l, s16, s16, bound_of(&l), QI_OK);
    refuse(&l, s16, s16, 1, QI_ERR_OVERFLOW);
    refuse(&l, shifted, s16, 0, QI_ERR_SHAPE);
    refuse(&l, s16, shifted, 0, QI_ERR_SHAPE);
    refuse(&l, s8, s16, 0, QI_ERR_SHAPE);
    refuse(&l, s16, s8, 0, QI_ERR_PARAM); /* the clamp, before the types */
    refuse(&l, few, few, 0, QI_ERR_PARAM);
    l.bias[0] = (INT64_C(1) << 47) - 1;
    refuse(&l, s16, s16, l.bias[0], QI_OK);
    l.bias[0]++;
    refuse(&l, s16, s16, l.bias[0], QI_ERR_OVERFLOW);
    l.bias[0] = INT64_MIN;
    refuse(&l, s16, s16, 0, QI_ERR_OVERFLOW);
    l.bias[0] = 0;
    l.shift[0] = 8;
    refuse(&l, s16, s16, 0, QI_ERR_PARAM);
    l.shift[0] = 7;
    refuse(&l, s16, s16, 0, QI_OK);
    l.rounding = QI_ROUND_TWICE; /* with a bias of 64 bits */
    refuse(&l, s16, s16, 0, QI_ERR_SHAPE);
}
END_TEST

/* ------------------------------------------------------------------ batch_matmul */

enum { BATCHES = 3, SIDE = 9, MATRIX = BATCHES * SIDE * SIDE };

/** Value (i, j) of a batch of a matrix [batches, rows, columns], which may be stored transposed. */
static int32_t element(const void *codes, codes_of c, int32_t batch, int32_t rows, int32_t columns,
                       bool transposed, int32_t i, int32_t j)
{
    int32_t const at = transposed ? j * rows + i : i * columns + j;
    size_t const all = (size_t)(batch * rows * columns + at);
    return (int32_t)qi_value_at(c.type, codes, all) - c.zero_point;
}

/** x / 2^n to an integer. */
static int32_t halves_to_even(int32_t x, int n)
{
    return (int32_t)rint(ldexp((double)x, -n));
}

START_TEST(test_batch_matmul)
{
    static int16_t a[MATRIX], b[MATRIX], got[MATRIX];
    uint64_t seed = 4 + (uint64_t)_i;
    bool const is_wide = _i % 2, ta = _i / 2 % 2, tb = _i / 4 % 2, is_even = _i >= 24 && !is_wide;
    codes_of const c = is_wide ? s16 : (codes_of){QI_S8, 8, -3};
    int32_t const m = test_random_in(&seed, 1, SIDE), k = test_random_in(&seed, 1, SIDE);
    int32_t const n = test_random_in(&seed, 1, SIDE), batches = _i % 3 ? BATCHES : 1;
    int32_t const da[] = {BATCHES, ta ? k : m, ta ? m : k},
                  db[] = {batches, tb ? n : k, tb ? k : n};
    int32_t const dy[] = {BATCHES, m, n};
    int32_t const params[] = {ta,
                              tb,
                              is_even ? 1 << 30 : test_random_in(&seed, 1 << 30, INT32_MAX),
                              is_wide ? -15 : -6,
                              codes_lo(c),
                              codes_hi(c)};
    qat_error err;
    qat_qgraph *g = qat_qgraph_new();
    for (int i = 0; i < MATRIX; i++) {
        a[i] = (int16_t)test_random(&seed);
        b[i] = (int16_t)test_random(&seed);
    }
    int const inputs[] = {net_activation(g, c, 3, da), net_activation(g, c, 3, db)};
    int const y = net_activation(g, c, 3, dy);
    qi_rounding const rounding = is_wide ? QI_ROUND_LONG : is_even ? QI_ROUND_EVEN : QI_ROUND_TWICE;
    net_op(g, "batch_matmul", rounding, 2, inputs, y, 6, params, 0);
    ck_assert_int_eq(qat_qgraph_set_io(g, 2, inputs, 1, &y, &err), QAT_OK);
    net_run_kept(g, (const void *[]){a, b}, (void *[]){got}, "batch_matmul", _i);
    for (int32_t at = 0; at < BATCHES * m * n; at++) {
        int32_t const batch = at / (m * n), i = at / n % m, j = at % n;
        int64_t acc = 0;
        for (int32_t l = 0; l < k; l++)
            acc += (int64_t)element(a, c, batch, m, k, ta, i, l) *
                   element(b, c, batches > 1 ? batch : 0, k, n, tb, l, j);
        int32_t const value = is_wide   ? qi_requantize_i64(acc, params[2], params[3])
                              : is_even ? halves_to_even((int32_t)acc, 1 - params[3])
                                        : qi_requantize((int32_t)acc, params[2], params[3]);
        ck_assert_int_eq(qi_value_at(c.type, got, (size_t)at),
                         qi_clamp(value + c.zero_point, codes_lo(c), codes_hi(c)));
    }
    qat_qgraph_free(g);
}
END_TEST

/* ------------------------------------------------------------------ functions */

START_TEST(test_add_of_shifted_codes)
{
    enum { N = 64, RIGHT = 3 };
    int32_t const n = N,
                  params[] = {1, 1 << 30, -RIGHT, 1 << 30, 0, 1 << 30, 1, INT16_MIN, INT16_MAX};
    int16_t a[N], b[N], got[N];
    uint64_t seed = 8;
    qat_error err;
    qat_qgraph *g = qat_qgraph_new();
    for (int i = 0; i < N; i++) {
        a[i] = (int16_t)(i < 8 ? i - 4 : test_random_in(&seed, INT16_MIN, INT16_MAX));
        b[i] = (int16_t)(i < 8 ? 0 : test_random_in(&seed, INT16_MIN, INT16_MAX));
    }
    int const inputs[] = {net_activation(g, s16, 1, &n), net_activation(g, s16, 1, &n)};
    int const y = net_activation(g, s16, 1, &n);
    net_op(g, "add", QI_ROUND_TWICE, 2, inputs, y, 9, params, 0);
    ck_assert_int_eq(qat_qgraph_set_io(g, 2, inputs, 1, &y, &err), QAT_OK);
    net_run_kept(g, (const void *[]){a, b}, (void *[]){got}, "add_shifted", 0);
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(got[i], qi_clamp(qi_rdbp(a[i], RIGHT) + b[i], INT16_MIN, INT16_MAX));
    qat_qgraph_free(g);
}
END_TEST

/** A table with slope 1 gives the code; 128 codes lie between two entries. */
START_TEST(test_lines)
{
    int16_t table[QI_LINES + 1];
    for (int i = 0; i <= QI_LINES; i++)
        table[i] = (int16_t)qi_clamp((i - QI_LINES / 2) * 128, INT16_MIN, INT16_MAX);
    for (int32_t q = INT16_MIN; q < INT16_MAX - 127; q++)
        ck_assert_int_eq(qi_lookup_i16(table, q), q);
    table[QI_LINES / 2 + 1] = 3;
    ck_assert_int_eq(qi_lookup_i16(table, 64), 2); /* 1.5, half up */
    table[QI_LINES / 2] = INT16_MIN;
    table[QI_LINES / 2 + 1] = INT16_MAX; /* a slope of 65535 is one of -1 */
    ck_assert_int_eq(qi_lookup_i16(table, 127), INT16_MIN - 1);
}
END_TEST

START_TEST(test_sigmoids)
{
    ck_assert_int_eq(qi_logistic_i16_line(0), 16384);
    ck_assert_int_eq(qi_tanh_i16_line(0), 0);
    for (int32_t x = -200000; x <= 200000; x++) {
        double const logistic = 32768.0 / (1.0 + exp(-x / (24.0 * 512)));
        double const tanh_x = 32768.0 * tanh(x / (48.0 * 256));
        ck_assert_double_le(fabs(qi_logistic_i16_line(x) - logistic), 4.0);
        ck_assert_double_le(fabs(qi_tanh_i16_line(x) - tanh_x), 8.0);
    }
    ck_assert_int_eq(qi_logistic_i16_line(INT32_MAX), INT16_MAX);
    ck_assert_int_eq(qi_tanh_i16_line(INT32_MIN), -INT16_MAX);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("infer_wide");
    TCase *tests = tcase_create("wide");
    tcase_add_test(tests, test_double_of_48_bits);
    tcase_add_test(tests, test_layers);
    tcase_add_test(tests, test_layers_refused);
    tcase_add_loop_test(tests, test_batch_matmul, 0, 48);
    tcase_add_test(tests, test_add_of_shifted_codes);
    tcase_add_test(tests, test_lines);
    tcase_add_test(tests, test_sigmoids);
    suite_add_tcase(suite, tests);
    return test_run_suite(suite);
}
