/**
 * The certificate checks that a .qm holds what the trained network says.
 *
 * qat_export compares the engine with the exact evaluation of the graph that it froze. Both start
 * from the same frozen graph, so this comparison cannot find a mistake in freezing. The certificate
 * can. It reads the bytes of the file as a device does. Then it computes every field again from the
 * float graph, its parameters and the observed ranges. It does so in float64, with code of its own
 * (lib/certify) that shares nothing with the converter.
 *
 *     qat_certify_source const source = {.graph = float_graph, .quant = options,
 *                                        .profile = QAT_PROFILE_PAPER,
 *                                        .values = qat_certify_graph_values, .context = eval};
 *     qat_certificate certificate;
 *     if (qat_certify(&certificate, qm, qm_bytes, NULL, &source, &err)) puts(err.message);
 *
 * docs/arithmetic.md, section 19, says what is compared, and how near two values must be.
 * The functions only read their arguments, so any number of threads may certify at the same time.
 */
#ifndef QAT_CERTIFY_H
#define QAT_CERTIFY_H

#include "qat/quant.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/**
 * Find a parameter by its name, for example "conv1/weights" or "conv1/relu/q/range". Returns its
 * values (borrowed) and sets *count to their number; NULL if no parameter has this name.
 */
typedef const float *qat_certify_values(const void *context, const char *name, size_t *count);

/** A qat_certify_values whose context is a planned qat_graph: it finds the graph's parameters. */
const float *qat_certify_graph_values(const void *graph, const char *name, size_t *count);

/** What the file must agree with. Everything is borrowed. */
typedef struct qat_certify_source {
    const qat_graph *graph; /* the float graph, outputs marked; it need not be planned */
    qat_quant_options quant;
    qat_profile profile;
    qat_certify_values *values; /* weights, biases, batch norm's averages, ranges */
    const void *context;
    int channels;            /* > 0: input 0 takes pixels; 0: it takes codes of real numbers */
    const float *mean, *std; /* [channels], in units of pixels */
} qat_certify_source;

enum { QAT_CERTIFY_NAMES_MAX = 512 };

/** What was compared. */
typedef struct qat_certificate {
    int64_t layers;                          /* ops of the file */
    int64_t weights, biases;                 /* codes */
    int64_t multipliers;                     /* mult and shift, or significand and exponent */
    int64_t tables;                          /* entries */
    int64_t scales;                          /* with their zero points */
    int64_t signal_samples, signal_tensors;  /* compared with the float network */
    double engine_snr, simulation_snr;       /* at the outputs, in dB; NaN: not compared */
    uint8_t sha256[32];                      /* of the bytes that were compared */
    int n_uncertified;                       /* layers without an independent computation */
    char uncertified[QAT_CERTIFY_NAMES_MAX]; /* "position (op position_scale), ...", cut to fit */
} qat_certificate;

/**
 * Compare every op, tensor and constant of a .qm with the source.
 *
 * Fails with QAT_ERR_MISMATCH at the first field that differs. The message names the layer, the
 * field, the file's value and the value computed from the source. Kernels and quantizers of plugins
 * cannot be computed independently: certificate->uncertified names their layers. Bytes that are not
 * a .qm are QAT_ERR_FORMAT.
 *
 * @param certificate  filled in; on an error, with what was compared until then
 * @param qm           the file's bytes
 * @param kernels      custom kernels that the file names, or NULL
 */
qat_status qat_certify(qat_certificate *certificate, const void *qm, size_t qm_bytes,
                       const qi_kernel_list *kernels, const qat_certify_source *source,
                       qat_error *err);

/**
 * A comparison of the engine with the float network, on data. Samples run through three networks:
 * the engine, the simulation (float32 with fake quantization) and the float network. For each
 * tensor
 *
 *     signal-to-noise ratio in dB = 10 log10(sum r^2 / sum (v - r)^2)
 *
 * where r are the float network's values, and v are the engine's or the simulation's. A tensor
 * whose noise in the engine is much larger than in the simulation is an error. docs/arithmetic.md,
 * section 19, has the bound. Each handle is for one thread at a time.
 */
typedef struct qat_certify_signal qat_certify_signal;
/**
 * Create a comparison. All arguments except signal and err are borrowed until it is freed. Tensors
 * of the file that have no counterpart in the graphs are not compared.
 * @param real       the float graph
 * @param simulated  what qat_create_training_graph makes of the float graph, with
 *                   QAT_FORWARD_FAKE_QUANT. Both graphs hold the trained parameters, and both are
 * planned QAT_PLAN_KEEP for at least as many samples as one call of qat_certify_signal_batch has
 */
qat_status qat_certify_signal_create(qat_certify_signal **signal, const void *qm, size_t qm_bytes,
                                     const qi_kernel_list *kernels, qat_graph *real,
                                     qat_graph *simulated, qat_error *err);
void qat_certify_signal_free(qat_certify_signal *signal);
/**
 * Run `batch` samples and add them to the sums.
 * @param inputs  for each input of the model, the bytes that the engine gets, sample after sample
 * @param real    for each input, the values that the two graphs get for the same samples
 */
qat_status qat_certify_signal_batch(qat_certify_signal *signal, const void *const *inputs,
                                    const float *const *real, int batch, qat_error *err);
/**
 * Fill in signal_samples, signal_tensors and both ratios of the certificate. QAT_ERR_MISMATCH if a
 * tensor is much worse in the engine than in the simulation; the message names the first one, in
 * the file's order, and its two ratios.
 */
qat_status qat_certify_signal_judge(const qat_certify_signal *signal, qat_certificate *certificate,
                                    qat_error *err);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
