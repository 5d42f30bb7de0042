/**
 * Pictures in TFRecords, as TensorFlow's scripts and TensorFlow Datasets write them. A file is a
 * sequence of records, each a tf.train.Example:
 *
 *     u64 length, u32 masked CRC-32C of the length, the message, u32 masked CRC-32C of the message
 *
 * All sums are checked, once when a file is indexed and each time that a picture is read.
 */
#include "datasets/packed/example.h"
#include "datasets/packed/packed.h"

#include "base/checksums/crc32c.h"
#include "base/files/file.h"
#include "base/number.h"
#include "base/shown.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEAD = 12, TAIL = 4, NAME_BYTES = 256 };

static unsigned long long llu(uint64_t n)
{
    return n;
}

static bool has_length(const uint8_t head[HEAD], uint64_t *length)
{
    qat_reader r = qat_reader_of(head, HEAD);
    *length = qat_read_u64(&r);
    return qat_read_u32(&r) == qat_masked_crc32c(head, HEAD - TAIL);
}

static bool has_sum(const uint8_t *message, size_t n)
{
    qat_reader r = qat_reader_of(message + n, TAIL);
    return qat_read_u32(&r) == qat_masked_crc32c(message, n);
}

/** The name of the picture's file without its folders, or else the record's number. */
static void name_of(const qat_example *e, size_t record, char name[NAME_BYTES])
{
    (void)snprintf(name, NAME_BYTES, "record %zu", record);
    if (!e->name || !e->name_bytes || e->name_bytes >= NAME_BYTES ||
        memchr(e->name, 0, e->name_bytes))
        return;
    char given[NAME_BYTES];
    memcpy(given, e->name, e->name_bytes);
    given[e->name_bytes] = 0;
    const char *slash = strrchr(given, '/');
    if (slash && !slash[1])
        return;
    if (qat_is_plain(given))
        (void)snprintf(name, NAME_BYTES, "%s", slash ? slash + 1 : given);
}

/* ------------------------------------------------------------------ a file from its beginning */

typedef struct walk {
    const qat_shard *shard;
    int fd;
    uint64_t at, end;
    uint8_t *message; /* of the record, and its sum */
    size_t room;
    qat_index *index;
    qat_error *err;
} walk;

/** Where a place is in the unpacked content. */
static uint64_t seen(const walk *w, uint64_t at)
{
    return at - w->shard->start;
}

static qat_status cut_off(const walk *w)
{
    return qat_fail(w->err, QAT_ERR_FORMAT,
                    "%s: truncated at byte %llu: the record that begins at byte %llu is not whole",
                    w->shard->path, llu(seen(w, w->end)), llu(seen(w, w->at)));
}

static qat_status damaged(const walk *w, const char *what)
{
    return qat_fail(w->err, QAT_ERR_FORMAT, "%s: the record at byte %llu %s", w->shard->path,
                    llu(seen(w, w->at)), what);
}

static qat_status make_room(walk *w, size_t bytes)
{
    if (bytes <= w->room)
        return QAT_OK;
    free(w->message);
    w->message = malloc(bytes);
    w->room = w->message ? bytes : 0;
    return w->message ? QAT_OK : qat_out_of_memory(w->err, w->shard->path);
}

static qat_status take_message(walk *w, size_t length)
{
    qat_example e;
    char name[NAME_BYTES];
    if (!has_sum(w->message, length))
        return damaged(w, "is damaged: its checksum is wrong");
    if (!qat_example_read(&e, w->message, length))
        return damaged(w, "is no tf.train.Example");
    if (!e.picture)
        return damaged(w, "has no picture: no image/encoded or image");
    if (e.label < 0 || e.label > QAT_INDEX_MAX_LABEL)
        return damaged(w, "has no class in 0..65535: no image/class/label or label");
    name_of(&e, w->index->count, name);
    return qat_index_add(w->index, seen(w, w->at) + HEAD, (uint32_t)length, (int32_t)e.label, name)
               ? QAT_OK
               : qat_out_of_memory(w->err, w->shard->path);
}

