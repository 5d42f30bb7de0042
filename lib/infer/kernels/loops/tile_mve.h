/**
 * Tiles of 8-bit codes on processors with Helium: Cortex-M55, M85.
 *
 * Sixteen products of signed bytes are one instruction. The rows of x are the codes as signed
 * bytes, s_x = (byte ^ flip) - 128, and so are the weights. With a = 128 - offset of x, and b of
 * the weights,
 *
 *   sum of (s_x + a)(s_w + b) = sum of s_x s_w + a (sum of s_w) + b (sum of differences of x)
 *
 * The last sum is needed only where b is not 0. All sums may wrap, because the result fits int32.
 * Loops of which the last pass is shorter are the processor's own (WLSTP, LETP), which compilers do
 * not write yet.
 *
 * Four rows share the weights of a channel. Where a layer has only one row, four channels share it.
 */
#ifndef QI_TILE_MVE_H
#define QI_TILE_MVE_H

#include "infer/kernels/loops/requant_mve.h"
#include "infer/kernels/loops/requant_quick.h"
#include "infer/kernels/parts/tile_layout.h"

#if QK_MVE
#include <arm_mve.h>

/** Lay out row r. Its codes may be there already, as they are in x. */
QK_INLINE void qk_mve_row(qi_tile *t, int32_t r, const uint8_t *codes)
{
    uint8_t *to = (uint8_t *)t->x + (size_t)r * t->pitch;
    uint8x16_t const flips = vdupq_n_u8(qk_mve_flip(t->x_codes));
    int32_t sum = 0;
    for (int32_t left = (int32_t)t->depth; left > 0; left -= 16, codes += 16, to += 16) {
        mve_pred16_t const some = vctp8q((uint32_t)left);
        uint8x16_t const bytes = veorq_u8(vldrbq_z_u8(codes, some), flips);
        vstrbq_p_u8(to, bytes, some);
        sum = vaddvaq_p_s8(sum, vreinterpretq_s8_u8(bytes), some);
    }
    t->sums[r] = sum + (int32_t)t->depth * (128 - t->x_codes.offset);
}

/** Four rows of bytes. */
typedef struct qk_mve_four {
    const uint8_t *a, *b, *c, *d;
} qk_mve_four;

/**
 * For 16 bytes at a time of each of four rows: a, b, c and d add the row in q0 or q1 to a sum. At
 * first a is the number of bytes, at least 1.
 */
#define QK_MVE_LOOP(first, a, b, c, d)                                                             \
    "dlstp.8 lr, %[a]\n"                                                                           \
    "mov %[a], #0\n"                                                                               \
    "mov %[b], #0\n"                                                                               \
    "mov %[c], #0\n"                                                                               \
    "mov %[d], #0\n"                                                                               \
    "1:\n" first "vldrb.8 q0, [%[x0]], #16\n" a "vldrb.8 q1, [%[x1]], #16\n" b                     \
    "vldrb.8 q0, [%[x2]], #16\n" c "vldrb.8 q1, [%[x3]], #16\n" d "letp lr, 1b\n"                  \
    "vmov %q[sums][2], %q[sums][0], %[a], %[c]\n"                                                  \
    "vmov %q[sums][3], %q[sums][1], %[b], %[d]\n"

/** The sums of products of four rows with the row w. */
QK_HOT int32x4_t qk_mve_dots(const uint8_t *w, qk_mve_four x, size_t depth)
{
    int32x4_t sums;
    int32_t a = (int32_t)depth, b, c, d;
    __asm__ volatile(
        QK_MVE_LOOP("vldrb.8 q2, [%[w]], #16\n", "vmladava.s8 %[a], q0, q2\n",
                    "vmladava.s8 %[b], q1, q2\n", "vmladava.s8 %[c], q0, q2\n",
                    "vmladava.s8 %[d], q1, q2\n")
        : [w] "+&r"(w), [x0] "+&r"(x.a), [x1] "+&r"(x.b), [x2] "+&r"(x.c), [x3] "+&r"(x.d),
          [a] "+&Te"(a), [b] "=&Te"(b), [c] "=&Te"(c), [d] "=&Te"(d), [sums] "=&t"(sums)
        :
        : "q0", "q1", "q2", "lr", "memory");
    return sums;
}

