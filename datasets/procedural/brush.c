#include "datasets/procedural/brush.h"

enum { CURVE = 8 };

static int inside(const brush *b, float v)
{
    int const side = b->canvas->side;
    return v <= 0 ? 0 : v >= (float)side ? side : (int)v;
}

/** Note that the mask is in use around this point. */
static void use(brush *b, draw_point p, float reach)
{
    int const left = inside(b, p.x - reach - 1), right = inside(b, p.x + reach + 2);
    int const top = inside(b, p.y - reach - 1), bottom = inside(b, p.y + reach + 2);
    b->left = left < b->left ? left : b->left;
    b->right = right > b->right ? right : b->right;
    b->top = top < b->top ? top : b->top;
    b->bottom = bottom > b->bottom ? bottom : b->bottom;
}

void brush_clear(brush *b)
{
    int const side = b->canvas->side;
    for (int y = b->top; y < b->bottom; y++)
        for (int x = b->left; x < b->right; x++)
            b->mask.at[y * side + x] = 0;
    b->left = b->top = side;
    b->right = b->bottom = 0;
}

/** Lay the colour over the canvas where the mask covers it, and clear the mask. */
void brush_ink(brush *b, const paint_colour *c, float opacity)
{
    int const side = b->canvas->side;
    for (int y = b->top; y < b->bottom; y++)
        for (int x = b->left; x < b->right; x++) {
            float *to = b->canvas->at[y * side + x];
            float const cover = opacity * b->mask.at[y * side + x];
            for (int k = 0; k < 3; k++)
                to[k] += cover * (c->rgb[k] - to[k]);
        }
    brush_clear(b);
}

void brush_polygon(brush *b, const draw_point *points, int n)
{
    draw_point at[2 * BRUSH_CIRCLE];
    int const ends[1] = {n};
    for (int i = 0; i < n; i++) {
        at[i] = draw_affine_apply(&b->place, points[i]);
        use(b, at[i], 0);
    }
    draw_polygon(&b->mask, &(draw_contours){at, ends, 1});
}

void brush_line(brush *b, draw_point from, draw_point to, float width)
{
    draw_point const p = draw_affine_apply(&b->place, from), q = draw_affine_apply(&b->place, to);
    float const radius = width * b->unit / 2 - 0.25F; /* draw_line reaches half a pixel farther */
    use(b, p, radius + 1);
    use(b, q, radius + 1);
    draw_line(&b->mask, p, q, radius, radius);
}

void brush_polyline(brush *b, const draw_point *points, int n, float width)
{
    for (int i = 0; i + 1 < n; i++)
        brush_line(b, points[i], points[i + 1], width);
}

/** From one point to another, pulled towards `via`: a quadratic Bezier curve. */
void brush_curve(brush *b, draw_point from, draw_point via, draw_point to, float width)
{
    draw_point points[CURVE + 1];
    for (int i = 0; i <= CURVE; i++) {
        float const t = (float)i / CURVE, s = 1 - t;
        points[i].x = s * s * from.x + 2 * s * t * via.x + t * t * to.x;
        points[i].y = s * s * from.y + 2 * s * t * via.y + t * t * to.y;
    }
    brush_polyline(b, points, CURVE + 1, width);
}

/** Point i of BRUSH_CIRCLE about (0, 0), clockwise on the screen, from (1, 0). */
draw_point brush_circle_point(int i)
{
    static const float sines[] = {0, 0.25881905F, 0.5F, 0.70710678F, 0.86602540F, 0.96592583F, 1};
    int const quarter = i / (BRUSH_CIRCLE / 4), k = i % (BRUSH_CIRCLE / 4);
    float const near = sines[k], far = sines[BRUSH_CIRCLE / 4 - k];
    draw_point const turned[] = {{far, near}, {-near, far}, {-far, -near}, {near, -far}};
    return turned[quarter % 4];
}

void brush_ellipse(brush *b, float x, float y, float rx, float ry)
{
    draw_point points[BRUSH_CIRCLE];
    for (int i = 0; i < BRUSH_CIRCLE; i++) {
        draw_point const p = brush_circle_point(i);
        points[i] = (draw_point){x + rx * p.x, y + ry * p.y};
    }
    brush_polygon(b, points, BRUSH_CIRCLE);
}

/** An ellipse's outline. */
void brush_loop(brush *b, float x, float y, float rx, float ry, float width)
{
    draw_point points[BRUSH_CIRCLE + 1];
    for (int i = 0; i <= BRUSH_CIRCLE; i++) {
        draw_point const p = brush_circle_point(i % BRUSH_CIRCLE);
        points[i] = (draw_point){x + rx * p.x, y + ry * p.y};
    }
    brush_polyline(b, points, BRUSH_CIRCLE + 1, width);
}
