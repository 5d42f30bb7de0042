/**
 * resize_nearest, resize_bilinear: x [N,H,W,C] -> y [N,OH,OW,C], same codes.
 *
 * With align_corners, the corner pixels of both pictures are at the same place. With
 * half_pixel_centers, pixels are areas and positions are their centres. Along an axis with `in`
 * input and `out` output positions:
 *
 *   ratio = (in - 1) / (out - 1) with align_corners and out > 1, else in / out
 *
 * nearest: y[i] = x[min(near, in - 1)], near = floor(p), with align_corners round(p) (half away),
 *   p = (i + 1/2) ratio with half_pixel_centers, else i ratio
 *
 * bilinear: position p = (i + 1/2) ratio - 1/2 with half_pixel_centers, else i ratio;
 *   lower = max(floor(p), 0), upper = min(ceil(p), in - 1), weights 1 - (p - lower) and p - lower
 *
 * In TensorFlow Lite's reference kernels, nearest and uint8 bilinear are float32 formulas. Here
 * each of their operations is done in integers with the rounding of float32 (binary32.h). For int8
 * and int16, bilinear has ratio, positions and weights with 10 fractional bits:
 *
 *   y = sum of x weight weight / 2^20, half away from zero
 *
 * With rounding ONCE, positions and weights are exact fractions, and the sum is rounded half up;
 * with EVEN, half to the even code.
 *
 *   scratch  | one qi_place for each output column |
 */
#include "infer/kernels/resize.h"
#include "infer/model/code.h"
#include "infer/model/op.h"

qi_axis qi_resize_axis_of(const qi_model *model, const qi_node *node, int d)
{
    return (qi_axis){.in = qi_input(model, node, 0)->dims[d],
                     .out = qi_output(model, node)->dims[d],
                     .align_corners = node->params[QI_RESIZE_ALIGN_CORNERS],
                     .half_pixel = node->params[QI_RESIZE_HALF_PIXEL_CENTERS]};
}

static void fill(const qi_call *call, void *params)
{
    const qi_tensor *x = qi_input(call->model, call->node, 0);
    *(qk_resize *)params = (qk_resize){.batch = x->dims[0],
                                       .channels = x->dims[3],
                                       .type = x->type,
                                       .v = qi_resize_axis_of(call->model, call->node, 1),
                                       .h = qi_resize_axis_of(call->model, call->node, 2)};
}

static qi_checker check_resize(const qi_model *model, const qi_node *node, int32_t index,
                               qi_error *err)
{
    qi_checker c = {model, node, index, err, QI_OK};
    enum { OTHERS = 1 << QI_ROUND_EVEN | 1 << QI_ROUND_ONCE };
    unsigned const others = node->kernel == &qi_kernel_resize_bilinear ? OTHERS : 0;
    if (!qi_rule_counts(&c, 1, 1, QI_RESIZE_PARAMS,
                        qi_rounding_or(model, node, QI_ROUND_NONE, others)) ||
        !qi_rule_any_codes(&c, 0, 0))
        return c;
    const qi_tensor *x = qi_input(model, node, 0), *y = qi_output(model, node);
    qi_rule_same_codes(&c, 0);
    qi_rule(&c, x->rank == 4, QI_ERR_SHAPE, "rank of the input", x->rank, 4);
    qi_rule(&c, y->rank == 4, QI_ERR_SHAPE, "rank of the output", y->rank, 4);
    for (int d = 0; d < QI_MAX_RANK; d += 3)
        qi_rule(&c, x->dims[d] == y->dims[d], QI_ERR_SHAPE, "batch or channels of the output",
                y->dims[d], x->dims[d]);
    for (int d = 1; d < 3; d++) {
        qi_rule(&c, x->dims[d] <= QM_MAX_SIDE, QI_ERR_SHAPE, "side of the input", x->dims[d],
                QM_MAX_SIDE);
        qi_rule(&c, y->dims[d] <= QM_MAX_SIDE, QI_ERR_SHAPE, "side of the output", y->dims[d],
                QM_MAX_SIDE);
    }
    qi_rule_range(&c, "align_corners", node->params[QI_RESIZE_ALIGN_CORNERS], 0, 1);
    qi_rule_range(&c, "half_pixel_centers", node->params[QI_RESIZE_HALF_PIXEL_CENTERS], 0, 1);
    return c;
}

