/**
 * Functions of one value that have a form: their attributes. Each becomes a table at export.
 *
 *     leaky_relu     x, or alpha x below 0
 *     hard_sigmoid   alpha x + beta, between 0 and 1
 *     clip           x, between min and max
 */
#include "autograd/loops/real.h"
#include "autograd/loops/tiles.h"
#include "autograd/ops/op.h"

/** The numbers of a node, read once. */
struct form {
    qat_real a, b;
};

typedef void values_fn(struct form f, const qat_real *restrict x, qat_real *restrict y, size_t n);
typedef void gradients_fn(struct form f, const qat_real *restrict x, const qat_real *restrict dy,
                          qat_real *restrict dx, size_t n);

static qat_status same_shape(qat_node *node, qat_error *err)
{
    node->shape = node->inputs[0]->shape;
    return QAT_OK;
}

struct pass {
    const qat_node *node;
    struct form form;
    values_fn *values;
    gradients_fn *gradients; /* backward */
};

static void tile(void *context, int number, int thread)
{
    const struct pass *p = context;
    const qat_node *node = p->node, *in = node->inputs[0];
    qat_span const span = qat_tile_span(qat_shape_count(&node->shape), QAT_TILE_VALUES, number);
    size_t const at = span.begin, n = span.end - span.begin;
    (void)thread;
    if (p->gradients)
        p->gradients(p->form, in->value + at, node->grad + at, in->grad + at, n);
    else
        p->values(p->form, in->value + at, node->value + at, n);
}

static void map(const qat_node *node, const char *a, const char *b, values_fn *values,
                gradients_fn *gradients)
{
    struct pass p = {.node = node, .values = values, .gradients = gradients};
    p.form.a = (qat_real)qat_attr(node, a);
    p.form.b = (qat_real)qat_attr(node, b);
    if (!gradients || node->inputs[0]->grad)
        qat_parallel(qat_tiles_of(qat_shape_count(&node->shape), QAT_TILE_VALUES), tile, &p);
}

#define FORMED(op, text, first, second, definitions)                                               \
    QAT_VECTOR static void op##_values(struct form f, const qat_real *restrict x,                  \
                                       qat_real *restrict y, size_t n)                             \
    {                                                                                              \
        for (size_t i = 0; i < n; i++)                                                             \
            y[i] = op##_value(f, x[i]);                                                            \
    }                                                                                              \
                                                                                                   \
    QAT_VECTOR static void op##_gradients(struct form f, const qat_real *restrict x,               \
                                          const qat_real *restrict dy, qat_real *restrict dx,      \
                                          size_t n)                                                \
    {                                                                                              \
        for (size_t i = 0; i < n; i++)                                                             \
            dx[i] += dy[i] * op##_slope(f, x[i]);                                                  \
    }                                                                                              \
                                                                                                   \
    static void op##_forward(qat_node *node, const qat_run *run)                                   \
    {                                                                                              \
        map(node, first, second, op##_values, NULL);                                               \
    }                                                                                              \
                                                                                                   \
    static void op##_backward(qat_node *node, const qat_run *run)                                  \
    {                                                                                              \
        map(node, first, second, NULL, op##_gradients);                                            \
    }                                                                                              \
                                                                                                   \
    const qat_op qat_op_##op = {                                                                   \
        .name = #op,                                                                               \
        .meaning = text,                                                                           \
        .min_inputs = 1,                                                                           \
        .max_inputs = 1,                                                                           \
        .attrs = definitions,                                                                      \
        .shape = same_shape,                                                                       \
        .forward = op##_forward,                                                                   \
        .backward = op##_backward,                                                                 \
        .quant = QAT_QUANT(op),                                                                    \
    };

/* ------------------------------------------------------------------ leaky_relu */

static inline qat_real leaky_relu_value(struct form f, qat_real x)
{
    return x < 0 ? f.a * x : x;
}

static inline qat_real leaky_relu_slope(struct form f, qat_real x)
{
    return x < 0 ? f.a : 1;
}

static const qat_attr_def leaky_relu_attrs[] = {
    {"alpha", QAT_ATTR_REAL, 0.01, -1e6, 1e6, NULL, "slope below 0"},
    {NULL, QAT_ATTR_INT, 0, 0, 0, NULL, NULL},
};

FORMED(leaky_relu, "x, or alpha x below 0", "alpha", "alpha", leaky_relu_attrs)

/* ------------------------------------------------------------------ hard_sigmoid */

static inline qat_real between(qat_real x, qat_real low, qat_real high)
{
    return x < low ? low : x > high ? high : x;
}

static inline qat_real hard_sigmoid_value(struct form f, qat_real x)
{
    return between(f.a * x + f.b, 0, 1);
}

static inline qat_real hard_sigmoid_slope(struct form f, qat_real x)
{
    qat_real const y = f.a * x + f.b;
    return y > 0 && y < 1 ? f.a : 0;
}

static const qat_attr_def hard_sigmoid_attrs[] = {
    {"alpha", QAT_ATTR_REAL, 1.0 / 6.0, -1e6, 1e6, NULL, "slope"},
    {"beta", QAT_ATTR_REAL, 0.5, -1e6, 1e6, NULL, "value at 0"},
    {NULL, QAT_ATTR_INT, 0, 0, 0, NULL, NULL},
};

FORMED(hard_sigmoid, "alpha x + beta, between 0 and 1", "alpha", "beta", hard_sigmoid_attrs)

/* ------------------------------------------------------------------ clip */

static inline qat_real clip_value(struct form f, qat_real x)
{
    qat_real const y = x < f.a ? f.a : x;
    return y > f.b ? f.b : y;
}

static inline qat_real clip_slope(struct form f, qat_real x)
{
    return x > f.a && x < f.b ? 1 : 0;
}

static const qat_attr_def clip_attrs[] = {
    {"min", QAT_ATTR_REAL, -1e30, -1e30, 1e30, NULL, "lower bound"},
    {"max", QAT_ATTR_REAL, 1e30, -1e30, 1e30, NULL, "upper bound; below min, it is the result"},
    {NULL, QAT_ATTR_INT, 0, 0, 0, NULL, NULL},
};

FORMED(clip, "x, between min and max", "min", "max", clip_attrs)
