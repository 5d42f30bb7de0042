#include "rewrite/options.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

qat_quant_options qat_quant_defaults(void)
{
    return (qat_quant_options){.layout = QAT_LAYOUT_UINT8,
                               .weight_bits = 8,
                               .activation_bits = 8,
                               .ema_decay = 0.99,
                               .bn_freeze_delay = INT64_MAX,
                               .bn_fold = QAT_FOLD_TWO_PASS,
                               .input_min = -1,
                               .input_max = 1,
                               .weight_ranges = "ema",
                               .activation_ranges = "ema",
                               .learn_delay = 1,
                               .freeze_threshold = 1,
                               .freeze_threshold_end = 1,
                               .range_rate = 1,
                               .fraction = QAT_FRACTION_AUTO,
                               .inq_stages = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX}};
}

qat_quant_options qat_quant_observed(const qat_quant_options *options)
{
    qat_quant_options o = *options;
    strcpy(o.weight_ranges, "ema");
    strcpy(o.activation_ranges, "ema");
    o.power_of_two = false;
    o.freeze_bits = 0;
    o.n_weight_stages = o.n_activation_stages = 0;
    o.least_weight_bits = o.least_activation_bits = 0;
    for (int i = 0; i < o.n_layers; i++) {
        o.layers[i].weight_ranges[0] = o.layers[i].activation_ranges[0] = 0;
        o.layers[i].power_of_two = -1;
    }
    return o;
}

qat_quant_layer qat_quant_layer_defaults(const char *pattern)
{
    qat_quant_layer layer = {
        .per_channel = -1, .symmetric = -1, .power_of_two = -1, .is_float = -1};
    snprintf(layer.pattern, sizeof layer.pattern, "%s", pattern);
    return layer;
}

static qat_status check_bits(const char *what, int bits, qat_error *err)
{
    if (bits >= 2 && bits <= 8)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_ARGUMENT, "%s is %d, which is not in 2..8", what, bits);
}

static qat_status check_delay(const char *what, int64_t delay, qat_error *err)
{
    if (delay >= 0)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_ARGUMENT, "%s is %" PRId64 ", below 0", what, delay);
}

static qat_status check_delays(const qat_quant_options *o, qat_error *err)
{
    qat_status st = check_delay("weight_delay", o->weight_delay, err);
    if (!st)
        st = check_delay("activation_delay", o->activation_delay, err);
    if (st || o->bn_freeze_delay >= o->weight_delay)
        return st;
    if (o->weight_delay == INT64_MAX)
        return qat_fail(
            err, QAT_ERR_ARGUMENT,
            "bn_freeze_delay is step %" PRId64
            ", but weights are never quantized: batch norm can only freeze after it is folded",
            o->bn_freeze_delay);
    return qat_fail(err, QAT_ERR_ARGUMENT,
                    "bn_freeze_delay %" PRId64 " is before weight_delay %" PRId64
                    ": batch norm can only freeze after it is folded",
                    o->bn_freeze_delay, o->weight_delay);
}

static qat_status check_activation_bits(int bits, qat_error *err)
{
    if ((bits >= 2 && bits <= 8) || bits == QAT_WIDE_BITS)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_ARGUMENT, "activation_bits is %d, which is not in 2..8 nor %d",
                    bits, QAT_WIDE_BITS);
}

/** 0 means the network's value. */
static qat_status check_layer(const qat_quant_layer *layer, qat_error *err)
{
    qat_error inner;
    qat_status st = QAT_OK;
    if (layer->weight_bits)
        st = check_bits("weight_bits", layer->weight_bits, &inner);
    if (!st && layer->activation_bits)
        st = check_activation_bits(layer->activation_bits, &inner);
    if (!st && layer->input_bits)
        st = check_bits("input_bits", layer->input_bits, &inner);
    return st ? qat_fail(err, st, "%s%s[quant.layer %s]: %s", layer->where,
                         *layer->where ? ": " : "", layer->pattern, inner.message)
              : QAT_OK;
}

