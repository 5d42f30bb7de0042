/**
 * The quantization parameters of one channel of a quantizer node. They depend on its grid and
 *
 *     seen       its row of the parameter `range`; or of weights, what their values are now
 *     learned    its row of the parameter `learned`; or what learning would start from
 *
 *     p = choose(grid, seen, learned)
 */
#include "fakequant/ops.h"
#include "fakequant/quantizer_op.h"
#include "fakequant/range.h"

#include <string.h>

qat_grid qat_grid_of(const qat_node *node)
{
    qat_layout const layout = (qat_layout)node->attrs[QZ_LAYOUT];
    bool const weights = qz_is_weights(node);
    const qat_shape *shape = &node->inputs[0]->shape;
    size_t const parts = (size_t)(weights ? qat_weight_view_of(node).channels : shape->dims[0]);
    qat_grid grid = {.bits = (int)node->attrs[QZ_BITS],
                     .weights = weights,
                     .symmetric = weights && qat_weight_view_of(node).symmetric,
                     .power_of_two = node->attrs[QZ_POWER_OF_TWO] != 0,
                     .count = qat_shape_count(shape) / parts};
    if (weights)
        qat_weight_code_range(layout, grid.bits, qat_node_quantizer(node)->all_codes, &grid.lo,
                              &grid.hi);
    else
        qat_code_range(layout, grid.bits, false, &grid.lo, &grid.hi);
    return grid;
}

int qat_learned_values(const qat_quantizer *quantizer, const qat_grid *grid)
{
    return grid->symmetric ? quantizer->learned_symmetric : quantizer->learned_asymmetric;
}

int qz_learned_values(const qat_node *node)
{
    qat_grid const grid = qat_grid_of(node);
    return qat_learned_values(qat_node_quantizer(node), &grid);
}

qat_statistics qz_widened(qat_statistics s)
{
    qat_interval const wide = qat_interval_widen((qat_interval){s.min, s.max});
    return (qat_statistics){wide.min, wide.max, s.mean_abs};
}

qat_statistics qz_seen_in_range(const qat_node *node, int channel)
{
    const float *range = qz_range_of(node, channel);
    return (qat_statistics){range[QZ_MIN], range[QZ_MAX], range[QZ_MEAN_ABS]};
}

qat_statistics qz_seen_in_weights(const qat_node *node, int channel)
{
    double kept[QAT_OBSERVER_KEPT_MAX] = {0};
    const qat_observer *o = qz_observer_of(node);
    qat_weight_view const view = qat_weight_view_of(node);
    o->clear(kept);
    for (int i = 0; i < view.outer; i++)
        o->observe(node->inputs[0]->value + qat_weight_run(&view, i, channel), (size_t)view.inner,
                   kept);
    return qz_widened(o->conclude(kept));
}

qz_channel qz_channel_from(const qat_node *node, qat_statistics seen, const float *learned)
{
    const qat_quantizer *q = qat_node_quantizer(node);
    qat_grid const grid = qat_grid_of(node);
    int const n = qat_learned_values(q, &grid);
    qz_channel c = {.seen = seen};
    if (n > 0 && learned)
        memcpy(c.learned, learned, (size_t)n * sizeof *learned);
    else if (n > 0)
        q->start(&grid, &seen, c.learned);
    c.p = q->choose ? q->choose(&grid, &seen, n > 0 ? c.learned : NULL)
                    : qat_range_qparams(&grid, seen.min, seen.max);
    c.p.tie = qz_is_weights(node) ? 0 : qat_tie_of(node, (int)node->attrs[QZ_BITS]);
    return c;
}

static const float *learned_of(const qat_node *node, int channel)
{
    int const n = qz_learned_values(node);
    return n > 0 ? node->inputs[QZ_LEARNED]->value + (size_t)channel * (size_t)n : NULL;
}

qz_channel qz_committed(const qat_node *node, int channel)
{
    return qz_channel_from(node, qz_seen_in_range(node, channel), learned_of(node, channel));
}

qz_channel qz_weight_channel(const qat_node *node, int channel, bool learned)
{
    return learned && qz_has_range(node, channel)
               ? qz_committed(node, channel)
               : qz_channel_from(node, qz_seen_in_weights(node, channel), NULL);
}

qat_qparams qat_weight_qparams(const qat_node *node, int channel)
{
    const qat_quantizer *q = qat_node_quantizer(node);
    qat_qparams p = {0};
    if (!q->qparams)
        return qz_weight_channel(node, channel, qz_learned_values(node) > 0).p;
    q->qparams(node, channel, &p, NULL);
    return p;
}

static qat_status activation_qparams(const qat_node *node, qat_qparams *p, qat_error *err)
{
    if (!node->inputs[QZ_RANGE]->value)
        return qat_fail(err, QAT_ERR_STATE, "'%s': the graph is not planned", node->name);
    if (!qz_was_observed(node))
        return qat_fail(err, QAT_ERR_STATE, "'%s' was never observed: calibrate on a batch first",
                        node->name);
    *p = qz_committed(node, 0).p;
    return QAT_OK;
}

qat_status qat_node_qparams(const qat_node *fake_quant, qat_qparams *p, qat_error *err)
{
    const qat_quantizer *q = qat_node_quantizer(fake_quant);
    if (!q || q->weights)
        return qat_fail(err, QAT_ERR_ARGUMENT, "node '%s' is not a fake_quant", fake_quant->name);
    return q->qparams ? q->qparams(fake_quant, 0, p, err) : activation_qparams(fake_quant, p, err);
}
