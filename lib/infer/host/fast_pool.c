/**
 * average_pool2d, max_pool2d and the mean over height and width, on a host.
 *
 * Sums and maxima of a window are computed for CHUNK channels at a time, with the unsigned x' =
 * byte ^ flip. Sums have 16 bits for up to 256 pixels, then go to 32 bits. With sum q = sum x' -
 * flip * pixels
 *
 *   average = sum q / pixels, half away from zero        mean = requantize(sum q - pixels * Z)
 */
#include "infer/host/elementwise.h"
#include "infer/host/fast.h"

enum { CHUNK = 256, PIXELS = 256 };

/** The pixels of one window, with at most CHUNK channels. */
struct window {
    const qi_elementwise *inner;
    uint8_t flip;
    const uint8_t *x; /* first pixel */
    int32_t rows, columns;
    size_t row_bytes, pixel_bytes, channels;
};

/** Add the 16-bit sums to the 32-bit sums and set them to zero. */
static void flush(int32_t *sums, uint16_t *part, size_t n)
{
    for (size_t c = 0; c < n; c++) {
        sums[c] += part[c];
        part[c] = 0;
    }
}

/** part = sum of x' of at most PIXELS pixels */
static void sum_small_window(const struct window *w, uint16_t *part)
{
    memset(part, 0, w->channels * sizeof *part);
    for (int32_t y = 0; y < w->rows; y++)
        for (int32_t x = 0; x < w->columns; x++)
            w->inner->add(w->flip, w->x + (size_t)y * w->row_bytes + (size_t)x * w->pixel_bytes,
                          part, w->channels);
}

/** sums = sum of x' */
static void sum_window(const struct window *w, int32_t *sums)
{
    uint16_t part[CHUNK] = {0};
    int32_t pixels = 0;
    memset(sums, 0, w->channels * sizeof *sums);
    for (int32_t y = 0; y < w->rows; y++)
        for (int32_t x = 0; x < w->columns; x++) {
            w->inner->add(w->flip, w->x + (size_t)y * w->row_bytes + (size_t)x * w->pixel_bytes,
                          part, w->channels);
            if (++pixels % PIXELS == 0)
                flush(sums, part, w->channels);
        }
    flush(sums, part, w->channels);
}

static void max_window(const struct window *w, uint8_t *most)
{
    for (int32_t y = 0; y < w->rows; y++)
        for (int32_t x = 0; x < w->columns; x++)
            w->inner->most(w->flip, w->x + (size_t)y * w->row_bytes + (size_t)x * w->pixel_bytes,
                           most, w->channels);
}

/* ------------------------------------------------------------------ pools */

static int pool_accepts(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    return isa->elementwise != NULL;
}

/** A tile is one row of outputs. */
static int32_t pool_tiles(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    const qi_tensor *y = qi_output(model, node);
    return y->dims[0] * y->dims[1];
}

/** Computes the codes of one window's channels. */
typedef void pool_fn(const qi_fast_call *call, const struct window *w, uint8_t *y);

static void pool_pixel(const qi_fast_call *call, const qi_window *g, struct window *w,
                       const uint8_t *pixel, uint8_t *y, pool_fn *pool)
{
    for (size_t c = 0; c < (size_t)g->c; c += CHUNK) {
        w->x = pixel + c;
        w->channels = (size_t)g->c - c < CHUNK ? (size_t)g->c - c : CHUNK;
        pool(call, w, y + c);
    }
}

static void pool_row(const qi_fast_call *call, int32_t line, pool_fn *pool)
{
    qi_window const g = qi_pool_window(call->model, call->node);
    size_t const channels = (size_t)g.c, row = (size_t)g.w * channels;
    qi_taps const ty = qi_taps_at(line % g.oh, g.stride_h, g.pad_top, 1, g.kernel_h, g.h);
    const uint8_t *x = (const uint8_t *)call->in[0] +
                       ((size_t)(line / g.oh) * (size_t)g.h + (size_t)(ty.start + ty.first)) * row;
    uint8_t *y = (uint8_t *)call->out + (size_t)line * (size_t)g.ow * channels;
    struct window w = {.inner = call->isa->elementwise,
                       .flip = qi_input(call->model, call->node, 0)->type == QI_S8 ? 0x80 : 0,
                       .rows = ty.end - ty.first,
                       .row_bytes = row,
                       .pixel_bytes = channels};
    for (int32_t ox = 0; ox < g.ow; ox++, y += channels) {
        qi_taps const tx = qi_taps_at(ox, g.stride_w, g.pad_left, 1, g.kernel_w, g.w);
        w.columns = tx.end - tx.first;
        pool_pixel(call, &g, &w, x + (size_t)(tx.start + tx.first) * channels, y, pool);
    }
}

/* ------------------------------------------------------------------ average */

