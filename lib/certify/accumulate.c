/**
 * conv2d, depthwise_conv2d, transpose_conv2d, fully_connected: weights, fraction, biases,
 * multipliers, window, clamp and the proof that int32 is wide enough (docs/arithmetic.md, section
 * 3). With 16-bit activations, biases and accumulators have 64 bits, of which the roundings
 * take 48.
 *
 *     |bias code - t - b' 2^f / (S_x S_w)|  <=  1/2 + slack of b' 2^f / (S_x S_w)
 *
 * and without a slack for b' in float32, by the formula of fold.c. t lets ties go up: 2^-15 of a
 * code.
 */
#include "certify/certify.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { X, WEIGHTS, BIAS, MULT, SHIFT, INPUTS };

struct accumulate {
    cert *c;
    const cert_op *op;
    cert_weights w;
    const qi_tensor *in[INPUTS], *y;
    bool depthwise, transposed, fully_connected;
    int64_t *largest; /* by channel: |acc| without bias */
};

static double weight_scale(const struct accumulate *a, int channel)
{
    return (double)cert_channel_scale(a->c->model, a->in[WEIGHTS], channel);
}

/** Have the layer's accumulators 64 bits? */
static bool is_wide(const struct accumulate *a)
{
    return a->in[X]->type == QI_S16;
}

static int64_t bias_at(const struct accumulate *a, int channel)
{
    return qi_value_at((qi_type)a->in[BIAS]->type, a->in[BIAS]->data, (size_t)channel);
}

static int32_t int_at(const qi_tensor *t, size_t i)
{
    int32_t value;
    if (t->is_packed) /* narrow */
        return ((const int8_t *)t->data)[i];
    memcpy(&value, (const uint8_t *)t->data + 4 * i, sizeof value);
    return value;
}

/* ------------------------------------------------------------------ which layer it is */

bool cert_has_weights(const qat_node *head)
{
    return qat_node_is_op(head, "conv2d") || qat_node_is_op(head, "depthwise_conv2d") ||
           qat_node_is_op(head, "transpose_conv2d") || qat_node_is_op(head, "fully_connected");
}

cert_weights cert_weights_of(const cert *c, const cert_layer *l, char base[2 * QAT_NAME_MAX])
{
    const qat_node *owner = l->head ? l->head : l->first;
    bool const depthwise = !l->head || qat_node_is_op(l->head, "depthwise_conv2d");
    cert_weights w = {.settings = &cert_info(c, owner)->settings,
                      .bias = l->bias,
                      .bn = l->bn,
                      .base = base,
                      .axis = depthwise ? 3 : 0};
    if (l->head) {
        w.param = l->head->inputs[l->head->n_data];
        w.shape = w.param->shape;
        snprintf(base, 2 * QAT_NAME_MAX, "%s/%s", cert_first_step(c, l->head)->name,
                 w.param->init.name);
    } else {
        w.shape = QAT_SHAPE(1, 1, 1, qat_shape_channels(&l->first->shape));
        snprintf(base, 2 * QAT_NAME_MAX, "%s/ones", l->first->name);
    }
    w.channels = w.shape.dims[w.axis];
    return w;
}

static double multiplier(const struct accumulate *a, int channel)
{
    double const x = (double)cert_scale(a->in[X]), w = weight_scale(a, channel);
    qat_profile const profile = a->c->source->profile;
    bool const tflite = profile == QAT_PROFILE_TFLITE;
    bool const in_float32 = tflite && a->in[X]->type == QI_U8 && !a->fully_connected;
    if (profile == QAT_PROFILE_ONNX)
        return (double)(float)((double)(float)(x * w) / (double)cert_scale(a->y));
    return (in_float32 ? (double)(float)(x * w) : x * w) / (double)cert_scale(a->y);
}

/** Is the rounding DOUBLE? */
static bool is_split(const struct accumulate *a)
{
    return a->fully_connected && a->c->source->profile == QAT_PROFILE_TFLITE;
}

/* ------------------------------------------------------------------ fraction */

