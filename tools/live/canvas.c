#include "tools/live/canvas.h"

#include <math.h>
#include <stdlib.h>

/** A dot of the grid, or a cell where the canvas has letters. */
typedef struct dot {
    int x, y;
} dot;

static void set(live_canvas *c, dot at, live_pen pen)
{
    static const uint8_t bits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    int const per_x = c->braille ? 2 : 1, per_y = c->braille ? 4 : 1;
    if (pen.dotted && c->braille && (at.x + at.y) % 2)
        return;
    live_cell *cell = &c->cells[at.y / per_y][at.x / per_x];
    cell->dots |= c->braille ? bits[at.y % 4][at.x % 2] : 1;
    cell->letter = pen.letter;
    cell->style = pen.style;
}

/** Where v lies between the edges: 0 .. dots - 1. */
static int place(double v, const double edges[2], int dots)
{
    double const width = edges[1] - edges[0];
    double const share = width > 0 ? (v - edges[0]) / width : 0.5;
    return (int)floor(fmin(fmax(share, 0), 1) * (dots - 1) + 0.5);
}

static dot dot_of(const live_canvas *c, const live_curve *curve, int i)
{
    int const w = c->width * (c->braille ? 2 : 1), h = c->height * (c->braille ? 4 : 1);
    return (dot){place(curve->x[i], c->x, w), h - 1 - place(curve->y[i], c->y, h)};
}

static void line(live_canvas *c, dot a, dot b, live_pen pen)
{
    int const dx = b.x - a.x, dy = b.y - a.y;
    int const n = abs(dx) > abs(dy) ? abs(dx) : abs(dy);
    for (int i = 0; i <= n; i++)
        set(c, n ? (dot){a.x + (dx * i) / n, a.y + (dy * i) / n} : a, pen);
}

void live_canvas_draw(live_canvas *c, const live_curve *curve, live_pen pen)
{
    for (int i = 0; i < curve->n; i++)
        line(c, dot_of(c, curve, i > 0 ? i - 1 : 0), dot_of(c, curve, i), pen);
}
