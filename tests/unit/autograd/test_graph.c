/**
 * Registries, shapes, attributes and building: what is made, and what is refused with which words.
 */
#include "autograd/graph/registry.h"
#include "common/fail_alloc.h"
#include "common/suite.h"
#include "common/toy_graph.h"

#include <check.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** The graph's error has this status and its message all of these words. */
static void assert_error(qat_status status, const char *const *words)
{
    qat_error err;
    ck_assert_int_eq(qat_graph_check(graph, &err), status);
    for (; *words; words++)
        ck_assert_msg(strstr(err.message, *words) != NULL, "no '%s' in: %s", *words, err.message);
}
#define ASSERT_ERROR(status, ...) assert_error(status, (const char *const[]){__VA_ARGS__, NULL})

/* ------------------------------------------------------------------ shapes */

START_TEST(shapes_are_counted_compared_and_printed)
{
    char text[64];
    qat_shape const a = QAT_SHAPE(2, 3, 4), b = QAT_SHAPE(2, 3, 4, 1);
    ck_assert_int_eq(a.rank, 3);
    ck_assert_int_eq(a.dims[3], 1);
    ck_assert_uint_eq(qat_shape_count(&a), 24);
    ck_assert(qat_shape_equal(&a, &a));
    ck_assert(!qat_shape_equal(&a, &b));
    ck_assert_str_eq(qat_shape_text(&a, text), "[2, 3, 4]");
    qat_shape const longest = QAT_SHAPE(INT_MIN, INT_MIN, INT_MIN, INT_MIN);
    ck_assert_uint_eq(strlen(qat_shape_text(&longest, text)), 2 + 4 * 11 + 3 * 2);
}
END_TEST

/* ------------------------------------------------------------------ registry */

static qat_status any_shape(qat_node *node, qat_error *err)
{
    node->shape = node->inputs[0]->shape;
    return QAT_OK;
}

static void any_forward(qat_node *node, const qat_run *run)
{
    node->value[0] = 0;
}

static void assert_refused(const qat_op *op, const char *words)
{
    qat_error err;
    ck_assert_int_eq(qat_registry_add(registry, op, &err), QAT_ERR_ARGUMENT);
    ck_assert_msg(strstr(err.message, words) != NULL, "%s", err.message);
}

START_TEST(registry_refuses_ops_it_could_not_run)
{
    qat_attr_def many[QAT_MAX_ATTRS + 2] = {{0}};
    char names[QAT_MAX_ATTRS + 1][16];
    for (int i = 0; i <= QAT_MAX_ATTRS; i++) {
        snprintf(names[i], sizeof names[i], "a%d", i);
        many[i] = (qat_attr_def){names[i], QAT_ATTR_INT, 0, 0, 1, NULL, ""};
    }
    static const qat_attr_def twice[] = {
        {"k", QAT_ATTR_INT, 0, 0, 1, NULL, ""}, {"k", QAT_ATTR_INT, 0, 0, 1, NULL, ""}, {0}};
    static const qat_attr_def no_choice[] = {{"k", QAT_ATTR_CHOICE, 0, 0, 0, NULL, ""}, {0}};
    static const qat_attr_def empty_range[] = {{"k", QAT_ATTR_REAL, 0, 1, -1, NULL, ""}, {0}};
    qat_op op = {.name = "fresh",
                 .min_inputs = 1,
                 .max_inputs = 1,
                 .shape = any_shape,
                 .forward = any_forward};
    qat_op bad = op;

    assert_refused(NULL, "name");
    bad.name = "square";
    assert_refused(&bad, "'square' is already registered");
    bad.name = "two words";
    assert_refused(&bad, "'two words'");
    bad = op;
    bad.forward = NULL;
    assert_refused(&bad, "no forward");
    bad = op;
    bad.shape = NULL;
    assert_refused(&bad, "no shape");
    bad = op;
    bad.max_inputs = 0;
    assert_refused(&bad, "takes 1 to 0");
    bad = op;
    bad.attrs = many;
    assert_refused(&bad, "more than 20 attributes");
    bad.attrs = twice;
    assert_refused(&bad, "two attributes 'k'");
    bad.attrs = no_choice;
    assert_refused(&bad, "'k' has no legal value");
    bad.attrs = empty_range;
    assert_refused(&bad, "'k' has no legal value");

    many[QAT_MAX_ATTRS].name = NULL;
    op.attrs = many;
    int const before = qat_registry_count(registry);
    ck_assert_int_eq(qat_registry_add(registry, &op, NULL), QAT_OK);
    ck_assert_int_eq(qat_registry_count(registry), before + 1);
    ck_assert_ptr_eq(qat_registry_find(registry, "fresh"), &op);
    ck_assert_ptr_eq(qat_registry_at(registry, before), &op);
    ck_assert_ptr_null(qat_registry_find(registry, "unknown"));
}
END_TEST

