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
#include "infer/kernels/row_functions.h"
#include "infer/model/code.h"
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

static void fill(const qi_call *call, void *params)
{
    const qi_tensor *x = qi_input(call->model, call->node, 0);
    int32_t const row = x->dims[x->rank - 1];
    *(qk_l2_normalization *)params = (qk_l2_normalization){
        .rows = (int32_t)qi_count(x) / row, .row = row, .codes = qi_codes_of(x)};
}

static void run(const qi_call *call)
{
    qk_l2_normalization p;
    fill(call, &p);
    qk_l2_normalization_run(&p, call->in[0], call->out[0]);
}

const qi_kernel qi_kernel_l2_normalization = {
    .name = "l2_normalization", .check = check, .run = run, .in_place = QI_OVER_FIRST};
const qi_code qi_code_l2_normalization = {
    "qk_l2_normalization", sizeof(qk_l2_normalization), fill, NULL, 0, 0};
