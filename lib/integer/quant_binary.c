/**
 * add, sub, mul, and prelu's evaluation: Jacob et al. appendix A.2; docs/arithmetic.md, sections 4
 * and 5. Inputs broadcast as NumPy's.
 *
 *     add: twice = 2 max(S1, S2), in float64
 *          a' = requantize((q1 - Z1) << 20, S1 / twice),  b' in the same way
 *          y  = clamp(Z3 + requantize(a' +- b', twice / (2^20 S3)))
 *     mul: y  = clamp(Z3 + requantize((q1 - Z1)(q2 - Z2), M))
 *          M  = S1 S2 / S3, in float64 (profile paper) or every operation in float32 (tflite)
 *
 * Codes of fewer than 8 bits, profile paper: the last requantization of each has rounding ONCE.
 *
 * Profile onnx, every operation in float32, ties to even:
 *     add: y  = clamp(round(M1 q1 + (M2 q2 + c))), each product and sum rounded together
 *          c  = Z3 - (M1 Z1 + M2 Z2), M1 = S1 / S3, M2 = S2 / S3
 *     sub: add of a and of -b, which a table makes of b's codes
 *     mul: y  = clamp(round((q1 - Z1)(q2 - Z2) M + Z3))
 */
#include "autograd/ops/op.h"
#include "infer/arithmetic/fixedpoint.h"
#include "integer/quant_ops.h"

#include <math.h>
#include <string.h>

enum { LEFT_SHIFT = 20, LEFT_SHIFT_WIDE = 15 /* of 16-bit codes */ };

/* ------------------------------------------------------------------ appending the ops */

static qat_status emit_even_add(const qat_emit *e, const char *op, qat_error *err)
{
    const qat_qtensor *tensors = e->graph->tensors, *y = &tensors[e->output];
    int32_t params[9] = {0};
    for (int i = 0; i < 2; i++)
        qat_requantize_multiplier((double)(tensors[e->inputs[i]].scale / y->scale),
                                  &params[1 + 2 * i], &params[2 + 2 * i]);
    qat_emit_clamp(e, &params[7], &params[8]);
    return qat_emit_op(e, op, QI_ROUND_EVEN, 9, params, 0, err);
}

/** Append the tensor with -b: b's codes from the other end, by a table. */
static qat_status emit_negated(const qat_emit *e, int *index, qat_error *err)
{
    enum { CODES = 256 };
    qat_qtensor t = qat_part_like(&e->graph->tensors[e->inputs[1]], e->name, "negated");
    uint8_t codes[CODES];
    int32_t lo, hi;
    qat_tensor_codes(&t, &lo, &hi);
    for (int i = 0; i < CODES; i++)
        codes[i] = (uint8_t)(lo + hi - qi_clamp(qat_code_at((qi_type)t.type, i), lo, hi));
    float const least = -t.range_max;
    t.zero_point = lo + hi - t.zero_point;
    t.range_max = -t.range_min;
    t.range_min = least;
    *index = qat_qgraph_tensor(e->graph, &t, err);
    qat_status const st = qat_append_status(*index, err);
    qat_emit one = *e;
    one.name = t.name;
    one.n_inputs = 1;
    one.inputs = &e->inputs[1];
    one.output = *index;
    return st ? st : qat_emit_table(&one, 1, codes, err);
}

/** ONNX Runtime has no difference of codes: a - b is a + -b. */
static qat_status emit_even_sub(const qat_emit *e, qat_error *err)
{
    int inputs[] = {e->inputs[0], -1};
    qat_status const st = emit_negated(e, &inputs[1], err);
    qat_emit sum = *e;
    sum.inputs = inputs;
    return st ? st : emit_even_add(&sum, "add", err);
}

qat_status qat_emit_add(const qat_emit *e, const char *op, qat_error *err)
{
    const qat_qtensor *tensors = e->graph->tensors;
    if (e->profile == QAT_PROFILE_ONNX)
        return strcmp(op, "sub") == 0 ? emit_even_sub(e, err) : emit_even_add(e, op, err);
    double const s1 = (double)tensors[e->inputs[0]].scale;
    double const s2 = (double)tensors[e->inputs[1]].scale;
    double const twice = 2.0 * (s1 > s2 ? s1 : s2);
    int const left_shift = tensors[e->output].type == QI_S16 ? LEFT_SHIFT_WIDE : LEFT_SHIFT;
    double const out = (double)(1 << left_shift) * (double)tensors[e->output].scale;
    int32_t params[9] = {left_shift};
    qat_requantize_multiplier(s1 / twice, &params[1], &params[2]);
    qat_requantize_multiplier(s2 / twice, &params[3], &params[4]);
    qat_requantize_multiplier(twice / out, &params[5], &params[6]);
    qat_emit_clamp(e, &params[7], &params[8]);
    return qat_emit_op(e, op, qat_emit_rounding(e, QI_ROUND_TWICE), 9, params, 0, err);
}

