/**
 * States: what a model keeps between runs. Random graphs with states must give the bytes of the
 * same graphs where each state is an input, and what it becomes an output that the test carries on
 * by hand. Also qi_reset, the self test, states that must be refused, svdf by hand, and that the
 * steps of an lstm are runs.
 */
#include "common/common.h"
#include "common/suite.h"
#include "infer/host/host.h"
#include "infer/model/model.h"
#include "qat/train.h"
#include "unit/infer/test_infer_build.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { GRAPHS = 200, MOST_OPS = 12, VALUES = 48, STATES = 2, RUNS = 4 };

static codes_of const codes = {QI_S8, 8, -20};
static int32_t const dims[] = {1, 4, 4, 3};

static int activation(qat_qgraph *g)
{
    return net_activation(g, codes, 4, dims);
}

static int requantize(qat_qgraph *g, int x, uint64_t *seed)
{
    int32_t const params[] = {test_random_in(seed, 1 << 30, INT32_MAX), 0, codes_lo(codes),
                              codes_hi(codes)};
    int const y = activation(g);
    net_op(g, "requantize", QI_ROUND_TWICE, 1, &x, y, 4, params, 0);
    return y;
}

static int reshape(qat_qgraph *g, int x)
{
    int const y = activation(g);
    net_op(g, "reshape", QI_ROUND_NONE, 1, &x, y, 0, NULL, 0);
    return y;
}

/** a + b */
static int add(qat_qgraph *g, int a, int b)
{
    int32_t const params[] = {
        20, 1 << 30, 0, 1 << 30, 0, 1 << 30, -18, codes_lo(codes), codes_hi(codes)};
    int const inputs[] = {a, b}, y = activation(g);
    net_op(g, "add", QI_ROUND_TWICE, 2, inputs, y, 9, params, 0);
    return y;
}

/** Tensor 0 is the input, 1 .. STATES are the states; next: what they become. Returns the output.
 */
static int random_ops(qat_qgraph *g, int next[STATES], uint64_t *seed)
{
    int made[1 + STATES + MOST_OPS], n = 0;
    while (n < 1 + STATES)
        made[n++] = activation(g);
    int sum = made[0];
    for (int i = 1; i <= STATES; i++)
        sum = add(g, sum, made[i]);
    for (int i = test_random_in(seed, 1, MOST_OPS); i > 0; i--) {
        int const a = made[test_random(seed) % (uint32_t)n], b = n > 3 ? made[n - 1] : sum;
        uint32_t const op = test_random(seed) % 3;
        made[n++] = op == 0 ? requantize(g, a, seed) : op == 1 ? reshape(g, a) : add(g, a, b);
    }
    for (int i = 0; i < STATES; i++)
        next[i] = i == 0 ? sum : made[1 + STATES + (int)(test_random(seed) % (uint32_t)(n - 3))];
    return made[n - 1];
}

static qat_qgraph *new_graph(int next[STATES], int *output, uint64_t seed)
{
    qat_qgraph *g = qat_qgraph_new();
    g->form.fixed = true; /* tests change fields in their places */
    ck_assert_ptr_nonnull(g);
    *output = random_ops(g, next, &seed);
    return g;
}

static qat_qgraph *graph_with_states(uint64_t seed)
{
    int next[STATES], output;
    qat_qgraph *g = new_graph(next, &output, seed);
    for (int i = 0; i < STATES; i++) {
        g->tensors[1 + i].is_state = true;
        g->tensors[1 + i].next = next[i];
    }
    net_io(g, 0, output);
    return g;
}

static qat_qgraph *graph_with_inputs(uint64_t seed)
{
    int next[STATES], output;
    qat_error err;
    qat_qgraph *g = new_graph(next, &output, seed);
    ck_assert_int_eq(
        qat_qgraph_set_io(g, 3, (int[]){0, 1, 2}, 3, (int[]){output, next[0], next[1]}, &err),
        QAT_OK);
    return g;
}

/** The outputs of RUNS runs, carried on by hand. */
static void run_by_hand(uint64_t seed, uint8_t in[RUNS][VALUES], uint8_t out[RUNS][VALUES])
{
    uint8_t states[STATES][VALUES], next[STATES][VALUES];
    qi_host *host = NULL;
    qat_qgraph *g = graph_with_inputs(seed);
    net_open(&host, g, QI_OK);
    memset(states, codes.zero_point, sizeof states);
    for (int run = 0; run < RUNS; run++) {
        qi_run(host->model, host->arena, (const void *[]){in[run], states[0], states[1]},
               (void *[]){out[run], next[0], next[1]});
        memcpy(states, next, sizeof states);
    }
    qi_host_close(host);
    qat_qgraph_free(g);
}

