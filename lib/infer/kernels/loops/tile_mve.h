/**
 * Tiles of 8-bit codes on processors with Helium: Cortex-M55, M85.
 *
 * Sixteen products of signed bytes are one instruction. The rows of x are the codes as signed
 * bytes, s_x = (byte ^ flip) - 128, and so are the weights. With a = 128 - offset of x, and b of
 * the weights,
 *
 *   sum of (s_x + a)(s_w + b) = sum of s_x s_w + a (sum of s_w) + b (sum of differences of x)
 *
 * The sum of s_w is found on the way. The last one is needed only where b is not 0. Loops of which
 * the last pass is shorter are the processor's own (WLSTP, LETP), which compilers do not write yet.
 * All sums may wrap, because the last one fits int32.
 */
#ifndef QI_TILE_MVE_H
#define QI_TILE_MVE_H

#include "infer/kernels/loops/requant_quick.h"
#include "infer/kernels/parts/tile_layout.h"

#if QK_MVE
#include <arm_mve.h>

/** Bytes as signed codes: they are flipped so. */
QK_INLINE uint8_t qk_mve_flip(qi_codes c)
{
    return (uint8_t)(c.flip ^ 0x80);
}

QK_INLINE void qk_mve_row(qi_tile *t, int32_t r, const uint8_t *codes)
{
    uint8_t *to = (uint8_t *)t->x + (size_t)r * qi_tile_pitch(t->depth);
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

/** The sums of four rows with one channel, or of one row with two; and of weights. */
typedef struct qk_mve_sums {
    int32_t a, b, c, d, weights, weights2;
} qk_mve_sums;

/** One channel with four rows, `pitch` bytes apart. flip: "" or a line that flips q0. */
#define QK_MVE_QUAD(flip)                                                                          \
    __asm__ volatile("wlstp.8 lr, %[n], 2f\n"                                                      \
                     "1:\n"                                                                        \
                     "vldrb.8 q0, [%[w]], #16\n" flip "vldrb.8 q1, [%[x0]], #16\n"                 \
                     "vaddva.s8 %[s], q0\n"                                                        \
                     "vmladava.s8 %[a], q0, q1\n"                                                  \
                     "vldrb.8 q2, [%[x1]], #16\n"                                                  \
                     "vmladava.s8 %[b], q0, q2\n"                                                  \
                     "vldrb.8 q1, [%[x2]], #16\n"                                                  \
                     "vmladava.s8 %[c], q0, q1\n"                                                  \
                     "vldrb.8 q2, [%[x3]], #16\n"                                                  \
                     "vmladava.s8 %[d], q0, q2\n"                                                  \
                     "letp lr, 1b\n"                                                               \
                     "2:\n"                                                                        \
                     : [w] "+r"(w), [x0] "+r"(x0), [x1] "+r"(x1), [x2] "+r"(x2), [x3] "+r"(x3),    \
                       [a] "+Te"(a), [b] "+Te"(b), [c] "+Te"(c), [d] "+Te"(d), [s] "+Te"(s)        \
                     : [n] "r"(depth), [flips] "t"(flips)                                          \
                     : "q0", "q1", "q2", "lr", "memory")

QK_APART void qk_mve_quad(const uint8_t *w, const uint8_t *x0, size_t pitch, size_t depth,
                          uint8_t flip, qk_mve_sums *sums)
{
    const uint8_t *x1 = x0 + pitch, *x2 = x1 + pitch, *x3 = x2 + pitch;
    uint8x16_t const flips = vdupq_n_u8(flip);
    int32_t a = 0, b = 0, c = 0, d = 0, s = 0;
    if (flip) {
        QK_MVE_QUAD("veor q0, q0, %q[flips]\n");
    } else {
        QK_MVE_QUAD("");
    }
    sums->a = a;
    sums->b = b;
    sums->c = c;
    sums->d = d;
    sums->weights = s;
}

/** One row with the weights of two channels. */
QK_APART void qk_mve_two(const uint8_t *w0, const uint8_t *w1, const uint8_t *x, size_t depth,
                         uint8_t flip, qk_mve_sums *sums)
{
    uint8x16_t const flips = vdupq_n_u8(flip);
    int32_t a = 0, b = 0, s = 0, s2 = 0;
    __asm__ volatile("wlstp.8 lr, %[n], 2f\n"
                     "1:\n"
                     "vldrb.8 q0, [%[x]], #16\n"
                     "vldrb.8 q1, [%[w0]], #16\n"
                     "veor q1, q1, %q[flips]\n"
                     "vldrb.8 q2, [%[w1]], #16\n"
                     "veor q2, q2, %q[flips]\n"
                     "vmladava.s8 %[a], q0, q1\n"
                     "vaddva.s8 %[s], q1\n"
                     "vmladava.s8 %[b], q0, q2\n"
                     "vaddva.s8 %[s2], q2\n"
                     "letp lr, 1b\n"
                     "2:\n"
                     : [w0] "+r"(w0), [w1] "+r"(w1), [x] "+r"(x), [a] "+Te"(a), [b] "+Te"(b),
                       [s] "+Te"(s), [s2] "+Te"(s2)
                     : [n] "r"(depth), [flips] "t"(flips)
                     : "q0", "q1", "q2", "lr", "memory");
    sums->a = a;
    sums->b = b;
    sums->weights = s;
    sums->weights2 = s2;
}

/** The bytes of a channel's weights. */
QK_INLINE const uint8_t *qk_mve_weights(const qi_tile *t, int32_t o)
{
    if (!QK_PACKED || !t->weights.packing)
        return t->weights.first + (size_t)o * t->weights.bytes;
    qi_unpack_row(&t->weights, (size_t)o, 0, t->depth, (uint8_t *)t->row);
    return (const uint8_t *)t->row;
}

/** The sum of products of differences, from those of signed bytes. */
QK_INLINE int32_t qk_mve_sum(const qi_tile *t, int32_t r, int32_t sum, int32_t weights)
{
    uint32_t const a = (uint32_t)(128 - t->x_codes.offset);
    uint32_t const b = (uint32_t)(128 - t->weight_codes.offset);
    return (int32_t)((uint32_t)sum + a * (uint32_t)weights + b * (uint32_t)t->sums[r]);
}

QK_APART uint8_t qk_mve_code(const qi_tile *t, int32_t o, int32_t sum)
{
    return (uint8_t)qi_requant_code(&t->requant, o, sum);
}

/** Channel o of the quad from row r on, of which `count` rows are used. */
QK_INLINE void qk_mve_store(const qi_tile *t, int32_t o, int32_t r, int32_t count,
                            const qk_mve_sums *s, uint8_t *y)
{
    y[0] = qk_mve_code(t, o, qk_mve_sum(t, r, s->a, s->weights));
    y[t->y_stride] = qk_mve_code(t, o, qk_mve_sum(t, r + 1, s->b, s->weights));
    y[2 * t->y_stride] = qk_mve_code(t, o, qk_mve_sum(t, r + 2, s->c, s->weights));
    if (count > 3)
        y[3 * t->y_stride] = qk_mve_code(t, o, qk_mve_sum(t, r + 3, s->d, s->weights));
}

/** What the quick way needs of a layer. */
typedef struct qk_mve_quick {
    int32x4_t lo, hi;
    uint32x4_t places; /* of four rows of y */
    int32_t a, zero_point;
} qk_mve_quick;

/** See requant_quick.h; the four values at once. VQRDMULH is SQRDMULH, VRSHL rounds ties up. */
QK_INLINE void qk_mve_quick_store(const qk_mve_quick *q, const qi_requant *r, int32_t o,
                                  const qk_mve_sums *s, uint8_t *y)
{
    int32x4_t v = vdupq_n_s32(s->a);
    v = vsetq_lane_s32(s->b, v, 1);
    v = vsetq_lane_s32(s->c, v, 2);
    v = vsetq_lane_s32(s->d, v, 3);
    v = vaddq_n_s32(v, (int32_t)((uint32_t)s->weights * (uint32_t)q->a + (uint32_t)r->bias[o]));
    v = vqrdmulhq_n_s32(v, r->mult[o * r->mult_step]);
    v = vaddq_s32(v, vshrq_n_s32(v, 31));
    v = vrshlq_n_s32(v, qi_requant_shift(r, o));
    v = vaddq_n_s32(v, q->zero_point);
    v = vminq_s32(vmaxq_s32(v, q->lo), q->hi);
    vstrbq_scatter_offset_s32((int8_t *)y, q->places, v);
}

/** All channels of all quads. */
QK_INLINE void qk_mve_quads(const qi_tile *t)
{
    size_t const pitch = qi_tile_pitch(t->depth);
    uint8_t const flip = qk_mve_flip(t->weight_codes);
    int const has_zero = t->weight_codes.offset != 128;
    qk_mve_quick q;
    q.lo = vdupq_n_s32(t->requant.lo);
    q.hi = vdupq_n_s32(t->requant.hi);
    q.places = vmulq_n_u32(vidupq_n_u32(0, 1), (uint32_t)t->y_stride);
    q.a = 128 - t->x_codes.offset;
    q.zero_point = t->requant.zero_point;
    for (int32_t o = t->first_channel; o < t->end_channel; o++) {
        const uint8_t *w = qk_mve_weights(t, o), *x = (const uint8_t *)t->x;
        int const is_quick = !has_zero && qk_is_quick(&t->requant, o);
        uint8_t *y = (uint8_t *)t->y + t->y_at + (size_t)o;
        for (int32_t left = t->rows; left >= 3; left -= 4, x += 4 * pitch, y += 4 * t->y_stride) {
            qk_mve_sums sums;
            qk_mve_quad(w, x, pitch, t->depth, flip, &sums);
            if (is_quick && left >= 4)
                qk_mve_quick_store(&q, &t->requant, o, &sums, y);
            else
                qk_mve_store(t, o, t->rows - left, left, &sums, y);
        }
    }
}

QK_INLINE void qk_mve_store_one(const qi_tile *t, int32_t o, int32_t r, int32_t sum,
                                int32_t weights, uint8_t *y)
{
    int32_t const right = qk_mve_sum(t, r, sum, weights);
    if (qk_is_quick(&t->requant, o)) {
        qk_quick const q = qk_quick_of(&t->requant, o);
        y[o] = qk_quick_code(&q, QK_CLAMP_ANY, right);
    } else {
        y[o] = qk_mve_code(t, o, right);
    }
}

/** A single row: two channels share x, if their weights are not packed. */
QK_INLINE void qk_mve_single(const qi_tile *t, int32_t r)
{
    const uint8_t *x = (const uint8_t *)t->x + (size_t)r * qi_tile_pitch(t->depth);
    uint8_t *y = (uint8_t *)t->y + t->y_at + (size_t)r * t->y_stride;
    uint8_t const flip = qk_mve_flip(t->weight_codes);
    int32_t const step = QK_PACKED && t->weights.packing ? 1 : 2;
    for (int32_t o = t->first_channel; o < t->end_channel; o += step) {
        const uint8_t *w = qk_mve_weights(t, o);
        int const has_two = step == 2 && o + 1 < t->end_channel;
        qk_mve_sums s;
        qk_mve_two(w, has_two ? w + t->weights.bytes : w, x, t->depth, flip, &s);
        qk_mve_store_one(t, o, r, s.a, s.weights, y);
        if (has_two)
            qk_mve_store_one(t, o + 1, r, s.b, s.weights2, y);
    }
}

QK_INLINE void qk_run_mve(const qi_tile *t)
{
    int32_t const left = t->rows % 4;
    if (t->rows >= 3)
        qk_mve_quads(t);
    for (int32_t r = t->rows - left; left < 3 && r < t->rows; r++)
        qk_mve_single(t, r);
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
