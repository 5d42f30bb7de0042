/*
 * How layers become integer ops: weights, biases, multipliers and clamps of frozen layers, in both
 * layouts and profiles and with fewer than 8 bits. They are compared with sums that are written
 * here in int64 and double.
 */
#include "common/fail_alloc.h"
#include "common/suite.h"
#include "infer/arithmetic/fixedpoint.h"
#include "integer/quant_ops.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ a layer to freeze */

struct scheme {
    qat_layout layout;
    qat_profile profile;
    int bits;
};

static const struct scheme schemes[] = {
    {QAT_LAYOUT_UINT8, QAT_PROFILE_PAPER, 8},  {QAT_LAYOUT_UINT8, QAT_PROFILE_TFLITE, 8},
    {QAT_LAYOUT_INT8, QAT_PROFILE_PAPER, 8},   {QAT_LAYOUT_INT8, QAT_PROFILE_TFLITE, 8},
    {QAT_LAYOUT_UINT8, QAT_PROFILE_PAPER, 4},  {QAT_LAYOUT_INT8, QAT_PROFILE_TFLITE, 3},
    {QAT_LAYOUT_UINT8, QAT_PROFILE_TFLITE, 2}, {QAT_LAYOUT_INT8, QAT_PROFILE_PAPER, 2},
    {QAT_LAYOUT_UINT8, QAT_PROFILE_ONNX, 8},   {QAT_LAYOUT_INT8, QAT_PROFILE_ONNX, 8},
    {QAT_LAYOUT_INT8, QAT_PROFILE_ONNX, 4},
};

enum { N_SCHEMES = sizeof schemes / sizeof *schemes, MAX_CHANNELS = 8 };

static qat_quant_options options; /* of all layers */

struct fixture {
    qat_registry *registry;
    qat_graph *graph;
    qat_node *head;
    qat_qgraph *q;
    qat_fused_layer layer;
    qat_qparams in;
    float bias[MAX_CHANNELS];
    int input;
    char warning[512];
};

static void keep_warning(void *context, const char *message)
{
    snprintf(context, 512, "%s", message);
}

/** Deterministic values in -1..1, a different spread for every channel of the first axis. */
static float value_at(size_t i, size_t count, int rows)
{
    uint32_t const h = (uint32_t)(i * 2654435761u + 12345u) >> 8;
    return ((float)(h % 2001) / 1000.0f - 1.0f) * (0.2f + (float)(i / (count / (size_t)rows)));
}

static int add_codes(struct fixture *f, const char *name, const qat_shape *shape,
                     const struct scheme *s, const qat_qparams *p)
{
    qat_error err;
    qat_qtensor t = {.type = s->layout == QAT_LAYOUT_INT8 ? QI_S8 : QI_U8,
                     .bits = s->bits,
                     .rank = shape->rank,
                     .scale = p->scale,
                     .zero_point = p->zero_point,
                     .source_index = -1};
    snprintf(t.name, sizeof t.name, "%s", name);
    memcpy(t.dims, shape->dims, sizeof t.dims);
    return qat_qgraph_tensor(f->q, &t, &err);
}

/** x -> op(w) with output range -2..out_max, everything up to the call of freeze. */
static void set_up(struct fixture *f, const struct scheme *s, const char *op, const char *attrs,
                   qat_shape x_shape, qat_shape w_shape, int axis, float out_max)
{
    qat_error err;
    char quant[64];
    options = qat_quant_defaults();
    memset(f, 0, sizeof *f);
    ck_assert_int_eq(qat_registry_create(&f->registry, &err), QAT_OK);
    ck_assert_int_eq(qat_graph_create(&f->graph, f->registry, &err), QAT_OK);
    qat_node *x = qat_graph_input(f->graph, "x", x_shape);
    qat_node *w = qat_graph_param(
        f->graph, &(qat_param_def){.name = "w", .shape = w_shape, .trainable = true});
    snprintf(quant, sizeof quant, "bits=%d layout=%s axis=%d", s->bits,
             s->layout == QAT_LAYOUT_INT8 ? "int8" : "uint8", axis);
    qat_node *fq = qat_apply1(f->graph, "fake_quant_weights", "w/q", quant, w);
    f->head = qat_apply2(f->graph, op, "layer", attrs, x, fq);
    qat_graph_output(f->graph, f->head);
    ck_assert_msg(qat_graph_check(f->graph, &err) == QAT_OK, "%s", err.message);
    ck_assert_msg(qat_graph_plan(f->graph, 1, QAT_PLAN_KEEP, &err) == QAT_OK, "%s", err.message);
    size_t const count = qat_shape_count(&w_shape);
    for (size_t i = 0; i < count; i++)
        w->value[i] = value_at(i, count, w_shape.dims[0]);
    memset(x->value, 0, qat_shape_count(&x_shape) * sizeof *x->value);
    qat_graph_forward(f->graph, &(qat_run){.mode = QAT_MODE_EVAL});

    int32_t lo, hi;
    qat_code_range(s->layout, s->bits, false, &lo, &hi);
    f->in = qat_choose_qparams(-0.7f, 1.3f, lo, hi, true);
    qat_qparams const out = qat_choose_qparams(-2, out_max, lo, hi, true);
    f->q = qat_qgraph_new();
    f->input = add_codes(f, "x", &x_shape, s, &f->in);
    for (int c = 0; c < MAX_CHANNELS; c++)
        f->bias[c] = 0.37f * (float)c - 1;
    f->layer = (qat_fused_layer){.graph = f->q,
                                 .profile = s->profile,
                                 .options = &options,
                                 .head = f->head,
                                 .weights = fq,
                                 .bias = f->bias,
                                 .act_min = 0,
                                 .act_max = 6,
                                 .n_inputs = 1,
                                 .inputs = &f->input,
                                 .input_params = &f->in,
                                 .output = add_codes(f, "y", &f->head->shape, s, &out),
                                 .output_params = out,
                                 .warn = keep_warning,
                                 .warn_context = f->warning};
}

