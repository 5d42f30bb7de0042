/**
 * Networks with heads for attributes and a value: their targets, and how their answers are judged.
 */
#ifndef QAT_TRAIN_ATTRIBUTES_H
#define QAT_TRAIN_ATTRIBUTES_H

#include "networks/network.h"

/**
 * The outputs of the heads that a recipe gives a network for data with targets. Data without a
 * value have no head for one.
 */
qat_attributes qat_attributes_of(const qat_recipe *recipe, const qat_dataset_info *data);

/** The targets of the value's head for one value: [outputs]; NaN if the value is not known. */
void qat_value_targets(const qat_attributes *attributes, bool ordered, float value, float *targets);

/** Write the targets of a batch into the target nodes of the training graph. */
void qat_feed_attributes(const qat_attributes *attributes, bool ordered, qat_graph *graph,
                         const qat_batch *batch);

/**
 * Count the attributes of a batch by the training graph's scores: how many are known, and for how
 * many of them the score is on the right side of 1/2.
 */
void qat_count_attributes(const qat_attributes *attributes, const qat_graph *graph,
                          const qat_batch *batch, int64_t *known, int64_t *right);

/** Append the epilogue (docs/qm-format.md) to a frozen network. */
qat_status qat_attributes_finish(const qat_attributes *attributes, qat_qgraph *graph,
                                 qat_error *err);

/**
 * Average precision of one category. There are n scores, `stride` apart. Those with truth 1 are
 * hits; those with truth NaN are not known and ignored.
 *
 *     AP = sum_k (R_k - R_(k-1)) P_k
 *
 * The sum runs over all thresholds, from the highest score down. Equal scores share one threshold.
 * @param[out] ap  -1 if there is no hit
 */
qat_status qat_category_precision(const float *scores, const float *truth, int n, int stride,
                                  int truth_stride, double *ap, qat_error *err);

/** Collects answers and targets during a pass over a data set. */
typedef struct qat_answers qat_answers;
qat_status qat_answers_create(qat_answers **answers, const qat_input_info *input, qat_error *err);
void qat_answers_free(qat_answers *answers); /* NULL is fine */
/** Add the next sample: its scores [count], the sum of its value's outputs, and its targets. */
qat_status qat_answers_add(qat_answers *answers, const float *scores, float sum,
                           const float *targets, qat_error *err);
/** Add the next `count` samples of a batch, from the outputs of a float graph. */
qat_status qat_answers_add_graph(qat_answers *answers, const qat_graph *graph,
                                 const qat_batch *batch, int count, qat_error *err);

/** An output of an integer model, for several samples. */
typedef struct qat_codes {
    const void *codes;
    size_t n; /* values per sample; 0: there is no such output */
    qi_type type;
    float scale;
    int32_t zero_point;
} qat_codes;
qat_codes qat_codes_of_exact(const qat_exact *exact, const qat_qgraph *graph, int output);
qat_codes qat_codes_of_model(const qi_model *model, int output, const void *codes);
/** Sample i as real numbers, [n]: scale (code - zero_point). */
void qat_codes_to_real(const qat_codes *codes, size_t i, float *real);
/** Like qat_answers_add_graph, from codes. */
qat_status qat_answers_add_codes(qat_answers *answers, const qat_codes *scores,
                                 const qat_codes *value, const qat_batch *batch, int count,
                                 qat_error *err);

/** Set n, category_ap, within, mean_error. */
qat_status qat_answers_judge(const qat_answers *answers, qat_accuracy *accuracy, qat_error *err);

#endif