static int most_fraction(const struct accumulate *a)
{
    int const asked = a->c->source->quant.fraction;
    bool const is_coarse = a->in[X]->bits < 8 || a->in[WEIGHTS]->bits < 8;
    if (is_split(a) || a->in[X]->bits > 8 || a->c->source->profile == QAT_PROFILE_ONNX)
        return 0;
    if (asked >= 0)
        return asked;
    return is_coarse && a->c->source->profile == QAT_PROFILE_PAPER ? QI_MAX_FRACTION : 0;
}

/** Whatever slack there is, does int32 hold the accumulator with so many fractional bits? And can
 * its multiplier be stored? */
static bool must_fit(const struct accumulate *a, int channel, const cert_bias *b, int fraction)
{
    double const unit = (double)cert_scale(a->in[X]) * weight_scale(a, channel);
    double const all = (double)a->largest[channel] + (fabs(b->real) + b->slack) / unit;
    int32_t mult, whole, shift;
    cert_multiplier(multiplier(a, channel), &whole, &shift);
    cert_multiplier(ldexp(multiplier(a, channel), -fraction), &mult, &shift);
    return ldexp(all, fraction) + 1 <= INT32_MAX && (mult || !whole);
}

/** The engine has proved that int32 holds the accumulator with the file's fraction. One more bit
 * must not do. */
static qat_status check_fraction(const struct accumulate *a, const cert_bias *biases)
{
    int const most = most_fraction(a), fraction = a->op->node->fraction;
    bool more = fraction < most;
    for (int i = 0; more && i < a->w.channels; i++)
        more = must_fit(a, i, &biases[i], fraction + 1);
    return fraction <= most && !more
               ? QAT_OK
               : qat_fail(a->c->err, QAT_ERR_MISMATCH,
                          "%s: its accumulators have %d fractional bits in the file, but %s fit",
                          a->op->name, fraction, more ? "more" : "fewer");
}

/* ------------------------------------------------------------------ accumulators, biases */

/** max|q - Z_x| */
static int64_t largest_code(const qi_tensor *x)
{
    int32_t lo, hi;
    cert_codes_of(x, &lo, &hi);
    int64_t const below = x->zero_point - lo, above = hi - x->zero_point;
    return below > above ? below : above;
}

/** max|q - Z_x| sum |w - Z_w| of each channel. */
static void find_largest(struct accumulate *a)
{
    const qi_tensor *w = a->in[WEIGHTS];
    size_t const count = cert_count(w), channels = (size_t)a->w.channels;
    int64_t const most = largest_code(a->in[X]);
    for (size_t i = 0; i < count; i++)
        a->largest[a->w.axis == 0 ? i / (count / channels) : i % channels] +=
            labs((long)cert_code(w, i) - w->zero_point) * most;
}

/** Real biases, and what silent channels need. */
static qat_status find_biases(struct accumulate *a, cert_bias *biases)
{
    double const x = (double)cert_scale(a->in[X]);
    a->w.biases = biases;
    a->w.bias_unit = ldexp(x, 30 - most_fraction(a));
    a->w.reach = (double)largest_code(a->in[X]) * x / (double)cert_scale(a->y);
    return cert_real_biases(a->c, &a->w, biases);
}

static qat_status refuse_bias(const struct accumulate *a, int channel, double expected)
{
    return qat_fail(
        a->c->err, QAT_ERR_MISMATCH,
        "%s, channel %d: the file's bias is %lld, but the checkpoint gives %.4f before rounding",
        a->op->name, channel, (long long)bias_at(a, channel), expected);
}

/** What 2^-15 of a code is of an accumulator's last bits, if a code has 2^12 of these. */
static double ties(const struct accumulate *a, int channel)
{
    int const f = a->op->node->fraction;
    double const bits = exp2(f) / multiplier(a, channel);
    return f > 0 && bits >= 0x1p12 && bits < 0x1p31 ? fmax(1, round(bits * 0x1p-15)) : 0;
}

/** real, slack: in codes. */
static qat_status check_near(const struct accumulate *a, int channel, double real, double slack)
{
    int64_t const most = is_wide(a) ? (INT64_C(1) << 47) - 1 : INT32_MAX;
    double const room = (double)most - ldexp((double)a->largest[channel], a->op->node->fraction);
    double const expected = fmin(fmax(real + ties(a, channel), -room), room);
    double const own = 0x1p-50 * fabs(expected); /* float64's */
    double const code = (double)bias_at(a, channel);
    return fabs(code - expected) <= 0.5 + slack + own ? QAT_OK : refuse_bias(a, channel, expected);
}

