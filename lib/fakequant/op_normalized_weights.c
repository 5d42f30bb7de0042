/**
 * Weights that are normalised before they are rounded. A group is an output channel (layout int8)
 * or the tensor. y = S c with integers c; S is the group's scale, so the engine runs them.
 *
 *     dorefa         i = floor(n (tanh(w) / tanh(m) + 1) / 2 + 1/2)    c = 2 i - n    S = m / n
 *                    n = 2^bits - 1, m = max |w|
 *     weight_norm    c = clamp(floor((w - mu) / S + 1/2), -P, P)       S = D sigma
 *                    mu, sigma: mean and standard deviation, P = 2^(bits - 1) - 1
 *     apot           c = the level nearest to (w - mu) / S             S = D sigma
 *                    levels: 0 and +- sums of powers of two
 *
 * (Zhou et al. 2016, DoReFa-Net, eq. 9, whose values lie in [-1, 1]; times m a folded batch norm
 * keeps its scale. Li et al. 2020, Additive Powers-of-Two Quantization, section 2.3, and Yamamoto
 * 2021, Learnable Companding Quantization, which multiplies by sigma again. apot's levels are those
 * of Li et al., too.) D is the step with the least squared error for normally distributed values.
 *
 * The codes of dorefa are odd, 2^bits of them, and 0 is none of them. They have bits + 1 bits.
 *
 * Gradients pass straight through the rounding, and are exact otherwise, also through m, mu and
 * sigma. With g = dL/dy, T = tanh(m), r = tanh(w) / T, N values and e = c - (w - mu) / S:
 *
 *     dorefa         dw = g m (1 - tanh(w)^2) / T
 *                    dm = sum g (c / n - m r (1 - T^2) / T)            to the largest |w|
 *     the others     dw = g - mean(g) + (w - mu) / (N sigma) D K       g: of those inside
 *                    K = sum g e inside + sum g c outside
 *
 * Inside is what rounds to -P..P, or for apot what lies between the ends. A group of one weight is
 * not normalised by mean and deviation: it would be 0.
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

/** By bits: the step with the least E (x - D clamp(round(x / D), -P, P))^2, x normal. */
static const double steps[] = {
    [2] = 1.22400636, [3] = 0.65076970, [4] = 0.35341132, [5] = 0.19324852,
    [6] = 0.10548759, [7] = 0.05726128, [8] = 0.03087009,
};

enum { APOT_LEVELS = 16 };

/** By bits: the levels of apot from 0 on, the bits of their codes, and D. */
static const struct apot {
    int n, code_bits;
    double step;
    uint8_t levels[APOT_LEVELS];
} apot_of[] = {
    [2] = {2, 2, 1.22400636, {0, 1}},
    [3] = {4, 4, 0.51812721, {0, 1, 2, 4}},
    [4] = {8, 5, 0.26279134, {0, 1, 2, 3, 4, 6, 8, 10}},
    [5] = {16, 7, 0.06995280, {0, 1, 2, 3, 4, 6, 8, 9, 12, 16, 18, 24, 32, 33, 36, 48}},
};

/** What is known about a group. */
typedef struct measure {
    float scale;   /* 0: all values are 0 */
    double center; /* mu; dorefa: 0 */
    double size;   /* dorefa: m; others: sigma, 0: not normalised */
    size_t largest;
} measure;

/** Where the weights of a group are: runs of view.inner values. */
typedef struct group {
    const qat_node *node;
    qat_weight_view view;
    int channel;
} group;

static group group_at(const qat_node *node, int channel)
{
    return (group){node, qat_weight_view_of(node), channel};
}

static double count_of(const group *g)
{
    return (double)g->view.outer * g->view.inner;
}

/** The first position of a run. Loops over a group: for each run, for each i from here on. */
static size_t run_of(const group *g, int outer)
{
    return qat_weight_run(&g->view, outer, g->channel);
}

static bool is_dorefa(const qat_node *node)
{
    return node->op == &qat_op_dorefa_weights;
}

static int bits_of(const qat_node *node)
{
    return (int)node->attrs[FQW_BITS];
}

static bool is_apot(const qat_node *node)
{
    return node->op == &qat_op_apot_weights;
}

/** n, P, or the largest level. */
static int most_of(const qat_node *node)
{
    if (is_apot(node))
        return apot_of[bits_of(node)].levels[apot_of[bits_of(node)].n - 1];
    return is_dorefa(node) ? (1 << bits_of(node)) - 1 : (1 << (bits_of(node) - 1)) - 1;
}

/** D */
static double step_of(const qat_node *node)
{
    return is_apot(node) ? apot_of[bits_of(node)].step : steps[bits_of(node)];
}

static int code_bits_of(const qat_node *node)
{
    return is_apot(node) ? apot_of[bits_of(node)].code_bits : bits_of(node) + is_dorefa(node);
}

/** A scale that float32 has; else 0. A NaN stays. */
static float storable(double scale)
{
    return scale < (double)FLT_MIN ? 0 : (float)scale;
}

