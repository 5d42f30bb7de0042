/**
 * Claims about what is quantized, on the float32 simulation of a trained network: 0 exact or not
 * (section 2.1, reference 002), and weights that never take the lowest code (section 3.1).
 *
 *     0 exact          y = S round(x / S)
 *     0 half way       y = S (floor(x / S) + 1/2), clamped: every 0 becomes S / 2
 */
#include "bench/claims/claims.h"

#include "checkpoint/restore.h"
#include "qat/quantizer.h"

#include <math.h>
#include <stdio.h>

/* ------------------------------------------------------------------ zero */

struct zero {
    double exact_error, error; /* sums of y - x in quanta */
    int64_t values;
};

static float half_way(const qat_qparams *p, float x)
{
    float const lo = p->min + p->scale / 2, hi = p->max - p->scale / 2;
    float const y = (floorf(x / p->scale) + 0.5f) * p->scale;
    return y < lo ? lo : y > hi ? hi : y;
}

/** Activations: from 0 exact to 0 half way between two codes. */
static void visit_zero(void *context, qat_node *node)
{
    struct zero *z = context;
    qat_qparams p;
    if (!qat_node_quantizes(node, false) || qat_node_qparams(node, &p, NULL))
        return;
    const float *x = node->inputs[0]->value;
    for (size_t i = 0; i < qat_shape_count(&node->shape); i++) {
        float const inside = fminf(fmaxf(x[i], p.min), p.max), y = half_way(&p, x[i]);
        z->exact_error += (double)((node->value[i] - inside) / p.scale);
        z->error += (double)((y - inside) / p.scale);
        z->values++;
        node->value[i] = y;
    }
}

static qat_status compare_zero(const claims_net *net, const claims_answers *base, qat_error *err)
{
    struct zero z = {0};
    claims_answers other;
    qat_status const st = claims_ask_simulation(net, visit_zero, &z, &other, err);
    if (!st) {
        double const n = (double)z.values, bias = z.error / n, exact = z.exact_error / n;
        printf(
            "claim: a zero that is no code brings a bias: %s: mean error %+.4f quanta with 0 half "
            "way, %+.4f with 0 exact\n",
            fabs(bias) > 2 * fabs(exact) && fabs(bias) > 0.01 ? "found" : "not found", bias, exact);
        claims_print_cost("a zero that is no code", base, &other);
    }
    claims_free_answers(&other);
    return st;
}

/* ------------------------------------------------------------------ the lowest code */

struct lowest {
    double without, with; /* sums of (y - w)^2, each tensor in units of its mean square */
    int tensors;
};

static double squares(const float *x, const float *y, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        double const d = (double)x[i] - (y ? (double)y[i] : 0);
        sum += d * d;
    }
    return sum;
}

/** y = w on all codes of so many bits. */
static void on_all_codes(const float *w, float *y, size_t n, int bits)
{
    float min = 0, max = 0;
    for (size_t i = 0; i < n; i++) {
        min = fminf(min, w[i]);
        max = fmaxf(max, w[i]);
    }
    qat_qparams const p = qat_choose_qparams(min, max, 0, (1 << bits) - 1, true);
    for (size_t i = 0; i < n; i++)
        y[i] = qat_real_of(&p, qat_code(&p, w[i]));
}

static void visit_lowest(void *context, qat_node *node)
{
    struct lowest *l = context;
    if (!qat_node_quantizes(node, true))
        return;
    const float *w = node->inputs[0]->value;
    size_t const n = qat_shape_count(&node->shape);
    double const all = squares(w, NULL, n);
    l->without += all > 0 ? squares(w, node->value, n) / all : 0;
    on_all_codes(w, node->value, n, (int)qat_attr(node, "bits"));
    l->with += all > 0 ? squares(w, node->value, n) / all : 0;
    l->tensors++;
}

static qat_status compare_lowest(const claims_net *net, const claims_answers *base, qat_error *err)
{
    struct lowest l = {0};
    claims_answers other;
    if (net->restored->checkpoint->quant.layout != QAT_LAYOUT_UINT8)
        return QAT_OK; /* the comparison is of asymmetric ranges */
    qat_status const st = claims_ask_simulation(net, visit_lowest, &l, &other, err);
    if (!st) {
        printf(
            "weights without their lowest code: mean square error %.6g of their own mean square, "
            "with it %.6g: %+.2f %%\n",
            l.without / l.tensors, l.with / l.tensors, 100 * (l.without / l.with - 1));
        claims_print_cost("never using the lowest code", &other, base);
    }
    claims_free_answers(&other);
    return st;
}

qat_status claims_about_simulation(claims_net *net, qat_error *err)
{
    claims_answers base;
    qat_status st = claims_ask_simulation(net, NULL, NULL, &base, err);
    if (!st)
        st = compare_zero(net, &base, err);
    if (!st)
        st = compare_lowest(net, &base, err);
    claims_free_answers(&base);
    return st;
}
