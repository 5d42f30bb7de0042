/**
 * Initial values of parameters. Each parameter has its own generator, keyed by the seed and its
 * name, and draws its values in order. So the same name and shape get the same values in any graph.
 */
#include "autograd/graph/core.h"
#include "base/rng.h"

#include <math.h>
#include <string.h>

/**
 * A standard normal number, drawn again if it is more than two deviations from 0 (Box and Muller).
 */
static double cut_normal(qat_rng *rng)
{
    double const two_pi = 6.283185307179586476925;
    for (;;) {
        double const u = 1.0 - qat_rng_uniform(rng); /* (0, 1] */
        double const v = qat_rng_uniform(rng);
        double const z = sqrt(-2.0 * log(u)) * cos(two_pi * v);
        if (fabs(z) <= 2.0)
            return z;
    }
}

void qat_core_init_values(const qat_param_def *def, const char *name, uint64_t seed,
                          qat_real *values, size_t count)
{
    qat_rng rng = qat_rng_at(seed, qat_hash_name(name), 0);
    if (def->init == QAT_INIT_HE) {
        double const deviation = sqrt(2.0 / def->fan_in);
        for (size_t i = 0; i < count; i++)
            values[i] = (qat_real)(deviation * cut_normal(&rng));
    } else if (def->init == QAT_INIT_GLOROT) {
        double const limit = sqrt(6.0 / ((double)def->fan_in + def->fan_out));
        for (size_t i = 0; i < count; i++)
            values[i] = (qat_real)(limit * (2.0 * qat_rng_uniform(&rng) - 1.0));
    } else {
        for (size_t i = 0; i < count; i++)
            values[i] = (qat_real)def->scale;
    }
}

void qat_graph_init_params(qat_graph *graph, uint64_t seed)
{
    for (int i = 0; i < graph->count; i++) {
        qat_node *node = &graph->nodes[i]->node;
        if (node->is_param)
            qat_core_init_values(&node->init, node->name, seed, node->value,
                                 qat_shape_count(&node->shape));
    }
}

int qat_graph_copy_params(qat_graph *dst, const qat_graph *src)
{
    int found = 0;
    for (int i = 0; i < dst->count; i++) {
        qat_node *to = &dst->nodes[i]->node;
        const qat_node *from = to->is_param ? qat_graph_find(src, to->name) : NULL;
        if (!from || !from->is_param || !qat_shape_equal(&from->shape, &to->shape))
            continue;
        memmove(to->value, from->value, qat_shape_count(&to->shape) * sizeof *to->value);
        found++;
    }
    return found;
}
