/**
 * add, sub, mul, requantize, softmax, logistic, tanh. Their parameters are computed in float64 from
 * the scales, so they must be exactly equal (docs/arithmetic.md, sections 4, 5, 8, 9, 10). And
 * embedding: reshape; a table to the numbers that codes stand for, of 16-bit codes requantize; cast
 * to int32; gather of rows.
 *
 *     numbers   scale 1, zero point 0; the input's codes are at most 1 apart
 *     rows      |code - (w / S_y + Z_y)| <= 1/2 + 2^-11 for each value w of the checkpoint's table;
 *               of 16-bit codes 1/2 + 1/8
 */
#include "certify/certify.h"

#include <math.h>
#include <string.h>

static double scale(const qi_tensor *t)
{
    return (double)cert_scale(t);
}

static qat_status check_clamp(const cert *c, const cert_op *op, int at)
{
    return cert_check_clamp(c, op->name, cert_output(c, op), op->act_min, op->act_max,
                            op->node->params[at], op->node->params[at + 1]);
}

/** Profile onnx: M = S / S_y of each input, in float32; nothing is shifted. */
static qat_status check_even_add(cert *c, const cert_op *op)
{
    const int32_t *p = op->node->params;
    qat_status st = cert_check_form(c, op->name, op->node, 2, 9, QI_ROUND_EVEN, 0);
    if (!st)
        st = cert_equal(c, op->name, "the parameter left_shift", p[0], 0);
    for (int i = 0; !st && i < 2; i++)
        st = cert_check_multiplier(
            c, op->name, i ? "the second input's multiplier" : "the first input's multiplier",
            (double)(float)(scale(cert_input(c, op, i)) / scale(cert_output(c, op))), p[1 + 2 * i],
            p[2 + 2 * i]);
    for (int i = 5; !st && i < 7; i++)
        st = cert_equal(c, op->name, "the output's multiplier", p[i], 0);
    return st ? st : check_clamp(c, op, 7);
}

qat_status cert_check_add(cert *c, const cert_op *op)
{
    if (c->source->profile == QAT_PROFILE_ONNX)
        return check_even_add(c, op);
    const int32_t *p = op->node->params;
    double const a = scale(cert_input(c, op, 0)), b = scale(cert_input(c, op, 1));
    double const twice = 2 * fmax(a, b);
    int const left = cert_output(c, op)->type == QI_S16 ? 15 : 20;
    qat_status st =
        cert_check_form(c, op->name, op->node, 2, 9, cert_rounding(c, op->node, QI_ROUND_TWICE), 0);
    if (!st)
        st = cert_equal(c, op->name, "the parameter left_shift", p[0], left);
    if (!st)
        st = cert_check_multiplier(c, op->name, "the first input's multiplier", a / twice, p[1],
                                   p[2]);
    if (!st)
        st = cert_check_multiplier(c, op->name, "the second input's multiplier", b / twice, p[3],
                                   p[4]);
    if (!st)
        st = cert_check_multiplier(c, op->name, "the output's multiplier",
                                   twice / (exp2(left) * scale(cert_output(c, op))), p[5], p[6]);
    return st ? st : check_clamp(c, op, 7);
}

qat_status cert_check_mul(cert *c, const cert_op *op)
{
    const int32_t *p = op->node->params;
    double const a = scale(cert_input(c, op, 0)), b = scale(cert_input(c, op, 1)),
                 y = scale(cert_output(c, op));
    qat_profile const profile = c->source->profile;
    double const in_float32 = (double)((float)((float)(a * b)) / (float)y);
    double const real = profile == QAT_PROFILE_PAPER ? a * b / y : in_float32;
    qi_rounding const usual = profile == QAT_PROFILE_ONNX ? QI_ROUND_EVEN : QI_ROUND_TWICE;
    qat_status st =
        cert_check_form(c, op->name, op->node, 2, 4, cert_rounding(c, op->node, usual), 0);
    if (!st)
        st = cert_check_multiplier(c, op->name, "the multiplier", real, p[0], p[1]);
    return st ? st : check_clamp(c, op, 2);
}

