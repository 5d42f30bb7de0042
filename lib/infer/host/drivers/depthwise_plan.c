/**
 * Depthwise convolutions: cuts a layer into strips and groups, and makes the weights of the groups.
 */
#include "infer/host/drivers/depthwise_plan.h"

#include "infer/host/loops/even.h"

#include <stdlib.h>

enum { LANES = QI_DEPTHWISE_LANES, MOST_RIGHT = 23 /* of a cut */ };

_Static_assert(sizeof(qi_depthwise_plan) <= QI_DEPTHWISE_PLAN_BYTES, "room for the plan");

/* ------------------------------------------------------------------ geometry */

static int64_t round_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

static int32_t gcd(int32_t a, int32_t b)
{
    return b ? gcd(b, a % b) : a;
}

/** The lowest and the highest w - Z_w. */
static void range_of(const qi_tensor *w, int32_t *lo, int32_t *hi)
{
    qi_codes const codes = qi_codes_of(w);
    const uint8_t *bytes = w->data;
    *lo = *hi = 0;
    for (size_t i = 0; i < w->bytes; i++) {
        int32_t const d = (bytes[i] ^ codes.flip) - codes.offset;
        *lo = d < *lo ? d : *lo;
        *hi = d > *hi ? d : *hi;
    }
}

/**
 * Output rows that share `strips` strips; the kernel of row j begins j stride_h rows further down.
 */
static int32_t rows_of(const qi_window *g, int32_t strips)
{
    if (g->dilation_h > 1)
        return 1;
    int32_t const rows = (4 * strips - g->kernel_h) / g->stride_h + 1;
    return rows < QI_DEPTHWISE_ROWS ? rows : QI_DEPTHWISE_ROWS;
}

/** Find the columns under the windows, and which of them are in the picture. */
static void plan_columns(qi_depthwise_plan *p)
{
    const qi_window *g = &p->g;
    p->width = (g->ow - 1) * g->stride_w + (g->kernel_w - 1) * g->dilation_w + 1;
    p->first = g->pad_left;
    p->inside = p->width - p->first < g->w ? p->width - p->first : g->w;
    p->phases = p->narrow ? g->stride_w : 1;
    p->phase = (p->width + p->phases - 1) / p->phases;
}

/** Can blocks be computed without strips? */
static int fits_blocks(const qi_depthwise_plan *p)
{
    const qi_window *g = &p->g;
    int const stride_fits = p->rows == 1 ? g->stride_w <= 2 : p->rows == 2 && g->stride_w == 1;
    return g->o % (QI_DEPTHWISE_BLOCK * LANES) == 0 && p->multiplier == 1 && p->strips == 1 &&
           g->kernel_w == 3 && g->dilation_w == 1 && stride_fits && !p->wide_weights;
}

/** Choose the channels of a strip, so that it stays in the first-level cache with room to spare. */
static void plan_blocks(qi_depthwise_plan *p)
{
    enum {
        STRIP_QUADS = 8192,
        BLOCK_CHANNELS = 256,
        RUN = 64 /* positions that interleaving handles at once */
    };
    int32_t const channels = p->g.o;
    int32_t most = STRIP_QUADS / p->strips / p->width / LANES * LANES;
    most = most < LANES ? LANES : most;
    if (p->blocked)
        most = BLOCK_CHANNELS;
    p->block = channels;
    if (!p->copies && channels % LANES == 0 && most < channels) {
        int32_t const blocks = (channels + most - 1) / most;
        p->block = (int32_t)round_up((channels + blocks - 1) / blocks, most < RUN ? LANES : RUN);
    }
    p->blocks = (channels + p->block - 1) / p->block;
}

static void plan_memory(qi_depthwise_plan *p)
{
    size_t const pixels = (size_t)p->phases * (size_t)p->phase;
    size_t const contiguous =
        p->block == p->g.c && !p->blocked ? (size_t)p->inside * (size_t)p->g.c : 0;
    size_t const border = contiguous ? contiguous : (size_t)p->block;
    p->strip_quads = p->blocked ? 0 : (size_t)round_up((int64_t)pixels * p->block, LANES);
    p->copy_bytes =
        p->copies ? (size_t)round_up((int64_t)p->strip_quads, QI_FAST_ALIGN) + QI_SLACK : 0;
    p->border_bytes = p->copies ? 0 : (size_t)round_up((int64_t)border, QI_FAST_ALIGN) + QI_SLACK;
    p->line_bytes =
        p->narrow ? (size_t)round_up((int64_t)p->g.ow * p->g.o + LANES, QI_FAST_ALIGN) : 0;
}

