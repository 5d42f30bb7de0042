/**
 * Asynchronous training (train.asynchronous), as the paper trained with 50 workers. Rank 0 is the
 * server: it has the parameters, the optimizer's state, learned and observed ranges, and the
 * averages of batch norm. It evaluates, logs and saves. Each other rank is a worker:
 *
 *     server                                    worker
 *     step s: send all parameters     ->        gradients and observations of its next batch
 *     ...                             <-        send them
 *     step s + d: one step of the optimizer, and update, as they come; send all parameters ...
 *
 * d is the staleness: how many steps of others came between. Which gradients meet which parameters
 * depends on who is faster, so another run gives another result.
 */
#ifndef QAT_TRAIN_ASYNCHRONOUS_H
#define QAT_TRAIN_ASYNCHRONOUS_H

#include "train/trainer.h"

/**
 * Set t->async, and the batches that this rank takes. QAT_ERR_ARGUMENT: there is only one process,
 * or an epoch has fewer batches than there are workers.
 */
qat_status qat_async_open(qat_trainer *t, qat_error *err);
void qat_async_close(qat_async *async); /* NULL is fine */
/** The graph is planned. QAT_ERR_LIMIT: with the messages it takes more than options->memory. */
qat_status qat_async_check_memory(qat_trainer *t, qat_error *err);
/** All is planned and restored, and the ranks agree: prepare the messages. */
qat_status qat_async_begin(qat_trainer *t, qat_error *err);

/** Is this process a worker? */
bool qat_async_works(const qat_trainer *t);
/** A worker's training: until the server says that the run ends. t->step is then the last one. */
qat_status qat_async_work(qat_trainer *t, qat_error *err);

/** The server's training step: apply the gradients that come next. */
qat_status qat_async_step(qat_trainer *t, qat_error *err);
/** The server's end of training: tell all workers. */
qat_status qat_async_end(qat_trainer *t, qat_error *err);

/** The first line of ranks.csv; the server's rows since the last call. */
extern const char qat_async_header[];
void qat_async_write_rows(qat_trainer *t, qat_writer *w);

#endif
