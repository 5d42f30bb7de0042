/**
 * A bounded reader of numbers, by name, in a FlexBuffer map. Custom operators store their options
 * in such maps.
 *
 *     file:         ... the root's value, u8 its packed type, u8 the bytes of its value
 *     packed type:  type << 2 | log2(bytes of what an offset points to)
 *     offset:       unsigned, backwards from where it is stored
 *     map:          offset to its keys, bytes of one key, count | values ... | u8 packed type of
 *                   each value (each of the map's own width; a map's place is that of its first
 *                   value)
 *     keys:         count | offsets to strings that end with 0, in alphabetical order
 */
#ifndef QAT_BASE_FLEXBUFFER_H
#define QAT_BASE_FLEXBUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct flex_map {
    const uint8_t *bytes;
    size_t count;        /* of the whole buffer */
    size_t values, keys; /* places of the first value and of the first key */
    size_t width, key_width;
    size_t entries;
} flex_map;

/** Find the root map. Returns false if there is none, or if a part of it is outside the buffer. */
bool flex_root_map(flex_map *map, const uint8_t *bytes, size_t count);

/** Get the number (int, unsigned, float, bool) stored under `key`; false if there is none. */
bool flex_number(const flex_map *map, const char *key, double *value);

#endif
