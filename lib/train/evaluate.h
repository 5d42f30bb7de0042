/** What evaluations of float graphs, integer graphs and integer models share: the pass over the
 *  data, and the codes that integer ones are given. */
#ifndef QAT_TRAIN_EVALUATE_H
#define QAT_TRAIN_EVALUATE_H

#include "train/attributes.h"
#include "train/data.h"
#include "train/detector.h"

/** A data set, in order. */
typedef struct qat_evaluation {
    const qat_input_info *input;
    const qat_dataset *data;
    int batch;
    int64_t limit; /* samples at most; 0: all */
    qat_tick *tick;
    void *context;
} qat_evaluation;

/** What an evaluation does with `count` samples of a batch. */
typedef qat_status qat_evaluation_fn(void *state, const qat_batch *batch, int count,
                                     qat_error *err);

qat_status qat_evaluation_run(const qat_evaluation *evaluation, qat_evaluation_fn *fn, void *state,
                              qat_error *err);

/** The same of a detector: batches leave their findings, which are judged at the end; *findings is
 *  NULL before and after. */
qat_status qat_evaluation_boxes(const qat_evaluation *evaluation, qat_evaluation_fn *fn,
                                void *state, qat_findings **findings, int classes,
                                qat_accuracy *accuracy, qat_error *err);

/** The same of a network that answers attributes. */
qat_status qat_evaluation_answers(const qat_evaluation *evaluation, qat_evaluation_fn *fn,
                                  void *state, qat_answers **answers, qat_accuracy *accuracy,
                                  qat_error *err);

/** Data with boxes go with detectors, others with classifiers. */
qat_status qat_evaluation_check(const qat_dataset *data, bool detects, qat_error *err);

/** Samples to codes of an integer model's input; zeroed: nothing to free. */
typedef struct qat_input_coder {
    qat_sample_type type;
    qat_qparams params;
    size_t values;  /* of one sample */
    uint8_t *codes; /* of a batch of real values; NULL for pixels, which are codes; free() it */
} qat_input_coder;

/** For an input tensor of such type, bits and parameters, with `values` values a sample. */
qat_status qat_input_coder_init(qat_input_coder *coder, const qat_input_info *input, qi_type type,
                                int bits, float scale, int32_t zero_point, size_t values, int batch,
                                qat_error *err);
/** Codes of `count` samples; they stay until the next call, or as long as the batch. */
const uint8_t *qat_input_coder_bytes(qat_input_coder *coder, const qat_batch *batch, int count);

#endif
