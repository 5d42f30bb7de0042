/**
 * Constants of accumulating layers: weight codes, int32 biases, and the proof that no accumulator
 * leaves int32 (docs/arithmetic.md, sections 1 and 3).
 *
 *     acc = sum (q - Z)(w - Zw) 2^f + bias,   |acc| <= max|q - Z| sum |w - Zw| 2^f + |bias| < 2^31
 */
#include "base/number.h"
#include "fakequant/weights.h"
#include "integer/quant_ops.h"
#include "qat/quantizer.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool has_own_rule(const qat_node *weights)
{
    const qat_quantizer *q = qat_node_quantizer(weights);
    return q->forward || q->own_values || qat_weights_freeze(weights);
}

/**
 * The values from which codes are made: the weights, or the result of a quantizer with its own
 * rule.
 */
static const float *values_to_code(const qat_node *weights)
{
    return has_own_rule(weights) ? weights->value : weights->inputs[0]->value;
}

/** Code one channel: runs of `inner` values, `channels` runs apart. */
static qat_qparams code_channel(const qat_node *weights, const qat_weight_view *v, int channel,
                                uint8_t *codes)
{
    qat_qparams const p = qat_weight_qparams(weights, channel);
    const float *values = values_to_code(weights);
    for (int o = 0; o < v->outer; o++) {
        size_t const at = qat_weight_run(v, o, channel);
        for (size_t i = at; i < at + (size_t)v->inner; i++)
            codes[i] = (uint8_t)(v->per_channel ? qat_code_per_channel(&p, values[i])
                                                : qat_code(&p, values[i]));
    }
    return p;
}

void qat_quantizer_codes(const qat_node *weights, uint8_t *codes)
{
    qat_weight_view const view = qat_weight_view_of(weights);
    for (int c = 0; c < view.channels; c++)
        code_channel(weights, &view, c, codes);
}

/** Check that every code of a channel stands for the value with which the network was trained. */
static qat_status check_channel(const qat_qtensor *t, const qat_node *weights,
                                const qat_weight_view *v, int channel, qat_error *err)
{
    const uint8_t *codes = t->data;
    qat_qparams const p = qat_weight_qparams(weights, channel);
    for (size_t i = 0; i < (size_t)v->outer * (size_t)v->inner; i++) {
        size_t const at =
            qat_weight_run(v, (int)(i / (size_t)v->inner), channel) + i % (size_t)v->inner;
        float const real = qat_real_of(&p, qat_qtensor_code(t, codes[at]));
        if (real < weights->value[at] || real > weights->value[at])
            return qat_fail(err, QAT_ERR_NUMERIC,
                            "%s: the quantizer %s makes %.9g of weight %zu, which is not the value "
                            "of a code: the nearest is %.9g",
                            t->name, qat_node_quantizer(weights)->name, (double)weights->value[at],
                            at, (double)real);
    }
    return QAT_OK;
}

static qat_status check_values(const qat_qtensor *t, const qat_node *weights,
                               const qat_weight_view *v, qat_error *err)
{
    qat_status st = QAT_OK;
    for (int c = 0; !st && c < v->channels; c++)
        st = check_channel(t, weights, v, c, err);
    return st;
}

int qat_weight_bits(const qat_node *weights, qat_layout layout)
{
    int32_t lo, hi;
    qat_qparams const p = qat_weight_qparams(weights, 0);
    for (int bits = 2; bits < 8; bits++) {
        qat_code_range(layout, bits, false, &lo, &hi); /* some weights use the lowest code */
        if (p.lo >= lo && p.hi <= hi)
            return bits;
    }
    return 8;
}

/**
 * Fill in codes and parameters. With several channels, the descriptor has the parameters of the
 * first.
 */
static void code_weights(qat_qtensor *t, const qat_node *weights, const qat_weight_view *v,
                         uint8_t *codes, float *scales)
{
    qat_qparams const first = code_channel(weights, v, 0, codes);
    t->scale = first.scale;
    t->zero_point = first.zero_point;
    t->range_min = first.min;
    t->range_max = first.max;
    t->data = codes;
    if (!v->per_channel)
        return;
    t->channel_scales = scales;
    t->n_channels = v->channels;
    scales[0] = first.scale;
    for (int c = 1; c < v->channels; c++)
        scales[c] = code_channel(weights, v, c, codes).scale;
}

