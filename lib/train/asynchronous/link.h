/** Asynchronous training (asynchronous.h): the messages between the server and its workers. */
#ifndef QAT_TRAIN_ASYNCHRONOUS_LINK_H
#define QAT_TRAIN_ASYNCHRONOUS_LINK_H

#include "qat/graph.h"
#include "qat/ranks.h"

/** What the server says with the parameters. */
typedef struct async_order {
    int64_t step, total; /* taken; of the run */
    int64_t saved_step;
    int64_t ends; /* 1: the run is over */
} async_order;

/** What a worker says with its gradients. */
typedef struct async_report {
    int64_t step; /* of the parameters that it had */
    int64_t wants_stop;
    double loss, known, right; /* of its batch: qat_outcome */
    double waited;             /* seconds, for these parameters */
} async_report;

enum { LINK_DOWN, LINK_UP, LINK_WAYS };

/** One end of it. Down: order, params. Up: report, observed, gradients. */
typedef struct async_link {
    int rank; /* of the other end */
    async_order order;
    async_report report;
    qat_real *params, *gradients;
    double *observed;
    struct {
        qat_piece pieces[3];
        int n;
        size_t bytes;
        bool on_its_way;
        qat_exchange x;
    } ways[LINK_WAYS];

    /* Of the server, since the last row: */
    int64_t orders, reports, staleness, most_stale; /* staleness: sum over the reports */
    int64_t left;                                   /* reports that were not applied */
    double waited;
} async_link;

/** What this process has: all links of the server, or the one of a worker. */
typedef struct qat_async {
    const qat_ranks *ranks;
    size_t n_params, n_gradients, n_observed;
    async_link *links; /* server: to each worker; worker: to the server */
    int n_links, next; /* next: the server looks here first */
    double waited;     /* server: seconds without anything to apply, since the last row */
    int64_t steps, staleness, most_stale; /* of all that the server applied */
    int64_t left;                         /* reports that it did not apply */
} qat_async;

/** Make room for the messages; the sizes are set. */
qat_status async_link_open(const qat_async *a, async_link *link, int rank, qat_error *err);
/** Returns false, and frees nothing, if something is on its way: it may still come, into the link.
 */
bool async_link_free(async_link *link);

/** Begin to send or to receive what goes one way. */
qat_status async_link_begin(const qat_async *a, async_link *link, int way, bool sends,
                            qat_error *err);
/** Is it done? wait: return when it is. True if nothing is on its way. */
qat_status async_link_done(const qat_async *a, async_link *link, int way, bool wait, bool *done,
                           qat_error *err);

/** The number of values of all parameters, or of all gradients of parameters. */
size_t async_count(const qat_graph *g, bool gradients);
/** Copy them from the graph, one behind the other, or to it. */
void async_pack(const qat_graph *g, bool gradients, qat_real *to);
void async_unpack(qat_graph *g, bool gradients, const qat_real *from);

#endif
