/**
 * Binary and ternary weights: all nonzero weights of a group have the same magnitude.
 *
 *     y = alpha t,   t in {-1, 1} or {-1, 0, 1}
 *
 *     bwn    t = sign(w), sign(0) = 1                            alpha = mean |w|
 *     twn    t = sign(w) where |w| > 0.7 mean |w|, else 0        alpha = mean of |w| over t != 0
 *     fgq    t = sign(w) for the k largest |w|, else 0           alpha = their mean
 *            k such that (sum of these |w|)^2 / k is largest: the least sum of (w - y)^2
 *
 * (Rastegari et al., XNOR-Net; Li et al., Ternary Weight Networks; Mellempudi et al., Ternary
 * Neural Networks with Fine-Grained Quantization.) A group of bwn and twn is an output channel
 * (layout int8) or the tensor: alpha is its scale and t + Z its codes, which the engine runs. A
 * group of fgq is four successive input channels at one place of a filter, fewer at their end.
 * Gradients pass straight through for weights of any size. XNOR-Net's factor 1/n + alpha is left
 * out: it acts like a learning rate per channel.
 */
#include "autograd/loops/vector.h"
#include "base/parallel.h"
#include "fakequant/ops.h"
#include "fakequant/quantizer.h"
#include "fakequant/schemes.h"
#include "fakequant/weights.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { FGQ_GROUP = 4 };

static const float TWN_THRESHOLD = 0.7f;

/** How a group becomes values: |w| above the threshold becomes alpha, else 0. NaN gives NaN. */
typedef struct magnitude {
    float alpha, threshold;
} magnitude;

static const float *run_of(const qat_node *node, const qat_weight_view *view, int outer,
                           int channel)
{
    return node->inputs[0]->value + qat_weight_run(view, outer, channel);
}

/* ------------------------------------------------------------------ a channel's alpha */

/** The mean of |w| over those above the threshold; 0 if there are none. */
static float mean_above(const qat_node *node, const qat_weight_view *view, int channel,
                        float threshold)
{
    double sum = 0;
    size_t count = 0;
    for (int o = 0; o < view->outer; o++) {
        const float *w = run_of(node, view, o, channel);
        for (int i = 0; i < view->inner; i++)
            if (fabsf(w[i]) > threshold) {
                sum += (double)fabsf(w[i]);
                count++;
            }
    }
    return count ? (float)(sum / (double)count) : 0;
}

static float mean_absolute(const qat_node *node, const qat_weight_view *view, int channel)
{
    double const n = (double)view->outer * view->inner;
    double sum = 0;
    for (int o = 0; o < view->outer; o++) {
        const float *w = run_of(node, view, o, channel);
        for (int i = 0; i < view->inner; i++)
            sum += (double)fabsf(w[i]);
    }
    return (float)(sum / n);
}

/** A magnitude is a scale. What is no normal number of float32 is 0. A NaN stays. */
static float storable(float alpha)
{
    return alpha < FLT_MIN ? 0 : alpha;
}

static magnitude magnitude_of(const qat_node *node, const qat_weight_view *view, int channel)
{
    float const mean = mean_absolute(node, view, channel);
    if (node->op == &qat_op_bwn_weights || !isfinite(mean))
        return (magnitude){storable(mean), -1};
    float const threshold = TWN_THRESHOLD * mean;
    return (magnitude){storable(mean_above(node, view, channel, threshold)), threshold};
}

static void scale_run(magnitude m, const float *w, float *y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = fabsf(w[i]) > m.threshold ? (w[i] < 0 ? -m.alpha : m.alpha) : 0;
}

/* ------------------------------------------------------------------ groups of input channels */

