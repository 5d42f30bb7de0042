/**
 * Shared by the x86 depthwise convolutions: the head of a packed group, and the multipliers of a
 * group in the form that 64-bit lanes need.
 *
 * QI_DEPTHWISE_CUT. For a sum x with multiplier m >= 0 and right shift n >= 1, qi_requantize gives
 *
 *   s = floor((x m + 2^30) / 2^31),   q = floor((s + 2^(n-1) - [s < 0]) / 2^n)
 *
 * Values below zero are clamped to the zero_point. So [s < 0] may be left out: q stays <= 0 for s
 * <= 0. The two floors then become one, and the zero_point joins the constant:
 *
 *   q + Z = floor((x m + 2^30 + 2^(30+n) + Z 2^(31+n)) / 2^(31+n))
 *         = floor(floor((x m + d) / 2^32) / 2^(n-1))        the high words of 64-bit sums, shifted
 *
 * |x m| < 2^62 and, for n <= 23, |d| < 2^30 + 2^53 + 2^61.
 *
 * With f fractional bits x = s 2^f + b and n is f larger. Both sides of the fraction are divided by
 * 2^f, of which the floor takes no note: s takes the place of x, n is n - f again, and
 *
 *   d = floor((b m + 2^30 + 2^(30+n)) / 2^f) + Z 2^(31+n-f),   |d| < 2^62 + 2^60 + 2^61
 *
 * QI_DEPTHWISE_LEFT_CUT. With few bits n - f may be 0 or less. Then only f - left bits are divided
 * away: s 2^left takes the place of x, and f - left that of f.
 */
#ifndef QI_HOST_X86_DEPTHWISE_TAIL_H
#define QI_HOST_X86_DEPTHWISE_TAIL_H

#include "infer/host/loops/depthwise.h"
#include "infer/host/loops/even.h"
#include "infer/host/x86/intrinsics.h"

#include <string.h>

/** The start of a packed group; its weights follow. */
typedef struct qi_depthwise_head {
    _Alignas(64) int32_t bias[QI_DEPTHWISE_LANES];
    int32_t mult[QI_DEPTHWISE_LANES];
    int64_t mult_odd[QI_DEPTHWISE_LANES / 2];
    int32_t right[QI_DEPTHWISE_LANES];    /* CUT: n - f - 1; RIGHT: n */
    int32_t round[QI_DEPTHWISE_LANES];    /* RIGHT: 2^(n-1) */
    int64_t d[2][QI_DEPTHWISE_LANES / 2]; /* of a cut: for the even lanes, for the odd lanes */
    int32_t late_bias[QI_DEPTHWISE_LANES];
    int32_t shift[QI_DEPTHWISE_LANES];     /* as in the file */
    int32_t even_left[QI_DEPTHWISE_LANES]; /* EVEN; its right shift is in `right` */
    int32_t even_add[QI_DEPTHWISE_LANES], even_span[QI_DEPTHWISE_LANES];
    int32_t rows, taps, tail, zero_point;
    int32_t fraction; /* CUT does not need it */
    int32_t left;     /* LEFT_CUT */
    int32_t is_even;  /* rounding EVEN */
    int32_t spilled;  /* some weights are split in two */
    int8_t lo, hi;
    uint8_t y_flip, clamps; /* clamps: lo and hi are not those of int8 */
} qi_depthwise_head;

/** The constants of EVEN of lane i. */
static inline void qi_depthwise_even(const qi_depthwise_group *group, int i,
                                     qi_depthwise_head *head)
{
    qi_even even;
    qi_even_of(group->mult[i], group->shift[i], group->max_accumulator, 0, &even);
    head->mult[i] = even.mult;
    if (i % 2)
        head->mult_odd[i / 2] = even.mult;
    head->even_left[i] = even.left;
    head->right[i] = even.right;
    head->even_add[i] = even.add;
    head->even_span[i] = even.span;
}

/** The constants of CUT and LEFT_CUT of lane i. */
static inline void qi_depthwise_cut(const qi_depthwise_group *group, int i, int n,
                                    qi_depthwise_head *head)
{
    int const f = group->fraction - group->left;
    int64_t const product = (int64_t)group->late_bias[i] * group->mult[i];
    int64_t const rounding = (INT64_C(1) << 30) + (INT64_C(1) << (30 + n));
    head->right[i] = n - f - 1;
    head->d[i % 2][i / 2] =
        ((product + rounding) >> f) + group->zero_point * (INT64_C(1) << (31 + n - f));
}

static inline void qi_depthwise_pack_head(const qi_depthwise_group *group, qi_depthwise_head *head)
{
    memset(head, 0, sizeof *head);
    head->rows = group->rows;
    head->taps = group->taps;
    head->tail = (int32_t)group->tail;
    head->zero_point = group->zero_point;
    head->fraction = group->fraction;
    head->left = group->left;
    head->is_even = group->is_even;
    head->lo = (int8_t)group->lo;
    head->hi = (int8_t)group->hi;
    head->y_flip = group->y_flip;
    head->clamps = group->lo > INT8_MIN || group->hi < INT8_MAX;
    for (int i = 0; i < QI_DEPTHWISE_LANES; i++) {
        int const n = -group->shift[i];
        head->bias[i] = group->bias[i];
        head->late_bias[i] = group->late_bias[i];
        head->mult[i] = group->mult[i];
        if (i % 2)
            head->mult_odd[i / 2] = group->mult[i];
        head->shift[i] = group->shift[i];
        if (group->tail == QI_DEPTHWISE_EVEN)
            qi_depthwise_even(group, i, head);
        if (group->tail == QI_DEPTHWISE_EVEN || group->tail == QI_DEPTHWISE_ANY)
            continue;
        head->right[i] = n;
        head->round[i] = 1 << (n - 1);
        if (group->tail == QI_DEPTHWISE_CUT || group->tail == QI_DEPTHWISE_LEFT_CUT)
            qi_depthwise_cut(group, i, n, head);
    }
}

/** The value of lane i, with the zero_point, by the scalar function. */
static inline int32_t qi_depthwise_value(const qi_depthwise_head *head, int i, int32_t sum)
{
    int32_t const acc = sum * (1 << head->fraction) + head->late_bias[i];
    int64_t const value = head->is_even ? qi_requantize_even(acc, head->mult[i], head->shift[i])
                                        : qi_requantize(acc, head->mult[i], head->shift[i]);
    return qi_saturate_i64(value + head->zero_point);
}

/** QI_DEPTHWISE_ANY: turn the sums of lanes from `first` on into values. */
static inline void qi_depthwise_requantize(const qi_depthwise_head *head, int first, int lanes,
                                           int32_t *sums)
{
    for (int i = 0; i < lanes; i++)
        sums[i] = qi_depthwise_value(head, first + i, sums[i]);
}

/** QI_DEPTHWISE_EVEN: the same for the lanes that `which` has a bit for. It is called seldom. */
__attribute__((noinline)) static void qi_depthwise_ties(const qi_depthwise_head *head, int first,
                                                        uint32_t which, const int32_t *sums,
                                                        int32_t *values)
{
    for (int i = 0; which >> i; i++)
        if (which >> i & 1)
            values[i] = qi_depthwise_value(head, first + i, sums[i]);
}

#endif
