/**
 * Pieces of 4 to 16 rows and one or two vectors of columns. A vector of b is loaded once for all
 * rows of a piece; their values of a are broadcast from memory.
 *
 *     AVX-512    8 x 32 or 8 x 16 sums in 16 or 8 registers; 16 x 16 if the rows lie 1 or 16 values
 *                apart; up to 8 columns as AVX2
 *     AVX2       4 x 16 sums in 8 registers; up to 8 columns 8 x 8
 */
#include "autograd/conv/product_x86.h"

#ifdef QAT_PRODUCT_X86
#include <immintrin.h>

#define AVX512 __attribute__((target("avx512f,avx2,fma")))
#define AVX2   __attribute__((target("avx2,fma")))

bool qat_product_has_avx512f(void)
{
    return __builtin_cpu_supports("avx512f");
}

bool qat_product_has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

/* What is done for each row of a piece: `of(i)`. */
#define FOR_4(of)  of(0) of(1) of(2) of(3)
#define FOR_8(of)  FOR_4(of) of(4) of(5) of(6) of(7)
#define FOR_16(of) FOR_8(of) of(8) of(9) of(10) of(11) of(12) of(13) of(14) of(15)

/*
 * The pointer to its row of a. Rows that lie a constant distance apart are offsets from one
 * pointer, so they take one register instead of one each.
 */
#define OWN(i)      const float *const a##i = p->a[row + i];
#define APART_1(i)  const float *const a##i = p->a[row] + i;
#define APART_16(i) const float *const a##i = p->a[row] + 16 * i;

/*
 * Rows [row, row + N) of a product from `column` on, with N of for_rows: ZERO(i) makes the sums of
 * a row, STEP(i) adds to them, PUT(i) writes them. `load` fills the vectors of b.
 */
#define PIECE(for_rows, own, column, load, ZERO, STEP, PUT)                                        \
    do {                                                                                           \
        for_rows(own) for_rows(ZERO) for (int s = 0; s < p->n_segments; s++)                       \
        {                                                                                          \
            const float *b = p->b + p->segments[s].b * p->b_step + (column);                       \
            ptrdiff_t at = p->segments[s].a;                                                       \
            for (int k = 0; k < p->count; k++, at += p->a_step, b += p->b_step) {                  \
                load;                                                                              \
                for_rows(STEP)                                                                     \
            }                                                                                      \
        }                                                                                          \
        for_rows(PUT)                                                                              \
    } while (0)

/* ------------------------------------------------------------------ AVX-512 */

AVX512 static inline __mmask16 mask_of(int columns)
{
    return columns >= 16 ? 0xffff : (__mmask16)((1u << columns) - 1);
}

AVX512 static inline void put_512(const qat_product *p, int row, int column, __mmask16 mask,
                                  __m512 sum)
{
    if (row >= p->rows)
        return;
    float *c = p->c[row] + column;
    if (p->add)
        sum = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, c), sum);
    _mm512_mask_storeu_ps(c, mask, sum);
}

#define ZERO_16(i) __m512 s##i = _mm512_setzero_ps();
#define STEP_16(i) s##i = _mm512_fmadd_ps(_mm512_set1_ps(a##i[at]), b0, s##i);
#define PUT_16(i)  put_512(p, row + i, 0, last, s##i);
#define PIECE_16(for_rows, own, load)                                                              \
    __mmask16 const last = mask_of(p->columns);                                                    \
    PIECE(for_rows, own, 0, __m512 const b0 = load(b), ZERO_16, STEP_16, PUT_16)

