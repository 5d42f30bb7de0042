/**
 * Freezing of weights that oscillate (Nagel et al. 2022, Overcoming Oscillations in
 * Quantization-Aware Training, algorithm 1). In each training step, for each weight that is free:
 *
 *     c = q - Z                           of the forward pass
 *     o = 1 if c changed in the direction opposite to its last change, else 0
 *     f = m o + (1 - m) f                 the frequency of oscillations
 *     f > threshold: frozen at round(e)
 *     e = m c + (1 - m) e                 the average of codes; at first c
 *
 * m is the attribute freeze_share. The threshold goes from `threshold` to `last_threshold` along
 * half a cosine. A frozen weight is y = S c, within the codes, whatever its range becomes; its own
 * gradient is 0, and dy/dS = c. The trained parameter behind it stands still: neither momentum, nor
 * weight decay, nor the statistics of a batch norm move it.
 *
 * The parameter `frozen` has the shape of the weights (QAT_FROZEN_ZERO). The parameter
 * `oscillation` has a row of OSC_VALUES numbers a weight; it is there in training only.
 */
#include "base/parallel.h"
#include "fakequant/ops.h"
#include "fakequant/quantizer_op.h"

#include <math.h>
#include <string.h>

enum {
    OSC_CODE,      /* QAT_FROZEN_ZERO + c of the last step; 0: there was none */
    OSC_DIRECTION, /* of the last change of c: -1, 1; 0: none yet */
    OSC_FREQUENCY,
    OSC_MEAN, /* e; of a frozen weight: what its trained parameter is kept at */
    OSC_VALUES
};

static bool follows(const qat_node *node)
{
    return node->attrs[QZ_FREEZES] != 0 && node->attrs[QZ_FREEZE_SHARE] > 0;
}

static int first_of(const qat_node *node)
{
    return qz_learned_values(node) > 0 ? QZ_LEARNED + 1 : QZ_LEARNED;
}

qat_node *qz_frozen_of(const qat_node *node)
{
    bool const may = qz_is_weights(node) && node->attrs[QZ_FREEZES] != 0;
    return may ? node->inputs[first_of(node)] : NULL;
}

bool qat_weights_freeze(const qat_node *quantizer)
{
    return !qat_node_quantizer(quantizer)->qparams && qat_is_quantizer_op(quantizer->op) &&
           qz_frozen_of(quantizer);
}

int qz_freeze_params(const qat_node *node, qat_param_def *defs, int n)
{
    const qat_shape *shape = &node->inputs[QZ_X]->shape;
    if (!qz_is_weights(node) || node->attrs[QZ_FREEZES] == 0)
        return n;
    defs[n++] = (qat_param_def){.name = "frozen", .shape = *shape};
    if (follows(node))
        defs[n++] = (qat_param_def){.name = "oscillation",
                                    .shape = QAT_SHAPE((int)qat_shape_count(shape), OSC_VALUES)};
    return n;
}

/* ------------------------------------------------------------------ forward, backward */

/** A code as an integer; of a broken checkpoint it may be any number. */
static int whole(float code)
{
    enum { MOST = 255 };
    return code > MOST ? MOST : code > -MOST ? (int)code : -MOST;
}

static int code_of(float frozen)
{
    return whole(frozen - QAT_FROZEN_ZERO);
}

/** Z + code, limited to the codes that there are. */
static int32_t limited(const qat_qparams *p, int code)
{
    int32_t const q = p->zero_point + code;
    return q < p->lo ? p->lo : q > p->hi ? p->hi : q;
}

static float value_of(const qat_qparams *p, int code)
{
    return qat_real_of(p, limited(p, code));
}

void qz_freeze_values(const qat_node *node, const qat_qparams *p, size_t at, size_t n)
{
    const qat_node *frozen = qz_frozen_of(node);
    for (size_t i = at; frozen && i < at + n; i++)
        if (frozen->value[i] > 0)
            node->value[i] = value_of(p, code_of(frozen->value[i]));
}

void qz_freeze_gradient(const qat_node *node, const qat_qparams *p, size_t at, size_t n,
                        qat_range_sums *sums)
{
    const qat_node *frozen = qz_frozen_of(node);
    for (size_t i = at; frozen && i < at + n; i++)
        if (frozen->value[i] > 0) {
            int32_t const code = limited(p, code_of(frozen->value[i])) - p->zero_point;
            sums->inside += (double)node->grad[i] * code;
            node->grad[i] = 0;
        }
}

