/**
 * Post-training quantization: a float network becomes integers without further training, by the
 * ranges that calibration data show. What training with simulated quantization is compared to.
 *
 *     qat_fold_batch_norm(&folded, float_graph, 32, &err);      // convolutions, biases, ReLUs
 *     qat_equalize(folded, &result, &err);                      // if wanted
 *     qat_create_eval_graph(&eval, folded, &options, &err);     // plan KEEP, copy parameters
 *     qat_calibrator_create(&c, eval, &err);
 *     for (each batch, fed to eval) qat_calibrator_extents(c);
 *     for (each batch, fed to eval) qat_calibrator_count(c);
 *     qat_calibrator_commit(c, qat_estimator_find("mse"), 0);   // ranges of activations
 *     qat_clip_weights(eval, qat_estimator_find("mse"), 0, &err);
 *     qat_freeze(&graph, eval, QAT_PROFILE_PAPER, NULL, &err);  // as after training
 */
#ifndef QAT_PTQ_H
#define QAT_PTQ_H

#include "qat/quant.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* ------------------------------------------------------------------ histograms */

enum { QAT_HISTOGRAM_BINS = 4096 };

/** How often values fall into bins of equal width; integers, so that their order does not matter.
 */
typedef struct qat_histogram {
    float min, max; /* of all values, exactly: where the first bin begins and the last ends */
    int64_t total;
    int64_t counts[QAT_HISTOGRAM_BINS];
} qat_histogram;

/** Empty, on [min, max]. */
void qat_histogram_begin(qat_histogram *h, float min, float max);
/** Count values; those outside the range go to the bin next to them, NaNs nowhere. */
void qat_histogram_add(qat_histogram *h, const float *x, size_t n);
/** The middle of a bin. */
float qat_histogram_centre(const qat_histogram *h, int bin);

/* ------------------------------------------------------------------ range estimators */

/** The codes a range will be cut into. */
typedef struct qat_code_grid {
    int32_t lo, hi;
    bool symmetric; /* [-m, m], zero-point 0: int8 weights */
} qat_code_grid;

/**
 * From all values of a tensor (or of a channel) to the range that is quantized; what lies outside
 * is clamped. *min <= *max on return.
 */
typedef struct qat_estimator {
    const char *name;
    const char *meaning;         /* one line */
    const char *parameter;       /* what the number behind "name:" is; NULL: there is none */
    double initial, least, most; /* of the parameter */
    bool for_weights;            /* weights are cut by it, too; else they keep their min and max */
    void (*estimate)(const qat_histogram *h, const qat_code_grid *grid, double parameter,
                     float *min, float *max);
} qat_estimator;

/** minmax, percentile, mse. NULL behind the last. */
const qat_estimator *qat_estimator_at(int i);
const qat_estimator *qat_estimator_find(const char *name);
/** "mse", "percentile:99.9": estimator and parameter (its default where none is given). Errors name
 *  what there is. */
qat_status qat_estimator_parse(const char *text, const qat_estimator **estimator, double *parameter,
                               qat_error *err);

/** Sum over the histogram of (x - fake_quant(x))^2 for a range: what mse minimises. */
double qat_histogram_error(const qat_histogram *h, const qat_code_grid *grid, float min, float max);

/* ------------------------------------------------------------------ the folded network */

/**
 * The float network without batch norms: each is folded with its averages into the weights before
 * it, docs/arithmetic.md section 14, and every convolution, depthwise convolution and fully
 * connected layer gets a bias. A batch norm of its own stays. Pruned to the outputs.
 *
 * @param float_graph  planned, parameters set; only read
 * @param folded  planned QAT_PLAN_KEEP for max_batch, parameters set; computes what float_graph
 *                does in eval mode, up to float32's roundings
 */
qat_status qat_fold_batch_norm(qat_graph **folded, const qat_graph *float_graph, int max_batch,
                               qat_error *err);

typedef struct qat_equalized {
    int pairs;          /* of layers equalized */
    int behind_relu6;   /* pairs left alone: see below */
    int rounds;         /* until the scales settled */
    double worst_ratio; /* before: largest range of an output channel / smallest, in one layer */
    double worst_ratio_after;
} qat_equalized;

