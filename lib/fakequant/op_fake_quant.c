/**
 * fake_quant: y is x after a round trip through its codes (Jacob et al. eq. 12).
 *
 * The range is fixed by attributes (`kind`), or it is the running range of a class: a parameter
 * (`range`) that several nodes may share. Training steps observe: forward leaves the batch's min
 * and max in the scratch of each node. The update of the class's last node (`commits`) joins them,
 * widens them to hold 0, and takes one step of the moving average for the whole class:
 *
 *     range = batch                               the first time
 *     range = decay range + (1 - decay) batch     from then on
 *
 * If a range was never observed, the range of the batch replaces it, so that even the first step
 * runs quantized. In that step, nothing can be quantized before all of the batch is seen; of a
 * batch in shards, before all of the shard. Before its delay a node copies x; it observes
 * nevertheless.
 */
#include "autograd/graph/shared.h"
#include "autograd/loops/tail.h"
#include "autograd/loops/tiles.h"
#include "fakequant/ops.h"
#include "fakequant/range.h"
#include "qat/quantizer.h"

#include <math.h>
#include <string.h>

/** What forward leaves in the scratch, followed by the intervals of the tiles. */
struct fq_state {
    qat_qparams p;
    qat_interval batch; /* of a training step */
    bool active;
    bool observes; /* this run leaves the intervals of the tiles */
    bool late;     /* p comes from this batch, so quantize after all of it is seen */
};

static struct fq_state *state_of(const qat_node *node)
{
    return node->scratch;
}

static qat_interval *tile_intervals(const qat_node *node)
{
    return (qat_interval *)(state_of(node) + 1);
}

static int tiles_of(const qat_node *node)
{
    return qat_tiles_of(qat_shape_count(&node->shape), QAT_TILE_VALUES);
}

static const qat_node *range_of(const qat_node *node)
{
    return node->inputs[1];
}

static bool was_observed(const qat_node *node)
{
    return range_of(node)->value[RANGE_STEPS] > 0;
}

static int fq_params(const qat_node *node, qat_param_def *defs, qat_error *err)
{
    if (!qat_fake_quant_is_observed(node))
        return 0;
    defs[0] = (qat_param_def){
        .name = "range", .shape = QAT_SHAPE(RANGE_VALUES), .init = QAT_INIT_CONSTANT, .scale = 0};
    return 1;
}

static qat_status check_given(const qat_node *node, qat_error *err)
{
    int32_t lo, hi;
    double const zero_point = node->attrs[FQ_ZERO_POINT];
    qat_code_range((qat_layout)node->attrs[FQ_LAYOUT], (int)node->attrs[FQ_BITS], false, &lo, &hi);
    if (!((float)node->attrs[FQ_SCALE] > 0))
        return qat_fail(err, QAT_ERR_ARGUMENT, "scale %g is not above 0", node->attrs[FQ_SCALE]);
    if (zero_point < lo || zero_point > hi)
        return qat_fail(err, QAT_ERR_ARGUMENT, "zero_point %g is not a code of %d..%d", zero_point,
                        lo, hi);
    return QAT_OK;
}

static qat_status fq_shape(qat_node *node, qat_error *err)
{
    int const kind = (int)node->attrs[FQ_KIND], bits = (int)node->attrs[FQ_BITS];
    node->shape = node->inputs[0]->shape;
    node->scratch_bytes = sizeof(struct fq_state) + (size_t)tiles_of(node) * sizeof(qat_interval);
    if (bits > 8 && (bits != QAT_WIDE_BITS || node->attrs[FQ_LAYOUT] != QAT_LAYOUT_INT8))
        return qat_fail(err, QAT_ERR_ARGUMENT, "%d bits are not 2..8, or %d of layout int8", bits,
                        QAT_WIDE_BITS);
    if (kind == FQ_RANGE && node->attrs[FQ_MIN] > node->attrs[FQ_MAX])
        return qat_fail(err, QAT_ERR_ARGUMENT, "min %g is above max %g", node->attrs[FQ_MIN],
                        node->attrs[FQ_MAX]);
    return kind == FQ_GIVEN ? check_given(node, err) : QAT_OK;
}

static qat_qparams params_of_interval(const qat_node *node, qat_interval range)
{
    int const bits = (int)node->attrs[FQ_BITS];
    qat_qparams p =
        qat_activation_qparams(range.min, range.max, (qat_layout)node->attrs[FQ_LAYOUT], bits);
    p.tie = qat_tie_of(node, bits);
    return p;
}

/**
 * The parameters from the attributes, or from the committed range, which must have been observed.
 */
