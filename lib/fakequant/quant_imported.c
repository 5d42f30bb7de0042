/**
 * Activations that only imported models have, as TensorFlow Lite's reference kernels compute them:
 *
 *     prelu        x >= 0: requantize(x, S / S'),   else requantize(x alpha, S S_alpha / S')
 *     leaky_relu   the same with one alpha: a table
 *     hard_swish   x relu6(x + 3) / 6 in 16-bit fixed point: a table
 *
 * x = q - Z, and the same for alpha's codes. Every M is computed in float32.
 */
#include "fakequant/quant_ops.h"
#include "infer/fixedpoint.h"

enum { CODES = 256 };

static const qat_qtensor *input(const qat_emit *e, int i)
{
    return &e->graph->tensors[e->inputs[i]];
}

static const qat_qtensor *output(const qat_emit *e)
{
    return &e->graph->tensors[e->output];
}

qat_status qat_emit_prelu(const qat_emit *e, qat_error *err)
{
    float const x = input(e, 0)->scale, alpha = input(e, 1)->scale, y = output(e)->scale;
    int32_t params[6];
    qat_requantize_multiplier((double)(x / y), &params[0], &params[1]);
    qat_requantize_multiplier((double)(x * alpha / y), &params[2], &params[3]);
    qat_clamp_codes(output(e), e->act_min, e->act_max, &params[4], &params[5]);
    return qat_emit_op(e, "prelu", QI_ROUND_TWICE, 6, params, 0, err);
}

/* ------------------------------------------------------------------ tables */

/** The value of a function for a difference x; the output's zero_point is not added yet. */
typedef int32_t step_fn(const void *params, int32_t x);

static qat_status emit_table(const qat_emit *e, step_fn *of, const void *params, qat_error *err)
{
    const qat_qtensor *x = input(e, 0), *y = output(e);
    uint8_t codes[CODES];
    int32_t lo, hi;
    qat_tensor_codes(y, &lo, &hi);
    for (int i = 0; i < CODES; i++) {
        int64_t const code = (int64_t)of(params, qat_code_at(x->type, i) - x->zero_point);
        codes[i] = (uint8_t)qi_clamp(qi_saturate_i64(code + y->zero_point), lo, hi);
    }
    return qat_emit_table(e, 1, codes, err);
}

struct multiplier {
    int32_t mult; /* of a negative number: negative */
    int32_t shift;
};

static struct multiplier multiplier_of(float real)
{
    struct multiplier m;
    qat_requantize_multiplier(real < 0 ? -(double)real : (double)real, &m.mult, &m.shift);
    if (real < 0)
        m.mult = -m.mult;
    return m;
}

struct leaky_relu {
    struct multiplier positive, negative;
};

static int32_t leaky_relu_of(const void *params, int32_t x)
{
    const struct leaky_relu *p = params;
    struct multiplier const m = x >= 0 ? p->positive : p->negative;
    return qi_requantize(x, m.mult, m.shift);
}

qat_status qat_emit_leaky_relu(const qat_emit *e, float alpha, qat_error *err)
{
    float const x = input(e, 0)->scale, y = output(e)->scale;
    struct leaky_relu const p = {multiplier_of(x / y), multiplier_of(x * alpha / y)};
    qat_status const st = qat_refuse_activation(e, "leaky_relu", err);
    return st ? st : emit_table(e, leaky_relu_of, &p, err);
}

/* ------------------------------------------------------------------ hard swish */

/** A multiplier in 16 bits: real = mult 2^(shift - 15). */
struct multiplier_i16 {
    int16_t mult;
    int32_t shift;
};

struct hard_swish {
    struct multiplier_i16 output; /* S / (128 S'), at most 1 */
    struct multiplier_i16 relu;   /* x in 1/128 steps to where 32768 means 3 */
};

static struct multiplier_i16 multiplier_i16_of(float real)
{
    struct multiplier const m = multiplier_of(real);
    int32_t const rounded = m.mult < 0x7fff0000 ? (m.mult + (1 << 15)) >> 16 : INT16_MAX;
    return (struct multiplier_i16){(int16_t)rounded, m.shift};
}

static int16_t limit_i16(int32_t x)
{
    return (int16_t)qi_clamp(x, INT16_MIN, INT16_MAX);
}

/**
 * Turns x, in 1/128 steps, into [-1, 1) in Q15 between -3 and 3, saturating outside. There is a
 * left shift by all but one place, the multiplier, then the last place; or the multiplier and a
 * right shift.
 */
static int16_t relu_part(int16_t fine, const struct multiplier_i16 *m)
{
    int const left = m->shift < 16 ? m->shift : 16; /* beyond that, everything but 0 saturates */
    int16_t x = fine;
    if (left > 0)
        x = qi_saturating_rounding_mul_pot_i16(x, left - 1);
    x = qi_srdhm_i16(x, m->mult);
    if (left > 0)
        return limit_i16(2 * x);
    return qi_rdbp_i16(x, left > -15 ? -left : 15);
}

/** The product of relu and value is truncated towards zero, unlike all others. */
static int32_t hard_swish_of(const void *params, int32_t x)
{
    const struct hard_swish *p = params;
    int16_t const fine = (int16_t)(x * 128); /* |x| <= 255 */
    int16_t const value = qi_srdhm_i16(fine, p->output.mult);
    int32_t const relu = (relu_part(fine, &p->relu) + (1 << 15)) >> 1; /* Q15, [0, 1) */
    return qi_rdbp_i16((int16_t)(relu * value / (1 << 15)), -p->output.shift);
}

qat_status qat_emit_hard_swish(const qat_emit *e, qat_error *err)
{
    float const x = input(e, 0)->scale, y = output(e)->scale, fine = 1.0f / 128.0f * x;
    struct hard_swish const p = {multiplier_i16_of(fine / y),
                                 multiplier_i16_of(fine / (3.0f / 32768.0f))};
    qat_status const st = qat_refuse_activation(e, "hard_swish", err);
    if (st)
        return st;
    if (p.output.shift > 0 || p.output.shift < -15)
        return qat_fail(err, QAT_ERR_UNSUPPORTED,
                        "%s: hard_swish from scale %g to %g: their ratio is outside 2^-8..128",
                        e->name, (double)x, (double)y);
    return emit_table(e, hard_swish_of, &p, err);
}
