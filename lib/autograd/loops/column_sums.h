/**
 * Sums over the rows of a matrix [rows, columns], in double.
 *
 *     sum[c] = sum_r a[r, c]     sum_product[c] = sum_r a[r, c] b[r, c]
 *
 * Products of floats are exact in double; n terms lose at most n 2^-53 sum |term|. Rows are cut
 * into fixed blocks. Blocks are summed in parallel, and their sums are added in order. If there are
 * few columns, a block sums several rows side by side (wide.h) and adds these at the end.
 */
#ifndef QAT_AUTOGRAD_COLUMN_SUMS_H
#define QAT_AUTOGRAD_COLUMN_SUMS_H

#include "qat/graph.h"

typedef struct qat_columns {
    const qat_real *a, *b; /* b NULL: only sum; b may equal a */
    size_t rows;
    int columns;
    /**
     * Called with every strip [at, at + n) of values before they are summed. It may change the
     * values of a. It returns the values of b: b + at, or n values that it wrote into `room`. NULL:
     * not called.
     */
    const qat_real *(*prepare)(void *context, size_t at, size_t n, qat_real *room);
    void *context;
} qat_columns;

/** @param partial  qat_column_partials(rows, columns) doubles of working memory */
void qat_column_sums(const qat_columns *columns, double *partial, double *sum, double *sum_product);
size_t qat_column_partials(size_t rows, int columns);

#endif
