/**
 * A process that has the parameters, and another one that computes gradients: what the second one
 * observed updates the first one, also when it is late.
 */
#include "autograd/shards/shards.h"
#include "tests/common/suite.h"
#include "tests/unit/shards/shard_network.h"

#include <stdlib.h>
#include <string.h>

/** Both of them. */
struct pair {
    qat_graph *server, *worker;
    qat_shards *of_server, *of_worker;
    qat_optimizer *optimizer;
    double *observed;
};

static qat_shards *plan(qat_graph *g, size_t *n)
{
    qat_shards *s;
    qat_error err;
    qat_run const first = {.mode = QAT_MODE_TRAIN};
    ck_assert(!qat_shards_create(&s, 1, BATCH, NULL, NULL));
    qat_shards_split_batch_norm(s);
    ck_assert_msg(!qat_shards_plan(s, &g, QAT_PLAN_TRAIN, &err), "%s", err.message);
    qat_graph_init_params(g, 3);
    ck_assert(!qat_shards_plan_messages(s, &first, n, NULL));
    return s;
}

static struct pair open_pair(const struct setting *how)
{
    struct pair p = {.server = training_graph(how), .worker = training_graph(how)};
    size_t n, again;
    p.of_server = plan(p.server, &n);
    p.of_worker = plan(p.worker, &again);
    ck_assert_uint_eq(n, again);
    p.observed = calloc(n + 1, sizeof *p.observed);
    p.optimizer = optimizer_of(p.server);
    return p;
}

static void close_pair(struct pair *p)
{
    qat_shards_free(p->of_server);
    qat_shards_free(p->of_worker);
    qat_optimizer_free(p->optimizer);
    qat_graph_free(p->server);
    qat_graph_free(p->worker);
    free(p->observed);
}

/** The worker's gradients of a batch, with the parameters of now. Returns the loss. */
static double compute(struct pair *p, int step)
{
    qat_run const run = {.mode = QAT_MODE_TRAIN, .step = step, .seed = 1};
    qat_node *loss = qat_graph_find(p->worker, QAT_LOSS_NAME);
    qat_graph_copy_params(p->worker, p->server);
    feed(p->worker, step, (qat_samples){0, BATCH});
    qat_shards_forward(p->of_worker, &run);
    double const value = (double)loss->value[0];
    qat_shards_backward(p->of_worker, loss, &run);
    qat_shards_write_observed(p->of_worker, &run, p->observed);
    return value;
}

/** The server's step with them. rate 0: no step of the optimizer. */
static void apply(struct pair *p, int step, double rate)
{
    qat_run const run = {.mode = QAT_MODE_TRAIN, .step = step, .seed = 1};
    qat_shards_forward_params(p->of_server, &run);
    for (int i = 0; i < qat_graph_nodes(p->server); i++) {
        const qat_node *to = qat_graph_node(p->server, i), *from = qat_graph_node(p->worker, i);
        if (to->is_param && to->trainable)
            memcpy(to->grad, from->grad, qat_shape_count(&to->shape) * sizeof *to->grad);
    }
    if (rate > 0)
        qat_optimizer_step(p->optimizer, rate);
    qat_shards_update_remote(p->of_server, &run, p->observed);
}

/** Nothing is late: the bits are those of a process that does both. */
START_TEST(same_as_one_process)
{
    struct setting settings[SETTINGS];
    set_settings(settings);
    for (int k = 0; k < SETTINGS; k++) {
        struct outcome one = {0}, two = {0};
        struct pair p = open_pair(&settings[k]);
        shard_steps(&one, &settings[k], 1, NULL);
        for (int step = 0; step < STEPS; step++) {
            two.loss[step] = compute(&p, step);
            apply(&p, step, step + 1 < STEPS ? 0.01 : 0);
        }
        keep(&two, p.server);
        ck_assert_mem_eq(one.loss, two.loss, sizeof one.loss);
        ck_assert_uint_eq(one.n, two.n);
        ck_assert_msg(!memcmp(one.values, two.values, one.n * sizeof *one.values), "%s",
                      settings[k].name);
        free(one.values);
        free(two.values);
        close_pair(&p);
    }
}
END_TEST

/* ------------------------------------------------------------------ late */

/** The values of all parameters whose name ends so; free() it. */
static float *values_of(const qat_graph *g, const char *end, size_t *n)
{
    float *values = NULL;
    *n = 0;
    for (int i = 0; i < qat_graph_nodes(g); i++) {
        const qat_node *node = qat_graph_node(g, i);
        size_t const count = qat_shape_count(&node->shape), length = strlen(node->name);
        if (!node->is_param || length < strlen(end) ||
            strcmp(node->name + length - strlen(end), end) != 0)
            continue;
        values = realloc(values, (*n + count) * sizeof *values);
        ck_assert_ptr_nonnull(values);
        memcpy(values + *n, node->value, count * sizeof *values);
        *n += count;
    }
    ck_assert_uint_gt(*n, 0);
    return values;
}

/** Do these parameters change when what was seen at step `seen` is applied at step `now`? */
static bool changes(struct pair *p, const char *end, int seen, int now)
{
    size_t n;
    compute(p, seen);
    float *before = values_of(p->server, end, &n);
    apply(p, now, 0);
    float *after = values_of(p->server, end, &n);
    bool const differ = memcmp(before, after, n * sizeof *before) != 0;
    free(before);
    free(after);
    return differ;
}

/** What was observed before ranges are learned does not replace what others have learned since. */
START_TEST(late_ranges)
{
    struct setting settings[SETTINGS];
    set_settings(settings);
    struct setting how = settings[LSQ];
    how.quant.learn_delay = 2;
    struct pair p = open_pair(&how);
    ck_assert(changes(&p, "/range", 0, 0));
    ck_assert(changes(&p, "/range", 1, 1));
    compute(&p, 1);
    apply(&p, 2, 0.01); /* is learned from here on */
    ck_assert(!changes(&p, "/range", 1, 3));
    ck_assert(!changes(&p, "/learned", 1, 3));
    ck_assert(!changes(&p, "/learned", 3, 3));
    close_pair(&p);
}
END_TEST

/** Averages of batch norm stand still once they are frozen. */
START_TEST(late_batch_norm)
{
    struct setting settings[SETTINGS];
    set_settings(settings);
    for (int k = TWO_PASS; k <= ONE_PASS; k++) {
        struct setting how = settings[k];
        how.quant.bn_freeze_delay = 2;
        struct pair p = open_pair(&how);
        ck_assert(changes(&p, "/ema_mean", 0, 0));
        ck_assert(changes(&p, "/ema_mean", 0, 1));
        ck_assert(changes(&p, "/ema_variance", 1, 1));
        ck_assert(!changes(&p, "/ema_mean", 1, 2));
        ck_assert(!changes(&p, "/ema_variance", 1, 2));
        ck_assert(!changes(&p, "/ema_steps", 2, 2));
        close_pair(&p);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("remote");
    TCase *tcase = tcase_create("remote");
    tcase_add_checked_fixture(tcase, open_registry, close_registry);
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, same_as_one_process);
    tcase_add_test(tcase, late_ranges);
    tcase_add_test(tcase, late_batch_norm);
    suite_add_tcase(suite, tcase);
    return test_run_suite(suite);
}
