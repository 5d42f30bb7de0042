/**
 * Integer forward: turns int32 sums into codes, with batch statistics of the sums.
 *
 *     y    = slope z + offset,  z = S1 S2_c sum + b
 *     M    = slope S1 S2_c / S3
 *     bias = round((slope b + offset) 2^f / (slope S1 S2_c))
 *     code = clamp(Z3 + requantize(sum 2^f + bias, M 2^-f))
 *
 * slope is s / sB with batch statistics and 1 with averages; with averages, M and bias are those of
 * export, bit for bit. z is made strip by strip together with the codes: as 16-bit notes
 * (fold_notes.h) before a batch norm, otherwise in place of the sums.
 */
#include "autograd/loops/real.h"
#include "autograd/loops/tail.h"
#include "autograd/loops/tiles.h"
#include "autograd/loops/wide.h"
#include "fakequant/ops.h"
#include "fakequant/range.h"
#include "infer/arithmetic/fixedpoint.h"
#include "integer/quant_ops.h"
#include "live/live.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ statistics */

/** Statistics of one block of rows, lane by lane: rows are taken `wide` values at a time. */
struct lanes {
    double *sum, *squares;
    int32_t *least, *most;
};

struct statistics {
    fwd_layer *l;
    size_t values, wide;
    int blocks;
    bool squares;
};

static struct lanes lanes_of(const struct statistics *s, int block)
{
    double *doubles = s->l->partial;
    int32_t *ints = (int32_t *)(void *)(doubles + 2 * (size_t)QAT_BLOCKS * s->wide);
    size_t const at = 2 * (size_t)block * s->wide;
    return (struct lanes){doubles + at, doubles + at + s->wide, ints + at, ints + at + s->wide};
}

QAT_VECTOR static void add_limits(const int32_t *restrict x, size_t n, int32_t *restrict least,
                                  int32_t *restrict most)
{
    for (size_t i = 0; i < n; i++) {
        least[i] = x[i] < least[i] ? x[i] : least[i];
        most[i] = x[i] > most[i] ? x[i] : most[i];
    }
}

QAT_VECTOR static void add_moments(const int32_t *restrict x, size_t n, double *restrict sum,
                                   double *restrict squares)
{
    for (size_t i = 0; i < n; i++) {
        sum[i] += (double)x[i];
        squares[i] += (double)x[i] * (double)x[i];
    }
}

static void statistics_block(void *context, int block, int thread)
{
    const struct statistics *s = context;
    struct lanes const t = lanes_of(s, block);
    size_t const rows = (s->values + s->wide - 1) / s->wide;
    qat_span const span = qat_block_span(rows, s->blocks, block);
    const int32_t *x = fwd_sums_of(s->l);
    for (size_t i = 0; i < s->wide; i++) {
        t.sum[i] = t.squares[i] = 0;
        t.least[i] = INT32_MAX;
        t.most[i] = INT32_MIN;
    }
    for (size_t r = span.begin; r < span.end; r++) {
        size_t const at = r * s->wide, left = s->values - at;
        size_t const n = left < s->wide ? left : s->wide;
        add_limits(x + at, n, t.least, t.most);
        if (s->squares)
            add_moments(x + at, n, t.sum, t.squares);
    }
}

static void join(fwd_layer *l, int channel, const struct lanes *t, size_t lane)
{
    l->sum[channel] += t->sum[lane];
    l->squares[channel] += t->squares[lane];
    if (t->least[lane] < l->least[channel])
        l->least[channel] = t->least[lane];
    if (t->most[lane] > l->most[channel])
        l->most[channel] = t->most[lane];
}

void fwd_statistics(fwd_layer *l, bool squares)
{
    struct statistics s = {l, qat_shape_count(&l->head->shape), qat_wide_of((size_t)l->channels), 1,
                           squares};
    s.blocks = qat_blocks_of(s.values, QAT_TILE_VALUES);
    qat_parallel(s.blocks, statistics_block, &s);
    for (int c = 0; c < l->channels; c++) {
        l->sum[c] = l->squares[c] = 0;
        l->least[c] = INT32_MAX;
        l->most[c] = INT32_MIN;
    }
    for (int b = 0; b < s.blocks; b++) {
        struct lanes const t = lanes_of(&s, b);
        for (size_t i = 0; i < s.wide; i++)
            join(l, (int)(i % (size_t)l->channels), &t, i);
    }
}

