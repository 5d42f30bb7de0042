/**
 * Ops made by QAT_QUANTIZER_OP: simulated quantization whose range a qat_quantizer decides.
 *
 *     y = eq. 12 with p = choose(grid, seen, learned)
 *
 * Parameters: `range` [channels, 4], what was seen: min, max, steps observed, mean |x|; `learned`
 * [channels, n]. In training steps before `learn`, what is seen goes into `range`, and `learned` is
 * what learning would start from; from then on `range` stands still and the optimizer moves
 * `learned`. In eval mode the parameters are what they are. Where nothing but 0 was seen there is
 * no range to learn: such a channel, or activation, is observed until there is another value.
 *
 * An activation's nodes may share both parameters; the last one (`commits`) writes them. Weights
 * are seen anew in each step, channel by channel; averages are for activations alone.
 */
#include "fakequant/quantizer.h"
#include "autograd/tiles.h"
#include "autograd/vector.h"
#include "fakequant/ops.h"
#include "fakequant/range.h"

#include <string.h>

/** A channel in this step. */
struct channel {
    qat_qparams p;
    qat_statistics seen;
    float learned[QAT_QUANTIZER_LEARNED_MAX];
};

/** One tile of an activation, or one channel of weights. */
struct piece {
    double kept[QAT_OBSERVER_KEPT_MAX];
    qat_range_sums sums;
};

struct state {
    bool active, learning;
    double batch[QAT_OBSERVER_KEPT_MAX]; /* activations: of a training step */
};

static struct state *state_of(const qat_node *node)
{
    return node->scratch;
}

static struct channel *channels_of(const qat_node *node)
{
    return (struct channel *)(state_of(node) + 1);
}

static struct piece *pieces_of(const qat_node *node)
{
    return (struct piece *)(channels_of(node) + qat_quantizer_channels(node));
}

static bool is_weights(const qat_node *node)
{
    return qat_node_quantizer(node)->weights;
}

static const qat_observer *observer_of(const qat_node *node)
{
    const qat_observer *own = qat_node_quantizer(node)->observer;
    return own ? own : &qat_observer_min_max;
}

static int count_pieces(const qat_node *node)
{
    return is_weights(node) ? qat_quantizer_channels(node)
                            : qat_tiles_of(qat_shape_count(&node->shape), QAT_TILE_VALUES);
}

static float *range_of(const qat_node *node, int channel)
{
    return node->inputs[QZ_RANGE]->value + (size_t)channel * QZ_RANGE_VALUES;
}

static bool was_observed(const qat_node *node)
{
    return range_of(node, 0)[QZ_STEPS] > 0;
}

/** Has it seen another value than 0, so that there is a range to learn? */
static bool has_range(const qat_node *node, int channel)
{
    const float *range = range_of(node, channel);
    return range[QZ_STEPS] > 0 && range[QZ_MIN] < range[QZ_MAX];
}

qat_grid qat_grid_of(const qat_node *node)
{
    qat_layout const layout = (qat_layout)node->attrs[QZ_LAYOUT];
    bool const weights = is_weights(node);
    const qat_shape *shape = &node->inputs[0]->shape;
    size_t const parts = (size_t)(weights ? qat_weight_view_of(node).channels : shape->dims[0]);
    qat_grid grid = {.bits = (int)node->attrs[QZ_BITS],
                     .weights = weights,
                     .symmetric = weights && qat_weight_view_of(node).symmetric,
                     .power_of_two = node->attrs[QZ_POWER_OF_TWO] != 0,
                     .count = qat_shape_count(shape) / parts};
    qat_code_range(layout, grid.bits, weights, &grid.lo, &grid.hi);
    return grid;
}

int qat_learned_values(const qat_quantizer *quantizer, const qat_grid *grid)
{
    return grid->symmetric ? quantizer->learned_symmetric : quantizer->learned_asymmetric;
}

static int learned_values(const qat_node *node)
{
    qat_grid const grid = qat_grid_of(node);
    return qat_learned_values(qat_node_quantizer(node), &grid);
}

