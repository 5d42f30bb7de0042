/**
 * The form integer: the rounding rules of qat/rounding.h, in ONNX's operators of int64. Div cuts
 * toward zero there, so of numbers that are not negative it is floor.
 */
#include "export/onnx/write.h"

#include <math.h>

const char *onnx_both(onnx_writer *w, const char *op, const char *a, const char *b)
{
    return onnx_apply(&w->m, op, op, a, b);
}

const char *onnx_with(onnx_writer *w, const char *op, const char *a, int64_t b)
{
    return onnx_both(w, op, a, onnx_scalar(&w->m, "number", ONNX_S64, &b));
}

const char *onnx_cast(onnx_writer *w, const char *x, onnx_type to)
{
    onnx_node *node = onnx_add(&w->m, "Cast", (const char *const[]){x, NULL});
    onnx_attr_int(&w->m, node, "to", to);
    return onnx_output(&w->m, node, onnx_name(&w->m, "Cast"));
}

const char *onnx_within(onnx_writer *w, const char *x, onnx_type type, const void *lo,
                        const void *hi)
{
    const char *const inputs[] = {x, onnx_scalar(&w->m, "number", type, lo),
                                  onnx_scalar(&w->m, "number", type, hi), NULL};
    return onnx_output(&w->m, onnx_add(&w->m, "Clip", inputs), onnx_name(&w->m, "Clip"));
}

const char *onnx_within_int32(onnx_writer *w, const char *x)
{
    return onnx_within(w, x, ONNX_S64, &(int64_t){INT32_MIN}, &(int64_t){INT32_MAX});
}

const char *onnx_codes_from(onnx_writer *w, onnx_tensor *t, onnx_form form, int32_t zero)
{
    const char *codes = onnx_cast(w, onnx_as(&w->m, &t->value, form), ONNX_S64);
    return zero + t->carry ? onnx_with(w, "Sub", codes, zero + t->carry) : codes;
}

/* ------------------------------------------------------------------ rounding */

const char *onnx_srdhm(onnx_writer *w, const char *a, const char *b)
{
    int64_t const lift = INT64_C(1) << 31; /* |a b| < 2^62 */
    const char *product =
        onnx_with(w, "Add", onnx_both(w, "Mul", a, b), (lift << 31) + (lift >> 1));
    return onnx_with(w, "Sub", onnx_with(w, "Div", product, lift), lift);
}

const char *onnx_divided(onnx_writer *w, const char *x, const char *half, const char *whole)
{
    const char *nudge = onnx_both(w, "Mul", onnx_both(w, "Sign", x, NULL), half);
    return onnx_both(w, "Div", onnx_both(w, "Add", x, nudge), whole);
}

/** A constant of one number for each output channel, or of one for all. */
static const char *each(onnx_writer *w, const onnx_scaling *by, onnx_type type, const void *values)
{
    int64_t const dims[] = {by->n, 1, 1};
    return onnx_constant(&w->m, "each", type, by->n == 1 ? 0 : by->rank, dims, values);
}

static int64_t power(int exponent)
{
    return INT64_C(1) << (exponent > 0 ? exponent : 0);
}

const char *onnx_requantized(onnx_writer *w, const char *x, const onnx_scaling *by)
{
    enum { LEFT, HALF, WHOLE, KINDS };
    int64_t *values[KINDS];
    int highest = 0, lowest = 0;
    for (int k = 0; k < KINDS; k++)
        if (!(values[k] = onnx_take(&w->m, (size_t)by->n, sizeof **values)))
            return "";
    for (int i = 0; i < by->n; i++) {
        int const shift = by->shift[i];
        values[LEFT][i] = power(shift);
        values[WHOLE][i] = power(-shift);
        values[HALF][i] = values[WHOLE][i] / 2;
        highest = shift > highest ? shift : highest;
        lowest = shift < lowest ? shift : lowest;
    }
    if (highest > 0)
        x = onnx_within_int32(w, onnx_both(w, "Mul", x, each(w, by, ONNX_S64, values[LEFT])));
    x = onnx_srdhm(w, x, each(w, by, ONNX_S64, by->mult));
    return lowest < 0 ? onnx_divided(w, x, each(w, by, ONNX_S64, values[HALF]),
                                     each(w, by, ONNX_S64, values[WHOLE]))
                      : x;
}

/**
 * qi_requantize_near_ties_up of |x| <= 2^30: the product is below 2^61 and half is at most 2^61, so
 * with 2^62 what is divided is positive.
 */
static const char *requantized_near_ties_up(onnx_writer *w, int64_t mult, int shift, const char *x)
{
    int const right = 31 - shift;
    int64_t const half = right ? INT64_C(1) << (right - 1) : 0, lift = INT64_C(1) << 62;
    x = onnx_with(w, "Add", onnx_with(w, "Mul", x, mult), lift + half + (half >> 14));
    return onnx_with(w, "Sub", onnx_with(w, "Div", x, INT64_C(1) << right), lift >> right);
}

