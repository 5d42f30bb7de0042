/** Packing of lifetimes, plans, batches, and what they refuse. */
#include "autograd/graph/pack.h"
#include "common/fail_alloc.h"
#include "common/suite.h"
#include "common/toy_graph.h"

#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static qat_error err;
static qat_run const run = {.mode = QAT_MODE_TRAIN};

static unsigned next(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* ------------------------------------------------------------------ packing */

static bool lives_at(const pack_buffer *b, int t)
{
    return b->start <= t && t <= b->end && (!b->resume || t <= b->pause || t >= b->resume);
}

static bool overlap(const pack_buffer *a, const pack_buffer *b, int moments)
{
    bool in_time = false;
    for (int t = 0; t < moments; t++)
        in_time = in_time || (lives_at(a, t) && lives_at(b, t));
    bool const in_space = a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
    return in_time && in_space;
}

START_TEST(buffers_that_live_together_do_not_overlap)
{
    enum { N = 60, MOMENTS = 40 };
    pack_buffer buffers[N];
    unsigned state = (unsigned)_i;
    size_t total, at_once = 0;
    for (int i = 0; i < N; i++) {
        int const start = (int)(next(&state) % MOMENTS);
        buffers[i] = (pack_buffer){.bytes = 1 + next(&state) % 5000,
                                   .start = start,
                                   .end = start + (int)(next(&state) % (unsigned)(MOMENTS - start)),
                                   .owner = i};
        if (next(&state) % 2 && buffers[i].end > start) {
            unsigned const length = (unsigned)(buffers[i].end - start);
            buffers[i].pause = start + (int)(next(&state) % length);
            buffers[i].resume = buffers[i].pause + 1;
            buffers[i].resume +=
                (int)(next(&state) % (unsigned)(buffers[i].end - buffers[i].pause));
        }
    }
    ck_assert(qat_pack_buffers(buffers, N, &total));
    for (int i = 0; i < N; i++) {
        ck_assert_uint_eq(buffers[i].offset % PACK_ALIGN, 0);
        ck_assert_uint_le(buffers[i].offset + buffers[i].bytes, total);
        for (int k = 0; k < i; k++)
            ck_assert(!overlap(&buffers[i], &buffers[k], MOMENTS));
    }
    for (int t = 0; t < MOMENTS; t++) {
        size_t live = 0;
        for (int i = 0; i < N; i++)
            live += lives_at(&buffers[i], t) ? buffers[i].bytes : 0;
        at_once = live > at_once ? live : at_once;
    }
    ck_assert_uint_ge(total, at_once);
    ck_assert_uint_le(total, 2 * at_once); /* reuse happens */
}
END_TEST

START_TEST(sizes_beyond_the_address_space_are_refused)
{
    size_t total;
    pack_buffer one[] = {{.bytes = SIZE_MAX}};
    ck_assert(!qat_pack_buffers(one, 1, &total));
    ck_assert_uint_eq(total, SIZE_MAX);
    pack_buffer sum[] = {{.bytes = SIZE_MAX / 4}, {.bytes = SIZE_MAX / 4}, {.bytes = 1}};
    ck_assert(!qat_pack_buffers(sum, 3, &total));
    ck_assert(qat_pack_buffers(NULL, 0, &total));
    ck_assert_uint_eq(total, 0);
}
END_TEST

/* ------------------------------------------------------------------ plans */

/** x -> linear -> n squares -> total */
static qat_node *chain(int n)
{
    char name[32];
    qat_node *x = qat_graph_input(graph, "x", QAT_SHAPE(1, 3));
    qat_node *y = qat_apply1(graph, "linear", "fc", "units=64", x);
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "square%d", i);
        y = qat_apply1(graph, "square", name, "", y);
    }
    return qat_apply1(graph, "total", "loss", "", y);
}

static size_t bytes_of(int squares, qat_plan plan)
{
    qat_graph_free(graph);
    ck_assert_int_eq(qat_graph_create(&graph, registry, NULL), QAT_OK);
    chain(squares);
    ck_assert_uint_eq(qat_graph_arena_bytes(graph), 0);
    ck_assert_msg(!qat_graph_plan(graph, 16, plan, &err), "%s", err.message);
    return qat_graph_arena_bytes(graph);
}

