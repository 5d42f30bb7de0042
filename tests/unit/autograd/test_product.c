/**
 * Every way to compute a product is compared with the definition and stays within its memory. AVX2
 * and AVX-512 give the same bits.
 */
#include "autograd/conv/product.h"
#include "common/suite.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { VALUES = 4096, SEGMENTS = 3, GUARD = 20, ROW = GUARD + QAT_PRODUCT_COLUMNS + GUARD };

/** One product, its operands and what is around its results. */
struct fixture {
    qat_real a[VALUES], b[VALUES];
    qat_real c[QAT_PRODUCT_ROWS * ROW];
    qat_segment segments[SEGMENTS];
    qat_product product;
};

static qat_real noise(void)
{
    return (qat_real)((double)rand() / RAND_MAX * 2 - 1);
}

static void fill(qat_real *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        values[i] = noise();
}

/* Not padded: what lies behind a row of b would spoil every sum. */
static void poison(struct fixture *f)
{
    const qat_product *p = &f->product;
    for (int s = 0; s < p->n_segments; s++)
        for (int k = 0; k < p->count; k++) {
            qat_real *b = f->b + (f->segments[s].b + k) * p->b_step;
            for (ptrdiff_t j = p->columns; j < p->b_step; j++)
                b[j] = (qat_real)NAN;
        }
}

static void prepare(struct fixture *f, int rows, int columns, int n_segments, int count)
{
    fill(f->b, VALUES / 2);
    fill(f->c, QAT_PRODUCT_ROWS * ROW);
    qat_product *p = &f->product;
    *p = (qat_product){.b = f->b, .segments = f->segments, .rows = rows, .columns = columns};
    p->n_segments = n_segments;
    p->count = count;
    p->padded = rand() % 2;
    p->add = rand() % 2;
    p->a_step = 1 + rand() % 3;
    int const padded = columns <= QAT_PRODUCT_PAD ? QAT_PRODUCT_PAD : QAT_PRODUCT_COLUMNS;
    p->b_step = p->padded ? padded : columns + rand() % 3;
    for (int s = 0; s < n_segments; s++)
        f->segments[s] = (qat_segment){rand() % 300, s * 9};
    p->apart = (int[]){0, 1, 3, 16}[rand() % 4];
    for (int i = 0; i < QAT_PRODUCT_ROWS; i++) {
        p->a[i] = p->apart && i ? p->a[0] + i * p->apart : f->a + rand() % 2000;
        p->c[i] = i < rows ? f->c + i * ROW + GUARD : NULL;
    }
    if (!p->padded)
        poison(f);
}

static double by_definition(const struct fixture *f, int i, int j)
{
    const qat_product *p = &f->product;
    double sum = p->add ? (double)p->c[i][j] : 0;
    for (int s = 0; s < p->n_segments; s++)
        for (int k = 0; k < p->count; k++)
            sum += (double)p->a[i][f->segments[s].a + k * p->a_step] *
                   (double)p->b[(f->segments[s].b + k) * p->b_step + j];
    return sum;
}

static void check_value(const qat_product *p, int i, int j, qat_real y, qat_real before,
                        double right, const char *name)
{
    bool const inside = i < p->rows && j >= 0 && j < p->columns;
    if (!inside && memcmp(&y, &before, sizeof y) != 0)
        ck_abort_msg("%s writes row %d, column %d of %d x %d", name, i, j, p->rows, p->columns);
    if (inside && !(fabs((double)y - right) < 1e-5))
        ck_abort_msg("%s, %d x %d, row %d, column %d: %.9g, should be %.9g", name, p->rows,
                     p->columns, i, j, (double)y, right);
}

/* Results near the definition's, and not a bit changed around them. */
static void check(const struct fixture *f, const qat_real *before, const double *right,
                  const char *name)
{
    for (int i = 0; i < QAT_PRODUCT_ROWS; i++)
        for (int j = -GUARD; j < ROW - GUARD; j++) {
            int const at = i * ROW + GUARD + j;
            double const value =
                j >= 0 && j < QAT_PRODUCT_COLUMNS ? right[i * QAT_PRODUCT_COLUMNS + j] : 0;
            check_value(&f->product, i, j, f->c[at], before[at], value, name);
        }
}

/* All ways on one product; those with fused multiply-add agree to the bit. */
static void check_ways(struct fixture *f)
{
    static qat_real before[QAT_PRODUCT_ROWS * ROW], fused[QAT_PRODUCT_ROWS * ROW];
    double right[QAT_PRODUCT_ROWS * QAT_PRODUCT_COLUMNS] = {0};
    bool have_fused = false;
    memcpy(before, f->c, sizeof before);
    for (int i = 0; i < f->product.rows; i++)
        for (int j = 0; j < f->product.columns; j++)
            right[i * QAT_PRODUCT_COLUMNS + j] = by_definition(f, i, j);
    const qat_product_isa *way;
    for (int i = 0; (way = qat_product_at(i)); i++) {
        if (!way->runs_here())
            continue;
        memcpy(f->c, before, sizeof before);
        way->run(&f->product);
        check(f, before, right, way->name);
        if (strcmp(way->name, "portable") == 0)
            continue;
        if (have_fused)
            ck_assert_msg(memcmp(f->c, fused, sizeof fused) == 0, "%s has other bits", way->name);
        memcpy(fused, f->c, sizeof fused);
        have_fused = true;
    }
}

START_TEST(all_ways_compute_the_definition)
{
    static struct fixture f;
    srand(1); /* the same products every time */
    fill(f.a, VALUES);
    fill(f.b, VALUES);
    for (int rows = 1; rows <= QAT_PRODUCT_ROWS; rows++)
        for (int columns = 1; columns <= QAT_PRODUCT_COLUMNS; columns++)
            for (int times = 0; times < 8; times++) {
                prepare(&f, rows, columns, rand() % (SEGMENTS + 1), rand() % 10);
                check_ways(&f);
            }
}
END_TEST

START_TEST(the_last_way_runs_everywhere)
{
    const qat_product_isa *last = NULL;
    for (int i = 0; qat_product_at(i); i++)
        last = qat_product_at(i);
    ck_assert_ptr_nonnull(last);
    ck_assert(last->runs_here());
    ck_assert_str_eq(last->name, "portable");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("product");
    TCase *tests = tcase_create("product");
    tcase_add_test(tests, all_ways_compute_the_definition);
    tcase_add_test(tests, the_last_way_runs_everywhere);
    suite_add_tcase(suite, tests);
    return test_run_suite(suite);
}
