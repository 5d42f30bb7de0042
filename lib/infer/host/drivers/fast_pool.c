/**
 * average_pool2d, max_pool2d and the mean over height and width, on a host.
 *
 * A row of outputs is computed in two steps. First the rows of its windows become one, for all
 * columns and channels; then the columns of each window become one. Both are sums, or maxima, of
 * the unsigned x' = byte ^ flip:
 *
 *   scratch  | one number for each column and channel |
 *
 * Sums have 16 bits. Averages of more pixels than QI_SMALL_COUNT, and means, go to 32 bits after
 * every 256 pixels. With sum q = sum x' - flip * pixels
 *
 *   average = sum q / pixels, half away from zero        mean = requantize(sum q - pixels * Z)
 *
 * With rounding ONCE halves go up, as sum x' / pixels has them: so the averages are those of x',
 * and get the flip afterwards. With rounding EVEN all averages are divided one by one.
 */
#include "infer/host/loops/elementwise.h"
#include "infer/host/loops/fast.h"

enum { CHUNK = 256, PIXELS = 256, MOST_AT_ONCE = 1024 };

/** The pixels of one window, with at most CHUNK channels. */
struct window {
    const qi_elementwise *inner;
    uint8_t flip;
    const uint8_t *x; /* first pixel */
    int32_t rows, columns;
    size_t row_bytes, pixel_bytes, channels;
};