START_TEST(memory_is_shared_by_lifetime)
{
    size_t const layer = 16 * 64 * sizeof(qat_real);
    ck_assert_uint_eq(bytes_of(40, QAT_PLAN_EVAL), bytes_of(10, QAT_PLAN_EVAL));
    ck_assert_uint_eq(bytes_of(40, QAT_PLAN_KEEP), bytes_of(10, QAT_PLAN_KEEP) + 30 * layer);
    /*
     * The memory for values, and for what backward needs of forward, grows with the depth. That for
     * the gradients of a chain does not.
     */
    ck_assert_uint_eq(bytes_of(40, QAT_PLAN_TRAIN), bytes_of(10, QAT_PLAN_TRAIN) + 60 * layer);
}
END_TEST

START_TEST(everything_is_aligned_and_gradients_exist_where_needed)
{
    qat_node *x = qat_graph_input(graph, "x", QAT_SHAPE(1, 3));
    qat_node *y = qat_graph_input(graph, "y", QAT_SHAPE(1, 3));
    qat_node *free_side = qat_apply1(graph, "square", "free", "", x);
    qat_node *fc = qat_apply1(graph, "linear", "fc", "units=3", free_side);
    qat_node *stop = qat_apply1(graph, "stop", "stop", "", fc);
    qat_node *c = qat_apply1(graph, "centre", "c", "", y);
    qat_node *sum = qat_apply2(graph, "plus", "sum", "", stop, c);
    qat_graph_want_gradient(graph, y);
    ck_assert_msg(!qat_graph_plan(graph, 5, QAT_PLAN_TRAIN, &err), "%s", err.message);
    ck_assert_ptr_null(x->grad);
    ck_assert_ptr_null(free_side->grad);
    ck_assert_ptr_null(stop->grad); /* not differentiable */
    ck_assert_ptr_null(qat_graph_find(graph, "c/mean")->grad);
    ck_assert(y->grad && fc->grad && c->grad && sum->grad && fc->inputs[1]->grad);
    ck_assert(c->scratch && !fc->scratch);
    ck_assert_int_eq(sum->shape.dims[0], 5);
    for (int i = 0; i < qat_graph_nodes(graph); i++) {
        const qat_node *node = qat_graph_node(graph, i);
        ck_assert_uint_eq((uintptr_t)node->value % 64, 0);
        ck_assert_uint_eq((uintptr_t)node->grad % 64, 0);
        ck_assert_uint_eq((uintptr_t)node->scratch % 64, 0);
    }
}
END_TEST

/** A random graph: every node reads any nodes above it. Without n_ops' last one, stop, all of it is
 *  differentiable. Returns the loss. */
static qat_node *random_graph(unsigned state, int n, unsigned n_ops)
{
    static const char *const ops[] = {"square", "plus", "centre", "linear", "join", "stop"};
    qat_node *nodes[64], *loss;
    char name[32];
    nodes[0] = qat_graph_input(graph, "x", QAT_SHAPE(1, 4));
    nodes[1] = qat_apply1(graph, "linear", "first", "units=4 gain=0.5", nodes[0]);
    for (int i = 2; i < n; i++) {
        const char *op = ops[next(&state) % n_ops];
        qat_node *a = nodes[next(&state) % (unsigned)i], *b = nodes[next(&state) % (unsigned)i];
        qat_node *three[] = {a, b, nodes[next(&state) % (unsigned)i]};
        snprintf(name, sizeof name, "n%d", i);
        if (strcmp(op, "plus") == 0)
            nodes[i] = qat_apply2(graph, op, name, "", a, b);
        else if (strcmp(op, "join") == 0)
            nodes[i] = qat_apply(graph, op, name, "", 3, three);
        else
            nodes[i] = qat_apply1(graph, op, name, *op == 'l' ? "units=4 gain=0.5" : "", a);
        if (next(&state) % 4 == 0)
            qat_graph_output(graph, nodes[i]);
    }
    loss = qat_apply1(graph, "total", "loss", "", nodes[n - 1]);
    return qat_apply2(graph, "plus", "both", "", loss,
                      qat_apply1(graph, "total", "other", "", nodes[n - 2]));
}