/* ------------------------------------------------------------------ measures */

static measure measure_dorefa(const group *g)
{
    const float *w = g->node->inputs[0]->value;
    measure m = {.largest = run_of(g, 0)};
    for (int o = 0; o < g->view.outer; o++)
        for (size_t i = run_of(g, o); i < run_of(g, o) + (size_t)g->view.inner; i++)
            if (fabsf(w[i]) > fabsf(w[m.largest]) || isnan(w[i]))
                m.largest = i;
    m.size = fabs((double)w[m.largest]);
    m.scale = storable(m.size / most_of(g->node));
    return m;
}

static double sum_of(const group *g, double center, int power)
{
    const float *w = g->node->inputs[0]->value;
    double sum = 0;
    for (int o = 0; o < g->view.outer; o++)
        for (size_t i = run_of(g, o); i < run_of(g, o) + (size_t)g->view.inner; i++) {
            double const d = (double)w[i] - center;
            sum += power == 2 ? d * d : d;
        }
    return sum;
}

static measure measure_norm(const group *g)
{
    double const n = count_of(g), only = (double)g->node->inputs[0]->value[run_of(g, 0)];
    if (n == 1)
        return (measure){.scale = storable(fabs(only) / most_of(g->node))};
    measure m = {.center = sum_of(g, 0, 1) / n};
    m.size = sqrt(sum_of(g, m.center, 2) / n);
    m.scale = storable(step_of(g->node) * m.size);
    return m;
}

static measure measure_of(const group *g)
{
    return is_dorefa(g->node) ? measure_dorefa(g) : measure_norm(g);
}

/* ------------------------------------------------------------------ values */

static double within(double x, double most)
{
    return x < -most ? -most : x > most ? most : x;
}

/** w in codes, before rounding. */
static double in_codes(const measure *m, float w)
{
    return ((double)w - m->center) / (double)m->scale;
}

/** The nearest level; of two as near the one farther from 0. */
static double nearest_level(const struct apot *a, double code)
{
    int i = a->n - 1;
    while (i > 0 && 2 * fabs(code) < a->levels[i] + a->levels[i - 1])
        i--;
    return code < 0 ? -a->levels[i] : a->levels[i];
}

/** c. The measure must have a finite scale above 0. */
static double code_of(const qat_node *node, const measure *m, float w)
{
    int const most = most_of(node);
    if (is_apot(node))
        return nearest_level(&apot_of[bits_of(node)], in_codes(m, w));
    if (!is_dorefa(node))
        return within(floor(in_codes(m, w) + 0.5), most);
    double const share = tanh((double)w) / tanh(m->size);
    return within(2 * floor(most * (share + 1) / 2 + 0.5) - most, most);
}

static float value_of(const qat_node *node, const measure *m, float w)
{
    if (!isfinite(m->scale))
        return NAN; /* so that a run that went wrong is noticed */
    return m->scale > 0 ? m->scale * (float)code_of(node, m, w) : 0;
}

static void forward_channel(void *context, int channel, int thread)
{
    const qat_node *node = context;
    group const g = group_at(node, channel);
    const float *w = node->inputs[0]->value;
    measure *m = (measure *)node->scratch + channel;
    *m = measure_of(&g);
    for (int o = 0; o < g.view.outer; o++)
        for (size_t i = run_of(&g, o); i < run_of(&g, o) + (size_t)g.view.inner; i++)
            node->value[i] = value_of(node, m, w[i]);
}

static void normalized_forward(qat_node *node, const qat_run *run)
{
    qat_weights_forward(node, run, forward_channel);
}

/* ------------------------------------------------------------------ gradients */

static void backward_dorefa(const group *g, const measure *m)
{
    const float *w = g->node->inputs[0]->value, *up = g->node->grad;
    float *dw = g->node->inputs[0]->grad;
    double const n = most_of(g->node), top = tanh(m->size), tail = (1 - top * top) / top;
    double by_size = 0;
    for (int o = 0; o < g->view.outer; o++)
        for (size_t i = run_of(g, o); i < run_of(g, o) + (size_t)g->view.inner; i++) {
            double const t = tanh((double)w[i]), u = (double)up[i];
            dw[i] += (float)(u * m->size * (1 - t * t) / top);
            by_size += u * (code_of(g->node, m, w[i]) / n - m->size * t / top * tail);
        }
    dw[m->largest] += (float)(w[m->largest] < 0 ? -by_size : by_size);
}

static bool is_inside(const qat_node *node, const measure *m, float w)
{
    return fabs(in_codes(m, w)) < most_of(node) + (is_apot(node) ? 0 : 0.5);
}

