/**
 * Ranges for comparison, which exported models never have.
 *
 * Worst case: interval arithmetic through an eval graph, with one interval per channel (the last
 * dimension) of each node. The values of an input may be anywhere in [lo, hi]:
 *
 *     conv, FC     sum over w of [min(w lo, w hi), max(w lo, w hi)], by output channel;
 *                  padding adds 0 to the input's interval
 *     fake_quant   the union of its channels becomes the tensor's range, widened to hold 0.
 *                  Other quantizers of activations are refused
 */
#include "autograd/ops/op.h"
#include "base/arena.h"
#include "fakequant/ops.h"
#include "fakequant/range.h"
#include "layer/layer.h"
#include "qat/ptq.h"

#include <math.h>
#include <string.h>

void qat_forget_ranges(qat_graph *eval)
{
    for (int i = 0; i < qat_graph_nodes(eval); i++)
        if (qat_fake_quant_is_observed(qat_graph_node(eval, i)))
            qat_graph_node(eval, i)->inputs[1]->value[RANGE_STEPS] = 0;
}

/* ------------------------------------------------------------------ intervals by channel */

typedef struct span {
    double lo, hi;
} span;

/** by node: the intervals of its channels; NULL: parameters, inputs */
typedef struct bounds {
    qat_arena arena;
    span **of;
} bounds;

static span join(span a, span b)
{
    return (span){fmin(a.lo, b.lo), fmax(a.hi, b.hi)};
}

static span hull(const bounds *b, const qat_node *node)
{
    span all = {INFINITY, -INFINITY};
    for (int c = 0; c < qat_shape_channels(&node->shape); c++)
        all = join(all, b->of[node->index][c]);
    return all;
}

static void fill(const bounds *b, const qat_node *node, span all)
{
    for (int c = 0; c < qat_shape_channels(&node->shape); c++)
        b->of[node->index][c] = all;
}

/** The interval of channel c of an input, which has node's shape or is broadcast to it. */
static span input_span(const bounds *b, const qat_node *input, int c)
{
    return qat_shape_channels(&input->shape) == 1 ? b->of[input->index][0] : b->of[input->index][c];
}

/* ------------------------------------------------------------------ ops */

static void add_product(span *sum, double w, span x)
{
    sum->lo += fmin(w * x.lo, w * x.hi);
    sum->hi += fmax(w * x.lo, w * x.hi);
}

static void accumulate(const bounds *b, const qat_node *node)
{
    const qat_node *w = node->inputs[node->n_data];
    span const x = join(hull(b, node->inputs[0]), (span){0, 0});
    fill(b, node, (span){0, 0});
    for (size_t i = 0; i < qat_shape_count(&w->shape); i++)
        add_product(&b->of[node->index][qat_output_channel(node, i)], (double)w->value[i], x);
}

static void add_bias(const bounds *b, const qat_node *node)
{
    for (int c = 0; c < qat_shape_channels(&node->shape); c++) {
        span const x = b->of[node->inputs[0]->index][c];
        double const bias = (double)node->inputs[1]->value[c];
        b->of[node->index][c] = (span){x.lo + bias, x.hi + bias};
    }
}

static span product(span x, span y)
{
    span const low = {x.lo * y.lo, x.lo * y.hi}, high = {x.hi * y.lo, x.hi * y.hi};
    return join((span){fmin(low.lo, low.hi), fmax(low.lo, low.hi)},
                (span){fmin(high.lo, high.hi), fmax(high.lo, high.hi)});
}

static bool is_known_binary(const qat_node *node)
{
    return node->op == &qat_op_add || node->op == &qat_op_sub || node->op == &qat_op_mul;
}

static void combine(const bounds *b, const qat_node *node)
{
    for (int c = 0; c < qat_shape_channels(&node->shape); c++) {
        span const x = input_span(b, node->inputs[0], c), y = input_span(b, node->inputs[1], c);
        span *out = &b->of[node->index][c];
        if (node->op == &qat_op_add)
            *out = (span){x.lo + y.lo, x.hi + y.hi};
        else if (node->op == &qat_op_sub)
            *out = (span){x.lo - y.hi, x.hi - y.lo};
        else
            *out = product(x, y);
    }
}

static void clamp(const bounds *b, const qat_node *node)
{
    double const min = (double)node->op->quant->clamp_min, max = (double)node->op->quant->clamp_max;
    for (int c = 0; c < qat_shape_channels(&node->shape); c++) {
        span const x = b->of[node->inputs[0]->index][c];
        b->of[node->index][c] = (span){fmin(fmax(x.lo, min), max), fmin(fmax(x.hi, min), max)};
    }
}

/**
 * For ops that pass codes on and for averages: the channel's own interval, or the union of all if
 * channels moved.
 */
