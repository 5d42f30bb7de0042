/**
 * From an eval graph to a verified .qm file: freeze, fuse, quantize, remove redundant
 * requantizations, verify byte for byte, write. Only this module knows both the training side and
 * the engine.
 */
#ifndef QAT_CONVERT_H
#define QAT_CONVERT_H

#include "qat/certify.h"
#include "qat/quant.h"
#include "qat/ranks.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/**
 * Where warnings go (a clamped bias, for example); NULL: nowhere. The library itself never prints.
 * The thread that called the library calls line.
 */
typedef struct qat_log {
    void (*line)(void *context, const char *text);
    void *context;
} qat_log;

/**
 * Make the integer graph of an eval graph (planned QAT_PLAN_KEEP, parameters copied): quantize
 * weights and biases, compute multipliers, remove redundant requantizations. Graph inputs become
 * tensors of codes; qat_qgraph_add_input_table adds the conversion from pixels. These are errors,
 * which name the node: ops without a quant entry, ranges that were never observed, accumulators
 * that could overflow int32. Free the graph with qat_qgraph_free.
 */
qat_status qat_freeze(qat_qgraph **graph, qat_graph *eval, qat_profile profile, const qat_log *log,
                      qat_error *err);

/**
 * Insert a `table` op (pixel to code, 256 entries per channel) before graph input 0. mean and std
 * are per channel, in pixel units. The code is the fake-quant formula of (pixel - mean) / std in
 * float32 (qat_pixel_tables).
 */
qat_status qat_qgraph_add_input_table(qat_qgraph *graph, int channels, const float *mean,
                                      const float *std, qat_error *err);
/**
 * codes[c * 256 + pixel], bytes; int16 if the input has more than 8 bits. Training, eval and export
 * all use this definition.
 */
void qat_pixel_tables(int channels, const float *mean, const float *std, const qat_qparams *input,
                      void *codes);
/** The real values of those pixels, which are the float input of a quantized graph. */
void qat_pixel_values(int channels, const float *mean, const float *std, float *values);

/** Everything in a .qm besides the graph. The writer borrows it. */
typedef struct qat_qm_metadata {
    const char *description;
    const char *const *labels;
    int n_labels;
    qi_preprocessing preprocessing;
    uint8_t digest[32];            /* SHA-256 of the checkpoint, or zeros */
    const void *const *kat_inputs; /* one per graph input, or NULL: no known-answer test */
    const void *const *kat_outputs;
    int kat_steps; /* runs, one after the other in each of these; 0: one. Only with states */
} qat_qm_metadata;

/** Write the bytes of a .qm (docs/qm-format.md), in the graph's form; free() them. */
qat_status qat_qm_write(const qat_qgraph *graph, const qat_qm_metadata *metadata, uint8_t **bytes,
                        size_t *count, qat_error *err);
/**
 * Write the bytes of an open model again, in another form. The new file is opened, its integers are
 * compared with the model's, and its known answers are computed; free() the bytes.
 */
qat_status qat_qm_write_again(const qi_host *host, const qat_qm_form *form, uint8_t **bytes,
                              size_t *count, qat_error *err);
/** Read a .qm back as an integer graph (for qat-inspect and the exact evaluation of a file). */
qat_status qat_qm_read(qat_qgraph **graph, const qi_model *model, qat_error *err);

/** The result of a byte-for-byte comparison. */
typedef struct qat_compare {
    int64_t tensors, bytes; /* numbers compared */
    int64_t
        differing; /* bytes that differ between the exact evaluation and the engine; must be 0 */
    char first[QAT_NAME_MAX + 160]; /* the place of the first difference */
    int64_t simulated_bytes;        /* bytes compared with the float32 simulation */
    int64_t simulated_differing;    /* how many of them differ from the engine */
    int64_t simulated_far;          /* how many of those by more than one quantum */
    int simulated_max_quanta;       /* by at most this many quanta */
    int64_t output_bytes, output_simulated_differing; /* the same for the graph's outputs only */
    int64_t tensors_large;  /* tensors with at least min(64, 2^(bits-1)) values over all samples */
    int64_t tensors_varied; /* how many of those took at least that many distinct codes */
    int64_t layers;         /* layers that were compared one by one with float32 */
    double layers_max_quanta;           /* the largest distance */
    char layers_furthest[QAT_NAME_MAX]; /* the tensor of that layer */
    /** Values of these layers; how many codes are not the float values'; of those by more than 1.
     */
    int64_t layers_values, layers_differing, layers_far;
    /** Bytes compared with training on integers; how many of them differ from the engine. */
    int64_t trained_bytes, trained_differing;
} qat_compare;

/**
 * Compares one layer of the integer graph with the float layer from which it was made. Both are
 * computed from the same inputs: the real values of the exact evaluation's codes. So errors do not
 * accumulate and a small bound holds; a graph that was frozen wrongly exceeds it.
 */
