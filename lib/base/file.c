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

enum { FIRST_CAPACITY = 64 * 1024, CHUNK = 1 << 20, TEMPORARY_NAMES = 100, DIR_MODE = 0777 };

/** The message is "cannot <verb> <path>: <reason of number>". */
static qat_status fail_errno(qat_error *err, const char *verb, const char *path, int number)
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
        return s->fd < 0 ? fail_errno(err, "open", path, errno) : QAT_OK;
    }
    s->gzip = gzopen(path, "rbe");
    if (!s->gzip)
        return fail_errno(err, "open", path, errno ? errno : ENOMEM);
    (void)gzbuffer(s->gzip, CHUNK / 4); /* before the first read; if it fails, the default stays */
    return QAT_OK;
}

/** Report the error of zlib. */
static qat_status gzip_fail(const source *s, qat_error *err)
{
    int code;
    const char *text = gzerror(s->gzip, &code);
    if (code == Z_ERRNO)
        return fail_errno(err, "read", s->path, errno);
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
        return fail_errno(err, "read", s->path, errno);
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

static qat_status write_all(int fd, const char *path, const void *bytes, size_t count,
                            qat_error *err)
{
    const uint8_t *at = bytes;
    while (count) {
        ssize_t const n = write(fd, at, count);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fail_errno(err, "write", path, errno);
        at += n;
        count -= (size_t)n;
    }
    return QAT_OK;
}

/** Write and close fd; fsync it if `sync` is set. */
static qat_status fill(int fd, const char *path, const void *bytes, size_t count, bool sync,
                       qat_error *err)
{
    qat_status st = write_all(fd, path, bytes, count, err);
    if (!st && sync && fsync(fd))
        st = fail_errno(err, "write", path, errno);
    if (close(fd) && !st)
        st = fail_errno(err, "write", path, errno);
    return st;
}

/** Create "<path>.<pid>.<n>.tmp" for the first free n; *fd -1 on failure. */
static qat_status temporary_open(const char *path, char *name, size_t max, int *fd, qat_error *err)
{
    *fd = -1;
    for (int n = 0; n < TEMPORARY_NAMES && *fd < 0; n++) {
        (void)snprintf(name, max, "%s.%ld.%d.tmp", path, (long)getpid(), n);
        *fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (*fd < 0 && errno != EEXIST)
            break;
    }
    return *fd < 0 ? fail_errno(err, "create", path, errno) : QAT_OK;
}

/** Make the rename durable. Some file systems cannot (EINVAL); that is no error. */
static qat_status sync_folder(const char *path, char *name, qat_error *err)
{
    strcpy(name, path); /* name has room for path and more */
    char *slash = strrchr(name, '/');
    if (slash)
        slash[slash == name] = '\0'; /* "/x" lies in "/" */
    else
        strcpy(name, ".");
    int const fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno == EACCES ? QAT_OK : fail_errno(err, "open", name, errno);
    int const failed = fsync(fd) ? errno : 0;
    (void)close(fd);
    return failed && failed != EINVAL ? fail_errno(err, "sync", name, failed) : QAT_OK;
}

/** Write to a device or pipe, which cannot be replaced. */
static qat_status write_special(const char *path, const void *bytes, size_t count, qat_error *err)
{
    int const fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return fail_errno(err, "open", path, errno);
    return fill(fd, path, bytes, count, false, err);
}

static qat_status replace(const char *path, char *name, size_t max, const void *bytes, size_t count,
                          qat_error *err)
{
    int fd;
    qat_status st = temporary_open(path, name, max, &fd, err);
    if (st)
        return st;
    st = fill(fd, path, bytes, count, true, err);
    if (!st && rename(name, path))
        st = fail_errno(err, "replace", path, errno);
    if (st) {
        (void)unlink(name);
        return st;
    }
    return sync_folder(path, name, err);
}

qat_status qat_file_write_atomic(const char *path, const void *bytes, size_t count, qat_error *err)
{
    struct stat there;
    if (stat(path, &there) == 0 && !S_ISREG(there.st_mode) && !S_ISDIR(there.st_mode))
        return write_special(path, bytes, count, err);
    size_t const max = strlen(path) + 64;
    char *name = malloc(max);
    if (!name)
        return qat_fail(err, QAT_ERR_NOMEM, "%s: no memory to write", path);
    qat_status st = replace(path, name, max, bytes, count, err);
    free(name);
    return st;
}

/** Make a second name of `from`, "<to>.<pid>.<n>.tmp". Returns false if the file system cannot. */
static bool temporary_link(const char *from, const char *to, char *name, size_t max)
{
    for (int n = 0; n < TEMPORARY_NAMES; n++) {
        (void)snprintf(name, max, "%s.%ld.%d.tmp", to, (long)getpid(), n);
        if (link(from, name) == 0)
            return true;
        if (errno != EEXIST)
            break;
    }
    return false;
}

static qat_status copy(const char *from, const char *to, qat_error *err)
{
    uint8_t *bytes;
    size_t count;
    qat_status st = qat_file_read(from, SIZE_MAX, &bytes, &count, err);
    if (!st)
        st = qat_file_write_atomic(to, bytes, count, err);
    free(bytes);
    return st;
}

qat_status qat_file_copy_atomic(const char *from, const char *to, qat_error *err)
{
    size_t const max = strlen(to) + 64;
    char *name = malloc(max);
    if (!name)
        return qat_fail(err, QAT_ERR_NOMEM, "%s: no memory to write", to);
    qat_status st;
    if (temporary_link(from, to, name, max)) {
        st = rename(name, to) ? fail_errno(err, "replace", to, errno) : QAT_OK;
        (void)unlink(name); /* this name is left over if both names belonged to one file */
        if (!st)
            st = sync_folder(to, name, err);
    } else {
        st = copy(from, to, err);
    }
    free(name);
    return st;
}

/** Create one folder. An existing folder, or a link to one, is fine. */
static qat_status make_dir(const char *path, qat_error *err)
{
    struct stat there;
    if (mkdir(path, DIR_MODE) == 0)
        return QAT_OK;
    int const number = errno;
    if (stat(path, &there) == 0 && S_ISDIR(there.st_mode))
        return QAT_OK;
    return fail_errno(err, "create folder", path, number);
}

qat_status qat_make_dirs(const char *path, qat_error *err)
{
    size_t const length = strlen(path);
    char *part = malloc(length + 1);
    if (!part)
        return qat_fail(err, QAT_ERR_NOMEM, "%s: no memory to create a folder", path);
    qat_status st = QAT_OK;
    for (size_t i = 1; i <= length && !st; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        st = make_dir(part, err);
    }
    free(part);
    return st;
}