qi_depthwise_plan qi_depthwise_plan_of(const qi_isa *isa, const qi_model *model,
                                       const qi_node *node)
{
    qi_depthwise_plan p = {.g = qi_conv_window(model, node),
                           .x_codes = qi_codes_of(qi_input(model, node, 0)),
                           .multiplier = node->params[QI_CONV_MULTIPLIER]};
    int32_t lo, hi;
    range_of(qi_input(model, node, 1), &lo, &hi);
    p.wide_weights = lo < INT8_MIN || hi > INT8_MAX;
    p.fits = hi <= 2 * INT8_MAX;
    if (p.g.kernel_h == 1)
        p.g.dilation_h = 1;
    p.strips = (p.g.kernel_h + 3) / 4;
    p.rows = rows_of(&p.g, p.strips);
    p.rows = p.rows < p.g.oh ? p.rows : p.g.oh;
    p.taps = p.strips * p.g.kernel_w;
    p.bands = (p.g.oh + p.rows - 1) / p.rows;
    p.narrow = p.g.o < LANES;
    p.copies = p.multiplier > 1 || (p.narrow && p.g.stride_w > 1);
    p.period = p.narrow ? p.g.o / gcd(p.g.o, LANES) * LANES : p.g.o;
    p.groups = p.narrow ? p.period / LANES : (p.g.o + LANES - 1) / LANES;
    p.blocked =
        isa->depthwise->run_block && p.rows <= isa->depthwise->block_rows && fits_blocks(&p);
    plan_columns(&p);
    plan_blocks(&p);
    plan_memory(&p);
    p.group_bytes = isa->depthwise->group_bytes(p.rows, p.taps, p.wide_weights);
    return p;
}

int64_t qi_depthwise_scratch(const qi_depthwise_plan *p)
{
    int64_t const most = 1 << 22, rows = 4 * (int64_t)p->strips;
    int64_t const pixels = (int64_t)p->phases * p->phase;
    if (!p->fits || pixels * p->block > most || rows > most)
        return -1; /* in this case the sizes below may have wrapped */
    int64_t const quads = (int64_t)p->strips * (int64_t)p->strip_quads + QI_DEPTHWISE_OVERRUN;
    int64_t const bytes = (int64_t)p->border_bytes + rows * (int64_t)p->copy_bytes +
                          round_up(4 * quads, QI_FAST_ALIGN) + p->rows * (int64_t)p->line_bytes +
                          round_up(p->taps * (int64_t)sizeof(int32_t), QI_FAST_ALIGN);
    return bytes > most ? -1 : bytes;
}

size_t qi_depthwise_packed(const qi_depthwise_plan *p)
{
    size_t const one = (size_t)p->rows * (size_t)p->taps * LANES * 4 * sizeof(int16_t);
    return (size_t)p->groups * p->group_bytes + one;
}

/* ------------------------------------------------------------------ groups */

/** A layer while its groups are made. */
struct layer {
    const qi_depthwise_plan *p;
    const uint8_t *weights;
    qi_codes codes;
    qi_requant requant;
    int64_t max_accumulator;
    int y_flip;
};

static int32_t weight_at(const struct layer *v, int32_t ky, int32_t kx, int32_t c)
{
    size_t const tap = (size_t)ky * (size_t)v->p->g.kernel_w + (size_t)kx;
    return (v->weights[tap * (size_t)v->p->g.o + (size_t)c] ^ v->codes.flip) - v->codes.offset;
}

/** The four weights of one quad: rows 4 strip .. 4 strip + 3, as output row r needs them. */
static void quad_of(const struct layer *v, int32_t r, int32_t tap, int32_t c, int16_t quad[4])
{
    const qi_window *g = &v->p->g;
    int32_t const strip = tap / g->kernel_w, kx = tap % g->kernel_w;
    for (int32_t i = 0; i < 4; i++) {
        int32_t const ky = 4 * strip + i - r * g->stride_h;
        quad[i] = (int16_t)(ky >= 0 && ky < g->kernel_h ? weight_at(v, ky, kx, c) : 0);
    }
}

/** bias - Z_x' sum (w - Z_w), modulo 2^32; with a fraction, without the file's bias. */
static int32_t folded_bias(const struct layer *v, int32_t c)
{
    uint32_t sum = 0;
    for (int32_t ky = 0; ky < v->p->g.kernel_h; ky++)
        for (int32_t kx = 0; kx < v->p->g.kernel_w; kx++)
            sum += (uint32_t)weight_at(v, ky, kx, c);
    uint32_t const bias = v->requant.fraction ? 0 : (uint32_t)v->requant.bias[c];
    return (int32_t)(bias - (uint32_t)v->p->x_codes.offset * sum);
}

static int32_t channel_of(const qi_depthwise_plan *p, int32_t index, int32_t lane)
{
    int32_t const block = index / QI_DEPTHWISE_BLOCK, j = index % QI_DEPTHWISE_BLOCK;
    if (p->blocked)
        return block * QI_DEPTHWISE_BLOCK * LANES + 16 * (lane / 4) + 4 * j + lane % 4;
    return (qi_depthwise_first(p, index) + lane) % p->g.o;
}

