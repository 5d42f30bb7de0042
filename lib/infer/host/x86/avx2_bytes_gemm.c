/**
 * Matrix products with AVX2 on bytes. They are exact although VPMADDUBSW saturates.
 *
 *     sums[r][n] += x'[r, k .. k + 3] . w'[n, k .. k + 3]
 *                   VPMADDUBSW: u8 * s8, pairs of products to int16, saturating;
 *                   then VPMADDWD by ones: pairs of these to int32
 *
 * A pair of weights (a, b) is safe if its positive parts sum to at most 128 and its negative parts
 * to at least -128. For any x' in 0..255 the sum of the pair then lies within 255 * -128 .. 255 *
 * 128 = -32640..32640, and nothing saturates. Which pairs are safe is known when the weights are
 * packed. So a panel walks through k in groups of 4 by a list of offsets into the row of x. If a
 * group holds an unsafe pair in any channel of the panel, it is on the list twice: with h = floor(w
 * / 2) and with w - h for the weights of unsafe pairs (with w and 0 for the others). Both are safe:
 * |h| and |w - h| <= 64 for w in -128..127, so two of them are at most 128 together; and h + (w -
 * h) = w.
 *
 *   panel  | columns | count of entries | offset of each | weights [entries][channels][4] |
 *
 * Centring helps: w' = w - c, with the c nearest to Z_w that keeps all w' in -128..127. The row
 * term is then c - Z_w times the sum of the row. The number of doubled groups decides whether this
 * is worth it: if int8 weights fill the range of each channel, about half of the groups double, and
 * 16-bit products are faster.
 */
#include "infer/host/x86/avx2_bytes_gemm.h"
#include "infer/host/x86/gemm256.h"

enum { ROWS = 5, GROUP = 4, MOST = 128 };

static const qi_panel_shape shape = {
    .vectors = VECTORS, .narrow = 1, .lanes = LANES, .group = GROUP, .weight_size = 1};

/* ------------------------------------------------------------------ lists */

/** The lowest and highest code of the weights, byte ^ flip. */
static void range_of(const qi_gemm_layer *l, int *lowest, int *highest)
{
    size_t const count = (size_t)l->channels * (size_t)l->depth;
    uint8_t lo = 255, hi = 0;
    for (size_t i = 0; i < count; i++) {
        uint8_t const code = l->weights[i] ^ l->w_codes.flip;
        lo = code < lo ? code : lo;
        hi = code > hi ? code : hi;
    }
    *lowest = lo;
    *highest = hi;
}

/** c: the code nearest to Z_w whose distance to every code fits int8. */
static int32_t centre_of(const qi_gemm_layer *l)
{
    int lowest, highest;
    range_of(l, &lowest, &highest);
    return qi_clamp(l->w_codes.offset, highest - 127, lowest + 128);
}

enum { BLOCK = 1024 }; /* how many k have their pairs marked together */

/** The marks of 16 pairs; not 0 if the pair is unsafe. */
static __m256i unsafe_pairs(__m256i w)
{
    __m256i const zero = _mm256_setzero_si256(), ones = _mm256_set1_epi8(1);
    __m256i const up = _mm256_maddubs_epi16(ones, _mm256_max_epi8(w, zero));
    __m256i const down = _mm256_maddubs_epi16(ones, _mm256_min_epi8(w, zero));
    return _mm256_or_si256(_mm256_cmpgt_epi16(up, _mm256_set1_epi16(MOST)),
                           _mm256_cmpgt_epi16(_mm256_set1_epi16(-MOST), down));
}

/** w' of 32 weights at `codes`. Only the first `count` exist; the others are 0. */
static __m256i load_weights(const qi_gemm_layer *l, int32_t centre, const uint8_t *codes,
                            int32_t count)
{
    uint8_t some[32];
    const uint8_t *from = codes;
    if (count < 32) {
        memset(some, (uint8_t)centre ^ l->w_codes.flip, sizeof some);
        memcpy(some, codes, (size_t)count);
        from = some;
    }
    __m256i const bytes = _mm256_loadu_si256((const __m256i *)(const void *)from);
    __m256i const flipped = _mm256_xor_si256(bytes, _mm256_set1_epi8((char)l->w_codes.flip));
    return _mm256_sub_epi8(flipped, _mm256_set1_epi8((char)centre));
}

/**
 * Mark pairs of weights from `start` on that are unsafe in any of the channels first..end-1;
 * returns the number of groups.
 */
static int32_t mark_block(const qi_gemm_layer *l, int32_t centre, int32_t first, int32_t end,
                          int32_t start, int16_t marks[BLOCK / 2])
{
    int32_t const count = l->depth - start < BLOCK ? l->depth - start : BLOCK;
    memset(marks, 0, BLOCK / 2 * sizeof *marks);
    for (int32_t channel = first; channel < end; channel++) {
        const uint8_t *codes = l->weights + (size_t)channel * (size_t)l->depth + start;
        for (int32_t k = 0; k < count; k += 32) {
            __m256i *at = (__m256i *)(void *)(marks + k / 2);
            __m256i const w = load_weights(l, centre, codes + k, count - k);
            _mm256_storeu_si256(at, _mm256_or_si256(_mm256_loadu_si256(at), unsafe_pairs(w)));
        }
    }
    return (count + GROUP - 1) / GROUP;
}

