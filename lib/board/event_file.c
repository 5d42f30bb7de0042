#include "board/event_file.h"

#include "base/checksums/crc32c.h"
#include "base/files/file.h"
#include "board/events.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ------------------------------------------------------------------ what an old file has */

/** Read exactly count bytes. false: the file ends before, or cannot be read. */
static bool read_at(int fd, uint64_t at, void *to, size_t count)
{
    size_t done = 0;
    while (done < count) {
        ssize_t const n = pread(fd, (uint8_t *)to + done, count - done, (off_t)(at + done));
        if (n == 0 || (n < 0 && errno != EINTR))
            return false;
        done += n > 0 ? (size_t)n : 0;
    }
    return true;
}

/** The length of the event of the record at `at`; 0: there is no whole head. */
static size_t length_at(const qat_event_file *f, uint64_t at, uint64_t end)
{
    uint8_t head[QAT_RECORD_HEAD];
    if (end - at < QAT_RECORD_HEAD + QAT_RECORD_TAIL || !read_at(f->fd, at, head, sizeof head))
        return 0;
    qat_reader r = qat_reader_of(head, sizeof head);
    uint64_t const length = qat_read_u64(&r);
    bool const whole = qat_read_u32(&r) == qat_masked_crc32c(head, 8) && length < SIZE_MAX / 2 &&
                       length <= end - at - QAT_RECORD_HEAD - QAT_RECORD_TAIL;
    return whole ? (size_t)length : 0;
}

/** Look at the record at f->size. *whole is false after the last one. */
static qat_status see_record(const qat_event_file *f, uint64_t end, qat_event_look *look,
                             size_t *bytes, bool *whole, qat_error *err)
{
    size_t const n = length_at(f, f->size, end);
    *whole = false;
    if (!n)
        return QAT_OK;
    uint8_t *event = malloc(n + QAT_RECORD_TAIL);
    if (!event)
        return qat_out_of_memory(err, f->path);
    if (read_at(f->fd, f->size + QAT_RECORD_HEAD, event, n + QAT_RECORD_TAIL)) {
        qat_reader tail = qat_reader_of(event + n, QAT_RECORD_TAIL);
        *whole =
            qat_read_u32(&tail) == qat_masked_crc32c(event, n) && qat_event_see(look, event, n);
    }
    free(event);
    *bytes = QAT_RECORD_HEAD + n + QAT_RECORD_TAIL;
    return look->no_memory ? qat_out_of_memory(err, f->path) : QAT_OK;
}

/** Does the file begin with these bytes? */
static qat_status begins_with(const qat_event_file *f, const qat_writer *head, bool *begins,
                              qat_error *err)
{
    uint8_t *old = malloc(head->count + 1);
    if (!old)
        return qat_out_of_memory(err, f->path);
    *begins = read_at(f->fd, 0, old, head->count) && !memcmp(old, head->bytes, head->count);
    free(old);
    return QAT_OK;
}

/** Find the end of the records that stay. */
static qat_status keep_records(qat_event_file *f, const qat_writer *head, int64_t until,
                               qat_error *err)
{
    struct stat s;
    bool more = false;
    qat_status st = until < 0 || fstat(f->fd, &s) ? QAT_OK : begins_with(f, head, &more, err);
    f->size = more ? head->count : 0;
    while (!st && more) {
        qat_event_look look = {0};
        size_t bytes = 0;
        st = see_record(f, (uint64_t)s.st_size, &look, &bytes, &more, err);
        more = !st && more && look.step <= until;
        f->size += more ? bytes : 0;
        f->ended |= more && look.end;
    }
    return st;
}

/* ------------------------------------------------------------------ opening and writing */

qat_status qat_event_file_open(qat_event_file *file, const char *dir, const char *name,
                               const qat_writer *head, int64_t until, qat_error *err)
{
    *file = (qat_event_file){.fd = -1};
    int const n = snprintf(file->path, sizeof file->path, "%s/%s", dir, name);
    if (n < 0 || (size_t)n >= sizeof file->path)
        return qat_fail(err, QAT_ERR_ARGUMENT, "output.dir %.200s... is too long", dir);
    if (head->failed)
        return qat_out_of_memory(err, file->path);
    file->fd = open(file->path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file->fd < 0)
        return qat_file_fail(err, "open", file->path, errno);
    qat_status const st = keep_records(file, head, until, err);
    if (!st && !file->size)
        qat_write_bytes(&file->waiting, head->bytes, head->count);
    return st ? st : qat_event_file_flush(file, err);
}

/** The disk took a part of the records only: cut it off. A later flush does what fails here. */
static qat_status cut(const qat_event_file *f, int number, qat_error *err)
{
    (void)!ftruncate(f->fd, (off_t)f->size);
    return qat_file_fail(err, "write", f->path, number);
}

qat_status qat_event_file_flush(qat_event_file *f, qat_error *err)
{
    qat_writer *w = &f->waiting;
    size_t done = 0;
    if (w->failed)
        return qat_out_of_memory(err, f->path);
    while (done < w->count) {
        ssize_t const n = pwrite(f->fd, w->bytes + done, w->count - done, (off_t)(f->size + done));
        if (n < 0 && errno != EINTR)
            return cut(f, errno, err);
        done += n > 0 ? (size_t)n : 0;
    }
    f->size += done;
    w->count = 0;
    return ftruncate(f->fd, (off_t)f->size) ? qat_file_fail(err, "write", f->path, errno) : QAT_OK;
}

void qat_event_file_close(qat_event_file *f)
{
    if (f->fd >= 0) {
        (void)fsync(f->fd);
        (void)close(f->fd);
    }
    qat_writer_free(&f->waiting);
    f->fd = -1;
}
