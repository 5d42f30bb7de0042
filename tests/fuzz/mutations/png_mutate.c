/**
 * Mutations that know what a PNG is: fields of the header, chunks that come, go, or change places,
 * the rows inside the compressed data. Afterwards, often, rows are made that fit the header, and
 * CRCs are made right.
 */
#include "fuzz/fuzz.h"
#include "fuzz/mutations/text_mutate.h"

#include <string.h>
#include <zlib.h>

enum { SIGNATURE = 8, AROUND = 12, MOST_CHUNKS = 64, ROWS = 1 << 16 };

/** Where the chunks begin, and how many bytes of content each has. */
struct chunks {
    size_t at[MOST_CHUNKS], size[MOST_CHUNKS];
    size_t n;
};

static uint32_t get4(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void put4(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> (24 - 8 * i));
}

static void find_chunks(struct chunks *c, const uint8_t *data, size_t size)
{
    c->n = 0;
    for (size_t at = SIGNATURE; at + AROUND <= size && c->n < MOST_CHUNKS;) {
        size_t const room = size - at - AROUND, stated = get4(data + at);
        c->at[c->n] = at;
        c->size[c->n] = stated < room ? stated : room;
        at += AROUND + c->size[c->n++];
    }
}

static void repair(uint8_t *data, size_t size)
{
    struct chunks c;
    find_chunks(&c, data, size);
    for (size_t i = 0; i < c.n; i++) {
        uint8_t *chunk = data + c.at[i];
        put4(chunk, (uint32_t)c.size[i]);
        put4(chunk + 8 + c.size[i], (uint32_t)crc32(0, chunk + 4, (uInt)c.size[i] + 4));
    }
}

/** A field of IHDR. Sides mostly stay small. */
static void change_header(uint8_t *data, size_t size, uint64_t *x)
{
    static const uint8_t depths[] = {1, 2, 4, 8, 16}, types[] = {0, 2, 3, 4, 6};
    if (size < 33)
        return;
    switch (fuzz_below(x, 6)) {
    case 0:
        data[24] = depths[fuzz_below(x, 5)];
        break;
    case 1:
        data[25] = types[fuzz_below(x, 5)];
        break;
    case 2:
        data[28] ^= 1;
        break;
    case 3:
        if (fuzz_below(x, 8) == 0)
            data[26 + fuzz_below(x, 3)] = (uint8_t)fuzz_random(x);
        break;
    default: {
        uint8_t *side = data + 16 + 4 * fuzz_below(x, 2);
        put4(side,
             fuzz_below(x, 20) ? 1 + (uint32_t)fuzz_below(x, 40) : fuzz_number(x, get4(side)));
    }
    }
}

/** A chunk of some type with some content, anywhere. */
static size_t add_chunk(uint8_t *data, size_t size, size_t most, const struct chunks *c,
                        uint64_t *x)
{
    static const char *const types[] = {"PLTE", "tRNS", "gAMA", "sBIT", "bKGD", "zTXt", "iCCP",
                                        "IDAT", "IEND", "hIST", "abcd", "ABCD", "acTL", "sRGB"};
    uint8_t chunk[AROUND + 768] = {0};
    size_t const n = 3 * fuzz_below(x, 257);
    put4(chunk, (uint32_t)n);
    memcpy(chunk + 4, types[fuzz_below(x, sizeof types / sizeof *types)], 4);
    for (size_t i = 0; i < n; i++)
        chunk[8 + i] = (uint8_t)fuzz_random(x);
    size_t const at = c->n ? c->at[fuzz_below(x, c->n)] : size;
    return fuzz_replace(data, size, most, at, 0, chunk, AROUND + n);
}

static size_t remove_chunk(uint8_t *data, size_t size, size_t most, const struct chunks *c,
                           uint64_t *x)
{
    size_t const i = fuzz_below(x, c->n);
    return c->n ? fuzz_replace(data, size, most, c->at[i], AROUND + c->size[i], NULL, 0) : size;
}

static size_t copy_chunk(uint8_t *data, size_t size, size_t most, const struct chunks *c,
                         uint64_t *x)
{
    static uint8_t copy[1 << 16];
    size_t const i = fuzz_below(x, c->n), k = fuzz_below(x, c->n);
    if (!c->n || AROUND + c->size[i] > sizeof copy)
        return size;
    memcpy(copy, data + c->at[i], AROUND + c->size[i]);
    return fuzz_replace(data, size, most, c->at[k], 0, copy, AROUND + c->size[i]);
}

/** The content of a chunk, blindly; its CRC keeps its place. */
static size_t change_content(uint8_t *data, size_t size, size_t most, const struct chunks *c,
                             uint64_t *x)
{
    static uint8_t content[1 << 16];
    size_t const i = fuzz_below(x, c->n);
    if (!c->n || c->size[i] > sizeof content / 2)
        return size;
    memcpy(content, data + c->at[i] + 8, c->size[i]);
    size_t const n = LLVMFuzzerMutate(content, c->size[i], c->size[i] + 64);
    size_t const longer = fuzz_replace(data, size, most, c->at[i] + 8, c->size[i], content, n);
    if (longer + c->size[i] == size + n)
        put4(data + c->at[i], (uint32_t)n);
    return longer;
}