qat_status cert_check_requantize(cert *c, const cert_op *op)
{
    if (c->source->profile == QAT_PROFILE_ONNX)
        return cert_check_even_table(c, op);
    const int32_t *p = op->node->params;
    double const real = scale(cert_input(c, op, 0)) / scale(cert_output(c, op));
    bool const in_float32 = c->source->profile == QAT_PROFILE_TFLITE && op->layer &&
                            op->layer->activation &&
                            !(cert_output(c, op)->type == QI_S16 && op->act_min < 0);
    qat_status st =
        cert_check_form(c, op->name, op->node, 1, 4, cert_rounding(c, op->node, QI_ROUND_TWICE), 0);
    if (!st)
        st = cert_check_multiplier(c, op->name, "the multiplier",
                                   in_float32 ? (double)(float)real : real, p[0], p[1]);
    return st ? st : check_clamp(c, op, 2);
}

/** (mult, shift) and a bound that follows from the shift. */
static qat_status check_fixed_point(cert *c, const cert_op *op, int32_t mult, int32_t shift,
                                    const char *bound, int32_t expected)
{
    const int32_t *p = op->node->params;
    qat_status st = cert_equal(c, op->name, "the parameter mult", p[0], mult);
    if (!st)
        st = cert_equal(c, op->name, "the parameter shift", p[1], shift);
    c->result->multipliers++;
    return st ? st : cert_equal(c, op->name, bound, p[2], expected);
}

qat_status cert_check_softmax(cert *c, const cert_op *op)
{
    int32_t mult, shift;
    cert_multiplier(fmin(scale(cert_input(c, op, 0)) * 0x1p26, (double)INT32_MAX), &mult, &shift);
    if (shift < 0)
        mult = shift = 0;
    qat_status const st = cert_check_form(c, op->name, op->node, 1, 3, QI_ROUND_NONE, 0);
    return st ? st
              : check_fixed_point(c, op, mult, shift, "diff_min",
                                  -(int32_t)floor(31 * exp2(26 - shift)));
}

qat_status cert_check_sigmoid(cert *c, const cert_op *op)
{
    int32_t mult, shift;
    cert_multiplier(scale(cert_input(c, op, 0)) * 0x1p27, &mult, &shift);
    double const radius = fmin(fmax(floor(15 * exp2(27 - shift)), 1), 0x1p30);
    qat_status const st = cert_check_form(c, op->name, op->node, 1, 3, QI_ROUND_NONE, 0);
    return st ? st
              : check_fixed_point(c, op, mult, shift < 31 ? shift : 31, "radius", (int32_t)radius);
}

/* ------------------------------------------------------------------ embedding */

static const double ROWS_SLACK = 0x1p-11;

/** A tensor of whole numbers, in the shape of the codes. */
static qat_status check_numbers(const cert *c, const qi_tensor *t, const qi_tensor *codes, int type)
{
    qat_status st = cert_equal(c, t->name, "the type", t->type, type);
    if (!st)
        st =
            cert_equal(c, t->name, "the number of bits", t->bits, 8 * (int64_t)qi_type_bytes(type));
    if (!st)
        st = cert_equal(c, t->name, "the zero point", t->zero_point, 0);
    if (!st)
        st = cert_check_scale_1(c, t);
    for (int i = 0; !st && i < 2; i++)
        st = cert_equal(c, t->name, "the range (as the bits of its float32)", t->range_bits[i], 0);
    for (int i = 0; !st && i < QI_MAX_RANK; i++)
        st = cert_equal(c, t->name, "a dimension", t->dims[i], codes->dims[i]);
    return st;
}

/** The input's codes, without its last dimension. */
static qat_status check_codes(const cert *c, const qi_tensor *t, const qi_tensor *x)
{
    qat_status st = cert_equal(c, t->name, "the rank", t->rank, x->rank - 1);
    for (int i = 0; !st && i < t->rank; i++)
        st = cert_equal(c, t->name, "a dimension", t->dims[i], x->dims[i]);
    for (int i = 0; !st && i < 2; i++)
        st = cert_equal(c, t->name, "the range (as the bits of its float32)", t->range_bits[i],
                        x->range_bits[i]);
    if (st || cert_scale(t) <= 1)
        return st;
    return qat_fail(c->err, QAT_ERR_MISMATCH,
                    "%s: its codes are %g apart, but there is a row for each number", t->name,
                    (double)cert_scale(t));
}

/** Find what writes "<layer>/<part>", which `reader` must read as its input i. */
static qat_status find_part(cert *c, const cert_op *op, const char *part, const char *kernel,
                            const qi_node *reader, int i, cert_op *found)
{
    char name[QAT_NAME_MAX];
    cert_part_name(name, op->name, part);
    *found = *op;
    found->act_min = -INFINITY;
    found->act_max = INFINITY;
    qat_status const st = cert_find_op(c, name, kernel, op->name, 0, NULL, &found->node);
    return st ? st
              : cert_equal(c, op->name, "an input", reader->inputs[i], found->node->outputs[0]);
}

