/**
 * From an eval graph to a verified .qm file: freeze, fuse, quantize, drop what cancels, verify byte
 * for byte, write. The only place that knows both sides.
 */
#ifndef QAT_CONVERT_H
#define QAT_CONVERT_H

#include "qat/certify.h"
#include "qat/quant.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/** Where warnings go (a clamped bias, ...); NULL: nowhere. The library itself never prints. The
 *  thread that called the library calls line. */
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
    uint8_t digest[32];            /* SHA-256 of the checkpoint, or zeros */
    const void *const *kat_inputs; /* one for each graph input, or NULL: no known-answer test */
    const void *const *kat_outputs;
} qat_qm_metadata;

/** The bytes of a .qm (docs/qm-format.md); free() them. */
qat_status qat_qm_write(const qat_qgraph *graph, const qat_qm_metadata *metadata, uint8_t **bytes,
                        size_t *count, qat_error *err);
/** Read a .qm back as an integer graph (for qat-inspect and the exact evaluation of a file). */
qat_status qat_qm_read(qat_qgraph **graph, const qi_model *model, qat_error *err);

/** What a byte-for-byte comparison found. */
typedef struct qat_compare {
    int64_t tensors, bytes;         /* compared */
    int64_t differing;              /* exact evaluation against engine: must be 0 */
    char first[QAT_NAME_MAX + 160]; /* where the first difference is */
    int64_t simulated_bytes;        /* bytes compared with the float32 simulation */
    int64_t simulated_differing;    /* of those, how many differ from the engine */
    int simulated_max_quanta;       /* by how much at most */
    int64_t output_bytes, output_simulated_differing; /* the same for the graph's outputs alone */
    int64_t tensors_large;  /* tensors with at least min(64, 2^(bits-1)) values over all samples */
    int64_t tensors_varied; /* of those, how many took at least that many distinct codes */
    int64_t layers;         /* judged one by one against float32 */
    double layers_max_quanta;           /* the furthest away from it */
    char layers_furthest[QAT_NAME_MAX]; /* its tensor */
} qat_compare;

/**
 * One layer of the integer graph against the float layer it was made from, both computed from the
 * same inputs: the reals that the exact evaluation's codes stand for. Errors do not accumulate, so
 * that a small bound holds; a graph frozen wrongly breaks it.
 */
typedef struct qat_layer_check {
    const char *tensor,
        *op;        /* the fake-quantized tensor, the integer op that writes it; borrowed */
    double quanta;  /* largest |clamp(real, range) - scale (code - zero_point)| / scale so far */
    double bound;   /* what the op's roundings can cost: docs/arithmetic.md section 13; INFINITY:
                       not judged, since a bias was clamped */
    int64_t sample; /* where it is largest */
    size_t value;
    float real;
    int32_t code;
} qat_layer_check;

/** A comparison that goes on over batches. One thread at a time may use it, and nobody else its
 * eval graph meanwhile. It only reads the integer graph. */
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
/** Distinct codes that a tensor of the graph took over all samples; 0 where no op writes it. */
int qat_verifier_codes(const qat_verifier *verifier, int tensor);
/** The layers judged so far, in execution order; none where eval is NULL. */
int qat_verifier_layers(const qat_verifier *verifier);
const qat_layer_check *qat_verifier_layer(const qat_verifier *verifier, int i);
/** QAT_ERR_MISMATCH, naming tensor, op, sample, value and distance, where a layer is further from
 *  its float original than its bound. */
qat_status qat_verifier_judge(const qat_verifier *verifier, qat_error *err);

/* ------------------------------------------------------------------ export: all of it at once */

/**
 * One batch of verification data.
 * inputs: for each graph input `count` samples: pixels (uint8_t, [count, H, W, C]) for input 0
 * where the export has an input table, real values (float) otherwise. Borrowed until the next call.
 */
typedef struct qat_export_batch {
    int count; /* 0: no more data */
    const void *const *inputs;
} qat_export_batch;
/** Give the next batch, of at most max_batch samples. An error stops the export and is returned. */
typedef qat_status qat_export_next(void *context, int max_batch, qat_export_batch *batch,
                                   qat_error *err);

