/**
 * Matrix products with AVX-512 VPOPCNTDQ, for layers whose weights are -1 and 1 and whose inputs
 * have two bits. All other layers are computed by avx512vnni_gemm.c.
 *
 *     u = x' - its lowest value = u_0 + 2 u_1;  b = (w + 1) / 2
 *     sum u w = 2 popcount(u_0 & b) + 4 popcount(u_1 & b) - sum u
 *
 * A lane has one word of 32 codes of a channel. Three instructions count them for each bit of u:
 * VPANDD, VPOPCNTD, VPADDD. VPDPBUSD multiplies four codes.
 *
 *   packed  | header | panel 0 | panel 1 | ..        gemm_pack.h
 *   panel   | columns | b [words][channels] |
 *
 * The planes of a row of x are made in scratch: word 0 of u_0, word 0 of u_1, word 1 of u_0, and so
 * on. A segment of x begins with a word of its own; the bits after its last code are 0.
 */
#include "infer/host/x86/gemm512.h"

enum { WORD = 32, PLANES = 2, TILE_ROWS = 4, CHUNK_BYTES = 1 << 14, CHUNK_ROWS = 64 };

#define bytes_gemm QI_VARIANT(qi_gemm_avx512vnni)

/* ------------------------------------------------------------------ packing */

static int32_t segment_of(const qi_gemm_layer *l)
{
    return l->segment ? l->segment : l->depth;
}

static int32_t words_of(const qi_gemm_layer *l)
{
    int32_t const segment = segment_of(l);
    return l->depth / segment * ((segment + WORD - 1) / WORD);
}

static uint64_t first_bits(int32_t n)
{
    return n < 2 * WORD ? (UINT64_C(1) << n) - 1 : UINT64_MAX;
}

/** A bit for each of the first n <= 64 weights: is it `code`? */
static uint64_t equal_to(int code, const uint8_t *w, int32_t n)
{
    __m512i const codes = qi_load_bytes512(first_bits(n), w);
    return first_bits(n) & _mm512_cmpeq_epi8_mask(codes, _mm512_set1_epi8((char)code));
}

static int has_binary_weights(const qi_gemm_layer *l)
{
    size_t const count = (size_t)l->channels * (size_t)l->depth;
    if (l->w_codes.flip != 0x80 || l->w_codes.offset != 128)
        return 0;
    for (size_t i = 0; i < count; i += 2 * WORD) {
        int32_t const n = count - i < 2 * WORD ? (int32_t)(count - i) : 2 * WORD;
        if ((equal_to(1, l->weights + i, n) | equal_to(-1, l->weights + i, n)) != first_bits(n))
            return 0;
    }
    return 1;
}

/**
 * Is the layer one for this file if its weights are, and large enough to gain?
 * bench/few_bits/bit_planes.c measures it. Inputs of three bits gain on an EPYC, but hardly where
 * two VPDPBUSD start in a cycle.
 */
static int may_have_planes(const qi_gemm_layer *l)
{
    enum { LEAST_CHANNELS = 64, LEAST_DEPTH = 256 };
    return l->x_bits == PLANES && l->channels >= LEAST_CHANNELS && l->depth >= LEAST_DEPTH;
}

static int has_planes(const qi_gemm_layer *l)
{
    return may_have_planes(l) && l->weights && has_binary_weights(l);
}

/** The layer as panels see it that have four bytes for a word of codes. */
static qi_gemm_layer in_words(const qi_gemm_layer *l)
{
    qi_gemm_layer small = *l;
    small.depth = 4 * words_of(l);
    small.segment = 0;
    return small;
}

/** The lowest x' of codes of two bits. */
static int lowest_of(int is_flipped)
{
    return is_flipped ? 128 - 2 : 0;
}

static size_t packed_bytes(const qi_gemm_layer *layer)
{
    if (!has_planes(layer)) /* and bits need no more than codes */
        return bytes_gemm.packed_bytes(layer);
    qi_gemm_layer const small = in_words(layer);
    return qi_packed_bytes(&small, &shape);
}

/** The words of one channel, `hop` apart. */
static void pack_channel(const qi_gemm_layer *l, const uint8_t *w, uint32_t *to, size_t hop)
{
    int32_t const segment = segment_of(l);
    for (int32_t at = 0; at < l->depth; at += segment)
        for (int32_t k = 0; k < segment; k += WORD, to += hop) {
            int32_t const left = segment - k;
            *to = (uint32_t)equal_to(1, w + at + k, left < WORD ? left : WORD);
        }
}

