/**
 * A batch in shards: the tree of sums; gradients against those of the whole batch; the same bits
 * for every number of ranks and threads.
 */
#include "autograd/shards/tree.h"
#include "qat/runtime.h"
#include "tests/common/suite.h"
#include "tests/unit/shards/shard_network.h"
#include "tests/unit/shards/thread_ranks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ the tree */

/** Joins texts: "(a b)". */
static void join_texts(void *context, void *a, const void *b)
{
    char both[256];
    (void)context;
    (void)snprintf(both, sizeof both, "(%s%s)", (char *)a, (const char *)b);
    memcpy(a, both, sizeof both);
}

/** The shape of the tree for so many shards and ranks, each rank joining its own first. */
static const char *tree_text(int shards, int ranks, char text[MOST_SHARDS][256])
{
    qat_shard_tree const tree = {shards, ranks};
    void *slots[MOST_SHARDS];
    for (int i = 0; i < shards; i++) {
        (void)snprintf(text[i], 256, "%d", i);
        slots[i] = text[i];
    }
    for (int rank = 0; rank < ranks; rank++)
        qat_tree_join_own(&tree, rank, slots, join_texts, NULL);
    qat_tree_join_roots(&tree, slots, join_texts, NULL);
    return text[0];
}

START_TEST(tree_is_fixed)
{
    char text[MOST_SHARDS][256], one[256];
    for (int shards = 1; shards <= MOST_SHARDS; shards++) {
        memcpy(one, tree_text(shards, 1, text), sizeof one);
        for (int ranks = 2; ranks <= shards; ranks++)
            ck_assert_str_eq(tree_text(shards, ranks, text), one);
    }
    ck_assert_str_eq(tree_text(6, 2, text), "(((01)(23))(45))");
}
END_TEST

START_TEST(roots_are_the_largest)
{
    int starts[MOST_SHARDS];
    qat_shard_tree const tree = {6, 2};
    ck_assert_int_eq(qat_tree_roots(&tree, 0, starts), 2);
    ck_assert(starts[0] == 0 && starts[1] == 2);
    ck_assert_int_eq(qat_tree_roots(&tree, 1, starts), 2);
    ck_assert(starts[0] == 3 && starts[1] == 4);
    ck_assert_int_eq(qat_tree_roots(&(qat_shard_tree){8, 4}, 3, starts), 1);
    ck_assert_int_eq(starts[0], 6);
}
END_TEST

/* ------------------------------------------------------------------ against the whole batch */

static struct outcome whole_batch(const struct setting *how)
{
    struct outcome o = {0};
    qat_graph *g = training_graph(how);
    qat_node *loss = qat_graph_find(g, QAT_LOSS_NAME);
    ck_assert(!qat_graph_plan(g, BATCH, QAT_PLAN_TRAIN, NULL));
    qat_graph_init_params(g, 3);
    qat_optimizer *optimizer = optimizer_of(g);
    for (int step = 0; step < STEPS; step++) {
        qat_run const run = {.mode = QAT_MODE_TRAIN, .step = step, .seed = 1};
        feed(g, step, (qat_samples){0, BATCH});
        qat_graph_forward(g, &run);
        o.loss[step] = (double)loss->value[0];
        qat_graph_backward(g, loss, &run);
        if (step + 1 < STEPS)
            qat_optimizer_step(optimizer, 0.01);
        qat_graph_update(g, &run);
    }
    keep(&o, g);
    qat_optimizer_free(optimizer);
    qat_graph_free(g);
    return o;
}

START_TEST(near_the_whole_batch)
{
    /* float: the rounding of sums. Quantized: a value near the middle of two codes may take the
       other one. */
    double const bounds[] = {1e-5, 1e-5, 1e-5, 2e-2, 2e-2, 2e-2};
    struct setting settings[SETTINGS];
    set_settings(settings);
    for (int k = 0; k < OF_BATCH; k++) {
        struct outcome whole = whole_batch(&settings[k]);
        for (int shards = 1; shards <= MOST_SHARDS; shards++) {
            struct outcome o = {0};
            shard_steps(&o, &settings[k], shards, NULL);
            double const d = difference(&whole, &o);
            ck_assert_msg(d < bounds[k], "%s, %d shards: %g", settings[k].name, shards, d);
            ck_assert(fabs(o.loss[0] - whole.loss[0]) < 1e-5);
            free(o.values);
        }
        free(whole.values);
    }
}
END_TEST

/* ------------------------------------------------------------------ the same bits */

struct team {
    const struct setting *how;
    int shards;
    struct outcome outcomes[MOST_SHARDS];
};

