/**
 * Requantization by one product. The codes of a channel are a step function of its sum s: with
 * multiplier m, right shift n >= 1, p = s m and q = 31 + n, rounding twice gives
 * (include/qat/rounding.h)
 *
 *     s >= 0:   floor((p + C) / 2^q),   C = 2^(30 + n) + 2^30
 *     s <  0:   floor((p + C) / 2^q),   C = 2^(30 + n) - 2^30     (ties go away from zero)
 *
 * C is no multiple of m, so it costs a 64-bit sum of its own. But only the steps between the codes
 * lo..hi matter, at most 255 of them, and each may lie anywhere between two successive s. Let t be
 * an integer, and B the one for which B m is nearest to C + t 2^q, so that E = B m - t 2^q - C is
 * small. Then
 *
 *     floor((s + B) m / 2^q) - t = floor((p + C + E) / 2^q)
 *
 * has the same step at code j as long as no s lies between the two. That is, with D_j = (C - j 2^q)
 * mod m, the way from the step to the next s:
 *
 *     -min D_j  <=  E  <  m - max D_j
 *
 * About one t in 128 does. B is added to the bias, t is subtracted with the zero point, and all
 * that a sum needs is a product and a shift.
 *
 * A channel in some thousands has no such t, because its steps leave E too little room. It gets a
 * multiplier M near m instead, which turns the line a little. Let T_j be the least s of code j, and
 * R_j = j 2^q - T_j M. The steps of floor((s + B) M / 2^q) - t are at all T_j if
 *
 *     max R_j  <=  B M - t 2^q  <  min R_j + M
 *
 * With f fractional bits the codes are a step function of a = s 2^f + bias, and n is f larger. The
 * steps only matter at those a, which are 2^f apart. That leaves so much room that
 *
 *     floor((s 2^f + B) m / 2^q) - t
 *
 * is right with some small t, mostly 0, and m itself. If B is a multiple of 2^f, sums need no
 * fraction at all:
 *
 *     floor((s + B / 2^f) m / 2^(q - f)) - t
 *
 * About one t in 128 has such a B. One line may do for both signs: their C differ by 2^31, and from
 * one s to the next the product grows by 2^f m, which is more if f >= 2 and m >= 2^30.
 */
#ifndef QI_HOST_SUM_LINE_H
#define QI_HOST_SUM_LINE_H

#include <stdint.h>

/**
 * Codes without zero_point are floor((s 2^fraction + add) m / 2^(31 + n)) - offset; of whole sums
 * floor((s + add) m / 2^(31 + n - fraction)) - offset.
 */
typedef struct qi_sum_line {
    int32_t add, offset; /* B, t; 0 <= t <= QI_SUM_LINE_OFFSET */
} qi_sum_line;

enum { QI_SUM_LINE_OFFSET = 8192 };

/**
 * A line for the sums of one sign.
 * @param negative  for s < 0, else for s >= 0
 * @param mult      m, 0..2^31 - 1
 * @param right     n, 1..31
 * @param first,end its codes without zero_point: the steps to first..end - 1 must be right. For s
 * >= 0 they are > 0, for s < 0 they are <= 0; there may be none
 * @param most      largest |s|
 * @return          0 if there is none
 */
int qi_sum_line_find(int negative, int32_t mult, int32_t right, int32_t first, int32_t end,
                     int64_t most, qi_sum_line *line);

enum { QI_SUM_LINE_TURNS = 128 };

/** M number 0 <= i < QI_SUM_LINE_TURNS for a channel with multiplier m; 0: there is none. */
int32_t qi_sum_line_turn(int32_t mult, int32_t right, int64_t most, int i);

/**
 * A channel's codes without zero_point: of a = s 2^fraction + bias, a mult / 2^(31 + right),
 * rounded twice. right: 1..23. Without a fraction the bias is 0: s holds it.
 */
typedef struct qi_sum_steps {
    int32_t mult, right, fraction, bias;
    int64_t most;  /* largest |a| */
    int32_t whole; /* B must be a multiple of 2^fraction; add is B / 2^fraction then */
} qi_sum_steps;

/** The sums for which a line must be right. */
typedef enum qi_sum_side { QI_SUMS_POSITIVE, QI_SUMS_NEGATIVE, QI_SUMS_ALL } qi_sum_side;

/**
 * Find the line of multiplier `mult`, that of the steps or a turned one, whose steps to first..end
 * - 1 are those of a channel, where end - first <= 512. POSITIVE: for a >= 0, first > 0. NEGATIVE:
 * for a < 0, end <= 1. ALL: for all a. With `whole`, right > fraction.
 * @return  0 if there is none
 */
int qi_sum_line_fit(qi_sum_side side, const qi_sum_steps *steps, int32_t mult, int32_t first,
                    int32_t end, qi_sum_line *line);
/** The least s with a >= 0. */
int64_t qi_sum_line_zero(const qi_sum_steps *steps);

#endif
