#include "datasets/procedural/waves.h"

/** Cosine and sine of a part of a turn: series in the eighth of an angle, doubled three times. */
static void circle(double turns, double *x, double *y)
{
    double const a = turns * (2 * 3.14159265358979323846 / 8), b = a * a;
    double c = 1 - b / 2 * (1 - b / 12 * (1 - b / 30 * (1 - b / 56 * (1 - b / 90))));
    double s = a * (1 - b / 6 * (1 - b / 20 * (1 - b / 42 * (1 - b / 72 * (1 - b / 110)))));
    for (int i = 0; i < 3; i++) {
        double const twice = c * c - s * s;
        s = 2 * c * s;
        c = twice;
    }
    *x = c;
    *y = s;
}

void wave_retune(wave *w, double turns_a_step)
{
    circle(turns_a_step, &w->turn_x, &w->turn_y);
}

wave wave_make(double phase, double turns_a_step)
{
    wave w;
    circle(phase, &w.x, &w.y);
    wave_retune(&w, turns_a_step);
    return w;
}

double wave_next(wave *w)
{
    double const sine = w->y, x = w->x * w->turn_x - w->y * w->turn_y;
    w->y = w->x * w->turn_y + w->y * w->turn_x;
    w->x = x;
    return sine;
}
