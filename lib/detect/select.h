/**
 * Choosing among boxes by integer keys: the largest of some, and non-maximum suppression. Keys are
 * a model's codes, or those of floats (qat_rank_key).
 */
#ifndef QAT_DETECT_SELECT_H
#define QAT_DETECT_SELECT_H

#include "qat/detect.h"

/** n boxes with buffers to choose among them. */
struct candidates {
    qat_box *boxes;
    int32_t *keys;   /* [n, classes] */
    int32_t *values; /* key of each box, for the class being looked at; room for more than n */
    int *order;      /* room for the larger of boxes, classes, and boxes + most */
    int *passed;     /* boxes whose value reaches the threshold */
    int *kept;       /* those that are kept, by falling value */
    uint8_t *alive;
};

/** @param most  kept at once, beyond n; false: out of memory (free it all the same) */
bool qat_candidates_init(struct candidates *c, int n, int classes, int most);
void qat_candidates_free(struct candidates *c);

/**
 * Indices of the k largest of n values, falling. Of equal ones: k = 1 gives the first; else the
 * order is that of a heap of k (as the C++ library's partial_sort, which TensorFlow Lite uses).
 * @param order  room for n
 */
void qat_select_largest(const int32_t *values, int n, int k, int *order);

/**
 * By falling c->values (of equal ones the first): keep a box unless one already kept overlaps it by
 * more than `overlap`; values below `threshold` are left out, and at most `most` are kept.
 * @return how many are in c->kept
 */
int qat_suppress(struct candidates *c, int n, int32_t threshold, float overlap, int most);

#endif
