/**
 * bn_fold_train: batch norm behind an op whose weights bn_fold_weights has scaled (Jacob et al.
 * section 3.2). z is that op's output; m, v are the batch's mean and biased variance of the output
 * it would have with its raw weights; s = sqrt(EMA(v) + eps), sB = sqrt(v + eps).
 *
 *   phase     when                         y
 *   PLAIN     before delay (z is raw then) batch norm of z, by the very code of op batch_norm
 *   BATCH     from delay, before freeze    (s / sB) z + beta - gamma m / sB
 *   FROZEN    from freeze, and in eval     z + beta - gamma EMA(m) / s
 *
 * Where gamma does not train (a frozen layer) FROZEN begins with the delay, and PLAIN normalises by
 * the averages as well, which then stay.
 *
 * In PLAIN and BATCH gradients flow through m and v, and update commits them to the averages, which
 * are constants to all gradients. s is the one committed before this step, as in bn_fold_weights.
 *
 * In BATCH m and v come from the second input `raw` where there is one (two_pass); it is read in no
 * other phase. Without it (one_pass) they come from z, the quantized convolution: m = (s / gamma)
 * E[z], v = (s / gamma)^2 Var[z]. A channel whose gamma is almost 0 says nothing about them: its
 * averages stand in, and stay.
 *
 * Integer forward leaves z and raw to backward as notes (fold_notes.h).
 */
#include "autograd/batch_norm.h"
#include "autograd/column_sums.h"
#include "autograd/engine.h"
#include "autograd/tail.h"
#include "autograd/tiles.h"
#include "autograd/vector.h"
#include "autograd/wide.h"
#include "fakequant/fold.h"
#include "fakequant/fold_notes.h"
#include "fakequant/ops.h"

#include <string.h>

enum phase { PLAIN, BATCH, FROZEN };

static enum phase phase_of(const qat_node *node, const qat_run *run)
{
    if (!qat_past_delay(run, node->attrs[FOLDT_DELAY]))
        return PLAIN;
    return qat_past_delay(run, node->attrs[FOLDT_FREEZE]) || !node->inputs[FOLDT_GAMMA]->trainable
               ? FROZEN
               : BATCH;
}

/** PLAIN: by the batch's statistics? */
static bool plain_uses_batch(const qat_node *node)
{
    return node->inputs[FOLDT_GAMMA]->trainable;
}

static qat_node *raw_of(const qat_node *node)
{
    return node->n_inputs > FOLDT_RAW ? node->inputs[FOLDT_RAW] : NULL;
}

/** Scratch: batch norm's own, and by channel the coefficients of the loops over values, laid out as
 *  in wide.h. */
struct work {
    qat_bn bn;
    qat_real *z_mean;                 /* one_pass: E[z] */
    qat_real *slope, *offset;         /* y = slope z + offset */
    qat_real *z_slope, *z_offset;     /* dz += slope dy + z_slope z + z_offset */
    qat_real *raw_slope, *raw_offset; /* draw += raw_slope raw + raw_offset */
    bool *has_notes;                  /* integer forward: backward reads z and raw on these grids */
    qat_note_grid z_grid, raw_grid;
};

static size_t place(const qat_node *node, struct work *w)
{
    const qat_shape *shape = &node->inputs[FOLDT_Z]->shape;
    int const channels = qat_shape_channels(shape);
    size_t const rows = qat_shape_count(shape) / (size_t)channels;
    char *scratch = node->scratch;
    size_t const bn_bytes = (qat_bn_place(&w->bn, scratch, rows, channels) + 63) / 64 * 64;
    qat_carve carve = {scratch ? scratch + bn_bytes : NULL, 0};
    qat_real **all[] = {&w->z_mean,        &w->slope,          &w->offset,
                        &w->z_slope,       &w->z_offset,       &w->raw_slope,
                        &w->raw_offset,    &w->z_grid.step,    &w->z_grid.least,
                        &w->raw_grid.step, &w->raw_grid.least, &w->raw_grid.per_step};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        *all[i] = qat_carve_take(&carve, qat_wide_pattern((size_t)channels), sizeof(qat_real));
    w->has_notes = qat_carve_take(&carve, 1, sizeof *w->has_notes);
    w->z_grid.channels = w->raw_grid.channels = channels;
    w->z_grid.per_step = NULL;
    return bn_bytes + carve.used;
}

