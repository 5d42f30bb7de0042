/** Quantizes weights to the ranges of the least squared error. */
#include "budget/override.h"

#include "fakequant/ops.h"
#include "fakequant/range.h"
#include "fakequant/weights.h"
#include "qat/ptq.h"
#include "qat/quantizer.h"

#include <stdlib.h>

struct budget_override {
    bool found, all_codes;
    qat_qparams *channels;
    qat_histogram histogram;
};

qat_status budget_override_make(budget_override **override, const qat_node *quantizer,
                                bool all_codes, qat_error *err)
{
    budget_override *o = calloc(1, sizeof *o);
    if (o)
        o->all_codes = all_codes;
    if (o)
        o->channels = calloc((size_t)qat_weight_view_of(quantizer).channels, sizeof *o->channels);
    *override = o;
    if (o && o->channels)
        return QAT_OK;
    budget_override_free(o);
    *override = NULL;
    return qat_out_of_memory(err, "budget");
}

bool budget_override_has_all_codes(const budget_override *override)
{
    return override->all_codes;
}

void budget_override_free(budget_override *override)
{
    if (override)
        free(override->channels);
    free(override);
}

/** The parameters of a channel, for the range that the estimator finds. */
static qat_qparams choose(budget_override *o, const qat_node *node, const qat_weight_view *view,
                          int channel)
{
    const float *x = node->inputs[0]->value;
    qat_interval all = qat_interval_of(NULL, 0), range;
    qat_grid grid = {.symmetric = view->symmetric};
    qat_code_grid codes = {.symmetric = view->symmetric};
    for (int i = 0; i < view->outer; i++)
        all = qat_interval_join(
            all, qat_interval_of(x + qat_weight_run(view, i, channel), (size_t)view->inner));
    qat_histogram_begin(&o->histogram, all.min, all.max);
    for (int i = 0; i < view->outer; i++)
        qat_histogram_add(&o->histogram, x + qat_weight_run(view, i, channel), (size_t)view->inner);
    qat_weight_code_range((qat_layout)node->attrs[FQW_LAYOUT], (int)node->attrs[FQW_BITS],
                          o->all_codes, &grid.lo, &grid.hi);
    int32_t const middle = codes.symmetric ? (grid.lo + grid.hi + 1) / 2 : 0;
    codes.lo = grid.lo - middle;
    codes.hi = grid.hi - middle;
    qat_estimator_find("mse")->estimate(&o->histogram, &codes, 0, &range.min, &range.max);
    range = qat_interval_widen(range);
    return qat_range_qparams(&grid, range.min, range.max);
}

void budget_override_apply(budget_override *override, qat_node *node)
{
    qat_weight_view const view = qat_weight_view_of(node);
    for (int channel = 0; channel < view.channels; channel++) {
        qat_qparams *p = &override->channels[channel];
        if (!override->found)
            *p = choose(override, node, &view, channel);
        for (int i = 0; i < view.outer; i++) {
            size_t const at = qat_weight_run(&view, i, channel);
            const float *x = node->inputs[0]->value + at;
            if (view.per_channel)
                qat_fake_quant_values_per_channel(p, x, node->value + at, (size_t)view.inner);
            else
                qat_fake_quant_values(p, x, node->value + at, (size_t)view.inner);
        }
    }
    override->found = true;
}
