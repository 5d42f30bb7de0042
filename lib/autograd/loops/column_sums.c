#include "autograd/loops/column_sums.h"

#include "autograd/loops/real.h"
#include "autograd/loops/tiles.h"
#include "autograd/loops/wide.h"

#include <string.h>

enum {
    LEAST_ROWS = 64,     /* least rows of a block */
    STRIP_VALUES = 2048, /* 8 KB of float for each of a and b: the second read comes from the
                            first-level cache */
    GROUP = 16           /* columns whose sums stay in registers */
};

/*
 * Sum GROUP columns over rows that lie `step` values apart. The sums are arrays of the function's
 * own, which compilers keep in registers.
 */
QAT_VECTOR static void sum_group(const qat_real *a, size_t rows, size_t step, double *sum)
{
    double s[GROUP];
    memcpy(s, sum, sizeof s);
    for (size_t r = 0; r < rows; r++, a += step)
        for (int c = 0; c < GROUP; c++)
            s[c] += (double)a[c];
    memcpy(sum, s, sizeof s);
}

/* The same, and sum the products of a and b. */
QAT_VECTOR static void product_group(const qat_real *a, const qat_real *b, size_t rows, size_t step,
                                     double *sum, double *product)
{
    double s[GROUP], p[GROUP];
    memcpy(s, sum, sizeof s);
    memcpy(p, product, sizeof p);
    for (size_t r = 0; r < rows; r++, a += step, b += step)
        for (int c = 0; c < GROUP; c++) {
            s[c] += (double)a[c];
            p[c] += (double)a[c] * (double)b[c];
        }
    memcpy(sum, s, sizeof s);
    memcpy(product, p, sizeof p);
}

/** Sum one of the columns that do not fill a group. */
static void sum_column(const qat_real *a, const qat_real *b, size_t rows, size_t step, double *sum,
                       double *product)
{
    for (size_t r = 0; r < rows; r++) {
        *sum += (double)a[r * step];
        if (b)
            *product += (double)a[r * step] * (double)b[r * step];
    }
}

/** Add `rows` rows of `columns` values, `step` apart. */
static void sum_rows(const qat_real *a, const qat_real *b, size_t rows, size_t columns, size_t step,
                     double *sum, double *product)
{
    size_t c = 0;
    for (; c + GROUP <= columns; c += GROUP)
        if (b)
            product_group(a + c, b + c, rows, step, sum + c, product + c);
        else
            sum_group(a + c, rows, step, sum + c);
    for (; c < columns; c++)
        sum_column(a + c, b ? b + c : NULL, rows, step, sum + c, product + c);
}

struct work {
    const qat_columns *in;
    size_t wide;
    int blocks;
    double *partial; /* [blocks][2][wide] */
};

/** Add n values of a strip: whole wide rows, then the rest of one. */
static void sum_strip(const struct work *w, const qat_real *a, const qat_real *b, size_t n,
                      double *sum)
{
    size_t const rows = n / w->wide, rest = rows * w->wide;
    sum_rows(a, b, rows, w->wide, w->wide, sum, sum + w->wide);
    sum_rows(a + rest, b ? b + rest : NULL, 1, n - rest, w->wide, sum, sum + w->wide);
}

static void add_strip(const struct work *w, size_t at, size_t n, double *sum)
{
    qat_real room[STRIP_VALUES];
    const qat_real *b = w->in->b ? w->in->b + at : NULL;
    if (w->in->prepare)
        b = w->in->prepare(w->in->context, at, n, room);
    sum_strip(w, w->in->a + at, w->in->b ? b : NULL, n, sum);
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void block_sums(void *context, int block, int thread)
{
    const struct work *w = context;
    size_t const columns = (size_t)w->in->columns;
    qat_span const rows = qat_block_span(w->in->rows, w->blocks, block);
    size_t const end = rows.end * columns;
    size_t const strip = w->wide < STRIP_VALUES ? STRIP_VALUES / w->wide * w->wide : STRIP_VALUES;
    double *sum = w->partial + (size_t)block * 2 * w->wide;
    memset(sum, 0, 2 * w->wide * sizeof *sum);
    for (size_t at = rows.begin * columns, column = 0, n; at < end; at += n) {
        n = smaller(strip, end - at);
        if (strip < w->wide) /* a part of a row */
            n = smaller(n, w->wide - column);
        add_strip(w, at, n, sum + column);
        column = (column + n) % w->wide;
    }
}

size_t qat_column_partials(size_t rows, int columns)
{
    return (size_t)qat_blocks_of(rows, LEAST_ROWS) * 2 * qat_wide_of((size_t)columns);
}

/** Add up one column over all blocks and over the rows side by side. */
static double total(const struct work *w, size_t column, bool product)
{
    double sum = 0;
    for (int block = 0; block < w->blocks; block++)
        for (size_t i = column; i < w->wide; i += (size_t)w->in->columns)
            sum += w->partial[((size_t)block * 2 + product) * w->wide + i];
    return sum;
}

void qat_column_sums(const qat_columns *in, double *partial, double *sum, double *sum_product)
{
    struct work w = {in, qat_wide_of((size_t)in->columns), qat_blocks_of(in->rows, LEAST_ROWS),
                     partial};
    qat_parallel(w.blocks, block_sums, &w);
    for (size_t c = 0; c < (size_t)in->columns; c++) {
        sum[c] = total(&w, c, false);
        if (in->b)
            sum_product[c] = total(&w, c, true);
    }
}