typedef struct qat_layer_check {
    const char *tensor,
        *op;       /* the fake-quantized tensor, and the integer op that writes it; borrowed */
    double quanta; /* largest |clamp(real, range) - scale (code - zero_point)| / scale so far */
    double bound; /* what the op's roundings can cost (docs/arithmetic.md section 13); INFINITY: not
                     checked, because a bias was clamped */
    int64_t sample; /* the sample in which quanta is largest */
    size_t value;
    float real;
    int32_t code;
    int64_t values, differing, far; /* compared; of another code than the float value's; of those by
                                       more than one quantum */
} qat_layer_check;

/**
 * A comparison over several batches. One thread at a time may use it; meanwhile nobody else may use
 * its eval graph. It only reads the integer graph.
 */
typedef struct qat_verifier qat_verifier;
/**
 * Create a verifier. It compares, sample by sample, every activation of the engine that runs `qm`
 * with the exact evaluation of `graph`, and with the float32 simulation of `eval` (NULL: not
 * compared). With few bits it rounds as the profile in eval's options says (qat_simulate_integers),
 * which should be the model's.
 */
qat_status qat_verifier_create(qat_verifier **verifier, const qat_qgraph *graph, qat_graph *eval,
                               const void *qm, size_t qm_bytes, const qi_kernel_list *kernels,
                               const qat_registry *registry, int max_batch, qat_error *err);
/**
 * Compare the engine also with a training graph that runs on integers (QAT_FORWARD_INTEGER), in
 * eval mode. It has the eval graph's inputs and parameters, is planned for max_batch samples, and
 * is borrowed. Without an eval graph nothing is compared.
 */
void qat_verifier_watch_integers(qat_verifier *verifier, qat_graph *training);
void qat_verifier_free(qat_verifier *verifier);
/**
 * Compare a batch.
 * @param inputs       for each graph input: batch samples in the input tensor's type
 * @param real_inputs  the float inputs of the eval graph for the same samples; NULL if eval is NULL
 */
qat_status qat_verifier_batch(qat_verifier *verifier, const void *const *inputs,
                              const float *const *real_inputs, int batch, qat_error *err);
const qat_compare *qat_verifier_result(qat_verifier *verifier);
/**
 * Join what all ranks found, each on samples of its own. All must call it, once, after their
 * batches. It is an error if one of them verified another file.
 * @param samples  set to the number of samples of all ranks
 */
qat_status qat_verifier_join(qat_verifier *verifier, const qat_ranks *ranks, const void *qm,
                             size_t qm_bytes, int64_t *samples, qat_error *err);
/** How many distinct codes a tensor of the graph took over all samples; 0 if no op writes it. */
int qat_verifier_codes(const qat_verifier *verifier, int tensor);
/** The layers checked so far, in execution order; none if eval is NULL. */
int qat_verifier_layers(const qat_verifier *verifier);
const qat_layer_check *qat_verifier_layer(const qat_verifier *verifier, int i);
/**
 * QAT_ERR_MISMATCH if a layer is further from its float original than its bound. The message names
 * tensor, op, sample, value and distance.
 */
qat_status qat_verifier_judge(const qat_verifier *verifier, qat_error *err);

/* ------------------------------------------------------------------ export: all of it at once */

/**
 * One batch of verification data. inputs has `count` samples for each graph input. Input 0 has
 * pixels (uint8_t, [count, H, W, C]) if the export has an input table; otherwise inputs are real
 * values (float). It is borrowed until the next call.
 */
typedef struct qat_export_batch {
    int count; /* 0: no more data */
    const void *const *inputs;
} qat_export_batch;
/**
 * Give the next batch, with at most max_batch samples. An error ends the export, which returns it.
 */
typedef qat_status qat_export_next(void *context, int max_batch, qat_export_batch *batch,
                                   qat_error *err);

typedef struct qat_export_options {
    qat_profile profile;
    int channels;            /* > 0: graph input 0 gets a table from pixels; 0: inputs are codes */
    const float *mean, *std; /* for every channel, in pixel units: (pixel - mean) / std */
    qat_qm_metadata
        metadata; /* written unchanged, except the known-answer test, which export makes */
    const qi_kernel_list *kernels; /* custom kernels, or NULL */
    int max_batch; /* samples verified at once; the eval graph must be planned for as many */
    qat_export_next *next; /* gives the verification data; NULL: seeded random inputs */
    void *next_context;
    int random_samples; /* if next is NULL: how many samples, at least 1 */
    uint64_t seed;      /* for random inputs and the known-answer test */
    const qat_log *log; /* warnings; NULL: nowhere */
    /**
     * Completes the frozen graph before it is written, for example with an epilogue. NULL: not
     * needed.
     */
    qat_status (*finish)(const void *context, qat_qgraph *graph, qat_error *err);
    const void *finish_context;
    /**
     * The float graph and the parameters from which the eval graph was made; the file is compared
     * with them (certify.h). NULL: only the engine and the frozen graph are compared.
     */
    const qat_certify_source *certify;
    /**
     * The float graph and the training graph made from it. The engine is compared with them on data
     * (qat_certify_signal). Give both, or NULL for both: there is then no such comparison. Both
     * hold the trained parameters and are planned QAT_PLAN_KEEP for certify_batch samples. Of each
     * verified batch, the first certify_batch samples at most are used, until certify_samples were
     * used in all.
     */
    qat_graph *certify_real, *certify_simulated;
    int certify_batch, certify_samples;
    /**
     * Ranks that share the verification: `next` gives each of them samples of its own, and the
     * result has the figures of all. NULL: this process is alone.
     */
    const qat_ranks *ranks;
    /** A training graph that runs on integers (qat_verifier_watch_integers), or NULL. */
    qat_graph *integers;
} qat_export_options;

