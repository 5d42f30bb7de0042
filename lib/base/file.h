/** Whole files: read at once (through gzip if the name ends in .gz), or written atomically. */
#ifndef QAT_BASE_FILE_H
#define QAT_BASE_FILE_H

#include "qat/status.h"
#include <stddef.h>
#include <stdint.h>

/**
 * Read the whole file at path; a gzip file is unpacked. A byte 0 follows the content in memory.
 * @param max_bytes  fail if the unpacked content is larger
 * @param bytes      owned by the caller: free()
 */
qat_status qat_file_read(const char *path, size_t max_bytes, uint8_t **bytes, size_t *count,
                         qat_error *err);

/**
 * Replace the file at path. At every moment it holds either the old or the new content: the bytes
 * go to a temporary file beside it, which is synced and renamed, and the folder is synced. The
 * temporary file is removed on failure. A device or a pipe is simply written to.
 */
qat_status qat_file_write_atomic(const char *path, const void *bytes, size_t count, qat_error *err);

/**
 * Replace `to` by the content of `from`, also atomically. `to` becomes a second name of the same
 * file, or, if the file system cannot do that, a copy. Afterwards `from` may be replaced but not
 * written into.
 */
qat_status qat_file_copy_atomic(const char *from, const char *to, qat_error *err);

/** Create a folder and its parents; an existing folder is fine. */
qat_status qat_make_dirs(const char *path, qat_error *err);

#endif
