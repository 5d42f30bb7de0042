/**
 * Claims about the integer graph: rules of rounding (appendix B, reference 004), 8-bit biases and
 * clamps that do nothing (section 2.4).
 */
#include "bench/claims/claims.h"

#include "integer/quant_ops.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ rules */

/** How far layers shift: a tie is one of 2^n remainders. */
static void print_shifts(const qat_qgraph *graph)
{
    int least = 31, most = -31;
    for (int i = 0; i < graph->n_ops; i++) {
        if (!qat_qop_accumulates(&graph->ops[i]))
            continue;
        const qat_qtensor *t = &graph->tensors[graph->ops[i].inputs[QAT_IN_SHIFT]];
        const int32_t *shift = t->data;
        for (size_t k = 0; k < qat_qtensor_count(t); k++) {
            least = -shift[k] < least ? -shift[k] : least;
            most = -shift[k] > most ? -shift[k] : most;
        }
    }
    printf("accumulators are shifted right by n = %d to %d\n", least, most);
}

static qat_status compare_rules(const claims_net *net, const claims_answers *base, qat_error *err)
{
    qat_status st = QAT_OK;
    for (int i = 1; !st && i < CLAIMS_RULES; i++) {
        claims_answers other;
        st = claims_ask_integers(net, claims_rules[i].requantize, &other, err);
        if (!st)
            claims_print_cost(claims_rules[i].name, base, &other);
        claims_free_answers(&other);
    }
    return st;
}

/* ------------------------------------------------------------------ biases of 8 bits */

/** How far rounding moved the outputs of channels, in quanta. */
struct moved {
    int channels;
    double sum, largest;
};

/** S_x S_w / S_y, of an accumulator's last bit */
static double multiplier_of(const qat_qgraph *graph, const qat_qop *op, int channel)
{
    const qat_qtensor *w = &graph->tensors[op->inputs[QAT_IN_WEIGHTS]];
    float const s = w->channel_scales ? w->channel_scales[channel] : w->scale;
    double const m = (double)graph->tensors[op->inputs[QAT_IN_X]].scale * (double)s /
                     (double)graph->tensors[op->outputs[0]].scale;
    return ldexp(m, -op->fraction);
}

/** The largest bias of a layer becomes 127 steps. Each bias is rounded to the nearest step. */
static void round_biases(const qat_qgraph *graph, const qat_qop *op, struct moved *moved)
{
    const qat_qtensor *t = &graph->tensors[op->inputs[QAT_IN_BIAS]];
    int32_t *bias = t->data;
    int const n = (int)qat_qtensor_count(t);
    int64_t largest = 0;
    for (int i = 0; i < n; i++)
        largest = llabs((long long)bias[i]) > largest ? llabs((long long)bias[i]) : largest;
    double const step = largest > 127 ? (double)largest / 127 : 1;
    for (int i = 0; i < n; i++) {
        int32_t const rounded = (int32_t)round(round(bias[i] / step) * step);
        double const quanta = fabs((double)rounded - bias[i]) * multiplier_of(graph, op, i);
        moved->sum += quanta;
        moved->largest = fmax(moved->largest, quanta);
        bias[i] = rounded;
    }
    moved->channels += n;
}

static void round_all_biases(const qat_qgraph *graph)
{
    struct moved moved = {0};
    for (int i = 0; i < graph->n_ops; i++)
        if (qat_qop_accumulates(&graph->ops[i]))
            round_biases(graph, &graph->ops[i], &moved);
    double const mean = moved.channels ? moved.sum / moved.channels : 0;
    printf("claim: an 8-bit bias shifts whole channels: %s: by %.3f quanta of its output on the "
           "average, by %.3f at most, of %d channels\n",
           moved.largest > 0.5 ? "found" : "not found", mean, moved.largest, moved.channels);
}

static qat_status compare_biases(claims_net *net, const claims_answers *base, qat_error *err)
{
    claims_answers other;
    round_all_biases(net->graph);
    qat_status const st = claims_ask_integers(net, NULL, &other, err);
    if (!st)
        claims_print_cost("an 8-bit bias", base, &other);
    claims_free_answers(&other);
    return st;
}

/* ------------------------------------------------------------------ clamps */

struct clamps {
    int layers, by_saturation; /* both ends are the codes' own */
    int upper;                 /* the upper end is */
};

/** A layer with a ReLU or ReLU6: the tensor it writes is called after that. */
static bool is_clamped(const qat_qtensor *y)
{
    return strstr(y->name, "relu") != NULL;
}

static struct clamps count_clamps(const qat_qgraph *graph)
{
    struct clamps c = {0};
    for (int i = 0; i < graph->n_ops; i++) {
        const qat_qop *op = &graph->ops[i];
        const qat_qtensor *y = &graph->tensors[op->outputs[0]];
        int32_t lo, hi;
        if (!is_clamped(y) || (!qat_qop_accumulates(op) && strcmp(op->op, "add") != 0))
            continue;
        qat_code_range(y->type == QI_S8 ? QAT_LAYOUT_INT8 : QAT_LAYOUT_UINT8, y->bits, false, &lo,
                       &hi);
        bool const upper = op->params[op->n_params - 1] == hi;
        c.layers++;
        c.upper += upper;
        c.by_saturation += upper && op->params[op->n_params - 2] == lo;
    }
    return c;
}

static void print_clamps(const qat_qgraph *graph)
{
    struct clamps const c = count_clamps(graph);
    printf(
        "claim: the activation's clamp is subsumed by the codes' range: %s: of %d layers with one, "
        "%d leave all of it to saturation, %d its upper end\n",
        c.layers > 0 && 2 * c.by_saturation > c.layers ? "found" : "not found", c.layers,
        c.by_saturation, c.upper);
}

qat_status claims_about_integers(claims_net *net, qat_error *err)
{
    claims_answers base;
    print_clamps(net->graph);
    print_shifts(net->graph);
    qat_status st = claims_ask_integers(net, NULL, &base, err);
    if (!st)
        st = compare_rules(net, &base, err);
    if (!st)
        st = compare_biases(net, &base, err); /* the graph's biases are no longer what they were */
    claims_free_answers(&base);
    return st;
}
