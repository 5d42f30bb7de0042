/**
 * Matrix products with AVX-512 VNNI.
 *
 *   sums[r][n] += x'[r, 4 g .. 4 g + 3] . w'[n, 4 g .. 4 g + 3]      VPDPBUSD: u8 * s8, four
 * products a lane, added without saturation
 *
 * A tile is up to 12 rows x 32 channels: 24 accumulators, 2 registers of weights, the x' of one row
 * at a time in all lanes. A narrow last panel has 16 channels. Requantizing (QI_TAIL_RIGHT), in
 * registers, of a sum s with multiplier m and right shift n > 0 (see include/qat/rounding.h):
 *
 *   x = (s m + 2^30) >> 31        even and odd lanes apart, as 64-bit products
 *   q = (x + (x >> 31) + 2^(n-1)) >> n          ties away from zero
 */
#include "infer/host/x86/intrinsics.h"
#include "infer/host/x86/x86.h"

enum { ROWS = 12, VECTORS = 2, LANES = 16, CALL_ROWS = 240 /* a multiple of ROWS */ };

static const qi_panel_shape shape = {
    .vectors = VECTORS, .narrow = 1, .lanes = LANES, .group = 4, .weight_size = 1};

/** One panel's share of a piece. */
struct job {
    const qi_packed *packed;
    int32_t panel, channels; /* that are written */
    const int32_t *columns;
    const uint8_t *x;
    size_t x_stride;
    const int32_t *row_terms;
    uint8_t *y; /* of the panel's first channel */
    size_t y_stride;
};

#define INLINE static inline __attribute__((always_inline))

INLINE __m512i column(const struct job *j, int which, int room, int v)
{
    return _mm512_load_si512(j->columns + which * room + v * LANES);
}

INLINE int32_t load_word(const uint8_t *at)
{
    int32_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/** x = (s m + 2^30) >> 31 of signed 32-bit lanes, 0 <= m < 2^31. */
INLINE __m512i high_multiply(__m512i s, __m512i m)
{
    const __m512i half = _mm512_set1_epi64(INT64_C(1) << 30);
    __m512i const even = _mm512_add_epi64(_mm512_mul_epi32(s, m), half);
    __m512i const odd =
        _mm512_add_epi64(_mm512_mul_epi32(qi_odd_lanes512(s), qi_odd_lanes512(m)), half);
    return _mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 31), _mm512_slli_epi64(odd, 1));
}

INLINE __m512i requantize_right(const struct job *j, int room, int v, __m512i s)
{
    __m512i const x = high_multiply(s, column(j, QI_COLUMN_MULT, room, v));
    __m512i const rounded = _mm512_add_epi32(
        x, _mm512_add_epi32(qi_sra512(x, 31), column(j, QI_COLUMN_ROUND, room, v)));
    return qi_srav512(rounded, column(j, QI_COLUMN_RIGHT, room, v));
}

/** Codes of one row: to int16 with the zero-point, to int8, clamped, stored. */
INLINE void store_row(const struct job *j, int row, int vectors, __m512i a, __m512i b)
{
    const qi_packed *p = j->packed;
    __m512i const pair = _mm512_adds_epi16(_mm512_packs_epi32(a, vectors == 2 ? b : a),
                                           _mm512_set1_epi16((int16_t)p->zero_point));
    __m512i const codes = _mm512_min_epi8(
        _mm512_max_epi8(_mm512_packs_epi16(pair, pair), _mm512_set1_epi8((int8_t)p->lo)),
        _mm512_set1_epi8((int8_t)p->hi));
    __m512i const flipped = _mm512_xor_si512(codes, _mm512_set1_epi32(p->y_flip));
    __m512i const order = vectors == 2
                              ? _mm512_set_epi64(0, 0, 0, 0, 6, 4, 2, 0)
                              : _mm512_set_epi32(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 12, 8, 4, 0);
    __m512i const together = vectors == 2 ? _mm512_permutexvar_epi64(order, flipped)
                                          : _mm512_permutexvar_epi32(order, flipped);
    uint64_t const mask = (UINT64_C(1) << j->channels) - 1;
    qi_store_bytes512(j->y + (size_t)row * j->y_stride, mask, together);
}

/** All but QI_TAIL_RIGHT: through memory, by the scalar functions. */
static void requantize_slow(const struct job *j, int vectors, __m512i *sums)
{
    int32_t lane[VECTORS * LANES];
    memcpy(lane, sums, (size_t)vectors * sizeof *sums);
    qi_requantize_row(j->packed, j->panel, LANES, lane);
    memcpy(sums, lane, (size_t)vectors * sizeof *sums);
}

