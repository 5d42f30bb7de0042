/**
 * mul as one line. With p = (q1 - Z1) (q2 - Z2),
 *
 *   y = clamp(floor((M p + B + jump(p)) / 2^32)),   jump(p) = J 2^16 if p < 0, else 0
 *
 * B and J 2^16 are multiples of 2^16. The products of all codes lie within 255^2 < 2^16 of each
 * other, so p minus a constant has 16 bits. The core's multiplier gives M; the jump stands for its
 * second rounding, whose ties go away from zero. (Roundings ONCE and EVEN need no jump.) Both
 * are monotonic in p on each side of zero. So the line's codes are the core's if they are at the
 * ends of both sides, and around each of the core's steps, which bisection finds: at the first p of
 * each code, and at the p below it. These are bounds for B on each side.
 */
#ifndef QI_HOST_PRODUCT_LINE_H
#define QI_HOST_PRODUCT_LINE_H

#include "infer/host/loops/elementwise.h"
#include "infer/host/loops/fast.h"

/** Returns 1; or 0: no line was found that gives the core's codes. Only for mul. */
int qi_product_line_of_node(const qi_model *model, const qi_node *node, qi_product_line *line);

/** The code of one pair of bytes, as inner loops compute it. */
uint8_t qi_product_line_code(const qi_product_line *line, uint8_t a, uint8_t b);

#endif