static void tear_down(struct fixture *f)
{
    qat_qgraph_free(f->q);
    qat_graph_free(f->graph);
    qat_registry_free(f->registry);
}

/* ------------------------------------------------------------------ sums written out */

static int32_t difference(const qat_qtensor *t, const uint8_t *codes, size_t i)
{
    return (t->type == QI_S8 ? (int8_t)codes[i] : codes[i]) - t->zero_point;
}

/** sum (q - Z)(w - Zw) of output (y, x, channel), from the definition; any of the three ops. */
static int64_t plain_sum(const struct fixture *f, const uint8_t *x, int oy, int ox, int channel)
{
    const qat_qop *op = &f->q->ops[0];
    const qat_qtensor *tx = &f->q->tensors[op->inputs[0]], *tw = &f->q->tensors[op->inputs[1]];
    int64_t sum = 0;
    if (strcmp(op->op, "fully_connected") == 0) {
        for (int i = 0; i < tw->dims[1]; i++)
            sum += (int64_t)difference(tx, x, (size_t)i) *
                   difference(tw, tw->data, (size_t)(channel * tw->dims[1] + i));
        return sum;
    }
    bool const depthwise = strcmp(op->op, "depthwise_conv2d") == 0;
    const int32_t *p = op->params;
    int const depth = depthwise ? 1 : tw->dims[3];
    int const channels = tw->dims[depthwise ? 3 : 0];
    int const first = depthwise ? channel / p[6] : channel / (channels / p[6]) * depth;
    for (int ky = 0; ky < tw->dims[1]; ky++)
        for (int kx = 0; kx < tw->dims[2]; kx++) {
            int const iy = oy * p[0] + ky * p[2] - p[4], ix = ox * p[1] + kx * p[3] - p[5];
            if (iy < 0 || iy >= tx->dims[1] || ix < 0 || ix >= tx->dims[2])
                continue;
            for (int i = 0; i < depth; i++) {
                size_t const at =
                    ((size_t)iy * (size_t)tx->dims[2] + (size_t)ix) * (size_t)tx->dims[3] +
                    (size_t)(first + i);
                int const tap = ky * tw->dims[2] + kx;
                int const wat = depthwise ? tap * channels + channel
                                          : (channel * tw->dims[1] * tw->dims[2] + tap) * depth + i;
                sum += (int64_t)difference(tx, x, at) * difference(tw, tw->data, (size_t)wat);
            }
        }
    return sum;
}

/** The code of an accumulator by section 3 of docs/arithmetic.md, M formed here. */
static int32_t expected_code(const struct fixture *f, int64_t acc, int channel)
{
    const qat_qop *op = &f->q->ops[0];
    const qat_qtensor *x = &f->q->tensors[op->inputs[0]], *w = &f->q->tensors[op->inputs[1]];
    const qat_qtensor *y = &f->q->tensors[op->outputs[0]];
    bool const tflite = f->layer.profile == QAT_PROFILE_TFLITE;
    bool const fc = strcmp(op->op, "fully_connected") == 0;
    float const s2 = w->channel_scales ? w->channel_scales[channel] : w->scale;
    float const narrow = x->scale * s2;
    double const product =
        tflite && !fc && x->type == QI_U8 ? (double)narrow : (double)x->scale * (double)s2;
    double const m = ldexp(product / (double)y->scale, -op->fraction);
    int32_t scaled, mult, lo, hi;
    int shift;
    if (f->layer.profile == QAT_PROFILE_ONNX) {
        scaled = (int32_t)rintf((float)acc * (narrow / y->scale));
    } else if (fc && tflite) {
        scaled = (int32_t)round((double)acc * m);
    } else {
        qat_quantize_multiplier(m, &mult, &shift);
        scaled = qi_requantize((int32_t)acc, mult, shift);
    }
    qat_clamp_codes_of(f->layer.profile, y, f->layer.act_min, f->layer.act_max, &lo, &hi);
    return qi_clamp(scaled + y->zero_point, lo, hi);
}

