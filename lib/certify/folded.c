/**
 * Compares a float graph whose batch norms were folded with the graph from which it was made.
 * fold.c has the formulas and their slacks.
 */
#include "certify/certify.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/** The folded graph's value of a parameter of one of its nodes; NULL: there is none. */
static const float *values_of(const qat_graph *folded, const char *node, bool weights, size_t count)
{
    const qat_node *n = qat_graph_find((qat_graph *)(uintptr_t)folded, node);
    if (!n || !n->op || n->n_inputs <= n->n_data)
        return NULL;
    const qat_node *p = n->inputs[weights ? n->n_data : 1];
    return qat_shape_count(&p->shape) == count ? p->value : NULL;
}

static qat_status refuse(const cert *c, const char *name, size_t i, double folded, double expected)
{
    return qat_fail(c->err, QAT_ERR_MISMATCH,
                    "%s: value %zu is %.9g in the folded network, but the checkpoint gives %.9g",
                    name, i, folded, expected);
}

static qat_status check_weights(cert *c, const cert_weights *w, const char *head,
                                const qat_graph *folded)
{
    size_t const count = qat_shape_count(&w->shape);
    const float *made = values_of(folded, head, true, count);
    double *expected = calloc(count, sizeof *expected);
    if (!expected)
        return qat_out_of_memory(c->err, "certificate");
    qat_status st =
        made ? cert_folded_weights(c, w, expected)
             : qat_fail(
                   c->err, QAT_ERR_MISMATCH,
                   "%s: the checkpoint's network has this layer, but the folded network does not",
                   head);
    for (size_t i = 0; !st && i < count; i++)
        if (!(fabs((double)made[i] - expected[i]) <=
              5 * CERT_U * fabs(expected[i]) + (double)FLT_MIN))
            st = refuse(c, w->base, i, (double)made[i], expected[i]);
    free(expected);
    return st;
}

static qat_status check_biases(cert *c, const cert_weights *w, const char *node,
                               const qat_graph *folded)
{
    const float *made = values_of(folded, node, false, (size_t)w->channels);
    cert_bias *expected = calloc((size_t)w->channels, sizeof *expected);
    if (!expected)
        return qat_out_of_memory(c->err, "certificate");
    qat_status st =
        made ? cert_real_biases(c, w, expected)
             : qat_fail(c->err, QAT_ERR_MISMATCH,
                        "%s: the folded network must have a bias of this name, but has none", node);
    for (int i = 0; !st && i < w->channels; i++)
        if (!(fabs((double)made[i] - expected[i].real) <=
              expected[i].slack + 2 * CERT_U * fabs(expected[i].real) + (double)FLT_MIN))
            st = refuse(c, node, (size_t)i, (double)made[i], expected[i].real);
    free(expected);
    return st;
}

static qat_status check_layer(cert *c, const cert_layer *l, const qat_graph *folded)
{
    char base[2 * QAT_NAME_MAX], offset[2 * QAT_NAME_MAX];
    cert_weights const w = cert_weights_of(c, l, base);
    snprintf(offset, sizeof offset, "%s/offset", l->head->name);
    qat_status const st = check_weights(c, &w, l->head->name, folded);
    const qat_node *affine = l->bn ? l->bn : l->bias;
    return st ? st : check_biases(c, &w, affine ? affine->name : offset, folded);
}

qat_status cert_folded_graph(const qat_certify_source *original, const qat_graph *folded,
                             qat_error *err)
{
    cert c = {.source = original,
              .graph = original->graph,
              .count = qat_graph_nodes(original->graph),
              .err = err};
    qat_status st = cert_analyse(&c);
    for (int i = 0; !st && i < c.n_layers; i++) {
        const cert_layer *l = &c.layers[i];
        if (l->head && cert_has_weights(l->head) && cert_info(&c, l->head)->copied)
            st = check_layer(&c, l, folded);
    }
    qat_arena_free(&c.arena);
    return st;
}