static qat_status check_bias(const struct accumulate *a, int channel, const cert_bias *b)
{
    int const f = a->op->node->fraction;
    double const unit = ldexp((double)cert_scale(a->in[X]) * weight_scale(a, channel), -f);
    qat_status const st = check_near(a, channel, b->real / unit, b->slack / unit);
    return st ? st : check_near(a, channel, (double)b->in_float32 / unit, 0);
}

static qat_status check_biases(struct accumulate *a)
{
    qat_status st = check_fraction(a, a->w.biases);
    for (int i = 0; !st && i < a->w.channels; i++)
        st = check_bias(a, i, &a->w.biases[i]);
    a->c->result->biases += a->w.channels;
    double const product = (double)cert_scale(a->in[X]) * weight_scale(a, 0);
    float const scale = (float)ldexp(product, -a->op->node->fraction);
    if (!st && cert_scale(a->in[BIAS]) != scale)
        st = qat_fail(a->c->err, QAT_ERR_MISMATCH,
                      "%s: the scale of its biases is %.9g in the file, but the scales of its "
                      "input and its weights give %.9g",
                      a->op->name, (double)cert_scale(a->in[BIAS]), (double)scale);
    return st;
}

static qat_status check_largest(const struct accumulate *a)
{
    int64_t largest = 0;
    for (int i = 0; i < a->w.channels; i++) {
        int64_t const all =
            a->largest[i] * (INT64_C(1) << a->op->node->fraction) + llabs((long long)bias_at(a, i));
        largest = all > largest ? all : largest;
    }
    return cert_equal(a->c, a->op->name, "max_accumulator", a->op->node->max_accumulator, largest);
}

/* ------------------------------------------------------------------ multipliers */

/** M = significand 2^(exponent - 53) */
static qat_status check_split(const struct accumulate *a, int channel)
{
    double const real = multiplier(a, channel);
    size_t const i = (size_t)channel;
    double const significand = (double)(uint32_t)int_at(a->in[MULT], 2 * i) +
                               (double)int_at(a->in[MULT], 2 * i + 1) * 0x1p32;
    double const stored = ldexp(significand, int_at(a->in[SHIFT], i) - 53);
    bool const normal = significand >= 0x1p52 && significand < 0x1p53;
    a->c->result->multipliers++;
    if (stored == real && (normal || real == 0))
        return QAT_OK;
    return qat_fail(
        a->c->err, QAT_ERR_MISMATCH,
        "%s, channel %d: the file's multiplier is %.17g, but the scales in the file give %.17g",
        a->op->name, channel, stored, real);
}

static qat_status check_multipliers(const struct accumulate *a)
{
    bool const split = is_split(a);
    int const n = a->in[WEIGHTS]->channel_scales >= 0 ? a->w.channels : 1;
    bool const even = a->c->source->profile == QAT_PROFILE_ONNX;
    qat_status st = cert_equal(a->c, a->op->name, "the rounding", a->op->node->rounding,
                               split        ? QI_ROUND_DOUBLE
                               : is_wide(a) ? QI_ROUND_LONG
                               : even       ? QI_ROUND_EVEN
                                            : QI_ROUND_TWICE);
    if (!st)
        st = cert_check_constant(a->c, a->in[MULT], a->op->name, "mult", QI_S32, n, split ? 2 : 1);
    if (!st)
        st = cert_check_constant(a->c, a->in[SHIFT], a->op->name, "shift", QI_S32, n, 1);
    if (!st)
        st = cert_check_scale_1(a->c, a->in[MULT]);
    if (!st)
        st = cert_check_scale_1(a->c, a->in[SHIFT]);
    for (int i = 0; !st && i < n; i++)
        st = split ? check_split(a, i)
                   : cert_check_multiplier(a->c, a->op->name, "the multiplier",
                                           ldexp(multiplier(a, i), -a->op->node->fraction),
                                           int_at(a->in[MULT], (size_t)i),
                                           int_at(a->in[SHIFT], (size_t)i));
    return st;
}

