/** Writes the answers of a detector as arrays. */
#ifndef QAT_TOOLS_RUN_DETECTOR_H
#define QAT_TOOLS_RUN_DETECTOR_H

#include "tools/common/tool.h"

enum { DETECTOR_OUTPUTS = 4 }; /* boxes, classes, scores, how many */

/** Write output i as a .npy of float32. */
qat_status run_detector_write(const qat_detections *found, int i, const char *path, qat_error *err);
/**
 * Write all outputs as dir/t<index in the source file>.npy. Without a source file the names are
 * boxes.npy, classes.npy, scores.npy, count.npy.
 */
qat_status run_detector_dump(const qat_detections *found, const char *dir, qat_error *err);

#endif
