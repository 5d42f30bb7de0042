/**
 * Finds which float nodes are one op of the file.
 *
 *     conv2d, depthwise_conv2d,                   [bias] [batch_norm] [clamp]
 *     transpose_conv2d, fully_connected
 *     add, sub, mul                               [clamp]
 *     bias, batch_norm (of its own)               [batch_norm] [clamp], as a 1x1 depthwise
 *                                                 convolution with weights of one
 *     clamp: relu, relu6 ... (of its own)         nothing
 *
 * A node joins a layer only if it is the sole reader of the node before it, and that node is not an
 * output of the network.
 */
#include "certify/certify.h"

#include <math.h>
#include <string.h>

bool cert_is_activation(const qat_node *node, double *min, double *max)
{
    static const struct {
        const char *op;
        double min, max;
    } own[] = {{"relu", 0, INFINITY}, {"relu1", 0, 1}, {"relu6", 0, 6}, {"hard_tanh", -1, 1}};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (qat_node_is_op(node, own[i].op)) {
            *min = own[i].min;
            *max = own[i].max;
            return true;
        }
    const qat_quant *quant = node && node->op ? node->op->quant : NULL;
    if (!quant || quant->role != QAT_ROLE_CLAMP)
        return false;
    *min = (double)quant->clamp_min;
    *max = (double)quant->clamp_max;
    return true;
}

static bool is_activation(const qat_node *node)
{
    double min, max;
    return cert_is_activation(node, &min, &max);
}

/** The only reader of `node`; NULL: there are several, or none. */
static const qat_node *next_of(const cert *c, const qat_node *node)
{
    const cert_node *info = cert_info(c, node);
    const qat_node *reader = info->is_output ? NULL : info->sole_reader;
    return reader && reader->inputs[0] == node ? reader : NULL;
}

static const qat_node *take(const cert *c, cert_layer *l, const qat_node **part,
                            const qat_node *node)
{
    *part = l->last = node;
    return next_of(c, node);
}

static cert_layer layer_from(const cert *c, const qat_node *node)
{
    cert_layer l = {.first = node, .last = node};
    cert_kind const kind = cert_info(c, node)->kind;
    const qat_node *next = node;
    bool affine = kind == CERT_FUSED;
    if (is_activation(node)) {
        l.activation = node;
        return l;
    }
    if (kind != CERT_FUSED) {
        next = take(c, &l, &l.head, node);
        affine = kind == CERT_ACCUMULATE;
    }
    if (affine && qat_node_is_op(next, "bias"))
        next = take(c, &l, &l.bias, next);
    if (affine && qat_node_is_op(next, "batch_norm"))
        next = take(c, &l, &l.bn, next);
    if (is_activation(next))
        take(c, &l, &l.activation, next);
    return l;
}

qat_status cert_fuse(cert *c)
{
    for (int i = 0; i < c->count; i++) {
        cert_kind const kind = c->nodes[i].kind;
        if ((kind != CERT_ACCUMULATE && kind != CERT_BINARY && kind != CERT_FUSED) ||
            c->nodes[i].layer >= 0)
            continue;
        cert_layer const l = layer_from(c, qat_graph_node(c->graph, i));
        const qat_node *parts[] = {l.head, l.bias, l.bn, l.activation};
        for (int k = 0; k < 4; k++)
            if (parts[k])
                c->nodes[parts[k]->index].layer = c->n_layers;
        c->layers[c->n_layers++] = l;
    }
    return QAT_OK;
}
