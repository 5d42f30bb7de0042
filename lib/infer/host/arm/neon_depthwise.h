/**
 * Depthwise convolutions with NEON, for both of its multiplications. The including file first
 * defines
 *
 *   int32x4_t multiply_quads(int32x4_t sums, int8x16_t x, int8x16_t w, int apart)
 *       sums[c] + x[c, 4 rows] . w[c, 4 rows]        c < 4
 *
 * for signed bytes. apart: some w has two neighbours (0 and 1, or 2 and 3 of a quad) of -128.
 *
 * The x' of quads is unsigned. NEON takes x' - 128, and 128 sum w is added to the bias. A weight w
 * - Z_w outside -128..127 (only in uint8 models) is split into two that fit, and its group
 * multiplies twice.
 */
#ifndef QI_HOST_ARM_NEON_DEPTHWISE_H
#define QI_HOST_ARM_NEON_DEPTHWISE_H

#include "infer/host/arm/neon_tail.h"
#include "infer/host/loops/depthwise.h"
#include "infer/host/loops/even.h"

enum { LANES = QI_DEPTHWISE_LANES, VECTORS = LANES / QI_NEON_LANES, QUAD = 4 };
enum { TAP_BYTES = LANES * QUAD };

/**
 * The start of a packed group. Its weights [rows][taps][LANES][4] follow, then, if wide, the rests.
 */
typedef struct head {
    _Alignas(64) int32_t bias[LANES];
    int32_t mult[LANES], left[LANES], shift[LANES]; /* shift: -right */
    int32_t late_bias[LANES];
    int32_t even_left[LANES], even_right[LANES], even_add[LANES],
        even_span[LANES]; /* EVEN; even_right: -right */
    int32_t rows, taps, zero_point, lo, hi, fraction;
    int32_t spilled; /* some weights are split in two */
    int32_t apart;
    int32_t is_even, in_lanes; /* rounding EVEN; by the constants of even.h */
    uint8_t y_flip;
} head;

/* ------------------------------------------------------------------ packing */

static size_t group_bytes(int32_t rows, int32_t taps, int32_t wide)
{
    return sizeof(head) + (size_t)rows * (size_t)taps * (wide ? 2 : 1) * TAP_BYTES;
}

/**
 * bias + 128 sum w of lane i. Every row has all weights of the kernel, so the first row is enough.
 */
static int32_t shifted_bias(const qi_depthwise_group *group, int i)
{
    uint32_t sum = 0;
    for (int32_t tap = 0; tap < group->taps; tap++)
        for (int q = 0; q < QUAD; q++)
            sum += (uint32_t)group->weights[(tap * LANES + i) * QUAD + q];
    return (int32_t)((uint32_t)group->bias[i] + 128 * sum);
}

static void pack_lane(const qi_depthwise_group *group, int i, head *h)
{
    int32_t const shift = group->shift[i];
    h->bias[i] = shifted_bias(group, i);
    h->late_bias[i] = group->late_bias[i];
    h->mult[i] = group->mult[i];
    h->left[i] = shift > 0 ? shift : 0;
    h->shift[i] = shift < 0 ? shift : 0;
    if (group->tail == QI_DEPTHWISE_EVEN) {
        qi_even even;
        qi_even_of(group->mult[i], shift, group->max_accumulator, 1, &even);
        h->mult[i] = even.mult;
        h->even_left[i] = even.left;
        h->even_right[i] = -even.right;
        h->even_add[i] = even.add;
        h->even_span[i] = even.span;
    }
}

static int has_lowest_pair(const int8_t *w, size_t n)
{
    for (size_t i = 0; i < n; i += 2)
        if (w[i] == INT8_MIN && w[i + 1] == INT8_MIN)
            return 1;
    return 0;
}

/** Write the part of each weight that fits int8; after all of them, the rest of each. */
static void pack_weights(const qi_depthwise_group *group, head *h)
{
    size_t const n = (size_t)group->rows * (size_t)group->taps * TAP_BYTES;
    int8_t *fit = (int8_t *)(h + 1), *rest = fit + n;
    for (size_t i = 0; i < n; i++) {
        fit[i] = (int8_t)qi_clamp(group->weights[i], INT8_MIN, INT8_MAX);
        int8_t const over = (int8_t)(group->weights[i] - fit[i]);
        h->spilled |= over != 0;
        if (group->wide)
            rest[i] = over;
    }
    h->apart = has_lowest_pair(fit, n) || (group->wide && has_lowest_pair(rest, n));
}

static void pack(const qi_depthwise_group *group, void *to)
{
    head *h = to;
    memset(h, 0, sizeof *h);
    h->rows = group->rows;
    h->taps = group->taps;
    h->zero_point = group->zero_point;
    h->fraction = group->fraction;
    h->lo = group->lo;
    h->hi = group->hi;
    h->y_flip = group->y_flip;
    h->is_even = group->is_even;
    h->in_lanes = group->tail == QI_DEPTHWISE_EVEN;
    for (int i = 0; i < LANES; i++)
        pack_lane(group, i, h);
    pack_weights(group, h);
}

/* ------------------------------------------------------------------ quads */

static void interleave(const qi_depthwise_rows *rows, uint32_t *quads)
{
    uint8x16_t const flip = vdupq_n_u8(rows->flip);
    const uint8_t *row[4] = {rows->row[0], rows->row[1], rows->row[2], rows->row[3]};
    for (int32_t p = 0; p < rows->pixels; p++, quads += rows->width) {
        for (int32_t i = 0; i < rows->width; i += 16) {
            uint8x16x4_t bytes;
            for (int r = 0; r < 4; r++)
                bytes.val[r] = veorq_u8(vld1q_u8(row[r] + i), flip);
            vst4q_u8((uint8_t *)(quads + i), bytes);
        }
        for (int r = 0; r < 4; r++)
            row[r] += rows->pitch[r];
    }
}

