/**
 * Eight rows of one or two vectors of columns. A vector of b is loaded once for eight values of a,
 * each of which is broadcast from memory.
 *
 *     AVX-512    8 x 32 or 8 x 16 sums in 16 or 8 registers; up to 8 columns 8 x 8, of 256 bits
 *     AVX2       4 x 16 sums in 8 registers, one piece after another
 */
#include "autograd/product_x86.h"

#ifdef QAT_PRODUCT_X86
#include <immintrin.h>

#define AVX512 __attribute__((target("avx512f,avx2,fma")))
#define AVX2   __attribute__((target("avx2,fma")))
#define UNROLL _Pragma("GCC unroll 8")
#define EACH(i, n, body)                                                                           \
    UNROLL for (int i = 0; i < (n); i++)                                                           \
    {                                                                                              \
        body;                                                                                      \
    }

bool qat_product_has_avx512f(void)
{
    return __builtin_cpu_supports("avx512f");
}

bool qat_product_has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

/* The loop over segments and steps. `load` fills the vectors of b, `step` adds to the sums. */
#define SWEEP(column, load, step)                                                                  \
    for (int s = 0; s < p->n_segments; s++) {                                                      \
        const float *b = p->b + p->segments[s].b * p->b_step + (column);                           \
        ptrdiff_t at = p->segments[s].a;                                                           \
        for (int k = 0; k < p->count; k++, at += p->a_step, b += p->b_step) {                      \
            load;                                                                                  \
            step;                                                                                  \
        }                                                                                          \
    }

/* The rows of a, and a step for each of them. */
#define ROWS_4(a)                                                                                  \
    const float *const a0 = (a)[0], *const a1 = (a)[1], *const a2 = (a)[2], *const a3 = (a)[3]
#define ROWS_8(a)                                                                                  \
    ROWS_4(a);                                                                                     \
    const float *const a4 = (a)[4], *const a5 = (a)[5], *const a6 = (a)[6], *const a7 = (a)[7]
#define STEPS_4(step) step(0, a0) step(1, a1) step(2, a2) step(3, a3)
#define STEPS_8(step) STEPS_4(step) step(4, a4) step(5, a5) step(6, a6) step(7, a7)

/* Write those of the n rows from `first` on that exist. */
#define PUT_ROWS(first, n, put)                                                                    \
    UNROLL for (int i = 0; i < (n); i++)                                                           \
    {                                                                                              \
        if ((first) + i >= p->rows)                                                                \
            return;                                                                                \
        put;                                                                                       \
    }

/* A product of eight rows and one vector of columns; STEP adds to sums. */
#define PRODUCT_8x1(vector, zero, load, put)                                                       \
    ROWS_8(p->a);                                                                                  \
    vector sums[8], b0;                                                                            \
    EACH(i, 8, sums[i] = zero)                                                                     \
    SWEEP(0, b0 = load, STEPS_8(STEP))                                                             \
    PUT_ROWS(0, 8, put(p, i, 0, sums[i]))

/* ------------------------------------------------------------------ AVX-512 */

AVX512 static inline __mmask16 mask_of(int columns)
{
    return columns >= 16 ? 0xffff : (__mmask16)((1u << columns) - 1);
}

AVX512 static inline void put_512(const qat_product *p, int row, int column, __mmask16 mask,
                                  __m512 sum)
{
    float *c = p->c[row] + column;
    if (p->add)
        sum = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, c), sum);
    _mm512_mask_storeu_ps(c, mask, sum);
}

/* `load_right` reads the second vector of b: with a mask only where the row may end before it. */
#define PRODUCT_8x32(load_right)                                                                   \
    ROWS_8(p->a);                                                                                  \
    __m512 left[8], right[8], b0, b1;                                                              \
    EACH(i, 8, left[i] = right[i] = _mm512_setzero_ps())                                           \
    SWEEP(0, (b0 = _mm512_loadu_ps(b), b1 = load_right), STEPS_8(STEP))                            \
    __mmask16 const mask = mask_of(p->columns - 16);                                               \
    PUT_ROWS(0, 8, (put_512(p, i, 0, 0xffff, left[i]), put_512(p, i, 16, mask, right[i])))
