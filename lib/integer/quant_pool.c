/**
 * max_pool2d, average_pool2d, global_average_pool, and TFLite's MEAN; docs/arithmetic.md,
 * section 6.
 *
 *     max     y = max of q over the window                        pixels outside are left out
 *     average y = (sum of q) / n, half away from zero             n: pixels inside the input
 *             fewer than 8 bits, profile paper: rounding ONCE, half up; profile onnx: rounding
 *             EVEN, to the even code
 *     mean    y = Z3 + requantize(sum of q - n Z1, M'),  M' = M / n with M = S1 / S3 in float64:
 *             (mult << k) / n (integer division), shift - k, with k = floor(log2 n)
 *             profile onnx: M' = S1 / (S3 n) in float32, also of global_average_pool
 *
 * An average that counts the padding averages a padded tensor: pad with Z1, the code of 0, then
 * average over whole windows.
 *
 * Pools keep the input's scale and zero_point, so that the quotient needs no multiplier.
 */
#include "autograd/ops/op.h"
#include "infer/arithmetic/fixedpoint.h"
#include "integer/quant_ops.h"

#include <inttypes.h>
#include <string.h>

enum { HEIGHT_AND_WIDTH = 1 << 1 | 1 << 2 }; /* axis mask of [N, H, W, C] */

/* ------------------------------------------------------------------ appending the ops */

/** Sums of `count` codes of x fit int32, as the engine asks. */
static qat_status check_sums(const qat_emit *e, const char *op, int64_t count, qat_error *err)
{
    const qat_qtensor *x = &e->graph->tensors[e->inputs[0]];
    int64_t const largest = x->type == QI_S16 ? -(int64_t)INT16_MIN : UINT8_MAX;
    if (count <= INT32_MAX / largest)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_NUMERIC,
                    "%s: %s adds %" PRId64 " codes, whose sum can leave int32", e->name, op, count);
}

qat_status qat_emit_pool(const qat_emit *e, const char *op, const qat_window *w, qat_error *err)
{
    const qat_qtensor *x = &e->graph->tensors[e->inputs[0]], *y = &e->graph->tensors[e->output];
    qat_window dense = *w;
    int32_t pads[2];
    dense.dilation_h = dense.dilation_w = 1;
    qat_window_pads(&dense, x, y, pads);
    int32_t params[] = {w->kernel_h, w->kernel_w, w->stride_h, w->stride_w, pads[0], pads[1], 0, 0};
    qat_emit_clamp(e, &params[6], &params[7]);
    bool const averages = strcmp(op, "average_pool2d") == 0;
    qi_rounding const usual = e->profile == QAT_PROFILE_ONNX ? QI_ROUND_EVEN : QI_ROUND_NONE;
    qi_rounding const rounding = averages ? qat_emit_rounding(e, usual) : QI_ROUND_NONE;
    qat_status st = qat_require_same_grid(e, op, 0, err);
    if (!st && averages)
        st = check_sums(e, op, (int64_t)w->kernel_h * w->kernel_w, err);
    return st ? st : qat_emit_op(e, op, rounding, 8, params, 0, err);
}

qat_status qat_emit_mean(const qat_emit *e, unsigned axis_mask, qat_error *err)
{
    const qat_qtensor *x = &e->graph->tensors[e->inputs[0]], *y = &e->graph->tensors[e->output];
    int64_t n = 1;
    for (int i = 0; i < x->rank; i++)
        if (axis_mask >> i & 1u)
            n *= x->dims[i];
    qat_status const st = check_sums(e, "mean", n, err);
    if (st)
        return st;
    int const k = qi_bit_length((uint64_t)n) - 1;
    int32_t params[5] = {(int32_t)axis_mask};
    qat_emit_clamp(e, &params[3], &params[4]);
    if (e->profile == QAT_PROFILE_ONNX) {
        qat_requantize_multiplier((double)(x->scale / (y->scale * (float)n)), &params[1],
                                  &params[2]);
        return qat_emit_op(e, "mean", QI_ROUND_EVEN, 5, params, n * qat_largest_difference(x), err);
    }
    qat_requantize_multiplier((double)x->scale / (double)y->scale, &params[1], &params[2]);
    params[1] = (int32_t)(((int64_t)params[1] << k) / n);
    params[2] -= k;
    if (params[2] < -31) /* every sum rounds to 0 */
        params[1] = params[2] = 0;
    return qat_emit_op(e, "mean", qat_emit_rounding(e, QI_ROUND_TWICE), 5, params,
                       n * qat_largest_difference(x), err);
}

