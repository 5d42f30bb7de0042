/**
 * Graphs as text: written and read again they are equal to the last bit. Every broken line is
 * refused, and the message names line and word.
 */
#include "autograd/graph/core.h"
#include "common/suite.h"
#include "common/toy_graph.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static qat_error err;

static char *written(const qat_graph *g)
{
    char *text;
    ck_assert_msg(!qat_graph_write(g, &text, &err), "%s", err.message);
    return text;
}

/** Everything the format has: shared parameters, op nodes in slots, init rules, odd numbers. */
static void build(void)
{
    qat_param_def const glorot = {.name = "free/standing",
                                  .shape = QAT_SHAPE(2, 3, 4, 5),
                                  .init = QAT_INIT_GLOROT,
                                  .fan_in = 60,
                                  .fan_out = 7,
                                  .decay = true};
    qat_param_def const third = {.name = "third", .shape = QAT_SHAPE(3), .scale = 1.0 / 3};
    qat_node *x = qat_graph_input(graph, "x", QAT_SHAPE(1, 3));
    qat_graph_want_gradient(graph, x);
    qat_graph_param(graph, &glorot);
    qat_graph_param(graph, &third);
    qat_node *a = qat_apply1(graph, "linear", "a", "units=3 gain=0.1 mode=doubled", x);
    qat_node *w = qat_apply1(graph, "square", "w2", "", a->inputs[1]);
    qat_node *given[] = {a, w, a->inputs[2]};
    qat_node *b = qat_apply(graph, "linear", "b", "units=3 gain=-1e-7", 3, given);
    qat_node *three[] = {b, b, a};
    qat_node *j = qat_apply(graph, "join", "j", "", 3, three);
    qat_graph_output(graph, j);
    qat_graph_output(graph, a);
    ck_assert_msg(!qat_graph_check(graph, &err), "%s", err.message);
}

START_TEST(text_is_what_the_document_says)
{
    build();
    char *text = written(graph);
    ck_assert_str_eq(
        text, "qat-graph 1\n"
              "input x [1,3] gradient\n"
              "param free/standing [2,3,4,5] init=glorot scale=0 fan_in=60 fan_out=7 trainable=0 "
              "decay=1\n"
              "param third [3] init=constant scale=0.33333333333333331 fan_in=0 fan_out=0 "
              "trainable=0 decay=0\n"
              "param a/weights [3,3] init=he scale=0 fan_in=3 fan_out=3 trainable=1 decay=1\n"
              "param a/offset [3] init=constant scale=0.125 fan_in=0 fan_out=0 trainable=1 "
              "decay=0\n"
              "op a linear (x) (a/weights,a/offset) units=3 gain=0.10000000000000001 "
              "mode=doubled\n"
              "op w2 square (a/weights) ()\n"
              "op b linear (a) (w2,a/offset) units=3 gain=-9.9999999999999995e-08 mode=plain\n"
              "param j/gain [1] init=constant scale=0.5 fan_in=0 fan_out=0 trainable=1 decay=0\n"
              "op j join (b,b,a) (j/gain)\n"
              "output j\n"
              "output a\n");
    free(text);
}
END_TEST

static void assert_same_node(const qat_node *a, const qat_node *b)
{
    ck_assert_str_eq(a->name, b->name);
    ck_assert_ptr_eq(a->op, b->op);
    ck_assert(qat_shape_equal(&a->shape, &b->shape));
    ck_assert_int_eq(a->n_inputs, b->n_inputs);
    ck_assert_int_eq(a->n_data, b->n_data);
    for (int k = 0; k < a->n_inputs; k++)
        ck_assert_int_eq(a->inputs[k]->index, b->inputs[k]->index);
    ck_assert_mem_eq(a->attrs, b->attrs, sizeof a->attrs);
    ck_assert_int_eq(a->is_param, b->is_param);
    ck_assert_int_eq(a->trainable, b->trainable);
    ck_assert_int_eq(a->decay, b->decay);
    if (a->is_param) {
        ck_assert_str_eq(a->init.name, b->init.name);
        ck_assert(a->init.scale == b->init.scale && a->init.init == b->init.init);
        ck_assert(a->init.fan_in == b->init.fan_in && a->init.fan_out == b->init.fan_out);
    }
}

/** Read from its text, or copied; planned or not. */
START_TEST(a_graph_survives_its_text)
{
    qat_graph *back;
    build();
    /* Planning changes the batch of shapes in memory, but not in the text. */
    if (_i % 2)
        ck_assert_msg(!qat_graph_plan(graph, 8, QAT_PLAN_TRAIN, &err), "%s", err.message);
    char *text = written(graph);
    ck_assert_msg(!(_i / 2 ? qat_graph_clone(&back, graph, &err)
                           : qat_graph_read(&back, registry, text, "text", &err)),
                  "%s", err.message);
    if (_i % 2)
        ck_assert_msg(!qat_graph_plan(back, 8, QAT_PLAN_TRAIN, &err), "%s", err.message);
    ck_assert_int_eq(qat_graph_nodes(back), qat_graph_nodes(graph));
    for (int i = 0; i < qat_graph_nodes(graph); i++)
        assert_same_node(qat_graph_node(graph, i), qat_graph_node(back, i));
    ck_assert_int_eq(qat_graph_outputs(back), 2);
    for (int i = 0; i < 2; i++)
        assert_same_node(qat_graph_output_at(graph, i), qat_graph_output_at(back, i));
    if (_i % 2)
        ck_assert_ptr_nonnull(qat_graph_find(back, "x")->grad);
    char *again = written(back);
    ck_assert_str_eq(text, again);
    free(again);
    free(text);
    qat_graph_free(back);
}
END_TEST

