/** Cross-layer range equalization (ptq.h) of the pairs that layer_pairs.h finds. */
#include "ptq/layer_pairs.h"
#include "qat/ptq.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double SETTLED = 1e-3; /* largest |log s| of the last round */
enum { MOST_ROUNDS = 100 };

typedef qat_layer_pair pair;

typedef struct pairs {
    pair *items;
    int count;
    double *ranges; /* working memory: two per channel */
} pairs;

static qat_status find_pairs(pairs *all, const qat_graph *graph, qat_equalized *result,
                             qat_error *err)
{
    int found, widest = 1;
    qat_status const st = qat_layer_pairs(graph, &all->items, &found, err);
    if (st)
        return st;
    for (int k = 0; k < found; k++) {
        widest = all->items[k].channels > widest ? all->items[k].channels : widest;
        if (all->items[k].behind_bound)
            result->behind_bound++;
        else
            all->items[all->count++] = all->items[k];
    }
    result->pairs = all->count;
    all->ranges = calloc(2 * (size_t)widest, sizeof *all->ranges);
    return all->ranges ? QAT_OK : qat_out_of_memory(err, "equalization");
}

/* ------------------------------------------------------------------ one pair */

static void grow(double *range, float w)
{
    double const a = fabs((double)w);
    *range = a > *range ? a : *range;
}

/**
 * Measure r1 and r2 of every channel: the largest |w| of the weights that make it, and of those
 * that read it.
 */
static void measure(const pair *p, double *r1, double *r2)
{
    memset(r1, 0, (size_t)p->channels * sizeof *r1);
    memset(r2, 0, (size_t)p->channels * sizeof *r2);
    for (size_t i = 0; i < qat_shape_count(&qat_weights_of(p->first)->shape); i++)
        grow(&r1[qat_output_channel(p->first, i)], qat_weights_of(p->first)->value[i]);
    for (size_t i = 0; i < qat_shape_count(&qat_weights_of(p->second)->shape); i++)
        grow(&r2[qat_input_channel(p->second, i, p->channels)],
             qat_weights_of(p->second)->value[i]);
}

static float bias_of(const pair *p, int c)
{
    return p->bias ? p->bias->inputs[1]->value[c] : 0;
}

/** Ranges below this share of the largest one are left alone: such weights do nothing. */
static const double NOTHING = 0x1p-24;

static double largest_of(const double *ranges, int n)
{
    double largest = 0;
    for (int c = 0; c < n; c++)
        largest = fmax(largest, ranges[c]);
    return largest;
}

/**
 * The factors for the channel's own weights and for the weights that read it. If one range is 0,
 * the factor of the other is 0, which is the limit of the formula.
 */
static void factors(const pair *p, int c, double r1, double r2, double *own, double *readers)
{
    bool const always_0 = r1 == 0 && (p->rectified ? bias_of(p, c) <= 0 : bias_of(p, c) == 0);
    *own = r2 == 0 ? 0 : 1;
    *readers = always_0 ? 0 : 1;
    if (r1 == 0 || r2 == 0)
        return;
    double const s = sqrt(r1 / r2);
    if (!isfinite(s) || !((float)s > 0) || !((float)(1 / s) > 0))
        return;
    *own = 1 / s;
    *readers = s;
}

/**
 * Give both sides of every channel equal ranges. Returns the largest |log s|. own, readers: r1, r2
 * first.
 */
static double equalize(const pair *p, double *own, double *readers)
{
    double const least1 = NOTHING * largest_of(own, p->channels);
    double const least2 = NOTHING * largest_of(readers, p->channels);
    double moved = 0;
    for (int c = 0; c < p->channels; c++) {
        double const r1 = own[c], r2 = readers[c];
        own[c] = readers[c] = 1;
        if ((r1 > 0 && r1 < least1) || (r2 > 0 && r2 < least2))
            continue;
        factors(p, c, r1, r2, &own[c], &readers[c]);
        if (own[c] > 0 && readers[c] > 0)
            moved = fmax(moved, fabs(log(readers[c])));
        if (p->bias)
            p->bias->inputs[1]->value[c] = (float)((double)bias_of(p, c) * own[c]);
    }
    for (size_t i = 0; i < qat_shape_count(&qat_weights_of(p->first)->shape); i++)
        qat_weights_of(p->first)->value[i] = (float)((double)qat_weights_of(p->first)->value[i] *
                                                     own[qat_output_channel(p->first, i)]);
    for (size_t i = 0; i < qat_shape_count(&qat_weights_of(p->second)->shape); i++)
        qat_weights_of(p->second)->value[i] =
            (float)((double)qat_weights_of(p->second)->value[i] *
                    readers[qat_input_channel(p->second, i, p->channels)]);
    return moved;
}

/* ------------------------------------------------------------------ all pairs */

/**
 * The largest range of an output channel of a pair's first layer divided by its smallest that is
 * equalized; the worst of all pairs.
 */
static double worst_ratio(const pairs *all)
{
    double worst = 1;
    for (int k = 0; k < all->count; k++) {
        const pair *p = &all->items[k];
        measure(p, all->ranges, all->ranges + p->channels);
        double const largest = largest_of(all->ranges, p->channels);
        double smallest = largest;
        for (int c = 0; c < p->channels; c++)
            if (all->ranges[c] > 0 && all->ranges[c] >= NOTHING * largest)
                smallest = fmin(smallest, all->ranges[c]);
        worst = largest > 0 ? fmax(worst, largest / smallest) : worst;
    }
    return worst;
}

static double run_round(const pairs *all)
{
    double moved = 0;
    for (int k = 0; k < all->count; k++) {
        double *r1 = all->ranges, *r2 = r1 + all->items[k].channels;
        measure(&all->items[k], r1, r2);
        moved = fmax(moved, equalize(&all->items[k], r1, r2));
    }
    return moved;
}

qat_status qat_equalize(qat_graph *folded, qat_equalized *result, qat_error *err)
{
    pairs all = {0};
    *result = (qat_equalized){0};
    qat_status const st = find_pairs(&all, folded, result, err);
    if (!st) {
        result->worst_ratio = worst_ratio(&all);
        for (double moved = INFINITY; moved > SETTLED && result->rounds < MOST_ROUNDS;
             result->rounds++)
            moved = run_round(&all);
        result->worst_ratio_after = worst_ratio(&all);
    }
    free(all.items);
    free(all.ranges);
    return st;
}