static qat_status freeze_pool(const qat_fused_layer *layer, const char *op, qat_error *err)
{
    qat_emit const e = qat_emit_of(layer);
    qat_window window;
    qat_status const st = qat_window_of(&window, layer->head, err);
    return st ? st : qat_emit_pool(&e, op, &window, err);
}

static qat_status freeze_max_pool2d(const qat_fused_layer *layer, qat_error *err)
{
    return freeze_pool(layer, "max_pool2d", err);
}

/** pad's parameters: positions before and after by dimension, and the code that fills them. */
enum { PAD_BEFORE = 0, PAD_AFTER = QI_MAX_RANK, PAD_VALUE = 2 * QI_MAX_RANK, PAD_PARAMS };

/** How many rows or columns the windows of one direction need after the last pixel. */
static int pad_after(int in, int out, int kernel, int stride, int before)
{
    int const after = (out - 1) * stride + kernel - before - in;
    return after > 0 ? after : 0;
}

/** Append x with zeros around it, as far as windows reach. Returns the index of the tensor. */
static qat_status emit_padded(const qat_emit *e, const qat_window *w, int *index, qat_error *err)
{
    const qat_qtensor *x = &e->graph->tensors[e->inputs[0]];
    qat_qtensor t = qat_part_like(x, e->name, "padded");
    int32_t params[PAD_PARAMS] = {0};
    params[PAD_BEFORE + 1] = w->pad_top;
    params[PAD_BEFORE + 2] = w->pad_left;
    params[PAD_AFTER + 1] = pad_after(w->in_h, w->out_h, w->kernel_h, w->stride_h, w->pad_top);
    params[PAD_AFTER + 2] = pad_after(w->in_w, w->out_w, w->kernel_w, w->stride_w, w->pad_left);
    params[PAD_VALUE] = x->zero_point;
    for (int i = 1; i <= 2; i++)
        t.dims[i] += params[PAD_BEFORE + i] + params[PAD_AFTER + i];
    *index = qat_qgraph_tensor(e->graph, &t, err);
    qat_status const st = qat_append_status(*index, err);
    if (st)
        return st;
    qat_emit padded = *e;
    padded.name = t.name;
    padded.output = *index;
    return qat_emit_op(&padded, "pad", QI_ROUND_NONE, PAD_PARAMS, params, 0, err);
}

static qat_status freeze_average_pool2d(const qat_fused_layer *layer, qat_error *err)
{
    qat_emit e = qat_emit_of(layer);
    qat_window w;
    int padded;
    if (qat_attr(layer->head, "count_padding") == 0)
        return freeze_pool(layer, "average_pool2d", err);
    qat_status st = qat_window_of(&w, layer->head, err);
    if (!st)
        st = emit_padded(&e, &w, &padded, err);
    if (st)
        return st;
    e.inputs = &padded;
    w.explicit_pads = true;
    w.pad_top = w.pad_left = 0;
    return qat_emit_pool(&e, "average_pool2d", &w, err);
}

/**
 * TFLite has no global pool; its converter writes a MEAN over both axes. ONNX Runtime has one that
 * rounds as a mean.
 */
static qat_status freeze_global_average_pool(const qat_fused_layer *layer, qat_error *err)
{
    qat_emit const e = qat_emit_of(layer);
    const qat_qtensor *x = &e.graph->tensors[e.inputs[0]];
    if (layer->profile != QAT_PROFILE_PAPER)
        return qat_emit_mean(&e, HEIGHT_AND_WIDTH, err);
    qat_window const whole = {
        .kernel_h = x->dims[1], .kernel_w = x->dims[2], .stride_h = 1, .stride_w = 1};
    return qat_emit_pool(&e, "average_pool2d", &whole, err);
}

