/**
 * Changes the bits of quantizers in a graph that exists. The attribute final_bits keeps those of
 * the layer, to which a schedule goes down.
 */
#include "fakequant/bits.h"
#include "fakequant/ops.h"
#include "fakequant/quantizer_op.h"

#include <math.h>
#include <string.h>

int qat_least_bits(const qat_bits_stage *stages, int n, int64_t step)
{
    for (int i = 0; i < n; i++)
        if (step < stages[i].until)
            return stages[i].bits;
    return 0;
}

/** NULL: this op has no such attribute, so its bits do not change. */
static double *final_bits_of(qat_node *node)
{
    const qat_attr_def *defs = node->op->attrs;
    for (int i = 0; defs && defs[i].name; i++)
        if (strcmp(defs[i].name, "final_bits") == 0)
            return &node->attrs[i];
    return NULL;
}

/** A given scale is that of a fixed range, which stays: its codes are finer or coarser. */
static void move_given(qat_node *node, int from, int to)
{
    qat_layout const layout = (qat_layout)node->attrs[FQ_LAYOUT];
    int32_t old_lo, lo, hi;
    qat_code_range(layout, from, false, &old_lo, &hi);
    qat_code_range(layout, to, false, &lo, &hi);
    node->attrs[FQ_SCALE] = ldexp(node->attrs[FQ_SCALE], from - to);
    node->attrs[FQ_ZERO_POINT] = lo + ldexp(node->attrs[FQ_ZERO_POINT] - old_lo, to - from);
}

static void rescale_learned(const qat_node *node, const qat_grid *from, const qat_grid *to)
{
    const qat_quantizer *q = qat_node_quantizer(node);
    int const n = qz_learned_values(node);
    for (int c = 0; n > 0 && c < qat_quantizer_channels(node); c++) {
        qat_statistics const seen = qz_seen_in_range(node, c);
        float *learned = node->inputs[QZ_LEARNED]->value + (size_t)c * (size_t)n;
        if (q->rescale && qz_has_range(node, c))
            q->rescale(from, to, &seen, learned);
        if (q->limit)
            q->limit(to, &seen, learned);
    }
}

/** The parameters of a quantizer whose bits change; of a shared range only once. */
static void rescale_params(const qat_node *node, const qat_grid *from)
{
    qat_grid const to = qat_grid_of(node);
    if (qz_is_weights(node) || node->attrs[QZ_COMMITS] != 0)
        rescale_learned(node, from, &to);
    qz_freeze_forget(node);
}

static void set_bits(qat_node *node, int least, bool rescale)
{
    bool const has_params = qat_is_quantizer_op(node->op);
    double *last = final_bits_of(node);
    if (!last)
        return;
    int const now = (int)node->attrs[FQ_BITS], own = *last > 0 ? (int)*last : now;
    int const bits = own > least ? own : least;
    if (bits == now)
        return;
    qat_grid const from = has_params ? qat_grid_of(node) : (qat_grid){0};
    *last = own;
    node->attrs[FQ_BITS] = bits;
    if (node->op == &qat_op_fake_quant && (int)node->attrs[FQ_KIND] == FQ_GIVEN)
        move_given(node, now, bits);
    if (has_params && rescale)
        rescale_params(node, &from);
}

void qat_set_least_bits(qat_graph *graph, int weight_bits, int activation_bits, bool rescale)
{
    for (int i = 0; i < qat_graph_nodes(graph); i++) {
        qat_node *node = qat_graph_node(graph, i);
        bool const weights = qat_node_quantizes(node, true);
        if (weights || qat_node_quantizes(node, false))
            set_bits(node, weights ? weight_bits : activation_bits, rescale);
    }
}
