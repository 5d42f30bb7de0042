/**
 * Fused layers: the nodes of a graph that become one integer op. This folder is the only place
 * (but for the certificate, which shares nothing) that knows in which order they stand.
 *
 *     head -> bias -> norm -> clamp         conv2d -> bias -> batch_norm -> relu
 *     head -> clamp                         add -> relu6
 *     bias -> norm -> clamp                 of its own: the rewrites give it a head
 *     clamp                                 of its own: a requantization
 *
 * Every part but the first may be missing. A second clamp in a row is a layer of its own. What an
 * op is to a layer is data of its quant entry (qat/quant.h): its role, and the bounds of a clamp.
 *
 * In a float graph, qat_layering_find goes forward from each node that can begin a layer. A node
 * joins the layer before it only if it is the only reader, and if the value is not a graph output.
 * Losses count as readers, so that training and eval graphs have the same layers. In a rewritten
 * graph each layer ends in a fake_quant, and qat_layer_before goes back from there.
 */
#ifndef QAT_LAYER_LAYER_H
#define QAT_LAYER_LAYER_H

#include "base/arena.h"
#include "qat/quant.h"

/** NULL: the layer has no such part. */
typedef struct qat_layer {
    qat_node *head; /* conv, depthwise, FC, add ...; NULL: the layer begins with what follows it */
    qat_node *bias, *norm, *clamp;
    qat_node *first, *last;
    float min, max; /* the bounds of its clamp; infinite without one */
} qat_layer;

/** The layers of a float graph. Its arrays live in the arena. */
typedef struct qat_layering {
    const qat_graph *graph;
    int count;
    qat_layer *layers; /* in the order of their first nodes */
    int *of;           /* by node: the index of its layer, or -1 */
    qat_node **reader; /* by node: the only node that reads it, in one place, if the value is not a
                          graph output; otherwise NULL */
} qat_layering;

/** Find the layers. Returns false if out of memory. */
bool qat_layering_find(qat_layering *layering, const qat_graph *graph, qat_arena *arena);

/** The node that alone reads `node`, as its first input; or NULL. */
qat_node *qat_layering_next(const qat_layering *layering, const qat_node *node);

/**
 * The layer whose value `end` (a fake_quant) reads. Its head is the first node on the way back that
 * is no clamp, norm or bias in this order: an op, an input, or a node that has codes. Several
 * clamps in a row, with no fake_quant between them, are one; `clamp` is the one nearest to `end`.
 */
qat_layer qat_layer_before(const qat_node *end);

/** Does the node have an op with a quant entry of this role? NULL has none. */
bool qat_has_role(const qat_node *node, qat_quant_role role);
/** Does it pass the codes of its first input on: pools, reshapes, dropout? */
bool qat_passes_codes(const qat_node *node);
/** Is it part of a layer that another op may begin: bias, norm, clamp? */
bool qat_is_fused(const qat_node *node);

/* ------------------------------------------------------------------ steps */

/**
 * A network of several steps has a copy NAME@t of each node NAME that it runs in step t too. This
 * is NAME, whose weights and range the copy shares; a node that is no copy is its own.
 */
const qat_node *qat_first_step(const qat_node *node);
/** The node of the first step that cuts its frame out of the input of a network of several steps.
 */
#define QAT_FRAME_NAME "input/frame"
/** Does it pass codes on, which its second input, a state, becomes for the next step? */
bool qat_is_carry(const qat_node *node);
/** The carry whose value a state has in the next step; the state itself, if it never changes. */
const qat_node *qat_carry_of(const qat_node *state);

/* ------------------------------------------------------------------ weights */

/** The weights of an accumulating head. */
static inline qat_node *qat_weights_of(const qat_node *head)
{
    return head->inputs[head->n_data];
}

/** The dimension of a head's weights that counts output channels. */
int qat_channel_axis(const qat_node *head);
/** The output channel to which weight i of a head belongs. */
int qat_output_channel(const qat_node *head, size_t i);
/** The channel, of `channels` before any flattening, that weight i of a head multiplies. */
int qat_input_channel(const qat_node *head, size_t i, int channels);

#endif