/** Freeze, and compare the exact evaluation of random codes with the sums above. */
static void check_accumulate(struct fixture *f)
{
    qat_error err;
    qat_exact *exact;
    ck_assert_msg(f->head->op->quant->freeze(&f->layer, &err) == QAT_OK, "%s", err.message);
    ck_assert_int_eq(qat_qgraph_set_io(f->q, 1, &f->input, 1, &f->layer.output, &err), QAT_OK);
    const qat_qtensor *x = &f->q->tensors[f->input], *y = &f->q->tensors[f->layer.output];
    const qat_qop *op = &f->q->ops[0];
    const int32_t *bias = f->q->tensors[op->inputs[2]].data;
    size_t const count = qat_qtensor_count(x);
    uint8_t *codes = malloc(count);
    for (size_t i = 0; i < count; i++)
        codes[i] = (uint8_t)(f->in.lo + (int)(i * 97 % 251) % (f->in.hi - f->in.lo + 1));
    ck_assert_int_eq(qat_exact_create(&exact, f->q, NULL, 1, &err), QAT_OK);
    ck_assert_int_eq(qat_exact_run(exact, (const void *[]){codes}, 1, &err), QAT_OK);
    const uint8_t *out = qat_exact_tensor(exact, f->layer.output);
    int const channels = y->dims[y->rank - 1], w = y->rank == 4 ? y->dims[2] : 1;
    int64_t largest = 0;
    /* accumulators of few bits have room for a fraction */
    bool const has_fraction = x->bits < 8 && f->layer.profile == QAT_PROFILE_PAPER;
    ck_assert_int_eq(op->fraction > 0, has_fraction);
    for (size_t i = 0; i < qat_qtensor_count(y); i++) {
        int const c = (int)(i % (size_t)channels), pixel = (int)(i / (size_t)channels);
        int64_t const sum = plain_sum(f, codes, pixel / w, pixel % w, c);
        int64_t const acc = sum * (1 << op->fraction) + bias[c];
        ck_assert_int_eq(out[i], (uint8_t)expected_code(f, acc, c));
        largest = llabs((long long)acc) > largest ? llabs((long long)acc) : largest;
    }
    ck_assert_int_le(largest, op->max_accumulator);
    const qat_qtensor *weights = &f->q->tensors[op->inputs[1]];
    for (int c = 0; c < channels; c++) {
        float const s2 = weights->channel_scales ? weights->channel_scales[c] : weights->scale;
        double const unit = (double)x->scale * (double)s2 / (1 << op->fraction);
        double const bits = (double)y->scale / unit; /* last bits of a code */
        int32_t const ties =
            has_fraction && bits >= 4096 ? (int32_t)fmax(1, round(bits / 32768)) : 0;
        ck_assert_int_eq(bias[c], (int32_t)round((double)f->bias[c] / unit) + ties);
    }
    qat_exact_free(exact);
    free(codes);
}

static void check_layers(const char *op, const char *attrs, qat_shape x, qat_shape w, int axis,
                         float out_max)
{
    struct fixture f;
    for (int i = 0; i < N_SCHEMES; i++) {
        set_up(&f, &schemes[i], op, attrs, x, w, axis, out_max);
        f.layer.n_bias = w.dims[axis];
        check_accumulate(&f);
        tear_down(&f);
    }
}

START_TEST(test_conv2d)
{
    check_layers("conv2d", "filters=6 kernel=3 stride=2", QAT_SHAPE(1, 7, 6, 3),
                 QAT_SHAPE(6, 3, 3, 3), 0, 5);
    check_layers("conv2d", "filters=4 kernel=2 kernel_w=3 groups=2 padding=valid dilation=2",
                 QAT_SHAPE(1, 8, 9, 4), QAT_SHAPE(4, 2, 3, 2), 0, 0.5f);
}
END_TEST

START_TEST(test_depthwise_conv2d)
{
    check_layers("depthwise_conv2d", "multiplier=2 kernel=3 stride_w=2", QAT_SHAPE(1, 5, 6, 3),
                 QAT_SHAPE(1, 3, 3, 6), 3, 4);
    check_layers("depthwise_conv2d", "kernel=1", QAT_SHAPE(1, 3, 3, 5), QAT_SHAPE(1, 1, 1, 5), 3,
                 0.01f);
}
END_TEST

START_TEST(test_fully_connected)
{
    check_layers("fully_connected", "units=7", QAT_SHAPE(1, 33), QAT_SHAPE(7, 33), 0, 9);
    check_layers("fully_connected", "units=3", QAT_SHAPE(1, 2, 2, 4), QAT_SHAPE(3, 16), 0, 0.001f);
}
END_TEST

/** Real values of the codes are what fake_quant_weights gave, bit for bit. */
START_TEST(test_weight_codes)
{
    for (int i = 0; i < N_SCHEMES; i++) {
        struct fixture f;
        qat_error err;
        int index;
        set_up(&f, &schemes[i], "fully_connected", "units=7", QAT_SHAPE(1, 33), QAT_SHAPE(7, 33), 0,
               9);
        ck_assert_int_eq(qat_freeze_weights(&f.layer, f.layer.weights, &index, &err), QAT_OK);
        const qat_qtensor *w = &f.q->tensors[index];
        int32_t lo, hi;
        qat_code_range(schemes[i].layout, schemes[i].bits, true, &lo, &hi);
        ck_assert_str_eq(w->name, "w/q");
        for (size_t k = 0; k < qat_qtensor_count(w); k++) {
            float const scale = w->channel_scales ? w->channel_scales[k / 33] : w->scale;
            int32_t const d = difference(w, w->data, k);
            ck_assert_float_eq(scale * (float)d, f.layer.weights->value[k]);
            ck_assert(d + w->zero_point >= lo && d + w->zero_point <= hi);
        }
        ck_assert((w->channel_scales != NULL) == (schemes[i].layout == QAT_LAYOUT_INT8));
        tear_down(&f);
    }
}
END_TEST

