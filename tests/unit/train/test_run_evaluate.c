/** The integer accuracy that a training run prints is that of the checkpoint and of the .qm. */
#include "base/parallel.h"
#include "checkpoint/restore.h"
#include "common/suite.h"
#include "recipe/recipe.h"
#include "unit/train/train_runs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SETS_MAX = 6 };

static const char *const quantized[][SETS_MAX] = {
    {"quant.enabled=yes"},
    {"quant.enabled=yes", "quant.layout=int8", "quant.profile=tflite"},
    {"quant.enabled=yes", "quant.weight_bits=4", "quant.activation_bits=4"},
    {"quant.enabled=yes", "train.average_decay=0.8", "quant.quant_delay=50%"},
    {"quant.enabled=yes", "quant.bn_reestimate=3", "quant.bn_fold=one_pass"},
    {"quant.enabled=yes", "quant.bn_reestimate=3", "train.average_decay=0.8"},
    {"quant.enabled=yes", "quant.ranges=lsq", "quant.weight_bits=4", "train.average_decay=0.8"},
    {"quant.enabled=yes", "quant.forward=integer"},
    {"quant.enabled=yes", "train.eval_simulated=yes", "data.height=9", "data.width=14"},
};
enum { QUANTIZED = (int)(sizeof quantized / sizeof *quantized) };

static int count_of(const char *const *sets)
{
    int n = 0;
    while (n < SETS_MAX && sets[n])
        n++;
    return n;
}

static void same_counts(const qat_accuracy *a, const qat_accuracy *b)
{
    ck_assert_int_eq(a->n, 60);
    ck_assert_int_eq(a->n, b->n);
    ck_assert_int_eq(a->figures[QAT_TOP1], b->figures[QAT_TOP1]);
    ck_assert_int_eq(a->figures[QAT_TOP5], b->figures[QAT_TOP5]);
}

/** The exact evaluation of the checkpoint, as qat-eval has it. */
static qat_accuracy of_checkpoint(const qat_restored *r, const qat_dataset *data)
{
    qat_deploy_options const o = {0};
    qat_graph *eval;
    qat_qgraph *graph;
    qat_accuracy a;
    qat_error err;
    ck_assert_msg(!qat_restored_eval_graph(r, &o, 30, &eval, &err), "%s", err.message);
    ck_assert_msg(!qat_restored_freeze(r, &o, eval, &graph, &err), "%s", err.message);
    ck_assert_msg(!qat_evaluate_exact(graph, r->registry, &r->checkpoint->input, data, 30, 0, NULL,
                                      NULL, &a, &err),
                  "%s", err.message);
    qat_qgraph_free(graph);
    qat_graph_free(eval);
    return a;
}

/** The exported file on one instruction set, as qat-eval has it. */
static qat_accuracy of_model(const char *path, const char *isa, const qat_dataset *data)
{
    qi_host *host = NULL;
    qi_host_options const options = {.isa = isa};
    qat_error err;
    qat_input_info input;
    qat_accuracy a;
    ck_assert_msg(qi_host_open(&host, path, &options, &err) == QAT_OK, "%s", err.message);
    ck_assert_int_eq(qat_input_info_of_model(&input, NULL, qi_host_model(host), NULL), QAT_OK);
    ck_assert_int_eq(qat_evaluate_model(host, &input, data, 0, NULL, NULL, &a, NULL), QAT_OK);
    qi_host_close(host);
    return a;
}