/* ------------------------------------------------------------------ coefficients */

/** S1 S2 of a channel. */
static double sum_scale(const fwd_graph *f, const fwd_layer *l, int c)
{
    return (double)fwd_codes_of(f, l->head->inputs[0])->p.scale * (double)l->weight_scales[c];
}

static qat_real bias_of(const fwd_layer *l, int c)
{
    return l->bias ? l->bias->inputs[1]->value[c] : 0;
}

void fwd_set_reals(fwd_graph *f, fwd_layer *l)
{
    for (int c = 0; c < l->channels; c++) {
        l->wide.z_scale[c] = (qat_real)sum_scale(f, l, c);
        l->wide.z_offset[c] = l->bn ? bias_of(l, c) : 0;
    }
    qat_wide_lay(l->wide.z_scale, (size_t)l->channels, l->wide.z_scale);
    qat_wide_lay(l->wide.z_offset, (size_t)l->channels, l->wide.z_offset);
}

/** The largest |sum| of a channel, for any input codes. */
static int64_t largest_sum(const fwd_graph *f, const fwd_layer *l, int channel)
{
    const qat_qparams *x = &fwd_codes_of(f, l->head->inputs[0])->p;
    int32_t const below = x->zero_point - x->lo, above = x->hi - x->zero_point;
    size_t const step = l->depthwise ? (size_t)l->channels : 1;
    const uint8_t *w = l->weight_codes + (size_t)channel * (l->depthwise ? 1 : (size_t)l->depth);
    bool const is_signed = f->options->layout == QAT_LAYOUT_INT8;
    int64_t sum = 0;
    for (int64_t i = 0; i < l->depth; i++, w += step)
        sum += abs((is_signed ? (int8_t)*w : *w) - l->weight_zero_point);
    return sum * (below > above ? below : above);
}

/** The fractional bits that a layer wants. */
static int wanted_fraction(const fwd_graph *f, const fwd_layer *l)
{
    return qat_wanted_fraction(f->options, f->options->profile, l->fully_connected,
                               fwd_codes_of(f, l->head->inputs[0])->bits,
                               qat_weight_bits(l->weights, f->options->layout));
}

/** Does a bias fit int32 together with any sum? Without a look at the weights. */
static bool surely_fits(const fwd_layer *l, double bias)
{
    enum { MOST_BITS = 16 }; /* of a product */
    return fabs(bias) < (double)(INT32_MAX - (l->depth << MOST_BITS));
}

/** Like qat_freeze_bias: sum and bias together fit int32. */
static int32_t bias_code(const fwd_graph *f, const fwd_layer *l, int c)
{
    double const q = l->biases[c], unit = ldexp(1, -l->fraction);
    int64_t const ties = qat_tie_units(l->multipliers[c], l->fraction);
    if (l->fraction == 0 && surely_fits(l, q))
        return (int32_t)qat_bias_code(q, unit, ties, INT32_MAX);
    int64_t const sum = largest_sum(f, l, c) * (INT64_C(1) << l->fraction);
    return (int32_t)qat_bias_code(q, unit, ties, INT32_MAX - sum);
}

/** The fractional bits that export would give a layer with these biases and multipliers. */
static int fraction_of(const fwd_graph *f, const fwd_layer *l)
{
    int fraction = wanted_fraction(f, l);
    for (int c = 0; fraction > 0 && c < l->channels; c++)
        fraction =
            qat_largest_fraction(fraction, largest_sum(f, l, c), l->biases[c], l->multipliers[c]);
    return fraction;
}

/** M and the bias of a channel whose weights have the scale s2. */
static void set_reals_of_channel(fwd_graph *f, fwd_layer *l, int c, float s2, double slope,
                                 double bias, const qat_qparams *p)
{
    float const s1 = fwd_codes_of(f, l->head->inputs[0])->p.scale;
    double const m = qat_layer_multiplier(f->options->profile, f->options->layout,
                                          l->fully_connected, s1, s2, p->scale);
    l->biases[c] = bias / ((double)s1 * (double)s2 * slope);
    l->multipliers[c] =
        f->options->profile == QAT_PROFILE_ONNX ? (double)(float)(m * slope) : m * slope;
}