/* ------------------------------------------------------------------ nearest */

static qi_status check_nearest(const qi_model *model, const qi_node *node, int32_t index,
                               qi_error *err)
{
    return check_resize(model, node, index, err).status;
}

static size_t nearest_scratch(const qi_model *model, const qi_node *node)
{
    return (size_t)qi_output(model, node)->dims[2] * sizeof(int32_t);
}

static void run_nearest(const qi_call *call)
{
    qk_resize p;
    fill(call, &p);
    qk_resize_nearest_run(&p, call->in[0], call->out[0], call->scratch);
}

/* ------------------------------------------------------------------ bilinear */

static qi_status check_bilinear(const qi_model *model, const qi_node *node, int32_t index,
                                qi_error *err)
{
    qi_checker c = check_resize(model, node, index, err);
    if (!c.status)
        qi_rule_codes_or_wide(&c, 0, 0);
    if (!c.status)
        qi_rule(
            &c,
            !(node->params[QI_RESIZE_ALIGN_CORNERS] && node->params[QI_RESIZE_HALF_PIXEL_CENTERS]),
            QI_ERR_PARAM, "half_pixel_centers beside align_corners", 1, 0);
    return c.status;
}

static size_t bilinear_scratch(const qi_model *model, const qi_node *node)
{
    return (size_t)qi_output(model, node)->dims[2] * sizeof(qi_place);
}

static int is_narrow(const qi_tensor *y)
{
    return y->dims[1] <= QK_NARROW && y->dims[2] <= QK_NARROW;
}

static void run_bilinear(const qi_call *call)
{
    const qi_tensor *y = qi_output(call->model, call->node);
    qk_resize p;
    fill(call, &p);
    if (call->node->rounding == QI_ROUND_ONCE)
        qk_resize_exact_run(&p, call->in[0], call->out[0], call->scratch);
    else if (call->node->rounding == QI_ROUND_EVEN)
        qk_resize_even_run(&p, call->in[0], call->out[0], call->scratch);
    else if (y->type == QI_S8 && is_narrow(y))
        qk_resize_narrow_run(&p, call->in[0], call->out[0], call->scratch);
    else if (y->type == QI_S8)
        qk_resize_s8_run(&p, call->in[0], call->out[0], call->scratch);
    else if (y->type == QI_S16)
        qk_resize_wide_run(&p, call->in[0], call->out[0], call->scratch);
    else
        qk_resize_u8_run(&p, call->in[0], call->out[0], call->scratch);
}

static const char *bilinear_function(const qi_call *call)
{
    const qi_tensor *y = qi_output(call->model, call->node);
    if (call->node->rounding == QI_ROUND_ONCE)
        return "qk_resize_exact_run";
    if (call->node->rounding == QI_ROUND_EVEN)
        return "qk_resize_even_run";
    if (y->type == QI_S8)
        return is_narrow(y) ? "qk_resize_narrow_run" : "qk_resize_s8_run";
    return y->type == QI_S16 ? "qk_resize_wide_run" : "qk_resize_u8_run";
}

const qi_kernel qi_kernel_resize_nearest = {.name = "resize_nearest",
                                            .check = check_nearest,
                                            .scratch = nearest_scratch,
                                            .run = run_nearest};
const qi_kernel qi_kernel_resize_bilinear = {.name = "resize_bilinear",
                                             .check = check_bilinear,
                                             .scratch = bilinear_scratch,
                                             .run = run_bilinear};

const qi_code qi_code_resize_nearest = {"qk_resize", sizeof(qk_resize), fill, NULL, 0, 0};
const qi_code qi_code_resize_bilinear = {
    "qk_resize", sizeof(qk_resize), fill, bilinear_function, 0, 0};
