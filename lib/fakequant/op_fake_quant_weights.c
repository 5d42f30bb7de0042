/**
 * fake_quant_weights: fake quantization of weights before their use. In every step the range is the
 * min and max of its input: of the whole tensor, widened to hold 0 (layout uint8), or +-max|w| of
 * each output channel (layout int8). per_tensor and symmetric select +-max|w| of the whole tensor.
 * The lowest code is never used.
 */
#include "autograd/loops/vector.h"
#include "base/parallel.h"
#include "fakequant/ops.h"
#include "fakequant/quantizer.h"
#include "fakequant/range.h"
#include "fakequant/weights.h"

#include <math.h>
#include <string.h>

qat_weight_view qat_weight_view_of(const qat_node *node)
{
    const qat_shape *shape = &node->inputs[0]->shape;
    int const axis = (int)node->attrs[FQW_AXIS];
    bool const int8 = (int)node->attrs[FQW_LAYOUT] == QAT_LAYOUT_INT8;
    bool const symmetric = int8 || node->attrs[FQW_SYMMETRIC] != 0;
    if (!int8 || node->attrs[FQW_PER_TENSOR] != 0)
        return (qat_weight_view){1, 1, (int)qat_shape_count(shape), false, symmetric};
    qat_weight_view view = {1, shape->dims[axis], 1, true, symmetric};
    for (int i = 0; i < axis; i++)
        view.outer *= shape->dims[i];
    for (int i = axis + 1; i < shape->rank; i++)
        view.inner *= shape->dims[i];
    return view;
}

qat_status qat_weights_shape(qat_node *node, qat_error *err)
{
    node->shape = node->inputs[0]->shape;
    if (node->attrs[FQW_AXIS] >= node->shape.rank)
        return qat_fail(err, QAT_ERR_ARGUMENT, "axis %g of a tensor of rank %d",
                        node->attrs[FQW_AXIS], node->shape.rank);
    return QAT_OK;
}

bool qat_weights_forward(qat_node *node, const qat_run *run, qat_tile_fn *quantize)
{
    bool const is_active = qat_past_delay(run, node->attrs[FQW_DELAY]);
    if (is_active)
        qat_parallel(qat_weight_view_of(node).channels, quantize, node);
    else
        memcpy(node->value, node->inputs[0]->value,
               qat_shape_count(&node->shape) * sizeof *node->value);
    return is_active;
}

static const float *run_at(const qat_weight_view *view, const float *w, int outer, int channel)
{
    return w + qat_weight_run(view, outer, channel);
}

static qat_qparams observed_qparams(const qat_node *node, int channel)
{
    qat_weight_view const view = qat_weight_view_of(node);
    qat_grid grid = {.symmetric = view.symmetric};
    qat_interval all = {INFINITY, -INFINITY};
    for (int i = 0; i < view.outer; i++)
        all = qat_interval_join(
            all,
            qat_interval_of(run_at(&view, node->inputs[0]->value, i, channel), (size_t)view.inner));
    qat_code_range((qat_layout)node->attrs[FQW_LAYOUT], (int)node->attrs[FQW_BITS], true, &grid.lo,
                   &grid.hi);
    all = qat_interval_widen(all);
    return qat_range_qparams(&grid, all.min, all.max);
}

/** Scratch: was it active in the forward of this step, and the parameters of each channel. */
struct fqw_state {
    bool active;
    qat_qparams channel[];
};

const qat_qparams *qat_fake_quant_weights_params(const qat_node *fake_quant_weights, int channel)
{
    const struct fqw_state *state = fake_quant_weights->scratch;
    return &state->channel[channel];
}

static qat_status fqw_shape(qat_node *node, qat_error *err)
{
    qat_status const st = qat_weights_shape(node, err);
    if (st)
        return st;
    node->scratch_bytes =
        sizeof(struct fqw_state) + (size_t)qat_weight_view_of(node).channels * sizeof(qat_qparams);
    return QAT_OK;
}

static void channel_forward(void *context, int channel, int thread)
{
    const qat_node *node = context;
    struct fqw_state *state = node->scratch;
    qat_weight_view const view = qat_weight_view_of(node);
    qat_qparams *p = &state->channel[channel];
    *p = observed_qparams(node, channel);
    for (int i = 0; i < view.outer; i++) {
        const float *w = run_at(&view, node->inputs[0]->value, i, channel);
        float *y = node->value + (w - node->inputs[0]->value);
        if (view.per_channel)
            qat_fake_quant_values_per_channel(p, w, y, (size_t)view.inner);
        else
            qat_fake_quant_values(p, w, y, (size_t)view.inner);
    }
}

static void fqw_forward(qat_node *node, const qat_run *run)
{
    struct fqw_state *state = node->scratch;
    state->active = qat_weights_forward(node, run, channel_forward);
}

static void channel_backward(void *context, int channel, int thread)
{
    const qat_node *node = context, *w = node->inputs[0];
    const struct fqw_state *state = node->scratch;
    qat_weight_view const view = qat_weight_view_of(node);
    for (int i = 0; i < view.outer; i++) {
        size_t const at = (size_t)(run_at(&view, w->value, i, channel) - w->value);
        qat_fake_quant_gradient(&state->channel[channel], w->value + at, node->grad + at,
                                w->grad + at, (size_t)view.inner);
    }
}

static void fqw_backward(qat_node *node, const qat_run *run)
{
    const struct fqw_state *state = node->scratch;
    qat_node *w = node->inputs[0];
    if (!w->grad)
        return;
    if (state->active)
        qat_parallel(qat_weight_view_of(node).channels, channel_backward, node);
    else
        qat_accumulate(w->grad, node->grad, qat_shape_count(&node->shape));
}

const qat_attr_def qat_fake_quant_weights_attrs[] = {
    QAT_WEIGHT_ATTRS,
    [FQW_ATTRS] = {NULL, QAT_ATTR_INT, 0, 0, 0, NULL, NULL},
};

static qat_status fqw_qparams(const qat_node *node, int channel, qat_qparams *p, qat_error *err)
{
    *p = observed_qparams(node, channel);
    return QAT_OK;
}

static const qat_quantizer ema = {.name = "ema", .weights = true, .qparams = fqw_qparams};
static const qat_quant fqw_quant = {.role = QAT_ROLE_QUANTIZER, .quantizer = &ema};

const qat_op qat_op_fake_quant_weights = {
    .name = "fake_quant_weights",
    .meaning = "simulated quantization of weights",
    .min_inputs = 1,
    .max_inputs = 1,
    .attrs = qat_fake_quant_weights_attrs,
    .shape = fqw_shape,
    .forward = fqw_forward,
    .backward = fqw_backward,
    .quant = &fqw_quant,
};