/* ------------------------------------------------------------------ update */

/** The trained parameter that a node quantizes, folded or not; NULL: there is none. */
static qat_node *trained_of(const qat_node *node)
{
    qat_node *w = node->inputs[QZ_X];
    if (w->op == &qat_op_bn_fold_weights)
        w = w->inputs[FOLDW_W];
    return w->is_param && w->trainable ? w : NULL;
}

struct freezing {
    const qat_node *node;
    qat_node *trained;
    float share, threshold;
};

/** Freeze weight i. If it is a trained parameter itself, it moves to its value. */
static void freeze(const struct freezing *f, const qat_qparams *p, size_t i, float *row)
{
    int const code = whole(floorf(row[OSC_MEAN] + 0.5f));
    qz_frozen_of(f->node)->value[i] = (float)(QAT_FROZEN_ZERO + code);
    if (f->trained)
        row[OSC_MEAN] =
            f->trained == f->node->inputs[QZ_X] ? value_of(p, code) : f->trained->value[i];
}

static void follow(const struct freezing *f, const qat_qparams *p, size_t i, float *row)
{
    float const code = roundf(f->node->value[i] / p->scale);
    bool const first = row[OSC_CODE] <= 0;
    float const change = first ? 0 : code - (row[OSC_CODE] - QAT_FROZEN_ZERO);
    float const direction = change > 0 ? 1.0f : change < 0 ? -1.0f : 0.0f;
    float const turned = direction * row[OSC_DIRECTION] < 0 ? 1 : 0;
    row[OSC_FREQUENCY] = f->share * turned + (1 - f->share) * row[OSC_FREQUENCY];
    row[OSC_CODE] = QAT_FROZEN_ZERO + code;
    if (change > 0 || change < 0)
        row[OSC_DIRECTION] = direction;
    if (row[OSC_FREQUENCY] > f->threshold)
        freeze(f, p, i, row);
    else
        row[OSC_MEAN] = first ? code : f->share * code + (1 - f->share) * row[OSC_MEAN];
}

static void update_channel(void *context, int channel, int thread)
{
    const struct freezing *f = context;
    const qat_qparams *p = &qz_channels_of(f->node)[channel].p;
    qat_weight_view const view = qat_weight_view_of(f->node);
    const qat_node *frozen = qz_frozen_of(f->node);
    float *rows = f->node->inputs[first_of(f->node) + 1]->value;
    for (int o = 0; o < view.outer; o++) {
        size_t const at = qat_weight_run(&view, o, channel);
        for (size_t i = at; i < at + (size_t)view.inner; i++) {
            if (frozen->value[i] <= 0)
                follow(f, p, i, rows + i * OSC_VALUES);
            if (frozen->value[i] > 0 && f->trained)
                f->trained->value[i] = rows[i * OSC_VALUES + OSC_MEAN];
        }
    }
}

void qz_freeze_forget(const qat_node *node)
{
    if (!qz_frozen_of(node))
        return;
    for (int i = first_of(node); i < node->n_inputs; i++)
        memset(node->inputs[i]->value, 0,
               qat_shape_count(&node->inputs[i]->shape) * sizeof *node->inputs[i]->value);
}

/** Are the bits those that the weights will have in the end? Codes of other bits are not followed.
 */
static bool has_final_bits(const qat_node *node)
{
    double const last = node->attrs[QZ_FINAL_BITS];
    return last <= 0 || (int)last == (int)node->attrs[QZ_BITS];
}

void qz_freeze_update(const qat_node *node, const qat_run *run)
{
    if (!qz_is_weights(node) || !follows(node) || !qz_state_of(node)->active ||
        !has_final_bits(node))
        return;
    double const first = node->attrs[QZ_THRESHOLD], last = node->attrs[QZ_LAST_THRESHOLD];
    struct freezing f = {.node = node,
                         .trained = trained_of(node),
                         .share = (float)node->attrs[QZ_FREEZE_SHARE],
                         .threshold = (float)(first + (last - first) * qz_half_cosine(node, run))};
    qat_parallel(qat_quantizer_channels(node), update_channel, &f);
}
