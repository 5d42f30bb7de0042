/**
 * The values that the float network takes on the calibration data, by class of tensors. As in
 * calibration, inputs and fixed ranges (softmax, logistic, tanh) are quantized; all other tensors
 * are real. Values are counted in bins, 1/4096 of their extent wide. What may follow from them is
 * in calibrated.c.
 */
#include "certify/calibration/extents.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
    e->min = qat_arena_array(&e->c.arena, 2 * n, sizeof *e->min);
    e->max = qat_arena_array(&e->c.arena, 2 * n, sizeof *e->max);
    e->broken = qat_arena_array(&e->c.arena, 2 * n, sizeof *e->broken);
    e->counts = qat_arena_array(&e->c.arena, 2 * n, sizeof *e->counts);
    if (!e->min || !e->max || !e->broken || !e->counts)
        return qat_out_of_memory(err, "certificate");
    for (size_t i = 0; i < 2 * n; i++) {
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

/** The grid of an input, by docs/arithmetic.md, section 1, in float32: with inputs of -1..1 the
 * zero point and every pixel are ties, and only that formula says which way they go. */
static qi_tensor input_grid(const qat_quant_options *o, const cert_grid *g)
{
    float const min = fminf(o->input_min, 0), max = fmaxf(o->input_max, 0);
    bool const wide = g->hi == INT16_MAX;
    float const steps = (float)(wide ? g->hi : g->hi - g->lo);
    float const scale = (wide ? fmaxf(-min, max) : max - min) / steps;
    qi_tensor t = {.type = wide ? QI_S16 : o->layout == QAT_LAYOUT_INT8 ? QI_S8 : QI_U8};
    while ((1 << t.bits) <= g->hi - g->lo)
        t.bits++;
    t.zero_point = wide ? 0 : (int32_t)roundf(fminf(fmaxf(-min / scale, 0), steps)) + g->lo;
    memcpy(&t.scale_bits, &scale, sizeof scale);
    return t;
}

static float quantized(const cert_grid *g, float value)
{
    double const zero = floor(fmin(fmax(g->lo - g->lower / g->scale, g->lo), g->hi) + 0.5);
    double const q = floor((double)value / g->scale + zero + 0.5);
    return (float)(g->scale * (fmin(fmax(q, g->lo), g->hi) - zero));
}

/** Quantized by a fixed range. */
static void quantize(const cert_extents *e, qat_node *node)
{
    cert_grid g;
    if (cert_activation_grid(&e->c, node->index, &g) || g.empty)
        return;
    qi_tensor const t = input_grid(&e->source.quant, &g);
    bool const input = qat_node_is_input(node);
    for (size_t i = 0; i < qat_shape_count(&node->shape); i++) {
        float *x = &node->value[i];
        *x = input ? cert_scale(&t) * (float)(cert_code_in_float32(&t, *x) - t.zero_point)
                   : quantized(&g, *x);
    }
}

static void observe(cert_extents *e, int root, double x)
{
    e->broken[root] = e->broken[root] || !isfinite(x);
    e->min[root] = fmin(e->min[root], x);
    e->max[root] = fmax(e->max[root], x);
}

static void count(cert_extents *e, int root, double x)
{
    double const extent = e->max[root] - e->min[root];
    double const at = extent > 0 ? (x - e->min[root]) / extent * CERT_BINS : 0;
    e->counts[root][(int)fmin(fmax(at, 0), CERT_BINS - 1)]++;
}

static void look(cert_extents *e, int root, const qat_node *node)
{
    for (size_t i = 0; i < qat_shape_count(&node->shape); i++) {
        if (e->is_counting)
            count(e, root, (double)node->value[i]);
        else
            observe(e, root, (double)node->value[i]);
    }
}

static int root_of(const cert_extents *e, const qat_node *node)
{
    return cert_root(&e->c, cert_info(&e->c, node)->origin);
}

/** Was an input of a concatenation brought into its class before, by this one or an earlier one? */
static bool was_brought(const cert_extents *e, const qat_node *concat, int slot)
{
    for (int i = 0; i <= concat->index; i++) {
        const qat_node *node = qat_graph_node(e->graph, i);
        int const slots = node == concat ? slot : node->n_data;
        if (cert_info(&e->c, node)->kind != CERT_CONCAT || root_of(e, node) != root_of(e, concat))
            continue;
        for (int k = 0; k < slots; k++)
            if (node->inputs[k] == concat->inputs[slot])
                return true;
    }
    return false;
}

/** Inputs with a range of another class are quantized with that of the concatenation as well. */
static void look_at_members(cert_extents *e, const qat_node *concat)
{
    int const root = root_of(e, concat);
    for (int k = 0; k < concat->n_data; k++)
        if (root_of(e, concat->inputs[k]) != root && !was_brought(e, concat, k))
            look(e, root, concat->inputs[k]);
}

/** What layers with input_bits read, at the first of those that share it. */
static void look_at_input(cert_extents *e, const qat_node *head)
{
    int const root = cert_input_of(&e->c, head);
    if (root >= 0 && e->c.nodes[e->c.count + head->index].parent == root &&
        (root == e->c.count + head->index ||
         cert_class_node(&e->c, root)->inputs[0] != head->inputs[0]))
        look(e, root, head->inputs[0]);
}

static void visit(void *context, qat_node *node)
{
    cert_extents *e = context;
    const cert_node *info = cert_info(&e->c, node);
    if (!info->copied || info->kind == CERT_NONE || info->kind == CERT_PASS)
        return;
    if (info->kind == CERT_ACCUMULATE)
        look_at_input(e, node);
    if (info->range == CERT_GIVEN && info->kind != CERT_POOL)
        quantize(e, node);
    if (info->range == CERT_OBSERVED && info->kind == CERT_CONCAT)
        look_at_members(e, node);
    if (info->range == CERT_OBSERVED && (info->layer < 0 || e->c.layers[info->layer].last == node))
        look(e, root_of(e, node), node);
}

static void run(cert_extents *e, bool is_counting)
{
    e->is_counting = is_counting;
    for (int i = 0; i < e->c.count; i++) {
        qat_node *node = qat_graph_node(e->graph, i);
        if (qat_node_is_input(node) && cert_info(&e->c, node)->range == CERT_GIVEN)
            quantize(e, node);
    }
    qat_graph_forward_visit(e->graph, &(qat_run){.mode = QAT_MODE_EVAL}, visit, e);
}

void cert_extents_batch(cert_extents *e)
{
    run(e, false);
}

qat_status cert_extents_count(cert_extents *e, qat_error *err)
{
    for (int i = 0; i < 2 * e->c.count; i++) {
        if (e->min[i] <= e->max[i] && !e->counts[i])
            e->counts[i] = qat_arena_array(&e->c.arena, CERT_BINS, sizeof **e->counts);
        if (e->min[i] <= e->max[i] && !e->counts[i])
            return qat_out_of_memory(err, "certificate");
    }
    run(e, true);
    return QAT_OK;
}
