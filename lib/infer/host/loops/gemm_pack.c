/** Packs the weights of a layer and folds its zero points; see gemm.h and gemm_pack.h. */
#include "infer/host/loops/gemm_pack.h"

#include "infer/host/loops/even.h"
#include "infer/host/loops/fast.h"
#include "infer/host/loops/sum_line.h"

#include <string.h>

enum { QUAD = 4 }; /* channels at successive positions: qi_panel_channel */

/** One panel while it is filled. */
struct panel {
    const qi_gemm_layer *layer;
    int32_t room, lanes; /* channels; of a register */
    int32_t tail, fraction, one_tail;
    int32_t zero_point; /* of signed codes */
    int32_t *columns;
    uint8_t *weights;
};

static int32_t groups_of(const qi_gemm_layer *layer, const qi_panel_shape *shape)
{
    return (layer->depth + shape->group - 1) / shape->group;
}

/** Bytes of a panel, a multiple of QI_FAST_ALIGN. */
static size_t panel_bytes(const qi_gemm_layer *layer, const qi_panel_shape *shape, int32_t channels)
{
    size_t const weights =
        (size_t)groups_of(layer, shape) * (size_t)shape->group * (size_t)shape->weight_size;
    size_t const bytes = (size_t)channels * (QI_COLUMNS * sizeof(int32_t) + weights);
    return (bytes + QI_FAST_ALIGN - 1) / QI_FAST_ALIGN * QI_FAST_ALIGN;
}

static int32_t narrow_of(const qi_gemm_layer *layer, const qi_panel_shape *shape)
{
    int32_t const wide = shape->vectors * shape->lanes, narrow = shape->narrow * shape->lanes;
    int32_t const rest = layer->channels % wide;
    return rest > 0 && rest <= narrow ? narrow : 0;
}

size_t qi_packed_bytes(const qi_gemm_layer *layer, const qi_panel_shape *shape)
{
    int32_t const wide = shape->vectors * shape->lanes, narrow = narrow_of(layer, shape);
    size_t const panels = (size_t)((layer->channels + wide - 1) / wide);
    size_t const bytes =
        QI_PACKED_HEADER + (panels - (narrow > 0)) * panel_bytes(layer, shape, wide);
    return narrow ? bytes + panel_bytes(layer, shape, narrow) : bytes;
}

/* ------------------------------------------------------------------ weights */

/** Write w' of count codes. For c = 128, flipping the highest bit is the subtraction. */
static void flip_codes(uint8_t *to, const uint8_t *w, size_t count, uint32_t flip)
{
    size_t i = 0;
    for (; i + 4 <= count; i += 4) {
        uint32_t word;
        memcpy(&word, w + i, 4);
        word ^= flip;
        memcpy(to + i, &word, 4);
    }
    for (; i < count; i++)
        to[i] = (uint8_t)(w[i] ^ (uint8_t)flip);
}

static void pack_bytes(const struct panel *p, int32_t group_size, int32_t position,
                       const uint8_t *w)
{
    size_t const depth = (size_t)p->layer->depth, group = (size_t)group_size;
    uint32_t const flip = (p->layer->w_codes.flip ^ 0x80u) * 0x01010101u;
    uint8_t *to = p->weights + (size_t)position * group;
    for (size_t k = 0; k < depth; k += group, to += (size_t)p->room * group)
        flip_codes(to, w + k, depth - k < group ? depth - k : group, flip);
}

/**
 * Write w' of QUAD channels from w on, in whole words of four, so that writes follow each other.
 */
static void pack_quad(const struct panel *p, int32_t position, const uint8_t *w)
{
    size_t const depth = (size_t)p->layer->depth, step = (size_t)p->room * 4;
    uint32_t const flip = (p->layer->w_codes.flip ^ 0x80u) * 0x01010101u;
    uint8_t *to = p->weights + (size_t)position * 4;
    for (size_t k = 0; k < depth; k += 4, to += step) {
        uint32_t word[QUAD];
        for (size_t i = 0; i < QUAD; i++) {
            memcpy(&word[i], w + i * depth + k, 4);
            word[i] ^= flip;
        }
        memcpy(to, word, sizeof word);
    }
}

