/**
 * inq_weights: Zhou et al., Incremental Network Quantization. Weights become powers of two, the
 * largest first. A weight that is a power of two does not change any more; the others continue to
 * train.
 *
 *     y = c 2^n2   frozen          n1 = floor(log2(4/3 max|w|)), n2 = n1 + 1 - L, L = 2^(bits - 2)
 *     y = w        free            |c| in {0, 1, 2, 4 .. 2^(L - 1)}: 5 bits have 17 values
 *
 *     u = |w| / 2^n2:     |c| = 0 below 1/2,  1 below 3/2,  2^k from 3/2 2^(k-1) to 3/2 2^k
 *
 *     steps    0 .. | stage 1 .. | stage 2 .. | stage 3 .. | stage 4 ..
 *     frozen   0    | 50 %       | 75 %       | 87.5 %     | 100 %       of a channel (layout int8)
 *                                                                        or of the tensor (uint8)
 *
 * A stage begins with the update of the step before it, so stage 1 is step 1 at the earliest. The
 * parameter `frozen` has the shape of the weights: 0 for a free weight, else the code plus
 * QAT_FROZEN_ZERO. The parameter `exponent` is n2 of each channel, set when its first weights are
 * frozen. Both are in checkpoints. If w is a trained parameter it is kept at y, so that weight
 * decay and momentum do not move it.
 */
#include "base/parallel.h"
#include "base/rank.h"
#include "fakequant/ops.h"
#include "fakequant/schemes.h"
#include "fakequant/weights.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { LEAST_BITS = 2 };

static const double shares[INQ_STAGES] = {0.5, 0.75, 0.875, 1};

/** The number of powers of two on each side of 0. */
static int levels_of(const qat_node *node)
{
    return 1 << ((int)node->attrs[FQW_BITS] - LEAST_BITS);
}

/** c of a weight, with u = |w| / 2^n2; 0 of a NaN. */
static int code_of(double u, int levels)
{
    if (!(u >= 0.5))
        return 0;
    int const k = u < 1.5 ? 0 : ilogb(u * 4 / 3);
    return 1 << (k < levels ? k : levels - 1);
}

/* ------------------------------------------------------------------ one channel */

/** The weights of a channel, numbered 0 .. count - 1. */
typedef struct channel_of_weights {
    const qat_node *node;
    qat_weight_view view;
    int channel, count;
} channel_of_weights;

static channel_of_weights channel_at(const qat_node *node, int channel)
{
    qat_weight_view const view = qat_weight_view_of(node);
    return (channel_of_weights){node, view, channel, view.outer * view.inner};
}

static size_t position(const channel_of_weights *c, int i)
{
    return qat_weight_run(&c->view, i / c->view.inner, c->channel) + (size_t)(i % c->view.inner);
}

static float weight(const channel_of_weights *c, int i)
{
    return c->node->inputs[INQ_W]->value[position(c, i)];
}

static float *frozen(const channel_of_weights *c, int i)
{
    return &c->node->inputs[INQ_FROZEN]->value[position(c, i)];
}

static int count_frozen(const channel_of_weights *c)
{
    int n = 0;
    for (int i = 0; i < c->count; i++)
        n += *frozen(c, i) > 0;
    return n;
}

/** n2 for the current weights: 2^n2 is a scale, so float32's smallest normal number at least. */
static float exponent_now(const channel_of_weights *c)
{
    float largest = 0;
    for (int i = 0; i < c->count; i++)
        largest = fmaxf(largest, fabsf(weight(c, i)));
    int const n1 = largest > 0 && isfinite(largest) ? ilogb((double)largest * 4 / 3) : 0;
    int const n2 = n1 + 1 - levels_of(c->node);
    return (float)(n2 < FLT_MIN_EXP - 1 ? FLT_MIN_EXP - 1 : n2);
}

static float exponent_of(const channel_of_weights *c)
{
    return count_frozen(c) ? c->node->inputs[INQ_EXPONENT]->value[c->channel] : exponent_now(c);
}

