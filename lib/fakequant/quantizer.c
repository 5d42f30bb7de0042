/**
 * Ops made by QAT_QUANTIZER_OP: simulated quantization with a range from a qat_quantizer.
 *
 *     y = eq. 12 with p = choose(grid, seen, learned)
 *
 * Parameters: `range` [channels, 4] holds the observations (min, max, steps observed, mean |x|);
 * `learned` [channels, n] holds learned values. In training steps before `learn`, observations go
 * into `range`, and `learned` is set to the values from which learning would start. From then on
 * `range` stays, and the optimizer changes `learned`. In eval mode the parameters do not change. If
 * only 0 was observed there is no range to learn: such a channel, or activation, is observed until
 * there is another value.
 *
 * The nodes of an activation may share both parameters; the last one (`commits`) writes them.
 * Weights are observed again in each step, channel by channel; only activations use averages.
 *
 * This file has forward and backward; quantizer_channel.c makes p, quantizer_update.c writes the
 * parameters.
 */
#include "autograd/loops/vector.h"
#include "fakequant/ops.h"
#include "fakequant/quantizer_op.h"
#include "fakequant/range.h"

#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------ parameters, shape */

int qat_quantizer_params(const qat_node *node, qat_param_def *defs, qat_error *err)
{
    if (node->attrs[QZ_AXIS] >= node->inputs[0]->shape.rank) {
        qat_fail(err, QAT_ERR_ARGUMENT, "axis %g of a tensor of rank %d", node->attrs[QZ_AXIS],
                 node->inputs[0]->shape.rank);
        return -1;
    }
    int const channels = qat_quantizer_channels(node), learned = qz_learned_values(node);
    defs[0] = (qat_param_def){.name = "range", .shape = QAT_SHAPE(channels, QZ_RANGE_VALUES)};
    if (learned > 0)
        defs[1] = (qat_param_def){.name = "learned",
                                  .shape = QAT_SHAPE(channels, learned),
                                  .trainable = true,
                                  .decay = qat_node_quantizer(node)->decays};
    return qz_freeze_params(node, defs, learned > 0 ? 2 : 1);
}

qat_status qat_quantizer_shape(qat_node *node, qat_error *err)
{
    node->shape = node->inputs[0]->shape;
    node->scratch_bytes = sizeof(qz_state) +
                          (size_t)qat_quantizer_channels(node) * sizeof(qz_channel) +
                          (size_t)qz_count_pieces(node) * sizeof(qz_piece);
    return QAT_OK;
}

/* ------------------------------------------------------------------ forward */

static qat_span span_of(const qat_node *node, int tile)
{
    return qat_tile_span(qat_shape_count(&node->shape), QAT_TILE_VALUES, tile);
}

static void quantize(const qat_node *node, const qat_qparams *p, size_t at, size_t n)
{
    const qat_quantizer *q = qat_node_quantizer(node);
    const float *x = node->inputs[0]->value + at;
    if (q->forward) {
        qat_grid const grid = qat_grid_of(node);
        q->forward(&grid, p, x, node->value + at, n);
    } else if (qz_is_weights(node) && qat_weight_view_of(node).per_channel) {
        qat_fake_quant_values_per_channel(p, x, node->value + at, n);
    } else {
        qat_fake_quant_values(p, x, node->value + at, n);
    }
}

static void forward_channel(void *context, int channel, int thread)
{
    const qat_node *node = context;
    const qz_state *state = qz_state_of(node);
    qz_channel *c = &qz_channels_of(node)[channel];
    qat_weight_view const view = qat_weight_view_of(node);
    *c = qz_weight_channel(node, channel, state->learning);
    for (int i = 0; i < view.outer; i++) {
        size_t const at = qat_weight_run(&view, i, channel);
        quantize(node, &c->p, at, (size_t)view.inner);
        qz_freeze_values(node, &c->p, at, (size_t)view.inner);
    }
}

static void observe_tile(void *context, int tile, int thread)
{
    const qat_node *node = context;
    qat_span const span = span_of(node, tile);
    double *kept = qz_pieces_of(node)[tile].kept;
    qz_observer_of(node)->clear(kept);
    qz_observer_of(node)->observe(node->inputs[0]->value + span.begin, span.end - span.begin, kept);
}

static void quantize_tile(void *context, int tile, int thread)
{
    const qat_node *node = context;
    qat_span const span = span_of(node, tile);
    quantize(node, &qz_channels_of(node)->p, span.begin, span.end - span.begin);
}

static void observe_batch(qat_node *node)
{
    const qat_observer *o = qz_observer_of(node);
    qat_parallel(qz_count_pieces(node), observe_tile, node);
    o->clear(qz_state_of(node)->batch);
    for (int i = 0; i < qz_count_pieces(node); i++)
        o->join(qz_state_of(node)->batch, qz_pieces_of(node)[i].kept);
}

