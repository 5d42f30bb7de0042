/**
 * The driver of depthwise_conv2d on a host. A tile is a band of output rows of some channels:
 *
 *   4 rows of x, borders   --interleave-->   strip of quads   --run, group by group-->   rows of y
 *
 * Pixels outside the picture count as Z_x. Above and below, a row of Z_x is read instead; left and
 * right, the border columns of the strip hold Z_x. See depthwise.h, depthwise_plan.h.
 */
#include "infer/host/drivers/depthwise_plan.h"

#include <string.h>

/* ------------------------------------------------------------------ the driver's table */

static int accepts(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    if (!isa->depthwise || qi_input(model, node, 0)->kind == QI_CONSTANT)
        return 0;
    qi_depthwise_plan const p = qi_depthwise_plan_of(isa, model, node);
    return qi_depthwise_scratch(&p) >= 0;
}

static size_t packed_bytes(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    qi_depthwise_plan const p = qi_depthwise_plan_of(isa, model, node);
    return QI_DEPTHWISE_PLAN_BYTES + qi_depthwise_packed(&p);
}

static void pack(const qi_isa *isa, const qi_model *model, const qi_node *node, void *packed)
{
    qi_depthwise_plan const p = qi_depthwise_plan_of(isa, model, node);
    memcpy(packed, &p, sizeof p);
    qi_depthwise_pack(isa, model, node, &p, (uint8_t *)packed + QI_DEPTHWISE_PLAN_BYTES);
}

static size_t scratch(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    qi_depthwise_plan const p = qi_depthwise_plan_of(isa, model, node);
    return (size_t)qi_depthwise_scratch(&p);
}

static int32_t tiles(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    qi_depthwise_plan const p = qi_depthwise_plan_of(isa, model, node);
    return p.g.n * p.bands * p.blocks;
}

/* ------------------------------------------------------------------ a tile */

/** One tile, with its scratch laid out. */
struct tile {
    const qi_depthwise_plan *p;
    const qi_depthwise *inner;
    const uint8_t *groups;
    const uint8_t *x; /* the picture, first channel of the block */
    uint8_t *y;       /* the band's first row */
    int32_t band, rows;
    int32_t first_channel, channels; /* of the block */
    uint32_t *strips;
    uint8_t *copies, *border, *lines;
    int32_t *offsets;
};

static int32_t at_most(int32_t n, int32_t most)
{
    return n < most ? n : most;
}

static struct tile tile_of(const qi_fast_call *call, int32_t index)
{
    const qi_depthwise_plan *p = call->packed;
    const qi_window *g = &p->g;
    int32_t const block = index % p->blocks, band = index / p->blocks % p->bands;
    size_t const n = (size_t)(index / p->blocks / p->bands);
    size_t const line = (size_t)n * (size_t)g->oh + (size_t)band * (size_t)p->rows;
    size_t const quads = (size_t)p->strips * p->strip_quads + QI_DEPTHWISE_OVERRUN;
    struct tile t = {.p = p,
                     .inner = call->isa->depthwise,
                     .groups = (const uint8_t *)call->packed + QI_DEPTHWISE_PLAN_BYTES,
                     .band = band,
                     .rows = at_most(g->oh - band * p->rows, p->rows),
                     .first_channel = block * p->block,
                     .channels = at_most(g->o - block * p->block, p->block),
                     .y = (uint8_t *)call->out + line * (size_t)g->ow * (size_t)g->o,
                     .strips = call->scratch};
    size_t const picture = (size_t)g->h * (size_t)g->w * (size_t)g->c;
    t.x = (const uint8_t *)call->in[0] + n * picture + (p->copies ? 0 : t.first_channel);
    t.border = (uint8_t *)(t.strips + (quads + 15) / 16 * 16);
    t.copies = t.border + p->border_bytes;
    t.lines = t.copies + 4 * (size_t)p->strips * p->copy_bytes;
    t.offsets = (int32_t *)(void *)(t.lines + (size_t)p->rows * p->line_bytes);
    return t;
}

/* ------------------------------------------------------------------ rows to strips */

/** The input row for row i of the band, or -1: outside the picture, or under no kernel. */
static int32_t input_row(const struct tile *t, int32_t i)
{
    const qi_window *g = &t->p->g;
    int32_t const y = t->band * t->p->rows * g->stride_h - g->pad_top + i * g->dilation_h;
    int32_t const used = (t->rows - 1) * g->stride_h + g->kernel_h; /* rows > 1: no dilation */
    return i < used && y >= 0 && y < g->h ? y : -1;
}

