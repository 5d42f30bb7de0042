/** Dot products of quads and of single rows, two products at a time; see tile_quads.h. */
#ifndef QK_QUADS_DSP_H
#define QK_QUADS_DSP_H

#include "infer/kernels/loops/arm_dsp.h"
#include "infer/kernels/loops/quads.h"

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
/* One piece: spread out, four of them need too many registers. */
#if QK_HAS_DSP && defined __GNUC__ && defined __ARM_FEATURE_UNALIGNED
    uint32_t word, even;
    if (is_signed)
        __asm__ volatile("ldr %2, [%1], #4\n\t"
                         "sxtb16 %3, %2\n\t"
                         "smlad %0, %3, %4, %0\n\t"
                         "sxtb16 %2, %2, ror #8\n\t"
                         "smlad %0, %2, %5, %0"
                         : "+&r"(sum), "+&r"(*w), "=&r"(word), "=&r"(even)
                         : "r"(x.first), "r"(x.second)
                         : "memory");
    else
        __asm__ volatile("ldr %2, [%1], #4\n\t"
                         "uxtb16 %3, %2\n\t"
                         "smlad %0, %3, %4, %0\n\t"
                         "uxtb16 %2, %2, ror #8\n\t"
                         "smlad %0, %2, %5, %0"
                         : "+&r"(sum), "+&r"(*w), "=&r"(word), "=&r"(even)
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

/** One row of codes with two channels. */
QK_HOT void qk_dsp_codes2(const uint8_t *w, const uint8_t *w2, const uint8_t *codes, size_t depth,
                          qi_codes x, int is_signed, int32_t *sums)
{
    int32_t const zero_point = x.offset - x.flip;
    uint32_t const minus = qk_halves(-zero_point, -zero_point);
    const uint8_t *const end = codes + depth / 4 * 4;
    int32_t a = 0, b = 0;
    for (; codes != end; codes += 4) {
        qk_pair const block = qk_differences4(qk_word(codes), minus, x.flip != 0);
        a = qk_add_next(a, &w, block, is_signed);
        b = qk_add_next(b, &w2, block, is_signed);
    }
    size_t const n = depth % 4;
    if (n) {
        uint32_t const word = qk_last_word(codes, n, qi_zero_byte(x));
        qk_pair const block = qk_differences4(word, minus, x.flip != 0);
        a = qk_add_pairs(a, qk_weights4(qk_last_word(w, n, 0), is_signed), block);
        b = qk_add_pairs(b, qk_weights4(qk_last_word(w2, n, 0), is_signed), block);
    }
    sums[0] = a;
    sums[1] = b;
}

#endif
