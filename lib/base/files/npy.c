#include "base/files/npy.h"

#include "base/arena.h"
#include "base/bytes.h"
#include "base/files/file.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "items are copied as they lie in the file, which is little-endian"
#endif

/*
 * Version 1.0: byte 0 "\x93NUMPY", byte 6 major 1, minor 0, byte 8 header length (u16), byte 10
 * header text, then the items. The text is a Python dict such as
 *     {'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }
 * It is padded with spaces and a newline until the items begin at a multiple of 64.
 */
enum { PREFIX = 10, ALIGN = 64, TYPES = 7, TYPE_NAME_MAX = 64 };
static const char magic[] = "\x93NUMPY";
static const char *const type_names[TYPES] = {"|u1", "|i1", "<i2", "<i4", "<i8", "<f4", "<f8"};
static const unsigned char type_bytes[TYPES] = {1, 1, 2, 4, 8, 4, 8};

size_t qat_npy_item_bytes(qat_npy_type type)
{
    return type_bytes[type];
}

const char *qat_npy_type_name(qat_npy_type type)
{
    return type_names[type];
}

void qat_npy_free(qat_npy *array)
{
    qat_aligned_free(array->data);
    *array = (qat_npy){0};
}

/* Reads the header's text from left to right. */

typedef struct cursor {
    const char *at, *end, *name; /* name of the file, for messages */
    qat_error *err;
} cursor;

static qat_status malformed(const cursor *c, const char *expected)
{
    return qat_fail(c->err, QAT_ERR_FORMAT, "%s: malformed .npy header, expected %s", c->name,
                    expected);
}

static void skip_spaces(cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n'))
        c->at++;
}

/** If this text is next, step over it and return true. */
static bool accept(cursor *c, const char *text)
{
    size_t const n = strlen(text);
    skip_spaces(c);
    if ((size_t)(c->end - c->at) < n || memcmp(c->at, text, n) != 0)
        return false;
    c->at += n;
    return true;
}

/** A quoted string of at most max - 1 characters. */
static bool accept_string(cursor *c, char *text, size_t max)
{
    skip_spaces(c);
    if (c->at >= c->end || (*c->at != '\'' && *c->at != '"'))
        return false;
    char const quote = *c->at++;
    size_t n = 0;
    while (c->at < c->end && *c->at != quote && n + 1 < max)
        text[n++] = *c->at++;
    text[n] = '\0';
    if (c->at >= c->end || *c->at != quote)
        return false;
    c->at++;
    return true;
}

static qat_status read_type(cursor *c, qat_npy *array)
{
    char name[TYPE_NAME_MAX];
    if (!accept_string(c, name, sizeof name))
        return malformed(c, "a type such as '<f4' after 'descr'");
    if (strcmp(name, "|b1") == 0) { /* bool: 0 or 1 */
        array->type = QAT_NPY_U8;
        return QAT_OK;
    }
    for (int t = 0; t < TYPES; t++) {
        if (strcmp(name, type_names[t]) == 0) {
            array->type = (qat_npy_type)t;
            return QAT_OK;
        }
    }
    return qat_fail(c->err, QAT_ERR_UNSUPPORTED,
                    "%s: unsupported .npy type '%s' (have |b1 |u1 |i1 <i2 <i4 <i8 <f4 <f8)",
                    c->name, name);
}

/** A decimal number below 2^63. */
static bool accept_number(cursor *c, int64_t *value)
{
    skip_spaces(c);
    if (c->at >= c->end || *c->at < '0' || *c->at > '9')
        return false;
    *value = 0;
    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++) {
        int const digit = *c->at - '0';
        if (*value > (INT64_MAX - digit) / 10)
            return false;
        *value = *value * 10 + digit;
    }
    return true;
}

static qat_status read_shape(cursor *c, qat_npy *array)
{
    if (!accept(c, "("))
        return malformed(c, "'(' after 'shape'");
    for (array->rank = 0; !accept(c, ")"); array->rank++) {
        if (array->rank > 0 && !accept(c, ","))
            return malformed(c, "',' between dimensions");
        if (array->rank > 0 && accept(c, ")"))
            return QAT_OK; /* the comma after the last number: (3,) */
        if (array->rank == QAT_NPY_MAX_RANK)
            return qat_fail(c->err, QAT_ERR_UNSUPPORTED, "%s: more than %d dimensions", c->name,
                            QAT_NPY_MAX_RANK);
        if (!accept_number(c, &array->dims[array->rank]))
            return malformed(c, "a dimension, 0 to 2^63 - 1");
    }
    return QAT_OK;
}