START_TEST(checkpoint_and_model_answer_what_was_logged)
{
    const char *const *sets = quantized[_i];
    qat_deploy_options const o = {.samples = 20};
    qat_deploy_result deployed;
    qat_dataset *data;
    qat_error err;
    char qm[TEST_PATH_MAX];
    must_train_with("a", sets, count_of(sets), 0, false);
    qat_restored *r = restored("a");
    const qat_accuracy *logged = &r->checkpoint->integer_accuracy;
    ck_assert_int_eq(qat_recipe_open_data(&data, r->recipe, NULL, QAT_SPLIT_TEST, NULL), QAT_OK);
    qat_accuracy const exact = of_checkpoint(r, data);
    same_counts(logged, &exact);
    test_temp_path(qm, folder, "a.qm");
    ck_assert_msg(!qat_deploy(r, qm, &o, &deployed, &err), "%s", err.message);
    for (int i = 0; qi_isa_name(i); i++) {
        if (!qi_isa_runs_here(qi_isa_name(i)))
            continue;
        qat_accuracy const engine = of_model(qm, qi_isa_name(i), data);
        same_counts(logged, &engine);
    }
    ck_assert_int_eq(r->checkpoint->simulated_accuracy.n, r->recipe->train.eval_simulated ? 60 : 0);
    qat_dataset_close(data);
    qat_restored_free(r);
}
END_TEST

/* ------------------------------------------------------------------ the log */

/** Column `name` of a row of log.csv (0: the header's first); text[32] is cut to fit. */
static const char *column(const char *log, const char *name, int row, char text[32])
{
    int at = 0;
    const char *found = strstr(log, name), *line = log;
    ck_assert_ptr_nonnull(found);
    for (const char *c = log; c < found; c++)
        at += *c == ',';
    for (; row > 0; row--)
        line = strchr(line, '\n') + 1;
    for (; at > 0; at--)
        line = strchr(line, ',') + 1;
    snprintf(text, 32, "%.*s", (int)strcspn(line, ",\n"), line);
    return text;
}

/**
 * Until the delay, a run evaluates only the float network. From then on it also evaluates the
 * integers.
 */
START_TEST(columns_say_which_network_was_evaluated)
{
    const char *sets[] = {"quant.enabled=yes", "quant.quant_delay=8",
                          _i ? "train.eval_simulated=yes" : "train.eval_simulated=no"};
    char text[32];
    must_train_with("a", sets, 3, 0, false);
    char *log = log_of("a");
    ck_assert_str_ne(column(log, "float_top1", 8, text), "");
    ck_assert_str_eq(column(log, "integer_top1", 8, text), "");
    ck_assert_str_eq(column(log, "simulated_top1", 8, text), "");
    ck_assert_str_ne(column(log, "float_top1", 16, text), "");
    ck_assert_str_ne(column(log, "integer_top1", 16, text), "");
    ck_assert_int_eq(*column(log, "simulated_top1", 16, text) != 0, _i);
    free(log);
}
END_TEST

/* ------------------------------------------------------------------ no integers */

static const struct {
    const char *sets[SETS_MAX], *says;
} floats[] = {
    {{"quant.enabled=yes", "quant.layer conv2.float=yes"}, "conv2"},
    {{"quant.enabled=yes", "quant.activation_ranges=none"}, "activation_ranges = none"},
    {{"quant.enabled=yes", "quant.weight_ranges=fgq", "quant.layer conv1.weight_ranges=ema"},
     "fgq"},
};
enum { FLOATS = (int)(sizeof floats / sizeof *floats) };

typedef struct told {
    int lines;
    char last[1024];
} told;

static void keep_line(void *context, const char *text)
{
    told *t = context;
    if (!strstr(text, "float32 simulation"))
        return;
    t->lines++;
    snprintf(t->last, sizeof t->last, "%s", text);
}

START_TEST(networks_without_integers_are_simulated_and_it_is_said_once)
{
    char dir[TEST_PATH_MAX], text[32];
    told t = {0};
    qat_log const log_to = {keep_line, &t};
    qat_train_options const o = {.dir = dir_of(dir, "a"), .log = &log_to};
    qat_train_result result;
    qat_error err;
    qat_recipe *r = recipe_with(floats[_i].sets, count_of(floats[_i].sets));
    ck_assert_msg(!qat_train(r, &o, &result, &err), "%s", err.message);
    qat_recipe_free(r);
    ck_assert_int_eq(t.lines, 1);
    ck_assert_msg(strstr(t.last, floats[_i].says) != NULL, "%s", t.last);
    ck_assert_int_eq(result.integer_accuracy.n, 0);
    ck_assert_int_eq(result.simulated_accuracy.n, 60);
    char *log = log_of("a");
    ck_assert_str_eq(column(log, "integer_top1", 16, text), "");
    ck_assert_str_ne(column(log, "simulated_top1", 16, text), "");
    free(log);
}
END_TEST

