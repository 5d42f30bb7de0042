/** What a pool is, and what its loops share; see pool.h. */
#ifndef QK_POOL_LAYER_H
#define QK_POOL_LAYER_H

#include "infer/kernels/parts/features.h"
#include "infer/kernels/parts/window.h"
#include "qat/rounding.h"

#include <stddef.h>

typedef struct qk_pool {
    qi_window window;
    uint8_t flip;    /* 0x80 if the codes are signed bytes: makes them unsigned */
    uint8_t is_wide; /* 16-bit codes */
    int32_t rounding, lo, hi;
} qk_pool;

/** The taps of one window in both directions. */
typedef struct qk_pool_taps {
    qi_taps y, x;
} qk_pool_taps;

/** The pixel of a picture under the tap ky, kx. Codes have `item` bytes. */
QK_INLINE const uint8_t *qk_pool_pixel(const qi_window *g, const uint8_t *x, const qk_pool_taps *t,
                                       int32_t ky, int32_t kx, size_t item)
{
    size_t const iy = (size_t)(t->y.start + ky), ix = (size_t)(t->x.start + kx);
    return x + (iy * (size_t)g->w + ix) * (size_t)g->c * item;
}

QK_INLINE int32_t qk_pool_mean(const qk_pool *p, int32_t sum, int32_t pixels)
{
    int32_t const mean = QK_ONCE && p->rounding == QI_ROUND_ONCE ? qi_divide_half_up(sum, pixels)
                         : QK_EVEN && p->rounding == QI_ROUND_EVEN
                             ? qi_divide_half_even(sum, pixels)
                             : qi_divide_half_away(sum, pixels);
    return qi_clamp(mean, p->lo, p->hi);
}

#endif
