/**
 * The update of quantizer nodes: writes the parameters `range` and `learned` after a training step.
 *
 *     observed    activations: range = commit(range, the batch of all nodes that share it)
 *                 weights:     range = of the current weights
 *                 learned = start(grid, range)
 *     learning    range stands still; learned = limit(what the optimizer made of it)
 *
 * Then weights that oscillate are frozen (quantizer_freeze.c).
 */
#include "autograd/graph/shared.h"
#include "fakequant/ops.h"
#include "fakequant/quantizer_op.h"

#include <string.h>

/** The moving average; the first batch sets it. */
static void average(qat_statistics *running, const qat_statistics *batch, int64_t seen,
                    double decay)
{
    float const keep = seen ? (float)decay : 0, take = 1 - keep;
    running->min = keep * running->min + take * batch->min;
    running->max = keep * running->max + take * batch->max;
    running->mean_abs = keep * running->mean_abs + take * batch->mean_abs;
}

/**
 * The statistics of this batch over all nodes that share node's range; node is the last of them.
 */
static qat_statistics batch_of_class(const qat_node *node)
{
    const qat_observer *o = qz_observer_of(node);
    double all[QAT_OBSERVER_KEPT_MAX];
    o->clear(all);
    for (int i = 0; i <= node->index; i++) {
        const qat_node *other = qat_graph_node(node->graph, i);
        if (other->op == node->op && other->inputs[QZ_RANGE] == node->inputs[QZ_RANGE])
            o->join(all, qz_state_of(other)->batch);
    }
    return qz_widened(o->conclude(all));
}

/**
 * How many batches the average counts. If learning waits for a range, batches of only 0 do not
 * count.
 */
static int64_t batches_seen(const qat_node *node)
{
    bool const waits = qz_learned_values(node) > 0 && !qz_has_range(node, 0);
    return waits ? 0 : (int64_t)qz_range_of(node, 0)[QZ_STEPS];
}

static void commit(const qat_node *node, int channel, qat_statistics batch)
{
    const qat_observer *o = qz_observer_of(node);
    float *range = qz_range_of(node, channel);
    qat_statistics running = qz_seen_in_range(node, channel);
    double const decay = qz_is_weights(node) ? 0 : node->attrs[QZ_DECAY];
    if (qz_is_weights(node))
        running = batch;
    else
        (o->commit ? o->commit : average)(&running, &batch, batches_seen(node), decay);
    range[QZ_MIN] = running.min;
    range[QZ_MAX] = running.max;
    range[QZ_MEAN_ABS] = running.mean_abs;
    range[QZ_STEPS] += 1;
}

/** Set learned to the values from which learning would start now. */
static void restart(const qat_node *node, int channel)
{
    int const n = qz_learned_values(node);
    qz_channel const c = qz_channel_from(node, qz_seen_in_range(node, channel), NULL);
    for (int k = 0; k < n; k++)
        node->inputs[QZ_LEARNED]->value[channel * n + k] = c.learned[k];
}

static void limit(const qat_node *node, int channel)
{
    const qat_quantizer *q = qat_node_quantizer(node);
    qat_grid const grid = qat_grid_of(node);
    qat_statistics const seen = qz_seen_in_range(node, channel);
    if (q->limit)
        q->limit(&grid, &seen,
                 node->inputs[QZ_LEARNED]->value +
                     (size_t)channel * (size_t)qat_learned_values(q, &grid));
}

/* ------------------------------------------------------------------ shards of a batch */

static int observed(const qat_node *node, const qat_run *run, double *kept)
{
    const qat_observer *o = qz_observer_of(node);
    if (run->mode != QAT_MODE_TRAIN || qz_is_weights(node) || qz_learns(node, run))
        return 0;
    if (kept)
        memcpy(kept, qz_state_of(node)->batch, (size_t)o->kept * sizeof *kept);
    return o->kept;
}

static void join(const qat_node *node, double *a, const double *b)
{
    qz_observer_of(node)->join(a, b);
}

static void set_observed(qat_node *node, const double *kept)
{
    memcpy(qz_state_of(node)->batch, kept, (size_t)qz_observer_of(node)->kept * sizeof *kept);
}

const qat_shared qat_quantizer_shared = {
    .observed = observed, .join = join, .set_observed = set_observed};

/* ------------------------------------------------------------------ update */

void qat_quantizer_update(qat_node *node, const qat_run *run)
{
    bool const writes = qz_is_weights(node) || node->attrs[QZ_COMMITS] != 0;
    bool const learns = qz_learns(node, run);
    if (run->mode != QAT_MODE_TRAIN || !writes)
        return;
    for (int c = 0; c < qat_quantizer_channels(node); c++) {
        if (learns && qz_has_range(node, c)) {
            limit(node, c);
            continue;
        }
        commit(node, c, qz_is_weights(node) ? qz_seen_in_weights(node, c) : batch_of_class(node));
        restart(node, c);
    }
    qz_freeze_update(node, run);
}
