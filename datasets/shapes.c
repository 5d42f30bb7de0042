/**
 * 32 x 32 colour pictures of ten shapes, turned, bent and scaled, before a
 * background of two colours, rough texture and other scraps, now and then partly covered; lighting
 * and noise.
 */
#include "datasets/draw.h"
#include "datasets/procedural.h"

enum { SIDE = 32, PIXELS = SIDE * SIDE, MAX_POINTS = 40, SCRAP_POINTS = 4 };

static const char *const shape_names[QAT_PROCEDURAL_CLASSES] = {
    "disc",   "ring", "half disc", "crescent", "triangle",
    "square", "star", "plus",      "heart",    "arrow"};

/** Outlines about (0, 0), reaching about 100; two contours: even-odd. */
typedef struct outline {
    signed char xy[MAX_POINTS][2];
    int ends[2];
} outline;

/* clang-format off */
static const outline outlines[QAT_PROCEDURAL_CLASSES] = {
    {{{100,0}, {92,38}, {71,71}, {38,92}, {0,100}, {-38,92}, {-71,71}, {-92,38}, {-100,0}, {-92,-38},
      {-71,-71}, {-38,-92}, {0,-100}, {38,-92}, {71,-71}, {92,-38}}, {16, 0}},
    {{{100,0}, {92,38}, {71,71}, {38,92}, {0,100}, {-38,92}, {-71,71}, {-92,38}, {-100,0}, {-92,-38},
      {-71,-71}, {-38,-92}, {0,-100}, {38,-92}, {71,-71}, {92,-38},
      {55,0}, {51,21}, {39,39}, {21,51}, {0,55}, {-21,51}, {-39,39}, {-51,21}, {-55,0}, {-51,-21},
      {-39,-39}, {-21,-51}, {0,-55}, {21,-51}, {39,-39}, {51,-21}}, {16, 32}},
    {{{105,-45}, {99,-5}, {81,30}, {53,51}, {19,62}, {-19,62}, {-53,51}, {-81,30}, {-99,-5},
      {-105,-45}}, {10, 0}},
    {{{60,-80}, {25,-98}, {-20,-98}, {-62,-78}, {-90,-42}, {-98,0}, {-90,42}, {-62,78}, {-20,98},
      {25,98}, {60,80}, {22,72}, {-8,50}, {-25,20}, {-25,-20}, {-8,-50}, {22,-72}}, {17, 0}},
    {{{0,-105}, {91,53}, {-91,53}}, {3, 0}},
    {{{78,-78}, {78,78}, {-78,78}, {-78,-78}}, {4, 0}},
    {{{0,-110}, {26,-36}, {105,-34}, {43,14}, {65,89}, {0,46}, {-65,89}, {-43,14}, {-105,-34},
      {-26,-36}}, {10, 0}},
    {{{34,-100}, {34,-34}, {100,-34}, {100,34}, {34,34}, {34,100}, {-34,100}, {-34,34}, {-100,34},
      {-100,-34}, {-34,-34}, {-34,-100}}, {12, 0}},
    {{{0,-42}, {16,-70}, {46,-84}, {78,-72}, {94,-42}, {88,-6}, {62,34}, {30,68}, {0,98}, {-30,68},
      {-62,34}, {-88,-6}, {-94,-42}, {-78,-72}, {-46,-84}, {-16,-70}}, {16, 0}},
    {{{0,-108}, {80,-16}, {30,-16}, {30,100}, {-30,100}, {-30,-16}, {-80,-16}}, {7, 0}},
};
/* clang-format on */

typedef struct colour {
    float rgb[3];
} colour;

static colour random_colour(qat_rng *rng)
{
    colour c;
    for (int k = 0; k < 3; k++)
        c.rgb[k] = draw_uniform(rng, 15, 240);
    return c;
}

static float distance(const colour *a, const colour *b)
{
    float sum = 0;
    for (int k = 0; k < 3; k++)
        sum += (a->rgb[k] - b->rgb[k]) * (a->rgb[k] - b->rgb[k]);
    return sum;
}

/** A colour that stands out from two others, as far as some tries find one. */
static colour standing_out(qat_rng *rng, const colour *a, const colour *b)
{
    enum { TRIES = 12, ENOUGH = 95 * 95 };
    colour best = random_colour(rng);
    float far = -1;
    for (int i = 0; i < TRIES && far < ENOUGH; i++) {
        colour const c = random_colour(rng);
        float const to_a = distance(&c, a), to_b = distance(&c, b);
        float const least = to_a < to_b ? to_a : to_b;
        if (least > far) {
            far = least;
            best = c;
        }
    }
    return best;
}

/** A picture in the making, RGB. */
typedef struct canvas {
    float at[PIXELS][3];
} canvas;

/** Lay a colour over the canvas where the mask covers, modulated by texture. */
static void lay(canvas *picture, const float *cover, const colour *c, const draw_field *texture)
{
    for (int i = 0; i < PIXELS; i++) {
        float const x = (float)(i % SIDE) / SIDE, y = (float)(i / SIDE) / SIDE;
        float const shade = cover[i] > 0 ? draw_field_at(texture, x, y) : 0;
        for (int k = 0; k < 3; k++)
            picture->at[i][k] += cover[i] * (c->rgb[k] + shade - picture->at[i][k]);
    }
}

