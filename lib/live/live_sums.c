/**
 * Integer forward: computes the int32 sums of an accumulating layer.
 *
 *     sum = sum (q_x - Z_x)(q_w - Z_w)
 *
 * Convolutions and fully connected layers use the engine's matrix products; depthwise convolutions
 * are a loop over channels. A transposed convolution is a convolution with its kernels turned
 * around, over an input with zero_points between its pixels. The codes of weights are read off the
 * fake-quantized values of this step.
 *
 * A simulation takes the float32 values of the layer's own forward, in units of S1 S2. If no sum
 * can be large (live_plan.c), they are so near to whole numbers that rounding finds the same sums.
 */
#include "autograd/graph/backend.h"
#include "autograd/loops/real.h"
#include "autograd/loops/tail.h"
#include "base/arena.h"
#include "base/parallel.h"
#include "fakequant/ops.h"
#include "fakequant/range.h"
#include "fakequant/weights.h"
#include "infer/host/parts.h"
#include "live/live.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------ weights */

/** Of this step's values. Those of a scheme are computed again from its input, which plans for
 * training keep. */
static qat_qparams params_of(const qat_node *weights, int channel)
{
    if (qat_is_quantizer_op(weights->op))
        return *qat_quantizer_used(weights, channel);
    return weights->op == &qat_op_fake_quant_weights
               ? *qat_fake_quant_weights_params(weights, channel)
               : qat_weight_qparams(weights, channel);
}

static void code_weights(fwd_layer *l)
{
    qat_weight_view const v = qat_weight_view_of(l->weights);
    for (int c = 0; c < v.channels; c++) {
        qat_qparams const p = params_of(l->weights, c);
        l->weight_scales[c] = p.scale;
        l->weight_zero_point = p.zero_point;
        for (int o = 0; o < v.outer; o++) {
            size_t const at = qat_weight_run(&v, o, c);
            qat_codes_of_values(&p, l->weights->value + at, (size_t)v.inner, l->weight_codes + at);
        }
    }
    for (int c = v.channels; c < l->channels; c++) /* one scale for all */
        l->weight_scales[c] = l->weight_scales[0];
}

/** Turn each kernel around: the last tap comes first. */
static void turn_kernels(const fwd_layer *l)
{
    int const taps = l->window.kernel_h * l->window.kernel_w;
    size_t const channels = (size_t)(l->depth / taps);
    uint8_t *kernel = l->weight_codes;
    for (int o = 0; o < l->channels; o++, kernel += l->depth)
        for (int t = 0; t < taps / 2; t++) {
            uint8_t *a = kernel + (size_t)t * channels;
            uint8_t *b = kernel + (size_t)(taps - 1 - t) * channels;
            for (size_t i = 0; i < channels; i++) {
                uint8_t const code = a[i];
                a[i] = b[i];
                b[i] = code;
            }
        }
}

/* ------------------------------------------------------------------ scratch of threads */

bool fwd_reserve(fwd_graph *f, size_t bytes_of_thread)
{
    size_t const bytes = bytes_of_thread * (size_t)qat_threads();
    if (f->scratch_bytes >= bytes)
        return true;
    qat_aligned_free(f->scratch);
    f->scratch = qat_aligned_alloc(bytes);
    f->scratch_bytes = f->scratch ? bytes : 0;
    return f->scratch != NULL;
}

/* ------------------------------------------------------------------ depthwise */

/** Codes as differences: byte b stands for (b ^ flip) - offset. */
struct grid {
    int flip, offset;
};

static struct grid grid_of(qat_layout layout, int32_t zero_point)
{
    int const flip = layout == QAT_LAYOUT_INT8 ? 0x80 : 0;
    return (struct grid){flip, zero_point + flip};
}

struct depthwise {
    const fwd_layer *l;
    const uint8_t *x;
    struct grid grid;
    int c, multiplier, columns; /* columns_of */
    int16_t *rows;              /* by thread: one row of differences, [columns, channels] */
};

QAT_VECTOR static void differences_of(const uint8_t *restrict x, struct grid g, size_t n,
                                      int16_t *restrict to)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (int16_t)((x[i] ^ g.flip) - g.offset);
}

/** Write one row of the picture, 0 outside it, each channel `multiplier` times. */
static void widen(const struct depthwise *d, const uint8_t *row, int16_t *to)
{
    const qat_window *g = &d->l->window;
    size_t const channels = (size_t)d->l->channels, first = (size_t)g->pad_left * channels;
    int const inside = d->columns - g->pad_left < g->in_w ? d->columns - g->pad_left : g->in_w;
    size_t const n = inside > 0 ? (size_t)inside * channels : 0;
    memset(to, 0, (size_t)d->columns * channels * sizeof *to);
    if (d->multiplier == 1) {
        differences_of(row, d->grid, n, to + first);
        return;
    }
    for (size_t i = 0; i < n; i++)
        to[first + i] = (int16_t)((row[i / (size_t)d->multiplier] ^ d->grid.flip) - d->grid.offset);
}