static void pack_panel(const qi_gemm_layer *l, qi_packed *h, int32_t number)
{
    int32_t const room = qi_panel_room(h, number);
    int32_t *columns = (int32_t *)(uintptr_t)qi_panel_at(h, number);
    uint32_t *words = (uint32_t *)(columns + QI_COLUMNS * room);
    for (int32_t i = 0; i < room; i++) {
        int32_t const channel =
            number * h->panel_channels + qi_panel_channel(room / LANES, LANES, i);
        if (channel < l->channels)
            pack_channel(l, l->weights + (size_t)channel * (size_t)l->depth, words + i,
                         (size_t)room);
    }
}

static void pack(const qi_gemm_layer *layer, void *packed)
{
    qi_packed *h = packed;
    if (!has_planes(layer)) {
        bytes_gemm.pack(layer, packed);
        return;
    }
    qi_gemm_layer const small = in_words(layer);
    qi_gemm_layer of_u = *layer;
    of_u.x_codes.offset = (int16_t)(of_u.x_codes.offset - lowest_of(layer->x_codes.flip));
    memset(packed, 0, qi_packed_bytes(&small, &shape));
    qi_pack_header(h, &small, &shape);
    h->has_planes = 1;
    h->segment = segment_of(layer);
    h->segments = layer->depth / h->segment;
    qi_pack_columns(h, &of_u, &shape);
    for (int32_t i = 0; i < qi_panels(h); i++)
        pack_panel(layer, h, i);
}

/* ------------------------------------------------------------------ planes of x */

/** Words of a row of x: `groups` of them for each bit. */
static size_t row_words(const qi_packed *p)
{
    return (size_t)p->groups * PLANES;
}

/** Rows whose planes are made at once: whole tiles, because single rows read all weights again. */
static int32_t chunk_rows(size_t words)
{
    size_t const rows = CHUNK_BYTES / (words * sizeof(uint32_t));
    return rows < TILE_ROWS    ? TILE_ROWS
           : rows > CHUNK_ROWS ? CHUNK_ROWS
                               : (int32_t)(rows / TILE_ROWS * TILE_ROWS);
}

static size_t scratch(const qi_gemm_layer *layer)
{
    size_t const bytes = qi_gemm_scratch(&bytes_gemm, layer);
    if (!may_have_planes(layer) || (layer->weights && !has_planes(layer)))
        return bytes;
    size_t const words = (size_t)words_of(layer) * PLANES;
    size_t const planes = (size_t)chunk_rows(words) * words * sizeof(uint32_t);
    return planes > bytes ? planes : bytes;
}

/** Write the planes of a row; sum u. */
static int32_t make_planes(const qi_packed *p, const uint8_t *x, uint32_t *to)
{
    __m512i const lowest = _mm512_set1_epi8((char)lowest_of(p->x_flip != 0));
    int32_t sum = 0;
    for (int32_t s = 0; s < p->segments; s++, x += p->segment_stride)
        for (int32_t k = 0; k < p->segment; k += 2 * WORD) {
            int32_t const left = p->segment - k;
            uint64_t const there = first_bits(left);
            __m512i const u = _mm512_sub_epi8(qi_load_bytes512(there, x + k), lowest);
            uint64_t const u0 = there & _mm512_test_epi8_mask(u, _mm512_set1_epi8(1));
            uint64_t const u1 = there & _mm512_test_epi8_mask(u, _mm512_set1_epi8(2));
            *to++ = (uint32_t)u0;
            *to++ = (uint32_t)u1;
            if (left > WORD) {
                *to++ = (uint32_t)(u0 >> WORD);
                *to++ = (uint32_t)(u1 >> WORD);
            }
            sum += __builtin_popcountll(u0) + 2 * __builtin_popcountll(u1);
        }
    return sum;
}

/* ------------------------------------------------------------------ products */

/** Counts of a register. GCC would copy them in each step if they were of type __m512i between. */
#ifdef QI_SIMDE
typedef __m512i counts;
#else
typedef int32_t counts __attribute__((vector_size(64)));
#endif

INLINE counts add_bits_of_both(counts n, __m512i u, __m512i b)
{
    return (counts)_mm512_add_epi32((__m512i)n, _mm512_popcnt_epi32(_mm512_and_si512(u, b)));
}

