/** The smooth-L1 distance: quadratic below beta, linear above (Girshick, 2015). */
#ifndef QAT_AUTOGRAD_SMOOTH_L1_H
#define QAT_AUTOGRAD_SMOOTH_L1_H

#include "autograd/loops/real.h"

/** s(d) = d^2 / (2 beta) for |d| < beta, else |d| - beta / 2 */
static inline double qat_smooth_l1(double d, double beta)
{
    double const off = fabs(d);
    return off < beta ? off * off / (2 * beta) : off - beta / 2;
}

/** Its derivative: d / beta for |d| < beta, else the sign of d; NaN of NaN. */
static inline qat_real qat_smooth_l1_slope(qat_real d, qat_real beta)
{
    return QAT_FABS(d) < beta ? d / beta : d > 0 ? 1 : d < 0 ? -1 : d;
}

#endif