/** The sums of the bytes of four rows. */
QK_HOT int32x4_t qk_mve_sums(qk_mve_four x, size_t depth)
{
    int32x4_t sums;
    int32_t a = (int32_t)depth, b, c, d;
    __asm__ volatile(
        QK_MVE_LOOP("", "vaddva.s8 %[a], q0\n", "vaddva.s8 %[b], q1\n", "vaddva.s8 %[c], q0\n",
                    "vaddva.s8 %[d], q1\n")
        : [x0] "+&r"(x.a), [x1] "+&r"(x.b), [x2] "+&r"(x.c), [x3] "+&r"(x.d), [a] "+&Te"(a),
          [b] "=&Te"(b), [c] "=&Te"(c), [d] "=&Te"(d), [sums] "=&t"(sums)
        :
        : "q0", "q1", "lr", "memory");
    return sums;
}

/** Can the weights be read where they are? */
QK_INLINE int qk_mve_reads_weights(const qi_tile *t)
{
    return !(QK_PACKED && t->weights.packing) && t->weight_codes.flip;
}

/** The weights of a channel as signed bytes. */
QK_INLINE const uint8_t *qk_mve_weights(const qi_tile *t, int32_t o)
{
    const uint8_t *first = t->weights.first + (size_t)o * t->weights.bytes;
    uint8_t *row = (uint8_t *)t->row;
    if (qk_mve_reads_weights(t))
        return first;
    if (QK_PACKED && t->weights.packing)
        qi_unpack_row(&t->weights, (size_t)o, 0, t->depth, row);
    else
        memcpy(row, first, t->depth);
    for (size_t i = 0; !t->weight_codes.flip && i < t->depth; i++)
        row[i] ^= 0x80;
    return row;
}

/** What is the same for all channels of a tile. */
typedef struct qk_mve_job {
    qk_mve_limits limits;
    uint32x4_t rows, places; /* of the four lanes: rows of x; values of y */
    uint32_t a, b;
    size_t x1, x2, x3; /* bytes from the first of four rows to the others */
} qk_mve_job;

/** Four rows at a time; of fewer rows, the last one fills the lanes that are left. */
QK_INLINE qk_mve_job qk_mve_job_of(const qi_tile *t)
{
    uint32_t const last = t->rows < 4 ? (uint32_t)t->rows - 1 : 3;
    qk_mve_job j;
    j.limits = qk_mve_limits_of(t->requant.zero_point, t->requant.lo, t->requant.hi);
    j.rows = vminq_u32(vidupq_n_u32(0, 1), vdupq_n_u32(last));
    j.places = vmulq_n_u32(j.rows, (uint32_t)t->y_stride);
    j.a = (uint32_t)(128 - t->x_codes.offset);
    j.b = (uint32_t)(128 - t->weight_codes.offset);
    j.x1 = (last < 1 ? last : 1) * t->pitch;
    j.x2 = (last < 2 ? last : 2) * t->pitch;
    j.x3 = last * t->pitch;
    return j;
}

/** Channel o of all rows. The last four rows may be computed in part a second time. */
QK_INLINE void qk_mve_channel(const qi_tile *t, const qk_mve_job *j, int32_t o, const uint8_t *w)
{
    qk_mve_scale const scale = qk_mve_scale_of_rows(&t->requant, o);
    int32_t const sum = (int32_t)(j->a * (uint32_t)qk_mve_sum(w, t->depth));
    int32_t const last = t->rows < 4 ? 0 : t->rows - 4;
    int8_t *y = (int8_t *)t->y + t->y_at + (size_t)o;
    for (int32_t next = 0; next < t->rows; next += 4) {
        int32_t const r = next < last ? next : last;
        qk_mve_four x;
        x.a = t->codes + (size_t)r * t->pitch;
        x.b = x.a + j->x1;
        x.c = x.a + j->x2;
        x.d = x.a + j->x3;
        int32x4_t sums = vaddq_n_s32(qk_mve_dots(w, x, t->depth), sum);
        if (j->b) {
            int32x4_t const of_x = vldrwq_gather_shifted_offset_s32(t->sums + r, j->rows);
            sums = vaddq_s32(sums, vmulq_n_s32(of_x, (int32_t)j->b));
        }
        sums = qk_mve_codes(&t->requant, &scale, &j->limits, o, 0, sums);
        vstrbq_scatter_offset_s32(y + (size_t)r * t->y_stride, j->places, sums);
    }
}

