/**
 * Private to the verifier: what it knows about each tensor, and its lanes.
 *
 * Samples are divided among a fixed number of lanes. Each lane has its own arena and its own
 * counts, which are added in the order of the lanes. So the result does not depend on the number of
 * threads.
 */
#ifndef QAT_CONVERT_VERIFY_H
#define QAT_CONVERT_VERIFY_H

#include "convert/convert.h"

enum { QAT_VERIFY_LANES = 8, QAT_VERIFY_CODES = 256 };

/** What is known about one tensor of the integer graph. */
struct qat_watched {
    bool compared;  /* an op writes it */
    bool is_output; /* of the graph */
    size_t count;   /* values */
    size_t bytes;   /* of them */
    /*
     * Simulation: the node of the eval graph, or NULL; the real values that fake_quant rounds,
     * batch samples; and its parameters.
     */
    const qat_node *simulated;
    const float *real;
    qat_qparams params;
    const qat_node *trained; /* the node of the training graph that runs on integers, or NULL */
};

/** The arena and the counts of one lane. */
struct qat_lane {
    void *arena;
    const void **inputs; /* for one sample */
    /* By tensor: which codes occurred, as bytes; of 16-bit codes the lower bytes. */
    uint8_t (*seen)[QAT_VERIFY_CODES];
    int64_t visits;   /* compared tensors visited; samples are counted separately */
    int64_t first_at; /* sample * tensors + order of the first difference, or -1 */
    qat_compare counts;
};

struct qat_verifier {
    const qat_qgraph *graph;
    qat_graph *eval;
    qat_graph *integers; /* a training graph that runs on integers, or NULL */
    qat_exact *exact;
    qat_layers *layers; /* NULL if eval is NULL */
    qi_host *host;
    qat_other_hosts *others;
    int max_batch, n_compared;
    int64_t samples;
    struct qat_watched *tensors;
    struct qat_lane lanes[QAT_VERIFY_LANES];
    qat_compare result;
    void **no_outputs; /* NULL pointers, because visits see every tensor */
    bool simulate;     /* in the current batch */
    bool rounds;       /* as the model does: the eval graph's profile is that of the model */
    int batch;
    const void *const *inputs;
};

/**
 * Run the samples of the batch on the engine, and one of them on each of the other hosts. Compare
 * with the results of the exact evaluation and of the simulation. The counts go into v->result.
 * @return compared tensors that the engine has written, in all samples
 */
int64_t qat_verify_lanes(qat_verifier *v);
/** Add counts of other samples. */
void qat_compare_add(qat_compare *sum, const qat_compare *other);

#endif