/** Unpack the rows, change them, pack them again. */
static size_t change_rows(uint8_t *data, size_t size, size_t most, const struct chunks *c)
{
    static uint8_t rows[ROWS], packed[ROWS];
    size_t i = 0;
    while (i < c->n && memcmp(data + c->at[i] + 4, "IDAT", 4) != 0)
        i++;
    uLongf n = ROWS / 2, m = sizeof packed;
    if (i == c->n || uncompress(rows, &n, data + c->at[i] + 8, c->size[i]) != Z_OK)
        return size;
    n = LLVMFuzzerMutate(rows, n, n + 64);
    if (compress2(packed, &m, rows, n, 1) != Z_OK)
        return size;
    size_t const longer = fuzz_replace(data, size, most, c->at[i] + 8, c->size[i], packed, m);
    if (longer + c->size[i] == size + m)
        put4(data + c->at[i], (uint32_t)m);
    return longer;
}

/** Bytes of the rows of one pass; each row has a byte that names its filter. */
static size_t pass_bytes(size_t height, size_t width, size_t bits)
{
    return height && width ? height * (1 + (width * bits + 7) / 8) : 0;
}

/** Bytes of all rows that the header announces; 0: it announces nonsense, or more than ROWS. */
static size_t rows_bytes(const uint8_t *data)
{
    /* Adam7: first column and row of a pass, and the steps to the next ones */
    static const uint8_t passes[7][4] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                         {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
    static const uint8_t channels[] = {1, 0, 3, 1, 2, 0, 4};
    size_t const width = get4(data + 16), height = get4(data + 20), type = data[25];
    size_t const bits = type < sizeof channels ? (size_t)channels[type] * data[24] : 0;
    size_t bytes = 0;
    if (width > 1024 || height > 1024 || bits > 64)
        return 0;
    for (size_t i = 0; i < 7 && data[28]; i++)
        bytes += pass_bytes((height + passes[i][3] - 1 - passes[i][1]) / passes[i][3],
                            (width + passes[i][2] - 1 - passes[i][0]) / passes[i][2], bits);
    bytes = data[28] ? bytes : pass_bytes(height, width, bits);
    return bytes < ROWS / 2 ? bytes : 0;
}

/** Rows that fit the header, in place of the first compressed data. */
static size_t refit_rows(uint8_t *data, size_t size, size_t most, const struct chunks *c,
                         uint64_t *x)
{
    static uint8_t rows[ROWS], packed[ROWS];
    size_t const n = size >= 33 ? rows_bytes(data) : 0, step = 1 + fuzz_below(x, 60);
    size_t i = 0;
    while (i < c->n && memcmp(data + c->at[i] + 4, "IDAT", 4) != 0)
        i++;
    for (size_t k = 0; k < n; k++) /* 0 to 4 are filters */
        rows[k] = (uint8_t)(step > 40 && k % step ? fuzz_random(x) : fuzz_below(x, 5));
    uLongf m = sizeof packed;
    if (i == c->n || !n || compress2(packed, &m, rows, n, (int)fuzz_below(x, 3)) != Z_OK)
        return size;
    size_t const longer = fuzz_replace(data, size, most, c->at[i] + 8, c->size[i], packed, m);
    if (longer + c->size[i] == size + m)
        put4(data + c->at[i], (uint32_t)m);
    return longer;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned int seed)
{
    uint64_t x = seed;
    struct chunks c;
    if (fuzz_below(&x, 40) == 0)
        return LLVMFuzzerMutate(data, size, most);
    for (size_t n = 1 + fuzz_below(&x, 3); n > 0; n--) {
        find_chunks(&c, data, size);
        switch (fuzz_below(&x, 16)) {
        case 0:
            size = add_chunk(data, size, most, &c, &x);
            break;
        case 1:
            size = remove_chunk(data, size, most, &c, &x);
            break;
        case 2:
            size = copy_chunk(data, size, most, &c, &x);
            break;
        case 3:
        case 4:
            size = change_content(data, size, most, &c, &x);
            break;
        case 5:
            size = change_rows(data, size, most, &c);
            break;
        default:
            change_header(data, size, &x);
        }
    }
    if (fuzz_below(&x, 4)) {
        find_chunks(&c, data, size);
        size = refit_rows(data, size, most, &c, &x);
    }
    if (fuzz_below(&x, 30))
        repair(data, size);
    return size;
}

/** The first chunks of one and the last chunks of the other. */
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                                 uint8_t *out, size_t most, unsigned int seed)
{
    uint64_t x = seed;
    struct chunks ca, cb;
    find_chunks(&ca, a, a_size);
    find_chunks(&cb, b, b_size);
    size_t const head = ca.n ? ca.at[fuzz_below(&x, ca.n)] : 0;
    size_t const from = cb.n ? cb.at[fuzz_below(&x, cb.n)] : b_size;
    return fuzz_join(a, head, b, b_size, from, out, most);
}
