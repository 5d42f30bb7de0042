/**
 * bn_fold_train: batch norm after an op whose weights bn_fold_weights has scaled (Jacob et al.
 * section 3.2). z is the output of that op. m and v are the mean and biased variance, over the
 * batch, of the output with raw weights. s = sqrt(EMA(v) + eps), sB = sqrt(v + eps).
 *
 *   phase     when                         y
 *   PLAIN     before delay (z is raw then) batch norm of z, by the very code of op batch_norm
 *   BATCH     from delay, before freeze    (s / sB) z + beta - gamma m / sB
 *   FROZEN    from freeze, and in eval     z + beta - gamma EMA(m) / s
 *
 * If gamma does not train (a frozen layer), FROZEN begins with the delay, and PLAIN also normalises
 * by the averages, which then stay unchanged.
 *
 * In PLAIN and BATCH, gradients flow through m and v, and update merges m and v into the averages.
 * The averages are constants for all gradients. s is the value from before this step, as in
 * bn_fold_weights.
 *
 * In BATCH, m and v come from the second input `raw` if there is one (two_pass). No other phase
 * reads it. Without it (one_pass) they come from z, the quantized convolution: m = (s / gamma)
 * E[z], v = (s / gamma)^2 Var[z]. If gamma of a channel is almost 0, this is not possible; the
 * averages are used instead and stay unchanged.
 *
 * After integer forward, backward reads z and raw from notes (fold_notes.h). This file has the op,
 * its phases and its scratch; fold_channels.c and fold_values.c have the arithmetic.
 */
#include "autograd/graph/backend.h"
#include "autograd/graph/shared.h"
#include "autograd/loops/tail.h"
#include "autograd/loops/tiles.h"
#include "autograd/loops/wide.h"
#include "fold/fold_train.h"

static qat_fold_phase phase_of(const qat_node *node, const qat_run *run)
{
    if (!qat_past_delay(run, node->attrs[FOLDT_DELAY]))
        return QAT_FOLD_PLAIN;
    return qat_past_delay(run, node->attrs[FOLDT_FREEZE]) || !node->inputs[FOLDT_GAMMA]->trainable
               ? QAT_FOLD_FROZEN
               : QAT_FOLD_BATCH;
}

/** PLAIN: does it use the statistics of the batch? */
static bool plain_uses_batch(const qat_node *node)
{
    return node->inputs[FOLDT_GAMMA]->trainable;
}

/** Set f's pointers into the scratch of its node. Returns the bytes they take. */
static size_t place(qat_fold_train *f)
{
    const qat_shape *shape = &f->node->inputs[FOLDT_Z]->shape;
    int const channels = qat_shape_channels(shape);
    size_t const rows = qat_shape_count(shape) / (size_t)channels;
    char *scratch = f->node->scratch;
    size_t const bn_bytes = (qat_bn_place(&f->bn, scratch, rows, channels) + 63) / 64 * 64;
    qat_carve carve = {scratch ? scratch + bn_bytes : NULL, 0};
    qat_real **all[] = {&f->z_mean,        &f->slope,          &f->offset,
                        &f->z_slope,       &f->z_offset,       &f->raw_slope,
                        &f->raw_offset,    &f->z_grid.step,    &f->z_grid.least,
                        &f->raw_grid.step, &f->raw_grid.least, &f->raw_grid.per_step};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        *all[i] = qat_carve_take(&carve, qat_wide_pattern((size_t)channels), sizeof(qat_real));
    f->has_notes = qat_carve_take(&carve, 1, sizeof *f->has_notes);
    f->z_grid.channels = f->raw_grid.channels = channels;
    f->z_grid.per_step = NULL;
    return bn_bytes + carve.used;
}

static qat_fold_train fold_in(const qat_node *node, qat_fold_phase phase)
{
    qat_fold_train f = {.node = node, .phase = phase};
    place(&f);
    return f;
}

static qat_status fold_shape(qat_node *node, qat_error *err)
{
    qat_fold_train f = {.node = node};
    char a[64], b[64];
    const qat_shape *z = &node->inputs[FOLDT_Z]->shape;
    const qat_node *raw = qat_fold_raw(node);
    int const channels = qat_shape_channels(z);
    if (z->rank < 2)
        return qat_fail(err, QAT_ERR_SHAPE, "input %s has no dimension after the batch",
                        qat_shape_text(z, a));
    for (int i = FOLDT_GAMMA; i <= FOLDT_EMA_VARIANCE; i++)
        if (qat_shape_count(&node->inputs[i]->shape) != (size_t)channels)
            return qat_fail(err, QAT_ERR_SHAPE, "'%s' is %s, but the input has %d channels",
                            node->inputs[i]->name, qat_shape_text(&node->inputs[i]->shape, a),
                            channels);
    if (raw && !qat_shape_equal(z, &raw->shape))
        return qat_fail(err, QAT_ERR_SHAPE, "folded output %s, raw output %s", qat_shape_text(z, a),
                        qat_shape_text(&raw->shape, b));
    if (node->attrs[FOLDT_FREEZE] < node->attrs[FOLDT_DELAY])
        return qat_fail(err, QAT_ERR_ARGUMENT, "freeze %.0f comes before delay %.0f",
                        node->attrs[FOLDT_FREEZE], node->attrs[FOLDT_DELAY]);
    node->shape = *z;
    node->scratch_bytes = place(&f);
    return QAT_OK;
}

