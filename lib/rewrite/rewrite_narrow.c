/**
 * Inputs of fewer bits. A convolution or fully connected layer with input_bits reads a tensor of at
 * most so many bits. What else reads the tensor, say the bypass of a residual block, gets all bits:
 *
 *     a (8 bits) -+-> conv1, input_bits = 4         a -+-> fake_quant "conv1/in/q" -> conv1
 *                 '-> add                              '-> add
 *
 *     a (8 bits) ---> conv1, input_bits = 4         a has 4 bits itself
 *
 * Layers that read one tensor with equal settings read one node.
 */
#include "rewrite/rewrite.h"

#include <stdio.h>

/* ------------------------------------------------------------------ how many bits are read */

enum { NOBODY = 0, ALL_BITS = 1 << 8 }; /* beside numbers of bits */

static int larger(int a, int b)
{
    return a > b ? a : b;
}

/** How many bits a node wants of its data input k; `wanted` are those of the node's own readers. */
static int bits_read(const rw_analysis *a, const qat_node *node, int k, const int *wanted)
{
    const qat_layer *layer = rw_layer_of(a, node);
    if (!node->op || !node->op->quant || (layer && rw_layer_of(a, node->inputs[k]) == layer))
        return NOBODY; /* labels and logits of losses; or a value within a layer */
    if (qat_has_role(node, QAT_ROLE_CONCAT) || (qat_passes_codes(node) && !qat_is_carry(node)))
        return wanted[node->index];
    int const bits = a->settings[node->index].input_bits;
    return qat_has_role(node, QAT_ROLE_ACCUMULATE) && bits ? bits : ALL_BITS;
}

void rw_narrow_tensors(rw_analysis *a, int *wanted)
{
    for (int i = a->count - 1; i >= 0; i--) {
        const qat_node *node = qat_graph_node(a->graph, i);
        if (a->nodes[i].is_output)
            wanted[i] = ALL_BITS;
        for (int k = 0; k < node->n_data; k++) {
            int *of = &wanted[node->inputs[k]->index];
            *of = larger(*of, bits_read(a, node, k, wanted));
        }
    }
    for (int i = 0; i < a->count; i++) { /* a code means the same in every step */
        int *first = &wanted[qat_first_step(qat_graph_node(a->graph, i))->index];
        *first = larger(*first, wanted[i]);
    }
    for (int i = 0; i < a->count; i++) {
        const qat_node *node = qat_graph_node(a->graph, i);
        const qat_layer *layer = rw_layer_of(a, node);
        int const bits = wanted[qat_first_step(layer ? layer->last : node)->index];
        if (!node->is_param && bits != NOBODY && bits < a->settings[i].activation_bits)
            a->settings[i].activation_bits = bits;
    }
}

/* ------------------------------------------------------------------ quantizing them again */

int rw_input_class(const rw_analysis *a, const qat_node *reader)
{
    return a->count + qat_first_step(reader)->index;
}

void rw_input_settings(rw_analysis *a)
{
    for (int i = 0; i < a->count; i++) {
        a->settings[a->count + i] = a->settings[i];
        a->settings[a->count + i].activation_bits = a->settings[i].input_bits;
    }
}

/** Is the tensor quantized with more bits than the reader wants? */
static bool is_wider(const rw_analysis *a, const qat_node *tensor, const rw_settings *reader)
{
    const rw_info *info = &a->nodes[tensor->index];
    return reader->input_bits && !reader->is_float &&
           (info->range == RW_OBSERVED || info->range == RW_FIXED) &&
           a->settings[info->origin].activation_bits > reader->input_bits;
}

qat_node *rw_narrowed(rw_maker *m, const qat_node *reader, int k)
{
    char name[RW_NAME_MAX];
    const qat_node *tensor = reader->inputs[k];
    rw_analysis *a = m->a;
    int const root = rw_input_class(a, reader);
    qat_node *wide = rw_input(m, tensor);
    if (m->floating || !qat_has_role(reader, QAT_ROLE_ACCUMULATE) ||
        !is_wider(a, tensor, &a->settings[reader->index]))
        return wide;
    for (int i = 0; i < m->n_members; i++)
        if (m->members[i].tensor == tensor->index && m->members[i].root >= a->count &&
            rw_same_codes(&a->settings[m->members[i].root], &a->settings[root]))
            return m->members[i].image;
    rw_name(name, reader->name, "/in/q");
    qat_node *image = rw_make_observed(m, root, name, wide);
    m->members[m->n_members++] = (rw_member){tensor->index, root, image};
    return image;
}