/** The largest fraction for which int32 has room, for the bias too, and M for its shift. */
START_TEST(test_fraction)
{
    ck_assert_int_eq(qat_largest_fraction(15, 65535, 0, 0.1), 15); /* 65535 2^15 < 2^31 */
    ck_assert_int_eq(qat_largest_fraction(15, 65536, 0, 0.1), 14);
    ck_assert_int_eq(qat_largest_fraction(9, 65536, 0, 0.1), 9);
    ck_assert_int_eq(qat_largest_fraction(15, 65535, 0.9, 0.1), 15); /* 2^31 - 2^15 + 29491 */
    ck_assert_int_eq(qat_largest_fraction(15, 65535, -1.1, 0.1), 14);
    ck_assert_int_eq(qat_largest_fraction(15, 1, 1e9, 0.1), 1);
    ck_assert_int_eq(qat_largest_fraction(15, 1, 1e10, 0.1), 0);
    ck_assert_int_eq(qat_largest_fraction(15, 1, NAN, 0.1), 0);
    ck_assert_int_eq(qat_largest_fraction(15, INT32_MAX, 0, 0.1), 0);
    ck_assert_int_eq(qat_largest_fraction(15, 1, 0, 0x1p-25), 7); /* 1/2 2^-31 is the least */
    ck_assert_int_eq(qat_largest_fraction(15, 1, 0, 0), 15);

    qat_quant_options o = qat_quant_defaults();
    ck_assert_int_eq(qat_wanted_fraction(&o, QAT_PROFILE_PAPER, false, 8, 8), 0);
    ck_assert_int_eq(qat_wanted_fraction(&o, QAT_PROFILE_PAPER, true, 8, 7), 15);
    ck_assert_int_eq(qat_wanted_fraction(&o, QAT_PROFILE_PAPER, false, 4, 8), 15);
    ck_assert_int_eq(qat_wanted_fraction(&o, QAT_PROFILE_PAPER, false, 16, 4), 0);
    ck_assert_int_eq(qat_wanted_fraction(&o, QAT_PROFILE_TFLITE, false, 4, 4), 0);
    ck_assert_int_eq(qat_wanted_fraction(&o, QAT_PROFILE_ONNX, false, 4, 4), 0);
    o.fraction = 3;
    ck_assert_int_eq(qat_wanted_fraction(&o, QAT_PROFILE_PAPER, false, 8, 8), 3);
    ck_assert_int_eq(qat_wanted_fraction(&o, QAT_PROFILE_TFLITE, false, 4, 4), 3);
    ck_assert_int_eq(qat_wanted_fraction(&o, QAT_PROFILE_TFLITE, true, 4, 4), 0);
    o.fraction = 0;
    ck_assert_int_eq(qat_wanted_fraction(&o, QAT_PROFILE_PAPER, false, 2, 2), 0);
}
END_TEST

/** Rounded half away on S1 S2, clamped with a warning where the sum could overflow. */
START_TEST(test_bias)
{
    struct fixture f;
    qat_error err;
    int weights, bias, fraction = 0;
    double const multipliers[4] = {0.01, 0.01, 0.01, 0.01};
    set_up(&f, &schemes[2], "fully_connected", "units=4", QAT_SHAPE(1, 33), QAT_SHAPE(4, 33), 0, 9);
    ck_assert_int_eq(qat_freeze_weights(&f.layer, f.layer.weights, &weights, &err), QAT_OK);
    float const *scales = f.q->tensors[weights].channel_scales;
    f.layer.n_bias = 4;
    f.bias[1] = -2.5f * f.in.scale * scales[1]; /* near a tie: what double makes of it */
    f.bias[2] = 1e9f;
    f.bias[3] = -1e9f;
    ck_assert_int_eq(qat_freeze_bias(&f.layer, weights, false, multipliers, &fraction, &bias, &err),
                     QAT_OK);
    const qat_qtensor *t = &f.q->tensors[bias];
    const int32_t *codes = t->data;
    int64_t bounds[4];
    qat_accumulator_bounds(&f.q->tensors[f.input], &f.q->tensors[weights], false, bounds);
    for (int c = 0; c < 2; c++)
        ck_assert_int_eq(
            codes[c], (int32_t)round((double)f.bias[c] / ((double)f.in.scale * (double)scales[c])));
    ck_assert_int_eq(codes[2], INT32_MAX - bounds[2]);
    ck_assert_int_eq(codes[3], -(INT32_MAX - bounds[3]));
    ck_assert_ptr_nonnull(strstr(f.warning, "layer: 2 biases were clamped"));
    ck_assert_ptr_nonnull(strstr(f.warning, "channel 2: 1e+09"));
    f.bias[0] = NAN;
    ck_assert_int_eq(qat_freeze_bias(&f.layer, weights, false, multipliers, &fraction, &bias, &err),
                     QAT_ERR_NUMERIC);
    f.bias[0] = 0;
    f.q->tensors[f.input].scale = 1e38f;
    f.q->tensors[weights].channel_scales[0] = 10;
    ck_assert_int_eq(qat_freeze_bias(&f.layer, weights, false, multipliers, &fraction, &bias, &err),
                     QAT_ERR_NUMERIC);
    ck_assert_msg(strstr(err.message, "is 1e+39, which float32 does not hold"), "%s", err.message);
    f.layer.n_bias = 3;
    ck_assert_int_eq(qat_freeze_bias(&f.layer, weights, false, multipliers, &fraction, &bias, &err),
                     QAT_ERR_SHAPE);
    tear_down(&f);
}
END_TEST

