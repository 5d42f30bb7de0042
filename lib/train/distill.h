/** Private to lib/train: a teacher. A student learns the teacher's answers to each batch. */
#ifndef QAT_TRAIN_DISTILL_H
#define QAT_TRAIN_DISTILL_H

#include "qat/train.h"

typedef struct qat_teacher qat_teacher;

/**
 * Open the float network of the checkpoint that the recipe's distill.teacher names, with its
 * averaged parameters if it has any, for batches of at most `batch` samples. It must take the
 * student's inputs and have as many classes. Its ops are those of registry, its plugins must be
 * among the run's (NULL: it has none); both are borrowed. The log (NULL: none) receives what
 * differs in content.
 */
qat_status qat_teacher_open(qat_teacher **teacher, const qat_recipe *recipe,
                            const qat_input_info *input, int batch, qat_registry *registry,
                            qat_plugins *plugins, const qat_log *log, qat_error *err);
void qat_teacher_free(qat_teacher *teacher); /* NULL is fine */
/** Add input and loss to a training graph that is not planned yet. NULL: see qat_graph_check. */
qat_node *qat_teacher_join(qat_teacher *teacher, qat_graph *training);
/** Run the teacher in eval mode on a batch. Its logits become the training graph's input. */
qat_status qat_teacher_answer(qat_teacher *teacher, qat_graph *training, const qat_batch *batch,
                              qat_error *err);
/** The SHA-256 of its checkpoint. */
const uint8_t *qat_teacher_digest(const qat_teacher *teacher);

#endif