/** The positions of a group by falling |w|; of equals, the first comes first. */
static void rank_group(const float *w, int n, int order[FGQ_GROUP])
{
    for (int i = 0; i < n; i++) {
        int at = i;
        for (; at > 0 && fabsf(w[order[at - 1]]) < fabsf(w[i]); at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
}

static void scale_group(const float *w, float *y, int n)
{
    int order[FGQ_GROUP], taken = 0;
    double sum = 0, best = 0, alpha = 0;
    rank_group(w, n, order);
    for (int k = 1; k <= n; k++) {
        sum += (double)fabsf(w[order[k - 1]]);
        if (sum * sum / k > best) {
            best = sum * sum / k;
            alpha = sum / k;
            taken = k;
        }
    }
    for (int i = 0; i < n; i++)
        y[i] = isnan(sum) ? NAN : 0;
    for (int k = 0; k < taken; k++)
        y[order[k]] = w[order[k]] < 0 ? -(float)alpha : (float)alpha;
}

/** Scale the rows of `inputs` successive input channels. */
static void scale_rows(const float *w, float *y, size_t n, size_t inputs)
{
    for (size_t row = 0; row < n; row += inputs)
        for (size_t at = 0; at < inputs; at += FGQ_GROUP) {
            size_t const left = inputs - at;
            scale_group(w + row + at, y + row + at, left < FGQ_GROUP ? (int)left : FGQ_GROUP);
        }
}

/* ------------------------------------------------------------------ the ops */

static qat_status scaled_shape(qat_node *node, qat_error *err)
{
    qat_status const st = qat_weights_shape(node, err);
    if (st)
        return st;
    bool const outputs_last = (int)node->attrs[FQW_AXIS] == node->shape.rank - 1;
    if (node->op == &qat_op_fgq_weights && (outputs_last || qat_shape_channels(&node->shape) < 2))
        return qat_fail(err, QAT_ERR_UNSUPPORTED,
                        "%s: fgq groups input channels, but these filters have only one: give the "
                        "layer other weight_ranges",
                        node->inputs[0]->name);
    return QAT_OK;
}

static void channel_forward(void *context, int channel, int thread)
{
    const qat_node *node = context;
    qat_weight_view const view = qat_weight_view_of(node);
    bool const grouped = node->op == &qat_op_fgq_weights;
    magnitude const m = grouped ? (magnitude){0} : magnitude_of(node, &view, channel);
    for (int o = 0; o < view.outer; o++) {
        const float *w = run_of(node, &view, o, channel);
        float *y = node->value + (w - node->inputs[0]->value);
        if (grouped)
            scale_rows(w, y, (size_t)view.inner, (size_t)qat_shape_channels(&node->shape));
        else
            scale_run(m, w, y, (size_t)view.inner);
    }
}

static void scaled_forward(qat_node *node, const qat_run *run)
{
    qat_weights_forward(node, run, channel_forward);
}

static void scaled_backward(qat_node *node, const qat_run *run)
{
    if (node->inputs[0]->grad)
        qat_accumulate(node->inputs[0]->grad, node->grad, qat_shape_count(&node->shape));
}

/** The largest |y| of a channel of fgq, which is shown as its range. */
static float largest_of(const qat_node *node, const qat_weight_view *view, int channel)
{
    float largest = 0;
    for (int o = 0; o < view->outer; o++)
        for (int i = 0; i < view->inner; i++)
            largest = fmaxf(largest, fabsf(run_of(node, view, o, channel)[i]));
    return largest;
}

/** Codes t + Z with two bits. */
static qat_status scaled_qparams(const qat_node *node, int channel, qat_qparams *p, qat_error *err)
{
    int32_t lo, hi;
    qat_weight_view const view = qat_weight_view_of(node);
    float const alpha = node->op == &qat_op_fgq_weights ? largest_of(node, &view, channel)
                                                        : magnitude_of(node, &view, channel).alpha;
    qat_code_range((qat_layout)node->attrs[FQW_LAYOUT], 2, true, &lo, &hi);
    *p = qat_given_qparams(alpha > 0 ? alpha : 1, lo + 1, lo, hi);
    return QAT_OK;
}

static const char *no_integers_of_groups(int bits)
{
    return "layers of weights by fgq, which have a scale for every 4 input channels and the engine "
           "one for an output channel,";
}

#define SCALED(name_, no_integers_)                                                                \
    {                                                                                              \
        .name = name_, .weights = true, .qparams = scaled_qparams, .own_values = true,             \
        .no_integers = no_integers_                                                                \
    }

static const qat_quantizer bwn = SCALED("bwn", NULL), twn = SCALED("twn", NULL),
                           fgq = SCALED("fgq", no_integers_of_groups);

static const qat_quant bwn_quant = {.role = QAT_ROLE_QUANTIZER, .quantizer = &bwn},
                       twn_quant = {.role = QAT_ROLE_QUANTIZER, .quantizer = &twn},
                       fgq_quant = {.role = QAT_ROLE_QUANTIZER, .quantizer = &fgq};

#define SCALED_OP(name_, meaning_, quant_)                                                         \
    {                                                                                              \
        .name = name_, .meaning = meaning_, .min_inputs = 1, .max_inputs = 1,                      \
        .attrs = qat_fake_quant_weights_attrs, .shape = scaled_shape, .forward = scaled_forward,   \
        .backward = scaled_backward, .quant = quant_,                                              \
    }

const qat_op qat_op_bwn_weights =
    SCALED_OP("bwn_weights", "binary weights: mean |w| times the sign", &bwn_quant);
const qat_op qat_op_twn_weights = SCALED_OP(
    "twn_weights", "ternary weights with one magnitude per channel or tensor", &twn_quant);
const qat_op qat_op_fgq_weights =
    SCALED_OP("fgq_weights", "ternary weights with one magnitude for every 4 inputs", &fgq_quant);
