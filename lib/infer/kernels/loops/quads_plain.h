/** Dot products of quads and of single rows, one product at a time; see tile_quads.h. */
#ifndef QK_QUADS_PLAIN_H
#define QK_QUADS_PLAIN_H

#include "infer/kernels/loops/quads.h"

/*
 * Cortex-M0, M0+: most instructions use the first eight registers alone. With -Os gcc does not use
 * the others at all.
 */
#if defined __thumb__ && !defined __thumb2__ && defined __GNUC__ && !defined __OPTIMIZE_SIZE__
#define QK_THUMB1 1
#else
#define QK_THUMB1 0
#endif

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

#if QK_THUMB1
/** The products of two rows, whose values are in one word, at `at`. */
#define QK_THUMB1_TWO(at, sum, sum2)                                                               \
    "ldr %[p], [%[x], #" at "]\n"                                                                  \
    "asrs %[q], %[p], #16\n"                                                                       \
    "sxth %[p], %[p]\n"                                                                            \
    "muls %[p], %[w], %[p]\n"                                                                      \
    "muls %[q], %[w], %[q]\n"                                                                      \
    "add %[" sum "], %[p]\n"                                                                       \
    "add %[" sum2 "], %[q]\n"

/**
 * The end of a loop over weights; k is negative. What the loops change, such as k, equals no other
 * operand, and is not marked with "&": with it gcc lacks a register if it keeps a frame pointer.
 */
#define QK_THUMB1_NEXT                                                                             \
    "adds %[k], #1\n"                                                                              \
    "bne 1b\n"

/** The loop of qk_plain_quad. `load`: ldrsb or ldrb, of a weight. */
#define QK_THUMB1_QUAD(load)                                                                       \
    __asm__ volatile(".syntax unified\n"                                                           \
                     "1:\n" load " %[w], [%[end], %[k]]\n" QK_THUMB1_TWO("0", "a", "b")            \
                         QK_THUMB1_TWO("4", "c", "d") "adds %[x], #8\n" QK_THUMB1_NEXT             \
                     : [k] "+l"(k), [x] "+l"(x), [a] "+&h"(s.a), [b] "+&h"(s.b), [c] "+&h"(s.c),   \
                       [d] "+&h"(s.d), [w] "=&l"(weight), [p] "=&l"(p), [q] "=&l"(q)               \
                     : [end] "l"(w + depth)                                                        \
                     : "cc", "memory")

QK_HOT qk_sums4 qk_plain_quad(const uint8_t *w, const int16_t *x, size_t depth, int is_signed)
{
    qk_sums4 s = {0, 0, 0, 0};
    int32_t k = -(int32_t)depth, weight, p, q;
    if (is_signed)
        QK_THUMB1_QUAD("ldrsb");
    else
        QK_THUMB1_QUAD("ldrb");
    return s;
}
#else
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
#endif

/** The next value of x, with a weight of each of two channels. */
QK_HOT void qk_plain_add_two(const int16_t **x, int32_t w, int32_t w2, int32_t *sum, int32_t *sum2)
{
#if defined __thumb2__ && defined __GNUC__ /* in one piece it needs no further register */
    int32_t value;
    __asm__ volatile("ldrsh %0, [%1], #2\n\t"
                     "mla %2, %0, %4, %2\n\t"
                     "mla %3, %0, %5, %3"
                     : "=&r"(value), "+&r"(*x), "+&r"(*sum), "+&r"(*sum2)
                     : "r"(w), "r"(w2)
                     : "memory");
#else
    int32_t const value = *(*x)++;
    *sum = qk_add_product(*sum, w, value);
    *sum2 = qk_add_product(*sum2, w2, value);
#endif
}

/** A quad with two channels: so each value of x is loaded once for two products. */
QK_HOT void qk_plain_two(const uint8_t *w, const uint8_t *w2, const int16_t *x, size_t depth,
                         int is_signed, qk_sums4 *sums, qk_sums4 *sums2)
{
    const uint8_t *const end = w + depth;
    qk_sums4 s = {0, 0, 0, 0}, s2 = {0, 0, 0, 0};
    while (w != end) {
        int32_t const weight = qk_weight(*w++, is_signed), weight2 = qk_weight(*w2++, is_signed);
        qk_plain_add_two(&x, weight, weight2, &s.a, &s2.a);
        qk_plain_add_two(&x, weight, weight2, &s.b, &s2.b);
        qk_plain_add_two(&x, weight, weight2, &s.c, &s2.c);
        qk_plain_add_two(&x, weight, weight2, &s.d, &s2.d);
    }
    *sums = s;
    *sums2 = s2;
}