/** What four channels are, in the order in which qk_mve_quick_rows reads it. */
typedef struct qk_mve_channels {
    int32_t constants[4]; /* the sums begin with them */
    qk_mve_four w;
    size_t y_step;
    const uint8_t *y_end;
    size_t x_gap; /* from what was read of a row of x to the next row */
} qk_mve_channels;

/** All rows of four channels in the quick way. */
QK_INLINE void qk_mve_quick_rows(const qi_tile *t, const qk_mve_channels *c,
                                 const qk_mve_scale *scale, const qk_mve_limits *l, uint8_t *y)
{
    const uint8_t *x = t->codes;
    int32x4_t const zero = vdupq_n_s32(l->zero_point);
    int32_t sum0, sum1, sum2, sum3;
    const uint8_t *w0, *w1, *w2, *w3;
    __asm__ volatile(
        "1:\n"
        "ldrd %[a], %[b], [%[c]]\n"
        "ldrd %[cc], %[d], [%[c], #8]\n"
        "ldrd %[w0], %[w1], [%[c], #16]\n"
        "ldrd %[w2], %[w3], [%[c], #24]\n"
        "wlstp.8 lr, %[n], 3f\n"
        "2:\n"
        "vldrb.8 q2, [%[x]], #16\n"
        "vldrb.8 q0, [%[w0]], #16\n"
        "vmladava.s8 %[a], q0, q2\n"
        "vldrb.8 q1, [%[w1]], #16\n"
        "vmladava.s8 %[b], q1, q2\n"
        "vldrb.8 q0, [%[w2]], #16\n"
        "vmladava.s8 %[cc], q0, q2\n"
        "vldrb.8 q1, [%[w3]], #16\n"
        "vmladava.s8 %[d], q1, q2\n"
        "letp lr, 2b\n"
        "3:\n"
        "vmov q0[2], q0[0], %[a], %[cc]\n"
        "vmov q0[3], q0[1], %[b], %[d]\n"
        "ldrd %[w0], %[w1], [%[c], #32]\n"
        "vqrdmulh.s32 q0, q0, %q[mult]\n"
        "vshr.s32 q1, q0, #31\n"
        "vadd.i32 q0, q0, q1\n"
        "ldr %[w2], [%[c], #40]\n"
        "vrshl.s32 q0, q0, %q[shift]\n"
        "vadd.i32 q0, q0, %q[zero]\n"
        "vmax.s32 q0, q0, %q[lo]\n"
        "vmin.s32 q0, q0, %q[hi]\n"
        "add %[x], %[w2]\n"
        "vstrb.32 q0, [%[y]]\n"
        "add %[y], %[w0]\n"
        "cmp %[y], %[w1]\n"
        "bne 1b\n"
        : [x] "+&r"(x), [y] "+&r"(y), [a] "=&Te"(sum0), [b] "=&Te"(sum1), [cc] "=&Te"(sum2),
          [d] "=&Te"(sum3), [w0] "=&r"(w0), [w1] "=&r"(w1), [w2] "=&r"(w2), [w3] "=&r"(w3)
        : [c] "r"(c), [n] "r"(t->depth), [mult] "t"(scale->mult), [shift] "t"(scale->shift),
          [zero] "t"(zero), [lo] "t"(l->lo), [hi] "t"(l->hi)
        : "q0", "q1", "q2", "lr", "cc", "memory");
}