/** What gives the indices: reshape, table or requantize, cast of x. */
static qat_status check_indices(cert *c, const cert_op *op, int x)
{
    bool const is_wide = cert_tensor(c, x)->type == QI_S16;
    cert_op reshape, numbers, cast;
    qat_status st = find_part(c, op, "indices", "cast", op->node, 1, &cast);
    if (!st)
        st = cert_check_form(c, op->name, cast.node, 1, 0, QI_ROUND_NONE, 0);
    if (!st)
        st = find_part(c, op, "numbers", cert_numbers_kernel(is_wide), cast.node, 0, &numbers);
    numbers.act_max = op->head->inputs[op->head->n_data]->shape.dims[0] - 1;
    if (!st)
        st = (is_wide ? cert_check_requantize : cert_check_row_numbers)(c, &numbers);
    if (!st)
        st = find_part(c, op, "codes", "reshape", numbers.node, 0, &reshape);
    if (!st)
        st = cert_check_reshape(c, &reshape);
    if (!st)
        st = cert_equal(c, op->name, "an input", reshape.node->inputs[0], x);
    if (st)
        return st;
    const qi_tensor *codes = cert_tensor(c, reshape.node->outputs[0]);
    st = check_codes(c, codes, cert_tensor(c, x));
    if (!st)
        st = check_numbers(c, cert_tensor(c, numbers.node->outputs[0]), codes,
                           codes->type == QI_S16 ? QI_S16 : QI_U8);
    return st ? st : check_numbers(c, cert_tensor(c, cast.node->outputs[0]), codes, QI_S32);
}

static qat_status check_rows(cert *c, const cert_op *op)
{
    const qi_tensor *rows = cert_input(c, op, 0);
    const qi_tensor *y = cert_output(c, op);
    const qat_node *w = op->head->inputs[op->head->n_data];
    const float *values = NULL;
    int32_t const lo = cert_code_of_bound(y, op->act_min), hi = cert_code_of_bound(y, op->act_max);
    size_t const count = qat_shape_count(&w->shape);
    double const step = scale(y), slack = ldexp(ROWS_SLACK, y->bits > 8 ? 8 : 0);
    char name[QAT_NAME_MAX];
    cert_part_name(name, op->name, "rows");
    qat_status st = cert_values(c, w->name, count, &values);
    if (!st)
        st = cert_check_name(c, op->name, rows, name);
    if (!st)
        st = cert_equal(c, op->name, "the kind of its rows", rows->kind, QI_CONSTANT);
    if (!st)
        st = cert_equal(c, rows->name, "the number of bits", rows->bits, y->bits);
    for (int i = 0; !st && i < 2; i++)
        st = cert_equal(c, rows->name, "the range (as the bits of its float32)",
                        rows->range_bits[i], y->range_bits[i]);
    if (!st)
        st = cert_equal(c, rows->name, "the type", rows->type, y->type);
    if (!st)
        st = cert_equal(c, rows->name, "the zero point", rows->zero_point, y->zero_point);
    if (!st)
        st = cert_equal(c, rows->name, "the scale (as the bits of its float32)", rows->scale_bits,
                        y->scale_bits);
    for (int i = 0; !st && i < 2; i++)
        st = cert_equal(c, rows->name, "a dimension", rows->dims[i], w->shape.dims[i]);
    if (!st)
        st = cert_equal(c, rows->name, "the number of values", (int64_t)cert_count(rows),
                        (int64_t)count);
    c->result->tables += (int64_t)count;
    for (size_t i = 0; !st && i < count; i++)
        if (!cert_near_code((double)values[i], step, y->zero_point, lo, hi, slack,
                            cert_code(rows, i)))
            return qat_fail(c->err, QAT_ERR_MISMATCH,
                            "%s: the file's table has the code %d for its value %zu, %.9g, which "
                            "is %.4f before rounding",
                            op->name, (int)cert_code(rows, i), i, (double)values[i],
                            (double)values[i] / step + y->zero_point);
    return st;
}

qat_status cert_check_embedding(cert *c, const cert_op *op)
{
    qat_status st = cert_check_form(c, op->name, op->node, 2, 2, QI_ROUND_NONE, 0);
    for (int i = 0; !st && i < 2; i++)
        st = cert_equal(c, op->name, "a parameter of gather", op->node->params[i], 0);
    if (!st)
        st = check_rows(c, op);
    return st ? st : check_indices(c, op, cert_info(c, op->head->inputs[0])->tensor);
}