const qat_quant qat_quant_max_pool2d = {
    .role = QAT_ROLE_PASS, .freeze = freeze_max_pool2d, .takes_wide = true};
const qat_quant qat_quant_average_pool2d = {
    .role = QAT_ROLE_POOL, .freeze = freeze_average_pool2d, .takes_wide = true};
const qat_quant qat_quant_global_average_pool = {
    .role = QAT_ROLE_POOL, .freeze = freeze_global_average_pool, .takes_wide = true};

/* ------------------------------------------------------------------ exact evaluation */

/** The part of a window that lies inside the input: rows y0..y1-1, columns x0..x1-1. */
struct inside {
    int y0, y1, x0, x1;
};

static struct inside window_inside(const qat_exact_call *call, int oy, int ox)
{
    const qat_qtensor *x = qat_exact_input(call, 0);
    const int32_t *p = call->op->params;
    int const top = oy * p[2] - p[4], left = ox * p[3] - p[5];
    return (struct inside){top > 0 ? top : 0, top + p[0] < x->dims[1] ? top + p[0] : x->dims[1],
                           left > 0 ? left : 0,
                           left + p[1] < x->dims[2] ? left + p[1] : x->dims[2]};
}

/** first: the value at which the picture begins, and the channel in it. */
typedef int32_t pool_fn(const qat_exact_call *call, const void *codes, size_t first,
                        struct inside w);

static int32_t window_max(const qat_exact_call *call, const void *codes, size_t first,
                          struct inside w)
{
    const qat_qtensor *x = qat_exact_input(call, 0);
    int32_t largest = INT32_MIN;
    for (int iy = w.y0; iy < w.y1; iy++)
        for (int ix = w.x0; ix < w.x1; ix++) {
            size_t const at = ((size_t)iy * (size_t)x->dims[2] + (size_t)ix) * (size_t)x->dims[3];
            int32_t const q = qat_exact_code(x, codes, first + at);
            largest = q > largest ? q : largest;
        }
    return largest;
}

static int32_t window_average(const qat_exact_call *call, const void *codes, size_t first,
                              struct inside w)
{
    const qat_qtensor *x = qat_exact_input(call, 0);
    int32_t sum = 0;
    for (int iy = w.y0; iy < w.y1; iy++)
        for (int ix = w.x0; ix < w.x1; ix++) {
            size_t const at = ((size_t)iy * (size_t)x->dims[2] + (size_t)ix) * (size_t)x->dims[3];
            sum += qat_exact_code(x, codes, first + at);
        }
    int32_t const pixels = (w.y1 - w.y0) * (w.x1 - w.x0);
    return call->op->rounding == QI_ROUND_EVEN   ? qi_divide_half_even(sum, pixels)
           : call->op->rounding == QI_ROUND_ONCE ? qi_divide_half_up(sum, pixels)
                                                 : qi_divide_half_away(sum, pixels);
}

static void pool_sample(const qat_exact_call *call, int sample, pool_fn *pool)
{
    const qat_qtensor *x = qat_exact_input(call, 0), *y = qat_exact_output(call);
    int32_t const lo = call->op->params[6], hi = call->op->params[7];
    size_t const picture = (size_t)x->dims[1] * (size_t)x->dims[2] * (size_t)x->dims[3];
    const uint8_t *in = qat_exact_in(call, 0, sample);
    uint8_t *out = qat_exact_out(call, sample);
    size_t at = 0;
    for (int n = 0; n < y->dims[0]; n++)
        for (int oy = 0; oy < y->dims[1]; oy++)
            for (int ox = 0; ox < y->dims[2]; ox++) {
                struct inside const w = window_inside(call, oy, ox);
                for (int c = 0; c < y->dims[3]; c++)
                    qat_exact_store(
                        y, out, at++,
                        qi_clamp(pool(call, in, (size_t)n * picture + (size_t)c, w), lo, hi));
            }
}

static void max_sample(const qat_exact_call *call, int sample)
{
    pool_sample(call, sample, window_max);
}

static void average_sample(const qat_exact_call *call, int sample)
{
    pool_sample(call, sample, window_average);
}

