/** Ranking by 32-bit keys: codes as they are, or reals as keys of the same order. */
#ifndef QAT_BASE_RANK_H
#define QAT_BASE_RANK_H

#include <stdint.h>

/** A key for x: of two reals (not NaN) the larger has the larger key; of equal ones it is the same,
 *  0 and -0 too. */
int32_t qat_rank_key(float x);

/**
 * Sort n indices by falling keys[index], stable.
 * @param room  n more, for the work
 */
void qat_rank_falling(const int32_t *keys, int *indices, int *room, int n);

#endif