/** All rows of the channels o..o+3 in any way. */
QK_APART void qk_mve_rows(const qi_tile *t, const qk_mve_channels *c, const qk_mve_scale *scale,
                          const qk_mve_limits *l, int32_t o, uint8_t *y)
{
    uint32_t const b = (uint32_t)(128 - t->weight_codes.offset);
    int32x4_t const extra = vsubq_s32(vldrwq_s32(c->constants), scale->bias);
    const uint8_t *x = t->codes;
    for (int32_t r = 0; r < t->rows; r++, x += t->pitch, y += t->y_stride) {
        int32x4_t sums = vaddq_s32(qk_mve_dots(x, c->w, t->depth), extra);
        if (b)
            sums = vaddq_n_s32(sums, (int32_t)(b * (uint32_t)t->sums[r]));
        vstrbq_s32((int8_t *)y, qk_mve_codes(&t->requant, scale, l, o, 1, sums));
    }
}

QK_INLINE qk_mve_four qk_mve_four_weights(const qi_tile *t, int32_t o)
{
    size_t const bytes = t->weights.bytes;
    qk_mve_four w;
    w.a = t->weights.first + (size_t)o * bytes;
    w.b = w.a + bytes;
    w.c = w.b + bytes;
    w.d = w.c + bytes;
    return w;
}

/** All channels, at least four, of any number of rows. The last four may overlap others. */
QK_INLINE void qk_mve_fours(const qi_tile *t)
{
    qk_mve_limits const limits =
        qk_mve_limits_of(t->requant.zero_point, t->requant.lo, t->requant.hi);
    int32_t const a = 128 - t->x_codes.offset, last = t->end_channel - 4;
    qk_mve_channels c;
    c.y_step = t->y_stride;
    c.x_gap = t->pitch - (t->depth + 15) / 16 * 16;
    for (int32_t next = t->first_channel; next < t->end_channel; next += 4) {
        int32_t const o = next < last ? next : last;
        uint8_t *y = (uint8_t *)t->y + t->y_at + (size_t)o;
        qk_mve_scale const scale = qk_mve_scale_of(&t->requant, o);
        c.w = qk_mve_four_weights(t, o);
        c.y_end = y + (size_t)t->rows * t->y_stride;
        vstrwq_s32(c.constants, vmlaq_n_s32(scale.bias, qk_mve_sums(c.w, t->depth), a));
        if (scale.way == QK_MVE_QUICK && t->weight_codes.offset == 128)
            qk_mve_quick_rows(t, &c, &scale, &limits, y);
        else
            qk_mve_rows(t, &c, &scale, &limits, o, y);
    }
}

/**
 * Write a row of x as two, the sum of which is x - offset, or if the offset is below 128 offset -
 * x: so each fits a byte. Then there is no need for sums of weights.
 */
QK_INLINE void qk_mve_halve(const qi_tile *t, uint8_t *half)
{
    const uint8_t *x = t->codes;
    uint8x16_t const offset = vdupq_n_u8((uint8_t)t->x_codes.offset), flips = vdupq_n_u8(0x80);
    uint8_t *rest = half + qi_tile_pitch(t->depth);
    for (int32_t left = (int32_t)t->depth; left > 0; left -= 16, x += 16, half += 16, rest += 16) {
        mve_pred16_t const some = vctp8q((uint32_t)left);
        uint8x16_t const codes = veorq_u8(vldrbq_z_u8(x, some), flips);
        uint8x16_t const from = t->x_codes.offset < 128 ? offset : codes;
        uint8x16_t const what = t->x_codes.offset < 128 ? codes : offset;
        uint8x16_t const first = vhsubq_u8(from, what);
        vstrbq_p_u8(half, first, some);
        vstrbq_p_u8(rest, vsubq_u8(vsubq_u8(from, what), first), some);
    }
}

