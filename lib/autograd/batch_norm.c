#include "autograd/batch_norm.h"

#include "autograd/real.h"
#include "autograd/tiles.h"
#include "autograd/vector.h"

size_t qat_bn_place(qat_bn *bn, void *scratch, size_t rows, int channels)
{
    size_t const n = (size_t)channels;
    qat_carve carve = {scratch, 0};
    bn->rows = rows;
    bn->channels = channels;
    bn->mean = qat_carve_take(&carve, n, sizeof(qat_real));
    bn->variance = qat_carve_take(&carve, n, sizeof(qat_real));
    bn->inv_std = qat_carve_take(&carve, n, sizeof(qat_real));
    bn->slope = qat_carve_take(&carve, n, sizeof(qat_real));
    bn->offset = qat_carve_take(&carve, n, sizeof(qat_real));
    bn->sum = qat_carve_take(&carve, n, sizeof(double));
    bn->sum_product = qat_carve_take(&carve, n, sizeof(double));
    bn->partial = qat_carve_take(&carve, qat_column_partials(rows, channels), sizeof(double));
    return carve.used;
}

static void set_inv_std(qat_bn *bn, double epsilon)
{
    for (int c = 0; c < bn->channels; c++)
        bn->inv_std[c] = 1 / QAT_SQRT(bn->variance[c] + (qat_real)epsilon);
}

void qat_bn_use_batch(qat_bn *bn, const qat_real *x, double epsilon)
{
    double const rows = (double)bn->rows;
    qat_column_sums(x, x, bn->rows, bn->channels, bn->partial, bn->sum, bn->sum_product);
    for (int c = 0; c < bn->channels; c++) {
        /* Squares of floats are exact in double, so the difference loses nothing that matters. */
        double const mean = bn->sum[c] / rows;
        double const variance = bn->sum_product[c] / rows - mean * mean;
        bn->mean[c] = (qat_real)mean;
        bn->variance[c] = (qat_real)(variance < 0 ? 0 : variance);
    }
    set_inv_std(bn, epsilon);
}

void qat_bn_use_averages(qat_bn *bn, const qat_real *ema_mean, const qat_real *ema_variance,
                         double epsilon)
{
    for (int c = 0; c < bn->channels; c++) {
        bn->mean[c] = ema_mean[c];
        bn->variance[c] = ema_variance[c];
    }
    set_inv_std(bn, epsilon);
}

/* One tiled loop over the rows; which arrays it uses is its function's business. */
struct rows_loop {
    const qat_bn *bn;
    const qat_real *x, *gamma, *beta, *dy;
    qat_real *out;
};

static qat_span rows_of_tile(const struct rows_loop *loop, int tile)
{
    return qat_tile_span(loop->bn->rows, qat_tile_rows((size_t)loop->bn->channels), tile);
}

static void run_rows(struct rows_loop *loop, qat_tile_fn *fn)
{
    size_t const rows = qat_tile_rows((size_t)loop->bn->channels);
    qat_parallel(qat_tiles_of(loop->bn->rows, rows), fn, loop);
}

QAT_VECTOR static void normalise(const qat_real *x, const qat_real *restrict mean,
                                 const qat_real *restrict inv_std, const qat_real *restrict gamma,
                                 const qat_real *restrict beta, size_t rows, size_t channels,
                                 qat_real *y)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < channels; c++)
            y[r * channels + c] =
                (x[r * channels + c] - mean[c]) * (gamma[c] * inv_std[c]) + beta[c];
}

static void forward_tile(void *context, int tile, int thread)
{
    const struct rows_loop *loop = context;
    const qat_bn *bn = loop->bn;
    qat_span const span = rows_of_tile(loop, tile);
    size_t const at = span.begin * (size_t)bn->channels;
    normalise(loop->x + at, bn->mean, bn->inv_std, loop->gamma, loop->beta, span.end - span.begin,
              (size_t)bn->channels, loop->out + at);
}

void qat_bn_forward(const qat_bn *bn, const qat_real *x, const qat_real *gamma,
                    const qat_real *beta, qat_real *y)
{
    struct rows_loop loop = {.bn = bn, .x = x, .gamma = gamma, .beta = beta, .out = y};
    run_rows(&loop, forward_tile);
}

QAT_VECTOR static void add_dx(const qat_bn *bn, const qat_real *restrict x,
                              const qat_real *restrict gamma, const qat_real *restrict dy,
                              size_t rows, qat_real *restrict dx)
{
    const qat_real *restrict mean = bn->mean, *restrict inv_std = bn->inv_std;
    const qat_real *restrict slope = bn->slope, *restrict offset = bn->offset;
    size_t const channels = (size_t)bn->channels;
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < channels; c++) {
            size_t const i = r * channels + c;
            dx[i] += gamma[c] * inv_std[c] * (dy[i] - offset[c] - (x[i] - mean[c]) * slope[c]);
        }
}

static void backward_tile(void *context, int tile, int thread)
{
    const struct rows_loop *loop = context;
    qat_span const span = rows_of_tile(loop, tile);
    size_t const at = span.begin * (size_t)loop->bn->channels;
    add_dx(loop->bn, loop->x + at, loop->gamma, loop->dy + at, span.end - span.begin,
           loop->out + at);
}

void qat_bn_backward(qat_bn *bn, const qat_real *x, const qat_real *gamma, const qat_real *dy,
                     bool through_batch, qat_real *dx, qat_real *dgamma, qat_real *dbeta)
{
    double const rows = (double)bn->rows;
    qat_column_sums(dy, x, bn->rows, bn->channels, bn->partial, bn->sum, bn->sum_product);
    for (int c = 0; c < bn->channels; c++) {
        /* sum dy xhat = inv_std (sum dy x - mean sum dy) */
        double const inv_std = (double)bn->inv_std[c];
        double const dg = inv_std * (bn->sum_product[c] - (double)bn->mean[c] * bn->sum[c]);
        if (dgamma)
            dgamma[c] += (qat_real)dg;
        if (dbeta)
            dbeta[c] += (qat_real)bn->sum[c];
        bn->offset[c] = through_batch ? (qat_real)(bn->sum[c] / rows) : 0;
        bn->slope[c] = through_batch ? (qat_real)(dg * inv_std / rows) : 0;
    }
    if (!dx)
        return;
    struct rows_loop loop = {.bn = bn, .x = x, .gamma = gamma, .dy = dy, .out = dx};
    run_rows(&loop, backward_tile);
}

void qat_bn_update(const qat_bn *bn, double momentum, qat_real *ema_mean, qat_real *ema_variance,
                   qat_real *ema_steps)
{
    qat_real const keep = *ema_steps > 0 ? (qat_real)momentum : 0, take = 1 - keep;
    for (int c = 0; c < bn->channels; c++) {
        ema_mean[c] = keep * ema_mean[c] + take * bn->mean[c];
        ema_variance[c] = keep * ema_variance[c] + take * bn->variance[c];
    }
    *ema_steps += 1;
}
