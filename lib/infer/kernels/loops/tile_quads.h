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

#include "infer/kernels/loops/arm_dsp.h"
#include "infer/kernels/loops/requant_quick.h"
#include "infer/kernels/parts/tile_layout.h"

enum { QK_QUAD = 4 };

/** Is row r part of a quad? */
QK_INLINE int qk_in_quad(const qi_tile *t, int32_t r)
{
    return t->rows - r / QK_QUAD * QK_QUAD >= QK_QUAD - 1;
}

/** The place of the first block of row r. */
QK_INLINE int16_t *qk_row_of(const qi_tile *t, int32_t r, int32_t block)
{
    int32_t const quad = r / QK_QUAD * QK_QUAD;
    size_t const pitch = qi_tile_pitch(t->depth);
    return qk_in_quad(t, r) ? t->x + (size_t)quad * pitch + (size_t)((r - quad) * block)
                            : t->x + (size_t)r * pitch;
}

/** The zero_point of the weights. */
QK_INLINE int32_t qk_weight_zero(qi_codes c)
{
    return c.offset - c.flip;
}

/** The sum of the differences of one row, if it is needed. */
QK_INLINE int32_t qk_row_sum(const qi_tile *t, const uint8_t *codes)
{
    qi_codes const c = t->x_codes;
    int32_t sum = 0;
    if (qk_weight_zero(t->weight_codes))
        for (size_t k = 0; k < t->depth; k++)
            sum += (codes[k] ^ c.flip) - c.offset;
    return sum;
}

/** The sums of a quad. */
typedef struct qk_sums4 {
    int32_t a, b, c, d;
} qk_sums4;

/* ------------------------------------------------------------------ two products at a time */

/** Four codes as differences in the order of a block. */
QK_HOT void qk_put_block(int16_t *to, uint32_t word, uint32_t flips, uint32_t minus)
{
    uint32_t const codes = word ^ flips;
    qk_put_pair(to, qk_uxtab16(minus, codes), qk_uxtab16_odd(minus, codes));
}

/** The 1 to 3 bytes at the end of a row, filled up with `rest`. */
QK_INLINE uint32_t qk_last_word(const uint8_t *bytes, size_t n, uint8_t rest)
{
    uint32_t word = rest * UINT32_C(0x01010101);
    for (size_t i = n; i > 0; i--)
        word = word << 8 | bytes[i - 1];
    return word;
}

QK_INLINE void qk_dsp_lay_out(const qi_tile *t, int32_t r, const uint8_t *codes)
{
    size_t const step = qk_in_quad(t, r) ? 4 * QK_QUAD : 4, depth = t->depth;
    uint32_t const flips = t->x_codes.flip * UINT32_C(0x01010101);
    uint32_t const minus = qk_halves(-t->x_codes.offset, -t->x_codes.offset);
    int16_t *to = qk_row_of(t, r, 4);
    const uint8_t *const end = codes + depth / 4 * 4;
    for (; codes != end; codes += 4, to += step)
        qk_put_block(to, qk_word(codes), flips, minus);
    if (depth % 4)
        qk_put_block(to, qk_last_word(codes, depth % 4, qi_zero_byte(t->x_codes)), flips, minus);
}

/** Four weights as two words of two numbers. */
QK_HOT qk_pair qk_weights4(uint32_t word, int is_signed)
{
    qk_pair pair;
    pair.first = is_signed ? qk_sxtb16(word) : qk_uxtb16(word);
    pair.second = is_signed ? qk_sxtb16_odd(word) : qk_uxtb16_odd(word);
    return pair;
}

/** sum + four products. */
QK_HOT int32_t qk_add_pairs(int32_t sum, qk_pair a, qk_pair b)
{
    return qk_smlad(a.second, b.second, qk_smlad(a.first, b.first, sum));
}

/** sum + the products of four weights and a block of x. */
QK_HOT int32_t qk_add_block(int32_t sum, qk_pair w, const int16_t *x)
{
    return qk_add_pairs(sum, w, qk_pair_at(x));
}

