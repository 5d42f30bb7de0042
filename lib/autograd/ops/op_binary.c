/**
 * add, sub and mul of two tensors of equal rank. Dimensions must be equal, or 1 in one of the two
 * tensors, which is then repeated (broadcast). The batch is never repeated, so that the images of a
 * batch are independent.
 */
#include "autograd/loops/real.h"
#include "autograd/loops/tail.h"
#include "autograd/loops/tiles.h"
#include "autograd/loops/vector.h"
#include "autograd/ops/op.h"

#include <string.h>

static qat_status binary_shape(qat_node *node, qat_error *err)
{
    const qat_shape *a = &node->inputs[0]->shape, *b = &node->inputs[1]->shape;
    bool fits = a->rank == b->rank && a->dims[0] == b->dims[0];
    for (int i = 1; fits && i < a->rank; i++)
        fits = a->dims[i] == b->dims[i] || a->dims[i] == 1 || b->dims[i] == 1;
    if (!fits) {
        char text[2][64];
        return qat_fail(err, QAT_ERR_SHAPE,
                        "%s and %s do not fit: each dimension must be equal, or 1 in one of them "
                        "(but not the batch)",
                        qat_shape_text(a, text[0]), qat_shape_text(b, text[1]));
    }
    node->shape = *a;
    for (int i = 1; i < a->rank; i++)
        node->shape.dims[i] = a->dims[i] > b->dims[i] ? a->dims[i] : b->dims[i];
    return QAT_OK;
}

/* ------------------------------------------------------------------ the loop of all */

/**
 * One of a loop's three arrays: its steps along d1, d2, d3 (0 if repeated), and its values per
 * image.
 */
struct operand {
    qat_real *at;
    size_t step[3], image;
};

/** Computes one row along the last dimension. Steps are 0 or 1. */
typedef void row_fn(qat_real *out, size_t step, const qat_real *p, size_t p_step, const qat_real *q,
                    size_t q_step, size_t n);

/**
 * The loop out (op)= p, q. It walks the shape of the result. If out is the gradient of a repeated
 * input, out is repeated too: its values then sum over the repetitions.
 */
struct loop {
    size_t dims[3];
    struct operand out, p, q;
    row_fn *row;
    size_t count; /* values of the result, whole batch */
};

static struct operand operand_of(const qat_shape *shape, qat_real *at)
{
    struct operand o = {.at = at, .image = 1};
    for (int i = 2; i >= 0; i--) {
        size_t const dim = i + 1 < shape->rank ? (size_t)shape->dims[i + 1] : 1;
        o.step[i] = dim == 1 ? 0 : o.image;
        o.image *= dim;
    }
    return o;
}

static void image_tile(void *context, int image, int thread)
{
    const struct loop *l = context;
    qat_real *out = l->out.at + (size_t)image * l->out.image;
    const qat_real *p = l->p.at + (size_t)image * l->p.image;
    const qat_real *q = l->q.at + (size_t)image * l->q.image;
    for (size_t i = 0; i < l->dims[0]; i++)
        for (size_t j = 0; j < l->dims[1]; j++)
            l->row(out + i * l->out.step[0] + j * l->out.step[1], l->out.step[2],
                   p + i * l->p.step[0] + j * l->p.step[1], l->p.step[2],
                   q + i * l->q.step[0] + j * l->q.step[1], l->q.step[2], l->dims[2]);
}

static void equal_tile(void *context, int tile, int thread)
{
    const struct loop *l = context;
    qat_span const span = qat_tile_span(l->count, QAT_TILE_VALUES, tile);
    l->row(l->out.at + span.begin, 1, l->p.at + span.begin, 1, l->q.at + span.begin, 1,
           span.end - span.begin);
}