static const uint8_t *row_at(const struct tile *t, int32_t y)
{
    return t->x + (size_t)y * (size_t)t->p->g.w * (size_t)t->p->g.c;
}

/** Copy a pixel, each channel `multiplier` times. */
static void copy_pixel(const qi_depthwise_plan *p, const uint8_t *x, uint8_t *to)
{
    if (p->multiplier == 1) {
        memcpy(to, x, (size_t)p->g.c);
        return;
    }
    for (int32_t c = 0; c < p->g.c; c++, to += p->multiplier)
        memset(to, x[c], (size_t)p->multiplier);
}

/** Copy a row with its borders, columns in their phases; y = -1: only border. */
static void copy_row(const struct tile *t, int32_t y, uint8_t *to)
{
    const qi_depthwise_plan *p = t->p;
    uint8_t const zero = (uint8_t)(p->x_codes.offset ^ p->x_codes.flip);
    memset(to, zero, p->copy_bytes);
    for (int32_t i = 0; y >= 0 && i < p->inside; i++) {
        int32_t const x = p->first + i;
        size_t const pixel = (size_t)(x % p->phases) * (size_t)p->phase + (size_t)(x / p->phases);
        copy_pixel(p, row_at(t, y) + (size_t)i * (size_t)p->g.c, to + pixel * (size_t)p->g.o);
    }
}

static void strip_of_copies(const struct tile *t, int32_t strip, uint32_t *quads)
{
    const qi_depthwise_plan *p = t->p;
    qi_depthwise_rows rows = {
        .pixels = 1, .width = p->phases * p->phase * p->g.o, .flip = p->x_codes.flip};
    for (int i = 0; i < 4; i++) {
        uint8_t *copy = t->copies + (size_t)(4 * strip + i) * p->copy_bytes;
        copy_row(t, input_row(t, 4 * strip + i), copy);
        rows.row[i] = copy;
    }
    t->inner->interleave(&rows, quads);
}

/** A quad of four Z_x'. */
static uint32_t border_quad(const qi_depthwise_plan *p)
{
    return (uint32_t)p->x_codes.offset * UINT32_C(0x01010101);
}

/** Write the border columns of a strip. */
static void fill_border(const struct tile *t, uint32_t *quads, int32_t columns)
{
    uint32_t const quad = border_quad(t->p);
    size_t const n = (size_t)columns * (size_t)t->channels;
    for (size_t i = 0; i < n; i++)
        quads[i] = quad;
}

/** Point to four rows of the input; missing rows point to the border row. */
static void point_rows(const struct tile *t, int32_t strip, qi_depthwise_rows *rows)
{
    for (int i = 0; i < 4; i++) {
        int32_t const y = input_row(t, 4 * strip + i);
        rows->row[i] = y < 0 ? t->border : row_at(t, y);
        rows->pitch[i] = y < 0 ? 0 : (size_t)t->p->g.c;
    }
}

/** Make a strip directly from the rows: pixel by pixel, or at once if it has all channels. */
static void strip_of_rows(const struct tile *t, int32_t strip, uint32_t *quads)
{
    const qi_depthwise_plan *p = t->p;
    int32_t const whole = t->channels == p->g.c;
    int32_t const border = p->width - p->first - p->inside;
    qi_depthwise_rows rows = {.pixels = whole ? 1 : p->inside,
                              .width = whole ? p->inside * t->channels : t->channels,
                              .flip = p->x_codes.flip};
    point_rows(t, strip, &rows);
    fill_border(t, quads, p->first);
    quads += (size_t)p->first * (size_t)t->channels;
    t->inner->interleave(&rows, quads);
    fill_border(t, quads + (size_t)p->inside * (size_t)t->channels, border);
}

static int needs_border_row(const struct tile *t)
{
    for (int32_t i = 0; i < 4 * t->p->strips; i++)
        if (input_row(t, i) < 0)
            return 1;
    return 0;
}

static void fill_border_row(const struct tile *t)
{
    const qi_depthwise_plan *p = t->p;
    if (!p->copies && needs_border_row(t))
        memset(t->border, p->x_codes.offset ^ p->x_codes.flip, p->border_bytes);
}

static void fill_strips(const struct tile *t)
{
    const qi_depthwise_plan *p = t->p;
    for (int32_t s = 0; s < p->strips; s++)
        (p->copies ? strip_of_copies : strip_of_rows)(t, s, t->strips + (size_t)s * p->strip_quads);
}

