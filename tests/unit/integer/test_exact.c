/*
 * The exact evaluation as a whole: batches and threads change nothing, constants serve every
 * sample, custom ops come from the registry. What it cannot evaluate is refused by name.
 */
#include "base/parallel.h"
#include "base/rng.h"
#include "common/fail_alloc.h"
#include "common/suite.h"
#include "integer/quant_ops.h"
#include "qat/rounding.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 5 };

/* ------------------------------------------------------------------ a small network in codes */

struct builder {
    qat_qgraph *g;
    qat_rng rng;
    qat_status status;
    qat_error err;
};

/** An activation, or a constant of random codes. */
static int add_tensor(struct builder *b, const char *name, qat_shape shape, float scale,
                      bool constant)
{
    qat_qtensor t = {.type = QI_U8,
                     .bits = 8,
                     .rank = shape.rank,
                     .scale = scale,
                     .zero_point = 120,
                     .source_index = -1};
    snprintf(t.name, sizeof t.name, "%s", name);
    memcpy(t.dims, shape.dims, sizeof t.dims);
    if (constant) {
        uint8_t *codes = t.data = qat_arena_take(b->g->memory, qat_shape_count(&shape));
        for (size_t i = 0; codes && i < qat_shape_count(&shape); i++)
            codes[i] = (uint8_t)qat_rng_below(&b->rng, 256);
        if (!codes)
            b->status = QAT_ERR_NOMEM;
    }
    int const index = b->status ? -1 : qat_qgraph_tensor(b->g, &t, &b->err);
    if (index < 0) {
        b->status = QAT_ERR_NOMEM;
        return 0;
    }
    return index;
}

static qat_emit emission(const struct builder *b, const char *name, int n, const int *in, int out)
{
    return (qat_emit){.graph = b->g,
                      .name = name,
                      .n_inputs = n,
                      .inputs = in,
                      .output = out,
                      .act_min = -INFINITY,
                      .act_max = INFINITY};
}

#define STEP(call)                                                                                 \
    do {                                                                                           \
        if (!b.status)                                                                             \
            b.status = (call);                                                                     \
    } while (0)

