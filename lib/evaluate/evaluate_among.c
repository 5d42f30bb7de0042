/**
 * An evaluation that ranks share. Batches are dealt out in rounds: rank r runs the network on batch
 * r of each round. Then every rank gets the outputs of all, and lets the task judge them in the
 * order of the data. So all ranks have the figures that one process has.
 */
#include "evaluate/evaluate.h"

#include <stdlib.h>
#include <string.h>

enum { CHANNEL = 3 };

/** What the rounds work with. */
typedef struct rounds {
    const qat_evaluation *p;
    qat_evaluation_fn *fn;
    void *state, *pass;
    qat_loader *own; /* the batches of this rank */
    qat_loader
        *truth;    /* what is true of all batches; without values, unless somebody looks at them */
    int64_t total; /* samples */
    qat_outputs layout; /* those of the last own batch */
    size_t bytes;       /* of the outputs of one sample */
    uint8_t *outputs;   /* [ranks][batch][bytes] */
    qat_piece *pieces;
} rounds;

bool qat_evaluation_is_shared(const qat_evaluation *p)
{
    const qat_task *task = qat_task_of(p->input);
    int64_t const batches = (qat_dataset_info_of(p->data)->count + p->batch - 1) / p->batch;
    bool const built_in = qat_task_find(NULL, task->name) == task; /* others may look at values */
    return p->ranks && built_in && !p->limit && batches >= p->ranks->count;
}

/** The number of samples in a batch. */
static int count_of(const rounds *r, int64_t batch)
{
    int64_t const left = r->total - batch * r->p->batch;
    return left < 0 ? 0 : left < r->p->batch ? (int)left : r->p->batch;
}

static size_t bytes_of(const qat_output *o)
{
    return o->n * (o->codes ? qi_type_bytes(o->type) : sizeof *o->real);
}

static uint8_t *outputs_of(const rounds *r, int rank)
{
    return r->outputs + (size_t)rank * (size_t)r->p->batch * r->bytes;
}

/** Set the layout, which the first own batch tells, and make room for a round. */
static qat_status set_layout(rounds *r, const qat_outputs *outputs, qat_error *err)
{
    r->layout = *outputs;
    if (r->outputs)
        return QAT_OK;
    for (int i = 0; i < outputs->n; i++)
        r->bytes += bytes_of(&outputs->at[i]);
    size_t const ranks = (size_t)r->p->ranks->count;
    r->outputs = malloc(ranks * (size_t)r->p->batch * r->bytes + 1);
    r->pieces = calloc(2 * ranks, sizeof *r->pieces);
    return r->outputs && r->pieces ? QAT_OK : qat_out_of_memory(err, "evaluation");
}

/** Put the outputs of `count` samples one behind the other. */
static void keep_outputs(const rounds *r, const qat_outputs *outputs, int count)
{
    uint8_t *to = outputs_of(r, r->p->ranks->rank);
    for (int i = 0; i < outputs->n; i++) {
        const qat_output *o = &outputs->at[i];
        size_t const n = bytes_of(o) * (size_t)count;
        memcpy(to, o->codes ? o->codes : (const void *)o->real, n);
        to += n;
    }
}

/** Run the network on the own batch of the round that begins with `first`, if there is one. */
static qat_status run_own(rounds *r, int64_t first, qat_error *err)
{
    const qat_batch *batch = NULL;
    qat_outputs outputs = {0};
    int const count = count_of(r, first + r->p->ranks->rank);
    qat_status st = QAT_OK;
    for (int i = 0; !st && count && i <= (first ? r->p->ranks->count - 1 : r->p->ranks->rank); i++)
        st = qat_loader_next(r->own, &batch, err);
    if (!st && count)
        st = r->fn(r->state, batch, count, &outputs, err);
    if (!st && count)
        st = set_layout(r, &outputs, err);
    if (!st && count)
        keep_outputs(r, &outputs, count);
    return st;
}

static qat_status exchange(const rounds *r, int64_t first, qat_error *err)
{
    const qat_ranks *ranks = r->p->ranks;
    qat_exchange x = {.channel = CHANNEL, .send = r->pieces, .receive = r->pieces + ranks->count};
    size_t const own = (size_t)count_of(r, first + ranks->rank) * r->bytes;
    bool done;
    for (int rank = 0; rank < ranks->count; rank++) {
        size_t const theirs = (size_t)count_of(r, first + rank) * r->bytes;
        if (rank != ranks->rank && own)
            x.send[x.n_send++] = (qat_piece){rank, outputs_of(r, ranks->rank), own};
        if (rank != ranks->rank && theirs)
            x.receive[x.n_receive++] = (qat_piece){rank, outputs_of(r, rank), theirs};
    }
    qat_status const st = ranks->begin(ranks->context, &x, err);
    return st ? st : ranks->done(ranks->context, &x, true, &done, err);
}

/** Let the task judge the outputs of a rank. */
static qat_status judge(const rounds *r, int rank, int count, qat_error *err)
{
    const qat_evaluation *p = r->p;
    const uint8_t *from = outputs_of(r, rank);
    const qat_batch *batch = NULL;
    qat_outputs outputs = r->layout;
    for (int i = 0; i < outputs.n; i++) {
        size_t const n = bytes_of(&outputs.at[i]) * (size_t)count;
        if (outputs.at[i].codes)
            outputs.at[i].codes = from;
        else
            outputs.at[i].real = (const float *)(const void *)from;
        from += n;
    }
    qat_status st = qat_loader_next(r->truth, &batch, err);
    if (!st)
        st = qat_task_of(p->input)->add(r->pass, &outputs, batch, count, err);
    if (!st && p->input->witness)
        st = p->input->witness->see(p->input->witness->context, &outputs, batch, count, err);
    return st;
}

static qat_status run_round(rounds *r, int64_t first, qat_error *err)
{
    qat_status st = run_own(r, first, err);
    if (!st)
        st = exchange(r, first, err);
    for (int rank = 0; !st && rank < r->p->ranks->count; rank++) {
        int const count = count_of(r, first + rank);
        int64_t const done = (first + rank) * r->p->batch + count;
        if (count)
            st = judge(r, rank, count, err);
        if (!st && count && r->p->tick && !r->p->tick(r->p->context, done, r->total))
            st = qat_fail(err, QAT_ERR_STATE, "stopped after %lld of %lld samples", (long long)done,
                          (long long)r->total);
    }
    return st;
}

static qat_status open_loaders(rounds *r, qat_error *err)
{
    const qat_evaluation *p = r->p;
    qat_loader_options const o = {.batch = p->batch, .threads = p->threads, .prefetch = 4};
    qat_status st = qat_open_loader(&r->own, p->data, p->input, &o, err);
    if (!st)
        st = qat_open_loader(&r->truth, p->data, p->input, &o, err);
    if (st)
        return st;
    qat_loader_take_batches(r->own, p->ranks->rank, p->ranks->count);
    if (!p->input->witness)
        qat_loader_leave_values(r->truth);
    return QAT_OK;
}

qat_status qat_evaluation_among(const qat_evaluation *p, qat_evaluation_fn *fn, void *state,
                                void *pass, qat_error *err)
{
    rounds r = {.p = p,
                .fn = fn,
                .state = state,
                .pass = pass,
                .total = qat_dataset_info_of(p->data)->count};
    qat_status st = open_loaders(&r, err);
    for (int64_t first = 0; !st && first * p->batch < r.total; first += p->ranks->count)
        st = run_round(&r, first, err);
    qat_loader_free(r.own);
    qat_loader_free(r.truth);
    free(r.outputs);
    free(r.pieces);
    return st;
}
