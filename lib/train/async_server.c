/** The server of asynchronous training; opening and closing of both sides. */
#include "base/number.h"
#include "fakequant/bits.h"
#include "recipe/recipe.h"
#include "train/asynchronous.h"
#include "train/asynchronous/link.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SLEEP_NS = 50000 }; /* between two looks for messages */

const char qat_async_header[] =
    "step,rank,seconds_waited,bytes_sent,batches,mean_staleness,largest_staleness\n";

/* ------------------------------------------------------------------ opening, closing */

/** The server decodes no samples. Each of n workers takes every n-th batch of an epoch. */
static qat_status take_batches(const qat_trainer *t, qat_error *err)
{
    int const workers = t->ranks->count - 1, batches = qat_loader_batches(t->loader);
    if (workers > batches)
        return qat_fail(
            err, QAT_ERR_ARGUMENT,
            "train.asynchronous: %d workers, but an epoch has %d %s (train.batch = %d): "
            "start at most %d processes, or make the batches smaller",
            workers, batches, batches == 1 ? "batch" : "batches", (int)t->recipe->train.batch,
            batches + 1);
    if (t->ranks->rank == 0)
        qat_loader_take_samples(t->loader, 0, 0);
    else
        qat_loader_take_batches(t->loader, t->ranks->rank - 1, workers);
    return QAT_OK;
}

qat_status qat_async_open(qat_trainer *t, qat_error *err)
{
    if (!t->ranks)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "train.asynchronous = yes needs at least two processes, a server and a "
                        "worker, but this one is alone: mpirun -n 3 qat-train ... (in a build with "
                        "MPI)");
    t->async = calloc(1, sizeof *t->async);
    if (!t->async)
        return qat_out_of_memory(err, "train.asynchronous");
    t->async->ranks = t->ranks;
    return take_batches(t, err);
}

/**
 * After an error messages may still be on their way, and the table of ranks cannot cancel them: a
 * thread of MPI may put one into its link at any time. Such links stay until the process ends.
 */
void qat_async_close(qat_async *a)
{
    bool all = true;
    for (int i = 0; a && i < a->n_links; i++)
        all = async_link_free(&a->links[i]) && all;
    if (a && all)
        free(a->links);
    free(a);
}

static void tell_of_it(const qat_trainer *t)
{
    char text[192];
    if (!t->options->log)
        return;
    if (t->async->n_links == 1)
        snprintf(text, sizeof text, "asynchronous: rank 0 applies the gradients of one worker");
    else
        snprintf(text, sizeof text,
                 "asynchronous: rank 0 applies the gradients of %d workers as they come. The "
                 "result depends on who is faster: another run gives another one",
                 t->async->n_links);
    t->options->log->line(t->options->log->context, text);
}

/** How many ranks this one talks to. */
static int count_links(const qat_trainer *t)
{
    return qat_async_works(t) ? 1 : t->ranks->count - 1;
}

qat_status qat_async_check_memory(qat_trainer *t, qat_error *err)
{
    qat_async *a = t->async;
    a->n_params = async_count(t->training, false);
    a->n_gradients = async_count(t->training, true);
    uint64_t const link = (uint64_t)(a->n_params + a->n_gradients) * sizeof(qat_real);
    uint64_t const all = qat_graph_arena_bytes(t->training) + (uint64_t)count_links(t) * link;
    uint64_t const limit = t->options->memory, mib = (uint64_t)1 << 20;
    if (!limit || all <= limit)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_LIMIT,
                    "train.asynchronous: the network and the messages between the server and %d %s "
                    "need %llu MiB of memory, but %llu MiB are allowed (--max-memory)",
                    count_links(t), count_links(t) == 1 ? "worker" : "workers",
                    (unsigned long long)((all - 1) / mib + 1),
                    (unsigned long long)((limit - 1) / mib + 1));
}

