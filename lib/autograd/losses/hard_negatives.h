/**
 * Hard-negative mining. Most anchors of a picture match no object; this chooses those with the
 * largest loss.
 */
#ifndef QAT_AUTOGRAD_HARD_NEGATIVES_H
#define QAT_AUTOGRAD_HARD_NEGATIVES_H

#include "qat/graph.h"

#include <stdint.h>

/** One picture: the losses and targets of its anchors, and the choice. */
typedef struct qat_mining {
    const double *loss;    /* [n] */
    const qat_real *class; /* [n]: 0 background, above 0 a class, below 0 ignored */
    int n;
    double ratio;    /* negatives per match */
    int least;       /* least number of negatives */
    uint8_t *chosen; /* [n]: 1 for every match and each chosen negative */
    int32_t *keys;   /* work space: [n] */
    int *order;      /* [2 n] */
} qat_mining;

/**
 * Choose every match, and the background anchors with the largest loss: floor(ratio matches) of
 * them, or `least` if that is more. Of equal losses (compared as float32) the first is chosen.
 * @return matches
 */
int qat_mine_negatives(const qat_mining *m);

#endif
