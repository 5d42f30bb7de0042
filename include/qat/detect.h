/**
 * Object detection in real numbers, SSD's way (Liu et al., 2016): anchors, the codes of boxes
 * relative to them, which anchor learns which object, choosing among what a network found, and how
 * good that was.
 *
 *     qat_anchors_create(&anchors, &spec, &err);          // one box per place and shape
 *     qat_match_anchors(match, anchors, n, truth, n_truth, 0.5f, &err);
 *     qat_box_encode(&qat_ssd_coder, &anchors[i], &truth[match[i]].box);   // what the net learns
 *     ...
 *     qat_choose_boxes(found, &n_found, &rules, &qat_ssd_coder, anchors, codes, scores, n, classes,
 *                      &err);                             // what it found
 *     qat_average_precision(&figures, &set, &err);        // COCO's
 *
 * There are no handles. All functions compute from their arguments only: any number of threads may
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

/** A box by its corners, as shares of the picture's height and width: 0..1 inside it, from the
 *  upper left. The only form in which boxes are passed on. */
typedef struct qat_box {
    float ymin, xmin, ymax, xmax;
} qat_box;

/** A box by its centre and size: an anchor, or (no shares, then) a box's code. */
typedef struct qat_centre_box {
    float y, x, height, width;
} qat_centre_box;

qat_centre_box qat_box_centre(const qat_box *box);
qat_box qat_box_corners(const qat_centre_box *centre);

/** Intersection over union, in float32 as TensorFlow Lite computes it; 0 where a box has no area.
 */
float qat_box_iou(const qat_box *a, const qat_box *b);

/** Intersection over the area of `box`; 0 where that has none. */
float qat_box_covered(const qat_box *box, const qat_box *by);

/** Scale factors of a code; they make codes of unit size. */
typedef struct qat_box_coder {
    float y, x, height, width;
} qat_box_coder;

/** SSD's: 10, 10, 5, 5 (its "variances" 0.1, 0.1, 0.2, 0.2). */
extern const qat_box_coder qat_ssd_coder;

/**
 * A box's code relative to an anchor a; the box and the anchor have sides above 0.
 *
 *     y = coder.y (y_box - y_a) / h_a        h = coder.height log(h_box / h_a)    and so x, w
 */
qat_centre_box qat_box_encode(const qat_box_coder *coder, const qat_centre_box *anchor,
                              const qat_box *box);

/** Its inverse, in TensorFlow Lite's order of float32 and float64 operations. */
qat_box qat_box_decode(const qat_box_coder *coder, const qat_centre_box *anchor,
                       const qat_centre_box *code);

/* ------------------------------------------------------------------ anchors */

enum { QAT_MAX_ANCHOR_LAYERS = 8, QAT_MAX_ASPECT_RATIOS = 8 };

/**
 * SSD's anchors over n feature maps, the finest first. Layer i has
 *
 *     scale[i] = min_scale + (max_scale - min_scale) i / (n - 1)       scale[n] = 1
 *
 * (n = 1: min_scale) and at each of its cells, centred there, a box of height scale / sqrt(r) and
 * width scale sqrt(r) for every aspect ratio r, then (extra_square) a square of side
 * sqrt(scale[i] scale[i+1]). With reduced_lowest the first layer has three instead: a square of
 * 0.1, and the ratios 2 and 1/2 at its scale.
 */
typedef struct qat_anchor_spec {
    int n_layers;
    int height[QAT_MAX_ANCHOR_LAYERS], width[QAT_MAX_ANCHOR_LAYERS]; /* cells */
    double min_scale, max_scale;                                     /* in (0, 1] */
    int n_ratios;
    double ratios[QAT_MAX_ASPECT_RATIOS]; /* width : height */
    bool extra_square, reduced_lowest;
} qat_anchor_spec;

/** SSD MobileNet's: 0.2 to 0.95, ratios 1, 2, 1/2, 3, 1/3, both flags. Layers are the caller's. */
qat_anchor_spec qat_anchor_defaults(void);

/** Anchors at each cell of a layer. */
int qat_anchors_per_cell(const qat_anchor_spec *spec, int layer);

/** Of all layers, or -1 for more than 2^24, or more layers than QAT_MAX_ANCHOR_LAYERS. */
int qat_anchors_count(const qat_anchor_spec *spec);

/**
 * All anchors, in the order of a network's outputs: layer, row, column, shape. Not cut off at the
 * picture's border.
 * @param anchors  qat_anchors_count of them; free() them
 * @return QAT_ERR_ARGUMENT names the member that is out of its range
 */
qat_status qat_anchors_create(qat_centre_box **anchors, const qat_anchor_spec *spec,
                              qat_error *err);

/* ------------------------------------------------------------------ truth, and who learns it */

/** An object of a picture. */
typedef struct qat_truth {
    qat_box box;
    int32_t label; /* its class, from 0 */
    bool crowd;    /* a region of many: neither learned nor, where it is found, an error */
    double area;   /* of the object itself, in pixels of the picture as it is stored */
} qat_truth;

/** What an anchor learns, where it is no object's number. */
enum { QAT_BACKGROUND = -1, QAT_IGNORED = -2 };

