/**
 * What a file says of its task, for those functions of tasks that certify it. They know the recipe,
 * the float graph and the checkpoint, and compute the rest again: nothing that made the file
 * counts.
 */
#ifndef QAT_TASK_CERTIFIED_FILE_H
#define QAT_TASK_CERTIFIED_FILE_H

#include "task/task.h"

typedef struct qat_certified_file {
    const qat_checkpoint *c;
    const qat_recipe *recipe;
    const qat_graph *float_graph;
    const qi_model *model;
    qat_error *err;
} qat_certified_file;

/** QAT_ERR_MISMATCH, with the sentence that names the field and both numbers. */
qat_status qat_certify_refuse(const qat_certified_file *file, const char *field, double in_file,
                              double expected);
/** The same unless both are equal. */
qat_status qat_certify_equal(const qat_certified_file *file, const char *field, double in_file,
                             double expected);
qat_status qat_certify_text(const qat_certified_file *file, const char *field, int number,
                            const char *in_file, const char *expected);

/** The parameters of an epilogue: integers, then bits of real numbers, then integers. */
qat_status qat_certify_params(const qat_certified_file *file, const qi_epilogue *epilogue,
                              const double *expected, int n_ints, int n_floats, int n_last);
/** Its tensors: the first ones are the outputs. */
qat_status qat_certify_outputs(const qat_certified_file *file, const qi_epilogue *epilogue,
                               int n_inputs, int n_outputs);

/** The epilogue of a detector, with its anchors. */
qat_status qat_certify_boxes(const qat_certified_file *file, const qi_epilogue *epilogue);

#endif
