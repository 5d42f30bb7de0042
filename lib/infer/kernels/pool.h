/**
 * average_pool2d and max_pool2d: x [N,H,W,C] -> y [N,OH,OW,C] on the input's scale and zero_point.
 * Only pixels inside the picture count.
 *
 * average: clamp(sum of q / number of pixels), half away from zero, with rounding ONCE half up,
 * with EVEN to the even code. As in TensorFlow Lite, q are codes, not differences. max:
 * clamp(largest q).
 *
 *   scratch of average  | sums [C] int32 |
 */
#ifndef QK_POOL_H
#define QK_POOL_H

#include "infer/kernels/loops/pool_mve.h"
#include "infer/kernels/loops/pool_quads.h"

/** Computes one output pixel of a pool; x: the picture. */
typedef void qk_pool_fn(const qk_pool *p, const uint8_t *x, const qk_pool_taps *t, uint8_t *y,
                        int32_t *sums);

QK_INLINE void qk_pool_all(const qk_pool *p, qk_pool_fn *pool, const void *x, void *y,
                           int32_t *sums)
{
    const qi_window *g = &p->window;
    size_t const pixel = (size_t)g->c * (QK_WIDE && p->is_wide ? sizeof(int16_t) : 1);
    size_t const picture = (size_t)g->h * (size_t)g->w * pixel;
    uint8_t *to = (uint8_t *)y;
    for (int32_t n = 0; n < g->n; n++)
        for (int32_t oy = 0; oy < g->oh; oy++)
            for (int32_t ox = 0; ox < g->ow; ox++, to += pixel) {
                qk_pool_taps const t = {qi_taps_of_line(g, oy), qi_taps_of_column(g, ox)};
                pool(p, (const uint8_t *)x + (size_t)n * picture, &t, to, sums);
            }
}

/* ------------------------------------------------------------------ average */

QK_INLINE size_t qk_average_pool2d_scratch(const qk_pool *p)
{
    return (size_t)p->window.c * sizeof(int32_t);
}

QK_INLINE void qk_pool_add(int32_t *QK_RESTRICT sums, const uint8_t *QK_RESTRICT pixel, size_t n,
                           int flip)
{
    for (size_t i = 0; i < n; i++)
        sums[i] += (pixel[i] ^ flip) - flip; /* the code itself, without zero_point */
}

QK_INLINE void qk_pool_add_wide(int32_t *QK_RESTRICT sums, const int16_t *QK_RESTRICT pixel,
                                size_t n)
{
    for (size_t i = 0; i < n; i++)
        sums[i] += pixel[i];
}

QK_INLINE void qk_average_pixel(const qk_pool *p, const uint8_t *x, const qk_pool_taps *t,
                                uint8_t *y, int32_t *sums)
{
    int32_t const pixels = (t->y.end - t->y.first) * (t->x.end - t->x.first);
    size_t const channels = (size_t)p->window.c;
    memset(sums, 0, channels * sizeof *sums);
    for (int32_t ky = t->y.first; ky < t->y.end; ky++)
        for (int32_t kx = t->x.first; kx < t->x.end; kx++)
            qk_pool_add(sums, qk_pool_pixel(&p->window, x, t, ky, kx, 1), channels, p->flip);
    for (size_t c = 0; c < channels; c++)
        y[c] = (uint8_t)qk_pool_mean(p, sums[c], pixels);
}

QK_INLINE void qk_average_wide_pixel(const qk_pool *p, const uint8_t *x, const qk_pool_taps *t,
                                     uint8_t *y, int32_t *sums)
{
    int32_t const pixels = (t->y.end - t->y.first) * (t->x.end - t->x.first);
    size_t const channels = (size_t)p->window.c, item = sizeof(int16_t);
    memset(sums, 0, channels * sizeof *sums);
    for (int32_t ky = t->y.first; ky < t->y.end; ky++)
        for (int32_t kx = t->x.first; kx < t->x.end; kx++) {
            const void *pixel = qk_pool_pixel(&p->window, x, t, ky, kx, item);
            qk_pool_add_wide(sums, (const int16_t *)pixel, channels);
        }
    for (size_t c = 0; c < channels; c++)
        ((int16_t *)(void *)y)[c] = (int16_t)qk_pool_mean(p, sums[c], pixels);
}

QK_INLINE void qk_average_pool2d_run(const qk_pool *p, const void *x, void *y, void *scratch)
{
    if (QK_WIDE && p->is_wide)
        qk_pool_all(p, qk_average_wide_pixel, x, y, (int32_t *)scratch);
    else
        qk_pool_all(p,
                    QK_VECTORS ? qk_average_pixel
                    : QK_MVE   ? qk_mve_average
                               : qk_average_quads,
                    x, y, (int32_t *)scratch);
}

/* ------------------------------------------------------------------ max */

/** most = max(most, pixel), compared as unsigned after the flip. */
QK_INLINE void qk_pool_max(uint8_t *QK_RESTRICT most, const uint8_t *QK_RESTRICT pixel, size_t n,
                           uint8_t flip)
{
    for (size_t i = 0; i < n; i++) {
        uint8_t const q = (uint8_t)(pixel[i] ^ flip);
        most[i] = q > most[i] ? q : most[i];
    }
}

QK_INLINE void qk_pool_max_wide(int16_t *QK_RESTRICT most, const int16_t *QK_RESTRICT pixel,
                                size_t n)
{
    for (size_t i = 0; i < n; i++)
        most[i] = pixel[i] > most[i] ? pixel[i] : most[i];
}

QK_INLINE void qk_max_pixel(const qk_pool *p, const uint8_t *x, const qk_pool_taps *t, uint8_t *y,
                            int32_t *sums)
{
    size_t const channels = (size_t)p->window.c;
    /*
     * The codes become unsigned: -128..127 become 0..255. A running maximum may then start at
     * clamp_lo.
     */
    int32_t const lo = p->lo + p->flip, hi = p->hi + p->flip;
    (void)sums;
    memset(y, lo, channels);
    for (int32_t ky = t->y.first; ky < t->y.end; ky++)
        for (int32_t kx = t->x.first; kx < t->x.end; kx++)
            qk_pool_max(y, qk_pool_pixel(&p->window, x, t, ky, kx, 1), channels, p->flip);
    for (size_t c = 0; c < channels; c++)
        y[c] = (uint8_t)((y[c] > hi ? hi : y[c]) ^ p->flip);
}

QK_INLINE void qk_max_wide_pixel(const qk_pool *p, const uint8_t *x, const qk_pool_taps *t,
                                 uint8_t *y, int32_t *sums)
{
    size_t const channels = (size_t)p->window.c, item = sizeof(int16_t);
    int16_t *most = (int16_t *)(void *)y;
    (void)sums;
    for (size_t c = 0; c < channels; c++)
        most[c] = (int16_t)p->lo;
    for (int32_t ky = t->y.first; ky < t->y.end; ky++)
        for (int32_t kx = t->x.first; kx < t->x.end; kx++) {
            const void *pixel = qk_pool_pixel(&p->window, x, t, ky, kx, item);
            qk_pool_max_wide(most, (const int16_t *)pixel, channels);
        }
    for (size_t c = 0; c < channels; c++)
        most[c] = most[c] > p->hi ? (int16_t)p->hi : most[c];
}

QK_INLINE void qk_max_pool2d_run(const qk_pool *p, const void *x, void *y)
{
    if (QK_WIDE && p->is_wide)
        qk_pool_all(p, qk_max_wide_pixel, x, y, NULL);
    else
        qk_pool_all(p, qk_max_pixel, x, y, NULL);
}

#endif
