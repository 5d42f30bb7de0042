/**
 * The messages of tensorflow/core/example, by their fields:
 *
 *     Example   1: Features
 *     Features  1: an entry of a map, repeated: 1: the key, 2: Feature
 *     Feature   1: BytesList, 2: FloatList, 3: Int64List
 *     BytesList 1: bytes, repeated       Int64List 1: varints, packed or repeated
 *
 * Only the first value of a list matters here.
 */
#include "datasets/packed/example.h"

#include "base/bytes.h"

#include <string.h>

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5, VARINT_BYTES = 10 };

typedef struct field {
    uint64_t number, value; /* value of a varint */
    int type;
    const uint8_t *bytes;
    size_t count;
} field;

static uint64_t read_varint(qat_reader *r)
{
    uint64_t value = 0;
    for (int i = 0; i < VARINT_BYTES; i++) {
        uint8_t const b = qat_read_u8(r);
        value |= (uint64_t)(b & 127) << (7 * i);
        if (!(b & 128))
            return value;
    }
    r->bad = true;
    return 0;
}

/** Read the next field. Returns false at the end, or where r is bad. */
static bool next_field(qat_reader *r, field *f)
{
    if (r->bad || r->at == r->end)
        return false;
    uint64_t const tag = read_varint(r);
    *f = (field){.number = tag >> 3, .type = (int)(tag & 7)};
    switch (f->type) {
    case VARINT:
        f->value = read_varint(r);
        break;
    case FIXED64:
        (void)qat_read_u64(r);
        break;
    case FIXED32:
        (void)qat_read_u32(r);
        break;
    case BYTES: {
        uint64_t const n = read_varint(r);
        r->bad |= n > SIZE_MAX;
        f->count = (size_t)n;
        f->bytes = qat_read_bytes(r, f->count);
        break;
    }
    default: /* groups are not used */
        r->bad = true;
    }
    return !r->bad;
}

static qat_reader inside(const field *f)
{
    return qat_reader_of(f->bytes, f->count);
}

/** The first value of the list in a Feature: bytes, or (found->type VARINT) an integer. */
static bool first_value(const field *feature, field *found)
{
    qat_reader lists = inside(feature);
    field list, value;
    *found = (field){0};
    while (next_field(&lists, &list)) {
        qat_reader values = inside(&list);
        if (list.type != BYTES || (list.number != 1 && list.number != 3) || found->type)
            continue;
        if (!next_field(&values, &value) || value.number != 1)
            continue;
        if (value.type != BYTES && !(list.number == 3 && value.type == VARINT))
            continue;
        if (list.number == 3 && value.type == BYTES && !value.count)
            continue;                                  /* packed, and none */
        if (list.number == 3 && value.type == BYTES) { /* packed */
            qat_reader packed = inside(&value);
            value.value = read_varint(&packed);
            if (packed.bad)
                return false;
        }
        *found = value;
        found->type = list.number == 3 ? VARINT : value.type;
        found->number = list.number;
    }
    return !lists.bad;
}

static bool is_key(const field *key, const char *name)
{
    return key->count == strlen(name) && memcmp(key->bytes, name, key->count) == 0;
}

static void take(qat_example *e, const field *key, const field *value)
{
    bool const bytes = value->number == 1 && value->type == BYTES;
    bool const number = value->number == 3;
    if (bytes && (is_key(key, "image/encoded") || (is_key(key, "image") && !e->picture))) {
        e->picture = value->bytes;
        e->picture_bytes = value->count;
    } else if (bytes && (is_key(key, "image/filename") || is_key(key, "file_name"))) {
        e->name = (const char *)value->bytes;
        e->name_bytes = value->count;
    } else if (number &&
               (is_key(key, "image/class/label") || (is_key(key, "label") && e->label < 0))) {
        e->label = value->value > INT64_MAX ? -1 : (int64_t)value->value;
    }
}

static bool take_entry(qat_example *e, const field *entry)
{
    qat_reader r = inside(entry);
    field f, key = {0}, value = {0}, first;
    while (next_field(&r, &f)) {
        if (f.number == 1 && f.type == BYTES)
            key = f;
        if (f.number == 2 && f.type == BYTES)
            value = f;
    }
    if (r.bad || (value.bytes && !first_value(&value, &first)))
        return false;
    if (key.bytes && value.bytes)
        take(e, &key, &first);
    return true;
}

bool qat_example_read(qat_example *e, const uint8_t *bytes, size_t count)
{
    qat_reader message = qat_reader_of(bytes, count);
    field features, entry;
    *e = (qat_example){.label = -1};
    while (next_field(&message, &features)) {
        qat_reader entries = inside(&features);
        if (features.number != 1 || features.type != BYTES)
            continue;
        while (next_field(&entries, &entry))
            if (entry.number == 1 && entry.type == BYTES && !take_entry(e, &entry))
                return false;
        if (entries.bad)
            return false;
    }
    return !message.bad;
}
