/**
 * dropout: in train mode each value is kept with probability 1 - rate and divided by 1 - rate;
 * otherwise it becomes 0. In eval mode nothing happens. The random numbers are a function of (seed,
 * step, node name, shard) and the position of the value, so backward draws the same ones again.
 */
#include "autograd/graph/shared.h"
#include "autograd/loops/tiles.h"
#include "autograd/ops/op.h"
#include "base/rng.h"

struct drop {
    const qat_node *node;
    uint64_t seed, stream;
    double rate;
    bool backward;
};

static void drop_tile(void *context, int tile, int thread)
{
    const struct drop *d = context;
    const qat_node *node = d->node;
    qat_span const span = qat_tile_span(qat_shape_count(&node->shape), QAT_TILE_VALUES, tile);
    qat_rng rng = qat_rng_at(d->seed, d->stream, (uint64_t)tile);
    qat_real const kept = (qat_real)(1 / (1 - d->rate));
    const qat_real *from = d->backward ? node->grad : node->inputs[0]->value;
    for (size_t i = span.begin; i < span.end; i++) {
        bool const keep = d->rate == 0 || qat_rng_uniform(&rng) >= d->rate;
        if (d->backward)
            node->inputs[0]->grad[i] += keep ? from[i] * kept : 0;
        else
            node->value[i] = keep ? from[i] * kept : 0;
    }
}

static void run_drop(const qat_node *node, const qat_run *run, bool backward)
{
    struct drop d = {.node = node, .seed = run->seed, .backward = backward};
    d.stream = qat_hash(qat_hash_name(node->name), (uint64_t)run->step);
    if (qat_shard_of(node) >= 0)
        d.stream = qat_hash(d.stream, (uint64_t)qat_shard_of(node));
    d.rate = run->mode == QAT_MODE_TRAIN ? qat_attr(node, "rate") : 0; /* 0 keeps every value */
    qat_parallel(qat_tiles_of(qat_shape_count(&node->shape), QAT_TILE_VALUES), drop_tile, &d);
}

static qat_status dropout_shape(qat_node *node, qat_error *err)
{
    node->shape = node->inputs[0]->shape;
    return QAT_OK;
}

static void dropout_forward(qat_node *node, const qat_run *run)
{
    run_drop(node, run, false);
}

static void dropout_backward(qat_node *node, const qat_run *run)
{
    if (node->inputs[0]->grad)
        run_drop(node, run, true);
}

static const qat_attr_def dropout_attrs[] = {
    {"rate", QAT_ATTR_REAL, 0.5, 0, 0.999, NULL, "share of the values set to 0 in training"},
    {NULL, QAT_ATTR_INT, 0, 0, 0, NULL, NULL},
};

const qat_op qat_op_dropout = {
    .name = "dropout",
    .meaning = "in training, sets random values to 0 and scales the others up",
    .min_inputs = 1,
    .max_inputs = 1,
    .attrs = dropout_attrs,
    .shape = dropout_shape,
    .forward = dropout_forward,
    .backward = dropout_backward,
    .quant = QAT_QUANT(dropout),
};