/** Write differences as int16, in groups of two. */
static void pack_pairs(const struct panel *p, int32_t position, const uint8_t *w)
{
    size_t const depth = (size_t)p->layer->depth, step = (size_t)p->room * 2;
    int32_t const flip = p->layer->w_codes.flip, offset = p->layer->w_codes.offset;
    int16_t *to = (int16_t *)(void *)p->weights + (size_t)position * 2;
    size_t k = 0;
    for (; k + 2 <= depth; k += 2, to += step) {
        to[0] = (int16_t)((w[k] ^ flip) - offset);
        to[1] = (int16_t)((w[k + 1] ^ flip) - offset);
    }
    if (k < depth)
        to[0] = (int16_t)((w[k] ^ flip) - offset);
}

/* ------------------------------------------------------------------ columns */

static int32_t shift_at(const qi_requant *r, int32_t channel)
{
    return r->shift[channel * r->shift_step];
}

/** bias', with Z_x and c for codes in the form of x' and w'. With a fraction, without the file's
 * bias. */
static int32_t folded_bias(const struct panel *p, int32_t channel, const uint8_t *w)
{
    const qi_gemm_layer *l = p->layer;
    /* sum of byte ^ flip, which is w + its offset */
    int64_t const sum = qi_weight_sum(w, l->depth, (qi_codes){.flip = l->w_codes.flip});
    int64_t const differences = sum - (int64_t)l->depth * l->w_codes.offset;
    int32_t const bias = l->requant.fraction ? 0 : l->requant.bias[channel];
    return (int32_t)(uint32_t)(bias - l->x_codes.offset * differences);
}

static void fill_mult(const struct panel *p, int32_t position, int32_t mult)
{
    int32_t *column = p->columns + position;
    column[QI_COLUMN_MULT * p->room] = mult;
    if (position % 2)
        column[QI_COLUMN_MULT_ODD * p->room - 1] = mult;
}

/** Write zero_point - t where the codes of a position are when they have 16 bits. */
static void fill_offset(const struct panel *p, int32_t position, int32_t t)
{
    int32_t const lane = position % p->lanes, v = position / p->lanes;
    int32_t const at = lane / 4 * 8 + v * 4 + lane % 4;
    int16_t *column = (int16_t *)(void *)(p->columns + QI_COLUMN_OFFSET * p->room);
    column[at] = (int16_t)(p->zero_point - t);
    if (p->room == p->lanes) /* one register: of two rows */
        column[at + 4] = column[at];
}

/** The lines of a channel: one for s >= 0 or for all s, and for LINES one for s < 0. */
struct lines {
    int32_t mult;
    qi_sum_line line, below;
};

/** How the sums of a channel step from code to code. */
static qi_sum_steps steps_of(const struct panel *p, int32_t channel)
{
    const qi_requant *r = &p->layer->requant;
    return (qi_sum_steps){.mult = r->mult[channel * r->mult_step],
                          .right = -shift_at(r, channel),
                          .fraction = r->fraction,
                          .bias = r->fraction ? r->bias[channel] : 0,
                          .most = p->layer->max_accumulator,
                          .whole = p->fraction < r->fraction};
}

/** Find the lines with this multiplier. */
static int find_lines(const struct panel *p, const qi_sum_steps *s, int32_t with,
                      struct lines *found)
{
    const qi_requant *r = &p->layer->requant;
    int const is_plain = s->mult == 0 || (with == s->mult && s->fraction == 0);
    int32_t const lo = r->lo - r->zero_point + 1, end = r->hi - r->zero_point + 1;
    found->mult = with;
    if (s->fraction && p->tail == QI_TAIL_LINE)
        return qi_sum_line_fit(lo < 1 ? QI_SUMS_ALL : QI_SUMS_POSITIVE, s, with, lo, end,
                               &found->line);
    static const qi_sum_side sides[2] = {QI_SUMS_POSITIVE, QI_SUMS_NEGATIVE};
    int32_t const first[2] = {lo > 1 ? lo : 1, lo}, ends[2] = {end, end < 1 ? end : 1};
    qi_sum_line *lines[2] = {&found->line, &found->below};
    for (int i = 0; i < 1 + (p->tail == QI_TAIL_LINES); i++)
        if (!(is_plain
                  ? qi_sum_line_find(i, s->mult, s->right, first[i], ends[i], s->most, lines[i])
                  : qi_sum_line_fit(sides[i], s, with, first[i], ends[i], lines[i])))
            return 0;
    return 1;
}