/* ------------------------------------------------------------------ building */

START_TEST(a_network_is_built_with_its_parameters)
{
    qat_node *x = qat_graph_input(graph, "x", QAT_SHAPE(1, 3));
    qat_node *y = qat_apply1(graph, "linear", "fc", " units=4\tgain=-2.5  mode=doubled ", x);
    qat_node *z = qat_apply1(graph, "square", "sq", "", y);
    ck_assert_int_eq(qat_graph_check(graph, NULL), QAT_OK);
    ck_assert_int_eq(qat_graph_nodes(graph), 5);
    ck_assert_ptr_eq(qat_graph_registry(graph), registry);

    qat_node *w = qat_graph_find(graph, "fc/weights"), *b = qat_graph_find(graph, "fc/offset");
    qat_shape const weights = QAT_SHAPE(4, 3);
    ck_assert(qat_shape_equal(&w->shape, &weights));
    ck_assert(w->is_param && w->trainable && w->decay && b->trainable && !b->decay);
    ck_assert_str_eq(w->init.name, "weights");
    ck_assert_int_eq(w->init.fan_in, 3);
    ck_assert(!w->op && !x->op && !x->is_param);
    ck_assert_int_eq(y->n_inputs, 3);
    ck_assert_int_eq(y->n_data, 1);
    ck_assert_ptr_eq(y->inputs[1], w);
    ck_assert_ptr_eq(y->inputs[2], b);
    ck_assert(qat_attr(y, "units") == 4 && qat_attr(y, "gain") == -2.5 && qat_attr(y, "mode") == 1);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(qat_graph_node(graph, i)->index, i);
    ck_assert_int_eq(z->index, 4);
    ck_assert_int_eq(qat_node_consumers(x), 1);
    ck_assert_int_eq(qat_node_consumers(z), 0);
    ck_assert_ptr_null(qat_graph_find(graph, "fc/nothing"));

    qat_graph_output(graph, z);
    qat_graph_output(graph, y);
    ck_assert_int_eq(qat_graph_outputs(graph), 2);
    ck_assert_ptr_eq(qat_graph_output_at(graph, 0), z);
    ck_assert_ptr_eq(qat_graph_output_at(graph, 1), y);
}
END_TEST

START_TEST(parameters_may_be_given_and_shared)
{
    qat_node *x = qat_graph_input(graph, "x", QAT_SHAPE(1, 3));
    qat_node *a = qat_apply1(graph, "linear", "a", "units=3", x);
    qat_node *w = qat_apply1(graph, "square", "w2", "", a->inputs[1]); /* an op node in the slot */
    qat_node *given[] = {a, w, a->inputs[2]};
    qat_node *b = qat_apply(graph, "linear", "b", "units=3", 3, given);
    ck_assert_ptr_eq(b->inputs[1], w);
    ck_assert_ptr_eq(b->inputs[2], a->inputs[2]);
    ck_assert_int_eq(b->n_data, 1);
    ck_assert_int_eq(qat_node_consumers(a->inputs[2]), 2);
    ck_assert_ptr_null(qat_graph_find(graph, "b/weights"));

    /*
     * An op with any number of inputs. Those at the end that have the shapes of parameters are the
     * parameters.
     */
    qat_node *three[] = {x, a, b};
    qat_node *j = qat_apply(graph, "join", "j", "", 3, three);
    ck_assert_int_eq(j->n_data, 3);
    ck_assert_ptr_eq(j->inputs[3], qat_graph_find(graph, "j/gain"));
    qat_node *with_gain[] = {x, b, j->inputs[3]};
    qat_node *k = qat_apply(graph, "join", "k", "", 3, with_gain);
    ck_assert_int_eq(k->n_data, 2);
    ck_assert_ptr_eq(k->inputs[2], j->inputs[3]);

    qat_node *copy = qat_apply_values(graph, b->op, "copy", b->attrs, b->n_inputs, b->inputs);
    ck_assert_int_eq(qat_graph_check(graph, NULL), QAT_OK);
    ck_assert_int_eq(copy->n_data, 1);
}
END_TEST

