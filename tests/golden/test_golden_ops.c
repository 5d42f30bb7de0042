/**
 * TensorFlow Lite's operators, byte for byte. Every golden case (ops/ of the golden data) whose
 * operator the engine has becomes a one-op model in profile tflite. It is written as a .qm. The
 * engine's core runs it, and the host runs it with every instruction set of this processor, on one
 * and two threads. The exact evaluation computes it for two samples at once (not for ops that only
 * imported models have). All outputs must equal the recorded ones.
 */
#include "common/common.h"
#include "common/suite.h"
#include "golden/case_graph.h"
#include "infer/host/host.h"
#include "qat/convert.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const ops[] = {"CONV_2D",
                                  "DEPTHWISE_CONV_2D",
                                  "FULLY_CONNECTED",
                                  "ADD",
                                  "SUB",
                                  "MUL",
                                  "MEAN",
                                  "CONCATENATION",
                                  "AVERAGE_POOL_2D",
                                  "SOFTMAX",
                                  "LOGISTIC",
                                  "TANH",
                                  "RELU",
                                  "RELU6",
                                  "MAX_POOL_2D",
                                  "RESHAPE",
                                  "QUANTIZE",
                                  "TRANSPOSE_CONV",
                                  "MAXIMUM",
                                  "MINIMUM",
                                  "PRELU",
                                  "LEAKY_RELU",
                                  "HARD_SWISH",
                                  "L2_NORMALIZATION",
                                  "PAD",
                                  "RESIZE_BILINEAR",
                                  "RESIZE_NEAREST_NEIGHBOR",
                                  "ARG_MAX",
                                  "SPLIT",
                                  "TRANSPOSE"};

/** What came of an operator's cases. */
struct tally {
    int run, differing, not_integer; /* cases */
    bool wrong;                      /* the case being looked at */
    char first[768];                 /* what is wrong with the first that differs */
};

static void differs(struct tally *t, const char *name, const char *by, const char *why)
{
    t->wrong = true;
    if (!*t->first)
        snprintf(t->first, sizeof t->first, "%s: %s: %s", name, by, why);
}

static void compare(struct tally *t, const char *name, const char *by, const qat_npy *expected,
                    const uint8_t *got)
{
    const uint8_t *want = expected->data;
    size_t const each = qat_npy_item_bytes(expected->type);
    char why[96];
    for (size_t i = 0; i < expected->count * each; i++)
        if (want[i] != got[i]) {
            snprintf(why, sizeof why, "value %zu: a byte is %d, expected %d", i / each, got[i],
                     want[i]);
            differs(t, name, by, why);
            return;
        }
}

/** Both samples of a batch of two hold the case's input. */
static void check_exact(struct tally *t, const char *name, const struct case_graph *c)
{
    qat_error err;
    qat_exact *exact = NULL;
    uint8_t *twice[CASE_MAX_INPUTS] = {NULL};
    for (int i = 0; i < c->n_inputs; i++) {
        twice[i] = malloc(2 * c->inputs[i].count);
        ck_assert_ptr_nonnull(twice[i]);
        memcpy(twice[i], c->inputs[i].data, c->inputs[i].count);
        memcpy(twice[i] + c->inputs[i].count, c->inputs[i].data, c->inputs[i].count);
    }
    qat_status st = qat_exact_create(&exact, c->graph, NULL, 2, &err);
    if (!st)
        st = qat_exact_run(exact, (const void *const *)twice, 2, &err);
    if (st) {
        differs(t, name, "exact evaluation", err.message);
    } else {
        const uint8_t *out = qat_exact_tensor(exact, c->graph->outputs[0]);
        compare(t, name, "exact evaluation", &c->expected[0], out);
        compare(t, name, "exact evaluation, second sample", &c->expected[0],
                out + c->expected[0].count);
    }
    qat_exact_free(exact);
    for (int i = 0; i < c->n_inputs; i++)
        free(twice[i]);
}