typedef struct qat_export_options {
    qat_profile profile;
    int channels;            /* > 0: graph input 0 gets a table from pixels; 0: inputs are codes */
    const float *mean, *std; /* of every channel, pixel units: (pixel - mean) / std */
    qat_qm_metadata
        metadata; /* written as it is, except the known-answer test, which export makes */
    const qi_kernel_list *kernels; /* custom kernels, or NULL */
    int max_batch;         /* samples verified at once; the eval graph is planned for as many */
    qat_export_next *next; /* verification data; NULL: seeded random inputs */
    void *next_context;
    int random_samples; /* with next NULL: how many, at least 1 */
    uint64_t seed;      /* of random inputs and of the known-answer test */
    const qat_log *log; /* warnings; NULL: nowhere */
    /** Completes the frozen graph, as by an epilogue, before it is written. NULL: as it is. */
    qat_status (*finish)(const void *context, qat_qgraph *graph, qat_error *err);
    const void *finish_context;
    /** The float graph and the parameters that the eval graph was made of: the file is compared
     * with them (certify.h). NULL: only engine and frozen graph are compared. */
    const qat_certify_source *certify;
} qat_export_options;

typedef struct qat_export_result {
    uint8_t *qm; /* the file's bytes; free() them */
    size_t qm_bytes;
    size_t float_bytes; /* the eval graph's trainable parameters as float32 */
    size_t arena_bytes; /* what running the model needs */
    int64_t samples;    /* verified */
    qat_compare compare;
    qat_certificate certificate; /* zeros where options.certify was NULL */
} qat_export_result;

/**
 * Eval graph (planned QAT_PLAN_KEEP for max_batch, parameters copied) to the bytes of a verified
 * .qm: freeze, input table, known-answer test, write, certify, verify.
 *
 * Refuses with QAT_ERR_MISMATCH, naming layer, field and both values, when the file does not hold
 * what options->certify says; and naming tensor, sample and both codes, when one byte of one tensor
 * differs between the engine and the exact evaluation, or when an integer layer is further from its
 * float original than its roundings explain. result is zeroed on failure, except for
 * compare and samples.
 */
qat_status qat_export(qat_export_result *result, qat_graph *eval, const qat_export_options *options,
                      qat_error *err);

/* ------------------------------------------------------------------ real numbers into a model */

/**
 * The codes of a model's input for real numbers: by its preprocessing (kind 2, input 0) or its
 * float32 border; docs/qm-format.md. Refuses inputs that have neither.
 *
 * @param values  as many as the input tensor, which is of one byte a value
 * @param codes   of the tensor's type
 */
qat_status qat_model_codes(const qi_model *model, int input, const float *values, void *codes,
                           qat_error *err);

/* ------------------------------------------------------------------ import of .tflite files */

/**
 * A quantized .tflite model as an integer graph, profile tflite: what TensorFlow Lite's reference
 * kernels compute, byte for byte. Shapes are those of the file, the batch included; operators on
 * known integers (SHAPE, PACK, STRIDED_SLICE ...) are folded; tensors keep their name, and their
 * number in the file as source_index.
 *
 * Refuses, naming operator index, operator and tensor: what the engine has no integers for, float32
 * in the middle of a model, several subgraphs, sparse tensors, dynamic shapes, ranks above 4.
 *
 * @param bytes  the file, borrowed during the call; any bytes are safe
 */
qat_status qat_tflite_import(qat_qgraph **graph, const void *bytes, size_t count, qat_error *err);

typedef struct qat_tflite_options {
    const char *description;   /* NULL: none */
    const char *const *labels; /* one for each class, or NULL */
    int n_labels;
    bool known_answers; /* store a known-answer test of seeded random codes */
} qat_tflite_options;

/**
 * The same to the bytes of a .qm, which the engine has checked; free() them. A model with a uint8
 * input [1, H, W, 1] or [1, H, W, 3] takes pictures as they are: its preprocessing says so.
 */
qat_status qat_tflite_to_qm(const void *bytes, size_t count, const qat_tflite_options *options,
                            uint8_t **qm, size_t *qm_bytes, qat_error *err);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
