/**
 * Random layers by the kernels of lib/infer/kernels, as they are compiled here: prints a digest of
 * each layer's output. Built for another processor, or with other loops (QK_VECTORS, QK_DSP), this
 * program must print the same lines.
 *
 *     layers > lines.txt
 *
 * The draws reach every tail (channels, depths, rows of a tile), all layouts of codes and weights,
 * packed weights, zero_points, groups, dilations, paddings, roundings, fractions, clamps, and
 * accumulators on both sides of 2^30, where the quick requantization ends.
 */
#include "kernels/small_cores/say.h"

#include "infer/kernels/add.h"
#include "infer/kernels/conv2d.h"
#include "infer/kernels/depthwise_conv2d.h"
#include "infer/kernels/fully_connected.h"
#include "infer/kernels/pool.h"
#include "infer/kernels/transpose_conv2d.h"

enum { MOST_X = 4096, MOST_W = 8192, MOST_Y = 8192, MOST_SCRATCH = 24576, MOST_CHANNELS = 64 };

/** Operands, with a margin for odd addresses. */
static uint8_t x[MOST_X + 16], w[MOST_W + 16];
static int32_t bias[MOST_CHANNELS], mult[2 * MOST_CHANNELS], shift[MOST_CHANNELS];
static uint8_t list[256];
static int64_t y_words[MOST_Y / 8], scratch[MOST_SCRATCH / 8];
static uint32_t state;

/* ------------------------------------------------------------------ drawing */

static uint32_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}

static int32_t between(int32_t lo, int32_t hi)
{
    return lo + (int32_t)(draw() % (uint32_t)(hi - lo + 1));
}

/** Noise, or the lowest or highest bytes, or both of them. */
static void draw_bytes(uint8_t *to, int32_t n)
{
    uint32_t const how = draw() % 8;
    for (int32_t i = 0; i < n; i++) {
        uint8_t const edge = how == 1 ? 0 : how == 2 ? 255 : how == 3 ? 0x80 : 0x7f;
        to[i] = how == 0 || how > 4 ? (uint8_t)(draw() >> 9) : edge;
    }
}

static qi_codes draw_codes(void)
{
    uint8_t const flip = draw() % 3 ? 0x80 : 0;
    qi_codes codes = {flip, 0, (int16_t)(draw() % 4 ? flip : (int32_t)between(0, 255))};
    return codes;
}

/** Rows of weights; at most MOST_W values, which may be packed. */
static qi_rows draw_rows(int32_t rows, int32_t values)
{
    qi_rows r = {w + draw() % 4, (size_t)values, (size_t)values, NULL, 0, 0};
    int const is_packed = draw() % 4 == 0;
    draw_bytes(w, rows * values + 8);
    if (!is_packed)
        return r;
    r.packing = (uint8_t)between(1, QI_TRITS);
    r.bytes = r.packing == QI_TRITS ? (r.values + 4) / 5 : (r.values * r.packing + 7) / 8;
    r.lowest = (uint8_t)draw();
    if (r.packing == QI_TRITS || draw() % 2) {
        draw_bytes(list, (int32_t)sizeof list);
        r.list = list;
    }
    for (int32_t i = 0; r.packing == QI_TRITS && i < rows * values + 8; i++)
        w[i] = w[i] % 243;
    return r;
}

/**
 * How sums of at most `depth` products become codes; every |accumulator| is below 2^31. Products
 * are below 2^16.
 */
static qi_requant draw_requant(int32_t channels, int32_t depth, int may_be_double)
{
    static const int32_t roundings[] = {QI_ROUND_TWICE, QI_ROUND_TWICE, QI_ROUND_TWICE,
                                        QI_ROUND_EVEN, QI_ROUND_DOUBLE};
    qi_requant r = {bias, mult, shift, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0};
    int32_t const is_signed = (int32_t)(draw() % 2), low = is_signed ? -128 : 0;
    int32_t const is_large = draw() % 4 == 0;
    r.rounding = roundings[draw() % (may_be_double ? 5 : 4)];
    r.fraction = r.rounding == QI_ROUND_TWICE && draw() % 4 == 0 ? between(1, 4) : 0;
    int32_t const sums = (depth * 65025) << r.fraction; /* depth is at most 1000 */
    int32_t const room = (is_large ? INT32_MAX : (1 << 30) - 1) - sums;
    r.mult_step = (int32_t)(draw() % 2);
    r.shift_step = (int32_t)(draw() % 2);
    r.zero_point = between(low, low + 255);
    r.lo = draw() % 3 ? low : between(low, r.zero_point);
    r.hi = draw() % 3 ? low + 255 : between(r.zero_point, low + 255);
    r.is_quick = r.rounding == QI_ROUND_TWICE && r.fraction == 0 && !is_large;
    for (int32_t o = 0; o < channels; o++) {
        bias[o] = draw() % 3 ? between(-9999, 9999) : draw() % 2 ? room : -room;
        mult[o] = draw() % 16 ? between(1 << 30, INT32_MAX) : draw() % 2 ? 1 << 30 : INT32_MAX;
        shift[o] = draw() % 8 ? -between(6, 14) : -between(-3, 31);
    }
    for (int32_t o = 0; r.rounding == QI_ROUND_DOUBLE && o < channels; o++) {
        int const is_power = draw() % 4 == 0; /* of 2: there are ties */
        mult[2 * o] = is_power ? 0 : (int32_t)draw();
        mult[2 * o + 1] = is_power ? 1 << 20 : between(1 << 20, (1 << 21) - 1);
        shift[o] = draw() % 8 ? -between(5, 13) : between(-40, 8);
    }
    return r;
}