static void compare_runs(qi_host *host, bool by_core, uint8_t in[RUNS][VALUES],
                         uint8_t expected[RUNS][VALUES])
{
    uint8_t out[VALUES];
    for (int run = 0; run < RUNS; run++) {
        if (by_core)
            qi_run(host->model, host->arena, (const void *[]){in[run]}, (void *[]){out});
        else
            qi_host_run(host, (const void *[]){in[run]}, (void *[]){out});
        ck_assert_mem_eq(out, expected[run], VALUES);
    }
}

START_TEST(states_carry_on)
{
    for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
        uint8_t in[RUNS][VALUES], expected[RUNS][VALUES];
        uint64_t noise = seed + 1000;
        qi_host *host = NULL;
        fill_codes(in[0], sizeof in, codes, &noise);
        run_by_hand(seed, in, expected);
        qat_qgraph *g = graph_with_states(seed);
        net_open(&host, g, QI_OK);
        ck_assert_int_eq(qi_state_count(host->model), STATES);
        compare_runs(host, false, in, expected); /* opened, so reset */
        qi_host_reset(host, NULL);
        compare_runs(host, false, in, expected);
        memset(host->arena, 0xa5, qi_arena_bytes(host->model));
        qi_reset(host->model, host->arena);
        compare_runs(host, true, in, expected);
        qi_host_close(host);
        qat_qgraph_free(g);
    }
}
END_TEST

/** They lie in front of all activations, and apart. */
START_TEST(states_lie_first)
{
    qi_host *host = NULL;
    qat_qgraph *g = graph_with_states(7);
    net_open(&host, g, QI_OK);
    const qi_tensor *first = qi_tensor_at(host->model, 1), *second = qi_tensor_at(host->model, 2);
    ck_assert_uint_le(first->offset + first->bytes, second->offset);
    for (int32_t i = 0; i < qi_tensor_count(host->model); i++) {
        const qi_tensor *t = qi_tensor_at(host->model, i);
        if (t->kind == QI_ACTIVATION)
            ck_assert_uint_le(second->offset + second->bytes, t->offset);
    }
    qi_host_close(host);
    qat_qgraph_free(g);
}
END_TEST

/** A model with the answers of some runs, kept for other processors. */
static uint8_t *write_runs(const qat_qgraph *g, const void *in, const void *out, int runs,
                           const char *name, size_t *count)
{
    qat_error err;
    uint8_t *qm = NULL;
    qat_qm_metadata const metadata = {.kat_inputs = &in, .kat_outputs = &out, .kat_steps = runs};
    ck_assert_msg(qat_qm_write(g, &metadata, &qm, count, &err) == QAT_OK, "%s", err.message);
    test_keep_model("state", name, qm, *count);
    return qm;
}

/** Its test begins with reset states, has several runs, and leaves states reset. */
START_TEST(a_self_test_resets)
{
    uint8_t in[RUNS][VALUES], expected[RUNS][VALUES];
    uint64_t noise = 3;
    size_t count;
    qat_error err;
    qi_host *host = NULL;
    fill_codes(in[0], sizeof in, codes, &noise);
    run_by_hand(9, in, expected);
    qat_qgraph *g = graph_with_states(9);
    uint8_t *qm = write_runs(g, in, expected, RUNS, "random", &count);
    ck_assert_int_eq(qi_host_open_bytes(&host, qm, count, "net", NULL, &err), QAT_OK);
    ck_assert_int_eq(qi_kat_steps(host->model), RUNS);
    compare_runs(host, true, in, expected);
    ck_assert_int_eq(qi_self_test(host->model, host->arena, NULL), QI_OK);
    compare_runs(host, true, in, expected);
    qi_host_close(host);
    free(qm);
    qat_qgraph_free(g);
}
END_TEST

