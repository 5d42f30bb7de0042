/**
 * Inputs of fewer bits (docs/arithmetic.md, section 15). A tensor whose readers all want at most so
 * many bits has so many. Where some want more, a layer with input_bits reads the tensor quantized
 * again, "<layer>/in/q"; layers that read the same tensor with the same settings share it.
 *
 * What the layer at node i reads has the number count + i beside the nodes, with a range of its
 * own.
 */
#include "certify/certify.h"

#include <string.h>

/** Beside numbers of bits. */
enum { UNREAD = 0, MANY = 1 << 8 };

/** What `reader` wants of its input k; most: what is wanted of every later node. */
static int wanted_by(const cert *c, const qat_node *reader, int k, const int *most)
{
    const cert_node *info = cert_info(c, reader), *from = cert_info(c, reader->inputs[k]);
    if (info->kind == CERT_NONE || (info->layer >= 0 && info->layer == from->layer))
        return UNREAD;
    if (qat_node_is_op(reader, "carry"))
        return MANY;
    if (info->kind == CERT_PASS || info->kind == CERT_POOL || info->kind == CERT_CONCAT)
        return most[reader->index];
    return info->kind == CERT_ACCUMULATE && info->settings.input_bits ? info->settings.input_bits
                                                                      : MANY;
}

/** The most that any reader wants of each node. Readers come later, so all of a node's are known.
 */
static void find_most_wanted(const cert *c, int *most)
{
    for (int i = c->count - 1; i >= 0; i--) {
        const qat_node *reader = qat_graph_node(c->graph, i);
        if (c->nodes[i].is_output)
            most[i] = MANY;
        for (int k = 0; k < reader->n_data; k++) {
            int *of = &most[reader->inputs[k]->index];
            int const bits = wanted_by(c, reader, k, most);
            *of = bits > *of ? bits : *of;
        }
    }
}

/** The node that a tensor of the file is named after. */
static const qat_node *written_by(const cert *c, const qat_node *node)
{
    int const layer = cert_info(c, node)->layer;
    return layer < 0 ? node : c->layers[layer].last;
}

qat_status cert_narrow(cert *c)
{
    int *most = qat_arena_array(&c->arena, (size_t)c->count + 1, sizeof *most);
    if (!most)
        return qat_out_of_memory(c->err, "certificate");
    find_most_wanted(c, most);
    for (int i = 0; i < c->count; i++) { /* copies in later steps have the bits of the first */
        int *first = &most[cert_first_step(c, qat_graph_node(c->graph, i))->index];
        *first = most[i] > *first ? most[i] : *first;
    }
    for (int i = 0; i < c->count; i++) {
        const qat_node *node = qat_graph_node(c->graph, i);
        int const bits = most[cert_first_step(c, written_by(c, node))->index];
        int *own = &c->nodes[i].settings.activation_bits;
        if (bits != UNREAD && bits < *own && !node->is_param)
            *own = bits;
    }
    return QAT_OK;
}

/** Does the layer read a tensor of more bits than it wants? */
static bool reads_narrow(const cert *c, const qat_node *head)
{
    const cert_node *info = cert_info(c, head);
    if (info->kind != CERT_ACCUMULATE || !info->settings.input_bits || info->settings.is_float)
        return false;
    const cert_node *from = cert_info(c, head->inputs[0]);
    return (from->range == CERT_GIVEN || from->range == CERT_OBSERVED) &&
           c->nodes[from->origin].settings.activation_bits > info->settings.input_bits;
}

const qat_node *cert_first_reader(const cert *c, const qat_node *head)
{
    for (int i = 0; i < head->index; i++) {
        const qat_node *other = qat_graph_node(c->graph, i);
        if (cert_info(c, other)->kind == CERT_ACCUMULATE && other->inputs[0] == head->inputs[0] &&
            reads_narrow(c, other) &&
            cert_same_codes(&c->nodes[c->count + i].settings,
                            &c->nodes[c->count + head->index].settings))
            return other;
    }
    return head;
}

void cert_classify_inputs(cert *c)
{
    for (int i = 0; i < c->count; i++) {
        cert_node *input = &c->nodes[c->count + i];
        const qat_node *head = qat_graph_node(c->graph, i);
        *input = (cert_node){.layer = -1, .settings = c->nodes[i].settings, .tensor = -1};
        input->settings.activation_bits = input->settings.input_bits;
        input->origin = c->count + i;
        input->parent = c->count + cert_first_step(c, qat_graph_node(c->graph, i))->index;
        if (!reads_narrow(c, head))
            continue;
        input->range = CERT_OBSERVED;
        const qat_node *first = cert_first_reader(c, head);
        if (first != head)
            input->parent = c->count + first->index;
    }
}

int cert_input_of(const cert *c, const qat_node *head)
{
    return reads_narrow(c, head) ? cert_root(c, c->count + head->index) : -1;
}