typedef struct qat_export_result {
    uint8_t *qm; /* the file's bytes; free() them */
    size_t qm_bytes;
    size_t float_bytes; /* trainable parameters of the eval graph as float32 */
    size_t arena_bytes; /* needed to run the model */
    int64_t samples;    /* verified */
    qat_compare compare;
    qat_certificate certificate; /* zeros where options.certify was NULL */
} qat_export_result;

/**
 * Make the bytes of a verified .qm from an eval graph (planned QAT_PLAN_KEEP for max_batch,
 * parameters copied): freeze, input table, known-answer test, write, certify, verify.
 *
 * QAT_ERR_MISMATCH in four cases. (1) The file does not hold what options->certify says; the
 * message names layer, field and both values. (2) A byte of a tensor differs between the engine and
 * the exact evaluation; the message names tensor, sample and both codes. (3) An integer layer is
 * further from its float original than its roundings explain. (4) A byte differs between the engine
 * and options->integers. On failure result is zeroed, except for compare and samples.
 */
qat_status qat_export(qat_export_result *result, qat_graph *eval, const qat_export_options *options,
                      qat_error *err);

/* ------------------------------------------------------------------ real numbers into a model */

/**
 * The codes of a model's input for real numbers, by its preprocessing (kind 2, input 0) or its
 * float32 border; docs/qm-format.md. An input with neither is an error.
 *
 * @param values  as many as the input tensor has; the tensor must have one byte per value
 * @param codes   in the tensor's type
 */
qat_status qat_model_codes(const qi_model *model, int input, const float *values, void *codes,
                           qat_error *err);

/* ------------------------------------------------------------------ import of .tflite, .onnx */

/**
 * Read a quantized .tflite model as an integer graph, profile tflite. It computes the same as
 * TensorFlow Lite's reference kernels, byte for byte. Shapes are those of the file, including the
 * batch. Operators on known integers (SHAPE, PACK, STRIDED_SLICE ...) are folded. Tensors keep
 * their name, and their number in the file as source_index.
 *
 * These are errors, which name operator index, operator and tensor: operators without integer
 * arithmetic in the engine, float32 in the middle of a model, control flow, sparse tensors, dynamic
 * shapes.
 *
 * @param bytes  the file, borrowed during the call; any bytes are safe to pass
 */
qat_status qat_tflite_import(qat_qgraph **graph, const void *bytes, size_t count, qat_error *err);

/**
 * Read a quantized .onnx model as an integer graph, profile onnx: QDQ (QuantizeLinear and
 * DequantizeLinear around operators of reals) or QLinear operators. Pictures are channels last at
 * its inputs and outputs. It is an error if something is computed in reals.
 */
qat_status qat_onnx_import(qat_qgraph **graph, const void *bytes, size_t count, qat_error *err);

typedef struct qat_import_options {
    const char *description;   /* NULL: none */
    const char *const *labels; /* one per class, or NULL */
    int n_labels;
    bool known_answers; /* store a known-answer test of seeded random codes */
    /**
     * If means > 0, input 0 takes pictures: a table makes its codes of (pixel - mean) / std, in
     * pixel units (qat_qgraph_add_input_table). means: 1, or one for each channel.
     */
    int means;
    const float *mean, *std;
    qi_limits limits; /* of the model that is made; see qi_host_options */
} qat_import_options;

/**
 * The same, but gives the bytes of a .qm, which the engine has checked; free() them. A model with a
 * uint8 input [1, H, W, 1] or [1, H, W, 3] takes pictures: this is written in its preprocessing.
 * One of int8, or of float32 that is quantized, takes them with options->mean.
 */
qat_status qat_tflite_to_qm(const void *bytes, size_t count, const qat_import_options *options,
                            uint8_t **qm, size_t *qm_bytes, qat_error *err);
/** The same of an .onnx model. */
qat_status qat_onnx_to_qm(const void *bytes, size_t count, const qat_import_options *options,
                          uint8_t **qm, size_t *qm_bytes, qat_error *err);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