/* ------------------------------------------------------------------ freezing */

/** Scratch: keys, indices and room to rank the weights by size; one part per channel. */
static int32_t *scratch_of(const channel_of_weights *c, int part)
{
    size_t const total = qat_shape_count(&c->node->shape);
    return (int32_t *)c->node->scratch + (size_t)part * total +
           (size_t)c->channel * (size_t)c->count;
}

/** Rank the free weights by falling |w|, then the frozen ones. */
static const int *rank_free(const channel_of_weights *c)
{
    int32_t *keys = scratch_of(c, 0);
    int *order = scratch_of(c, 1);
    for (int i = 0; i < c->count; i++) {
        keys[i] = *frozen(c, i) > 0 ? INT32_MIN : qat_rank_key(fabsf(weight(c, i)));
        order[i] = i;
    }
    qat_rank_falling(keys, order, scratch_of(c, 2), c->count);
    return order;
}

static void freeze_weight(const channel_of_weights *c, int i, double n2)
{
    double const w = (double)weight(c, i);
    int const code = code_of(ldexp(fabs(w), -(int)n2), levels_of(c->node));
    *frozen(c, i) = (float)(QAT_FROZEN_ZERO + (w < 0 ? -code : code));
}

/** Freeze as many weights as the stage wants, the largest first. */
static void freeze_until(const channel_of_weights *c, double share)
{
    int const have = count_frozen(c), want = (int)floor(share * c->count + 0.5);
    if (have >= want)
        return;
    float const n2 = exponent_of(c);
    const int *order = rank_free(c);
    c->node->inputs[INQ_EXPONENT]->value[c->channel] = n2;
    for (int i = 0; i < want - have; i++)
        freeze_weight(c, order[i], (double)n2);
}

/** The number of stages reached in the step after this one. */
static int stages_reached(const qat_node *node, const qat_run *run)
{
    int n = 0;
    while (n < INQ_STAGES && (double)run->step + 1 >= node->attrs[INQ_STAGE + n])
        n++;
    return n;
}

static float value_of(const channel_of_weights *c, int i)
{
    int const n2 = (int)c->node->inputs[INQ_EXPONENT]->value[c->channel];
    return *frozen(c, i) > 0 ? ldexpf(*frozen(c, i) - QAT_FROZEN_ZERO, n2) : weight(c, i);
}

/** Set frozen weights back to y, so that weight decay and momentum do not move them. */
static void pin(const channel_of_weights *c)
{
    for (int i = 0; i < c->count; i++)
        c->node->inputs[INQ_W]->value[position(c, i)] = value_of(c, i);
}

struct freezing {
    const qat_node *node;
    int stages;
};

static void update_channel(void *context, int channel, int thread)
{
    const struct freezing *f = context;
    channel_of_weights const c = channel_at(f->node, channel);
    freeze_until(&c, shares[f->stages - 1]);
    if (f->node->inputs[INQ_W]->is_param && f->node->inputs[INQ_W]->trainable)
        pin(&c);
}

static void inq_update(qat_node *node, const qat_run *run)
{
    struct freezing f = {node, stages_reached(node, run)};
    if (run->mode == QAT_MODE_TRAIN && f.stages > 0 && qat_past_delay(run, node->attrs[FQW_DELAY]))
        qat_parallel(qat_weight_view_of(node).channels, update_channel, &f);
}

/* ------------------------------------------------------------------ the op */

static int inq_params(const qat_node *node, qat_param_def *defs, qat_error *err)
{
    if (node->attrs[FQW_AXIS] >= node->inputs[INQ_W]->shape.rank) {
        qat_fail(err, QAT_ERR_ARGUMENT, "axis %g of a tensor of rank %d", node->attrs[FQW_AXIS],
                 node->inputs[INQ_W]->shape.rank);
        return -1;
    }
    defs[0] = (qat_param_def){.name = "frozen", .shape = node->inputs[INQ_W]->shape};
    defs[1] =
        (qat_param_def){.name = "exponent", .shape = QAT_SHAPE(qat_weight_view_of(node).channels)};
    return 2;
}

