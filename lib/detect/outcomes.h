/** The outcome of each box that was found, at ten IoU thresholds: correct, wrong or not counted. */
#ifndef QAT_DETECT_OUTCOMES_H
#define QAT_DETECT_OUTCOMES_H

#include "qat/detect.h"

enum { MOST_FOUND = 100 }; /* most boxes of a class that count in a picture */

/** A range of areas in pixels, both ends included. */
struct area_range {
    double low, high;
};
#define ALL_AREAS ((struct area_range){0, 1e10})

/** Bit t stands for IoU threshold number t. */
struct outcome {
    int32_t key; /* of the score, see qat_rank_key */
    int picture, rank;
    uint16_t correct, uncounted;
};

/** The outcomes of one class, by falling score. */
struct outcomes {
    struct outcome *rows;
    int n;
    int *objects; /* by picture: the number of objects that count */
    int n_pictures;
    int64_t n_objects;
};

/** IoU threshold number t: 0.5 + 0.05 t. */
double qat_iou_threshold(int t);

/**
 * Free with qat_outcomes_free, also after a failure. QAT_ERR_NOMEM, or QAT_ERR_ARGUMENT for an
 * invalid class or score.
 */
qat_status qat_outcomes_init(struct outcomes *o, const qat_scored_set *set, int class,
                             struct area_range range, qat_error *err);
void qat_outcomes_free(struct outcomes *o);

/** Work space of qat_class_precision. */
struct curve {
    double *precision, *recall;
};

/**
 * The average precision of one class at IoU threshold t, from at most `most` boxes per picture.
 * @param weights  how often each picture counts, or NULL: once
 * @param curve    room for o->n values each
 * @param recall   recall with all those boxes; may be NULL
 * @return -1 if there are no objects
 */
double qat_class_precision(const struct outcomes *o, int t, int most, const int *weights,
                           struct curve *curve, double *recall);

#endif
