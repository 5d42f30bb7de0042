/**
 * What layers and tensors share: packed weights of equal layers, constants of a file. And the
 * limits of memory and work of an opened model.
 */
#include "common/suite.h"
#include "infer/host/host.h"
#include "infer/host/loops/fast.h"
#include "infer/model/model.h"
#include "unit/infer/test_infer_build.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 64, LAYERS = 5, OTHER_BIAS = 2, OTHER_CLAMP = 4 };

/** The constants of the layers: one of each, and a second bias. */
struct constants {
    int weights, bias[2], mult, shift;
    const uint8_t *codes; /* of the weights */
    int64_t most[2];      /* the largest accumulator with each bias */
};

static int64_t largest_accumulator(const uint8_t *codes, codes_of w, codes_of x,
                                   const int32_t biases[WIDTH])
{
    int64_t most = 0;
    for (int o = 0; o < WIDTH; o++) {
        int64_t sum = 0;
        for (int i = 0; i < WIDTH; i++)
            sum += labs(code_at(codes, (size_t)(o * WIDTH + i), w));
        int64_t const bound = sum * (codes_hi(x) - x.zero_point) + biases[o];
        most = bound > most ? bound : most;
    }
    return most;
}

static struct constants add_constants(qat_qgraph *g, codes_of x)
{
    codes_of const w = {QI_S8, 8, 0};
    int32_t const dims[] = {WIDTH, WIDTH}, one = 1 << 30, shift = -8;
    int32_t biases[2][WIDTH];
    uint64_t seed = 1;
    struct constants c = {0};
    c.weights = net_constant(g, w, 2, dims, &seed, &c.codes);
    for (int b = 0; b < 2; b++) {
        for (int o = 0; o < WIDTH; o++)
            biases[b][o] = 1000 * b + o;
        c.most[b] = largest_accumulator(c.codes, w, x, biases[b]);
        c.bias[b] = net_s32(g, WIDTH, 1, biases[b]);
    }
    c.mult = net_s32(g, 1, 1, &one);
    c.shift = net_s32(g, 1, 1, &shift);
    return c;
}

/** A second tensor with the numbers of tensor `of`. */
static int add_twin(qat_qgraph *g, int of)
{
    qat_error err;
    qat_qtensor const twin = g->tensors[of];
    int const index = qat_qgraph_tensor(g, &twin, &err);
    ck_assert_int_ge(index, 0);
    return index;
}

/** LAYERS layers in a row with the same weights; one has another bias, one another clamp. */
static qat_qgraph *network(void)
{
    codes_of const x = {QI_U8, 8, 0};
    int32_t const dims[] = {2, WIDTH};
    qat_qgraph *g = qat_qgraph_new();
    g->form.fixed = true; /* tests change fields in their places */
    struct constants const c = add_constants(g, x);
    int const twin = add_twin(g, c.weights);
    int from = net_activation(g, x, 2, dims);
    int const first = from;
    for (int i = 0; i < LAYERS; i++) {
        int const b = i == OTHER_BIAS, to = net_activation(g, x, 2, dims);
        int const in[] = {from, i % 2 ? twin : c.weights, c.bias[b], c.mult, c.shift};
        int32_t const clamp[] = {0, i == OTHER_CLAMP ? 200 : 255};
        net_op(g, "fully_connected", QI_ROUND_TWICE, 5, in, to, 2, clamp, c.most[b]);
        from = to;
    }
    net_io(g, first, from);
    return g;
}