/** Every kind of op once, with a branch that meets itself and a constant operand. */
static qat_status build_net(qat_qgraph **graph, qat_error *err)
{
    struct builder b = {.g = qat_qgraph_new(), .rng = qat_rng_at(7, 0, 0)};
    *graph = b.g;
    if (!b.g)
        return QAT_ERR_NOMEM;
    qat_window const w = {.kernel_h = 2,
                          .kernel_w = 2,
                          .stride_h = 1,
                          .stride_w = 1,
                          .dilation_h = 1,
                          .dilation_w = 1};
    qat_window const halves = {.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2};
    int const x = add_tensor(&b, "x", QAT_SHAPE(1, 9, 8, 3), 0.02f, false);
    int const w1 = add_tensor(&b, "w1", QAT_SHAPE(6, 3, 3, 3), 0.01f, true);
    int const y1 = add_tensor(&b, "y1", QAT_SHAPE(1, 9, 8, 6), 0.04f, false);
    int const w2 = add_tensor(&b, "w2", QAT_SHAPE(1, 3, 3, 6), 0.01f, true);
    int const y2 = add_tensor(&b, "y2", QAT_SHAPE(1, 9, 8, 6), 0.03f, false);
    int const y3 = add_tensor(&b, "y3", QAT_SHAPE(1, 9, 8, 6), 0.05f, false);
    int const gain = add_tensor(&b, "gain", QAT_SHAPE(6), 0.01f, true);
    int const y4 = add_tensor(&b, "y4", QAT_SHAPE(1, 9, 8, 6), 0.05f, false);
    int const y5 = add_tensor(&b, "y5", QAT_SHAPE(1, 9, 8, 12), 0.05f, false);
    int const y6 = add_tensor(&b, "y6", QAT_SHAPE(1, 4, 4, 12), 0.05f, false);
    int const y7 = add_tensor(&b, "y7", QAT_SHAPE(1, 2, 2, 12), 0.05f, false);
    int const y8 = add_tensor(&b, "y8", QAT_SHAPE(1, 48), 0.05f, false);
    int const w3 = add_tensor(&b, "w3", QAT_SHAPE(10, 48), 0.01f, true);
    int const y9 = add_tensor(&b, "y9", QAT_SHAPE(1, 10), 0.03f, false);
    int const y10 = add_tensor(&b, "y10", QAT_SHAPE(1, 10), 1 / 256.0f, false);
    qat_emit e = emission(&b, "conv", 3, (const int[]){x, w1, -1}, y1);
    STEP(qat_emit_conv2d(&e, &w, &b.err));
    e = emission(&b, "depthwise", 3, (const int[]){y1, w2, -1}, y2);
    STEP(qat_emit_depthwise_conv2d(&e, &w, &b.err));
    e = emission(&b, "add", 2, (const int[]){y1, y2}, y3);
    STEP(qat_emit_add(&e, "add", &b.err));
    e = emission(&b, "mul", 2, (const int[]){y3, gain}, y4);
    STEP(qat_emit_mul(&e, &b.err));
    e = emission(&b, "concat", 2, (const int[]){y4, y2}, y5);
    STEP(qat_emit_concat(&e, -1, &b.err));
    e = emission(&b, "average", 1, (const int[]){y5}, y6);
    STEP(qat_emit_pool(&e, "average_pool2d", &halves, &b.err));
    e = emission(&b, "max", 1, (const int[]){y6}, y7);
    STEP(qat_emit_pool(&e, "max_pool2d", &halves, &b.err));
    e = emission(&b, "flat", 1, (const int[]){y7}, y8);
    STEP(qat_emit_reshape(&e, &b.err));
    e = emission(&b, "fc", 3, (const int[]){y8, w3, -1}, y9);
    STEP(qat_emit_fully_connected(&e, &b.err));
    e = emission(&b, "softmax", 1, (const int[]){y9}, y10);
    STEP(qat_emit_softmax(&e, 1, &b.err));
    STEP(qat_qgraph_set_io(b.g, 1, &x, 1, &y10, &b.err));
    if (!b.status)
        b.g->tensors[y10].zero_point = 0;
    if (b.status && err)
        *err = b.err;
    return b.status;
}

static void fill_input(uint8_t input[BATCH * 216])
{
    qat_rng rng = qat_rng_at(3, 1, 4);
    for (int i = 0; i < BATCH * 216; i++)
        input[i] = (uint8_t)qat_rng_below(&rng, 256);
}

/** All activations of a run of `batch` samples equal those of the same samples one by one. */
START_TEST(test_batch_is_its_samples)
{
    static uint8_t input[BATCH * 216];
    qat_error err;
    qat_qgraph *g;
    qat_exact *many, *one;
    ck_assert_msg(build_net(&g, &err) == QAT_OK, "%s", err.message);
    ck_assert_int_eq(qat_exact_create(&many, g, NULL, BATCH, &err), QAT_OK);
    ck_assert_int_eq(qat_exact_create(&one, g, NULL, 1, &err), QAT_OK);
    fill_input(input);
    ck_assert_int_eq(qat_exact_run(many, (const void *[]){input}, BATCH, &err), QAT_OK);
    int varied = 0;
    for (int s = 0; s < BATCH; s++) {
        const void *sample[] = {input + s * 216};
        ck_assert_int_eq(qat_exact_run(one, sample, 1, &err), QAT_OK);
        for (int t = 0; t < g->n_tensors; t++) {
            size_t const bytes = qat_qtensor_bytes(&g->tensors[t]);
            if (g->tensors[t].data)
                continue;
            const uint8_t *a = (const uint8_t *)qat_exact_tensor(many, t) + (size_t)s * bytes;
            ck_assert_mem_eq(a, qat_exact_tensor(one, t), bytes);
            varied += memcmp(a, qat_exact_tensor(many, t), bytes) != 0;
        }
    }
    ck_assert_int_gt(varied, 30); /* samples differ from the first in nearly every tensor */
    qat_exact_free(many);
    qat_exact_free(one);
    qat_qgraph_free(g);
}
END_TEST

static int32_t one_more(int32_t acc, int32_t mult, int shift)
{
    return qi_requantize(acc, mult, shift) + 1;
}

