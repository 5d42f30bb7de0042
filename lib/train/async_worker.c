/** A worker of asynchronous training. */
#include "base/rng.h"
#include "train/asynchronous.h"
#include "train/asynchronous/link.h"

bool qat_async_works(const qat_trainer *t)
{
    return t->async && t->async->ranks->rank > 0;
}

/** Wait for an order and its parameters, and take both. */
static qat_status take_order(qat_trainer *t, async_link *link, qat_error *err)
{
    double const before = qat_clock();
    bool done;
    qat_status st = async_link_begin(t->async, link, LINK_DOWN, false, err);
    if (!st)
        st = async_link_done(t->async, link, LINK_DOWN, true, &done, err);
    if (st)
        return st;
    link->report.waited = qat_clock() - before;
    t->step = link->order.step;
    t->plan.total = link->order.total;
    t->saved_step = link->order.saved_step;
    async_unpack(t->training, false, link->params);
    return QAT_OK;
}

/** The run of a batch. Workers with parameters of the same step have other random numbers. */
static qat_run own_run(const qat_trainer *t)
{
    qat_run run = qat_trainer_run(t);
    run.seed = qat_hash(run.seed, (uint64_t)t->async->ranks->rank);
    return run;
}

static qat_status compute(qat_trainer *t, async_link *link, qat_error *err)
{
    qat_run const run = own_run(t);
    qat_outcome o;
    qat_trainer_set_bits(t, t->step, false);
    qat_status const st = qat_trainer_compute(t, &run, &o, err);
    if (st)
        return st;
    link->report = (async_report){.step = t->step,
                                  .wants_stop = qat_trainer_wants_stop(t),
                                  .loss = o.loss,
                                  .known = o.known,
                                  .right = o.right,
                                  .waited = link->report.waited};
    qat_shards_write_observed(t->shards, &run, link->observed);
    async_pack(t->training, true, link->gradients);
    return QAT_OK;
}

static qat_status report(const qat_trainer *t, async_link *link, qat_error *err)
{
    bool done;
    qat_status const st = async_link_begin(t->async, link, LINK_UP, true, err);
    return st ? st : async_link_done(t->async, link, LINK_UP, true, &done, err);
}

qat_status qat_async_work(qat_trainer *t, qat_error *err)
{
    async_link *link = t->async->links;
    qat_status st = take_order(t, link, err);
    while (!st && !link->order.ends) {
        st = compute(t, link, err);
        if (!st)
            st = report(t, link, err);
        if (!st)
            st = take_order(t, link, err);
    }
    return st;
}
