/**
 * The layers of a .qm as a network of real numbers: with its own weights and biases, S (q - Z), but
 * without rounding and without the ends of its ranges. It is what a .qm can be compared with if
 * nothing else is known of it.
 *
 * A .qm does not tell a ReLU from a range that begins at 0, nor a ReLU6 from one that ends at 6:
 * both are taken for the activation. Ops that have no op of real numbers (tables, for example) are
 * inputs of the network, which take what the engine computed there.
 */
#ifndef QAT_DEBUG_REAL_GRAPH_H
#define QAT_DEBUG_REAL_GRAPH_H

#include "qat/graph.h"
#include "qat/infer.h"

typedef struct qat_real_graph {
    qat_graph *graph;   /* planned QAT_PLAN_KEEP, parameters set */
    qat_node **of;      /* by tensor of the model: its node, or NULL */
    float (*bounds)[2]; /* by tensor: those of its activation; infinite: none */
} qat_real_graph;

/** Free *r even after a failure. The model is only read. */
qat_status qat_real_graph_create(qat_real_graph *r, const qi_model *model,
                                 const qat_registry *registry, int max_batch, qat_error *err);
void qat_real_graph_free(qat_real_graph *r); /* a zeroed one is fine */

/** Does the tensor hold values of a network, by sample: codes with a batch of 1? */
bool qat_real_is_activation(const qi_tensor *t);
/** Number of values. */
size_t qat_real_count(const qi_tensor *t);
float qat_real_scale(const qi_tensor *t);
/** Does the op have weights: are its inputs x, w, bias, mult, shift? */
bool qat_real_accumulates(const qi_model *model, const qi_node *op);
/** Output channel of weight i, and the scale of a channel's weights. */
int qat_real_channel_of(const qi_node *op, const qi_tensor *w, size_t i);
float qat_real_weight_scale(const qi_model *model, const qi_tensor *w, int channel);
/** Output channels of an op with weights. */
int qat_real_channels(const qi_node *op, const qi_tensor *w);

#endif