static const uint8_t *run_and_find(qat_exact *exact, const qat_qgraph *g, const uint8_t *input,
                                   const char *tensor)
{
    qat_error err;
    ck_assert_int_eq(qat_exact_run(exact, (const void *[]){input}, BATCH, &err), QAT_OK);
    for (int t = 0; t < g->n_tensors; t++)
        if (strcmp(g->tensors[t].name, tensor) == 0)
            return qat_exact_tensor(exact, t);
    ck_abort_msg("no tensor %s", tensor);
    return NULL;
}

/**
 * Use another rule instead of the engine's: one more everywhere except at the ends. Then use the
 * engine's again.
 */
START_TEST(test_another_rule)
{
    enum { CODES = 9 * 8 * 6, LO = 10, HI = 245 };
    static uint8_t input[BATCH * 216], codes[CODES];
    qat_error err;
    qat_qgraph *g;
    qat_exact *exact;
    int inside = 0;
    ck_assert_msg(build_net(&g, &err) == QAT_OK, "%s", err.message);
    ck_assert_int_eq(qat_exact_create(&exact, g, NULL, BATCH, &err), QAT_OK);
    fill_input(input);
    memcpy(codes, run_and_find(exact, g, input, "y1"), CODES);
    qat_exact_set_requantize(exact, one_more);
    const uint8_t *other = run_and_find(exact, g, input, "y1");
    for (int i = 0; i < CODES; i++)
        if (codes[i] > LO && codes[i] < HI) {
            ck_assert_int_eq(other[i], codes[i] + 1);
            inside++;
        }
    ck_assert_int_gt(inside, CODES / 4);
    qat_exact_set_requantize(exact, NULL);
    ck_assert_mem_eq(run_and_find(exact, g, input, "y1"), codes, CODES);
    qat_exact_free(exact);
    qat_qgraph_free(g);
}
END_TEST

START_TEST(test_threads_change_nothing)
{
    static uint8_t input[BATCH * 216], first[BATCH * 10];
    qat_error err;
    qat_qgraph *g;
    qat_exact *e;
    ck_assert_int_eq(build_net(&g, &err), QAT_OK);
    ck_assert_int_eq(qat_exact_create(&e, g, NULL, BATCH, &err), QAT_OK);
    fill_input(input);
    for (int threads = 1; threads <= 5; threads++) {
        qat_set_threads(threads);
        ck_assert_int_eq(qat_exact_run(e, (const void *[]){input}, BATCH, &err), QAT_OK);
        const void *out = qat_exact_tensor(e, g->outputs[0]);
        if (threads == 1)
            memcpy(first, out, sizeof first);
        ck_assert_mem_eq(out, first, sizeof first);
    }
    qat_exact_free(e);
    qat_qgraph_free(g);
}
END_TEST

/** Each allocation of building the net, and of evaluating it, fails once. */
START_TEST(test_exhausted_memory)
{
    static uint8_t input[216];
    bool failed;
    long n = 0;
    qat_set_threads(1); /* which allocation is the n-th must not depend on threads */
    do {
        qat_error err;
        qat_qgraph *g;
        qat_exact *e = NULL;
        test_fail_alloc_after(n++);
        qat_status st = build_net(&g, &err);
        if (!st)
            st = qat_exact_create(&e, g, NULL, 2, &err);
        if (!st)
            st = qat_exact_run(e, (const void *[]){input}, 1, &err);
        failed = test_fail_alloc_stop();
        ck_assert_int_eq(st, failed ? QAT_ERR_NOMEM : QAT_OK);
        qat_exact_free(e);
        qat_qgraph_free(g);
    } while (failed);
    ck_assert_int_gt(n, 60);
    printf("exact: every one of %ld allocations failed once\n", n - 1);
}
END_TEST

/* ------------------------------------------------------------------ custom ops, refusals */

static qat_status negate_exact(const qat_exact_call *call, qat_error *err)
{
    size_t const n = qat_qtensor_count(&call->graph->tensors[call->op->inputs[0]]);
    for (size_t i = 0; i < n * (size_t)call->batch; i++)
        ((uint8_t *)call->out[0])[i] = (uint8_t)(255 - ((const uint8_t *)call->in[0])[i]);
    return QAT_OK;
}

