/**
 * Bilinear blends of codes as unsigned integers u = byte ^ flip (fast_resize.c).
 *
 * Each output lies between two rows and two columns of the input. The two weights of an axis are
 * not negative and sum to the same number for all its outputs, so the four products sum to n. A
 * code of value u - flip is what the blend of all u gives:
 *
 *   first the two rows become one:    sums = u above weight[0] + u below weight[1]
 *   then two columns of these sums:   sum  = left weight[0] + right weight[1], at most 255 n
 *   then sum / n is rounded:          t = sum + half - (sum < below)
 *                                     u = floor(t / n), as t mult >> (bits + right)
 *
 * Sums have 16 bits if t and the division below fit them, else 32. below > 0: halves of smaller
 * sums go down; n is a power of two, of at most 2^20. is_even: a tie goes to the even code. flip is
 * even, so that its code is even where u is.
 *
 * mult = ceil(2^(bits + right) / n). With e = n mult - 2^(bits + right), t mult / 2^(bits + right)
 * is t / n + t e / (n 2^(bits + right)). As t / n lies at least 1 / n below the next integer,
 * floor() is the same for all t with t e < 2^(bits + right) (resize_plan.c).
 *
 * Loops may read up to QI_SLACK bytes behind the sums. They write the codes of all columns, and
 * nothing behind them.
 */
#ifndef QI_HOST_BLEND_H
#define QI_HOST_BLEND_H

#include <stddef.h>
#include <stdint.h>

/** An output position between two of the input's. */
typedef struct qi_between {
    int32_t lower, upper;
    uint32_t weight[2];
} qi_between;

/** How the sums of all columns become codes. */
typedef struct qi_blend {
    uint32_t n, half, below, mult;
    int32_t right;
    int32_t bits; /* of sums: 16 or 32 */
    int32_t is_even;
    uint8_t flip;
} qi_blend;

/** Some outputs of a row: their places, how many they are, and the channels of each. */
typedef struct qi_columns {
    const qi_between *at;
    size_t count, channels;
} qi_columns;

/** sums = the blend of n codes of two rows. */
typedef void qi_blend_rows_fn(uint8_t flip, const uint8_t *above, const uint8_t *below,
                              const uint32_t weight[2], void *sums, size_t n);
/** y = the codes of these columns, from the sums of a row. */
typedef void qi_blend_columns_fn(const qi_blend *b, const qi_columns *columns, const void *sums,
                                 uint8_t *y);

/** The loops for one size of sums. */
typedef struct qi_blend_loops {
    qi_blend_rows_fn *rows;
    qi_blend_columns_fn *columns;
} qi_blend_loops;

#endif