/* ------------------------------------------------------------------ parameters, shape */

int qat_quantizer_params(const qat_node *node, qat_param_def *defs, qat_error *err)
{
    if (node->attrs[QZ_AXIS] >= node->inputs[0]->shape.rank) {
        qat_fail(err, QAT_ERR_ARGUMENT, "axis %g of a tensor of rank %d", node->attrs[QZ_AXIS],
                 node->inputs[0]->shape.rank);
        return -1;
    }
    int const channels = qat_quantizer_channels(node), learned = learned_values(node);
    defs[0] = (qat_param_def){.name = "range", .shape = QAT_SHAPE(channels, QZ_RANGE_VALUES)};
    if (learned == 0)
        return 1;
    defs[1] = (qat_param_def){
        .name = "learned", .shape = QAT_SHAPE(channels, learned), .trainable = true};
    return 2;
}

qat_status qat_quantizer_shape(qat_node *node, qat_error *err)
{
    node->shape = node->inputs[0]->shape;
    node->scratch_bytes = sizeof(struct state) +
                          (size_t)qat_quantizer_channels(node) * sizeof(struct channel) +
                          (size_t)count_pieces(node) * sizeof(struct piece);
    return QAT_OK;
}

/* ------------------------------------------------------------------ what a channel's range is */

static qat_statistics widened(qat_statistics s)
{
    qat_interval const wide = qat_interval_widen((qat_interval){s.min, s.max});
    return (qat_statistics){wide.min, wide.max, s.mean_abs};
}

static qat_statistics seen_in_range(const qat_node *node, int channel)
{
    const float *range = range_of(node, channel);
    return (qat_statistics){range[QZ_MIN], range[QZ_MAX], range[QZ_MEAN_ABS]};
}

static qat_statistics seen_in_weights(const qat_node *node, int channel)
{
    double kept[QAT_OBSERVER_KEPT_MAX] = {0};
    const qat_observer *o = observer_of(node);
    qat_weight_view const view = qat_weight_view_of(node);
    o->clear(kept);
    for (int i = 0; i < view.outer; i++)
        o->observe(node->inputs[0]->value + qat_weight_run(&view, i, channel), (size_t)view.inner,
                   kept);
    return widened(o->conclude(kept));
}

/** Parameters of what was seen; learned: from the optimizer, or NULL to start from what was seen.
 */
static struct channel channel_from(const qat_node *node, qat_statistics seen, const float *learned)
{
    const qat_quantizer *q = qat_node_quantizer(node);
    qat_grid const grid = qat_grid_of(node);
    int const n = qat_learned_values(q, &grid);
    struct channel c = {.seen = seen};
    if (n > 0 && learned)
        memcpy(c.learned, learned, (size_t)n * sizeof *learned);
    else if (n > 0)
        q->start(&grid, &seen, c.learned);
    c.p = q->choose ? q->choose(&grid, &seen, n > 0 ? c.learned : NULL)
                    : qat_range_qparams(&grid, seen.min, seen.max);
    return c;
}

static const float *learned_of(const qat_node *node, int channel)
{
    int const n = learned_values(node);
    return n > 0 ? node->inputs[QZ_LEARNED]->value + (size_t)channel * (size_t)n : NULL;
}

/** From the parameters, which must have been written. */
static struct channel committed(const qat_node *node, int channel)
{
    return channel_from(node, seen_in_range(node, channel), learned_of(node, channel));
}

/** Learned weights from the parameters; others, and unlearned ones, from the weights. */
static struct channel weight_channel(const qat_node *node, int channel, bool learned)
{
    return learned && has_range(node, channel)
               ? committed(node, channel)
               : channel_from(node, seen_in_weights(node, channel), NULL);
}

qat_qparams qat_quantizer_weight_qparams(const qat_node *node, int channel)
{
    return weight_channel(node, channel, learned_values(node) > 0).p;
}