static qat_status same_shape(qat_node *node, qat_error *err)
{
    node->shape = node->inputs[0]->shape;
    return QAT_OK;
}

static void no_forward(qat_node *node, const qat_run *run)
{
}

static const qat_quant negate_quant = {
    .role = QAT_ROLE_CUSTOM, .exact_op = "negate", .exact = negate_exact};
static const qat_op negate = {.name = "negate_layer",
                              .min_inputs = 1,
                              .max_inputs = 1,
                              .shape = same_shape,
                              .forward = no_forward,
                              .quant = &negate_quant};

/** One op of this name from x to y. */
static qat_qgraph *one_op(const char *op, int n_params)
{
    struct builder b = {.g = qat_qgraph_new()};
    int32_t const params[QI_MAX_PARAMS] = {0};
    int const x = add_tensor(&b, "x", QAT_SHAPE(1, 4), 1, false);
    int const y = add_tensor(&b, "y", QAT_SHAPE(1, 4), 1, false);
    ck_assert_int_eq(
        qat_qgraph_op(b.g, op, "layer", QI_ROUND_NONE, 1, &x, 1, &y, n_params, params, 0, &b.err),
        0);
    ck_assert_int_eq(qat_qgraph_set_io(b.g, 1, &x, 1, &y, &b.err), QAT_OK);
    return b.g;
}

START_TEST(test_custom_op)
{
    static const uint8_t input[8] = {0, 1, 2, 3, 252, 253, 254, 255};
    static const uint8_t expected[8] = {255, 254, 253, 252, 3, 2, 1, 0};
    qat_error err;
    qat_registry *registry;
    qat_exact *e;
    qat_qgraph *g = one_op("negate", 0);
    ck_assert_int_eq(qat_registry_create(&registry, &err), QAT_OK);
    ck_assert_int_eq(qat_exact_create(&e, g, registry, 2, &err), QAT_ERR_UNSUPPORTED);
    ck_assert_ptr_null(e);
    ck_assert_ptr_nonnull(
        strstr(err.message, "layer: no exact evaluation of the integer op negate"));
    ck_assert_int_eq(qat_registry_add(registry, &negate, &err), QAT_OK);
    ck_assert_int_eq(qat_exact_create(&e, g, registry, 2, &err), QAT_OK);
    ck_assert_int_eq(qat_exact_run(e, (const void *[]){input}, 2, &err), QAT_OK);
    ck_assert_mem_eq(qat_exact_tensor(e, 1), expected, 8);
    qat_exact_free(e);
    qat_qgraph_free(g);
    qat_registry_free(registry);
}
END_TEST

START_TEST(test_refusals)
{
    static const uint8_t input[12];
    qat_error err;
    qat_exact *e;
    qat_qgraph *g = one_op("requantize", 3);
    ck_assert_int_eq(qat_exact_create(&e, g, NULL, 1, &err), QAT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.message, "layer: op requantize has 1 inputs"));
    qat_qgraph_free(g);
    g = one_op("reshape", 0);
    ck_assert_int_eq(qat_exact_create(&e, g, NULL, 0, &err), QAT_ERR_ARGUMENT);
    ck_assert_int_eq(qat_exact_create(&e, g, NULL, 2, &err), QAT_OK);
    ck_assert_int_eq(qat_exact_run(e, (const void *[]){input}, 3, &err), QAT_ERR_ARGUMENT);
    ck_assert_int_eq(qat_exact_run(e, (const void *[]){input}, 0, &err), QAT_ERR_ARGUMENT);
    ck_assert_int_eq(qat_exact_run(e, (const void *[]){input}, 2, &err), QAT_OK);
    qat_exact_free(e);
    qat_exact_free(NULL);
    qat_qgraph_free(g);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("exact");
    TCase *tc = tcase_create("exact");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, test_batch_is_its_samples);
    tcase_add_test(tc, test_another_rule);
    tcase_add_test(tc, test_threads_change_nothing);
    tcase_add_test(tc, test_exhausted_memory);
    tcase_add_test(tc, test_custom_op);
    tcase_add_test(tc, test_refusals);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