static qat_status read_order(cursor *c)
{
    if (accept(c, "False"))
        return QAT_OK;
    if (accept(c, "True"))
        return qat_fail(
            c->err, QAT_ERR_UNSUPPORTED,
            "%s: the array is in Fortran order; save numpy.ascontiguousarray(x) instead", c->name);
    return malformed(c, "False or True after 'fortran_order'");
}

/** Read the three keys, each once, in any order. */
static qat_status read_header(cursor *c, qat_npy *array)
{
    static const char *const keys[3] = {"descr", "fortran_order", "shape"};
    unsigned seen = 0;
    char key[TYPE_NAME_MAX];
    if (!accept(c, "{"))
        return malformed(c, "'{'");
    while (!accept(c, "}")) {
        unsigned k = 0;
        if (!accept_string(c, key, sizeof key) || !accept(c, ":"))
            return malformed(c, "'key':");
        while (k < 3 && strcmp(key, keys[k]) != 0)
            k++;
        if (k == 3 || (seen & 1U << k))
            return malformed(c, "each of descr, fortran_order, shape once");
        seen |= 1U << k;
        qat_status st = k == 0   ? read_type(c, array)
                        : k == 1 ? read_order(c)
                                 : read_shape(c, array);
        if (st)
            return st;
        if (!accept(c, ",")) {
            if (!accept(c, "}"))
                return malformed(c, "',' or '}'");
            break;
        }
    }
    return seen == 7 ? QAT_OK : malformed(c, "descr, fortran_order and shape");
}

/** The product of the dims. *count stays below SIZE_MAX / item. */
static qat_status count_items(const cursor *c, qat_npy *array)
{
    size_t const most = SIZE_MAX / qat_npy_item_bytes(array->type);
    array->count = 1;
    for (int i = 0; i < array->rank; i++) {
        uint64_t const dim = (uint64_t)array->dims[i];
        if (array->count && dim > most / array->count)
            return qat_fail(c->err, QAT_ERR_FORMAT,
                            "%s: the product of the dimensions overflows at dimension %d (%" PRId64
                            ")",
                            c->name, i, array->dims[i]);
        array->count *= (size_t)dim;
    }
    return QAT_OK;
}

static qat_status wrong_size(const char *name, size_t bytes, uint64_t found, qat_error *err)
{
    return qat_fail(err, QAT_ERR_FORMAT,
                    "%s: %s: the shape asks for %zu bytes of data, but the file has %llu", name,
                    found < bytes ? "truncated" : "too long", bytes, (unsigned long long)found);
}

/** Take the items, which must be exactly the `left` bytes that are the rest of the file. */
static qat_status take_items(qat_reader *r, size_t left, const char *name, qat_npy *array,
                             qat_error *err)
{
    size_t const bytes = array->count * qat_npy_item_bytes(array->type);
    if (left != bytes)
        return wrong_size(name, bytes, left, err);
    array->data = qat_aligned_alloc(bytes);
    if (!array->data)
        return qat_out_of_memory(err, name);
    if (bytes)
        memcpy(array->data, qat_read_bytes(r, bytes), bytes);
    return QAT_OK;
}

/** Read magic, version and the text of the header; afterwards the reader is at the items. */
static qat_status read_start(qat_reader *r, size_t count, const char *name, qat_npy *array,
                             qat_error *err)
{
    const char *found = qat_read_bytes(r, sizeof magic - 1);
    unsigned const major = qat_read_u8(r), minor = qat_read_u8(r);
    size_t const header = qat_read_u16(r);
    if (!found || memcmp(found, magic, sizeof magic - 1) != 0)
        return qat_fail(err, QAT_ERR_FORMAT, "%s: not an .npy file (no \\x93NUMPY at its start)",
                        name);
    const char *text = qat_read_bytes(r, header);
    if (!r->bad && (major != 1 || minor != 0))
        return qat_fail(err, QAT_ERR_UNSUPPORTED,
                        "%s: .npy version %u.%u, but only 1.0 can be read", name, major, minor);
    if (r->bad)
        return qat_fail(err, QAT_ERR_FORMAT, "%s: truncated within the .npy header (%zu bytes)",
                        name, count);

    cursor c = {.at = text, .end = text + header, .name = name, .err = err};
    qat_status const st = read_header(&c, array);
    return st ? st : count_items(&c, array);
}

