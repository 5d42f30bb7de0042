/**
 * A log: text that only grows, kept in memory and written to a file. If the disk is full, the file
 * lacks the last lines, and gets them later.
 */
#ifndef QAT_TRAIN_LOG_FILE_H
#define QAT_TRAIN_LOG_FILE_H

#include "base/bytes.h"
#include "qat/status.h"

#include <stddef.h>

typedef struct qat_log_file {
    char path[512];
    int fd; /* -1: not open */
    qat_writer text;
    size_t on_disk; /* bytes of text that are in the file */
} qat_log_file;

/**
 * Open dir/name, or create it, as a log with this text. The old content of the file does not change
 * yet.
 */
qat_status qat_log_open(qat_log_file *log, const char *dir, const char *name, const char *text,
                        size_t count, qat_error *err);
/** Write the missing text to the file, and cut the file there. A failure may be tried again. */
qat_status qat_log_flush(qat_log_file *log, qat_error *err);
void qat_log_close(qat_log_file *log);

#endif
