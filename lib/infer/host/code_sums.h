/**
 * Sums of two tables instead of roundings. add and sub are y = R(s(a) + s'(b)), where R rounds to
 * codes whose thresholds are almost a constant distance D apart. In units of D both summands have
 * an integer part and a fraction, and R carries one if the fractions together reach 1. Which pairs
 * of fractions do so depends on their order alone: of the 256 fractions of a, and of the 256
 * distances to 1 of b. So ranks of 8 bits stand for them:
 *
 *   y = clamp(whole(a) + whole(b) + (rank(a) > rank(b)))
 *
 * The whole parts have 9 bits. They are kept in two halves of 8 bits, which are added one by one
 * with saturation: what saturates is clamped anyway. D is not quite constant. So all 65,536 pairs
 * are compared with the core's codes before the tables are used.
 */
#ifndef QI_HOST_CODE_SUMS_H
#define QI_HOST_CODE_SUMS_H

#include "infer/host/elementwise.h"
#include "infer/host/fast.h"

/** Returns 1; or 0: no tables were found that give the core's codes. Only for add and sub. */
int qi_code_sums_of_node(const qi_model *model, const qi_node *node, qi_code_sums *sums);

/** The code of one pair, as inner loops compute it. */
uint8_t qi_code_sum(const qi_code_sums *sums, uint8_t a, uint8_t b);

#endif