#define STEP(i, a)                                                                                 \
    {                                                                                              \
        __m512 const x = _mm512_set1_ps((a)[at]);                                                  \
        left[i] = _mm512_fmadd_ps(x, b0, left[i]);                                                 \
        right[i] = _mm512_fmadd_ps(x, b1, right[i]);                                               \
    }

AVX512 static void product_8x32(const qat_product *p){PRODUCT_8x32(_mm512_loadu_ps(b + 16))}

AVX512 static void product_8x32_masked(const qat_product *p)
{
    __mmask16 const readable = mask_of(p->columns - 16);
    PRODUCT_8x32(_mm512_maskz_loadu_ps(readable, b + 16))
}
#undef STEP

#define PUT_16(p, row, column, sum) put_512(p, row, column, mask, sum)
#define STEP(i, a)                  sums[i] = _mm512_fmadd_ps(_mm512_set1_ps((a)[at]), b0, sums[i]);

AVX512 static void product_8x16(const qat_product *p)
{
    __mmask16 const mask = mask_of(p->columns);
    PRODUCT_8x1(__m512, _mm512_setzero_ps(), _mm512_loadu_ps(b), PUT_16)
}

AVX512 static void product_8x16_masked(const qat_product *p)
{
    __mmask16 const mask = mask_of(p->columns);
    PRODUCT_8x1(__m512, _mm512_setzero_ps(), _mm512_maskz_loadu_ps(mask, b), PUT_16)
}
#undef STEP

/* ------------------------------------------------------------------ AVX2 */

AVX2 static inline __m256i lanes_of(int columns)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(columns),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

/* Masked stores are slow on some processors, so they are used only for left-over columns. */
AVX2 static inline void put_256(const qat_product *p, int row, int column, __m256 sum)
{
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

AVX2 static void product_8x8(const qat_product *p)
{
    __m256i const mask = lanes_of(p->padded ? 8 : p->columns);
#define STEP(i, a) sums[i] = _mm256_fmadd_ps(_mm256_broadcast_ss((a) + at), b0, sums[i]);
    PRODUCT_8x1(__m256, _mm256_setzero_ps(), _mm256_maskload_ps(b, mask), put_256)
#undef STEP
}

/* Columns [column, column + 16) of rows row..row + 3. */
AVX2 static void product_4x16(const qat_product *p, int row, int column)
{
    int const readable = p->padded ? 16 : p->columns - column;
    __m256i const mask0 = lanes_of(readable), mask1 = lanes_of(readable - 8);
    ROWS_4(p->a + row);
    __m256 left[4], right[4], b0, b1;
    EACH(i, 4, left[i] = right[i] = _mm256_setzero_ps())
#define STEP(i, a)                                                                                 \
    {                                                                                              \
        __m256 const x = _mm256_broadcast_ss((a) + at);                                            \
        left[i] = _mm256_fmadd_ps(x, b0, left[i]);                                                 \
        right[i] = _mm256_fmadd_ps(x, b1, right[i]);                                               \
    }
    SWEEP(column, (b0 = _mm256_maskload_ps(b, mask0), b1 = _mm256_maskload_ps(b + 8, mask1)),
          STEPS_4(STEP))
#undef STEP
    PUT_ROWS(row, 4,
             (put_256(p, row + i, column, left[i]), put_256(p, row + i, column + 8, right[i])))
}

/* ------------------------------------------------------------------ by number of columns */

void qat_product_avx2(const qat_product *p)
{
    if (p->columns <= 8) {
        product_8x8(p);
        return;
    }
    for (int column = 0; column < p->columns; column += 16)
        for (int row = 0; row < p->rows; row += 4)
            product_4x16(p, row, column);
}

void qat_product_avx512f(const qat_product *p)
{
    bool const whole = p->padded || p->columns % 16 == 0;
    if (p->columns <= 8)
        product_8x8(p);
    else if (p->columns <= 16)
        (whole ? product_8x16 : product_8x16_masked)(p);
    else
        (whole ? product_8x32 : product_8x32_masked)(p);
}

#endif
