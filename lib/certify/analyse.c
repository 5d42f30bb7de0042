/**
 * Finds out about each node of the float graph: its kind, its readers, and whether it is in the
 * file.
 */
#include "certify/certify.h"

#include <string.h>

static const struct {
    const char *op;
    cert_kind kind;
} kinds[] = {
    {"conv2d", CERT_ACCUMULATE},
    {"depthwise_conv2d", CERT_ACCUMULATE},
    {"transpose_conv2d", CERT_ACCUMULATE},
    {"fully_connected", CERT_ACCUMULATE},
    {"bias", CERT_FUSED},
    {"batch_norm", CERT_FUSED},
    {"add", CERT_BINARY},
    {"sub", CERT_BINARY},
    {"mul", CERT_BINARY},
    {"concat", CERT_CONCAT},
    {"average_pool2d", CERT_POOL},
    {"global_average_pool", CERT_POOL},
    {"max_pool2d", CERT_PASS},
    {"resize_nearest", CERT_PASS},
    {"resize_bilinear", CERT_POOL},
    {"reshape", CERT_PASS},
    {"flatten", CERT_PASS},
    {"dropout", CERT_PASS},
    {"strided_slice", CERT_PASS},
    {"carry", CERT_PASS},
    {"state", CERT_STATE},
    {"softmax", CERT_FIXED},
};

/** A plugin's op says itself what it is. */
static cert_kind kind_of_entry(const qat_quant *quant)
{
    static const cert_kind of_role[] = {[QAT_ROLE_ACCUMULATE] = CERT_ACCUMULATE,
                                        [QAT_ROLE_BIAS] = CERT_FUSED,
                                        [QAT_ROLE_NORM] = CERT_FUSED,
                                        [QAT_ROLE_CLAMP] = CERT_FUSED,
                                        [QAT_ROLE_BINARY] = CERT_BINARY,
                                        [QAT_ROLE_CONCAT] = CERT_CONCAT,
                                        [QAT_ROLE_POOL] = CERT_POOL,
                                        [QAT_ROLE_PASS] = CERT_PASS,
                                        [QAT_ROLE_FIXED] = CERT_FIXED,
                                        [QAT_ROLE_TABLE] = CERT_TABLE,
                                        [QAT_ROLE_CUSTOM] = CERT_CUSTOM,
                                        [QAT_ROLE_QUANTIZER] = CERT_NONE,
                                        [QAT_ROLE_STATE] = CERT_STATE};
    return quant ? of_role[quant->role] : CERT_NONE;
}

static cert_kind kind_of(const qat_node *node)
{
    double min, max;
    if (!node->op)
        return CERT_NONE;
    if (cert_is_activation(node, &min, &max))
        return CERT_FUSED;
    const cert_curve *curve = cert_curve_of(node);
    if (curve)
        return curve->min < curve->max ? CERT_FIXED : CERT_TABLE;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].op, node->op->name) == 0)
            return kinds[i].kind;
    return kind_of_entry(node->op->quant);
}

/** Losses are readers too, so that layers are cut as they were in training. */
static void note_readers(cert *c)
{
    for (int i = 0; i < c->count; i++) {
        const qat_node *node = qat_graph_node(c->graph, i);
        for (int k = 0; k < node->n_inputs; k++)
            if (qat_node_consumers(node->inputs[k]) == 1)
                c->nodes[node->inputs[k]->index].sole_reader = node;
    }
}

/** The file holds what leads to an output. */
static void note_copied(cert *c)
{
    for (int i = 0; i < qat_graph_outputs(c->graph); i++) {
        cert_node *out = &c->nodes[qat_graph_output_at(c->graph, i)->index];
        out->is_output = out->copied = true;
    }
    for (int i = c->count - 1; i >= 0; i--) {
        const qat_node *node = qat_graph_node(c->graph, i);
        for (int k = 0; c->nodes[i].copied && k < node->n_inputs; k++)
            c->nodes[node->inputs[k]->index].copied = true;
    }
}

qat_status cert_analyse(cert *c)
{
    size_t const n = (size_t)c->count + 1;
    c->nodes = qat_arena_array(&c->arena, 2 * n, sizeof *c->nodes);
    c->layers = qat_arena_array(&c->arena, n, sizeof *c->layers);
    if (!c->nodes || !c->layers)
        return qat_out_of_memory(c->err, "certificate");
    for (int i = 0; i < c->count; i++) {
        c->nodes[i] =
            (cert_node){.kind = kind_of(qat_graph_node(c->graph, i)), .layer = -1, .tensor = -1};
    }
    note_readers(c);
    note_copied(c);
    qat_status st = cert_fuse(c);
    if (!st)
        st = cert_settle(c);
    if (!st)
        cert_classify(c);
    return st;
}
