/**
 * Mutations that know what a JPEG is: segments that come, go, or change places, their fields, the
 * coded data behind a scan's header. Afterwards, mostly, lengths are made right.
 */
#include "fuzz/fuzz.h"
#include "fuzz/mutations/text_mutate.h"

#include <string.h>

enum { MOST_SEGMENTS = 128, SOF0 = 0xc0, SOF2 = 0xc2, DHT = 0xc4, SOI = 0xd8, SOS = 0xda };

/** Where segments begin and end: marker, length, content, and the coded data that follow. */
struct segments {
    size_t at[MOST_SEGMENTS], end[MOST_SEGMENTS];
    size_t n;
};

static int has_length(int marker)
{
    return marker != 0 && marker != 1 && marker != 0xff && (marker < 0xd0 || marker > 0xd9);
}

static void find_segments(struct segments *s, const uint8_t *data, size_t size)
{
    s->n = 0;
    for (size_t at = 2; at + 4 <= size && s->n < MOST_SEGMENTS;) {
        size_t end = at + 2;
        if (has_length(data[at + 1]))
            end += (size_t)data[at + 2] << 8 | data[at + 3];
        while (end + 1 < size && !(data[end] == 0xff && has_length(data[end + 1])))
            end++;
        end = end + 1 < size ? end : size;
        s->at[s->n] = at;
        s->end[s->n++] = end;
        at = end;
    }
}

static size_t some(const struct segments *s, const uint8_t *data, int marker, uint64_t *x)
{
    size_t const start = fuzz_below(x, s->n);
    for (size_t i = 0; i < s->n; i++) {
        size_t const k = (start + i) % s->n;
        if (data[s->at[k] + 1] == marker)
            return k;
    }
    return start;
}

/** A byte of a segment: a limit, a neighbour, one bit, anything. */
static void change_byte(uint8_t *data, size_t from, size_t to, uint64_t *x)
{
    if (from < to) {
        uint8_t *byte = data + from + fuzz_below(x, to - from);
        *byte = (uint8_t)fuzz_number(x, *byte);
    }
}

static const uint8_t headers[] = {SOF0, SOF2, SOS, DHT, 0xdb, 0xdd, 0xee};

static void change_field(uint8_t *data, const struct segments *s, uint64_t *x)
{
    int const marker = headers[fuzz_below(x, sizeof headers)];
    size_t const i = s->n ? some(s, data, marker, x) : 0;
    if (!s->n)
        return;
    size_t const head = s->at[i] + 4, least = s->end[i] < head + 20 ? s->end[i] : head + 20;
    change_byte(data, head, least, x);
}

/** Sides of the picture; mostly they stay small. */
static void change_size(uint8_t *data, const struct segments *s, uint64_t *x)
{
    size_t const i = s->n ? some(s, data, fuzz_below(x, 2) ? SOF0 : SOF2, x) : 0;
    if (!s->n || s->end[i] < s->at[i] + 9)
        return;
    uint8_t *side = data + s->at[i] + 5 + 2 * fuzz_below(x, 2);
    uint32_t const value =
        fuzz_below(x, 4) ? 1 + (uint32_t)fuzz_below(x, 70) : (uint32_t)fuzz_random(x);
    side[0] = (uint8_t)(value >> 8);
    side[1] = (uint8_t)value;
}

/** A segment, or its coded data, blindly. */
static size_t change_content(uint8_t *data, size_t size, size_t most, const struct segments *s,
                             uint64_t *x)
{
    static uint8_t content[1 << 16];
    size_t const i = s->n ? fuzz_below(x, 2) ? some(s, data, SOS, x) : fuzz_below(x, s->n) : 0;
    size_t const from = s->n ? s->at[i] + 4 : 0,
                 n = s->n && s->end[i] > from ? s->end[i] - from : 0;
    if (!n || n > sizeof content / 2)
        return size;
    memcpy(content, data + from, n);
    return fuzz_replace(data, size, most, from, n, content, LLVMFuzzerMutate(content, n, n + 64));
}

static size_t copy_segment(uint8_t *data, size_t size, size_t most, const struct segments *s,
                           uint64_t *x)
{
    static uint8_t copy[1 << 16];
    size_t const i = fuzz_below(x, s->n), k = fuzz_below(x, s->n);
    if (!s->n || s->end[i] - s->at[i] > sizeof copy)
        return size;
    memcpy(copy, data + s->at[i], s->end[i] - s->at[i]);
    return fuzz_replace(data, size, most, s->at[k], 0, copy, s->end[i] - s->at[i]);
}

static size_t remove_segment(uint8_t *data, size_t size, size_t most, const struct segments *s,
                             uint64_t *x)
{
    size_t const i = fuzz_below(x, s->n);
    return s->n ? fuzz_replace(data, size, most, s->at[i], s->end[i] - s->at[i], NULL, 0) : size;
}

static void change_marker(uint8_t *data, const struct segments *s, uint64_t *x)
{
    if (s->n)
        data[s->at[fuzz_below(x, s->n)] + 1] = (uint8_t)(0xc0 + fuzz_below(x, 64));
}

/** A Huffman table with many codes, or few. */
static void change_codes(uint8_t *data, const struct segments *s, uint64_t *x)
{
    size_t const i = s->n ? some(s, data, DHT, x) : 0;
    if (s->n && s->end[i] >= s->at[i] + 21)
        change_byte(data, s->at[i] + 5, s->at[i] + 21, x);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned int seed)
{
    uint64_t x = seed;
    struct segments s;
    if (fuzz_below(&x, 40) == 0)
        return LLVMFuzzerMutate(data, size, most);
    for (size_t n = 1 + !fuzz_below(&x, 4); n > 0; n--) {
        find_segments(&s, data, size);
        switch (fuzz_below(&x, 20)) {
        case 0:
            size = copy_segment(data, size, most, &s, &x);
            break;
        case 1:
            size = remove_segment(data, size, most, &s, &x);
            break;
        case 2:
            change_marker(data, &s, &x);
            break;
        case 3:
            change_codes(data, &s, &x);
            break;
        case 4:
        case 5:
        case 7:
        case 8:
        case 9:
        case 10:
            change_size(data, &s, &x);
            break;
        case 6:
            size = change_content(data, size, most, &s, &x);
            break;
        default:
            change_field(data, &s, &x);
        }
    }
    return size;
}

/** The first segments of one and the last segments of the other. */
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                                 uint8_t *out, size_t most, unsigned int seed)
{
    uint64_t x = seed;
    struct segments sa, sb;
    find_segments(&sa, a, a_size);
    find_segments(&sb, b, b_size);
    size_t const head = sa.n ? sa.at[fuzz_below(&x, sa.n)] : 0;
    size_t const from = sb.n ? sb.at[fuzz_below(&x, sb.n)] : b_size;
    return fuzz_join(a, head, b, b_size, from, out, most);
}
