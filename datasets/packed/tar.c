#include "datasets/packed/tar.h"

#include "base/files/file.h"
#include "base/shown.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Fields of a header: where they begin, and their length. */
enum {
    NAME = 0,
    NAME_LENGTH = 100,
    MODE = 100,
    OWNER = 108,
    GROUP = 116,
    SHORT_LENGTH = 8,
    SIZE = 124,
    TIME = 136,
    LONG_LENGTH = 12,
    SUM = 148,
    TYPE = 156,
    MAGIC = 257,
    PREFIX = 345,
    PREFIX_LENGTH = 155
};

enum { MAX_RECORDS = 1 << 20 }; /* bytes of the pax records of one entry */

static unsigned long long llu(uint64_t n)
{
    return n;
}

qat_status qat_tar_open(qat_tar *tar, const char *path, qat_error *err)
{
    struct stat there;
    *tar = (qat_tar){.path = path, .fd = open(path, O_RDONLY | O_CLOEXEC)};
    if (tar->fd < 0 || fstat(tar->fd, &there))
        return qat_file_fail(err, "open", path, errno);
    if (!S_ISREG(there.st_mode))
        return qat_fail(err, QAT_ERR_IO, "%s: not a regular file", path);
    tar->bytes = (uint64_t)there.st_size;
    return QAT_OK;
}

void qat_tar_close(qat_tar *tar)
{
    if (tar->fd >= 0)
        (void)close(tar->fd);
    tar->fd = -1;
}

qat_status qat_tar_read(const qat_tar *tar, uint64_t offset, void *bytes, size_t count,
                        qat_error *err)
{
    return qat_file_read_at(tar->fd, tar->path, offset, bytes, count, err);
}

/* ------------------------------------------------------------------ headers */

/** Octal digits between spaces; or, where the first bit is set, 8 bytes and more, big-endian. */
static bool number_of(const uint8_t *field, int length, uint64_t *number)
{
    int i = 0;
    *number = 0;
    if (*field & 0x80) {
        bool good = *field == 0x80;
        for (i = 1; i < length; i++) {
            good = good && *number <= UINT64_MAX >> 8;
            *number = *number << 8 | field[i];
        }
        return good;
    }
    while (i < length && field[i] == ' ')
        i++;
    for (; i < length && field[i] >= '0' && field[i] <= '7'; i++)
        *number = *number << 3 | (uint64_t)(field[i] - '0'); /* 12 digits at most */
    return i == length || field[i] == ' ' || field[i] == 0;
}

/** The sum of a header's bytes, with spaces in the place of the sum. */
static uint64_t sum_of(const uint8_t *block, bool is_signed)
{
    int64_t sum = 0;
    for (int i = 0; i < QAT_TAR_BLOCK; i++) {
        uint8_t const b = i >= SUM && i < SUM + SHORT_LENGTH ? ' ' : block[i];
        sum += is_signed ? (int8_t)b : b;
    }
    return (uint64_t)sum;
}

static bool has_sum(const uint8_t *block)
{
    uint64_t sum;
    return number_of(block + SUM, SHORT_LENGTH, &sum) &&
           (sum == sum_of(block, false) || sum == sum_of(block, true)); /* old programs */
}

bool qat_tar_is_header(const uint8_t block[QAT_TAR_BLOCK], uint64_t size)
{
    uint64_t said;
    return has_sum(block) && number_of(block + SIZE, LONG_LENGTH, &said) &&
           (said == size || said == 0);
}

static bool is_zero(const uint8_t *block)
{
    for (int i = 0; i < QAT_TAR_BLOCK; i++)
        if (block[i])
            return false;
    return true;
}

static qat_status not_a_tar(const qat_tar *tar, uint64_t at, const uint8_t *block, qat_error *err)
{
    if (at == 0 && block[0] == 0x1f && block[1] == 0x8b)
        return qat_fail(err, QAT_ERR_FORMAT,
                        "%s: a gzip file; pictures in it cannot be read in any order: gunzip it",
                        tar->path);
    return qat_fail(err, QAT_ERR_FORMAT, "%s: no header of a tar archive at byte %llu", tar->path,
                    llu(at));
}

