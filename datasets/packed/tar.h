/**
 * Reads the headers of tar archives: ustar, pax (path, size) and GNU (long names, large sizes). An
 * archive must be whole: it ends with two blocks of zeros.
 *
 * A library such as libarchive reads an archive from its beginning. Here pictures are read in any
 * order, so what is wanted of the archive is where each of them lies.
 */
#ifndef QAT_DATASETS_TAR_H
#define QAT_DATASETS_TAR_H

#include "qat/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { QAT_TAR_BLOCK = 512, QAT_TAR_NAME_MAX = 1024 };

typedef struct qat_tar {
    const char *path; /* borrowed */
    int fd;
    uint64_t bytes, at; /* size of the archive; where the next header lies */
} qat_tar;

typedef struct qat_tar_entry {
    char name[QAT_TAR_NAME_MAX];
    uint64_t header, data, size; /* the file's bytes are at data; its header is just before them */
    bool is_file, is_link;       /* a regular file; a hard or symbolic link */
} qat_tar_entry;

/** Open an archive. Close it also after an error. */
qat_status qat_tar_open(qat_tar *tar, const char *path, qat_error *err);
void qat_tar_close(qat_tar *tar);
/** Read the next entry; *more false: the archive ends here. */
qat_status qat_tar_next(qat_tar *tar, qat_tar_entry *entry, bool *more, qat_error *err);
/** Read bytes of the archive. */
qat_status qat_tar_read(const qat_tar *tar, uint64_t offset, void *bytes, size_t count,
                        qat_error *err);
/** Is this a whole header, of a file of so many bytes (in a pax archive perhaps 0)? */
bool qat_tar_is_header(const uint8_t block[QAT_TAR_BLOCK], uint64_t size);
/** Make the header of a regular file without owner and date. The name has at most 100 bytes. */
void qat_tar_make_header(uint8_t block[QAT_TAR_BLOCK], const char *name, uint64_t size);

#endif
