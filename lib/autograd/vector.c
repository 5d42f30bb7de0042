#include "autograd/vector.h"

#include "autograd/real.h"
#include "autograd/tiles.h"

#include <string.h>

QAT_VECTOR void qat_vector_add(qat_real *restrict y, const qat_real *restrict x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] += x[i];
}

QAT_VECTOR void qat_vector_add_scaled(qat_real *restrict y, const qat_real *restrict x, qat_real a,
                                      size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] += a * x[i];
}

enum { LANES = 8 };

/* Lane l sums the values at l, l + 8, ...: independent chains, so that it vectorizes as it stands.
 */
QAT_VECTOR static void square_lanes(const qat_real *restrict x, const qat_real *restrict t,
                                    size_t n, double lanes[LANES])
{
    for (size_t i = 0; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++) {
            double const d = (double)x[i + l] - (t ? (double)t[i + l] : 0.0);
            lanes[l] += d * d;
        }
}

double qat_vector_squares(const qat_real *x, const qat_real *t, size_t n)
{
    double lanes[LANES] = {0}, sum = 0;
    square_lanes(x, t, n, lanes);
    for (int l = 0; l < LANES; l++)
        sum += lanes[l];
    for (size_t i = n - n % LANES; i < n; i++) {
        double const d = (double)x[i] - (t ? (double)t[i] : 0.0);
        sum += d * d;
    }
    return sum;
}

struct parts {
    qat_real *y;
    const qat_real *parts;
    int n_parts;
    size_t stride, n;
};

enum { CHUNK = 512 }; /* values summed at a time, on the stack */

static void parts_tile(void *context, int tile, int thread)
{
    const struct parts *p = context;
    qat_span const span = qat_tile_span(p->n, QAT_TILE_VALUES, tile);
    qat_real sum[CHUNK];
    for (size_t at = span.begin, n; at < span.end; at += n) {
        n = span.end - at < CHUNK ? span.end - at : CHUNK;
        memcpy(sum, p->parts + at, n * sizeof *sum);
        for (int i = 1; i < p->n_parts; i++)
            qat_vector_add(sum, p->parts + (size_t)i * p->stride + at, n);
        qat_vector_add(p->y + at, sum, n);
    }
}

void qat_accumulate_parts(qat_real *y, const qat_real *parts, int n_parts, size_t stride, size_t n)
{
    struct parts p = {y, parts, n_parts, stride, n};
    qat_parallel(qat_tiles_of(n, QAT_TILE_VALUES), parts_tile, &p);
}

void qat_accumulate(qat_real *y, const qat_real *x, size_t n)
{
    qat_accumulate_parts(y, x, 1, 0, n);
}

/* ------------------------------------------------------------------ column sums */

enum { LEAST_ROWS = 64 }; /* of a block */

/* Four rows at a time: the sums wait for memory once in four rows. */
QAT_VECTOR static void sum_rows(const qat_real *restrict a, size_t rows, size_t columns,
                                double *restrict sum)
{
    size_t r = 0;
    for (; r + 4 <= rows; r += 4) {
        const qat_real *row = a + r * columns;
        for (size_t c = 0; c < columns; c++)
            sum[c] += ((double)row[c] + (double)row[c + columns]) +
                      ((double)row[c + 2 * columns] + (double)row[c + 3 * columns]);
    }
    for (; r < rows; r++)
        for (size_t c = 0; c < columns; c++)
            sum[c] += (double)a[r * columns + c];
}

/* b may be a itself: both are only read. */
QAT_VECTOR static void product_rows(const qat_real *restrict a, const qat_real *restrict b,
                                    size_t rows, size_t columns, double *restrict product)
{
    size_t r = 0;
    for (; r + 4 <= rows; r += 4) {
        const qat_real *u = a + r * columns, *v = b + r * columns;
        for (size_t c = 0; c < columns; c++)
            product[c] +=
                ((double)u[c] * (double)v[c] + (double)u[c + columns] * (double)v[c + columns]) +
                ((double)u[c + 2 * columns] * (double)v[c + 2 * columns] +
                 (double)u[c + 3 * columns] * (double)v[c + 3 * columns]);
    }
    for (; r < rows; r++)
        for (size_t c = 0; c < columns; c++)
            product[c] += (double)a[r * columns + c] * (double)b[r * columns + c];
}

struct columns {
    const qat_real *a, *b;
    size_t rows, columns;
    int blocks;
    double *partial; /* [blocks][2][columns] */
};

static void columns_block(void *context, int block, int thread)
{
    const struct columns *s = context;
    qat_span const span = qat_block_span(s->rows, s->blocks, block);
    double *sum = s->partial + (size_t)block * 2 * s->columns;
    memset(sum, 0, 2 * s->columns * sizeof *sum);
    /* Strips that fit the cache, so that the second loop does not read memory again. */
    for (size_t r = span.begin, n; r < span.end; r += n) {
        size_t const strip = qat_tile_rows(s->columns);
        n = span.end - r < strip ? span.end - r : strip;
        sum_rows(s->a + r * s->columns, n, s->columns, sum);
        if (s->b)
            product_rows(s->a + r * s->columns, s->b + r * s->columns, n, s->columns,
                         sum + s->columns);
    }
}

size_t qat_column_partials(size_t rows, int columns)
{
    return (size_t)qat_blocks_of(rows, LEAST_ROWS) * 2 * (size_t)columns;
}

void qat_column_sums(const qat_real *a, const qat_real *b, size_t rows, int columns,
                     double *partial, double *sum, double *sum_product)
{
    size_t const n = (size_t)columns;
    struct columns s = {a, b, rows, n, qat_blocks_of(rows, LEAST_ROWS), partial};
    qat_parallel(s.blocks, columns_block, &s);
    for (size_t c = 0; c < n; c++) {
        double total = 0, product = 0;
        for (int block = 0; block < s.blocks; block++) {
            total += partial[(size_t)block * 2 * n + c];
            product += partial[((size_t)block * 2 + 1) * n + c];
        }
        sum[c] = total;
        if (b)
            sum_product[c] = product;
    }
}
