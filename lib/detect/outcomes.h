/** What became of each box that was found: correct, wrong or not counted, at ten IoU thresholds. */
#ifndef QAT_DETECT_OUTCOMES_H
#define QAT_DETECT_OUTCOMES_H

#include "qat/detect.h"

enum { MOST_FOUND = 100 }; /* boxes of a class that count in a picture */

/** Areas in pixels, both ends included. */
struct area_range {
    double low, high;
};
#define ALL_AREAS ((struct area_range){0, 1e10})

/** Bit t: at IoU threshold number t. */
struct outcome {
    int32_t key; /* of the score */
    int picture, rank;
    uint16_t correct, uncounted;
};

/** Of one class, by falling score. */
struct outcomes {
    struct outcome *rows;
    int n;
    int *objects; /* of each picture, those that count */
    int n_pictures;
    int64_t n_objects;
};

/** IoU threshold number t: 0.5 + 0.05 t. */
double qat_iou_threshold(int t);

/** free with qat_outcomes_free, after a failure too. QAT_ERR_NOMEM, or QAT_ERR_ARGUMENT for a class
 *  or score that makes no sense. */
qat_status qat_outcomes_init(struct outcomes *o, const qat_scored_set *set, int class,
                             struct area_range range, qat_error *err);
void qat_outcomes_free(struct outcomes *o);

/** Work space of qat_class_precision. */
struct curve {
    double *precision, *recall;
};

/**
 * Average precision of one class at IoU threshold t, from at most `most` boxes a picture.
 * @param weights  how often each picture counts, or NULL: once
 * @param curve    room for o->n values each
 * @param recall   with all those boxes; may be NULL
 * @return -1 where there are no objects
 */
double qat_class_precision(const struct outcomes *o, int t, int most, const int *weights,
                           struct curve *curve, double *recall);

#endif
