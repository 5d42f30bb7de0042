/**
 * Mutations that know where things are in a protobuf message. They walk through its fields, and
 * through the fields of whatever can be read as a message, and remember each number and each run of
 * bytes. Then some of these change in place. Lengths stay, so the rest stays readable.
 */
#include "fuzz/fuzz.h"

#include <string.h>

enum { PLACES_MAX = 4096, DEPTH_MAX = 8 };

struct place {
    size_t at, count;
    int is_number;
};

struct places {
    const uint8_t *data;
    struct place at[PLACES_MAX];
    int count;
};

static size_t varint(const uint8_t *data, size_t at, size_t end, uint64_t *value)
{
    *value = 0;
    for (int shift = 0; at < end && shift < 64; shift += 7) {
        *value |= (uint64_t)(data[at] & 127) << shift;
        if (!(data[at++] & 128))
            return at;
    }
    return 0;
}

static void remember(struct places *p, size_t at, size_t count, int is_number)
{
    if (p->count < PLACES_MAX && count)
        p->at[p->count++] = (struct place){at, count, is_number};
}

/** Walk the fields of at..end. Returns 0 if they are no message; then nothing was remembered. */
static int walk(struct places *p, size_t at, size_t end, int depth)
{
    int const before = p->count;
    while (at < end) {
        uint64_t tag, n;
        size_t next = varint(p->data, at, end, &tag);
        int const wire = (int)(tag & 7);
        if (!next || !(tag >> 3) || (tag >> 3) > 100)
            break;
        if (wire == 0) {
            size_t const from = next;
            if (!(next = varint(p->data, from, end, &n)))
                break;
            remember(p, from, next - from, 1);
        } else if (wire == 2) {
            if (!(next = varint(p->data, next, end, &n)) || n > end - next)
                break;
            if (depth >= DEPTH_MAX || !n || !walk(p, next, next + (size_t)n, depth + 1))
                remember(p, next, (size_t)n, 0);
            next += (size_t)n;
        } else if (wire == 5 || wire == 1) {
            size_t const count = wire == 5 ? 4 : 8;
            if (count > end - next)
                break;
            remember(p, next, count, 0);
            next += count;
        } else {
            break;
        }
        at = next;
    }
    if (at == end)
        return 1;
    p->count = before;
    return 0;
}

/** Another number in as many bytes. */
static void change_number(uint8_t *at, size_t count, uint64_t *seed)
{
    static const uint64_t telling[] = {0, 1, 2, 3, 4, 7, 8, 127, 255, 16383, INT32_MAX, UINT64_MAX};
    uint64_t value = telling[fuzz_below(seed, sizeof telling / sizeof *telling)];
    for (size_t i = 0; i < count; i++, value >>= 7)
        at[i] = (uint8_t)((value & 127) | (i + 1 < count ? 128 : 0));
}

static void change_bytes(uint8_t *at, size_t count, uint64_t *seed)
{
    size_t const i = fuzz_below(seed, count);
    uint32_t const how = fuzz_random(seed);
    if (how % 4 == 0)
        at[i] = (uint8_t)(how >> 8);
    else if (how % 4 == 1)
        at[i] ^= (uint8_t)(1u << (how >> 8) % 8);
    else if (how % 4 == 2)
        memset(at + i, how & 256 ? 255 : 0, count - i < 8 ? count - i : 8);
    else
        at[i]++;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned int seed_of)
{
    static struct places p;
    uint64_t seed = seed_of;
    if (!size || fuzz_below(&seed, 8) == 0)
        return LLVMFuzzerMutate(data, size, most);
    p.data = data;
    p.count = 0;
    if (!walk(&p, 0, size, 0) || !p.count)
        return LLVMFuzzerMutate(data, size, most);
    for (size_t times = 1 + fuzz_below(&seed, 4); times; times--) {
        const struct place *place = &p.at[fuzz_below(&seed, (size_t)p.count)];
        if (place->is_number)
            change_number(data + place->at, place->count, &seed);
        else
            change_bytes(data + place->at, place->count, &seed);
        if (fuzz_below(&seed, 4) == 0) { /* one run of bytes, such as a name, over another */
            const struct place *other = &p.at[fuzz_below(&seed, (size_t)p.count)];
            size_t const n = place->count < other->count ? place->count : other->count;
            memmove(data + place->at, data + other->at, n);
        }
    }
    return size;
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                                 uint8_t *out, size_t most, unsigned int seed)
{
    (void)a, (void)a_size, (void)b, (void)b_size, (void)out, (void)most, (void)seed;
    return 0; /* lengths within lengths do not mix */
}
