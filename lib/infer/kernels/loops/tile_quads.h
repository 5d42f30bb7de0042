/**
 * Tiles of 8-bit codes for processors without vectors.
 *
 * Four rows of x, a quad, are multiplied by a row of weights at once: so each weight is loaded and
 * widened once for four products. The differences of a quad lie in the order in which the loop
 * reads them, a block of values of each row in turn. What is left over of three rows is a quad, of
 * which one row is not used; one or two rows lie alone, as blocks one after the other.
 *
 *   x  | block 0 of rows 0..3 | block 1 of rows 0..3 | .. || rows 4..7, or row 4, row 5 |
 *
 *   QK_DSP  a block has four values k..k+3 in the order k, k+2, k+1, k+3, in which SXTB16 widens
 *           four weights. The last block is filled up with zeros.
 *   else    a block has one value.
 *
 * Weights are multiplied as their bytes say, signed or unsigned. Where their zero_point is not 0,
 *
 *   sum over k of x[k] (w[k] - Z_w) = sum over k of x[k] w[k] - Z_w (sum over k of x[k])
 *
 * All sums may wrap, because the last one fits int32.
 */
#ifndef QI_TILE_QUADS_H
#define QI_TILE_QUADS_H

#include "infer/kernels/loops/quads_dsp.h"
#include "infer/kernels/loops/quads_plain.h"
#include "infer/kernels/loops/requant_quick.h"

/** The sums of a quad and one channel; of a row and four channels; of a row and one channel. */
QK_APART void qk_quad_dots_s8(const uint8_t *w, const int16_t *x, size_t depth, qk_sums4 *sums)
{
    *sums = QK_DSP ? qk_dsp_quad(w, x, depth, 1) : qk_plain_quad(w, x, depth, 1);
}
QK_APART void qk_quad_dots_u8(const uint8_t *w, const int16_t *x, size_t depth, qk_sums4 *sums)
{
    *sums = QK_DSP ? qk_dsp_quad(w, x, depth, 0) : qk_plain_quad(w, x, depth, 0);
}
QK_APART void qk_two_dots_s8(const uint8_t *w, const uint8_t *w2, const int16_t *x, size_t depth,
                             qk_sums4 *sums)
{
    qk_plain_two(w, w2, x, depth, 1, sums, sums + 1);
}
QK_APART void qk_two_dots_u8(const uint8_t *w, const uint8_t *w2, const int16_t *x, size_t depth,
                             qk_sums4 *sums)
{
    qk_plain_two(w, w2, x, depth, 0, sums, sums + 1);
}
QK_APART void qk_row_dots_s8(const uint8_t *w, size_t stride, const int16_t *x, size_t depth,
                             qk_sums4 *sums)
{
    *sums = QK_DSP ? qk_dsp_row4(w, stride, x, depth, 1) : qk_plain_row4(w, stride, x, depth, 1);
}
QK_APART void qk_row_dots_u8(const uint8_t *w, size_t stride, const int16_t *x, size_t depth,
                             qk_sums4 *sums)
{
    *sums = QK_DSP ? qk_dsp_row4(w, stride, x, depth, 0) : qk_plain_row4(w, stride, x, depth, 0);
}

QK_APART int32_t qk_row_dot(const uint8_t *w, const int16_t *x, size_t depth, int is_signed)
{
    return QK_DSP ? qk_dsp_row(w, x, depth, is_signed) : qk_plain_row(w, x, depth, is_signed);
}

/** Is this one row and at most two channels? To lay it out would take longer than to multiply. */
QK_INLINE int qk_has_few_channels(const qi_tile *t)
{
    return QK_FEW_CHANNELS && t->rows == 1 && t->end_channel - t->first_channel <= 2 &&
           !(QK_PACKED && t->weights.packing);
}

QK_INLINE void qk_quads_row(qi_tile *t, int32_t r, const uint8_t *codes)
{
    t->sums[r] = qk_row_sum(t, codes);
    t->codes = codes;
    if (qk_has_few_channels(t))
        return;
    if (QK_DSP)
        qk_dsp_lay_out(t, r, codes);
    else
        qk_plain_lay_out(t, r, codes);
}

/** The bytes of a channel's weights. */
QK_INLINE const uint8_t *qk_weights_of(const qi_tile *t, int32_t o)
{
    if (!QK_PACKED || !t->weights.packing)
        return t->weights.first + (size_t)o * t->weights.bytes;
    qi_unpack_row(&t->weights, (size_t)o, 0, t->depth, (uint8_t *)t->row);
    return (const uint8_t *)t->row;
}

