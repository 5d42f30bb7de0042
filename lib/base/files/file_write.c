/** Writing: a temporary file beside the target takes its place when it is complete and on disk. */
#include "base/files/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    ATTEMPTS = 100,
    PAUSE_MILLISECONDS = 40, /* of ATTEMPTS: 4 seconds for another process to finish */
    DIR_MODE = 0777,
    FILE_MODE = 0666,
    PRIVATE_MODE = 0600,
    GROUP_BITS = 0070
};

static const char ending[] = ".qat.tmp";

/* ------------------------------------------------------------------ bytes */

qat_status qat_file_write_all(int fd, const char *path, const void *bytes, size_t count,
                              qat_error *err)
{
    const uint8_t *at = bytes;
    while (count) {
        ssize_t const n = write(fd, at, count);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return qat_file_fail(err, "write", path, errno);
        at += n;
        count -= (size_t)n;
    }
    return QAT_OK;
}

/** Make a change in the folder of `path` durable. Some file systems cannot (EINVAL); that is no
 *  error. name has room for the path. */
static qat_status sync_folder(const char *path, char *name, qat_error *err)
{
    strcpy(name, path);
    char *slash = strrchr(name, '/');
    if (slash)
        slash[slash == name] = '\0'; /* "/x" lies in "/" */
    else
        strcpy(name, ".");
    int const fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno == EACCES ? QAT_OK : qat_file_fail(err, "open", name, errno);
    int const failed = fsync(fd) ? errno : 0;
    (void)close(fd);
    return failed && failed != EINVAL ? qat_file_fail(err, "sync", name, failed) : QAT_OK;
}

/* ------------------------------------------------------------------ the temporary file */

static char *temporary_name(const char *path)
{
    size_t const length = strlen(path);
    char *name = malloc(length + sizeof ending + 1); /* also room for "." */
    if (name) {
        memcpy(name, path, length);
        memcpy(name + length, ending, sizeof ending);
    }
    return name;
}

static void pause_a_little(void)
{
    struct timespec const t = {.tv_nsec = PAUSE_MILLISECONDS * 1000000L};
    (void)nanosleep(&t, NULL);
}

/** Does another process hold the file's lock? Otherwise this one does, where locks work at all. */
static bool is_locked(int fd)
{
    return flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;
}

