/**
 * Blocks (depthwise.h) in registers of 8 lanes; include it after depthwise_256.h. A block is two
 * halves of 32 channels; each half has 8 lanes of each group. The columns under the windows are
 * kept in a ring of four, so that each is read and interleaved only once. It computes one row of
 * outputs: two would need more registers than there are, and strips are faster for them.
 */
#include "infer/host/x86/depthwise_256.h"

enum { BLOCK = QI_DEPTHWISE_BLOCK };

/** Half a block while it runs. */
struct block {
    const qi_depthwise_block *b;
    int kind, half; /* constant wherever they are inlined */
};

INLINE const qi_depthwise_head *head_at(const struct block *k, int j)
{
    return (const qi_depthwise_head *)(const void *)((const uint8_t *)k->b->groups +
                                                     (size_t)j * k->b->group_bytes);
}

/** The weights of the first output row. */
INLINE const uint8_t *weights_at(const struct block *k, const qi_depthwise_head *head)
{
    return (const uint8_t *)(head + 1) + (size_t)(k->half * head->rows) * 3 * DOT_BYTES;
}

/** Column x of four groups, counted from the left border. */
INLINE void column_at(const struct block *k, int32_t x, column c[BLOCK])
{
    const qi_depthwise_rows *rows = &k->b->x;
    __m256i const flip = _mm256_set1_epi8((char)rows->flip);
    size_t const at = (size_t)(x - k->b->first);
    __m256i r[4], quads[BLOCK];
    if (at >= (size_t)rows->pixels) { /* also below 0 */
        for (int j = 0; j < BLOCK; j++)
            c[j] = column_of(_mm256_set1_epi32((int32_t)k->b->border));
        return;
    }
    for (int i = 0; i < 4; i++)
        r[i] = _mm256_xor_si256(load256(rows->row[i] + at * rows->pitch[i] + 32 * k->half), flip);
    quads_of(r, quads);
    for (int j = 0; j < BLOCK; j++)
        c[j] = column_of(quads[j]);
}

/** Store 32 codes of column x from the values of four groups. */
INLINE void store_codes(const struct block *k, const struct tail *t, int32_t x,
                        const __m256i v[BLOCK])
{
    __m256i const low = _mm256_packs_epi32(v[0], v[1]), high = _mm256_packs_epi32(v[2], v[3]);
    uint8_t *y = k->b->y[0] + (size_t)x * (size_t)k->b->y_step + 32 * k->half;
    store256(y, clamped(t, _mm256_packs_epi16(low, high)));
}

/** Compute one row of outputs; stride is a constant. */
INLINE void run_columns(const struct block *k, int stride)
{
    struct tail const store = tail_of(head_at(k, 0), k->kind, k->half);
    column ring[4][BLOCK], *a = ring[0], *b = ring[1], *c = ring[2], *d = ring[3];
    __m256i v[BLOCK];
    column_at(k, 0, a);
    column_at(k, 1, b);
    for (int32_t x = 0; x < k->b->columns; x++) {
        column_at(k, stride * x + 2, c);
#pragma GCC unroll 4
        for (int j = 0; j < BLOCK; j++) {
            const qi_depthwise_head *head = head_at(k, j);
            struct tail const t = tail_of(head, k->kind, k->half);
            __m256i const bias = load256(head->bias + t.first);
            v[j] = requantize(&t, dot3(bias, &a[j], &b[j], &c[j], weights_at(k, head)));
        }
        store_codes(k, &store, x, v);
        if (stride == 2)
            column_at(k, 2 * x + 3, d);
        column *const first = a, *const second = b;
        a = stride == 2 ? c : b;
        b = stride == 2 ? d : c;
        c = first; /* may be overwritten; so may d for stride 2 */
        d = second;
    }
}

INLINE void run_kind(const qi_depthwise_block *b, int kind)
{
#pragma GCC unroll 2
    for (int half = 0; half < 2; half++) {
        struct block const k = {.b = b, .kind = kind, .half = half};
        if (b->stride == 2)
            run_columns(&k, 2);
        else
            run_columns(&k, 1);
    }
}

static void run_block(const qi_depthwise_block *b)
{
    const qi_depthwise_head *head = b->groups;
    if (head->tail == QI_DEPTHWISE_CUT)
        run_kind(b, QI_DEPTHWISE_CUT);
    else if (head->tail == QI_DEPTHWISE_RIGHT)
        run_kind(b, QI_DEPTHWISE_RIGHT);
    else
        run_kind(b, QI_DEPTHWISE_ANY);
}