/** FNV-1a of the output. */
static void tell(const char *op, int32_t i, int32_t bytes)
{
    const uint8_t *y = (const uint8_t *)y_words;
    uint32_t hash = 2166136261u;
    for (int32_t k = 0; k < bytes; k++)
        hash = (hash ^ y[k]) * 16777619u;
    say(op, (uint32_t)i, hash);
}

/* ------------------------------------------------------------------ layers */

static qi_window draw_window(int32_t c, int32_t o)
{
    qi_window g = {between(1, 2), between(1, 7), between(1, 7), c, 0, 0, o, 0, 0, 0, 0, 1, 1, 0, 0};
    int const is_pixel = draw() % 3 == 0;
    g.kernel_h = is_pixel ? 1 : between(1, 3);
    g.kernel_w = is_pixel ? 1 : between(1, 4);
    g.stride_h = between(1, 2);
    g.stride_w = between(1, 2);
    g.dilation_h = draw() % 4 ? 1 : 2;
    g.dilation_w = draw() % 4 ? 1 : 2;
    int32_t const tall = (g.kernel_h - 1) * g.dilation_h, broad = (g.kernel_w - 1) * g.dilation_w;
    g.pad_top = between(0, tall);
    g.pad_left = between(0, broad);
    /* windows that begin inside the picture and its padding */
    g.oh = between(1, (g.h - 1 + g.pad_top) / g.stride_h + 1);
    g.ow = between(1, (g.w - 1 + g.pad_left) / g.stride_w + 1);
    return g;
}

static void run_conv2d(int32_t i)
{
    qk_conv2d p;
    p.groups = draw() % 4 ? 1 : between(2, 3);
    int32_t const c = between(1, draw() % 2 ? 5 : 19), o = between(1, 9);
    p.window = draw_window(c * p.groups, o * p.groups);
    int32_t const depth = p.window.kernel_h * p.window.kernel_w * c;
    p.x_codes = draw_codes();
    p.weight_codes = draw_codes();
    p.weights = draw_rows(p.window.o, depth);
    p.requant = draw_requant(p.window.o, depth, 0);
    p.dots = NULL;
    draw_bytes(x, MOST_X);
    qk_conv2d_run(&p, x + draw() % 4, y_words, scratch);
    tell("conv2d", i, p.window.n * p.window.oh * p.window.ow * p.window.o);
}

static void run_transpose_conv2d(int32_t i)
{
    qk_transpose_conv2d p;
    int32_t const c = between(1, 9), o = between(1, 9);
    p.window = draw_window(c, o);
    p.window.dilation_h = p.window.dilation_w = 1;
    p.window.pad_top = between(0, p.window.kernel_h - 1);
    p.window.pad_left = between(0, p.window.kernel_w - 1);
    int32_t const depth = p.window.kernel_h * p.window.kernel_w * p.window.c;
    p.x_codes = draw_codes();
    p.weight_codes = draw_codes();
    p.weights = draw_rows(p.window.o, depth);
    p.requant = draw_requant(p.window.o, depth, 0);
    draw_bytes(x, MOST_X);
    qk_transpose_conv2d_run(&p, x + draw() % 4, y_words, scratch);
    tell("transpose_conv2d", i, p.window.n * p.window.oh * p.window.ow * p.window.o);
}

/** Large windows on a broad and low picture. */
static qi_window draw_broad_window(int32_t c)
{
    qi_window g = {1, 0, 0, c, 0, 0, c, 0, 0, 0, 0, 1, 1, 0, 0};
    g.h = between(1, 4);
    g.w = between(8, 40);
    g.kernel_h = between(1, 5);
    g.kernel_w = between(1, 7);
    g.stride_h = between(1, 2);
    g.stride_w = between(1, 3);
    g.pad_top = between(0, g.kernel_h - 1);
    g.pad_left = between(0, g.kernel_w - 1);
    g.oh = between(1, (g.h - 1 + g.pad_top) / g.stride_h + 1);
    g.ow = between(1, (g.w - 1 + g.pad_left) / g.stride_w + 1);
    return g;
}