/**
 * A channel whose weights do not move its output, and whose bias does not fit, has codes of 0 and
 * the scale with which the bias is 2^30. If its weights matter, or its bias fits, it stays as it
 * is.
 */
START_TEST(test_silent_channels)
{
    struct fixture f;
    qat_error err;
    int weights, bias, fraction = 0;
    double const multipliers[4] = {1e-12, 1e-12, 0.01, 1e-12};
    set_up(&f, &schemes[2], "fully_connected", "units=4", QAT_SHAPE(1, 33), QAT_SHAPE(4, 33), 0, 9);
    ck_assert_int_eq(qat_freeze_weights(&f.layer, f.layer.weights, &weights, &err), QAT_OK);
    qat_qtensor *w = &f.q->tensors[weights];
    float before[4];
    memcpy(before, w->channel_scales, sizeof before);
    f.layer.n_bias = 4;
    f.bias[0] = -1e9f; /* silent */
    f.bias[1] = 1;     /* fits */
    f.bias[2] = 1e9f;  /* its weights matter */
    f.bias[3] = 2e9f;  /* silent */
    ck_assert_int_eq(qat_silence_channels(&f.layer, weights, false, multipliers, 0, &err), QAT_OK);
    for (int c = 0; c < 4; c++) {
        bool const silent = c % 3 == 0;
        float const scale = (float)(fabs((double)f.bias[c]) / ((double)f.in.scale * 0x1p30));
        bool all = true;
        for (size_t k = 0; k < 33; k++)
            all &= difference(w, w->data, (size_t)c * 33 + k) == 0;
        ck_assert_int_eq(all, silent);
        ck_assert_float_eq(w->channel_scales[c], silent ? scale : before[c]);
    }
    ck_assert_float_eq(w->scale, w->channel_scales[0]);
    ck_assert_float_eq(w->range_max, 127 * w->scale);
    ck_assert_int_eq(qat_freeze_bias(&f.layer, weights, false, multipliers, &fraction, &bias, &err),
                     QAT_OK);
    const int32_t *codes = f.q->tensors[bias].data;
    ck_assert_int_lt(abs(codes[0] + (1 << 30)), 1 << 7); /* but for the scale's rounding */
    ck_assert_int_lt(abs(codes[3] - (1 << 30)), 1 << 7);
    ck_assert_ptr_nonnull(strstr(f.warning, "layer: 1 biases were clamped"));
    tear_down(&f);
}
END_TEST

/** With fractional bits there is room for these, too. What no float32 holds stays as it is. */
START_TEST(test_silent_scale)
{
    ck_assert_float_eq(qat_silent_scale(1, 1, 1e-12f, 100, 1e-9, 0, INT32_MAX), 0x1p-30f);
    ck_assert_float_eq(qat_silent_scale(-1, 1, 1e-12f, 100, 1e-9, 15, INT32_MAX), 0x1p-15f);
    ck_assert_float_eq(qat_silent_scale(1, 1, 1e-12f, 100, 1e-4, 0, INT32_MAX), 0); /* 0.01 codes */
    ck_assert_float_eq(qat_silent_scale(1, 1, 1e-9f, 100, 1e-9, 0, INT32_MAX), 0);  /* fits */
    ck_assert_float_eq(qat_silent_scale(1e-29, 1, 1e-40f, 1, 1e-9, 0, INT32_MAX), 0);
}
END_TEST

/** A bias with its tie stays within the room on the side where both together lie. */
START_TEST(test_bias_without_room)
{
    int64_t const ties = qat_tie_units(0x1p-16, 8);
    ck_assert_int_eq(ties, 512);
    ck_assert_int_eq(qat_bias_code(-1, 1, ties, 255), 255);
    ck_assert_int_eq(qat_bias_code(-1000, 1, ties, 255), -255);
    ck_assert_int_eq(qat_bias_code(1000, 1, ties, 255), 255);
    ck_assert_int_eq(qat_bias_code(-600, 1, ties, 255), -88);
    ck_assert_int_eq(qat_tie_units(0x1p-3, 15), 8);
    ck_assert_int_eq(qat_tie_units(1, 8), 0);        /* a unit is 2^-8 of a code */
    ck_assert_int_eq(qat_tie_units(0x1p-17, 15), 0); /* 2^-32 of a code */
    ck_assert_int_eq(qat_tie_units(0x1p-3, 0), 0);
}
END_TEST

START_TEST(test_overflow_is_refused)
{
    struct fixture f;
    qat_error err;
    set_up(&f, &schemes[0], "fully_connected", "units=1", QAT_SHAPE(1, 300000),
           QAT_SHAPE(1, 300000), 0, 9);
    f.layer.n_bias = 1;
    ck_assert_int_eq(f.head->op->quant->freeze(&f.layer, &err), QAT_ERR_NUMERIC);
    ck_assert_ptr_nonnull(strstr(err.message, "layer: channel 0"));
    printf("%s\n", err.message);
    tear_down(&f);
}
END_TEST