qat_status qat_emit_add_shifted(const qat_emit *e, const char *op, int right_a, int right_b,
                                qat_error *err)
{
    /* 2 q 2^30 / 2^31 is q; 2^1 2^30 / 2^31 is 1 */
    int32_t params[9] = {1, 1 << 30, -right_a, 1 << 30, -right_b, 1 << 30, 1};
    qat_emit_clamp(e, &params[7], &params[8]);
    return qat_emit_op(e, op, QI_ROUND_TWICE, 9, params, 0, err);
}

qat_status qat_emit_mul(const qat_emit *e, qat_error *err)
{
    const qat_qtensor *tensors = e->graph->tensors;
    float const s1 = tensors[e->inputs[0]].scale, s2 = tensors[e->inputs[1]].scale;
    float const s3 = tensors[e->output].scale;
    int32_t params[4];
    double const real = e->profile == QAT_PROFILE_PAPER ? (double)s1 * (double)s2 / (double)s3
                                                        : (double)(s1 * s2 / s3);
    qat_requantize_multiplier(real, &params[0], &params[1]);
    qat_emit_clamp(e, &params[2], &params[3]);
    qi_rounding const rounding = e->profile == QAT_PROFILE_ONNX ? QI_ROUND_EVEN : QI_ROUND_TWICE;
    return qat_emit_op(e, "mul", qat_emit_rounding(e, rounding), 4, params, 0, err);
}

static qat_status freeze_add(const qat_fused_layer *layer, qat_error *err)
{
    qat_emit const e = qat_emit_of(layer);
    return qat_emit_add(&e, "add", err);
}

static qat_status freeze_sub(const qat_fused_layer *layer, qat_error *err)
{
    qat_emit const e = qat_emit_of(layer);
    return qat_emit_add(&e, "sub", err);
}

static qat_status freeze_mul(const qat_fused_layer *layer, qat_error *err)
{
    qat_emit const e = qat_emit_of(layer);
    return qat_emit_mul(&e, err);
}

const qat_quant qat_quant_add = {.role = QAT_ROLE_BINARY, .freeze = freeze_add, .takes_wide = true};
const qat_quant qat_quant_sub = {.role = QAT_ROLE_BINARY, .freeze = freeze_sub, .takes_wide = true};
const qat_quant qat_quant_mul = {.role = QAT_ROLE_BINARY, .freeze = freeze_mul, .takes_wide = true};

/* ------------------------------------------------------------------ exact evaluation */

/**
 * The distance, in values, between elements along each of the output's axes; 0 if x is broadcast.
 */
static void broadcast_strides(const qat_qtensor *x, const qat_qtensor *y,
                              size_t strides[QI_MAX_RANK])
{
    size_t step = 1;
    for (int i = y->rank - 1, j = x->rank - 1; i >= 0; i--, j--) {
        int const dim = j >= 0 ? x->dims[j] : 1;
        strides[i] = dim > 1 ? step : 0;
        step *= (size_t)dim;
    }
}

/** The offset of the element that output element 0 of row `row` (all axes but the last) reads. */
static size_t row_offset(const qat_qtensor *y, const size_t strides[QI_MAX_RANK], size_t row)
{
    size_t offset = 0;
    for (int i = y->rank - 2; i >= 0; i--) {
        offset += row % (size_t)y->dims[i] * strides[i];
        row /= (size_t)y->dims[i];
    }
    return offset;
}

typedef int32_t combine_fn(const qat_qop *op, int32_t a, int32_t b);

/** What is combined of input i's code: of bytes by a table, of 16-bit codes itself. */
typedef int32_t operand_fn(const qat_exact_call *call, int input, int32_t difference);

/** Of each byte. */
static void fill_operands(const qat_exact_call *call, int input, operand_fn *operand,
                          int32_t table[256])
{
    qat_exact_differences(qat_exact_input(call, input), table);
    for (int i = 0; i < 256; i++)
        table[i] = operand(call, input, table[i]);
}

/** The operand of code i of an input: of 8 bits from the table. */
static int32_t operand_at(const qat_exact_call *call, int input, const void *codes, size_t i,
                          const int32_t table[256], operand_fn *operand)
{
    return qat_exact_input(call, input)->type == QI_S16
               ? operand(call, input, ((const int16_t *)codes)[i])
               : table[((const uint8_t *)codes)[i]];
}