/** The sums of products of four rows with the sum of two. */
QK_HOT int32x4_t qk_mve_dots_halves(const uint8_t *half, const uint8_t *rest, qk_mve_four w,
                                    size_t depth)
{
    int32x4_t sums;
    int32_t a = (int32_t)depth, b, c, d;
    __asm__ volatile(QK_MVE_LOOP("vldrb.8 q2, [%[half]], #16\n"
                                 "vldrb.8 q3, [%[rest]], #16\n",
                                 "vmladava.s8 %[a], q0, q2\nvmladava.s8 %[a], q0, q3\n",
                                 "vmladava.s8 %[b], q1, q2\nvmladava.s8 %[b], q1, q3\n",
                                 "vmladava.s8 %[c], q0, q2\nvmladava.s8 %[c], q0, q3\n",
                                 "vmladava.s8 %[d], q1, q2\nvmladava.s8 %[d], q1, q3\n")
                     : [half] "+&r"(half), [rest] "+&r"(rest), [x0] "+&r"(w.a), [x1] "+&r"(w.b),
                       [x2] "+&r"(w.c), [x3] "+&r"(w.d), [a] "+&Te"(a), [b] "=&Te"(b),
                       [c] "=&Te"(c), [d] "=&Te"(d), [sums] "=&t"(sums)
                     :
                     : "q0", "q1", "q2", "q3", "lr", "memory");
    return sums;
}

/** A single row of one to three channels, with a sum of weights for each. */
QK_INLINE void qk_mve_few_channels(const qi_tile *t)
{
    int32_t const count = t->end_channel - t->first_channel;
    uint32_t const a = (uint32_t)(128 - t->x_codes.offset);
    uint32_t const b = (uint32_t)(128 - t->weight_codes.offset);
    uint32_t const extra = b ? b * (uint32_t)t->sums[0] : 0;
    const uint8_t *w = t->weights.first + (size_t)t->first_channel * t->weights.bytes;
    int32_t sums[4];
    for (int32_t i = 0; i < count; i++, w += t->weights.bytes) {
        uint32_t const of_weights = (uint32_t)qk_mve_sum(w, t->depth);
        sums[i] = (int32_t)((uint32_t)qk_mve_dot(w, t->codes, t->depth) + a * of_weights + extra);
    }
    qk_few_codes(&t->requant, t->first_channel, count, sums,
                 (uint8_t *)t->y + t->y_at + t->first_channel);
}

/** The same for a single row. */
QK_INLINE void qk_mve_single(const qi_tile *t)
{
    qk_mve_limits const limits =
        qk_mve_limits_of(t->requant.zero_point, t->requant.lo, t->requant.hi);
    int32_t const last = t->end_channel - 4, b = 128 - t->weight_codes.offset;
    int32_t const extra = b ? (int32_t)((uint32_t)b * (uint32_t)t->sums[0]) : 0;
    int32_t const sign = t->x_codes.offset < 128 ? -1 : 1;
    int8_t *y = (int8_t *)t->y + t->y_at;
    uint8_t *half = (uint8_t *)t->x;
    const uint8_t *rest = half + qi_tile_pitch(t->depth);
    qk_mve_halve(t, half);
    for (int32_t next = t->first_channel; next < t->end_channel; next += 4) {
        int32_t const o = next < last ? next : last;
        qk_mve_scale const scale = qk_mve_scale_of(&t->requant, o);
        int32x4_t sums = qk_mve_dots_halves(half, rest, qk_mve_four_weights(t, o), t->depth);
        sums = vaddq_n_s32(vmulq_n_s32(sums, sign), extra);
        vstrbq_s32(y + o, qk_mve_codes(&t->requant, &scale, &limits, o, 1, sums));
    }
}

QK_INLINE void qk_run_mve(const qi_tile *t)
{
    int const is_read = qk_mve_reads_weights(t), is_few = t->end_channel - t->first_channel < 4;
    if (is_read && !is_few) {
        if (t->rows == 1)
            qk_mve_single(t);
        else
            qk_mve_fours(t);
        return;
    }
    if (QK_FEW_CHANNELS && is_read && t->rows == 1) {
        qk_mve_few_channels(t);
        return;
    }
    qk_mve_job const j = qk_mve_job_of(t);
    for (int32_t o = t->first_channel; o < t->end_channel; o++)
        qk_mve_channel(t, &j, o, qk_mve_weights(t, o));
}

#else

QK_INLINE void qk_mve_row(qi_tile *t, int32_t r, const uint8_t *codes)
{
    (void)t;
    (void)r;
    (void)codes;
}
QK_INLINE void qk_run_mve(const qi_tile *t)
{
    (void)t;
}

#endif

#endif
