/**
 * Integer forward while batch norm uses the statistics of the batch. The codes of conv - batch norm
 * - ReLU are compared with a scalar computation from the input's codes and the parameters, which
 * shares only the rounding functions. Both folds and both layouts are tested, with and without a
 * bias before the batch norm. The test also looks at what backward reads in place of real numbers,
 * and at the memory for it.
 *
 *     y = slope (S1 S2 sum + b) + offset,  slope = s / sB      M = slope S1 S2 / S3
 */
#include "autograd/loops/wide.h"
#include "common/common.h"
#include "common/suite.h"
#include "fold/fold_notes.h"
#include "qat/quant.h"
#include "qat/rounding.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 4, SIDE = 6, IN = 3, OUT = 5, KERNEL = 3, WIDE = SIDE - KERNEL + 1 };
enum { ROWS = BATCH * WIDE * WIDE, DEPTH = KERNEL * KERNEL * IN };

static const double EPSILON = 1e-3;

struct net {
    qat_registry *registry;
    qat_graph *plain, *training;
    qat_node *loss;
    bool has_bias;
};

static qat_quant_options options_of(bool one_pass, qat_layout layout)
{
    qat_quant_options o = qat_quant_defaults();
    o.bn_fold = one_pass ? QAT_FOLD_ONE_PASS : QAT_FOLD_TWO_PASS;
    o.layout = layout;
    o.forward = QAT_FORWARD_INTEGER;
    return o;
}

static void build_with(struct net *n, const qat_quant_options *options, bool has_bias)
{
    qat_error err;
    qat_quant_options const o = *options;
    n->has_bias = has_bias;
    ck_assert_int_eq(qat_registry_create(&n->registry, &err), QAT_OK);
    ck_assert_int_eq(qat_graph_create(&n->plain, n->registry, &err), QAT_OK);
    qat_node *x = qat_graph_input(n->plain, "x", QAT_SHAPE(BATCH, SIDE, SIDE, IN));
    qat_node *y = qat_apply1(n->plain, "conv2d", "conv", "filters=5 kernel=3 padding=valid", x);
    if (has_bias)
        y = qat_apply1(n->plain, "bias", "bias", "", y);
    y = qat_apply1(n->plain, "batch_norm", "bn", "epsilon=0.001", y);
    y = qat_apply1(n->plain, "relu", "relu", "", y);
    qat_graph_output(n->plain, y);
    qat_apply1(n->plain, "l2_loss", "loss", "", y);
    ck_assert_int_eq(qat_create_training_graph(&n->training, n->plain, &o, &err), QAT_OK);
    ck_assert_msg(!qat_graph_plan(n->training, BATCH, QAT_PLAN_TRAIN_KEEP, &err), "%s",
                  err.message);
    qat_graph_init_params(n->training, 11);
    n->loss = qat_graph_find(n->training, "loss");
}

static void build(struct net *n, bool one_pass, qat_layout layout, bool has_bias)
{
    qat_quant_options const o = options_of(one_pass, layout);
    build_with(n, &o, has_bias);
}

static void tear_down(struct net *n)
{
    qat_graph_free(n->training);
    qat_graph_free(n->plain);
    qat_registry_free(n->registry);
}

static float *value(const struct net *n, const char *name)
{
    qat_node *node = qat_graph_find(n->training, name);
    ck_assert_msg(node != NULL, "no node %s", name);
    return node->value;
}

/** Values that differ by step and place. */
static void fill(float *to, size_t count, int step, float scale, float offset)
{
    for (size_t i = 0; i < count; i++)
        to[i] = offset + scale * (float)sin(1.7 * (double)i + 0.9 * step + 0.3);
}

/* ------------------------------------------------------------------ the scalar computation */

/** What export would hold of the weights, folded with the averages. */
struct weights {
    int32_t difference[OUT][DEPTH]; /* q - Z */
    float scale[OUT];
};

static float folded(const struct net *n, int o, int k)
{
    float const s = sqrtf(value(n, "bn/ema_variance")[o] + (float)EPSILON);
    return value(n, "bn/gamma")[o] / s * value(n, "conv/weights")[o * DEPTH + k];
}

