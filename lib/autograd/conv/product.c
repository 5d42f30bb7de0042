#include "autograd/conv/product.h"

#include "autograd/conv/product_x86.h"

enum { LANES = 8, ROWS = 4 };

typedef qat_real lanes
    __attribute__((vector_size(LANES * sizeof(qat_real)), aligned(sizeof(qat_real)), may_alias));

/* Four rows of eight columns. */
static void piece(const qat_product *p, int row, int column, lanes sums[ROWS])
{
    const qat_real *const *a = p->a + row;
    lanes s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
    for (int s = 0; s < p->n_segments; s++) {
        const qat_real *b = p->b + p->segments[s].b * p->b_step + column;
        ptrdiff_t at = p->segments[s].a;
        for (int k = 0; k < p->count; k++, at += p->a_step, b += p->b_step) {
            lanes const x = *(const lanes *)b;
            s0 += a[0][at] * x;
            s1 += a[1][at] * x;
            s2 += a[2][at] * x;
            s3 += a[3][at] * x;
        }
    }
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
}

static qat_real one(const qat_product *p, int row, int column)
{
    qat_real sum = 0;
    for (int s = 0; s < p->n_segments; s++)
        for (int k = 0; k < p->count; k++)
            sum += p->a[row][p->segments[s].a + k * p->a_step] *
                   p->b[(p->segments[s].b + k) * p->b_step + column];
    return sum;
}

static void put(const qat_product *p, int row, int column, qat_real sum)
{
    qat_real *c = p->c[row] + column;
    *c = p->add ? *c + sum : sum;
}

static void put_piece(const qat_product *p, int row, int column, const lanes sums[ROWS])
{
    for (int i = 0; i < ROWS && row + i < p->rows; i++)
        for (int j = 0; j < LANES && column + j < p->columns; j++)
            put(p, row + i, column + j, sums[i][j]);
}

static void product_portable(const qat_product *p)
{
    int column = 0;
    for (; column < p->columns && (p->padded || column + LANES <= p->columns); column += LANES)
        for (int row = 0; row < p->rows; row += ROWS) {
            lanes sums[ROWS];
            piece(p, row, column, sums);
            put_piece(p, row, column, sums);
        }
    for (; column < p->columns; column++)
        for (int row = 0; row < p->rows; row++)
            put(p, row, column, one(p, row, column));
}

static bool always(void)
{
    return true;
}

static const qat_product_isa ways[] = {
#ifdef QAT_PRODUCT_X86
    {"avx512f", qat_product_has_avx512f, qat_product_avx512f},
    {"avx2", qat_product_has_avx2, qat_product_avx2},
#endif
    {"portable", always, product_portable},
};

const qat_product_isa *qat_product_at(int i)
{
    return i < (int)(sizeof ways / sizeof ways[0]) ? &ways[i] : NULL;
}

qat_product_fn *qat_product_best(void)
{
    int i = 0;
    while (!ways[i].runs_here())
        i++;
    return ways[i].run;
}
