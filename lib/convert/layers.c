/**
 * Compares each layer of the integer graph with the float layer from which it was made.
 *
 *     S (q1 - Z) --> conv2d --> bias --> relu --> x         the eval graph, in float32
 *          q1 -----> conv2d, integers ----------> q         the exact evaluation
 *
 *     quanta = |clamp(x, range of q) - S (q - Z)| / S       at most the bound of its op
 *
 * After every fake_quant node, its value is replaced by the real values of the exact codes. So the
 * next layer starts with the same values as the integers, and errors do not accumulate. A bias is
 * treated alike: after the bias node, the value of each channel is moved by S1 S2 2^-f code - bias,
 * by which rounding moved the bias, but by no more than half a unit. So where S1 S2 is many quanta,
 * the bound need not hold the rounding of biases. A bias that is wrong by one shows
 * the other half unit. The exact evaluation runs the graph that freeze made, so it cannot notice a
 * multiplier, a clamp or a bias that was frozen wrongly; this comparison can.
 */
#include "base/parallel.h"
#include "convert/convert.h"
#include "integer/quant_ops.h"
#include "layer/layer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TILES = 8 };

struct layer {
    int tensor, node;
    const qat_node *bias_node; /* or NULL */
    const qat_qop *op;
    qat_qparams params;
    qat_layer_check check;
    qat_layer_check tiles[TILES]; /* the furthest value in every TILES-th sample of this batch */
};

struct qat_layers {
    const qat_qgraph *graph;
    qat_graph *eval;
    const qat_exact *exact;
    int n_layers, next, batch;
    int64_t samples; /* before this batch */
    struct layer *layers;
};

/* ------------------------------------------------------------------ creating */

const qat_node *qat_quantizer_of(const qat_node *node)
{
    while (!qat_node_quantizes(node, false) && qat_has_role(node, QAT_ROLE_PASS))
        node = node->inputs[0];
    return qat_node_quantizes(node, false) ? node : NULL;
}

/**
 * What the head's quant entry says; otherwise the bound of the op's row (1 without a row) and 2^-8
 * for float32's roundings.
 */
static double bound_of(const qat_qgraph *graph, const qat_qop *op, const qat_node *head)
{
    const qat_quant *quant = head && head->op ? head->op->quant : NULL;
    const qat_integer_op *row = qat_integer_op_named(op->op);
    if (quant && quant->max_quanta > 0.0)
        return quant->max_quanta;
    double const quanta = !row ? 1.0 : row->bound ? row->bound(graph, op) : row->quanta;
    return quanta + 1.0 / 256;
}

/** The tensor with this name that an op writes, and that op; or -1. */
static int find_written(const qat_qgraph *graph, const char *name, const qat_qop **op)
{
    for (int i = 0; i < graph->n_ops; i++)
        for (int j = 0; j < graph->ops[i].n_outputs; j++) {
            int const tensor = graph->ops[i].outputs[j];
            *op = &graph->ops[i];
            if (strcmp(graph->tensors[tensor].name, name) == 0)
                return tensor;
        }
    return -1;
}

static qat_status add_layer(qat_layers *l, int index, qat_error *err)
{
    const qat_qop *op = NULL;
    const qat_node *node = qat_graph_node(l->eval, index), *quantizer = qat_quantizer_of(node);
    int const tensor = quantizer ? find_written(l->graph, node->name, &op) : -1;
    if (tensor < 0)
        return QAT_OK;
    struct layer *layer = &l->layers[l->n_layers++];
    layer->tensor = tensor;
    layer->node = index;
    layer->op = op;
    qat_layer const fused = qat_layer_before(quantizer);
    bool const own = node == quantizer;
    layer->bias_node = own && qat_has_role(fused.head, QAT_ROLE_ACCUMULATE) ? fused.bias : NULL;
    layer->check.tensor = l->graph->tensors[tensor].name;
    layer->check.op = op->op;
    layer->check.bound = bound_of(l->graph, op, own ? fused.head : node);
    return qat_node_qparams(quantizer, &layer->params, err);
}

qat_status qat_layers_create(qat_layers **layers, const qat_qgraph *graph, qat_graph *eval,
                             qat_error *err)
{
    *layers = NULL;
    qat_layers *l = calloc(1, sizeof *l);
    if (l)
        l->layers = calloc((size_t)graph->n_tensors + 1, sizeof *l->layers);
    if (!l || !l->layers) {
        free(l);
        return qat_out_of_memory(err, "layers");
    }
    l->graph = graph;
    l->eval = eval;
    qat_status st = QAT_OK;
    for (int i = 0; !st && i < qat_graph_nodes(eval); i++)
        st = add_layer(l, i, err);
    if (st) {
        qat_layers_free(l);
        return st;
    }
    *layers = l;
    return QAT_OK;
}

void qat_layers_free(qat_layers *layers)
{
    if (!layers)
        return;
    free(layers->layers);
    free(layers);
}

int qat_layers_count(const qat_layers *layers)
{
    return layers->n_layers;
}

const qat_layer_check *qat_layers_at(const qat_layers *layers, int i)
{
    return &layers->layers[i].check;
}

void qat_layers_join(qat_layers *layers, int i, const qat_layer_check *other)
{
    qat_layer_check *check = &layers->layers[i].check;
    check->values += other->values;
    check->differing += other->differing;
    check->far += other->far;
    if (other->quanta <= check->quanta)
        return;
    check->quanta = other->quanta;
    check->sample = other->sample;
    check->value = other->value;
    check->real = other->real;
    check->code = other->code;
}