static qat_status take_record(walk *w)
{
    uint8_t head[HEAD];
    uint64_t length;
    if (w->end - w->at < HEAD + TAIL)
        return cut_off(w);
    qat_status st = qat_file_read_at(w->fd, w->shard->path, w->at, head, HEAD, w->err);
    if (st)
        return st;
    if (!has_length(head, &length))
        return damaged(w, w->at == 0 ? "has no length with its checksum: no TFRecord"
                                     : "is damaged: the checksum of its length is "
                                       "wrong");
    if (length > w->end - w->at - HEAD - TAIL)
        return cut_off(w);
    if (length > QAT_INDEX_MAX_PART)
        return damaged(w, "has more than 1 GiB");
    st = make_room(w, (size_t)length + TAIL);
    if (!st)
        st = qat_file_read_at(w->fd, w->shard->path, w->at + HEAD, w->message,
                              (size_t)length + TAIL, w->err);
    if (!st)
        st = take_message(w, (size_t)length);
    w->at += HEAD + length + TAIL;
    return st;
}

static qat_status scan(const qat_shard *shard, qat_index *index, qat_error *err)
{
    struct stat there;
    int const fd = shard->fd >= 0 ? shard->fd : open(shard->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return qat_file_fail(err, "open", shard->path, errno);
    qat_status st = fstat(fd, &there) ? qat_file_fail(err, "read", shard->path, errno) : QAT_OK;
    walk w = {.shard = shard, .fd = fd, .at = shard->start, .index = index, .err = err};
    if (!st)
        w.end = shard->fd >= 0 ? shard->end : (uint64_t)there.st_size;
    while (!st && w.at < w.end)
        st = take_record(&w);
    if (fd != shard->fd)
        (void)close(fd);
    free(w.message);
    return st;
}

/* ------------------------------------------------------------------ one picture */

static qat_status find(qat_part *part, size_t size, const char *name, qat_error *err)
{
    uint64_t length;
    qat_example e;
    bool const placed = has_length(part->bytes, &length) && length == size;
    if (!placed)
        return qat_fail(err, QAT_ERR_FORMAT,
                        "%s: it is not where the index says; remove the file .idx", name);
    if (!has_sum(part->bytes + HEAD, size) || !qat_example_read(&e, part->bytes + HEAD, size) ||
        !e.picture)
        return qat_fail(err, QAT_ERR_FORMAT, "%s: a damaged record: its checksum is wrong", name);
    part->picture = e.picture;
    part->count = e.picture_bytes;
    part->label = e.label >= 0 && e.label <= QAT_INDEX_MAX_LABEL ? (int32_t)e.label : -1;
    return QAT_OK;
}

/** "-00000-of-01024", as TensorFlow's scripts end the names of shards. */
static bool has_number(const char *name, size_t n)
{
    size_t i = n;
    while (i > 0 && qat_is_digit(name[i - 1]))
        i--;
    if (i == n || i < 4 || memcmp(name + i - 4, "-of-", 4) != 0)
        return false;
    return i > 4 && qat_is_digit(name[i - 5]);
}

static bool is_tfrecord(const char *name)
{
    static const char *const endings[] = {".tfrecord", ".tfrecords"};
    size_t n = strlen(name);
    n -= qat_file_is_gzip(name) ? 3 : 0;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const char *found = strstr(name, endings[i]);
        size_t const end = found ? (size_t)(found - name) + strlen(endings[i]) : 0;
        if (found && (end == n || name[end] == '-'))
            return end == n || has_number(name, n);
    }
    return has_number(name, n);
}

static const qat_packed_format format = {.is_shard = is_tfrecord,
                                         .endings = ".tfrecord, -00000-of-01024, perhaps with .gz",
                                         .unpacks = true,
                                         .scan = scan,
                                         .before = HEAD,
                                         .after = TAIL,
                                         .find = find};

static qat_status open_tfrecord(qat_dataset *dataset, const qat_dataset_options *options,
                                qat_split split, qat_error *err)
{
    return qat_packed_open(dataset, &format, options, split, err);
}

const qat_dataset_kind qat_kind_tfrecord = QAT_PACKED_KIND("tfrecord", open_tfrecord);
