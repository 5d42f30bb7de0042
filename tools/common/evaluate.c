#include "tools/common/evaluate.h"

#include <stdio.h>
#include <string.h>

enum { EVAL_BATCH = 100 };

qat_status tool_evaluate_float(const qat_restored *restored, const qat_input_info *input,
                               const qat_dataset *data, int64_t samples, qat_accuracy *accuracy,
                               qat_error *err)
{
    qat_graph *graph = NULL;
    char label[] = "float";
    qat_status st = qat_restored_read_graph(restored, &graph, EVAL_BATCH, QAT_PLAN_EVAL, err);
    if (!st)
        st = qat_evaluate_graph(graph, input, data, EVAL_BATCH, samples, tool_tick, label, accuracy,
                                err);
    qat_graph_free(graph);
    return st;
}

qat_status tool_use_raw_params(qat_restored *restored, const char *path, qat_error *err)
{
    if (qat_restored_use_raw(restored))
        return QAT_OK;
    return qat_fail(
        err, QAT_ERR_ARGUMENT,
        "%s: --raw-params: this run did not average its parameters (train.average_decay = 0)",
        path);
}

static bool is_known(const qat_dataset_info *info, const char *name)
{
    for (int i = 0; i < info->classes; i++)
        if (!strcmp(info->labels[i], name))
            return true;
    return false;
}

qat_status tool_check_class_names(const qat_dataset *data, tool_class_name *name, const void *of,
                                  int n, qat_error *err)
{
    const qat_dataset_info *info = qat_dataset_info_of(data);
    char text[400];
    int i = 0;
    if (!info->labels || info->classes != n)
        return QAT_OK;
    while (i < n && name(of, i) && !strcmp(name(of, i), info->labels[i]))
        i++;
    if (i == n || !name(of, i))
        return QAT_OK;
    snprintf(text, sizeof text, "%.100s: class %d is '%.100s', but the network calls it '%.100s'",
             info->name, i, info->labels[i], name(of, i));
    if (is_known(info, name(of, i)))
        return qat_fail(err, QAT_ERR_MISMATCH, "%s", text);
    tool_log.line(tool_log.context, text);
    return QAT_OK;
}
