/**
 * Matrix products with the dot products of ARMv8.2.
 *
 *   sums[r][n] += x[r, 4 g .. 4 g + 3] . w'[n, 4 g .. 4 g + 3]      SDOT: s8 * s8, four products a
 *                                                                  lane, added modulo 2^32
 *
 * A tile is up to 8 rows x 8 channels: 16 accumulators, 8 registers with 16 bytes of each row, two
 * of weights. SDOT selects four bytes of x from a register by index, so one load of x serves four
 * groups.
 */
#include "infer/host/arm/arm.h"
#include "infer/host/arm/neon_pieces.h"

enum { ROWS = 8, VECTORS = 2, GROUP = 4 };

static const qi_panel_shape shape = {.vectors = VECTORS,
                                     .narrow = 1,
                                     .lanes = QI_NEON_LANES,
                                     .group = GROUP,
                                     .weight_size = 1,
                                     .one_tail = 1};

/** Weights of one group, four channels. */
INLINE int8x16_t weights_at(const int8_t *w, int v)
{
    return vld1q_s8(w + v * 16);
}

/** Load four groups of each row. */
INLINE void load_rows(const qi_neon_job *j, int rows, int32_t group, uint8x16_t flip,
                      int8x16_t x[ROWS])
{
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
        x[r] = qi_signed_bytes(j->x + (size_t)r * j->x_stride + (size_t)group * GROUP, flip);
}

/** One group of k: its four bytes of x are lane (a constant) of x[r]. */
#define MULTIPLY_GROUP(lane)                                                                       \
    do {                                                                                           \
        int8x16_t const w0 = weights_at(w, 0), w1 = weights_at(w, vectors - 1);                    \
        _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++)                                     \
        {                                                                                          \
            sums[r][0] = vdotq_laneq_s32(sums[r][0], w0, x[r], lane);                              \
            if (vectors == 2)                                                                      \
                sums[r][1] = vdotq_laneq_s32(sums[r][1], w1, x[r], lane);                          \
        }                                                                                          \
        w += vectors * 16;                                                                         \
    } while (0)

/**
 * Multiply all of k. rows and vectors are constants. After K the bytes of x may be anything; w' is
 * 0 there.
 */
INLINE void multiply(const qi_neon_job *j, int rows, int vectors, int32x4_t sums[ROWS][VECTORS])
{
    const qi_packed *p = j->packed;
    const int8_t *w = (const int8_t *)(j->columns + QI_COLUMNS * j->room);
    uint8x16_t const flip = vdupq_n_u8((uint8_t)p->x_flip);
    int8x16_t x[ROWS];
    int32_t g = 0;
    for (; g + 4 <= p->groups; g += 4) {
        load_rows(j, rows, g, flip, x);
        MULTIPLY_GROUP(0);
        MULTIPLY_GROUP(1);
        MULTIPLY_GROUP(2);
        MULTIPLY_GROUP(3);
    }
    if (g == p->groups)
        return;
    load_rows(j, rows, g, flip, x);
    MULTIPLY_GROUP(0);
    if (g + 1 < p->groups)
        MULTIPLY_GROUP(1);
    if (g + 2 < p->groups)
        MULTIPLY_GROUP(2);
}

/** Store the codes of one row: 8 channels, or as many as are written. */
INLINE void store_row(const qi_neon_job *j, int row, uint8x8_t codes)
{
    uint8_t *to = j->y + (size_t)row * j->y_stride;
    uint8_t byte[8];
    if (j->channels == 8) {
        vst1_u8(to, codes);
        return;
    }
    vst1_u8(byte, codes);
    memcpy(to, byte, (size_t)j->channels);
}

INLINE void tile(const qi_neon_job *j, int rows, int vectors)
{
    qi_neon_output const output = qi_output_of(j->packed);
    int32x4_t sums[ROWS][VECTORS];
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++)
            sums[r][v] = qi_start(j, r, v);
    multiply(j, rows, vectors, sums);
    if (j->packed->tail == QI_TAIL_SUMS) {
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++)
            qi_store_row_sums(j, r, (int32x4x2_t){{sums[r][0], sums[r][vectors - 1]}});
        return;
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) {
        int32x4x2_t const value = qi_requantize_sums(j, vectors, sums[r][0], sums[r][vectors - 1]);
        store_row(j, r, qi_codes_of_lanes(&output, value.val[0], value.val[1]));
    }
}

/** A tile for each height, so that the accumulators stay in registers. */
#define TILE(rows_)                                                                                \
    static void tile_##rows_(const qi_neon_job *j)                                                 \
    {                                                                                              \
        if (j->room == VECTORS * QI_NEON_LANES)                                                    \
            tile(j, rows_, VECTORS);                                                               \
        else                                                                                       \
            tile(j, rows_, 1);                                                                     \
    }
TILE(1)
TILE(2)
TILE(3)
TILE(4)
TILE(5)
TILE(6)
TILE(7)
TILE(8)

static void any_tile(const qi_neon_job *j, int rows)
{
    typedef void tile_fn(const qi_neon_job *j);
    static tile_fn *const tiles[ROWS] = {tile_1, tile_2, tile_3, tile_4,
                                         tile_5, tile_6, tile_7, tile_8};
    tiles[rows - 1](j);
}

static void run(const qi_gemm_run *run)
{
    qi_neon_pieces(run->packed, run, ROWS, any_tile);
}

static size_t packed_bytes(const qi_gemm_layer *layer)
{
    return qi_packed_bytes(layer, &shape);
}

static void pack(const qi_gemm_layer *layer, void *packed)
{
    qi_gemm_layer const l = qi_neon_layer(layer);
    qi_pack(&l, &shape, packed);
}

const qi_gemm QI_VARIANT(qi_gemm_neondot) = {.name = "neondot",
                                             .row_tile = ROWS,
                                             .channel_tile = VECTORS * QI_NEON_LANES,
                                             .least_channels = QI_NEON_LANES,
                                             .packed_bytes = packed_bytes,
                                             .pack = pack,
                                             .run = run};
