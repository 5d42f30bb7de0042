#include "datasets/procedural/paint.h"

#include <string.h>

enum { SCRAP_POINTS = 4 };

paint_colour paint_random_colour(qat_rng *rng)
{
    paint_colour c;
    for (int k = 0; k < 3; k++)
        c.rgb[k] = draw_uniform(rng, 15, 240);
    return c;
}

static float distance(const paint_colour *a, const paint_colour *b)
{
    float sum = 0;
    for (int k = 0; k < 3; k++)
        sum += (a->rgb[k] - b->rgb[k]) * (a->rgb[k] - b->rgb[k]);
    return sum;
}

paint_colour paint_standing_out(qat_rng *rng, const paint_colour *a, const paint_colour *b)
{
    enum { TRIES = 12, ENOUGH = 95 * 95 };
    paint_colour best = paint_random_colour(rng);
    float far = -1;
    for (int i = 0; i < TRIES && far < ENOUGH; i++) {
        paint_colour const c = paint_random_colour(rng);
        float const to_a = distance(&c, a), to_b = distance(&c, b);
        float const least = to_a < to_b ? to_a : to_b;
        if (least > far) {
            far = least;
            best = c;
        }
    }
    return best;
}

paint_colour paint_darker(const paint_colour *c, float share)
{
    paint_colour d;
    for (int k = 0; k < 3; k++)
        d.rgb[k] = c->rgb[k] * (1 - share);
    return d;
}

static int pixels_of(const paint_canvas *picture)
{
    return picture->side * picture->side;
}

/** The place of pixel i in the unit square. */
static draw_point place_of(const paint_canvas *picture, int i)
{
    float const side = (float)picture->side;
    return (draw_point){(float)(i % picture->side) / side, (float)(i / picture->side) / side};
}

void paint_lay(const paint_canvas *picture, const float *cover, const paint_colour *c,
               const draw_field *texture)
{
    for (int i = 0; i < pixels_of(picture); i++) {
        draw_point const p = place_of(picture, i);
        float const shade = cover[i] > 0 ? draw_field_at(texture, p.x, p.y) : 0;
        for (int k = 0; k < 3; k++)
            picture->at[i][k] += cover[i] * (c->rgb[k] + shade - picture->at[i][k]);
    }
}

void paint_background(qat_rng *rng, const paint_canvas *picture, const paint_colour *a,
                      const paint_colour *b)
{
    draw_point const towards = draw_point_random(rng, -1, 1);
    float const texture = draw_uniform(rng, 5, 35);
    draw_field const coarse = draw_field_random(rng, texture),
                     fine = draw_field_random(rng, texture);
    for (int i = 0; i < pixels_of(picture); i++) {
        draw_point const p = place_of(picture, i);
        float mix = 0.5F + (p.x - 0.5F) * towards.x + (p.y - 0.5F) * towards.y;
        mix = mix < 0 ? 0 : mix > 1 ? 1 : mix;
        float const tile_x = 2 * p.x - (p.x < 0.5F ? 0 : 1);
        float const tile_y = 2 * p.y - (p.y < 0.5F ? 0 : 1);
        float const rough = draw_field_at(&coarse, p.x, p.y) + draw_field_at(&fine, tile_x, tile_y);
        for (int k = 0; k < 3; k++)
            picture->at[i][k] = a->rgb[k] + mix * (b->rgb[k] - a->rgb[k]) + 0.6F * rough;
    }
}

void paint_scrap(qat_rng *rng, const paint_canvas *picture, float reach, float *cover)
{
    draw_mask mask = {picture->side, cover};
    draw_point const at = draw_point_random(rng, 0, (float)picture->side);
    memset(cover, 0, (size_t)pixels_of(picture) * sizeof *cover);
    draw_point corners[SCRAP_POINTS];
    int const ends[1] = {SCRAP_POINTS};
    for (int i = 0; i < SCRAP_POINTS; i++) {
        draw_point const d = draw_point_random(rng, -reach, reach);
        corners[i] = (draw_point){at.x + d.x, at.y + d.y};
    }
    if (draw_chance(rng, 0.4F))
        draw_line(&mask, corners[0], corners[1], 0.6F, 0.9F);
    else
        draw_polygon(&mask, &(draw_contours){corners, ends, 1});
    paint_colour const c = paint_random_colour(rng);
    draw_field const texture = draw_field_random(rng, 20);
    paint_lay(picture, cover, &c, &texture);
}

void paint_develop(qat_rng *rng, const paint_canvas *picture, float most_light, float most_noise,
                   uint8_t *values)
{
    draw_field const light = draw_field_random(rng, draw_uniform(rng, 0, most_light));
    float const noise = draw_uniform(rng, 2, most_noise);
    for (int i = 0; i < pixels_of(picture); i++) {
        draw_point const p = place_of(picture, i);
        float const shade = draw_field_at(&light, p.x, p.y);
        for (int k = 0; k < 3; k++)
            values[3 * i + k] = draw_byte(picture->at[i][k] + shade + noise * draw_normal(rng));
    }
}