/** From one colour to another along a random direction, and rough texture. */
static void paint_background(qat_rng *rng, canvas *picture, const colour *a, const colour *b)
{
    draw_point const towards = draw_point_random(rng, -1, 1);
    float const texture = draw_uniform(rng, 5, 35);
    draw_field const coarse = draw_field_random(rng, texture),
                     fine = draw_field_random(rng, texture);
    for (int i = 0; i < PIXELS; i++) {
        float const x = (float)(i % SIDE) / SIDE, y = (float)(i / SIDE) / SIDE;
        float mix = 0.5F + (x - 0.5F) * towards.x + (y - 0.5F) * towards.y;
        mix = mix < 0 ? 0 : mix > 1 ? 1 : mix;
        float const tile_x = 2 * x - (x < 0.5F ? 0 : 1), tile_y = 2 * y - (y < 0.5F ? 0 : 1);
        float const rough = draw_field_at(&coarse, x, y) + draw_field_at(&fine, tile_x, tile_y);
        for (int k = 0; k < 3; k++)
            picture->at[i][k] = a->rgb[k] + mix * (b->rgb[k] - a->rgb[k]) + 0.6F * rough;
    }
}

/** A small four-cornered scrap or a thin line, anywhere. */
static void paint_scrap(qat_rng *rng, canvas *picture, float reach)
{
    float cover[PIXELS] = {0};
    draw_mask mask = {SIDE, cover};
    draw_point const at = draw_point_random(rng, 0, SIDE);
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
    colour const c = random_colour(rng);
    draw_field const texture = draw_field_random(rng, 20);
    lay(picture, cover, &c, &texture);
}

static draw_affine random_affine(qat_rng *rng)
{
    float const half_tan = draw_uniform(rng, -0.22F, 0.22F); /* +- 25 degrees */
    float const slant = draw_uniform(rng, -0.25F, 0.25F);
    float const size = draw_uniform(rng, 0.07F, 0.12F); /* a reach of 100 becomes 6..12 pixels */
    float const aspect = draw_uniform(rng, 0.8F, 1.2F);
    draw_point const shift = draw_point_random(rng, SIDE / 2.0F - 3.5F, SIDE / 2.0F + 3.5F);
    return draw_affine_make((draw_point){0, 0}, shift, half_tan, slant, size * aspect, size);
}

static void draw_shape(qat_rng *rng, draw_mask *mask, int label)
{
    const outline *o = &outlines[label];
    int const contours = o->ends[1] ? 2 : 1, count = o->ends[contours - 1];
    draw_affine const affine = random_affine(rng);
    draw_field const dx = draw_field_random(rng, 14), dy = draw_field_random(rng, 14);
    draw_point points[MAX_POINTS];
    for (int i = 0; i < count; i++) {
        draw_point p = {o->xy[i][0], o->xy[i][1]};
        float const u = (p.x + 120) / 240, v = (p.y + 120) / 240;
        p.x += draw_field_at(&dx, u, v);
        p.y += draw_field_at(&dy, u, v);
        points[i] = draw_affine_apply(&affine, p);
    }
    draw_polygon(mask, &(draw_contours){points, o->ends, contours});
}

static void develop(qat_rng *rng, const canvas *picture, uint8_t *values)
{
    draw_field const light = draw_field_random(rng, draw_uniform(rng, 0, 40));
    float const noise = draw_uniform(rng, 2, 20);
    for (int i = 0; i < PIXELS; i++) {
        float const x = (float)(i % SIDE) / SIDE, y = (float)(i / SIDE) / SIDE;
        float const shade = draw_field_at(&light, x, y);
        for (int k = 0; k < 3; k++)
            values[3 * i + k] = draw_byte(picture->at[i][k] + shade + noise * draw_normal(rng));
    }
}

static void paint_shape(qat_rng *rng, int label, uint8_t *values)
{
    canvas picture;
    float cover[PIXELS] = {0};
    draw_mask mask = {SIDE, cover};
    colour const a = random_colour(rng), b = random_colour(rng);
    paint_background(rng, &picture, &a, &b);
    for (int n = 1 + (int)qat_rng_below(rng, 3); n > 0; n--)
        paint_scrap(rng, &picture, 6);
    colour const ink = standing_out(rng, &a, &b);
    draw_field const texture = draw_field_random(rng, draw_uniform(rng, 5, 40));
    draw_shape(rng, &mask, label);
    lay(&picture, cover, &ink, &texture);
    if (draw_chance(rng, 0.25F))
        paint_scrap(rng, &picture, 5);
    develop(rng, &picture, values);
}

static qat_status shapes_open(qat_dataset *dataset, const qat_dataset_options *options,
                              qat_split split, qat_error *err)
{
    return qat_procedural_open(dataset, options, split, SIDE, 3, shape_names, paint_shape, err);
}

const qat_dataset_kind qat_kind_shapes = {
    .name = "shapes", .needs_path = false, .open = shapes_open, .get = qat_dataset_get_kept};
