/** Ops that have writers of their own in the form integer. */
#include "export/onnx/write.h"
#include "infer/arithmetic/binary32.h"
#include "infer/arithmetic/code_functions.h"

#include <string.h>

enum { CODES = 256, X = 0 };

/* ------------------------------------------------------------------ tables of a code */

/** An op's value for code q of its input. */
typedef int32_t value_fn(const qi_node *node, const onnx_tensor *x, const onnx_tensor *y,
                         int32_t q);

/** Code of the node's only input, looked up. */
static qat_status write_table(onnx_writer *w, const qi_node *node, value_fn *value)
{
    onnx_tensor *x = onnx_in(w, node, X), *y = onnx_out(w, node);
    onnx_form const form = onnx_form_in(w, node);
    uint8_t entries[CODES];
    if (x->value.type != ONNX_U8 || y->value.type != ONNX_U8)
        return onnx_refuse(w, node, "the form integer has no operators for 32 bits");
    for (int i = 0; i < CODES; i++)
        entries[i] = (uint8_t)(value(node, x, y, i - x->carry) + y->carry);
    const char *table = onnx_vector(&w->m, "table", ONNX_U8, CODES, entries);
    onnx_coded(w, node, form,
               onnx_looked_up(w, onnx_as(&w->m, &x->value, form), NULL, table, y->of->name));
    return QAT_OK;
}

static int32_t requantized(const qi_node *node, const onnx_tensor *x, const onnx_tensor *y,
                           int32_t q)
{
    int32_t const mult = onnx_param(node, "mult"), shift = onnx_param(node, "shift");
    int32_t const difference = q - x->of->zero_point;
    int32_t const value = node->rounding == QI_ROUND_ONCE
                              ? qi_requantize_near_ties_up(difference, mult, shift)
                              : qi_requantize(difference, mult, shift);
    return qi_clamp(qi_saturate_i64((int64_t)value + y->of->zero_point),
                    onnx_param(node, "clamp_lo"), onnx_param(node, "clamp_hi"));
}

static qi_input_scaling input_scaling(const qi_node *node, const onnx_tensor *x)
{
    return (qi_input_scaling){x->of->zero_point, onnx_param(node, "mult"),
                              onnx_param(node, "shift"), onnx_param(node, "radius")};
}

static int32_t logistic_of(const qi_node *node, const onnx_tensor *x, const onnx_tensor *y,
                           int32_t q)
{
    qi_input_scaling const in = input_scaling(node, x);
    return qi_logistic_code(q, &in, onnx_all_codes(y->of).lo, y->of->bits);
}

static int32_t tanh_of(const qi_node *node, const onnx_tensor *x, const onnx_tensor *y, int32_t q)
{
    qi_input_scaling const in = input_scaling(node, x);
    return qi_tanh_code(q, &in, onnx_all_codes(y->of).lo, y->of->bits);
}

static qat_status requantize(onnx_writer *w, const qi_node *node)
{
    return write_table(w, node, requantized);
}

static qat_status logistic(onnx_writer *w, const qi_node *node)
{
    return write_table(w, node, logistic_of);
}

static qat_status tanh_(onnx_writer *w, const qi_node *node)
{
    return write_table(w, node, tanh_of);
}

/* ------------------------------------------------------------------ two inputs */

/** An operand of add or sub on the common scale, looked up. */
static const char *rescaled(onnx_writer *w, const qi_node *node, int i, onnx_form form,
                            int64_t *most)
{
    static const char *const mult[] = {"mult_a", "mult_b"}, *const shift[] = {"shift_a", "shift_b"};
    onnx_tensor *x = onnx_in(w, node, i);
    int64_t values[CODES], largest = 0;
    for (int k = 0; k < CODES; k++) {
        int32_t const difference = k - x->carry - x->of->zero_point;
        values[k] = qi_requantize(difference * (1 << onnx_param(node, "left_shift")),
                                  onnx_param(node, mult[i]), onnx_param(node, shift[i]));
        int64_t const size = values[k] < 0 ? -values[k] : values[k];
        largest = size > largest ? size : largest;
    }
    *most += largest;
    return onnx_looked_up(w, onnx_as(&w->m, &x->value, form), NULL,
                          onnx_vector(&w->m, "table", ONNX_S64, CODES, values), "rescaled");
}

static qat_status write_sum(onnx_writer *w, const qi_node *node, const char *op)
{
    onnx_form const form = onnx_form_of_both(w, node);
    int64_t most = 0;
    const char *a = rescaled(w, node, 0, form, &most), *b = rescaled(w, node, 1, form, &most);
    const char *sum = onnx_both(w, op, a, b);
    if (most > INT32_MAX)
        sum = onnx_within_int32(w, sum);
    onnx_computed(w, node, form, onnx_requantized_by(w, node, "mult_y", "shift_y", sum));
    return QAT_OK;
}