static qat_status cut_off(const qat_tar *tar, qat_error *err)
{
    return qat_fail(err, QAT_ERR_FORMAT,
                    "%s: truncated at byte %llu: the two blocks of zeros that end a tar archive "
                    "are not there",
                    tar->path, llu(tar->bytes));
}

/** The name in a header; the prefix of ustar comes first. */
static void name_of(const uint8_t *block, char name[QAT_TAR_NAME_MAX])
{
    bool const ustar = memcmp(block + MAGIC, "ustar\0", 6) == 0; /* "ustar  ": GNU, no prefix */
    const char *prefix = ustar ? (const char *)block + PREFIX : "";
    int const n = (int)strnlen(prefix, PREFIX_LENGTH);
    (void)snprintf(name, QAT_TAR_NAME_MAX, "%.*s%s%.*s", n, prefix, n ? "/" : "", NAME_LENGTH,
                   (const char *)block + NAME);
}

/* ------------------------------------------------------------------ what stands before a header */

/** What the records before a header say of the next entry. */
typedef struct said {
    char name[QAT_TAR_NAME_MAX];
    uint64_t size;
    bool has_name, has_size;
} said;

static bool take_name(said *s, const char *name, size_t n)
{
    if (n >= sizeof s->name || memchr(name, 0, n))
        return false;
    memcpy(s->name, name, n);
    s->name[n] = 0;
    s->has_name = true;
    return true;
}

static bool take_size(said *s, const char *text)
{
    char *end;
    errno = 0;
    s->size = strtoull(text, &end, 10);
    s->has_size = true;
    return *text >= '0' && *text <= '9' && *end == '\n' && errno == 0;
}

/** Records "LENGTH KEY=VALUE\n" of pax; `text` ends with a byte 0. */
static bool take_records(said *s, char *text, size_t n)
{
    while (n) {
        char *key;
        unsigned long long const length = strtoull(text, &key, 10);
        if (*text < '0' || *text > '9' || *key != ' ' || length > n ||
            length <= (size_t)(key + 1 - text) || text[length - 1] != '\n')
            return false;
        key++;
        char *value = memchr(key, '=', (size_t)(text + length - key));
        if (!value)
            return false;
        value++;
        size_t const key_length = (size_t)(value - 1 - key);
        if (key_length == 4 && memcmp(key, "path", 4) == 0 &&
            !take_name(s, value, (size_t)(text + length - 1 - value)))
            return false;
        if (key_length == 4 && memcmp(key, "size", 4) == 0 && !take_size(s, value))
            return false;
        text += length;
        n -= (size_t)length;
    }
    return true;
}

/** Read the data of an entry that says something of the next one. */
static qat_status read_said(const qat_tar *tar, const qat_tar_entry *e, char type, said *s,
                            qat_error *err)
{
    if (e->size > MAX_RECORDS)
        return qat_fail(err, QAT_ERR_FORMAT, "%s: byte %llu: a name or records of %llu bytes",
                        tar->path, llu(e->header), llu(e->size));
    size_t const n = (size_t)e->size;
    char *text = malloc(n + 1);
    if (!text)
        return qat_out_of_memory(err, tar->path);
    text[n] = 0;
    qat_status st = qat_tar_read(tar, e->data, text, n, err);
    if (!st && !(type == 'L' ? take_name(s, text, strnlen(text, n)) : take_records(s, text, n)))
        st = qat_fail(err, QAT_ERR_FORMAT, "%s: byte %llu: a name or records that cannot be read",
                      tar->path, llu(e->header));
    free(text);
    return st;
}

/* ------------------------------------------------------------------ entries */