static void quantize_weights(const struct net *n, qat_layout layout, struct weights *w)
{
    float min = 0, max = 0;
    for (int i = 0; i < OUT * DEPTH; i++) {
        min = fminf(min, folded(n, i / DEPTH, i % DEPTH));
        max = fmaxf(max, folded(n, i / DEPTH, i % DEPTH));
    }
    for (int o = 0; o < OUT; o++) {
        float most = 0;
        for (int k = 0; k < DEPTH; k++)
            most = fmaxf(most, fabsf(folded(n, o, k)));
        bool const per_channel = layout == QAT_LAYOUT_INT8;
        qat_qparams const p = per_channel ? qat_choose_symmetric(most, 127)
                                          : qat_choose_qparams(min, max, 1, 255, true);
        w->scale[o] = p.scale;
        for (int k = 0; k < DEPTH; k++)
            w->difference[o][k] = (per_channel ? qat_code_per_channel(&p, folded(n, o, k))
                                               : qat_code(&p, folded(n, o, k))) -
                                  p.zero_point;
    }
}

static int32_t sum_at(const uint8_t *x, const qat_qparams *p, const int32_t *w, int row)
{
    int const at = row / WIDE / WIDE * SIDE * SIDE + row / WIDE % WIDE * SIDE + row % WIDE;
    int32_t sum = 0;
    for (int k = 0; k < DEPTH; k++) {
        int const ky = k / IN / KERNEL, kx = k / IN % KERNEL;
        uint8_t const byte = x[(at + ky * SIDE + kx) * IN + k % IN];
        sum += ((p->lo < 0 ? (int8_t)byte : byte) - p->zero_point) * w[k];
    }
    return sum;
}

struct channel {
    float slope, offset, bias;
};

/** Mean and biased variance of n values, stride apart, in double. */
static void moments(const float *v, int stride, double *mean, double *variance)
{
    double sum = 0, squares = 0;
    for (int r = 0; r < ROWS; r++) {
        sum += (double)v[r * stride];
        squares += (double)v[r * stride] * (double)v[r * stride];
    }
    *mean = sum / ROWS;
    *variance = squares / ROWS - *mean * *mean;
}

static struct channel two_pass(const struct net *n, int o)
{
    double mean, variance;
    moments(value(n, n->has_bias ? "bias/raw" : "conv/raw") + o, OUT, &mean, &variance);
    float const inv = 1 / sqrtf((float)variance + (float)EPSILON);
    float const s = sqrtf(value(n, "bn/ema_variance")[o] + (float)EPSILON);
    float const gamma = value(n, "bn/gamma")[o], beta = value(n, "bn/beta")[o];
    return (struct channel){s * inv, beta - gamma * inv * (float)mean, 0};
}

static struct channel one_pass(const struct net *n, int o, const int32_t *sums, float scale,
                               float bias)
{
    double sum = 0, squares = 0;
    for (int r = 0; r < ROWS; r++) {
        sum += sums[r];
        squares += (double)sums[r] * sums[r];
    }
    double const mean = sum / ROWS, each = (double)scale;
    float const z_mean = (float)(each * mean + (double)bias);
    float const z_variance = (float)(each * each * (squares / ROWS - mean * mean));
    float const s = sqrtf(value(n, "bn/ema_variance")[o] + (float)EPSILON);
    float const ratio = s / value(n, "bn/gamma")[o];
    float const slope = s * (1 / sqrtf(ratio * ratio * z_variance + (float)EPSILON));
    return (struct channel){slope, value(n, "bn/beta")[o] - slope * z_mean, 0};
}