/** The last byte of the last run counts; steps need states and a test. */
START_TEST(a_wrong_answer_of_a_later_run_is_found)
{
    uint8_t in[RUNS][VALUES], expected[RUNS][VALUES];
    uint64_t noise = 3;
    size_t count;
    qat_error err;
    qi_host *host = NULL;
    fill_codes(in[0], sizeof in, codes, &noise);
    run_by_hand(9, in, expected);
    expected[RUNS - 1][VALUES - 1] ^= 1;
    qat_qgraph *g = graph_with_states(9);
    qat_qm_metadata const metadata = {.kat_inputs = &(const void *){in},
                                      .kat_outputs = &(const void *){expected},
                                      .kat_steps = RUNS};
    uint8_t *qm = NULL;
    ck_assert_int_eq(qat_qm_write(g, &metadata, &qm, &count, &err), QAT_OK);
    ck_assert_int_eq(qi_host_open_bytes(&host, qm, count, "net", NULL, &err), QAT_OK);
    ck_assert_int_eq(qi_self_test(host->model, host->arena, NULL), QI_ERR_KAT);
    qi_host_close(host);
    qm[QM_AT_FLAGS + 2] = 255; /* more runs than the file has bytes */
    net_reseal(qm, count);
    ck_assert_int_eq(net_status(qm, count), QI_ERR_FORMAT);
    qm[QM_AT_FLAGS + 2] = 1;
    qm[QM_AT_FLAGS] = 0; /* no test */
    net_reseal(qm, count);
    ck_assert_int_eq(net_status(qm, count), QI_ERR_FORMAT);
    free(qm);
    qat_qgraph_free(g);
    g = graph_with_inputs(9);
    ck_assert_int_eq(qat_qm_write(g, &metadata, &qm, &count, &err), QAT_ERR_ARGUMENT);
    qm = net_write(g, NULL, NULL, &count); /* no states */
    qm[QM_AT_FLAGS + 2] = 1;
    net_reseal(qm, count);
    ck_assert_int_eq(net_status(qm, count), QI_ERR_FORMAT);
    free(qm);
    qat_qgraph_free(g);
}
END_TEST

/** What the reader says when a field of tensor 1, a state, is changed. */
static qi_status changed(size_t at, uint8_t value)
{
    size_t count;
    qat_qgraph *g = graph_with_states(11);
    uint8_t *qm = net_write(g, NULL, NULL, &count);
    qm[QM_HEADER_BYTES + QM_TENSOR_BYTES + at] = value;
    net_reseal(qm, count);
    qi_status const st = net_status(qm, count);
    free(qm);
    qat_qgraph_free(g);
    return st;
}

START_TEST(wrong_states_are_refused)
{
    ck_assert_int_eq(changed(QM_TENSOR_KIND, QI_STATE), QI_OK);
    ck_assert_int_eq(changed(QM_TENSOR_KIND, QI_STATE + 1), QI_ERR_FORMAT);
    ck_assert_int_eq(changed(QM_TENSOR_KIND, QI_ACTIVATION), QI_ERR_FORMAT); /* bytes of next */
    ck_assert_int_eq(changed(QM_TENSOR_NEXT, 2), QI_ERR_FORMAT);             /* another state */
    ck_assert_int_eq(changed(QM_TENSOR_NEXT, 0), QI_OK);                     /* the input */
    ck_assert_int_eq(changed(QM_TENSOR_NEXT, 200), QI_ERR_FORMAT);
    ck_assert_int_eq(changed(QM_TENSOR_NEXT + 3, 0x80), QI_ERR_FORMAT);
    ck_assert_int_eq(changed(QM_TENSOR_RESERVED, 1), QI_ERR_FORMAT);
    ck_assert_int_eq(changed(QM_TENSOR_ZERO_POINT, 0xed), QI_ERR_FORMAT); /* -19: other codes */
    ck_assert_int_eq(changed(QM_TENSOR_BITS, 7), QI_ERR_FORMAT);
    ck_assert_int_eq(changed(QM_TENSOR_BORDER, QI_BORDER_FLOAT32), QI_ERR_FORMAT);
}
END_TEST

/** Nothing reads it. */
START_TEST(an_unread_state_is_refused)
{
    qi_host *host = NULL;
    qat_qgraph *g = graph_with_states(13);
    int const state = activation(g);
    g->tensors[state].is_state = true;
    g->tensors[state].next = 0;
    net_open(&host, g, QI_ERR_FORMAT);
    qat_qgraph_free(g);
}
END_TEST

/** The writer refuses what the reader would. */
START_TEST(wrong_states_are_not_written)
{
    qat_error err;
    size_t count;
    uint8_t *qm = NULL;
    qat_qm_metadata const metadata = {0};
    qat_qgraph *g = graph_with_states(17);
    for (int next = -1; next <= g->n_tensors; next++) {
        g->tensors[1].next = next;
        bool const good = next >= 0 && next < g->n_tensors && !g->tensors[next].is_state;
        ck_assert_int_eq(qat_qm_write(g, &metadata, &qm, &count, &err) == QAT_OK, good);
        free(qm);
    }
    g->tensors[1].next = 0;
    g->tensors[1].bits = 7;
    ck_assert_int_eq(qat_qm_write(g, &metadata, &qm, &count, &err), QAT_ERR_ARGUMENT);
    qat_qgraph_free(g);
}
END_TEST