START_TEST(comments_blanks_and_crlf_are_skipped)
{
    qat_graph *back;
    static const char text[] = "qat-graph 1\r\n"
                               "\r\n"
                               "# input y [1]\n"
                               " \t#input z [1]\n"
                               "\t input  x\t[1,3]   \r\n"
                               "op s square (x) ()\t\r\n"
                               "output s"; /* no newline at the end */
    ck_assert_msg(!qat_graph_read(&back, registry, text, "text", &err), "%s", err.message);
    ck_assert_int_eq(qat_graph_nodes(back), 2);
    ck_assert_int_eq(qat_graph_outputs(back), 1);
    qat_graph_free(back);
}
END_TEST

/* Behind "qat-graph 1", "input x [1,3]" and "param p [3] ...": line 4. */
static const struct {
    const char *line, *words;
} bad_lines[] = {
    {"tensor y [1]", "t:4: 'tensor' is not input, param, op or output"},
    {"input", "t:4: '' is not a shape"},
    {"input y", "t:4: '' is not a shape"},
    {"input y 3", "t:4: '3' is not a shape"},
    {"input y []", "t:4: '[]' is not a shape"},
    {"input y [", "t:4: '[' is not a shape"},
    {"input y [1,]", "t:4: '[1,]' is not a shape"},
    {"input y [1, 3]", "t:4: '[1,' is not a shape"},
    {"input y [1,2,3,4,5]", "t:4: '[1,2,3,4,5]' is not a shape"},
    {"input y [0]", "t:4: '[0]' is not a shape"},
    {"input y [1.5]", "t:4: '[1.5]' is not a shape"},
    {"input y [99999999999]", "t:4: '[99999999999]' is not a shape"},
    {"input y [2147483647,2]", "t:4: input 'y': shape [2147483647, 2] has more than"},
    {"input y [1] wanted", "t:4: 'wanted' instead of 'gradient' or the end"},
    {"input y [1] gradient now", "t:4: 'now' is more than"},
    {"input x [1]", "t:4: there are two nodes named 'x'"},
    {"input y,z [1]", "t:4: node name 'y,z'"},
    {"param q [3]", "t:4: '' instead of init=..."},
    {"param q [3] scale=1", "t:4: 'scale=1' instead of init=..."},
    {"param q [3] init=zero scale=0 fan_in=0 fan_out=0 trainable=1 decay=0",
     "t:4: init: 'zero' is not constant, he or glorot"},
    {"param q [3] init=constant scale=nan fan_in=0 fan_out=0 trainable=1 decay=0",
     "t:4: scale: 'nan' is not a number"},
    {"param q [3] init=constant scale=0 fan_in=-1 fan_out=0 trainable=1 decay=0",
     "t:4: fan_in: '-1' is not a whole number"},
    {"param q [3] init=constant scale=0 fan_in=0 fan_out=1.5 trainable=1 decay=0",
     "t:4: fan_out: '1.5' is not a whole number"},
    {"param q [3] init=constant scale=0 fan_in=0 fan_out=0 trainable=2 decay=0",
     "t:4: trainable: '2' is not a whole number 0..1"},
    {"param q [3] init=constant scale=0 fan_in=0 fan_out=0 trainable=1 decay=yes",
     "t:4: decay: 'yes' is not a whole number 0..1"},
    {"param q [3] init=constant scale=0 fan_in=0 fan_out=0 trainable=1 decay=0 more",
     "t:4: 'more' is more than"},
    {"param q [3] init=he scale=0 fan_in=0 fan_out=0 trainable=1 decay=0",
     "t:4: parameter 'q': fan_in 0 is below 1"},
    {"op", "t:4: no op is named ''"},
    {"op y cube (x) ()", "t:4: no op is named 'cube'"},
    {"op y square", "t:4: '' is not a list of nodes"},
    {"op y square x ()", "t:4: 'x' is not a list of nodes"},
    {"op y square (x", "t:4: '(x' is not a list of nodes"},
    {"op y square (x)", "t:4: '' is not a list of nodes"},
    {"op y square (z) ()", "t:4: no node 'z' above"},
    {"op y square (y) ()", "t:4: no node 'y' above"},
    {"op y plus (x,) ()", "t:4: no node '' above"},
    {"op y plus (,) ()", "t:4: no node '' above"},
    {"op y square () ()", "t:4: node 'y' (square): takes 1 input, got 0"},
    {"op y square (x,x) ()", "t:4: node 'y' (square): takes 1 input, got 2"},
    {"op y square (x) (p)", "t:4: node 'y' (square): takes 1 input and 0 parameters, got 1 and 1"},
    {"op y square (x) () size=3", "t:4: node 'y' (square): no attribute 'size'"},
    {"op y linear (x) () units=3", "t:4: node 'y' (linear): 2 parameters must be listed"},
    {"op y linear (x) (p,p) units=3", "t:4: node 'y' (linear): parameter 'weights' needs shape"},
    {"op y linear (x) (p,p)", "t:4: node 'y' (linear): attribute 'units' must be given"},
    {"op y linear (x) (p,p) units", "t:4: node 'y' (linear): 'units' is not name=value"},
    {"op y linear (x) (p,p) units=3 mode=3", "t:4: node 'y' (linear): attribute 'mode': '3'"},
    {"op y plus (x,p) ()", "t:4: node 'y' (plus): inputs of shape [1, 3] and [3]"},
    {"op x square (x) ()", "t:4: there are two nodes named 'x'"},
    {"output", "t:4: no node '' above"},
    {"output y", "t:4: no node 'y' above"},
    {"output x y", "t:4: 'y' is more than"},
};

