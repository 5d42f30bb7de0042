/** Hard-negative mining: of the many anchors that hold nothing, the ones a detector errs on most.
 */
#ifndef QAT_AUTOGRAD_HARD_NEGATIVES_H
#define QAT_AUTOGRAD_HARD_NEGATIVES_H

#include "qat/graph.h"

#include <stdint.h>

/** Of one picture: its anchors' losses and what each has to say, and what is chosen. */
typedef struct qat_mining {
    const double *loss;    /* [n] */
    const qat_real *class; /* [n]: 0 background, above a class, below: ignored */
    int n;
    double ratio;    /* negatives to each match */
    int least;       /* and at least so many */
    uint8_t *chosen; /* [n]: every match, and the chosen negatives */
    int32_t *keys;   /* work space: [n] */
    int *order;      /* [2 n] */
} qat_mining;

/**
 * Choose every match and, of the background, the floor(ratio matches) anchors with the largest
 * loss, or `least` where that is more; of equal losses the first (compared as float32).
 * @return matches
 */
int qat_mine_negatives(const qat_mining *m);

#endif