/* ------------------------------------------------------------------ the best checkpoint */

/**
 * Of the evaluations on integers, the best; the first of equals. A simulation that rounds as they
 * do has the same figures. Fake quantization alone, without fractions, has others.
 */
START_TEST(the_best_checkpoint_is_the_best_on_integers)
{
    const char *sets[] = {"quant.enabled=yes",        "quant.weight_bits=3",
                          "quant.activation_bits=4",  "quant.fraction=0",
                          "train.eval_every=1",       "train.lr=0.3",
                          "train.eval_simulated=yes", "quant.forward=simulated"};
    if (_i)
        sets[7] = "quant.forward=fake_quant";
    char text[32], dir[TEST_PATH_MAX], path[TEST_PATH_MAX];
    int best = 0, differing = 0;
    double most = -1;
    qat_checkpoint *c;
    must_train_with("a", sets, (int)(sizeof sets / sizeof *sets), 0, false);
    char *log = log_of("a");
    for (int row = 1; row <= 16; row++) {
        double const figure = strtod(column(log, "integer_top1", row, text), NULL);
        differing += figure != strtod(column(log, "simulated_top1", row, text), NULL);
        best = figure > most ? row : best;
        most = figure > most ? figure : most;
    }
    ck_assert(_i ? differing > 0 : differing == 0);
    dir_of(dir, "a");
    test_temp_path(path, dir, "best.ckpt");
    ck_assert_int_eq(qat_checkpoint_load(&c, path, NULL), QAT_OK);
    ck_assert_int_eq(c->step, best);
    ck_assert_int_eq(c->integer_accuracy.figures[QAT_TOP1],
                     lround(most / 100 * (double)c->integer_accuracy.n));
    qat_checkpoint_free(c);
    free(log);
}
END_TEST

/* ------------------------------------------------------------------ interrupted */

/** Stopped in an evaluation and resumed, the run equals a whole one. */
static bool stop_at_call(void *context)
{
    int *left = context;
    return --*left == 0;
}

START_TEST(interrupted_evaluations_are_done_anew)
{
    const char *sets[] = {"quant.enabled=yes", "train.eval_simulated=yes", "train.eval_batch=16"};
    char dir[TEST_PATH_MAX];
    qat_error err;
    must_train_with("whole", sets, 3, 0, false);
    for (int calls = 9; calls < 21; calls++) { /* 8 steps, then the three networks' batches */
        int left = calls;
        qat_recipe *r = recipe_with(sets, 3);
        qat_train_options o = {
            .dir = dir_of(dir, "parts"), .overwrite = true, .stop = stop_at_call, .context = &left};
        qat_train_result result;
        ck_assert_msg(!qat_train(r, &o, &result, &err), "%s", err.message);
        ck_assert_int_lt(result.step, result.steps);
        o = (qat_train_options){.dir = dir, .resume = true};
        ck_assert_msg(!qat_train(r, &o, &result, &err), "%s", err.message);
        qat_recipe_free(r);
        same_files("whole", "parts", "last.ckpt");
        same_files("whole", "parts", "best.ckpt");
        same_logs("whole", "parts");
    }
}
END_TEST

static void setup(void)
{
    test_folder_make();
    qat_set_threads(1);
}

int main(void)
{
    Suite *suite = suite_create("run_evaluate");
    TCase *tc = tcase_create("run_evaluate");
    tcase_add_checked_fixture(tc, setup, test_folder_remove);
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, checkpoint_and_model_answer_what_was_logged, 0, QUANTIZED);
    tcase_add_loop_test(tc, columns_say_which_network_was_evaluated, 0, 2);
    tcase_add_loop_test(tc, networks_without_integers_are_simulated_and_it_is_said_once, 0, FLOATS);
    tcase_add_loop_test(tc, the_best_checkpoint_is_the_best_on_integers, 0, 2);
    tcase_add_test(tc, interrupted_evaluations_are_done_anew);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
