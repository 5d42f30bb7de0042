/** Painting coloured pictures for the procedural sets: background, texture, clutter, lighting. */
#ifndef QAT_DATASETS_PAINT_H
#define QAT_DATASETS_PAINT_H

#include "datasets/draw.h"

typedef struct paint_colour {
    float rgb[3];
} paint_colour;

paint_colour paint_random_colour(qat_rng *rng);
/** A colour that stands out from two others, as far as some tries find one. */
paint_colour paint_standing_out(qat_rng *rng, const paint_colour *a, const paint_colour *b);

/** The colour, darker by this share. */
paint_colour paint_darker(const paint_colour *c, float share);

/** A square picture in the making, RGB. */
typedef struct paint_canvas {
    int side;
    float (*at)[3]; /* [side side] */
} paint_canvas;

/** Lay a colour over the canvas where the mask covers, modulated by texture. */
void paint_lay(const paint_canvas *picture, const float *cover, const paint_colour *c,
               const draw_field *texture);
/** From one colour to another along a random direction, and rough texture. */
void paint_background(qat_rng *rng, const paint_canvas *picture, const paint_colour *a,
                      const paint_colour *b);
/** A small four-cornered scrap or a thin line, anywhere. cover: work space, a mask's. */
void paint_scrap(qat_rng *rng, const paint_canvas *picture, float reach, float *cover);
/** Lighting and noise up to so much (PAINT_LIGHT, PAINT_NOISE), then bytes: values [side, side, 3].
 */
void paint_develop(qat_rng *rng, const paint_canvas *picture, float most_light, float most_noise,
                   uint8_t *values);
enum { PAINT_LIGHT = 40, PAINT_NOISE = 20 };

#endif
