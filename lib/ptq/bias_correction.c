/**
 * Bias correction by data (ptq.h). A layer is a bias after a convolution, depthwise convolution or
 * fully connected layer. The node has the same name in both graphs; its value is the output of the
 * layer before any activation.
 */
#include "layer/layer.h"
#include "qat/ptq.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct layer {
    const qat_node *real;
    qat_node *quantized;
} layer;

struct qat_bias_correction {
    qat_graph *folded, *eval;
    int n_layers;
    layer *layers;
    double *sums; /* by channel: real - quantized */
    size_t rows;  /* rows that were summed */
};

static bool follows_weights(const qat_node *node)
{
    return qat_has_role(node, QAT_ROLE_BIAS) && node->inputs[1]->is_param &&
           qat_has_role(node->inputs[0], QAT_ROLE_ACCUMULATE);
}

static bool allocate(qat_bias_correction *c)
{
    size_t const nodes = (size_t)qat_graph_nodes(c->eval);
    int widest = 1;
    c->layers = calloc(nodes + 1, sizeof *c->layers);
    for (size_t i = 0; c->layers && i < nodes; i++) {
        qat_node *node = qat_graph_node(c->eval, (int)i);
        const qat_node *real = qat_graph_find(c->folded, node->name);
        if (!follows_weights(node) || !qat_has_role(real, QAT_ROLE_BIAS))
            continue;
        c->layers[c->n_layers++] = (layer){real, node};
        widest =
            qat_shape_channels(&node->shape) > widest ? qat_shape_channels(&node->shape) : widest;
    }
    c->sums = calloc((size_t)widest, sizeof *c->sums);
    return c->layers && c->sums;
}

qat_status qat_bias_correction_create(qat_bias_correction **correction, qat_graph *folded,
                                      qat_graph *eval, qat_error *err)
{
    qat_bias_correction *c = calloc(1, sizeof *c);
    *correction = c;
    if (c) {
        c->folded = folded;
        c->eval = eval;
        if (allocate(c))
            return QAT_OK;
    }
    qat_bias_correction_free(c);
    *correction = NULL;
    return qat_out_of_memory(err, "bias correction");
}

void qat_bias_correction_free(qat_bias_correction *correction)
{
    if (!correction)
        return;
    free(correction->layers);
    free(correction->sums);
    free(correction);
}

int qat_bias_correction_layers(const qat_bias_correction *correction)
{
    return correction->n_layers;
}

void qat_bias_correction_measure(qat_bias_correction *correction, int index)
{
    const layer *l = &correction->layers[index];
    qat_run const run = {.mode = QAT_MODE_EVAL};
    qat_graph_forward(correction->folded, &run);
    qat_graph_forward(correction->eval, &run);
    size_t const channels = (size_t)qat_shape_channels(&l->quantized->shape);
    size_t const n = qat_shape_count(&l->quantized->shape);
    for (size_t i = 0; i < n; i++)
        correction->sums[i % channels] +=
            (double)l->real->value[i] - (double)l->quantized->value[i];
    correction->rows += n / channels;
}

double qat_bias_correction_apply(qat_bias_correction *correction, int index)
{
    const layer *l = &correction->layers[index];
    float *bias = l->quantized->inputs[1]->value;
    int const channels = qat_shape_channels(&l->quantized->shape);
    double largest = 0;
    for (int c = 0; c < channels && correction->rows; c++) {
        double const change = correction->sums[c] / (double)correction->rows;
        bias[c] = (float)((double)bias[c] + change);
        largest = fmax(largest, fabs(change));
    }
    memset(correction->sums, 0, (size_t)channels * sizeof *correction->sums);
    correction->rows = 0;
    return largest;
}
