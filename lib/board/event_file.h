/**
 * An event file that a run writes, and continues after a resume: what later steps had written is
 * cut off, so that the file of a run that was interrupted is the file of one that was not.
 */
#ifndef QAT_BOARD_EVENT_FILE_H
#define QAT_BOARD_EVENT_FILE_H

#include "base/bytes.h"
#include "qat/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct qat_event_file {
    char path[512];
    int fd;             /* -1: not open */
    uint64_t size;      /* bytes of whole records in the file */
    qat_writer waiting; /* records that are not in it yet: append to them */
    bool ended;         /* it has the record of the run's end */
} qat_event_file;

/**
 * Open dir/name, or create it. It starts with the records of head. What follows in an old file with
 * this head stays up to the first record that is broken or of a step after `until` (-1: none).
 */
qat_status qat_event_file_open(qat_event_file *file, const char *dir, const char *name,
                               const qat_writer *head, int64_t until, qat_error *err);
/** Write what waits. If that fails (QAT_ERR_IO), the file has whole records, and the rest waits. */
qat_status qat_event_file_flush(qat_event_file *file, qat_error *err);
void qat_event_file_close(qat_event_file *file);

#endif