/** Set the weights' codes and the sums of a channel to 0. */
static void clear_channel(fwd_layer *l, int c)
{
    int32_t *sums = fwd_sums_of(l);
    size_t const channels = (size_t)l->channels, at = (size_t)c;
    for (size_t i = 0; i < (size_t)l->depth; i++)
        l->weight_codes[l->depthwise ? i * channels + at : at * (size_t)l->depth + i] =
            (uint8_t)l->weight_zero_point;
    for (size_t i = at; i < qat_shape_count(&l->head->shape); i += channels)
        sums[i] = 0;
    l->least[c] = l->least[c] < 0 ? l->least[c] : 0;
    l->most[c] = l->most[c] > 0 ? l->most[c] : 0;
}

/** Like qat_silence_channels: is only the bias of a channel left? */
static void silence_channel(fwd_graph *f, fwd_layer *l, int c, double slope, double bias,
                            const qat_qparams *p)
{
    double const s1 = (double)fwd_codes_of(f, l->head->inputs[0])->p.scale;
    if (surely_fits(l, l->biases[c]) || !qat_weight_view_of(l->weights).per_channel)
        return;
    float const scale =
        qat_silent_scale(bias, s1 * slope, l->weight_scales[c], largest_sum(f, l, c),
                         l->multipliers[c], wanted_fraction(f, l), INT32_MAX);
    if (scale <= 0)
        return;
    clear_channel(l, c);
    set_reals_of_channel(f, l, c, scale, slope, bias, p);
}

static void set_channel(fwd_graph *f, fwd_layer *l, int c)
{
    double const m = ldexp(l->multipliers[c], -l->fraction);
    int32_t shift;
    l->wide.bias[c] = bias_code(f, l, c);
    if (f->options->profile == QAT_PROFILE_TFLITE && l->fully_connected) {
        qat_split_multiplier(m, &l->significand[c], &l->wide.left[c]);
        return;
    }
    qat_requantize_multiplier(m, &l->wide.mult[c], &shift);
    float const even = qat_even_multiplier(l->wide.mult[c], shift);
    memcpy(&l->wide.even[c], &even, sizeof even);
    l->wide.left[c] = shift > 0 ? shift : 0;
    l->wide.right[c] = shift < 0 ? -shift : 0;
}

void fwd_set_multipliers(fwd_graph *f, fwd_layer *l, const qat_real *slope, const qat_real *offset,
                         const qat_qparams *p)
{
    for (int c = 0; c < l->channels; c++) {
        qat_real const s = slope ? slope[c] : 1, b = bias_of(l, c);
        double const bias = (double)(slope ? s * b + offset[c] : b);
        set_reals_of_channel(f, l, c, l->weight_scales[c], (double)s, bias, p);
        silence_channel(f, l, c, (double)s, bias, p);
    }
    l->fraction = fraction_of(f, l);
    for (int c = 0; c < l->channels; c++)
        set_channel(f, l, c);
    qat_wide_lay_ints(l->wide.bias, (size_t)l->channels);
    qat_wide_lay_ints(l->wide.mult, (size_t)l->channels);
    qat_wide_lay_ints(l->wide.left, (size_t)l->channels);
    qat_wide_lay_ints(l->wide.right, (size_t)l->channels);
    qat_wide_lay_ints(l->wide.even, (size_t)l->channels);
}

void fwd_set_notes(fwd_layer *l, const qat_note_grid *grid)
{
    for (int c = 0; c < l->channels; c++)
        qat_note_set_sums(grid, &l->range, c, l->least[c], l->most[c], l->wide.z_scale[c],
                          l->wide.z_offset[c]);
    qat_note_lay_sums(grid, &l->range);
}

/* ------------------------------------------------------------------ sums to codes */

/** The codes between which an output is clamped, as differences from Z3. */
struct limits {
    int32_t lo, hi, zero_point;
};

struct requantize {
    const fwd_layer *l;
    uint8_t *codes; /* NULL: only z */
    float *z;
    float *raw;                /* z without the bias before a batch norm; NULL: nothing keeps it */
    const qat_fold_line *line; /* NULL: no batch norm */
    struct limits limits;
    bool split, even, shifts_left;
};

