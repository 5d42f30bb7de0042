#include "datasets/packed/index.h"

#include "base/files/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

enum { LEAST_LINE = 8, FIRST_CAPACITY = 256, MAX_FILE_BYTES = 1 << 28 };

static const char ending[] = ".idx";

void qat_index_free(qat_index *index)
{
    free(index->places);
    qat_writer_free(&index->names);
    *index = (qat_index){0};
}

bool qat_index_add(qat_index *index, uint64_t offset, uint32_t size, int32_t label,
                   const char *name)
{
    if (index->count == index->capacity) {
        size_t const capacity = index->capacity ? 2 * index->capacity : FIRST_CAPACITY;
        qat_place *grown = realloc(index->places, capacity * sizeof *grown);
        if (!grown)
            return false;
        index->places = grown;
        index->capacity = capacity;
    }
    if (index->names.count > UINT32_MAX)
        return false;
    index->places[index->count++] = (qat_place){
        .offset = offset, .size = size, .label = label, .name = (uint32_t)index->names.count};
    qat_write_bytes(&index->names, name, strlen(name) + 1);
    return !index->names.failed;
}

const char *qat_index_name(const qat_index *index, size_t i)
{
    return (const char *)index->names.bytes + index->places[i].name;
}

/* ------------------------------------------------------------------ the file */

static char *index_path(const char *shard)
{
    char *path = malloc(strlen(shard) + sizeof ending);
    if (path)
        (void)sprintf(path, "%s%s", shard, ending);
    return path;
}

static uint32_t crc_of(const void *bytes, size_t n)
{
    return (uint32_t)crc32_z(0, bytes, n);
}

bool qat_index_text(const qat_index *index, uint64_t shard_bytes, qat_writer *text)
{
    qat_writer lines = {0};
    for (size_t i = 0; i < index->count; i++) {
        const qat_place *p = &index->places[i];
        qat_write_text(&lines, "%" PRIu64 " %" PRIu32 " %" PRId32 " %s\n", p->offset, p->size,
                       p->label, qat_index_name(index, i));
    }
    qat_write_text(text, "qat-index 1 %" PRIu64 " %zu %08" PRIx32 "\n", shard_bytes, index->count,
                   lines.failed ? 0 : crc_of(lines.bytes, lines.count));
    if (lines.count)
        qat_write_bytes(text, lines.bytes, lines.count);
    bool const good = !lines.failed && !text->failed;
    qat_writer_free(&lines);
    return good;
}

/** Did a change before b? Equal times do not say so. */
static bool changed_before(const struct stat *a, const struct stat *b)
{
    return a->st_ctim.tv_sec < b->st_ctim.tv_sec ||
           (a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec < b->st_ctim.tv_nsec);
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           !changed_before(a, b) && !changed_before(b, a);
}

void qat_index_save(const qat_index *index, const char *shard, const struct stat *scanned)
{
    struct stat now;
    qat_writer text = {0};
    char *path = index_path(shard);
    if (path && stat(shard, &now) == 0 && is_same(&now, scanned) &&
        qat_index_text(index, (uint64_t)now.st_size, &text))
        (void)qat_file_write_atomic(path, text.bytes, text.count, NULL);
    qat_writer_free(&text);
    free(path);
}

/** A number in decimal digits, and the character that must follow it. */
static bool take_number(char **at, uint64_t most, char after, uint64_t *number)
{
    char *end;
    if (**at < '0' || **at > '9')
        return false;
    *number = strtoull(*at, &end, 10);
    if (*end != after || *number > most)
        return false;
    *at = end + 1;
    return true;
}

/** Take the lines of the samples, each of which must lie inside the shard. */
static bool take_lines(qat_index *index, char *at, uint64_t shard_bytes, uint64_t samples)
{
    for (uint64_t i = 0; i < samples; i++) {
        uint64_t offset, size, label;
        if (!take_number(&at, shard_bytes, ' ', &offset) ||
            !take_number(&at, shard_bytes - offset, ' ', &size) || size > QAT_INDEX_MAX_PART ||
            !take_number(&at, QAT_INDEX_MAX_LABEL, ' ', &label))
            return false;
        char *end = strchr(at, '\n');
        if (!end || end == at)
            return false;
        *end = 0;
        if (!qat_index_add(index, offset, (uint32_t)size, (int32_t)label, at))
            return false;
        at = end + 1;
    }
    return !*at;
}

static bool take_text(qat_index *index, char *text, size_t count, uint64_t shard_bytes,
                      bool unpacked)
{
    static const char magic[] = "qat-index 1 ";
    uint64_t said, samples;
    char *at = text + sizeof magic - 1, *end;
    if (strncmp(text, magic, sizeof magic - 1) != 0 || !take_number(&at, UINT64_MAX, ' ', &said) ||
        said != shard_bytes || !take_number(&at, count / LEAST_LINE, ' ', &samples))
        return false;
    unsigned long const crc = strtoul(at, &end, 16);
    if (*end != '\n' || crc_of(end + 1, count - (size_t)(end + 1 - text)) != crc)
        return false;
    return take_lines(index, end + 1, unpacked ? UINT64_MAX : shard_bytes, samples);
}

bool qat_index_load(qat_index *index, const char *shard)
{
    struct stat of_shard, of_index;
    uint8_t *text = NULL;
    size_t count = 0;
    bool const unpacked = qat_file_is_gzip(shard); /* offsets are larger then */
    char *path = index_path(shard);
    bool good = path && stat(shard, &of_shard) == 0 && stat(path, &of_index) == 0 &&
                S_ISREG(of_index.st_mode) && changed_before(&of_shard, &of_index) &&
                qat_file_read(path, MAX_FILE_BYTES, &text, &count, NULL) == QAT_OK;
    if (good)
        good = take_text(index, (char *)text, count, (uint64_t)of_shard.st_size, unpacked);
    if (!good)
        qat_index_free(index);
    free(text);
    free(path);
    return good;
}
