/**
 * Object detection in real numbers, as in SSD (Liu et al., 2016): anchors, codes of boxes relative
 * to anchors, which anchor learns which object, choosing among the boxes of a network, and average
 * precision.
 *
 *     qat_anchors_create(&anchors, &spec, &err);          // one box per place and shape
 *     qat_match_anchors(match, best, anchors, n, truth, n_truth, 0.5f);
 *     qat_box_encode(&qat_ssd_coder, &anchors[i], &truth[match[i]].box);   // what the net learns
 *     ...
 *     qat_choose_boxes(found, &n_found, &rules, &qat_ssd_coder, anchors, codes, scores, n, classes,
 *                      &err);                             // what it found
 *     qat_average_precision(&figures, &set, &err);        // COCO's
 *
 * There are no handles. All functions depend on their arguments only: any number of threads may
 * call them at the same time.
 */
#ifndef QAT_DETECT_H
#define QAT_DETECT_H

#include "qat/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* ------------------------------------------------------------------ boxes */

/**
 * A box by its corners, as fractions of the picture's height and width: 0..1 inside it, from the
 * upper left. Functions exchange boxes only in this form.
 */
typedef struct qat_box {
    float ymin, xmin, ymax, xmax;
} qat_box;

/**
 * A box by its centre and size: an anchor; or the code of a box, which is not in fractions of the
 * picture.
 */
typedef struct qat_centre_box {
    float y, x, height, width;
} qat_centre_box;

/** Convert between the two forms. */
qat_centre_box qat_box_centre(const qat_box *box);
qat_box qat_box_corners(const qat_centre_box *centre);

/** Intersection over union, in float32 as TensorFlow Lite computes it; 0 if a box has no area. */
float qat_box_iou(const qat_box *a, const qat_box *b);

/** Intersection over the area of `box`; 0 if its area is 0. */
float qat_box_covered(const qat_box *box, const qat_box *by);

/** The scale factors of a code. They bring codes to unit size. */
typedef struct qat_box_coder {
    float y, x, height, width;
} qat_box_coder;

/** The factors of SSD: 10, 10, 5, 5 (its "variances" 0.1, 0.1, 0.2, 0.2). */
extern const qat_box_coder qat_ssd_coder;

/**
 * The code of a box relative to an anchor a. Box and anchor must have sides above 0.
 *
 *     y = coder.y (y_box - y_a) / h_a        h = coder.height log(h_box / h_a)    and so x, w
 */
qat_centre_box qat_box_encode(const qat_box_coder *coder, const qat_centre_box *anchor,
                              const qat_box *box);

/** The inverse, in TensorFlow Lite's order of float32 and float64 operations. */
qat_box qat_box_decode(const qat_box_coder *coder, const qat_centre_box *anchor,
                       const qat_centre_box *code);

/* ------------------------------------------------------------------ anchors */

enum { QAT_MAX_ANCHOR_LAYERS = 8, QAT_MAX_ASPECT_RATIOS = 8 };

/**
 * The anchors of SSD over n feature maps, the finest first. Layer i has
 *
 *     scale[i] = min_scale + (max_scale - min_scale) i / (n - 1)       scale[n] = 1
 *
 * (n = 1: min_scale). Each of its cells is the centre of one box per aspect ratio r, with height
 * scale / sqrt(r) and width scale sqrt(r), and (extra_square) of a square of side sqrt(scale[i]
 * scale[i+1]). With reduced_lowest the first layer has three boxes instead: a square of 0.1, and
 * the ratios 2 and 1/2 at its scale.
 */
typedef struct qat_anchor_spec {
    int n_layers;
    int height[QAT_MAX_ANCHOR_LAYERS], width[QAT_MAX_ANCHOR_LAYERS]; /* cells */
    double min_scale, max_scale;                                     /* in (0, 1] */
    int n_ratios;
    double ratios[QAT_MAX_ASPECT_RATIOS]; /* width : height */
    bool extra_square, reduced_lowest;
} qat_anchor_spec;

/**
 * The values of SSD MobileNet: 0.2 to 0.95, ratios 1, 2, 1/2, 3, 1/3, both flags set. The caller
 * sets the layers.
 */
qat_anchor_spec qat_anchor_defaults(void);

/** The number of anchors at each cell of a layer. */
int qat_anchors_per_cell(const qat_anchor_spec *spec, int layer);

/**
 * The number of anchors of all layers, or -1 if there are more than 2^24, or if a member is out of
 * its range (qat_anchors_create names it).
 */
int qat_anchors_count(const qat_anchor_spec *spec);

/**
 * All anchors, in the order of a network's outputs: layer, row, column, shape. They are not cut at
 * the border of the picture.
 * @param anchors  qat_anchors_count of them; free() them
 * @return QAT_ERR_ARGUMENT names the member that is out of its range; QAT_ERR_NOMEM
 */
qat_status qat_anchors_create(qat_centre_box **anchors, const qat_anchor_spec *spec,
                              qat_error *err);

/* ------------------------------------------------------------------ truth, and who learns it */

/** An object of a picture. */
typedef struct qat_truth {
    qat_box box;
    int32_t label; /* its class, from 0 */
    bool crowd;    /* a region with many objects: it is not learned, and finding it is no error */
    double area;   /* of the object itself, in pixels of the stored picture */
} qat_truth;

/** Values for an anchor that learns no object. */
enum { QAT_BACKGROUND = -1, QAT_IGNORED = -2 };