/** rows x vectors * 16 channels from the planes of x; rows and vectors are constants. */
INLINE void tile(const struct panel *p, const uint32_t *x, const int32_t *sums_of_u, uint8_t *y,
                 int rows, int vectors)
{
    int const room = vectors * LANES;
    size_t const words = row_words(p->packed);
    const int32_t *b = p->columns + QI_COLUMNS * room;
    counts n[TILE_ROWS][VECTORS][PLANES];
    __m512i sums[TILE_ROWS][VECTORS];
    UNROLL
    for (int r = 0; r < rows; r++)
        UNROLL
    for (int v = 0; v < vectors; v++)
        n[r][v][0] = n[r][v][1] = (counts)_mm512_setzero_si512();
    for (const uint32_t *end = x + words; x < end; x += PLANES, b += room) {
        __m512i const b0 = _mm512_load_si512(b);
        __m512i const b1 = vectors == 2 ? _mm512_load_si512(b + LANES) : b0;
        UNROLL
        for (int r = 0; r < rows; r++)
            UNROLL
        for (int i = 0; i < PLANES; i++) {
            __m512i const u = _mm512_set1_epi32((int32_t)x[(size_t)r * words + (size_t)i]);
            n[r][0][i] = add_bits_of_both(n[r][0][i], u, b0);
            if (vectors == 2)
                n[r][1][i] = add_bits_of_both(n[r][1][i], u, b1);
        }
    }
    UNROLL
    for (int r = 0; r < rows; r++)
        UNROLL
    for (int v = 0; v < vectors; v++) {
        __m512i const doubled = _mm512_add_epi32(_mm512_slli_epi32((__m512i)n[r][v][0], 1),
                                                 _mm512_slli_epi32((__m512i)n[r][v][1], 2));
        sums[r][v] = _mm512_sub_epi32(_mm512_add_epi32(column(p, QI_COLUMN_BIAS, room, v), doubled),
                                      _mm512_set1_epi32(sums_of_u[r]));
    }
    finish(p, y, rows, vectors, sums);
}

typedef void tile_fn(const struct panel *p, const uint32_t *x, const int32_t *sums_of_u,
                     uint8_t *y);

#define TILE(NAME, ROWS_, VECTORS_)                                                                \
    static void NAME(const struct panel *p, const uint32_t *x, const int32_t *sums_of_u,           \
                     uint8_t *y)                                                                   \
    {                                                                                              \
        tile(p, x, sums_of_u, y, ROWS_, VECTORS_);                                                 \
    }
TILE(narrow_1, 1, 1)
TILE(narrow_4, TILE_ROWS, 1)
TILE(wide_1, 1, 2)
TILE(wide_4, TILE_ROWS, 2)

/** By vectors - 1, and whether there are TILE_ROWS rows. */
static tile_fn *const tiles[VECTORS][2] = {{narrow_1, narrow_4}, {wide_1, wide_4}};

/** The products of some rows, whose planes are made, with one panel. */
static void run_panel(const struct panel *p, int32_t rows, const uint32_t *x,
                      const int32_t *sums_of_u, uint8_t *y)
{
    int32_t const vectors = qi_panel_room(p->packed, p->number) / LANES;
    int32_t done;
    for (int32_t row = 0; row < rows; row += done) {
        int const is_whole = rows - row >= TILE_ROWS;
        done = is_whole ? TILE_ROWS : 1;
        tiles[vectors - 1][is_whole](p, x + (size_t)row * row_words(p->packed), sums_of_u + row,
                                     y + (size_t)row * p->y_stride);
    }
}

static void run(const qi_gemm_run *run)
{
    const qi_packed *p = run->packed;
    if (!p->has_planes) {
        bytes_gemm.run(run);
        return;
    }
    size_t const words = row_words(p);
    int32_t const most = chunk_rows(words);
    int32_t sums_of_u[CHUNK_ROWS];
    uint32_t *planes = run->scratch;
    struct panel panel = panel_of(run);
    qi_gemm_flips flips = qi_gemm_flips_of(run);
    for (int32_t row = 0; row < run->rows; row += most) {
        int32_t const left = run->rows - row, rows = left < most ? left : most;
        qi_gemm_flip_until(&flips, run->x + (size_t)(row + rows) * run->x_stride);
        for (int32_t r = 0; r < rows; r++)
            sums_of_u[r] = make_planes(p, qi_gemm_row(run, row + r), planes + (size_t)r * words);
        int32_t number = run->first_channel / p->panel_channels;
        for (int32_t n = run->first_channel; n < run->end_channel; n += p->panel_channels) {
            set_panel(&panel, number++, run);
            run_panel(&panel, rows, planes, sums_of_u, run->y + (size_t)row * run->y_stride + n);
        }
    }
}

static const char *sequence(const void *packed)
{
    return ((const qi_packed *)packed)->has_planes ? "vpandd vpopcntd vpaddd of 2 bits" : NULL;
}

const qi_gemm QI_VARIANT(qi_gemm_avx512vbmi) = {.name = "avx512vbmi",
                                                GEMM512_PIECES,
                                                .packed_bytes = packed_bytes,
                                                .pack = pack,
                                                .scratch = scratch,
                                                .run = run,
                                                .sequence = sequence};
