/**
 * Paints a cartoon face. The middle of the face is (0, 0), half its width is 1, x points right and
 * y down; an affine map gives pixels. The parts are painted from back to front:
 *
 *     background - long hair - shoulders - ears - head - wrinkles - eyes, nose, mouth - beard -
 *     hair - glasses - hat
 *
 * Age shows in proportions (a child's eyes are large and low, its nose and ears small, its chin
 * short), in lips that grow thin, in wrinkles, and in grey hair.
 */
#include "datasets/procedural/brush.h"
#include "datasets/procedural/face.h"

enum { CIRCLE = BRUSH_CIRCLE, CURVE = 8, MOST_LIGHT = 25, MOST_NOISE = 8 };

/** Proportions. */
typedef struct build {
    float width, height, taper; /* of the head: its jaw is narrower by this share */
    float eye_y, eye_x, eye;    /* of the eyes: height, distance from the middle, size */
    float nose, ear, lips, mouth_y;
    float lines; /* depth of wrinkles, 0..1 */
} build;

static const paint_colour white = {{246, 244, 240}}, black = {{22, 20, 24}};

/* ------------------------------------------------------------------ proportions */

static float between(float v, float low, float high)
{
    return v < low ? low : v > high ? high : v;
}

static build build_of(const face *f, qat_rng *rng)
{
    float const grown = between((f->age - FACE_YOUNGEST) / 15, 0, 1); /* at 20 */
    float const old = (f->age - 20) / 60;
    build s = {.width = f->round_face ? 1.1F : 0.88F,
               .height = (f->round_face ? 1.06F : 1.26F) - 0.1F * (1 - grown),
               .taper = f->round_face ? 0.04F : 0.2F};
    s.eye_y = 0.2F - 0.26F * grown;
    s.eye_x = 0.41F + 0.03F * (1 - grown);
    s.eye = 0.31F - 0.09F * grown - 0.05F * between(old, 0, 1);
    s.nose = 0.17F + 0.12F * grown + 0.1F * between(old, 0, 1);
    s.ear = 0.2F + 0.05F * grown + 0.1F * between(old, 0, 1);
    s.lips = 0.16F - 0.09F * between(old, 0, 1);
    s.mouth_y = 0.68F * s.height - 0.08F * (1 - grown);
    s.lines = between((f->age - 18) / 60 + draw_uniform(rng, -0.03F, 0.03F), 0, 1);
    return s;
}

/** Point i of the head's outline, larger by `grow`. */
static draw_point head_point(const build *s, int i, float grow)
{
    draw_point const p = brush_circle_point(i % CIRCLE);
    float const below = p.y > 0 ? p.y * p.y : 0;
    return (draw_point){(s->width + grow) * p.x * (1 - s->taper * below), (s->height + grow) * p.y};
}

/* ------------------------------------------------------------------ behind the face */

static void paint_shoulders(const face *f, const build *s, brush *b)
{
    float const chin = s->height;
    paint_colour const shade = paint_darker(&f->skin, 0.18F), tie = paint_darker(&f->clothes, 0.7F);
    static const paint_colour gold = {{240, 200, 60}}, shirt = {{240, 240, 244}};
    brush_ellipse(b, 0, chin + 1.45F, 1.9F, 1.15F);
    brush_ink(b, &f->clothes, 1);
    brush_polygon(b,
                  (draw_point[]){{-0.42F, 0.6F},
                                 {0.42F, 0.6F},
                                 {0.46F, chin + 0.45F},
                                 {0, chin + 0.62F},
                                 {-0.46F, chin + 0.45F}},
                  5);
    brush_ink(b, &shade, 1);
    if (f->necktie) {
        brush_polygon(b,
                      (draw_point[]){{-0.5F, chin + 0.3F},
                                     {0, chin + 0.55F},
                                     {0.5F, chin + 0.3F},
                                     {0.3F, chin + 1.2F},
                                     {-0.3F, chin + 1.2F}},
                      5);
        brush_ink(b, &shirt, 1);
        brush_polygon(b,
                      (draw_point[]){{-0.13F, chin + 0.36F},
                                     {0.13F, chin + 0.36F},
                                     {0.07F, chin + 0.55F},
                                     {0.2F, chin + 1.5F},
                                     {-0.2F, chin + 1.5F},
                                     {-0.07F, chin + 0.55F}},
                      6);
        brush_ink(b, &tie, 1);
    }
    if (f->necklace) {
        brush_curve(b, (draw_point){-0.46F, chin + 0.25F}, (draw_point){0, chin + 0.95F},
                    (draw_point){0.46F, chin + 0.25F}, 0.1F);
        brush_ellipse(b, 0, chin + 0.66F, 0.11F, 0.13F);
        brush_ink(b, &gold, 1);
    }
}

