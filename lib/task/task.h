/** Private to the library: the table of tasks, and what its callers and the tasks share. */
#ifndef QAT_TASK_TASK_H
#define QAT_TASK_TASK_H

#include "qat/train.h"

/** All tasks: X(name) for each. The first one that takes some data is their task. */
#define QAT_TASKS(X)                                                                               \
    X(anomaly)                                                                                     \
    X(boxes) X(regression) X(multi_label) X(segmentation) X(value) X(attributes) X(classes)

#define QAT_TASK_DECLARE_(name) extern const qat_task qat_task_##name;
QAT_TASKS(QAT_TASK_DECLARE_)

/** Set input->state from the network's float graph; free it. */
qat_status qat_task_open(qat_input_info *input, const qat_graph *graph, const qat_recipe *recipe,
                         qat_error *err);
void qat_task_close(qat_input_info *input);

/**
 * Check that samples of these data have what the network answers.
 * @param judged  answers are compared with them; otherwise samples are only read
 */
qat_status qat_task_check_data(const qat_input_info *input, const qat_dataset_info *data,
                               bool judged, qat_error *err);

/** The logits among the ends: [N, classes], as a loss on classes needs. */
qat_status qat_task_logits(const qat_net_ends *net, qat_node **logits, qat_error *err);

/** The bits of a number, as epilogues have them. */
int32_t qat_task_bits(float x);

/** Append how many samples were judged: "  (1 sample)", "  (8 samples)". */
void qat_text_add_count(qat_text *text, const qat_accuracy *accuracy, const char *sample);

/** Outputs of an exact evaluation and of the engine. */
qat_output qat_output_of_exact(const qat_exact *exact, const qat_qgraph *graph, int output);
qat_output qat_output_of_model(const qi_model *model, int output, const void *codes);

#endif
