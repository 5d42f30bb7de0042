/** The parts of the task of boxes: between the outputs of its networks and boxes. */
#ifndef QAT_TASK_DETECTOR_H
#define QAT_TASK_DETECTOR_H

#include "base/arena.h"
#include "task/task.h"

/**
 * How a detector's outputs become boxes, and how boxes become targets of its anchors: the state of
 * such a task.
 */
typedef struct qat_detector {
    qat_centre_box *anchors;
    int32_t *match; /* [n_anchors]: the objects that they learn, of one picture after the other */
    int n_anchors, classes;
    qat_arena memory; /* of a picture's targets */
    qat_choice_rules rules;
    float match_iou;
} qat_detector;

/**
 * Make the anchors of a detector's float graph, from the feature maps that its heads
 * "head<i>/boxes" read, and from the recipe's [detect] keys.
 * @return QAT_ERR_SHAPE if the numbers of anchors and outputs differ
 */
qat_status qat_detector_create(qat_detector **detector, const qat_graph *graph,
                               const qat_recipe *recipe, int classes, qat_error *err);
void qat_detector_free(void *detector); /* NULL is fine */

/** Write the targets of each anchor for a batch into the target nodes of the training graph. */
qat_status qat_feed_targets(const qat_input_info *input, const qat_recipe *recipe, qat_graph *graph,
                            const qat_batch *batch, qat_error *err);

/** Append the anchors and the epilogue (docs/qm-format.md) to a frozen detector. */
qat_status qat_detector_finish(const qat_input_info *input, qat_qgraph *graph, qat_error *err);

/** Collects pictures with their objects and the boxes found, during a pass over a data set. */
typedef struct qat_findings qat_findings;
qat_status qat_findings_create(qat_findings **findings, int classes, qat_error *err);
void qat_findings_free(qat_findings *findings);
/** Add the next picture; objects and boxes are copied. */
qat_status qat_findings_add(qat_findings *findings, const qat_objects *objects,
                            const qat_found *found, int n_found, qat_error *err);
/** The same from a network's outputs for one picture. */
qat_status qat_findings_choose(qat_findings *findings, const qat_detector *detector,
                               const qat_objects *objects, const float *codes, const float *scores,
                               qat_error *err);
/** The same from the boxes that the epilogue of an integer model found. */
qat_status qat_findings_add_detections(qat_findings *findings, const qat_objects *objects,
                                       const qat_detections *detections, qat_error *err);
/** Set n, ap, ap50 and its interval, precision and recall. */
qat_status qat_findings_judge(const qat_findings *findings, qat_accuracy *accuracy, qat_error *err);

#endif