/* ------------------------------------------------------------------ svdf */

static int matrix(qat_qgraph *g, qi_type type, int32_t columns, const void *values)
{
    qat_error err;
    qat_qtensor t = {.type = type,
                     .bits = 8 * (int)qi_type_bytes((int)type),
                     .rank = 2,
                     .dims = {1, columns, 1, 1},
                     .scale = 1.0f,
                     .data = (void *)values, /* copied */
                     .source_index = -1};
    int const index = qat_qgraph_tensor(g, &t, &err);
    ck_assert_int_ge(index, 0);
    return index;
}

/**
 * Two inputs, one filter that remembers two features, both multipliers 1. wrong: -1, or the
 * parameter that has another value.
 */
static void open_svdf(qi_host **host, int wrong, int32_t value)
{
    qat_error err;
    qat_qgraph *g = qat_qgraph_new();
    g->form.fixed = true; /* tests change fields in their places */
    int32_t params[] = {1, 1 << 30, 1, 1 << 30, 1, -128, 127};
    int const x = matrix(g, QI_S8, 2, NULL), w = matrix(g, QI_S8, 2, (const int8_t[]){1, 2});
    int const time = matrix(g, QI_S16, 2, (const int16_t[]){3, 10});
    int const bias = net_s32(g, 1, 1, (const int32_t[]){5});
    int const state = matrix(g, QI_S16, 2, NULL), y = matrix(g, QI_S8, 1, NULL);
    int const next = matrix(g, QI_S16, 2, NULL);
    g->tensors[state].is_state = true;
    g->tensors[state].next = next;
    if (wrong >= 0)
        params[wrong] = value;
    int const op =
        qat_qgraph_op(g, "svdf", "layer", QI_ROUND_TWICE, 5, (const int[]){x, w, time, bias, state},
                      2, (const int[]){y, next}, 7, params, 0, &err);
    ck_assert_int_ge(op, 0);
    net_io(g, x, y);
    net_open(host, g, wrong < 0 ? QI_OK : QI_ERR_PARAM);
    ck_assert_int_eq(qat_qgraph_size_of(g).macs, 2 + 2);
    ck_assert_int_eq(qat_qgraph_size_of(g).parameters, 2 + 2 + 1);
    qat_qgraph_free(g);
}

START_TEST(svdf_by_hand)
{
    static const int8_t x[][2] = {{3, 4}, {-3, 1}, {0, 0}, {100, 100}};
    /* features 11, -1, 0, 300: 5 + 110, 5 + 33 - 10, 5 - 3, 5 + 3000 */
    static const int8_t expected[] = {115, 28, 2, 127};
    qi_host *host = NULL;
    open_svdf(&host, -1, 0);
    ck_assert_int_eq(qi_model_macs(host->model), 2 + 2);
    ck_assert_int_eq(qi_node_multiply_adds(host->model, qi_node_at(host->model, 0)), 2 + 2);
    for (int again = 0; again < 2; again++) {
        qi_host_reset(host, NULL);
        for (int i = 0; i < 4; i++) {
            int8_t y;
            qi_host_run(host, (const void *[]){x[i]}, (void *[]){&y});
            ck_assert_int_eq(y, expected[i]);
        }
    }
    qi_host_close(host);
}
END_TEST

START_TEST(svdf_refuses)
{
    static const int32_t wrong[][2] = {{0, 0}, {0, 2}, {1, -1}, {4, 32}, {5, -129}, {6, 128}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        qi_host *host = NULL;
        open_svdf(&host, wrong[i][0], wrong[i][1]);
    }
}
END_TEST

/* ------------------------------------------------------------------ lstm */

enum { ROWS = 2, STEPS = 3, LSTM_INPUTS = 3, UNITS = 2, LSTM_PARAMS = 20 };

static int tensor_of(qat_qgraph *g, qi_type type, int32_t a, int32_t b, int32_t c, uint64_t *seed)
{
    codes_of const of = {type, 8 * (int)qi_type_bytes((int)type), 0};
    int32_t const d[] = {a, b, c};
    return seed ? net_constant(g, of, 3, d, seed, NULL) : net_activation(g, of, c ? 3 : 2, d);
}