/**
 * Decide which object each anchor learns. First every object (except crowds) gets an anchor of its
 * own: of all pairs the one with the largest IoU (above 0), then the best of the remaining pairs,
 * and so on. Of equal pairs, the first object comes first, with its first anchor. Then each other
 * anchor takes the object that it overlaps most (of equal ones the first) if their IoU is at least
 * `threshold`. All other anchors are background, or ignored if at least half of the anchor lies in
 * a crowd. A box that is not finite overlaps nothing.
 *
 * @param match  [n_anchors]: an index of truth, QAT_BACKGROUND or QAT_IGNORED
 * @param best   [n_truth]: for the function's own use
 */
void qat_match_anchors(int32_t *match, int32_t *best, const qat_centre_box *anchors, int n_anchors,
                       const qat_truth *truth, int n_truth, float threshold);

/* ------------------------------------------------------------------ choosing */

/** How boxes are chosen: the options of TFLite_Detection_PostProcess. */
typedef struct qat_choice_rules {
    int max_detections;
    int max_classes; /* fast: how many classes are listed with each box */
    int per_class;   /* regular: boxes kept per class, before the best of all are taken */
    bool regular;   /* suppress within each class; otherwise among all boxes, by their best class */
    int background; /* number of scores before class 0: 1 for the background, or 0 */
    float score_threshold; /* boxes with lower scores are dropped */
    float
        iou_threshold; /* a box is dropped if it overlaps a better one by more than this; (0, 1] */
} qat_choice_rules;

/** A box that was found. */
typedef struct qat_found {
    qat_box box;
    int32_t label; /* its class, from 0 */
    float score;
} qat_found;

/**
 * Decode the n boxes of one picture and choose among them by non-maximum suppression. Boxes are
 * taken by falling score, of equal scores the first. A box is kept unless a kept box overlaps it by
 * more than the threshold. This is for the values of a float network; qat_detect does the same with
 * the codes of an integer model.
 *
 * @param scores  [n, background + classes], finite
 * @param found   room for max_detections boxes, times max_classes unless regular; the best come
 *                first
 * @param n_found number of boxes found
 * @return QAT_ERR_NUMERIC if a score or code is not finite, QAT_ERR_ARGUMENT if a rule is out of
 *         range
 */
qat_status qat_choose_boxes(qat_found *found, int *n_found, const qat_choice_rules *rules,
                            const qat_box_coder *coder, const qat_centre_box *anchors,
                            const qat_centre_box *codes, const float *scores, int n, int classes,
                            qat_error *err);

/* ------------------------------------------------------------------ how good it was */

/**
 * A picture of a set: its objects, the boxes found, and its size in pixels, in which areas are
 * measured.
 */
typedef struct qat_scored_picture {
    double height, width;
    const qat_truth *truth;
    int n_truth;
    const qat_found *found; /* in any order; boxes of equal score count in this order */
    int n_found;
} qat_scored_picture;

typedef struct qat_scored_set {
    const qat_scored_picture *pictures;
    int n_pictures, classes;
} qat_scored_set;

enum { QAT_IOU_THRESHOLDS = 10 }; /* 0.5, 0.55 .. 0.95 */

/**
 * The twelve figures of COCO in its order, as fractions; -1 if no picture has an object of that
 * kind.
 */
typedef struct qat_coco_figures {
    double ap, ap50, ap75;                /* over all IoU thresholds, at 0.5, at 0.75 */
    double ap_small, ap_medium, ap_large; /* area below 32^2 pixels, up to 96^2, above */
    double ar1, ar10, ar100;              /* recall with at most 1, 10, 100 boxes per picture */
    double ar_small, ar_medium, ar_large; /* with 100 boxes */
} qat_coco_figures;

/**
 * Average precision as COCO defines it: the mean over classes, IoU thresholds and the 101 recalls r
 * = 0, 0.01 .. 1 of the largest precision at a recall of at least r (0 if that recall is not
 * reached). In each picture and class the boxes are taken by falling score, at most 100. Each takes
 * the object with the largest IoU that no better box has taken. A box does not count if it is on a
 * crowd, if its object is outside the range of areas, or if it has no object and is itself outside
 * that range.
 */
qat_status qat_average_precision(qat_coco_figures *figures, const qat_scored_set *set,
                                 qat_error *err);

/** Precision and recall of the boxes with at least some score. */
typedef struct qat_precision_recall {
    double precision, recall; /* means over the IoU thresholds */
    double precision_at[QAT_IOU_THRESHOLDS], recall_at[QAT_IOU_THRESHOLDS];
} qat_precision_recall;

/**
 * Precision and recall as in the paper's table 4.5. At each IoU threshold: the fraction of boxes
 * with a score of at least `score` that are correct, and the fraction of objects that are found,
 * all classes together. Also their means. Without boxes the precision is 1; without objects the
 * recall is 1.
 */
qat_status qat_precision_and_recall(qat_precision_recall *result, const qat_scored_set *set,
                                    float score, qat_error *err);

typedef struct qat_ap_interval {
    double low, high;
} qat_ap_interval;

/**
 * A bootstrap interval of AP50. It computes AP50 for `resamples` sets. Each has as many pictures as
 * the set, drawn from it with replacement, with random numbers keyed by (seed, number of the
 * resample). The interval is from the (1 - level) / 2 quantile to the (1 + level) / 2 quantile
 * (nearest rank). Resamples without any object are left out. The result is -1, -1 if none is left.
 * @param level  in (0, 1), for example 0.95
 */
qat_status qat_ap50_interval(qat_ap_interval *interval, const qat_scored_set *set, int resamples,
                             uint64_t seed, double level, qat_error *err);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