qat_status qat_async_begin(qat_trainer *t, qat_error *err)
{
    qat_async *a = t->async;
    qat_run const first = qat_trainer_run(t);
    bool const works = qat_async_works(t);
    int const n = count_links(t);
    a->links = calloc((size_t)n, sizeof *a->links);
    if (!a->links)
        return qat_out_of_memory(err, "train.asynchronous");
    qat_status st = qat_shards_plan_messages(t->shards, &first, &a->n_observed, err);
    for (; !st && a->n_links < n; a->n_links++)
        st = async_link_open(a, &a->links[a->n_links], works ? 0 : a->n_links + 1, err);
    if (!st && !works)
        tell_of_it(t);
    return st;
}

/* ------------------------------------------------------------------ workers */

/** Send the parameters of this step, and an order. */
static qat_status send_order(const qat_trainer *t, async_link *link, bool ends, qat_error *err)
{
    bool done;
    qat_status const st = async_link_done(t->async, link, LINK_DOWN, true, &done, err);
    if (st)
        return st;
    link->order = (async_order){t->step, t->plan.total, t->saved_step, ends};
    link->orders++;
    async_pack(t->training, false, link->params);
    return async_link_begin(t->async, link, LINK_DOWN, true, err);
}

/** Let all workers compute that do not. */
static qat_status send_orders(qat_trainer *t, qat_error *err)
{
    qat_async *a = t->async;
    qat_status st = QAT_OK;
    for (int i = 0; !st && i < a->n_links; i++) {
        async_link *link = &a->links[i];
        if (link->ways[LINK_UP].on_its_way)
            continue;
        st = send_order(t, link, false, err);
        if (!st)
            st = async_link_begin(a, link, LINK_UP, false, err);
    }
    return st;
}

/** One look for a report, in turn; *from stays NULL if there is none. All workers compute. */
static qat_status look(qat_async *a, async_link **from, qat_error *err)
{
    qat_status st = QAT_OK;
    for (int i = 0; !st && !*from && i < a->n_links; i++) {
        int const at = (a->next + i) % a->n_links;
        bool came;
        st = async_link_done(a, &a->links[at], LINK_UP, false, &came, err);
        if (!st && came)
            *from = &a->links[at];
    }
    if (*from)
        a->next = (int)(*from - a->links + 1) % a->n_links;
    return st;
}

static qat_status next_report(qat_async *a, async_link **from, qat_error *err)
{
    double const before = qat_clock();
    *from = NULL;
    qat_status st = look(a, from, err);
    while (!st && !*from) {
        nanosleep(&(struct timespec){0, SLEEP_NS}, NULL);
        st = look(a, from, err);
    }
    a->waited += qat_clock() - before;
    return st;
}

/* ------------------------------------------------------------------ steps */

static void note_staleness(qat_async *a, async_link *link, int64_t stale)
{
    link->reports++;
    link->waited += link->report.waited;
    link->staleness += stale;
    link->most_stale = stale > link->most_stale ? stale : link->most_stale;
    a->steps++;
    a->staleness += stale;
    a->most_stale = stale > a->most_stale ? stale : a->most_stale;
}

/** A step of the optimizer with the gradients of a report; then update with what it observed. */
static qat_status apply(qat_trainer *t, async_link *link, qat_error *err)
{
    const async_report *r = &link->report;
    qat_outcome const o = {r->loss, r->known, r->right};
    qat_run const run = qat_trainer_run(t);
    qat_shards_forward_params(t->shards, &run);
    qat_status const st = qat_shards_status(t->shards, err);
    if (st)
        return st;
    async_unpack(t->training, true, link->gradients);
    qat_trainer_descend(t);
    qat_shards_update_remote(t->shards, &run, link->observed);
    note_staleness(t->async, link, t->step - r->step);
    t->stop_agreed |= r->wants_stop != 0;
    qat_trainer_add_to_tally(t, &o);
    return qat_trainer_end_step(t, r->loss, err);
}