static qat_status inq_shape(qat_node *node, qat_error *err)
{
    if (node->attrs[FQW_BITS] > INQ_MOST_BITS)
        return qat_fail(err, QAT_ERR_UNSUPPORTED, "%s: inq needs 2 to 5 bits, but weight_bits = %g",
                        node->inputs[INQ_W]->name, node->attrs[FQW_BITS]);
    node->shape = node->inputs[INQ_W]->shape;
    node->scratch_bytes = 3 * qat_shape_count(&node->shape) * sizeof(int32_t);
    return QAT_OK;
}

static void forward_channel(void *context, int channel, int thread)
{
    const qat_node *node = context;
    channel_of_weights const c = channel_at(node, channel);
    for (int i = 0; i < c.count; i++)
        node->value[position(&c, i)] = value_of(&c, i);
}

static void inq_forward(qat_node *node, const qat_run *run)
{
    qat_parallel(qat_weight_view_of(node).channels, forward_channel, node);
}

static void inq_backward(qat_node *node, const qat_run *run)
{
    const float *is_frozen = node->inputs[INQ_FROZEN]->value;
    float *dx = node->inputs[INQ_W]->grad;
    for (size_t i = 0; dx && i < qat_shape_count(&node->shape); i++)
        dx[i] += is_frozen[i] > 0 ? 0 : node->grad[i];
}

/** Codes c + Z with as many bits as they need, at most 8. */
static qat_status inq_qparams(const qat_node *node, int channel, qat_qparams *p, qat_error *err)
{
    int32_t lo, hi;
    int bits = LEAST_BITS;
    channel_of_weights const c = channel_at(node, channel);
    while (bits < 8 && 1 << (bits - 1) <= 1 << (levels_of(node) - 1))
        bits++;
    qat_code_range((qat_layout)node->attrs[FQW_LAYOUT], bits, true, &lo, &hi);
    *p = qat_given_qparams(ldexpf(1, (int)exponent_of(&c)), (lo + hi) / 2, lo, hi);
    return QAT_OK;
}

static const char *no_integers(int bits)
{
    return bits > 4 ? "layers of weights by inq with more than 4 bits, whose codes reach 128 and "
                      "those of 8-bit weights 127,"
                    : NULL;
}

#define STAGE(n_, share_)                                                                          \
    {                                                                                              \
        "stage" #n_, QAT_ATTR_INT, QAT_NEVER, 0, QAT_NEVER, NULL,                                  \
            "step from which on " share_ " of the weights are frozen"                              \
    }

static const qat_attr_def inq_attrs[] = {
    QAT_WEIGHT_ATTRS,
    [INQ_STAGE] = STAGE(1, "50 %"),
    [INQ_STAGE + 1] = STAGE(2, "75 %"),
    [INQ_STAGE + 2] = STAGE(3, "87.5 %"),
    [INQ_STAGE + 3] = STAGE(4, "100 %"),
    [INQ_ATTRS] = {NULL, QAT_ATTR_INT, 0, 0, 0, NULL, NULL},
};

static const qat_quantizer inq = {.name = "inq",
                                  .weights = true,
                                  .qparams = inq_qparams,
                                  .own_values = true,
                                  .no_integers = no_integers};
static const qat_quant inq_quant = {.role = QAT_ROLE_QUANTIZER, .quantizer = &inq};

const qat_op qat_op_inq_weights = {
    .name = "inq_weights",
    .meaning = "weights that become powers of two, in four stages",
    .min_inputs = 1,
    .max_inputs = 1,
    .attrs = inq_attrs,
    .params = inq_params,
    .shape = inq_shape,
    .forward = inq_forward,
    .backward = inq_backward,
    .update = inq_update,
    .quant = &inq_quant,
};