static qat_status activation_qparams(const qat_node *node, qat_qparams *p, qat_error *err)
{
    if (!node->inputs[QZ_RANGE]->value)
        return qat_fail(err, QAT_ERR_STATE, "'%s': the graph is not planned", node->name);
    if (!was_observed(node))
        return qat_fail(err, QAT_ERR_STATE, "'%s' was never observed: calibrate on a batch first",
                        node->name);
    *p = committed(node, 0).p;
    return QAT_OK;
}

qat_status qat_node_qparams(const qat_node *fake_quant, qat_qparams *p, qat_error *err)
{
    const qat_quantizer *q = qat_node_quantizer(fake_quant);
    if (!q || q->weights)
        return qat_fail(err, QAT_ERR_ARGUMENT, "node '%s' is no fake_quant", fake_quant->name);
    return q->qparams ? q->qparams(fake_quant, 0, p, err) : activation_qparams(fake_quant, p, err);
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
    } else if (is_weights(node) && qat_weight_view_of(node).per_channel) {
        qat_fake_quant_values_per_channel(p, x, node->value + at, n);
    } else {
        qat_fake_quant_values(p, x, node->value + at, n);
    }
}

static void forward_channel(void *context, int channel, int thread)
{
    const qat_node *node = context;
    const struct state *state = state_of(node);
    struct channel *c = &channels_of(node)[channel];
    qat_weight_view const view = qat_weight_view_of(node);
    *c = weight_channel(node, channel, state->learning);
    for (int i = 0; i < view.outer; i++)
        quantize(node, &c->p, qat_weight_run(&view, i, channel), (size_t)view.inner);
}

static void observe_tile(void *context, int tile, int thread)
{
    const qat_node *node = context;
    qat_span const span = span_of(node, tile);
    double *kept = pieces_of(node)[tile].kept;
    observer_of(node)->clear(kept);
    observer_of(node)->observe(node->inputs[0]->value + span.begin, span.end - span.begin, kept);
}

static void quantize_tile(void *context, int tile, int thread)
{
    const qat_node *node = context;
    qat_span const span = span_of(node, tile);
    quantize(node, &channels_of(node)->p, span.begin, span.end - span.begin);
}

static void observe_batch(qat_node *node)
{
    const qat_observer *o = observer_of(node);
    qat_parallel(count_pieces(node), observe_tile, node);
    o->clear(state_of(node)->batch);
    for (int i = 0; i < count_pieces(node); i++)
        o->join(state_of(node)->batch, pieces_of(node)[i].kept);
}

static void forward_activation(qat_node *node, const qat_run *run)
{
    struct state *state = state_of(node);
    bool const known = was_observed(node);
    if ((run->mode == QAT_MODE_TRAIN && !state->learning) || (state->active && !known))
        observe_batch(node);
    if (!state->active)
        return;
    *channels_of(node) =
        known ? committed(node, 0)
              : channel_from(node, widened(observer_of(node)->conclude(state->batch)), NULL);
    qat_parallel(count_pieces(node), quantize_tile, node);
}

void qat_quantizer_forward(qat_node *node, const qat_run *run)
{
    struct state *state = state_of(node);
    bool const learns = learned_values(node) > 0 && (is_weights(node) || has_range(node, 0));
    state->active = qat_past_delay(run, node->attrs[QZ_DELAY]);
    state->learning = learns && qat_past_delay(run, node->attrs[QZ_LEARN]);
    if (!is_weights(node))
        forward_activation(node, run);
    else if (state->active)
        qat_parallel(count_pieces(node), forward_channel, node);
    if (!state->active)
        memcpy(node->value, node->inputs[0]->value,
               qat_shape_count(&node->shape) * sizeof *node->value);
}

/* ------------------------------------------------------------------ backward */