const char *onnx_scaled_even(onnx_writer *w, const char *x, const onnx_scaling *by)
{
    float *factors = onnx_take(&w->m, (size_t)by->n, sizeof *factors);
    for (int i = 0; factors && i < by->n; i++)
        factors[i] = ldexpf((float)(by->mult[i] >> 7), by->shift[i] - 24);
    return factors
               ? onnx_both(w, "Mul", onnx_cast(w, x, ONNX_FLOAT), each(w, by, ONNX_FLOAT, factors))
               : "";
}

const char *onnx_nearest_even(onnx_writer *w, const char *x)
{
    return onnx_cast(w, onnx_both(w, "Round", x, NULL), ONNX_S64);
}

const char *onnx_requantized_by(onnx_writer *w, const qi_node *node, const char *mult,
                                const char *shift, const char *x)
{
    int64_t m = onnx_param(node, mult);
    int s = onnx_param(node, shift);
    onnx_scaling const by = {.n = 1, .mult = &m, .shift = &s};
    if (node->rounding == QI_ROUND_ONCE)
        return requantized_near_ties_up(w, m, s, x);
    return node->rounding == QI_ROUND_EVEN ? onnx_nearest_even(w, onnx_scaled_even(w, x, &by))
                                           : onnx_requantized(w, x, &by);
}

/** QI_ROUND_DOUBLE is a product of doubles, rounded to an integer, half away from zero. */
static const char *requantized_double(onnx_writer *w, const char *x, const onnx_scaling *by)
{
    double *factors = onnx_take(&w->m, (size_t)by->n, sizeof *factors);
    for (int i = 0; factors && i < by->n; i++)
        factors[i] = ldexp((double)by->mult[i], by->shift[i] - 53);
    if (!factors)
        return "";
    x = onnx_both(w, "Mul", onnx_cast(w, x, ONNX_DOUBLE), each(w, by, ONNX_DOUBLE, factors));
    x = onnx_within(w, x, ONNX_DOUBLE, &(double){INT32_MIN}, &(double){INT32_MAX});
    const char *whole = onnx_cast(w, x, ONNX_S64);
    const char *rest = onnx_both(w, "Sub", x, onnx_cast(w, whole, ONNX_DOUBLE));
    return onnx_both(w, "Add", whole, onnx_cast(w, onnx_both(w, "Add", rest, rest), ONNX_S64));
}

/* ------------------------------------------------------------------ outputs */

const char *onnx_code_of(onnx_writer *w, const onnx_tensor *y, int32_t zero, const char *x)
{
    if (zero + y->carry)
        x = onnx_with(w, "Add", x, zero + y->carry);
    return onnx_cast(w, onnx_within(w, x, ONNX_S64, &(int64_t){0}, &(int64_t){UINT8_MAX}), ONNX_U8);
}

void onnx_computed(onnx_writer *w, const qi_node *node, onnx_form form, const char *x)
{
    const onnx_tensor *y = onnx_out(w, node);
    onnx_coded(w, node, form, onnx_code_of(w, y, y->of->zero_point, x));
}

/** Multipliers and shifts of a layer, each of which has one for all channels or one for each. */
static onnx_scaling scaling_of(onnx_writer *w, const qi_node *node, int rank)
{
    enum { MULT = 3, SHIFT };
    const qi_tensor *mult = onnx_in(w, node, MULT)->of, *shift = onnx_in(w, node, SHIFT)->of;
    int const words = node->rounding == QI_ROUND_DOUBLE ? 2 : 1;
    int const mults = (int)(mult->bytes / 4) / words, shifts = (int)(shift->bytes / 4);
    onnx_scaling by = {.n = mults > shifts ? mults : shifts, .rank = rank};
    by.mult = onnx_take(&w->m, (size_t)by.n, sizeof *by.mult);
    by.shift = onnx_take(&w->m, (size_t)by.n, sizeof *by.shift);
    for (int i = 0; by.shift && i < by.n; i++) {
        size_t const at = mults == 1 ? 0 : (size_t)(i * words);
        by.mult[i] = qi_value_at(QI_S32, mult->data, at);
        if (words == 2) /* the low 32 bits of a significand, then the others */
            by.mult[i] = (by.mult[i] & UINT32_MAX) | qi_value_at(QI_S32, mult->data, at + 1) << 32;
        by.shift[i] = (int)qi_value_at(QI_S32, shift->data, shifts == 1 ? 0 : (size_t)i);
    }
    return by;
}

const char *onnx_summed(onnx_writer *w, const qi_node *node, const char *bias, int rank,
                        const char *sum)
{
    onnx_scaling const by = scaling_of(w, node, rank);
    int32_t const one = 1 << node->fraction;
    if (node->fraction)
        sum = onnx_both(w, "Mul", sum, onnx_scalar(&w->m, "one", ONNX_S32, &one));
    const char *x = onnx_both(w, "Add", sum, bias);
    if (w->m.failed)
        return "";
    x = node->rounding == QI_ROUND_DOUBLE ? requantized_double(w, x, &by)
        : node->rounding == QI_ROUND_EVEN ? onnx_nearest_even(w, onnx_scaled_even(w, x, &by))
                                          : onnx_requantized(w, onnx_cast(w, x, ONNX_S64), &by);
    return onnx_code_of(w, onnx_out(w, node), onnx_out(w, node)->of->zero_point, x);
}