/** Write the constants of tails LINE and LINES; 0 if a channel has no line. */
static int fill_lines(const struct panel *p, int32_t position, int32_t channel)
{
    int32_t *column = p->columns + position;
    qi_sum_steps const steps = steps_of(p, channel);
    struct lines found;
    int is_found = find_lines(p, &steps, steps.mult, &found);
    for (int i = 0; !is_found && !steps.fraction && i < QI_SUM_LINE_TURNS; i++) {
        int32_t const turned = qi_sum_line_turn(steps.mult, steps.right, steps.most, i);
        is_found = turned > 0 && find_lines(p, &steps, turned, &found);
    }
    if (!is_found)
        return 0;
    fill_mult(p, position, found.mult);
    fill_offset(p, position, found.line.offset);
    if (p->fraction)
        column[QI_COLUMN_LATE_BIAS * p->room] = found.line.add;
    else
        column[QI_COLUMN_BIAS * p->room] += found.line.add;
    column[QI_COLUMN_SHIFT * p->room] = steps.right - (steps.fraction - p->fraction) - 1;
    if (p->tail == QI_TAIL_LINE)
        return 1;
    column[QI_COLUMN_BOUND * p->room] =
        found.line.add + (int32_t)(qi_sum_line_zero(&steps) * (1 << steps.fraction));
    column[QI_COLUMN_NEGATIVE_ADD * p->room] = found.below.add - found.line.add;
    column[QI_COLUMN_NEGATIVE_OFFSET * p->room] = found.line.offset - found.below.offset;
    return 1;
}

/** Write the constants of tail EVEN. */
static void fill_even(const struct panel *p, int32_t position, int32_t channel)
{
    const qi_requant *r = &p->layer->requant;
    int32_t *column = p->columns + position;
    qi_even even;
    qi_even_of(r->mult[channel * r->mult_step], shift_at(r, channel), p->layer->max_accumulator,
               p->one_tail, &even);
    fill_mult(p, position, even.mult);
    column[QI_COLUMN_LEFT * p->room] = even.left;
    column[QI_COLUMN_RIGHT * p->room] = even.right;
    column[QI_COLUMN_EVEN_ADD * p->room] = even.add;
    column[QI_COLUMN_EVEN_SPAN * p->room] = even.span;
}

/** Returns 0 if the tail has no constants for this channel. */
static int fill_columns(const struct panel *p, int32_t position, int32_t channel)
{
    const qi_requant *r = &p->layer->requant;
    int32_t *column = p->columns + position;
    if (!p->one_tail)
        fill_offset(p, position, 0);
    if (p->tail == QI_TAIL_EVEN)
        fill_even(p, position, channel);
    if (r->rounding != QI_ROUND_TWICE)
        return 1;
    if (p->tail == QI_TAIL_LINE || p->tail == QI_TAIL_LINES)
        return fill_lines(p, position, channel);
    int32_t const shift = shift_at(r, channel);
    fill_mult(p, position, r->mult[channel * r->mult_step]);
    column[QI_COLUMN_RIGHT * p->room] = shift < 0 ? -shift : 0;
    column[QI_COLUMN_LEFT * p->room] = shift > 0 ? shift : 0;
    column[QI_COLUMN_LATE_BIAS * p->room] = r->fraction ? r->bias[channel] : 0;
    return 1;
}

/**
 * Write the columns of n <= QUAD channels from `channel` on to successive positions. Returns 0 if
 * the tail has no constants for one of them.
 */
static int fill_quad(const struct panel *p, int32_t position, int32_t channel, int32_t n)
{
    size_t const depth = (size_t)p->layer->depth;
    const uint8_t *w = p->layer->weights + (size_t)channel * depth;
    int all = 1;
    for (int32_t i = 0; i < n; i++) {
        p->columns[QI_COLUMN_BIAS * p->room + position + i] =
            folded_bias(p, channel + i, w + (size_t)i * depth);
        all &= fill_columns(p, position + i, channel + i);
    }
    return all;
}

/** Write the weights of n <= QUAD channels. */
static void pack_channels(const struct panel *p, const qi_panel_shape *shape, int32_t position,
                          int32_t channel, int32_t n)
{
    size_t const depth = (size_t)p->layer->depth;
    const uint8_t *w = p->layer->weights + (size_t)channel * depth;
    if (n == QUAD && shape->weight_size == 1 && shape->group == 4 && depth % 4 == 0) {
        pack_quad(p, position, w);
        return;
    }
    for (int32_t i = 0; i < n; i++, w += depth)
        if (shape->weight_size == 1)
            pack_bytes(p, shape->group, position + i, w);
        else
            pack_pairs(p, position + i, w);
}