/** The code of channel o of row r, for any layer. */
QK_APART uint8_t qk_tile_code(const qi_tile *t, int32_t o, int32_t r, int32_t sum)
{
    uint32_t const zero = (uint32_t)qk_weight_zero(t->weight_codes);
    int32_t const right = (int32_t)((uint32_t)sum - zero * (uint32_t)t->sums[r]);
    return (uint8_t)qi_requant_code(&t->requant, o, right);
}

/** Channel o of the quad from row r on, of which `count` rows are used, for any layer. */
QK_INLINE void qk_store(const qi_tile *t, int32_t o, int32_t r, int32_t count, const qk_sums4 *sums,
                        uint8_t *y)
{
    y[0] = qk_tile_code(t, o, r, sums->a);
    y[t->y_stride] = qk_tile_code(t, o, r + 1, sums->b);
    y[2 * t->y_stride] = qk_tile_code(t, o, r + 2, sums->c);
    if (count > 3)
        y[3 * t->y_stride] = qk_tile_code(t, o, r + 3, sums->d);
}

/** The same in the quick way. */
QK_HOT void qk_quick_store(const qk_quick *q, qk_clamping clamping, const qk_sums4 *sums,
                           uint8_t *y, size_t stride)
{
    y[0] = qk_quick_code(q, clamping, sums->a);
    y[stride] = qk_quick_code(q, clamping, sums->b);
    y[2 * stride] = qk_quick_code(q, clamping, sums->c);
    y[3 * stride] = qk_quick_code(q, clamping, sums->d);
}

/** A channel, and whether the quick way is the right one. */
typedef struct qk_channel {
    int32_t o, is_quick;
    qk_quick quick;
} qk_channel;

QK_HOT qk_channel qk_channel_of(const qi_tile *t, int32_t o)
{
    qk_channel c;
    c.o = o;
    c.is_quick = qk_is_quick(&t->requant, o) && !qk_weight_zero(t->weight_codes);
    c.quick = qk_quick_of(&t->requant, o);
    return c;
}

/** The codes of the next quad, of which `left` rows are left. y: the first of them. */
QK_HOT void qk_store_quad(const qi_tile *t, const qk_channel *c, int32_t left, const qk_sums4 *sums,
                          qk_clamping clamping, uint8_t *y)
{
    if (c->is_quick && left >= QK_QUAD)
        qk_quick_store(&c->quick, clamping, sums, y, t->y_stride);
    else
        qk_store(t, c->o, t->rows - left, left, sums, y);
}

/** One channel of all quads; w: its weights. */
QK_HOT void qk_run_channel(const qi_tile *t, int32_t o, const uint8_t *w, qk_clamping clamping)
{
    int const is_signed = t->weight_codes.flip != 0;
    qk_channel const c = qk_channel_of(t, o);
    size_t const x_step = QK_QUAD * qi_tile_pitch(t->depth), y_step = QK_QUAD * t->y_stride;
    const int16_t *x = t->x;
    uint8_t *y = (uint8_t *)t->y + t->y_at + (size_t)o;
    for (int32_t left = t->rows; left >= QK_QUAD - 1; left -= QK_QUAD, x += x_step, y += y_step) {
        qk_sums4 sums;
        if (is_signed)
            qk_quad_dots_s8(w, x, t->depth, &sums);
        else
            qk_quad_dots_u8(w, x, t->depth, &sums);
        qk_store_quad(t, &c, left, &sums, clamping, y);
    }
}

/** Two channels, o and the next one. */
QK_HOT void qk_run_two(const qi_tile *t, int32_t o, const uint8_t *w, qk_clamping clamping)
{
    int const is_signed = t->weight_codes.flip != 0;
    qk_channel const c = qk_channel_of(t, o), c2 = qk_channel_of(t, o + 1);
    size_t const x_step = QK_QUAD * qi_tile_pitch(t->depth), y_step = QK_QUAD * t->y_stride;
    const int16_t *x = t->x;
    uint8_t *y = (uint8_t *)t->y + t->y_at + (size_t)o;
    for (int32_t left = t->rows; left >= QK_QUAD - 1; left -= QK_QUAD, x += x_step, y += y_step) {
        qk_sums4 sums[2];
        if (is_signed)
            qk_two_dots_s8(w, w + t->weights.bytes, x, t->depth, sums);
        else
            qk_two_dots_u8(w, w + t->weights.bytes, x, t->depth, sums);
        qk_store_quad(t, &c, left, &sums[0], clamping, y);
        qk_store_quad(t, &c2, left, &sums[1], clamping, y + 1);
    }
}