/** With every instruction set: equal layers have the same packed weights, and the core's bytes. */
START_TEST(test_equal_layers_share)
{
    qat_qgraph *g = network();
    uint8_t input[2 * WIDTH], core[2 * WIDTH], got[2 * WIDTH];
    const void *in[] = {input};
    uint64_t seed = 2;
    size_t count;
    uint8_t *qm = net_write(g, NULL, NULL, &count);
    ck_assert_uint_lt(count, 2 * WIDTH * WIDTH); /* the weights are in the file once */
    fill_codes(input, sizeof input, (codes_of){QI_U8, 8, 0}, &seed);
    net_run(g, in, (void *[]){core});
    for (int i = 0; qi_isa_name(i); i++) {
        qi_host *host = NULL;
        qi_host_options const o = {.isa = qi_isa_name(i)};
        if (!qi_isa_runs_here(o.isa))
            continue;
        ck_assert_int_eq(qi_host_open_bytes(&host, qm, count, "net", &o, NULL), QAT_OK);
        const qi_step *s = host->steps->steps;
        for (int k = 1; k < LAYERS && s[0].packed; k++)
            ck_assert_int_eq(s[k].packed == s[0].packed, k != OTHER_BIAS && k != OTHER_CLAMP);
        qi_host_run(host, in, (void *[]){got});
        ck_assert_mem_eq(got, core, sizeof core);
        qi_host_close(host);
    }
    free(qm);
    qat_qgraph_free(g);
}
END_TEST

/** Layers in a row with the same weights, each with a bias of its own. */
static qat_qgraph *many_biases(int layers)
{
    codes_of const x = {QI_U8, 8, 0}, w = {QI_S8, 8, 0};
    int32_t const dims[] = {2, WIDTH}, clamp[] = {0, 255};
    int32_t bias[WIDTH] = {0};
    qat_qgraph *g = qat_qgraph_new();
    g->form.fixed = true; /* tests change fields in their places */
    struct constants const c = add_constants(g, x);
    int from = net_activation(g, x, 2, dims);
    int const first = from;
    for (bias[0] = 1; bias[0] <= layers; bias[0]++) {
        int const to = net_activation(g, x, 2, dims);
        int const in[] = {from, c.weights, net_s32(g, WIDTH, 1, bias), c.mult, c.shift};
        net_op(g, "fully_connected", QI_ROUND_TWICE, 5, in, to, 2, clamp,
               largest_accumulator(c.codes, w, x, bias));
        from = to;
    }
    net_io(g, first, from);
    return g;
}

/** The same weights are not summed for more than QM_MAX_BIASES biases in turn. */
START_TEST(test_many_biases)
{
    for (int more = 0; more < 2; more++) {
        qat_error err;
        qat_qgraph *g = many_biases(QM_MAX_BIASES + more);
        qi_host *host = NULL;
        size_t count;
        uint8_t *qm = net_write(g, NULL, NULL, &count);
        ck_assert_int_eq(qi_host_open_bytes(&host, qm, count, "net", NULL, &err),
                         more ? QAT_ERR_FORMAT : QAT_OK);
        ck_assert_int_eq(strstr(err.message, "biases for the same weights (index 256)") != NULL,
                         more);
        qi_host_close(host);
        free(qm);
        qat_qgraph_free(g);
    }
}
END_TEST

enum { SWISHES = 3, SWISH_CODES = 1000 };

/**
 * x * logistic(x) three times, with different tables and the same parameters of mul; the second one
 * with its inputs exchanged. The last logistic is an output as well.
 */
static qat_qgraph *swishes(void)
{
    codes_of const x = {QI_S8, 8, -20}, f = {QI_S8, 8, -128};
    int32_t const dims[] = {SWISH_CODES}, mul[] = {1500000000, -6, -128, 127};
    qat_qgraph *g = qat_qgraph_new();
    g->form.fixed = true; /* tests change fields in their places */
    int const first = net_activation(g, x, 1, dims);
    int from = first, last = first;
    for (int i = 0; i < SWISHES; i++) {
        int32_t const logistic[] = {1100000000 + 300000000 * i, 21, 200};
        int const to = net_activation(g, f, 1, dims), y = net_activation(g, x, 1, dims);
        int const in[] = {i == 1 ? to : from, i == 1 ? from : to};
        net_op(g, "logistic", QI_ROUND_NONE, 1, &from, to, 3, logistic, 0);
        net_op(g, "mul", QI_ROUND_TWICE, 2, in, y, 4, mul, 0);
        from = y;
        last = to;
    }
    int const sum = net_activation(g, x, 1, dims), in[] = {from, last};
    int32_t const add[] = {20, 1 << 30, 0, 1 << 30, -1, 1 << 30, -18, -128, 127};
    net_op(g, "add", QI_ROUND_TWICE, 2, in, sum, 9, add, 0);
    net_io(g, first, sum);
    return g;
}

