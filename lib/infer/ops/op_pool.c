/**
 * average_pool2d and max_pool2d: x [N,H,W,C] -> y [N,OH,OW,C] on the input's scale and zero_point.
 * Only pixels inside the picture count.
 *
 * average: clamp(sum of q / number of pixels), half away from zero, with rounding ONCE half up. As
 * in TensorFlow Lite, q are codes, not differences. max: clamp(largest q).
 */
#include "infer/model/memory.h"
#include "infer/model/op.h"

static qi_status check(const qi_model *model, const qi_node *node, int32_t index, qi_error *err)
{
    enum { MOST_PIXELS = 1 << 23, MOST_WIDE = (1 << 16) - 1 }; /* their sums fit int32 */
    qi_checker c = {model, node, index, err, QI_OK};
    unsigned const others = node->kernel == &qi_kernel_average_pool2d ? 1U << QI_ROUND_ONCE : 0;
    if (!qi_rule_counts(&c, 1, 1, QI_POOL_CLAMP_HI + 1,
                        qi_rounding_or(model, node, QI_ROUND_NONE, others)) ||
        !qi_rule_codes_or_wide(&c, 0, 0))
        return c.status;
    qi_window const g = qi_pool_window(model, node);
    qi_rule_same_codes(&c, 0);
    qi_rule_window(&c, &g);
    qi_rule(&c, g.c == g.o, QI_ERR_SHAPE, "channels of the output", g.o, g.c);
    qi_rule_range(&c, "pixels of a window", (int64_t)g.kernel_h * g.kernel_w, 1,
                  qi_is_wide(qi_output(model, node)) ? MOST_WIDE : MOST_PIXELS);
    qi_rule_clamp(&c, QI_POOL_CLAMP_LO);
    return c.status;
}

/* ------------------------------------------------------------------ running */

/** The taps of one window in both directions. */
struct pool_taps {
    qi_taps y, x;
};

static struct pool_taps taps_at(const qi_window *g, int32_t oy, int32_t ox)
{
    return (struct pool_taps){qi_taps_at(oy, g->stride_h, g->pad_top, 1, g->kernel_h, g->h),
                              qi_taps_at(ox, g->stride_w, g->pad_left, 1, g->kernel_w, g->w)};
}

/** The pixel of a picture under the tap ky, kx. */
static const uint8_t *pixel_at(const qi_window *g, const uint8_t *x, const struct pool_taps *t,
                               int32_t ky, int32_t kx, size_t item)
{
    size_t const iy = (size_t)(t->y.start + ky), ix = (size_t)(t->x.start + kx);
    return x + (iy * (size_t)g->w + ix) * (size_t)g->c * item;
}

/** Computes one output pixel of a pool; x: the picture. */
typedef void pool_fn(const qi_call *call, const qi_window *g, const uint8_t *x,
                     const struct pool_taps *t, uint8_t *y);

static void run_pool(const qi_call *call, pool_fn *pool)
{
    qi_window const g = qi_pool_window(call->model, call->node);
    size_t const pixel = (size_t)g.c * qi_type_bytes(qi_output(call->model, call->node)->type);
    size_t const picture = (size_t)g.h * (size_t)g.w * pixel;
    uint8_t *y = call->out[0];
    for (int32_t n = 0; n < g.n; n++)
        for (int32_t oy = 0; oy < g.oh; oy++)
            for (int32_t ox = 0; ox < g.ow; ox++, y += pixel) {
                struct pool_taps const t = taps_at(&g, oy, ox);
                pool(call, &g, (const uint8_t *)call->in[0] + (size_t)n * picture, &t, y);
            }
}

/* ------------------------------------------------------------------ average */

static size_t average_scratch(const qi_model *model, const qi_node *node)
{
    return (size_t)qi_input(model, node, 0)->dims[3] * sizeof(int32_t);
}

static void add_pixel(int32_t *restrict sums, const uint8_t *restrict pixel, size_t n, int flip)
{
    for (size_t i = 0; i < n; i++)
        sums[i] += (pixel[i] ^ flip) - flip; /* the code itself, without zero_point */
}

static void average(const qi_call *call, const qi_window *g, const uint8_t *x,
                    const struct pool_taps *t, uint8_t *y)
{
    int const flip = qi_input(call->model, call->node, 0)->type == QI_S8 ? 0x80 : 0;
    int32_t const lo = call->node->params[QI_POOL_CLAMP_LO],
                  hi = call->node->params[QI_POOL_CLAMP_HI];
    int32_t const pixels = (t->y.end - t->y.first) * (t->x.end - t->x.first);
    size_t const channels = (size_t)g->c;
    int32_t *sums = call->scratch;
    memset(sums, 0, channels * sizeof *sums);
    for (int32_t ky = t->y.first; ky < t->y.end; ky++)
        for (int32_t kx = t->x.first; kx < t->x.end; kx++)
            add_pixel(sums, pixel_at(g, x, t, ky, kx, 1), channels, flip);
    int const is_once = call->node->rounding == QI_ROUND_ONCE;
    for (size_t c = 0; c < channels; c++) {
        int32_t const mean =
            is_once ? qi_divide_half_up(sums[c], pixels) : qi_divide_half_away(sums[c], pixels);
        qi_store_code(y, c, qi_clamp(mean, lo, hi));
    }
}