START_TEST(plans_give_the_same_values)
{
    enum { N = 30 };
    qat_graph *graphs[3];
    qat_graph_free(graph); /* the fixture's; three others are made here */
    for (int p = 0; p < 3; p++) {
        ck_assert_int_eq(qat_graph_create(&graph, registry, NULL), QAT_OK);
        random_graph((unsigned)_i, N, 6);
        ck_assert_msg(!qat_graph_plan(graph, 3, (qat_plan)p, &err), "%s", err.message);
        qat_graph_init_params(graph, 7);
        for (int repeat = 0; repeat < 2; repeat++) {
            toy_fill(qat_graph_find(graph, "x"), 1);
            qat_graph_forward(graph, &run);
        }
        if (p == QAT_PLAN_TRAIN)
            qat_graph_backward(graph, qat_graph_find(graph, "both"), &run);
        graphs[p] = graph;
    }
    ck_assert_int_gt(qat_graph_outputs(graphs[0]), 0);
    for (int i = 0; i < qat_graph_nodes(graph); i++) {
        const qat_node *eval = qat_graph_node(graphs[QAT_PLAN_EVAL], i);
        const qat_node *keep = qat_graph_node(graphs[QAT_PLAN_KEEP], i);
        const qat_node *train = qat_graph_node(graphs[QAT_PLAN_TRAIN], i);
        size_t const bytes = qat_shape_count(&keep->shape) * sizeof(qat_real);
        bool kept = eval->is_param || qat_node_consumers(eval) == 0;
        for (int k = 0; k < qat_graph_outputs(graphs[0]); k++)
            kept = kept || qat_graph_output_at(graphs[0], k) == eval;
        ck_assert_mem_eq(keep->value, train->value, bytes);
        if (kept)
            ck_assert_mem_eq(keep->value, eval->value, bytes);
    }
    ck_assert_uint_lt(qat_graph_arena_bytes(graphs[0]), qat_graph_arena_bytes(graphs[1]));
    for (int p = 0; p < 3; p++)
        qat_graph_free(graphs[p]);
    graph = NULL;
}
END_TEST

START_TEST(random_graphs_have_the_gradient_of_their_values)
{
    qat_gradcheck_result result;
    qat_node *loss = random_graph((unsigned)_i, 14, 5);
    ck_assert_msg(!qat_graph_plan(graph, 2, QAT_PLAN_TRAIN, &err), "%s", err.message);
    qat_graph_init_params(graph, 7);
    toy_fill(qat_graph_find(graph, "x"), 1);
    bool const twice = sizeof(qat_real) == sizeof(double);
    double const h = twice ? 1e-5 : 3e-3, bound = twice ? 1e-6 : 0.1;
    ck_assert_msg(!qat_gradcheck(graph, loss, &run, h, 100, &result, &err), "%s", err.message);
    ck_assert_msg(result.max_error < bound, "%g at %s", result.max_error, result.worst);
}
END_TEST

START_TEST(what_update_needs_outlives_the_run)
{
    char name[32];
    qat_node *at = qat_graph_input(graph, "x", QAT_SHAPE(1, 3));
    for (int i = 0; i < 5; i++) {
        snprintf(name, sizeof name, "centre%d", i);
        at = qat_apply1(graph, "centre", name, "", at);
        snprintf(name, sizeof name, "square%d", i);
        at = qat_apply1(graph, "square", name, "", at);
    }
    ck_assert_msg(!qat_graph_plan(graph, 2, (qat_plan)_i, &err), "%s", err.message);
    qat_graph_init_params(graph, 7);
    qat_node *x = qat_graph_find(graph, "x");
    for (int i = 0; i < 6; i++)
        x->value[i] = 2;
    qat_graph_forward(graph, &run);
    qat_graph_update(graph, &run);
    double mean = 2; /* of 2, 4, 16, 256, 65536 */
    for (int i = 0; i < 5; i++, mean *= mean) {
        snprintf(name, sizeof name, "centre%d/mean", i);
        ck_assert_double_eq_tol((double)qat_graph_find(graph, name)->value[0], mean, 1e-6 * mean);
    }
}
END_TEST