/** Is there room in int32 to round before a shift by n? A product is below the accumulator. */
static int fits_rounding(const struct layer *v, int32_t c, int n)
{
    int64_t const mult = v->requant.mult[c * v->requant.mult_step];
    int64_t const product = ((v->max_accumulator * mult) >> 31) + 1;
    return n >= 1 && product + (INT64_C(1) << (n - 1)) <= INT32_MAX;
}

/** Has a channel the constants of tail EVEN, on every processor? */
static int fits_even(const struct layer *v, int32_t c)
{
    qi_even even;
    return qi_even_of(v->requant.mult[c * v->requant.mult_step],
                      v->requant.shift[c * v->requant.shift_step], v->max_accumulator, 1, &even);
}

/** Choose how the multipliers of the group are applied; for a block, those of all its groups. */
static void choose_tail(const struct layer *v, int32_t index, qi_depthwise_group *group)
{
    int32_t const together = v->p->blocked ? QI_DEPTHWISE_BLOCK : 1,
                  first = index / together * together, f = v->requant.fraction;
    int least = 31, most = -31, fits = 1; /* right shifts of the sums */
    int evens = group->is_even;
    for (int32_t i = 0; i < together * LANES; i++) {
        int32_t const c = channel_of(v->p, first + i / LANES, i % LANES);
        int const n = -v->requant.shift[c * v->requant.shift_step];
        evens = evens && fits_even(v, c);
        least = n - f < least ? n - f : least;
        most = n - f > most ? n - f : most;
        fits &= fits_rounding(v, c, n);
    }
    int const left = least < 1 ? 1 - least : 0;
    int const cuts =
        v->requant.lo >= v->requant.zero_point && left <= f && most + left <= MOST_RIGHT;
    group->left = cuts ? left : 0;
    if (group->is_even)
        group->tail = evens ? QI_DEPTHWISE_EVEN : QI_DEPTHWISE_ANY;
    else if (cuts)
        group->tail = left ? QI_DEPTHWISE_LEFT_CUT : QI_DEPTHWISE_CUT;
    else if (fits)
        group->tail = f ? QI_DEPTHWISE_FINE : QI_DEPTHWISE_RIGHT;
    else
        group->tail = QI_DEPTHWISE_ANY;
}

static void fill_group(const struct layer *v, int32_t index, int16_t *weights,
                       qi_depthwise_group *group)
{
    const qi_depthwise_plan *p = v->p;
    for (int32_t i = 0; i < LANES; i++) {
        int32_t const c = channel_of(p, index, i);
        for (int32_t r = 0; r < p->rows; r++)
            for (int32_t tap = 0; tap < p->taps; tap++)
                quad_of(v, r, tap, c,
                        weights + ((size_t)(r * p->taps + tap) * LANES + (size_t)i) * 4);
        group->bias[i] = folded_bias(v, c);
        group->late_bias[i] = v->requant.fraction ? v->requant.bias[c] : 0;
        group->mult[i] = v->requant.mult[c * v->requant.mult_step];
        group->shift[i] = v->requant.shift[c * v->requant.shift_step];
    }
}

static struct layer layer_of(const qi_model *model, const qi_node *node, const qi_depthwise_plan *p)
{
    const void *in[QI_ACC_INPUTS];
    for (int i = 0; i < QI_ACC_INPUTS; i++)
        in[i] = qi_input(model, node, i)->data;
    qi_call const call = {.model = model, .node = node, .in = in};
    return (struct layer){.p = p,
                          .weights = in[1],
                          .codes = qi_codes_of(qi_input(model, node, 1)),
                          .requant = qi_requant_of(&call, QI_CONV_CLAMP_LO),
                          .max_accumulator = node->max_accumulator,
                          .y_flip = qi_output(model, node)->type == QI_U8 ? 0x80 : 0};
}

void qi_depthwise_pack(const qi_isa *isa, const qi_model *model, const qi_node *node,
                       const qi_depthwise_plan *p, uint8_t *groups)
{
    int16_t *weights = (int16_t *)(void *)(groups + (size_t)p->groups * p->group_bytes);
    struct layer const v = layer_of(model, node, p);
    qi_depthwise_group group = {.rows = p->rows,
                                .taps = p->taps,
                                .wide = p->wide_weights,
                                .weights = weights,
                                .fraction = v.requant.fraction,
                                .zero_point = v.requant.zero_point - v.y_flip,
                                .lo = v.requant.lo - v.y_flip,
                                .hi = v.requant.hi - v.y_flip,
                                .y_flip = (uint8_t)v.y_flip,
                                .is_even = v.requant.rounding == QI_ROUND_EVEN,
                                .max_accumulator = v.max_accumulator};
    for (int32_t i = 0; i < p->groups; i++) {
        fill_group(&v, i, weights, &group);
        choose_tail(&v, i, &group);
        isa->depthwise->pack(&group, groups + (size_t)i * p->group_bytes);
    }
}
