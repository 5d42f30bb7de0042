/**
 * Activations: elementwise functions of one input. NaN passes through, so that it is found where it
 * first appears.
 *
 *     relu, relu6 ...      clamps, which run in the strips of the op before them (clamps.h)
 *     logistic, tanh ...   curves (curves.h)
 */
#include "autograd/loops/real.h"
#include "autograd/loops/tail.h"
#include "autograd/loops/tiles.h"
#include "autograd/ops/curves.h"
#include "autograd/ops/op.h"

/** y = f(x), n values. */
typedef void forward_fn(const qat_real *x, qat_real *y, size_t n);
/** dx += f'(x) dy; y = f(x) is available. */
typedef void backward_fn(const qat_real *x, const qat_real *y, const qat_real *dy, qat_real *dx,
                         size_t n);

struct map {
    const qat_node *node;
    forward_fn *forward;
    backward_fn *backward;
};

static void map_tile(void *context, int tile, int thread)
{
    const struct map *map = context;
    const qat_node *node = map->node, *in = node->inputs[0];
    qat_span const span = qat_tile_span(qat_shape_count(&node->shape), QAT_TILE_VALUES, tile);
    size_t const at = span.begin, n = span.end - span.begin;
    if (map->forward)
        map->forward(in->value + at, node->value + at, n);
    else
        map->backward(in->value + at, node->value + at, node->grad + at, in->grad + at, n);
}

static void forward_map(const qat_node *node, forward_fn *fn)
{
    struct map map = {node, fn, NULL};
    qat_parallel(qat_tiles_of(qat_shape_count(&node->shape), QAT_TILE_VALUES), map_tile, &map);
}

static void backward_map(const qat_node *node, backward_fn *fn)
{
    struct map map = {node, NULL, fn};
    if (node->inputs[0]->grad)
        qat_parallel(qat_tiles_of(qat_shape_count(&node->shape), QAT_TILE_VALUES), map_tile, &map);
}

static qat_status same_shape(qat_node *node, qat_error *err)
{
    node->shape = node->inputs[0]->shape;
    return QAT_OK;
}

/* ------------------------------------------------------------------ clamps */

/* One loop for each clamp, as the compiler then drops the comparison with an infinite bound. */
#define CLAMP(op, MIN, MAX, text)                                                                  \
    QAT_VECTOR static void op##_strip(const qat_node *node, size_t at, const qat_real *x,          \
                                      qat_real *y, size_t n)                                       \
    {                                                                                              \
        for (size_t i = 0; i < n; i++) {                                                           \
            qat_real const low = (MIN) > -INFINITY && x[i] <= (MIN) ? (MIN) : x[i];                \
            y[i] = (MAX) < INFINITY && low >= (MAX) ? (MAX) : low;                                 \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    QAT_VECTOR static void op##_mask(const qat_node *node, const qat_real *restrict x,             \
                                     qat_real *restrict grad, size_t n)                            \
    {                                                                                              \
        for (size_t i = 0; i < n; i++) {                                                           \
            qat_real const g = grad[i]; /* read in any case, so that the loop has no branches */   \
            qat_real const low = (MIN) > -INFINITY && x[i] <= (MIN) ? 0 : g;                       \
            grad[i] = (MAX) < INFINITY && x[i] >= (MAX) ? 0 : low;                                 \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static const qat_elementwise op##_strips = {.forward = op##_strip, .backward = op##_mask};     \
                                                                                                   \
    const qat_op qat_op_##op = {                                                                   \
        .name = #op,                                                                               \
        .meaning = text,                                                                           \
        .min_inputs = 1,                                                                           \
        .max_inputs = 1,                                                                           \
        .shape = same_shape,                                                                       \
        .forward = qat_elementwise_forward,                                                        \
        .backward = qat_elementwise_backward,                                                      \
        .quant = QAT_QUANT(op),                                                                    \
        .grads = QAT_GRADS_IN_PLACE,                                                               \
        .elementwise = &op##_strips,                                                               \
    };
QAT_CLAMPS(CLAMP)

/* ------------------------------------------------------------------ curves */

/** exp is only called with negative numbers, so it cannot overflow. */
static inline qat_real logistic_of(qat_real x)
{
    qat_real const e = QAT_EXP(-QAT_FABS(x));
    return (x < 0 ? e : 1) / (1 + e);
}

/** The standard normal distribution, without the cancellation of 1 + erf for negative x. */
static inline qat_real normal_of(qat_real x)
{
    return QAT_REAL(0.5) * QAT_ERFC(-QAT_REAL(0.70710678118654752) * x);
}

static inline qat_real density_of(qat_real x)
{
    return QAT_REAL(0.39894228040143268) * QAT_EXP(-QAT_REAL(0.5) * x * x);
}

#define CURVE(op, text, VALUE, GRADIENT)                                                           \
    static inline qat_real op##_value(qat_real x)                                                  \
    {                                                                                              \
        return VALUE;                                                                              \
    }                                                                                              \
                                                                                                   \
    static inline qat_real op##_gradient(qat_real x, qat_real y, qat_real dy)                      \
    {                                                                                              \
        return GRADIENT;                                                                           \
    }                                                                                              \
                                                                                                   \
    QAT_VECTOR static void op##_values(const qat_real *restrict x, qat_real *restrict y, size_t n) \
    {                                                                                              \
        for (size_t i = 0; i < n; i++)                                                             \
            y[i] = op##_value(x[i]);                                                               \
    }                                                                                              \
                                                                                                   \
    QAT_VECTOR static void op##_gradients(const qat_real *restrict x, const qat_real *restrict y,  \
                                          const qat_real *restrict dy, qat_real *restrict dx,      \
                                          size_t n)                                                \
    {                                                                                              \
        for (size_t i = 0; i < n; i++)                                                             \
            dx[i] += op##_gradient(x[i], y[i], dy[i]);                                             \
    }                                                                                              \
                                                                                                   \
    static void op##_forward(qat_node *node, const qat_run *run)                                   \
    {                                                                                              \
        forward_map(node, op##_values);                                                            \
    }                                                                                              \
                                                                                                   \
    static void op##_backward(qat_node *node, const qat_run *run)                                  \
    {                                                                                              \
        backward_map(node, op##_gradients);                                                        \
    }                                                                                              \
                                                                                                   \
    const qat_op qat_op_##op = {                                                                   \
        .name = #op,                                                                               \
        .meaning = text,                                                                           \
        .min_inputs = 1,                                                                           \
        .max_inputs = 1,                                                                           \
        .shape = same_shape,                                                                       \
        .forward = op##_forward,                                                                   \
        .backward = op##_backward,                                                                 \
        .quant = QAT_QUANT(op),                                                                    \
    };
QAT_CURVES(CURVE)