QK_HOT int32_t qk_plain_row(const uint8_t *w, const int16_t *x, size_t depth, int is_signed)
{
    int32_t sum = 0;
    for (size_t k = 0; k < depth; k++)
        sum = qk_add_product(sum, qk_weight(w[k], is_signed), x[k]);
    return sum;
}

/** One row with two channels. */
QK_HOT void qk_plain_row2(const uint8_t *w, const uint8_t *w2, const int16_t *x, size_t depth,
                          int is_signed, int32_t *sums)
{
    int32_t a = 0, b = 0;
    for (const uint8_t *const end = w + depth; w != end;) {
        int32_t const value = *x++;
        a = qk_add_product(a, qk_weight(*w++, is_signed), value);
        b = qk_add_product(b, qk_weight(*w2++, is_signed), value);
    }
    sums[0] = a;
    sums[1] = b;
}

#if QK_THUMB1
/** The products of the value with a weight of each of two channels. */
#define QK_THUMB1_CHANNELS(load, end, sum, sum2)                                                   \
    load " %[p], [%[" end "], %[k]]\n"                                                             \
         "muls %[p], %[value], %[p]\n"                                                             \
         "add %[" sum "], %[p]\n" load " %[p], [%[" end "], %[k2]]\n"                              \
         "muls %[p], %[value], %[p]\n"                                                             \
         "add %[" sum2 "], %[p]\n"

/** The loop of qk_plain_row4. k2 = k + stride. */
#define QK_THUMB1_ROW4(load)                                                                       \
    __asm__ volatile(                                                                              \
        ".syntax unified\n"                                                                        \
        "1:\n"                                                                                     \
        "ldrh %[value], [%[x]]\n"                                                                  \
        "sxth %[value], %[value]\n"                                                                \
        "adds %[x], #2\n" QK_THUMB1_CHANNELS(load, "end_a", "a", "b")                              \
            QK_THUMB1_CHANNELS(load, "end_c", "c", "d") "adds %[k2], #1\n" QK_THUMB1_NEXT          \
        : [k] "+l"(k), [k2] "+l"(k2), [x] "+l"(x), [a] "+&h"(s.a), [b] "+&h"(s.b), [c] "+&h"(s.c), \
          [d] "+&h"(s.d), [value] "=&l"(value), [p] "=&l"(p)                                       \
        : [end_a] "l"(end), [end_c] "l"(end + 2 * stride)                                          \
        : "cc", "memory")

/** One row with four channels, whose weights are `stride` bytes apart. */
QK_HOT qk_sums4 qk_plain_row4(const uint8_t *w, size_t stride, const int16_t *x, size_t depth,
                              int is_signed)
{
    const uint8_t *const end = w + depth;
    qk_sums4 s = {0, 0, 0, 0};
    int32_t k = -(int32_t)depth, k2 = k + (int32_t)stride, value, p;
    if (is_signed)
        QK_THUMB1_ROW4("ldrsb");
    else
        QK_THUMB1_ROW4("ldrb");
    return s;
}
#else
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
#endif

/** One row of codes with two channels. */
QK_HOT void qk_plain_codes2(const uint8_t *w, const uint8_t *w2, const uint8_t *codes, size_t depth,
                            qi_codes x, int is_signed, int32_t *sums)
{
    int32_t a = 0, b = 0;
    for (const uint8_t *const end = codes + depth; codes != end; codes++) {
        int32_t const value = (*codes ^ x.flip) - x.offset;
        a = qk_add_product(a, qk_weight(*w++, is_signed), value);
        b = qk_add_product(b, qk_weight(*w2++, is_signed), value);
    }
    sums[0] = a;
    sums[1] = b;
}

#endif
