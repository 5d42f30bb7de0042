/**
 * l2_normalization along the last axis: y = (x - Z_x) / sqrt(sum of (x - Z_x)^2), with S_y = 1/128,
 * Z_y = 0 (int8) or 128 (uint8).
 *
 *   (mult, shift) = inv_sqrt_multiplier(sum of (x - Z_x)^2)
 *   uint8   y = limited(requantize(128 (x - Z_x), mult, shift) + 128)
 *   int8    y = limited(requantize(x - Z_x, mult, shift + 7))
 *
 * The two types differ in when requantize shifts: left before the multiplication, or right after
 * it.
 */
#include "infer/model/op.h"

static qi_status check(const qi_model *model, const qi_node *node, int32_t index, qi_error *err)
{
    enum {
        MOST_VALUES = INT32_MAX / (255 * 255)
    }; /* limit of a row: the sum of squares fits int32 */
    qi_checker c = {model, node, index, err, QI_OK};
    if (!qi_rule_counts(&c, 1, 1, 0, QI_ROUND_NONE) || !qi_rule_codes(&c, 0, 0))
        return c.status;
    const qi_tensor *x = qi_input(model, node, 0), *y = qi_output(model, node);
    int32_t const zero = y->type == QI_S8 ? 0 : 128;
    qi_rule_same_shape(&c, 0);
    qi_rule(&c, x->type == y->type, QI_ERR_SHAPE, "type of the output", y->type, x->type);
    qi_rule(&c, y->bits == 8, QI_ERR_SHAPE, "bits of the output", y->bits, 8);
    qi_rule(&c, y->zero_point == zero, QI_ERR_PARAM, "zero_point of the output", y->zero_point,
            zero);
    qi_rule(&c, x->dims[x->rank - 1] <= MOST_VALUES, QI_ERR_SHAPE, "values of a row",
            x->dims[x->rank - 1], MOST_VALUES);
    return c.status;
}

static int32_t sum_of_squares(const uint8_t *x, size_t n, qi_codes c)
{
    int32_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        int32_t const d = (x[i] ^ c.flip) - c.offset;
        sum += d * d;
    }
    return sum;
}

static void normalize_row(const uint8_t *x, uint8_t *y, size_t n, qi_codes c)
{
    int const is_signed = c.flip != 0;
    int32_t const factor = is_signed ? 1 : 128, zero = is_signed ? 0 : 128;
    int32_t const lowest = qi_lowest_code(is_signed, 8);
    int32_t mult;
    int shift;
    qi_inv_sqrt_multiplier(sum_of_squares(x, n, c), &mult, &shift);
    shift += is_signed ? 7 : 0;
    for (size_t i = 0; i < n; i++) {
        int32_t const d = (x[i] ^ c.flip) - c.offset;
        int32_t const value = qi_requantize(factor * d, mult, shift);
        qi_store_code(y, i, qi_clamp(value + zero, lowest, lowest + 255));
    }
}

static void run(const qi_call *call)
{
    const qi_tensor *x = qi_input(call->model, call->node, 0);
    size_t const row = (size_t)x->dims[x->rank - 1];
    for (size_t i = 0; i < x->bytes; i += row)
        normalize_row((const uint8_t *)call->in[0] + i, (uint8_t *)call->out[0] + i, row,
                      qi_codes_of(x));
}

const qi_kernel qi_kernel_l2_normalization = {
    .name = "l2_normalization", .check = check, .run = run, .in_place = 1};