static qat_status fold_shape(qat_node *node, qat_error *err)
{
    struct work w;
    char a[64], b[64];
    const qat_shape *z = &node->inputs[FOLDT_Z]->shape;
    const qat_node *raw = raw_of(node);
    int const channels = qat_shape_channels(z);
    if (z->rank < 2)
        return qat_fail(err, QAT_ERR_SHAPE, "input %s has no dimension behind the batch",
                        qat_shape_text(z, a));
    for (int i = FOLDT_GAMMA; i <= FOLDT_EMA_VARIANCE; i++)
        if (qat_shape_count(&node->inputs[i]->shape) != (size_t)channels)
            return qat_fail(err, QAT_ERR_SHAPE, "'%s' is %s, the input has %d channels",
                            node->inputs[i]->name, qat_shape_text(&node->inputs[i]->shape, a),
                            channels);
    if (raw && !qat_shape_equal(z, &raw->shape))
        return qat_fail(err, QAT_ERR_SHAPE, "folded output %s, raw output %s", qat_shape_text(z, a),
                        qat_shape_text(&raw->shape, b));
    if (node->attrs[FOLDT_FREEZE] < node->attrs[FOLDT_DELAY])
        return qat_fail(err, QAT_ERR_ARGUMENT, "freeze %.0f comes before delay %.0f",
                        node->attrs[FOLDT_FREEZE], node->attrs[FOLDT_DELAY]);
    node->shape = *z;
    node->scratch_bytes = place(node, &w);
    return QAT_OK;
}

static bool fold_reads(const qat_node *node, int input, const qat_run *run)
{
    return input != FOLDT_RAW || phase_of(node, run) == BATCH;
}

static const qat_real *input_value(const qat_node *node, int input)
{
    return node->inputs[input]->value;
}

/** one_pass: can m and v be told from z? */
static bool tells_statistics(qat_real gamma)
{
    return QAT_FABS(gamma) >= (qat_real)1e-6;
}

/** s of one channel. */
static qat_real std_of(const qat_node *node, int c)
{
    return qat_fold_std(input_value(node, FOLDT_EMA_VARIANCE)[c], node->attrs[FOLDT_EPSILON]);
}

/* ------------------------------------------------------------------ loops over values */

/** A loop over values [at, at + n) of [rows, channels]: where its coefficients begin. */
struct stretch {
    size_t first, wide, n;
};

static struct stretch stretch_of(const struct work *w, size_t at, size_t n)
{
    size_t const channels = (size_t)w->bn.channels;
    return (struct stretch){at % channels, qat_wide_of(channels), n};
}

/** out = in slope + offset */
QAT_VECTOR static void affine(struct stretch s, const qat_real *restrict in,
                              const qat_real *restrict slope, const qat_real *restrict offset,
                              qat_real *restrict out)
{
    slope += s.first, offset += s.first;
    for (size_t i = 0; i < s.n; i += s.wide, in += s.wide, out += s.wide)
        for (size_t c = 0; c < (s.n - i < s.wide ? s.n - i : s.wide); c++)
            out[c] = in[c] * slope[c] + offset[c];
}

/** out += in slope + offset */
QAT_VECTOR static void add_affine(struct stretch s, const qat_real *restrict in,
                                  const qat_real *restrict slope, const qat_real *restrict offset,
                                  qat_real *restrict out)
{
    slope += s.first, offset += s.first;
    for (size_t i = 0; i < s.n; i += s.wide, in += s.wide, out += s.wide)
        for (size_t c = 0; c < (s.n - i < s.wide ? s.n - i : s.wide); c++)
            out[c] += in[c] * slope[c] + offset[c];
}

/** g *= slope */
QAT_VECTOR static void scale(struct stretch s, const qat_real *restrict slope, qat_real *restrict g)
{
    slope += s.first;
    for (size_t i = 0; i < s.n; i += s.wide, g += s.wide)
        for (size_t c = 0; c < (s.n - i < s.wide ? s.n - i : s.wide); c++)
            g[c] *= slope[c];
}

/** g = g slope + (z z_slope + z_offset) */
QAT_VECTOR static void through_batch(struct stretch s, const struct work *w,
                                     const qat_real *restrict z, qat_real *restrict g)
{
    const qat_real *restrict slope = w->slope + s.first;
    const qat_real *restrict z_slope = w->z_slope + s.first;
    const qat_real *restrict z_offset = w->z_offset + s.first;
    for (size_t i = 0; i < s.n; i += s.wide, z += s.wide, g += s.wide)
        for (size_t c = 0; c < (s.n - i < s.wide ? s.n - i : s.wide); c++)
            g[c] = g[c] * slope[c] + (z[c] * z_slope[c] + z_offset[c]);
}