static void paint_long_hair(const face *f, const build *s, brush *b)
{
    paint_colour const shade = paint_darker(&f->hair, 0.15F);
    float const side = s->width + 0.26F, end = s->height + 0.45F;
    brush_ellipse(b, 0, -0.12F, side, s->height + 0.2F);
    brush_polygon(b,
                  (draw_point[]){{-side, -0.1F},
                                 {side, -0.1F},
                                 {side + 0.06F, end},
                                 {0.35F, end - 0.1F},
                                 {-0.35F, end - 0.1F},
                                 {-side - 0.06F, end}},
                  6);
    brush_ink(b, &shade, 1);
}

static void paint_ears(const face *f, const build *s, brush *b)
{
    static const paint_colour gold = {{246, 206, 50}};
    paint_colour const shade = paint_darker(&f->skin, 0.1F);
    float const x = s->width * 0.99F, y = s->eye_y + 0.2F;
    for (int side = -1; side <= 1; side += 2)
        brush_ellipse(b, (float)side * x, y, 0.15F, s->ear);
    brush_ink(b, &shade, 1);
    for (int side = -1; f->earrings && side <= 1; side += 2)
        brush_ellipse(b, (float)side * (x + 0.05F), y + s->ear + 0.12F, 0.12F, 0.15F);
    brush_ink(b, &gold, 1);
}

/* ------------------------------------------------------------------ skin */

static void paint_head(const face *f, const build *s, brush *b)
{
    draw_point points[CIRCLE];
    for (int i = 0; i < CIRCLE; i++)
        points[i] = head_point(s, i, 0);
    brush_polygon(b, points, CIRCLE);
    brush_ink(b, &f->skin, 1);
}

static void paint_wrinkles(const face *f, const build *s, brush *b)
{
    paint_colour const shade = paint_darker(&f->skin, 0.6F);
    float const top = s->eye_y - 0.42F, width = 0.07F;
    for (int i = 0; i < 3; i++) {
        float const y = top - 0.17F * (float)i;
        brush_curve(b, (draw_point){-0.45F, y}, (draw_point){0, y - 0.07F}, (draw_point){0.45F, y},
                    width);
    }
    for (int side = -1; side <= 1; side += 2) {
        float const d = (float)side, x = s->eye_x + s->eye;
        for (int i = -1; i <= 1; i++)
            brush_line(b, (draw_point){d * (x + 0.04F), s->eye_y + 0.05F * (float)i},
                       (draw_point){d * (x + 0.2F), s->eye_y + 0.13F * (float)i}, width);
        brush_curve(b, (draw_point){d * 0.25F, s->eye_y + 0.42F},
                    (draw_point){d * 0.5F, s->mouth_y - 0.2F},
                    (draw_point){d * 0.44F, s->mouth_y + 0.06F}, width);
        brush_curve(b, (draw_point){d * (s->eye_x - 0.2F), s->eye_y + s->eye + 0.03F},
                    (draw_point){d * s->eye_x, s->eye_y + s->eye + 0.15F},
                    (draw_point){d * (s->eye_x + 0.2F), s->eye_y + s->eye + 0.03F}, width);
    }
    brush_ink(b, &shade, s->lines);
}

