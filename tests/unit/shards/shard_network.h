/** What the tests of shards train: a small network, with and without shards. */
#ifndef TESTS_SHARD_NETWORK_H
#define TESTS_SHARD_NETWORK_H

#include "autograd/shards/shards.h"
#include "qat/quant.h"
#include "qat/train.h"

#include <check.h>

enum { BATCH = 13, STEPS = 3, MOST_SHARDS = 8 };

enum loss { ENTROPY, TWO, OWN, DECAY, KEPT };

/** How a network is trained. */
struct setting {
    enum loss loss;
    bool quantized, split; /* split: batch norm of each shard */
    qat_quant_options quant;
    const char *name;
};

/** Settings; those below OF_BATCH have the whole batch's batch norm. */
enum { TWO_PASS = 3, ONE_PASS, LSQ, OF_BATCH, SETTINGS = 9 };

void set_settings(struct setting settings[SETTINGS]);

/** A fixture: the registry of the networks, with the ops of ENTROPY .. KEPT. */
extern qat_registry *registry;
void open_registry(void);
void close_registry(void);

/** Everything that adds up over a batch: batch norm, weights, biases, a loss. */
qat_graph *build(enum loss loss);
qat_graph *training_graph(const struct setting *how);
/** Samples [begin, end) of step `step`. */
void feed(qat_graph *g, int step, qat_samples samples);
qat_optimizer *optimizer_of(qat_graph *g);

/** What some steps leave: the losses, then all parameters, each with its gradient of the last step.
 */
struct outcome {
    double loss[STEPS];
    float *values;
    size_t n;
};

void keep(struct outcome *o, const qat_graph *g);
/** STEPS steps in shards. */
void shard_steps(struct outcome *o, const struct setting *how, int shards, const qat_ranks *ranks);
/** The largest difference, relative to the largest value. */
double difference(const struct outcome *a, const struct outcome *b);

#endif
