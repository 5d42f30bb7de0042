/**
 * From an eval graph to a verified .qm file: freeze, fuse, quantize, drop what cancels, verify byte
 * for byte, write. The only place that knows both sides.
 */
#ifndef QAT_CONVERT_H
#define QAT_CONVERT_H

#include "qat/quant.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Where warnings go (a clamped bias, ...); NULL: nowhere. The library itself never prints. */
typedef struct qat_log {
    void (*line)(void *context, const char *text);
    void *context;
} qat_log;

/**
 * Eval graph (planned QAT_PLAN_KEEP, parameters copied) to integer graph: weights and biases
 * quantized, multipliers computed, redundant requantizations dropped. Graph inputs become tensors
 * of codes; qat_qgraph_add_input_table puts pixels in front of them.
 * Refuses, naming the node: ops without a quant entry, ranges never observed, accumulators that
 * could overflow int32.
 */
qat_status qat_freeze(qat_qgraph **graph, qat_graph *eval, qat_profile profile, const qat_log *log,
                      qat_error *err);

/**
 * Put a `table` op (pixel to code, 256 entries per channel) before graph input 0.
 * mean, std: per channel, in pixel units; code = fake-quant formula on (pixel - mean) / std in
 * float32 (qat_pixel_tables).
 */
qat_status qat_qgraph_add_input_table(qat_qgraph *graph, int channels, const float *mean,
                                      const float *std, qat_error *err);
/** codes[c * 256 + pixel]; the one definition that training, eval and export use. */
void qat_pixel_tables(int channels, const float *mean, const float *std, const qat_qparams *input,
                      uint8_t *codes);
/** The real values behind those codes: what a quantized graph's float input holds. */
void qat_pixel_values(int channels, const float *mean, const float *std, float *values);

/** Everything in a .qm besides the graph. Borrowed by the writer. */
typedef struct qat_qm_metadata {
    const char *description;
    const char *const *labels;
    int n_labels;
    qi_preprocessing preprocessing;
    uint8_t digest[32];       /* SHA-256 of the checkpoint, or zeros */
    const void *const *kat_inputs;  /* one for each graph input, or NULL: no known-answer test */
    const void *const *kat_outputs;
} qat_qm_metadata;

/** The bytes of a .qm (docs/qm-format.md); free() them. */
qat_status qat_qm_write(const qat_qgraph *graph, const qat_qm_metadata *metadata, uint8_t **bytes,
                        size_t *count, qat_error *err);
/** Read a .qm back as an integer graph (for qat-inspect and the exact evaluation of a file). */
qat_status qat_qm_read(qat_qgraph **graph, const qi_model *model, qat_error *err);

/** What a byte-for-byte comparison found. */
typedef struct qat_compare {
    int64_t tensors, bytes;      /* compared */
    int64_t differing;           /* exact evaluation against engine: must be 0 */
    char first[QAT_NAME_MAX + 96]; /* where the first difference is */
    int64_t simulated_bytes;     /* bytes compared with the float32 simulation */
    int64_t simulated_differing; /* of those, how many differ from the engine */
    int simulated_max_quanta;    /* by how much at most */
    int64_t output_bytes, output_simulated_differing; /* the same for the graph's outputs alone */
    int64_t tensors_varied;      /* tensors with >= min(64, 2^(bits-1)) distinct codes, or as many as they can have */
} qat_compare;

typedef struct qat_verifier qat_verifier;
/**
 * Compares, sample by sample, every activation of the engine running `qm` with the exact evaluation
 * of `graph`, and with the float32 simulation of `eval` (may be NULL: not compared).
 */
qat_status qat_verifier_create(qat_verifier **verifier, const qat_qgraph *graph, qat_graph *eval,
                               const void *qm, size_t qm_bytes, const qi_kernel_list *kernels,
                               const qat_registry *registry, int max_batch, qat_error *err);
void qat_verifier_free(qat_verifier *verifier);
/**
 * Compare a batch.
 * @param inputs  for each graph input: batch samples in the input tensor's type
 * @param real_inputs  the eval graph's float inputs for the same samples, or NULL where eval is
 */
qat_status qat_verifier_batch(qat_verifier *verifier, const void *const *inputs,
                              const float *const *real_inputs, int batch, qat_error *err);
const qat_compare *qat_verifier_result(qat_verifier *verifier);

#ifdef __cplusplus
}
#endif
#endif
