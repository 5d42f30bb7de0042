/** Whole files: read at once (through gzip if the name ends in .gz), or written atomically. */
#ifndef QAT_BASE_FILE_H
#define QAT_BASE_FILE_H

#include "qat/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Fail with the message "cannot <verb> <path>: <reason of the errno `number`>". */
qat_status qat_file_fail(qat_error *err, const char *verb, const char *path, int number);

/**
 * Read the whole file at path; a gzip file is unpacked. A byte 0 follows the content in memory.
 * @param max_bytes  QAT_ERR_LIMIT if the unpacked content is larger. At most this much is
 * allocated; a file that says itself that it is larger is refused before it is read
 * @param bytes      owned by the caller: free()
 */
qat_status qat_file_read(const char *path, size_t max_bytes, uint8_t **bytes, size_t *count,
                         qat_error *err);

/** Read `count` bytes at a place of an open file; fewer are an error. path: for messages. */
qat_status qat_file_read_at(int fd, const char *path, uint64_t offset, void *bytes, size_t count,
                            qat_error *err);

/** Write all bytes to an open file. path: for messages. */
qat_status qat_file_write_all(int fd, const char *path, const void *bytes, size_t count,
                              qat_error *err);

/** Does the name say that it is a gzip file? */
bool qat_file_is_gzip(const char *path);

/** A file that is read piece by piece; a gzip file is unpacked. */
typedef struct qat_file_source {
    const char *path; /* borrowed */
    int fd;           /* of a plain file */
    struct gzFile_s *gzip;
} qat_file_source;

/** Open a file. Close it also after an error. */
qat_status qat_source_open(qat_file_source *s, const char *path, qat_error *err);
/** Read up to `room` bytes into `to`; *got is 0 at the end. */
qat_status qat_source_read(qat_file_source *s, void *to, size_t room, size_t *got, qat_error *err);
void qat_source_close(qat_file_source *s);

/** What is known of a file before it is read. */
typedef struct qat_file_look {
    size_t count;  /* bytes at the start that were read, unpacked; all of them if it has no more */
    uint64_t size; /* of the content: of a plain file exactly; of a gzip file what its end says,
                      modulo 2^32, and at least count. A file of several gzip parts is larger */
    bool exact;
    bool once; /* a pipe or device, which can be read only once: nothing was read */
} qat_file_look;

/** Read up to `room` bytes of the start of a file, so that its header can be checked first. */
qat_status qat_file_look_at(const char *path, uint8_t *start, size_t room, qat_file_look *look,
                            qat_error *err);

/** Bytes as MiB, rounded up, for messages about limits. */
unsigned long long qat_mib(uint64_t bytes);

/**
 * Replace the file at path. At every moment it holds either the old or the new content: the bytes
 * go to a temporary file beside it, "<path>.qat.tmp", which is synced and renamed, and the folder
 * is synced. The temporary file is removed on failure. If the process is killed, it may stay; the
 * next writing of the same path removes it. The new file has the old one's mode and owner, as far
 * as the process may give it those; it is never readable by more users. A device or a pipe is
 * simply written to. Two processes may write the same path: one waits for the other, at most some
 * seconds.
 */
qat_status qat_file_write_atomic(const char *path, const void *bytes, size_t count, qat_error *err);

/** Looks at the temporary file when it is complete. A failure leaves the old file as it is. */
typedef qat_status qat_file_check(const void *context, const char *path, qat_error *err);
/** qat_file_write_atomic with a check (not of a device or a pipe) before the file is replaced. */
qat_status qat_file_write_checked(const char *path, const void *bytes, size_t count,
                                  qat_file_check *check, const void *context, qat_error *err);

/**
 * Lock a folder for one writer. *lock is held until it is closed or the program ends in any way. On
 * a file system without locks, *lock holds nothing. who: for the message, "another run".
 */
qat_status qat_folder_lock(int *lock, const char *dir, const char *who, qat_error *err);

/** Does the path name something that cannot be replaced, such as a device or a pipe? */
bool qat_file_is_special(const char *path);

/**
 * Replace `to` by the content of `from`, also atomically. `to` becomes a second name of the same
 * file, or, if the file system cannot do that, a copy. Afterwards `from` may be replaced but not
 * written into.
 */
qat_status qat_file_copy_atomic(const char *from, const char *to, qat_error *err);

/** Give a file that was written by another program its final name, durably. */
qat_status qat_file_move(const char *from, const char *to, qat_error *err);

/** Create a folder and its parents, also durably; an existing folder is fine. */
qat_status qat_make_dirs(const char *path, qat_error *err);

#endif