static qat_status emit_wide(float out_scale, qat_error *err)
{
    static int8_t weights[2 * 4] = {3, -2};
    qat_qgraph *q = qat_qgraph_new();
    qat_qtensor x = {
        .name = "x", .type = QI_S16, .bits = 16, .rank = 2, .dims = {1, 4}, .source_index = -1};
    qat_qtensor w = x, y = x;
    x.scale = 0.5f;
    w.type = QI_S8;
    w.bits = 8;
    w.scale = 0.25f;
    w.dims[0] = y.dims[1] = 2;
    w.data = weights;
    y.scale = out_scale;
    int const inputs[] = {qat_qgraph_tensor(q, &x, err), qat_qgraph_tensor(q, &w, err), -1};
    qat_emit const e = {.graph = q,
                        .name = "layer",
                        .n_inputs = 3,
                        .inputs = inputs,
                        .output = qat_qgraph_tensor(q, &y, err),
                        .act_min = -INFINITY,
                        .act_max = INFINITY};
    qat_status const st = qat_emit_fully_connected(&e, err);
    qat_qgraph_free(q);
    return st;
}

/** The engine shifts 64-bit accumulators at least 8 bits to the right. */
START_TEST(test_large_multiplier_of_wide_codes)
{
    qat_error err;
    ck_assert_msg(emit_wide(0.125f / 127, &err) == QAT_OK, "%s", err.message);
    ck_assert_int_eq(emit_wide(0.125f / 128, &err), QAT_ERR_UNSUPPORTED);
    ck_assert_str_eq(err.message, "layer: channel 0: a unit of its accumulator is 128 codes of its "
                                  "output; with 16-bit activations it must be less than 128");
}
END_TEST

/** The k-th allocation of freezing a layer and evaluating it fails. */
START_TEST(test_exhausted_memory)
{
    static const uint8_t codes[7 * 6 * 3];
    bool failed;
    long n = 0;
    do {
        struct fixture f;
        qat_error err;
        qat_exact *exact = NULL;
        set_up(&f, &schemes[2], "conv2d", "filters=6 kernel=3", QAT_SHAPE(1, 7, 6, 3),
               QAT_SHAPE(6, 3, 3, 3), 0, 5);
        f.layer.n_bias = n % 2 ? 6 : 0;
        f.layer.bias = n % 2 ? f.bias : NULL;
        test_fail_alloc_after(n++ / 2);
        qat_status st = f.head->op->quant->freeze(&f.layer, &err);
        if (!st)
            st = qat_qgraph_set_io(f.q, 1, &f.input, 1, &f.layer.output, &err);
        if (!st)
            st = qat_exact_create(&exact, f.q, NULL, 2, &err);
        if (!st)
            st = qat_exact_run(exact, (const void *[]){codes}, 1, &err);
        failed = test_fail_alloc_stop();
        ck_assert_int_eq(st, failed ? QAT_ERR_NOMEM : QAT_OK);
        qat_exact_free(exact);
        tear_down(&f);
    } while (failed || n % 2);
    ck_assert_int_gt(n, 30);
}
END_TEST

/* ------------------------------------------------------------------ functions below 8 bits */

/** One op from tensor 0 to tensor 1 of `size` values. */
static qat_qgraph *unary(const struct scheme *s, qat_qparams in, qat_qparams out, int size)
{
    qat_error err;
    struct fixture f = {.q = qat_qgraph_new()};
    qat_shape const shape = QAT_SHAPE(1, size);
    int const x = add_codes(&f, "x", &shape, s, &in);
    int const y = add_codes(&f, "y", &shape, s, &out);
    ck_assert_int_eq(qat_qgraph_set_io(f.q, 1, &x, 1, &y, &err), QAT_OK);
    return f.q;
}

static void run_unary(const qat_qgraph *g, const uint8_t *in, uint8_t *out)
{
    qat_error err;
    qat_exact *exact;
    ck_assert_msg(qat_exact_create(&exact, g, NULL, 1, &err) == QAT_OK, "%s", err.message);
    ck_assert_int_eq(qat_exact_run(exact, (const void *[]){in}, 1, &err), QAT_OK);
    memcpy(out, qat_exact_tensor(exact, g->outputs[0]), qat_qtensor_bytes(&g->tensors[1]));
    qat_exact_free(exact);
}

static qat_emit emission(qat_qgraph *g, const struct scheme *s)
{
    static const int input = 0;
    return (qat_emit){.graph = g,
                      .profile = s->profile,
                      .name = "layer",
                      .n_inputs = 1,
                      .inputs = &input,
                      .output = 1,
                      .act_min = -INFINITY,
                      .act_max = INFINITY};
}

/** Every code through logistic or tanh: near the real function, and equal to the shared one. */
static void check_sigmoid(const char *op, const struct scheme *s, float scale)
{
    qat_error err;
    int32_t lo, hi;
    bool const is_tanh = strcmp(op, "tanh") == 0;
    uint8_t in[256], out[256];
    qat_code_range(s->layout, s->bits, false, &lo, &hi);
    int const n = hi - lo + 1;
    qat_qparams const pin = qat_given_qparams(scale, lo + n / 3, lo, hi);
    qat_qparams const pout = qat_fixed_qparams(strcmp(op, "tanh") ? 0 : -1, 1, s->layout, s->bits);
    qat_qgraph *g = unary(s, pin, pout, n);
    qat_emit const e = emission(g, s);
    ck_assert_int_eq(qat_emit_sigmoid(&e, op, &err), QAT_OK);
    for (int i = 0; i < n; i++)
        in[i] = (uint8_t)(lo + i);
    run_unary(g, in, out);
    for (int i = 0; i < n; i++) {
        int32_t const code = s->layout == QAT_LAYOUT_INT8 ? (int8_t)out[i] : out[i];
        double const x = (double)scale * (lo + i - pin.zero_point);
        double const real = is_tanh ? tanh(x) : 1 / (1 + exp(-x));
        double const steps = real / (double)pout.scale + pout.zero_point;
        ck_assert_double_le(fabs(fmin(fmax(steps, lo), hi) - code), 0.6);
        if (s->profile == QAT_PROFILE_TFLITE)
            continue;
        const int32_t *p = g->ops[0].params;
        qi_input_scaling const scaling = {pin.zero_point, p[0], p[1], p[2]};
        ck_assert_int_eq(code, is_tanh ? qi_tanh_code(lo + i, &scaling, lo, s->bits)
                                       : qi_logistic_code(lo + i, &scaling, lo, s->bits));
    }
    qat_qgraph_free(g);
}

