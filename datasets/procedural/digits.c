/**
 * 28 x 28 grey pictures of digits that look handwritten, white ink on black. A picture is made in
 * this order:
 *
 * - choose a way to write the digit (glyphs.h)
 * - move every pen point randomly
 * - slant, rotate, scale and shift
 * - displace smoothly at random (elastic)
 * - draw a curve through the points; its thickness varies along it
 * - sometimes leave a gap in the ink, add specks of other strokes, add a grey bar across
 * - set ink and paper levels, lighting, noise
 */
#include "datasets/procedural/draw.h"
#include "datasets/procedural/glyphs.h"
#include "datasets/procedural/procedural.h"

#include <string.h>

enum { SIDE = 28, PIXELS = SIDE * SIDE, STEPS = 6 };

static const char *const digit_names[QAT_PROCEDURAL_CLASSES] = {"0", "1", "2", "3", "4",
                                                                "5", "6", "7", "8", "9"};

/** Thickness along the stroke: a random walk around a mean. */
typedef struct pen {
    float radius, sway, phase, pace;
} pen;

static pen make_pen(qat_rng *rng)
{
    pen p; /* separate statements, because C does not define the order inside an initialiser */
    p.radius = draw_uniform(rng, 0.55F, 1.75F);
    p.sway = draw_uniform(rng, 0, 0.35F);
    p.phase = draw_uniform(rng, 0, 1);
    p.pace = draw_uniform(rng, 0.1F, 0.5F);
    return p;
}

static float pen_radius(const pen *p, float travelled)
{
    float t = p->phase + p->pace * travelled;
    t -= (float)(int)t; /* 0..1 */
    float const wave = t < 0.5F ? 4 * t - 1 : 3 - 4 * t;
    return p->radius * (1 + p->sway * wave);
}

/** The path of the pen: a glyph's points in pixels, after all distortions. */
typedef struct path {
    draw_point at[GLYPH_MAX_POINTS];
    unsigned char joint[GLYPH_MAX_POINTS];
    int count;
} path;

static draw_affine random_affine(qat_rng *rng)
{
    float const half_tan = draw_uniform(rng, -0.14F, 0.14F); /* +- 16 degrees */
    float const slant =
        draw_uniform(rng, -0.15F, 0.45F); /* mostly to the right, as in handwriting */
    float const size = draw_uniform(rng, 0.19F, 0.255F); /* a box of 100 becomes 19..25.5 pixels */
    float const aspect = draw_uniform(rng, 0.72F, 1.15F);
    draw_point const shift = draw_point_random(rng, SIDE / 2.0F - 2.6F, SIDE / 2.0F + 2.2F);
    return draw_affine_make((draw_point){50, 50}, shift, half_tan, slant, size * aspect, size);
}

/** Displace a point. The lattice of the elastic displacement covers the box of 100. */
static draw_point displaced(draw_point p, const draw_field *dx, const draw_field *dy)
{
    float const u = p.x / 100, v = p.y / 100;
    return (draw_point){p.x + draw_field_at(dx, u, v), p.y + draw_field_at(dy, u, v)};
}

static void make_path(qat_rng *rng, int digit, path *out)
{
    const glyph_ways *ways = &qat_glyphs[digit];
    const glyph *g = &ways->glyphs[qat_rng_below(rng, (uint32_t)ways->ways)];
    float const jitter = draw_uniform(rng, 0.8F, 2.8F);
    draw_field const dx = draw_field_random(rng, 8), dy = draw_field_random(rng, 8);
    draw_affine const affine = random_affine(rng);
    out->count = g->count;
    for (int i = 0; i < g->count; i++) {
        draw_point p = {g->points[i].x, g->points[i].y};
        p.x += jitter * draw_normal(rng);
        p.y += jitter * draw_normal(rng);
        out->at[i] = draw_affine_apply(&affine, displaced(p, &dx, &dy));
        out->joint[i] = g->points[i].joint;
    }
}

/** Catmull-Rom: a point between b and c, with tangents from the neighbours a and d. */
static draw_point on_curve(draw_point a, draw_point b, draw_point c, draw_point d, float t)
{
    float const t2 = t * t, t3 = t2 * t;
    float const wa = -0.5F * t3 + t2 - 0.5F * t, wb = 1.5F * t3 - 2.5F * t2 + 1;
    float const wc = -1.5F * t3 + 2 * t2 + 0.5F * t, wd = 0.5F * t3 - 0.5F * t2;
    return (draw_point){wa * a.x + wb * b.x + wc * c.x + wd * d.x,
                        wa * a.y + wb * b.y + wc * c.y + wd * d.y};
}