/** sums = sum of x' */
static void sum_window(const struct window *w, int32_t *sums)
{
    uint16_t part[CHUNK];
    memset(sums, 0, w->channels * sizeof *sums);
    for (int32_t y = 0; y < w->rows; y++)
        for (int32_t x = 0; x < w->columns; x += PIXELS) {
            int32_t const pixels = w->columns - x < PIXELS ? w->columns - x : PIXELS;
            w->inner->sum_rows(w->flip,
                               w->x + (size_t)y * w->row_bytes + (size_t)x * w->pixel_bytes,
                               w->pixel_bytes, (size_t)pixels, part, w->channels);
            for (size_t c = 0; c < w->channels; c++)
                sums[c] += part[c];
        }
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

/** A row of outputs, and the rows of x that its windows have. */
struct line {
    const qi_elementwise *inner;
    qi_window g;
    uint8_t flip;
    int32_t rounding, lo, hi;
    const uint8_t *x; /* the first of its rows */
    uint8_t *y;
    int32_t rows;
    size_t channels, row_bytes;
};

static struct line line_at(const qi_fast_call *call, int32_t index)
{
    qi_window const g = qi_pool_window(call->model, call->node);
    size_t const channels = (size_t)g.c, row = (size_t)g.w * channels;
    qi_taps const ty = qi_taps_at(index % g.oh, g.stride_h, g.pad_top, 1, g.kernel_h, g.h);
    size_t const first = (size_t)(index / g.oh) * (size_t)g.h + (size_t)(ty.start + ty.first);
    return (struct line){.inner = call->isa->elementwise,
                         .g = g,
                         .flip = qi_input(call->model, call->node, 0)->type == QI_S8 ? 0x80 : 0,
                         .rounding = call->node->rounding,
                         .lo = call->node->params[QI_POOL_CLAMP_LO],
                         .hi = call->node->params[QI_POOL_CLAMP_HI],
                         .x = (const uint8_t *)call->in[0] + first * row,
                         .y = (uint8_t *)call->out + (size_t)index * (size_t)g.ow * channels,
                         .rows = ty.end - ty.first,
                         .channels = channels,
                         .row_bytes = row};
}

/** Successive outputs whose windows have as many columns: those of one are at `from`. */
struct run {
    int32_t columns, outputs;
    size_t from; /* values of a row before its first column */
};

static struct run run_at(const struct line *l, int32_t ox)
{
    const qi_window *g = &l->g;
    qi_taps const t = qi_taps_at(ox, g->stride_w, g->pad_left, 1, g->kernel_w, g->w);
    struct run r = {t.end - t.first, 1, (size_t)(t.start + t.first) * l->channels};
    while (g->stride_w == 1 && ox + r.outputs < g->ow) { /* the next one begins a column behind */
        qi_taps const next = qi_taps_at(ox + r.outputs, 1, g->pad_left, 1, g->kernel_w, g->w);
        if (next.end - next.first != r.columns ||
            next.start + next.first != t.start + t.first + r.outputs)
            break;
        r.outputs++;
    }
    return r;
}

/* ------------------------------------------------------------------ average */

static size_t average_scratch(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    qi_window const g = qi_pool_window(model, node);
    return (size_t)g.w * (size_t)g.c * sizeof(uint16_t) + QI_SLACK;
}

static int32_t average_of(const struct line *l, int32_t sum, int32_t pixels)
{
    return l->rounding == QI_ROUND_EVEN   ? qi_divide_half_even(sum, pixels)
           : l->rounding == QI_ROUND_ONCE ? qi_divide_half_up(sum, pixels)
                                          : qi_divide_half_away(sum, pixels);
}

/** The averages of one window of many pixels, whose first column is at x. */
static void average_large(const struct line *l, int32_t columns, const uint8_t *x, uint8_t *y)
{
    int32_t const pixels = l->rows * columns;
    for (size_t c = 0; c < l->channels; c += CHUNK) {
        struct window const w = {.inner = l->inner,
                                 .flip = l->flip,
                                 .x = x + c,
                                 .rows = l->rows,
                                 .columns = columns,
                                 .row_bytes = l->row_bytes,
                                 .pixel_bytes = l->channels,
                                 .channels = l->channels - c < CHUNK ? l->channels - c : CHUNK};
        int32_t sums[CHUNK];
        sum_window(&w, sums);
        for (size_t i = 0; i < w.channels; i++) {
            int32_t const sum = sums[i] - pixels * l->flip;
            y[c + i] = (uint8_t)qi_clamp(average_of(l, sum, pixels), l->lo, l->hi);
        }
    }
}

/** The averages of a run, from the sums of columns. */
static void average_small(const struct line *l, const struct run *r, const uint16_t *columns,
                          uint8_t *y)
{
    int32_t const up = l->rounding == QI_ROUND_ONCE ? l->flip : 0;
    qi_divisor const by = {l->rows * r->columns, l->lo + up, l->hi + up, (uint8_t)(l->flip - up)};
    size_t const all = (size_t)r->outputs * l->channels;
    for (size_t i = 0; i < all; i += MOST_AT_ONCE) {
        size_t const n = all - i < MOST_AT_ONCE ? all - i : MOST_AT_ONCE;
        uint16_t sums[MOST_AT_ONCE];
        l->inner->sum_sums(columns + r->from + i, l->channels, (size_t)r->columns, sums, n);
        l->inner->divide(sums, &by, y + i, n);
        if (up)
            l->inner->flip((uint8_t)up, y + i, y + i, n);
    }
}

static void run_average(const qi_fast_call *call, int32_t index)
{
    struct line const l = line_at(call, index);
    int const is_small =
        l.g.kernel_h * l.g.kernel_w <= QI_SMALL_COUNT && l.rounding != QI_ROUND_EVEN;
    uint16_t *columns = call->scratch;
    if (is_small)
        l.inner->sum_rows(l.flip, l.x, l.row_bytes, (size_t)l.rows, columns, l.row_bytes);
    for (int32_t ox = 0; ox < l.g.ow;) {
        struct run const r = run_at(&l, ox);
        uint8_t *y = l.y + (size_t)ox * l.channels;
        if (is_small)
            average_small(&l, &r, columns, y);
        for (size_t i = 0; !is_small && i < (size_t)r.outputs; i++)
            average_large(&l, r.columns, l.x + r.from + i * l.channels, y + i * l.channels);
        ox += r.outputs;
    }
}

/* ------------------------------------------------------------------ max */

static size_t max_scratch(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    qi_window const g = qi_pool_window(model, node);
    return (size_t)g.w * (size_t)g.c + QI_SLACK;
}

static void run_max(const qi_fast_call *call, int32_t index)
{
    struct line const l = line_at(call, index);
    uint8_t const lo = (uint8_t)(l.lo + l.flip), hi = (uint8_t)(l.hi + l.flip);
    uint8_t *columns = call->scratch;
    l.inner->most_rows(l.flip, l.x, l.row_bytes, (size_t)l.rows, columns, l.row_bytes);
    for (size_t i = 0; i < l.row_bytes; i++)
        columns[i] = columns[i] < lo ? lo : columns[i] > hi ? hi : columns[i];
    for (int32_t ox = 0; ox < l.g.ow;) {
        struct run const r = run_at(&l, ox);
        l.inner->most_rows(0, columns + r.from, l.channels, (size_t)r.columns,
                           l.y + (size_t)ox * l.channels, (size_t)r.outputs * l.channels);
        ox += r.outputs;
    }
    l.inner->flip(l.flip, l.y, l.y, (size_t)l.g.ow * l.channels);
}

const qi_fast qi_fast_average_pool2d = {.kernel = &qi_kernel_average_pool2d,
                                        .accepts = pool_accepts,
                                        .scratch = average_scratch,
                                        .tiles = pool_tiles,
                                        .run = run_average};
const qi_fast qi_fast_max_pool2d = {.kernel = &qi_kernel_max_pool2d,
                                    .accepts = pool_accepts,
                                    .scratch = max_scratch,
                                    .tiles = pool_tiles,
                                    .run = run_max};

/* ------------------------------------------------------------------ mean */

/**
 * Accepts axes 1 and 2 of [N,H,W,C] with rounding EVEN, or with TWICE and a right shift; sums, with
 * what rounds them, must fit int32.
 */
static int mean_accepts(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    const qi_tensor *x = qi_input(model, node, 0);
    int32_t const shift = node->params[QI_MEAN_SHIFT];
    int64_t const most = (int64_t)x->dims[1] * x->dims[2] * 255;
    int64_t const half = shift < 0 ? INT64_C(1) << (-shift - 1) : 0;
    int const is_even = node->rounding == QI_ROUND_EVEN && most <= INT32_MAX;
    int const is_twice = node->rounding == QI_ROUND_TWICE && shift <= 0 && most + half <= INT32_MAX;
    return isa->elementwise && x->rank == 4 && node->params[QI_MEAN_AXIS_MASK] == 6 &&
           (is_even || is_twice);
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

/** The codes of sums of differences, one by one. */
static void round_even(const qi_tensor *y, const int32_t *p, const int32_t *sums, uint8_t *to,
                       size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int32_t const mean = qi_requantize_even(sums[i], p[QI_MEAN_MULT], p[QI_MEAN_SHIFT]);
        int32_t const code = qi_saturate_i64((int64_t)mean + y->zero_point);
        to[i] = (uint8_t)qi_clamp(code, p[QI_MEAN_CLAMP_LO], p[QI_MEAN_CLAMP_HI]);
    }
}

static void run_mean(const qi_fast_call *call, int32_t index)
{
    const qi_node *node = call->node;
    const qi_tensor *x = qi_input(call->model, call->node, 0);
    qi_codes const codes = qi_codes_of(x);
    const qi_tensor *y = qi_output(call->model, node);
    qi_scaling const scaling = scaling_of(y, node->params);
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
    uint8_t *to = (uint8_t *)call->out + n * channels + c;
    if (node->rounding == QI_ROUND_EVEN)
        round_even(y, node->params, sums, to, w.channels);
    else
        w.inner->requantize(&scaling, sums, to, w.channels);
}

const qi_fast qi_fast_mean = {
    .kernel = &qi_kernel_mean, .accepts = mean_accepts, .tiles = mean_tiles, .run = run_mean};