static bool fold_reads(const qat_node *node, int input, const qat_run *run)
{
    return input != FOLDT_RAW || phase_of(node, run) == QAT_FOLD_BATCH;
}

/* ------------------------------------------------------------------ forward */

/** Does it add up over the batch? */
static bool sums_batch(const qat_fold_train *f)
{
    return f->phase == QAT_FOLD_BATCH || (f->phase == QAT_FOLD_PLAIN && plain_uses_batch(f->node));
}

static int sum_batch(qat_fold_train *f, double **sums)
{
    bool const raw = f->phase == QAT_FOLD_BATCH && qat_fold_raw(f->node);
    if (!sums_batch(f))
        return 0;
    qat_bn_sum_batch(&f->bn, qat_fold_input(f, raw ? FOLDT_RAW : FOLDT_Z));
    *sums = f->bn.sum;
    return (int)qat_bn_sums(f->bn.channels);
}

static int fold_forward_sums(qat_node *node, const qat_run *run, double **sums)
{
    qat_fold_train f = fold_in(node, phase_of(node, run));
    return sum_batch(&f, sums);
}

static void plain_forward(qat_fold_train *f)
{
    if (plain_uses_batch(f->node))
        qat_bn_use_sums(&f->bn, f->node->attrs[FOLDT_EPSILON]);
    else
        qat_bn_use_averages(&f->bn, qat_fold_input(f, FOLDT_EMA_MEAN),
                            qat_fold_input(f, FOLDT_EMA_VARIANCE), f->node->attrs[FOLDT_EPSILON]);
    qat_bn_forward(&f->bn, f->node, qat_fold_input(f, FOLDT_GAMMA), qat_fold_input(f, FOLDT_BETA));
}

/** Forward, with the sums of the batch. */
static void fold_values(qat_node *node, const qat_run *run)
{
    qat_fold_train f = fold_in(node, phase_of(node, run));
    *f.has_notes = false;
    if (f.phase == QAT_FOLD_PLAIN) {
        plain_forward(&f);
        return;
    }
    if (f.phase == QAT_FOLD_BATCH)
        qat_bn_use_sums(&f.bn, node->attrs[FOLDT_EPSILON]);
    qat_fold_coefficients(&f);
    qat_fold_run_forward(&f);
}

static void fold_forward(qat_node *node, const qat_run *run)
{
    double *sums;
    fold_forward_sums(node, run, &sums);
    fold_values(node, run);
}

/* ------------------------------------------------------------------ integer forward */

bool qat_bn_fold_wants_z(const qat_node *bn_fold_train, const qat_run *run)
{
    return phase_of(bn_fold_train, run) == QAT_FOLD_BATCH && !qat_fold_raw(bn_fold_train);
}

int qat_bn_fold_sums(qat_node *bn_fold_train, const qat_run *run, double **sums)
{
    return fold_forward_sums(bn_fold_train, run, sums);
}

qat_fold_line qat_bn_fold_begin(qat_node *bn_fold_train, const qat_run *run, const double *z_mean,
                                const double *z_variance)
{
    qat_fold_train f = fold_in(bn_fold_train, phase_of(bn_fold_train, run));
    *f.has_notes = true;
    if (qat_bn_fold_wants_z(bn_fold_train, run))
        for (int c = 0; c < f.bn.channels; c++) {
            f.bn.mean[c] = (qat_real)z_mean[c];
            f.bn.variance[c] = (qat_real)z_variance[c];
        }
    else if (f.phase == QAT_FOLD_BATCH) {
        qat_bn_use_sums(&f.bn, bn_fold_train->attrs[FOLDT_EPSILON]);
        qat_fold_note_raw(&f);
    }
    qat_fold_coefficients(&f);
    return (qat_fold_line){f.slope, f.offset, f.z_grid, qat_node_notes(bn_fold_train)};
}

void qat_bn_fold_values(qat_node *bn_fold_train)
{
    qat_fold_train f = fold_in(bn_fold_train, QAT_FOLD_BATCH);
    qat_fold_run_forward(&f);
}

