/** Draws the answers of a detector into the picture. */
#ifndef QAT_TOOLS_DRAW_BOXES_H
#define QAT_TOOLS_DRAW_BOXES_H

#include "tools/common/tool.h"

/**
 * Write dir/<name of the picture without its ending>.png: the picture in its stored size, with a
 * frame around every box of score `least` or more. A value below 0 stands for DRAW_LEAST_PERCENT.
 * Each class has its own colour. max_pixels: see qat_picture_read_within.
 */
enum { DRAW_LEAST_PERCENT = 30 };
qat_status draw_boxes(const qat_detections *found, double least, const char *picture,
                      const char *dir, int max_pixels, qat_error *err);

#endif
