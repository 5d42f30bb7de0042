/** Draws answers: boxes into the picture, classes of pixels as a mask. */
#ifndef QAT_TOOLS_DRAW_BOXES_H
#define QAT_TOOLS_DRAW_BOXES_H

#include "tools/common/tool.h"

/** The pictures of a run, and the files that they are drawn as. */
typedef struct draw_list {
    struct draw_item *items;
    size_t n;
} draw_list;
/** A picture of a run; refuse one that would be drawn over itself. */
qat_status draw_list_add(draw_list *l, const char *picture, const char *dir, qat_error *err);
/** Refuse two pictures that would be drawn as one file. Another order of the list. */
qat_status draw_list_check(draw_list *l, qat_error *err);
void draw_list_free(draw_list *l);

/**
 * Write dir/<name of the picture without its ending>.png: the picture in its stored size, with a
 * frame around every box of score `least` or more. A value below 0 stands for DRAW_LEAST_PERCENT.
 * Each class has its own colour. max_pixels: see qat_picture_read_within.
 */
enum { DRAW_LEAST_PERCENT = 30 };
qat_status draw_boxes(const qat_detections *found, double least, const char *picture,
                      const char *dir, int max_pixels, qat_error *err);

/**
 * Of a model that qat_has_pixels, write dir/<name of the picture without its ending>.png: the class
 * of each pixel in the picture's stored size, as indices of a palette. codes: the model's output.
 */
enum { DRAW_CLASSES = 256 };
qat_status draw_mask(const qi_model *model, const void *codes, const char *picture, const char *dir,
                     int max_pixels, qat_error *err);

#endif
