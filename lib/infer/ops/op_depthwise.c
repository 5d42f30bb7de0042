/**
 * depthwise_conv2d: x [N,H,W,C], w [1,KH,KW,C m], bias, mult, shift -> y [N,OH,OW,C m].
 *
 *   acc[c m + j] = sum over ky, kx of (x[.., c] - Z_x)(w[ky, kx, c m + j] - Z_w)
 *
 * All channels of an output pixel are summed together, tap by tap:
 *
 *   scratch  | sums [C m] int32, or int64 for 16-bit codes | weights [KH, KW, C m] int16 |
 *            | differences of one pixel [C m] int16 |
 */
#include "infer/model/memory.h"
#include "infer/model/op.h"

static qi_status check(const qi_model *model, const qi_node *node, int32_t index, qi_error *err)
{
    qi_checker c = {model, node, index, err, QI_OK};
    if (!qi_rule_counts(&c, QI_ACC_INPUTS, QI_ACC_INPUTS, QI_CONV_CLAMP_HI + 1,
                        qi_layer_rounding(node, 0)) ||
        !qi_rule_layer(&c))
        return c.status;
    const qi_tensor *w = qi_input(model, node, 1);
    qi_window const g = qi_conv_window(model, node);
    qi_rule(&c, w->rank == 4, QI_ERR_SHAPE, "rank of the weights", w->rank, 4);
    qi_rule_window(&c, &g);
    qi_rule(&c, w->dims[0] == 1, QI_ERR_SHAPE, "first dimension of the weights", w->dims[0], 1);
    qi_rule(&c, w->dims[3] == g.o, QI_ERR_SHAPE, "output channels of the weights", w->dims[3], g.o);
    qi_rule(&c, (int64_t)g.c * node->params[QI_CONV_MULTIPLIER] == g.o, QI_ERR_PARAM, "multiplier",
            node->params[QI_CONV_MULTIPLIER], g.o / g.c);
    qi_rule_clamp(&c, QI_CONV_CLAMP_LO);
    if (!c.status)
        qi_rule_accumulator(&c, g.o);
    return c.status;
}

/** Bytes of a sum. */
static size_t sum_bytes(const qi_tensor *x)
{
    return qi_is_wide(x) ? sizeof(int64_t) : sizeof(int32_t);
}

static size_t scratch(const qi_model *model, const qi_node *node)
{
    const qi_tensor *w = qi_input(model, node, 1);
    size_t const channels = (size_t)w->dims[3];
    return channels * sum_bytes(qi_input(model, node, 0)) +
           ((size_t)qi_count(w) + channels) * sizeof(int16_t);
}

/** What is the same for all pixels of a call. */
struct depthwise {
    qi_window g;
    const void *x;
    qi_codes codes;
    size_t channels; /* of the output */
    int32_t multiplier;
    size_t sum_bytes;
    void *sums;
    int16_t *weights, *pixel;
};

/** Write the differences of the pixel at value `at`, each `multiplier` times. */
static void spread(const struct depthwise *v, size_t at)
{
    if (v->multiplier == 1) {
        qi_differences(v->pixel, v->x, at, v->channels, v->codes);
        return;
    }
    int16_t *to = v->pixel;
    for (size_t c = 0; c < (size_t)v->g.c; c++) {
        int16_t d;
        qi_differences(&d, v->x, at + c, 1, v->codes);
        for (int32_t j = 0; j < v->multiplier; j++)
            *to++ = d;
    }
}

static void add_tap(int32_t *restrict sums, const int16_t *restrict pixel,
                    const int16_t *restrict weights, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sums[i] += (int32_t)pixel[i] * weights[i];
}

static void add_tap_wide(int64_t *restrict sums, const int16_t *restrict pixel,
                         const int16_t *restrict weights, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sums[i] += (int32_t)pixel[i] * weights[i];
}

/** Sum all channels of one output pixel; x: the value where the picture begins. */
static void sum_window(const struct depthwise *v, size_t x, int32_t oy, int32_t ox)
{
    const qi_window *g = &v->g;
    qi_taps const ty = qi_taps_at(oy, g->stride_h, g->pad_top, g->dilation_h, g->kernel_h, g->h);
    qi_taps const tx = qi_taps_at(ox, g->stride_w, g->pad_left, g->dilation_w, g->kernel_w, g->w);
    memset(v->sums, 0, v->channels * v->sum_bytes);
    for (int32_t ky = ty.first; ky < ty.end; ky++)
        for (int32_t kx = tx.first; kx < tx.end; kx++) {
            size_t const iy = (size_t)(ty.start + ky * g->dilation_h);
            size_t const ix = (size_t)(tx.start + kx * g->dilation_w);
            size_t const tap = (size_t)ky * (size_t)g->kernel_w + (size_t)kx;
            spread(v, x + (iy * (size_t)g->w + ix) * (size_t)g->c);
            if (v->codes.is_wide)
                add_tap_wide(v->sums, v->pixel, v->weights + tap * v->channels, v->channels);
            else
                add_tap(v->sums, v->pixel, v->weights + tap * v->channels, v->channels);
        }
}

/** Store the output pixel that begins at value `at`. */
static void store_pixel(const struct depthwise *v, const qi_requant *requant, void *y, size_t at)
{
    const int32_t *sums = v->sums;
    const int64_t *long_sums = v->sums;
    for (size_t o = 0; o < v->channels && v->codes.is_wide; o++)
        ((int16_t *)y)[at + o] = (int16_t)qi_requant_wide_code(requant, (int32_t)o, long_sums[o]);
    for (size_t o = 0; o < v->channels && !v->codes.is_wide; o++)
        qi_store_code(y, at + o, qi_requant_code(requant, (int32_t)o, sums[o]));
}

static void run(const qi_call *call)
{
    const qi_tensor *x = qi_input(call->model, call->node, 0);
    const qi_tensor *w = qi_input(call->model, call->node, 1);
    size_t const channels = (size_t)w->dims[3], taps = (size_t)qi_count(w);
    int16_t *weights = (int16_t *)(void *)((uint8_t *)call->scratch + channels * sum_bytes(x));
    struct depthwise const v = {.g = qi_conv_window(call->model, call->node),
                                .x = call->in[0],
                                .codes = qi_codes_of(x),
                                .channels = channels,
                                .multiplier = call->node->params[QI_CONV_MULTIPLIER],
                                .sum_bytes = sum_bytes(x),
                                .sums = call->scratch,
                                .weights = weights,
                                .pixel = weights + taps};
    qi_requant const requant = qi_requant_of(call, QI_CONV_CLAMP_LO);
    size_t const picture = (size_t)v.g.h * (size_t)v.g.w * (size_t)v.g.c;
    size_t at = 0;
    qi_rows const rows = qi_rows_of(w, call->in[1]);
    qi_widen_row(weights, &rows, 0, qi_codes_of(w));
    for (int32_t n = 0; n < v.g.n; n++)
        for (int32_t oy = 0; oy < v.g.oh; oy++)
            for (int32_t ox = 0; ox < v.g.ow; ox++, at += channels) {
                sum_window(&v, (size_t)n * picture, oy, ox);
                store_pixel(&v, &requant, call->out[0], at);
            }
}

const qi_kernel qi_kernel_depthwise_conv2d = {.name = "depthwise_conv2d",
                                              .check = check,
                                              .scratch = scratch,
                                              .run = run,
                                              .products = QI_PRODUCTS_LAST,
                                              .max_fraction = QI_MAX_FRACTION,
                                              .reads_packed = 1};
