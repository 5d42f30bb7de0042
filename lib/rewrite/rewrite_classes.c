/**
 * Finds the tensors that share quantization parameters, called a class (Jacob et al. A.3;
 * docs/arithmetic.md, section 15).
 *
 * Pools, reshapes and dropout pass the codes of their input on. The origin of such a tensor is the
 * tensor from which the codes come. A concatenation needs no arithmetic only if all its members
 * have equal parameters. So it joins their origins and itself into one class with one observer:
 *
 *     conv a --> max_pool --.                       class {a, concat, outer, b}: one range
 *     conv b ----.           concat --.
 *     softmax s --|----------'         outer        s has a fixed range: an extra fake_quant on
 *                 '-------------------'             its way into the concatenation joins instead
 *

 * In a network of several steps, the copies of a node are one class, and so are a state and what
 * it becomes: a code means the same in every step.
 *
 * The union-find works on origins, so nested concatenations need no special case.
 */
#include "rewrite/rewrite.h"

int rw_root(const rw_analysis *a, int node)
{
    while (a->nodes[node].parent != node)
        node = a->nodes[node].parent;
    return node;
}

/** The lower index becomes the root, so classes do not depend on the order of unions. */
static void unite(rw_analysis *a, int x, int y)
{
    int const rx = rw_root(a, x), ry = rw_root(a, y);
    int const low = rx < ry ? rx : ry, high = rx < ry ? ry : rx;
    a->nodes[high].parent = low;
}

/**
 * Does quantized computation read a graph input, directly or through pools and reshapes? Labels and
 * targets, which only losses read, are not quantized.
 */
static void find_quantized_inputs(rw_analysis *a)
{
    for (int i = a->count - 1; i >= 0; i--) {
        const qat_node *node = qat_graph_node(a->graph, i);
        a->nodes[i].feeds |= a->nodes[i].is_output;
        if (!node->op || !node->op->quant || (qat_passes_codes(node) && !a->nodes[i].feeds))
            continue;
        for (int k = 0; k < node->n_data; k++)
            a->nodes[node->inputs[k]->index].feeds = true;
    }
}

/**
 * Is everything that a node reads unquantized? The sum of two losses, for example, is not a tensor
 * of the network.
 */
static bool reads_no_codes(const rw_analysis *a, const qat_node *node)
{
    for (int k = 0; k < node->n_data; k++)
        if (a->nodes[node->inputs[k]->index].range != RW_UNQUANTIZED)
            return false;
    return node->n_data > 0;
}

static bool is_made_of_params(const qat_node *node)
{
    return qat_has_role(node, QAT_ROLE_ACCUMULATE) || qat_has_role(node, QAT_ROLE_BIAS) ||
           qat_has_role(node, QAT_ROLE_NORM);
}

static rw_range range_of(const rw_analysis *a, const qat_node *node)
{
    bool const feeds = a->nodes[node->index].feeds;
    bool const computed =
        node->op && node->op->quant && (is_made_of_params(node) || !reads_no_codes(a, node));
    if (qat_node_is_input(node) ? !feeds : !computed)
        return RW_UNQUANTIZED;
    if (a->settings[node->index].is_float || rw_float_activation(&a->settings[node->index]))
        return RW_FLOAT;
    if (qat_node_is_input(node))
        return RW_FIXED;
    return qat_has_role(node, QAT_ROLE_FIXED) ? RW_FIXED : RW_OBSERVED;
}

/** Let the tensors of both nodes have one range if theirs are observed under the same settings. */
static void tie(rw_analysis *a, const qat_node *x, const qat_node *y)
{
    rw_info const *i = &a->nodes[x->index], *k = &a->nodes[y->index];
    if (i->range == RW_OBSERVED && k->range == RW_OBSERVED &&
        rw_same_codes(&a->settings[i->origin], &a->settings[k->origin]))
        unite(a, i->origin, k->origin);
}

void rw_classes(rw_analysis *a)
{
    find_quantized_inputs(a);
    for (int i = 0; i < a->count; i++) {
        const qat_node *node = qat_graph_node(a->graph, i);
        rw_info *info = &a->nodes[i];
        info->parent = info->origin = i;
        info->range = range_of(a, node);
        if (qat_passes_codes(node)) {
            info->origin = a->nodes[node->inputs[0]->index].origin;
            info->range = a->nodes[node->inputs[0]->index].range;
        }
        tie(a, node, qat_first_step(node));
        if (qat_is_carry(node))
            tie(a, node->inputs[0], node->inputs[1]);
        for (int k = 0; qat_has_role(node, QAT_ROLE_CONCAT) && k < node->n_data; k++)
            tie(a, node, node->inputs[k]);
    }
}
