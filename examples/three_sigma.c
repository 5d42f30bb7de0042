/**
 * A custom quantizer. Its ranges are three standard deviations wide, so a few outliers do not make
 * all steps coarse. Weights outside the range can move back into it.
 *
 *     [plugin]
 *     path = libthree_sigma.so
 *     [quant]
 *     ranges = three_sigma
 *
 * There are two quantizers of this name, one for activations and one for weights. Both use the same
 * observer. It keeps five numbers about a batch (or about the weights), and computes the range
 *
 *     [max(min, mean - 3 sigma), min(max, mean + 3 sigma)]
 *
 * The quantizer of weights also has its own rule for gradients. Usually the gradient of a weight
 * outside the range is 0. Here it is 0 only if it would move the weight further away.
 */
#include "qat/plugin.h"
#include "qat/quantizer.h"

#include <math.h>

enum { MIN, MAX, SUM, SQUARES, COUNT, KEPT };

static void clear(double *kept)
{
    kept[MIN] = INFINITY;
    kept[MAX] = -INFINITY;
    kept[SUM] = kept[SQUARES] = kept[COUNT] = 0;
}

static void observe(const float *x, size_t n, double *kept)
{
    for (size_t i = 0; i < n; i++) {
        double const v = (double)x[i];
        kept[MIN] = v < kept[MIN] ? v : kept[MIN];
        kept[MAX] = v > kept[MAX] ? v : kept[MAX];
        kept[SUM] += v;
        kept[SQUARES] += v * v;
    }
    kept[COUNT] += (double)n;
}

static void join(double *kept, const double *more)
{
    kept[MIN] = more[MIN] < kept[MIN] ? more[MIN] : kept[MIN];
    kept[MAX] = more[MAX] > kept[MAX] ? more[MAX] : kept[MAX];
    kept[SUM] += more[SUM];
    kept[SQUARES] += more[SQUARES];
    kept[COUNT] += more[COUNT];
}

static qat_statistics conclude(const double *kept)
{
    double const mean = kept[SUM] / kept[COUNT];
    double const variance = kept[SQUARES] / kept[COUNT] - mean * mean;
    double const sigma = variance > 0 ? sqrt(variance) : 0;
    return (qat_statistics){.min = (float)fmax(kept[MIN], mean - 3 * sigma),
                            .max = (float)fmin(kept[MAX], mean + 3 * sigma)};
}

/** g is the gradient: the optimizer moves x against it. */
static void backward(const qat_grid *grid, const qat_qparams *p, const float *x, const float *y,
                     const float *grad, size_t n, float *dx, qat_range_sums *sums)
{
    (void)grid, (void)y, (void)sums;
    for (size_t i = 0; dx && i < n; i++) {
        bool const returns = x[i] > p->max ? grad[i] > 0 : x[i] < p->min ? grad[i] < 0 : true;
        dx[i] += returns ? grad[i] : 0;
    }
}

static const qat_observer three_sigma = {
    .kept = KEPT, .clear = clear, .observe = observe, .join = join, .conclude = conclude};

static const qat_quantizer activations = {.name = "three_sigma", .observer = &three_sigma};
static const qat_quantizer weights = {
    .name = "three_sigma", .weights = true, .observer = &three_sigma, .backward = backward};

static const qat_quant activations_quant = {.role = QAT_ROLE_QUANTIZER, .quantizer = &activations};
static const qat_quant weights_quant = {.role = QAT_ROLE_QUANTIZER, .quantizer = &weights};

static const qat_op activations_op = QAT_QUANTIZER_OP(
    "three_sigma", "an activation within three standard deviations", &activations_quant);
static const qat_op weights_op = QAT_QUANTIZER_OP(
    "three_sigma_weights", "weights within three standard deviations", &weights_quant);

const qat_plugin qat_plugin_entry = {
    .version = QAT_PLUGIN_VERSION,
    .name = "three_sigma",
    .ops = (const qat_op *const[]){&activations_op, &weights_op},
    .n_ops = 2,
};
