/**
 * Private to lib/budget: a network in simulation, whose loss is measured on a fixed set of training
 * samples while single tensors have other bits.
 */
#ifndef QAT_BUDGET_METER_H
#define QAT_BUDGET_METER_H

#include "budget/network.h"
#include "qat/task.h"

typedef struct budget_override budget_override;

typedef struct budget_meter {
    const qat_recipe *recipe;
    const qat_budget_options *options;
    qat_plugins *plugins;
    qat_registry *registry;
    qat_dataset *data;
    qat_loader *loader;
    qat_input_info input;
    qat_graph *float_graph; /* with the weights of train.init; planned for gradients if asked */
    qat_graph *simulated;   /* quantized, planned QAT_PLAN_KEEP */
    qat_graph *wanted;      /* not planned: quantized as the recipe says */
    int64_t samples;
    int batch;
    float (*ranges)[9][2];       /* by item: of an activation, by bits */
    budget_override **overrides; /* by node of simulated; NULL: none */
} budget_meter;

/** Build the network and its graphs. Weights are not read, and nothing is planned. */
qat_status budget_meter_open(budget_meter *m, const qat_recipe *recipe,
                             const qat_budget_options *options, qat_error *err);
/** Read the weights, plan the graphs, observe the ranges of activations. */
qat_status budget_meter_prepare(budget_meter *m, budget_network *net, qat_error *err);
void budget_meter_close(budget_meter *m);

/** The SHA-256 of all parameters of the float network. */
qat_status budget_meter_digest(const budget_meter *m, uint8_t digest[32], qat_error *err);

/** Give an item other bits; then its first choice again. */
qat_status budget_meter_set(budget_meter *m, const budget_network *net, int item, int bits,
                            qat_error *err);
/** The mean loss of the simulated network over the samples. */
qat_status budget_meter_loss(budget_meter *m, double *loss, qat_error *err);

/**
 * The sum of squares of what quantizing an item's weights to these bits changes in the weights as
 * they are trained (before a batch norm scales them).
 */
qat_status budget_meter_error(budget_meter *m, const budget_network *net, int item, int bits,
                              double *squares, qat_error *err);

/** Call fn for each batch, with the share of the samples that it is. Sets the graph's inputs. */
typedef qat_status budget_batch_fn(void *context, qat_graph *graph, double share, qat_error *err);
qat_status budget_meter_pass(budget_meter *m, qat_graph *graph, budget_batch_fn *fn, void *context,
                             qat_error *err);
/** The loss of the network's own output. */
qat_node *budget_loss_of(qat_graph *graph);

/* trace.c */

/**
 * One random probe of the trace of the loss's Hessian (Hutchinson): for each item of weights a
 * number whose mean over probes is the trace for these weights. traces[n_items]; others are 0.
 */
qat_status budget_probe(budget_meter *m, const budget_network *net, int probe, double *traces,
                        qat_error *err);

#endif
