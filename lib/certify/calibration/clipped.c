/**
 * Compares the parameters of a calibrated network with those of the folded network from which it
 * was made.
 *
 *     weights, clipped by the estimator mse   each is min(max(w, low), high), with one range for
 *                                             each output channel (or all), and the error of that
 *                                             range <= that of the best range + w (estimate.c;
 *                                             2 w if there are more values than bins)
 *     parameters of a plugin's op             no further from 0 than before; only the plugin knows
 *                                             which of them share a range
 *     biases after convolutions, corrected    finite (means.c checks their values)
 *     all others                              equal
 */
#include "certify/certify.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct clipped {
    cert c;
    const qat_graph *folded, *eval;
    bool clips, corrects;
    qat_error *err;
};

/** Values of one parameter that share a range. */
struct group {
    const char *name;
    const float *was, *is;
    size_t count, first, run, stride; /* runs of `run` values, `stride` apart */
    cert_codes_of_range codes;
};

static size_t place(const struct group *g, size_t i)
{
    return g->first + i / g->run * g->stride + i % g->run;
}

/* ------------------------------------------------------------------ one range */

static void extents_of(const struct group *g, const float *values, double *min, double *max)
{
    *min = INFINITY;
    *max = -INFINITY;
    for (size_t i = 0; i < g->count; i++) {
        *min = fmin(*min, (double)values[place(g, i)]);
        *max = fmax(*max, (double)values[place(g, i)]);
    }
}

static qat_status check_values(const struct group *g, double low, double high, qat_error *err)
{
    for (size_t i = 0; i < g->count; i++) {
        size_t const at = place(g, i);
        double const was = (double)g->was[at], is = (double)g->is[at];
        if (!(is == fmin(fmax(was, low), high)))
            return qat_fail(
                err, QAT_ERR_MISMATCH,
                "export refused: %s, value %zu: it is %.9g in the folded network and %.9g in the "
                "calibrated one, but clipping to %.9g..%.9g gives something else",
                g->name, at, was, is, low, high);
    }
    return QAT_OK;
}

/** The values themselves, or their bins where there are many. */
static void spread_of(const struct group *g, double min, double max, double *values, double *counts,
                      cert_spread *x)
{
    double const width = (max - min) / CERT_BINS;
    *x = (cert_spread){.values = values, .n = g->count, .total = (double)g->count};
    for (size_t i = 0; i < g->count && g->count <= CERT_BINS; i++)
        values[i] = (double)g->was[place(g, i)];
    if (g->count <= CERT_BINS)
        return;
    x->counts = counts;
    x->n = CERT_BINS;
    for (int i = 0; i < CERT_BINS; i++)
        values[i] = min + (i + 0.5) * width;
    for (size_t i = 0; i < g->count; i++) {
        double const at = width > 0 ? ((double)g->was[place(g, i)] - min) / width : 0;
        counts[(int)fmin(fmax(at, 0), CERT_BINS - 1)]++;
    }
}

static qat_status check_group(const struct group *g, qat_error *err)
{
    double min, max, low, high, values[CERT_BINS], counts[CERT_BINS] = {0};
    cert_spread x;
    extents_of(g, g->was, &min, &max);
    extents_of(g, g->is, &low, &high);
    qat_status const st = check_values(g, low, high, err);
    if (st)
        return st;
    spread_of(g, min, max, values, counts, &x);
    double const slack = (x.counts ? 2 : 1) * (max - min) / CERT_BINS + 1e-6 * fmax(-min, max);
    double const error = cert_range_error(&x, &g->codes, low, high),
                 least = cert_least_error(&x, &g->codes, min, max);
    if (error <= least + slack)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_MISMATCH,
                    "export refused: %s, value %zu and those that share its scale: clipped to "
                    "%.9g..%.9g they are quantized with an error of %g, but another range has %g; "
                    "the estimator mse must choose the smallest",
                    g->name, g->first, low, high, error, least);
}

/* ------------------------------------------------------------------ one parameter */

static qat_status check_weights(struct clipped *k, const cert_layer *l, const qat_node *was,
                                const qat_node *is)
{
    char base[2 * QAT_NAME_MAX];
    cert_weights const w = cert_weights_of(&k->c, l, base);
    const qat_quant_options *o = &k->c.source->quant;
    bool const int8 = o->layout == QAT_LAYOUT_INT8, by_channel = int8 && w.settings->per_channel;
    size_t const count = qat_shape_count(&was->shape), channels = (size_t)w.channels;
    struct group g = {.name = was->name, .was = was->value, .is = is->value, .count = count};
    g.run = by_channel ? w.axis == 0 ? count / channels : 1 : count;
    g.stride = by_channel && w.axis != 0 ? channels : count;
    g.count = by_channel ? count / channels : count;
    g.codes.symmetric = int8 || w.settings->symmetric;
    cert_codes(o->layout, w.settings->weight_bits, true, &g.codes.lo, &g.codes.hi);
    qat_status st = QAT_OK;
    for (size_t i = 0; !st && i < (by_channel ? channels : 1); i++) {
        g.first = i * (w.axis == 0 ? count / channels : 1);
        st = check_group(&g, k->err);
    }
    return st;
}