/** A window of 60 by 60: its turned columns would be further apart than Helium's 16-bit places. */
static void run_large_depthwise(int32_t i)
{
    enum { SIDE = 60, CHANNELS = 32, X_H = 8, X_W = 40 };
    static uint8_t large_x[X_H * X_W * CHANNELS], large_w[SIDE * SIDE * CHANNELS];
    static int64_t large_scratch[30000];
    qk_depthwise_conv2d p;
    p.multiplier = 1;
    p.window = (qi_window){1, X_H, X_W, CHANNELS, 4, 16, CHANNELS, SIDE, SIDE, 1, 1, 1, 1, 30, 20};
    p.x_codes = draw_codes();
    p.weight_codes = (qi_codes){.flip = 128, .offset = 128};
    p.weights = (qi_rows){large_w, sizeof large_w, sizeof large_w, NULL, 0, 0};
    p.requant = draw_requant(CHANNELS, 1, 0);
    p.requant.rounding = QI_ROUND_TWICE;
    p.requant.fraction = 0;
    p.requant.is_quick = 1;
    for (int32_t o = 0; o < CHANNELS; o++) {
        bias[o] = between(-9999, 9999);
        shift[o] = -between(12, 18);
    }
    draw_bytes(large_x, (int32_t)sizeof large_x);
    draw_bytes(large_w, (int32_t)sizeof large_w);
    qk_depthwise_conv2d_run(&p, large_x, y_words, large_scratch);
    tell("depthwise_conv2d of a large window", i, 4 * 16 * CHANNELS);
    if (qk_depthwise_conv2d_scratch(&p) > sizeof large_scratch)
        say("too little scratch", (uint32_t)i, 0);
}

static void run_depthwise(int32_t i)
{
    qk_depthwise_conv2d p;
    int const is_broad = draw() % 3 == 0;
    p.multiplier = is_broad || draw() % 4 ? 1 : between(2, 3);
    int32_t const c = between(1, 21);
    p.window = is_broad ? draw_broad_window(c) : draw_window(c, c * p.multiplier);
    int32_t const taps = p.window.kernel_h * p.window.kernel_w;
    p.x_codes = draw_codes();
    p.weight_codes = draw_codes();
    p.weights = draw_rows(1, taps * p.window.o);
    p.requant = draw_requant(p.window.o, taps, 0);
    draw_bytes(x, MOST_X);
    qk_depthwise_conv2d_run(&p, x + draw() % 4, y_words, scratch);
    tell("depthwise_conv2d", i, p.window.n * p.window.oh * p.window.ow * p.window.o);
}

static void run_fully_connected(int32_t i)
{
    qk_fully_connected p;
    p.rows = draw() % 2 ? 1 : between(1, 19);
    p.inputs = between(1, draw() % 4 ? 40 : 150);
    p.outputs = between(1, 21);
    p.x_codes = draw_codes();
    p.weight_codes = draw_codes();
    p.weights = draw_rows(p.outputs, p.inputs);
    p.requant = draw_requant(p.outputs, p.inputs, 1);
    p.dots = NULL;
    draw_bytes(x, MOST_X);
    qk_fully_connected_run(&p, x + draw() % 4, y_words, scratch);
    tell("fully_connected", i, p.rows * p.outputs);
}

/** The same with 16-bit codes, of which sums are small. */
static void run_wide(int32_t i)
{
    qk_fully_connected p;
    p.rows = between(1, 11);
    p.inputs = between(1, 90);
    p.outputs = between(1, 9);
    p.x_codes = draw_codes();
    p.x_codes.flip = 0;
    p.x_codes.is_wide = 1;
    p.x_codes.offset = 0;
    p.weight_codes = draw_codes();
    p.weights = draw_rows(p.outputs, p.inputs);
    p.requant = draw_requant(p.outputs, 1, 0);
    p.requant.rounding = draw() % 2 ? QI_ROUND_TWICE : QI_ROUND_LONG;
    p.requant.fraction = p.requant.is_quick = 0;
    p.requant.zero_point = 0;
    p.requant.lo = INT16_MIN;
    p.requant.hi = INT16_MAX;
    p.dots = NULL;
    for (int32_t o = 0; o < p.outputs; o++) {
        bias[o] = between(-99999, 99999);
        shift[o] = -between(0, 20);
    }
    draw_bytes(x, MOST_X);
    for (int32_t k = 0; k < MOST_X / 2; k++)
        x[2 * k + 1] = x[2 * k] & 0x80 ? 0xff : 0; /* within -128..127: every sum fits int32 */
    qk_fully_connected_run(&p, x, y_words, scratch);
    tell("fully_connected of 16 bits", i, 2 * p.rows * p.outputs);
}

