/**
 * Tasks: the table of one that is added is checked, figures are told by their kind, and answers
 * that do not fit the data are refused.
 */
#include "base/bytes.h"
#include "common/fail_alloc.h"
#include "common/suite.h"
#include "task/task.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ added tasks */

static const qat_figure figures[] = {
    {.name = "share", .column = "share", .kind = QAT_FIGURE_SHARE},
    {.name = "error", .column = "error", .kind = QAT_FIGURE_REAL, .optional = true},
    {.name = "nameless"}};

static bool takes(const qat_recipe *recipe, const qat_dataset_info *data)
{
    return !recipe && data->has_value;
}

/** All that a task must have; its functions are borrowed. */
static qat_task whole(void)
{
    qat_task t = qat_task_classes;
    t.name = "mine";
    t.target = "target_mine";
    t.missing = "no values";
    t.unwanted = "values";
    t.implied = false;
    t.also = -1;
    t.n_figures = 2;
    t.figures = figures;
    t.takes = takes;
    return t;
}

static qat_status open_state(void **state, const qat_graph *graph, const qat_recipe *recipe,
                             const qat_input_info *input, qat_error *err)
{
    *state = NULL;
    return QAT_OK;
}

#define LACKS(member)                                                                              \
    static void without_##member(qat_task *t)                                                      \
    {                                                                                              \
        t->member = 0;                                                                             \
    }
LACKS(name)
LACKS(network)
LACKS(target)
LACKS(missing)
LACKS(unwanted)
LACKS(figures)
LACKS(takes)
LACKS(begin)
LACKS(add)
LACKS(judge)
LACKS(end)
LACKS(tell)
LACKS(tell_json)
LACKS(answers)
LACKS(of_model)
LACKS(answer)
LACKS(n_figures)

#define SETS(name, what)                                                                           \
    static void name(qat_task *t)                                                                  \
    {                                                                                              \
        what;                                                                                      \
    }
SETS(empty_name, t->name = "")
SETS(long_name, t->name = "12345678901234567890123456789012345678901234567890123456789012345678901"
                          "2345678901234567890123456")
SETS(built_in_name, t->name = "boxes")
SETS(added_name, t->name = "first")
SETS(added_target, t->target = "target_first")
SETS(opens_only, t->open = open_state)
SETS(is_implied, t->implied = true)
SETS(many_figures, t->n_figures = QAT_MAX_FIGURES + 1)
SETS(nameless_figure, t->n_figures = 3)
SETS(other_main, t->main = 2)
SETS(other_also, t->also = 2)
SETS(logs_none, t->logs_both = true)

static const struct {
    void (*change)(qat_task *task);
    const char *says;
} refused[] = {
    {without_name, "a task without a name"},
    {without_network, "task mine: no network"},
    {without_target, "task mine: no target"},
    {without_missing, "task mine: no missing"},
    {without_unwanted, "task mine: no unwanted"},
    {without_figures, "task mine: no figures"},
    {without_takes, "task mine: no takes"},
    {without_begin, "task mine: no begin"},
    {without_add, "task mine: no add"},
    {without_judge, "task mine: no judge"},
    {without_end, "task mine: no end"},
    {without_tell, "task mine: no tell"},
    {without_tell_json, "task mine: no tell_json"},
    {without_answers, "task mine: no answers"},
    {without_of_model, "task mine: no of_model"},
    {without_answer, "task mine: no answer"},
    {without_n_figures, "task mine: 0 figures, but there may be 1 to 8"},
    {empty_name, "a task without a name"},
    {long_name, "task 12345678901234567890...: its name has more than 95 bytes"},
    {built_in_name, "task boxes: there is another one of this name"},
    {added_name, "task first: there is another one of this name"},
    {added_target, "task mine: its target target_first is that of task first"},
    {opens_only, "task mine: no close"},
    {is_implied, "task mine: only built-in tasks are implied"},
    {many_figures, "task mine: 9 figures, but there may be 1 to 8"},
    {nameless_figure, "task mine: no column of figure 2"},
    {other_main, "task mine: main = 2, but there are 2 figures"},
    {other_also, "task mine: also = 2, but there are 2 figures"},
    {logs_none, "task mine: also = -1, but there are 2 figures"},
};