/** Find where the entry's data lie and where the next header does; they must be in the archive. */
static qat_status place(qat_tar *tar, const uint8_t *block, const said *s, qat_tar_entry *e,
                        qat_error *err)
{
    char const type = (char)block[TYPE];
    bool const bare = type >= '1' && type <= '6'; /* links, devices, folders */
    if (!number_of(block + SIZE, LONG_LENGTH, &e->size) || type == 'S')
        return qat_fail(err, QAT_ERR_FORMAT, "%s: byte %llu: %s", tar->path, llu(e->header),
                        type == 'S' ? "a sparse file" : "a size that cannot be read");
    e->size = bare ? 0 : s->has_size ? s->size : e->size;
    e->data = tar->at + QAT_TAR_BLOCK;
    uint64_t const room = tar->bytes - e->data;
    if (e->size > room)
        return qat_fail(err, QAT_ERR_FORMAT,
                        "%s: truncated at byte %llu: %.200s begins at byte %llu and has %llu bytes",
                        tar->path, llu(tar->bytes), e->name, llu(e->data), llu(e->size));
    uint64_t const padding = (QAT_TAR_BLOCK - e->size % QAT_TAR_BLOCK) % QAT_TAR_BLOCK;
    tar->at = e->data + e->size + padding;
    return tar->at > tar->bytes ? cut_off(tar, err) : QAT_OK;
}

/** Read the block at which the next entry begins; *end: it is the end of the archive. */
static qat_status read_block(const qat_tar *tar, uint8_t *block, bool *end, qat_error *err)
{
    uint8_t second[QAT_TAR_BLOCK];
    *end = false;
    if (tar->bytes == 0)
        return qat_fail(err, QAT_ERR_FORMAT, "%s: empty file", tar->path);
    if (tar->bytes - tar->at < QAT_TAR_BLOCK)
        return cut_off(tar, err);
    qat_status st = qat_tar_read(tar, tar->at, block, QAT_TAR_BLOCK, err);
    if (st || !is_zero(block))
        return st;
    if (tar->bytes - tar->at < 2 * QAT_TAR_BLOCK)
        return cut_off(tar, err);
    st = qat_tar_read(tar, tar->at + QAT_TAR_BLOCK, second, QAT_TAR_BLOCK, err);
    *end = !st && is_zero(second);
    return st || *end ? st : not_a_tar(tar, tar->at, block, err);
}

qat_status qat_tar_next(qat_tar *tar, qat_tar_entry *e, bool *more, qat_error *err)
{
    uint8_t block[QAT_TAR_BLOCK];
    said s = {0};
    for (;;) {
        bool end;
        qat_status st = read_block(tar, block, &end, err);
        *more = !end;
        if (st || end)
            return st;
        if (!has_sum(block))
            return not_a_tar(tar, tar->at, block, err);
        char const type = (char)block[TYPE];
        bool const speaks = type == 'L' || type == 'x'; /* of the next entry */
        bool const passes = type == 'K' || type == 'g';
        static const said nothing;
        e->header = tar->at;
        name_of(block, e->name);
        st = place(tar, block, speaks || passes ? &nothing : &s, e, err);
        if (!st && speaks)
            st = read_said(tar, e, type, &s, err);
        if (st)
            return st;
        if (speaks || passes)
            continue;
        if (s.has_name)
            memcpy(e->name, s.name, sizeof e->name);
        e->is_link = type == '1' || type == '2';
        e->is_file = type == '0' || type == 0 || type == '7';
        if (qat_is_plain(e->name))
            return QAT_OK;
        return qat_fail(err, QAT_ERR_FORMAT,
                        "%s: byte %llu: the name %.200s has characters that are not allowed",
                        tar->path, llu(e->header), e->name);
    }
}

void qat_tar_make_header(uint8_t block[QAT_TAR_BLOCK], const char *name, uint64_t size)
{
    char *text = (char *)block;
    memset(block, 0, QAT_TAR_BLOCK);
    memcpy(text + NAME, name, strnlen(name, NAME_LENGTH));
    (void)snprintf(text + MODE, SHORT_LENGTH, "%07o", 0644U);
    (void)snprintf(text + OWNER, SHORT_LENGTH, "%07o", 0U);
    (void)snprintf(text + GROUP, SHORT_LENGTH, "%07o", 0U);
    (void)snprintf(text + SIZE, LONG_LENGTH, "%011llo", llu(size));
    (void)snprintf(text + TIME, LONG_LENGTH, "%011o", 0U);
    block[TYPE] = '0';
    memcpy(text + MAGIC,
           "ustar\0"
           "00",
           8);
    (void)snprintf(text + SUM, SHORT_LENGTH, "%06o", (unsigned)sum_of(block, false));
    block[SUM + SHORT_LENGTH - 1] = ' ';
}