static void run_loop(const qat_node *node, row_fn *row, struct operand out, struct operand p,
                     struct operand q)
{
    struct loop l = {.out = out, .p = p, .q = q, .row = row};
    l.count = qat_shape_count(&node->shape);
    for (int i = 0; i < 3; i++)
        l.dims[i] = i + 1 < node->shape.rank ? (size_t)node->shape.dims[i + 1] : 1;
    if (qat_shape_equal(&node->inputs[0]->shape, &node->inputs[1]->shape))
        qat_parallel(qat_tiles_of(l.count, QAT_TILE_VALUES), equal_tile, &l);
    else
        qat_parallel(node->shape.dims[0], image_tile, &l);
}

static void forward_loop(const qat_node *node, row_fn *row)
{
    const qat_node *a = node->inputs[0], *b = node->inputs[1];
    run_loop(node, row, operand_of(&node->shape, node->value), operand_of(&a->shape, a->value),
             operand_of(&b->shape, b->value));
}

/* Compute the gradient of input i from dy and the other input. */
static void backward_loop(const qat_node *node, int i, row_fn *row)
{
    const qat_node *in = node->inputs[i], *other = node->inputs[1 - i];
    if (in->grad)
        run_loop(node, row, operand_of(&in->shape, in->grad), operand_of(&node->shape, node->grad),
                 operand_of(&other->shape, other->value));
}

/* ------------------------------------------------------------------ add */

QAT_VECTOR static void add_values(qat_real *out, size_t step, const qat_real *p, size_t p_step,
                                  const qat_real *q, size_t q_step, size_t n)
{
    if (p_step == 1 && q_step == 1)
        for (size_t i = 0; i < n; i++)
            out[i] = p[i] + q[i];
    else
        for (size_t i = 0; i < n; i++)
            out[i] = p[i * p_step] + q[i * q_step];
}

static bool equal_shapes(const qat_node *node)
{
    return qat_shape_equal(&node->inputs[0]->shape, &node->inputs[1]->shape);
}

static void add_strip(void *context, size_t at, size_t n)
{
    const qat_node *node = context;
    qat_real *y = qat_tail_last(node)->value + at;
    add_values(y, 1, node->inputs[0]->value + at, 1, node->inputs[1]->value + at, 1, n);
    qat_tail_forward(node, at, y, n);
}

static void add_forward(qat_node *node, const qat_run *run)
{
    if (equal_shapes(node))
        qat_run_strips(qat_shape_count(&node->shape), add_strip, node);
    else
        forward_loop(node, add_values);
}

static void pass_strip(const qat_node *node, int input, size_t at, size_t n)
{
    qat_real *dx = node->inputs[input]->grad;
    if (dx && !qat_grad_is_new(node, input))
        qat_vector_add(dx + at, node->grad + at, n);
    else if (dx && dx != node->grad)
        memcpy(dx + at, node->grad + at, n * sizeof *dx);
}

/** Mask dy by the node's tail, and pass it on. */
static void add_strip_gradient(void *context, size_t at, size_t n)
{
    const qat_node *node = context;
    qat_real y[QAT_STRIP_VALUES];
    if (node->tail) {
        add_values(y, 1, node->inputs[0]->value + at, 1, node->inputs[1]->value + at, 1, n);
        qat_tail_backward(node, y, node->grad + at, n);
    }
    pass_strip(node, 0, at, n);
    pass_strip(node, 1, at, n);
}

static void add_gradient(qat_real *out, size_t step, const qat_real *p, size_t p_step,
                         const qat_real *q, size_t q_step, size_t n)
{
    double sum = 0;
    if (step == 1) {
        qat_vector_add(out, p, n);
        return;
    }
    for (size_t i = 0; i < n; i++)
        sum += (double)p[i * p_step];
    *out += (qat_real)sum;
}