START_TEST(a_broken_line_is_named)
{
    char text[512];
    snprintf(text, sizeof text,
             "qat-graph 1\ninput x [1,3]\nparam p [3] init=constant scale=0 fan_in=0 fan_out=0 "
             "trainable=1 decay=0\n%s\noutput x\n",
             bad_lines[_i].line);
    qat_graph *back = graph;
    ck_assert_int_eq(qat_graph_read(&back, registry, text, "t", &err), QAT_ERR_FORMAT);
    ck_assert_ptr_null(back);
    ck_assert_msg(strncmp(err.message, bad_lines[_i].words, strlen(bad_lines[_i].words)) == 0,
                  "%s\nfor: %s", err.message, bad_lines[_i].words);
}
END_TEST

START_TEST(another_format_is_refused)
{
    static const char *const texts[] = {"", "\n", "qat-graph 2\n", "qat-graph 10\n",
                                        "input x [1]\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        qat_graph *back;
        ck_assert_int_eq(qat_graph_read(&back, registry, texts[i], "t", &err), QAT_ERR_FORMAT);
        ck_assert_msg(strstr(err.message, "t:1: ") &&
                          strstr(err.message, "instead of 'qat-graph 1'"),
                      "%s", err.message);
    }
}
END_TEST

START_TEST(too_many_nodes_are_refused)
{
    enum { LINE = 100, LINES = CORE_MAX_NODES + 1 };
    size_t const most = (size_t)LINE * (LINES + 1);
    char *text = malloc(most);
    ck_assert_ptr_nonnull(text);
    size_t at = (size_t)snprintf(text, most, "qat-graph 1\n");
    for (int i = 0; i < LINES; i++)
        at += (size_t)snprintf(text + at, most - at,
                               "param p%d [1] init=constant scale=0 fan_in=0 fan_out=0 trainable=0 "
                               "decay=0\n",
                               i);
    qat_graph *back = graph;
    ck_assert_int_eq(qat_graph_read(&back, registry, text, "t", &err), QAT_ERR_FORMAT);
    ck_assert_str_eq(err.message, "t:32770: a graph has more than 32768 nodes");
    free(text);
}
END_TEST

START_TEST(every_cut_and_every_changed_byte_is_survived)
{
    build();
    char *text = written(graph);
    size_t const length = strlen(text);
    for (size_t at = 0; at < length; at++) {
        qat_graph *back;
        char const kept = text[at];
        static const char changes[] = {0, '\n', '(', ',', '9', '-', '#', (char)0xff};
        for (size_t k = 0; k < sizeof changes; k++) {
            text[at] = changes[k];
            qat_status const st = qat_graph_read(&back, registry, text, "t", &err);
            ck_assert(st == QAT_OK || st == QAT_ERR_FORMAT);
            ck_assert((back != NULL) == (st == QAT_OK));
            qat_graph_free(back);
        }
        text[at] = kept;
    }
    free(text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("text");
    TCase *tc = tcase_create("text");
    tcase_add_checked_fixture(tc, toy_graph_setup, toy_graph_teardown);
    tcase_add_test(tc, text_is_what_the_document_says);
    tcase_add_loop_test(tc, a_graph_survives_its_text, 0, 4);
    tcase_add_test(tc, comments_blanks_and_crlf_are_skipped);
    tcase_add_loop_test(tc, a_broken_line_is_named, 0, (int)(sizeof bad_lines / sizeof *bad_lines));
    tcase_add_test(tc, another_format_is_refused);
    tcase_add_test(tc, too_many_nodes_are_refused);
    tcase_add_test(tc, every_cut_and_every_changed_byte_is_survived);
    tcase_set_timeout(tc, 60);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
