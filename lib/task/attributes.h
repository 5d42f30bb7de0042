/** The parts of the task of attributes and a value, for its tests. */
#ifndef QAT_TASK_ATTRIBUTES_H
#define QAT_TASK_ATTRIBUTES_H

#include "task/task.h"

/** The targets of the value's head for one value: [outputs]; NaN if the value is not known. */
void qat_value_targets(const qat_attributes *attributes, bool ordered, float value, float *targets);

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

/** The task's pass: it collects answers and targets. */
typedef struct qat_answers qat_answers;
qat_status qat_answers_begin(void **answers, const qat_input_info *input, qat_error *err);
void qat_answers_end(void *answers);
/** Add the next sample: its scores [count], the sum of its value's outputs, and its targets. */
qat_status qat_answers_add(qat_answers *answers, const float *scores, float sum,
                           const float *targets, qat_error *err);
/** Add the next `count` samples of a batch. */
qat_status qat_answers_add_outputs(void *answers, const qat_outputs *outputs,
                                   const qat_batch *batch, int count, qat_error *err);

/** Set n and figures. */
qat_status qat_answers_judge(const void *answers, qat_accuracy *accuracy, qat_error *err);

#endif