qat_status qat_freeze_weights(const qat_fused_layer *layer, const qat_node *weights, int *index,
                              qat_error *err)
{
    const qat_shape *shape = &weights->inputs[0]->shape;
    qat_weight_view const view = qat_weight_view_of(weights);
    qat_layout const layout = (qat_layout)qat_attr(weights, "layout");
    qat_qtensor t = {.type = layout == QAT_LAYOUT_INT8 ? QI_S8 : QI_U8,
                     .bits = qat_weight_bits(weights, layout),
                     .rank = shape->rank,
                     .source_index = -1};
    snprintf(t.name, sizeof t.name, "%s", weights->name);
    memcpy(t.dims, shape->dims, sizeof t.dims);
    qat_arena *memory = layer->graph->memory;
    uint8_t *codes = qat_arena_take(memory, qat_shape_count(shape));
    float *scales = qat_arena_array(memory, (size_t)view.channels, sizeof *scales);
    if (!codes || !scales)
        return qat_out_of_memory(err, t.name);
    code_weights(&t, weights, &view, codes, scales);
    qat_status const st = has_own_rule(weights) ? check_values(&t, weights, &view, err) : QAT_OK;
    if (st)
        return st;
    *index = qat_qgraph_tensor(layer->graph, &t, err);
    return qat_append_status(*index, err);
}

void qat_accumulator_bounds(const qat_qtensor *x, const qat_qtensor *w, bool depthwise,
                            int64_t *bounds)
{
    int32_t difference[256];
    size_t const count = qat_qtensor_count(w);
    size_t const channels = (size_t)w->dims[depthwise ? w->rank - 1 : 0];
    size_t const run = depthwise ? 1 : count / channels; /* consecutive values of one channel */
    const uint8_t *codes = w->data;
    qat_exact_differences(w, difference);
    memset(bounds, 0, channels * sizeof *bounds);
    for (size_t i = 0; i < count; i++)
        bounds[i / run % channels] += abs(difference[codes[i]]);
    int32_t const largest = qat_largest_difference(x);
    for (size_t c = 0; c < channels; c++)
        bounds[c] *= largest;
}

qat_status qat_largest_accumulator(const qat_qtensor *x, const qat_qtensor *w,
                                   const qat_qtensor *bias, bool depthwise, qi_rounding rounding,
                                   int fraction, const char *name, int64_t *largest, qat_error *err)
{
    size_t const channels = (size_t)w->dims[depthwise ? w->rank - 1 : 0];
    bool const is_wide = x->type == QI_S16 && rounding != QI_ROUND_TWICE;
    int64_t const most = is_wide ? (INT64_C(1) << 47) - 1 : INT32_MAX;
    int64_t *bounds = calloc(channels, sizeof *bounds);
    if (!bounds)
        return qat_out_of_memory(err, name);
    qat_accumulator_bounds(x, w, depthwise, bounds);
    *largest = 0;
    for (size_t c = 0; c < channels; c++) {
        int64_t const b = qi_value_at(bias->type, bias->data, c);
        int64_t const sum = bounds[c] * (INT64_C(1) << fraction);
        int64_t const bound = b < -most || b > most ? most + 1 : sum + llabs((long long)b);
        *largest = bound > *largest ? bound : *largest;
    }
    free(bounds);
    if (*largest <= most)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_NUMERIC, "%s: its accumulator can reach %" PRId64 ", beyond %s",
                    name, *largest, is_wide ? "48 bits" : "int32");
}

/* ------------------------------------------------------------------ fraction */

int qat_wanted_fraction(const qat_quant_options *options, qat_profile profile, bool fully_connected,
                        int input_bits, int weight_bits)
{
    bool const rounds_twice =
        profile == QAT_PROFILE_PAPER || (profile == QAT_PROFILE_TFLITE && !fully_connected);
    if (!rounds_twice || input_bits > 8)
        return 0;
    if (options->fraction != QAT_FRACTION_AUTO)
        return options->fraction;
    bool const is_coarse = input_bits < 8 || weight_bits < 8;
    return profile == QAT_PROFILE_PAPER && is_coarse ? QI_MAX_FRACTION : 0;
}

static bool can_be_stored(double multiplier, int fraction)
{
    int32_t whole, mult;
    int shift;
    qat_quantize_multiplier(multiplier, &whole, &shift);
    qat_quantize_multiplier(ldexp(multiplier, -fraction), &mult, &shift);
    return mult != 0 || whole == 0;
}

int qat_largest_fraction(int most, int64_t bound, double bias, double multiplier)
{
    int f = most;
    while (f > 0 && !(ldexp((double)bound, f) + fabs(round(ldexp(bias, f))) <= INT32_MAX &&
                      can_be_stored(multiplier, f)))
        f--;
    return f;
}

/* ------------------------------------------------------------------ bias */

