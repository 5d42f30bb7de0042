/**
 * Chooses the parameters of a random network. With plain random numbers most tensors would be
 * constant: a bias would be much larger than the layer's other values, or a sigmoid would see only
 * zeros. So the layers are set in the order of the graph. Before each one, the graph runs forward
 * and shows which values arrive there.
 */
#include "random/random_net.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STREAM_PARAMS = 1234, STREAM_SCALE, STREAM_TINY };

struct setting {
    const qat_graph *graph;
    qat_rng *rng;
    float scale; /* of the network's values */
};

static float uniform(qat_rng *rng, float lo, float hi)
{
    return lo + (hi - lo) * (float)qat_rng_uniform(rng);
}

static const char *const sigmoids[] = {"logistic", "tanh", "softmax", NULL};
static const char *const cutting[] = {"relu", "relu6", NULL};

static bool is_one_of(const qat_node *node, const char *const *ops)
{
    for (int k = 0; ops[k]; k++)
        if (qat_node_is_op(node, ops[k]))
            return true;
    return false;
}

/** Does one of these ops read a node, directly or through ops that keep a tensor's size? */
static bool leads_to(const qat_graph *graph, const qat_node *node, const char *const *ops)
{
    static const char *const between[] = {"bias",    "batch_norm", "relu",    "relu6", "max_pool2d",
                                          "reshape", "flatten",    "dropout", NULL};
    for (int i = node->index + 1; i < qat_graph_nodes(graph); i++) {
        const qat_node *reader = qat_graph_node(graph, i);
        if (reader->n_data < 1 || reader->inputs[0] != node)
            continue;
        if (is_one_of(reader, ops) || (is_one_of(reader, between) && leads_to(graph, reader, ops)))
            return true;
    }
    return false;
}

struct moments {
    float mean, deviation;
};

static struct moments moments_of(const qat_node *node)
{
    size_t const n = qat_shape_count(&node->shape);
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        sum += (double)node->value[i];
        squares += (double)node->value[i] * (double)node->value[i];
    }
    double const mean = sum / (double)n, variance = squares / (double)n - mean * mean;
    return (struct moments){(float)mean, variance > 0 ? (float)sqrt(variance) : 0.0f};
}

/** What this network's values are like: its input's size, or tiny, or large; about 1 where an op
 *  needs that. */
static float net_scale(const random_net *net)
{
    static const float scales[] = {1, 1, 1, 0.1f, 10, 3e-4f};
    qat_rng rng = qat_rng_at(net->seed, STREAM_SCALE, net->index);
    float const choice = scales[qat_rng_below(&rng, 6)];
    float const size = fmaxf(fabsf(net->options.input_min), fabsf(net->options.input_max));
    return net->ordinary ? 1.0f : choice * size;
}

/**
 * How wide a layer's output should be. Concatenated layers share a range, so the layers of one
 * network get similar sizes.
 */
static float target_of(const struct setting *s, const qat_node *node)
{
    return (leads_to(s->graph, node, sigmoids) ? 1.5f : s->scale) * uniform(s->rng, 0.6f, 1.6f);
}

/** Mostly there is no shift. Sometimes a shift makes nearly all outputs positive, or negative. */
static float side_of(const struct setting *s, const qat_node *node)
{
    uint32_t const choice = qat_rng_below(s->rng, 8);
    if (choice == 0)
        return 2.0f;
    return choice == 1 && !leads_to(s->graph, node, cutting) ? -2.0f : 0.0f;
}

static void set_weights(const struct setting *s, const qat_node *node)
{
    qat_node *weights = node->inputs[node->n_data];
    struct moments const m = moments_of(node);
    float factor = m.deviation > 0 ? target_of(s, node) / m.deviation : 1.0f;
    if (m.mean < 0 && leads_to(s->graph, node, cutting)) /* or a ReLU might see nothing */
        factor = -factor;
    for (size_t i = 0; i < qat_shape_count(&weights->shape); i++)
        weights->value[i] *= factor;
}

static void set_bias(const struct setting *s, const qat_node *node)
{
    qat_node *bias = node->inputs[node->n_data];
    struct moments const m = moments_of(node->inputs[0]);
    float const side = side_of(s, node);
    for (size_t i = 0; i < qat_shape_count(&bias->shape); i++)
        bias->value[i] = m.deviation * (side + uniform(s->rng, -0.5f, 0.5f)) - m.mean;
}

