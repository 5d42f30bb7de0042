/** Paints coloured pictures for the procedural sets: background, texture, clutter, lighting. */
#ifndef QAT_DATASETS_PAINT_H
#define QAT_DATASETS_PAINT_H

#include "datasets/procedural/draw.h"

typedef struct paint_colour {
    float rgb[3];
} paint_colour;

paint_colour paint_random_colour(qat_rng *rng);
/** A colour that differs from two others, the best of several tries. */
paint_colour paint_standing_out(qat_rng *rng, const paint_colour *a, const paint_colour *b);

/** The colour, made darker by this share. */
paint_colour paint_darker(const paint_colour *c, float share);

/** A square RGB picture while it is painted. */
typedef struct paint_canvas {
    int side;
    float (*at)[3]; /* [side side] */
} paint_canvas;

/** Lay a colour over the canvas where the mask covers it, with texture. */
void paint_lay(const paint_canvas *picture, const float *cover, const paint_colour *c,
               const draw_field *texture);
/** Paint a transition from one colour to another in a random direction, with rough texture. */
void paint_background(qat_rng *rng, const paint_canvas *picture, const paint_colour *a,
                      const paint_colour *b);
/** Paint a small four-cornered scrap or a thin line anywhere. cover: work space for a mask. */
void paint_scrap(qat_rng *rng, const paint_canvas *picture, float reach, float *cover);
/**
 * Add lighting and noise up to these limits (PAINT_LIGHT, PAINT_NOISE), then convert to bytes:
 * values [side, side, 3].
 */
void paint_develop(qat_rng *rng, const paint_canvas *picture, float most_light, float most_noise,
                   uint8_t *values);
enum { PAINT_LIGHT = 40, PAINT_NOISE = 20 };

#endif
