/**
 * Ranges that calibration estimated, against the values that the float network takes on the same
 * data. Inputs and fixed ranges (softmax, logistic, tanh) are quantized on the way, as calibration
 * does; all other tensors are real.
 *
 *     smallest <= range's ends <= largest           any estimator: it may cut, never widen
 *     equal                                         minmax
 *
 * both within 1/50 of the extent and two codes of the input: with inputs of -1..1 every pixel lies
 * on a tie, and goes up here where calibration's float32 may go down.
 */
#include "certify/certify.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const double SLACK = 0.02;

struct cert_extents {
    cert c;
    qat_certify_source source;
    qat_graph *graph;
    double *min, *max; /* by root of a class; min > max: nothing seen */
    bool *broken;      /* by root: a value was NaN or infinite */
};

qat_status cert_extents_create(cert_extents **extents, qat_graph *graph,
                               const qat_quant_options *quant, qat_error *err)
{
    size_t const n = (size_t)qat_graph_nodes(graph) + 1;
    cert_extents *e = calloc(1, sizeof *e);
    *extents = e;
    if (!e)
        return qat_out_of_memory(err, "certificate");
    e->graph = graph;
    e->source = (qat_certify_source){.graph = graph, .quant = *quant};
    e->c = (cert){.source = &e->source, .graph = graph, .count = (int)n - 1, .err = err};
    e->c.nodes = qat_arena_array(&e->c.arena, n, sizeof *e->c.nodes);
    e->c.layers = qat_arena_array(&e->c.arena, n, sizeof *e->c.layers);
    e->min = qat_arena_array(&e->c.arena, n, sizeof *e->min);
    e->max = qat_arena_array(&e->c.arena, n, sizeof *e->max);
    e->broken = qat_arena_array(&e->c.arena, n, sizeof *e->broken);
    if (!e->c.nodes || !e->c.layers || !e->min || !e->max || !e->broken)
        return qat_out_of_memory(err, "certificate");
    for (size_t i = 0; i < n; i++) {
        e->min[i] = INFINITY;
        e->max[i] = -INFINITY;
    }
    return cert_analyse(&e->c);
}

void cert_extents_free(cert_extents *extents)
{
    if (!extents)
        return;
    qat_arena_free(&extents->c.arena);
    free(extents);
}

/* ------------------------------------------------------------------ running */

/** Quantized by a fixed range. */
static void quantize(const cert_extents *e, qat_node *node)
{
    cert_grid g;
    if (cert_activation_grid(&e->c, node->index, &g) || g.empty)
        return;
    double const zero = floor(fmin(fmax(g.lo - g.lower / g.scale, g.lo), g.hi) + 0.5);
    for (size_t i = 0; i < qat_shape_count(&node->shape); i++) {
        double const q = floor((double)node->value[i] / g.scale + zero + 0.5);
        node->value[i] = (float)(g.scale * (fmin(fmax(q, g.lo), g.hi) - zero));
    }
}

static void observe(cert_extents *e, const qat_node *node)
{
    int const root = cert_root(&e->c, cert_info(&e->c, node)->origin);
    for (size_t i = 0; i < qat_shape_count(&node->shape); i++) {
        double const x = (double)node->value[i];
        e->broken[root] = e->broken[root] || !isfinite(x);
        e->min[root] = fmin(e->min[root], x);
        e->max[root] = fmax(e->max[root], x);
    }
}

static void visit(void *context, qat_node *node)
{
    cert_extents *e = context;
    const cert_node *info = cert_info(&e->c, node);
    if (!info->copied || info->kind == CERT_NONE || info->kind == CERT_PASS ||
        info->kind == CERT_POOL)
        return;
    if (info->range == CERT_GIVEN)
        quantize(e, node);
    else if (info->range == CERT_OBSERVED &&
             (info->layer < 0 || e->c.layers[info->layer].last == node))
        observe(e, node);
}

void cert_extents_batch(cert_extents *e)
{
    for (int i = 0; i < e->c.count; i++) {
        qat_node *node = qat_graph_node(e->graph, i);
        if (qat_node_is_input(node) && cert_info(&e->c, node)->range == CERT_GIVEN)
            quantize(e, node);
    }
    qat_graph_forward_visit(e->graph, &(qat_run){.mode = QAT_MODE_EVAL}, visit, e);
}

/* ------------------------------------------------------------------ comparing */

static qat_status check_range(const cert_extents *e, int root, const qat_graph *eval, bool exact,
                              qat_error *err)
{
    size_t count = 0;
    const qat_node *node = qat_graph_node(e->graph, root);
    const char *tensor = node->name;
    qat_certify_source source = e->source;
    cert c = e->c;
    source.values = qat_certify_graph_values;
    source.context = eval;
    c.source = &source;
    const float *range = cert_class_values(&c, node, "range", &count);
    double const min = fmin(e->min[root], 0), max = fmax(e->max[root], 0);
    double const codes = exp2(e->source.quant.activation_bits) - 1;
    double const slack = (SLACK + 2 / codes) * (max - min);
    if (e->broken[root])
        return qat_fail(err, QAT_ERR_MISMATCH,
                        "%s: the float network's values on the calibration data are not all finite",
                        tensor);
    if (!range || count < 2)
        return qat_fail(err, QAT_ERR_MISMATCH, "%s: the calibrated network holds no range of it",
                        tensor);
    double const low = (double)range[0], high = (double)range[1];
    bool const inside = low >= min - slack && high <= max + slack;
    if (inside && (!exact || (low <= min + slack && high >= max - slack)))
        return QAT_OK;
    return qat_fail(err, QAT_ERR_MISMATCH,
                    "%s: its calibrated range is %g..%g, the float network's values on the same "
                    "data go from %g to %g",
                    tensor, low, high, min, max);
}

qat_status cert_extents_check(const cert_extents *e, const qat_graph *eval, bool exact,
                              qat_error *err)
{
    qat_status st = QAT_OK;
    for (int i = 0; !st && i < e->c.count; i++)
        if (e->broken[i] || e->min[i] <= e->max[i])
            st = check_range(e, i, eval, exact, err);
    return st;
}
