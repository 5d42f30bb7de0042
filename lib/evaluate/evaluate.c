/** The pass of an evaluation over a data set. */
#include "evaluate/evaluate.h"

static qat_status run_batches(const qat_evaluation *p, qat_loader *loader, qat_evaluation_fn *fn,
                              void *state, void *pass, qat_error *err)
{
    const qat_task *task = qat_task_of(p->input);
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
        qat_outputs outputs = {0};
        st = fn(state, batch, count, &outputs, err);
        if (!st)
            st = task->add(pass, &outputs, batch, count, err);
        if (!st && p->input->witness)
            st = p->input->witness->see(p->input->witness->context, &outputs, batch, count, err);
        done += count;
        if (!st && p->tick && !p->tick(p->context, done, total))
            st = qat_fail(err, QAT_ERR_STATE, "stopped after %lld of %lld samples", (long long)done,
                          (long long)total);
    }
    return st;
}

qat_status qat_evaluation_run(const qat_evaluation *p, qat_evaluation_fn *fn, void *state,
                              qat_accuracy *accuracy, qat_error *err)
{
    const qat_task *task = qat_task_of(p->input);
    qat_loader *loader = NULL;
    qat_loader_options const o = {.batch = p->batch, .threads = p->threads, .prefetch = 4};
    void *pass = NULL;
    qat_status st = qat_task_check_data(p->input, qat_dataset_info_of(p->data), true, err);
    if (!st)
        st = task->begin(&pass, p->input, err);
    if (!st && qat_evaluation_is_shared(p))
        st = qat_evaluation_among(p, fn, state, pass, err);
    else if (!st) {
        st = qat_open_loader(&loader, p->data, p->input, &o, err);
        if (!st)
            st = run_batches(p, loader, fn, state, pass, err);
    }
    if (!st)
        st = task->judge(pass, accuracy, err);
    task->end(pass);
    qat_loader_free(loader);
    return st;
}
