/** The parts of the task of attributes and a value, for its tests. */
#ifndef QAT_TASK_ATTRIBUTES_H
#define QAT_TASK_ATTRIBUTES_H

#include "task/task.h"

/** How many outputs the recipe gives to a value; 0: it is not learned. */
int qat_value_outputs(const qat_recipe *recipe);
/** Is it learned as steps? */
bool qat_value_is_ordered(const qat_recipe *recipe);
/** How its outputs are read: outputs, low and width by the recipe. */
qat_attributes qat_value_range(const qat_recipe *recipe);
/** The node whose outputs are added up, made of the logits. */
qat_node *qat_value_answer(const qat_net_ends *net, qat_node *logits);
/** Its loss; `target` is the name of an input. */
qat_node *qat_value_loss(const qat_net_ends *net, const char *name, qat_node *logits,
                         const char *target);
/** Refuse settings that only a classifier has. what: that these data have */
qat_status qat_value_settings(const qat_net_ends *net, const char *what, qat_error *err);
/** The epilogue of this name has n tensors, the first outputs, and the recipe's low and width. */
qat_status qat_value_certify(const struct qat_certified_file *file, const qi_epilogue *epilogue,
                             const char *name, int n);
/** The sum of sample i of an output. */
float qat_output_sum(const qat_output *output, size_t i);

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