static void add_backward(qat_node *node, const qat_run *run)
{
    if (equal_shapes(node)) {
        qat_run_strips(qat_shape_count(&node->shape), add_strip_gradient, node);
        return;
    }
    for (int i = 0; i < 2; i++) {
        const qat_node *in = node->inputs[i];
        if (qat_grad_is_new(node, i) && in->grad != node->grad)
            memset(in->grad, 0, qat_shape_count(&in->shape) * sizeof *in->grad);
        if (in->grad != node->grad)
            backward_loop(node, i, add_gradient);
    }
}

const qat_op qat_op_add = {
    .name = "add",
    .meaning = "sum of two tensors",
    .min_inputs = 2,
    .max_inputs = 2,
    .shape = binary_shape,
    .forward = add_forward,
    .backward = add_backward,
    .quant = QAT_QUANT(add),
    .grads = QAT_GRADS_IN_PLACE,
    .runs_tail = equal_shapes,
};

/* ------------------------------------------------------------------ sub */

QAT_VECTOR static void sub_values(qat_real *out, size_t step, const qat_real *p, size_t p_step,
                                  const qat_real *q, size_t q_step, size_t n)
{
    if (p_step == 1 && q_step == 1)
        for (size_t i = 0; i < n; i++)
            out[i] = p[i] - q[i];
    else
        for (size_t i = 0; i < n; i++)
            out[i] = p[i * p_step] - q[i * q_step];
}

/** Gradient of the second input: subtract dy. */
static void sub_gradient(qat_real *out, size_t step, const qat_real *p, size_t p_step,
                         const qat_real *q, size_t q_step, size_t n)
{
    double sum = 0;
    if (step == 1) {
        qat_vector_add_scaled(out, p, -1, n);
        return;
    }
    for (size_t i = 0; i < n; i++)
        sum += (double)p[i * p_step];
    *out -= (qat_real)sum;
}

static void sub_forward(qat_node *node, const qat_run *run)
{
    forward_loop(node, sub_values);
}

static void sub_backward(qat_node *node, const qat_run *run)
{
    backward_loop(node, 0, add_gradient);
    backward_loop(node, 1, sub_gradient);
}

const qat_op qat_op_sub = {
    .name = "sub",
    .meaning = "difference of two tensors",
    .min_inputs = 2,
    .max_inputs = 2,
    .shape = binary_shape,
    .forward = sub_forward,
    .backward = sub_backward,
    .quant = QAT_QUANT(sub),
};

/* ------------------------------------------------------------------ mul */

QAT_VECTOR static void mul_values(qat_real *out, size_t step, const qat_real *p, size_t p_step,
                                  const qat_real *q, size_t q_step, size_t n)
{
    if (p_step == 1 && q_step == 1)
        for (size_t i = 0; i < n; i++)
            out[i] = p[i] * q[i];
    else
        for (size_t i = 0; i < n; i++)
            out[i] = p[i * p_step] * q[i * q_step];
}

QAT_VECTOR static void mul_gradient(qat_real *out, size_t step, const qat_real *p, size_t p_step,
                                    const qat_real *q, size_t q_step, size_t n)
{
    double sum = 0;
    if (step == 1 && q_step == 1) {
        for (size_t i = 0; i < n; i++)
            out[i] += p[i] * q[i];
    } else if (step == 1) {
        for (size_t i = 0; i < n; i++)
            out[i] += p[i] * *q;
    } else {
        for (size_t i = 0; i < n; i++)
            sum += (double)p[i * p_step] * (double)q[i * q_step];
        *out += (qat_real)sum;
    }
}

static void mul_forward(qat_node *node, const qat_run *run)
{
    forward_loop(node, mul_values);
}

static void mul_backward(qat_node *node, const qat_run *run)
{
    backward_loop(node, 0, mul_gradient);
    backward_loop(node, 1, mul_gradient);
}

const qat_op qat_op_mul = {
    .name = "mul",
    .meaning = "product of two tensors",
    .min_inputs = 2,
    .max_inputs = 2,
    .shape = binary_shape,
    .forward = mul_forward,
    .backward = mul_backward,
    .quant = QAT_QUANT(mul),
};
