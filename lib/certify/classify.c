/**
 * Finds which tensors have the same scale and zero point. Pools and reshapes pass the codes of
 * their input on. A concatenation shares one range with all inputs whose range was observed under
 * the same settings (docs/arithmetic.md, section 15). So do the copies of a node in several steps,
 * and a state and what it becomes.
 */
#include "certify/certify.h"

#include <string.h>

static bool hands_on(const cert *c, int i)
{
    return c->nodes[i].kind == CERT_PASS || c->nodes[i].kind == CERT_POOL;
}

/** Mark the graph inputs that have codes: labels, which only losses read, have none. */
static void find_feeding(cert *c)
{
    for (int i = c->count - 1; i >= 0; i--) {
        const qat_node *node = qat_graph_node(c->graph, i);
        c->nodes[i].feeds |= c->nodes[i].is_output;
        if (c->nodes[i].kind == CERT_NONE || (hands_on(c, i) && !c->nodes[i].feeds))
            continue;
        for (int k = 0; k < node->n_data; k++)
            c->nodes[node->inputs[k]->index].feeds = true;
    }
}

static bool reads_codes(const cert *c, const qat_node *node)
{
    bool any = node->n_data == 0;
    for (int k = 0; k < node->n_data; k++)
        any |= cert_info(c, node->inputs[k])->range != CERT_UNQUANTIZED;
    return any;
}

static cert_range range_of(const cert *c, const qat_node *node)
{
    const cert_node *info = cert_info(c, node);
    bool const input = qat_node_is_input(node);
    bool const affine = info->kind == CERT_ACCUMULATE || qat_node_is_op(node, "bias") ||
                        qat_node_is_op(node, "batch_norm");
    bool const computed = info->kind != CERT_NONE && (affine || reads_codes(c, node));
    if (input ? !info->feeds : !computed)
        return CERT_UNQUANTIZED;
    if (info->settings.is_float || strcmp(info->settings.activations, "none") == 0)
        return CERT_FLOAT;
    return input || info->kind == CERT_FIXED ? CERT_GIVEN : CERT_OBSERVED;
}

int cert_root(const cert *c, int node)
{
    while (c->nodes[node].parent != node)
        node = c->nodes[node].parent;
    return node;
}

/** The first node of a class is its root. */
static void join(cert *c, int a, int b)
{
    int const ra = cert_root(c, a), rb = cert_root(c, b);
    c->nodes[ra > rb ? ra : rb].parent = ra > rb ? rb : ra;
}

bool cert_same_codes(const cert_settings *a, const cert_settings *b)
{
    return a->activation_bits == b->activation_bits && a->power_of_two == b->power_of_two &&
           a->is_float == b->is_float && strcmp(a->activations, b->activations) == 0;
}

static void join_tensors(cert *c, const qat_node *x, const qat_node *y)
{
    const cert_node *a = cert_info(c, x), *b = cert_info(c, y);
    if (a->range == CERT_OBSERVED && b->range == CERT_OBSERVED &&
        cert_same_codes(&c->nodes[a->origin].settings, &c->nodes[b->origin].settings))
        join(c, a->origin, b->origin);
}

void cert_classify(cert *c)
{
    find_feeding(c);
    for (int i = 0; i < c->count; i++) {
        const qat_node *node = qat_graph_node(c->graph, i);
        cert_node *info = &c->nodes[i];
        info->origin = info->parent = i;
        info->range = range_of(c, node);
        if (hands_on(c, i)) {
            info->origin = cert_info(c, node->inputs[0])->origin;
            info->range = cert_info(c, node->inputs[0])->range;
        }
        join_tensors(c, node, cert_first_step(c, node));
        for (int k = 0; info->kind == CERT_CONCAT && k < node->n_data; k++)
            join_tensors(c, node, node->inputs[k]);
        if (qat_node_is_op(node, "carry"))
            join_tensors(c, node->inputs[0], node->inputs[1]);
    }
    cert_classify_inputs(c);
}
