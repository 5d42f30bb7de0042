#include "autograd/conv/depthwise.h"

#include "autograd/loops/real.h"

enum { LANES = 8, MOST = QAT_DEPTHWISE_TAPS };

/** Eight values as one vector, at any address. */
typedef qat_real lanes
    __attribute__((vector_size(LANES * sizeof(qat_real)), aligned(sizeof(qat_real)), may_alias));

/*
 * The loops below are compiled once for each number of taps, and both for lanes and for one
 * channel.
 */
#define INLINE         static inline __attribute__((always_inline))
#define UNROLL         _Pragma("GCC unroll 3")
#define EACH_TAP(body) UNROLL for (int k = 0; k < ny; k++) UNROLL for (int l = 0; l < nx; l++) body
#define TAP(r)         (k * (r)->tap.row + l * (r)->tap.pixel)
#define WEIGHT(r)      (k * (r)->weight.row + l * (r)->weight.pixel)

/* ------------------------------------------------------------------ filter */

#define DEFINE_FILTER(name, type)                                                                  \
    INLINE void name(const qat_taps_run *r, int ny, int nx, const qat_real *x, const qat_real *w,  \
                     bool add, qat_real *y)                                                        \
    {                                                                                              \
        type weights[MOST][MOST];                                                                  \
        EACH_TAP({ weights[k][l] = *(const type *)(w + WEIGHT(r)); })                              \
        for (int i = 0; i < r->pixels; i++, x += r->x.pixel, y += r->y.pixel) {                    \
            type sum = weights[0][0] * *(const type *)x;                                           \
            EACH_TAP({                                                                             \
                if (k + l > 0)                                                                     \
                    sum += weights[k][l] * *(const type *)(x + TAP(r));                            \
            })                                                                                     \
            if (add)                                                                               \
                sum += *(const type *)y;                                                           \
            *(type *)y = sum;                                                                      \
        }                                                                                          \
    }

DEFINE_FILTER(filter_lanes, lanes)
DEFINE_FILTER(filter_one, qat_real)

INLINE void filter(const qat_taps_run *r, int ny, int nx, const qat_real *x, const qat_real *w,
                   bool add, qat_real *y)
{
    for (int row = 0; row < r->rows; row++, x += r->x.row, y += r->y.row) {
        size_t c = 0;
        for (; c + LANES <= r->channels; c += LANES)
            filter_lanes(r, ny, nx, x + c, w + c, add, y + c);
        for (; c < r->channels; c++)
            filter_one(r, ny, nx, x + c, w + c, add, y + c);
    }
}

/* ------------------------------------------------------------------ correlate */

#define DEFINE_CORRELATE(name, type)                                                               \
    INLINE void name(const qat_taps_run *r, int ny, int nx, const qat_real *x, const qat_real *y,  \
                     qat_real *dw)                                                                 \
    {                                                                                              \
        type const zero = {0};                                                                     \
        type sums[MOST][MOST];                                                                     \
        EACH_TAP({ sums[k][l] = zero; })                                                           \
        for (int row = 0; row < r->rows; row++, x += r->x.row, y += r->y.row) {                    \
            const qat_real *from = x, *to = y;                                                     \
            for (int i = 0; i < r->pixels; i++, from += r->x.pixel, to += r->y.pixel) {            \
                type const dy = *(const type *)to;                                                 \
                EACH_TAP({ sums[k][l] += dy * *(const type *)(from + TAP(r)); })                   \
            }                                                                                      \
        }                                                                                          \
        EACH_TAP({ *(type *)(dw + WEIGHT(r)) += sums[k][l]; })                                     \
    }

DEFINE_CORRELATE(correlate_lanes, lanes)
DEFINE_CORRELATE(correlate_one, qat_real)

INLINE void correlate(const qat_taps_run *r, int ny, int nx, const qat_real *x, const qat_real *y,
                      qat_real *dw)
{
    size_t c = 0;
    for (; c + LANES <= r->channels; c += LANES)
        correlate_lanes(r, ny, nx, x + c, y + c, dw + c);
    for (; c < r->channels; c++)
        correlate_one(r, ny, nx, x + c, y + c, dw + c);
}

/* ------------------------------------------------------------------ by number of taps */

/* loop(run, taps_y, taps_x, ...) with both numbers known to the compiler */
#define WITH_ROW(loop, ny, ...)                                                                    \
    if (run->taps_x == 1)                                                                          \
        loop(run, ny, 1, __VA_ARGS__);                                                             \
    else if (run->taps_x == 2)                                                                     \
        loop(run, ny, 2, __VA_ARGS__);                                                             \
    else                                                                                           \
        loop(run, ny, 3, __VA_ARGS__)
#define WITH_TAPS(loop, ...)                                                                       \
    if (run->taps_y == 1) {                                                                        \
        WITH_ROW(loop, 1, __VA_ARGS__);                                                            \
    } else if (run->taps_y == 2) {                                                                 \
        WITH_ROW(loop, 2, __VA_ARGS__);                                                            \
    } else {                                                                                       \
        WITH_ROW(loop, 3, __VA_ARGS__);                                                            \
    }

QAT_VECTOR static void depthwise_filter(const qat_taps_run *run, const qat_real *x,
                                        const qat_real *w, bool add, qat_real *y)
{
    WITH_TAPS(filter, x, w, add, y)
}

void qat_depthwise_filter(const qat_taps_run *run, const qat_real *x, const qat_real *w, bool add,
                          qat_real *y)
{
    depthwise_filter(run, x, w, add, y);
}

QAT_VECTOR static void depthwise_correlate(const qat_taps_run *run, const qat_real *x,
                                           const qat_real *y, qat_real *dw)
{
    WITH_TAPS(correlate, x, y, dw)
}

void qat_depthwise_correlate(const qat_taps_run *run, const qat_real *x, const qat_real *y,
                             qat_real *dw)
{
    depthwise_correlate(run, x, y, dw);
}
