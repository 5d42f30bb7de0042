/** The points of a curve that grows: at most a few hundred, however long the run. */
#ifndef QAT_TOOLS_LIVE_CURVE_H
#define QAT_TOOLS_LIVE_CURVE_H

enum { LIVE_POINTS = 512 }; /* even */

/** A zeroed curve is empty. Each point is the mean of `each` values. */
typedef struct live_curve {
    int n, each; /* each 0: 1 */
    double x[LIVE_POINTS], y[LIVE_POINTS];
    int waiting; /* values of the point to come */
    double sum;
} live_curve;

/** Add a value. When there is no more room, each two points become their mean. */
void live_curve_add(live_curve *curve, double x, double y);
/** Widen the range of values to those of a curve. An empty range has its min above its max. */
void live_curve_range(const live_curve *curve, double *min, double *max);

#endif