/** What is needed to turn a layer's biases into int32. */
struct bias_frame {
    const qat_fused_layer *layer;
    const qat_qtensor *x, *w;
    const int64_t *bounds; /* by channel: bound of the sum */
    int64_t most;          /* that the accumulator may be */
    const double *multipliers;
    int fraction;
};

/** Accumulators of 8-bit codes have 32 bits; of 16-bit codes 48, which the roundings take. */
static int64_t most_of(const qat_qtensor *x)
{
    return x->type == QI_S16 ? (INT64_C(1) << 47) - 1 : INT32_MAX;
}

/** S_x S_w 2^-fraction */
static double bias_scale(const struct bias_frame *f, int channel)
{
    float const w = f->w->channel_scales ? f->w->channel_scales[channel] : f->w->scale;
    return ldexp((double)f->x->scale * (double)w, -f->fraction);
}

static double real_bias(const struct bias_frame *f, int channel)
{
    return f->layer->bias ? (double)f->layer->bias[channel] : 0.0;
}

/* ------------------------------------------------------------------ silent channels */

float qat_silent_scale(double bias, double s1, float s2, int64_t bound, double multiplier,
                       int fraction, int64_t most)
{
    double const moved = 0x1p-10; /* codes */
    int const bits = 30;          /* of the bias. Its multiplier, a code's 2^-30, can be stored */
    bool const fits = fabs(round(bias / (s1 * (double)s2))) <= (double)(most - bound);
    double const scale = fabs(bias) / ldexp(s1, bits - fraction);
    bool const is_silent = !fits && multiplier * (double)bound < moved;
    return is_silent && scale >= (double)FLT_MIN && scale <= (double)FLT_MAX ? (float)scale : 0;
}

/** Set a channel's codes to 0. */
static void clear_channel(const qat_qtensor *w, bool depthwise, int channel, int channels)
{
    uint8_t *codes = (uint8_t *)w->data;
    size_t const n = qat_qtensor_count(w) / (size_t)channels;
    for (size_t i = 0; i < n; i++)
        codes[depthwise ? i * (size_t)channels + (size_t)channel : (size_t)channel * n + i] =
            (uint8_t)w->zero_point;
}

/** The descriptor has the range of the first channel. */
static void set_channel_scale(qat_qtensor *w, int channel, float scale)
{
    w->channel_scales[channel] = scale;
    if (channel > 0)
        return;
    w->range_min = roundf(w->range_min / w->scale) * scale;
    w->range_max = roundf(w->range_max / w->scale) * scale;
    w->scale = scale;
}

qat_status qat_silence_channels(const qat_fused_layer *layer, int weights, bool depthwise,
                                const double *multipliers, int fraction, qat_error *err)
{
    qat_qtensor *w = &layer->graph->tensors[weights];
    const qat_qtensor *x = &layer->graph->tensors[layer->inputs[0]];
    int const channels = w->dims[depthwise ? w->rank - 1 : 0];
    if (!layer->bias || layer->n_bias != channels || w->n_channels != channels)
        return QAT_OK;
    int64_t *bounds = qat_arena_array(layer->graph->memory, (size_t)channels, sizeof *bounds);
    if (!bounds)
        return qat_out_of_memory(err, layer->head->name);
    qat_accumulator_bounds(x, w, depthwise, bounds);
    for (int c = 0; c < channels; c++) {
        float const scale =
            qat_silent_scale((double)layer->bias[c], (double)x->scale, w->channel_scales[c],
                             bounds[c], multipliers[c], fraction, most_of(x));
        if (scale > 0) {
            clear_channel(w, depthwise, c, channels);
            set_channel_scale(w, c, scale);
        }
    }
    return QAT_OK;
}

/* ------------------------------------------------------------------ bias codes */

int64_t qat_tie_units(double multiplier, int fraction)
{
    double const unit = ldexp(multiplier, -fraction);
    if (fraction == 0 || !(unit <= 0x1p-12))
        return 0;
    return unit > 0x1p-31 ? (int64_t)fmax(1, round((double)QAT_TIE / unit)) : 0;
}

int64_t qat_bias_code(double bias, double scale, int64_t ties, int64_t room)
{
    double const q = round(bias / scale);
    if (fabs(q + (double)ties) > (double)room)
        return q + (double)ties < 0 ? -room : room;
    return (int64_t)q + ties;
}

/**
 * bias / scale to the nearest integer, half away from zero. clamped says whether it was too large.
 */
