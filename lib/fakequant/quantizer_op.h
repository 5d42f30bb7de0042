/**
 * Private to the ops made by QAT_QUANTIZER_OP (quantizer.c): what a node keeps in its scratch and
 * its parameters, and what is known about the range of a channel. An activation has one channel.
 */
#ifndef QAT_FAKEQUANT_QUANTIZER_OP_H
#define QAT_FAKEQUANT_QUANTIZER_OP_H

#include "autograd/loops/tiles.h"
#include "fakequant/quantizer.h"

/** The state of a channel in this step. Pieces, which have doubles, stand behind the channels. */
typedef struct qz_channel {
    _Alignas(double) qat_qparams p;
    qat_statistics seen;
    float learned[QAT_QUANTIZER_LEARNED_MAX];
} qz_channel;

/** One tile of an activation, or one channel of weights. */
typedef struct qz_piece {
    double kept[QAT_OBSERVER_KEPT_MAX];
    qat_range_sums sums;
} qz_piece;

typedef struct qz_state {
    bool active, learning;
    double dampening;                    /* lambda in this step */
    double batch[QAT_OBSERVER_KEPT_MAX]; /* activations: of a training step */
} qz_state;

static inline qz_state *qz_state_of(const qat_node *node)
{
    return node->scratch;
}

static inline qz_channel *qz_channels_of(const qat_node *node)
{
    return (qz_channel *)(qz_state_of(node) + 1);
}

static inline qz_piece *qz_pieces_of(const qat_node *node)
{
    return (qz_piece *)(qz_channels_of(node) + qat_quantizer_channels(node));
}

static inline bool qz_is_weights(const qat_node *node)
{
    return qat_node_quantizer(node)->weights;
}

static inline const qat_observer *qz_observer_of(const qat_node *node)
{
    const qat_observer *own = qat_node_quantizer(node)->observer;
    return own ? own : &qat_observer_min_max;
}

static inline int qz_count_pieces(const qat_node *node)
{
    return qz_is_weights(node) ? qat_quantizer_channels(node)
                               : qat_tiles_of(qat_shape_count(&node->shape), QAT_TILE_VALUES);
}

static inline float *qz_range_of(const qat_node *node, int channel)
{
    return node->inputs[QZ_RANGE]->value + (size_t)channel * QZ_RANGE_VALUES;
}

static inline bool qz_was_observed(const qat_node *node)
{
    return qz_range_of(node, 0)[QZ_STEPS] > 0;
}

/** Has it observed a value other than 0, so that there is a range to learn? */
static inline bool qz_has_range(const qat_node *node, int channel)
{
    const float *range = qz_range_of(node, channel);
    return range[QZ_STEPS] > 0 && range[QZ_MIN] < range[QZ_MAX];
}

/**
 * How far the step is from the delay to `dampened`, along half a cosine: 0 to 1. Only after the
 * delay.
 */
double qz_half_cosine(const qat_node *node, const qat_run *run);

/** How many values a channel of this node learns. */
int qz_learned_values(const qat_node *node);
/** Are they learned in this run, not set by what is observed? */
bool qz_learns(const qat_node *node, const qat_run *run);

/* ------------------------------------------------------------------ frozen weights */

/**
 * The parameter "frozen" of weights that may be frozen: the code of each, as QAT_FROZEN_ZERO says.
 * NULL: none may be.
 */
qat_node *qz_frozen_of(const qat_node *node);
/** Its parameters, from defs[n] on; returns n and their number. */
int qz_freeze_params(const qat_node *node, qat_param_def *defs, int n);
/** Set the values of frozen weights among n from `at` on, which have the parameters p. */
void qz_freeze_values(const qat_node *node, const qat_qparams *p, size_t at, size_t n);
/** Add what frozen weights give to the gradient of the scale, and clear their own gradients. */
void qz_freeze_gradient(const qat_node *node, const qat_qparams *p, size_t at, size_t n,
                        qat_range_sums *sums);
/** After a training step: follow the codes of a channel, and freeze those that oscillate. */
void qz_freeze_update(const qat_node *node, const qat_run *run);

/** The bits have changed: all weights are free again, and what was followed is forgotten. */
void qz_freeze_forget(const qat_node *node);

/* ------------------------------------------------------------------ what a channel's range is */

/** [min, max] widened to hold 0. */
qat_statistics qz_widened(qat_statistics s);
/** The statistics from the parameter "range", or from the current weights. */
qat_statistics qz_seen_in_range(const qat_node *node, int channel);
qat_statistics qz_seen_in_weights(const qat_node *node, int channel);
/**
 * Parameters from these statistics. learned: from the optimizer, or NULL to start from the
 * statistics.
 */
qz_channel qz_channel_from(const qat_node *node, qat_statistics seen, const float *learned);
/** Parameters from the node's parameters, which must have been written. */
qz_channel qz_committed(const qat_node *node, int channel);
/** For learned weights, from the node's parameters; otherwise from the current weights. */
qz_channel qz_weight_channel(const qat_node *node, int channel, bool learned);

#endif
