/** qat-run's answers of a detector: printed, written as arrays. */
#ifndef QAT_TOOLS_RUN_DETECTOR_H
#define QAT_TOOLS_RUN_DETECTOR_H

#include "common/tool.h"

enum { DETECTOR_OUTPUTS = 4 }; /* boxes, classes, scores, how many */

/** Output i as a .npy of float32. */
qat_status run_detector_write(const qat_detections *found, int i, const char *path, qat_error *err);
/** All of them as dir/t<index in the source file>.npy, or, where there is none, boxes.npy,
 *  classes.npy, scores.npy, count.npy. */
qat_status run_detector_dump(const qat_detections *found, const char *dir, qat_error *err);
/** What was found with a score of at least `least`, one line each, or one JSON object. */
void run_detector_print(const qat_detections *found, const qi_model *model, double least,
                        const char *name, bool json);

#endif