static void forward_activation(qat_node *node, const qat_run *run)
{
    qz_state *state = qz_state_of(node);
    bool const known = qz_was_observed(node);
    if ((run->mode == QAT_MODE_TRAIN && !state->learning) || (state->active && !known))
        observe_batch(node);
    if (!state->active)
        return;
    *qz_channels_of(node) =
        known
            ? qz_committed(node, 0)
            : qz_channel_from(node, qz_widened(qz_observer_of(node)->conclude(state->batch)), NULL);
    qat_parallel(qz_count_pieces(node), quantize_tile, node);
}

bool qz_learns(const qat_node *node, const qat_run *run)
{
    bool const may = qz_learned_values(node) > 0 && (qz_is_weights(node) || qz_has_range(node, 0));
    return may && qat_past_delay(run, node->attrs[QZ_LEARN]);
}

void qat_quantizer_forward(qat_node *node, const qat_run *run)
{
    qz_state *state = qz_state_of(node);
    state->active = qat_past_delay(run, node->attrs[QZ_DELAY]);
    state->learning = qz_learns(node, run);
    if (!qz_is_weights(node))
        forward_activation(node, run);
    else if (state->active)
        qat_parallel(qz_count_pieces(node), forward_channel, node);
    if (!state->active)
        memcpy(node->value, node->inputs[0]->value,
               qat_shape_count(&node->shape) * sizeof *node->value);
}

/* ------------------------------------------------------------------ integer forward */

bool qat_is_quantizer_op(const qat_op *op)
{
    return op && op->forward == qat_quantizer_forward;
}

const qat_qparams *qat_quantizer_used(const qat_node *node, int channel)
{
    return &qz_channels_of(node)[channel].p;
}

/* ------------------------------------------------------------------ backward */

static const double PI = 3.14159265358979323846;

double qz_half_cosine(const qat_node *node, const qat_run *run)
{
    double const begin = node->attrs[QZ_DELAY], steps = node->attrs[QZ_DAMPENED] - begin;
    double const done = steps > 0 ? fmin(((double)run->step - begin) / steps, 1) : 1;
    return (1 - cos(PI * done)) / 2;
}

/** lambda of this step. */
static double dampening(const qat_node *node, const qat_run *run)
{
    double const most = node->attrs[QZ_DAMPEN];
    return most > 0 && qz_is_weights(node) ? most * qz_half_cosine(node, run) : 0;
}

/** The gradient of lambda (x - y)^2, y a constant, inside the range. frozen: NULL if none is. */
static void dampen(float twice_lambda, const qat_qparams *p, const float *x, const float *y,
                   const float *frozen, size_t n, float *dx)
{
    for (size_t i = 0; i < n; i++)
        if (!frozen || frozen[i] <= 0)
            dx[i] += x[i] >= p->min && x[i] <= p->max ? twice_lambda * (x[i] - y[i]) : 0;
}

static void gradient(const qat_node *node, const qat_qparams *p, size_t at, size_t n,
                     qat_range_sums *sums)
{
    const qat_quantizer *q = qat_node_quantizer(node);
    const qat_node *x = node->inputs[0], *frozen = qz_frozen_of(node);
    float *dx = x->grad ? x->grad + at : NULL;
    qat_grid const grid = qat_grid_of(node);
    qz_freeze_gradient(node, p, at, n, sums);
    bool const plain = !q->backward && qat_learned_values(q, &grid) == 0;
    if (plain && dx)
        qat_fake_quant_gradient(p, x->value + at, node->grad + at, dx, n);
    else if (q->backward)
        q->backward(&grid, p, x->value + at, node->value + at, node->grad + at, n, dx, sums);
    else
        qat_range_gradient(p, q->margin, x->value + at, node->value + at, node->grad + at, n, dx,
                           sums);
    if (dx && qz_state_of(node)->dampening > 0)
        dampen((float)(2 * qz_state_of(node)->dampening), p, x->value + at, node->value + at,
               frozen ? frozen->value + at : NULL, n, dx);
}

static void gradient_piece(void *context, int i, int thread)
{
    const qat_node *node = context;
    qat_range_sums *sums = &qz_pieces_of(node)[i].sums;
    *sums = (qat_range_sums){0};
    if (!qz_is_weights(node)) {
        qat_span const span = span_of(node, i);
        gradient(node, &qz_channels_of(node)->p, span.begin, span.end - span.begin, sums);
        return;
    }
    qat_weight_view const view = qat_weight_view_of(node);
    for (int k = 0; k < view.outer; k++)
        gradient(node, &qz_channels_of(node)[i].p, qat_weight_run(&view, k, i), (size_t)view.inner,
                 sums);
}

