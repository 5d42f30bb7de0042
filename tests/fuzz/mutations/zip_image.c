#include "fuzz/mutations/zip_image.h"

#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { LOCAL = 0x04034b50, CENTRAL = 0x02014b50, END = 0x06054b50 };
enum { LOCAL_BYTES = 30, CENTRAL_BYTES = 46, END_BYTES = 22, DEFLATED = 8, VERSION = 20 };

static uint32_t get(const uint8_t *at, int bytes)
{
    uint32_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint32_t)at[i] << (8 * i);
    return value;
}

static void put(uint8_t *at, int bytes, size_t value)
{
    for (int i = 0; i < bytes; i++)
        at[i] = (uint8_t)(value >> (8 * i));
}

/* ------------------------------------------------------------------ reading */

static size_t unpack(const uint8_t *packed, size_t n, uint8_t *bytes, size_t most)
{
    z_stream z = {.next_in = (uint8_t *)packed, .avail_in = (unsigned)n};
    z.next_out = bytes;
    z.avail_out = (unsigned)most;
    if (inflateInit2(&z, -MAX_WBITS) != Z_OK)
        return 0;
    (void)inflate(&z, Z_FINISH);
    size_t const got = z.total_out;
    inflateEnd(&z);
    return got;
}

/** The local header at `at`; returns where its data end. */
static size_t read_entry(struct zip_image *z, const uint8_t *bytes, size_t size, size_t at)
{
    const uint8_t *head = bytes + at;
    size_t const name = get(head + 26, 2), start = at + LOCAL_BYTES + name + get(head + 28, 2);
    size_t const stated = get(head + 18, 4);
    if (start > size)
        return size;
    size_t const n = stated < size - start ? stated : size - start;
    struct zip_entry *e = zip_image_add(z, "", NULL, 0);
    if (!e)
        return size;
    e->name_bytes = name < ZIP_NAME - 1 ? name : ZIP_NAME - 1;
    memcpy(e->name, head + LOCAL_BYTES, e->name_bytes);
    e->packed = get(head + 8, 2) == DEFLATED;
    if (e->packed) {
        e->size = unpack(bytes + start, n, e->bytes, ZIP_BYTES);
    } else {
        e->size = n < ZIP_BYTES ? n : ZIP_BYTES;
        memcpy(e->bytes, bytes + start, e->size);
    }
    return start + n;
}

bool zip_image_read(struct zip_image *z, const uint8_t *bytes, size_t size)
{
    size_t at = 0;
    *z = (struct zip_image){0};
    while (at + LOCAL_BYTES <= size && get(bytes + at, 4) == LOCAL)
        at = read_entry(z, bytes, size, at);
    return z->n > 0;
}

struct zip_entry *zip_image_add(struct zip_image *z, const char *name, const uint8_t *bytes,
                                size_t size)
{
    if (z->n == ZIP_ENTRIES || size > ZIP_BYTES)
        return NULL;
    struct zip_entry *e = &z->entries[z->n++];
    *e = (struct zip_entry){.size = size, .bytes = fuzz_allocate(sizeof(void *), ZIP_BYTES)};
    e->name_bytes = strlen(name) < ZIP_NAME ? strlen(name) : ZIP_NAME - 1;
    memcpy(e->name, name, e->name_bytes);
    if (size)
        memcpy(e->bytes, bytes, size);
    return e;
}

void zip_image_free(struct zip_image *z)
{
    for (int i = 0; i < z->n; i++)
        free(z->entries[i].bytes);
    z->n = 0;
}

/* ------------------------------------------------------------------ writing */

/** The entry's data as they lie in the archive; 0: no room. */
static size_t pack(const struct zip_entry *e, uint8_t *to, size_t most)
{
    if (!e->packed) {
        if (e->size > most)
            return SIZE_MAX;
        memcpy(to, e->bytes, e->size);
        return e->size;
    }
    z_stream z = {.next_in = e->bytes, .avail_in = (unsigned)e->size};
    z.next_out = to;
    z.avail_out = (unsigned)most;
    fuzz_require(deflateInit2(&z, 1, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK,
                 "zlib");
    int const ended = deflate(&z, Z_FINISH);
    size_t const n = z.total_out;
    deflateEnd(&z);
    return ended == Z_STREAM_END ? n : SIZE_MAX;
}

/** What a local and a central header have in common, from "version needed" on. */
static void put_common(uint8_t *at, const struct zip_entry *e, size_t packed)
{
    put(at, 2, VERSION);
    put(at + 2, 2, 0);
    put(at + 4, 2, e->packed ? DEFLATED : 0);
    put(at + 6, 4, 0x210000); /* 1 January 1980 */
    put(at + 10, 4, crc32_z(0, e->bytes, e->size));
    put(at + 14, 4, packed);
    put(at + 18, 4, e->stated ? e->stated : e->size);
    put(at + 22, 2, e->name_bytes);
    put(at + 24, 2, 0);
}

size_t zip_image_write(const struct zip_image *z, uint8_t *bytes, size_t most)
{
    size_t at = 0, local[ZIP_ENTRIES], packed[ZIP_ENTRIES];
    for (int i = 0; i < z->n; i++) {
        const struct zip_entry *e = &z->entries[i];
        if (most - at < LOCAL_BYTES + e->name_bytes)
            return 0;
        local[i] = at;
        uint8_t *head = bytes + at;
        at += LOCAL_BYTES + e->name_bytes;
        packed[i] = pack(e, bytes + at, most - at);
        if (packed[i] == SIZE_MAX)
            return 0;
        put(head, 4, LOCAL);
        put_common(head + 4, e, packed[i]);
        memcpy(head + LOCAL_BYTES, e->name, e->name_bytes);
        at += packed[i];
    }
    size_t const directory = at;
    for (int i = 0; i < z->n; i++) {
        const struct zip_entry *e = &z->entries[i];
        if (most - at < CENTRAL_BYTES + e->name_bytes)
            return 0;
        memset(bytes + at, 0, CENTRAL_BYTES);
        put(bytes + at, 4, CENTRAL);
        put(bytes + at + 4, 2, VERSION);
        put_common(bytes + at + 6, e, packed[i]);
        put(bytes + at + 42, 4, local[i]);
        memcpy(bytes + at + CENTRAL_BYTES, e->name, e->name_bytes);
        at += CENTRAL_BYTES + e->name_bytes;
    }
    if (most - at < END_BYTES)
        return 0;
    memset(bytes + at, 0, END_BYTES);
    put(bytes + at, 4, END);
    put(bytes + at + 8, 2, (size_t)z->n);
    put(bytes + at + 10, 2, (size_t)z->n);
    put(bytes + at + 12, 4, at - directory);
    put(bytes + at + 16, 4, directory);
    return at + END_BYTES;
}
