/** A detector's answers drawn into the picture. */
#ifndef QAT_TOOLS_DRAW_BOXES_H
#define QAT_TOOLS_DRAW_BOXES_H

#include "common/tool.h"

/**
 * Write dir/<name of the picture without its ending>.png: the picture as it is stored, with a frame
 * around every box of a score of at least `least` (below 0: of DRAW_LEAST_PERCENT), a colour for
 * each class.
 */
enum { DRAW_LEAST_PERCENT = 30 };
qat_status draw_boxes(const qat_detections *found, double least, const char *picture,
                      const char *dir, qat_error *err);

#endif
