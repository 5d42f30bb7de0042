/**
 * resize_nearest copies codes; resize_bilinear keeps the input's scale and zero_point and rounds
 * codes between pixels. Both are TensorFlow Lite's reference kernels (lib/infer/ops/op_resize.c),
 * in both profiles:
 *
 *     nearest, and bilinear of uint8     float32, operation by operation
 *     bilinear of int8                   positions and shares with 10 fractional bits
 *
 * Of fewer than 8 bits, in profile paper, bilinear has rounding ONCE: exact fractions, half up. In
 * profile onnx it has rounding EVEN: exact fractions, half to the even code.
 *
 * The engine does float32 with integers; the exact evaluation below has the processor do it.
 */
#include "autograd/ops/op.h"
#include "integer/quant_ops.h"

#include <math.h>
#include <string.h>

enum { ALIGN_CORNERS, HALF_PIXEL_CENTERS, PARAMS, ONE = 1 << 10 };

static qat_status freeze_resize(const qat_fused_layer *layer, const char *op, qat_error *err)
{
    qat_emit const e = qat_emit_of(layer);
    int32_t const params[PARAMS] = {(int32_t)qat_attr(layer->head, "align_corners"),
                                    (int32_t)qat_attr(layer->head, "half_pixel_centers")};
    qat_status st = qat_refuse_activation(&e, op, err);
    if (!st)
        st = qat_require_same_grid(&e, op, 0, err);
    bool const blends = strcmp(op, "resize_bilinear") == 0;
    qi_rounding const usual = e.profile == QAT_PROFILE_ONNX ? QI_ROUND_EVEN : QI_ROUND_NONE;
    qi_rounding const rounding = blends ? qat_emit_rounding(&e, usual) : QI_ROUND_NONE;
    return st ? st : qat_emit_op(&e, op, rounding, PARAMS, params, 0, err);
}

static qat_status freeze_nearest(const qat_fused_layer *layer, qat_error *err)
{
    return freeze_resize(layer, "resize_nearest", err);
}

static qat_status freeze_bilinear(const qat_fused_layer *layer, qat_error *err)
{
    return freeze_resize(layer, "resize_bilinear", err);
}

const qat_quant qat_quant_resize_nearest = {.role = QAT_ROLE_PASS, .freeze = freeze_nearest};
const qat_quant qat_quant_resize_bilinear = {.role = QAT_ROLE_POOL, .freeze = freeze_bilinear};

/* ------------------------------------------------------------------ exact evaluation */

/** One axis of an op. */
struct axis {
    int in, out;
    bool align, half_pixel;
};

static struct axis axis_of(const qat_qgraph *graph, const qat_qop *op, int d)
{
    int const out = graph->tensors[op->outputs[0]].dims[d];
    return (struct axis){.in = graph->tensors[op->inputs[0]].dims[d],
                         .out = out,
                         .align = op->params[ALIGN_CORNERS] && out > 1,
                         .half_pixel = op->params[HALF_PIXEL_CENTERS] != 0};
}

static float scaled(const struct axis *a, int i)
{
    float const ratio =
        a->align ? (float)(a->in - 1) / (float)(a->out - 1) : (float)a->in / (float)a->out;
    return (a->half_pixel ? (float)i + 0.5F : (float)i) * ratio;
}

static int nearest(const struct axis *a, bool rounds, int i)
{
    float const p = scaled(a, i);
    int const near = (int)(rounds ? roundf(p) : floorf(p));
    return near < a->in ? near : a->in - 1;
}

static const uint8_t *pixel_of(const qat_exact_call *call, int sample, int h, int w)
{
    const int32_t *d = qat_exact_input(call, 0)->dims;
    const uint8_t *in = qat_exact_in(call, 0, sample);
    return in + ((size_t)h * (size_t)d[2] + (size_t)w) * (size_t)d[3];
}

static void nearest_sample(const qat_exact_call *call, int sample)
{
    const qat_qtensor *y = qat_exact_output(call);
    struct axis const v = axis_of(call->graph, call->op, 1), h = axis_of(call->graph, call->op, 2);
    bool const rounds = call->op->params[ALIGN_CORNERS] != 0;
    size_t const channels = (size_t)y->dims[3];
    uint8_t *out = qat_exact_out(call, sample);
    for (int i = 0; i < v.out; i++)
        for (int j = 0; j < h.out; j++, out += channels)
            memcpy(out, pixel_of(call, sample, nearest(&v, rounds, i), nearest(&h, rounds, j)),
                   channels);
}