/** sums[r, i] += x[r step + i] w[i] */
QAT_VECTOR static void add_products(const int16_t *restrict x, size_t step,
                                    const int16_t *restrict w, size_t runs, size_t length,
                                    int32_t *restrict sums)
{
    for (size_t r = 0; r < runs; r++, x += step, sums += length)
        for (size_t i = 0; i < length; i++)
            sums[i] += x[i] * w[i];
}

/**
 * Add one tap for a row of outputs. With stride 1, several pixels form one run, and weights are
 * repeated.
 */
static void add_tap(const struct depthwise *d, const int16_t *x, const int16_t *w, int32_t *sums)
{
    const qat_window *g = &d->l->window;
    size_t const channels = (size_t)d->l->channels, n = (size_t)g->out_w * channels;
    size_t const wide = g->stride_w == 1 ? qat_wide_of(channels) : channels;
    size_t const runs = n / wide, done = runs * wide;
    add_products(x, wide * (size_t)g->stride_w, w, runs, wide, sums);
    add_products(x + done, 0, w, done < n, n - done, sums + done); /* stride 1 only */
}

/** Compute one row of outputs, counted over [N, OH]. */
static void depthwise_row(void *context, int tile, int thread)
{
    const struct depthwise *d = context;
    const qat_window *g = &d->l->window;
    size_t const channels = (size_t)d->l->channels, out = (size_t)g->out_w * channels;
    size_t const row = (size_t)g->in_w * (size_t)d->c;
    const uint8_t *picture = d->x + (size_t)(tile / g->out_h) * (size_t)g->in_h * row;
    int16_t *x = d->rows + (size_t)thread * (size_t)d->columns * channels;
    const int16_t *w = d->l->differences;
    int32_t *sums = fwd_sums_of(d->l) + (size_t)tile * out;
    memset(sums, 0, out * sizeof *sums);
    for (int ky = 0; ky < g->kernel_h; ky++) {
        int const y = tile % g->out_h * g->stride_h + ky * g->dilation_h - g->pad_top;
        bool const inside = y >= 0 && y < g->in_h;
        if (inside)
            widen(d, picture + (size_t)y * row, x);
        for (int kx = 0; kx < g->kernel_w; kx++, w += qat_wide_pattern(channels))
            if (inside)
                add_tap(d, x + (size_t)(kx * g->dilation_w) * channels, w, sums);
    }
}

/** The differences of the weights; those of each tap are repeated as in wide.h. */
static void lay_weights(const fwd_layer *l, struct grid g)
{
    size_t const channels = (size_t)l->channels, pattern = qat_wide_pattern(channels);
    for (int64_t tap = 0; tap < l->depth; tap++) {
        int16_t *to = l->differences + (size_t)tap * pattern;
        differences_of(l->weight_codes + (size_t)tap * channels, g, channels, to);
        for (size_t i = channels; i < pattern; i++)
            to[i] = to[i - channels];
    }
}

/** The columns of the picture and its borders under one output row. */
static int columns_of(const qat_window *g)
{
    int const columns = (g->out_w - 1) * g->stride_w + (g->kernel_w - 1) * g->dilation_w + 1;
    return columns < g->pad_left ? g->pad_left : columns;
}

static bool depthwise_sums(fwd_graph *f, fwd_layer *l, const fwd_codes *x)
{
    const qat_shape *in = &l->head->inputs[0]->shape;
    struct depthwise d = {.l = l,
                          .x = x->bytes,
                          .grid = grid_of(f->options->layout, x->p.zero_point),
                          .c = in->dims[3],
                          .columns = columns_of(&l->window),
                          .multiplier = l->channels / in->dims[3]};
    if (!fwd_reserve(f, (size_t)d.columns * (size_t)l->channels * sizeof *d.rows))
        return false;
    d.rows = f->scratch;
    lay_weights(l, grid_of(f->options->layout, l->weight_zero_point));
    qat_parallel(in->dims[0] * l->window.out_h, depthwise_row, &d);
    return true;
}

/* ------------------------------------------------------------------ matrix products */

struct product {
    const fwd_graph *f;
    const fwd_layer *l;
    const uint8_t *x;
    size_t scratch;
};

static void product_tile(void *context, int tile, int thread)
{
    const struct product *p = context;
    qi_host_parts()->sums_run(p->l->sums, p->x, fwd_sums_of(p->l),
                              (char *)p->f->scratch + (size_t)thread * p->scratch, tile);
}

/** Set what the next sums are made of, and reserve the scratch for them. */
static bool set_product(fwd_graph *f, fwd_layer *l, int32_t zero_point, size_t *scratch)
{
    int32_t const zero_points[] = {zero_point, l->weight_zero_point};
    int32_t const n = l->fully_connected ? (int32_t)fwd_rows(l) : l->head->inputs[0]->shape.dims[0];
    if (qi_host_parts()->sums_set(l->sums, n, zero_points, l->weight_codes))
        return false;
    *scratch = (qi_host_parts()->sums_scratch(l->sums) + 63) / 64 * 64;
    return fwd_reserve(f, *scratch);
}

