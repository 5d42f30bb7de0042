/**
 * Clamps weights to an estimated range. fake_quant_weights takes the min and max of the values it
 * reads, so clamping the parameter itself is enough for a narrower range:
 *
 *     w = min(max(w, low), high)        per tensor, or per output channel in layout int8
 */
#include "fakequant/ops.h"
#include "fakequant/range.h"
#include "fakequant/weights.h"
#include "qat/ptq.h"

#include <stdlib.h>

typedef struct clip {
    const qat_estimator *estimator;
    double parameter;
    qat_histogram *histogram; /* working memory */
} clip;

/** One run of consecutive values of a channel. */
static float *run_at(const qat_node *node, const qat_weight_view *v, int outer, int channel)
{
    return node->inputs[0]->value + qat_weight_run(v, outer, channel);
}

static void count_channel(const clip *c, const qat_node *node, const qat_weight_view *v,
                          int channel)
{
    qat_interval all = qat_interval_of(NULL, 0);
    for (int i = 0; i < v->outer; i++)
        all =
            qat_interval_join(all, qat_interval_of(run_at(node, v, i, channel), (size_t)v->inner));
    qat_histogram_begin(c->histogram, all.min, all.max);
    for (int i = 0; i < v->outer; i++)
        qat_histogram_add(c->histogram, run_at(node, v, i, channel), (size_t)v->inner);
}

static void clip_channel(const clip *c, const qat_node *node, const qat_weight_view *v, int channel)
{
    qat_code_grid grid = {.symmetric = v->symmetric};
    float low, high;
    qat_code_range((qat_layout)node->attrs[FQW_LAYOUT], (int)node->attrs[FQW_BITS], true, &grid.lo,
                   &grid.hi);
    if (grid.symmetric) { /* layout uint8 too has its zero point in the middle then */
        int32_t const middle = (grid.lo + grid.hi) / 2;
        grid.lo -= middle;
        grid.hi -= middle;
    }
    count_channel(c, node, v, channel);
    c->estimator->estimate(c->histogram, &grid, c->parameter, &low, &high);
    for (int i = 0; i < v->outer; i++) {
        float *w = run_at(node, v, i, channel);
        for (int k = 0; k < v->inner; k++)
            w[k] = w[k] < low ? low : w[k] > high ? high : w[k];
    }
}

qat_status qat_clip_weights(qat_graph *eval, const qat_estimator *estimator, double parameter,
                            qat_error *err)
{
    clip c = {estimator, parameter, NULL};
    if (!estimator->for_weights)
        return QAT_OK;
    c.histogram = malloc(sizeof *c.histogram);
    if (!c.histogram)
        return qat_out_of_memory(err, "weights' ranges");
    for (int i = 0; i < qat_graph_nodes(eval); i++) {
        const qat_node *node = qat_graph_node(eval, i);
        if (node->op != &qat_op_fake_quant_weights || !node->inputs[0]->is_param)
            continue;
        qat_weight_view const v = qat_weight_view_of(node);
        for (int channel = 0; channel < v.channels; channel++)
            clip_channel(&c, node, &v, channel);
    }
    free(c.histogram);
    return QAT_OK;
}
