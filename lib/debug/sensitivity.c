/** One layer quantized otherwise, and what it does to the answers. */
#include "debug/debug.h"

#include "checkpoint/restore.h"
#include "layer/layer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EVAL_BATCH = 100 };

/** The layer that a quantizer ends, by the name that recipes know it by; NULL: it is none. */
static const char *layer_of(const qat_node *quantizer)
{
    const qat_node *head = qat_layer_before(quantizer).head;
    if (!head || !head->op || qat_passes_codes(head) || head->op->quant->role == QAT_ROLE_QUANTIZER)
        return NULL;
    return qat_first_step(head) == head ? head->name : NULL;
}

static qat_status eval_graph(qat_graph **eval, const qat_restored *r, qat_error *err)
{
    qat_quant_options const quant = qat_quant_observed(&r->checkpoint->quant);
    return qat_create_eval_graph(eval, r->float_graph, &quant, err);
}

qat_status qat_debug_layer_names(const qat_restored *r, char (**names)[QAT_NAME_MAX], int *n,
                                 qat_error *err)
{
    qat_graph *eval = NULL;
    qat_status const st = eval_graph(&eval, r, err);
    *n = 0;
    *names = st ? NULL : calloc((size_t)qat_graph_nodes(eval) + 1, sizeof **names);
    for (int i = 0; *names && i < qat_graph_nodes(eval); i++) {
        const qat_node *node = qat_graph_node(eval, i);
        const char *name = qat_node_quantizes(node, false) ? layer_of(node) : NULL;
        if (name)
            snprintf((*names)[(*n)++], sizeof **names, "%s", name);
    }
    qat_graph_free(eval);
    return st || *names ? st : qat_out_of_memory(err, "debugger");
}

static qat_status evaluate(const qat_restored *r, const qat_deploy_options *o, bool integers,
                           const qat_dataset *data, int64_t samples, qat_tick *tick, void *context,
                           qat_accuracy *accuracy, qat_error *err)
{
    const qat_input_info *input = &r->checkpoint->input;
    int const batch = qat_batch_that_fits(r->float_graph, EVAL_BATCH);
    qat_graph *eval = NULL;
    qi_host *host = NULL;
    qat_status st = qat_restored_eval_graph(r, o, batch, &eval, err);
    if (!st && integers)
        st = debug_make_model(&host, r, o, eval, err);
    if (!st)
        st = integers ? qat_evaluate_model(host, input, data, samples, tick, context, accuracy, err)
                      : qat_evaluate_graph(eval, input, data, batch, samples, tick, context,
                                           accuracy, err);
    qi_host_close(host);
    qat_graph_free(eval);
    return st;
}

qat_status qat_debug_evaluate(const qat_restored *checkpoint, const qat_deploy_options *deploy,
                              const char *layer, int bits, const qat_dataset *data, int64_t samples,
                              qat_tick *tick, void *context, qat_accuracy *accuracy, qat_error *err)
{
    qat_restored changed = *checkpoint;
    qat_checkpoint *c = malloc(sizeof *c);
    qat_quant_options *q;
    if (!c)
        return qat_out_of_memory(err, "debugger");
    *c = *checkpoint->checkpoint;
    changed.checkpoint = c;
    q = &c->quant;
    qat_status st = QAT_OK;
    if (layer && q->n_layers == QAT_QUANT_LAYERS_MAX)
        st = qat_fail(err, QAT_ERR_UNSUPPORTED,
                      "the recipe has %d sections of single layers already, which is all there may "
                      "be",
                      q->n_layers);
    if (!st && layer) {
        qat_quant_layer *own = &q->layers[q->n_layers++];
        *own = qat_quant_layer_defaults(layer);
        own->weight_bits = bits;
        if (q->activation_bits != QAT_WIDE_BITS) /* which all layers have, or none */
            own->activation_bits = bits;
        own->is_float = bits ? own->is_float : 1;
    }
    if (!st)
        st = evaluate(&changed, deploy, bits > 0, data, samples, tick, context, accuracy, err);
    free(c);
    return st;
}