static inline uint8_t code_of(int32_t value, struct limits m)
{
    return (uint8_t)(qi_clamp(value, m.lo, m.hi) + m.zero_point);
}

/** For layers with every M below 1: a loop that vectorizes. */
QAT_VECTOR static void codes_right(const int32_t *restrict sums, const int32_t *restrict bias,
                                   const int32_t *restrict mult, const int32_t *restrict right,
                                   struct limits m, int32_t one, size_t n, uint8_t *restrict codes)
{
    for (size_t i = 0; i < n; i++) { /* a multiplier is not INT32_MIN */
        int32_t const acc = sums[i] * one + bias[i];
        codes[i] = code_of(qi_rdbp(qi_srdhm_fitting(acc, mult[i]), right[i]), m);
    }
}

static void codes_any(const struct requantize *r, const int32_t *sums, size_t first, size_t n,
                      uint8_t *codes)
{
    const fwd_wide *w = &r->l->wide;
    for (size_t i = 0; i < n; i++) {
        size_t const at = first + i, c = at % (size_t)r->l->channels;
        int32_t const acc = sums[i] * (1 << r->l->fraction) + w->bias[at];
        codes[i] = code_of(r->split ? qi_requantize_double(acc, r->l->significand[c], w->left[at])
                                    : qi_requantize(acc, w->mult[at], w->left[at] - w->right[at]),
                           r->limits);
    }
}

/** QI_ROUND_EVEN, in the float32 that it stands for. */
QAT_VECTOR static void codes_even(const struct requantize *r, const int32_t *restrict sums,
                                  size_t first, size_t n, uint8_t *restrict codes)
{
    const int32_t *restrict bias = r->l->wide.bias + first;
    const int32_t *restrict bits = r->l->wide.even + first;
    float const lo = (float)r->limits.lo, hi = (float)r->limits.hi;
    for (size_t i = 0; i < n; i++) {
        float m;
        memcpy(&m, &bits[i], sizeof m);
        float const value = (float)(sums[i] + bias[i]) * m;
        float const limited = value < lo ? lo : value > hi ? hi : value;
        codes[i] = (uint8_t)((int32_t)rintf(limited) + r->limits.zero_point);
    }
}

/** z may be the memory of the sums. offset: NULL, or one for each value. */
QAT_VECTOR static void reals(const int32_t *sums, const float *restrict scale,
                             const float *restrict offset, size_t n, float *z)
{
    for (size_t i = 0; i < n; i++) {
        int32_t sum;
        memcpy(&sum, sums + i, sizeof sum);
        float const value = (float)sum * scale[i] + (offset ? offset[i] : 0);
        memcpy(z + i, &value, sizeof value);
    }
}

/** Make the codes of n sums, a wide row at a time; without batch norm also z. */
static void requantize_rows(const struct requantize *r, const int32_t *sums, size_t at, size_t n)
{
    const fwd_wide *w = &r->l->wide;
    size_t const channels = (size_t)r->l->channels, wide = qat_wide_of(channels);
    size_t const first = at % channels;
    for (size_t i = 0; i < n; i += wide) {
        size_t const m = n - i < wide ? n - i : wide;
        if (r->codes && r->even)
            codes_even(r, sums + i, first, m, r->codes + at + i);
        else if (r->codes && (r->split || r->shifts_left))
            codes_any(r, sums + i, first, m, r->codes + at + i);
        else if (r->codes)
            codes_right(sums + i, w->bias + first, w->mult + first, w->right + first, r->limits,
                        1 << r->l->fraction, m, r->codes + at + i);
        if (!r->line)
            reals(sums + i, w->z_scale + first, w->z_offset + first, m, r->z + at + i);
    }
}

/** Make the notes of z from sums before a batch norm. */
static void note_strip(const struct requantize *r, const int32_t *sums, size_t at, size_t n)
{
    uint16_t strip[QAT_STRIP_VALUES];
    uint16_t *notes = r->line->notes ? r->line->notes + at : strip;
    qat_note_sums(&r->line->grid, &r->l->range, sums, at, n, notes);
    if (!r->line->notes)
        qat_note_read(&r->line->grid, strip, at, n, r->z + at);
}