/* ------------------------------------------------------------------ strips to rows of codes */

static void fill_offsets(const struct tile *t)
{
    const qi_depthwise_plan *p = t->p;
    for (int32_t i = 0; i < p->taps; i++) {
        int32_t const strip = i / p->g.kernel_w, kx = i % p->g.kernel_w;
        t->offsets[i] =
            (int32_t)((size_t)strip * p->strip_quads) + qi_depthwise_offset(p, kx, t->channels);
    }
}

static void run_wide(const struct tile *t)
{
    const qi_depthwise_plan *p = t->p;
    size_t const row = (size_t)p->g.ow * (size_t)p->g.o;
    qi_depthwise_line line = {.offsets = t->offsets,
                              .step = p->g.stride_w * t->channels,
                              .columns = p->g.ow,
                              .rows = t->rows,
                              .y_step = p->g.o};
    int32_t const first = t->first_channel / QI_DEPTHWISE_LANES;
    int32_t const groups = (t->channels + QI_DEPTHWISE_LANES - 1) / QI_DEPTHWISE_LANES;
    for (int32_t i = first; i < first + groups; i++) {
        int32_t const c = qi_depthwise_first(p, i);
        line.group = t->groups + (size_t)i * p->group_bytes;
        line.quads = t->strips + (c - t->first_channel);
        for (int32_t r = 0; r < t->rows; r++)
            line.y[r] = t->y + (size_t)r * row + c;
        t->inner->run(&line);
    }
}

/** Whole vectors go to scratch; from there, the bytes of the row go to y. */
static void run_narrow(const struct tile *t)
{
    const qi_depthwise_plan *p = t->p;
    int32_t const outputs = p->g.ow * p->g.o;
    qi_depthwise_line line = {
        .offsets = t->offsets, .step = p->period, .rows = t->rows, .y_step = p->period};
    for (int32_t i = 0; i < p->groups && qi_depthwise_first(p, i) < outputs; i++) {
        int32_t const at = qi_depthwise_first(p, i);
        line.group = t->groups + (size_t)i * p->group_bytes;
        line.quads = t->strips + at;
        line.columns = (outputs - at + p->period - 1) / p->period;
        for (int32_t r = 0; r < t->rows; r++)
            line.y[r] = t->lines + (size_t)r * p->line_bytes + at;
        t->inner->run(&line);
    }
    for (int32_t r = 0; r < t->rows; r++)
        memcpy(t->y + (size_t)r * (size_t)outputs, t->lines + (size_t)r * p->line_bytes,
               (size_t)outputs);
}

/* ------------------------------------------------------------------ blocks */

static void run_blocks(const struct tile *t)
{
    enum { CHANNELS = QI_DEPTHWISE_BLOCK * QI_DEPTHWISE_LANES };
    const qi_depthwise_plan *p = t->p;
    size_t const row = (size_t)p->g.ow * (size_t)p->g.o;
    qi_depthwise_block block = {
        .group_bytes = p->group_bytes,
        .x = {.pixels = p->inside, .width = CHANNELS, .flip = p->x_codes.flip},
        .first = p->first,
        .border = border_quad(p),
        .columns = p->g.ow,
        .stride = p->g.stride_w,
        .rows = t->rows,
        .y_step = p->g.o};
    point_rows(t, 0, &block.x);
    for (int32_t c = 0; c < t->channels; c += CHANNELS) {
        size_t const channel = (size_t)(t->first_channel + c);
        block.groups = t->groups + channel / QI_DEPTHWISE_LANES * p->group_bytes;
        for (int32_t r = 0; r < t->rows; r++)
            block.y[r] = t->y + (size_t)r * row + channel;
        t->inner->run_block(&block);
        for (int i = 0; i < 4; i++)
            block.x.row[i] += CHANNELS;
    }
}

static void run(const qi_fast_call *call, int32_t index)
{
    struct tile const t = tile_of(call, index);
    fill_border_row(&t);
    if (t.p->blocked) {
        run_blocks(&t);
        return;
    }
    fill_strips(&t);
    fill_offsets(&t);
    (t.p->narrow ? run_narrow : run_wide)(&t);
}

const qi_fast qi_fast_depthwise_conv2d = {.kernel = &qi_kernel_depthwise_conv2d,
                                          .accepts = accepts,
                                          .packed_bytes = packed_bytes,
                                          .pack = pack,
                                          .scratch = scratch,
                                          .tiles = tiles,
                                          .run = run};