static qat_qparams committed_params(const qat_node *node)
{
    int32_t lo, hi;
    qat_qparams p;
    switch ((int)node->attrs[FQ_KIND]) {
    case FQ_RANGE:
        return params_of_interval(
            node, (qat_interval){(float)node->attrs[FQ_MIN], (float)node->attrs[FQ_MAX]});
    case FQ_GIVEN:
        qat_code_range((qat_layout)node->attrs[FQ_LAYOUT], (int)node->attrs[FQ_BITS], false, &lo,
                       &hi);
        p = qat_given_qparams((float)node->attrs[FQ_SCALE], (int32_t)node->attrs[FQ_ZERO_POINT], lo,
                              hi);
        p.tie = qat_tie_of(node, (int)node->attrs[FQ_BITS]);
        return p;
    default:
        return params_of_interval(node, (qat_interval){range_of(node)->value[RANGE_MIN],
                                                       range_of(node)->value[RANGE_MAX]});
    }
}

static qat_status fq_qparams(const qat_node *node, int channel, qat_qparams *p, qat_error *err)
{
    if (qat_fake_quant_is_observed(node) && !range_of(node)->value)
        return qat_fail(err, QAT_ERR_STATE, "'%s': the graph is not planned", node->name);
    if (qat_fake_quant_is_observed(node) && !was_observed(node))
        return qat_fail(err, QAT_ERR_STATE, "'%s' was never observed: calibrate on a batch first",
                        node->name);
    *p = committed_params(node);
    return QAT_OK;
}

/* ------------------------------------------------------------------ forward */

static void fq_begin(qat_node *node, const qat_run *run)
{
    struct fq_state *state = state_of(node);
    bool const observed = qat_fake_quant_is_observed(node);
    state->active = qat_past_delay(run, node->attrs[FQ_DELAY]);
    state->late = state->active && observed && !was_observed(node);
    state->observes = state->late || (observed && run->mode == QAT_MODE_TRAIN);
    if (state->active && !state->late)
        state->p = committed_params(node);
    for (int i = 0; i < tiles_of(node); i++)
        tile_intervals(node)[i] = (qat_interval){INFINITY, -INFINITY};
}

static void fq_strip(const qat_node *node, size_t at, const float *x, float *y, size_t n)
{
    const struct fq_state *state = state_of(node);
    qat_interval *tile = &tile_intervals(node)[at / QAT_TILE_VALUES];
    if (state->observes)
        *tile = qat_interval_join(*tile, qat_interval_of(x, n));
    if (state->active && !state->late)
        qat_fake_quant_values(&state->p, x, y, n);
    else if (y != x)
        memcpy(y, x, n * sizeof *y);
}

static qat_interval join_tiles(const qat_node *node)
{
    qat_interval all = tile_intervals(node)[0];
    for (int i = 1; i < tiles_of(node); i++)
        all = qat_interval_join(all, tile_intervals(node)[i]);
    return all;
}

static void late_strip(void *context, size_t at, size_t n)
{
    const qat_node *node = context;
    qat_fake_quant_values(&state_of(node)->p, node->value + at, node->value + at, n);
}

static void fq_end(qat_node *node, const qat_run *run)
{
    struct fq_state *state = state_of(node);
    if (state->observes)
        state->batch = join_tiles(node);
    if (!state->late)
        return;
    state->p = params_of_interval(node, state->batch);
    qat_run_strips(qat_shape_count(&node->shape), late_strip, node);
}

/* ------------------------------------------------------------------ integer forward */

const qat_qparams *qat_fake_quant_params(const qat_node *fake_quant)
{
    return &state_of(fake_quant)->p;
}

bool qat_fake_quant_is_late(const qat_node *fake_quant)
{
    return state_of(fake_quant)->late;
}

void qat_fake_quant_observe(qat_node *fake_quant, const qat_run *run, float min, float max)
{
    struct fq_state *state = state_of(fake_quant);
    fq_begin(fake_quant, run);
    state->batch = (qat_interval){min, max};
    if (state->late)
        state->p = params_of_interval(fake_quant, state->batch);
}

/* ------------------------------------------------------------------ backward, update */

static void fq_mask(const qat_node *node, const float *x, float *grad, size_t n)
{
    if (state_of(node)->active)
        qat_fake_quant_mask(&state_of(node)->p, x, grad, n);
}

/** The interval of the batch over all nodes that share node's range; node is the last of them. */
static qat_interval batch_of_class(const qat_node *node)
{
    qat_interval all = state_of(node)->batch;
    for (int i = 0; i < node->index; i++) {
        const qat_node *other = qat_graph_node(node->graph, i);
        if (qat_fake_quant_is_observed(other) && range_of(other) == range_of(node))
            all = qat_interval_join(all, state_of(other)->batch);
    }
    return qat_interval_widen(all);
}