size_t fwd_spread_bytes(const fwd_layer *l)
{
    const qat_shape *x = &l->head->inputs[0]->shape;
    return (size_t)x->dims[0] * (size_t)l->window.in_h * (size_t)l->window.in_w *
           (size_t)x->dims[3];
}

/** What one row of the input of a transposed convolution becomes; the rows between have been set.
 */
struct spread {
    const fwd_layer *l;
    const uint8_t *x;
};

static void spread_row(void *context, int row, int thread)
{
    const struct spread *s = context;
    const qat_window *g = &s->l->window;
    const qat_shape *x = &s->l->head->inputs[0]->shape;
    int const picture = row / x->dims[1], y = row % x->dims[1];
    size_t const channels = (size_t)x->dims[3], columns = (size_t)x->dims[2];
    const uint8_t *from = s->x + (size_t)row * columns * channels;
    uint8_t *to =
        s->l->spread + ((size_t)picture * (size_t)g->in_h + (size_t)(y * s->l->spread_h)) *
                           (size_t)g->in_w * channels;
    for (size_t i = 0; i < columns; i++)
        memcpy(to + i * (size_t)s->l->spread_w * channels, from + i * channels, channels);
}

static const uint8_t *spread_input(const fwd_layer *l, const fwd_codes *x)
{
    const qat_shape *in = &l->head->inputs[0]->shape;
    struct spread s = {l, x->bytes};
    memset(l->spread, (uint8_t)x->p.zero_point, fwd_spread_bytes(l));
    qat_parallel(in->dims[0] * in->dims[1], spread_row, &s);
    return l->spread;
}

static bool product_sums(fwd_graph *f, fwd_layer *l, const fwd_codes *x)
{
    if (l->spread)
        turn_kernels(l);
    struct product p = {f, l, l->spread ? spread_input(l, x) : x->bytes, 0};
    if (!set_product(f, l, x->p.zero_point, &p.scratch))
        return false;
    qat_parallel(qi_host_parts()->sums_tiles(l->sums), product_tile, &p);
    return true;
}

/* ------------------------------------------------------------------ float32 */

/** z may be the memory of the sums. What is too large for int32, or no number, is a limit of it. */
QAT_VECTOR static void round_sums(const float *z, const float *restrict per_z, size_t n,
                                  int32_t *sums)
{
    float const limit = 0x1.fffffep30f;
    for (size_t i = 0; i < n; i++) {
        float value;
        memcpy(&value, z + i, sizeof value);
        value = rintf(value * per_z[i]);
        value = value > -limit ? value : -limit;
        int32_t const sum = (int32_t)(value < limit ? value : limit);
        memcpy(sums + i, &sum, sizeof sum);
    }
}

static void round_strip(void *context, size_t at, size_t n)
{
    const fwd_layer *l = context;
    qat_stretch const s = qat_stretch_of((size_t)l->channels, at, n);
    const float *z = l->head->value + at;
    for (size_t i = 0; i < n; i += s.wide)
        round_sums(z + i, l->wide.per_z + s.first, n - i < s.wide ? n - i : s.wide,
                   fwd_sums_of(l) + at + i);
}

/** 0 where S1 S2 is below the normal numbers of float32: such weights do nothing. */
static float sums_per_z(float input_scale, float weight_scale)
{
    double const scale = (double)input_scale * (double)weight_scale;
    return scale < (double)FLT_MIN ? 0 : (float)(1 / scale);
}

static void simulated_sums(fwd_layer *l, float input_scale, const qat_run *run)
{
    for (int c = 0; c < l->channels; c++)
        l->wide.per_z[c] = sums_per_z(input_scale, l->weight_scales[c]);
    qat_wide_lay(l->wide.per_z, (size_t)l->channels, l->wide.per_z);
    qat_node_forward(l->head, run);
    qat_run_strips(qat_shape_count(&l->head->shape), round_strip, l);
}

/* ------------------------------------------------------------------ all of them */

bool fwd_reserve_sums(fwd_graph *f, fwd_layer *l)
{
    size_t scratch = (size_t)columns_of(&l->window) * (size_t)l->channels * sizeof(int16_t);
    if (l->in_float)
        return true;
    return l->depthwise ? fwd_reserve(f, scratch) : set_product(f, l, 0, &scratch);
}

bool fwd_sums(fwd_graph *f, fwd_layer *l, const qat_run *run)
{
    const fwd_codes *x = fwd_codes_of(f, l->head->inputs[0]);
    code_weights(l);
    if (!l->in_float)
        return l->depthwise ? depthwise_sums(f, l, x) : product_sums(f, l, x);
    simulated_sums(l, x->p.scale, run);
    return true;
}