/** The core's kernels, or, with options, the host's inner loops. */
static void check_run(struct tally *t, const char *name, const struct case_graph *c,
                      const uint8_t *qm, size_t count, const qi_host_options *options)
{
    qat_error err;
    char by[64] = "engine";
    void *out[CASE_MAX_OUTPUTS];
    const void *inputs[CASE_MAX_INPUTS];
    qi_host *host = NULL;
    for (int i = 0; i < c->n_outputs; i++) {
        size_t const bytes = c->expected[i].count * qat_npy_item_bytes(c->expected[i].type);
        out[i] = malloc(bytes);
        ck_assert_ptr_nonnull(out[i]);
        memset(out[i], 0xa5, bytes);
    }
    for (int i = 0; i < c->n_inputs; i++)
        inputs[i] = c->inputs[i].data;
    if (options)
        snprintf(by, sizeof by, "engine, %s, threads %d", options->isa, options->threads);
    if (qi_host_open_bytes(&host, qm, count, name, options, &err) != QAT_OK) {
        differs(t, name, by, err.message);
    } else {
        if (options)
            qi_host_run(host, inputs, out);
        else
            qi_run(host->model, host->arena, inputs, out);
        for (int i = 0; i < c->n_outputs; i++)
            compare(t, name, by, &c->expected[i], out[i]);
    }
    qi_host_close(host);
    for (int i = 0; i < c->n_outputs; i++)
        free(out[i]);
}

static void check_engine(struct tally *t, const char *name, const struct case_graph *c)
{
    qat_error err;
    uint8_t *qm = NULL;
    size_t count = 0;
    const void *inputs[CASE_MAX_INPUTS], *answers[CASE_MAX_OUTPUTS];
    qat_qm_metadata const metadata = {
        .description = name, .kat_inputs = inputs, .kat_outputs = answers};
    for (int i = 0; i < c->n_inputs; i++)
        inputs[i] = c->inputs[i].data;
    for (int i = 0; i < c->n_outputs; i++)
        answers[i] = c->expected[i].data;
    if (qat_qm_write(c->graph, &metadata, &qm, &count, &err) != QAT_OK) {
        differs(t, name, "writer", err.message);
        return;
    }
    test_keep_model("golden", name, qm, count);
    check_run(t, name, c, qm, count, NULL);
    for (int i = 0; qi_isa_name(i); i++)
        for (int threads = 1; threads <= 2 && qi_isa_runs_here(qi_isa_name(i)); threads++)
            check_run(t, name, c, qm, count,
                      &(qi_host_options){.isa = qi_isa_name(i), .threads = threads});
    free(qm);
}

static void check_case(struct tally *t, const char *folder, const char *name, const char *op)
{
    struct case_graph c;
    qat_error err;
    qat_status const st = case_graph_load(&c, folder, op, &err);
    t->wrong = false;
    if (st == QAT_ERR_UNSUPPORTED) {
        t->not_integer++;
    } else if (st) {
        differs(t, name, "building", err.message);
    } else {
        t->run++;
        if (c.exact)
            check_exact(t, name, &c);
        check_engine(t, name, &c);
    }
    t->differing += t->wrong;
    case_graph_free(&c);
}

START_TEST(equals_tflite)
{
    char index[1024], name[128], op[64], folder[1280];
    struct tally t = {0};
    if (!test_golden_path(index, sizeof index, "ops/index.txt")) {
        test_skip(ops[_i], "no golden data");
        return;
    }
    FILE *file = fopen(index, "r");
    ck_assert_ptr_nonnull(file);
    index[strlen(index) - strlen("/index.txt")] = 0;
    while (fscanf(file, "%127s %63s", name, op) == 2) {
        if (strcmp(op, ops[_i]) != 0)
            continue;
        snprintf(folder, sizeof folder, "%s/%s", index, name);
        check_case(&t, folder, name, op);
    }
    fclose(file);
    printf("%-23s %3d cases, %d differing", ops[_i], t.run, t.differing);
    if (t.not_integer)
        printf(" (%d more from float: the border, not an integer op)", t.not_integer);
    printf("\n");
    fflush(stdout);
    ck_assert_msg(t.differing == 0, "%s", t.first);
    ck_assert_int_gt(t.run, 0);
}
END_TEST

static void print_isas(void)
{
    printf("engine: core");
    for (int i = 0; qi_isa_name(i); i++)
        printf(", %s%s", qi_isa_name(i),
               qi_isa_runs_here(qi_isa_name(i)) ? " (1 and 2 threads)"
                                                : " (not on this processor)");
    printf("\n");
}

int main(void)
{
    print_isas();
    Suite *suite = suite_create("golden ops");
    TCase *cases = tcase_create("ops");
    tcase_set_timeout(cases, 300);
    tcase_add_loop_test(cases, equals_tflite, 0, (int)(sizeof ops / sizeof *ops));
    suite_add_tcase(suite, cases);
    return test_run_suite(suite);
}