static void paint_cheeks(const face *f, const build *s, qat_rng *rng, brush *b)
{
    static const paint_colour rose = {{236, 92, 96}};
    paint_colour const spot = paint_darker(&f->skin, 0.4F);
    for (int side = -1; side <= 1; side += 2) {
        float const x = (float)side * 0.56F, y = s->eye_y + 0.5F;
        if (f->rosy_cheeks) {
            brush_ellipse(b, x, y, 0.24F, 0.17F);
            brush_ink(b, &rose, 0.5F);
        }
        for (int i = 0; f->freckles && i < 7; i++) {
            draw_point const at = {x + draw_uniform(rng, -0.27F, 0.27F),
                                   y + draw_uniform(rng, -0.2F, 0.2F)};
            brush_ellipse(b, at.x, at.y, 0.05F, 0.05F);
        }
    }
    brush_ink(b, &spot, 0.9F);
}

/* ------------------------------------------------------------------ features */

static void paint_eye(const face *f, const build *s, float x, brush *b)
{
    paint_colour const lid = paint_darker(&f->skin, 0.65F);
    float const y = s->eye_y, r = s->eye;
    if (f->closed_eyes) {
        brush_curve(b, (draw_point){x - r, y}, (draw_point){x, y + 0.9F * r},
                    (draw_point){x + r, y}, 0.09F);
        brush_ink(b, &lid, 1);
        return;
    }
    brush_ellipse(b, x, y, r, 0.78F * r);
    brush_ink(b, &white, 1);
    brush_ellipse(b, x, y, 0.56F * r, 0.6F * r);
    brush_ink(b, &f->iris, 1);
    brush_ellipse(b, x, y, 0.28F * r, 0.3F * r);
    brush_ink(b, &black, 1);
    brush_curve(b, (draw_point){x - r, y}, (draw_point){x, y - 1.5F * r}, (draw_point){x + r, y},
                0.06F);
    brush_ink(b, &lid, 1);
}

static void paint_eyes(const face *f, const build *s, brush *b)
{
    paint_colour const dark = paint_darker(&f->hair, 0.25F);
    float const y = s->eye_y - s->eye - 0.13F, width = f->bushy_eyebrows ? 0.2F : 0.07F;
    for (int side = -1; side <= 1; side += 2) {
        float const d = (float)side;
        paint_eye(f, s, d * s->eye_x, b);
        brush_curve(b, (draw_point){d * 0.18F, y}, (draw_point){d * 0.45F, y - 0.12F},
                    (draw_point){d * 0.7F, y + 0.04F}, width);
        brush_ink(b, &dark, 1);
    }
}

static void paint_nose(const face *f, const build *s, brush *b)
{
    paint_colour const shade = paint_darker(&f->skin, 0.35F), tip = paint_darker(&f->skin, 0.12F);
    float const tip_y = s->eye_y + 0.14F + s->nose, half = f->big_nose ? 0.25F : 0.11F;
    brush_ellipse(b, 0, tip_y, half, half * 0.8F);
    brush_ink(b, &tip, 1);
    brush_curve(b, (draw_point){-half, tip_y + 0.03F}, (draw_point){0, tip_y + 0.05F + half},
                (draw_point){half, tip_y + 0.03F}, 0.07F);
    brush_line(b, (draw_point){-0.02F, s->eye_y + 0.05F},
               (draw_point){-half * 0.75F, tip_y - 0.06F}, 0.05F);
    brush_ink(b, &shade, 0.9F);
}

