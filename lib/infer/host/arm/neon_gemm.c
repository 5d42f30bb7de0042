/**
 * Matrix products with the 8-bit multiplications of NEON; Jacob et al. appendix B.
 *
 *   p[i] = x[i] w'[i] + x[i + 8] w'[i + 8]      i < 8; SMULL, SMLAL: s8 * s8, in 16 bits
 *   sums[r][n] += p[0] + p[1] | .. | p[6] + p[7]       SADALP: in four 32-bit lanes
 *
 * Two products fit 16 bits unless all four factors are -128: every other product of two bytes is in
 * -16256..16256, or 16384, and 16384 + 16256 < 2^15. Weights of this framework are never -128, but
 * those of others may be. A layer with w'[i] = w'[i + 8] = -128 somewhere uses SADALP after every
 * product (`apart`).
 *
 * A tile is up to 4 rows x 4 channels (2 x 4 on 32-bit ARM, which has half the registers). A step
 * takes 16 of k. Each output has one accumulator, whose lanes are added up at the end.
 */
#include "infer/host/arm/arm.h"
#include "infer/host/arm/neon_pieces.h"

#if defined(QI_SIMDE) || defined(__aarch64__)
enum { ROWS = 4 };
#else
enum { ROWS = 2 };
#endif
enum { CHANNELS = QI_NEON_LANES, GROUP = 16 };

static const qi_panel_shape shape = {.vectors = 1,
                                     .narrow = 0,
                                     .lanes = QI_NEON_LANES,
                                     .group = GROUP,
                                     .weight_size = 1,
                                     .one_tail = 1};

/** Before the packed layer, in QI_FAST_ALIGN bytes. */
typedef struct prefix {
    int32_t apart;
} prefix;

enum { PREFIX_BYTES = 64 };

INLINE int32x4_t multiply_add(int32x4_t sum, int8x16_t x, int8x16_t w, int apart)
{
    int16x8_t const low = vmull_s8(vget_low_s8(x), vget_low_s8(w));
    if (apart)
        return vpadalq_s16(vpadalq_s16(sum, low), qi_multiply_high(x, w));
    return vpadalq_s16(sum, qi_multiply_add_high(low, x, w));
}

/** Four lanes of each output's sum. rows and apart are constants. After K, w' is 0. */
INLINE void multiply(const qi_neon_job *j, int rows, int apart, int32x4_t sums[ROWS][CHANNELS])
{
    const qi_packed *p = j->packed;
    const int8_t *w = (const int8_t *)(j->columns + QI_COLUMNS * CHANNELS);
    uint8x16_t const flip = vdupq_n_u8((uint8_t)p->x_flip);
    for (size_t k = 0; k < (size_t)p->groups * GROUP; k += GROUP, w += CHANNELS * GROUP) {
        int8x16_t const w0 = vld1q_s8(w), w1 = vld1q_s8(w + 16), w2 = vld1q_s8(w + 32),
                        w3 = vld1q_s8(w + 48);
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) {
            int8x16_t const x = qi_signed_bytes(j->x + (size_t)r * j->x_stride + k, flip);
            sums[r][0] = multiply_add(sums[r][0], x, w0, apart);
            sums[r][1] = multiply_add(sums[r][1], x, w1, apart);
            sums[r][2] = multiply_add(sums[r][2], x, w2, apart);
            sums[r][3] = multiply_add(sums[r][3], x, w3, apart);
        }
    }
}

/** The sums of one row, one lane per channel. */
INLINE int32x4_t row_sums(const qi_neon_job *j, int row, const int32x4_t sums[CHANNELS])
{
    int32x4_t const sum =
        qi_pairwise_add(qi_pairwise_add(sums[0], sums[1]), qi_pairwise_add(sums[2], sums[3]));
    return vaddq_s32(sum, qi_start(j, row, 0));
}

/** Turn these sums into values without zero-point. */
INLINE int32x4_t finish_row(const qi_neon_job *j, int row, const int32x4_t sums[CHANNELS])
{
    int32x4_t const whole = row_sums(j, row, sums);
    return qi_requantize_sums(j, 1, whole, whole).val[0];
}