/** Four weights with four rows. */
QK_HOT void qk_dsp_add_quad(qk_sums4 *sums, uint32_t word, const int16_t *x, int is_signed)
{
    qk_pair const w = qk_weights4(word, is_signed);
    sums->a = qk_add_block(sums->a, w, x);
    sums->b = qk_add_block(sums->b, w, x + 4);
    sums->c = qk_add_block(sums->c, w, x + 8);
    sums->d = qk_add_block(sums->d, w, x + 12);
}

QK_HOT qk_sums4 qk_dsp_quad(const uint8_t *w, const int16_t *x, size_t depth, int is_signed)
{
    const uint8_t *const end = w + depth / 4 * 4;
    qk_sums4 sums = {0, 0, 0, 0};
    if (depth & 4) {
        qk_dsp_add_quad(&sums, qk_word(w), x, is_signed);
        w += 4;
        x += 16;
    }
    for (; w != end; w += 8, x += 32) {
        qk_dsp_add_quad(&sums, qk_word(w), x, is_signed);
        qk_dsp_add_quad(&sums, qk_word(w + 4), x + 16, is_signed);
    }
    if (depth % 4)
        qk_dsp_add_quad(&sums, qk_last_word(w, depth % 4, 0), x, is_signed);
    return sums;
}

QK_HOT int32_t qk_dsp_row(const uint8_t *w, const int16_t *x, size_t depth, int is_signed)
{
    int32_t sum = 0;
    const uint8_t *const end = w + depth / 4 * 4;
    for (; w != end; w += 4, x += 4)
        sum = qk_add_block(sum, qk_weights4(qk_word(w), is_signed), x);
    if (depth % 4)
        sum = qk_add_block(sum, qk_weights4(qk_last_word(w, depth % 4, 0), is_signed), x);
    return sum;
}

/** sum + the products of the four weights at *w with a block of x; *w moves on. */
QK_HOT int32_t qk_add_next(int32_t sum, const uint8_t **w, qk_pair x, int is_signed)
{
#if QK_HAS_DSP && defined __GNUC__ /* one piece: spread out, four of them need too many registers  \
                                    */
    uint32_t word, even;
    if (is_signed)
        __asm__ volatile("ldr %2, [%1], #4\n\t"
                         "sxtb16 %3, %2\n\t"
                         "smlad %0, %3, %4, %0\n\t"
                         "sxtb16 %2, %2, ror #8\n\t"
                         "smlad %0, %2, %5, %0"
                         : "+r"(sum), "+r"(*w), "=&r"(word), "=&r"(even)
                         : "r"(x.first), "r"(x.second)
                         : "memory");
    else
        __asm__ volatile("ldr %2, [%1], #4\n\t"
                         "uxtb16 %3, %2\n\t"
                         "smlad %0, %3, %4, %0\n\t"
                         "uxtb16 %2, %2, ror #8\n\t"
                         "smlad %0, %2, %5, %0"
                         : "+r"(sum), "+r"(*w), "=&r"(word), "=&r"(even)
                         : "r"(x.first), "r"(x.second)
                         : "memory");
    return sum;
#else
    uint32_t const word = qk_word(*w);
    *w += sizeof word;
    return qk_add_pairs(sum, qk_weights4(word, is_signed), x);
#endif
}

/** One row with four channels, whose weights are `stride` bytes apart. */
QK_HOT qk_sums4 qk_dsp_row4(const uint8_t *w, size_t stride, const int16_t *x, size_t depth,
                            int is_signed)
{
    const int16_t *const end = x + depth / 4 * 4;
    const uint8_t *w1 = w + stride, *w2 = w1 + stride, *w3 = w2 + stride;
    qk_sums4 s = {0, 0, 0, 0};
    while (x != end) {
        qk_pair const block = qk_pair_at(x);
        x += 4;
        s.a = qk_add_next(s.a, &w, block, is_signed);
        s.b = qk_add_next(s.b, &w1, block, is_signed);
        s.c = qk_add_next(s.c, &w2, block, is_signed);
        s.d = qk_add_next(s.d, &w3, block, is_signed);
    }
    size_t const n = depth % 4;
    if (n) {
        s.a = qk_add_block(s.a, qk_weights4(qk_last_word(w, n, 0), is_signed), x);
        s.b = qk_add_block(s.b, qk_weights4(qk_last_word(w1, n, 0), is_signed), x);
        s.c = qk_add_block(s.c, qk_weights4(qk_last_word(w2, n, 0), is_signed), x);
        s.d = qk_add_block(s.d, qk_weights4(qk_last_word(w3, n, 0), is_signed), x);
    }
    return s;
}