/** y = combine(operand of a, operand of b) + Z3, clamped, over one sample. */
static void combine_sample(const qat_exact_call *call, int sample, operand_fn *operand,
                           combine_fn *combine)
{
    int32_t table_a[256], table_b[256];
    const qat_qtensor *y = qat_exact_output(call);
    const qat_qop *op = call->op;
    const uint8_t *a = qat_exact_in(call, 0, sample), *b = qat_exact_in(call, 1, sample);
    uint8_t *out = qat_exact_out(call, sample);
    int32_t const lo = op->params[op->n_params - 2], hi = op->params[op->n_params - 1];
    size_t const width = (size_t)y->dims[y->rank - 1], rows = qat_qtensor_count(y) / width;
    size_t step_a[QI_MAX_RANK], step_b[QI_MAX_RANK];
    broadcast_strides(qat_exact_input(call, 0), y, step_a);
    broadcast_strides(qat_exact_input(call, 1), y, step_b);
    fill_operands(call, 0, operand, table_a);
    fill_operands(call, 1, operand, table_b);
    for (size_t row = 0; row < rows; row++) {
        size_t const row_a = row_offset(y, step_a, row), row_b = row_offset(y, step_b, row);
        for (size_t i = 0; i < width; i++) {
            size_t const at_a = row_a + i * step_a[y->rank - 1];
            size_t const at_b = row_b + i * step_b[y->rank - 1];
            int32_t const value = combine(op, operand_at(call, 0, a, at_a, table_a, operand),
                                          operand_at(call, 1, b, at_b, table_b, operand));
            int64_t const code = (int64_t)value + y->zero_point;
            qat_exact_store_clamped(y, out, row * width + i, code, lo, hi);
        }
    }
}

/** Bring it to the common scale `twice` / 2^20 (2^15 of 16-bit codes). */
static int32_t rescaled(const qat_exact_call *call, int input, int32_t difference)
{
    const int32_t *p = call->op->params;
    return qi_requantize(difference * (1 << p[0]), p[1 + 2 * input], p[2 + 2 * input]);
}

static int32_t unchanged(const qat_exact_call *call, int input, int32_t difference)
{
    return difference;
}

static int32_t combine_add(const qat_qop *op, int32_t a, int32_t b)
{
    return qat_rounded(op->rounding, a + b, op->params[5], op->params[6]);
}

static int32_t combine_sub(const qat_qop *op, int32_t a, int32_t b)
{
    return qat_rounded(op->rounding, a - b, op->params[5], op->params[6]);
}

static int32_t combine_mul(const qat_qop *op, int32_t a, int32_t b)
{
    return qat_rounded(op->rounding, a * b, op->params[0], op->params[1]);
}

/** a: x, b: alpha */
static int32_t combine_prelu(const qat_qop *op, int32_t a, int32_t b)
{
    const int32_t *p = op->params;
    return a >= 0 ? qi_requantize(a, p[0], p[1]) : qi_requantize(a * b, p[2], p[3]);
}

/** A code of QI_ROUND_EVEN from what it is before the last rounding. */
static uint8_t even_code(float value, int32_t lo, int32_t hi)
{
    float const code = rintf(value);
    return (uint8_t)(code < (float)lo ? lo : code > (float)hi ? hi : (int32_t)code);
}

/** add and mul of QI_ROUND_EVEN: what each byte of an input stands for, and the output. */
struct even {
    float a[256], b[256];
    float m, z;
    int32_t lo, hi;
};

typedef uint8_t even_fn(const struct even *e, uint8_t a, uint8_t b);

static void even_sample(const qat_exact_call *call, int sample, const struct even *e, even_fn *fn)
{
    const qat_qtensor *y = qat_exact_output(call);
    const uint8_t *a = qat_exact_in(call, 0, sample), *b = qat_exact_in(call, 1, sample);
    uint8_t *out = qat_exact_out(call, sample);
    size_t const width = (size_t)y->dims[y->rank - 1], rows = qat_qtensor_count(y) / width;
    size_t step_a[QI_MAX_RANK], step_b[QI_MAX_RANK];
    broadcast_strides(qat_exact_input(call, 0), y, step_a);
    broadcast_strides(qat_exact_input(call, 1), y, step_b);
    for (size_t row = 0; row < rows; row++) {
        const uint8_t *row_a = a + row_offset(y, step_a, row);
        const uint8_t *row_b = b + row_offset(y, step_b, row);
        for (size_t i = 0; i < width; i++)
            *out++ = fn(e, row_a[i * step_a[y->rank - 1]], row_b[i * step_b[y->rank - 1]]);
    }
}

static uint8_t even_sum(const struct even *e, uint8_t a, uint8_t b)
{
    return even_code(fmaf(e->m, e->a[a], e->b[b]), e->lo, e->hi);
}