/** The sums of a channel: of its piece, or of all tiles. */
static qat_range_sums sums_of(const qat_node *node, int channel)
{
    if (qz_is_weights(node))
        return qz_pieces_of(node)[channel].sums;
    qat_range_sums all = {0};
    for (int i = 0; i < qz_count_pieces(node); i++) {
        all.inside += qz_pieces_of(node)[i].sums.inside;
        all.below += qz_pieces_of(node)[i].sums.below;
        all.above += qz_pieces_of(node)[i].sums.above;
    }
    return all;
}

static void learn(const qat_node *node)
{
    const qat_quantizer *q = qat_node_quantizer(node);
    qat_grid const grid = qat_grid_of(node);
    int const n = qat_learned_values(q, &grid);
    for (int c = 0; c < qat_quantizer_channels(node); c++) {
        if (!qz_has_range(node, c))
            continue;
        const qz_channel *channel = &qz_channels_of(node)[c];
        qat_range_sums const sums = sums_of(node, c);
        double moves[QAT_QUANTIZER_LEARNED_MAX] = {0};
        q->learn(&grid, &channel->seen, &channel->p, channel->learned, &sums, moves);
        for (int k = 0; k < n; k++)
            node->inputs[QZ_LEARNED]->grad[c * n + k] += (float)moves[k];
    }
}

void qat_quantizer_backward(qat_node *node, const qat_run *run)
{
    qz_state *state = qz_state_of(node);
    qat_node *x = node->inputs[0];
    state->dampening = dampening(node, run);
    bool const learns = state->learning && node->inputs[QZ_LEARNED]->grad;
    if (!state->active) {
        if (x->grad)
            qat_accumulate(x->grad, node->grad, qat_shape_count(&node->shape));
        return;
    }
    if (x->grad || learns)
        qat_parallel(qz_count_pieces(node), gradient_piece, node);
    if (learns)
        learn(node);
}

const qat_attr_def qat_quantizer_attrs[] = {
    [QZ_BITS] = {"bits", QAT_ATTR_INT, 8, 2, 8, NULL, "bits of a code"},
    [QZ_LAYOUT] = {"layout", QAT_ATTR_CHOICE, 0, 0, 1, "uint8|int8",
                   "weights: uint8 per tensor, int8 symmetric per output channel"},
    [QZ_AXIS] = {"axis", QAT_ATTR_INT, 0, 0, QAT_MAX_RANK - 1, NULL,
                 "weights: dimension of the output channels"},
    [QZ_DELAY] = {"delay", QAT_ATTR_INT, 0, 0, QAT_NEVER, NULL, "steps before quantization starts"},
    [QZ_PER_TENSOR] = {"per_tensor", QAT_ATTR_INT, 0, 0, 1, NULL,
                       "weights, layout=int8; 1: one scale for all channels"},
    [QZ_SYMMETRIC] = {"symmetric", QAT_ATTR_INT, 0, 0, 1, NULL,
                      "weights, layout=uint8; 1: zero_point in the middle"},
    [QZ_FINAL_BITS] = QAT_FINAL_BITS_ATTR,
    [QZ_LEARN] = {"learn", QAT_ATTR_INT, QAT_NEVER, 0, QAT_NEVER, NULL,
                  "steps before the range starts to learn"},
    [QZ_DECAY] = {"decay", QAT_ATTR_REAL, 0.99, 0, 1, NULL,
                  "decay of the average of the observed range"},
    [QZ_COMMITS] = {"commits", QAT_ATTR_INT, 1, 0, 1, NULL,
                    "1: the last node of those that share a range; it updates the range"},
    [QZ_POWER_OF_TWO] = {"power_of_two", QAT_ATTR_INT, 0, 0, 1, NULL,
                         "1: scales are powers of two"},
    [QZ_DAMPEN] = {"dampen", QAT_ATTR_REAL, 0, 0, 1e6, NULL,
                   "weights: lambda, by which they are drawn to their codes at the end"},
    [QZ_DAMPENED] = {"dampened", QAT_ATTR_INT, 0, 0, QAT_NEVER, NULL,
                     "the step from which on they are drawn with all of it, and of last_threshold"},
    [QZ_FREEZES] = {"freezes", QAT_ATTR_INT, 0, 0, 1, NULL, "weights; 1: they may be frozen"},
    [QZ_FREEZE_SHARE] = {"freeze_share", QAT_ATTR_REAL, 0, 0, 1, NULL,
                         "share of a step in the averages by which they are frozen; 0: none is"},
    [QZ_THRESHOLD] = {"threshold", QAT_ATTR_REAL, 1, 0, 1, NULL,
                      "the frequency of oscillations above which a weight is frozen, at first"},
    [QZ_LAST_THRESHOLD] = {"last_threshold", QAT_ATTR_REAL, 1, 0, 1, NULL, "the same, at the end"},
    [QZ_ATTRS] = {NULL, QAT_ATTR_INT, 0, 0, 0, NULL, NULL},
};
