/**
 * Loops over [rows, channels] with one coefficient per channel. They vectorize even with few
 * channels: several rows form one wide row, for which the coefficients are repeated once in
 * advance.
 *
 *     channels 3, wide 126:   coefficient   a b c a b c a b c ...       126 + 3 values
 *                             values  at 0: x x x x x x x x x ...       start at coefficient 0
 *                             values  at 4:   x x x x x x x ...         start at coefficient 1
 */
#ifndef QAT_AUTOGRAD_WIDE_H
#define QAT_AUTOGRAD_WIDE_H

#include "qat/graph.h"

enum { QAT_WIDE_VALUES = 128 };

/** Values of a wide row: the largest multiple of channels up to QAT_WIDE_VALUES, or channels. */
static inline size_t qat_wide_of(size_t channels)
{
    return channels < QAT_WIDE_VALUES ? QAT_WIDE_VALUES / channels * channels : channels;
}

/** Length of the repeated coefficients. */
static inline size_t qat_wide_pattern(size_t channels)
{
    return qat_wide_of(channels) + channels;
}

/** pattern[i] = by_channel[i % channels]; pattern may equal by_channel. */
void qat_wide_lay(const qat_real *by_channel, size_t channels, qat_real *pattern);
/** The same for integers, in place. */
void qat_wide_lay_ints(int32_t *values, size_t channels);

/**
 * A loop over n values: where its coefficients begin in the pattern, and how many follow each
 * other.
 */
typedef struct qat_stretch {
    size_t first, wide, n;
} qat_stretch;

/** The loop over n values from `at` on. */
static inline qat_stretch qat_stretch_of(size_t channels, size_t at, size_t n)
{
    return (qat_stretch){at % channels, qat_wide_of(channels), n};
}

#endif
