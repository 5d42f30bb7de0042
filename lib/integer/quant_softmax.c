/**
 * softmax along the last axis: Jacob et al. A.1; docs/arithmetic.md, section 9; the same in both
 * profiles.
 *
 *     (mult, shift) = quantize_multiplier(min(beta S 2^26, 2^31 - 1))
 *     diff_min = -floor(31 2^26 / 2^shift)           lower differences give the lowest code
 *     e = exp_q5(srdhm((q - largest q) << shift, mult))
 *     (r, n) = reciprocal_q12(sum of rdbp(e, 12))
 *     y = rdbp(srdhm(r, e), n + 31 - b) + lowest code            output scale 2^-b
 */
#include "autograd/ops/op.h"
#include "infer/arithmetic/fixedpoint.h"
#include "integer/quant_ops.h"

#include <math.h>

/* ------------------------------------------------------------------ appending the op */

qat_status qat_emit_softmax(const qat_emit *e, float beta, qat_error *err)
{
    if (e->graph->tensors[e->inputs[0]].type == QI_S16)
        return qat_emit_softmax16(e, beta, err);
    double const scale = (double)beta * (double)e->graph->tensors[e->inputs[0]].scale;
    int32_t mult;
    int shift;
    qat_quantize_multiplier(fmin(scale * (1 << 26), (double)INT32_MAX), &mult, &shift);
    if (shift < 0) /* all differences are below 2^-18 then, so exp is 1 */
        mult = shift = 0;
    int32_t const params[] = {mult, shift, -(int32_t)floor(ldexp(31.0, 26 - shift))};
    qat_status const st = qat_refuse_activation(e, "softmax", err);
    return st ? st : qat_emit_op(e, "softmax", QI_ROUND_NONE, 3, params, 0, err);
}

static qat_status freeze_softmax(const qat_fused_layer *layer, qat_error *err)
{
    qat_emit const e = qat_emit_of(layer);
    return qat_emit_softmax(&e, 1.0f, err);
}

const qat_quant qat_quant_softmax = {
    .role = QAT_ROLE_FIXED, .freeze = freeze_softmax, .fixed_max = 1, .takes_wide = true};

/* ------------------------------------------------------------------ exact evaluation */

/** exponential[d]: exp of a code that is d below the row's largest, Q0.31; 0 if it is not used. */
static void fill_exponentials(const int32_t *p, int32_t exponential[256])
{
    for (int d = 0; d < 256; d++) {
        int64_t const shifted = -(int64_t)d * (INT64_C(1) << p[1]);
        exponential[d] =
            -d < p[2] ? 0 : qi_exp_on_negative_values(qi_srdhm(qi_saturate_i64(shifted), p[0]), 5);
    }
}

static void softmax_row(const int32_t value[256], const int32_t exponential[256],
                        const qat_qtensor *y, const uint8_t *from, void *to)
{
    int const n = y->dims[y->rank - 1];
    int32_t lo, hi, largest = INT32_MIN;
    uint32_t sum = 0;
    int over;
    qat_tensor_codes(y, &lo, &hi);
    for (int i = 0; i < n; i++)
        largest = value[from[i]] > largest ? value[from[i]] : largest;
    for (int i = 0; i < n; i++)
        sum += (uint32_t)qi_rdbp(exponential[largest - value[from[i]]], 12);
    int32_t const reciprocal = qi_reciprocal_q12(sum, &over);
    int const right = over + 31 - y->bits;
    for (int i = 0; i < n; i++) {
        int32_t const product = qi_srdhm(reciprocal, exponential[largest - value[from[i]]]);
        int32_t const code = qi_clamp(lo + (right > 31 ? 0 : qi_rdbp(product, right)), lo, hi);
        if (y->type == QI_S16)
            ((int16_t *)to)[i] = (int16_t)code;
        else
            ((uint8_t *)to)[i] = (uint8_t)code;
    }
}

static void softmax_sample(const qat_exact_call *call, int sample)
{
    const qat_qtensor *y = qat_exact_output(call);
    size_t const n = (size_t)y->dims[y->rank - 1], count = qat_qtensor_count(y);
    const uint8_t *from = qat_exact_in(call, 0, sample);
    uint8_t *to = qat_exact_out(call, sample);
    int32_t value[256], exponential[256];
    qat_exact_differences(qat_exact_input(call, 0), value);
    fill_exponentials(call->op->params, exponential);
    for (size_t i = 0; i < count; i += n)
        softmax_row(value, exponential, y, from + i, to + i * qi_type_bytes(y->type));
}

/** The sum's n terms are rounded to 2^-19. */
static double softmax_bound(const qat_qgraph *graph, const qat_qop *op)
{
    const qat_qtensor *y = &graph->tensors[op->outputs[0]];
    return QAT_FIXED_POINT_QUANTA + ldexp((double)y->dims[y->rank - 1], y->bits - 20);
}

const qat_integer_op qat_integer_softmax = {
    .name = "softmax", .sample = softmax_sample, .bound = softmax_bound};
