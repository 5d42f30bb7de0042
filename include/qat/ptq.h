/**
 * Post-training quantization: a float network becomes integers without further training, with
 * ranges observed on calibration data. It is the baseline for training with simulated quantization.
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

/**
 * Counts of values in bins of equal width. They are integers, so the order of the values does not
 * matter.
 */
typedef struct qat_histogram {
    float min, max; /* exact min and max of all values: begin of the first bin, end of the last */
    int64_t total;
    int64_t counts[QAT_HISTOGRAM_BINS];
} qat_histogram;

/** Make it empty, on [min, max]. */
void qat_histogram_begin(qat_histogram *h, float min, float max);
/** Count values. Values outside the range go to the first or last bin. NaNs are not counted. */
void qat_histogram_add(qat_histogram *h, const float *x, size_t n);
/** The middle of a bin. */
float qat_histogram_centre(const qat_histogram *h, int bin);

/* ------------------------------------------------------------------ range estimators */

/** The codes into which a range will be divided. */
typedef struct qat_code_grid {
    int32_t lo, hi;
    bool symmetric; /* zero_point 0, m = scale hi: int8 weights, 16-bit activations. lo is -hi, or
                       -hi - 1: of 16-bit activations, and of weights that use all codes */
} qat_code_grid;

/**
 * An estimator computes the range to quantize from all values of a tensor (or of a channel). Values
 * outside the range are clamped. *min <= *max on return.
 */
typedef struct qat_estimator {
    const char *name;
    const char *meaning;         /* one line */
    const char *parameter;       /* meaning of the number after "name:"; NULL: it takes no number */
    double initial, least, most; /* of the parameter */
    bool for_weights;            /* also clips weights; otherwise weights keep their min and max */
    void (*estimate)(const qat_histogram *h, const qat_code_grid *grid, double parameter,
                     float *min, float *max);
} qat_estimator;

/**
 * The estimators minmax, percentile, mse; NULL after the last. qat_estimator_find: by name, or
 * NULL.
 */
const qat_estimator *qat_estimator_at(int i);
const qat_estimator *qat_estimator_find(const char *name);
/**
 * Parse "mse" or "percentile:99.9": the estimator, and its parameter (the default if none is
 * given). The error lists the estimators.
 */
qat_status qat_estimator_parse(const char *text, const qat_estimator **estimator, double *parameter,
                               qat_error *err);

/** The sum of (x - fake_quant(x))^2 over the histogram for a range. mse minimises this. */
double qat_histogram_error(const qat_histogram *h, const qat_code_grid *grid, float min, float max);

/* ------------------------------------------------------------------ the folded network */

/**
 * The float network without batch norms. Each batch norm is folded with its averages into the
 * weights before it (docs/arithmetic.md section 14), and every convolution, depthwise convolution
 * and fully connected layer gets a bias. A batch norm with no layer before it stays. Only nodes
 * that lead to outputs remain.
 *
 * @param float_graph  planned, parameters set; only read
 * @param folded  planned QAT_PLAN_KEEP for max_batch, parameters set. Its outputs are those of
 *                float_graph in eval mode, except for float32 roundings
 */
qat_status qat_fold_batch_norm(qat_graph **folded, const qat_graph *float_graph, int max_batch,
                               qat_error *err);

typedef struct qat_equalized {
    int pairs;          /* pairs of layers that were equalized */
    int behind_bound;   /* pairs with a clamp like ReLU6 between them, which are not changed: see
                           below */
    int rounds;         /* number of rounds until the scales settled, at most 100 */
    double worst_ratio; /* before: largest range of an output channel / smallest, the worst layer */
    double worst_ratio_after;
} qat_equalized;

