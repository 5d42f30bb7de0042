#include "fuzz/mutations/checkpoint_image.h"

#include <string.h>
#include <zlib.h>

enum { AT_VERSION = 8, AT_SECTIONS = 12, AT_SIZE = 16, HEADER = 24, TRAILER = 4, HEAD = 12 };

static uint64_t get(const uint8_t *at, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

static void put(uint8_t *at, int bytes, uint64_t value)
{
    for (int i = 0; i < bytes; i++)
        at[i] = (uint8_t)(value >> (8 * i));
}

void checkpoint_image_read(struct checkpoint_image *c, const uint8_t *bytes, size_t size)
{
    *c = (struct checkpoint_image){0};
    if (size < HEADER + TRAILER)
        return;
    c->version = (uint32_t)get(bytes + AT_VERSION, 4);
    c->stated = (uint32_t)get(bytes + AT_SECTIONS, 4);
    size_t const end = size - TRAILER;
    for (size_t at = HEADER; end - at >= HEAD && c->n < CHECKPOINT_SECTIONS; c->n++) {
        uint64_t const wanted = get(bytes + at + CHECKPOINT_TAG, 8);
        size_t const left = end - at - HEAD;
        memcpy(c->tag[c->n], bytes + at, CHECKPOINT_TAG);
        c->at[c->n] = bytes + at + HEAD;
        c->size[c->n] = wanted < left ? (size_t)wanted : left;
        at += HEAD + c->size[c->n];
    }
}

size_t checkpoint_image_write(const struct checkpoint_image *c, uint8_t *bytes, size_t most)
{
    size_t at = HEADER;
    if (most < HEADER + TRAILER)
        return 0;
    put(bytes + AT_VERSION, 4, c->version);
    put(bytes + AT_SECTIONS, 4, c->stated);
    for (int i = 0; i < c->n; i++) {
        if (most - at < HEAD + TRAILER || most - at - HEAD - TRAILER < c->size[i])
            return 0;
        memcpy(bytes + at, c->tag[i], CHECKPOINT_TAG);
        put(bytes + at + CHECKPOINT_TAG, 8, c->size[i]);
        if (c->size[i])
            memcpy(bytes + at + HEAD, c->at[i], c->size[i]);
        at += HEAD + c->size[i];
    }
    checkpoint_seal(bytes, at + TRAILER);
    return at + TRAILER;
}

void checkpoint_seal(uint8_t *bytes, size_t size)
{
    if (size < HEADER + TRAILER)
        return;
    memcpy(bytes, "QATCKPT\n", 8);
    put(bytes + AT_SIZE, 8, size);
    put(bytes + size - TRAILER, TRAILER, crc32_z(0, bytes, size - TRAILER));
}
