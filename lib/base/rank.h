/**
 * Sorting by 32-bit keys: codes are keys themselves; real numbers become keys in the same order.
 */
#ifndef QAT_BASE_RANK_H
#define QAT_BASE_RANK_H

#include <stdint.h>

/**
 * A key for the real number x (not NaN). A larger number has a larger key; equal numbers, also 0
 * and -0, have the same key.
 */
int32_t qat_rank_key(float x);

/**
 * Sort n indices by falling keys[index], stable.
 * @param room  work space for n more indices
 */
void qat_rank_falling(const int32_t *keys, int *indices, int *room, int n);

#endif
