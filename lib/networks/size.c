/** The size of a network in two numbers: parameters and multiply-adds. */
#include "qat/train.h"

#include <stdlib.h>

/* ------------------------------------------------------------------ float graphs */

static int64_t trainable_values(const qat_graph *graph)
{
    int64_t values = 0;
    for (int i = 0; i < qat_graph_nodes(graph); i++) {
        const qat_node *node = qat_graph_node(graph, i);
        if (node->is_param && node->trainable)
            values += (int64_t)qat_shape_count(&node->shape);
    }
    return values;
}

qat_status qat_network_size_of(const qat_graph *graph, qat_network_size *size, qat_error *err)
{
    qat_layer_cost *costs;
    int count;
    *size = (qat_network_size){0};
    qat_status const st = qat_network_costs(graph, QAT_LAYOUT_UINT8, &costs, &count, err);
    if (st)
        return st;
    *size = (qat_network_size){.parameters = costs[count - 1].parameters,
                               .training_parameters = trainable_values(graph),
                               .macs = costs[count - 1].macs};
    free(costs);
    return QAT_OK;
}

/** Fake quantization adds about as many values as a float graph has. */
int qat_batch_that_fits(const qat_graph *graph, int most)
{
    int64_t const budget = INT64_C(2) << 30;
    int64_t bytes = 1; /* bytes of one sample */
    for (int i = 0; i < qat_graph_nodes(graph); i++) {
        const qat_node *node = qat_graph_node(graph, i);
        int64_t values = node->is_param ? 0 : 2;
        for (int d = 1; d < node->shape.rank; d++)
            values *= node->shape.dims[d];
        bytes += values * (int64_t)sizeof(float);
    }
    int64_t const fits = budget / bytes;
    return fits < 1 ? 1 : fits < most ? (int)fits : most;
}

/* ------------------------------------------------------------------ integer graphs */

enum { DATA, WEIGHTS, BIAS };

static qi_products products_of(const qat_qop *op)
{
    const qi_op *row = qi_op_named(op->op);
    return row ? row->kernel->products : QI_PRODUCTS_NONE;
}

/** Like qi_node_multiply_adds. */
static int64_t multiply_adds(const qat_qgraph *g, const qat_qop *op)
{
    const qat_qtensor *t = g->tensors, *x = &t[op->inputs[DATA]];
    size_t weights = 0;
    if (qat_qop_accumulates(op))
        return qi_multiply_adds(products_of(op), x->dims, t[op->inputs[WEIGHTS]].dims,
                                t[op->outputs[0]].dims);
    for (int i = 0; i < op->n_inputs && products_of(op) == QI_PRODUCTS_RECURRENT; i++)
        if (t[op->inputs[i]].data && t[op->inputs[i]].type != QI_S32)
            weights += qat_qtensor_count(&t[op->inputs[i]]);
    return (int64_t)(weights * (qat_qtensor_count(x) / (size_t)x->dims[x->rank - 1]));
}

qat_status qat_training_fits(const qat_graph *graph, uint64_t memory, qat_error *err)
{
    qat_network_size size;
    qat_status const st = qat_network_size_of(graph, &size, err);
    if (st || !memory)
        return st;
    uint64_t const mib = (uint64_t)1 << 20, parameters = (uint64_t)size.training_parameters;
    uint64_t const most = memory / (2 * sizeof(float));
    if (parameters <= most)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_LIMIT,
                    "the network has %llu parameters; with their gradients they take %llu MiB of "
                    "memory, but %llu MiB are allowed (--max-memory)",
                    (unsigned long long)parameters,
                    (unsigned long long)((parameters * 2 * sizeof(float) - 1) / mib + 1),
                    (unsigned long long)((memory - 1) / mib + 1));
}

/** Is the constant a weight or a bias? A tensor that several ops share counts once. */
static bool is_parameter(const qat_qgraph *g, int tensor)
{
    for (int i = 0; i < g->n_ops; i++) {
        const qat_qop *op = &g->ops[i];
        bool const is_recurrent = products_of(op) == QI_PRODUCTS_RECURRENT; /* of all constants */
        for (int k = 0; k < op->n_inputs; k++)
            if (op->inputs[k] == tensor &&
                (is_recurrent || (qat_qop_accumulates(op) && (k == WEIGHTS || k == BIAS))))
                return true;
    }
    return false;
}

qat_network_size qat_qgraph_size_of(const qat_qgraph *g)
{
    qat_network_size size = {0};
    for (int i = 0; i < g->n_tensors; i++)
        if (g->tensors[i].data && is_parameter(g, i))
            size.parameters += (int64_t)qat_qtensor_count(&g->tensors[i]);
    for (int i = 0; i < g->n_ops; i++)
        size.macs += multiply_adds(g, &g->ops[i]);
    size.training_parameters = size.parameters;
    return size;
}
