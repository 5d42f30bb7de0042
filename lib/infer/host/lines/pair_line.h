/**
 * add and sub as one line of two variables. With u1, u2 = -128..127, the operands' codes as signed,
 *
 *   y = clamp(floor((A1 u1 + A2 u2 + B) / 2^24))
 *
 * The core rounds four times, and its steps lie elsewhere. But only pairs of codes matter, at most
 * 65,536 of them, and each leaves room for the line. With the core's own rescaled operands s1, s2,
 * the multiplier m and the right shift n of its last step, p = (s1 + s2) m and q = 31 + n, its code
 * is (sum_line.h)
 *
 *   Z + floor(E),   E = (p + 2^(30 + n) +- 2^30) / 2^q        rounding ONCE: without +- 2^30
 *
 * Let the line be nowhere further than 2^-12 from E + Z. This needs no pairs: E is a sum of two
 * functions of one code each, and so is its distance from the line, but for the +-. Then the line's
 * code can differ from the core's only if E is within 2^-12 of an integer. There are about 22 such
 * pairs. For each, A1 u1 + A2 u2 + B must be on the core's side of the step: two bounds for B. Of
 * the slopes about the true one (81 pairs A1, A2), nearly always some leave B room.
 *
 * add with rounding EVEN has E = M1 u1' + M2 u2' + c - Z + 1/2, with the codes u' and binary32 c of
 * the core (infer/kernels/add.h), which rounds twice: M2 u2' + c, below 2^12 for M1, M2 < 4, by at
 * most 2^-13; and the whole sum, where it is below 2^9, by at most 2^-16. Beyond that all codes are
 * clamped.
 */
#ifndef QI_HOST_PAIR_LINE_H
#define QI_HOST_PAIR_LINE_H

#include "infer/host/loops/elementwise.h"
#include "infer/host/loops/fast.h"

/** Returns 1; or 0: no line was found that gives the core's codes. Only for add and sub. */
int qi_pair_line_of_node(const qi_model *model, const qi_node *node, qi_pair_line *line);

/** The code of one pair of bytes, as inner loops compute it. */
uint8_t qi_pair_line_code(const qi_pair_line *line, uint8_t a, uint8_t b);

#endif