static void gradient(const qat_node *node, const qat_qparams *p, size_t at, size_t n,
                     qat_range_sums *sums)
{
    const qat_quantizer *q = qat_node_quantizer(node);
    const qat_node *x = node->inputs[0];
    float *dx = x->grad ? x->grad + at : NULL;
    qat_grid const grid = qat_grid_of(node);
    bool const plain = !q->backward && qat_learned_values(q, &grid) == 0;
    if (plain && dx)
        qat_fake_quant_gradient(p, x->value + at, node->grad + at, dx, n);
    else if (q->backward)
        q->backward(&grid, p, x->value + at, node->value + at, node->grad + at, n, dx, sums);
    else
        qat_range_gradient(p, q->margin, x->value + at, node->value + at, node->grad + at, n, dx,
                           sums);
}

static void gradient_piece(void *context, int i, int thread)
{
    const qat_node *node = context;
    qat_range_sums *sums = &pieces_of(node)[i].sums;
    *sums = (qat_range_sums){0};
    if (!is_weights(node)) {
        qat_span const span = span_of(node, i);
        gradient(node, &channels_of(node)->p, span.begin, span.end - span.begin, sums);
        return;
    }
    qat_weight_view const view = qat_weight_view_of(node);
    for (int k = 0; k < view.outer; k++)
        gradient(node, &channels_of(node)[i].p, qat_weight_run(&view, k, i), (size_t)view.inner,
                 sums);
}

/** Sums of a channel: of its piece, or of all tiles. */
static qat_range_sums sums_of(const qat_node *node, int channel)
{
    if (is_weights(node))
        return pieces_of(node)[channel].sums;
    qat_range_sums all = {0};
    for (int i = 0; i < count_pieces(node); i++) {
        all.inside += pieces_of(node)[i].sums.inside;
        all.below += pieces_of(node)[i].sums.below;
        all.above += pieces_of(node)[i].sums.above;
    }
    return all;
}

static void learn(const qat_node *node)
{
    const qat_quantizer *q = qat_node_quantizer(node);
    qat_grid const grid = qat_grid_of(node);
    int const n = qat_learned_values(q, &grid);
    for (int c = 0; c < qat_quantizer_channels(node); c++) {
        if (!has_range(node, c))
            continue;
        const struct channel *channel = &channels_of(node)[c];
        qat_range_sums const sums = sums_of(node, c);
        double moves[QAT_QUANTIZER_LEARNED_MAX] = {0};
        q->learn(&grid, &channel->seen, &channel->p, channel->learned, &sums, moves);
        for (int k = 0; k < n; k++)
            node->inputs[QZ_LEARNED]->grad[c * n + k] += (float)moves[k];
    }
}

void qat_quantizer_backward(qat_node *node, const qat_run *run)
{
    const struct state *state = state_of(node);
    qat_node *x = node->inputs[0];
    bool const learns = state->learning && node->inputs[QZ_LEARNED]->grad;
    if (!state->active) {
        if (x->grad)
            qat_accumulate(x->grad, node->grad, qat_shape_count(&node->shape));
        return;
    }
    if (x->grad || learns)
        qat_parallel(count_pieces(node), gradient_piece, node);
    if (learns)
        learn(node);
}

/* ------------------------------------------------------------------ update */

/** The moving average; the first batch as it is. */
static void average(qat_statistics *running, const qat_statistics *batch, int64_t seen,
                    double decay)
{
    float const keep = seen ? (float)decay : 0, take = 1 - keep;
    running->min = keep * running->min + take * batch->min;
    running->max = keep * running->max + take * batch->max;
    running->mean_abs = keep * running->mean_abs + take * batch->mean_abs;
}

/** What this batch said over all nodes that share node's range; node is their last. */
static qat_statistics batch_of_class(const qat_node *node)
{
    const qat_observer *o = observer_of(node);
    double all[QAT_OBSERVER_KEPT_MAX];
    o->clear(all);
    for (int i = 0; i <= node->index; i++) {
        const qat_node *other = qat_graph_node(node->graph, i);
        if (other->op == node->op && other->inputs[QZ_RANGE] == node->inputs[QZ_RANGE])
            o->join(all, state_of(other)->batch);
    }
    return widened(o->conclude(all));
}