static void run_pool(int32_t i)
{
    qk_pool p;
    int32_t const c = between(1, 13), is_average = (int32_t)(draw() % 2);
    p.window = draw_window(c, c);
    p.window.dilation_h = p.window.dilation_w = 1;
    p.window.pad_top = between(0, p.window.kernel_h - 1);
    p.window.pad_left = between(0, p.window.kernel_w - 1);
    p.window.oh = between(1, (p.window.h - 1 + p.window.pad_top) / p.window.stride_h + 1);
    p.window.ow = between(1, (p.window.w - 1 + p.window.pad_left) / p.window.stride_w + 1);
    p.flip = draw() % 2 ? 0x80 : 0;
    p.is_wide = 0;
    static const int32_t roundings[] = {QI_ROUND_NONE, QI_ROUND_ONCE, QI_ROUND_EVEN};
    p.rounding = is_average ? roundings[draw() % 3] : QI_ROUND_NONE;
    p.lo = between(-p.flip, 20 - p.flip);
    p.hi = between(p.lo, 255 - p.flip);
    draw_bytes(x, MOST_X);
    if (is_average)
        qk_average_pool2d_run(&p, x + draw() % 4, y_words, scratch);
    else
        qk_max_pool2d_run(&p, x + draw() % 4, y_words);
    tell(is_average ? "average_pool2d" : "max_pool2d", i,
         p.window.n * p.window.oh * p.window.ow * c);
}

static qk_rescaling draw_rescaling(void)
{
    qk_rescaling r;
    r.left_shift = between(0, 20);
    r.mult = between(1 << 30, INT32_MAX);
    r.shift = between(-31, 3);
    return r;
}

/** The last `same` axes of b are those of a; along the others, b is repeated. */
static void run_add(int32_t i)
{
    qk_pairs p = {.is_rescaled = 1};
    p.of_a = draw_rescaling();
    p.of_b = draw_rescaling();
    int32_t const same = between(0, QK_PAIRS_RANK);
    size_t n = 1;
    for (int32_t k = QK_PAIRS_RANK - 1; k >= 0; k--) {
        p.dims[k] = (size_t)between(1, k == QK_PAIRS_RANK - 1 ? 21 : 4);
        p.a.stride[k] = n;
        p.b.stride[k] = QK_PAIRS_RANK - k <= same ? n : 0;
        n *= p.dims[k];
    }
    p.a.flip = draw() % 2 ? 0x80 : 0;
    p.b.flip = draw() % 2 ? 0x80 : 0;
    p.a.zero_point = between(-p.a.flip, 255 - p.a.flip);
    p.b.zero_point = between(-p.b.flip, 255 - p.b.flip);
    p.mult = between(1 << 30, INT32_MAX);
    p.shift = draw() % 8 ? -between(8, 22) : between(-31, 8);
    p.zero_point = between(-128, 127);
    p.lo = draw() % 3 ? -128 : between(-128, p.zero_point);
    p.hi = draw() % 3 ? 127 : between(p.zero_point, 127);
    draw_bytes(x, MOST_X);
    const uint8_t *a = x + draw() % 4, *b = x + MOST_X / 2 + draw() % 4;
    qk_add_run(&p, a, b, y_words, scratch);
    tell("add", i, (int32_t)n);
}

/** More pixels than a half word can sum. */
static void run_large_average(int32_t i)
{
    qk_pool p = {{1, 2, 600, 3, 1, 1, 3, 2, 600, 1, 1, 1, 1, 0, 0}, 0, 0, 0, 0, 0};
    p.flip = i % 2 ? 0x80 : 0;
    p.lo = -p.flip;
    p.hi = 255 - p.flip;
    if (i > 3) {
        p.window.w = p.window.kernel_w = 300;
        p.window.c = p.window.o = 5;
    }
    for (int32_t k = 0; k < MOST_X; k++)
        x[k] = i % 4 < 2 ? (uint8_t)(p.flip ^ 255) : (uint8_t)draw();
    qk_average_pool2d_run(&p, x, y_words, scratch);
    tell("average_pool2d of a line", i, p.window.c);
}

typedef void layer_fn(int32_t i);

int main(void)
{
    static layer_fn *const layers[] = {
        run_conv2d, run_transpose_conv2d, run_depthwise, run_fully_connected, run_wide, run_pool,
        run_add};
    enum { KINDS = sizeof layers / sizeof *layers, EACH = 400, LARGE = 8 };
    for (int32_t i = 0; i < KINDS * EACH; i++) {
        state = (uint32_t)i * 2654435761u + 1;
        for (int k = 0; k < 8; k++)
            draw();
        layers[i % KINDS](i / KINDS);
    }
    for (int32_t i = 0; i < LARGE; i++)
        run_large_average(i);
    for (int32_t i = 0; i < 2; i++)
        run_large_depthwise(i);
    return 0;
}