static void average(const qi_fast_call *call, const struct window *w, uint8_t *y)
{
    int32_t const lo = call->node->params[QI_POOL_CLAMP_LO],
                  hi = call->node->params[QI_POOL_CLAMP_HI];
    int32_t const pixels = w->rows * w->columns, less = pixels * w->flip;
    if (pixels <= QI_SMALL_COUNT) {
        uint16_t part[CHUNK];
        qi_divisor const by = {pixels, less, lo, hi};
        sum_small_window(w, part);
        w->inner->divide(part, &by, y, w->channels);
        return;
    }
    int32_t sums[CHUNK];
    sum_window(w, sums);
    for (size_t c = 0; c < w->channels; c++)
        y[c] = (uint8_t)qi_clamp(qi_divide_half_away(sums[c] - less, pixels), lo, hi);
}

static void run_average(const qi_fast_call *call, int32_t line)
{
    pool_row(call, line, average);
}

/* ------------------------------------------------------------------ max */

static void maximum(const qi_fast_call *call, const struct window *w, uint8_t *y)
{
    uint8_t const hi = (uint8_t)(call->node->params[QI_POOL_CLAMP_HI] + w->flip);
    memset(y, call->node->params[QI_POOL_CLAMP_LO] + w->flip, w->channels);
    max_window(w, y);
    for (size_t c = 0; c < w->channels; c++)
        y[c] = (uint8_t)((y[c] > hi ? hi : y[c]) ^ w->flip);
}

static void run_max(const qi_fast_call *call, int32_t line)
{
    pool_row(call, line, maximum);
}

const qi_fast qi_fast_average_pool2d = {.kernel = &qi_kernel_average_pool2d,
                                        .accepts = pool_accepts,
                                        .tiles = pool_tiles,
                                        .run = run_average};
const qi_fast qi_fast_max_pool2d = {
    .kernel = &qi_kernel_max_pool2d, .accepts = pool_accepts, .tiles = pool_tiles, .run = run_max};

/* ------------------------------------------------------------------ mean */

/** Accepts axes 1 and 2 of [N,H,W,C], only right shifts, and sums before them that fit int32. */
static int mean_accepts(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    const qi_tensor *x = qi_input(model, node, 0);
    int32_t const shift = node->params[QI_MEAN_SHIFT];
    int64_t const most = (int64_t)x->dims[1] * x->dims[2] * 255;
    int64_t const half = shift < 0 ? INT64_C(1) << (-shift - 1) : 0;
    return isa->elementwise && x->rank == 4 && node->params[QI_MEAN_AXIS_MASK] == 6 && shift <= 0 &&
           most + half <= INT32_MAX;
}

static int32_t chunks_of(const qi_tensor *x)
{
    return (x->dims[3] + CHUNK - 1) / CHUNK;
}

/** A tile is CHUNK channels of a picture. */
static int32_t mean_tiles(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    const qi_tensor *x = qi_input(model, node, 0);
    return x->dims[0] * chunks_of(x);
}

static qi_scaling scaling_of(const qi_tensor *y, const int32_t *p)
{
    int32_t const flip = y->type == QI_U8 ? 0x80 : 0;
    return (qi_scaling){.mult = p[QI_MEAN_MULT],
                        .right = -p[QI_MEAN_SHIFT],
                        .zero_point = y->zero_point - flip,
                        .lo = p[QI_MEAN_CLAMP_LO] - flip,
                        .hi = p[QI_MEAN_CLAMP_HI] - flip,
                        .y_flip = (uint8_t)flip};
}

static void run_mean(const qi_fast_call *call, int32_t index)
{
    const qi_tensor *x = qi_input(call->model, call->node, 0);
    qi_codes const codes = qi_codes_of(x);
    qi_scaling const scaling = scaling_of(qi_output(call->model, call->node), call->node->params);
    size_t const channels = (size_t)x->dims[3], pixels = (size_t)x->dims[1] * (size_t)x->dims[2];
    size_t const n = (size_t)(index / chunks_of(x)), c = (size_t)(index % chunks_of(x)) * CHUNK;
    struct window const w = {.inner = call->isa->elementwise,
                             .flip = codes.flip,
                             .x = (const uint8_t *)call->in[0] + n * pixels * channels + c,
                             .rows = x->dims[1],
                             .columns = x->dims[2],
                             .row_bytes = (size_t)x->dims[2] * channels,
                             .pixel_bytes = channels,
                             .channels = channels - c < CHUNK ? channels - c : CHUNK};
    int32_t sums[CHUNK];
    sum_window(&w, sums);
    for (size_t i = 0; i < w.channels; i++)
        sums[i] -= (int32_t)pixels * codes.offset;
    w.inner->requantize(&scaling, sums, (uint8_t *)call->out + n * channels + c, w.channels);
}

const qi_fast qi_fast_mean = {
    .kernel = &qi_kernel_mean, .accepts = mean_accepts, .tiles = mean_tiles, .run = run_mean};
