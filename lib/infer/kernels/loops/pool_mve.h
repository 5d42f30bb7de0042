/**
 * average_pool2d of 8-bit codes on processors with Helium: eight neighbouring channels at a time.
 *
 * Codes are summed in 16 bits, at most QK_MVE_PIXELS of them, then in 32 bits. For 2..255 pixels
 * the quotient needs no division. With m = |sum| + n / 2 < 2^16 and r = 2^32 / n, rounded up,
 *
 *   m / n <= m r / 2^32 < m / n + 1 / n,   so that   floor(m r / 2^32) = floor(m / n)
 */
#ifndef QK_POOL_MVE_H
#define QK_POOL_MVE_H

#include "infer/kernels/parts/pool_layer.h"

#if QK_MVE
#include <arm_mve.h>

enum { QK_MVE_PIXELS = 128 };

/** Sums of the even and of the odd ones of eight channels. */
typedef struct qk_mve_pool_sums {
    int32x4_t even, odd;
} qk_mve_pool_sums;

/** Add n <= QK_MVE_PIXELS pixels, `step` bytes apart. */
QK_HOT void qk_mve_add_pixels(qk_mve_pool_sums *s, const uint8_t *x, size_t step, int32_t n,
                              int is_signed, mve_pred16_t some)
{
    int16x8_t sums = vdupq_n_s16(0);
    for (int32_t i = 0; i < n; i++, x += step)
        sums = vaddq_s16(sums, is_signed ? vldrbq_z_s16((const int8_t *)x, some)
                                         : vreinterpretq_s16_u16(vldrbq_z_u16(x, some)));
    s->even = vaddq_s32(s->even, vmovlbq_s16(sums));
    s->odd = vaddq_s32(s->odd, vmovltq_s16(sums));
}

/** The means of sums of n pixels; reciprocal: 2^32 / n, rounded up, or 0 if it does not serve. */
QK_HOT int32x4_t qk_mve_means(const qk_pool *p, int32x4_t sums, int32_t n, uint32_t reciprocal)
{
    int32_t codes[4];
    if (reciprocal) {
        int32x4_t const sign = vshrq_n_s32(sums, 31);
        uint32x4_t const m = vreinterpretq_u32_s32(vaddq_n_s32(vabsq_s32(sums), n / 2));
        uint32x4_t const size = vmulhq_u32(m, vdupq_n_u32(reciprocal));
        int32x4_t const mean = vsubq_s32(veorq_s32(vreinterpretq_s32_u32(size), sign), sign);
        return vminq_s32(vmaxq_s32(mean, vdupq_n_s32(p->lo)), vdupq_n_s32(p->hi));
    }
    vstrwq_s32(codes, sums);
    for (int i = 0; i < 4; i++)
        codes[i] = qk_pool_mean(p, codes[i], n);
    return vldrwq_s32(codes);
}

/** A qk_pool_fn. */
QK_INLINE void qk_mve_average(const qk_pool *p, const uint8_t *x, const qk_pool_taps *t, uint8_t *y,
                              int32_t *scratch)
{
    size_t const step = (size_t)p->window.c;
    int32_t lines = t->y.end - t->y.first, columns = t->x.end - t->x.first;
    int32_t const pixels = lines * columns;
    int const serves = pixels > 1 && pixels < 256 && p->rounding == QI_ROUND_NONE;
    uint32_t const reciprocal = serves ? UINT32_MAX / (uint32_t)pixels + 1 : 0;
    const uint8_t *first = qk_pool_pixel(&p->window, x, t, t->y.first, t->x.first, 1);
    if (columns == p->window.w) { /* one line follows the other */
        columns = pixels;
        lines = 1;
    }
    for (int32_t left = p->window.c; left > 0; left -= 8, first += 8, y += 8) {
        mve_pred16_t const some = vctp16q((uint32_t)left);
        const uint8_t *line = first;
        qk_mve_pool_sums s = {vdupq_n_s32(0), vdupq_n_s32(0)};
        for (int32_t i = 0; i < lines; i++, line += (size_t)p->window.w * step) {
            const uint8_t *at = line;
            for (int32_t rest = columns; rest > 0; rest -= QK_MVE_PIXELS) {
                int32_t const n = rest < QK_MVE_PIXELS ? rest : (int32_t)QK_MVE_PIXELS;
                qk_mve_add_pixels(&s, at, step, n, p->flip != 0, some);
                at += (size_t)n * step;
            }
        }
        int16x8_t codes = vdupq_n_s16(0);
        codes = vmovnbq_s32(codes, qk_mve_means(p, s.even, pixels, reciprocal));
        codes = vmovntq_s32(codes, qk_mve_means(p, s.odd, pixels, reciprocal));
        vstrbq_p_s16((int8_t *)y, codes, some);
    }
    (void)scratch;
}

#else

QK_INLINE void qk_mve_average(const qk_pool *p, const uint8_t *x, const qk_pool_taps *t, uint8_t *y,
                              int32_t *scratch)
{
    (void)p;
    (void)x;
    (void)t;
    (void)y;
    (void)scratch;
}

#endif

#endif