/** A pass over a node's values. */
struct pass {
    const qat_node *node;
    const struct work *w;
    enum phase phase;
};

static size_t values_of(const struct work *w)
{
    return w->bn.rows * (size_t)w->bn.channels;
}

/** Notes of z, then of raw; NULL: values hold them, z's as notes leave them. */
static uint16_t *notes_of(const struct pass *p, int input)
{
    uint16_t *notes = *p->w->has_notes ? qat_node_notes(p->node) : NULL;
    return notes && input == FOLDT_RAW ? notes + values_of(p->w) : notes;
}

/** z [at, at + n): its value, or made in `room`. */
static const qat_real *z_at(const struct pass *p, size_t at, size_t n, qat_real *room)
{
    const uint16_t *notes = notes_of(p, FOLDT_Z);
    if (!notes)
        return input_value(p->node, FOLDT_Z) + at;
    qat_note_read(&p->w->z_grid, notes + at, at, n, room);
    return room;
}

/** The same of raw, for a strip. */
static const qat_real *raw_at(const struct pass *p, size_t at, size_t n, qat_real *room)
{
    uint16_t strip[QAT_STRIP_VALUES];
    const uint16_t *notes = notes_of(p, FOLDT_RAW);
    const qat_real *raw = input_value(p->node, FOLDT_RAW) + at;
    if (!*p->w->has_notes)
        return raw;
    if (!notes)
        qat_note_reals(&p->w->raw_grid, raw, at, n, strip);
    qat_note_read(&p->w->raw_grid, notes ? notes + at : strip, at, n, room);
    return room;
}

static void forward_strip(void *context, size_t at, size_t n)
{
    const struct pass *p = context;
    qat_real room[QAT_STRIP_VALUES];
    qat_real *y = qat_tail_last(p->node)->value + at;
    affine(stretch_of(p->w, at, n), z_at(p, at, n, room), p->w->slope, p->w->offset, y);
    qat_tail_forward(p->node, at, y, n);
}

/** Mask dy by the node's tail, whose input is made again. */
static void mask_strip(const struct pass *p, const qat_real *z, size_t at, size_t n)
{
    qat_real y[QAT_STRIP_VALUES];
    affine(stretch_of(p->w, at, n), z, p->w->slope, p->w->offset, y);
    qat_tail_backward(p->node, y, p->node->grad + at, n);
}

/** Before dy and z are summed. */
static const qat_real *mask_strips(void *context, size_t at, size_t n, qat_real *room)
{
    const struct pass *p = context;
    const qat_real *z = z_at(p, at, n, room);
    for (size_t i = 0; p->node->tail && i < n; i += QAT_STRIP_VALUES)
        mask_strip(p, z + i, at + i, n - i < QAT_STRIP_VALUES ? n - i : QAT_STRIP_VALUES);
    return z;
}

/** dz = slope dy (slope is 1 when frozen), and in one_pass's BATCH + z_slope z + z_offset. */
static void z_strip(void *context, size_t at, size_t n)
{
    const struct pass *p = context;
    const qat_node *z = p->node->inputs[FOLDT_Z];
    const qat_real *dy = p->node->grad + at;
    struct stretch const s = stretch_of(p->w, at, n);
    qat_real sum[QAT_STRIP_VALUES], room[QAT_STRIP_VALUES];
    qat_real *g = qat_grad_is_new(p->node, FOLDT_Z) ? z->grad + at : sum;
    if (g != dy)
        memcpy(g, dy, n * sizeof *g);
    if (p->phase == BATCH && raw_of(p->node))
        scale(s, p->w->slope, g);
    else if (p->phase == BATCH)
        through_batch(s, p->w, z_at(p, at, n, room), g);
    if (g == sum)
        qat_vector_add(z->grad + at, sum, n);
}

/** draw = raw_slope raw + raw_offset */
static void raw_strip(void *context, size_t at, size_t n)
{
    const struct pass *p = context;
    const qat_node *raw = raw_of(p->node);
    struct stretch const s = stretch_of(p->w, at, n);
    qat_real room[QAT_STRIP_VALUES];
    const qat_real *value = raw_at(p, at, n, room);
    if (qat_grad_is_new(p->node, FOLDT_RAW))
        affine(s, value, p->w->raw_slope, p->w->raw_offset, raw->grad + at);
    else
        add_affine(s, value, p->w->raw_slope, p->w->raw_offset, raw->grad + at);
}