START_TEST(the_first_error_is_kept)
{
    qat_node *x = qat_graph_input(graph, "x", QAT_SHAPE(1, 3));
    qat_node *y = qat_apply1(graph, "linear", "fc", "units=0", x);
    ck_assert_ptr_null(y);
    ck_assert_ptr_null(qat_apply2(graph, "plus", "sum", "", x, y));
    ck_assert_ptr_null(qat_graph_input(graph, "x", QAT_SHAPE(1)));
    qat_graph_output(graph, y);
    qat_graph_want_gradient(graph, y);
    ASSERT_ERROR(QAT_ERR_ARGUMENT, "fc", "linear", "units", "0 is outside 1..1000");
    qat_error err;
    char *text;
    ck_assert_int_eq(qat_graph_plan(graph, 1, QAT_PLAN_EVAL, &err), QAT_ERR_ARGUMENT);
    ck_assert_int_eq(qat_graph_write(graph, &text, &err), QAT_ERR_ARGUMENT);
    ck_assert_ptr_null(text);
}
END_TEST

static const struct {
    const char *attrs;
    const char *words[3];
} bad_attrs[] = {
    {"", {"'units' must be given", "fc", "linear"}},
    {"gain=1", {"'units' must be given"}},
    {"units=1001", {"units", "1001 is outside 1..1000"}},
    {"units=2.5", {"units", "2.5 is not a whole number"}},
    {"units=two", {"units", "'two' is not a number"}},
    {"units=", {"units", "'' is not a number"}},
    {"units=3 gain=nan", {"gain", "'nan' is not a number"}},
    {"units=3 gain=inf", {"gain", "'inf' is not a number"}},
    {"units=3 gain=1e999", {"gain", "'1e999' is not a number"}},
    {"units=3 units=3", {"'units' is given twice"}},
    {"units=3 unit=3", {"no attribute 'unit'", "units, gain, mode"}},
    {"units=3 plain", {"'plain' is not name=value"}},
    {"units=3 mode=triple", {"mode", "'triple' is not one of plain|doubled"}},
    {"units=3 mode=", {"mode", "'' is not one of"}},
    {"units=3 mode=plain|doubled", {"mode", "is not one of"}},
    {"units=3 =4", {"no attribute ''"}},
};

START_TEST(bad_attributes_are_named)
{
    qat_node *x = qat_graph_input(graph, "x", QAT_SHAPE(1, 3));
    ck_assert_ptr_null(qat_apply1(graph, "linear", "fc", bad_attrs[_i].attrs, x));
    const char *words[] = {bad_attrs[_i].words[0], bad_attrs[_i].words[1], bad_attrs[_i].words[2],
                           NULL};
    assert_error(QAT_ERR_ARGUMENT, words);
}
END_TEST

START_TEST(values_already_parsed_are_checked_too)
{
    qat_node *x = qat_graph_input(graph, "x", QAT_SHAPE(1, 3));
    double const values[QAT_MAX_ATTRS] = {4, 1, 2};
    qat_apply_values(graph, qat_registry_find(registry, "linear"), "fc", values, 1, &x);
    ASSERT_ERROR(QAT_ERR_ARGUMENT, "fc", "mode", "2 is not a choice of plain|doubled");
}
END_TEST

/* Each builds one illegal thing beside the legal nodes x [1,3] and v [1,3,1]. */
typedef struct bad_build {
    void (*build)(qat_node *x, qat_node *v);
    qat_status status;
    const char *words[3];
} bad_build;

