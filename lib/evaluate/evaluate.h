/**
 * What evaluations of float graphs, integer graphs and integer models share: the pass over the
 * data, and the codes of integer inputs.
 */
#ifndef QAT_EVALUATE_EVALUATE_H
#define QAT_EVALUATE_EVALUATE_H

#include "evaluate/data.h"
#include "qat/ranks.h"
#include "task/task.h"

/** A pass over a data set, in order. */
typedef struct qat_evaluation {
    const qat_input_info *input;
    const qat_dataset *data;
    int batch;
    int64_t limit; /* most samples; 0: all */
    qat_tick *tick;
    void *context;
    const qat_ranks *ranks; /* with whom it is shared; NULL: with nobody */
    int threads;            /* that read samples; no figure depends on them */
} qat_evaluation;

/** Runs the network on `count` samples of a batch. */
typedef qat_status qat_evaluation_fn(void *state, const qat_batch *batch, int count,
                                     qat_outputs *outputs, qat_error *err);

/**
 * As the public functions without ranks and with one thread that reads: all ranks call it, and get
 * the same figures. The work is shared if the task is a built-in one and each rank has a batch;
 * else each does all of it.
 */
qat_status qat_evaluate_graph_among(const qat_ranks *ranks, int threads, qat_graph *graph,
                                    const qat_input_info *input, const qat_dataset *data, int batch,
                                    int64_t limit, qat_tick *tick, void *context,
                                    qat_accuracy *accuracy, qat_error *err);
qat_status qat_evaluate_model_among(const qat_ranks *ranks, int threads, const qi_host *host,
                                    const qat_input_info *input, const qat_dataset *data,
                                    int64_t limit, qat_tick *tick, void *context,
                                    qat_accuracy *accuracy, qat_error *err);
/** evaluate_among.c: is it to be shared? The passes over the batches if it is. */
bool qat_evaluation_is_shared(const qat_evaluation *evaluation);
qat_status qat_evaluation_among(const qat_evaluation *evaluation, qat_evaluation_fn *fn,
                                void *state, void *pass, qat_error *err);

/** Let the task judge what fn answers over the data. */
qat_status qat_evaluation_run(const qat_evaluation *evaluation, qat_evaluation_fn *fn, void *state,
                              qat_accuracy *accuracy, qat_error *err);

/** Turns samples into codes of an integer model's input. Zeroed: nothing to free. */
typedef struct qat_input_coder {
    qat_sample_type type;
    qi_type stored; /* of codes */
    qat_qparams params;
    size_t values; /* of one sample */
    void *codes;   /* codes of a batch of real values; NULL for pixels, which are codes themselves;
                      free() it */
} qat_input_coder;

/**
 * Prepare for an input tensor with this type, bits and parameters, and `values` values per sample.
 */
qat_status qat_input_coder_init(qat_input_coder *coder, const qat_input_info *input, qi_type type,
                                int bits, float scale, int32_t zero_point, size_t values, int batch,
                                qat_error *err);
/** The codes of `count` samples, or their pixels. They stay until the next call, or as long as the
 * batch. */
const void *qat_input_coder_codes(qat_input_coder *coder, const qat_batch *batch, int count);

#endif