/** Were the gradients of a report computed with the bits of the step that comes next? */
static bool has_bits(const qat_trainer *t, const async_report *r)
{
    const qat_quant_options *q = &t->quant;
    return !t->recipe->quant.enabled ||
           (qat_least_bits(q->weight_stages, q->n_weight_stages, r->step) == q->least_weight_bits &&
            qat_least_bits(q->activation_stages, q->n_activation_stages, r->step) ==
                q->least_activation_bits);
}

static void leave(qat_async *a, async_link *link)
{
    link->left++;
    link->waited += link->report.waited;
    a->left++;
}

/** Learned steps were rescaled when the bits fell: gradients of before do not fit, and are left. */
qat_status qat_async_step(qat_trainer *t, qat_error *err)
{
    async_link *from;
    bool fits = false;
    qat_status st = QAT_OK;
    qat_trainer_set_bits(t, t->step, true);
    while (!st && !fits) {
        st = send_orders(t, err);
        if (!st)
            st = next_report(t->async, &from, err);
        fits = !st && has_bits(t, &from->report);
        if (!st && !fits)
            leave(t->async, from);
    }
    return st ? st : apply(t, from, err);
}

static void tell_of_bits(const qat_trainer *t)
{
    char text[160];
    if (!t->async->left)
        return;
    snprintf(
        text, sizeof text,
        "asynchronous: gradients of %lld %s were left out, because the bits had fallen meanwhile",
        (long long)t->async->left, t->async->left == 1 ? "batch" : "batches");
    t->options->log->line(t->options->log->context, text);
}

static void tell_of_staleness(const qat_trainer *t)
{
    const qat_async *a = t->async;
    char text[192];
    if (!t->options->log || !a->steps)
        return;
    qat_format(text, sizeof text,
               "asynchronous: gradients were applied %.2f steps after their parameters on average, "
               "%lld at most",
               (double)a->staleness / (double)a->steps, (long long)a->most_stale);
    t->options->log->line(t->options->log->context, text);
    tell_of_bits(t);
}

qat_status qat_async_end(qat_trainer *t, qat_error *err)
{
    qat_async *a = t->async;
    qat_status st = QAT_OK;
    bool done;
    for (int i = 0; !st && i < a->n_links; i++) {
        st = async_link_done(a, &a->links[i], LINK_UP, true, &done, err);
        if (!st)
            st = send_order(t, &a->links[i], true, err);
    }
    for (int i = 0; !st && i < a->n_links; i++)
        st = async_link_done(a, &a->links[i], LINK_DOWN, true, &done, err);
    if (!st)
        tell_of_staleness(t);
    return st;
}

/* ------------------------------------------------------------------ ranks.csv */

static void write_row(qat_writer *w, int64_t step, const async_link *l, size_t bytes)
{
    double const mean = l->reports ? (double)l->staleness / (double)l->reports : 0;
    qat_write_text(w, "%lld,%d,%.3f,%zu,%lld,%.6g,%lld\n", (long long)step, l->rank, l->waited,
                   bytes, (long long)l->reports, mean, (long long)l->most_stale);
}

/** The row of the server has the staleness of all that it applied. */
void qat_async_write_rows(qat_trainer *t, qat_writer *w)
{
    qat_async *a = t->async;
    async_link all = {.rank = 0, .waited = a->waited};
    size_t sent = 0;
    for (int i = 0; i < a->n_links; i++) {
        const async_link *l = &a->links[i];
        all.reports += l->reports;
        all.staleness += l->staleness;
        all.most_stale = l->most_stale > all.most_stale ? l->most_stale : all.most_stale;
        sent += (size_t)l->orders * l->ways[LINK_DOWN].bytes;
    }
    write_row(w, t->step, &all, sent);
    for (int i = 0; i < a->n_links; i++) {
        async_link *l = &a->links[i];
        write_row(w, t->step, l, (size_t)(l->reports + l->left) * l->ways[LINK_UP].bytes);
        l->orders = l->reports = l->left = l->staleness = l->most_stale = 0;
        l->waited = 0;
    }
    a->waited = 0;
}