static qat_status check_stages(const qat_quant_options *o, qat_error *err)
{
    for (int i = 1; i < QAT_INQ_STAGES; i++)
        if (o->inq_stages[i] < o->inq_stages[i - 1])
            return qat_fail(err, QAT_ERR_ARGUMENT,
                            "inq_stages: step %" PRId64 " comes after step %" PRId64,
                            o->inq_stages[i], o->inq_stages[i - 1]);
    return check_delay("inq_stages", o->inq_stages[0], err);
}

static bool is_share(double x)
{
    return x >= 0 && x <= 1;
}

static qat_status check_freezing(const qat_quant_options *o, qat_error *err)
{
    if (o->freeze_bits && check_bits("freeze_bits", o->freeze_bits, err))
        return QAT_ERR_ARGUMENT;
    if (is_share(o->freeze_threshold) && is_share(o->freeze_threshold_end) &&
        is_share(o->freeze_share))
        return QAT_OK;
    return qat_fail(err, QAT_ERR_ARGUMENT,
                    "freeze_threshold %g, freeze_threshold_end %g or freeze_share %g is not in "
                    "0..1",
                    o->freeze_threshold, o->freeze_threshold_end, o->freeze_share);
}

static qat_status check_bits_stages(const char *what, const qat_bits_stage *stages, int n,
                                    int least, qat_error *err)
{
    qat_status st = least ? check_bits("the least number of bits", least, err) : QAT_OK;
    if (n < 0 || n > QAT_BITS_STAGES)
        return qat_fail(err, QAT_ERR_ARGUMENT, "%s: %d stages are not in 0..%d", what, n,
                        QAT_BITS_STAGES);
    for (int i = 0; !st && i < n; i++) {
        st = check_bits(what, stages[i].bits, err);
        if (!st && i > 0 && stages[i].bits >= stages[i - 1].bits)
            st = qat_fail(err, QAT_ERR_ARGUMENT, "%s: %d bits do not fall to %d", what,
                          stages[i - 1].bits, stages[i].bits);
        if (!st && stages[i].until <= (i > 0 ? stages[i - 1].until : 0))
            st = qat_fail(err, QAT_ERR_ARGUMENT,
                          "%s: the stage of %d bits ends at step %" PRId64
                          ", which is not after the step at which it begins",
                          what, stages[i].bits, stages[i].until);
    }
    return st;
}

static qat_status check_schedules(const qat_quant_options *o, qat_error *err)
{
    qat_status const st = check_bits_stages("weight_bits_schedule", o->weight_stages,
                                            o->n_weight_stages, o->least_weight_bits, err);
    return st ? st
              : check_bits_stages("activation_bits_schedule", o->activation_stages,
                                  o->n_activation_stages, o->least_activation_bits, err);
}

static qat_status check_ranges(const qat_quant_options *o, qat_error *err)
{
    qat_status st = check_stages(o, err);
    if (!st)
        st = check_freezing(o, err);
    if (!st)
        st = check_schedules(o, err);
    if (!st && o->learn_delay < 0)
        st = check_delay("learn_delay", o->learn_delay, err);
    if (!st && !(o->range_rate >= 0 && isfinite(o->range_rate)))
        st = qat_fail(err, QAT_ERR_ARGUMENT, "range_rate %g is not a finite number >= 0",
                      o->range_rate);
    if (!st && !(o->dampen >= 0 && isfinite(o->dampen)))
        st = qat_fail(err, QAT_ERR_ARGUMENT, "dampen %g is not a finite number >= 0", o->dampen);
    if (!st && (o->n_layers < 0 || o->n_layers > QAT_QUANT_LAYERS_MAX))
        st = qat_fail(err, QAT_ERR_ARGUMENT, "%d overrides of layers are not in 0..%d", o->n_layers,
                      QAT_QUANT_LAYERS_MAX);
    for (int i = 0; !st && i < o->n_layers; i++)
        st = check_layer(&o->layers[i], err);
    return st;
}