/** The tensors that a visitor saw, in the order of the nodes. */
static void keep_tensor(void *context, const qi_model *model, int32_t tensor, const void *bytes)
{
    uint8_t **to = context;
    memcpy(*to, bytes, SWISH_CODES);
    *to += SWISH_CODES;
}

/** A function that only a product reads is left out, but not where someone looks at all tensors. */
START_TEST(test_functions_that_are_not_read)
{
    enum { NODES = 2 * SWISHES + 1, SEEN = (NODES + 1) * SWISH_CODES };
    static uint8_t seen[2][SEEN];
    qat_qgraph *g = swishes();
    uint8_t input[SWISH_CODES], core[SWISH_CODES], got[SWISH_CODES];
    const void *in[] = {input};
    uint64_t seed = 3;
    size_t count;
    uint8_t *qm = net_write(g, NULL, NULL, &count);
    fill_codes(input, sizeof input, (codes_of){QI_S8, 8, 0}, &seed);
    net_run(g, in, (void *[]){core});
    for (int i = 0; qi_isa_name(i); i++) {
        qi_host *host = NULL;
        qi_host_options const o = {.isa = qi_isa_name(i)};
        if (!qi_isa_runs_here(o.isa))
            continue;
        bool const is_scalar = strcmp(o.isa, "scalar") == 0;
        uint8_t *to = seen[is_scalar];
        ck_assert_int_eq(qi_host_open_bytes(&host, qm, count, "net", &o, NULL), QAT_OK);
        for (int k = 0; k < NODES; k++)
            ck_assert_int_eq(host->steps->steps[k].unread, !is_scalar && (k == 0 || k == 2));
        qi_host_run(host, in, (void *[]){got});
        ck_assert_mem_eq(got, core, sizeof core);
        qi_host_run_visit(host, NULL, in, (void *[]){got}, keep_tensor, &to);
        ck_assert_int_eq(to - seen[is_scalar], SEEN);
        qi_host_close(host);
    }
    ck_assert_mem_eq(seen[0], seen[1], SEEN);
    free(qm);
    qat_qgraph_free(g);
}
END_TEST

/** A graph that is read from a file has one copy of what its tensors share, and writes it once. */
START_TEST(test_constants_are_held_once)
{
    qat_qgraph *g = network(), *read = NULL;
    qi_host *host = NULL;
    qat_error err;
    size_t count, again;
    uint8_t *qm = net_write(g, NULL, NULL, &count);
    ck_assert_int_eq(qi_host_open_bytes(&host, qm, count, "net", NULL, NULL), QAT_OK);
    ck_assert_msg(qat_qm_read(&read, host->model, &err) == QAT_OK, "%s", err.message);
    int const twin = (int)(read->n_tensors - LAYERS - 2);
    ck_assert_ptr_nonnull(read->tensors[0].data);
    ck_assert_ptr_eq(read->tensors[twin].data, read->tensors[0].data);
    read->form.fixed = true;
    uint8_t *written = net_write(read, NULL, NULL, &again);
    ck_assert_uint_eq(again, count);
    ck_assert_mem_eq(written, qm, count);
    free(written);
    qi_host_close(host);
    qat_qgraph_free(read);
    qat_qgraph_free(g);
    free(qm);
}
END_TEST

/** Constants that overlap, without being the same, are together no longer than the section. */
START_TEST(test_overlap_is_refused)
{
    qat_qgraph *g = network();
    qat_error err;
    qi_host *host = NULL;
    size_t count;
    uint8_t *qm = net_write(g, NULL, NULL, &count);
    int const twin = g->n_tensors - LAYERS - 2;
    uint8_t *record = qm + QM_HEADER_BYTES + (size_t)twin * QM_TENSOR_BYTES;
    record[QM_TENSOR_DATA] += 16;
    net_reseal(qm, count);
    ck_assert_int_eq(qi_host_open_bytes(&host, qm, count, "net", NULL, &err), QAT_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "constants that overlap"));
    free(qm);
    qat_qgraph_free(g);
}
END_TEST