/** Draw the path. `gap`: the piece that the pen leaves out, -1 for none. */
static void ink(draw_mask *mask, const path *p, const pen *nib, int gap)
{
    float travelled = 0;
    for (int i = 0; i + 1 < p->count; i++) {
        if (p->joint[i] == GLYPH_LIFT)
            continue;
        bool const starts = i == 0 || p->joint[i - 1] == GLYPH_LIFT || p->joint[i] == GLYPH_CORNER;
        bool const stops = p->joint[i + 1] != GLYPH_SMOOTH || i + 2 == p->count;
        draw_point const b = p->at[i], c = p->at[i + 1];
        draw_point const a = starts ? b : p->at[i - 1], d = stops ? c : p->at[i + 2];
        draw_point from = b;
        for (int s = 1; s <= STEPS; s++, travelled += 1.0F / STEPS) {
            draw_point const to = on_curve(a, b, c, d, (float)s / STEPS);
            if (i * STEPS + s != gap && i * STEPS + s != gap + 1)
                draw_line(mask, from, to, pen_radius(nib, travelled),
                          pen_radius(nib, travelled + 1.0F / STEPS));
            from = to;
        }
    }
}

/** Draw ends of neighbouring writing that reach into the picture from its border. */
static void draw_specks(qat_rng *rng, draw_mask *mask, float radius)
{
    for (int n = 1 + (int)qat_rng_below(rng, 2); n > 0; n--) {
        float const along = draw_uniform(rng, 0, SIDE), depth = draw_uniform(rng, 0, 5);
        bool const far = qat_rng_below(rng, 2), upright = qat_rng_below(rng, 2);
        float const edge = far ? SIDE : 0, inner = far ? SIDE - depth : depth;
        float const drift = along + draw_uniform(rng, -5, 5);
        draw_point const a = upright ? (draw_point){along, edge} : (draw_point){edge, along};
        draw_point const b = upright ? (draw_point){drift, inner} : (draw_point){inner, drift};
        draw_line(mask, a, b, radius, radius);
    }
}

/** Draw a straight bar of even grey over everything. */
static void draw_occluder(qat_rng *rng, float *grey)
{
    float cover[PIXELS] = {0};
    draw_mask mask = {SIDE, cover};
    float const level = draw_uniform(rng, 0, 170);
    draw_point const a = draw_point_random(rng, -4, SIDE + 4);
    draw_point const along = draw_point_random(rng, -22, 22), b = {a.x + along.x, a.y + along.y};
    float const radius = draw_uniform(rng, 0.5F, 1.9F);
    draw_line(&mask, a, b, radius, radius);
    for (int i = 0; i < PIXELS; i++)
        grey[i] += cover[i] * (level - grey[i]);
}

/** Set levels of ink and paper, with uneven lighting and noise. */
static void develop(qat_rng *rng, const float *cover, float *grey)
{
    float const paper = draw_uniform(rng, 0, 50);
    float const contrast = draw_uniform(rng, 105, 205);
    draw_field const light = draw_field_random(rng, draw_uniform(rng, 0, 45));
    for (int i = 0; i < PIXELS; i++) {
        float const x = (float)(i % SIDE) / (SIDE - 1), y = (float)(i / SIDE) / (SIDE - 1);
        grey[i] = paper + contrast * cover[i] + draw_field_at(&light, x, y);
    }
}

static void paint_digit(qat_rng *rng, int label, void *values)
{
    float cover[PIXELS] = {0}, grey[PIXELS];
    draw_mask mask = {SIDE, cover};
    path p;
    make_path(rng, label, &p);
    pen const nib = make_pen(rng);
    int const pieces = (p.count - 1) * STEPS;
    int const gap = draw_chance(rng, 0.2F) ? (int)qat_rng_below(rng, (uint32_t)pieces) : -1;
    ink(&mask, &p, &nib, gap);
    if (draw_chance(rng, 0.25F))
        draw_specks(rng, &mask, nib.radius);
    develop(rng, cover, grey);
    if (draw_chance(rng, 0.2F))
        draw_occluder(rng, grey);
    float const noise = draw_uniform(rng, 2, 22);
    for (int i = 0; i < PIXELS; i++)
        ((uint8_t *)values)[i] = draw_byte(grey[i] + noise * draw_normal(rng));
}

static qat_status digits_open(qat_dataset *dataset, const qat_dataset_options *options,
                              qat_split split, qat_error *err)
{
    static const qat_drawn digits = {{SIDE, SIDE, 1}, QAT_SAMPLE_U8, digit_names, paint_digit};
    return qat_procedural_open(dataset, options, split, &digits, err);
}

const qat_dataset_kind qat_kind_digits = {
    .name = "digits", .needs_path = false, .open = digits_open, .get = qat_dataset_get_kept};