/** x' - 128 of four quads. */
INLINE int8x16_t quads_at(const uint32_t *quads)
{
    uint8x16_t const bytes = vld1q_u8((const uint8_t *)quads);
    return vreinterpretq_s8_u8(veorq_u8(bytes, vdupq_n_u8(0x80)));
}

/* ------------------------------------------------------------------ columns */

/** Rounding EVEN, lane by lane. Not inlined, so that the sums of a column stay in registers. */
static __attribute__((noinline)) int32x4_t requantize_scalar(const head *h, int first,
                                                             int32x4_t sums)
{
    int32_t lane[QI_NEON_LANES];
    vst1q_s32(lane, sums);
    for (int i = 0; i < QI_NEON_LANES; i++)
        lane[i] = qi_requantize_even(lane[i], h->mult[first + i],
                                     h->left[first + i] + h->shift[first + i]);
    return vld1q_s32(lane);
}

INLINE int32x4_t requantize_even(const head *h, int i, int32x4_t sums)
{
    uint32x4_t equal;
    if (!h->in_lanes)
        return requantize_scalar(h, i, sums);
    int32x4_t const y = qi_requantize_even_lanes(
        sums, vld1q_s32(h->even_left + i), vld1q_s32(h->mult + i), vld1q_s32(h->even_add + i),
        vld1q_s32(h->even_span + i), vld1q_s32(h->even_right + i), &equal);
    return qi_all_lanes(equal) ? y : requantize_scalar(h, i, sums);
}

INLINE int32x4_t requantize(const head *h, int v, int32x4_t sums)
{
    int const i = v * QI_NEON_LANES;
    if (h->is_even)
        return requantize_even(h, i, sums);
    if (h->fraction)
        sums = vaddq_s32(vshlq_s32(sums, vdupq_n_s32(h->fraction)), vld1q_s32(h->late_bias + i));
    return qi_requantize_lanes(sums, vld1q_s32(h->left + i), vld1q_s32(h->mult + i),
                               vld1q_s32(h->shift + i));
}

INLINE void store(const head *h, const qi_neon_output *o, const int32x4_t sums[VECTORS], uint8_t *y)
{
    for (int v = 0; v < VECTORS; v += 2)
        vst1_u8(y + v * QI_NEON_LANES,
                qi_codes_of_lanes(o, requantize(h, v, sums[v]), requantize(h, v + 1, sums[v + 1])));
}

/** One row with a kernel of three taps, whose weights stay in registers. */
static void run_three(const qi_depthwise_line *l, const int8_t *weights, uint8_t *y)
{
    const head *h = l->group;
    qi_neon_output const o = qi_neon_output_of(h->zero_point, h->lo, h->hi, h->y_flip);
    const uint32_t *at[3] = {l->quads + l->offsets[0], l->quads + l->offsets[1],
                             l->quads + l->offsets[2]};
    int8x16_t w[3][VECTORS];
    for (int i = 0; i < 3 * VECTORS; i++)
        w[i / VECTORS][i % VECTORS] = vld1q_s8(weights + 16 * i);
    for (int32_t x = 0; x < l->columns; x++, y += l->y_step) {
        size_t const column = (size_t)x * (size_t)l->step;
        int32x4_t sums[VECTORS];
        for (int v = 0; v < VECTORS; v++) {
            sums[v] = vld1q_s32(h->bias + v * QI_NEON_LANES);
            for (int k = 0; k < 3; k++)
                sums[v] = multiply_quads(sums[v], quads_at(at[k] + column + v * QI_NEON_LANES),
                                         w[k][v], 0);
        }
        store(h, &o, sums, y);
    }
}

/** Add one column over all taps, with one set of weights. */
INLINE void add_taps(const qi_depthwise_line *l, const uint32_t *at, const int8_t *w, int apart,
                     int32x4_t sums[VECTORS])
{
    const head *h = l->group;
    for (int32_t k = 0; k < h->taps; k++, w += TAP_BYTES)
        for (int v = 0; v < VECTORS; v++)
            sums[v] = multiply_quads(sums[v], quads_at(at + l->offsets[k] + v * QI_NEON_LANES),
                                     vld1q_s8(w + 16 * v), apart);
}

/** One row with any kernel. */
INLINE void run_row(const qi_depthwise_line *l, const int8_t *w, int apart, uint8_t *y)
{
    const head *h = l->group;
    qi_neon_output const o = qi_neon_output_of(h->zero_point, h->lo, h->hi, h->y_flip);
    const int8_t *rest = w + (size_t)h->rows * (size_t)h->taps * TAP_BYTES;
    for (int32_t x = 0; x < l->columns; x++, y += l->y_step) {
        const uint32_t *at = l->quads + (size_t)x * (size_t)l->step;
        int32x4_t sums[VECTORS];
        for (int v = 0; v < VECTORS; v++)
            sums[v] = vld1q_s32(h->bias + v * QI_NEON_LANES);
        add_taps(l, at, w, apart, sums);
        if (h->spilled)
            add_taps(l, at, rest, apart, sums);
        store(h, &o, sums, y);
    }
}

static void run(const qi_depthwise_line *l)
{
    const head *h = l->group;
    const int8_t *w = (const int8_t *)(h + 1);
    for (int32_t r = 0; r < l->rows; r++, w += h->taps * TAP_BYTES)
        if (h->apart)
            run_row(l, w, 1, l->y[r]);
        else if (h->taps == 3 && !h->spilled)
            run_three(l, w, l->y[r]);
        else
            run_row(l, w, 0, l->y[r]);
}

#endif