/** The value of x that is at value i of the padded tensor; -1: none. */
static int64_t unpadded(const qat_exact_call *call, size_t i)
{
    const qat_qtensor *x = qat_exact_input(call, 0), *y = qat_exact_output(call);
    const int32_t *before = call->op->params + PAD_BEFORE;
    int64_t at = 0, step = 1;
    for (int d = x->rank - 1; d >= 0; d--) {
        int32_t const position = (int32_t)(i % (size_t)y->dims[d]) - before[d];
        if (position < 0 || position >= x->dims[d])
            return -1;
        at += step * position;
        step *= x->dims[d];
        i /= (size_t)y->dims[d];
    }
    return at;
}

static void pad_sample(const qat_exact_call *call, int sample)
{
    const qat_qtensor *x = qat_exact_input(call, 0), *y = qat_exact_output(call);
    const uint8_t *in = qat_exact_in(call, 0, sample);
    for (size_t i = 0; i < qat_qtensor_count(y); i++) {
        int64_t const at = unpadded(call, i);
        qat_exact_store(y, qat_exact_out(call, sample), i,
                        at < 0 ? call->op->params[PAD_VALUE] : qat_exact_code(x, in, (size_t)at));
    }
}

/** The offset in x for an index among its averaged (or its kept) axes, in order. */
static size_t offset_of(const qat_qtensor *x, unsigned mask, size_t index)
{
    size_t offset = 0, step = 1;
    for (int i = x->rank - 1; i >= 0; i--) {
        size_t const dim = (size_t)x->dims[i];
        if (mask >> i & 1u) {
            offset += index % dim * step;
            index /= dim;
        }
        step *= dim;
    }
    return offset;
}

static void mean_sample(const qat_exact_call *call, int sample)
{
    const qat_qtensor *x = qat_exact_input(call, 0), *y = qat_exact_output(call);
    const int32_t *p = call->op->params;
    const uint8_t *in = qat_exact_in(call, 0, sample);
    uint8_t *out = qat_exact_out(call, sample);
    size_t const kept = qat_qtensor_count(y), averaged = qat_qtensor_count(x) / kept;
    for (size_t k = 0; k < kept; k++) {
        size_t const first = offset_of(x, ~(unsigned)p[0], k);
        int32_t sum = 0;
        for (size_t i = 0; i < averaged; i++)
            sum += qat_exact_code(x, in, first + offset_of(x, (unsigned)p[0], i)) - x->zero_point;
        int64_t const value = call->op->rounding == QI_ROUND_EVEN
                                  ? qat_exact_even((float)sum, p[1], p[2])
                                  : qat_rounded(call->op->rounding, sum, p[1], p[2]);
        qat_exact_store_clamped(y, out, k, value + y->zero_point, p[3], p[4]);
    }
}

/** Of the n values, which float32 adds one after the other. */
static double averaged_quanta(const qat_qgraph *graph, const qat_qop *op, double n)
{
    return qat_float_quanta(graph, op, 1.0 + n / 8.0);
}

static double average_bound(const qat_qgraph *graph, const qat_qop *op)
{
    return 0.5 + averaged_quanta(graph, op, (double)op->params[0] * op->params[1]);
}

static double mean_bound(const qat_qgraph *graph, const qat_qop *op)
{
    size_t const n = qat_qtensor_count(&graph->tensors[op->inputs[0]]) /
                     qat_qtensor_count(&graph->tensors[op->outputs[0]]);
    return 0.75 + averaged_quanta(graph, op, (double)n);
}

const qat_integer_op qat_integer_max_pool2d = {
    .name = "max_pool2d", .sample = max_sample, .is_wide = true};
const qat_integer_op qat_integer_average_pool2d = {
    .name = "average_pool2d", .sample = average_sample, .is_wide = true, .bound = average_bound};
const qat_integer_op qat_integer_pad = {
    .name = "pad", .sample = pad_sample, .is_wide = true, .quanta = 1.0};
const qat_integer_op qat_integer_mean = {
    .name = "mean", .sample = mean_sample, .is_wide = true, .bound = mean_bound};
