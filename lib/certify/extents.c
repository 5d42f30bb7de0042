/**
 * Compares the ranges that calibration estimated with the values that the float network takes on
 * the same data. As in calibration, inputs and fixed ranges (softmax, logistic, tanh) are
 * quantized; all other tensors are real. Values are counted in bins of width w, 1/4096 of the
 * extent. The ends of a range may be wrong by D (SLACK of the extent), because calibration runs the
 * network in another graph.
 *
 *     every estimator   smallest - D <= range's ends <= largest + D: it may cut, never widen
 *     minmax            they are smallest and largest, within D
 *     percentile:P      at most the share 1 - P/100 lies beyond an end by more than D; and if the
 *                       end were moved inwards by w + D, a larger share would
 *     mse               root mean square error <= that of the best range + w / 32
 *
 * For mse, calibration counts the same values, but float32 may bring a few of them into the next
 * bin. If this happened to 1 in 4096, each of the two errors would change by w / 64.
 */
#include "certify/certify.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double SLACK = 1e-5, OTHER_BIN = 1.0 / 32;

struct cert_extents {
    cert c;
    qat_certify_source source;
    qat_graph *graph;
    double *min, *max; /* by root of a class; min > max: nothing seen */
    bool *broken;      /* by root: a value was NaN or infinite */
    double **counts;   /* by root: CERT_BINS of them */
    bool is_counting;
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
    e->counts = qat_arena_array(&e->c.arena, n, sizeof *e->counts);
    if (!e->c.nodes || !e->c.layers || !e->min || !e->max || !e->broken || !e->counts)
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

/** The grid of an input, by docs/arithmetic.md, section 1, in float32: with inputs of -1..1 the
 * zero point and every pixel are ties, and only that formula says which way they go. */
static qi_tensor input_grid(const qat_quant_options *o, const cert_grid *g)
{
    float const min = fminf(o->input_min, 0), max = fmaxf(o->input_max, 0);
    float const steps = (float)(g->hi - g->lo), scale = (max - min) / steps;
    qi_tensor t = {.type = o->layout == QAT_LAYOUT_INT8 ? QI_S8 : QI_U8};
    while ((1 << t.bits) <= g->hi - g->lo)
        t.bits++;
    t.zero_point = (int32_t)roundf(fminf(fmaxf(-min / scale, 0), steps)) + g->lo;
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

static void visit(void *context, qat_node *node)
{
    cert_extents *e = context;
    const cert_node *info = cert_info(&e->c, node);
    if (!info->copied || info->kind == CERT_NONE || info->kind == CERT_PASS)
        return;
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
    for (int i = 0; i < e->c.count; i++) {
        if (e->min[i] <= e->max[i] && !e->counts[i])
            e->counts[i] = qat_arena_array(&e->c.arena, CERT_BINS, sizeof **e->counts);
        if (e->min[i] <= e->max[i] && !e->counts[i])
            return qat_out_of_memory(err, "certificate");
    }
    run(e, true);
    return QAT_OK;
}

/* ------------------------------------------------------------------ comparing */

/** A range, and what is known of its tensor. */
struct compare {
    const cert_extents *e;
    const char *tensor;
    int root;
    double low, high;        /* the range */
    double min, max, extent; /* of the values, and 0 */
    double width, slack;
    qat_error *err;
};

static bool has_counts(const struct compare *c)
{
    return c->e->counts[c->root] != NULL;
}

static qat_status check_extents(const struct compare *c, bool exact)
{
    bool const inside = c->low >= c->min - c->slack && c->high <= c->max + c->slack;
    if (inside && (!exact || (c->low <= c->min + c->slack && c->high >= c->max - c->slack)))
        return QAT_OK;
    return qat_fail(c->err, QAT_ERR_MISMATCH,
                    "%s: its calibrated range is %g..%g, but the float network's values on the "
                    "same data go from %g to %g",
                    c->tensor, c->low, c->high, c->min, c->max);
}

/** How many values of bins from..to - 1, as a share of all. */
static double share(const struct compare *c, double from, double to)
{
    const double *counts = c->e->counts[c->root];
    double some = 0, all = 0;
    for (int i = 0; i < CERT_BINS; i++) {
        some += i >= from && i < to ? counts[i] : 0;
        all += counts[i];
    }
    return all > 0 ? some / all : 0;
}

/** Where a value lies, in bins. */
static double place(const struct compare *c, double value)
{
    return c->width > 0 ? (value - c->e->min[c->root]) / c->width : 0;
}

static qat_status refuse_share(const struct compare *c, double end, double cut, double may)
{
    return qat_fail(c->err, QAT_ERR_MISMATCH,
                    "%s: %g %% of the float network's values on the calibration data lie beyond "
                    "%g, an end of its calibrated range; the percentile allows %g %%",
                    c->tensor, 100 * cut, end, 100 * may);
}

static qat_status refuse_width(const struct compare *c, double end, double may)
{
    return qat_fail(c->err, QAT_ERR_MISMATCH,
                    "%s: its calibrated range ends at %g, but a range that cuts off %g %% of the "
                    "float network's values, as the percentile says, would be smaller",
                    c->tensor, end, 100 * may);
}

/** An end at 0 cannot be nearer; two ends that meet stop each other. Shares that are equal in
 *  decimals are ties in float64. */
static qat_status check_percentile(const struct compare *c, double percent)
{
    double const may = 1 - percent / 100, tie = 1e-9, room = c->width + c->slack;
    double const below = share(c, 0, floor(place(c, c->low - c->slack))),
                 above = share(c, ceil(place(c, c->high + c->slack)), CERT_BINS),
                 more_below = share(c, 0, ceil(place(c, c->low + room)) + 1),
                 more_above = share(c, floor(place(c, c->high - room)) - 1, CERT_BINS);
    bool const meet = c->high - c->low < 4 * room;
    if (below > may + tie)
        return refuse_share(c, c->low, below, may);
    if (above > may + tie)
        return refuse_share(c, c->high, above, may);
    if (c->low < 0 && !meet && more_below < may - tie)
        return refuse_width(c, c->low, may);
    return c->high > 0 && !meet && more_above < may - tie ? refuse_width(c, c->high, may) : QAT_OK;
}

static qat_status check_error(const struct compare *c)
{
    double middles[CERT_BINS], counts[CERT_BINS];
    const cert *graph = &c->e->c;
    cert_spread x = {.values = middles, .counts = counts};
    cert_codes_of_range codes = {0};
    for (int i = 0; i < CERT_BINS; i++) {
        if (c->e->counts[c->root][i] <= 0)
            continue;
        middles[x.n] = c->e->min[c->root] + (i + 0.5) * c->width;
        counts[x.n++] = c->e->counts[c->root][i];
        x.total += c->e->counts[c->root][i];
    }
    cert_codes(c->e->source.quant.layout, graph->nodes[c->root].settings.activation_bits, false,
               &codes.lo, &codes.hi);
    double const error = cert_range_error(&x, &codes, c->low, c->high),
                 least = cert_least_error(&x, &codes, c->min, c->max);
    if (error <= least + OTHER_BIN * c->width)
        return QAT_OK;
    return qat_fail(
        c->err, QAT_ERR_MISMATCH,
        "%s: its calibrated range %g..%g quantizes the float network's values on the same data "
        "with an error of %g, but another range has %g; the observer mse must choose the smallest",
        c->tensor, c->low, c->high, error, least);
}

static qat_status check_by(const struct compare *c, const char *estimator, double parameter)
{
    bool const counted = has_counts(c);
    qat_status st = check_extents(c, strcmp(estimator, "minmax") == 0);
    if (!st && counted && strcmp(estimator, "percentile") == 0)
        st = check_percentile(c, parameter);
    if (!st && counted && strcmp(estimator, "mse") == 0)
        st = check_error(c);
    return st;
}

static qat_status check_range(const cert_extents *e, int root, const qat_graph *eval,
                              const char *estimator, double parameter, qat_error *err)
{
    size_t count = 0;
    const qat_node *node = qat_graph_node(e->graph, root);
    qat_certify_source source = e->source;
    cert graph = e->c;
    source.values = qat_certify_graph_values;
    source.context = eval;
    graph.source = &source;
    const float *range = cert_class_values(&graph, node, "range", &count);
    if (e->broken[root])
        return qat_fail(err, QAT_ERR_MISMATCH,
                        "%s: the float network's values on the calibration data are not all finite",
                        node->name);
    if (!range || count < 2)
        return qat_fail(err, QAT_ERR_MISMATCH,
                        "%s: the calibrated network holds no range of this tensor", node->name);
    struct compare c = {.e = e, .tensor = node->name, .root = root, .err = err};
    c.low = (double)range[0];
    c.high = (double)range[1];
    c.min = fmin(e->min[root], 0);
    c.max = fmax(e->max[root], 0);
    c.slack = SLACK * (c.max - c.min);
    c.width = (e->max[root] - e->min[root]) / CERT_BINS;
    return check_by(&c, estimator, parameter);
}

qat_status cert_extents_check(const cert_extents *e, const qat_graph *eval, const char *estimator,
                              double parameter, qat_error *err)
{
    qat_status st = QAT_OK;
    for (int i = 0; !st && i < e->c.count; i++)
        if (e->broken[i] || e->min[i] <= e->max[i])
            st = check_range(e, i, eval, estimator, parameter, err);
    return st;
}
