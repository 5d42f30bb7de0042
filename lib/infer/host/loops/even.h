/**
 * Rounding EVEN in lanes of 32 bits, without binary32. A sum s with multiplier m becomes
 *
 *   h = floor(s 2^left m / 2^32)         s M with `right` fractional bits, M = m 2^(shift - 31)
 *   y = floor((h + add) / 2^right)       the code, if it is also floor((h + add + span) / 2^right)
 *
 * With SQDMULH, which doubles products, `left` is one less.
 *
 * qi_requantize_even rounds s to 24 bits, and its product with m, too: for |s M| < 2^9 it is at
 * most 2^-14 away from s M, and h is less than one unit, 2^-right, below it. So where no tie is
 * within 2^-13 of h, and none within two units, rounding h gives the same code. `add` is half a
 * code less that distance, and `span` is twice the distance. The few other sums are left to the
 * scalar function. For |s M| >= 2^9 both answers are clamped.
 */
#ifndef QI_HOST_EVEN_H
#define QI_HOST_EVEN_H

#include "infer/arithmetic/binary32.h"

typedef struct qi_even {
    int32_t mult; /* without the bits that EVEN does not read */
    int32_t left, right, add, span;
} qi_even;

/**
 * The constants of a multiplier and a shift of the file.
 * @param most     largest |s|, below 2^31
 * @param doubled  for products that are doubled: s 2^left is below 2^30; else below 2^31
 * @return         0: there are none, because h has too few fractional bits, or too many
 */
static inline int qi_even_of(int32_t mult, int32_t shift, int64_t most, int doubled, qi_even *even)
{
    enum { UNREAD = 127, LEAST_RIGHT = 8, MOST_RIGHT = 29, DISTANCE = 13, LEAST_DISTANCE = 2 };
    int left = 0;
    while (left < 30 && most >> (30 - left) == 0)
        left++; /* most < 2^(31 - left) */
    int const bits = left - 1 - shift, over = bits > MOST_RIGHT ? bits - MOST_RIGHT : 0;
    int const right = bits - over;
    int32_t const distance = right > DISTANCE + 1 ? 1 << (right - DISTANCE) : LEAST_DISTANCE;
    *even = (qi_even){.mult = mult & ~UNREAD,
                      .left = left - over - doubled,
                      .right = right,
                      .add = right > 0 ? (1 << (right - 1)) - distance : 0,
                      .span = 2 * distance};
    if (even->mult == 0) { /* 0, whatever the shift is */
        *even = (qi_even){.right = MOST_RIGHT};
        return 1;
    }
    return right >= LEAST_RIGHT && even->left >= 0;
}

#endif