/**
 * Which object each anchor learns. First every object (but crowds) gets an anchor of its own: of
 * all pairs the one with the largest IoU (above 0), then that of the remaining ones, and so on; of
 * equal pairs the first object's, at its first anchor. Then each other anchor takes the object it
 * overlaps most (of equal ones the first) if their IoU is at least `threshold`. What is left is
 * background, or ignored where at least half of it lies in a crowd. A box that is not finite
 * overlaps nothing.
 *
 * @param match  [n_anchors]: an index of truth, QAT_BACKGROUND or QAT_IGNORED
 * @return QAT_ERR_NOMEM: for the IoU of all pairs
 */
qat_status qat_match_anchors(int32_t *match, const qat_centre_box *anchors, int n_anchors,
                             const qat_truth *truth, int n_truth, float threshold, qat_error *err);

/* ------------------------------------------------------------------ choosing */

/** How boxes are chosen: TFLite_Detection_PostProcess's options. */
typedef struct qat_choice_rules {
    int max_detections;
    int max_classes;       /* fast: classes listed with each box */
    int per_class;         /* regular: boxes kept of each class before the best of all are */
    bool regular;          /* suppress within each class, not among all boxes by their best class */
    int background;        /* scores before class 0's, 0 or 1 */
    float score_threshold; /* of lower scores nothing is kept */
    float iou_threshold;   /* what overlaps a better one by more than this goes; (0, 1] */
} qat_choice_rules;

/** A box that was found. */
typedef struct qat_found {
    qat_box box;
    int32_t label; /* its class, from 0 */
    float score;
} qat_found;

/**
 * Of one picture: decode n boxes, and choose by non-maximum suppression: by falling score, a box is
 * kept unless one already kept overlaps it by more than the threshold; at equal scores the first.
 * What qat_detect does with an integer model's codes, for a float network's values.
 *
 * @param scores  [n, background + classes], finite
 * @param found   room for max_detections, times max_classes unless regular; the best first
 * @param n_found how many
 * @return QAT_ERR_NUMERIC for a score or code that is not finite, QAT_ERR_ARGUMENT for rules out of
 *         range
 */
qat_status qat_choose_boxes(qat_found *found, int *n_found, const qat_choice_rules *rules,
                            const qat_box_coder *coder, const qat_centre_box *anchors,
                            const qat_centre_box *codes, const float *scores, int n, int classes,
                            qat_error *err);

/* ------------------------------------------------------------------ how good it was */

/** A picture of a set: what is in it, what was found, and its size in pixels, which areas are
 *  measured in. */
typedef struct qat_scored_picture {
    double height, width;
    const qat_truth *truth;
    int n_truth;
    const qat_found *found; /* in any order; equal scores count in this one */
    int n_found;
} qat_scored_picture;

typedef struct qat_scored_set {
    const qat_scored_picture *pictures;
    int n_pictures, classes;
} qat_scored_set;

enum { QAT_IOU_THRESHOLDS = 10 }; /* 0.5, 0.55 .. 0.95 */

/** COCO's twelve figures in its order; -1 where no picture has an object they are about. Shares. */
typedef struct qat_coco_figures {
    double ap, ap50, ap75;                /* over all IoU thresholds, at 0.5, at 0.75 */
    double ap_small, ap_medium, ap_large; /* area below 32^2 pixels, up to 96^2, above */
    double ar1, ar10, ar100;              /* recall with so many boxes a picture */
    double ar_small, ar_medium, ar_large; /* with 100 */
} qat_coco_figures;

/**
 * Average precision as COCO defines it: the mean, over classes, IoU thresholds and 101 recalls r =
 * 0, 0.01 .. 1, of the largest precision at a recall of at least r (0 where that is not reached).
 * In each picture and class, boxes by falling score, at most 100, each take the object with the
 * largest IoU that no better box has; a box on a crowd, or on an object or (not on one) itself
 * outside the range of areas, counts neither way.
 */
qat_status qat_average_precision(qat_coco_figures *figures, const qat_scored_set *set,
                                 qat_error *err);

/** Precision and recall of the boxes from a score on. */
typedef struct qat_precision_recall {
    double precision, recall; /* means over the IoU thresholds */
    double precision_at[QAT_IOU_THRESHOLDS], recall_at[QAT_IOU_THRESHOLDS];
} qat_precision_recall;

/**
 * As the paper's table 4.5: at each IoU threshold, the share of boxes with a score of at least
 * `score` that are correct, and of objects that are found, all classes together; and their means.
 * No boxes: precision 1; no objects: recall 1.
 */
qat_status qat_precision_and_recall(qat_precision_recall *result, const qat_scored_set *set,
                                    float score, qat_error *err);

typedef struct qat_ap_interval {
    double low, high;
} qat_ap_interval;

/**
 * A bootstrap interval of AP50: the figure of `resamples` sets, each of as many pictures as the set
 * has, drawn from it with replacement by (seed, number of the resample); from the (1 - level) / 2
 * quantile to the one that leaves as much above (nearest rank). Resamples without any object are
 * left out; -1, -1 where that leaves none.
 * @param level  in (0, 1), as 0.95
 */
qat_status qat_ap50_interval(qat_ap_interval *interval, const qat_scored_set *set, int resamples,
                             uint64_t seed, double level, qat_error *err);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
