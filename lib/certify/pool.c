/**
 * Pools, mean, concatenations, reshapes: ops that only move or average codes (docs/arithmetic.md,
 * sections 6 and 10).
 */
#include "certify/certify.h"

#include <math.h>
#include <string.h>

/** If an op only moves codes, its input and its output must have the same scale and zero point. */
static qat_status check_same_grid(const cert *c, const cert_op *op, int i)
{
    const qi_tensor *x = cert_input(c, op, i), *y = cert_output(c, op);
    if (x->scale_bits == y->scale_bits && x->zero_point == y->zero_point && x->bits == y->bits &&
        x->type == y->type)
        return QAT_OK;
    return qat_fail(c->err, QAT_ERR_MISMATCH,
                    "%s: this op copies codes, so its input and its output must have equal scales; "
                    "but %s has scale %.9g and zero point %d, and %s has %.9g and %d",
                    op->name, x->name, (double)cert_scale(x), (int)x->zero_point, y->name,
                    (double)cert_scale(y), (int)y->zero_point);
}

/** The usual rounding of an op without a multiplier. */
static qi_rounding unshifted_rounding(const cert *c)
{
    return c->source->profile == QAT_PROFILE_ONNX ? QI_ROUND_EVEN : QI_ROUND_NONE;
}

bool cert_counts_padding(const qat_node *node)
{
    return qat_node_is_op(node, "average_pool2d") && qat_attr(node, "count_padding") != 0;
}

qat_shape cert_padded_shape(const qat_node *pool)
{
    qat_shape shape = pool->inputs[0]->shape;
    cert_window w;
    cert_window_of(pool, &w);
    for (int i = 0; i < 2; i++) {
        int const read = (pool->shape.dims[1 + i] - 1) * w.stride[i] + w.kernel[i];
        int const there = shape.dims[1 + i] + w.pad[i];
        shape.dims[1 + i] = read > there ? read : there;
    }
    return shape;
}

/** Rows and columns of the code of 0, as far as windows reach. */
qat_status cert_check_pad(cert *c, const cert_op *op)
{
    static const char *const fields[] = {"before 0", "before 1", "before 2", "before 3", "after 0",
                                         "after 1",  "after 2",  "after 3",  "value"};
    const qi_tensor *x = cert_input(c, op, 0);
    qat_shape const padded = cert_padded_shape(op->head);
    int expected[9] = {0};
    cert_window w;
    cert_window_of(op->head, &w);
    for (int i = 1; i <= 2; i++) {
        expected[i] = w.pad[i - 1];
        expected[4 + i] = padded.dims[i] - x->dims[i] - expected[i];
    }
    expected[8] = x->zero_point;
    qat_status st = cert_check_form(c, op->name, op->node, 1, 9, QI_ROUND_NONE, 0);
    if (!st)
        st = check_same_grid(c, op, 0);
    for (int i = 0; !st && i < 9; i++)
        st = cert_equal(c, op->name, fields[i], op->node->params[i], expected[i]);
    return st;
}

qat_status cert_check_pool(cert *c, const cert_op *op)
{
    static const char *const fields[] = {"kernel_h", "kernel_w", "stride_h",
                                         "stride_w", "pad_top",  "pad_left"};
    const qi_tensor *x = cert_input(c, op, 0);
    cert_window w = {.kernel = {x->dims[1], x->dims[2]}, .stride = {1, 1}};
    if (!qat_node_is_op(op->head, "global_average_pool"))
        cert_window_of(op->head, &w);
    if (cert_counts_padding(op->head))
        w.pad[0] = w.pad[1] = 0;
    int const expected[] = {w.kernel[0], w.kernel[1], w.stride[0], w.stride[1], w.pad[0], w.pad[1]};
    qi_rounding const rounding = qat_node_is_op(op->head, "max_pool2d")
                                     ? QI_ROUND_NONE
                                     : cert_rounding(c, op->node, unshifted_rounding(c));
    qat_status st = cert_check_form(c, op->name, op->node, 1, 8, rounding, 0);
    if (!st)
        st = check_same_grid(c, op, 0);
    for (int i = 0; !st && i < 6; i++)
        st = cert_equal(c, op->name, fields[i], op->node->params[i], expected[i]);
    return st ? st
              : cert_check_clamp(c, op->name, cert_output(c, op), op->act_min, op->act_max,
                                 op->node->params[6], op->node->params[7]);
}

