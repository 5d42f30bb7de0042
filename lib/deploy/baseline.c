/**
 * Evaluation with ranges that an exported model never has: see qat_forget_ranges in ptq.h, and the
 * function after it.
 */
#include "checkpoint/restore.h"
#include "deploy/calibrate.h"
#include "qat/ptq.h"

static qat_status set_ranges(qat_graph *eval, qat_ranges ranges, qat_error *err)
{
    if (ranges == QAT_RANGES_WORST_CASE)
        return qat_worst_case_ranges(eval, err);
    qat_forget_ranges(eval);
    return QAT_OK;
}

qat_status qat_restored_baseline_graph(const qat_restored *restored, qat_ranges ranges,
                                       int max_batch, qat_graph **eval, qat_error *err)
{
    qat_quant_options const options = qat_quant_observed(&restored->checkpoint->quant);
    qat_graph *graph = NULL;
    *eval = NULL;
    qat_status st = qat_restored_float(restored, &graph, err);
    if (!st)
        st = qat_create_eval_graph(eval, graph, &options, err);
    if (!st)
        st = qat_graph_plan(*eval, max_batch, QAT_PLAN_KEEP, err);
    if (!st) {
        qat_graph_init_params(*eval, 0);
        qat_graph_copy_params(*eval, graph);
        st = set_ranges(*eval, ranges, err);
    }
    qat_graph_free(graph);
    if (st) {
        qat_graph_free(*eval);
        *eval = NULL;
    }
    return st;
}
