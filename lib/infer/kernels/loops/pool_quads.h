/**
 * average_pool2d of 8-bit codes on processors without vectors: the sums of four neighbouring
 * channels stand in the halves of two words.
 *
 * Bytes are summed as unsigned numbers. A half holds the sum of 257 of them, 257 * 255 = 65535. A
 * signed code is its byte, flipped, less 128.
 */
#ifndef QK_POOL_QUADS_H
#define QK_POOL_QUADS_H

#include "infer/kernels/loops/arm_dsp.h"
#include "infer/kernels/parts/pool_layer.h"

/** Add to sums[0..3] four bytes of each of n pixels, `step` apart; n <= 257. */
QK_INLINE void qk_add_pixels(uint32_t sums[4], const uint8_t *x, size_t step, int32_t n,
                             uint32_t flips)
{
    uint32_t even = 0, odd = 0;
    for (int32_t i = 0; i < n; i++, x += step) {
        uint32_t const word = qk_word(x) ^ flips;
        even += word & 0x00ff00ff;
        odd += word >> 8 & 0x00ff00ff;
    }
    sums[0] += even & 0xffff;
    sums[1] += odd & 0xffff;
    sums[2] += even >> 16;
    sums[3] += odd >> 16;
}

/** The means of channels c..c+3 of one window; x: the picture. */
QK_INLINE void qk_average_quad(const qk_pool *p, const uint8_t *x, const qk_pool_taps *t, size_t c,
                               uint8_t *y)
{
    int32_t const most = 256;
    int32_t const columns = t->x.end - t->x.first;
    int32_t const pixels = (t->y.end - t->y.first) * columns;
    uint32_t const flips = p->flip * UINT32_C(0x01010101);
    uint32_t sums[4] = {0, 0, 0, 0};
    /* lines as wide as the picture follow each other: they are one long line */
    int32_t const joined = columns == p->window.w ? t->y.end - t->y.first : 1;
    for (int32_t ky = t->y.first; ky < t->y.end; ky += joined) {
        const uint8_t *line = qk_pool_pixel(&p->window, x, t, ky, t->x.first, 1) + c;
        for (int32_t at = 0; at < columns * joined; at += most) {
            int32_t const left = columns * joined - at, n = left < most ? left : most;
            qk_add_pixels(sums, line + (size_t)at * (size_t)p->window.c, (size_t)p->window.c, n,
                          flips);
        }
    }
    for (int i = 0; i < 4; i++)
        y[i] = (uint8_t)qk_pool_mean(p, (int32_t)sums[i] - p->flip * pixels, pixels);
}

/** A qk_pool_fn. */
QK_INLINE void qk_average_quads(const qk_pool *p, const uint8_t *x, const qk_pool_taps *t,
                                uint8_t *y, int32_t *sums)
{
    size_t const channels = (size_t)p->window.c, quads = channels / 4 * 4;
    for (size_t c = 0; c < quads; c += 4)
        qk_average_quad(p, x, t, c, y + c);
    int32_t const pixels = (t->y.end - t->y.first) * (t->x.end - t->x.first);
    for (size_t c = quads; c < channels; c++) {
        int32_t sum = 0;
        for (int32_t ky = t->y.first; ky < t->y.end; ky++)
            for (int32_t kx = t->x.first; kx < t->x.end; kx++)
                sum += (qk_pool_pixel(&p->window, x, t, ky, kx, 1)[c] ^ p->flip) - p->flip;
        y[c] = (uint8_t)qk_pool_mean(p, sum, pixels);
    }
    (void)sums;
}

#endif