static void add_wide_pixel(int32_t *restrict sums, const int16_t *restrict pixel, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sums[i] += pixel[i];
}

static void average_wide(const qi_call *call, const qi_window *g, const uint8_t *x,
                         const struct pool_taps *t, uint8_t *y)
{
    int32_t const lo = call->node->params[QI_POOL_CLAMP_LO],
                  hi = call->node->params[QI_POOL_CLAMP_HI];
    int32_t const pixels = (t->y.end - t->y.first) * (t->x.end - t->x.first);
    size_t const channels = (size_t)g->c;
    int32_t *sums = call->scratch;
    memset(sums, 0, channels * sizeof *sums);
    for (int32_t ky = t->y.first; ky < t->y.end; ky++)
        for (int32_t kx = t->x.first; kx < t->x.end; kx++)
            add_wide_pixel(
                sums, (const int16_t *)(const void *)pixel_at(g, x, t, ky, kx, sizeof(int16_t)),
                channels);
    for (size_t c = 0; c < channels; c++)
        ((int16_t *)(void *)y)[c] = (int16_t)qi_clamp(qi_divide_half_away(sums[c], pixels), lo, hi);
}

static void run_average(const qi_call *call)
{
    run_pool(call, qi_is_wide(qi_output(call->model, call->node)) ? average_wide : average);
}

/* ------------------------------------------------------------------ max */

/** most = max(most, pixel), compared as unsigned after the flip. */
static void max_pixel(uint8_t *restrict most, const uint8_t *restrict pixel, size_t n, uint8_t flip)
{
    for (size_t i = 0; i < n; i++) {
        uint8_t const q = pixel[i] ^ flip;
        most[i] = q > most[i] ? q : most[i];
    }
}

static void maximum(const qi_call *call, const qi_window *g, const uint8_t *x,
                    const struct pool_taps *t, uint8_t *y)
{
    uint8_t const flip = qi_input(call->model, call->node, 0)->type == QI_S8 ? 0x80 : 0;
    size_t const channels = (size_t)g->c;
    /*
     * The codes become unsigned: -128..127 become 0..255. A running maximum may then start at
     * clamp_lo.
     */
    int32_t const lo = call->node->params[QI_POOL_CLAMP_LO] + flip;
    int32_t const hi = call->node->params[QI_POOL_CLAMP_HI] + flip;
    memset(y, lo, channels);
    for (int32_t ky = t->y.first; ky < t->y.end; ky++)
        for (int32_t kx = t->x.first; kx < t->x.end; kx++)
            max_pixel(y, pixel_at(g, x, t, ky, kx, 1), channels, flip);
    for (size_t c = 0; c < channels; c++)
        y[c] = (uint8_t)((y[c] > hi ? hi : y[c]) ^ flip);
}

static void max_wide_pixel(int16_t *restrict most, const int16_t *restrict pixel, size_t n)
{
    for (size_t i = 0; i < n; i++)
        most[i] = pixel[i] > most[i] ? pixel[i] : most[i];
}

static void maximum_wide(const qi_call *call, const qi_window *g, const uint8_t *x,
                         const struct pool_taps *t, uint8_t *y)
{
    int32_t const lo = call->node->params[QI_POOL_CLAMP_LO],
                  hi = call->node->params[QI_POOL_CLAMP_HI];
    size_t const channels = (size_t)g->c;
    int16_t *most = (int16_t *)(void *)y;
    for (size_t c = 0; c < channels; c++)
        most[c] = (int16_t)lo;
    for (int32_t ky = t->y.first; ky < t->y.end; ky++)
        for (int32_t kx = t->x.first; kx < t->x.end; kx++)
            max_wide_pixel(
                most, (const int16_t *)(const void *)pixel_at(g, x, t, ky, kx, sizeof(int16_t)),
                channels);
    for (size_t c = 0; c < channels; c++)
        most[c] = most[c] > hi ? (int16_t)hi : most[c];
}

static void run_max(const qi_call *call)
{
    run_pool(call, qi_is_wide(qi_output(call->model, call->node)) ? maximum_wide : maximum);
}

const qi_kernel qi_kernel_average_pool2d = {.name = "average_pool2d",
                                            .check = check,
                                            .scratch = average_scratch,
                                            .run = run_average,
                                            .products = QI_PRODUCTS_POOL};
const qi_kernel qi_kernel_max_pool2d = {
    .name = "max_pool2d", .check = check, .run = run_max, .products = QI_PRODUCTS_POOL};
