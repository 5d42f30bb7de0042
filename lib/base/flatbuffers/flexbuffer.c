#include "base/flatbuffers/flexbuffer.h"

#include <string.h>

enum flex_type {
    FLEX_INT = 1,
    FLEX_UINT = 2,
    FLEX_FLOAT = 3,
    FLEX_INDIRECT_INT = 6,
    FLEX_INDIRECT_UINT = 7,
    FLEX_INDIRECT_FLOAT = 8,
    FLEX_MAP = 9,
    FLEX_BOOL = 26
};

/** Do `bytes` bytes at `at` lie inside? */
static bool inside(const flex_map *m, size_t at, size_t bytes)
{
    return at <= m->count && bytes <= m->count - at;
}

static uint64_t unsigned_at(const flex_map *m, size_t at, size_t width)
{
    uint64_t value = 0;
    for (size_t i = 0; i < width; i++)
        value |= (uint64_t)m->bytes[at + i] << (8 * i);
    return value;
}

static int64_t signed_at(const flex_map *m, size_t at, size_t width)
{
    uint64_t const value = unsigned_at(m, at, width);
    uint64_t const sign = UINT64_C(1) << (8 * width - 1);
    return (int64_t)((value ^ sign) - sign);
}

static bool float_at(const flex_map *m, size_t at, size_t width, double *value)
{
    uint64_t const bits = unsigned_at(m, at, width);
    if (width == sizeof(double)) {
        memcpy(value, &bits, sizeof *value);
        return true;
    }
    if (width != sizeof(float))
        return false;
    uint32_t const half = (uint32_t)bits;
    float single;
    memcpy(&single, &half, sizeof single);
    *value = (double)single;
    return true;
}

/** Follow the offset of `width` bytes at `at`, backwards. */
static bool follow(const flex_map *m, size_t at, size_t width, size_t *target)
{
    if (!inside(m, at, width))
        return false;
    uint64_t const offset = unsigned_at(m, at, width);
    if (offset > at)
        return false;
    *target = at - (size_t)offset;
    return true;
}

/** Find counts and places of a map whose first value is at `at`. */
static bool open_map(flex_map *m, size_t at, size_t width)
{
    m->values = at;
    m->width = width;
    if (at < 3 * width || at > m->count)
        return false;
    uint64_t const entries = unsigned_at(m, at - width, width);
    m->key_width = (size_t)unsigned_at(m, at - 2 * width, width);
    bool const known_width =
        m->key_width == 1 || m->key_width == 2 || m->key_width == 4 || m->key_width == 8;
    if (!known_width || entries > m->count || !follow(m, at - 3 * width, width, &m->keys))
        return false;
    m->entries = (size_t)entries;
    return inside(m, at, m->entries * (width + 1)) && inside(m, m->keys, m->entries * m->key_width);
}

bool flex_root_map(flex_map *map, const uint8_t *bytes, size_t count)
{
    size_t at;
    *map = (flex_map){.bytes = bytes, .count = count};
    if (count < 3)
        return false;
    size_t const value_bytes = bytes[count - 1];
    uint8_t const packed = bytes[count - 2];
    if (packed >> 2 != FLEX_MAP || value_bytes > 8 || value_bytes + 2 > count)
        return false;
    if (!follow(map, count - 2 - value_bytes, value_bytes, &at))
        return false;
    return open_map(map, at, (size_t)1 << (packed & 3));
}

/** Is key number i the string `key`? */
static bool key_is(const flex_map *m, size_t i, const char *key)
{
    size_t const length = strlen(key) + 1;
    size_t at;
    return follow(m, m->keys + i * m->key_width, m->key_width, &at) && inside(m, at, length) &&
           memcmp(m->bytes + at, key, length) == 0;
}

/** Read a number of this type and width at `at`. */
static bool number_at(const flex_map *m, unsigned type, size_t at, size_t width, double *value)
{
    if (!inside(m, at, width))
        return false;
    switch (type) {
    case FLEX_INT:
    case FLEX_INDIRECT_INT:
        *value = (double)signed_at(m, at, width);
        return true;
    case FLEX_UINT:
    case FLEX_INDIRECT_UINT:
    case FLEX_BOOL:
        *value = (double)unsigned_at(m, at, width);
        return true;
    case FLEX_FLOAT:
    case FLEX_INDIRECT_FLOAT:
        return float_at(m, at, width, value);
    default:
        return false;
    }
}

bool flex_number(const flex_map *map, const char *key, double *value)
{
    for (size_t i = 0; i < map->entries; i++) {
        if (!key_is(map, i, key))
            continue;
        uint8_t const packed = map->bytes[map->values + map->entries * map->width + i];
        unsigned const type = packed >> 2;
        size_t at = map->values + i * map->width;
        if (type < FLEX_INDIRECT_INT || type > FLEX_INDIRECT_FLOAT)
            return number_at(map, type, at, map->width, value);
        return follow(map, at, map->width, &at) &&
               number_at(map, type, at, (size_t)1 << (packed & 3), value);
    }
    return false;
}