static void pass(const bounds *b, const qat_node *node)
{
    const qat_node *x = node->inputs[0];
    if (qat_shape_channels(&x->shape) == qat_shape_channels(&node->shape))
        memcpy(b->of[node->index], b->of[x->index],
               (size_t)qat_shape_channels(&x->shape) * sizeof(span));
    else
        fill(b, node, hull(b, x));
}

static void join_inputs(const bounds *b, const qat_node *node)
{
    span all = hull(b, node->inputs[0]);
    for (int i = 1; i < node->n_data; i++)
        all = join(all, hull(b, node->inputs[i]));
    fill(b, node, all);
}

/* ------------------------------------------------------------------ fake quantization */

/** Join the range of the class so far with the range of this tensor. */
static void widen_range(const qat_node *node, span all)
{
    float *range = node->inputs[1]->value;
    qat_interval own = {(float)all.lo, (float)all.hi};
    if (range[RANGE_STEPS] > 0)
        own = qat_interval_join(own, (qat_interval){range[RANGE_MIN], range[RANGE_MAX]});
    own = qat_interval_widen(own);
    range[RANGE_MIN] = own.min;
    range[RANGE_MAX] = own.max;
    range[RANGE_STEPS] = 1;
}

static qat_status quantize(const bounds *b, const qat_node *node, qat_error *err)
{
    qat_qparams p;
    if (qat_fake_quant_is_observed(node)) {
        span const all = join(hull(b, node->inputs[0]), (span){0, 0});
        widen_range(node, all);
        fill(b, node, all);
        return QAT_OK;
    }
    qat_status const st = qat_node_qparams(node, &p, err);
    if (!st)
        fill(b, node, (span){(double)p.min, (double)p.max});
    return st;
}

/* ------------------------------------------------------------------ the graph */

static qat_status bound(const bounds *b, const qat_node *node, qat_error *err)
{
    if (node->op == &qat_op_fake_quant)
        return quantize(b, node, err);
    if (qat_has_role(node, QAT_ROLE_ACCUMULATE))
        accumulate(b, node);
    else if (qat_has_role(node, QAT_ROLE_BIAS))
        add_bias(b, node);
    else if (qat_has_role(node, QAT_ROLE_CLAMP))
        clamp(b, node);
    else if (is_known_binary(node))
        combine(b, node);
    else if (qat_has_role(node, QAT_ROLE_CONCAT))
        join_inputs(b, node);
    else if (qat_passes_codes(node))
        pass(b, node);
    else if (qat_has_role(node, QAT_ROLE_FIXED))
        fill(b, node,
             (span){(double)node->op->quant->fixed_min, (double)node->op->quant->fixed_max});
    else if (!qat_is_fake_quant_op(node->op) || qat_node_quantizes(node, false))
        /* the remaining ops make weights and biases */
        return qat_fail(err, QAT_ERR_UNSUPPORTED,
                        "node '%s' (%s): the worst case of its output is not known", node->name,
                        node->op->name);
    return QAT_OK;
}

/**
 * Compute the weights in the form in which they are used: quantized, folded. The values of the
 * inputs do not matter.
 */
static void compute_weights(qat_graph *eval)
{
    qat_run const run = {.mode = QAT_MODE_EVAL};
    for (int i = 0; i < qat_graph_nodes(eval); i++) {
        qat_node *node = qat_graph_node(eval, i);
        if (qat_node_is_input(node))
            memset(node->value, 0, qat_shape_count(&node->shape) * sizeof *node->value);
    }
    qat_graph_forward(eval, &run);
}

static bool allocate(bounds *b, const qat_graph *eval)
{
    int const nodes = qat_graph_nodes(eval);
    b->of = qat_arena_array(&b->arena, (size_t)nodes + 1, sizeof *b->of);
    for (int i = 0; b->of && i < nodes; i++) {
        const qat_node *node = qat_graph_node(eval, i);
        if (node->is_param)
            continue;
        b->of[i] =
            qat_arena_array(&b->arena, (size_t)qat_shape_channels(&node->shape), sizeof **b->of);
        if (!b->of[i])
            return false;
    }
    return b->of != NULL;
}

qat_status qat_worst_case_ranges(qat_graph *eval, qat_error *err)
{
    bounds b = {0};
    qat_status st = allocate(&b, eval) ? QAT_OK : qat_out_of_memory(err, "worst-case ranges");
    if (!st) {
        compute_weights(eval);
        qat_forget_ranges(eval);
    }
    for (int i = 0; i < qat_graph_nodes(eval) && !st; i++)
        if (qat_graph_node(eval, i)->op)
            st = bound(&b, qat_graph_node(eval, i), err);
    qat_arena_free(&b.arena);
    return st;
}
