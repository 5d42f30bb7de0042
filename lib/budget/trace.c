/**
 * The trace of the loss's Hessian for the weights of each layer, by Hutchinson's method: for random
 * vectors v of +-1, the mean of v' H v is the trace. H v comes from two gradients:
 *
 *     H E v = (gradient at w + E v - gradient at w - E v) / 2,    E: a small step for each layer
 *
 * One vector serves all layers: what the others add to a layer's number has mean 0. The network is
 * the float one, and batch norm uses its averages.
 */
#include "budget/meter.h"

#include "base/rng.h"
#include "fakequant/ops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PROBE_SEED = 1 };
static const double relative_step = 1e-2; /* of the root mean square of a layer's weights */

/** The weights of one item, in the float network. */
typedef struct probed {
    qat_node *weights;
    size_t count;
    float *kept;
    int8_t *v;
    double step, products[2]; /* v . gradient, at both sides */
} probed;

typedef struct probing {
    int n, side;
    probed *of; /* by item; weights NULL: not probed */
} probing;

static qat_node *weights_of(const budget_meter *m, const budget_tensor *t)
{
    const qat_node *from = t->quantizer->inputs[0];
    return qat_graph_find(m->float_graph, (from->is_param ? from : from->inputs[FOLDW_W])->name);
}

static qat_status begin(probed *p, qat_node *weights, int probe, qat_error *err)
{
    double squares = 0;
    size_t const n = qat_shape_count(&weights->shape);
    qat_rng rng = qat_rng_at(PROBE_SEED, qat_hash_name(weights->name), (uint64_t)probe);
    *p = (probed){.count = n, .kept = malloc(n * sizeof *p->kept), .v = malloc(n * sizeof *p->v)};
    if (!p->kept || !p->v)
        return qat_out_of_memory(err, "budget");
    p->weights = weights;
    memcpy(p->kept, weights->value, n * sizeof *p->kept);
    for (size_t i = 0; i < n; i++) {
        squares += (double)p->kept[i] * (double)p->kept[i];
        p->v[i] = qat_rng_next(&rng) >> 63 ? 1 : -1;
    }
    p->step = relative_step * sqrt(squares / (double)n);
    return QAT_OK;
}

/** side 0: w + E v; 1: w - E v; 2: w again. */
static void place(probing *p, int side)
{
    p->side = side;
    for (int i = 0; i < p->n; i++) {
        const probed *q = &p->of[i];
        for (size_t k = 0; q->weights && k < q->count; k++)
            q->weights->value[k] =
                side == 2 ? q->kept[k]
                          : (float)((double)q->kept[k] + (side ? -1 : 1) * q->step * q->v[k]);
    }
}

static qat_status add_products(void *context, qat_graph *graph, double share, qat_error *err)
{
    probing *p = context;
    qat_run const run = {.mode = QAT_MODE_EVAL};
    (void)err;
    qat_graph_forward(graph, &run);
    qat_graph_backward(graph, budget_loss_of(graph), &run);
    for (int i = 0; i < p->n; i++) {
        probed *q = &p->of[i];
        double sum = 0;
        for (size_t k = 0; q->weights && k < q->count; k++)
            sum += (double)q->weights->grad[k] * q->v[k];
        q->products[p->side] += share * sum;
    }
    return QAT_OK;
}

static void free_probing(probing *p)
{
    for (int i = 0; p->of && i < p->n; i++) {
        free(p->of[i].kept);
        free(p->of[i].v);
    }
    free(p->of);
}

qat_status budget_probe(budget_meter *m, const budget_network *net, int probe, double *traces,
                        qat_error *err)
{
    probing p = {.n = net->n_items};
    p.of = calloc((size_t)p.n + 1, sizeof *p.of);
    qat_status st = p.of ? QAT_OK : qat_out_of_memory(err, "budget");
    for (int i = 0; !st && i < p.n; i++)
        if (net->tensors[i].weights && net->items[i].n > 1)
            st = begin(&p.of[i], weights_of(m, &net->tensors[i]), probe, err);
    for (int side = 0; !st && side < 2; side++) {
        place(&p, side);
        st = budget_meter_pass(m, m->float_graph, add_products, &p, err);
    }
    if (p.of)
        place(&p, 2);
    for (int i = 0; !st && i < p.n; i++) {
        const probed *q = &p.of[i];
        traces[i] = q->step > 0 ? (q->products[0] - q->products[1]) / (2 * q->step) : 0;
    }
    free_probing(&p);
    return st;
}