static void check_channel(const struct net *n, int o, bool is_one_pass, const struct weights *w)
{
    qat_qparams x_p, y_p, before;
    const uint8_t *x = qat_integer_codes(qat_graph_find(n->training, "x/q"), &x_p);
    const uint8_t *y = qat_integer_codes(qat_graph_find(n->training, "relu/q"), &y_p);
    int32_t sums[ROWS], mult;
    int shift;
    ck_assert(x && y);
    ck_assert_int_eq(qat_node_qparams(qat_graph_find(n->training, "relu/q"), &before, NULL),
                     QAT_OK);
    ck_assert(before.scale == y_p.scale && before.zero_point == y_p.zero_point);
    for (int r = 0; r < ROWS; r++)
        sums[r] = sum_at(x, &x_p, w->difference[o], r);
    double const scale = (double)x_p.scale * (double)w->scale[o];
    float const s = sqrtf(value(n, "bn/ema_variance")[o] + (float)EPSILON);
    float const b = n->has_bias ? value(n, "bn/gamma")[o] / s * value(n, "bias/bias")[o] : 0;
    struct channel const c = is_one_pass ? one_pass(n, o, sums, (float)scale, b) : two_pass(n, o);
    double const slope = (double)c.slope;
    qat_quantize_multiplier(scale / (double)y_p.scale * slope, &mult, &shift);
    int32_t const bias = (int32_t)round((double)(c.slope * b + c.offset) / (scale * slope));
    for (int r = 0; r < ROWS; r++) {
        int32_t const code = qi_clamp(qi_requantize(sums[r] + bias, mult, shift) + y_p.zero_point,
                                      y_p.zero_point, y_p.hi);
        ck_assert_int_eq(y_p.lo < 0 ? (int8_t)y[r * OUT + o] : y[r * OUT + o], code);
    }
}

START_TEST(test_codes_are_the_scalar_ones)
{
    bool const is_one_pass = _i & 1;
    qat_layout const layout = _i & 2 ? QAT_LAYOUT_INT8 : QAT_LAYOUT_UINT8;
    struct net n;
    struct weights w;
    build(&n, is_one_pass, layout, _i & 4);
    fill(value(&n, "bn/gamma"), OUT, 0, 0.4F, 1.1F);
    fill(value(&n, "bn/beta"), OUT, 1, 0.5F, 0.2F);
    if (n.has_bias)
        fill(value(&n, "bias/bias"), OUT, 2, 0.3F, 0.1F);
    for (int step = 0; step < 6; step++) {
        qat_run const run = {.mode = QAT_MODE_TRAIN, .step = step};
        fill(value(&n, "x"), (size_t)(BATCH * SIDE * SIDE * IN), step, 0.9F, 0.1F * (float)step);
        quantize_weights(&n, layout, &w);
        qat_graph_forward(n.training, &run);
        ck_assert_int_eq(qat_graph_run_status(n.training, NULL), QAT_OK);
        for (int o = 0; step > 0 && o < OUT; o++) /* from the first update on, its range is known */
            check_channel(&n, o, is_one_pass, &w);
        qat_graph_update(n.training, &run);
    }
    tear_down(&n);
}
END_TEST

/** The loss reads the real numbers for which the codes stand. */
START_TEST(test_values_are_those_of_codes)
{
    struct net n;
    qat_qparams p;
    build(&n, true, QAT_LAYOUT_UINT8, false);
    fill(value(&n, "x"), (size_t)(BATCH * SIDE * SIDE * IN), 0, 0.9F, 0);
    qat_graph_forward(n.training, &(qat_run){.mode = QAT_MODE_TRAIN});
    const uint8_t *y = qat_integer_codes(qat_graph_find(n.training, "relu/q"), &p);
    ck_assert_ptr_nonnull(y);
    for (int i = 0; i < ROWS * OUT; i++)
        ck_assert(value(&n, "relu/q")[i] == qat_real_of(&p, y[i]));
    tear_down(&n);
}
END_TEST

/** A plan that keeps all values has those of a convolution before its bias and batch norm, too. */
START_TEST(test_values_before_a_bias)
{
    struct net n;
    build(&n, _i, QAT_LAYOUT_INT8, true);
    fill(value(&n, "x"), (size_t)(BATCH * SIDE * SIDE * IN), 0, 0.9F, 0);
    fill(value(&n, "bias/bias"), OUT, 2, 0.3F, 0.1F);
    qat_graph_forward(n.training, &(qat_run){.mode = QAT_MODE_TRAIN});
    ck_assert_ptr_null(qat_graph_find_nonfinite(n.training));
    for (int i = 0; i < ROWS * OUT; i++) {
        float const bias = value(&n, "bias/bias")[i % OUT];
        ck_assert_float_eq_tol(value(&n, "conv")[i] + bias, value(&n, "bias")[i], 1e-3F);
    }
    tear_down(&n);
}
END_TEST

/* ------------------------------------------------------------------ what backward reads */

enum { CHANNELS = 3, NOTED_ROWS = 1000, NOTED = CHANNELS * NOTED_ROWS };

