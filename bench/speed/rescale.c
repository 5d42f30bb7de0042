/**
 * Makes the two failures of post-training quantization that Jacob et al. name (section 3). It
 * changes a trained network without changing what it computes.
 *
 *     rescale CKPT OUT.ckpt off | ranges RATIO | outlier FACTOR
 *
 * ranges: each channel of a layer is multiplied by a random u, and what reads the channel is
 * divided by u. (A ReLU lets positive factors pass.) u is log-uniform. If the network has depthwise
 * layers, only their channels are scaled: the input channel by 1 / u and the output channel by u,
 * with u in RATIO^-1/4 .. RATIO^1/4. So the ranges of their weights differ by up to RATIO, and
 * those of activations only by its root. Otherwise every layer is scaled, with u in RATIO^-1/2 ..
 * RATIO^1/2.
 *
 * off: in every layer, the channel that can become least active is switched off. Its batch norm's
 * gamma and beta become 0. They stay 0 in further training, because a ReLU at 0 passes no gradient.
 * This does change what the network computes, so train it further.
 *
 * outlier: a weight that reads a channel that is always 0 becomes FACTOR times the largest weight
 * of its layer.
 */
#include "base/rng.h"
#include "checkpoint/restore.h"
#include "fold/fold.h"
#include "ptq/layer_pairs.h"
#include "qat/train.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GAMMA = 1, BETA, EMA_VARIANCE = 4 }; /* inputs of batch_norm */

static qat_checkpoint *checkpoint;

static float *values_of(const qat_node *param)
{
    for (int i = 0; i < checkpoint->n_params; i++)
        if (!strcmp(checkpoint->params[i].name, param->name))
            return checkpoint->params[i].values;
    fprintf(stderr, "rescale: the checkpoint has no %s\n", param->name);
    exit(1);
}

static float *weights(const qat_node *head)
{
    return values_of(qat_weights_of(head));
}

static size_t count_weights(const qat_node *head)
{
    return qat_shape_count(&qat_weights_of(head)->shape);
}

static bool is_depthwise(const qat_node *head)
{
    return qat_node_is_op(head, "depthwise_conv2d");
}

/* ------------------------------------------------------------------ ranges */

/** What makes channel c larger by f. */
static void scale_output(const qat_layer_pair *p, int c, float f)
{
    if (p->bn) {
        values_of(p->bn->inputs[GAMMA])[c] *= f;
        values_of(p->bn->inputs[BETA])[c] *= f;
        return;
    }
    for (size_t i = 0; i < count_weights(p->first); i++)
        if (qat_output_channel(p->first, i) == c)
            weights(p->first)[i] *= f;
    if (p->bias)
        values_of(p->bias->inputs[1])[c] *= f;
}

static void scale_readers(const qat_layer_pair *p, int c, float f)
{
    for (size_t i = 0; i < count_weights(p->second); i++)
        if (qat_input_channel(p->second, i, p->channels) == c)
            weights(p->second)[i] *= f;
}

/** The same number whenever a depthwise layer's channel is asked for. */
static float spread_of(const qat_node *layer, int c, double exponent, double ratio)
{
    qat_rng rng = qat_rng_at(1, qat_hash_name(layer->name), (uint64_t)c);
    return (float)pow(ratio, exponent * (2 * qat_rng_uniform(&rng) - 1));
}

static void spread_pair(const qat_layer_pair *p, bool depthwise_only, double ratio)
{
    for (int c = 0; c < p->channels; c++) {
        float f = 1;
        if (is_depthwise(p->first))
            f *= spread_of(p->first, c, 0.25, ratio);
        if (is_depthwise(p->second))
            f /= spread_of(p->second, c, 0.25, ratio);
        if (!depthwise_only)
            f = spread_of(p->first, c, 0.5, ratio);
        scale_output(p, c, f);
        scale_readers(p, c, 1 / f);
    }
}

static void spread_ranges(const qat_layer_pair *pairs, int n, double ratio)
{
    bool any = false;
    for (int k = 0; k < n; k++)
        any |= is_depthwise(pairs[k].first);
    for (int k = 0; k < n; k++)
        if (!pairs[k].behind_bound)
            spread_pair(&pairs[k], any, ratio);
}

/* ------------------------------------------------------------------ outliers */

/** gamma / s of the layer's batch norm: what folding multiplies channel c's weights by. */
static float fold_factor(const qat_node *bn, int c)
{
    return bn ? qat_fold_factor(values_of(bn->inputs[GAMMA])[c],
                                values_of(bn->inputs[EMA_VARIANCE])[c], qat_attr(bn, "epsilon"))
              : 1;
}

/** The channel whose output cannot get far above 0: batch norm leaves beta +- some gamma. */
static int least_active(const qat_layer_pair *p)
{
    const float *gamma = values_of(p->bn->inputs[GAMMA]), *beta = values_of(p->bn->inputs[BETA]);
    int least = 0;
    for (int c = 1; c < p->channels; c++)
        if (beta[c] + 2 * fabsf(gamma[c]) < beta[least] + 2 * fabsf(gamma[least]))
            least = c;
    return least;
}