/* ------------------------------------------------------------------ one at a time */

QK_INLINE void qk_plain_lay_out(const qi_tile *t, int32_t r, const uint8_t *codes)
{
    size_t const step = qk_in_quad(t, r) ? QK_QUAD : 1;
    qi_codes const c = t->x_codes;
    int16_t *to = qk_row_of(t, r, 1);
    for (size_t k = 0; k < t->depth; k++, to += step)
        *to = (int16_t)((codes[k] ^ c.flip) - c.offset);
}

QK_HOT int32_t qk_weight(uint8_t byte, int is_signed)
{
    return is_signed ? (int8_t)byte : byte;
}

/** sum + a b; it wraps. */
QK_HOT int32_t qk_add_product(int32_t sum, int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)sum + (uint32_t)(a * b));
}

/** One weight with four rows. */
QK_HOT void qk_plain_add_quad(qk_sums4 *sums, int32_t w, const int16_t *x)
{
    sums->a = qk_add_product(sums->a, w, x[0]);
    sums->b = qk_add_product(sums->b, w, x[1]);
    sums->c = qk_add_product(sums->c, w, x[2]);
    sums->d = qk_add_product(sums->d, w, x[3]);
}

QK_HOT qk_sums4 qk_plain_quad(const uint8_t *w, const int16_t *x, size_t depth, int is_signed)
{
    const uint8_t *const end = w + depth / 4 * 4;
    qk_sums4 sums = {0, 0, 0, 0};
    for (; w != end; w += 4, x += 16) {
        qk_plain_add_quad(&sums, qk_weight(w[0], is_signed), x);
        qk_plain_add_quad(&sums, qk_weight(w[1], is_signed), x + 4);
        qk_plain_add_quad(&sums, qk_weight(w[2], is_signed), x + 8);
        qk_plain_add_quad(&sums, qk_weight(w[3], is_signed), x + 12);
    }
    for (size_t k = 0; k < depth % 4; k++, x += 4)
        qk_plain_add_quad(&sums, qk_weight(w[k], is_signed), x);
    return sums;
}

QK_HOT int32_t qk_plain_row(const uint8_t *w, const int16_t *x, size_t depth, int is_signed)
{
    int32_t sum = 0;
    for (size_t k = 0; k < depth; k++)
        sum = qk_add_product(sum, qk_weight(w[k], is_signed), x[k]);
    return sum;
}

/** One row with four channels, whose weights are `stride` bytes apart. */
QK_HOT qk_sums4 qk_plain_row4(const uint8_t *w, size_t stride, const int16_t *x, size_t depth,
                              int is_signed)
{
    const uint8_t *const end = w + depth;
    const uint8_t *b = w + stride, *c = b + stride, *d = c + stride;
    qk_sums4 s = {0, 0, 0, 0};
    while (w != end) {
        int32_t const value = *x++;
        s.a = qk_add_product(s.a, qk_weight(*w++, is_signed), value);
        s.b = qk_add_product(s.b, qk_weight(*b++, is_signed), value);
        s.c = qk_add_product(s.c, qk_weight(*c++, is_signed), value);
        s.d = qk_add_product(s.d, qk_weight(*d++, is_signed), value);
    }
    return s;
}

/* ------------------------------------------------------------------ tiles */