/** Profile tflite: M of n values is mult 2^k / n, with k the whole part of log2 n. */
static void divided_multiplier(double real, int64_t n, int32_t *mult, int32_t *shift)
{
    int32_t k = 0;
    while (INT64_C(2) << k <= n)
        k++;
    cert_requantize_multiplier(real, mult, shift);
    *mult = (int32_t)(((int64_t)*mult << k) / n);
    *shift -= k;
    if (*shift < -31)
        *mult = *shift = 0;
}

/** Of the n values of a picture. Profile onnx: M = S_x / (S_y n) in float32. */
qat_status cert_check_mean(cert *c, const cert_op *op)
{
    const qi_tensor *x = cert_input(c, op, 0), *y = cert_output(c, op);
    const int32_t *p = op->node->params;
    int64_t const n = (int64_t)x->dims[1] * x->dims[2];
    bool const even = c->source->profile == QAT_PROFILE_ONNX;
    double const sx = (double)cert_scale(x), sy = (double)cert_scale(y);
    int32_t mult, shift, lo, hi;
    if (even)
        cert_requantize_multiplier((double)(float)(sx / (double)(float)(sy * (double)n)), &mult,
                                   &shift);
    else
        divided_multiplier(sx / sy, n, &mult, &shift);
    cert_codes_of(x, &lo, &hi);
    int32_t const below = x->zero_point - lo, above = hi - x->zero_point;
    int64_t const largest = n * (below > above ? below : above);
    qi_rounding const rounding = cert_rounding(c, op->node, even ? QI_ROUND_EVEN : QI_ROUND_TWICE);
    qat_status st = cert_check_form(c, op->name, op->node, 1, 5, rounding, largest);
    if (!st)
        st = cert_equal(c, op->name, "the parameter axis_mask", p[0], 1 << 1 | 1 << 2);
    if (!st)
        st = cert_equal(c, op->name, "the parameter mult", p[1], mult);
    if (!st)
        st = cert_equal(c, op->name, "the parameter shift", p[2], shift);
    c->result->multipliers++;
    return st ? st : cert_check_clamp(c, op->name, y, op->act_min, op->act_max, p[3], p[4]);
}

qat_status cert_check_resize(cert *c, const cert_op *op)
{
    static const char *const fields[] = {"align_corners", "half_pixel_centers"};
    qi_rounding const rounding = qat_node_is_op(op->head, "resize_bilinear")
                                     ? cert_rounding(c, op->node, unshifted_rounding(c))
                                     : QI_ROUND_NONE;
    qat_status st = cert_check_form(c, op->name, op->node, 1, 2, rounding, 0);
    if (!st)
        st = check_same_grid(c, op, 0);
    for (int i = 0; !st && i < 2; i++)
        st = cert_equal(c, op->name, fields[i], op->node->params[i],
                        (int)qat_attr(op->head, fields[i]));
    return st;
}

qat_status cert_check_concat(cert *c, const cert_op *op)
{
    int axis = (int)qat_attr(op->head, "axis");
    if (axis < 0)
        axis += op->head->shape.rank;
    qat_status st = cert_check_form(c, op->name, op->node, op->head->n_data, 1, QI_ROUND_NONE, 0);
    if (!st)
        st = cert_equal(c, op->name, "the axis", op->node->params[0], axis);
    for (int i = 0; !st && i < op->node->n_inputs; i++)
        st = check_same_grid(c, op, i);
    return st;
}

qat_status cert_check_reshape(cert *c, const cert_op *op)
{
    qat_status const st = cert_check_form(c, op->name, op->node, 1, 0, QI_ROUND_NONE, 0);
    return st ? st : check_same_grid(c, op, 0);
}

/** Positions begin, begin + step, ... of one axis, and all of the others. */
qat_status cert_check_slice(cert *c, const cert_op *op)
{
    const int32_t *p = op->node->params;
    int const axis = (int)qat_attr(op->head, "axis");
    qat_status st = cert_check_form(c, op->name, op->node, 1, 2 * QI_MAX_RANK, QI_ROUND_NONE, 0);
    for (int i = 0; !st && i < QI_MAX_RANK; i++) {
        st = cert_equal(c, op->name, "the first position", p[i],
                        i == axis ? (int)qat_attr(op->head, "begin") : 0);
        if (!st)
            st = cert_equal(c, op->name, "the distance between positions", p[QI_MAX_RANK + i],
                            i == axis ? (int)qat_attr(op->head, "step") : 1);
    }
    return st ? st : check_same_grid(c, op, 0);
}
