#include "base/bytes.h"
#include "base/number.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

qat_reader qat_reader_of(const void *bytes, size_t count)
{
    static const uint8_t nothing[1] = {
        0}; /* so that comparing with the end of a NULL buffer is defined */
    qat_reader r = {.at = bytes ? bytes : nothing, .end = NULL, .bad = false};
    r.end = r.at + (bytes ? count : 0);
    return r;
}

const void *qat_read_bytes(qat_reader *r, size_t count)
{
    if (r->bad || (size_t)(r->end - r->at) < count) {
        r->bad = true;
        return NULL;
    }
    const uint8_t *found = r->at;
    r->at += count;
    return found;
}

/** Read the next `count` <= 8 bytes as a little-endian number. */
static uint64_t read_number(qat_reader *r, size_t count)
{
    const uint8_t *b = qat_read_bytes(r, count);
    uint64_t v = 0;
    for (size_t i = 0; b && i < count; i++)
        v |= (uint64_t)b[i] << (8 * i);
    return v;
}

uint8_t qat_read_u8(qat_reader *r)
{
    return (uint8_t)read_number(r, 1);
}

uint16_t qat_read_u16(qat_reader *r)
{
    return (uint16_t)read_number(r, 2);
}

uint32_t qat_read_u32(qat_reader *r)
{
    return (uint32_t)read_number(r, 4);
}

uint64_t qat_read_u64(qat_reader *r)
{
    return read_number(r, 8);
}

float qat_half(uint16_t bits)
{
    uint32_t const sign = (uint32_t)bits >> 15 << 31, exponent = bits >> 10 & 31;
    uint32_t const fraction = bits & 1023;
    float v = (float)fraction * 0x1p-24f; /* subnormal */
    uint32_t to;
    memcpy(&to, &v, sizeof to);
    if (exponent)
        to = (exponent == 31 ? 255 : exponent + 112) << 23 | fraction << 13;
    to |= sign;
    memcpy(&v, &to, sizeof v);
    return v;
}

float qat_read_f16(qat_reader *r)
{
    return qat_half(qat_read_u16(r));
}

float qat_read_f32(qat_reader *r)
{
    uint32_t const bits = qat_read_u32(r);
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

double qat_read_f64(qat_reader *r)
{
    uint64_t const bits = qat_read_u64(r);
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

void qat_read_string(qat_reader *r, char *text, size_t max)
{
    uint32_t const count = qat_read_u32(r);
    if (max > 0)
        text[0] = '\0';
    if (count >= max)
        r->bad = true;
    const void *bytes = qat_read_bytes(r, count);
    if (!bytes)
        return;
    if (memchr(bytes, 0, count)) {
        r->bad = true;
        return;
    }
    memcpy(text, bytes, count);
    text[count] = '\0';
}

void qat_writer_free(qat_writer *w)
{
    free(w->bytes);
    *w = (qat_writer){0};
}

/** Make room for `more` bytes. On failure set `failed` and return false. */
static bool reserve(qat_writer *w, size_t more)
{
    if (w->failed)
        return false;
    if (w->capacity - w->count >= more)
        return true;
    size_t const least = w->count + more;
    size_t const doubled = w->capacity < 128 ? 256 : 2 * w->capacity;
    size_t const capacity = least > doubled ? least : doubled;
    uint8_t *grown = least < more ? NULL : realloc(w->bytes, capacity);
    if (!grown) {
        w->failed = true;
        return false;
    }
    w->bytes = grown;
    w->capacity = capacity;
    return true;
}

void qat_write_bytes(qat_writer *w, const void *bytes, size_t count)
{
    if (count == 0 || !reserve(w, count))
        return;
    memcpy(w->bytes + w->count, bytes, count);
    w->count += count;
}

static void put_number(uint8_t *at, uint64_t v, size_t count)
{
    for (size_t i = 0; i < count; i++)
        at[i] = (uint8_t)(v >> (8 * i));
}

static void write_number(qat_writer *w, uint64_t v, size_t count)
{
    uint8_t b[8];
    put_number(b, v, count);
    qat_write_bytes(w, b, count);
}

void qat_write_u8(qat_writer *w, uint8_t v)
{
    write_number(w, v, 1);
}

void qat_write_u16(qat_writer *w, uint16_t v)
{
    write_number(w, v, 2);
}

void qat_write_u32(qat_writer *w, uint32_t v)
{
    write_number(w, v, 4);
}

void qat_write_u64(qat_writer *w, uint64_t v)
{
    write_number(w, v, 8);
}

void qat_write_f32(qat_writer *w, float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    qat_write_u32(w, bits);
}

void qat_write_f64(qat_writer *w, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    qat_write_u64(w, bits);
}

void qat_write_string(qat_writer *w, const char *text)
{
    size_t const count = strlen(text);
    if (count > UINT32_MAX) {
        w->failed = true;
        return;
    }
    qat_write_u32(w, (uint32_t)count);
    qat_write_bytes(w, text, count);
}

void qat_write_align(qat_writer *w, size_t alignment)
{
    size_t const pad = (alignment - w->count % alignment) % alignment;
    if (pad == 0 || !reserve(w, pad))
        return;
    memset(w->bytes + w->count, 0, pad);
    w->count += pad;
}

void qat_patch_u32(qat_writer *w, size_t at, uint32_t v)
{
    if (!w->failed && at <= w->count && w->count - at >= 4)
        put_number(w->bytes + at, v, 4);
}

void qat_write_vtext(qat_writer *w, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int const length = qat_vformat(NULL, 0, format, args);
    if (length < 0)
        w->failed = true;
    else if (reserve(w, (size_t)length + 1)) { /* it writes a NUL, which is not counted */
        (void)qat_vformat((char *)w->bytes + w->count, (size_t)length + 1, format, again);
        w->count += (size_t)length;
    }
    va_end(again);
}

void qat_write_text(qat_writer *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    qat_write_vtext(w, format, args);
    va_end(args);
}