static void take_part(void *context, const qat_ranks *ranks)
{
    struct team *t = context;
    shard_steps(&t->outcomes[ranks->rank], t->how, t->shards, ranks);
}

START_TEST(same_for_all_ranks)
{
    struct setting settings[SETTINGS];
    set_settings(settings);
    for (int k = 0; k < SETTINGS; k++)
        for (int shards = 3; shards <= MOST_SHARDS; shards += 5) {
            struct outcome one = {0};
            shard_steps(&one, &settings[k], shards, NULL);
            for (int ranks = 2; ranks <= shards; ranks += ranks < 3 ? 1 : 5) {
                struct team t = {.how = &settings[k], .shards = shards};
                thread_ranks_run(ranks, take_part, &t);
                for (int i = 0; i < ranks; i++) {
                    ck_assert_mem_eq(t.outcomes[i].loss, one.loss, sizeof one.loss);
                    ck_assert_uint_eq(t.outcomes[i].n, one.n);
                    ck_assert_msg(
                        !memcmp(t.outcomes[i].values, one.values, one.n * sizeof *one.values),
                        "%s: %d shards, rank %d of %d", settings[k].name, shards, i, ranks);
                    free(t.outcomes[i].values);
                }
            }
            free(one.values);
        }
}
END_TEST

START_TEST(same_for_all_threads)
{
    struct setting settings[SETTINGS];
    set_settings(settings);
    for (int k = 0; k < SETTINGS; k++) {
        struct outcome a = {0}, b = {0};
        qat_set_threads(1);
        shard_steps(&a, &settings[k], 5, NULL);
        qat_set_threads(3);
        shard_steps(&b, &settings[k], 5, NULL);
        ck_assert_mem_eq(a.values, b.values, a.n * sizeof *a.values);
        free(a.values);
        free(b.values);
    }
}
END_TEST

/** A loss and weights at once: which part of the weights' gradient is a shard's? */
START_TEST(refused)
{
    qat_shards *s;
    qat_error err;
    qat_graph *graphs[2] = {build(DECAY), build(DECAY)};
    ck_assert(!qat_shards_create(&s, 2, BATCH, NULL, NULL));
    ck_assert_int_eq(qat_shards_plan(s, graphs, QAT_PLAN_TRAIN, &err), QAT_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.message, "node 'loss' (loss_sum)"));
    for (int i = 0; i < 2; i++) {
        qat_graph_free(graphs[i]);
        graphs[i] = build(KEPT);
    }
    ck_assert_int_eq(qat_shards_plan(s, graphs, QAT_PLAN_TRAIN, &err), QAT_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.message, "node 'kept' (keeper) updates its parameters"));
    qat_graph_free(graphs[0]);
    qat_graph_free(graphs[1]);
    qat_shards_free(s);
}
END_TEST

/** The graphs of all shards count together. */
START_TEST(memory)
{
    qat_shards *s;
    qat_error err;
    qat_graph *alone = build(ENTROPY), *graphs[2] = {build(ENTROPY), build(ENTROPY)};
    ck_assert(!qat_graph_plan(alone, BATCH - BATCH / 2, QAT_PLAN_TRAIN, NULL));
    qat_registry_set_memory(registry, qat_graph_arena_bytes(alone) * 3 / 2);
    ck_assert(!qat_shards_create(&s, 2, BATCH, NULL, NULL));
    ck_assert_int_eq(qat_shards_plan(s, graphs, QAT_PLAN_TRAIN, &err), QAT_ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(err.message, "--max-memory"));
    qat_graph_free(alone);
    qat_graph_free(graphs[0]);
    qat_graph_free(graphs[1]);
    qat_shards_free(s);
}
END_TEST

START_TEST(too_many)
{
    qat_shards *s;
    qat_error err;
    ck_assert_int_eq(qat_shards_create(&s, 9, 8, NULL, &err), QAT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.message, "train.shards = 9"));
    qat_ranks const ranks = {.rank = 0, .count = 4};
    ck_assert_int_eq(qat_shards_create(&s, 3, 8, &ranks, &err), QAT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.message, "4 ranks"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("shards");
    TCase *tcase = tcase_create("shards");
    tcase_add_checked_fixture(tcase, open_registry, close_registry);
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, tree_is_fixed);
    tcase_add_test(tcase, roots_are_the_largest);
    tcase_add_test(tcase, near_the_whole_batch);
    tcase_add_test(tcase, same_for_all_ranks);
    tcase_add_test(tcase, same_for_all_threads);
    tcase_add_test(tcase, refused);
    tcase_add_test(tcase, memory);
    tcase_add_test(tcase, too_many);
    suite_add_tcase(suite, tcase);
    return test_run_suite(suite);
}
