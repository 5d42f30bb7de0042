#include "datasets/packed/shard_write.h"
#include "datasets/packed/tar.h"

#include "base/files/file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { NAME_MAX_BYTES = 100, END = 2 * QAT_TAR_BLOCK };

static const uint8_t zeros[END];

/** Bytes of an entry: its header, and its content in whole blocks. */
static uint64_t entry_bytes(uint64_t count)
{
    return QAT_TAR_BLOCK + (count + QAT_TAR_BLOCK - 1) / QAT_TAR_BLOCK * QAT_TAR_BLOCK;
}

static qat_status put(qat_shard_writer *w, const void *bytes, size_t count, qat_error *err)
{
    errno = 0;
    w->at += count;
    if (fwrite(bytes, 1, count, w->file) == count)
        return QAT_OK;
    return qat_file_fail(err, "write", w->temporary, errno);
}

static qat_status put_entry(qat_shard_writer *w, const char *name, const void *bytes, size_t count,
                            qat_error *err)
{
    uint8_t header[QAT_TAR_BLOCK];
    qat_tar_make_header(header, name, count);
    qat_status st = put(w, header, sizeof header, err);
    if (!st)
        st = put(w, bytes, count, err);
    if (!st)
        st = put(w, zeros, (size_t)(entry_bytes(count) - QAT_TAR_BLOCK - count), err);
    return st;
}

static qat_status begin(qat_shard_writer *w, qat_error *err)
{
    int const n =
        snprintf(w->path, sizeof w->path, "%s/%s-%06d.tar", w->folder, w->prefix, w->shards++);
    int const m = snprintf(w->temporary, sizeof w->temporary, "%s.qat.tmp", w->path);
    if (n < 0 || m < 0 || (size_t)m >= sizeof w->temporary)
        return qat_fail(err, QAT_ERR_ARGUMENT, "%.200s...: a path that is too long", w->folder);
    w->at = 0;
    w->file = fopen(w->temporary, "wb");
    return w->file ? QAT_OK : qat_file_fail(err, "create", w->temporary, errno);
}

qat_status qat_shard_finish(qat_shard_writer *w, qat_error *err)
{
    qat_writer text = {0};
    char index[QAT_SHARD_PATH_MAX + 8];
    if (!w->file)
        return QAT_OK;
    qat_status st = put(w, zeros, END, err);
    errno = 0;
    if (fclose(w->file) && !st)
        st = qat_file_fail(err, "write", w->temporary, errno);
    w->file = NULL;
    if (!st)
        st = qat_file_move(w->temporary, w->path, err);
    if (!st && !qat_index_text(&w->index, w->at, &text))
        st = qat_out_of_memory(err, w->path);
    (void)snprintf(index, sizeof index, "%s.idx", w->path);
    if (!st)
        st = qat_file_write_atomic(index, text.bytes, text.count, err);
    if (st)
        (void)unlink(w->temporary);
    w->written += w->at;
    qat_writer_free(&text);
    qat_index_free(&w->index);
    return st;
}

qat_status qat_shard_add(qat_shard_writer *w, const char *key, const char *ending,
                         const uint8_t *picture, size_t count, int32_t label, qat_error *err)
{
    char name[NAME_MAX_BYTES], class_name[NAME_MAX_BYTES], text[16];
    int const n = snprintf(text, sizeof text, "%d\n", (int)label);
    uint64_t const needed = entry_bytes(count) + entry_bytes((uint64_t)n) + END;
    (void)snprintf(name, sizeof name, "%s.%s", key, ending);
    (void)snprintf(class_name, sizeof class_name, "%s.cls", key);
    qat_status st = QAT_OK;
    if (w->file && w->index.count && w->at + needed > w->most)
        st = qat_shard_finish(w, err);
    if (!st && !w->file)
        st = begin(w, err);
    uint64_t const offset = w->at + QAT_TAR_BLOCK;
    if (!st)
        st = put_entry(w, name, picture, count, err);
    if (!st)
        st = put_entry(w, class_name, text, (size_t)n, err);
    if (!st && !qat_index_add(&w->index, offset, (uint32_t)count, label, name))
        st = qat_out_of_memory(err, w->path);
    return st;
}

void qat_shard_writer_free(qat_shard_writer *w)
{
    if (w->file) {
        (void)fclose(w->file);
        (void)unlink(w->temporary);
    }
    w->file = NULL;
    qat_index_free(&w->index);
}
