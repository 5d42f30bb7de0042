/**
 * Ops of two tensors, which broadcast as NumPy's do: dims are aligned at the last, and a dim of 1
 * is repeated.
 *
 * What such an op does to one operand depends only on its code. So a table of 256 values holds it,
 * and the op combines an entry of each table into a code. 16-bit codes have no tables.
 *
 *   scratch of 8-bit codes  | table of a [256] int32 | table of b [256] int32 |
 */
#ifndef QK_PAIRS_H
#define QK_PAIRS_H

#include "infer/kernels/parts/pairs_layer.h"
#include "qat/rounding.h"

#include <stddef.h>

QK_INLINE size_t qk_pairs_scratch(int is_wide)
{
    return is_wide ? 0 : 2 * QK_PAIRS_CODES * sizeof(int32_t);
}

QK_INLINE int32_t qk_pairs_code(const qk_pairs *p, int32_t x, int32_t mult, int32_t shift)
{
    int64_t const code = (int64_t)qi_requantize(x, mult, shift) + p->zero_point;
    return qi_clamp(qi_saturate_i64(code), p->lo, p->hi);
}

/** With rounding ONCE. */
QK_INLINE int32_t qk_pairs_code_once(const qk_pairs *p, int32_t x)
{
    int64_t const code = (int64_t)qi_requantize_near_ties_up(x, p->mult, p->shift) + p->zero_point;
    return qi_clamp(qi_saturate_i64(code), p->lo, p->hi);
}

/** x at the common scale, if there is one. */
QK_SHARED int32_t qk_rescaled(const qk_pairs *p, const qk_rescaling *r, int32_t x)
{
    return p->is_rescaled ? qi_requantize(x * (1 << r->left_shift), r->mult, r->shift) : x;
}

/** table[byte] = q - from, rescaled; q is the code in the byte. */
QK_APART void qk_pairs_table(const qk_pairs *p, const qk_operand *operand, const qk_rescaling *r,
                             int32_t from, int32_t *table)
{
    int32_t const flip = operand->flip;
    for (int32_t i = 0; i < QK_PAIRS_CODES; i++)
        table[i] = qk_rescaled(p, r, (i ^ flip) - flip - from);
}

/** Make one run of axes that lie side by side in both operands. */
QK_INLINE void qk_pairs_merge(qk_pairs *p)
{
    for (int k = QK_PAIRS_RANK - 2; k >= 0; k--) {
        size_t const n = p->dims[QK_PAIRS_RANK - 1];
        if (p->dims[k] != 1 && (p->a.stride[k] != n * p->a.stride[QK_PAIRS_RANK - 1] ||
                                p->b.stride[k] != n * p->b.stride[QK_PAIRS_RANK - 1]))
            return;
        p->dims[QK_PAIRS_RANK - 1] = n * p->dims[k];
        p->dims[k] = 1;
    }
}

/** The plain qk_pairs_line_fn. */
QK_INLINE void qk_pairs_line(const qk_pairs *p, qk_combine_fn *combine, const int32_t *table_a,
                             const uint8_t *a, const int32_t *table_b, const uint8_t *b, uint8_t *y)
{
    size_t const step_a = p->a.stride[3], step_b = p->b.stride[3], n = p->dims[3];
    for (size_t i = 0; i < n; i++)
        y[i] = (uint8_t)combine(p, table_a[a[i * step_a]], table_b[b[i * step_b]]);
}

/** The same for 16-bit codes, whose zero_point is 0. */
QK_INLINE void qk_pairs_wide_line(const qk_pairs *p, qk_combine_fn *combine, const int16_t *a,
                                  const int16_t *b, int16_t *y)
{
    size_t const step_a = p->a.stride[3], step_b = p->b.stride[3], n = p->dims[3];
    for (size_t i = 0; i < n; i++)
        y[i] = (int16_t)combine(p, qk_rescaled(p, &p->of_a, a[i * step_a]),
                                qk_rescaled(p, &p->of_b, b[i * step_b]));
}

/**
 * All outputs, from differences q - zero_point or, if as_codes is set, from the codes themselves.
 */
QK_INLINE void qk_pairs_run_lines(const qk_pairs *pairs, qk_combine_fn *combine,
                                  qk_pairs_line_fn *line, int as_codes, const void *a,
                                  const void *b, void *y, void *scratch)
{
    qk_pairs merged = *pairs;
    const qk_pairs *p = &merged;
    int const has_tables = !QK_WIDE || !p->is_wide;
    int32_t *table_a = (int32_t *)scratch;
    int32_t *table_b = has_tables ? table_a + QK_PAIRS_CODES : table_a;
    const size_t *sa = p->a.stride, *sb = p->b.stride;
    size_t to = 0;
    qk_pairs_merge(&merged);
    if (has_tables) {
        qk_pairs_table(p, &p->a, &p->of_a, as_codes ? 0 : p->a.zero_point, table_a);
        qk_pairs_table(p, &p->b, &p->of_b, as_codes ? 0 : p->b.zero_point, table_b);
    }
    for (size_t i = 0; i < p->dims[0]; i++)
        for (size_t j = 0; j < p->dims[1]; j++)
            for (size_t k = 0; k < p->dims[2]; k++, to += p->dims[3]) {
                size_t const from_a = i * sa[0] + j * sa[1] + k * sa[2];
                size_t const from_b = i * sb[0] + j * sb[1] + k * sb[2];
                if (QK_WIDE && p->is_wide)
                    qk_pairs_wide_line(p, combine, (const int16_t *)a + from_a,
                                       (const int16_t *)b + from_b, (int16_t *)y + to);
                else
                    line(p, combine, table_a, (const uint8_t *)a + from_a, table_b,
                         (const uint8_t *)b + from_b, (uint8_t *)y + to);
            }
}

QK_INLINE void qk_pairs_run(const qk_pairs *p, qk_combine_fn *combine, int as_codes, const void *a,
                            const void *b, void *y, void *scratch)
{
    qk_pairs_run_lines(p, combine, qk_pairs_line, as_codes, a, b, y, scratch);
}

#endif