struct notes {
    qat_note_grid grid;
    qat_real step[QAT_WIDE_VALUES + CHANNELS], least[QAT_WIDE_VALUES + CHANNELS];
    qat_real per_step[QAT_WIDE_VALUES + CHANNELS];
    uint16_t q[NOTED];
    qat_real read[NOTED];
};

static void begin_notes(struct notes *n)
{
    n->grid = (qat_note_grid){CHANNELS, n->step, n->least, n->per_step};
}

/**
 * Sums whose range fits into 16 bits are noted exactly. Others are noted within half of what is cut
 * off.
 */
START_TEST(test_notes_of_sums)
{
    static const int32_t least[CHANNELS] = {-7, -40000, INT32_MIN + 1};
    static const int32_t most[CHANNELS] = {UINT16_MAX - 7, 90000, INT32_MAX};
    static const double cut[CHANNELS] = {0, 1.5, 65535 / 2.0}; /* shifts 0, 2, 16 */
    static int32_t sums[NOTED], smallest[QAT_WIDE_VALUES + CHANNELS],
        shift[QAT_WIDE_VALUES + CHANNELS];
    static struct notes n;
    qat_sum_range const range = {smallest, shift};
    begin_notes(&n);
    for (int c = 0; c < CHANNELS; c++) {
        qat_note_set_sums(&n.grid, &range, c, least[c], most[c], 1, 0);
        for (int r = 0; r < NOTED_ROWS; r++)
            sums[r * CHANNELS + c] =
                (int32_t)(least[c] + ((int64_t)most[c] - least[c]) * r / (NOTED_ROWS - 1));
    }
    qat_note_lay_sums(&n.grid, &range);
    qat_note_sums(&n.grid, &range, sums + 1, 1, NOTED - 1, n.q);
    qat_note_read(&n.grid, n.q, 1, NOTED - 1, n.read);
    for (int i = 1; i < NOTED; i++) {
        double const float_error = fabs((double)sums[i]) * 1.2e-7;
        ck_assert_double_le(fabs((double)n.read[i - 1] - sums[i]),
                            cut[i % CHANNELS] + 2 * float_error);
    }
}
END_TEST

/** Reals are noted within half a step of 1 / 65535 of their channel's width. */
START_TEST(test_notes_of_reals)
{
    static const float width[CHANNELS] = {1e-3F, 0, 5e6F}, from[CHANNELS] = {-4, 7, -1e6F};
    static float x[NOTED];
    static qat_real partial[64 * QAT_WIDE_VALUES];
    static struct notes n;
    begin_notes(&n);
    for (int i = 0; i < NOTED; i++)
        x[i] = from[i % CHANNELS] + width[i % CHANNELS] * (float)(0.5 + 0.5 * sin(1.7 * i));
    qat_note_set_reals(&n.grid, x, NOTED_ROWS, partial);
    qat_note_reals(&n.grid, x, 0, NOTED, n.q);
    qat_note_read(&n.grid, n.q, 0, NOTED, n.read);
    for (int i = 0; i < NOTED; i++) {
        double const float_error = fabs((double)x[i]) * 1.2e-7;
        ck_assert_double_le(fabs((double)(n.read[i] - x[i])),
                            0.5 / 65535 * (double)width[i % CHANNELS] + 2 * float_error);
    }
}
END_TEST

/** Bytes of a training step of eight layers, in float or on integers. */
static size_t arena_bytes(const qat_quant_options *o)
{
    struct net n = {0};
    qat_error err;
    char name[16];
    ck_assert_int_eq(qat_registry_create(&n.registry, &err), QAT_OK);
    ck_assert_int_eq(qat_graph_create(&n.plain, n.registry, &err), QAT_OK);
    qat_node *y = qat_graph_input(n.plain, "x", QAT_SHAPE(BATCH, 64, 64, 1));
    for (int i = 0; i < 8; i++) {
        snprintf(name, sizeof name, "conv%d", i);
        y = qat_apply1(n.plain, "conv2d", name, "filters=16 kernel=1", y);
        snprintf(name, sizeof name, "bn%d", i);
        y = qat_apply1(n.plain, "batch_norm", name, "", y);
        snprintf(name, sizeof name, "relu%d", i);
        y = qat_apply1(n.plain, "relu", name, "", y);
    }
    qat_apply1(n.plain, "l2_loss", "loss", "",
               qat_apply1(n.plain, "global_average_pool", "p", "", y));
    if (o)
        ck_assert_int_eq(qat_create_training_graph(&n.training, n.plain, o, &err), QAT_OK);
    qat_graph *graph = o ? n.training : n.plain;
    ck_assert_msg(!qat_graph_plan(graph, BATCH, QAT_PLAN_TRAIN, &err), "%s", err.message);
    size_t const bytes = qat_graph_arena_bytes(graph);
    tear_down(&n);
    return bytes;
}