/** Some channels' gammas are negative. */
static void set_batch_norm(const struct setting *s, const qat_node *node)
{
    qat_node *gamma = node->inputs[node->n_data], *beta = node->inputs[node->n_data + 1];
    float const spread = moments_of(node).deviation;
    float const target = target_of(s, node), side = side_of(s, node);
    for (size_t i = 0; i < qat_shape_count(&gamma->shape); i++) {
        float const sign = qat_rng_below(s->rng, 6) ? 1.0f : -1.0f;
        gamma->value[i] =
            sign * uniform(s->rng, 0.5f, 1.5f) * (spread > 0 ? target / spread : 1.0f);
        beta->value[i] = target * (side + uniform(s->rng, -0.5f, 0.5f));
    }
}

typedef void set_fn(const struct setting *s, const qat_node *node);

static set_fn *setter_of(const qat_node *node)
{
    if (qat_node_is_op(node, "conv2d") || qat_node_is_op(node, "depthwise_conv2d") ||
        qat_node_is_op(node, "fully_connected"))
        return set_weights;
    return qat_node_is_op(node, "bias")         ? set_bias
           : qat_node_is_op(node, "batch_norm") ? set_batch_norm
                                                : NULL;
}

/**
 * As weight decay leaves them: now and then a channel's weights are nearly 0, at scales around
 * those that float32 has.
 */
static void make_tiny(qat_rng *rng, const qat_node *node)
{
    qat_node *weights = node->inputs[node->n_data];
    size_t const n = qat_shape_count(&weights->shape);
    bool const channels_last = qat_node_is_op(node, "depthwise_conv2d");
    size_t const channels =
        (size_t)weights->shape.dims[channels_last ? weights->shape.rank - 1 : 0];
    size_t const channel = qat_rng_below(rng, (uint32_t)channels);
    float const factor = powf(10, -25 - (float)qat_rng_below(rng, 18));
    for (size_t i = 0; channels > 1 && i < n; i++)
        if ((channels_last ? i % channels : i / (n / channels)) == channel)
            weights->value[i] *= factor;
}

/** Fill the float graph's inputs with samples of a stream. */
static qat_status fill_inputs(const random_net *net, int batch, uint64_t stream, qat_error *err)
{
    for (int i = 0; i < net->n_inputs; i++) {
        qat_node *x = net->inputs[i];
        size_t const n = qat_shape_count(&x->shape) / (size_t)batch;
        uint8_t *bytes = malloc(n);
        if (!bytes)
            return qat_out_of_memory(err, NULL);
        for (int s = 0; s < batch; s++)
            random_net_sample(net, stream, s, false, i, bytes, x->value + (size_t)s * n);
        free(bytes);
    }
    if (net->label)
        memset(net->label->value, 0, (size_t)batch * sizeof *net->label->value);
    return QAT_OK;
}

qat_status random_net_set_params(random_net *net, int batch, uint64_t stream, qat_error *err)
{
    qat_rng rng = qat_rng_at(net->seed, STREAM_PARAMS, net->index);
    qat_rng tiny = qat_rng_at(net->seed, STREAM_TINY, net->index);
    bool const is_tiny =
        net->options.activation_bits != QAT_WIDE_BITS && qat_rng_below(&tiny, 10) == 0;
    qat_graph *graph = net->graph;
    struct setting const s = {graph, &rng, net_scale(net)};
    qat_status st = qat_graph_plan(graph, batch, QAT_PLAN_KEEP, err);
    if (!st)
        st = qat_graph_set_batch(graph, batch, err);
    if (!st)
        st = fill_inputs(net, batch, stream, err);
    if (st)
        return st;
    qat_graph_init_params(graph, qat_hash(net->seed, net->index));
    for (int i = 0; i < qat_graph_nodes(graph); i++) {
        set_fn *set = setter_of(qat_graph_node(graph, i));
        if (!set)
            continue;
        qat_graph_forward(graph, &(qat_run){.mode = QAT_MODE_TRAIN});
        set(&s, qat_graph_node(graph, i));
        if (is_tiny && set == set_weights && qat_rng_below(&tiny, 2))
            make_tiny(&tiny, qat_graph_node(graph, i));
    }
    return QAT_OK;
}