static void paint_mouth(const face *f, const build *s, brush *b)
{
    static const paint_colour red = {{206, 28, 50}}, inside_mouth = {{88, 18, 26}};
    paint_colour const plain = paint_darker(&f->skin, 0.32F);
    const paint_colour *lips = f->red_lips ? &red : &plain;
    float const y = s->mouth_y, bend = f->smile ? 0.34F : -0.06F, half = f->smile ? 0.46F : 0.34F;
    float const corner = y - bend / 2;
    draw_point const left = {-half, corner}, right = {half, corner};
    if (!f->open_mouth) {
        brush_curve(b, left, (draw_point){0, y + bend}, right, s->lips);
        brush_ink(b, lips, 1);
        return;
    }
    float const drop = f->smile ? 0.62F : 0.4F, rise = f->smile ? 0.1F : 0.34F;
    draw_point points[2 * CURVE];
    for (int i = 0; i < 2 * CURVE; i++) {
        float const t = (float)(i % CURVE) / CURVE, side = i < CURVE ? 1.0F : -1.0F;
        float const arch = 4 * t * (1 - t) / 2;
        points[i] =
            (draw_point){side * half * (1 - 2 * t), corner + arch * (i < CURVE ? drop : -rise)};
    }
    brush_polygon(b, points, 2 * CURVE);
    brush_ink(b, &inside_mouth, 1);
    brush_line(b, (draw_point){-half * 0.6F, corner + 0.04F},
               (draw_point){half * 0.6F, corner + 0.04F}, 0.1F);
    brush_ink(b, &white, f->smile);
    brush_polyline(b, points, 2 * CURVE, s->lips * 0.8F);
    brush_line(b, points[2 * CURVE - 1], points[0], s->lips * 0.8F);
    brush_ink(b, lips, 1);
}

static void paint_beard(const face *f, const build *s, brush *b)
{
    draw_point points[2 * CIRCLE];
    int n = 0;
    paint_colour const shade = paint_darker(&f->hair, 0.1F);
    for (int i = 0; f->beard && i <= CIRCLE / 2; i++)
        points[n++] = head_point(s, i, 0.04F + (i > 2 && i < 10 ? 0.12F : 0));
    for (int i = 0; f->beard && i <= CIRCLE / 2; i++) {
        draw_point const p = brush_circle_point(i);
        points[n++] = (draw_point){-0.72F * s->width * p.x,
                                   s->mouth_y - 0.18F + (p.y > 0.6F ? 0.52F : 0.3F) * p.y};
    }
    if (f->beard)
        brush_polygon(b, points, n);
    brush_ink(b, &shade, 1);
    if (f->moustache)
        for (int side = -1; side <= 1; side += 2)
            brush_curve(b, (draw_point){0, s->mouth_y - 0.27F},
                        (draw_point){(float)side * 0.3F, s->mouth_y - 0.34F},
                        (draw_point){(float)side * 0.5F, s->mouth_y - 0.1F}, 0.19F);
    brush_ink(b, &shade, 1);
}

/* ------------------------------------------------------------------ what is worn on the head */

/** Hair between the head's outline, grown by its thickness, and the hairline. */
static void paint_hair(const face *f, const build *s, brush *b)
{
    draw_point points[2 * CIRCLE];
    int n = 0;
    float const back = 0.2F * between((f->age - 25) / 55, 0, 1); /* the hairline moves up */
    float const line_y = f->bangs ? s->eye_y - 0.36F : -0.62F * s->height - back;
    int const from = CIRCLE / 2;
    if (f->bald) { /* a fringe over the ears */
        for (int side = -1; side <= 1; side += 2)
            brush_ellipse(b, (float)side * s->width, s->eye_y - 0.15F, 0.14F, 0.3F);
        brush_ink(b, &f->hair, 1);
        return;
    }
    for (int i = 0; i <= from; i++)
        points[n++] = head_point(s, from + i, 0.17F);
    points[n++] = (draw_point){s->width * 0.9F, 0.02F};
    points[n++] = (draw_point){s->width * 0.8F, f->bangs ? line_y : -0.42F * s->height};
    for (int i = 3; i >= -3; i--) {
        float const x = (float)i * 0.2F * s->width;
        float const notch = f->bangs && i % 2 ? 0.1F : 0;
        points[n++] =
            (draw_point){x, line_y + notch - (f->bangs ? 0 : 0.05F * (float)(3 - i * i / 3))};
    }
    points[n++] = (draw_point){-s->width * 0.8F, f->bangs ? line_y : -0.42F * s->height};
    points[n++] = (draw_point){-s->width * 0.9F, 0.02F};
    brush_polygon(b, points, n);
    brush_ink(b, &f->hair, 1);
}

