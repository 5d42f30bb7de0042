/**
 * 32 x 32 colour pictures of ten shapes, turned, bent and scaled, in front of a background of two
 * colours, rough texture and scraps, sometimes partly covered, with lighting and noise.
 */
#include "datasets/procedural/outlines.h"
#include "datasets/procedural/paint.h"
#include "datasets/procedural/procedural.h"

enum { SIDE = 32, PIXELS = SIDE * SIDE };

static draw_affine random_affine(qat_rng *rng)
{
    float const half_tan = draw_uniform(rng, -0.22F, 0.22F); /* +- 25 degrees */
    float const slant = draw_uniform(rng, -0.25F, 0.25F);
    float const size = draw_uniform(rng, 0.07F, 0.12F); /* a reach of 100 becomes 6..12 pixels */
    float const aspect = draw_uniform(rng, 0.8F, 1.2F);
    draw_point const shift = draw_point_random(rng, SIDE / 2.0F - 3.5F, SIDE / 2.0F + 3.5F);
    return draw_affine_make((draw_point){0, 0}, shift, half_tan, slant, size * aspect, size);
}

static void paint_shape(qat_rng *rng, int label, void *values)
{
    float at[PIXELS][3], cover[PIXELS] = {0}, scrap[PIXELS];
    paint_canvas const picture = {SIDE, at};
    draw_mask mask = {SIDE, cover};
    paint_colour const a = paint_random_colour(rng), b = paint_random_colour(rng);
    paint_background(rng, &picture, &a, &b);
    for (int n = 1 + (int)qat_rng_below(rng, 3); n > 0; n--)
        paint_scrap(rng, &picture, 6, scrap);
    paint_colour const ink = paint_standing_out(rng, &a, &b);
    draw_field const texture = draw_field_random(rng, draw_uniform(rng, 5, 40));
    draw_affine const affine = random_affine(rng);
    outline_draw(rng, &mask, label, &affine);
    paint_lay(&picture, cover, &ink, &texture);
    if (draw_chance(rng, 0.25F))
        paint_scrap(rng, &picture, 5, scrap);
    paint_develop(rng, &picture, PAINT_LIGHT, PAINT_NOISE, values);
}

static qat_status shapes_open(qat_dataset *dataset, const qat_dataset_options *options,
                              qat_split split, qat_error *err)
{
    static const qat_drawn shapes = {{SIDE, SIDE, 3}, QAT_SAMPLE_U8, outline_names, paint_shape};
    return qat_procedural_open(dataset, options, split, &shapes, err);
}

const qat_dataset_kind qat_kind_shapes = {
    .name = "shapes", .needs_path = false, .open = shapes_open, .get = qat_dataset_get_kept};
