/**
 * Functions that the quant_*.c files share: append an op, codes and clamps of a tensor,
 * multipliers, and the loops and look-ups of the exact evaluation.
 *
 *     clamp code = zero_point + round(bound / scale), half away from zero, within the codes
 */
#include "integer/quant_ops.h"

#include "base/parallel.h"
#include "infer/arithmetic/fixedpoint.h"
#include "layer/layer.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

qat_emit qat_emit_of(const qat_fused_layer *layer)
{
    return (qat_emit){.graph = layer->graph,
                      .profile = layer->profile,
                      .options = layer->options,
                      .name = layer->head->name,
                      .n_inputs = layer->n_inputs,
                      .inputs = layer->inputs,
                      .output = layer->output,
                      .act_min = layer->act_min,
                      .act_max = layer->act_max,
                      .empty = qat_is_empty_range(&layer->output_params)};
}

qat_status qat_emit_op(const qat_emit *e, const char *op, qi_rounding rounding, int n_params,
                       const int32_t *params, int64_t max_accumulator, qat_error *err)
{
    return qat_append_status(qat_qgraph_op(e->graph, op, e->name, rounding, e->n_inputs, e->inputs,
                                           1, &e->output, n_params, params, max_accumulator, err),
                             err);
}

qi_rounding qat_emit_rounding(const qat_emit *e, qi_rounding rounding)
{
    int least = e->graph->tensors[e->output].bits;
    for (int i = 0; i < e->n_inputs; i++) {
        int const bits = e->graph->tensors[e->inputs[i]].bits;
        least = bits < least ? bits : least;
    }
    bool const once = e->options && qat_wanted_fraction(e->options, e->profile, false, least, 8);
    return once ? QI_ROUND_ONCE : rounding;
}

int32_t qat_rounded(qi_rounding rounding, int32_t acc, int32_t mult, int32_t shift)
{
    return rounding == QI_ROUND_ONCE ? qi_requantize_near_ties_up(acc, mult, shift)
                                     : qi_requantize(acc, mult, shift);
}

qat_status qat_append_status(int index, const qat_error *err)
{
    if (index >= 0)
        return QAT_OK;
    return err ? err->status : QAT_ERR_NOMEM;
}

qat_status qat_refuse_activation(const qat_emit *e, const char *op, qat_error *err)
{
    if (isinf(e->act_min) && isinf(e->act_max))
        return QAT_OK;
    return qat_fail(err, QAT_ERR_UNSUPPORTED, "%s: %s cannot clamp its output to [%g, %g]", e->name,
                    op, (double)e->act_min, (double)e->act_max);
}

bool qat_same_grid(const qat_qtensor *a, const qat_qtensor *b)
{
    return a->type == b->type && a->bits == b->bits && a->zero_point == b->zero_point &&
           memcmp(&a->scale, &b->scale, sizeof a->scale) == 0;
}

qat_status qat_require_same_grid(const qat_emit *e, const char *op, int i, qat_error *err)
{
    const qat_qtensor *x = &e->graph->tensors[e->inputs[i]], *y = &e->graph->tensors[e->output];
    bool const same_codes =
        x->type == y->type && x->bits == y->bits && x->zero_point == y->zero_point;
    if (same_codes && (e->profile == QAT_PROFILE_TFLITE || qat_same_grid(x, y)))
        return QAT_OK;
    return qat_fail(err, QAT_ERR_ARGUMENT,
                    "%s: %s keeps codes, but its input has scale %g, zero_point %d and its output "
                    "%g, %d",
                    e->name, op, (double)x->scale, (int)x->zero_point, (double)y->scale,
                    (int)y->zero_point);
}

void qat_tensor_codes(const qat_qtensor *t, int32_t *lo, int32_t *hi)
{
    int64_t const most = INT64_C(1) << t->bits;
    *lo = (int32_t)(t->type == QI_U8 ? 0 : -most / 2);
    *hi = (int32_t)(*lo + most - 1);
}