/**
 * Cross-layer range equalization (Nagel et al. 2019, "Data-Free Quantization Through Weight
 * Equalization and Bias Correction", section 4.1) of a folded network, in place. It works on pairs
 * of layers: output c of the first layer must reach only the second, and only through ReLU, pools
 * and reshapes. Then
 *
 *     relu(s x) = s relu(x),  s > 0:      w1[c] / s, b1[c] / s, w2[.., c] s    is the same network
 *     s = sqrt(r1 r2) / r2 makes both ranges sqrt(r1 r2),  r = max |w| of the channel
 *
 * This is repeated over all pairs until no scale changes by more than 1e-3, but not more than 100
 * times. If a channel is always
 * 0 (no weights, and a bias that the ReLU removes), the weights that read it become 0. If no weight
 * reads a channel, its own weights become 0. These are the limits of the formula. ReLU6 does not
 * work: its bound would become 6 / s, different in each channel, but an integer layer has only one
 * clamp. Pairs with a ReLU6, or another clamp with a bound that is not 0, are not changed, only
 * counted.
 */
qat_status qat_equalize(qat_graph *folded, qat_equalized *result, qat_error *err);

/* ------------------------------------------------------------------ calibration */

/** A calibration. It runs its eval graph; one thread at a time may use the two. */
typedef struct qat_calibrator qat_calibrator;

/**
 * Create a calibration of an eval graph (borrowed), which is planned QAT_PLAN_KEEP and has its
 * parameters set.
 */
qat_status qat_calibrator_create(qat_calibrator **calibrator, qat_graph *eval, qat_error *err);
void qat_calibrator_free(qat_calibrator *calibrator);
/**
 * Run the graph on the batch in its inputs and note the extents of every observed tensor. Neither
 * weights nor activations are quantized (the inputs are, as on the device).
 */
void qat_calibrator_extents(qat_calibrator *calibrator);
/**
 * Run the graph in the same way and fill the histograms. Call it after the extents of all batches
 * are known.
 */
void qat_calibrator_count(qat_calibrator *calibrator);
/** Write every range as the estimator finds it. The graph then counts as observed. */
void qat_calibrator_commit(qat_calibrator *calibrator, const qat_estimator *estimator,
                           double parameter);

/**
 * Clamp the weights of an eval graph to the ranges that the estimator finds, per channel or per
 * tensor as the layout says. Weights that a batch norm scales are not changed.
 */
qat_status qat_clip_weights(qat_graph *eval, const qat_estimator *estimator, double parameter,
                            qat_error *err);

/* ------------------------------------------------------------------ bias correction */

/**
 * Bias correction: subtracts from the biases the mean error of quantization (Nagel et al., section
 * 4.2, by data):
 *
 *     b[c] += mean over calibration data, positions of (y_float[c] - y_quantized[c])
 *
 * where y is the output of a layer before its activation. Layers are corrected in the graph's
 * order. Each is measured after all layers before it are corrected:
 *
 *     for (layer = 0; layer < qat_bias_correction_layers(c); layer++) {
 *         for (each batch, fed to both) qat_bias_correction_measure(c, layer);
 *         qat_bias_correction_apply(c, layer);
 *     }
 *
 * One thread at a time may use it and its two graphs.
 */
typedef struct qat_bias_correction qat_bias_correction;
/**
 * Create it for two graphs planned QAT_PLAN_KEEP with parameters set; eval was made from the folded
 * network.
 */
qat_status qat_bias_correction_create(qat_bias_correction **correction, qat_graph *folded,
                                      qat_graph *eval, qat_error *err);
void qat_bias_correction_free(qat_bias_correction *correction);
int qat_bias_correction_layers(const qat_bias_correction *correction);
/** Run both graphs on the batch in their inputs, and measure the layer. */
void qat_bias_correction_measure(qat_bias_correction *correction, int layer);
/** Change the bias in the eval graph. Returns the largest |change|. Discards the measurements. */
double qat_bias_correction_apply(qat_bias_correction *correction, int layer);

/* ------------------------------------------------------------------ ranges for comparison */

/**
 * Forget what was observed. Every batch is then quantized by its own range, which is found at run
 * time.
 */
void qat_forget_ranges(qat_graph *eval);

/**
 * Set every range to the smallest and largest value that the layer can reach if each of its inputs
 * is at the worst end of its range. This is safe but far too wide. It is an error if this is not
 * known for an op.
 */
qat_status qat_worst_case_ranges(qat_graph *eval, qat_error *err);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
