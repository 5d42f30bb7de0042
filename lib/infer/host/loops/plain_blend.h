/**
 * Bilinear blends in plain C that compilers vectorize (blend.h). The file of an instruction set
 * includes this and is compiled with its flags.
 *
 * The codes of a pixel are computed in whole blocks, of which compilers make vectors without a
 * remainder. What is stored behind a pixel's last code is overwritten by the next pixels; the end
 * of a row goes through a block of its own.
 */
#ifndef QI_HOST_PLAIN_BLEND_H
#define QI_HOST_PLAIN_BLEND_H

#include "infer/host/loops/blend.h"

#include <string.h>

#define BLEND_INLINE static inline __attribute__((always_inline))

/** Halves away from zero, halves up, or ties to even: each loop is compiled by itself. */
typedef enum blend_kind { BLEND_AWAY, BLEND_UP, BLEND_EVEN } blend_kind;

#define BLEND_BY_KIND(loop, b, bits, columns, sums, y)                                             \
    do {                                                                                           \
        if ((b)->is_even)                                                                          \
            loop(b, BLEND_EVEN, bits, columns, sums, y);                                           \
        else if ((b)->below)                                                                       \
            loop(b, BLEND_AWAY, bits, columns, sums, y);                                           \
        else                                                                                       \
            loop(b, BLEND_UP, bits, columns, sums, y);                                             \
    } while (0)

/* ------------------------------------------------------------------ rows */

static void plain_blend_rows16(uint8_t flip, const uint8_t *restrict above,
                               const uint8_t *restrict below, const uint32_t weight[2],
                               void *restrict sums, size_t n)
{
    uint16_t const w0 = (uint16_t)weight[0], w1 = (uint16_t)weight[1];
    uint16_t *restrict to = sums;
    for (size_t i = 0; i < n; i++)
        to[i] = (uint16_t)((above[i] ^ flip) * w0 + (below[i] ^ flip) * w1);
}

static void plain_blend_rows32(uint8_t flip, const uint8_t *restrict above,
                               const uint8_t *restrict below, const uint32_t weight[2],
                               void *restrict sums, size_t n)
{
    uint32_t const w0 = weight[0], w1 = weight[1];
    uint32_t *restrict to = sums;
    for (size_t i = 0; i < n; i++)
        to[i] = (uint8_t)(above[i] ^ flip) * w0 + (uint8_t)(below[i] ^ flip) * w1;
}

/* ------------------------------------------------------------------ columns */

enum { BLEND_BLOCK = 16 };

BLEND_INLINE void plain_block16(const qi_blend *b, blend_kind kind, const uint32_t weight[2],
                                const uint16_t *restrict left, const uint16_t *restrict right,
                                uint8_t *restrict y)
{
    uint16_t const w0 = (uint16_t)weight[0], w1 = (uint16_t)weight[1], n = (uint16_t)b->n;
    uint16_t const half = (uint16_t)b->half, below = (uint16_t)b->below, mult = (uint16_t)b->mult;
    for (int c = 0; c < BLEND_BLOCK; c++) {
        uint16_t const sum = (uint16_t)(left[c] * w0 + right[c] * w1);
        uint16_t const t = (uint16_t)(sum + half - (kind == BLEND_AWAY && sum < below));
        uint16_t const u = (uint16_t)((uint16_t)((uint32_t)t * mult >> 16) >> b->right);
        uint16_t const is_tie = (uint16_t)(2 * (u * n - sum)) == n;
        y[c] = (uint8_t)((kind == BLEND_EVEN ? u - (is_tie & u) : u) ^ b->flip);
    }
}

BLEND_INLINE void plain_block32(const qi_blend *b, blend_kind kind, const uint32_t weight[2],
                                const uint32_t *restrict left, const uint32_t *restrict right,
                                uint8_t *restrict y)
{
    uint32_t const w0 = weight[0], w1 = weight[1], n = b->n;
    for (int c = 0; c < BLEND_BLOCK; c++) {
        uint32_t const sum = left[c] * w0 + right[c] * w1;
        uint32_t const t = sum + b->half - (kind == BLEND_AWAY && sum < b->below);
        uint32_t const u = (uint32_t)((uint64_t)t * b->mult >> 32) >> b->right;
        uint32_t const is_tie = 2 * (u * n - sum) == n;
        y[c] = (uint8_t)((kind == BLEND_EVEN ? u - (is_tie & u) : u) ^ b->flip);
    }
}

BLEND_INLINE void plain_columns(const qi_blend *blend, blend_kind kind, int bits,
                                const qi_columns *columns, const uint8_t *sums, uint8_t *y)
{
    qi_blend const b = *blend;
    size_t const channels = columns->channels, sum = (size_t)bits / 8;
    const uint8_t *end = y + columns->count * channels;
    for (size_t i = 0; i < columns->count; i++, y += channels) {
        const qi_between *at = &columns->at[i];
        for (size_t c = 0; c < channels; c += BLEND_BLOCK) {
            const void *left = sums + ((size_t)at->lower * channels + c) * sum;
            const void *right = sums + ((size_t)at->upper * channels + c) * sum;
            size_t const left_over = (size_t)(end - y) - c;
            uint8_t last[BLEND_BLOCK], *to = left_over < BLEND_BLOCK ? last : y + c;
            if (bits == 16)
                plain_block16(&b, kind, at->weight, left, right, to);
            else
                plain_block32(&b, kind, at->weight, left, right, to);
            if (to == last)
                memcpy(y + c, last, left_over);
        }
    }
}

static inline void plain_blend_columns16(const qi_blend *b, const qi_columns *columns,
                                         const void *sums, uint8_t *y)
{
    BLEND_BY_KIND(plain_columns, b, 16, columns, sums, y);
}

static inline void plain_blend_columns32(const qi_blend *b, const qi_columns *columns,
                                         const void *sums, uint8_t *y)
{
    BLEND_BY_KIND(plain_columns, b, 32, columns, sums, y);
}

#endif