/** Two input positions; their shares in float32, with 10 fractional bits, or as whole numbers. */
struct place {
    int lower, upper;
    float share[2];
    int64_t fixed[2];
};

static int inside(int at, int in)
{
    return at < 0 ? 0 : at < in ? at : in - 1;
}

static struct place float_place(const struct axis *a, int i)
{
    float const p = a->half_pixel ? scaled(a, i) - 0.5F : scaled(a, i);
    int const lower = inside((int)floorf(p), a->in);
    float const part = p - (float)lower;
    return (struct place){
        .lower = lower, .upper = inside((int)ceilf(p), a->in), .share = {1 - part, part}};
}

static struct place fixed_place(const struct axis *a, int i)
{
    int64_t const in = a->align ? a->in - 1 : a->in, out = a->align ? a->out - 1 : a->out;
    int64_t const ratio = (in * ONE + out / 2) / out;
    int64_t const p = i * ratio + (a->half_pixel ? ratio / 2 - ONE / 2 : 0);
    int const lower = inside((int)(p / ONE), a->in);
    int64_t const part = p - (int64_t)lower * ONE;
    return (struct place){.lower = lower,
                          .upper = inside((int)((p + ONE - 1) / ONE), a->in),
                          .fixed = {ONE - part, part}};
}

/** In units of 1 / (2 out); align: 1 / (2 (out - 1)). */
static struct place exact_place(const struct axis *a, int i)
{
    int64_t const in = a->align ? a->in - 1 : a->in;
    int64_t const unit = 2 * (int64_t)(a->align ? a->out - 1 : a->out);
    int64_t const p = a->half_pixel ? (2 * i + 1) * in - unit / 2 : 2 * i * in;
    int const lower = inside((int)floor((double)p / (double)unit), a->in);
    int64_t const part = p - lower * unit;
    return (struct place){.lower = lower,
                          .upper = inside((int)ceil((double)p / (double)unit), a->in),
                          .fixed = {unit - part, part}};
}

/** A code as it is stored, from the codes at the four corners. */
typedef uint8_t blend_fn(const uint8_t *const corner[4], size_t c, const struct place *v,
                         const struct place *h);

static uint8_t blend_u8(const uint8_t *const corner[4], size_t c, const struct place *v,
                        const struct place *h)
{
    float const sum = (float)corner[0][c] * v->share[0] * h->share[0] +
                      (float)corner[2][c] * v->share[1] * h->share[0] +
                      (float)corner[1][c] * v->share[0] * h->share[1] +
                      (float)corner[3][c] * v->share[1] * h->share[1];
    return (uint8_t)inside((int)(sum + 0.5F), 256);
}

static uint8_t blend_s8(const uint8_t *const corner[4], size_t c, const struct place *v,
                        const struct place *h)
{
    int64_t sum = 0;
    for (int k = 0; k < 4; k++)
        sum += (int8_t)corner[k][c] * v->fixed[k / 2] * h->fixed[k % 2];
    int64_t const half = INT64_C(1) << 19;
    return (uint8_t)(int8_t)((sum + (sum > 0 ? half : -half)) / (2 * half));
}

/** (sum of x share share) / (unit unit), half up: floor of that and 1/2; or half to the even code.
 */
static int64_t blended(const int32_t corner[4], const struct place *v, const struct place *h,
                       bool even)
{
    int64_t sum = 0;
    for (int k = 0; k < 4; k++)
        sum += corner[k] * v->fixed[k / 2] * h->fixed[k % 2];
    int64_t const one = (v->fixed[0] + v->fixed[1]) * (h->fixed[0] + h->fixed[1]);
    int64_t const up = sum + one / 2; /* one is a multiple of 4 */
    int64_t const nearest = up / one - (up % one < 0);
    return nearest - (even && up % one == 0 && nearest % 2 != 0);
}

static uint8_t blended_u8(const uint8_t *const corner[4], size_t c, const struct place *v,
                          const struct place *h, bool even)
{
    int32_t const codes[] = {corner[0][c], corner[1][c], corner[2][c], corner[3][c]};
    return (uint8_t)blended(codes, v, h, even);
}

