#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { FIRST_CAPACITY = 64 * 1024, CHUNK = 1 << 20 };

qat_status qat_file_fail(qat_error *err, const char *verb, const char *path, int number)
{
    char reason[128];
    if (strerror_r(number, reason, sizeof reason))
        (void)snprintf(reason, sizeof reason, "error %d", number);
    return qat_fail(err, number == ENOMEM ? QAT_ERR_NOMEM : QAT_ERR_IO, "cannot %s %s: %s", verb,
                    path, reason);
}

static bool ends_with(const char *text, const char *end)
{
    size_t const n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* Reading: a source returns bytes until it returns 0; read_all keeps them. */

typedef struct source {
    const char *path;
    int fd;      /* of a plain file */
    gzFile gzip; /* of a gzip file, else NULL */
} source;

static qat_status source_open(source *s, const char *path, qat_error *err)
{
    *s = (source){.path = path, .fd = -1};
    errno = 0;
    if (!ends_with(path, ".gz")) {
        s->fd = open(path, O_RDONLY | O_CLOEXEC);
        return s->fd < 0 ? qat_file_fail(err, "open", path, errno) : QAT_OK;
    }
    s->gzip = gzopen(path, "rbe");
    if (!s->gzip)
        return qat_file_fail(err, "open", path, errno ? errno : ENOMEM);
    (void)gzbuffer(s->gzip, CHUNK / 4); /* before the first read; if it fails, the default stays */
    return QAT_OK;
}

/** Report the error of zlib. */
static qat_status gzip_fail(const source *s, qat_error *err)
{
    int code;
    const char *text = gzerror(s->gzip, &code);
    if (code == Z_ERRNO)
        return qat_file_fail(err, "read", s->path, errno);
    if (code == Z_MEM_ERROR)
        return qat_fail(err, QAT_ERR_NOMEM, "%s: no memory to unpack", s->path);
    if (code == Z_BUF_ERROR)
        return qat_fail(err, QAT_ERR_FORMAT, "%s: truncated gzip file", s->path);
    return qat_fail(err, QAT_ERR_FORMAT, "%s: damaged gzip file (%s)", s->path, text);
}

/** Read up to `room` bytes into `to`; *got is 0 at the end. */
static qat_status source_read(source *s, void *to, size_t room, size_t *got, qat_error *err)
{
    *got = 0;
    if (room > CHUNK)
        room = CHUNK;
    if (s->gzip) {
        int const n = gzread(s->gzip, to, (unsigned)room);
        int code = Z_OK;
        (void)gzerror(s->gzip, &code);
        if (n < 0 || (code != Z_OK && code != Z_STREAM_END))
            return gzip_fail(s, err);
        if (gzdirect(s->gzip)) /* zlib would pass other files through unchanged */
            return qat_fail(err, QAT_ERR_FORMAT, "%s: not a gzip file", s->path);
        *got = (size_t)n;
        return QAT_OK;
    }
    ssize_t n;
    do {
        n = read(s->fd, to, room);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return qat_file_fail(err, "read", s->path, errno);
    *got = (size_t)n;
    return QAT_OK;
}

static void source_close(source *s)
{
    if (s->gzip)
        (void)gzclose(s->gzip); /* the read has already reported a truncated stream */
    if (s->fd >= 0)
        (void)close(s->fd);
}

/**
 * Size of the first buffer: one byte more than a plain file's size, so that one read fetches it
 * all.
 */
static size_t first_capacity(const source *s, size_t max_bytes)
{
    struct stat st;
    size_t size = FIRST_CAPACITY;
    if (s->fd >= 0 && fstat(s->fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size >= 0)
        size = (uintmax_t)st.st_size < SIZE_MAX - 2 ? (size_t)st.st_size : SIZE_MAX - 2;
    if (size > max_bytes)
        size = max_bytes;
    return size < SIZE_MAX - 2 ? size + 2
                               : SIZE_MAX; /* one byte to see the end, one for the final 0 */
}

static qat_status read_all(source *s, size_t max_bytes, uint8_t **bytes, size_t *count,
                           qat_error *err)
{
    size_t capacity = first_capacity(s, max_bytes), used = 0, got = 0;
    uint8_t *buffer = malloc(capacity);
    qat_status st = QAT_OK;
    do {
        if (buffer && used + 1 >= capacity) {
            size_t const doubled = capacity > SIZE_MAX / 2 ? SIZE_MAX : 2 * capacity;
            uint8_t *grown = realloc(buffer, doubled);
            if (!grown)
                free(buffer);
            buffer = grown;
            capacity = doubled;
        }
        if (!buffer)
            return qat_fail(err, QAT_ERR_NOMEM, "%s: no memory for %zu bytes", s->path, capacity);
        st = source_read(s, buffer + used, capacity - 1 - used, &got, err);
        used += got;
        if (!st && used > max_bytes)
            st = qat_fail(err, QAT_ERR_FORMAT, "%s: larger than the %zu bytes allowed", s->path,
                          max_bytes);
    } while (!st && got);
    if (st) {
        free(buffer);
        return st;
    }
    buffer[used] = 0;
    *bytes = buffer;
    *count = used;
    return QAT_OK;
}

qat_status qat_file_read(const char *path, size_t max_bytes, uint8_t **bytes, size_t *count,
                         qat_error *err)
{
    source s;
    *bytes = NULL;
    *count = 0;
    qat_status st = source_open(&s, path, err);
    if (!st)
        st = read_all(&s, max_bytes, bytes, count, err);
    source_close(&s);
    return st;
}