/* ------------------------------------------------------------------ forward */

/** bn's mean, variance and inv_std of the raw output, from those of z. */
static void one_pass_statistics(const qat_node *node, struct work *w)
{
    for (int c = 0; c < w->bn.channels; c++) {
        qat_real const gamma = input_value(node, FOLDT_GAMMA)[c];
        bool const tells = tells_statistics(gamma);
        qat_real const ratio = tells ? std_of(node, c) / gamma : 0;
        w->z_mean[c] = w->bn.mean[c];
        w->bn.mean[c] = tells ? ratio * w->bn.mean[c] : input_value(node, FOLDT_EMA_MEAN)[c];
        w->bn.variance[c] =
            tells ? ratio * ratio * w->bn.variance[c] : input_value(node, FOLDT_EMA_VARIANCE)[c];
        w->bn.inv_std[c] = 1 / qat_fold_std(w->bn.variance[c], node->attrs[FOLDT_EPSILON]);
    }
}

/** Given mean and variance of raw, or of z. */
static void batch_coefficients(const qat_node *node, struct work *w)
{
    const qat_node *raw = raw_of(node);
    if (!raw)
        one_pass_statistics(node, w);
    for (int c = 0; c < w->bn.channels; c++) {
        qat_real const gamma = input_value(node, FOLDT_GAMMA)[c];
        qat_real const beta = input_value(node, FOLDT_BETA)[c];
        w->slope[c] = std_of(node, c) * w->bn.inv_std[c];
        w->offset[c] = raw ? beta - gamma * w->bn.inv_std[c] * w->bn.mean[c]
                           : beta - w->slope[c] * w->z_mean[c]; /* gamma m = s E[z] */
    }
}

static void frozen_coefficients(const qat_node *node, struct work *w)
{
    for (int c = 0; c < w->bn.channels; c++) {
        w->slope[c] = 1;
        w->offset[c] =
            qat_fold_offset(input_value(node, FOLDT_GAMMA)[c], input_value(node, FOLDT_BETA)[c],
                            input_value(node, FOLDT_EMA_MEAN)[c],
                            input_value(node, FOLDT_EMA_VARIANCE)[c], node->attrs[FOLDT_EPSILON]);
    }
}

/** Two coefficients, set by channel. */
static void lay(const struct work *w, qat_real *slope, qat_real *offset)
{
    qat_wide_lay(slope, (size_t)w->bn.channels, slope);
    qat_wide_lay(offset, (size_t)w->bn.channels, offset);
}

static void use_batch(const qat_node *node, struct work *w, const qat_real *x)
{
    qat_bn_use_batch(&w->bn, x, node->attrs[FOLDT_EPSILON]);
}

static void lay_coefficients(const qat_node *node, struct work *w, enum phase phase)
{
    if (phase == BATCH)
        batch_coefficients(node, w);
    else
        frozen_coefficients(node, w);
    lay(w, w->slope, w->offset);
}

static void fold_forward(qat_node *node, const qat_run *run)
{
    struct work w;
    enum phase const phase = phase_of(node, run);
    struct pass p = {node, &w, phase};
    place(node, &w);
    *w.has_notes = false;
    if (phase == PLAIN) {
        if (plain_uses_batch(node))
            qat_bn_use_batch(&w.bn, input_value(node, FOLDT_Z), node->attrs[FOLDT_EPSILON]);
        else
            qat_bn_use_averages(&w.bn, input_value(node, FOLDT_EMA_MEAN),
                                input_value(node, FOLDT_EMA_VARIANCE), node->attrs[FOLDT_EPSILON]);
        qat_bn_forward(&w.bn, node, input_value(node, FOLDT_GAMMA), input_value(node, FOLDT_BETA));
        return;
    }
    if (phase == BATCH)
        use_batch(node, &w, raw_of(node) ? raw_of(node)->value : input_value(node, FOLDT_Z));
    lay_coefficients(node, &w, phase);
    qat_run_strips(values_of(&w), forward_strip, &p);
}

/* ------------------------------------------------------------------ integer forward */

bool qat_bn_fold_wants_z(const qat_node *bn_fold_train, const qat_run *run)
{
    return phase_of(bn_fold_train, run) == BATCH && !raw_of(bn_fold_train);
}

static void note_raw_strip(void *context, size_t at, size_t n)
{
    const struct pass *p = context;
    qat_note_reals(&p->w->raw_grid, input_value(p->node, FOLDT_RAW) + at, at, n,
                   notes_of(p, FOLDT_RAW) + at);
}

