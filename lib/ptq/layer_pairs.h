/**
 * Pairs of layers whose channels can be rescaled without changing the network. Channel c of the
 * first layer's output must reach only one other layer, and only through ops that commute with a
 * scale:
 *
 *     relu(s x) = s relu(x),  s > 0          max and average pools, reshapes
 *
 *     conv [-> bias] [-> batch_norm] -> relu -> max_pool2d -> conv      w1 [out, kh, kw, in]
 *     conv -> bias -> relu -> depthwise_conv2d                          w2 [1, kh, kw, out]
 *     conv -> bias -> relu -> flatten -> fully_connected     w2 [units, h w out], channel i % out
 */
#ifndef QAT_PTQ_LAYER_PAIRS_H
#define QAT_PTQ_LAYER_PAIRS_H

#include "layer/layer.h"

typedef struct qat_layer_pair {
    const qat_node *first, *second; /* conv, depthwise, FC */
    const qat_node *bias, *bn;      /* of first; NULL: none */
    bool rectified;                 /* there is a ReLU between them */
    bool
        behind_bound; /* there is a clamp like ReLU6 between them, so the pair cannot be rescaled */
    int channels;
} qat_layer_pair;

/** All pairs in the graph's order; free() them. Layers that share parameters are left out. */
qat_status qat_layer_pairs(const qat_graph *graph, qat_layer_pair **pairs, int *count,
                           qat_error *err);

#endif