START_TEST(test_sigmoids)
{
    static const float scales[] = {1e-30f, 1e-9f, 1e-4f, 0.01f, 0.05f, 0.4f, 3, 9, 20, 1e6f};
    for (int i = 0; i < N_SCHEMES; i++)
        for (size_t k = 0; k < sizeof scales / sizeof *scales; k++) {
            check_sigmoid("logistic", &schemes[i], scales[k]);
            check_sigmoid("tanh", &schemes[i], scales[k]);
        }
}
END_TEST

static void check_softmax(const struct scheme *s, float scale, int n)
{
    qat_error err;
    int32_t lo, hi;
    uint8_t in[64], out[64], shared[64];
    double sum = 0;
    qat_code_range(s->layout, s->bits, false, &lo, &hi);
    qat_qgraph *g = unary(s, qat_given_qparams(scale, lo, lo, hi),
                          qat_fixed_qparams(0, 1, s->layout, s->bits), n);
    qat_emit const e = emission(g, s);
    ck_assert_int_eq(qat_emit_softmax(&e, 1, &err), QAT_OK);
    for (int i = 0; i < n; i++) {
        in[i] = (uint8_t)(lo + i * 7 % (hi - lo + 1));
        sum += exp((double)scale * (i * 7 % (hi - lo + 1)));
    }
    run_unary(g, in, out);
    const int32_t *p = g->ops[0].params;
    qi_softmax const parameters = {p[0], p[1], p[2], s->layout == QAT_LAYOUT_INT8, lo, s->bits};
    qi_softmax_row(in, shared, (size_t)n, &parameters);
    ck_assert_mem_eq(out, shared, (size_t)n);
    for (int i = 0; i < n && isfinite(sum); i++) {
        double const real = exp((double)scale * (i * 7 % (hi - lo + 1))) / sum;
        double const steps = fmin(real * (hi - lo + 1), hi - lo);
        int32_t const code = (s->layout == QAT_LAYOUT_INT8 ? (int8_t)out[i] : out[i]) - lo;
        ck_assert_double_le(fabs(steps - code), 0.6);
    }
    qat_qgraph_free(g);
}

START_TEST(test_softmax)
{
    static const float scales[] = {1e-30f, 1e-9f, 1e-4f, 0.01f, 0.1f, 1, 20, 1e6f};
    for (int i = 0; i < N_SCHEMES; i++)
        for (size_t k = 0; k < sizeof scales / sizeof *scales; k++) {
            check_softmax(&schemes[i], scales[k], 10);
            check_softmax(&schemes[i], scales[k], 1);
            check_softmax(&schemes[i], scales[k], 61);
        }
}
END_TEST

/* ------------------------------------------------------------------ tables */

static qat_status same_shape(qat_node *node, qat_error *err)
{
    node->shape = node->inputs[0]->shape;
    return QAT_OK;
}

/** Per channel: x where positive, else slope[c] x. */
static void prelu_forward(qat_node *node, const qat_run *run)
{
    const float *slope = node->inputs[1]->value;
    int const channels = node->shape.dims[node->shape.rank - 1];
    for (size_t i = 0; i < qat_shape_count(&node->shape); i++) {
        float const x = node->inputs[0]->value[i];
        node->value[i] = x > 0 ? x : slope[i % (size_t)channels] * x;
    }
}

/**
 * An op that is not elementwise: each value is that of its left neighbour. Constant inputs do not
 * show this.
 */
static void neighbour_forward(qat_node *node, const qat_run *run)
{
    size_t const n = qat_shape_count(&node->shape);
    for (size_t i = 0; i < n; i++)
        node->value[i] = node->inputs[0]->value[i ? i - 1 : 0];
}

static int slope_param(const qat_node *node, qat_param_def *defs, qat_error *err)
{
    int const channels = node->inputs[0]->shape.dims[node->inputs[0]->shape.rank - 1];
    defs[0] = (qat_param_def){.name = "slope", .shape = QAT_SHAPE(channels)};
    return 1;
}

static const qat_quant table_quant = {.role = QAT_ROLE_TABLE};
static const qat_op prelu = {.name = "prelu",
                             .min_inputs = 1,
                             .max_inputs = 1,
                             .params = slope_param,
                             .shape = same_shape,
                             .forward = prelu_forward,
                             .quant = &table_quant};
static const qat_op neighbour = {.name = "neighbour",
                                 .min_inputs = 1,
                                 .max_inputs = 1,
                                 .shape = same_shape,
                                 .forward = neighbour_forward,
                                 .quant = &table_quant};

