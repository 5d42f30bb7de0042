#include "datasets/packed/unpack.h"

#include "base/files/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { CHUNK = 1 << 16, PATH_LENGTH = 4096, MOST_GIB = 64 };

/** A new file that has no name any more. */
static int nameless(char path[PATH_LENGTH])
{
    const char *folder = getenv("TMPDIR");
    (void)snprintf(path, PATH_LENGTH, "%s/qat-XXXXXX", folder && *folder ? folder : "/var/tmp");
    int const fd = mkstemp(path);
    if (fd >= 0)
        (void)unlink(path);
    return fd;
}

/** A few bytes of gzip may stand for any number of bytes. */
static qat_status check_size(const qat_unpacked *to, const qat_shard *shard, qat_error *err)
{
    if ((to->bytes - shard->start) >> 30 < MOST_GIB)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_LIMIT, "%s: more than %d GiB when it is unpacked: gunzip it",
                    shard->path, MOST_GIB);
}

static qat_status unpack(qat_file_source *from, qat_unpacked *to, const qat_shard *shard,
                         const char *path, qat_error *err)
{
    uint8_t *room = malloc(CHUNK);
    size_t got = 1;
    qat_status st = room ? QAT_OK : qat_out_of_memory(err, path);
    while (!st && got) {
        st = qat_source_read(from, room, CHUNK, &got, err);
        if (!st)
            st = qat_file_write_all(to->fd, path, room, got, err);
        to->bytes += got;
        if (!st)
            st = check_size(to, shard, err);
    }
    free(room);
    return st;
}

qat_status qat_shard_unpack(qat_unpacked *to, qat_shard *shard, qat_error *err)
{
    char path[PATH_LENGTH] = "a temporary file";
    qat_file_source source;
    if (!qat_file_is_gzip(shard->path))
        return QAT_OK;
    if (to->fd < 0)
        to->fd = nameless(path);
    if (to->fd < 0)
        return qat_file_fail(err, "create", path, errno);
    shard->fd = to->fd;
    shard->start = to->bytes;
    qat_status st = qat_source_open(&source, shard->path, err);
    if (!st)
        st = unpack(&source, to, shard, path, err);
    qat_source_close(&source);
    shard->end = to->bytes;
    return st;
}