/** Is fd still the file of that name? */
static bool is_file_of(int fd, const char *name)
{
    struct stat a, b;
    return fstat(fd, &a) == 0 && lstat(name, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

/**
 * Remove what a killed process has left under this name. A process that is writing it holds its
 * lock: wait a little then.
 */
static void clear(const char *name)
{
    int fd = open(name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        fd = open(name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && is_locked(fd))
        pause_a_little();
    else if (fd < 0 || is_file_of(fd, name))
        (void)unlink(name);
    if (fd >= 0)
        (void)close(fd);
}

/** Create the file `name` and lock it; *fd -1 on failure. */
static qat_status temporary_open(const char *path, const char *name, mode_t mode, int *fd,
                                 qat_error *err)
{
    int number = EEXIST;
    for (int n = 0; n < ATTEMPTS && number == EEXIST; n++) {
        *fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (*fd >= 0 && !is_locked(*fd) && is_file_of(*fd, name))
            return QAT_OK;
        number = *fd < 0 ? errno : EEXIST;
        if (*fd >= 0)
            (void)close(*fd); /* another process looked whether this file is in use */
        else if (number == EEXIST)
            clear(name);
    }
    *fd = -1;
    return number == EEXIST ? qat_fail(err, QAT_ERR_IO,
                                       "cannot write %s: another process is writing %s", path, name)
                            : qat_file_fail(err, "create", path, number);
}

/** Give a new file the owner and the mode of the one that it replaces; never a wider one. */
static void keep_mode(int fd, const struct stat *old)
{
    struct stat now;
    mode_t mode = old->st_mode & (S_IRWXU | S_IRWXG | S_IRWXO);
    bool const known = fstat(fd, &now) == 0;
    if (!known || (now.st_uid == old->st_uid && now.st_gid == old->st_gid) ||
        fchown(fd, old->st_uid, old->st_gid) == 0 || fchown(fd, (uid_t)-1, old->st_gid) == 0)
        (void)fchmod(fd, mode);
    else
        (void)fchmod(fd, mode & ~(mode_t)GROUP_BITS); /* its group is another one now */
}

/** Write the bytes, and wait until they are on disk. */
static qat_status fill(int fd, const char *path, const void *bytes, size_t count, qat_error *err)
{
    qat_status st = qat_file_write_all(fd, path, bytes, count, err);
    if (!st && fsync(fd))
        st = qat_file_fail(err, "write", path, errno);
    return st;
}

/* ------------------------------------------------------------------ replacing */

bool qat_file_is_special(const char *path)
{
    struct stat there;
    return stat(path, &there) == 0 && !S_ISREG(there.st_mode) && !S_ISDIR(there.st_mode);
}

/** Write to a device or pipe, which cannot be replaced. */
static qat_status write_special(const char *path, const void *bytes, size_t count, qat_error *err)
{
    int const fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return qat_file_fail(err, "open", path, errno);
    qat_status st = qat_file_write_all(fd, path, bytes, count, err);
    if (close(fd) && !st)
        st = qat_file_fail(err, "write", path, errno);
    return st;
}

static qat_status replace(const char *path, char *name, const void *bytes, size_t count,
                          qat_file_check *check, const void *context, qat_error *err)
{
    struct stat old;
    bool const exists = stat(path, &old) == 0 && S_ISREG(old.st_mode);
    int fd;
    qat_status st = temporary_open(path, name, exists ? PRIVATE_MODE : FILE_MODE, &fd, err);
    if (st)
        return st;
    if (exists)
        keep_mode(fd, &old);
    st = fill(fd, path, bytes, count, err);
    if (!st && check)
        st = check(context, name, err);
    if (!st && rename(name, path))
        st = qat_file_fail(err, "replace", path, errno);
    if (st)
        (void)unlink(name); /* before the lock is given up: the name is still this process's */
    if (close(fd) && !st)
        st = qat_file_fail(err, "write", path, errno);
    return st ? st : sync_folder(path, name, err);
}

qat_status qat_file_write_checked(const char *path, const void *bytes, size_t count,
                                  qat_file_check *check, const void *context, qat_error *err)
{
    if (qat_file_is_special(path))
        return write_special(path, bytes, count, err);
    char *name = temporary_name(path);
    if (!name)
        return qat_out_of_memory(err, path);
    qat_status const st = replace(path, name, bytes, count, check, context, err);
    free(name);
    return st;
}

qat_status qat_file_write_atomic(const char *path, const void *bytes, size_t count, qat_error *err)
{
    return qat_file_write_checked(path, bytes, count, NULL, NULL, err);
}

/* ------------------------------------------------------------------ second names */

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

/** Make `name` a second name of `from`. Returns false if the file system cannot. */
static bool temporary_link(const char *from, const char *name)
{
    for (int n = 0; n < ATTEMPTS; n++) {
        if (link(from, name) == 0)
            return true;
        if (errno != EEXIST)
            break;
        clear(name);
    }
    return false;
}

qat_status qat_file_copy_atomic(const char *from, const char *to, qat_error *err)
{
    char *name = temporary_name(to);
    if (!name)
        return qat_out_of_memory(err, to);
    qat_status st;
    if (temporary_link(from, name)) {
        st = rename(name, to) ? qat_file_fail(err, "replace", to, errno) : QAT_OK;
        (void)unlink(name); /* this name is left over if both names belonged to one file */
        if (!st)
            st = sync_folder(to, name, err);
    } else {
        st = copy(from, to, err);
    }
    free(name);
    return st;
}

qat_status qat_file_move(const char *from, const char *to, qat_error *err)
{
    char *name = temporary_name(to);
    int const fd = open(from, O_RDONLY | O_CLOEXEC);
    qat_status st = name ? QAT_OK : qat_out_of_memory(err, to);
    if (!st && (fd < 0 || fsync(fd)))
        st = qat_file_fail(err, "write", from, errno);
    if (!st && rename(from, to))
        st = qat_file_fail(err, "replace", to, errno);
    if (!st)
        st = sync_folder(to, name, err);
    if (fd >= 0)
        (void)close(fd);
    free(name);
    return st;
}

/* ------------------------------------------------------------------ folders */

/** Create one folder. An existing folder, or a link to one, is fine. name has room for the path. */
static qat_status make_dir(const char *path, char *name, qat_error *err)
{
    struct stat there;
    if (mkdir(path, DIR_MODE) == 0)
        return sync_folder(path, name, err);
    int const number = errno;
    if (stat(path, &there) == 0 && S_ISDIR(there.st_mode))
        return QAT_OK;
    return qat_file_fail(err, "create folder", path, number);
}

qat_status qat_make_dirs(const char *path, qat_error *err)
{
    size_t const length = strlen(path), room = length + 2;
    char *part = malloc(2 * room);
    if (!part)
        return qat_out_of_memory(err, path);
    qat_status st = QAT_OK;
    for (size_t i = 1; i <= length && !st; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        if (path[i - 1] == '/') /* "a//b", "a/" */
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        st = make_dir(part, part + room, err);
    }
    free(part);
    return st;
}
