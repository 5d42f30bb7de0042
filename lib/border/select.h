/** Choosing among boxes: the largest of some values, and non-maximum suppression. */
#ifndef QAT_BORDER_SELECT_H
#define QAT_BORDER_SELECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Corners. */
struct box {
    float ymin, xmin, ymax, xmax;
};

/** n boxes with buffers to choose among them. */
struct candidates {
    struct box *boxes;
    float *scores; /* [n, classes] */
    float *values; /* of each box, for the class being looked at; room for more than n */
    int *order;    /* room for the larger of boxes, classes, and boxes + most */
    int *passed;   /* boxes whose value reaches the threshold */
    int *kept;     /* those that are kept, by falling value */
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
void qat_select_largest(const float *values, int n, int k, int *order);

/**
 * By falling c->values (of equal ones the first): keep a box unless one already kept overlaps it by
 * more than `overlap`; values below `threshold` are left out, and at most `most` are kept.
 * @return how many are in c->kept
 */
int qat_suppress(struct candidates *c, int n, float threshold, float overlap, int most);

#endif
