/**
 * Status codes and error messages of the training side (libqat).
 *
 * Every function that can fail returns a qat_status and takes a qat_error that the caller owns. The
 * status is the kind of failure. The message names the file, line, layer or value. There is no
 * global error state. A NULL qat_error is allowed everywhere.
 *
 *     qat_error err;
 *     if (qat_graph_plan(graph, 32, QAT_PLAN_TRAIN, &err) != QAT_OK)
 *         fprintf(stderr, "%s\n", err.message);
 */
#ifndef QAT_STATUS_H
#define QAT_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef enum qat_status {
    QAT_OK = 0,
    QAT_ERR_NOMEM,       /* an allocation failed */
    QAT_ERR_IO,          /* a file could not be opened, read or written */
    QAT_ERR_FORMAT,      /* the content of a file does not follow its format */
    QAT_ERR_ARGUMENT,    /* a value outside its documented range, an unknown name */
    QAT_ERR_SHAPE,       /* the shapes of tensors do not fit together */
    QAT_ERR_NUMERIC,     /* NaN or infinity, or an accumulator that could overflow */
    QAT_ERR_STATE,       /* called in the wrong order, or a tensor was never observed */
    QAT_ERR_UNSUPPORTED, /* legal, but not possible here */
    QAT_ERR_MISMATCH,    /* two computations that must agree did not */
    QAT_ERR_LIMIT        /* it would take more memory or work than the caller allows */
} qat_status;

enum { QAT_ERROR_MESSAGE_MAX = 512 };

/**
 * The place where a function writes why it failed. The caller owns it; each thread needs its own.
 */
typedef struct qat_error {
    qat_status status;
    char message[QAT_ERROR_MESSAGE_MAX]; /* one sentence, no newline; "" after success */
} qat_error;

/** A short English name of a status, for example "out of memory". Never NULL; static storage. */
const char *qat_status_name(qat_status status);

/**
 * Write a message as printf does to err (if not NULL), cut to fit, and return status. Return it
 * directly: return qat_fail(err, QAT_ERR_SHAPE, "...", ...);
 */
qat_status qat_fail(qat_error *err, qat_status status, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 3, 4)))
#endif
    ;

/** Fill err with "what: out of memory" (what NULL: "out of memory") and return QAT_ERR_NOMEM. */
qat_status qat_out_of_memory(qat_error *err, const char *what);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
