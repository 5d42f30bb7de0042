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
 * With rounding ONCE, positions and weights are exact fractions, and the sum is rounded half up.
 *
 *   scratch  | one qi_place for each output column |
 */
#include "infer/arithmetic/positions.h"
#include "infer/kernels/memory.h"
#include "infer/model/op.h"

enum { ALIGN_CORNERS, HALF_PIXEL_CENTERS, PARAMS };

static qi_axis axis_of(const qi_model *model, const qi_node *node, int d)
{
    return (qi_axis){.in = qi_input(model, node, 0)->dims[d],
                     .out = qi_output(model, node)->dims[d],
                     .align_corners = node->params[ALIGN_CORNERS],
                     .half_pixel = node->params[HALF_PIXEL_CENTERS]};
}

static qi_checker check_resize(const qi_model *model, const qi_node *node, int32_t index,
                               qi_error *err)
{
    qi_checker c = {model, node, index, err, QI_OK};
    unsigned const others = node->kernel == &qi_kernel_resize_bilinear ? 1U << QI_ROUND_ONCE : 0;
    if (!qi_rule_counts(&c, 1, 1, PARAMS, qi_rounding_or(model, node, QI_ROUND_NONE, others)) ||
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
    qi_rule_range(&c, "align_corners", node->params[ALIGN_CORNERS], 0, 1);
    qi_rule_range(&c, "half_pixel_centers", node->params[HALF_PIXEL_CENTERS], 0, 1);
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

static void nearest_row(const int32_t *columns, int32_t n, size_t channels, const uint8_t *row,
                        uint8_t *y)
{
    for (int32_t i = 0; i < n; i++)
        memcpy(y + (size_t)i * channels, row + (size_t)columns[i] * channels, channels);
}

static void run_nearest(const qi_call *call)
{
    const qi_tensor *x = qi_input(call->model, call->node, 0);
    qi_axis const v = axis_of(call->model, call->node, 1);
    qi_axis const h = axis_of(call->model, call->node, 2);
    size_t const channels = (size_t)x->dims[3] * qi_type_bytes(x->type); /* their bytes */
    size_t const row = (size_t)h.in * channels;
    const uint8_t *picture = call->in[0];
    uint8_t *y = call->out[0];
    int32_t *columns = call->scratch;
    for (int32_t i = 0; i < h.out; i++)
        columns[i] = qi_nearest_position(&h, i);
    for (int32_t n = 0; n < x->dims[0]; n++, picture += (size_t)v.in * row)
        for (int32_t i = 0; i < v.out; i++, y += (size_t)h.out * channels)
            nearest_row(columns, h.out, channels,
                        picture + (size_t)qi_nearest_position(&v, i) * row, y);
}

/* ------------------------------------------------------------------ bilinear */

static qi_status check_bilinear(const qi_model *model, const qi_node *node, int32_t index,
                                qi_error *err)
{
    qi_checker c = check_resize(model, node, index, err);
    if (!c.status)
        qi_rule_codes_or_wide(&c, 0, 0);
    if (!c.status)
        qi_rule(&c, !(node->params[ALIGN_CORNERS] && node->params[HALF_PIXEL_CENTERS]),
                QI_ERR_PARAM, "half_pixel_centers beside align_corners", 1, 0);
    return c.status;
}

static size_t bilinear_scratch(const qi_model *model, const qi_node *node)
{
    return (size_t)qi_output(model, node)->dims[2] * sizeof(qi_place);
}

/** Blends the codes at the four corners: above left, above right, below left, below right. */
typedef int32_t blend_fn(const int32_t corner[4], const qi_place *v, const qi_place *h);

static int32_t blend_fixed(const int32_t corner[4], const qi_place *v, const qi_place *h)
{
    int64_t const sum = (int64_t)corner[0] * v->fixed[0] * h->fixed[0] +
                        (int64_t)corner[2] * v->fixed[1] * h->fixed[0] +
                        (int64_t)corner[1] * v->fixed[0] * h->fixed[1] +
                        (int64_t)corner[3] * v->fixed[1] * h->fixed[1];
    return (int32_t)((sum + (sum > 0 ? 1 << 19 : -(1 << 19))) / (1 << 20));
}

/**
 * The same for axes of at most NARROW outputs, in 32 bits. The rounded ratio is off by at most half
 * a unit for each output, so a position lies at most 2^9 units before the input and 2^10 behind it.
 * The two weights then sum to at most 2^11 in size, and the sum below to 2^7 2^11 2^11 = 2^29.
 */
enum { NARROW = 1 << 10 };

static int32_t blend_narrow(const int32_t corner[4], const qi_place *v, const qi_place *h)
{
    int32_t const left = corner[0] * v->fixed[0] + corner[2] * v->fixed[1];
    int32_t const right = corner[1] * v->fixed[0] + corner[3] * v->fixed[1];
    int32_t const sum = left * h->fixed[0] + right * h->fixed[1];
    return (sum + (sum > 0 ? 1 << 19 : -(1 << 19))) / (1 << 20);
}

/** With exact weights, which are below 3 * 2^16 in size: the sum is below 2^45. */
static int32_t blend_exact(const int32_t corner[4], const qi_place *v, const qi_place *h)
{
    int64_t const left = (int64_t)corner[0] * v->fixed[0] + (int64_t)corner[2] * v->fixed[1];
    int64_t const right = (int64_t)corner[1] * v->fixed[0] + (int64_t)corner[3] * v->fixed[1];
    int64_t const whole = (int64_t)(v->fixed[0] + v->fixed[1]) * (h->fixed[0] + h->fixed[1]);
    return qi_divide_half_up(left * h->fixed[0] + right * h->fixed[1], whole);
}

/** corner * v * h, multiplied from the left as the reference does. */
static qi_binary32 share(int32_t corner, qi_binary32 v, qi_binary32 h)
{
    return qi_b32_mul(qi_b32_mul(qi_b32_of(corner), v), h);
}

/** The value of the reference, operation by operation. */
static int32_t blend_by_steps(const int32_t corner[4], const qi_place *v, const qi_place *h)
{
    qi_binary32 sum = share(corner[0], v->weight[0], h->weight[0]);
    sum = qi_b32_add(sum, share(corner[2], v->weight[1], h->weight[0]));
    sum = qi_b32_add(sum, share(corner[1], v->weight[0], h->weight[1]));
    sum = qi_b32_add(sum, share(corner[3], v->weight[1], h->weight[1]));
    return qi_clamp(qi_b32_floor(qi_b32_add(sum, qi_b32_round(1, -1))), 0, 255);
}

/**
 * The same value, usually from one sum with 48 fractional bits. The two weights of an axis lie in
 * [-1/2, 3/2] and sum to 1, so the four shares sum to at most 255 * 2 * 2. The reference rounds
 * each share twice, their sum three times, and once more after adding 1/2. Here the four weights
 * are truncated. The difference is below
 *
 *   (1020 * 2 + 1020 * 3 + 256 + 255 * 8) 2^-24 = 7396 2^-24 < 2^-11
 *
 * Only if the value is that close to a step of floor() is it computed as the reference does.
 */
static int32_t blend_float(const int32_t corner[4], const qi_place *v, const qi_place *h)
{
    int64_t const one = INT64_C(1) << 48, near = INT64_C(1) << (48 - 11);
    int64_t const left = (int64_t)corner[0] * v->fixed[0] + (int64_t)corner[2] * v->fixed[1];
    int64_t const right = (int64_t)corner[1] * v->fixed[0] + (int64_t)corner[3] * v->fixed[1];
    int64_t const sum = left * h->fixed[0] + right * h->fixed[1] + one / 2; /* below 2^60 */
    int64_t const part = sum & (one - 1);
    if (part < near || part > one - near)
        return blend_by_steps(corner, v, h);
    return (int32_t)(sum >> 48);
}

/** Compute one output pixel from the two rows between which it lies. */
static inline void blend_pixel(const void *above, const void *below, const qi_place *v,
                               const qi_place *h, size_t channels, int type, blend_fn *blend,
                               void *restrict y)
{
    size_t const left = (size_t)h->lower * channels, right = (size_t)h->upper * channels;
    for (size_t c = 0; c < channels; c++) {
        int32_t const corner[4] = {(int32_t)qi_value_at(type, above, left + c),
                                   (int32_t)qi_value_at(type, above, right + c),
                                   (int32_t)qi_value_at(type, below, left + c),
                                   (int32_t)qi_value_at(type, below, right + c)};
        qi_store_value(type, y, c, blend(corner, v, h));
    }
}

static inline void resize_bilinear(const qi_call *call, qi_place (*place)(const qi_axis *, int32_t),
                                   int type, blend_fn *blend)
{
    const qi_tensor *x = qi_input(call->model, call->node, 0);
    qi_axis const v = axis_of(call->model, call->node, 1);
    qi_axis const h = axis_of(call->model, call->node, 2);
    size_t const channels = (size_t)x->dims[3], pixel = channels * qi_type_bytes(type);
    size_t const row = (size_t)h.in * pixel;
    const uint8_t *picture = call->in[0];
    uint8_t *y = call->out[0];
    qi_place *columns = call->scratch;
    for (int32_t i = 0; i < h.out; i++)
        columns[i] = place(&h, i);
    for (int32_t n = 0; n < x->dims[0]; n++, picture += (size_t)v.in * row)
        for (int32_t i = 0; i < v.out; i++) {
            qi_place const line = place(&v, i);
            for (int32_t j = 0; j < h.out; j++, y += pixel)
                blend_pixel(picture + (size_t)line.lower * row, picture + (size_t)line.upper * row,
                            &line, &columns[j], channels, type, blend, y);
        }
}

static void run_bilinear(const qi_call *call)
{
    const qi_tensor *y = qi_output(call->model, call->node);
    if (call->node->rounding == QI_ROUND_ONCE)
        resize_bilinear(call, qi_exact_place, y->type, blend_exact);
    else if (y->type == QI_S8 && y->dims[1] <= NARROW && y->dims[2] <= NARROW)
        resize_bilinear(call, qi_fixed_place, QI_S8, blend_narrow);
    else if (y->type == QI_S8)
        resize_bilinear(call, qi_fixed_place, QI_S8, blend_fixed);
    else if (y->type == QI_S16)
        resize_bilinear(call, qi_fixed_place, QI_S16, blend_fixed);
    else
        resize_bilinear(call, qi_float_place, QI_U8, blend_float);
}

const qi_kernel qi_kernel_resize_nearest = {.name = "resize_nearest",
                                            .check = check_nearest,
                                            .scratch = nearest_scratch,
                                            .run = run_nearest};
const qi_kernel qi_kernel_resize_bilinear = {.name = "resize_bilinear",
                                             .check = check_bilinear,
                                             .scratch = bilinear_scratch,
                                             .run = run_bilinear};
