/**
 * Selects boxes by integer keys: the k largest, and non-maximum suppression. The keys are codes of
 * a model, or come from floats (qat_rank_key).
 */
#ifndef QAT_DETECT_SELECT_H
#define QAT_DETECT_SELECT_H

#include "qat/detect.h"

/** n boxes, with buffers to select among them. */
struct candidates {
    qat_box *boxes;
    int32_t *keys;   /* [n, classes] */
    int32_t *values; /* key of each box for the current class; has room for more than n */
    int *order;      /* has room for the largest of: boxes, classes, boxes + most */
    int *passed;     /* boxes whose value reaches the threshold */
    int *kept;       /* the boxes that are kept, by falling value */
    uint8_t *alive;
};

/**
 * @param most  how many are kept at once, beyond n
 * @return false: out of memory (call qat_candidates_free nevertheless)
 */
bool qat_candidates_init(struct candidates *c, int n, int classes, int most);
void qat_candidates_free(struct candidates *c);

/**
 * Find the indices of the k largest of n values, in falling order. Of equal values, k = 1 gives the
 * first. Otherwise their order is that of a heap of k, as in the C++ library's partial_sort, which
 * TensorFlow Lite uses.
 * @param order  room for n
 */
void qat_select_largest(const int32_t *values, int n, int k, int *order);

/**
 * Take boxes by falling c->values (of equal ones the first). Keep a box unless a kept box overlaps
 * it by more than `overlap`. Values below `threshold` are left out. At most `most` boxes are kept.
 * @return how many are in c->kept
 */
int qat_suppress(struct candidates *c, int n, int32_t threshold, float overlap, int most);

#endif