/* ------------------------------------------------------------------ the window */

static qat_status check_convolution(const struct accumulate *a)
{
    static const char *const fields[] = {
        "stride_h", "stride_w", "dilation_h",          "dilation_w",
        "pad_top",  "pad_left", "groups or multiplier"};
    const qat_node *head = a->op->head;
    cert_window w = {.stride = {1, 1}, .dilation = {1, 1}};
    int const in = a->in[X]->dims[3], out = a->w.channels;
    if (head)
        cert_window_of(head, &w);
    int const groups = head && !a->depthwise ? (int)qat_attr(head, "groups") : 1;
    int const expected[] = {w.stride[0],
                            w.stride[1],
                            w.dilation[0],
                            w.dilation[1],
                            w.pad[0],
                            w.pad[1],
                            a->depthwise ? out / in : groups};
    qat_status st = QAT_OK;
    for (int i = 0; !st && i < 7; i++)
        st = cert_equal(a->c, a->op->name, fields[i], a->op->node->params[i], expected[i]);
    return st;
}

static qat_status check_transposed(const struct accumulate *a)
{
    static const char *const fields[] = {"stride_h", "stride_w", "pad_top", "pad_left"};
    cert_window w;
    cert_transposed_window_of(a->op->head, &w);
    int const expected[] = {w.stride[0], w.stride[1], w.pad[0], w.pad[1]};
    qat_status st = QAT_OK;
    for (int i = 0; !st && i < 4; i++)
        st = cert_equal(a->c, a->op->name, fields[i], a->op->node->params[i], expected[i]);
    return st;
}

static qat_status check_parameters(const struct accumulate *a)
{
    const qi_node *n = a->op->node;
    int const own = a->fully_connected ? 0 : a->transposed ? 4 : 7;
    qat_status st = cert_equal(a->c, a->op->name, "the number of parameters", n->n_params, own + 2);
    if (!st && !a->fully_connected)
        st = a->transposed ? check_transposed(a) : check_convolution(a);
    return st ? st
              : cert_check_clamp(a->c, a->op->name, a->y, a->op->act_min, a->op->act_max,
                                 n->params[own], n->params[own + 1]);
}

static qat_status check_constants(struct accumulate *a)
{
    cert_bias *biases = calloc((size_t)a->w.channels, sizeof *biases);
    if (!biases)
        return qat_out_of_memory(a->c->err, "certificate");
    qat_status st = find_biases(a, biases);
    if (!st)
        st = cert_check_weights(a->c, a->op, &a->w, a->in[WEIGHTS]);
    if (!st)
        st = cert_check_constant(a->c, a->in[BIAS], a->op->name, "bias_codes",
                                 is_wide(a) ? QI_S64 : QI_S32, a->w.channels, 1);
    if (!st) {
        find_largest(a);
        st = check_biases(a);
    }
    free(biases);
    a->w.biases = NULL;
    if (!st)
        st = check_largest(a);
    return st ? st : check_multipliers(a);
}

qat_status cert_check_accumulate(cert *c, const cert_op *op)
{
    char base[2 * QAT_NAME_MAX];
    struct accumulate a = {.c = c, .op = op};
    qat_status st = cert_equal(c, op->name, "the number of inputs", op->node->n_inputs, INPUTS);
    if (st)
        return st;
    for (int i = 0; i < INPUTS; i++)
        a.in[i] = cert_tensor(c, op->node->inputs[i]);
    a.y = cert_tensor(c, op->node->outputs[0]);
    const qat_node *head = op->layer->head;
    a.w = cert_weights_of(c, op->layer, base);
    a.depthwise = a.w.axis == 3;
    a.transposed = head && qat_node_is_op(head, "transpose_conv2d");
    a.fully_connected = head && qat_node_is_op(head, "fully_connected");
    a.largest = calloc((size_t)a.w.channels, sizeof *a.largest);
    if (!a.largest)
        return qat_out_of_memory(c->err, "certificate");
    st = check_constants(&a);
    if (!st)
        st = check_parameters(&a);
    free(a.largest);
    return st;
}