static void note_raw(const qat_node *node, struct work *w)
{
    struct pass p = {node, w, BATCH};
    qat_note_set_reals(&w->raw_grid, input_value(node, FOLDT_RAW), w->bn.rows,
                       (qat_real *)(void *)w->bn.partial);
    if (notes_of(&p, FOLDT_RAW))
        qat_run_strips(values_of(w), note_raw_strip, &p);
}

qat_fold_line qat_bn_fold_begin(qat_node *bn_fold_train, const qat_run *run, const double *z_mean,
                                const double *z_variance)
{
    struct work w;
    enum phase const phase = phase_of(bn_fold_train, run);
    place(bn_fold_train, &w);
    *w.has_notes = true;
    if (qat_bn_fold_wants_z(bn_fold_train, run))
        for (int c = 0; c < w.bn.channels; c++) {
            w.bn.mean[c] = (qat_real)z_mean[c];
            w.bn.variance[c] = (qat_real)z_variance[c];
        }
    else if (phase == BATCH) {
        use_batch(bn_fold_train, &w, raw_of(bn_fold_train)->value);
        note_raw(bn_fold_train, &w);
    }
    lay_coefficients(bn_fold_train, &w, phase);
    return (qat_fold_line){w.slope, w.offset, w.z_grid, qat_node_notes(bn_fold_train)};
}

void qat_bn_fold_values(qat_node *bn_fold_train)
{
    struct work w;
    struct pass p = {bn_fold_train, &w, BATCH};
    place(bn_fold_train, &w);
    qat_run_strips(values_of(&w), forward_strip, &p);
}

/* ------------------------------------------------------------------ backward */

static void add_channel(const qat_node *node, int input, int c, double value)
{
    if (node->inputs[input]->grad)
        node->inputs[input]->grad[c] += (qat_real)value;
}

/*
 * With i = 1 / sB, D = sum dy, P = sum dy z, N rows:
 *     y = s i z + beta - gamma m i
 *     dbeta = D      dgamma = -m i D      di = s P - gamma m D      dv = -i^3 / 2 di
 *     dm = -gamma i D      draw = dm / N + 2 dv (raw - m) / N      dz = s i dy
 */
static void two_pass_gradients(const qat_node *node, struct work *w)
{
    double const rows = (double)w->bn.rows;
    for (int c = 0; c < w->bn.channels; c++) {
        double const i = (double)w->bn.inv_std[c], m = (double)w->bn.mean[c];
        double const gamma = (double)input_value(node, FOLDT_GAMMA)[c];
        double const d = w->bn.sum[c], p = w->bn.sum_product[c];
        double const dv = -0.5 * i * i * i * ((double)std_of(node, c) * p - gamma * m * d);
        add_channel(node, FOLDT_BETA, c, d);
        add_channel(node, FOLDT_GAMMA, c, -m * i * d);
        w->raw_slope[c] = (qat_real)(2 * dv / rows);
        w->raw_offset[c] = (qat_real)((-gamma * i * d - 2 * dv * m) / rows);
    }
}

/*
 * With mz = E[z] and vz = Var[z], v = s^2 vz / gamma^2:
 *     y = s i (z - mz) + beta
 *     dbeta = D      dv = -i^3 / 2 s (P - mz D)      dgamma = -2 dv v / gamma
 *     dz = s i (dy - D / N) + 2 dv (s / gamma)^2 (z - mz) / N
 * and without the terms of dv where gamma is almost 0.
 */
static void one_pass_gradients(const qat_node *node, struct work *w)
{
    double const rows = (double)w->bn.rows;
    for (int c = 0; c < w->bn.channels; c++) {
        double const i = (double)w->bn.inv_std[c], mz = (double)w->z_mean[c];
        double const gamma = (double)input_value(node, FOLDT_GAMMA)[c];
        bool const tells = tells_statistics(input_value(node, FOLDT_GAMMA)[c]);
        double const s = (double)std_of(node, c);
        double const d = w->bn.sum[c], p = w->bn.sum_product[c];
        double const ratio = tells ? s / gamma : 0;
        double const dv = -0.5 * i * i * i * s * (p - mz * d);
        double const slope = 2 * dv * ratio * ratio / rows;
        add_channel(node, FOLDT_BETA, c, d);
        if (tells)
            add_channel(node, FOLDT_GAMMA, c, -2 * dv * (double)w->bn.variance[c] / gamma);
        w->z_slope[c] = (qat_real)slope;
        w->z_offset[c] = (qat_real)(-s * i * d / rows - slope * mz);
    }
}

