/** Mutations that know what a WAV file is: chunks, their sizes, the fields of `fmt `. */
#include "fuzz/fuzz.h"

#include <string.h>

enum { HEAD = 12, CHUNK = 8, MOST_CHUNKS = 16 };

static uint32_t get(const uint8_t *at, size_t bytes)
{
    uint32_t value = 0;
    for (size_t i = bytes; i-- > 0;)
        value = value << 8 | at[i];
    return value;
}

static void put(uint8_t *at, size_t bytes, uint32_t value)
{
    for (size_t i = 0; i < bytes; i++)
        at[i] = (uint8_t)(value >> (8 * i));
}

/** Where the chunks begin, as their sizes say. */
static size_t find_chunks(const uint8_t *data, size_t size, size_t at[MOST_CHUNKS])
{
    size_t n = 0;
    for (size_t i = HEAD; n < MOST_CHUNKS && i + CHUNK <= size;) {
        size_t const bytes = get(data + i + 4, 4);
        at[n++] = i;
        if (bytes > size)
            break;
        i += CHUNK + bytes + bytes % 2;
    }
    return n;
}

/** The fields of `fmt `: coding, channels, rate, bytes a second, block, bits, size of the rest. */
static const struct {
    uint8_t at, bytes, n;
    uint32_t usual[8];
} fields[] = {{0, 2, 8, {1, 3, 0xfffe, 2, 6, 7, 17, 49}},
              {2, 2, 4, {1, 2, 3, 0}},
              {4, 4, 4, {16000, 8000, 0, 44100}},
              {8, 4, 2, {16000, 32000}},
              {12, 2, 6, {1, 2, 3, 4, 8, 0}},
              {14, 2, 7, {8, 16, 24, 32, 4, 64, 0}},
              {16, 2, 3, {0, 22, 2}},
              {24, 2, 4, {1, 3, 2, 0}}};

static void mutate_format(uint8_t *body, size_t size, uint64_t *x)
{
    size_t const i = fuzz_below(x, sizeof fields / sizeof *fields);
    if (fields[i].at + (size_t)fields[i].bytes > size)
        return;
    uint8_t *field = body + fields[i].at;
    put(field, fields[i].bytes,
        fuzz_below(x, 3) ? fields[i].usual[fuzz_below(x, fields[i].n)]
                         : fuzz_number(x, get(field, fields[i].bytes)));
}

/** A chunk's size, its name, or its contents. */
static void mutate_chunk(uint8_t *chunk, size_t left, uint64_t *x)
{
    static const char *const names[] = {"fmt ", "data", "LIST", "fact", "PEAK", "cue ",
                                        "smpl", "bext", "JUNK", "inst", "acid", "id3 "};
    switch (fuzz_below(x, 4)) {
    case 0:
        put(chunk + 4, 4, fuzz_number(x, get(chunk + 4, 4)));
        return;
    case 1:
        memcpy(chunk, names[fuzz_below(x, sizeof names / sizeof *names)], 4);
        return;
    default:
        if (!memcmp(chunk, "fmt ", 4))
            mutate_format(chunk + CHUNK, left - CHUNK, x);
        else if (left > CHUNK + 4)
            put(chunk + CHUNK, 4, fuzz_number(x, get(chunk + CHUNK, 4)));
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned int seed)
{
    uint64_t x = seed;
    size_t chunks[MOST_CHUNKS];
    size_t const n = find_chunks(data, size, chunks);
    if (!n || fuzz_below(&x, 4) == 0)
        size = LLVMFuzzerMutate(data, size, most);
    else
        for (size_t times = 1 + fuzz_below(&x, 3); times > 0; times--) {
            size_t const at = chunks[fuzz_below(&x, n)];
            mutate_chunk(data + at, size - at, &x);
        }
    if (size >= HEAD && fuzz_below(&x, 8)) /* else nearly all would end at the first check */
        put(data + 4, 4, (uint32_t)size - 8);
    return size;
}

/** Chunks of one before those of the other. */
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                                 uint8_t *out, size_t most, unsigned int seed)
{
    uint64_t x = seed;
    size_t of_a[MOST_CHUNKS], of_b[MOST_CHUNKS];
    size_t const n = find_chunks(a, a_size, of_a), m = find_chunks(b, b_size, of_b);
    if (!n || !m)
        return 0;
    size_t const size =
        fuzz_join(a, of_a[fuzz_below(&x, n)], b, b_size, of_b[fuzz_below(&x, m)], out, most);
    if (size >= HEAD)
        put(out + 4, 4, (uint32_t)size - 8);
    return size;
}
