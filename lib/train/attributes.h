/** Networks with heads for attributes and a value: what they learn, how their answers are judged.
 */
#ifndef QAT_TRAIN_ATTRIBUTES_H
#define QAT_TRAIN_ATTRIBUTES_H

#include "networks/network.h"

/** How the heads answer that a recipe gives a network for data with targets; those without a value
 *  have no head for one. */
qat_attributes qat_attributes_of(const qat_recipe *recipe, const qat_dataset_info *data);

/** What the value's head learns for one value: [outputs]; NaN for a value that is not known. */
void qat_value_targets(const qat_attributes *attributes, bool ordered, float value, float *targets);

/** A batch's targets, into the training graph's target nodes. */
void qat_feed_attributes(const qat_attributes *attributes, bool ordered, qat_graph *graph,
                         const qat_batch *batch);

/** Of a batch, by the training graph's scores: how many attributes are known, of how many of them
 *  the score is on the right side of 1/2. */
void qat_count_attributes(const qat_attributes *attributes, const qat_graph *graph,
                          const qat_batch *batch, int64_t *known, int64_t *right);

/** Append the epilogue (docs/qm-format.md) to a frozen network. */
qat_status qat_attributes_finish(const qat_attributes *attributes, qat_qgraph *graph,
                                 qat_error *err);

/**
 * Average precision of one category: of n scores, `stride` apart, some of which are hits (truth 1;
 * NaN: not known, passed over).
 *
 *     AP = sum_k (R_k - R_(k-1)) P_k
 *
 * over all thresholds, from the highest score down; equal scores have one threshold in common.
 * @param[out] ap  -1 where there is no hit
 */
qat_status qat_category_precision(const float *scores, const float *truth, int n, int stride,
                                  int truth_stride, double *ap, qat_error *err);

/** Answers with what was to be answered, while a data set goes by. */
typedef struct qat_answers qat_answers;
qat_status qat_answers_create(qat_answers **answers, const qat_input_info *input, qat_error *err);
void qat_answers_free(qat_answers *answers); /* NULL is fine */
/** The next sample's scores [count], the sum of its value's outputs, and its targets. */
qat_status qat_answers_add(qat_answers *answers, const float *scores, float sum,
                           const float *targets, qat_error *err);
/** The next `count` samples of a batch, by a float graph's outputs. */
qat_status qat_answers_add_graph(qat_answers *answers, const qat_graph *graph,
                                 const qat_batch *batch, int count, qat_error *err);

/** An output of an integer model, of several samples. */
typedef struct qat_codes {
    const void *codes;
    size_t n; /* of one sample; 0: there is no such output */
    qi_type type;
    float scale;
    int32_t zero_point;
} qat_codes;
qat_codes qat_codes_of_exact(const qat_exact *exact, const qat_qgraph *graph, int output);
qat_codes qat_codes_of_model(const qi_model *model, int output, const void *codes);
/** Sample i as real numbers, [n]: scale (code - zero_point). */
void qat_codes_to_real(const qat_codes *codes, size_t i, float *real);
/** qat_answers_add_graph by codes. */
qat_status qat_answers_add_codes(qat_answers *answers, const qat_codes *scores,
                                 const qat_codes *value, const qat_batch *batch, int count,
                                 qat_error *err);

/** n, category_ap, within, mean_error. */
qat_status qat_answers_judge(const qat_answers *answers, qat_accuracy *accuracy, qat_error *err);

#endif