qat_status qat_npy_parse(qat_npy *array, const void *bytes, size_t count, const char *name,
                         qat_error *err)
{
    qat_reader r = qat_reader_of(bytes, count);
    qat_npy made = {0};
    *array = (qat_npy){0};
    qat_status st = read_start(&r, count, name, &made, err);
    if (!st)
        st = take_items(&r, (size_t)(r.end - r.at), name, &made, err);
    if (!st)
        *array = made;
    return st;
}

qat_status qat_npy_read(qat_npy *array, const char *path, qat_error *err)
{
    return qat_npy_read_within(array, path, SIZE_MAX, "", err);
}

/** Check the size that the header gives before the rest is read; *whole: bytes of the file. */
static qat_status check_start(const char *path, const uint8_t *start, const qat_file_look *look,
                              uint64_t most, const char *key, size_t *whole, qat_error *err)
{
    qat_reader r = qat_reader_of(start, look->count);
    qat_npy about = {0};
    qat_status const st = read_start(&r, look->count, path, &about, err);
    if (st)
        return st;
    size_t const header = (size_t)(r.at - start);
    size_t const items = about.count * qat_npy_item_bytes(about.type);
    if (look->exact && look->size != header + (uint64_t)items)
        return wrong_size(path, items, look->size - header, err);
    if (items > SIZE_MAX / 4 || header + 2 * (uint64_t)items > most)
        return qat_fail(err, QAT_ERR_LIMIT,
                        "%s: its %llu MiB take twice as much memory while it is read, but %llu MiB "
                        "are allowed (%s)",
                        path, qat_mib(items), qat_mib(most), key);
    *whole = header + items;
    return QAT_OK;
}

qat_status qat_npy_read_within(qat_npy *array, const char *path, uint64_t most, const char *key,
                               qat_error *err)
{
    enum { MOST_HEADER = PREFIX + UINT16_MAX };
    qat_file_look look = {0};
    uint8_t *bytes = NULL, *start = malloc(MOST_HEADER);
    size_t whole = 0, count = 0;
    *array = (qat_npy){0};
    if (!start)
        return qat_out_of_memory(err, path);
    qat_status st = qat_file_look_at(path, start, MOST_HEADER, &look, err);
    if (!st && look.once)
        whole = most < SIZE_MAX / 4 ? (size_t)most / 2 : SIZE_MAX / 4;
    else if (!st)
        st = check_start(path, start, &look, most, key, &whole, err);
    free(start);
    if (!st)
        st = qat_file_read(path, whole, &bytes, &count, err);
    if (!st)
        st = qat_npy_parse(array, bytes, count, path, err);
    free(bytes);
    return st;
}

qat_status qat_npy_bytes(qat_writer *to, qat_npy_type type, int rank, const int64_t *dims,
                         const void *data, const char *name, qat_error *err)
{
    qat_npy shape = {.type = type, .rank = rank};
    cursor const c = {.name = name, .err = err};
    if (rank < 0 || rank > QAT_NPY_MAX_RANK)
        return qat_fail(err, QAT_ERR_ARGUMENT, "%s: rank %d, but at most %d is possible", name,
                        rank, QAT_NPY_MAX_RANK);
    qat_writer text = {0};
    qat_write_text(&text, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                   qat_npy_type_name(type));
    for (int i = 0; i < rank; i++) {
        shape.dims[i] = dims[i];
        qat_write_text(&text, i + 1 < rank ? "%" PRId64 ", " : "%" PRId64, dims[i]);
    }
    qat_write_text(&text, rank == 1 ? ",), }" : "), }");
    while (!text.failed && (PREFIX + text.count + 1) % ALIGN)
        qat_write_u8(&text, ' ');
    qat_write_u8(&text, '\n');

    qat_status st = count_items(&c, &shape);
    if (!st) {
        qat_write_bytes(to, magic, sizeof magic - 1);
        qat_write_u8(to, 1);
        qat_write_u8(to, 0);
        qat_write_u16(to, (uint16_t)text.count); /* at most 8 dims: a few hundred characters */
        qat_write_bytes(to, text.bytes, text.count);
        qat_write_bytes(to, data, shape.count * qat_npy_item_bytes(type));
        st = text.failed || to->failed ? qat_out_of_memory(err, name) : QAT_OK;
    }
    qat_writer_free(&text);
    return st;
}

qat_status qat_npy_write(const char *path, qat_npy_type type, int rank, const int64_t *dims,
                         const void *data, qat_error *err)
{
    qat_writer w = {0};
    qat_status st = qat_npy_bytes(&w, type, rank, dims, data, path, err);
    if (!st)
        st = qat_file_write_atomic(path, w.bytes, w.count, err);
    qat_writer_free(&w);
    return st;
}