START_TEST(tables_are_checked_when_they_are_added)
{
    qat_registry *registry;
    qat_task first = whole(), mine = whole();
    first.name = "first";
    first.target = "target_first";
    ck_assert_int_eq(qat_registry_create(&registry, NULL), QAT_OK);
    ck_assert_int_eq(qat_registry_add_task(registry, &first, NULL), QAT_OK);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        qat_task wrong = whole();
        qat_error err;
        refused[i].change(&wrong);
        ck_assert_int_eq(qat_registry_add_task(registry, &wrong, &err), QAT_ERR_ARGUMENT);
        ck_assert_str_eq(err.message, refused[i].says);
        ck_assert_int_eq(qat_registry_tasks(registry), 1);
    }
    ck_assert_int_eq(qat_registry_add_task(registry, &mine, NULL), QAT_OK);
    ck_assert_ptr_eq(qat_task_find(registry, "mine"), &mine);
    qat_registry_free(registry);
}
END_TEST

/* ------------------------------------------------------------------ figures */

static void told(const qat_accuracy *a, int figure, const char *as)
{
    qat_text text = {0};
    qat_text_add_figure(&text, a, figure);
    qat_write_u8(&text, 0);
    ck_assert_str_eq((const char *)text.bytes, as);
    qat_writer_free(&text);
}

START_TEST(figures_are_told_by_their_kind)
{
    qat_task const mine = whole();
    qat_accuracy const a = {.n = 8, .task = &mine, .figures = {0.98123, 1234.5678}};
    qat_accuracy const none = {.n = 8, .task = &mine, .figures = {-1, -1}};
    qat_accuracy const of_classes = {.n = 8, .task = &qat_task_classes, .figures = {7, 8}};
    told(&a, 0, "98.12 %");
    told(&a, 1, "1234.57");
    told(&none, 1, "not known");
    told(&of_classes, QAT_TOP1, "87.50 %");
    told(&(qat_accuracy){0}, 0, "not known");
}
END_TEST

/* A checkpoint may name a task whose plugin is not there. */
START_TEST(without_a_task_no_figure_is_known)
{
    qat_accuracy const a = {.n = 8, .figures = {1, 2}};
    ck_assert(isnan(qat_figure_of(&a, 0)) && isnan(qat_main_figure(&a)) && isnan(qat_score(&a)));
}
END_TEST

START_TEST(a_known_score_is_better_than_none)
{
    for (int less = 0; less < 2; less++) {
        qat_task mine = whole();
        mine.less_is_better = less;
        ck_assert(qat_score_is_better(&mine, 3, NAN) && !qat_score_is_better(&mine, NAN, 3));
        ck_assert(!qat_score_is_better(&mine, NAN, NAN) && !qat_score_is_better(&mine, 3, 3));
        ck_assert(qat_score_is_better(&mine, 2, 3) == less);
        ck_assert(qat_score_is_better(&mine, 3, 2) == !less);
    }
}
END_TEST

/* ------------------------------------------------------------------ answers that do not fit */

/** What a pass says of two samples with these outputs. */
static qat_status judged(const qat_input_info *in, const qat_outputs *o, const qat_batch *batch,
                         qat_error *err)
{
    const qat_task *task = qat_task_of(in);
    void *pass;
    ck_assert_int_eq(task->begin(&pass, in, NULL), QAT_OK);
    qat_status const st = task->add(pass, o, batch, 2, err);
    task->end(pass);
    return st;
}

START_TEST(fewer_scores_than_classes_are_refused)
{
    static const float scores[6] = {1, 2, 3, 4, 5, 6};
    static const uint8_t codes[6] = {1, 2, 3, 4, 5, 6};
    static const int32_t labels[2] = {0, 2};
    qat_batch const batch = {.count = 2, .labels = labels};
    for (int k = 0; k < 4; k++) {
        qat_input_info const in = {.classes = 3 + k / 2};
        qat_outputs o = {.n = 1, .at = {{.name = "out", .n = 3}}};
        qat_error err;
        o.at[0].real = k % 2 ? scores : NULL;
        o.at[0].codes = k % 2 ? NULL : codes;
        ck_assert_int_eq(judged(&in, &o, &batch, &err), k < 2 ? QAT_OK : QAT_ERR_SHAPE);
        if (k >= 2)
            ck_assert_str_eq(err.message,
                             "evaluation: 3 scores (output out), but there are 4 classes");
    }
}
END_TEST