int32_t qat_largest_difference(const qat_qtensor *t)
{
    int32_t lo, hi;
    qat_tensor_codes(t, &lo, &hi);
    int32_t const below = t->zero_point - lo;
    int32_t const above = hi - t->zero_point;
    return below > above ? below : above;
}

int32_t qat_code_at(qi_type type, int i)
{
    return type == QI_S8 ? i - 128 : i;
}

int qat_pad_before(int in, int out, int kernel, int stride, int dilation)
{
    int64_t const reach = (int64_t)(kernel - 1) * dilation + 1;
    int64_t const total = (int64_t)(out - 1) * stride + reach - in;
    return total > 0 ? (int)(total / 2) : 0;
}

void qat_window_pads(const qat_window *w, const qat_qtensor *x, const qat_qtensor *y,
                     int32_t pads[2])
{
    pads[0] = w->explicit_pads
                  ? w->pad_top
                  : qat_pad_before(x->dims[1], y->dims[1], w->kernel_h, w->stride_h, w->dilation_h);
    pads[1] = w->explicit_pads
                  ? w->pad_left
                  : qat_pad_before(x->dims[2], y->dims[2], w->kernel_w, w->stride_w, w->dilation_w);
}

void qat_requantize_multiplier(double real, int32_t *mult, int32_t *shift)
{
    int exponent;
    qat_quantize_multiplier(real > DBL_MAX ? DBL_MAX : real, mult, &exponent);
    if (exponent > 30) {
        *mult = INT32_MAX;
        exponent = 30;
    }
    *shift = exponent;
}

/** A bound as a code. It is limited to lo..hi before it becomes an integer. */
static int32_t bound_code(const qat_qtensor *t, float bound, int32_t lo, int32_t hi)
{
    float const steps = roundf(bound / t->scale);
    if (!(steps > (float)(lo - t->zero_point)))
        return lo;
    if (steps >= (float)(hi - t->zero_point))
        return hi;
    return t->zero_point + (int32_t)steps;
}

void qat_clamp_codes(const qat_qtensor *output, float act_min, float act_max, int32_t *lo,
                     int32_t *hi)
{
    int32_t lowest, highest;
    qat_tensor_codes(output, &lowest, &highest);
    *lo = bound_code(output, act_min, lowest, highest);
    *hi = bound_code(output, act_max, lowest, highest);
}

static int32_t simulated_code(const qat_qparams *p, float bound)
{
    return isinf(bound) ? (bound < 0 ? p->lo : p->hi) : qat_code(p, bound);
}

void qat_clamp_codes_of(qat_profile profile, const qat_qtensor *output, float act_min,
                        float act_max, int32_t *lo, int32_t *hi)
{
    if (profile == QAT_PROFILE_TFLITE || output->bits >= 8) {
        qat_clamp_codes(output, act_min, act_max, lo, hi);
        return;
    }
    qat_qparams p =
        qat_stored_qparams(output->type, output->bits, output->scale, output->zero_point);
    p.tie = QAT_TIE;
    *lo = simulated_code(&p, act_min);
    *hi = simulated_code(&p, act_max);
}

void qat_emit_clamp(const qat_emit *e, int32_t *lo, int32_t *hi)
{
    const qat_qtensor *y = &e->graph->tensors[e->output];
    if (e->empty)
        *lo = *hi = y->zero_point;
    else
        qat_clamp_codes_of(e->profile, y, e->act_min, e->act_max, lo, hi);
}

void qat_part_name(char name[QAT_NAME_MAX], const char *layer, const char *part)
{
    snprintf(name, QAT_NAME_MAX, "%.*s/%s", QAT_NAME_MAX - 24, layer, part);
}

qat_qtensor qat_part_like(const qat_qtensor *like, const char *layer, const char *part)
{
    qat_qtensor t = *like;
    t.data = NULL;
    t.source_index = -1;
    t.border = QI_BORDER_NONE;
    t.is_state = false;
    t.next = 0;
    qat_part_name(t.name, layer, part);
    return t;
}

/* ------------------------------------------------------------------ exact evaluation */

