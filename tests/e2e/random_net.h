/**
 * Random small networks for the property test: every op that can be exported, in random order, with
 * branches, and everything else that a network's bytes depend on (bits, layout, profile, folding,
 * delays, input range, pixels or values, parameter sizes). A function of (seed, index) alone.
 */
#ifndef QAT_TESTS_RANDOM_NET_H
#define QAT_TESTS_RANDOM_NET_H

#include "base/rng.h"
#include "qat/quant.h"

enum { NET_MAX_INPUTS = 2, NET_MAX_CHANNELS = 8 };

typedef struct random_net {
    uint64_t seed, index;
    qat_graph *graph; /* float, outputs marked */
    qat_node *loss;   /* scalar, not an output */
    qat_quant_options options;
    qat_profile profile;
    int n_inputs;
    qat_node *inputs[NET_MAX_INPUTS];
    qat_node *label; /* class numbers, or NULL where the loss has none */
    int classes;
    bool pixels; /* input 0 is bytes, brought to real values by mean and std */
    float mean[NET_MAX_CHANNELS], std[NET_MAX_CHANNELS];
    int calibration_steps, training_steps;
} random_net;

/** Build network `index` of a seed. graph: to be freed by random_net_free, also after failure. */
qat_status random_net_create(random_net *net, uint64_t seed, uint64_t index,
                             const qat_registry *registry, qat_error *err);
void random_net_free(random_net *net);

/** After initialisation: weights of uneven size, negative and tiny gammas, one-sided biases. */
void random_net_scale_params(const random_net *net, qat_graph *graph);

/**
 * Inputs of sample `sample` of a stream: a picture with its own contrast and brightness, or, for
 * adversarial ones, extremes and noise over the whole range and beyond it.
 * @param bytes  input 0's pixels where net->pixels, else unused; values: real values either way
 */
void random_net_sample(const random_net *net, uint64_t stream, int sample, bool adversarial,
                       int input, uint8_t *bytes, float *values);

#endif