/**
 * Cross-layer range equalization (Nagel et al. 2019, "Data-Free Quantization Through Weight
 * Equalization and Bias Correction", section 4.1) of a folded network, in place. Where a layer's
 * output c reaches one other layer alone, through nothing but ReLU, pools and reshapes,
 *
 *     relu(s x) = s relu(x),  s > 0:      w1[c] / s, b1[c] / s, w2[.., c] s    is the same network
 *     s = sqrt(r1 r2) / r2 makes both ranges sqrt(r1 r2),  r = max |w| of the channel
 *
 * Repeated over all pairs until no scale moves by more than 1e-3. A channel that is always 0 (no
 * weights, and a bias that the ReLU takes away) gets 0 for the weights that read it, one that
 * nobody reads 0 for its own: the limits of the formula.
 * ReLU6 is not equivariant: its bound would have to become 6 / s, another one for each channel, and
 * an integer layer has one clamp. Such pairs are left as they are and counted.
 */
qat_status qat_equalize(qat_graph *folded, qat_equalized *result, qat_error *err);

/* ------------------------------------------------------------------ calibration */

/** A calibration. It runs its eval graph: one thread at a time may use the two. */
typedef struct qat_calibrator qat_calibrator;

/** Borrow an eval graph: planned QAT_PLAN_KEEP, parameters set. */
qat_status qat_calibrator_create(qat_calibrator **calibrator, qat_graph *eval, qat_error *err);
void qat_calibrator_free(qat_calibrator *calibrator);
/**
 * Run the graph on the batch that its inputs hold, with neither weights nor activations quantized
 * (inputs are, as on the device), and take down the extents of every observed tensor.
 */
void qat_calibrator_extents(qat_calibrator *calibrator);
/** Likewise into histograms; after the extents of all batches. */
void qat_calibrator_count(qat_calibrator *calibrator);
/** Write every range as the estimator finds it: the graph counts as observed then. */
void qat_calibrator_commit(qat_calibrator *calibrator, const qat_estimator *estimator,
                           double parameter);

/** Clamp an eval graph's weights to their ranges as the estimator finds them, channel by channel
 *  or tensor by tensor as the layout says. Weights that a batch norm scales are left alone. */
qat_status qat_clip_weights(qat_graph *eval, const qat_estimator *estimator, double parameter,
                            qat_error *err);

/* ------------------------------------------------------------------ bias correction */

/**
 * What quantization shifts on average, taken off the biases (Nagel et al., section 4.2, by data):
 *
 *     b[c] += mean over calibration data, positions of (y_float[c] - y_quantized[c])
 *
 * with y a layer's output before its activation. Layer by layer in the graph's order, each measured
 * with all before it corrected:
 *
 *     for (layer = 0; layer < qat_bias_correction_layers(c); layer++) {
 *         for (each batch, fed to both) qat_bias_correction_measure(c, layer);
 *         qat_bias_correction_apply(c, layer);
 *     }
 *
 * One thread at a time may use it and its two graphs.
 */
typedef struct qat_bias_correction qat_bias_correction;
/** Both planned QAT_PLAN_KEEP, parameters set; eval made from the folded network. */
qat_status qat_bias_correction_create(qat_bias_correction **correction, qat_graph *folded,
                                      qat_graph *eval, qat_error *err);
void qat_bias_correction_free(qat_bias_correction *correction);
int qat_bias_correction_layers(const qat_bias_correction *correction);
/** Run both graphs on the batch that their inputs hold. */
void qat_bias_correction_measure(qat_bias_correction *correction, int layer);
/** Change the eval graph's bias; the largest |change|. Forgets what was measured. */
double qat_bias_correction_apply(qat_bias_correction *correction, int layer);

/* ------------------------------------------------------------------ ranges for comparison */

/** Forget what was observed: every batch is then quantized by its own range, found at run time. */
void qat_forget_ranges(qat_graph *eval);

/**
 * Set every range to the largest and smallest value that the layer could reach if each of its
 * inputs took whichever end of its range is worst: safe, and far too wide. Refuses ops of which
 * that is not known.
 */
qat_status qat_worst_case_ranges(qat_graph *eval, qat_error *err);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
