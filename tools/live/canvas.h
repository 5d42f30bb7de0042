/**
 * Curves in cells of text: braille characters, which have 2 x 4 dots, or a letter a cell where the
 * terminal shows ASCII only.
 */
#ifndef QAT_TOOLS_LIVE_CANVAS_H
#define QAT_TOOLS_LIVE_CANVAS_H

#include "tools/live/curve.h"

#include <stdbool.h>
#include <stdint.h>

enum { LIVE_WIDTH_MAX = 120, LIVE_HEIGHT_MAX = 8 };

typedef struct live_cell {
    uint8_t dots; /* of a braille character; 0: empty */
    char letter;  /* of the last curve through the cell */
    int style;    /* and its style */
} live_cell;

typedef struct live_canvas {
    int width, height; /* cells */
    bool braille;
    double x[2], y[2]; /* what the edges are */
    live_cell cells[LIVE_HEIGHT_MAX][LIVE_WIDTH_MAX];
} live_canvas;

/** How a curve is drawn. dotted: every other dot, to tell it from others without colours. */
typedef struct live_pen {
    char letter;
    int style;
    bool dotted;
} live_pen;

/** Draw the lines between a curve's points. Over other curves it wins. */
void live_canvas_draw(live_canvas *canvas, const live_curve *curve, live_pen pen);

#endif