static void backward_norm(const group *g, const measure *m)
{
    const float *w = g->node->inputs[0]->value, *up = g->node->grad;
    float *dw = g->node->inputs[0]->grad;
    bool const scales = m->scale > 0 && m->size > 0;
    double inside = 0, by_step = 0;
    for (int o = 0; o < g->view.outer; o++)
        for (size_t i = run_of(g, o); i < run_of(g, o) + (size_t)g->view.inner; i++) {
            bool const in = !scales || is_inside(g->node, m, w[i]);
            inside += in ? (double)up[i] : 0;
            if (scales)
                by_step +=
                    (double)up[i] * (code_of(g->node, m, w[i]) - (in ? in_codes(m, w[i]) : 0));
        }
    double const mean = inside / count_of(g);
    double const slope = scales ? step_of(g->node) * by_step / (count_of(g) * m->size) : 0;
    for (int o = 0; o < g->view.outer; o++)
        for (size_t i = run_of(g, o); i < run_of(g, o) + (size_t)g->view.inner; i++) {
            bool const in = !scales || is_inside(g->node, m, w[i]);
            dw[i] += (float)((in ? (double)up[i] : 0) - mean + slope * ((double)w[i] - m->center));
        }
}

static void backward_channel(void *context, int channel, int thread)
{
    const qat_node *node = context;
    group const g = group_at(node, channel);
    const measure *m = (const measure *)node->scratch + channel;
    float *dw = node->inputs[0]->grad;
    bool const single = !is_dorefa(node) && count_of(&g) == 1;
    if (!single && !is_dorefa(node))
        backward_norm(&g, m);
    else if (!single && m->scale > 0)
        backward_dorefa(&g, m);
    else
        for (int o = 0; o < g.view.outer; o++)
            qat_accumulate(dw + run_of(&g, o), node->grad + run_of(&g, o), (size_t)g.view.inner);
}

static void normalized_backward(qat_node *node, const qat_run *run)
{
    qat_node *w = node->inputs[0];
    if (w->grad && qat_past_delay(run, node->attrs[FQW_DELAY]))
        qat_parallel(qat_weight_view_of(node).channels, backward_channel, node);
    else if (w->grad)
        qat_accumulate(w->grad, node->grad, qat_shape_count(&node->shape));
}

/* ------------------------------------------------------------------ the ops */

static qat_status normalized_shape(qat_node *node, qat_error *err)
{
    qat_status const st = qat_weights_shape(node, err);
    if (st)
        return st;
    if (is_apot(node) && bits_of(node) > APOT_MOST_BITS)
        return qat_fail(err, QAT_ERR_UNSUPPORTED,
                        "%s: apot needs 2 to 5 bits, but weight_bits = %d", node->inputs[0]->name,
                        bits_of(node));
    if (is_dorefa(node) && bits_of(node) > DOREFA_MOST_BITS)
        return qat_fail(err, QAT_ERR_UNSUPPORTED,
                        "%s: dorefa needs 2 to 7 bits, because its codes are odd and have one bit "
                        "more, but weight_bits = %d",
                        node->inputs[0]->name, bits_of(node));
    node->scratch_bytes = (size_t)qat_weight_view_of(node).channels * sizeof(measure);
    return QAT_OK;
}

static qat_status normalized_qparams(const qat_node *node, int channel, qat_qparams *p,
                                     qat_error *err)
{
    int32_t lo, hi;
    group const g = group_at(node, channel);
    float const scale = measure_of(&g).scale;
    qat_code_range((qat_layout)node->attrs[FQW_LAYOUT], code_bits_of(node), true, &lo, &hi);
    *p = qat_given_qparams(scale > 0 && isfinite(scale) ? scale : 1, (lo + hi) / 2, lo, hi);
    return QAT_OK;
}

static const qat_quantizer
    dorefa = {.name = "dorefa", .weights = true, .qparams = normalized_qparams, .own_values = true},
    weight_norm = {.name = "weight_norm",
                   .weights = true,
                   .qparams = normalized_qparams,
                   .own_values = true},
    apot = {.name = "apot", .weights = true, .qparams = normalized_qparams, .own_values = true};
static const qat_quant dorefa_quant = {.role = QAT_ROLE_QUANTIZER, .quantizer = &dorefa},
                       weight_norm_quant = {.role = QAT_ROLE_QUANTIZER, .quantizer = &weight_norm},
                       apot_quant = {.role = QAT_ROLE_QUANTIZER, .quantizer = &apot};

#define NORMALIZED_OP(name_, meaning_, quant_)                                                     \
    {                                                                                              \
        .name = name_, .meaning = meaning_, .min_inputs = 1, .max_inputs = 1,                      \
        .attrs = qat_fake_quant_weights_attrs, .shape = normalized_shape,                          \
        .forward = normalized_forward, .backward = normalized_backward, .quant = quant_,           \
    }

const qat_op qat_op_dorefa_weights =
    NORMALIZED_OP("dorefa_weights", "weights through tanh, 2^bits values without 0", &dorefa_quant);
const qat_op qat_op_weight_norm_weights = NORMALIZED_OP(
    "weight_norm_weights", "weights of mean 0, in steps of a share of their standard deviation",
    &weight_norm_quant);
const qat_op qat_op_apot_weights = NORMALIZED_OP(
    "apot_weights", "weights of mean 0 on sums of powers of two, scaled by their deviation",
    &apot_quant);