static qat_status bias_code(const struct bias_frame *f, int channel, int64_t *code, bool *clamped,
                            qat_error *err)
{
    const char *name = f->layer->head->name;
    double const real = real_bias(f, channel);
    int64_t const room = f->most - f->bounds[channel] * (INT64_C(1) << f->fraction);
    if (room < 0)
        return qat_fail(err, QAT_ERR_NUMERIC,
                        "%s: channel %d: its accumulator can reach %" PRId64
                        ", beyond %s; fewer inputs a channel or fewer bits are needed",
                        name, channel, f->bounds[channel],
                        f->x->type == QI_S16 ? "48 bits" : "int32");
    if (!isfinite(real))
        return qat_fail(err, QAT_ERR_NUMERIC, "%s: channel %d: its bias is %g", name, channel,
                        real);
    if (isinf((float)bias_scale(f, channel)))
        return qat_fail(err, QAT_ERR_NUMERIC,
                        "%s: channel %d: a unit of its accumulator, the product of the scales of "
                        "input and weights, is %g, which float32 does not hold",
                        name, channel, bias_scale(f, channel));
    *code = qat_bias_code(real, bias_scale(f, channel),
                          qat_tie_units(f->multipliers[channel], f->fraction), room);
    *clamped = fabs(round(real / bias_scale(f, channel))) > (double)room;
    return QAT_OK;
}

static void warn_clamped(const struct bias_frame *f, int clamped, int first, int64_t code)
{
    char text[QAT_ERROR_MESSAGE_MAX];
    if (!f->layer->warn)
        return;
    qat_format(text, sizeof text,
               "%s: %d biases were clamped so that the accumulator stays within %s; the first is "
               "channel %d: %g became %g",
               f->layer->head->name, clamped, f->x->type == QI_S16 ? "48 bits" : "int32", first,
               (double)f->layer->bias[first], (double)code * bias_scale(f, first));
    f->layer->warn(f->layer->warn_context, text);
}

static qat_status bias_codes(const struct bias_frame *f, int channels, int64_t *codes,
                             qat_error *err)
{
    int clamped = 0, first = 0;
    for (int c = 0; c < channels; c++) {
        bool cut = false;
        qat_status const st = bias_code(f, c, &codes[c], &cut, err);
        if (st)
            return st;
        if (cut && clamped++ == 0)
            first = c;
    }
    if (clamped)
        warn_clamped(f, clamped, first, codes[first]);
    return QAT_OK;
}

/**
 * Append the codes, with their scale. If each channel has its own, only the first is noted; the
 * others follow from the weights'.
 */
static qat_status append_bias(const struct bias_frame *f, int channels, int64_t *codes, int *index,
                              qat_error *err)
{
    bool const is_long = f->x->type == QI_S16;
    int32_t *narrow = qat_arena_array(f->layer->graph->memory, (size_t)channels, sizeof *narrow);
    if (!narrow)
        return qat_out_of_memory(err, f->layer->head->name);
    for (int i = 0; !is_long && i < channels; i++)
        narrow[i] = (int32_t)codes[i];
    qat_qtensor t = {.type = is_long ? QI_S64 : QI_S32,
                     .bits = is_long ? 64 : 32,
                     .rank = 1,
                     .dims = {channels},
                     .scale = (float)bias_scale(f, 0),
                     .data = is_long ? (void *)codes : narrow,
                     .source_index = -1};
    qat_part_name(t.name, f->layer->head->name, "bias_codes");
    *index = qat_qgraph_tensor(f->layer->graph, &t, err);
    return qat_append_status(*index, err);
}

qat_status qat_freeze_bias(const qat_fused_layer *layer, int weights, bool depthwise,
                           const double *multipliers, int *fraction, int *index, qat_error *err)
{
    const qat_qtensor *w = &layer->graph->tensors[weights];
    const qat_qtensor *x = &layer->graph->tensors[layer->inputs[0]];
    int const channels = w->dims[depthwise ? w->rank - 1 : 0];
    if (layer->bias && layer->n_bias != channels)
        return qat_fail(err, QAT_ERR_SHAPE, "%s: %d biases for %d output channels",
                        layer->head->name, layer->n_bias, channels);
    int64_t *bounds = qat_arena_array(layer->graph->memory, (size_t)channels, sizeof *bounds);
    int64_t *codes = qat_arena_array(layer->graph->memory, (size_t)channels, sizeof *codes);
    struct bias_frame f = {layer, x, w, bounds, most_of(x), multipliers, 0};
    if (!bounds || !codes)
        return qat_out_of_memory(err, layer->head->name);
    qat_accumulator_bounds(x, w, depthwise, bounds);
    for (int c = 0; c < channels; c++)
        *fraction = qat_largest_fraction(*fraction, bounds[c], real_bias(&f, c) / bias_scale(&f, c),
                                         multipliers[c]);
    f.fraction = *fraction;
    qat_status const st = bias_codes(&f, channels, codes, err);
    return st ? st : append_bias(&f, channels, codes, index, err);
}