/** Batches that the average counts. Where learning waits for a range, those of 0 alone are none. */
static int64_t batches_seen(const qat_node *node)
{
    bool const waits = learned_values(node) > 0 && !has_range(node, 0);
    return waits ? 0 : (int64_t)range_of(node, 0)[QZ_STEPS];
}

static void commit(const qat_node *node, int channel, qat_statistics batch)
{
    const qat_observer *o = observer_of(node);
    float *range = range_of(node, channel);
    qat_statistics running = seen_in_range(node, channel);
    double const decay = is_weights(node) ? 0 : node->attrs[QZ_DECAY];
    if (is_weights(node))
        running = batch;
    else
        (o->commit ? o->commit : average)(&running, &batch, batches_seen(node), decay);
    range[QZ_MIN] = running.min;
    range[QZ_MAX] = running.max;
    range[QZ_MEAN_ABS] = running.mean_abs;
    range[QZ_STEPS] += 1;
}

/** learned = what learning would start from now. */
static void restart(const qat_node *node, int channel)
{
    int const n = learned_values(node);
    struct channel const c = channel_from(node, seen_in_range(node, channel), NULL);
    for (int k = 0; k < n; k++)
        node->inputs[QZ_LEARNED]->value[channel * n + k] = c.learned[k];
}

static void limit(const qat_node *node, int channel)
{
    const qat_quantizer *q = qat_node_quantizer(node);
    qat_grid const grid = qat_grid_of(node);
    qat_statistics const seen = seen_in_range(node, channel);
    if (q->limit)
        q->limit(&grid, &seen,
                 node->inputs[QZ_LEARNED]->value +
                     (size_t)channel * (size_t)qat_learned_values(q, &grid));
}

void qat_quantizer_update(qat_node *node, const qat_run *run)
{
    bool const writes = is_weights(node) || node->attrs[QZ_COMMITS] != 0;
    if (run->mode != QAT_MODE_TRAIN || !writes)
        return;
    for (int c = 0; c < qat_quantizer_channels(node); c++) {
        if (state_of(node)->learning && has_range(node, c)) {
            limit(node, c);
            continue;
        }
        commit(node, c, is_weights(node) ? seen_in_weights(node, c) : batch_of_class(node));
        restart(node, c);
    }
}

const qat_attr_def qat_quantizer_attrs[] = {
    [QZ_BITS] = {"bits", QAT_ATTR_INT, 8, 2, 8, NULL, "width of a code"},
    [QZ_LAYOUT] = {"layout", QAT_ATTR_CHOICE, 0, 0, 1, "uint8|int8",
                   "weights: per tensor, or symmetric per output channel"},
    [QZ_AXIS] = {"axis", QAT_ATTR_INT, 0, 0, QAT_MAX_RANK - 1, NULL,
                 "weights: dimension of the output channels"},
    [QZ_DELAY] = {"delay", QAT_ATTR_INT, 0, 0, QAT_NEVER, NULL, "steps before it quantizes"},
    [QZ_PER_TENSOR] = {"per_tensor", QAT_ATTR_INT, 0, 0, 1, NULL,
                       "weights, layout=int8: one scale for all channels"},
    [QZ_SYMMETRIC] = {"symmetric", QAT_ATTR_INT, 0, 0, 1, NULL,
                      "weights, layout=uint8: zero_point in the middle"},
    [QZ_LEARN] = {"learn", QAT_ATTR_INT, QAT_NEVER, 0, QAT_NEVER, NULL,
                  "steps before the range is learned"},
    [QZ_DECAY] = {"decay", QAT_ATTR_REAL, 0.99, 0, 1, NULL, "of the observed range's average"},
    [QZ_COMMITS] = {"commits", QAT_ATTR_INT, 1, 0, 1, NULL,
                    "the last of those that share a range: it writes it"},
    [QZ_POWER_OF_TWO] = {"power_of_two", QAT_ATTR_INT, 0, 0, 1, NULL, "scales are powers of two"},
    [QZ_ATTRS] = {NULL, QAT_ATTR_INT, 0, 0, 0, NULL, NULL},
};
