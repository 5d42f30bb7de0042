/** batch_matmul; op_batch_matmul.c has the formulas. */
#ifndef QK_BATCH_MATMUL_H
#define QK_BATCH_MATMUL_H

#include "infer/arithmetic/binary32.h"
#include "infer/kernels/parts/codes.h"
#include "infer/kernels/parts/features.h"
#include "infer/kernels/values.h"

enum { QK_BATCH_DIMS = QI_MAX_RANK - 2 };

/** An operand as it is multiplied: steps between values along rows, columns and batches. */
typedef struct qk_matrix {
    int32_t rows, columns;
    int32_t row_step, column_step, batch_step[QK_BATCH_DIMS];
    qi_codes codes;
} qk_matrix;

typedef struct qk_batch_matmul {
    int32_t batch[QK_BATCH_DIMS]; /* of y */
    qk_matrix a, b;
    int32_t y_type; /* qi_type */
    int32_t mult, shift, rounding;
    int32_t zero_point, lo, hi; /* of y */
} qk_batch_matmul;

/** q - Z of value i. */
QK_INLINE int32_t qk_difference_at(const void *codes, int32_t i, qi_codes c)
{
    return QK_WIDE && c.is_wide ? ((const int16_t *)codes)[i]
                                : (((const uint8_t *)codes)[i] ^ c.flip) - c.offset;
}

/** The sum for one value of y; a, b: the values where its row and its column begin. */
QK_INLINE int64_t qk_product_sum(const qk_batch_matmul *p, const void *a, int32_t a_at,
                                 const void *b, int32_t b_at)
{
    int64_t sum = 0;
    for (int32_t k = 0; k < p->a.columns; k++)
        sum += (int64_t)qk_difference_at(a, a_at + k * p->a.column_step, p->a.codes) *
               qk_difference_at(b, b_at + k * p->b.row_step, p->b.codes);
    return sum;
}

QK_INLINE int32_t qk_product_code(const qk_batch_matmul *p, int64_t sum)
{
    int32_t const value = QK_WIDE && p->y_type == QI_S16 ? qi_requantize_i64(sum, p->mult, p->shift)
                          : QK_EVEN && p->rounding == QI_ROUND_EVEN
                              ? qi_requantize_even((int32_t)sum, p->mult, p->shift)
                              : qi_requantize((int32_t)sum, p->mult, p->shift);
    return qk_code(value, p->zero_point, p->lo, p->hi);
}

QK_INLINE void qk_batch_matmul_run(const qk_batch_matmul *p, const void *a, const void *b, void *y)
{
    size_t to = 0;
    for (int32_t m = 0; m < p->batch[0]; m++)
        for (int32_t n = 0; n < p->batch[1]; n++) {
            int32_t const a_at = m * p->a.batch_step[0] + n * p->a.batch_step[1];
            int32_t const b_at = m * p->b.batch_step[0] + n * p->b.batch_step[1];
            for (int32_t i = 0; i < p->a.rows; i++)
                for (int32_t j = 0; j < p->b.columns; j++, to++)
                    qi_store_value(
                        p->y_type, y, to,
                        qk_product_code(p, qk_product_sum(p, a, a_at + i * p->a.row_step, b,
                                                          b_at + j * p->b.column_step)));
        }
}

#endif
