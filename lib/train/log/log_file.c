#include "train/log/log_file.h"

#include "base/files/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>

qat_status qat_log_open(qat_log_file *log, const char *dir, const char *name, const char *text,
                        size_t count, qat_error *err)
{
    *log = (qat_log_file){.fd = -1};
    qat_write_bytes(&log->text, text, count);
    if (!dir)
        return QAT_OK;
    int const n = snprintf(log->path, sizeof log->path, "%s/%s", dir, name);
    if (n < 0 || (size_t)n >= sizeof log->path)
        return qat_fail(err, QAT_ERR_ARGUMENT, "output.dir %.200s... is too long", dir);
    log->fd = open(log->path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (log->fd < 0)
        return qat_file_fail(err, "open", log->path, errno);
    return QAT_OK;
}

/** The disk took a part of a row only: cut it off, so that the file has whole rows. */
static qat_status cut(qat_log_file *log, int number, qat_error *err)
{
    while (log->on_disk && log->text.bytes[log->on_disk - 1] != '\n')
        log->on_disk--;
    if (ftruncate(log->fd, (off_t)log->on_disk)) /* a later flush does it */
        number = errno;
    return qat_file_fail(err, "write", log->path, number);
}

qat_status qat_log_flush(qat_log_file *log, qat_error *err)
{
    if (log->text.failed)
        return qat_out_of_memory(err, log->path);
    if (log->fd < 0)
        return QAT_OK;
    while (log->on_disk < log->text.count) {
        ssize_t const n = pwrite(log->fd, log->text.bytes + log->on_disk,
                                 log->text.count - log->on_disk, (off_t)log->on_disk);
        if (n < 0 && errno != EINTR)
            return cut(log, errno, err);
        log->on_disk += n > 0 ? (size_t)n : 0;
    }
    return ftruncate(log->fd, (off_t)log->text.count)
               ? qat_file_fail(err, "write", log->path, errno)
               : QAT_OK;
}

void qat_log_close(qat_log_file *log)
{
    if (log->fd >= 0) {
        (void)fsync(log->fd); /* what a power failure takes nevertheless, --resume writes again */
        (void)close(log->fd);
    }
    qat_writer_free(&log->text);
    log->fd = -1;
}
