/**
 * Depthwise convolutions with AVX-512 VNNI. It also computes two rows of a block at once: these
 * take 16 vectors of quads and 8 of values, and half as many registers would not hold them.
 */
#include "infer/host/x86/x86.h"

#include "infer/host/x86/wide512.h"

#include "infer/host/x86/depthwise_vnni.h"

/**
 * Compute two rows of two columns, whose kernels cover q[0..2] and q[1..3]: the values of groups 2
 * half and 2 half + 1, as int16.
 */
INLINE void square(const struct block *k, int half, vector q[4][BLOCK], vector values[COLUMNS])
{
    vector v[2][COLUMNS];
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        int const j = 2 * half + i;
        const qi_depthwise_head *head = head_at(k, j);
        const uint8_t *w = weights_at(k, head), *second = w + 3 * DOT_BYTES;
        struct tail const t = tail_of(head, k->kind, k->part);
        vector const bias = v_load(head->bias);
        v[i][0] = requantize(&t, dot3(bias, &q[0][j], &q[1][j], &q[2][j], w));
        v[i][1] = requantize(&t, dot3(bias, &q[1][j], &q[2][j], &q[3][j], w));
        v[i][2] = requantize(&t, dot3(bias, &q[0][j], &q[1][j], &q[2][j], second));
        v[i][3] = requantize(&t, dot3(bias, &q[1][j], &q[2][j], &q[3][j], second));
    }
    for (int i = 0; i < COLUMNS; i++)
        values[i] = V(packs_epi32)(v[0][i], v[1][i]);
}

/** Compute two rows of outputs with stride 1: weights are read once for four outputs. */
INLINE void run_squares(const qi_depthwise_block *b, int kind, int part)
{
    struct block const k = {.b = b, .kind = kind, .part = part};
    const qi_depthwise_head *head = b->groups;
    uint8_t *y[2] = {b->y[0], b->y[1]};
    vector q[4][BLOCK], low[COLUMNS], high[COLUMNS];
    column_at(&k, 0, q[0]);
    column_at(&k, 1, q[1]);
    for (int32_t x = 0; x < b->columns; x += 2) {
        column_at(&k, x + 2, q[2]);
        column_at(&k, x + 3, q[3]);
        square(&k, 0, q, low);
        square(&k, 1, q, high);
        for (int i = 0; i < COLUMNS; i++)
            if (i % 2 == 0 || x + 1 < b->columns)
                v_store(y[i / 2] + (size_t)(x + i % 2) * (size_t)b->y_step,
                        finish(head, V(packs_epi16)(low[i], high[i])));
        for (int j = 0; j < BLOCK; j++) {
            q[0][j] = q[2][j];
            q[1][j] = q[3][j];
        }
    }
}

KINDS(squares, qi_depthwise_block, run_squares)

static void run_one_or_two(const qi_depthwise_block *b)
{
    const qi_depthwise_head *head = b->groups;
    if (b->rows == 2)
        squares_by_tail[head->tail](b);
    else
        run_block(b);
}

const qi_depthwise QI_VARIANT(qi_depthwise_avx512vnni) = {.name = "avx512vnni",
                                                          .group_bytes = group_bytes,
                                                          .pack = pack,
                                                          .interleave = interleave,
                                                          .run = run,
                                                          .run_block = run_one_or_two,
                                                          .block_rows = 2};
