#include "tools/live/curve.h"

static void halve(live_curve *c)
{
    for (int i = 0; i < LIVE_POINTS / 2; i++) {
        c->x[i] = c->x[2 * i + 1];
        c->y[i] = (c->y[2 * i] + c->y[2 * i + 1]) / 2;
    }
    c->n = LIVE_POINTS / 2;
    c->each *= 2;
}

void live_curve_add(live_curve *c, double x, double y)
{
    c->each = c->each ? c->each : 1;
    c->sum += y;
    if (++c->waiting < c->each)
        return;
    c->x[c->n] = x;
    c->y[c->n++] = c->sum / c->each;
    c->sum = 0;
    c->waiting = 0;
    if (c->n == LIVE_POINTS)
        halve(c);
}

void live_curve_range(const live_curve *c, double *min, double *max)
{
    for (int i = 0; i < c->n; i++) {
        *min = c->y[i] < *min ? c->y[i] : *min;
        *max = c->y[i] > *max ? c->y[i] : *max;
    }
}