START_TEST(a_step_allocates_nothing)
{
    qat_optimizer *optimizer;
    qat_optimizer_options const options = qat_optimizer_defaults(QAT_OPTIMIZER_ADAM);
    qat_node *loss = random_graph(3, 30, 6);
    ck_assert_msg(!qat_graph_plan(graph, 3, QAT_PLAN_TRAIN, &err), "%s", err.message);
    ck_assert_int_eq(qat_optimizer_create(&optimizer, graph, &options, &err), QAT_OK);
    test_fail_alloc_after(0);
    qat_graph_init_params(graph, 7);
    toy_fill(qat_graph_find(graph, "x"), 1);
    qat_graph_forward(graph, &run);
    qat_graph_backward(graph, loss, &run);
    qat_optimizer_step(optimizer, 0.1);
    qat_graph_update(graph, &run);
    qat_graph_find_nonfinite(graph);
    qat_status const st = qat_graph_set_batch(graph, 1, NULL);
    bool const allocated = test_fail_alloc_stop();
    ck_assert(!allocated);
    ck_assert_int_eq(st, QAT_OK);
    qat_optimizer_free(optimizer);
}
END_TEST

/* ------------------------------------------------------------------ batches */

START_TEST(a_smaller_batch_is_a_part_of_a_larger_one)
{
    qat_real whole[2];
    qat_node *loss = chain(1), *x = qat_graph_find(graph, "x");
    ck_assert_int_eq(qat_graph_set_batch(graph, 1, &err), QAT_ERR_STATE);
    ck_assert_msg(!qat_graph_plan(graph, 2, QAT_PLAN_TRAIN, &err), "%s", err.message);
    qat_graph_init_params(graph, 7);
    toy_fill(x, 1);
    qat_graph_forward(graph, &run);
    qat_graph_backward(graph, loss, &run);
    whole[0] = loss->value[0];
    whole[1] = qat_graph_find(graph, "fc/weights")->grad[5];

    double sum = 0, grad = 0;
    for (int half = 0; half < 2; half++) {
        ck_assert_int_eq(qat_graph_set_batch(graph, 2, &err), QAT_OK);
        toy_fill(x, 1);
        memmove(x->value, x->value + 3 * half, 3 * sizeof *x->value);
        ck_assert_int_eq(qat_graph_set_batch(graph, 1, &err), QAT_OK);
        ck_assert_int_eq(x->shape.dims[0], 1);
        ck_assert_int_eq(qat_graph_find(graph, "square0")->shape.dims[0], 1);
        qat_graph_forward(graph, &run);
        qat_graph_backward(graph, loss, &run);
        sum += (double)loss->value[0];
        grad += (double)qat_graph_find(graph, "fc/weights")->grad[5];
    }
    ck_assert_double_eq_tol(sum, (double)whole[0], 1e-4 * (double)whole[0]);
    ck_assert_double_eq_tol(grad, (double)whole[1], 1e-4);
}
END_TEST

START_TEST(batches_outside_the_plan_are_refused)
{
    chain(1);
    ck_assert_int_eq(qat_graph_plan(graph, 0, QAT_PLAN_EVAL, &err), QAT_ERR_ARGUMENT);
    ck_assert_msg(!qat_graph_plan(graph, 4, QAT_PLAN_EVAL, &err), "%s", err.message);
    ck_assert_int_eq(qat_graph_set_batch(graph, 0, &err), QAT_ERR_ARGUMENT);
    ck_assert_int_eq(qat_graph_set_batch(graph, 5, &err), QAT_ERR_ARGUMENT);
    ck_assert_str_eq(err.message, "batch 5 is outside 1..4");
    ck_assert_int_eq(qat_graph_plan(graph, 4, QAT_PLAN_EVAL, &err), QAT_ERR_STATE);
    ck_assert(strstr(err.message, "already planned"));
}
END_TEST