START_TEST(test_a_step_on_integers_takes_less_memory)
{
    qat_quant_options o = qat_quant_defaults();
    size_t const plain = arena_bytes(NULL);
    o.forward = QAT_FORWARD_INTEGER;
    o.bn_fold = QAT_FOLD_ONE_PASS;
    ck_assert_uint_le(10 * arena_bytes(&o), 6 * plain);
    o.bn_fold = QAT_FOLD_TWO_PASS;
    ck_assert_uint_le(10 * arena_bytes(&o), 8 * plain);
}
END_TEST

/* ------------------------------------------------------------------ codes alone */

enum { FREEZE = 2, LAST_STEP = 3 };

/** Two layers, so that one reads the other's codes; integers from the first step on. */
static void build_pair(struct net *n, qat_plan plan)
{
    qat_error err;
    qat_quant_options o = qat_quant_defaults();
    o.bn_fold = QAT_FOLD_TWO_PASS;
    o.forward = QAT_FORWARD_INTEGER;
    o.weight_delay = o.activation_delay = 0;
    o.bn_freeze_delay = FREEZE;
    ck_assert_int_eq(qat_registry_create(&n->registry, &err), QAT_OK);
    ck_assert_int_eq(qat_graph_create(&n->plain, n->registry, &err), QAT_OK);
    qat_node *x = qat_graph_input(n->plain, "x", QAT_SHAPE(BATCH, SIDE, SIDE, IN));
    qat_node *y = qat_apply1(n->plain, "conv2d", "first", "filters=5", x);
    y = qat_apply1(n->plain, "relu", "relu1", "", qat_apply1(n->plain, "batch_norm", "bn1", "", y));
    y = qat_apply1(n->plain, "conv2d", "second", "filters=5", y);
    y = qat_apply1(n->plain, "relu", "relu2", "", qat_apply1(n->plain, "batch_norm", "bn2", "", y));
    qat_graph_output(n->plain, y);
    qat_apply1(n->plain, "l2_loss", "loss", "", y);
    ck_assert_int_eq(qat_create_training_graph(&n->training, n->plain, &o, &err), QAT_OK);
    ck_assert_msg(!qat_graph_plan(n->training, BATCH, plan, &err), "%s", err.message);
    qat_graph_init_params(n->training, 11);
    n->loss = qat_graph_find(n->training, "loss");
}

static void step(struct net *n, int number)
{
    qat_run const run = {.mode = QAT_MODE_TRAIN, .step = number};
    fill(value(n, "x"), (size_t)BATCH * SIDE * SIDE * IN, number, 1, 0.1f);
    qat_graph_forward(n->training, &run);
    qat_graph_backward(n->training, n->loss, &run);
    qat_graph_update(n->training, &run);
}

/**
 * If only codes are kept, backward makes the reals again, once for two convolutions that read them;
 * from FREEZE on one of these does not run. The gradients are those of a plan that keeps all
 * values.
 */
START_TEST(test_gradients_from_codes_alone)
{
    static const char *const names[] = {"first/weights",  "bn1/gamma", "bn1/beta",
                                        "second/weights", "bn2/gamma", "bn2/beta"};
    struct net kept = {0}, coded = {0};
    build_pair(&kept, QAT_PLAN_TRAIN_KEEP);
    build_pair(&coded, QAT_PLAN_TRAIN);
    for (int s = 0; s <= LAST_STEP; s++) {
        step(&kept, s);
        step(&coded, s);
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            const qat_node *a = qat_graph_find(kept.training, names[i]);
            const qat_node *b = qat_graph_find(coded.training, names[i]);
            ck_assert_msg(memcmp(a->grad, b->grad, qat_shape_count(&a->shape) * sizeof *a->grad) ==
                              0,
                          "step %d: the gradient of %s differs", s, names[i]);
        }
    }
    tear_down(&kept);
    tear_down(&coded);
}
END_TEST

