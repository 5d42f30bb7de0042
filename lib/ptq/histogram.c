/** Histograms: counts of values in bins of equal width between min and max. */
#include "ptq/histogram.h"
#include "fakequant/range.h"

#include <math.h>
#include <string.h>

void qat_histogram_begin(qat_histogram *h, float min, float max)
{
    memset(h, 0, sizeof *h);
    h->min = min;
    h->max = max;
}

static double bin_width(const qat_histogram *h)
{
    return ((double)h->max - (double)h->min) / QAT_HISTOGRAM_BINS;
}

void qat_histogram_add(qat_histogram *h, const float *x, size_t n)
{
    double const width = bin_width(h), per_bin = width > 0 ? 1 / width : 0;
    for (size_t i = 0; i < n; i++) {
        double const at = ((double)x[i] - (double)h->min) * per_bin;
        if (!(at == at))
            continue;
        int const bin = at < 0 ? 0 : at >= QAT_HISTOGRAM_BINS ? QAT_HISTOGRAM_BINS - 1 : (int)at;
        h->counts[bin]++;
        h->total++;
    }
}

float qat_histogram_centre(const qat_histogram *h, int bin)
{
    return (float)((double)h->min + (bin + 0.5) * bin_width(h));
}

static qat_qparams params_of(const qat_code_grid *grid, float min, float max)
{
    if (!grid->symmetric)
        return qat_choose_qparams(min, max, grid->lo, grid->hi, true);
    qat_qparams const p = qat_choose_symmetric(-min > max ? -min : max, grid->hi);
    bool const all = grid->lo < -grid->hi && grid->hi < INT16_MAX; /* weights that use all codes */
    return all && p.max > 0 ? qat_given_qparams(p.scale, 0, grid->lo, grid->hi) : p;
}

void qat_histogram_filled_of(qat_histogram_filled *f, const qat_histogram *h)
{
    f->n = 0;
    for (int i = 0; i < QAT_HISTOGRAM_BINS; i++) {
        if (!h->counts[i])
            continue;
        f->centre[f->n] = qat_histogram_centre(h, i);
        f->count[f->n++] = (double)h->counts[i];
    }
}

double qat_histogram_error_below(const qat_histogram_filled *f, const qat_code_grid *grid,
                                 float min, float max, double most)
{
    enum { STRIP = 256 };
    qat_qparams const p = params_of(grid, min, max);
    double sum = 0;
    for (int from = 0; from < f->n && !(sum >= most); from += STRIP) {
        const float *x = f->centre + from;
        int const n = f->n - from < STRIP ? f->n - from : STRIP;
        float y[STRIP];
        if (grid->symmetric)
            qat_fake_quant_values_per_channel(&p, x, y, (size_t)n);
        else
            qat_fake_quant_values(&p, x, y, (size_t)n);
        for (int i = 0; i < n; i++) {
            double const e = (double)x[i] - (double)y[i];
            sum += f->count[from + i] * e * e;
        }
    }
    return sum;
}

double qat_histogram_error(const qat_histogram *h, const qat_code_grid *grid, float min, float max)
{
    qat_histogram_filled filled;
    qat_histogram_filled_of(&filled, h);
    return qat_histogram_error_below(&filled, grid, min, max, INFINITY);
}