static int is_marked(const int16_t *marks, int32_t group)
{
    return (marks[2 * group] | marks[2 * group + 1]) != 0;
}

/** How many groups of a panel are on its list twice. */
static int32_t count_doubled(const qi_gemm_layer *l, int32_t centre, int32_t first, int32_t end)
{
    int16_t marks[BLOCK / 2];
    int32_t doubled = 0;
    for (int32_t k = 0; k < l->depth; k += BLOCK) {
        int32_t const groups = mark_block(l, centre, first, end, k, marks);
        for (int32_t g = 0; g < groups; g++)
            doubled += is_marked(marks, g);
    }
    return doubled;
}

enum { PANEL = VECTORS * LANES };

/** How many groups of all panels may be on the lists twice. */
static int64_t most_doubled(const qi_gemm_layer *l)
{
    enum { WORTH = 14 }; /* one group in 14 */
    int32_t const groups = (l->depth + GROUP - 1) / GROUP, panels = (l->channels - 1) / PANEL + 1;
    return (int64_t)groups * panels / WORTH;
}

int32_t qi_avx2_bytes_most_entries(const qi_gemm_layer *l)
{
    int32_t const groups = (l->depth + GROUP - 1) / GROUP;
    int64_t const doubled = most_doubled(l);
    return groups + (doubled < groups ? (int32_t)doubled : groups);
}

int32_t qi_avx2_bytes_entries(const qi_gemm_layer *l)
{
    int32_t const groups = (l->depth + GROUP - 1) / GROUP;
    int32_t const centre = centre_of(l);
    int64_t const most = most_doubled(l);
    int64_t doubled = 0;
    int32_t longest = 0;
    for (int32_t first = 0; first < l->channels; first += PANEL) {
        int32_t const end = first + PANEL < l->channels ? first + PANEL : l->channels;
        int32_t const twice = count_doubled(l, centre, first, end);
        longest = groups + twice > longest ? groups + twice : longest;
        doubled += twice;
        if (doubled > most)
            return 0;
    }
    return longest;
}

/* ------------------------------------------------------------------ packing */

/** How many int32 (the count and the offsets) precede a panel's weights; a multiple of 64 bytes. */
static size_t list_size(int32_t entries)
{
    return ((size_t)entries + 1 + 15) / 16 * 16;
}

static size_t panel_size(int32_t entries, int32_t room)
{
    size_t const bytes = (QI_COLUMNS * (size_t)room + list_size(entries)) * sizeof(int32_t) +
                         (size_t)entries * (size_t)room * GROUP;
    return (bytes + 63) / 64 * 64;
}

size_t qi_avx2_bytes_packed(const qi_gemm_layer *layer, int32_t entries)
{
    int32_t const room = VECTORS * LANES;
    return QI_PACKED_HEADER +
           (size_t)((layer->channels - 1) / room + 1) * panel_size(entries, room);
}

/** Load the weights of a channel in a group; 0 after K. */
static void load_group(const qi_gemm_layer *l, int32_t centre, int32_t channel, int32_t k,
                       int8_t w[GROUP])
{
    const uint8_t *codes = l->weights + (size_t)channel * (size_t)l->depth;
    if (k + GROUP <= l->depth) {
        uint32_t word;
        memcpy(&word, codes + k, sizeof word);
        word ^= l->w_codes.flip * 0x01010101u;
        for (int i = 0; i < GROUP; i++)
            w[i] = (int8_t)((word >> 8 * i & 0xff) - (uint32_t)centre);
        return;
    }
    for (int32_t i = 0; i < GROUP; i++)
        w[i] = (int8_t)(k + i < l->depth ? (codes[k + i] ^ l->w_codes.flip) - centre : 0);
}

static int is_unsafe(int a, int b)
{
    int const up = (a > 0 ? a : 0) + (b > 0 ? b : 0), down = (a < 0 ? a : 0) + (b < 0 ? b : 0);
    return up > MOST || down < -MOST;
}

/** Replace the weights w of unsafe pairs by floor(w / 2), and set rest to w - floor(w / 2). */
static void split(int8_t w[GROUP], int8_t rest[GROUP])
{
    for (int i = 0; i < GROUP; i += 2) {
        int const unsafe = is_unsafe(w[i], w[i + 1]);
        for (int j = i; j < i + 2; j++) {
            int const half = unsafe ? w[j] >> 1 : w[j];
            rest[j] = (int8_t)(w[j] - half);
            w[j] = (int8_t)half;
        }
    }
}

