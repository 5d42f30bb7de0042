/**
 * MobileNet SSD (Jacob et al. 4.2.2; Howard et al. 4.6; Liu et al., 2016). It predicts boxes and
 * scores for anchors on several feature maps.
 *
 *     picture - MobileNet v1 - 1/16 - 1/32 - extra layers, each half as high and wide
 *                               |      |       |                     (with 1/8 before, if wanted)
 *                             head0  head1   head2 ...
 *     extra   1x1 conv c/2 - 3x3 conv c, stride 2
 *     head    3x3 depthwise - 1x1 conv 4 k (boxes), and the same with K k (scores); k anchors per
 * cell
 *
 * The rows of the heads are joined in the order of qat_anchors_create: boxes [N, A, 4], scores [N,
 * A, K]. The outputs of the network are the boxes, and the logistic or softmax of the scores (with
 * softmax, K includes the background).
 */
#include "base/number.h"
#include "networks/network.h"
#include "recipe/recipe.h"

#include <stdio.h>

/** Values of detect.finest, in order. */
enum { FINEST_16, FINEST_8 };

/** Feature maps and the rows of their heads. */
typedef struct ssd {
    const qat_net *net;
    int n;
    qat_node *maps[QAT_MAX_ANCHOR_LAYERS];
    qat_anchor_spec spec;
} ssd;

static bool is_single(const qat_node *x)
{
    return !x || (x->shape.dims[1] == 1 && x->shape.dims[2] == 1);
}

static void add_maps(ssd *s)
{
    const qat_net *net = s->net;
    const qat_int_list *extra = &net->recipe->detect.extra;
    qat_node *x = s->maps[s->n - 1];
    for (int i = 0; i < extra->n && !is_single(x) && s->n < QAT_MAX_ANCHOR_LAYERS; i++) {
        char name[32];
        int64_t const filters = qat_net_scaled_down(net, extra->v[i]);
        snprintf(name, sizeof name, "extra%d/squeeze", i + 1);
        x = qat_net_conv_block(net, x, name,
                               (qat_net_conv){(filters + 1) / 2, 1, 1, .activation = true});
        snprintf(name, sizeof name, "extra%d/conv", i + 1);
        x = qat_net_conv_block(net, x, name, (qat_net_conv){filters, 3, 2, .activation = true});
        s->maps[s->n++] = x;
    }
}

/** Add the rows [N, cells k, values] of one head: "boxes" or "scores". */
static qat_node *add_head(const ssd *s, int layer, const char *what, int values)
{
    qat_node *x = s->maps[layer];
    int const each = qat_anchors_per_cell(&s->spec, layer);
    char name[64], attrs[64];
    if (!x)
        return NULL;
    int const rows = x->shape.dims[1] * x->shape.dims[2] * each;
    snprintf(name, sizeof name, "head%d/%s/depthwise", layer, what);
    x = qat_net_conv_block(s->net, x, name, (qat_net_conv){0, 3, 1, .activation = true});
    snprintf(name, sizeof name, "head%d/%s", layer, what);
    snprintf(attrs, sizeof attrs, "filters=%d kernel=1", each * values);
    x = qat_apply1(s->net->graph, "conv2d", name, attrs, x);
    snprintf(name, sizeof name, "head%d/%s/bias", layer, what);
    x = qat_apply1(s->net->graph, "bias", name, "", x);
    snprintf(name, sizeof name, "head%d/%s/rows", layer, what);
    snprintf(attrs, sizeof attrs, "d1=%d d2=%d", rows, values);
    return qat_apply1(s->net->graph, "reshape", name, attrs, x);
}

static qat_node *add_heads(const ssd *s, const char *what, const char *name, int values)
{
    qat_node *rows[QAT_MAX_ANCHOR_LAYERS];
    for (int i = 0; i < s->n; i++)
        rows[i] = add_head(s, i, what, values);
    return qat_apply(s->net->graph, "concat", name, "axis=1", s->n, rows);
}

static void add_loss(const qat_net *net, qat_node *codes, qat_node *logits)
{
    const qat_recipe *r = net->recipe;
    char attrs[160];
    if (!codes || !logits)
        return;
    int const n = codes->shape.dims[1];
    qat_node *inputs[] = {codes, logits,
                          qat_graph_input(net->graph, QAT_TARGET_CODES_NAME, QAT_SHAPE(1, n, 4)),
                          qat_graph_input(net->graph, QAT_TARGET_CLASSES_NAME, QAT_SHAPE(1, n))};
    qat_format(attrs, sizeof attrs,
               "classification=%s negatives=%.17g least_negatives=%lld box_weight=%.17g",
               r->detect.classification ? "softmax" : "sigmoid", r->detect.negatives,
               (long long)r->detect.least_negatives, r->detect.box_weight);
    qat_apply(net->graph, "detection_loss", QAT_LOSS_NAME, attrs, 4, inputs);
}

qat_node *qat_net_mobilenet_ssd(const qat_net *net, qat_node *x)
{
    bool const softmax = net->recipe->detect.classification == 1;
    qat_net_features const f = qat_net_mobilenet_v1_body(net, x);
    ssd s = {.net = net, .spec = qat_anchor_defaults()};
    if (net->recipe->detect.finest == FINEST_8)
        s.maps[s.n++] = f.stride8;
    s.maps[s.n++] = f.stride16;
    s.maps[s.n++] = f.stride32;
    s.spec.reduced_lowest = net->recipe->detect.reduced_lowest;
    add_maps(&s);
    qat_node *codes = add_heads(&s, "boxes", QAT_BOX_CODES_NAME, 4);
    qat_node *logits = add_heads(&s, "scores", "logits", net->input->classes + softmax);
    qat_node *scores =
        qat_apply1(net->graph, softmax ? "softmax" : "logistic", "scores", "", logits);
    if (codes && scores) {
        qat_graph_output(net->graph, codes);
        qat_graph_output(net->graph, scores);
    }
    add_loss(net, codes, logits);
    return codes;
}