/**
 * Choose the weight that becomes the outlier: among those that read channel c, the one that is
 * largest after folding, so that FACTOR holds for folded weights. Its layer's batch norm, or NULL.
 */
static size_t place_of(const qat_layer_pair *p, const qat_node *bn, int c)
{
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < count_weights(p->second); i++) {
        if (qat_input_channel(p->second, i, p->channels) != c)
            continue;
        if (best == SIZE_MAX || fabsf(fold_factor(bn, qat_output_channel(p->second, i))) >
                                    fabsf(fold_factor(bn, qat_output_channel(p->second, best))))
            best = i;
    }
    return best;
}

static float largest_folded(const qat_layer_pair *p, const qat_node *bn)
{
    float largest = 0;
    for (size_t i = 0; i < count_weights(p->second); i++) {
        float const w = weights(p->second)[i] * fold_factor(bn, qat_output_channel(p->second, i));
        largest = fabsf(w) > largest ? fabsf(w) : largest;
    }
    return largest;
}

static const qat_node *bn_of(const qat_node *head, const qat_layer_pair *pairs, int n)
{
    for (int k = 0; k < n; k++)
        if (pairs[k].first == head)
            return pairs[k].bn;
    return NULL;
}

static bool can_be_dead(const qat_layer_pair *p)
{
    return p->bn && p->rectified;
}

static void switch_off(const qat_layer_pair *pairs, int n)
{
    for (int k = 0; k < n; k++) {
        if (!can_be_dead(&pairs[k]))
            continue;
        const qat_node *bn = pairs[k].bn;
        int const c = least_active(&pairs[k]);
        values_of(bn->inputs[GAMMA])[c] = values_of(bn->inputs[BETA])[c] = 0;
        printf("%s: channel %d of %d is off\n", pairs[k].first->name, c, pairs[k].channels);
    }
}

/** A channel that is always 0, or -1. */
static int dead_channel(const qat_layer_pair *p)
{
    for (int c = 0; can_be_dead(p) && c < p->channels; c++)
        if (values_of(p->bn->inputs[GAMMA])[c] == 0 && values_of(p->bn->inputs[BETA])[c] <= 0)
            return c;
    return -1;
}

static void add_outliers(const qat_layer_pair *pairs, int n, double factor)
{
    for (int k = 0; k < n; k++) {
        const qat_layer_pair *p = &pairs[k];
        const qat_node *bn = bn_of(p->second, pairs, n);
        int const c = dead_channel(p);
        if (c < 0 || is_depthwise(p->second))
            continue;
        size_t const at = place_of(p, bn, c);
        float const fold = fold_factor(bn, qat_output_channel(p->second, at));
        double const largest = (double)largest_folded(p, bn);
        weights(p->second)[at] = (float)(factor * largest / (fold != 0 ? (double)fold : 1));
        printf(
            "%s: channel %d is always 0; a weight of %s that reads it becomes %.4g (folded), the "
            "largest was %.4g\n",
            p->first->name, c, p->second->name, factor * largest, largest);
    }
}

/* ------------------------------------------------------------------ main */

static int failed(const qat_error *err)
{
    fprintf(stderr, "rescale: %s\n", err->message);
    return 1;
}

int main(int argc, char **argv)
{
    qat_restored *restored;
    qat_layer_pair *pairs;
    qat_error err;
    int n;
    const char *what = argc > 3 ? argv[3] : "";
    double const amount = argc == 5 ? strtod(argv[4], NULL) : 0;
    bool const off = argc == 4 && !strcmp(what, "off");
    bool const ranges = amount >= 1 && !strcmp(what, "ranges");
    bool const outlier = amount >= 1 && !strcmp(what, "outlier");
    if (!off && !ranges && !outlier) {
        fprintf(stderr, "usage: rescale CKPT OUT.ckpt off|ranges RATIO|outlier FACTOR\n");
        return 2;
    }
    if (qat_restore(&restored, argv[1], NULL, 0, &err))
        return failed(&err);
    checkpoint = restored->checkpoint;
    if (checkpoint->averaged) {
        fprintf(stderr, "rescale: %s: averaged parameters are not rescaled\n", argv[1]);
        return 1;
    }
    if (qat_layer_pairs(restored->float_graph, &pairs, &n, &err))
        return failed(&err);
    if (off)
        switch_off(pairs, n);
    else if (ranges)
        spread_ranges(pairs, n, amount);
    else
        add_outliers(pairs, n, amount);
    qat_status const st = qat_checkpoint_save(checkpoint, argv[2], &err);
    free(pairs);
    qat_restored_free(restored);
    return st ? failed(&err) : 0;
}