/** Make the reals of the convolution itself, in place of its sums. */
static void raw_rows(const struct requantize *r, const int32_t *sums, size_t at, size_t n)
{
    size_t const channels = (size_t)r->l->channels, wide = qat_wide_of(channels);
    const float *scale = r->l->wide.z_scale + at % channels;
    for (size_t i = 0; i < n; i += wide)
        reals(sums + i, scale, NULL, n - i < wide ? n - i : wide, r->raw + at + i);
}

static void requantize_strip(void *context, size_t at, size_t n)
{
    const struct requantize *r = context;
    const int32_t *sums = fwd_sums_of(r->l) + at;
    requantize_rows(r, sums, at, n);
    if (r->line)
        note_strip(r, sums, at, n);
    if (r->raw)
        raw_rows(r, sums, at, n);
}

/** Like qat_emit_clamp. */
static struct limits limits_of(const fwd_graph *f, const fwd_layer *l, const qat_qparams *p)
{
    qat_qtensor const t = {.type = f->options->layout == QAT_LAYOUT_INT8 ? QI_S8 : QI_U8,
                           .bits = fwd_codes_of(f, l->output)->bits,
                           .scale = p->scale,
                           .zero_point = p->zero_point};
    struct limits m = {.zero_point = p->zero_point}; /* of an empty range, Z alone */
    if (qat_is_empty_range(p))
        return m;
    qat_clamp_codes_of(f->options->profile, &t, l->act_min, l->act_max, &m.lo, &m.hi);
    m.lo -= p->zero_point;
    m.hi -= p->zero_point;
    return m;
}

void fwd_requantize(fwd_graph *f, fwd_layer *l, const qat_qparams *p, bool codes,
                    const qat_fold_line *line)
{
    fwd_codes *out = fwd_codes_of(f, l->output);
    const qat_node *z = l->bn ? l->bn->inputs[FOLDT_Z] : l->head;
    bool const keeps_raw = l->bn && l->bias && !line->notes && z->value != l->head->value;
    struct requantize r = {.l = l,
                           .codes = codes ? out->bytes : NULL,
                           .z = z->value,
                           .raw = keeps_raw ? l->head->value : NULL,
                           .line = line};
    if (codes) {
        fwd_set_grid(out, p);
        r.limits = limits_of(f, l, p);
        r.split = l->fully_connected && f->options->profile == QAT_PROFILE_TFLITE;
        r.even = f->options->profile == QAT_PROFILE_ONNX;
        for (int c = 0; c < l->channels; c++)
            r.shifts_left |= l->wide.left[c] > 0;
    }
    qat_run_strips(qat_shape_count(&l->head->shape), requantize_strip, &r);
}

/* ------------------------------------------------------------------ reals and codes */

struct conversion {
    float *values;
    uint8_t *codes;
    qat_qparams p;
    int flip;
};

QAT_VECTOR static void decode(const uint8_t *restrict codes, int flip, int32_t offset, float scale,
                              size_t n, float *restrict value)
{
    for (size_t i = 0; i < n; i++)
        value[i] = scale * (float)((codes[i] ^ flip) - offset);
}

static void encode_strip(void *context, size_t at, size_t n)
{
    const struct conversion *c = context;
    qat_codes_of_values(&c->p, c->values + at, n, c->codes + at);
}

static void decode_strip(void *context, size_t at, size_t n)
{
    const struct conversion *c = context;
    decode(c->codes + at, c->flip, c->p.zero_point + c->flip, c->p.scale, n, c->values + at);
}

void fwd_encode(fwd_graph *f, const qat_node *node, const qat_qparams *p)
{
    fwd_codes *codes = fwd_codes_of(f, node);
    struct conversion c = {.values = node->value, .codes = codes->bytes, .p = *p};
    fwd_set_grid(codes, p);
    qat_run_strips(qat_shape_count(&node->shape), encode_strip, &c);
}

void fwd_decode(fwd_graph *f, const qat_node *node)
{
    const fwd_codes *codes = fwd_codes_of(f, node);
    struct conversion c = {.values = node->value,
                           .codes = codes->bytes,
                           .p = codes->p,
                           .flip = f->options->layout == QAT_LAYOUT_INT8 ? 0x80 : 0};
    qat_run_strips(qat_shape_count(&node->shape), decode_strip, &c);
}