/** The smallest limits with which a model opens are the figures of the messages. */
START_TEST(test_limits)
{
    qat_qgraph *g = network();
    qat_error err;
    qi_host *host = NULL;
    size_t count;
    uint8_t *qm = net_write(g, NULL, NULL, &count);
    uint64_t const macs = (uint64_t)LAYERS * 2 * WIDTH * WIDTH;
    qi_host_options o = {.limits = {.macs = macs}};
    ck_assert_int_eq(qi_host_open_bytes(&host, qm, count, "net", &o, &err), QAT_OK);
    ck_assert_uint_eq((uint64_t)qi_model_macs(host->model), macs);
    qi_host_close(host);
    o.limits.macs = macs - 1;
    ck_assert_int_eq(qi_host_open_bytes(&host, qm, count, "net", &o, &err), QAT_ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(err.message, "40960 multiply-adds, but 40959 are allowed"));
    ck_assert_ptr_null(host);
    o.limits = (qi_limits){.memory = 1};
    ck_assert_int_eq(qi_host_open_bytes(&host, qm, count, "net", &o, &err), QAT_ERR_LIMIT);
    o.limits.memory = 12000; /* the descriptors alone */
    ck_assert_int_eq(qi_host_open_bytes(&host, qm, count, "net", &o, &err), QAT_ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(err.message, "it needs 1 MiB of memory to run, but 1 MiB"));
    o.limits = QI_NO_LIMITS;
    ck_assert_int_eq(qi_host_open_bytes(&host, qm, count, "net", &o, &err), QAT_OK);
    qi_host_close(host);
    free(qm);
    qat_qgraph_free(g);
}
END_TEST

/** One op on x [1, 8, 8, 4], to y: the multiply-adds of the model. */
static int64_t macs_of(const char *op, const int32_t y_dims[4], int n_params, const int32_t *params,
                       qi_rounding rounding)
{
    codes_of const c = {QI_U8, 8, 0};
    qat_qgraph *g = qat_qgraph_new();
    g->form.fixed = true; /* tests change fields in their places */
    int const x = net_activation(g, c, 4, (const int32_t[]){1, 8, 8, 4});
    int const y = net_activation(g, c, 4, y_dims);
    qi_host *host = NULL;
    net_op(g, op, rounding, 1, &x, y, n_params, params, 0);
    net_io(g, x, y);
    net_open(&host, g, QI_OK);
    int64_t const macs = qi_model_macs(host->model);
    qi_host_close(host);
    qat_qgraph_free(g);
    return macs;
}

/** A pool counts its window, cut to the picture; other ops what they read and write. */
START_TEST(test_macs)
{
    int32_t const pool[] = {3, 3, 2, 2, 1, 1, 0, 255}, large[] = {9, 200, 8, 8, 4, 99, 0, 255};
    int32_t const clamp[] = {1 << 30, 0, 0, 255};
    ck_assert_int_eq(macs_of("max_pool2d", (const int32_t[]){1, 4, 4, 4}, 8, pool, QI_ROUND_NONE),
                     9 * 64);
    ck_assert_int_eq(macs_of("max_pool2d", (const int32_t[]){1, 1, 1, 4}, 8, large, QI_ROUND_NONE),
                     8 * 8 * 4);
    ck_assert_int_eq(macs_of("requantize", (const int32_t[]){1, 8, 8, 4}, 4, clamp, QI_ROUND_TWICE),
                     2 * 256);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("shared");
    TCase *t = tcase_create("shared");
    tcase_add_test(t, test_equal_layers_share);
    tcase_add_test(t, test_many_biases);
    tcase_add_test(t, test_functions_that_are_not_read);
    tcase_add_test(t, test_constants_are_held_once);
    tcase_add_test(t, test_overlap_is_refused);
    tcase_add_test(t, test_limits);
    tcase_add_test(t, test_macs);
    suite_add_tcase(s, t);
    return test_run_suite(s);
}