static void fq_update(qat_node *node, const qat_run *run)
{
    if (run->mode != QAT_MODE_TRAIN || !qat_fake_quant_is_observed(node) ||
        !node->attrs[FQ_COMMITS])
        return;
    float *range = range_of(node)->value;
    float const keep = was_observed(node) ? (float)node->attrs[FQ_DECAY] : 0, take = 1 - keep;
    qat_interval const batch = batch_of_class(node);
    range[RANGE_MIN] = keep * range[RANGE_MIN] + take * batch.min;
    range[RANGE_MAX] = keep * range[RANGE_MAX] + take * batch.max;
    range[RANGE_STEPS] += 1;
}

enum { SEEN_MIN, SEEN_MAX, SEEN };

static int fq_observed(const qat_node *node, const qat_run *run, double *observed)
{
    if (run->mode != QAT_MODE_TRAIN || !qat_fake_quant_is_observed(node))
        return 0;
    if (observed) {
        observed[SEEN_MIN] = (double)state_of(node)->batch.min;
        observed[SEEN_MAX] = (double)state_of(node)->batch.max;
    }
    return SEEN;
}

static void fq_join(const qat_node *node, double *a, const double *b)
{
    (void)node;
    a[SEEN_MIN] = b[SEEN_MIN] < a[SEEN_MIN] ? b[SEEN_MIN] : a[SEEN_MIN];
    a[SEEN_MAX] = b[SEEN_MAX] > a[SEEN_MAX] ? b[SEEN_MAX] : a[SEEN_MAX];
}

static void fq_set_observed(qat_node *node, const double *observed)
{
    state_of(node)->batch = (qat_interval){(float)observed[SEEN_MIN], (float)observed[SEEN_MAX]};
}

static const qat_shared fq_shared = {
    .observed = fq_observed, .join = fq_join, .set_observed = fq_set_observed};

static const qat_elementwise fq_strips = {
    .begin = fq_begin, .forward = fq_strip, .end = fq_end, .backward = fq_mask, .ends_chain = true};

static const qat_attr_def fq_attrs[] = {
    [FQ_BITS] = {"bits", QAT_ATTR_INT, 8, 2, QAT_WIDE_BITS, NULL, "bits of a code"},
    [FQ_LAYOUT] = {"layout", QAT_ATTR_CHOICE, 0, 0, 1, "uint8|int8", "unsigned or signed codes"},
    [FQ_DECAY] = {"decay", QAT_ATTR_REAL, 0.99, 0, 1, NULL,
                  "decay of the moving average of the range"},
    [FQ_DELAY] = {"delay", QAT_ATTR_INT, 0, 0, QAT_NEVER, NULL, "steps before quantization starts"},
    [FQ_KIND] =
        {"kind", QAT_ATTR_CHOICE, FQ_OBSERVED, 0, 2, "observed|range|given",
         "where the range comes from: observed in training; min and max; scale and zero_point"},
    [FQ_MIN] = {"min", QAT_ATTR_REAL, 0, -3e38, 3e38, NULL, "for kind=range, before nudging"},
    [FQ_MAX] = {"max", QAT_ATTR_REAL, 0, -3e38, 3e38, NULL, "for kind=range, before nudging"},
    [FQ_SCALE] = {"scale", QAT_ATTR_REAL, 1, 0, 3e38, NULL, "kind=given"},
    [FQ_ZERO_POINT] = {"zero_point", QAT_ATTR_INT, 0, -128, 255, NULL, "kind=given"},
    [FQ_COMMITS] = {"commits", QAT_ATTR_INT, 1, 0, 1, NULL,
                    "1: the last node of those that share a range; it updates the average"},
    [FQ_FINAL_BITS] = QAT_FINAL_BITS_ATTR,
    [FQ_ATTRS] = {NULL, QAT_ATTR_INT, 0, 0, 0, NULL, NULL},
};

static const qat_quantizer ema = {.name = "ema", .qparams = fq_qparams};
static const qat_quant fq_quant = {.role = QAT_ROLE_QUANTIZER, .quantizer = &ema};

const qat_op qat_op_fake_quant = {
    .name = "fake_quant",
    .meaning = "simulated quantization of an activation",
    .min_inputs = 1,
    .max_inputs = 1,
    .attrs = fq_attrs,
    .params = fq_params,
    .shape = fq_shape,
    .forward = qat_elementwise_forward,
    .backward = qat_elementwise_backward,
    .update = fq_update,
    .grads = QAT_GRADS_IN_PLACE,
    .elementwise = &fq_strips,
    .quant = &fq_quant,
    .shared = &fq_shared,
};
