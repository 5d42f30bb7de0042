/**
 * How well a range serves: the root mean square distance of values from the nearest numbers that
 * its codes stand for.
 *
 *     d(x) = min over q in lo..hi of |x - S (q - Z)|        S, Z: of the range
 *
 * d is the distance from a set, so |d(x) - d(y)| <= |x - y|. If no value moves by more than e, the
 * root mean square moves by at most e. The estimator mse minimises it over the middles of bins of
 * width w, and no value is further than w / 2 from its middle: so the range that it chooses is no
 * more than w above the least one. If only bins are known here too, not the values, it is 2 w.
 */
#include "certify/certify.h"

#include <float.h>
#include <math.h>

enum { STEPS = 64 }; /* by which the estimator shrinks an end */

/** Numbers scale * q for q in lo..hi, one of them 0. */
struct numbers {
    double scale, lo, hi;
};

static struct numbers numbers_of(const cert_codes_of_range *g, double min, double max)
{
    double const low = fmin(min, 0), high = fmax(max, 0), steps = g->hi - g->lo;
    if (g->symmetric)
        return (struct numbers){fmax(-low, high) / (steps / 2), -steps / 2, steps / 2};
    double const scale = (high - low) / steps;
    double const zero = scale > 0 ? floor(-low / scale + 0.5) : 0;
    return (struct numbers){scale, -zero, steps - zero};
}

/** floor(x + 1/2) for |x| < 2^51; either neighbour of a tie is as far away. */
static double nearest(double x)
{
    return (x + 0x1.8p52) - 0x1.8p52;
}

double cert_range_error(const cert_spread *x, const cert_codes_of_range *g, double min, double max)
{
    struct numbers const k = numbers_of(g, min, max);
    double sum = 0;
    bool const empty = k.scale < (double)FLT_MIN;
    for (size_t i = 0; i < x->n; i++) {
        double const v = x->values[i];
        double const at = empty ? 0 : fmin(fmax(v / k.scale, k.lo), k.hi);
        double const d = v - k.scale * nearest(at);
        sum += (x->counts ? x->counts[i] : 1) * d * d;
    }
    return x->total > 0 ? sqrt(sum / x->total) : 0;
}

double cert_least_error(const cert_spread *x, const cert_codes_of_range *g, double min, double max)
{
    double const bound = fmax(-min, max);
    double const low = g->symmetric ? -bound : fmin(min, 0),
                 high = g->symmetric ? bound : fmax(max, 0);
    int const lows = low < 0 && !g->symmetric ? STEPS : 1, highs = high > 0 ? STEPS : 1;
    double least = INFINITY;
    for (int i = 0; i < lows; i++)
        for (int k = 0; k < highs; k++) {
            double const a = low * (STEPS - (g->symmetric ? k : i)) / STEPS;
            least = fmin(least, cert_range_error(x, g, a, high * (STEPS - k) / STEPS));
        }
    return least;
}