QK_HOT void qk_run_channels(const qi_tile *t, qk_clamping clamping)
{
    int32_t o = t->first_channel;
    if (!QK_DSP && !QK_THUMB1 && !(QK_PACKED && t->weights.packing))
        for (; o + 1 < t->end_channel; o += 2)
            qk_run_two(t, o, qk_weights_of(t, o), clamping);
    for (; o < t->end_channel; o++)
        qk_run_channel(t, o, qk_weights_of(t, o), clamping);
}

/** The sums of row r, of any number of channels from o on, become codes. y: the first of them. */
QK_HOT void qk_store_row(const qi_tile *t, int32_t o, int32_t r, int32_t n, const int32_t *sums,
                         uint8_t *y)
{
    if (!qk_weight_zero(t->weight_codes))
        qk_few_codes(&t->requant, o, n, sums, y);
    else
        for (int32_t i = 0; i < n; i++)
            y[i] = qk_tile_code(t, o + i, r, sums[i]);
}

/** A row of one or two channels, from its codes. */
QK_APART void qk_run_few_channels(const qi_tile *t)
{
    int32_t const o = t->first_channel, n = t->end_channel - o;
    const uint8_t *w = qk_weights_of(t, o), *w2 = qk_weights_of(t, o + n - 1);
    int const is_signed = t->weight_codes.flip != 0;
    int32_t sums[2];
    if (QK_DSP)
        qk_dsp_codes2(w, w2, t->codes, t->depth, t->x_codes, is_signed, sums);
    else
        qk_plain_codes2(w, w2, t->codes, t->depth, t->x_codes, is_signed, sums);
    qk_store_row(t, o, 0, n, sums, (uint8_t *)t->y + t->y_at + o);
}

/** A single row. Four channels share each value of x, without QK_DSP also two; if packed, none. */
QK_APART void qk_run_row(const qi_tile *t, int32_t r)
{
    enum { MOST = 4 * QK_QUAD };
    const int16_t *x = t->x + (size_t)r * qi_tile_pitch(t->depth);
    uint8_t *y = (uint8_t *)t->y + t->y_at + (size_t)r * t->y_stride;
    int const is_signed = t->weight_codes.flip != 0, is_packed = QK_PACKED && t->weights.packing;
    int32_t sums[MOST];
    for (int32_t o = t->first_channel, n; o < t->end_channel; o += n) {
        int32_t const left = t->end_channel - o, most = left < MOST ? left : (int32_t)MOST;
        n = 0;
        for (; n + QK_QUAD <= most && !is_packed; n += QK_QUAD) {
            qk_sums4 *four = (qk_sums4 *)(void *)(sums + n);
            const uint8_t *w = qk_weights_of(t, o + n);
            if (is_signed)
                qk_row_dots_s8(w, t->weights.bytes, x, t->depth, four);
            else
                qk_row_dots_u8(w, t->weights.bytes, x, t->depth, four);
        }
        if (!QK_DSP && n + 2 <= most && !is_packed) {
            const uint8_t *w = qk_weights_of(t, o + n);
            qk_plain_row2(w, w + t->weights.bytes, x, t->depth, is_signed, sums + n);
            n += 2;
        }
        for (; n < most; n++)
            sums[n] = qk_row_dot(qk_weights_of(t, o + n), x, t->depth, is_signed);
        qk_store_row(t, o, r, n, sums, y + o);
    }
}

QK_INLINE void qk_run_quads(const qi_tile *t)
{
    if (qk_has_few_channels(t)) {
        qk_run_few_channels(t);
        return;
    }
    int32_t const left = t->rows % QK_QUAD, first = t->rows - left;
    switch (t->rows >= QK_QUAD - 1 ? qk_clamping_of(&t->requant) : QK_CLAMP_NONE) {
    case QK_CLAMP_S8:
        qk_run_channels(t, QK_CLAMP_S8);
        break;
    case QK_CLAMP_U8:
        qk_run_channels(t, QK_CLAMP_U8);
        break;
    case QK_CLAMP_ANY:
        qk_run_channels(t, QK_CLAMP_ANY);
        break;
    default:
        break;
    }
    for (int32_t r = first; left < QK_QUAD - 1 && r < t->rows; r++)
        qk_run_row(t, r);
}

#endif
