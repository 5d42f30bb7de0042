/** The data on which an export is verified. */
#include "deploy/deploy.h"

#include "checkpoint/restore.h"
#include "deploy/certified_source.h"
#include "deploy/integer_model.h"
#include "evaluate/data.h"

#include <stdio.h>

qat_status qat_feed_open(qat_deploy_feed *f, const qat_restored *r, const qat_deploy_options *o,
                         char why[512], qat_error *err)
{
    qat_error inner = {0};
    qat_loader_options const loader = {.batch = f->batch, .threads = 1, .prefetch = 4};
    f->restored = r;
    f->options = o;
    f->pixels = qat_takes_bytes(&r->checkpoint->input);
    if (f->whole) {
        snprintf(why, 512, "single frames; whole sequences are verified on the data");
        return QAT_OK;
    }
    qat_status st = qat_recipe_open_data(&f->data, r->recipe, o->data, QAT_SPLIT_TEST, &inner);
    if (st && st != QAT_ERR_NOMEM && !o->data) {
        snprintf(why, 512, "%s", inner.message);
        return QAT_OK;
    }
    if (!st)
        st = qat_open_loader(&f->loader, f->data, &r->checkpoint->input, &loader, &inner);
    if (st)
        return qat_fail(err, st, "%s", inner.message);
    f->total = qat_dataset_info_of(f->data)->count;
    if (o->samples > 0 && o->samples < f->total)
        f->total = o->samples;
    return QAT_OK;
}

void qat_feed_close(qat_deploy_feed *f)
{
    qat_loader_free(f->loader);
    qat_dataset_close(f->data);
}

/** So many batches have the samples of the certificate, which takes some of each. */
static int64_t first_batches(const qat_deploy_feed *f)
{
    int const taken = f->batch < QAT_CERTIFY_BATCH ? f->batch : QAT_CERTIFY_BATCH;
    return (QAT_CERTIFY_SAMPLES + taken - 1) / taken;
}

/** Rank 0 takes the first batches; the rest is dealt. */
static bool is_own(const qat_deploy_feed *f, int64_t batch)
{
    const qat_ranks *ranks = f->options->ranks;
    if (!ranks)
        return true;
    return batch < first_batches(f) ? !ranks->rank : batch % ranks->count == ranks->rank;
}

/** Of the loader, too, which then decodes no others. */
static qat_status take_own(const qat_deploy_feed *f, qat_error *err)
{
    const qat_ranks *ranks = f->options->ranks;
    int64_t const at = f->batches;
    if (!ranks || at != (ranks->rank ? 0 : first_batches(f)))
        return QAT_OK;
    qat_loader_take_batches(f->loader, ranks->rank, ranks->count);
    return qat_loader_seek(f->loader, 0, (int)at, err);
}

/** The next batch. One of another rank has no samples. */
static qat_status next_batch(qat_deploy_feed *f, const qat_batch **batch, int *count,
                             qat_error *err)
{
    int64_t const left = f->total - f->done;
    qat_status st = take_own(f, err);
    if (!st)
        st = qat_loader_next(f->loader, batch, err);
    int const n = left < f->batch ? (int)left : f->batch;
    *count = is_own(f, f->batches) ? n : 0;
    f->done += n;
    f->batches++;
    return st;
}

qat_status qat_feed_next(void *context, int max_batch, qat_export_batch *out, qat_error *err)
{
    qat_deploy_feed *f = context;
    const qat_deploy_options *o = f->options;
    const qat_batch *batch = NULL;
    *out = (qat_export_batch){.inputs = f->input};
    for (;;) {
        if (o->tick && !o->tick(o->context, f->done, f->total))
            return qat_fail(err, QAT_ERR_STATE, "stopped after %lld of %lld samples",
                            (long long)f->done, (long long)f->total);
        if (f->done >= f->total)
            return QAT_OK;
        qat_status const st = next_batch(f, &batch, &out->count, err);
        if (st)
            return st;
        f->input[0] = f->pixels ? (const void *)batch->bytes : (const void *)batch->real;
        if (out->count)
            return QAT_OK;
    }
}