static void even_add_sample(const qat_exact_call *call, int sample)
{
    const qat_qtensor *a = qat_exact_input(call, 0), *b = qat_exact_input(call, 1);
    const int32_t *p = call->op->params;
    float const m1 = qat_even_multiplier(p[1], p[2]), m2 = qat_even_multiplier(p[3], p[4]);
    float const z2 = m2 * (float)b->zero_point, zeros = fmaf(m1, (float)a->zero_point, z2);
    float const c = (float)qat_exact_output(call)->zero_point - zeros;
    struct even e = {.m = m1, .lo = p[7], .hi = p[8]};
    for (int i = 0; i < 256; i++) {
        e.a[i] = (float)qat_qtensor_code(a, (uint8_t)i);
        e.b[i] = fmaf(m2, (float)qat_qtensor_code(b, (uint8_t)i), c);
    }
    even_sample(call, sample, &e, even_sum);
}

static uint8_t even_product(const struct even *e, uint8_t a, uint8_t b)
{
    float const product = e->a[a] * e->b[b] * e->m; /* of two differences: exact */
    float const value = product + e->z;
    return even_code(value, e->lo, e->hi);
}

static void even_mul_sample(const qat_exact_call *call, int sample)
{
    const int32_t *p = call->op->params;
    int32_t a[256], b[256];
    struct even e = {.m = qat_even_multiplier(p[0], p[1]),
                     .z = (float)qat_exact_output(call)->zero_point,
                     .lo = p[2],
                     .hi = p[3]};
    qat_exact_differences(qat_exact_input(call, 0), a);
    qat_exact_differences(qat_exact_input(call, 1), b);
    for (int i = 0; i < 256; i++) {
        e.a[i] = (float)a[i];
        e.b[i] = (float)b[i];
    }
    even_sample(call, sample, &e, even_product);
}

static void add_sample(const qat_exact_call *call, int sample)
{
    if (call->op->rounding == QI_ROUND_EVEN)
        even_add_sample(call, sample);
    else
        combine_sample(call, sample, rescaled, combine_add);
}

static void sub_sample(const qat_exact_call *call, int sample)
{
    combine_sample(call, sample, rescaled, combine_sub);
}

static void mul_sample(const qat_exact_call *call, int sample)
{
    if (call->op->rounding == QI_ROUND_EVEN)
        even_mul_sample(call, sample);
    else
        combine_sample(call, sample, unchanged, combine_mul);
}

static void prelu_sample(const qat_exact_call *call, int sample)
{
    combine_sample(call, sample, unchanged, combine_prelu);
}

/* ------------------------------------------------------------------ rows */

/** M = twice / (2^20 S3); before it, each input is rounded on the shared scale: M each. */
static double add_bound(const qat_qgraph *graph, const qat_qop *op)
{
    double const s1 = qat_input_scale(graph, op, 0), s2 = qat_input_scale(graph, op, 1);
    double const y = qat_output_scale(graph, op);
    bool const is_wide = graph->tensors[op->outputs[0]].type == QI_S16;
    double const m = 2.0 * fmax(s1, s2) / (1 << (is_wide ? LEFT_SHIFT_WIDE : LEFT_SHIFT)) / y;
    return qat_rounded_quanta(op, m) + 2.0 * m + qat_float_quanta(graph, op, (s1 + s2) / y);
}

static double mul_bound(const qat_qgraph *graph, const qat_qop *op)
{
    double const m =
        qat_input_scale(graph, op, 0) * qat_input_scale(graph, op, 1) / qat_output_scale(graph, op);
    return qat_rounded_quanta(op, m) + qat_float_quanta(graph, op, 1.0);
}

/** Of both its multipliers. */
static double prelu_bound(const qat_qgraph *graph, const qat_qop *op)
{
    double const positive = ldexp(op->params[0], op->params[1] - 31);
    double const negative = ldexp(op->params[2], op->params[3] - 31);
    return qat_requantized_quanta(fmax(positive, negative)) + qat_float_quanta(graph, op, 1.0);
}

const qat_integer_op qat_integer_add = {
    .name = "add", .sample = add_sample, .is_wide = true, .bound = add_bound};
const qat_integer_op qat_integer_sub = {
    .name = "sub", .sample = sub_sample, .is_wide = true, .bound = add_bound};
const qat_integer_op qat_integer_mul = {
    .name = "mul", .sample = mul_sample, .is_wide = true, .bound = mul_bound};
const qat_integer_op qat_integer_prelu = {
    .name = "prelu", .sample = prelu_sample, .is_wide = true, .bound = prelu_bound};
