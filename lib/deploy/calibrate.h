/** Private to libqat: post-training quantization of a checkpoint. */
#ifndef QAT_DEPLOY_CALIBRATE_H
#define QAT_DEPLOY_CALIBRATE_H

#include "qat/train.h"

/**
 * The eval graph of a checkpoint's float network, planned QAT_PLAN_KEEP for max_batch: batch norm
 * is folded, and ranges are estimated on the data that options->calibrate names. If the options ask
 * for it, layers are equalized, weights clipped and biases corrected.
 * @param folded  receives the float graph from which eval was made: without batch norms, before
 *                weights were clipped and biases corrected; NULL: not wanted
 */
qat_status qat_calibrated_eval_graph(const qat_restored *restored,
                                     const qat_deploy_options *options, int max_batch,
                                     qat_graph **eval, qat_graph **folded, qat_error *err);

/** Like qat_restored_eval_graph. *folded: as above if the graph is calibrated, else NULL. */
qat_status qat_restored_eval_and_folded(const qat_restored *restored,
                                        const qat_deploy_options *options, int max_batch,
                                        qat_graph **eval, qat_graph **folded, qat_error *err);

/**
 * Make the checkpoint's float network with its parameters, planned QAT_PLAN_EVAL for one sample.
 */
qat_status qat_restored_float(const qat_restored *restored, qat_graph **graph, qat_error *err);

/** A network whose batch norm averages are to be computed again. Everything is borrowed. */
typedef struct qat_reestimation {
    const qat_graph *float_graph;
    const qat_quant_options *quant;
    const qat_recipe *recipe;
    const qat_input_info *input;
    const qat_dataset *data; /* the training split; NULL: open the recipe's */
    /** Sets the parameters of a planned training graph. */
    qat_status (*set_params)(const void *context, qat_graph *graph, qat_error *err);
    const void *context;
} qat_reestimation;

/**
 * Compute batch norm's averages in an eval graph again, from training batches with quantized
 * weights (reestimate.c). It uses the graph's ranges.
 */
qat_status qat_reestimate_bn(const qat_reestimation *from, int64_t batches, qat_graph *eval,
                             qat_error *err);

#endif