/** A sum of rounding EVEN for two codes (infer/kernels/add.h). */
static int32_t even_sum(const qi_node *node, int32_t a, int32_t b, const qi_tensor *of_a,
                        const qi_tensor *of_b, const qi_tensor *y)
{
    qi_binary32 const m_a = qi_b32_multiplier(onnx_param(node, "mult_a"),
                                              onnx_param(node, "shift_a")),
                      m_b = qi_b32_multiplier(onnx_param(node, "mult_b"),
                                              onnx_param(node, "shift_b"));
    qi_binary32 const zeros =
        qi_b32_fma(of_a->zero_point, m_a, qi_b32_mul(qi_b32_of(of_b->zero_point), m_b));
    qi_binary32 const constant = qi_b32_sub(qi_b32_of(y->zero_point), zeros);
    return qi_clamp(qi_b32_even(qi_b32_fma(a, m_a, qi_b32_fma(b, m_b, constant))),
                    onnx_param(node, "clamp_lo"), onnx_param(node, "clamp_hi"));
}

/** Its steps are of float32 with a fused one, which ONNX has not: a table of all pairs of codes. */
static qat_status even_add(onnx_writer *w, const qi_node *node)
{
    const onnx_tensor *a = onnx_in(w, node, 0), *b = onnx_in(w, node, 1), *y = onnx_out(w, node);
    onnx_form const form = onnx_form_of_both(w, node);
    uint8_t *entries = onnx_take(&w->m, (size_t)CODES * CODES, 1);
    for (int i = 0; entries && i < CODES * CODES; i++)
        entries[i] = (uint8_t)(even_sum(node, i / CODES - a->carry, i % CODES - b->carry, a->of,
                                        b->of, y->of) +
                               y->carry);
    if (!entries)
        return QAT_OK; /* onnx_pack says so */
    const char *row =
        onnx_with(w, "Mul", onnx_codes_from(w, onnx_in(w, node, 0), form, -a->carry), CODES);
    const char *at =
        onnx_both(w, "Add", row, onnx_codes_from(w, onnx_in(w, node, 1), form, -b->carry));
    onnx_set(&onnx_out(w, node)->value, form,
             onnx_both(w, "Gather",
                       onnx_vector(&w->m, "table", ONNX_U8, (int64_t)CODES * CODES, entries), at));
    return QAT_OK;
}

static qat_status add(onnx_writer *w, const qi_node *node)
{
    if (node->rounding == QI_ROUND_EVEN)
        return even_add(w, node);
    return write_sum(w, node, "Add");
}

static qat_status sub(onnx_writer *w, const qi_node *node)
{
    return write_sum(w, node, "Sub");
}

static const char *difference(onnx_writer *w, const qi_node *node, int i, onnx_form form)
{
    onnx_tensor *x = onnx_in(w, node, i);
    return onnx_codes_from(w, x, form, x->of->zero_point);
}

static qat_status mul(onnx_writer *w, const qi_node *node)
{
    onnx_form const form = onnx_form_of_both(w, node);
    const char *product =
        onnx_both(w, "Mul", difference(w, node, 0, form), difference(w, node, 1, form));
    if (node->rounding == QI_ROUND_EVEN) { /* the zero point before the rounding */
        int64_t mult = onnx_param(node, "mult");
        int shift = onnx_param(node, "shift");
        onnx_tensor *y = onnx_out(w, node);
        float const zero = (float)y->of->zero_point;
        const char *real =
            onnx_scaled_even(w, product, &(onnx_scaling){.n = 1, .mult = &mult, .shift = &shift});
        real = onnx_both(w, "Add", real, onnx_scalar(&w->m, "zero", ONNX_FLOAT, &zero));
        onnx_coded(w, node, form, onnx_code_of(w, y, 0, onnx_nearest_even(w, real)));
        return QAT_OK;
    }
    onnx_computed(w, node, form, onnx_requantized_by(w, node, "mult", "shift", product));
    return QAT_OK;
}

static qat_status prelu(onnx_writer *w, const qi_node *node)
{
    onnx_form const form = onnx_form_of_both(w, node);
    const char *x = difference(w, node, 0, form);
    const char *product = onnx_both(w, "Mul", x, difference(w, node, 1, form));
    const char *const inputs[] = {onnx_with(w, "Less", x, 0),
                                  onnx_requantized_by(w, node, "mult_neg", "shift_neg", product),
                                  onnx_requantized_by(w, node, "mult_pos", "shift_pos", x), NULL};
    onnx_computed(w, node, form,
                  onnx_output(&w->m, onnx_add(&w->m, "Where", inputs), onnx_name(&w->m, "Where")));
    return QAT_OK;
}

/** Of the codes themselves. */
static qat_status write_choice(onnx_writer *w, const qi_node *node, const char *op)
{
    onnx_form const form = onnx_form_of_both(w, node);
    const char *inputs[2];
    for (int i = 0; i < 2; i++)
        inputs[i] = onnx_codes_from(w, onnx_in(w, node, i), form, 0);
    onnx_coded(w, node, form,
               onnx_code_of(w, onnx_out(w, node), 0, onnx_both(w, op, inputs[0], inputs[1])));
    return QAT_OK;
}