static void unknown_op(qat_node *x, qat_node *v)
{
    qat_apply1(graph, "convolve", "c", "", x);
}

static void bad_name(qat_node *x, qat_node *v)
{
    qat_apply1(graph, "square", "two words", "", x);
}

static void empty_name(qat_node *x, qat_node *v)
{
    qat_graph_input(graph, "", QAT_SHAPE(1));
}

static void long_name(qat_node *x, qat_node *v)
{
    char name[QAT_NAME_MAX + 1];
    memset(name, 'n', QAT_NAME_MAX);
    name[QAT_NAME_MAX] = 0;
    qat_graph_input(graph, name, QAT_SHAPE(1));
}

static void long_param_name(qat_node *x, qat_node *v)
{
    char name[QAT_NAME_MAX];
    memset(name, 'n', QAT_NAME_MAX - 1);
    name[QAT_NAME_MAX - 1] = 0;
    qat_apply1(graph, "linear", name, "units=1", x);
}

static void same_name(qat_node *x, qat_node *v)
{
    qat_apply1(graph, "square", "x", "", x);
}

static void null_input(qat_node *x, qat_node *v)
{
    qat_apply2(graph, "plus", "sum", "", x, NULL);
}

static void too_few_inputs(qat_node *x, qat_node *v)
{
    qat_apply1(graph, "plus", "sum", "", x);
}

static void too_many_inputs(qat_node *x, qat_node *v)
{
    qat_apply2(graph, "square", "sq", "", x, x);
}

static void no_inputs(qat_node *x, qat_node *v)
{
    qat_apply(graph, "join", "j", "", 0, NULL);
}

static void too_few_params(qat_node *x, qat_node *v)
{
    qat_apply2(graph, "linear", "fc", "units=2", x, x);
}

static void wrong_param_shape(qat_node *x, qat_node *v)
{
    qat_node *inputs[] = {x, v, v};
    qat_apply(graph, "linear", "fc", "units=2", 3, inputs);
}

static void shapes_differ(qat_node *x, qat_node *v)
{
    qat_apply2(graph, "plus", "sum", "", x, v);
}

static void params_say_no(qat_node *x, qat_node *v)
{
    qat_apply1(graph, "linear", "fc", "units=2", v);
}

static void zero_dimension(qat_node *x, qat_node *v)
{
    qat_graph_input(graph, "z", QAT_SHAPE(1, 0, 3));
}

static void too_large(qat_node *x, qat_node *v)
{
    qat_graph_input(graph, "big", QAT_SHAPE(1, 46341, 46341));
}

static void rank_five(qat_node *x, qat_node *v)
{
    qat_graph_input(graph, "five", QAT_SHAPE(1, 1, 1, 1, 1));
}

static void no_fan(qat_node *x, qat_node *v)
{
    qat_param_def const def = {.name = "p", .shape = QAT_SHAPE(2), .init = QAT_INIT_HE};
    qat_graph_param(graph, &def);
}

static void no_fans(qat_node *x, qat_node *v)
{
    qat_param_def const def = {.name = "p", .shape = QAT_SHAPE(2), .init = QAT_INIT_GLOROT};
    qat_graph_param(graph, &def);
}

static void infinite_constant(qat_node *x, qat_node *v)
{
    qat_param_def const def = {.name = "p", .shape = QAT_SHAPE(2), .scale = HUGE_VAL};
    qat_graph_param(graph, &def);
}

static void null_output(qat_node *x, qat_node *v)
{
    qat_graph_output(graph, NULL);
}

static void gradient_of_an_op(qat_node *x, qat_node *v)
{
    qat_graph_want_gradient(graph, qat_apply1(graph, "square", "sq", "", x));
}