#define ZERO_32(i) __m512 s##i = _mm512_setzero_ps(), t##i = s##i;
#define STEP_32(i)                                                                                 \
    {                                                                                              \
        __m512 const x = _mm512_set1_ps(a##i[at]);                                                 \
        s##i = _mm512_fmadd_ps(x, b0, s##i);                                                       \
        t##i = _mm512_fmadd_ps(x, b1, t##i);                                                       \
    }
#define PUT_32(i)                                                                                  \
    put_512(p, row + i, 0, 0xffff, s##i);                                                          \
    put_512(p, row + i, 16, last, t##i);
#define PIECE_32(for_rows, own, load)                                                              \
    __mmask16 const last = mask_of(p->columns - 16);                                               \
    PIECE(for_rows, own, 0, __m512 const b0 = _mm512_loadu_ps(b);                                  \
          __m512 const b1 = load(b + 16), ZERO_32, STEP_32, PUT_32)

/*
 * How the last vector of b is loaded. With a mask only where a row of b may end before it: gcc
 * reads the mask again in every step (KMOVW), which takes one of the two ports of the
 * multiply-adds.
 */
#define WHOLE      _mm512_loadu_ps
#define MASKED(at) _mm512_maskz_loadu_ps(last, at)

typedef void piece_fn(const qat_product *p, int row);

AVX512 static void piece_8x16(const qat_product *p, int row)
{
    PIECE_16(FOR_8, OWN, WHOLE);
}

AVX512 static void piece_8x16_masked(const qat_product *p, int row)
{
    PIECE_16(FOR_8, OWN, MASKED);
}

AVX512 static void piece_16x16_apart_1(const qat_product *p, int row)
{
    PIECE_16(FOR_16, APART_1, WHOLE);
}

AVX512 static void piece_16x16_apart_16(const qat_product *p, int row)
{
    PIECE_16(FOR_16, APART_16, WHOLE);
}

AVX512 static void piece_8x32(const qat_product *p, int row)
{
    PIECE_32(FOR_8, OWN, WHOLE);
}

AVX512 static void piece_8x32_masked(const qat_product *p, int row)
{
    PIECE_32(FOR_8, OWN, MASKED);
}

AVX512 static void piece_8x32_apart_1(const qat_product *p, int row)
{
    PIECE_32(FOR_8, APART_1, WHOLE);
}

/* ------------------------------------------------------------------ AVX2 */

AVX2 static inline __m256i lanes_of(int columns)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(columns),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

/* Masked stores are slow on some processors, so they are used only for left-over columns. */
AVX2 static inline void put_256(const qat_product *p, int row, int column, __m256 sum)
{
    if (row >= p->rows)
        return;
    float *c = p->c[row] + column;
    if (p->columns - column >= 8) {
        _mm256_storeu_ps(c, p->add ? _mm256_add_ps(_mm256_loadu_ps(c), sum) : sum);
        return;
    }
    __m256i const mask = lanes_of(p->columns - column);
    if (p->add)
        sum = _mm256_add_ps(_mm256_maskload_ps(c, mask), sum);
    _mm256_maskstore_ps(c, mask, sum);
}

#define ZERO_8(i)   __m256 s##i = _mm256_setzero_ps();
#define STEP_8(i)   s##i = _mm256_fmadd_ps(_mm256_broadcast_ss(a##i + at), b0, s##i);
#define PUT_8(i)    put_256(p, row + i, 0, s##i);
#define ZERO_8_8(i) __m256 s##i = _mm256_setzero_ps(), t##i = s##i;
#define STEP_8_8(i)                                                                                \
    {                                                                                              \
        __m256 const x = _mm256_broadcast_ss(a##i + at);                                           \
        s##i = _mm256_fmadd_ps(x, b0, s##i);                                                       \
        t##i = _mm256_fmadd_ps(x, b1, t##i);                                                       \
    }
#define PUT_8_8(i)                                                                                 \
    put_256(p, row + i, column, s##i);                                                             \
    put_256(p, row + i, column + 8, t##i);

AVX2 static void piece_8x8(const qat_product *p, int row)
{
    __m256i const mask = lanes_of(p->padded ? 8 : p->columns);
    PIECE(FOR_8, OWN, 0, __m256 const b0 = _mm256_maskload_ps(b, mask), ZERO_8, STEP_8, PUT_8);
}

/* Columns [column, column + 16), of which b may have fewer. */
AVX2 static void piece_4x16_masked(const qat_product *p, int row, int column)
{
    __m256i const mask0 = lanes_of(p->columns - column), mask1 = lanes_of(p->columns - column - 8);
    PIECE(FOR_4, OWN, column, __m256 const b0 = _mm256_maskload_ps(b, mask0);
          __m256 const b1 = _mm256_maskload_ps(b + 8, mask1), ZERO_8_8, STEP_8_8, PUT_8_8);
}

AVX2 static void piece_4x16(const qat_product *p, int row, int column)
{
    PIECE(FOR_4, OWN, column, __m256 const b0 = _mm256_loadu_ps(b);
          __m256 const b1 = _mm256_loadu_ps(b + 8), ZERO_8_8, STEP_8_8, PUT_8_8);
}

/* ------------------------------------------------------------------ by number of columns */

void qat_product_avx2(const qat_product *p)
{
    for (int row = 0; p->columns <= 8 && row < p->rows; row += 8)
        piece_8x8(p, row);
    for (int column = 0; p->columns > 8 && column < p->columns; column += 16) {
        bool const whole = p->padded || p->columns - column >= 16;
        for (int row = 0; row < p->rows; row += 4)
            (whole ? piece_4x16 : piece_4x16_masked)(p, row, column);
    }
}

static piece_fn *piece_512(const qat_product *p)
{
    bool const whole = p->padded || p->columns % 16 == 0;
    if (p->columns <= 8)
        return piece_8x8;
    if (p->columns <= 16)
        return whole ? piece_8x16 : piece_8x16_masked;
    return !whole ? piece_8x32_masked : p->apart == 1 ? piece_8x32_apart_1 : piece_8x32;
}

void qat_product_avx512f(const qat_product *p)
{
    if ((p->apart == 1 || p->apart == 16) && p->rows > 8 && p->columns == 16) {
        (p->apart == 1 ? piece_16x16_apart_1 : piece_16x16_apart_16)(p, 0);
        return;
    }
    piece_fn *piece = piece_512(p);
    for (int row = 0; row < p->rows; row += 8)
        piece(p, row);
}

#endif