/** The gradients of learned ranges after some steps: of the activation, and of all weights. */
static int learned_gradients(qat_forward forward, int number, float *to)
{
    static const char *const quantizers[] = {"tqt", "lsq"}, *const of_weights[] = {"tqt", "lsq",
                                                                                   "tqt_full",
                                                                                   "lsq_full"};
    struct net n = {0};
    int count = 0;
    qat_quant_options o = options_of(number & 1, number & 2 ? QAT_LAYOUT_INT8 : QAT_LAYOUT_UINT8);
    o.forward = forward;
    o.weight_bits = o.activation_bits = 4; /* with fractions: all forwards have the same codes */
    o.learn_delay = 1;
    strcpy(o.weight_ranges, of_weights[number >> 2]);
    strcpy(o.activation_ranges, quantizers[number >> 2 & 1]);
    build_with(&n, &o, false);
    for (int step = 0; step < 3; step++) {
        qat_run const run = {.mode = QAT_MODE_TRAIN, .step = step};
        fill(value(&n, "x"), BATCH * SIDE * SIDE * IN, step, 0.9f, 0.05f);
        qat_graph_forward(n.training, &run);
        qat_graph_backward(n.training, n.loss, &run);
        qat_graph_update(n.training, &run);
    }
    for (int i = 0; i < qat_graph_nodes(n.training); i++) {
        const qat_node *node = qat_graph_node(n.training, i);
        size_t const length = strlen(node->name);
        if (length > 8 && !strcmp(node->name + length - 8, "/learned"))
            for (size_t k = 0; k < qat_shape_count(&node->shape); k++)
                to[count++] = node->grad[k];
    }
    tear_down(&n);
    return count;
}

/** They are those of fake quantization alone, where both have the same codes. */
START_TEST(test_gradients_of_learned_ranges)
{
    float on_integers[64], simulated[64], rounded[64];
    int const n = learned_gradients(QAT_FORWARD_INTEGER, _i, on_integers);
    ck_assert_int_eq(learned_gradients(QAT_FORWARD_FAKE_QUANT, _i, simulated), n);
    ck_assert_int_eq(learned_gradients(QAT_FORWARD_SIMULATED, _i, rounded), n);
    ck_assert_mem_eq(rounded, on_integers, (size_t)n * sizeof(float));
    ck_assert_int_gt(n, 1);
    float most = 0;
    for (int i = 0; i < n; i++)
        most = fmaxf(most, fabsf(simulated[i]));
    ck_assert(most > 0);
    for (int i = 0; i < n; i++)
        ck_assert_msg(fabsf(on_integers[i] - simulated[i]) <= 2e-3f * most, "value %d: %g, not %g",
                      i, (double)on_integers[i], (double)simulated[i]);
}
END_TEST

/* ------------------------------------------------------------------ scales without integers */

enum { FEW = 50 };

/** In profile tflite, hard_swish needs an output that is not far finer than its input: from `from`
 * to `to`, three steps. */
static void swish(struct net *n, const qat_quant_options *o, float from, float to)
{
    qat_error err;
    ck_assert_int_eq(qat_registry_create(&n->registry, &err), QAT_OK);
    ck_assert_int_eq(qat_graph_create(&n->plain, n->registry, &err), QAT_OK);
    qat_node *y = qat_apply1(n->plain, "hard_swish", "swish", "",
                             qat_graph_input(n->plain, "x", QAT_SHAPE(BATCH, FEW)));
    qat_graph_output(n->plain, y);
    qat_apply1(n->plain, "l2_loss", "loss", "", y);
    ck_assert_int_eq(qat_create_training_graph(&n->training, n->plain, o, &err), QAT_OK);
    ck_assert_int_eq(qat_graph_plan(n->training, BATCH, QAT_PLAN_TRAIN_KEEP, &err), QAT_OK);
    for (int step = 0; step < 3; step++) {
        qat_run const run = {.mode = QAT_MODE_TRAIN, .step = step};
        for (int i = 0; i < BATCH * FEW; i++)
            value(n, "x")[i] = from + (to - from) * (float)i / (BATCH * FEW - 1);
        qat_graph_forward(n->training, &run);
        ck_assert_msg(!qat_graph_run_status(n->training, &err), "%s", err.message);
        qat_graph_backward(n->training, qat_graph_find(n->training, "loss"), &run);
        qat_graph_update(n->training, &run);
    }
}