static const bad_build bad_builds[] = {
    {unknown_op, QAT_ERR_ARGUMENT, {"'c'", "no op is named 'convolve'"}},
    {bad_name, QAT_ERR_ARGUMENT, {"'two words'", "only letters"}},
    {empty_name, QAT_ERR_ARGUMENT, {"no name"}},
    {long_name, QAT_ERR_ARGUMENT, {"nnnn", "longer than 95"}},
    {long_param_name, QAT_ERR_ARGUMENT, {"nnnn", "longer than 95"}},
    {same_name, QAT_ERR_ARGUMENT, {"two nodes named 'x'"}},
    {null_input, QAT_ERR_ARGUMENT, {"'sum'", "input 1 is NULL"}},
    {too_few_inputs, QAT_ERR_ARGUMENT, {"'sum' (plus)", "takes 2 inputs, got 1"}},
    {too_many_inputs, QAT_ERR_ARGUMENT, {"'sq' (square)", "takes 1 input, got 2"}},
    {no_inputs, QAT_ERR_ARGUMENT, {"'j' (join)", "takes at least 1 input, got 0"}},
    {too_few_params, QAT_ERR_ARGUMENT, {"'fc' (linear)", "1 input and 2 parameters, got 1 and 1"}},
    {wrong_param_shape,
     QAT_ERR_SHAPE,
     {"'fc' (linear)", "'weights' needs shape [2, 3]", "'v' of [1, 3, 1]"}},
    {shapes_differ, QAT_ERR_SHAPE, {"'sum' (plus)", "[1, 3] and [1, 3, 1]"}},
    {params_say_no, QAT_ERR_SHAPE, {"'fc' (linear)", "rank 3, needs 2"}},
    {zero_dimension, QAT_ERR_SHAPE, {"'z'", "[1, 0, 3]", "below 1"}},
    {too_large, QAT_ERR_SHAPE, {"'big'", "[1, 46341, 46341]", "more than 2147483647"}},
    {rank_five, QAT_ERR_SHAPE, {"'five'", "rank 5"}},
    {no_fan, QAT_ERR_ARGUMENT, {"'p'", "fan_in 0"}},
    {no_fans, QAT_ERR_ARGUMENT, {"'p'", "fan_in 0 and fan_out 0"}},
    {infinite_constant, QAT_ERR_NUMERIC, {"'p'", "inf"}},
    {null_output, QAT_ERR_ARGUMENT, {"output 0 is NULL"}},
    {gradient_of_an_op, QAT_ERR_ARGUMENT, {"'sq'", "not an input"}},
};

START_TEST(bad_builds_are_explained)
{
    bad_build const *bad = &bad_builds[_i];
    qat_node *x = qat_graph_input(graph, "x", QAT_SHAPE(1, 3));
    qat_node *v = qat_graph_input(graph, "v", QAT_SHAPE(1, 3, 1));
    bad->build(x, v);
    const char *words[] = {bad->words[0], bad->words[1], bad->words[2], NULL};
    assert_error(bad->status, words);
}
END_TEST

START_TEST(nodes_of_another_graph_are_refused)
{
    qat_graph *other;
    ck_assert_int_eq(qat_graph_create(&other, registry, NULL), QAT_OK);
    qat_node *foreign = qat_graph_input(other, "x", QAT_SHAPE(1, 3));
    ck_assert_ptr_null(qat_apply1(graph, "square", "sq", "", foreign));
    ASSERT_ERROR(QAT_ERR_ARGUMENT, "'sq'", "input 0 is another graph's node");
    qat_graph_free(other);
}
END_TEST

START_TEST(an_annotation_is_a_copy)
{
    char bytes[] = "options";
    ck_assert_ptr_null(qat_graph_annotation(graph));
    ck_assert_int_eq(qat_graph_annotate(graph, bytes, sizeof bytes), QAT_OK);
    bytes[0] = 0;
    ck_assert_str_eq(qat_graph_annotation(graph), "options");
}
END_TEST

START_TEST(many_nodes_are_found_by_name)
{
    char name[32];
    for (int i = 0; i < 3000; i++) {
        snprintf(name, sizeof name, "input%d", i);
        qat_graph_input(graph, name, QAT_SHAPE(1));
    }
    ck_assert_int_eq(qat_graph_check(graph, NULL), QAT_OK);
    for (int i = 0; i < 3000; i++) {
        snprintf(name, sizeof name, "input%d", i);
        ck_assert_int_eq(qat_graph_find(graph, name)->index, i);
    }
}
END_TEST

/* ------------------------------------------------------------------ memory */

