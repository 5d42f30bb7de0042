/** The pass of an evaluation over a data set. */
#include "train/evaluate.h"

static qat_status run_batches(const qat_evaluation *p, qat_loader *loader, qat_evaluation_fn *fn,
                              void *state, qat_error *err)
{
    int64_t total = qat_dataset_info_of(p->data)->count, done = 0;
    if (p->limit > 0 && p->limit < total)
        total = p->limit;
    qat_status st = QAT_OK;
    while (!st && done < total) {
        const qat_batch *batch = NULL;
        st = qat_loader_next(loader, &batch, err);
        if (st)
            break;
        int const count = batch->count < total - done ? batch->count : (int)(total - done);
        st = fn(state, batch, count, err);
        done += count;
        if (!st && p->tick && !p->tick(p->context, done, total))
            st = qat_fail(err, QAT_ERR_STATE, "stopped after %lld of %lld samples", (long long)done,
                          (long long)total);
    }
    return st;
}

qat_status qat_evaluation_run(const qat_evaluation *p, qat_evaluation_fn *fn, void *state,
                              qat_error *err)
{
    qat_loader *loader;
    qat_loader_options const o = {.batch = p->batch, .threads = 1, .prefetch = 4};
    qat_status st = qat_open_loader(&loader, p->data, p->input, &o, err);
    if (!st)
        st = run_batches(p, loader, fn, state, err);
    qat_loader_free(loader);
    return st;
}

qat_status qat_evaluation_check(const qat_dataset *data, bool detects, qat_error *err)
{
    const qat_dataset_info *info = qat_dataset_info_of(data);
    if (info->has_objects == detects)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_SHAPE, "%s: %s boxes, but the network %s", info->name,
                    detects ? "no" : "pictures with", detects ? "finds some" : "finds none");
}

qat_status qat_evaluation_boxes(const qat_evaluation *p, qat_evaluation_fn *fn, void *state,
                                qat_findings **findings, int classes, qat_accuracy *accuracy,
                                qat_error *err)
{
    qat_status st = qat_findings_create(findings, classes, err);
    if (!st)
        st = qat_evaluation_run(p, fn, state, err);
    if (!st)
        st = qat_findings_judge(*findings, accuracy, err);
    qat_findings_free(*findings);
    *findings = NULL;
    return st;
}

qat_status qat_evaluation_answers(const qat_evaluation *p, qat_evaluation_fn *fn, void *state,
                                  qat_answers **answers, qat_accuracy *accuracy, qat_error *err)
{
    qat_status st = qat_answers_create(answers, p->input, err);
    if (!st)
        st = qat_evaluation_run(p, fn, state, err);
    if (!st)
        st = qat_answers_judge(*answers, accuracy, err);
    qat_answers_free(*answers);
    *answers = NULL;
    return st;
}