/* ------------------------------------------------------------------ comparing */

/** One layer and one batch. */
struct compare {
    const qat_layers *layers;
    struct layer *layer;
    const float *real; /* the values of the layer in float32 */
    const void *codes; /* the codes of the integers */
    float *restart;    /* what the next layer reads: set to the real values of the codes */
    size_t count;      /* values per sample */
};

static double distance(const qat_qparams *p, float real, int32_t code)
{
    double const x = fmin(fmax((double)real, (double)p->min), (double)p->max);
    return fabs(x / (double)p->scale - (double)(code - p->zero_point));
}

/** fmin and fmax drop a NaN, but qat_freeze has refused graphs with a NaN. */
static void compare_sample(const struct compare *c, int sample, qat_layer_check *furthest)
{
    const qat_qparams *p = &c->layer->params;
    const qat_qtensor *tensor = &c->layers->graph->tensors[c->layer->tensor];
    size_t const begin = (size_t)sample * c->count;
    for (size_t i = 0; i < c->count; i++) {
        int32_t const code = qat_load_code(tensor->type, c->codes, begin + i);
        float const real = c->real[begin + i];
        double const quanta = distance(p, real, code);
        int const apart = abs(qat_code(p, real) - code);
        c->restart[begin + i] = qat_real_of(p, code);
        furthest->values++;
        furthest->differing += apart > 0;
        furthest->far += apart > 1;
        if (quanta <= furthest->quanta)
            continue;
        furthest->quanta = quanta;
        furthest->sample = c->layers->samples + sample;
        furthest->value = i;
        furthest->real = real;
        furthest->code = code;
    }
}

static void compare_tile(void *context, int tile, int thread)
{
    const struct compare *c = context;
    qat_layer_check *furthest = &c->layer->tiles[tile];
    *furthest = c->layer->check;
    furthest->values = furthest->differing = furthest->far = 0;
    for (int sample = tile; sample < c->layers->batch; sample += TILES)
        compare_sample(c, sample, furthest);
}

/** Of equal distances take the first sample, whatever its tile. */
static void join_tiles(struct layer *layer)
{
    qat_layer_check *all = &layer->check;
    int64_t values = all->values, differing = all->differing, far = all->far;
    for (int i = 0; i < TILES; i++) {
        const qat_layer_check *tile = &layer->tiles[i];
        values += tile->values;
        differing += tile->differing;
        far += tile->far;
        if (tile->quanta > all->quanta ||
            (tile->quanta == all->quanta && tile->sample < all->sample))
            *all = *tile;
    }
    all->values = values;
    all->differing = differing;
    all->far = far;
}

/** S1 S2 of a channel, of an accumulator's last bit. */
static double bias_unit(const qat_qgraph *graph, const qat_qop *op, size_t channel)
{
    const qat_qtensor *x = &graph->tensors[op->inputs[0]], *w = &graph->tensors[op->inputs[1]];
    float const s2 = w->channel_scales ? w->channel_scales[channel] : w->scale;
    return ldexp((double)x->scale * (double)s2, -op->fraction);
}

/** Move the values by what rounding, and nothing else, did to the bias. */
static void round_bias(const qat_layers *l, const struct layer *layer, qat_node *node)
{
    const float *bias = node->inputs[node->n_data]->value;
    const qat_qtensor *codes = &l->graph->tensors[layer->op->inputs[QAT_IN_BIAS]];
    size_t const channels = (size_t)qat_shape_channels(&node->shape),
                 rows = qat_shape_count(&node->shape) / channels;
    for (size_t c = 0; c < channels; c++) {
        double const unit = bias_unit(l->graph, layer->op, c);
        double const code = (double)qi_value_at(codes->type, codes->data, c);
        double const moved = fmin(fmax(unit * code - (double)bias[c], -unit / 2), unit / 2);
        for (size_t i = 0; i < rows; i++)
            node->value[i * channels + c] = (float)((double)node->value[i * channels + c] + moved);
    }
}

static void visit(void *context, qat_node *node)
{
    qat_layers *l = context;
    if (qat_has_role(node, QAT_ROLE_BIAS))
        for (int i = 0; i < l->n_layers; i++)
            if (l->layers[i].bias_node == node)
                round_bias(l, &l->layers[i], node);
    while (l->next < l->n_layers && l->layers[l->next].node < node->index)
        l->next++;
    if (l->next == l->n_layers || l->layers[l->next].node != node->index)
        return;
    struct layer *layer = &l->layers[l->next];
    struct compare c = {
        .layers = l,
        .layer = layer,
        .real = qat_node_quantizes(node, false) ? node->inputs[0]->value : node->value,
        .codes = qat_exact_tensor(l->exact, layer->tensor),
        .restart = node->value,
        .count = qat_qtensor_count(&l->graph->tensors[layer->tensor]),
    };
    qat_parallel(TILES, compare_tile, &c);
    join_tiles(layer);
}

void qat_layers_batch(qat_layers *layers, const qat_exact *exact, int batch)
{
    layers->exact = exact;
    layers->batch = batch;
    layers->next = 0;
    qat_graph_forward_visit(layers->eval, &(qat_run){.mode = QAT_MODE_EVAL}, visit, layers);
    layers->samples += batch;
}