/** Everything that allocates, once; the status of the first failure. */
static qat_status build_all(const qat_registry *ops)
{
    qat_graph *g = NULL, *back = NULL;
    qat_optimizer *optimizer = NULL;
    char *text = NULL;
    qat_error err;
    qat_status st = qat_graph_create(&g, ops, &err);
    if (!st) {
        qat_node *x = qat_graph_input(g, "x", QAT_SHAPE(1, 3));
        qat_node *y = qat_apply1(g, "linear", "fc", "units=4", x);
        for (int i = 0; i < 70; i++) { /* more nodes than the lists' first size */
            char name[16];
            snprintf(name, sizeof name, "sq%d", i);
            y = qat_apply1(g, "square", name, "", y);
        }
        qat_graph_output(g, y);
        qat_apply1(g, "total", "loss", "", y);
        st = qat_graph_annotate(g, "options", 8);
        st = st ? st : qat_graph_check(g, &err);
    }
    st = st ? st : qat_graph_write(g, &text, &err);
    st = st ? st : qat_graph_read(&back, ops, text, "text", &err);
    st = st ? st : qat_graph_plan(g, 2, QAT_PLAN_TRAIN, &err);
    if (!st) {
        qat_optimizer_options const options = qat_optimizer_defaults(QAT_OPTIMIZER_ADAM);
        st = qat_optimizer_create(&optimizer, g, &options, &err);
    }
    qat_optimizer_free(optimizer);
    qat_graph_free(back);
    qat_graph_free(g);
    free(text);
    return st;
}

START_TEST(every_failed_allocation_is_reported)
{
    bool failed;
    long n = 0;
    do {
        test_fail_alloc_after(n++);
        qat_status const st = build_all(registry);
        failed = test_fail_alloc_stop();
        ck_assert_msg(st == (failed ? QAT_ERR_NOMEM : QAT_OK), "allocation %ld: %s", n,
                      qat_status_name(st));
    } while (failed);
    ck_assert_int_gt(n, 15);
}
END_TEST

START_TEST(a_registry_without_memory_says_so)
{
    qat_registry *empty;
    static const qat_op op = {.name = "fresh",
                              .min_inputs = 1,
                              .max_inputs = 1,
                              .shape = any_shape,
                              .forward = any_forward};
    test_fail_alloc_after(0);
    qat_status st = qat_registry_create_empty(&empty, NULL);
    ck_assert(test_fail_alloc_stop());
    ck_assert_int_eq(st, QAT_ERR_NOMEM);
    ck_assert_ptr_null(empty);
    ck_assert_int_eq(qat_registry_create_empty(&empty, NULL), QAT_OK);
    test_fail_alloc_after(0);
    st = qat_registry_add(empty, &op, NULL);
    ck_assert(test_fail_alloc_stop());
    ck_assert_int_eq(st, QAT_ERR_NOMEM);
    ck_assert_int_eq(qat_registry_count(empty), 0);
    qat_registry_free(empty);
    qat_registry_free(NULL);
    qat_graph_free(NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("graph");
    TCase *tc = tcase_create("graph");
    tcase_add_checked_fixture(tc, toy_graph_setup, toy_graph_teardown);
    tcase_add_test(tc, shapes_are_counted_compared_and_printed);
    tcase_add_test(tc, registry_refuses_ops_it_could_not_run);
    tcase_add_test(tc, a_network_is_built_with_its_parameters);
    tcase_add_test(tc, parameters_may_be_given_and_shared);
    tcase_add_test(tc, the_first_error_is_kept);
    tcase_add_loop_test(tc, bad_attributes_are_named, 0,
                        (int)(sizeof bad_attrs / sizeof *bad_attrs));
    tcase_add_test(tc, values_already_parsed_are_checked_too);
    tcase_add_loop_test(tc, bad_builds_are_explained, 0,
                        (int)(sizeof bad_builds / sizeof *bad_builds));
    tcase_add_test(tc, nodes_of_another_graph_are_refused);
    tcase_add_test(tc, an_annotation_is_a_copy);
    tcase_add_test(tc, many_nodes_are_found_by_name);
    tcase_add_test(tc, every_failed_allocation_is_reported);
    tcase_add_test(tc, a_registry_without_memory_says_so);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