static qat_status check_same(const struct clipped *k, const qat_node *was, const qat_node *is)
{
    for (size_t i = 0; i < qat_shape_count(&was->shape); i++)
        if (!(was->value[i] == is->value[i]))
            return qat_fail(k->err, QAT_ERR_MISMATCH,
                            "export refused: %s, value %zu: it is %.9g in the folded network, but "
                            "%.9g in the calibrated one; nothing was to change it",
                            was->name, i, (double)was->value[i], (double)is->value[i]);
    return QAT_OK;
}

/** fmax and fabs would pass over a NaN. */
static qat_status check_finite(const struct clipped *k, const qat_node *is)
{
    for (size_t i = 0; i < qat_shape_count(&is->shape); i++)
        if (!isfinite(is->value[i]))
            return qat_fail(k->err, QAT_ERR_MISMATCH,
                            "export refused: %s: after the correction of biases, a value is not a "
                            "finite number",
                            is->name);
    return QAT_OK;
}

/** The layer whose weights a parameter is; or NULL. */
static const cert_layer *layer_of(const struct clipped *k, const qat_node *param)
{
    for (int i = 0; i < k->c.n_layers; i++) {
        const cert_layer *l = &k->c.layers[i];
        if (l->head && cert_has_weights(l->head) && l->head->inputs[l->head->n_data] == param)
            return l;
    }
    return NULL;
}

/** A bias and batch norm's parameters are not clipped. */
static bool is_of_plugin(const struct clipped *k, const qat_node *param)
{
    for (int i = 0; i < k->c.count; i++) {
        const qat_node *node = qat_graph_node(k->folded, i);
        cert_kind const kind = cert_info(&k->c, node)->kind;
        for (int j = node->n_data; j < node->n_inputs; j++)
            if (node->inputs[j] == param)
                return kind == CERT_ACCUMULATE || kind == CERT_BINARY || kind == CERT_CUSTOM;
    }
    return false;
}

static qat_status check_nearer(const struct clipped *k, const qat_node *was, const qat_node *is)
{
    for (size_t i = 0; i < qat_shape_count(&was->shape); i++) {
        float const a = was->value[i], b = is->value[i];
        if (!(a < 0 ? b >= a && b <= 0 : b <= a && b >= 0))
            return qat_fail(k->err, QAT_ERR_MISMATCH,
                            "export refused: %s, value %zu: it is %.9g in the folded network, but "
                            "%.9g in the calibrated one; clipping can only move a value towards 0",
                            was->name, i, (double)a, (double)b);
    }
    return QAT_OK;
}

static bool is_corrected(const struct clipped *k, const qat_node *param)
{
    for (int i = 0; i < k->c.count; i++) {
        const qat_node *node = qat_graph_node(k->folded, i);
        if (cert_is_corrected(node) && node->inputs[1] == param)
            return true;
    }
    return false;
}

static qat_status check_parameter(struct clipped *k, const qat_node *was)
{
    const qat_node *is = qat_graph_find((qat_graph *)(uintptr_t)k->eval, was->name);
    size_t const n = strlen(was->name);
    if (!is && n > 10 && strcmp(was->name + n - 10, "/ema_steps") == 0)
        return QAT_OK; /* only training counts batches */
    if (!is || !is->is_param || !qat_shape_equal(&was->shape, &is->shape))
        return qat_fail(k->err, QAT_ERR_MISMATCH,
                        "export refused: the folded network has a parameter %s, but the calibrated "
                        "one has none of this name and shape",
                        was->name);
    const cert_layer *l = k->clips ? layer_of(k, was) : NULL;
    if (l)
        return check_weights(k, l, was, is);
    if (k->clips && is_of_plugin(k, was))
        return check_nearer(k, was, is);
    return k->corrects && is_corrected(k, was) ? check_finite(k, is) : check_same(k, was, is);
}

qat_status cert_clipped_weights(const qat_graph *folded, const qat_graph *eval,
                                const qat_quant_options *quant, bool clips, bool corrects,
                                qat_error *err)
{
    qat_certify_source const source = {.graph = folded, .quant = *quant};
    struct clipped k = {
        .folded = folded, .eval = eval, .clips = clips, .corrects = corrects, .err = err};
    k.c = (cert){.source = &source, .graph = folded, .count = qat_graph_nodes(folded), .err = err};
    qat_status st = cert_analyse(&k.c);
    for (int i = 0; !st && i < k.c.count; i++) {
        const qat_node *was = qat_graph_node(folded, i);
        if (was->is_param)
            st = check_parameter(&k, was);
    }
    qat_arena_free(&k.c.arena);
    return st;
}
