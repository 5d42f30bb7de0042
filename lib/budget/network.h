/** Private to lib/budget: the layers of a network, and the tensors whose bits are chosen. */
#ifndef QAT_BUDGET_NETWORK_H
#define QAT_BUDGET_NETWORK_H

#include "budget/solve.h"
#include "qat/budget.h"

/** Losses as integers: in billionths. */
#define BUDGET_LOSS_UNIT 1e-9

/** One item of the problem: where it is in the simulated network. */
typedef struct budget_tensor {
    int layer;
    bool weights;
    bool kept;
    bool narrows;        /* ranges that are not min and max: learned, or on a grid */
    bool all_codes;      /* weights that use the lowest code of fewer than 8 bits */
    qat_node *quantizer; /* of weights; of an activation the first of its quantizers */
} budget_tensor;

typedef struct budget_network {
    int n_layers;
    qat_budget_layer *layers;
    qat_shape *shapes; /* by layer: of its weights */
    int n_items;
    budget_item *items;
    budget_tensor *tensors; /* by item */
    int n_nodes;
    int *item_of; /* by node of the simulated network: the item that a quantizer is of, or -1 */
} budget_network;

/**
 * Find the layers and items. Items come in the order of the network: weights, then the activation
 * that their layer makes. All losses are 0.
 * @param simulated  the training graph with observed ranges, of which items name the quantizers
 * @param wanted     the training graph with the recipe's own ranges, for what they are
 */
qat_status budget_network_find(budget_network *net, const qat_recipe *recipe,
                               const qat_graph *float_graph, qat_graph *simulated,
                               const qat_graph *wanted, qat_error *err);
void budget_network_free(budget_network *net);

/**
 * The bytes of weights in a .qm, packed: `bits` each, after `list` bytes that say what the codes
 * stand for (0: they stand for themselves); or, if this is less and at most three codes occur
 * (`few`), five in a byte after a list of these. Rows (by the first dimension) begin with a byte of
 * their own, and the whole begins at a multiple of 16. qm_pack (lib/convert) packs so, and takes
 * fewer bytes where a layer uses few of its codes.
 */
int64_t budget_packed_bytes(const qat_shape *weights, int bits, size_t list, bool few);

/** Write the chosen bits, and what follows from them, into the layers. */
void budget_network_choose(budget_network *net, const int *choice);

#endif
