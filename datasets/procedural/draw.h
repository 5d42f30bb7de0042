/**
 * Drawing for the procedural sets: coverage masks of strokes and polygons, smooth random fields. It
 * uses only + - * / and sqrtf, whose results IEEE 754 defines. So a seed gives the same picture on
 * every machine.
 */
#ifndef QAT_DATASETS_DRAW_H
#define QAT_DATASETS_DRAW_H

#include "base/rng.h"

#include <stdint.h>

typedef struct draw_point {
    float x, y; /* pixels; (0, 0) is the outer corner of the first pixel, y points down */
} draw_point;

enum { DRAW_MAX_SIDE = 512 };

/** A square mask of coverages in [0, 1], row by row. Its side is at most DRAW_MAX_SIDE. */
typedef struct draw_mask {
    int side;
    float *at; /* side * side */
} draw_mask;

/** Uniform in [low, high). */
float draw_uniform(qat_rng *rng, float low, float high);

/** A point uniform in [low, high)^2; x is drawn first. */
draw_point draw_point_random(qat_rng *rng, float low, float high);

/** True with this probability. */
int draw_chance(qat_rng *rng, float probability);

/**
 * Approximately normal with mean 0 and deviation 1: a scaled sum of four uniform numbers, within
 * +-3.47.
 */
float draw_normal(qat_rng *rng);

/**
 * Draw a line with round ends. The coverage becomes the larger of the old one and 1/2 + radius -
 * distance to the line, clamped. The radius goes from radius_a at a to radius_b at b.
 */
void draw_line(draw_mask *mask, draw_point a, draw_point b, float radius_a, float radius_b);

/** A polygon: contours one after another, filled by the even-odd rule, with antialiased edges. */
typedef struct draw_contours {
    const draw_point *points;
    const int *ends; /* for each contour, the index after its last point */
    int count;       /* of contours */
} draw_contours;

/**
 * Set coverage to the larger of the old one and the polygon's. A row may cross at most 64 edges.
 */
void draw_polygon(draw_mask *mask, const draw_contours *contours);

/**
 * A smooth random field: values on a 5 x 5 lattice over the unit square. Between them it is
 * bilinear in smoothed fractions.
 */
typedef struct draw_field {
    float at[5][5];
} draw_field;

/** A field with lattice values uniform in +-amplitude. */
draw_field draw_field_random(qat_rng *rng, float amplitude);

/** The field's value at (x, y) in [0, 1]^2; outside, the value at the border. */
float draw_field_at(const draw_field *field, float x, float y);

/** A rotation, shear and scaling about a centre, then a shift. */
typedef struct draw_affine {
    float xx, xy, yx, yy;     /* x' = xx x + xy y + shift.x and so on */
    draw_point centre, shift; /* the centre is subtracted first; shift is where it goes */
} draw_affine;

/**
 * @param half_tan  tangent of half the angle of rotation, clockwise on the screen
 * @param slant     how far x moves to the left per unit downwards, before the rotation
 */
draw_affine draw_affine_make(draw_point centre, draw_point shift, float half_tan, float slant,
                             float scale_x, float scale_y);
draw_point draw_affine_apply(const draw_affine *affine, draw_point p);

/** round(v) clamped to a byte. */
uint8_t draw_byte(float v);

#endif