static void paint_glasses(const face *f, const build *s, brush *b)
{
    static const paint_colour lens = {{30, 30, 38}};
    float const r = 0.34F;
    for (int side = -1; side <= 1; side += 2) {
        float const d = (float)side, x = d * (s->eye_x + 0.01F);
        if (f->sunglasses) {
            brush_ellipse(b, x, s->eye_y, r, 0.9F * r);
            brush_ink(b, &lens, 0.96F);
        }
        brush_loop(b, x, s->eye_y, r, 0.9F * r, 0.08F);
        brush_line(b, (draw_point){d * (s->eye_x + r), s->eye_y - 0.05F},
                   (draw_point){d * s->width, s->eye_y - 0.1F}, 0.08F);
    }
    brush_line(b, (draw_point){r - s->eye_x, s->eye_y}, (draw_point){s->eye_x - r, s->eye_y},
               0.08F);
    brush_ink(b, &black, 1);
}

static void paint_hat(const build *s, qat_rng *rng, brush *b)
{
    paint_colour const felt = paint_random_colour(rng), band = paint_darker(&felt, 0.5F);
    float const brim = -0.6F * s->height, w = s->width;
    brush_polygon(b,
                  (draw_point[]){{-0.95F * w, brim},
                                 {-0.86F * w, brim - 0.85F},
                                 {-0.5F * w, brim - 1.05F},
                                 {0.5F * w, brim - 1.05F},
                                 {0.86F * w, brim - 0.85F},
                                 {0.95F * w, brim}},
                  6);
    brush_ellipse(b, 0, brim, 1.5F * w, 0.17F);
    brush_ink(b, &felt, 1);
    brush_line(b, (draw_point){-0.88F * w, brim - 0.2F}, (draw_point){0.88F * w, brim - 0.2F},
               0.16F);
    brush_ink(b, &band, 1);
}

/* ------------------------------------------------------------------ all of it */

static draw_affine random_place(qat_rng *rng, float side, float *unit)
{
    float const half_tan = draw_uniform(rng, -0.1F, 0.1F); /* +- 11 degrees */
    float const slant = draw_uniform(rng, -0.06F, 0.06F);
    *unit = side * draw_uniform(rng, 0.235F, 0.29F);
    draw_point at = draw_point_random(rng, -0.06F * side, 0.06F * side);
    at.x += 0.5F * side;
    at.y += 0.52F * side;
    return draw_affine_make((draw_point){0, 0}, at, half_tan, slant,
                            *unit * draw_uniform(rng, 0.95F, 1.05F), *unit);
}

void face_paint(const face *f, qat_rng *rng, const paint_canvas *canvas, float *cover,
                uint8_t *values)
{
    int const side = canvas->side;
    brush b = {.canvas = canvas, .mask = {side, cover}, .right = side, .bottom = side};
    paint_colour const from = paint_random_colour(rng), to = paint_random_colour(rng);
    build const s = build_of(f, rng);
    brush_clear(&b);
    b.place = random_place(rng, (float)side, &b.unit);
    paint_background(rng, canvas, &from, &to);
    if (f->long_hair)
        paint_long_hair(f, &s, &b);
    paint_shoulders(f, &s, &b);
    paint_ears(f, &s, &b);
    paint_head(f, &s, &b);
    paint_wrinkles(f, &s, &b);
    paint_cheeks(f, &s, rng, &b);
    paint_eyes(f, &s, &b);
    paint_nose(f, &s, &b);
    paint_beard(f, &s, &b);
    paint_mouth(f, &s, &b);
    paint_hair(f, &s, &b);
    if (f->glasses || f->sunglasses)
        paint_glasses(f, &s, &b);
    if (f->hat)
        paint_hat(&s, rng, &b);
    paint_develop(rng, canvas, MOST_LIGHT, MOST_NOISE, values);
}
