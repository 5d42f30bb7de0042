#include "autograd/loops/vector.h"

#include "autograd/loops/real.h"
#include "autograd/loops/tiles.h"

#include <string.h>

QAT_VECTOR static void vector_add(qat_real *restrict y, const qat_real *restrict x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] += x[i];
}

void qat_vector_add(qat_real *restrict y, const qat_real *restrict x, size_t n)
{
    vector_add(y, x, n);
}

QAT_VECTOR static void vector_add_scaled(qat_real *restrict y, const qat_real *restrict x,
                                         qat_real a, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] += a * x[i];
}

void qat_vector_add_scaled(qat_real *restrict y, const qat_real *restrict x, qat_real a, size_t n)
{
    vector_add_scaled(y, x, a, n);
}

enum { LANES = 8 };

/* A target of NaN is not known and counts as met. */
static inline double difference(qat_real x, qat_real t)
{
    return t == t ? (double)x - (double)t : 0.0;
}

/* Lane l sums the values at l, l + 8, ... The chains are independent, so the loop vectorizes. */
QAT_VECTOR static void square_lanes(const qat_real *restrict x, const qat_real *restrict t,
                                    size_t n, double lanes[LANES])
{
    for (size_t i = 0; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++) {
            double const d = t ? difference(x[i + l], t[i + l]) : (double)x[i + l];
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
        double const d = t ? difference(x[i], t[i]) : (double)x[i];
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

struct copy {
    qat_real *y;
    const qat_real *x;
    size_t n;
};

static void copy_tile(void *context, int tile, int thread)
{
    const struct copy *c = context;
    qat_span const span = qat_tile_span(c->n, QAT_TILE_VALUES, tile);
    memcpy(c->y + span.begin, c->x + span.begin, (span.end - span.begin) * sizeof *c->y);
}

void qat_pass_gradient(const qat_node *node, int input)
{
    struct copy c = {node->inputs[input]->grad, node->grad, qat_shape_count(&node->shape)};
    if (!qat_grad_is_new(node, input))
        qat_accumulate(c.y, c.x, c.n);
    else if (c.y != c.x)
        qat_parallel(qat_tiles_of(c.n, QAT_TILE_VALUES), copy_tile, &c);
}