/** Which parts of a panel are written. */
enum { COLUMNS = 1, WEIGHTS = 2 };

/**
 * Columns go first, in the file's order, which brings the weights into the cache. Returns 0 if the
 * tail has no constants for one of the channels.
 */
static int fill_panel(const qi_packed *h, const qi_gemm_layer *layer, const qi_panel_shape *shape,
                      int32_t index, int parts)
{
    int32_t const room = qi_panel_room(h, index);
    int32_t *columns = (int32_t *)(uintptr_t)qi_panel_at(h, index);
    struct panel const p = {.layer = layer,
                            .room = room,
                            .lanes = shape->lanes,
                            .tail = h->tail,
                            .fraction = h->fraction,
                            .one_tail = shape->one_tail,
                            .zero_point = h->zero_point,
                            .columns = columns,
                            .weights = (uint8_t *)(columns + QI_COLUMNS * room)};
    int all = 1;
    for (int32_t i = 0; i < room; i += QUAD) {
        int32_t const channel =
            index * h->panel_channels + qi_panel_channel(room / shape->lanes, shape->lanes, i);
        int32_t const left = layer->channels - channel, n = left < QUAD ? left : QUAD;
        if (n > 0 && parts & COLUMNS)
            all &= fill_quad(&p, i, channel, n);
        if (n > 0 && parts & WEIGHTS)
            pack_channels(&p, shape, i, channel, n);
    }
    return all;
}

/**
 * For a tail that has no constants for a channel. Their order is: LINE of whole sums, LINE with the
 * fraction (both in layers with a fraction), LINES (if codes lie below the zero_point), TWICE,
 * which every layer has.
 */
static void try_another_tail(qi_packed *h, const qi_gemm_layer *layer)
{
    int const is_whole = h->fraction < layer->requant.fraction;
    int const is_of_both_signs = h->tail == QI_TAIL_LINE && h->lo < h->zero_point;
    h->tail = is_whole ? QI_TAIL_LINE : is_of_both_signs ? QI_TAIL_LINES : QI_TAIL_TWICE;
    h->fraction = layer->requant.fraction;
}

/** Write all panels. */
static void fill_panels(qi_packed *h, const qi_gemm_layer *layer, const qi_panel_shape *shape,
                        int parts)
{
    int32_t with_weights = 0; /* panels that have their weights */
    for (int32_t i = 0; i < qi_panels(h);) {
        int const all = fill_panel(h, layer, shape, i, i < with_weights ? COLUMNS : parts);
        with_weights = i < with_weights ? with_weights : i + 1;
        i = all ? i + 1 : 0;
        if (!all)
            try_another_tail(h, layer);
    }
}

void qi_pack_columns(qi_packed *h, const qi_gemm_layer *layer, const qi_panel_shape *shape)
{
    fill_panels(h, layer, shape, COLUMNS);
}

/* ------------------------------------------------------------------ layers */

/** Does every channel have a right shift, by at least so much? */
static int is_right(const qi_gemm_layer *l, int32_t least)
{
    for (int32_t i = 0; i < l->channels; i++)
        if (-shift_at(&l->requant, i) < least)
            return 0;
    return 1;
}

/** Does every channel have the constants of tail EVEN? */
static int fits_even(const qi_gemm_layer *l, const qi_panel_shape *s)
{
    const qi_requant *r = &l->requant;
    qi_even even;
    for (int32_t i = 0; i < l->channels; i++)
        if (!qi_even_of(r->mult[i * r->mult_step], shift_at(r, i), l->max_accumulator, s->one_tail,
                        &even))
            return 0;
    return 1;
}

/** May the layer have a fraction, but lines of whole sums? */
static int may_be_whole(const qi_gemm_layer *l)
{
    return l->requant.fraction && is_right(l, l->requant.fraction + 1);
}

static int32_t tail_of(const qi_gemm_layer *l, const qi_panel_shape *s)
{
    if (l->requant.rounding == QI_ROUND_NONE)
        return QI_TAIL_SUMS;
    if (l->requant.rounding == QI_ROUND_EVEN && fits_even(l, s))
        return QI_TAIL_EVEN;
    if (l->requant.rounding != QI_ROUND_TWICE)
        return QI_TAIL_SCALAR;
    if (s->one_tail || !is_right(l, 1))
        return QI_TAIL_TWICE;
    return l->requant.fraction || l->requant.lo >= l->requant.zero_point ? QI_TAIL_LINE
                                                                         : QI_TAIL_LINES;
}