/** A graph x -> op with the integer tensors of both. */
static void set_up_table(struct fixture *f, const struct scheme *s, const qat_op *op)
{
    qat_error err;
    int32_t lo, hi;
    qat_shape const shape = QAT_SHAPE(1, 3, 2, 3);
    memset(f, 0, sizeof *f);
    ck_assert_int_eq(qat_registry_create(&f->registry, &err), QAT_OK);
    ck_assert_int_eq(qat_registry_add(f->registry, op, &err), QAT_OK);
    ck_assert_int_eq(qat_graph_create(&f->graph, f->registry, &err), QAT_OK);
    qat_node *x = qat_graph_input(f->graph, "x", shape);
    f->head = qat_apply1(f->graph, op->name, "layer", "", x);
    qat_graph_output(f->graph, f->head);
    ck_assert_msg(qat_graph_plan(f->graph, 4, QAT_PLAN_KEEP, &err) == QAT_OK, "%s", err.message);
    qat_code_range(s->layout, s->bits, false, &lo, &hi);
    f->in = qat_choose_qparams(-1, 1, lo, hi, true);
    qat_qparams const out = qat_choose_qparams(-0.3f, 0.9f, lo, hi, true);
    f->q = qat_qgraph_new();
    f->input = add_codes(f, "x", &shape, s, &f->in);
    f->layer = (qat_fused_layer){.graph = f->q,
                                 .profile = s->profile,
                                 .options = &options,
                                 .head = f->head,
                                 .act_min = -INFINITY,
                                 .act_max = INFINITY,
                                 .n_inputs = 1,
                                 .inputs = &f->input,
                                 .input_params = &f->in,
                                 .output = add_codes(f, "y", &shape, s, &out),
                                 .output_params = out};
    ck_assert_int_eq(qat_qgraph_set_io(f->q, 1, &f->input, 1, &f->layer.output, &err), QAT_OK);
}

/** The table's codes are those of the float op's fake-quantized output. */
static void check_prelu(const struct scheme *s, const float slope[3], int table_rank)
{
    struct fixture f;
    qat_error err;
    uint8_t in[18], out[18];
    set_up_table(&f, s, &prelu);
    memcpy(f.head->inputs[1]->value, slope, 3 * sizeof *slope);
    ck_assert_msg(qat_freeze_table(&f.layer, &err) == QAT_OK, "%s", err.message);
    ck_assert_int_eq(f.q->tensors[f.q->ops[0].inputs[1]].rank, table_rank);
    for (int shift = 0; shift < 256; shift += 5) {
        for (int i = 0; i < 18; i++)
            in[i] = (uint8_t)(f.in.lo + (shift + 11 * i) % (f.in.hi - f.in.lo + 1));
        run_unary(f.q, in, out);
        for (int i = 0; i < 18; i++) {
            float const x =
                qat_real_of(&f.in, s->layout == QAT_LAYOUT_INT8 ? (int8_t)in[i] : in[i]);
            float const y = x > 0 ? x : slope[i % 3] * x;
            ck_assert_int_eq(out[i], (uint8_t)qat_code(&f.layer.output_params, y));
        }
    }
    tear_down(&f);
}

START_TEST(test_tables)
{
    for (int i = 0; i < N_SCHEMES; i++) {
        check_prelu(&schemes[i], (const float[]){0.2f, 0.2f, 0.2f}, 1);
        check_prelu(&schemes[i], (const float[]){0.2f, -0.5f, 1}, 2);
    }
}
END_TEST

START_TEST(test_not_a_table)
{
    struct fixture f;
    qat_error err;
    set_up_table(&f, &schemes[0], &neighbour);
    ck_assert_int_eq(qat_freeze_table(&f.layer, &err), QAT_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.message, "layer: op neighbour is not elementwise"));
    ck_assert_int_eq(f.q->n_ops, 0);
    tear_down(&f);
}
END_TEST

START_TEST(test_table_without_memory)
{
    bool failed;
    long n = 0;
    do {
        struct fixture f;
        qat_error err;
        set_up_table(&f, &schemes[0], &prelu);
        test_fail_alloc_after(n++);
        qat_status const st = qat_freeze_table(&f.layer, &err);
        failed = test_fail_alloc_stop();
        ck_assert_int_eq(st, failed ? QAT_ERR_NOMEM : QAT_OK);
        tear_down(&f);
    } while (failed);
    ck_assert_int_gt(n, 5);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("quant ops");
    TCase *tc = tcase_create("layers");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, test_conv2d);
    tcase_add_test(tc, test_depthwise_conv2d);
    tcase_add_test(tc, test_fully_connected);
    tcase_add_test(tc, test_weight_codes);
    tcase_add_test(tc, test_bias);
    tcase_add_test(tc, test_bias_without_room);
    tcase_add_test(tc, test_silent_channels);
    tcase_add_test(tc, test_silent_scale);
    tcase_add_test(tc, test_fraction);
    tcase_add_test(tc, test_overflow_is_refused);
    tcase_add_test(tc, test_large_multiplier_of_wide_codes);
    tcase_add_test(tc, test_exhausted_memory);
    tcase_add_test(tc, test_sigmoids);
    tcase_add_test(tc, test_softmax);
    tcase_add_test(tc, test_tables);
    tcase_add_test(tc, test_not_a_table);
    tcase_add_test(tc, test_table_without_memory);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
