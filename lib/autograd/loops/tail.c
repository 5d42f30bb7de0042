#include "autograd/loops/tail.h"

#include "autograd/loops/tiles.h"
#include "autograd/loops/vector.h"

#include <string.h>

void qat_each_strip(size_t begin, size_t end, qat_strip_fn *fn, void *context)
{
    for (size_t at = begin, n; at < end; at += n) {
        n = end - at < QAT_STRIP_VALUES ? end - at : QAT_STRIP_VALUES;
        fn(context, at, n);
    }
}

struct strips {
    size_t n;
    qat_strip_fn *fn;
    void *context;
};

static void strips_of_tile(void *context, int tile, int thread)
{
    const struct strips *s = context;
    qat_span const span = qat_tile_span(s->n, QAT_TILE_VALUES, tile);
    qat_each_strip(span.begin, span.end, s->fn, s->context);
}

void qat_run_strips(size_t n, qat_strip_fn *fn, void *context)
{
    struct strips s = {n, fn, context};
    qat_parallel(qat_tiles_of(n, QAT_TILE_VALUES), strips_of_tile, &s);
}

bool qat_runs_any_tail(const qat_node *node)
{
    return true;
}

/* ------------------------------------------------------------------ the tail of a head */

void qat_tail_begin(const qat_node *head, const qat_run *run)
{
    for (int i = 0; head->tail && i < head->tail->n; i++) {
        qat_node *node = head->tail->ops[i];
        if (node->op->elementwise->begin)
            node->op->elementwise->begin(node, run);
    }
}

void qat_tail_end(const qat_node *head, const qat_run *run)
{
    for (int i = 0; head->tail && i < head->tail->n; i++) {
        qat_node *node = head->tail->ops[i];
        if (node->op->elementwise->end)
            node->op->elementwise->end(node, run);
    }
}

void qat_tail_forward(const qat_node *head, size_t at, qat_real *y, size_t n)
{
    for (int i = 0; head->tail && i < head->tail->n; i++) {
        const qat_node *node = head->tail->ops[i];
        node->op->elementwise->forward(node, at, y, y, n);
    }
}

void qat_tail_backward(const qat_node *head, const qat_real *x, qat_real *grad, size_t n)
{
    qat_real inner[QAT_TAIL_MAX - 1]
                  [QAT_STRIP_VALUES]; /* the inputs of all tail ops but the first */
    const qat_real *inputs[QAT_TAIL_MAX] = {x};
    int const ops = head->tail ? head->tail->n : 0;
    for (int i = 0; i + 1 < ops; i++) {
        const qat_node *node = head->tail->ops[i];
        node->op->elementwise->forward(node, 0, inputs[i], inner[i], n);
        inputs[i + 1] = inner[i];
    }
    for (int i = ops - 1; i >= 0; i--) {
        const qat_node *node = head->tail->ops[i];
        node->op->elementwise->backward(node, inputs[i], grad, n);
    }
}

/* ------------------------------------------------------------------ by themselves */

static void forward_strip(void *context, size_t at, size_t n)
{
    const qat_node *node = context;
    node->op->elementwise->forward(node, at, node->inputs[0]->value + at, node->value + at, n);
}

static void backward_strip(void *context, size_t at, size_t n)
{
    const qat_node *node = context;
    const qat_real *x = node->inputs[0]->value + at, *dy = node->grad + at;
    qat_real *dx = node->inputs[0]->grad + at, sum[QAT_STRIP_VALUES];
    qat_real *grad = qat_grad_is_new(node, 0) ? dx : sum;
    if (grad != dy)
        memcpy(grad, dy, n * sizeof *grad);
    node->op->elementwise->backward(node, x, grad, n);
    if (grad != dx)
        qat_vector_add(dx, grad, n);
}

void qat_elementwise_forward(qat_node *node, const qat_run *run)
{
    const qat_elementwise *e = node->op->elementwise;
    if (e->begin)
        e->begin(node, run);
    qat_run_strips(qat_shape_count(&node->shape), forward_strip, node);
    if (e->end)
        e->end(node, run);
}

void qat_elementwise_backward(qat_node *node, const qat_run *run)
{
    if (node->inputs[0]->grad)
        qat_run_strips(qat_shape_count(&node->shape), backward_strip, node);
}
