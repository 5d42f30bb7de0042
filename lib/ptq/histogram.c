/** Histograms: counts of values in bins of equal width between min and max. */
#include "fakequant/range.h"
#include "qat/ptq.h"

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
    if (grid->symmetric)
        return qat_choose_symmetric(-min > max ? -min : max, grid->hi);
    return qat_choose_qparams(min, max, grid->lo, grid->hi, true);
}

double qat_histogram_error(const qat_histogram *h, const qat_code_grid *grid, float min, float max)
{
    enum { STRIP = 256 };
    qat_qparams const p = params_of(grid, min, max);
    double sum = 0;
    for (int from = 0; from < QAT_HISTOGRAM_BINS; from += STRIP) {
        float x[STRIP], y[STRIP];
        for (int i = 0; i < STRIP; i++)
            x[i] = qat_histogram_centre(h, from + i);
        if (grid->symmetric)
            qat_fake_quant_values_per_channel(&p, x, y, STRIP);
        else
            qat_fake_quant_values(&p, x, y, STRIP);
        for (int i = 0; i < STRIP; i++) {
            double const e = (double)x[i] - (double)y[i];
            sum += (double)h->counts[from + i] * e * e;
        }
    }
    return sum;
}
