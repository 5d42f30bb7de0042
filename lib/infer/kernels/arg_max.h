/** arg_max along an axis, top_k along the last; of equal codes the lower index comes first. */
#ifndef QK_ARG_MAX_H
#define QK_ARG_MAX_H

#include "infer/kernels/values.h"

/* ------------------------------------------------------------------ arg_max */

/** Of x [outer, n, inner]. */
typedef struct qk_arg_max {
    int32_t outer, n, inner;
    int32_t flip;   /* so that -128..127 compare as 0..255 */
    int32_t y_type; /* QI_S32 or QI_S64 */
} qk_arg_max;

/** The index of the largest of n codes that lie `step` apart. */
QK_INLINE int32_t qk_largest_of(const uint8_t *x, size_t step, int32_t n, int32_t flip)
{
    int32_t best = 0, most = *x ^ flip;
    for (int32_t i = 1; i < n; i++) {
        int32_t const code = x[(size_t)i * step] ^ flip;
        if (code > most) {
            most = code;
            best = i;
        }
    }
    return best;
}

QK_INLINE void qk_arg_max_run(const qk_arg_max *p, const void *x, void *y)
{
    size_t const inner = (size_t)p->inner;
    const uint8_t *codes = (const uint8_t *)x;
    for (size_t i = 0; i < (size_t)p->outer; i++, codes += (size_t)p->n * inner)
        for (size_t j = 0; j < inner; j++) {
            int32_t const index = qk_largest_of(codes + j, inner, p->n, p->flip);
            if (p->y_type == QI_S64)
                ((int64_t *)y)[i * inner + j] = index;
            else
                ((int32_t *)y)[i * inner + j] = index;
        }
}

/* ------------------------------------------------------------------ top_k */

/** Of rows of n codes the indices of the k largest. */
typedef struct qk_top_k {
    int32_t rows, n, k;
    int32_t flip;
} qk_top_k;

enum { QK_TOP_CODES = 256 };

/** The scratch: where the indices of each code begin. */
QK_INLINE size_t qk_top_k_scratch(void)
{
    return QK_TOP_CODES * sizeof(int32_t);
}

/** Write the indices of the k largest of n codes: where those of a code begin, all larger end. */
QK_INLINE void qk_largest_first(const qk_top_k *p, const uint8_t *x, int32_t *begin, int32_t *y)
{
    memset(begin, 0, QK_TOP_CODES * sizeof *begin);
    for (int32_t i = 0; i < p->n; i++)
        begin[x[i] ^ p->flip]++;
    for (int32_t code = QK_TOP_CODES - 1, larger = 0; code >= 0; code--) {
        int32_t const count = begin[code];
        begin[code] = larger;
        larger += count;
    }
    for (int32_t i = 0; i < p->n; i++) {
        int32_t const place = begin[x[i] ^ p->flip]++;
        if (place < p->k)
            y[place] = i;
    }
}

QK_INLINE void qk_top_k_run(const qk_top_k *p, const void *x, void *y, void *scratch)
{
    const uint8_t *codes = (const uint8_t *)x;
    int32_t *to = (int32_t *)y;
    for (int32_t row = 0; row < p->rows; row++, codes += p->n, to += p->k)
        qk_largest_first(p, codes, (int32_t *)scratch, to);
}

#endif