START_TEST(an_op_that_needs_more_for_less_is_refused)
{
    qat_node *x = qat_graph_input(graph, "x", QAT_SHAPE(1, 3));
    qat_node *h = qat_apply1(graph, "hoarder", "h", "", x);
    ck_assert_msg(!qat_graph_plan(graph, 4, QAT_PLAN_EVAL, &err), "%s", err.message);
    ck_assert_int_eq(qat_graph_set_batch(graph, 2, &err), QAT_ERR_STATE);
    ck_assert_msg(strstr(err.message, "'h' (hoarder)") && strstr(err.message, "500 bytes") &&
                      strstr(err.message, "250"),
                  "%s", err.message);
    ck_assert_int_eq(h->shape.dims[0], 4); /* as before */
    ck_assert_int_eq(x->shape.dims[0], 4);
}
END_TEST

START_TEST(parameters_must_not_depend_on_the_batch)
{
    qat_node *x = qat_graph_input(graph, "x", QAT_SHAPE(1, 3));
    qat_apply1(graph, "batch_bound", "b", "", x);
    ck_assert_int_eq(qat_graph_plan(graph, 2, QAT_PLAN_EVAL, &err), QAT_ERR_SHAPE);
    ck_assert_msg(strstr(err.message, "'b' (batch_bound)") &&
                      strstr(err.message, "needs shape [2]"),
                  "%s", err.message);
}
END_TEST

START_TEST(impossible_sizes_are_named)
{
    qat_node *x = qat_graph_input(graph, "x", QAT_SHAPE(1, 30000));
    qat_apply1(graph, "square", "sq", "", x);
    ck_assert_int_eq(qat_graph_plan(graph, 100000, QAT_PLAN_KEEP, &err), QAT_ERR_SHAPE);
    ck_assert_msg(strstr(err.message, "input 'x'") && strstr(err.message, "[100000, 30000]"), "%s",
                  err.message);
    test_fail_alloc_after(2); /* the lists of planning succeed, the arena does not */
    qat_status const st = qat_graph_plan(graph, 10, QAT_PLAN_KEEP, &err);
    ck_assert(test_fail_alloc_stop());
    ck_assert_int_eq(st, QAT_ERR_NOMEM);
    char message[128];
    snprintf(message, sizeof message, "a graph of %zu bytes for a batch of 10: out of memory",
             3 * 10 * 30000 * sizeof(qat_real));
    ck_assert_str_eq(err.message, message);
    ck_assert_int_eq(qat_graph_plan(graph, 10, QAT_PLAN_KEEP, &err), QAT_OK);
}
END_TEST

START_TEST(a_planned_graph_does_not_grow)
{
    qat_node *loss = chain(1);
    ck_assert_msg(!qat_graph_plan(graph, 4, QAT_PLAN_EVAL, &err), "%s", err.message);
    ck_assert_ptr_null(qat_apply1(graph, "square", "late", "", loss));
    ck_assert_int_eq(qat_graph_check(graph, &err), QAT_ERR_STATE);
    ck_assert(strstr(err.message, "'late'"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan");
    TCase *tc = tcase_create("plan");
    tcase_add_checked_fixture(tc, toy_graph_setup, toy_graph_teardown);
    tcase_add_loop_test(tc, buffers_that_live_together_do_not_overlap, 0, 20);
    tcase_add_test(tc, sizes_beyond_the_address_space_are_refused);
    tcase_add_test(tc, memory_is_shared_by_lifetime);
    tcase_add_test(tc, everything_is_aligned_and_gradients_exist_where_needed);
    tcase_add_loop_test(tc, plans_give_the_same_values, 0, 20);
    tcase_add_loop_test(tc, random_graphs_have_the_gradient_of_their_values, 0, 60);
    tcase_add_loop_test(tc, what_update_needs_outlives_the_run, 0, 3);
    tcase_add_test(tc, a_step_allocates_nothing);
    tcase_add_test(tc, a_smaller_batch_is_a_part_of_a_larger_one);
    tcase_add_test(tc, batches_outside_the_plan_are_refused);
    tcase_add_test(tc, an_op_that_needs_more_for_less_is_refused);
    tcase_add_test(tc, parameters_must_not_depend_on_the_batch);
    tcase_add_test(tc, impossible_sizes_are_named);
    tcase_add_test(tc, a_planned_graph_does_not_grow);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