static qat_status maximum(onnx_writer *w, const qi_node *node)
{
    return write_choice(w, node, "Max");
}

static qat_status minimum(onnx_writer *w, const qi_node *node)
{
    return write_choice(w, node, "Min");
}

/* ------------------------------------------------------------------ softmax */

/** qi_one_over_one_plus_x, of half of 1 + x. */
static const char *reciprocal(onnx_writer *w, const char *half)
{
    int64_t const slope = -(int64_t)QI_32_OVER_17;
    const char *y =
        onnx_with(w, "Add", onnx_srdhm(w, half, onnx_scalar(&w->m, "number", ONNX_S64, &slope)),
                  QI_48_OVER_17);
    for (int i = 0; i < 3; i++) {
        int64_t const one = QI_ONE_Q2;
        const char *error = onnx_both(w, "Sub", onnx_scalar(&w->m, "number", ONNX_S64, &one),
                                      onnx_srdhm(w, half, y));
        y = onnx_both(w, "Add", y, onnx_with(w, "Mul", onnx_srdhm(w, y, error), 4));
    }
    return onnx_within_int32(w, onnx_with(w, "Mul", y, 2));
}

/** How many of 2^20 .. 2^31 are not above the sum, which is 2^19 .. 2^31. */
static const char *sum_length(onnx_writer *w, const char *sum, const char *last)
{
    int64_t powers[12];
    for (int i = 0; i < 12; i++)
        powers[i] = INT64_C(1) << (20 + i);
    const char *above =
        onnx_both(w, "GreaterOrEqual", sum, onnx_vector(&w->m, "powers", ONNX_S64, 12, powers));
    return onnx_both(w, "ReduceSum", onnx_cast(w, above, ONNX_S64), last);
}

/** ReduceMax of the last axis, which is an attribute below opset 18. */
static const char *largest(onnx_writer *w, const char *x, const char *last)
{
    int64_t const axis = -1;
    onnx_node *node = onnx_add(&w->m, "ReduceMax", (const char *const[]){x, NULL});
    if (w->m.opset >= 18)
        onnx_input(&w->m, node, last);
    else
        onnx_attr_ints(&w->m, node, "axes", 1, &axis);
    return onnx_output(&w->m, node, onnx_name(&w->m, "ReduceMax"));
}

/** qi_softmax_row, with tables of exponentials and of powers of two. */
static qat_status softmax(onnx_writer *w, const qi_node *node)
{
    onnx_tensor *x = onnx_in(w, node, X), *y = onnx_out(w, node);
    qi_softmax const s = {.mult = onnx_param(node, "mult"),
                          .shift = onnx_param(node, "shift"),
                          .diff_min = onnx_param(node, "diff_min")};
    int64_t const axis = -1;
    int64_t e[CODES] = {0}, shares[CODES] = {0}, factors[13], halves[13];
    for (int d = 0; d < CODES && -d >= s.diff_min; d++) {
        e[d] = qi_softmax_exp(-d, &s);
        shares[d] = qi_rdbp((int32_t)e[d], 12);
    }
    for (int k = 0; k < 13; k++) {
        factors[k] = INT64_C(1) << (12 - k);
        halves[k] = INT64_C(1) << (k + 30 - y->of->bits);
    }
    const char *last = onnx_vector(&w->m, "axes", ONNX_S64, 1, &axis);
    const char *codes = onnx_codes_from(w, x, ONNX_PLAIN, -x->carry);
    const char *below = onnx_both(w, "Sub", largest(w, codes, last), codes);
    const char *exps =
        onnx_both(w, "Gather", onnx_vector(&w->m, "table", ONNX_S64, CODES, e), below);
    const char *sum = onnx_both(
        w, "ReduceSum",
        onnx_both(w, "Gather", onnx_vector(&w->m, "table", ONNX_S64, CODES, shares), below), last);
    const char *k = sum_length(w, sum, last);
    const char *factor =
        onnx_both(w, "Gather", onnx_vector(&w->m, "table", ONNX_S64, 13, factors), k);
    const char *r = reciprocal(w, onnx_with(w, "Div", onnx_both(w, "Mul", sum, factor), 2));
    const char *half = onnx_both(w, "Gather", onnx_vector(&w->m, "table", ONNX_S64, 13, halves), k);
    const char *quotient =
        onnx_divided(w, onnx_srdhm(w, r, exps), half, onnx_with(w, "Mul", half, 2));
    onnx_coded(w, node, ONNX_PLAIN, onnx_code_of(w, y, y->of->zero_point, quotient));
    return QAT_OK;
}

const onnx_op onnx_integers[] = {{"requantize", requantize},
                                 {"logistic", logistic},
                                 {"tanh", tanh_},
                                 {"add", add},
                                 {"sub", sub},
                                 {"mul", mul},
                                 {"prelu", prelu},
                                 {"maximum", maximum},
                                 {"minimum", minimum},
                                 {"softmax", softmax},
                                 {"resize_nearest", onnx_integer_nearest},
                                 {"resize_bilinear", onnx_integer_bilinear},
                                 {NULL, NULL}};
