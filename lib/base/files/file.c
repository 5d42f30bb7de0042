#include "base/files/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
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

bool qat_file_is_gzip(const char *path)
{
    size_t const n = strlen(path);
    return n >= 3 && strcmp(path + n - 3, ".gz") == 0;
}

/* Reading: a source returns bytes until it returns 0; read_all keeps them. */

typedef qat_file_source source;

qat_status qat_source_open(source *s, const char *path, qat_error *err)
{
    *s = (source){.path = path, .fd = -1};
    errno = 0;
    if (!qat_file_is_gzip(path)) {
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
        return qat_out_of_memory(err, s->path);
    if (code == Z_BUF_ERROR)
        return qat_fail(err, QAT_ERR_FORMAT, "%s: truncated gzip file", s->path);
    return qat_fail(err, QAT_ERR_FORMAT, "%s: damaged gzip file (%s)", s->path, text);
}

qat_status qat_source_read(source *s, void *to, size_t room, size_t *got, qat_error *err)
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

void qat_source_close(source *s)
{
    if (s->gzip)
        (void)gzclose(s->gzip); /* the read has already reported a truncated stream */
    if (s->fd >= 0)
        (void)close(s->fd);
}

enum { LEAST_GZIP = 18 }; /* bytes of an empty gzip file */

/** The size of the content that the end of a gzip file gives, modulo 2^32; 0: it cannot be read. */
static uint64_t gzip_size(const char *path)
{
    struct stat st;
    uint8_t end[4] = {0};
    int const fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    bool const good = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size >= LEAST_GZIP &&
                      pread(fd, end, sizeof end, st.st_size - (off_t)sizeof end) == sizeof end;
    (void)close(fd);
    return good ? (uint64_t)end[3] << 24 | (uint64_t)end[2] << 16 | (uint64_t)end[1] << 8 | end[0]
                : 0;
}

/** What a source says about its size; 0: nothing. */
static uint64_t said_size(const source *s)
{
    struct stat st;
    if (s->gzip)
        return gzip_size(s->path);
    bool const plain = fstat(s->fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0;
    return plain ? (uint64_t)st.st_size : 0;
}

static qat_status too_large(const source *s, size_t max_bytes, qat_error *err)
{
    return qat_fail(err, QAT_ERR_LIMIT, "%s: larger than the %zu bytes allowed", s->path,
                    max_bytes);
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
            size_t doubled = capacity > SIZE_MAX / 2 ? SIZE_MAX : 2 * capacity;
            if (max_bytes < SIZE_MAX - 2 && doubled > max_bytes + 2)
                doubled = max_bytes + 2; /* the last byte shows that there are too many */
            uint8_t *grown = realloc(buffer, doubled);
            if (!grown)
                free(buffer);
            buffer = grown;
            capacity = doubled;
        }
        if (!buffer)
            return qat_out_of_memory(err, s->path);
        st = qat_source_read(s, buffer + used, capacity - 1 - used, &got, err);
        used += got;
        if (!st && used > max_bytes)
            st = too_large(s, max_bytes, err);
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
    qat_status st = qat_source_open(&s, path, err);
    if (!st && said_size(&s) > max_bytes)
        st = too_large(&s, max_bytes, err);
    if (!st)
        st = read_all(&s, max_bytes, bytes, count, err);
    qat_source_close(&s);
    return st;
}

qat_status qat_file_read_at(int fd, const char *path, uint64_t offset, void *bytes, size_t count,
                            qat_error *err)
{
    uint8_t *to = bytes;
    while (count) {
        ssize_t const n = offset > INT64_MAX ? 0 : pread(fd, to, count, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return qat_file_fail(err, "read", path, errno);
        if (n == 0)
            return qat_fail(err, QAT_ERR_FORMAT, "%s: truncated, the file has no byte %llu", path,
                            (unsigned long long)offset);
        to += n;
        offset += (uint64_t)n;
        count -= (size_t)n;
    }
    return QAT_OK;
}

qat_status qat_file_look_at(const char *path, uint8_t *start, size_t room, qat_file_look *look,
                            qat_error *err)
{
    source s;
    size_t got = 1;
    struct stat there;
    *look = (qat_file_look){0};
    look->once = stat(path, &there) == 0 && !S_ISREG(there.st_mode) && !S_ISDIR(there.st_mode);
    if (look->once)
        return QAT_OK;
    qat_status st = qat_source_open(&s, path, err);
    while (!st && got && look->count < room) {
        st = qat_source_read(&s, start + look->count, room - look->count, &got, err);
        look->count += got;
    }
    if (!st) {
        look->size = said_size(&s);
        look->exact = !s.gzip && look->size > 0;
        if (look->size < look->count)
            look->size = look->count;
    }
    qat_source_close(&s);
    return st;
}

unsigned long long qat_mib(uint64_t bytes)
{
    return bytes ? (bytes - 1) / (1 << 20) + 1 : 0;
}

qat_status qat_folder_lock(int *lock, const char *dir, const char *who, qat_error *err)
{
    *lock = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*lock < 0)
        return qat_fail(err, QAT_ERR_IO, "%s: %s", dir, strerror(errno));
    if (flock(*lock, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
        return qat_fail(err, QAT_ERR_STATE, "%s: %s is writing there", dir, who);
    return QAT_OK;
}