START_TEST(targets_of_other_attributes_are_refused)
{
    static const float scores[4] = {0.1f, 0.2f, 0.3f, 0.4f}, targets[8] = {0};
    qat_input_info const in = {.task = &qat_task_attributes, .attributes = {.count = 2}};
    qat_outputs const o = {.n = 1, .at = {{.name = "out", .n = 2, .real = scores}}};
    for (int n = 2; n < 5; n++) {
        qat_batch const batch = {.count = 2, .targets = targets, .n_targets = n};
        ck_assert_int_eq(judged(&in, &o, &batch, NULL), n == 3 ? QAT_OK : QAT_ERR_SHAPE);
    }
}
END_TEST

/** A pass over two samples; what it allocates may fail. */
static qat_status pass_over(const qat_input_info *in, const qat_outputs *o, const qat_batch *batch,
                            qat_error *err)
{
    const qat_task *task = qat_task_of(in);
    qat_accuracy accuracy;
    void *pass = NULL;
    qat_status st = task->begin(&pass, in, err);
    for (int i = 0; !st && i < 2; i++)
        st = task->add(pass, o, batch, 2, err);
    if (!st)
        st = task->judge(pass, &accuracy, err);
    task->end(pass);
    return st;
}

START_TEST(a_pass_without_memory_says_so)
{
    static const float scores[6] = {1, 2, 3, 4, 5, 6}, targets[6] = {0, 1, 5, 1, 0, 7};
    static const int32_t labels[2] = {0, 2};
    qat_input_info const of_attributes = {.task = &qat_task_attributes,
                                          .attributes = {.count = 2, .outputs = 1, .width = 1}};
    qat_input_info const in = _i ? of_attributes : (qat_input_info){.classes = 3};
    qat_outputs const o = {.n = 2 - !_i,
                           .at = {{.name = "out", .n = _i ? 2 : 3, .real = scores},
                                  {.name = "value", .n = 1, .real = scores}}};
    qat_batch const batch = {.count = 2, .labels = labels, .targets = targets, .n_targets = 3};
    bool failed;
    long n = 0;
    do {
        qat_error err;
        test_fail_alloc_after(n++);
        qat_status const st = pass_over(&in, &o, &batch, &err);
        failed = test_fail_alloc_stop();
        ck_assert_msg(st == (failed ? QAT_ERR_NOMEM : QAT_OK), "%s", err.message);
    } while (failed);
    ck_assert_int_gt(n, 1);
}
END_TEST

START_TEST(more_outputs_than_a_pass_takes_are_refused)
{
    qat_registry *registry;
    qat_graph *graph;
    qat_accuracy accuracy;
    qat_error err;
    ck_assert_int_eq(qat_registry_create(&registry, NULL), QAT_OK);
    ck_assert_int_eq(qat_graph_create(&graph, registry, NULL), QAT_OK);
    qat_node *x = qat_graph_input(graph, QAT_INPUT_NAME, QAT_SHAPE(1, 4));
    for (int i = 0; i <= QAT_MAX_OUTPUTS; i++) {
        char name[16];
        snprintf(name, sizeof name, "out%d", i);
        qat_graph_output(graph, qat_apply1(graph, "relu", name, "", x));
    }
    ck_assert_int_eq(qat_evaluate_graph(graph, &(qat_input_info){.classes = 4}, NULL, 1, 0, NULL,
                                        NULL, &accuracy, &err),
                     QAT_ERR_UNSUPPORTED);
    ck_assert_str_eq(err.message,
                     "evaluation: the graph has 5 outputs, but there may be at most 4");
    qat_graph_free(graph);
    qat_registry_free(registry);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tasks");
    TCase *tc = tcase_create("tasks");
    tcase_add_test(tc, tables_are_checked_when_they_are_added);
    tcase_add_test(tc, figures_are_told_by_their_kind);
    tcase_add_test(tc, without_a_task_no_figure_is_known);
    tcase_add_test(tc, a_known_score_is_better_than_none);
    tcase_add_test(tc, fewer_scores_than_classes_are_refused);
    tcase_add_test(tc, targets_of_other_attributes_are_refused);
    tcase_add_loop_test(tc, a_pass_without_memory_says_so, 0, 2);
    tcase_add_test(tc, more_outputs_than_a_pass_takes_are_refused);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