static void frozen_gradients(const qat_node *node, struct work *w)
{
    for (int c = 0; c < w->bn.channels; c++) {
        double const m = (double)input_value(node, FOLDT_EMA_MEAN)[c];
        add_channel(node, FOLDT_BETA, c, w->bn.sum[c]);
        add_channel(node, FOLDT_GAMMA, c, -m / (double)std_of(node, c) * w->bn.sum[c]);
    }
}

/** Gradients of z and raw, given the coefficients of this phase. */
static void value_gradients(struct pass *p, const struct work *w)
{
    const qat_node *z = p->node->inputs[FOLDT_Z], *raw = raw_of(p->node);
    bool const in_place = qat_grad_is_new(p->node, FOLDT_Z) && z->grad == p->node->grad;
    if (p->phase == BATCH && !raw)
        lay(w, w->z_slope, w->z_offset);
    if (z->grad && !(p->phase == FROZEN && in_place))
        qat_run_strips(values_of(w), z_strip, p);
    if (p->phase != BATCH || !raw || !raw->grad)
        return;
    lay(w, w->raw_slope, w->raw_offset);
    qat_run_strips(values_of(w), raw_strip, p);
}

/** Sums of dy, masked, and in BATCH of dy z. */
static void sum_gradient(struct pass *p, struct work *w)
{
    qat_columns const columns = {.a = p->node->grad,
                                 .b = p->phase == BATCH ? input_value(p->node, FOLDT_Z) : NULL,
                                 .rows = w->bn.rows,
                                 .columns = w->bn.channels,
                                 .prepare = mask_strips,
                                 .context = p};
    qat_column_sums(&columns, w->bn.partial, w->bn.sum, w->bn.sum_product);
}

static void fold_backward(qat_node *node, const qat_run *run)
{
    struct work w;
    struct pass p = {node, &w, phase_of(node, run)};
    place(node, &w);
    if (p.phase == PLAIN) {
        qat_bn_backward(&w.bn, node, plain_uses_batch(node), node->inputs[FOLDT_GAMMA]->grad,
                        node->inputs[FOLDT_BETA]->grad);
        return;
    }
    sum_gradient(&p, &w);
    if (p.phase == FROZEN)
        frozen_gradients(node, &w);
    else if (raw_of(node))
        two_pass_gradients(node, &w);
    else
        one_pass_gradients(node, &w);
    value_gradients(&p, &w);
}

static void fold_update(qat_node *node, const qat_run *run)
{
    struct work w;
    if (phase_of(node, run) == FROZEN || !plain_uses_batch(node))
        return;
    place(node, &w);
    qat_bn_update(&w.bn, node->attrs[FOLDT_MOMENTUM], node->inputs[FOLDT_EMA_MEAN]->value,
                  node->inputs[FOLDT_EMA_VARIANCE]->value, node->inputs[FOLDT_EMA_STEPS]->value);
}

static const qat_attr_def fold_attrs[] = {
    [FOLDT_EPSILON] = {"epsilon", QAT_ATTR_REAL, 1e-3, 1e-12, 1, NULL, "the batch norm's"},
    [FOLDT_MOMENTUM] = {"momentum", QAT_ATTR_REAL, 0.99, 0, 1, NULL, "the batch norm's"},
    [FOLDT_DELAY] = {"delay", QAT_ATTR_INT, 0, 0, QAT_NEVER, NULL,
                     "steps of plain batch norm, before weights are folded"},
    [FOLDT_FREEZE] = {"freeze", QAT_ATTR_INT, QAT_NEVER, 0, QAT_NEVER, NULL,
                      "steps before the averages take the batch's place"},
    [FOLDT_ATTRS] = {NULL, QAT_ATTR_INT, 0, 0, 0, NULL, NULL},
};

const qat_op qat_op_bn_fold_train = {
    .name = "bn_fold_train",
    .meaning = "batch norm behind an op whose weights were folded",
    .min_inputs = FOLDT_INPUTS - 1,
    .max_inputs = FOLDT_INPUTS,
    .attrs = fold_attrs,
    .shape = fold_shape,
    .reads = fold_reads,
    .forward = fold_forward,
    .backward = fold_backward,
    .update = fold_update,
    .grads = QAT_GRADS_IN_PLACE,
    .runs_tail = qat_runs_any_tail,
};
