/**
 * Paints figures. Shapes in their own coordinates are collected in a mask, which is then laid over
 * the canvas in a colour.
 *
 *     brush_ellipse(&b, 0, 0, 1, 1);
 *     brush_ink(&b, &red, 1);
 */
#ifndef QAT_DATASETS_BRUSH_H
#define QAT_DATASETS_BRUSH_H

#include "datasets/procedural/paint.h"

enum { BRUSH_CIRCLE = 24, BRUSH_POLYGON_MAX = 2 * BRUSH_CIRCLE };

typedef struct brush {
    const paint_canvas *canvas;
    draw_mask mask;
    draw_affine place;            /* from the coordinates of shapes to pixels */
    float unit;                   /* length 1 in pixels */
    int left, top, right, bottom; /* the part of the mask that is in use */
} brush;

/** Empty the mask. All of the mask must be marked as in use before. */
void brush_clear(brush *b);
/** Lay the colour over the canvas where the mask covers it, and clear the mask. */
void brush_ink(brush *b, const paint_colour *c, float opacity);

/** Add a polygon of at most BRUSH_POLYGON_MAX points. */
void brush_polygon(brush *b, const draw_point *points, int n);
void brush_line(brush *b, draw_point from, draw_point to, float width);
void brush_polyline(brush *b, const draw_point *points, int n, float width);
/** From one point to another, pulled towards `via`: a quadratic Bezier curve. */
void brush_curve(brush *b, draw_point from, draw_point via, draw_point to, float width);
void brush_ellipse(brush *b, float x, float y, float rx, float ry);
/** An ellipse's outline. */
void brush_loop(brush *b, float x, float y, float rx, float ry, float width);
/** Point i of BRUSH_CIRCLE about (0, 0), clockwise on the screen, from (1, 0). */
draw_point brush_circle_point(int i);

#endif