/** Store four codes, or as many channels as are written. */
INLINE void store_row(const qi_neon_job *j, int row, const uint8_t *codes)
{
    uint8_t *to = j->y + (size_t)row * j->y_stride;
    if (j->channels == CHANNELS)
        memcpy(to, codes, CHANNELS);
    else
        memcpy(to, codes, (size_t)j->channels);
}

INLINE void tile(const qi_neon_job *j, int rows, int apart)
{
    qi_neon_output const output = qi_output_of(j->packed);
    int32x4_t sums[ROWS][CHANNELS];
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < CHANNELS; c++)
            sums[r][c] = vdupq_n_s32(0);
    multiply(j, rows, apart, sums);
    if (j->packed->tail == QI_TAIL_SUMS) {
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) {
            int32x4_t const whole = row_sums(j, r, sums[r]);
            qi_store_row_sums(j, r, (int32x4x2_t){{whole, whole}});
        }
        return;
    }
#pragma GCC unroll 4
    for (int r = 0; r < rows; r += 2) {
        uint8_t codes[2 * CHANNELS];
        int const both = r + 1 < rows;
        int32x4_t const first = finish_row(j, r, sums[r]);
        int32x4_t const second = both ? finish_row(j, r + 1, sums[r + both]) : first;
        vst1_u8(codes, qi_codes_of_lanes(&output, first, second));
        store_row(j, r, codes);
        if (both)
            store_row(j, r + 1, codes + CHANNELS);
    }
}

/** A tile for each height, so that the accumulators stay in registers. */
#define TILE(rows_)                                                                                \
    static void tile_##rows_(const qi_neon_job *j, int apart)                                      \
    {                                                                                              \
        if (apart)                                                                                 \
            tile(j, rows_, 1);                                                                     \
        else                                                                                       \
            tile(j, rows_, 0);                                                                     \
    }
TILE(1)
TILE(2)
#if defined(QI_SIMDE) || defined(__aarch64__)
TILE(3)
TILE(4)
#endif

static void any_tile(const qi_neon_job *j, int rows)
{
    const prefix *pre = (const prefix *)(const void *)((const uint8_t *)j->packed - PREFIX_BYTES);
    typedef void tile_fn(const qi_neon_job *j, int apart);
#if defined(QI_SIMDE) || defined(__aarch64__)
    static tile_fn *const tiles[ROWS] = {tile_1, tile_2, tile_3, tile_4};
#else
    static tile_fn *const tiles[ROWS] = {tile_1, tile_2};
#endif
    tiles[rows - 1](j, pre->apart);
}

static void run(const qi_gemm_run *run)
{
    const void *packed = (const uint8_t *)run->packed + PREFIX_BYTES;
    qi_neon_pieces(packed, run, ROWS, any_tile);
}

/* ------------------------------------------------------------------ packing */

static size_t packed_bytes(const qi_gemm_layer *layer)
{
    return PREFIX_BYTES + qi_packed_bytes(layer, &shape);
}

/** Is w'[i] = w'[i + 8] = -128 in any group of k of any channel? */
static int has_lowest_pair(const qi_gemm_layer *l)
{
    uint8_t const lowest = l->w_codes.flip; /* (byte ^ flip) - 128 = -128 */
    for (int32_t n = 0; n < l->channels; n++) {
        const uint8_t *w = l->weights + (size_t)n * (size_t)l->depth;
        for (int32_t k = 0; k + 8 < l->depth; k++)
            if (w[k] == lowest && k % GROUP < 8 && w[k + 8] == lowest)
                return 1;
    }
    return 0;
}

static void pack(const qi_gemm_layer *layer, void *packed)
{
    qi_gemm_layer const l = qi_neon_layer(layer);
    prefix const pre = {.apart = has_lowest_pair(layer)};
    memset(packed, 0, PREFIX_BYTES);
    memcpy(packed, &pre, sizeof pre);
    qi_pack(&l, &shape, (uint8_t *)packed + PREFIX_BYTES);
}

const qi_gemm QI_VARIANT(qi_gemm_neon) = {.name = "neon",
                                          .row_tile = ROWS,
                                          .channel_tile = CHANNELS,
                                          .least_channels = CHANNELS,
                                          .packed_bytes = packed_bytes,
                                          .pack = pack,
                                          .run = run};