struct each {
    const qat_exact_call *call;
    qat_exact_sample_fn *fn;
};

static void each_tile(void *context, int tile, int thread)
{
    const struct each *each = context;
    each->fn(each->call, tile);
}

void qat_exact_each(const qat_exact_call *call, qat_exact_sample_fn *fn)
{
    struct each each = {call, fn};
    qat_parallel(call->batch, each_tile, &each);
}

const qat_qtensor *qat_exact_input(const qat_exact_call *call, int i)
{
    return &call->graph->tensors[call->op->inputs[i]];
}

const qat_qtensor *qat_exact_output(const qat_exact_call *call)
{
    return &call->graph->tensors[call->op->outputs[0]];
}

const uint8_t *qat_exact_in(const qat_exact_call *call, int i, int sample)
{
    const qat_qtensor *t = qat_exact_input(call, i);
    size_t const bytes = t->data ? 0 : qat_qtensor_bytes(t);
    return (const uint8_t *)call->in[i] + (size_t)sample * bytes;
}

uint8_t *qat_exact_out(const qat_exact_call *call, int sample)
{
    size_t const bytes = qat_qtensor_bytes(qat_exact_output(call));
    return (uint8_t *)call->out[0] + (size_t)sample * bytes;
}

int32_t qat_exact_code(const qat_qtensor *t, const void *codes, size_t i)
{
    return qat_load_code(t->type, codes, i);
}

void qat_exact_store(const qat_qtensor *t, void *codes, size_t i, int32_t code)
{
    qat_store_code(t->type, codes, i, code);
}

void qat_exact_store_clamped(const qat_qtensor *t, void *codes, size_t i, int64_t code, int32_t lo,
                             int32_t hi)
{
    qat_exact_store(t, codes, i, (int32_t)(code < lo ? lo : code > hi ? hi : code));
}

double qat_requantized_quanta(double m)
{
    return 0.5 + fmin(m, 0.25);
}

double qat_rounded_quanta(const qat_qop *op, double m)
{
    return op->rounding == QI_ROUND_ONCE ? 0.5 + QAT_TIE : qat_requantized_quanta(m);
}

double qat_float_quanta(const qat_qgraph *graph, const qat_qop *op, double n)
{
    enum { ROUNDINGS = 8 };
    return graph->tensors[op->outputs[0]].type == QI_S16 ? n * ROUNDINGS * ldexp(1.0, 15 - 24) : 0;
}

double qat_input_scale(const qat_qgraph *graph, const qat_qop *op, int i)
{
    return (double)graph->tensors[op->inputs[i]].scale;
}

double qat_output_scale(const qat_qgraph *graph, const qat_qop *op)
{
    return (double)graph->tensors[op->outputs[0]].scale;
}

void qat_exact_differences(const qat_qtensor *t, int32_t difference[256])
{
    for (int i = 0; i < 256; i++) {
        int32_t const code = qat_code_at((qi_type)t->type, i);
        difference[(uint8_t)code] = code - t->zero_point;
    }
}

void qat_exact_map(const qat_exact_call *call, int sample, const int32_t table[256])
{
    const uint8_t *from = qat_exact_in(call, 0, sample);
    uint8_t *to = qat_exact_out(call, sample);
    size_t const count = qat_qtensor_bytes(qat_exact_output(call));
    for (size_t i = 0; i < count; i++)
        to[i] = (uint8_t)table[from[i]];
}

qat_status qat_freeze_layer(const qat_fused_layer *layer, qat_error *err)
{
    const qat_quant *quant = layer->head->op->quant;
    if (quant && quant->freeze)
        return quant->freeze(layer, err);
    if (qat_has_role(layer->head, QAT_ROLE_TABLE) || qat_has_role(layer->head, QAT_ROLE_FIXED))
        return qat_freeze_table(layer, err);
    return qat_fail(err, QAT_ERR_UNSUPPORTED, "%s: op %s has no integer form%s", layer->head->name,
                    layer->head->op->name,
                    quant ? " (its quant entry has no freeze function)" : "");
}
