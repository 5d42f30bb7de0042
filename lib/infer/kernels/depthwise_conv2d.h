/**
 * depthwise_conv2d: x [N,H,W,C], w [1,KH,KW,C m], bias, mult, shift -> y [N,OH,OW,C m].
 *
 *   acc[c m + j] = sum over ky, kx of (x[.., c] - Z_x)(w[ky, kx, c m + j] - Z_w)
 *
 * All channels of an output pixel are summed together, tap by tap:
 *
 *   scratch  | sums [C m] int32, or int64 for 16-bit codes | weights [KH, KW, C m] int16 |
 *            | differences of one pixel [C m] int16 |
 *
 * Processors without vectors sum four channels at a time, in registers: loops/depthwise_quads.h.
 * With Helium it is all products of a channel: loops/depthwise_mve.h.
 */
#ifndef QK_DEPTHWISE_CONV2D_H
#define QK_DEPTHWISE_CONV2D_H

#include "infer/kernels/loops/depthwise_mve.h"
#include "infer/kernels/loops/depthwise_quads.h"

QK_INLINE size_t qk_depthwise_sums_bytes(const qk_depthwise_conv2d *p)
{
    return (size_t)p->window.o *
           (QK_WIDE && p->x_codes.is_wide ? sizeof(int64_t) : sizeof(int32_t));
}

QK_INLINE size_t qk_depthwise_conv2d_scratch(const qk_depthwise_conv2d *p)
{
    size_t const weights = (p->weights.values + (size_t)p->window.o) * sizeof(int16_t);
    size_t const least = qk_depthwise_sums_bytes(p) + weights;
    return p->multiplier == 1 ? qk_turn_scratch(p, least) : least;
}

/** Write the differences of the pixel at value `at`, each `multiplier` times. */
QK_INLINE void qk_depthwise_spread(const qk_depthwise_conv2d *p, const void *x, int16_t *pixel,
                                   size_t at)
{
    if (p->multiplier == 1) {
        qi_differences(pixel, x, at, (size_t)p->window.o, p->x_codes);
        return;
    }
    for (size_t c = 0; c < (size_t)p->window.c; c++) {
        int16_t d;
        qi_differences(&d, x, at + c, 1, p->x_codes);
        for (int32_t j = 0; j < p->multiplier; j++)
            *pixel++ = d;
    }
}

QK_INLINE void qk_depthwise_add(int32_t *QK_RESTRICT sums, const int16_t *QK_RESTRICT pixel,
                                const int16_t *QK_RESTRICT weights, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sums[i] += (int32_t)pixel[i] * weights[i];
}

QK_INLINE void qk_depthwise_add_wide(int64_t *QK_RESTRICT sums, const int16_t *QK_RESTRICT pixel,
                                     const int16_t *QK_RESTRICT weights, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sums[i] += (int32_t)pixel[i] * weights[i];
}

/** Sum all channels of one output pixel. at: the value where the picture begins. */
QK_INLINE void qk_depthwise_window(const qk_depthwise_conv2d *p, const void *x, size_t at,
                                   int32_t oy, int32_t ox, void *sums, const int16_t *weights,
                                   int16_t *pixel)
{
    const qi_window *g = &p->window;
    size_t const channels = (size_t)g->o;
    qi_taps const ty = qi_taps_of_line(g, oy), tx = qi_taps_of_column(g, ox);
    memset(sums, 0, qk_depthwise_sums_bytes(p));
    for (int32_t ky = ty.first; ky < ty.end; ky++)
        for (int32_t kx = tx.first; kx < tx.end; kx++) {
            size_t const iy = (size_t)(ty.start + ky * g->dilation_h);
            size_t const ix = (size_t)(tx.start + kx * g->dilation_w);
            size_t const tap = (size_t)ky * (size_t)g->kernel_w + (size_t)kx;
            qk_depthwise_spread(p, x, pixel, at + (iy * (size_t)g->w + ix) * (size_t)g->c);
            if (QK_WIDE && p->x_codes.is_wide)
                qk_depthwise_add_wide((int64_t *)sums, pixel, weights + tap * channels, channels);
            else
                qk_depthwise_add((int32_t *)sums, pixel, weights + tap * channels, channels);
        }
}

/** Store the output pixel that begins at value `at`. */
QK_INLINE void qk_depthwise_store_pixel(const qk_depthwise_conv2d *p, const void *sums, void *y,
                                        size_t at)
{
    size_t const channels = (size_t)p->window.o;
    if (QK_WIDE && p->x_codes.is_wide)
        for (size_t o = 0; o < channels; o++)
            ((int16_t *)y)[at + o] =
                (int16_t)qi_requant_wide_code(&p->requant, (int32_t)o, ((const int64_t *)sums)[o]);
    else
        for (size_t o = 0; o < channels; o++)
            ((uint8_t *)y)[at + o] =
                (uint8_t)qi_requant_code(&p->requant, (int32_t)o, ((const int32_t *)sums)[o]);
}

/** Any layer, in plain loops over all channels. */
QK_INLINE void qk_depthwise_lines(const qk_depthwise_conv2d *p, const void *x, void *y,
                                  void *scratch)
{
    const qi_window *g = &p->window;
    size_t const channels = (size_t)g->o;
    size_t const picture = (size_t)g->h * (size_t)g->w * (size_t)g->c;
    int16_t *weights = (int16_t *)(void *)((uint8_t *)scratch + qk_depthwise_sums_bytes(p));
    int16_t *pixel = weights + p->weights.values;
    size_t at = 0;
    qi_widen_row(weights, &p->weights, 0, p->weight_codes);
    for (int32_t n = 0; n < g->n; n++)
        for (int32_t oy = 0; oy < g->oh; oy++)
            for (int32_t ox = 0; ox < g->ow; ox++, at += channels) {
                qk_depthwise_window(p, x, (size_t)n * picture, oy, ox, scratch, weights, pixel);
                qk_depthwise_store_pixel(p, scratch, y, at);
            }
}

QK_INLINE void qk_depthwise_conv2d_run(const qk_depthwise_conv2d *p, const void *x, void *y,
                                       void *scratch)
{
    int32_t const pixels = QK_MVE ? qk_turn_pixels(p, qk_depthwise_conv2d_scratch(p)) : 0;
    if (QK_MVE && pixels > 0 && qk_turn_serves(p))
        qk_turn_run(p, (const uint8_t *)x, (uint8_t *)y, scratch, pixels);
    else if (!QK_VECTORS && qk_depthwise_is_quick(p))
        qk_depthwise_quads(p, (const uint8_t *)x, (uint8_t *)y, scratch);
    else
        qk_depthwise_lines(p, x, y, scratch);
}

#endif