/** The sums of a quad and one channel; of a row and four channels; of a row and one channel. */
QK_APART void qk_quad_dots_s8(const uint8_t *w, const int16_t *x, size_t depth, qk_sums4 *sums)
{
    *sums = QK_DSP ? qk_dsp_quad(w, x, depth, 1) : qk_plain_quad(w, x, depth, 1);
}
QK_APART void qk_quad_dots_u8(const uint8_t *w, const int16_t *x, size_t depth, qk_sums4 *sums)
{
    *sums = QK_DSP ? qk_dsp_quad(w, x, depth, 0) : qk_plain_quad(w, x, depth, 0);
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

QK_INLINE void qk_quads_row(qi_tile *t, int32_t r, const uint8_t *codes)
{
    t->sums[r] = qk_row_sum(t, codes);
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

/** One channel of all quads; w: its weights. */
QK_HOT void qk_run_channel(const qi_tile *t, int32_t o, const uint8_t *w, qk_clamping clamping)
{
    int const is_signed = t->weight_codes.flip != 0;
    int const is_quick = qk_is_quick(&t->requant, o) && !qk_weight_zero(t->weight_codes);
    qk_quick const q = qk_quick_of(&t->requant, o);
    size_t const x_step = QK_QUAD * qi_tile_pitch(t->depth), y_step = QK_QUAD * t->y_stride;
    const int16_t *x = t->x;
    uint8_t *y = (uint8_t *)t->y + t->y_at + (size_t)o;
    for (int32_t left = t->rows; left >= QK_QUAD - 1; left -= QK_QUAD, x += x_step, y += y_step) {
        qk_sums4 sums;
        if (is_signed)
            qk_quad_dots_s8(w, x, t->depth, &sums);
        else
            qk_quad_dots_u8(w, x, t->depth, &sums);
        if (is_quick && left >= QK_QUAD)
            qk_quick_store(&q, clamping, &sums, y, t->y_stride);
        else
            qk_store(t, o, t->rows - left, left, &sums, y);
    }
}

QK_HOT void qk_run_channels(const qi_tile *t, qk_clamping clamping)
{
    for (int32_t o = t->first_channel; o < t->end_channel; o++)
        qk_run_channel(t, o, qk_weights_of(t, o), clamping);
}

/** Channel o of a single row. */
QK_HOT void qk_store_one(const qi_tile *t, int32_t o, int32_t r, int32_t sum, uint8_t *y)
{
    const qi_requant *requant = &t->requant;
    int const is_plain = !qk_weight_zero(t->weight_codes);
    if (is_plain && qk_is_quick(requant, o)) {
        qk_quick const q = qk_quick_of(requant, o);
        y[o] = qk_quick_code(&q, QK_CLAMP_ANY, sum);
    } else if (is_plain && qk_is_small_double(requant, o)) {
        y[o] = qk_small_double_code(requant, o, qi_requant_accumulator(requant, o, sum));
    } else {
        y[o] = qk_tile_code(t, o, r, sum);
    }
}

/** A single row. Four channels share each value of x; what is left over, and packed weights, not.
 */
QK_APART void qk_run_row(const qi_tile *t, int32_t r)
{
    const int16_t *x = t->x + (size_t)r * qi_tile_pitch(t->depth);
    uint8_t *y = (uint8_t *)t->y + t->y_at + (size_t)r * t->y_stride;
    int const is_signed = t->weight_codes.flip != 0, is_packed = QK_PACKED && t->weights.packing;
    int32_t o = t->first_channel;
    for (; o + QK_QUAD <= t->end_channel && !is_packed; o += QK_QUAD) {
        const uint8_t *w = qk_weights_of(t, o);
        int32_t sums[QK_QUAD];
        qk_sums4 s;
        if (is_signed)
            qk_row_dots_s8(w, t->weights.bytes, x, t->depth, &s);
        else
            qk_row_dots_u8(w, t->weights.bytes, x, t->depth, &s);
        sums[0] = s.a;
        sums[1] = s.b;
        sums[2] = s.c;
        sums[3] = s.d;
        for (int32_t i = 0; i < QK_QUAD; i++)
            qk_store_one(t, o + i, r, sums[i], y);
    }
    for (; o < t->end_channel; o++)
        qk_store_one(t, o, r, qk_row_dot(qk_weights_of(t, o), x, t->depth, is_signed), y);
}

QK_INLINE void qk_run_quads(const qi_tile *t)
{
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