/** rows (a constant) x vectors * 16 channels. */
INLINE void tile(const struct job *j, int rows, int vectors)
{
    const qi_packed *p = j->packed;
    int const room = vectors * LANES;
    const uint8_t *w = (const uint8_t *)(j->columns + QI_COLUMNS * room);
    __m512i const flip = _mm512_set1_epi32(p->x_flip);
    __m512i sums[ROWS][VECTORS];
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++)
            sums[r][v] = _mm512_add_epi32(column(j, QI_COLUMN_BIAS, room, v),
                                          _mm512_set1_epi32(j->row_terms[r]));
    for (size_t k = 0; k < (size_t)p->groups * 4; k += 4, w += 4 * room) {
        __m512i const w0 = _mm512_load_si512(w);
        __m512i const w1 = vectors == 2 ? _mm512_load_si512(w + 64) : w0;
#pragma GCC unroll 16
        for (int r = 0; r < rows; r++) {
            __m512i const x = _mm512_xor_si512(
                _mm512_set1_epi32(load_word(j->x + (size_t)r * j->x_stride + k)), flip);
            sums[r][0] = _mm512_dpbusd_epi32(sums[r][0], x, w0);
            if (vectors == 2)
                sums[r][1] = _mm512_dpbusd_epi32(sums[r][1], x, w1);
        }
    }
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++) {
        if (p->tail == QI_TAIL_RIGHT) {
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++)
                sums[r][v] = requantize_right(j, room, v, sums[r][v]);
        } else {
            requantize_slow(j, vectors, sums[r]);
        }
        store_row(j, r, vectors, sums[r][0], sums[r][vectors - 1]);
    }
}

#define TILES(ROWS_)                                                                               \
    static void wide_##ROWS_(const struct job *j)                                                  \
    {                                                                                              \
        tile(j, ROWS_, 2);                                                                         \
    }                                                                                              \
    static void narrow_##ROWS_(const struct job *j)                                                \
    {                                                                                              \
        tile(j, ROWS_, 1);                                                                         \
    }
TILES(1)
TILES(2)
TILES(3)
TILES(4)
TILES(5)
TILES(6)
TILES(7)
TILES(8)
TILES(9)
TILES(10)
TILES(11)
TILES(12)

typedef void tile_fn(const struct job *j);
static tile_fn *const tiles[2][ROWS + 1] = {{NULL, narrow_1, narrow_2, narrow_3, narrow_4, narrow_5,
                                             narrow_6, narrow_7, narrow_8, narrow_9, narrow_10,
                                             narrow_11, narrow_12},
                                            {NULL, wide_1, wide_2, wide_3, wide_4, wide_5, wide_6,
                                             wide_7, wide_8, wide_9, wide_10, wide_11, wide_12}};

/** d sum x' of every row. */
static void fill_row_terms(const qi_packed *p, const uint8_t *x, size_t x_stride, int32_t rows,
                           int32_t *terms)
{
    __m512i const flip = _mm512_set1_epi32(p->x_flip), ones = _mm512_set1_epi8(1);
    for (int32_t r = 0; r < rows; r++, x += x_stride) {
        __m512i sums = _mm512_setzero_si512();
        for (int32_t k = 0; k < p->depth; k += 64) {
            uint64_t const mask =
                p->depth - k < 64 ? (UINT64_C(1) << (p->depth - k)) - 1 : UINT64_MAX;
            __m512i const bytes = _mm512_xor_si512(qi_load_bytes512(mask, x + k), flip);
            sums = _mm512_dpbusd_epi32(sums, bytes, _mm512_and_si512(ones, _mm512_movm_epi8(mask)));
        }
        terms[r] = (int32_t)((uint32_t)p->row_factor * (uint32_t)qi_sum_lanes512(sums));
    }
}

/** All rows against one panel, in tiles of equal height, up to one. */
static void run_panel(const qi_packed *p, int32_t panel, const qi_gemm_run *run, int32_t first_row,
                      int32_t rows, const int32_t *row_terms)
{
    int32_t const first = panel * p->panel_channels, n = (rows + ROWS - 1) / ROWS;
    int32_t const room = qi_panel_room(p, panel);
    int32_t const left = run->end_channel - first;
    struct job j = {.packed = p,
                    .panel = panel,
                    .channels = left < room ? left : room,
                    .columns = qi_panel_at(p, panel),
                    .x_stride = run->x_stride,
                    .y_stride = run->y_stride};
    for (int32_t i = 0; i < n; i++) {
        int32_t const from = rows * i / n, to = rows * (i + 1) / n;
        j.x = run->x + (size_t)(first_row + from) * run->x_stride;
        j.y = run->y + (size_t)(first_row + from) * run->y_stride + first;
        j.row_terms = row_terms + from;
        tiles[room / LANES - 1][to - from](&j);
    }
}

static void run(const qi_gemm_run *run)
{
    const qi_packed *p = run->packed;
    int32_t row_terms[CALL_ROWS] = {0};
    for (int32_t r = 0; r < run->rows; r += CALL_ROWS) {
        int32_t const rows = run->rows - r < CALL_ROWS ? run->rows - r : CALL_ROWS;
        if (p->row_factor)
            fill_row_terms(p, run->x + (size_t)r * run->x_stride, run->x_stride, rows, row_terms);
        for (int32_t n = run->first_channel; n < run->end_channel; n += p->panel_channels)
            run_panel(p, n / p->panel_channels, run, r, rows, row_terms);
    }
}

static size_t packed_bytes(const qi_gemm_layer *layer)
{
    return qi_packed_bytes(layer, &shape);
}

static void pack(const qi_gemm_layer *layer, void *packed)
{
    qi_pack(layer, &shape, packed);
}

const qi_gemm QI_VARIANT(qi_gemm_avx512vnni) = {.name = "avx512vnni",
                                                .row_tile = ROWS,
                                                .channel_tile = VECTORS * LANES,
                                                .packed_bytes = packed_bytes,
                                                .pack = pack,
                                                .run = run};
