/**
 * Ranks: processes that train one network together (qat_train_options.ranks). The library says what
 * is sent to whom; this table sends it. qat-train has one that calls MPI. All functions are called
 * by one thread.
 */
#ifndef QAT_RANKS_H
#define QAT_RANKS_H

#include "qat/status.h"
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Bytes that go to a rank, or come from it. */
typedef struct qat_piece {
    int rank;
    void *at;
    size_t bytes;
} qat_piece;

enum { QAT_CHANNELS = 4 };

/**
 * Some pieces that are on their way. Between two ranks, the pieces of a channel arrive in the order
 * in which they were sent; what one rank sends, the other one expects with as many bytes. Memory of
 * pieces is borrowed until the exchange is done.
 */
typedef struct qat_exchange {
    int channel; /* 0..QAT_CHANNELS - 1 */
    qat_piece *send, *receive;
    int n_send, n_receive;
    void *handle; /* of the table; NULL: not on its way */
} qat_exchange;

typedef struct qat_ranks {
    int rank, count; /* this process, 0..count - 1 */
    void *context;
    /** Begin an exchange; it goes on while this process computes. */
    qat_status (*begin)(void *context, qat_exchange *exchange, qat_error *err);
    /**
     * Is it done? wait: return when it is. If another rank is dead or hangs, the function returns
     * QAT_ERR_STATE, and the message names it.
     */
    qat_status (*done)(void *context, qat_exchange *exchange, bool wait, bool *done,
                       qat_error *err);
    /** This process's name for messages: "rank 2 (host node7, process 4711)". */
    const char *(*name)(void *context);
} qat_ranks;

#ifdef __cplusplus
}
#endif

#endif