static uint8_t blended_s8(const uint8_t *const corner[4], size_t c, const struct place *v,
                          const struct place *h, bool even)
{
    int32_t const codes[] = {(int8_t)corner[0][c], (int8_t)corner[1][c], (int8_t)corner[2][c],
                             (int8_t)corner[3][c]};
    return (uint8_t)blended(codes, v, h, even);
}

static uint8_t blend_exact_u8(const uint8_t *const corner[4], size_t c, const struct place *v,
                              const struct place *h)
{
    return blended_u8(corner, c, v, h, false);
}

static uint8_t blend_exact_s8(const uint8_t *const corner[4], size_t c, const struct place *v,
                              const struct place *h)
{
    return blended_s8(corner, c, v, h, false);
}

static uint8_t blend_even_u8(const uint8_t *const corner[4], size_t c, const struct place *v,
                             const struct place *h)
{
    return blended_u8(corner, c, v, h, true);
}

static uint8_t blend_even_s8(const uint8_t *const corner[4], size_t c, const struct place *v,
                             const struct place *h)
{
    return blended_s8(corner, c, v, h, true);
}

/** How an op places and blends. */
struct resizing {
    struct place (*place)(const struct axis *a, int i);
    blend_fn *blend;
};

static struct resizing resizing_of(const qat_qgraph *graph, const qat_qop *op)
{
    bool const is_s8 = graph->tensors[op->outputs[0]].type == QI_S8;
    if (op->rounding == QI_ROUND_ONCE)
        return (struct resizing){exact_place, is_s8 ? blend_exact_s8 : blend_exact_u8};
    if (op->rounding == QI_ROUND_EVEN)
        return (struct resizing){exact_place, is_s8 ? blend_even_s8 : blend_even_u8};
    return is_s8 ? (struct resizing){fixed_place, blend_s8}
                 : (struct resizing){float_place, blend_u8};
}

static void bilinear_sample(const qat_exact_call *call, int sample)
{
    const qat_qtensor *y = qat_exact_output(call);
    struct resizing const by = resizing_of(call->graph, call->op);
    struct axis const v = axis_of(call->graph, call->op, 1), h = axis_of(call->graph, call->op, 2);
    uint8_t *out = qat_exact_out(call, sample);
    for (int i = 0; i < v.out; i++)
        for (int j = 0; j < h.out; j++) {
            struct place const row = by.place(&v, i), column = by.place(&h, j);
            const uint8_t *const corner[] = {pixel_of(call, sample, row.lower, column.lower),
                                             pixel_of(call, sample, row.lower, column.upper),
                                             pixel_of(call, sample, row.upper, column.lower),
                                             pixel_of(call, sample, row.upper, column.upper)};
            for (size_t c = 0; c < (size_t)y->dims[3]; c++)
                *out++ = by.blend(corner, c, &row, &column);
        }
}

/** How far fixed positions are from float's, in pixels. */
static double displaced(const qat_qgraph *graph, const qat_qop *op, int d)
{
    struct axis const a = axis_of(graph, op, d);
    double most = 0;
    for (int i = 0; i < a.out; i++) {
        struct place const exact = float_place(&a, i), fixed = fixed_place(&a, i);
        double const to = (double)exact.lower + (double)exact.share[1];
        most = fmax(most, fabs(fixed.lower + (double)fixed.fixed[1] / ONE - to));
    }
    return most;
}

/** One rounding; int8: and what is a pixel's distance away may be all codes away. */
static double bilinear_bound(const qat_qgraph *graph, const qat_qop *op)
{
    const qat_qtensor *y = &graph->tensors[op->outputs[0]];
    double const codes = (double)((1 << y->bits) - 1);
    return 0.5 + (y->type == QI_S8 && op->rounding == QI_ROUND_NONE
                      ? codes * (displaced(graph, op, 1) + displaced(graph, op, 2))
                      : 0);
}

const qat_integer_op qat_integer_resize_nearest = {.name = "resize_nearest",
                                                   .sample = nearest_sample};
const qat_integer_op qat_integer_resize_bilinear = {
    .name = "resize_bilinear", .sample = bilinear_sample, .bound = bilinear_bound};