/** Values just above -3 have such an output. These steps have the codes of the simulation. */
START_TEST(test_scales_without_integers_are_simulated)
{
    struct net n = {0}, same = {0};
    qat_qparams p;
    qat_quant_options o = options_of(false, QAT_LAYOUT_INT8);
    o.profile = QAT_PROFILE_TFLITE;
    o.input_min = -6;
    o.input_max = 6;
    swish(&n, &o, -2.97f, -2.96f);
    o.forward = QAT_FORWARD_SIMULATED;
    swish(&same, &o, -2.97f, -2.96f);
    const qat_node *y = qat_graph_output_at(n.training, 0);
    const uint8_t *codes = qat_integer_codes(y, &p);
    ck_assert_ptr_nonnull(codes);
    ck_assert_msg((double)p.scale < 12.0 / 255 / 128, "scale %g has integers", (double)p.scale);
    ck_assert_mem_eq(y->value, qat_graph_output_at(same.training, 0)->value,
                     BATCH * FEW * sizeof(float));
    for (int i = 0; i < BATCH * FEW; i++)
        ck_assert_int_eq((int8_t)codes[i], lrintf(y->value[i] / p.scale) + p.zero_point);
    tear_down(&same);
    tear_down(&n);
}
END_TEST

static void refuse(const qat_quant_options *o, const char *message)
{
    struct net n = {0};
    qat_error err = {0};
    ck_assert_int_eq(qat_registry_create(&n.registry, &err), QAT_OK);
    ck_assert_int_eq(qat_graph_create(&n.plain, n.registry, &err), QAT_OK);
    qat_node *x = qat_graph_input(n.plain, "x", QAT_SHAPE(BATCH, SIDE, SIDE, IN));
    qat_graph_output(n.plain, qat_apply1(n.plain, "conv2d", "conv", "filters=5 kernel=3", x));
    ck_assert_int_eq(qat_create_training_graph(&n.training, n.plain, o, &err), QAT_ERR_ARGUMENT);
    ck_assert_ptr_null(n.training);
    ck_assert_str_eq(err.message, message);
    tear_down(&n);
}

/** Settings that integers cannot compute are refused. The message names the key. */
START_TEST(test_refused)
{
    qat_quant_options plain = qat_quant_defaults(), o;
    plain.forward = QAT_FORWARD_INTEGER;
    o = plain;
    strcpy(o.weight_ranges, "fgq");
    refuse(&o, "quant.weight_ranges = fgq cannot be combined with quant.forward = integer");
    o = plain;
    strcpy(o.activation_ranges, "none");
    refuse(&o, "quant.activation_ranges = none cannot be combined with quant.forward = integer");
    o = plain;
    o.n_layers = 1;
    o.layers[0] = qat_quant_layer_defaults("conv");
    o.layers[0].is_float = 1;
    refuse(&o, "[quant.layer conv] float = yes cannot be combined with quant.forward = integer");
    o.layers[0] = qat_quant_layer_defaults("conv");
    strcpy(o.layers[0].weight_ranges, "inq");
    refuse(
        &o,
        "[quant.layer conv] weight_ranges = inq cannot be combined with quant.forward = integer");
    o = plain;
    o.forward = (qat_forward)3;
    refuse(&o, "unknown forward 3 or profile 0");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("integer forward, batch statistics");
    TCase *tcase = tcase_create("codes");
    tcase_add_loop_test(tcase, test_codes_are_the_scalar_ones, 0, 8);
    tcase_add_test(tcase, test_values_are_those_of_codes);
    tcase_add_loop_test(tcase, test_values_before_a_bias, 0, 2);
    tcase_add_test(tcase, test_notes_of_sums);
    tcase_add_test(tcase, test_notes_of_reals);
    tcase_add_test(tcase, test_a_step_on_integers_takes_less_memory);
    tcase_add_test(tcase, test_gradients_from_codes_alone);
    tcase_add_loop_test(tcase, test_gradients_of_learned_ranges, 0, 16);
    tcase_add_test(tcase, test_scales_without_integers_are_simulated);
    tcase_add_test(tcase, test_refused);
    suite_add_tcase(suite, tcase);
    return test_run_suite(suite);
}
