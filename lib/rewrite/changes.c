/**
 * The steps at which the quantization of a training graph changes: delays end, ranges start to be
 * learned, stages of inq freeze weights, bits fall, batch norm starts to use its averages.
 */
#include "fakequant/quantizer.h"
#include "fakequant/schemes.h"

#include <string.h>

static bool learns(const qat_node *node)
{
    const qat_quantizer *q = qat_node_quantizer(node);
    return q && (q->learned_symmetric || q->learned_asymmetric);
}

int qat_quant_changes(const qat_graph *training, int64_t changes[QAT_QUANT_CHANGES])
{
    const qat_quant_options *o = qat_graph_quant_options(training);
    bool learned = false, in_stages = false;
    int n = 0;
    if (!o)
        return 0;
    for (int i = 0; i < qat_graph_nodes(training); i++) {
        const qat_node *node = qat_graph_node(training, i);
        learned |= learns(node);
        in_stages |= node->op == &qat_op_inq_weights;
    }
    changes[n++] = o->weight_delay;
    changes[n++] = o->activation_delay;
    changes[n++] = o->bn_freeze_delay;
    if (learned)
        changes[n++] = o->learn_delay;
    if (in_stages) {
        memcpy(changes + n, o->inq_stages, sizeof o->inq_stages);
        n += QAT_INQ_STAGES;
    }
    for (int i = 0; i < o->n_weight_stages; i++)
        changes[n++] = o->weight_stages[i].until;
    for (int i = 0; i < o->n_activation_stages; i++)
        changes[n++] = o->activation_stages[i].until;
    return n;
}