/** One panel while it is packed. */
struct lists {
    const qi_gemm_layer *layer;
    int32_t centre, first, end, room;
    int32_t *list; /* the count so far, then offsets */
    int8_t *weights;
};

/** Append the group at k once or twice. */
static void append(const struct lists *p, int32_t k, int twice)
{
    const qi_gemm_layer *l = p->layer;
    int32_t const segment = l->segment ? l->segment : l->depth;
    int32_t const offset = k / segment * (int32_t)l->segment_stride + k % segment;
    size_t const size = (size_t)p->room * GROUP;
    int8_t *to = p->weights + (size_t)p->list[0] * size;
    p->list[++p->list[0]] = offset;
    if (twice)
        p->list[++p->list[0]] = offset;
    for (int32_t i = 0; i < p->room; i++, to += GROUP) {
        int32_t const channel = p->first + qi_panel_channel(p->room / LANES, LANES, i);
        if (channel >= p->end)
            continue;
        load_group(p->layer, p->centre, channel, k, to);
        if (twice)
            split(to, to + size);
    }
}

static void pack_lists(const struct lists *p)
{
    int16_t marks[BLOCK / 2];
    for (int32_t k = 0; k < p->layer->depth; k += BLOCK) {
        int32_t const groups = mark_block(p->layer, p->centre, p->first, p->end, k, marks);
        for (int32_t g = 0; g < groups; g++)
            append(p, k + g * GROUP, is_marked(marks, g));
    }
}

static void pack_panel(const qi_packed *p, const qi_gemm_layer *l, int32_t centre, int32_t panel)
{
    int32_t const room = qi_panel_room(p, panel), first = panel * p->panel_channels;
    int32_t *list = (int32_t *)(uintptr_t)qi_panel_at(p, panel) + QI_COLUMNS * room;
    struct lists const lists = {.layer = l,
                                .centre = centre,
                                .first = first,
                                .end = first + room < l->channels ? first + room : l->channels,
                                .room = room,
                                .list = list,
                                .weights = (int8_t *)(list + list_size(p->entries))};
    pack_lists(&lists);
}

void qi_avx2_bytes_pack(const qi_gemm_layer *layer, int32_t entries, void *packed)
{
    qi_packed *p = packed;
    int32_t const centre = centre_of(layer);
    memset(packed, 0, qi_avx2_bytes_packed(layer, entries));
    qi_pack_header(p, layer, &shape);
    p->entries = entries;
    p->row_factor = centre - layer->w_codes.offset;
    p->panel_bytes = panel_size(entries, p->panel_channels);
    for (int32_t i = 0; i < qi_panels(p); i++)
        pack_panel(p, layer, centre, i);
    qi_pack_columns(p, layer, &shape);
}

/* ------------------------------------------------------------------ tiles */

INLINE int32_t load_word(const uint8_t *at)
{
    int32_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

INLINE __m256i load(const int8_t *at)
{
    return _mm256_load_si256((const __m256i *)(const void *)at);
}

/** rows (a constant) x vectors * 8 channels. */
INLINE void tile(const struct job *j, int rows, int vectors)
{
    int const room = vectors * LANES;
    const int32_t *list = j->columns + QI_COLUMNS * room, *offset = list + 1;
    const int32_t *end = offset + list[0];
    const int8_t *w = (const int8_t *)(list + list_size(j->packed->entries));
    const uint8_t *x = j->x, *next = j->next;
    __m256i const ones = _mm256_set1_epi16(1);
    ACCUMULATORS(sums, rows, vectors)
    for (; offset < end; offset++, w += GROUP * room, next += j->next_step) {
        _mm_prefetch((const char *)next, _MM_HINT_T1);
        __m256i const w0 = load(w), w1 = vectors == 2 ? load(w + 32) : w0;
        const uint8_t *group = x + *offset;
        UNROLL
        for (int r = 0; r < rows; r++) {
            __m256i const codes = _mm256_set1_epi32(load_word(group + (size_t)r * j->x_stride));
            __m256i const pairs = _mm256_maddubs_epi16(codes, w0);
            sums[r][0] = _mm256_add_epi32(sums[r][0], _mm256_madd_epi16(pairs, ones));
            if (vectors == 2)
                sums[r][1] = _mm256_add_epi32(
                    sums[r][1], _mm256_madd_epi16(_mm256_maddubs_epi16(codes, w1), ones));
        }
    }
    finish(j, rows, vectors, (const __m256i(*)[VECTORS])sums);
}

TILES(1)
TILES(2)
TILES(3)
TILES(4)
TILES(5)

static const tile_table tiles = {{NULL, narrow_1, narrow_2, narrow_3, narrow_4, narrow_5},
                                 {NULL, wide_1, wide_2, wide_3, wide_4, wide_5}};

void qi_avx2_bytes_run(const qi_gemm_run *run)
{
    run_codes(run, ROWS, tiles);
}