/** Random weights; multipliers of about 2^-3 and cells of 2 integer bits. */
static void open_lstm(qi_host **host, int32_t steps, uint64_t seed, int wrong, int32_t value)
{
    static const int32_t bias[4 * UNITS] = {100, -200, 300, -400, 500, -600, 700, -800};
    int32_t params[LSTM_PARAMS];
    qat_error err;
    qat_qgraph *g = qat_qgraph_new();
    g->form.fixed = true; /* tests change fields in their places */
    for (int i = 0; i < LSTM_PARAMS; i++)
        params[i] = i / 4 % 2 ? -2 : 1 << 30;
    memcpy(params + 16, ((const int32_t[]){1 << 30, -22, 2, 20000}), 4 * sizeof *params);
    if (wrong >= 0)
        params[wrong] = value;
    int const x = tensor_of(g, QI_S8, ROWS, steps, LSTM_INPUTS, NULL);
    int const h = tensor_of(g, QI_S8, ROWS, UNITS, 0, NULL);
    int const c = tensor_of(g, QI_S16, ROWS, UNITS, 0, NULL);
    int const w_x = tensor_of(g, QI_S8, 4, UNITS, LSTM_INPUTS, &seed);
    int const w_h = tensor_of(g, QI_S8, 4, UNITS, UNITS, &seed);
    int const b = net_s32(g, 4, UNITS, bias), y = tensor_of(g, QI_S8, ROWS, steps, UNITS, NULL);
    int const next_h = tensor_of(g, QI_S8, ROWS, UNITS, 0, NULL);
    int const next_c = tensor_of(g, QI_S16, ROWS, UNITS, 0, NULL);
    g->tensors[h].is_state = g->tensors[c].is_state = true;
    g->tensors[h].next = next_h;
    g->tensors[c].next = next_c;
    int const op =
        qat_qgraph_op(g, "lstm", "layer", QI_ROUND_TWICE, 6, (const int[]){x, h, c, w_x, w_h, b}, 3,
                      (const int[]){y, next_h, next_c}, LSTM_PARAMS, params, 0, &err);
    ck_assert_int_ge(op, 0);
    net_io(g, x, y);
    net_open(host, g, wrong < 0 ? QI_OK : QI_ERR_PARAM);
    ck_assert_int_eq(qat_qgraph_size_of(g).macs, ROWS * steps * 4 * UNITS * (LSTM_INPUTS + UNITS));
    qat_qgraph_free(g);
}

/** A run of several steps is as many runs of one step. */
START_TEST(lstm_steps_are_runs)
{
    codes_of const of = {QI_S8, 8, 0};
    bool differ = false;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        qi_host *whole = NULL, *single = NULL;
        int8_t x[ROWS][STEPS][LSTM_INPUTS], y[ROWS][STEPS][UNITS];
        uint64_t noise = seed + 77;
        fill_codes((uint8_t *)x, sizeof x, of, &noise);
        open_lstm(&whole, STEPS, seed, -1, 0);
        open_lstm(&single, 1, seed, -1, 0);
        qi_host_run(whole, (const void *[]){x}, (void *[]){y});
        for (int t = 0; t < STEPS; t++) {
            int8_t one_x[ROWS][LSTM_INPUTS], one_y[ROWS][UNITS];
            for (int b = 0; b < ROWS; b++)
                memcpy(one_x[b], x[b][t], sizeof one_x[b]);
            qi_host_run(single, (const void *[]){one_x}, (void *[]){one_y});
            for (int b = 0; b < ROWS; b++)
                ck_assert_mem_eq(one_y[b], y[b][t], UNITS);
            differ = differ || memcmp(y[0][t], y[1][t], UNITS) != 0;
        }
        qi_host_close(whole);
        qi_host_close(single);
    }
    ck_assert(differ);
}
END_TEST

START_TEST(lstm_refuses)
{
    static const int32_t wrong[][2] = {{0, -1},  {4, 32}, {11, -1}, {15, -32},
                                       {17, 32}, {18, 5}, {18, -1}, {19, 32768}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        qi_host *host = NULL;
        open_lstm(&host, STEPS, 1, wrong[i][0], wrong[i][1]);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("state");
    TCase *tcase = tcase_create("state");
    tcase_add_test(tcase, states_carry_on);
    tcase_add_test(tcase, states_lie_first);
    tcase_add_test(tcase, a_self_test_resets);
    tcase_add_test(tcase, a_wrong_answer_of_a_later_run_is_found);
    tcase_add_test(tcase, wrong_states_are_refused);
    tcase_add_test(tcase, an_unread_state_is_refused);
    tcase_add_test(tcase, wrong_states_are_not_written);
    tcase_add_test(tcase, svdf_by_hand);
    tcase_add_test(tcase, svdf_refuses);
    tcase_add_test(tcase, lstm_steps_are_runs);
    tcase_add_test(tcase, lstm_refuses);
    suite_add_tcase(suite, tcase);
    return test_run_suite(suite);
}