/* ------------------------------------------------------------------ backward, update */

static int fold_backward_sums(qat_node *node, const qat_run *run, double **sums)
{
    qat_fold_train f = fold_in(node, phase_of(node, run));
    if (f.phase == QAT_FOLD_PLAIN) {
        qat_bn_sum_gradient(&f.bn, node, node->inputs[FOLDT_GAMMA]->grad,
                            node->inputs[FOLDT_BETA]->grad);
    } else {
        qat_fold_sum_gradient(&f);
        qat_fold_param_gradients(&f);
    }
    *sums = f.bn.sum;
    return sums_batch(&f) ? (int)qat_bn_sums(f.bn.channels) : 0;
}

/** Backward of z and raw, with the sums of the batch. */
static void fold_inputs(qat_node *node, const qat_run *run)
{
    qat_fold_train f = fold_in(node, phase_of(node, run));
    if (f.phase == QAT_FOLD_PLAIN) {
        qat_bn_backward(&f.bn, node, plain_uses_batch(node));
        return;
    }
    qat_fold_gradient_coefficients(&f);
    qat_fold_run_backward(&f);
}

static void fold_backward(qat_node *node, const qat_run *run)
{
    double *sums;
    fold_backward_sums(node, run, &sums);
    fold_inputs(node, run);
}

static void fold_update(qat_node *node, const qat_run *run)
{
    qat_fold_train const f = fold_in(node, phase_of(node, run));
    if (f.phase == QAT_FOLD_FROZEN || !plain_uses_batch(node))
        return;
    qat_bn_update(&f.bn, node->attrs[FOLDT_MOMENTUM], node->inputs[FOLDT_EMA_MEAN]->value,
                  node->inputs[FOLDT_EMA_VARIANCE]->value, node->inputs[FOLDT_EMA_STEPS]->value);
}

/* ------------------------------------------------------------------ each shard by itself */

static int fold_observed(const qat_node *node, const qat_run *run, double *observed)
{
    qat_fold_train const f = fold_in(node, phase_of(node, run));
    if (qat_is_shared(node) || !sums_batch(&f))
        return 0;
    if (observed)
        qat_bn_weigh_statistics(&f.bn, observed);
    return (int)qat_bn_sums(f.bn.channels);
}

static void fold_join(const qat_node *node, double *a, const double *b)
{
    qat_bn_join_statistics(qat_shape_channels(&node->shape), a, b);
}

static void fold_set_observed(qat_node *node, const double *observed)
{
    qat_fold_train f = fold_in(node, QAT_FOLD_BATCH);
    qat_bn_set_statistics(&f.bn, observed);
}

static const qat_attr_def fold_attrs[] = {
    [FOLDT_EPSILON] = {"epsilon", QAT_ATTR_REAL, 1e-3, 1e-12, 1, NULL, "as of the batch norm"},
    [FOLDT_MOMENTUM] = {"momentum", QAT_ATTR_REAL, 0.99, 0, 1, NULL, "as of the batch norm"},
    [FOLDT_DELAY] = {"delay", QAT_ATTR_INT, 0, 0, QAT_NEVER, NULL,
                     "steps of plain batch norm, before the weights are folded"},
    [FOLDT_FREEZE] = {"freeze", QAT_ATTR_INT, QAT_NEVER, 0, QAT_NEVER, NULL,
                      "steps before the averages replace the statistics of the batch"},
    [FOLDT_ATTRS] = {NULL, QAT_ATTR_INT, 0, 0, 0, NULL, NULL},
};

static const qat_shared fold_shared = {.forward_sums = fold_forward_sums,
                                       .forward = fold_values,
                                       .backward_sums = fold_backward_sums,
                                       .backward = fold_inputs,
                                       .observed = fold_observed,
                                       .join = fold_join,
                                       .set_observed = fold_set_observed,
                                       .is_batch_norm = true};

/** To a layer it is what a batch norm is (layer/layer.h). */
static const qat_quant fold_quant = {.role = QAT_ROLE_NORM};

const qat_op qat_op_bn_fold_train = {
    .name = "bn_fold_train",
    .meaning = "batch norm after an op whose weights were folded",
    .min_inputs = FOLDT_INPUTS - 1,
    .max_inputs = FOLDT_INPUTS,
    .attrs = fold_attrs,
    .shape = fold_shape,
    .reads = fold_reads,
    .forward = fold_forward,
    .backward = fold_backward,
    .update = fold_update,
    .quant = &fold_quant,
    .grads = QAT_GRADS_IN_PLACE,
    .runs_tail = qat_runs_any_tail,
    .shared = &fold_shared,
};