/* ------------------------------------------------------------------ integer forward */

static bool is_observed(const char *quantizer)
{
    return !*quantizer || strcmp(quantizer, "ema") == 0;
}

static qat_status not_on_integers(const qat_quant_layer *layer, const char *key, const char *value,
                                  qat_error *err)
{
    if (!layer)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "quant.%s = %s cannot be combined with quant.forward = integer", key,
                        value);
    return qat_fail(err, QAT_ERR_ARGUMENT,
                    "%s%s[quant.layer %s] %s = %s cannot be combined with quant.forward = integer",
                    layer->where, *layer->where ? ": " : "", layer->pattern, key, value);
}

bool qat_quant_has_integers(const char *quantizer)
{
    static const char *const others[] = {"none", "fgq", "inq"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(quantizer, others[i]) == 0)
            return false;
    return true;
}

/** Check the quantizers of the network, or of a layer. */
static qat_status check_quantizers(const qat_quant_layer *layer, const char *weights,
                                   const char *activations, qat_error *err)
{
    if (!qat_quant_has_integers(weights))
        return not_on_integers(layer, "weight_ranges", weights, err);
    return qat_quant_has_integers(activations)
               ? QAT_OK
               : not_on_integers(layer, "activation_ranges", activations, err);
}

static qat_status check_integers(const qat_quant_options *o, qat_error *err)
{
    qat_status st = check_quantizers(NULL, o->weight_ranges, o->activation_ranges, err);
    for (int i = 0; !st && i < o->n_layers; i++) {
        const qat_quant_layer *l = &o->layers[i];
        st = check_quantizers(l, l->weight_ranges, l->activation_ranges, err);
        if (!st && l->is_float == 1)
            st = not_on_integers(l, "float", "yes", err);
    }
    return st;
}

qat_status qat_quant_check_forward(const qat_quant_options *o, qat_error *err)
{
    return o->forward == QAT_FORWARD_INTEGER ? check_integers(o, err) : QAT_OK;
}

/** Fewer than 8; 0: not given. */
static bool is_few(int bits)
{
    return bits > 0 && bits < 8;
}

/** These have two or three codes, whatever number of bits is given. */
static bool has_few_codes(const char *weight_ranges)
{
    return strcmp(weight_ranges, "bwn") == 0 || strcmp(weight_ranges, "twn") == 0;
}

static bool has_few_bits(const qat_quant_options *o)
{
    bool any = is_few(o->weight_bits) || is_few(o->activation_bits) || is_few(o->input_bits) ||
               has_few_codes(o->weight_ranges);
    for (int i = 0; !any && i < o->n_layers; i++) {
        const qat_quant_layer *l = &o->layers[i];
        any = is_few(l->weight_bits) || is_few(l->activation_bits) || is_few(l->input_bits) ||
              has_few_codes(l->weight_ranges);
    }
    return any;
}

bool qat_quant_simulates_integers(const qat_quant_options *o)
{
    qat_error ignored;
    return o->forward != QAT_FORWARD_FAKE_QUANT && o->activation_bits <= 8 && has_few_bits(o) &&
           !check_integers(o, &ignored);
}

/* ------------------------------------------------------------------ 16-bit activations */

static qat_status not_wide(const qat_quant_layer *layer, const char *key, const char *value,
                           qat_error *err)
{
    const char *const section = layer ? layer->pattern : "";
    return qat_fail(err, QAT_ERR_ARGUMENT,
                    "%s%s%s%s%s%s = %s cannot be combined with quant.activation_bits = %d",
                    layer ? layer->where : "", layer && *layer->where ? ": " : "",
                    layer ? "[quant.layer " : "quant.", section, layer ? "] " : "", key, value,
                    QAT_WIDE_BITS);
}

