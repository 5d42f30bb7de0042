/**
 * Compares the ranges that calibration estimated with the values that the float network takes on
 * the same data (extents.c). w is the width of a bin. The ends of a range may be wrong by D (SLACK
 * of the extent), because calibration runs the network in another graph.
 *
 *     every estimator   smallest - D <= range's ends <= largest + D: it may cut, never widen
 *     minmax            they are smallest and largest, within D
 *     percentile:P      at most the share 1 - P/100 lies beyond an end by more than D; and if the
 *                       end were moved inwards by w + D, a larger share would, and the whole bin
 *                       in which it then lies. If all values are equal, the range is theirs
 *     mse               root mean square error <= that of the best range + w / 32
 *
 * For mse, calibration counts the same values, but float32 may bring a few of them into the next
 * bin. If this happened to 1 in 4096, each of the two errors would change by w / 64.
 */
#include "certify/calibration/extents.h"

#include <math.h>
#include <string.h>

static const double SLACK = 1e-5, OTHER_BIN = 1.0 / 32;

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

/** Where a value lies, in bins, which have a width. */
static double place(const struct compare *c, double value)
{
    return (value - c->e->min[c->root]) / c->width;
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

/**
 * An end at 0 cannot be nearer. Two ends that meet stop each other, but then all bins from the
 * lower one on hold at least half of the values. Shares that are equal in decimals are ties in
 * float64.
 */
static qat_status check_percentile(const struct compare *c, double percent)
{
    double const may = 1 - percent / 100, tie = 1e-9, room = c->width + c->slack;
    double const below = share(c, 0, floor(place(c, c->low - c->slack))),
                 above = share(c, ceil(place(c, c->high + c->slack)), CERT_BINS),
                 more_below = share(c, 0, ceil(place(c, c->low + room))),
                 more_above = share(c, floor(place(c, c->high - room)), CERT_BINS);
    if (below > may + tie)
        return refuse_share(c, c->low, below, may);
    if (above > may + tie)
        return refuse_share(c, c->high, above, may);
    if (c->low < 0 && more_below < may - tie)
        return refuse_width(c, c->low, may);
    return c->high > 0 && more_above < may - tie ? refuse_width(c, c->high, may) : QAT_OK;
}

static qat_status check_error(const struct compare *c)
{
    double middles[CERT_BINS], counts[CERT_BINS];
    const cert *graph = &c->e->c;
    cert_spread x = {.values = middles, .counts = counts};
    int const bits = graph->nodes[c->root].settings.activation_bits;
    cert_codes_of_range codes = {.symmetric = bits == QAT_WIDE_BITS};
    for (int i = 0; i < CERT_BINS; i++) {
        if (c->e->counts[c->root][i] <= 0)
            continue;
        middles[x.n] = c->e->min[c->root] + (i + 0.5) * c->width;
        counts[x.n++] = c->e->counts[c->root][i];
        x.total += c->e->counts[c->root][i];
    }
    cert_codes(c->e->source.quant.layout, bits, false, &codes.lo, &codes.hi);
    double const error = cert_range_error(&x, &codes, c->low, c->high),
                 least = cert_least_error(&x, &codes, c->min, c->max);
    if (error <= least + OTHER_BIN * c->width)
        return QAT_OK;
    return qat_fail(
        c->err, QAT_ERR_MISMATCH,
        "%s: its calibrated range %g..%g quantizes the float network's values on the same data "
        "with an error of %g, but another range has %g; the estimator mse must choose the smallest",
        c->tensor, c->low, c->high, error, least);
}

static qat_status check_by(const struct compare *c, const char *estimator, double parameter)
{
    bool const counted = has_counts(c), cuts = strcmp(estimator, "percentile") == 0;
    bool const equal = cuts && !(c->width > 0);
    qat_status st = check_extents(c, equal || strcmp(estimator, "minmax") == 0);
    if (!st && counted && cuts && !equal)
        st = check_percentile(c, parameter);
    if (!st && counted && strcmp(estimator, "mse") == 0)
        st = check_error(c);
    return st;
}

static qat_status check_range(const cert_extents *e, int root, const qat_graph *eval,
                              const char *estimator, double parameter, qat_error *err)
{
    size_t count = 0;
    const qat_node *node = cert_class_node(&e->c, root);
    qat_certify_source source = e->source;
    cert graph = e->c;
    source.values = qat_certify_graph_values;
    source.context = eval;
    graph.source = &source;
    const float *range = cert_class_values(&graph, root, "range", &count);
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
    for (int i = 0; !st && i < 2 * e->c.count; i++)
        if (e->broken[i] || e->min[i] <= e->max[i])
            st = check_range(e, i, eval, estimator, parameter, err);
    return st;
}