void qi_pack_header(qi_packed *h, const qi_gemm_layer *l, const qi_panel_shape *s)
{
    _Static_assert(sizeof *h <= QI_PACKED_HEADER, "the header does not fit");
    int32_t const middle = l->y_is_signed ? 0 : 128, segment = l->segment ? l->segment : l->depth;
    int32_t const tail = tail_of(l, s);
    *h = (qi_packed){.depth = l->depth,
                     .channels = l->channels,
                     .panel_channels = s->vectors * s->lanes,
                     .narrow_channels = narrow_of(l, s),
                     .groups = groups_of(l, s),
                     .row_factor = s->weight_size == 1 ? 128 - l->w_codes.offset : 0,
                     .x_flip = (int32_t)(l->x_codes.flip * 0x01010101u),
                     .y_flip = l->y_is_signed ? 0 : (int32_t)0x80808080u,
                     .zero_point = l->requant.zero_point - middle,
                     .lo = l->requant.lo - middle,
                     .hi = l->requant.hi - middle,
                     .tail = tail,
                     .fraction = tail == QI_TAIL_LINE && may_be_whole(l) ? 0 : l->requant.fraction,
                     .segments = l->depth / segment,
                     .segment = segment,
                     .segment_stride = l->segment_stride,
                     .panel_bytes = panel_bytes(l, s, s->vectors * s->lanes),
                     .requant = l->requant};
}

void qi_pack(const qi_gemm_layer *layer, const qi_panel_shape *shape, void *packed)
{
    qi_packed *h = packed;
    memset(packed, 0, qi_packed_bytes(layer, shape));
    qi_pack_header(h, layer, shape);
    fill_panels(h, layer, shape, COLUMNS | WEIGHTS);
}

/* ------------------------------------------------------------------ tails */

void qi_requantize_row_scalar(const qi_packed *p, int32_t panel, int32_t lanes, int32_t *sums)
{
    const qi_requant *r = &p->requant;
    int32_t const room = qi_panel_room(p, panel), first = panel * p->panel_channels;
    for (int32_t i = 0; i < room; i++) {
        int32_t const channel = first + qi_panel_channel(room / lanes, lanes, i);
        if (channel >= p->channels)
            continue;
        sums[i] = qi_requant_value(r, channel, sums[i]);
    }
}

void qi_requantize_ties(const qi_packed *p, int32_t panel, int32_t lanes, int32_t first,
                        uint32_t which, const int32_t *sums, int32_t *values)
{
    int32_t const room = qi_panel_room(p, panel), from = panel * p->panel_channels;
    for (int32_t i = 0; i < lanes; i++) {
        int32_t const channel = from + qi_panel_channel(room / lanes, lanes, first + i);
        if (which >> i & 1 && channel < p->channels)
            values[i] = qi_requant_value(&p->requant, channel, sums[i]);
    }
}

/** Store one row, QUAD channels at a time. */
static void store_row_of_sums(const int32_t *sums, int32_t room, int32_t lanes, int32_t channels,
                              uint8_t *y)
{
    for (int32_t i = 0; i < room; i += QUAD) {
        int32_t const channel = qi_panel_channel(room / lanes, lanes, i);
        int32_t const left = channels - channel;
        uint8_t *to = y + (size_t)channel * sizeof *sums;
        if (left >= QUAD)
            memcpy(to, sums + i, QUAD * sizeof *sums);
        else if (left > 0)
            memcpy(to, sums + i, (size_t)left * sizeof *sums);
    }
}

/* y points to the panel as if a channel took one byte, but it takes four. */
void qi_store_sums(const qi_packed *p, int32_t panel, int32_t lanes, const int32_t *sums,
                   int32_t rows, int32_t stride, int32_t channels, uint8_t *y, size_t y_stride)
{
    int32_t const room = qi_panel_room(p, panel);
    y += (sizeof *sums - 1) * (size_t)(panel * p->panel_channels);
    for (int32_t r = 0; r < rows; r++, sums += stride, y += y_stride)
        store_row_of_sums(sums, room, lanes, channels, y);
}
