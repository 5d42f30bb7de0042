/**
 * Makes random small networks for the property test. They have every op that can be exported, in
 * random order, with branches. Everything else that a network's bytes depend on is random too:
 * bits, layout, profile, folding, delays, the input's range, pixels or real values, the sizes of
 * parameters. A network depends only on (seed, index).
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
    bool ordinary; /* values about 1: it has sigmoids, products or ReLU6 */
    bool pixels;   /* input 0 is bytes, brought to real values by mean and std */
    float mean[NET_MAX_CHANNELS], std[NET_MAX_CHANNELS];
    int calibration_steps, training_steps;
} random_net;

/** Build network `index` of a seed. Free graph with random_net_free, also after a failure. */
qat_status random_net_create(random_net *net, uint64_t seed, uint64_t index,
                             const qat_registry *registry, qat_error *err);
void random_net_free(random_net *net);
/**
 * Choose learned ranges, powers of two, and the bits and schemes of single layers. Some networks
 * keep the plain scheme. Creating a network does this.
 */
void random_net_choose_ranges(random_net *net);

/** Let it have 8-bit activations instead of 16-bit ones, which not every way of training has. */
void random_net_make_narrow(random_net *net);

/**
 * Plan the float graph for `batch` samples of a stream. Choose its parameters layer by layer, so
 * that each layer's output has a range of random size: ordinary, tiny, large or one-sided.
 */
qat_status random_net_set_params(random_net *net, int batch, uint64_t stream, qat_error *err);

/**
 * Inputs of sample `sample` of a stream: a picture with its own contrast and brightness, or, for
 * adversarial ones, extremes and noise over the whole range and beyond it.
 * @param bytes  input 0's pixels where net->pixels, else unused; values: real values either way
 */
void random_net_sample(const random_net *net, uint64_t stream, int sample, bool adversarial,
                       int input, uint8_t *bytes, float *values);

#endif
