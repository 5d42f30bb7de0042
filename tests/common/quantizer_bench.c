#include "common/quantizer_bench.h"
#include "base/rng.h"

#include <check.h>
#include <string.h>

qat_registry *registry;
qat_graph *g;
qat_error err;

void bench_setup(void)
{
    ck_assert_int_eq(qat_registry_create(&registry, &err), QAT_OK);
    ck_assert_int_eq(qat_graph_create(&g, registry, &err), QAT_OK);
}

void bench_teardown(void)
{
    qat_graph_free(g);
    qat_registry_free(registry);
}

qat_run bench_train_at(int64_t step)
{
    return (qat_run){.mode = QAT_MODE_TRAIN, .step = step, .seed = 1};
}

struct bench bench_build(const char *op, const char *attrs, bool weights, qat_shape shape)
{
    struct bench b;
    qat_param_def const def = {.name = "x", .shape = shape, .trainable = true};
    b.x = weights ? qat_graph_param(g, &def) : qat_graph_input(g, "x", shape);
    if (!weights)
        qat_graph_want_gradient(g, b.x);
    b.q = qat_apply1(g, op, "q", attrs, b.x);
    qat_apply1(g, "l2_loss", "loss", "", b.q); /* so that there are gradients */
    ck_assert_msg(qat_graph_plan(g, shape.dims[0], QAT_PLAN_TRAIN_KEEP, &err) == QAT_OK, "%s",
                  err.message);
    qat_graph_init_params(g, 3);
    return b;
}

size_t bench_count(const struct bench *b)
{
    return qat_shape_count(&b->q->shape);
}

void bench_fill(const struct bench *b, uint64_t seed, double lo, double hi)
{
    qat_rng rng = qat_rng_at(seed, 1, 2);
    for (size_t i = 0; i < bench_count(b); i++)
        b->x->value[i] = (float)(lo + (hi - lo) * qat_rng_uniform(&rng));
}

void bench_backward(const struct bench *b, const float *upstream, const qat_run *run)
{
    qat_node *learned = qat_node_learned(b->q);
    memset(b->x->grad, 0, bench_count(b) * sizeof(float));
    if (learned)
        memset(learned->grad, 0, qat_shape_count(&learned->shape) * sizeof(float));
    memcpy(b->q->grad, upstream, bench_count(b) * sizeof(float));
    b->q->op->backward(b->q, run);
}

void bench_observe(const struct bench *b)
{
    qat_run const run = bench_train_at(0);
    qat_graph_forward(g, &run);
    qat_graph_update(g, &run);
}

float *bench_learned(const struct bench *b)
{
    return qat_node_learned(b->q)->value;
}

const float *bench_learned_grad(const struct bench *b)
{
    return qat_node_learned(b->q)->grad;
}

void bench_random(float *up, size_t n, uint64_t seed)
{
    qat_rng rng = qat_rng_at(seed, 9, 9);
    for (size_t i = 0; i < n; i++)
        up[i] = (float)(2 * qat_rng_uniform(&rng) - 1);
}