/** All layers have 16-bit activations, or none has: an op's tensors are all of one kind. */
static qat_status check_layer_wide(const qat_quant_options *o, const qat_quant_layer *l,
                                   qat_error *err)
{
    bool const wide = o->activation_bits == QAT_WIDE_BITS;
    if (l->activation_bits && wide != (l->activation_bits == QAT_WIDE_BITS))
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "%s%s[quant.layer %s] activation_bits = %d: a network has %d-bit "
                        "activations in all layers or in none, and quant.activation_bits is %d",
                        l->where, *l->where ? ": " : "", l->pattern, l->activation_bits,
                        QAT_WIDE_BITS, o->activation_bits);
    if (wide && !is_observed(l->activation_ranges))
        return not_wide(l, "activation_ranges", l->activation_ranges, err);
    if (wide && l->input_bits)
        return not_wide(l, "input_bits", "2 to 8", err);
    return wide && l->power_of_two == 1 ? not_wide(l, "power_of_two", "yes", err) : QAT_OK;
}

qat_status qat_quant_check_wide(const qat_quant_options *o, qat_error *err)
{
    qat_status st = QAT_OK;
    if (o->activation_bits == QAT_WIDE_BITS) {
        if (o->layout != QAT_LAYOUT_INT8)
            return not_wide(NULL, "layout", "uint8", err);
        if (o->forward == QAT_FORWARD_INTEGER)
            return not_wide(NULL, "forward", "integer", err);
        if (!is_observed(o->activation_ranges))
            return not_wide(NULL, "activation_ranges", o->activation_ranges, err);
        if (o->power_of_two)
            return not_wide(NULL, "power_of_two", "yes", err);
        if (o->fraction > 0)
            return not_wide(NULL, "fraction", "1 or more", err);
        if (o->input_bits)
            return not_wide(NULL, "input_bits", "2 to 8", err);
    }
    for (int i = 0; !st && i < o->n_layers; i++)
        st = check_layer_wide(o, &o->layers[i], err);
    return st;
}

qat_status qat_quant_check(const qat_quant_options *o, qat_error *err)
{
    qat_status st = check_bits("weight_bits", o->weight_bits, err);
    if (!st)
        st = check_activation_bits(o->activation_bits, err);
    if (!st && o->input_bits)
        st = check_bits("input_bits", o->input_bits, err);
    if (!st && !(o->ema_decay >= 0 && o->ema_decay < 1))
        st = qat_fail(err, QAT_ERR_ARGUMENT, "ema_decay %g is not in [0, 1)", o->ema_decay);
    if (!st && ((unsigned)o->layout > QAT_LAYOUT_INT8 || (unsigned)o->bn_fold > QAT_FOLD_ONE_PASS))
        st = qat_fail(err, QAT_ERR_ARGUMENT, "unknown layout %d or bn_fold %d", (int)o->layout,
                      (int)o->bn_fold);
    if (!st && !(isfinite(o->input_min) && isfinite(o->input_max) && o->input_min <= o->input_max))
        st = qat_fail(err, QAT_ERR_ARGUMENT, "input range [%g, %g] is not a range",
                      (double)o->input_min, (double)o->input_max);
    if (!st)
        st = check_ranges(o, err);
    if (!st &&
        ((unsigned)o->forward > QAT_FORWARD_FAKE_QUANT || (unsigned)o->profile > QAT_PROFILE_ONNX))
        st = qat_fail(err, QAT_ERR_ARGUMENT, "unknown forward %d or profile %d", (int)o->forward,
                      (int)o->profile);
    if (!st && (o->fraction < QAT_FRACTION_AUTO || o->fraction > QI_MAX_FRACTION))
        st = qat_fail(err, QAT_ERR_ARGUMENT, "fraction %d is not in 0..%d", o->fraction,
                      QI_MAX_FRACTION);
    if (!st)
        st = qat_quant_check_forward(o, err);
    if (!st)
        st = qat_quant_check_wide(o, err);
    return st ? st : check_delays(o, err);
}

const qat_quant_options *qat_graph_quant_options(const qat_graph *graph)
{
    return qat_graph_annotation(graph);
}
