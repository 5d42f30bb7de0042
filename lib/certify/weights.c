/**
 * Weights of the file against those of the checkpoint, folded: scale and zero point of each
 * channel, and every code.
 *
 *     |q - (w / S + Z)|  <=  1/2 + 2^-12          S, Z: the file's, which are checked first
 *
 * The slack: with at most 255 codes, 5 U of the folded w, 3 U of the per-channel formula's 1 / S,
 * and five roundings of values up to 255: 13 * 255 U < 2^-12.
 */
#include "certify/group.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double mean_abs(const cert_group *g)
{
    double sum = 0;
    for (size_t i = 0; i < cert_group_size(g); i++)
        sum += fabs(cert_group_value(g, i));
    return sum / (double)cert_group_size(g);
}

qat_status cert_refuse_code(const cert_group *g, size_t i, double expected)
{
    return qat_fail(
        g->c->err, QAT_ERR_MISMATCH,
        "%s, weight %zu: the file's code is %d, but the checkpoint gives %.4f before rounding",
        g->name, cert_group_place(g, i), (int)cert_group_code(g, i), expected);
}

qat_status cert_refuse_scale(const cert_group *g, double expected)
{
    return qat_fail(g->c->err, QAT_ERR_MISMATCH,
                    "%s: the file's scale is %.9g, but the checkpoint gives %.9g", g->name,
                    (double)g->scale, expected);
}

/* ------------------------------------------------------------------ silent channels */

/**
 * Do the weights of a channel not move its output, so that its scale may be the one with which the
 * bias fits? All codes are 0 then. That these weights, rounded, moved it by less than 2^-10 of a
 * code allows for half a code in each. most: what a weight can be with its own scale.
 */
static bool is_silent(const cert_group *g, double most)
{
    const cert_weights *w = g->w;
    if (!g->per_channel || !w->biases)
        return false;
    double sum = 0;
    for (size_t i = 0; i < cert_group_size(g); i++) {
        if (cert_group_code(g, i) != g->t->zero_point)
            return false;
        sum += fmin(fabs(cert_group_value(g, i)), most);
    }
    const cert_bias *b = &w->biases[g->channel];
    double const expected = fabs(b->real) / w->bias_unit, slack = b->slack / w->bias_unit;
    double const halves = 1 + (double)cert_group_size(g) / (2.0 * (g->hi - g->t->zero_point));
    return sum * w->reach < 0x1p-10 * halves &&
           fabs((double)g->scale - expected) <= slack + 2 * CERT_U * expected;
}

/* ------------------------------------------------------------------ nearest codes */

static const float *group_values(const cert_group *g, const char *part, int *n)
{
    char name[2 * QAT_NAME_MAX];
    size_t count;
    snprintf(name, sizeof name, "%s/q/%s", g->w->base, part);
    const float *values = cert_find_values(g->c, name, &count);
    size_t const channels = g->per_channel ? (size_t)g->w->channels : 1;
    *n = (int)(count / channels);
    return values && count % channels == 0 && *n > 0 ? values + (size_t)(g->channel * *n) : NULL;
}

static cert_seen seen_now(const cert_group *g)
{
    cert_seen s = {0};
    for (size_t i = 0; i < cert_group_size(g); i++) {
        s.min = fmin(s.min, cert_group_value(g, i));
        s.max = fmax(s.max, cert_group_value(g, i));
    }
    s.mean_abs = mean_abs(g);
    return s;
}

/** Learned values count where a range was seen: min < max. */
static cert_seen seen_of(const cert_group *g, bool symmetric)
{
    enum { MIN, MAX, STEPS, MEAN };
    int n = 0, n_learned = 0;
    const float *range = group_values(g, "range", &n);
    const float *learned = group_values(g, "learned", &n_learned);
    int const wanted = cert_learned_values(g->w->settings->weights, symmetric);
    if (wanted == 0 || !range || n <= MEAN || !learned || n_learned < wanted ||
        !(range[STEPS] > 0 && range[MIN] < range[MAX]))
        return seen_now(g);
    return (cert_seen){(double)range[MIN], (double)range[MAX], (double)range[MEAN], learned};
}

/** What the checkpoint says about frozen weights: 2^20 plus the code, by weight, or 0. */
static qat_status frozen_values(const cert_group *g, const float **frozen)
{
    char name[2 * QAT_NAME_MAX];
    snprintf(name, sizeof name, "%s/q/frozen", g->w->base);
    *frozen = NULL;
    bool const may = g->w->settings->weight_bits <= g->c->source->quant.freeze_bits;
    return may ? cert_values(g->c, name, g->count, frozen) : QAT_OK;
}

/** The code of a frozen weight, within the codes of its bits. */
static int32_t frozen_code(const cert_group *g, float frozen)
{
    enum { FROZEN_ZERO = 1 << 20 };
    float const q = (frozen > 0 ? frozen - FROZEN_ZERO : 0) + (float)g->t->zero_point;
    return q < (float)g->lo ? g->lo : q < (float)g->hi ? (int32_t)q : g->hi;
}

static qat_status check_code(const cert_group *g, size_t i, const float *frozen)
{
    bool const is_frozen = frozen && frozen[cert_group_place(g, i)] > 0;
    int32_t const fixed = is_frozen ? frozen_code(g, frozen[cert_group_place(g, i)]) : 0;
    if (is_frozen ? cert_group_code(g, i) == fixed
                  : cert_near_code(cert_group_value(g, i), (double)g->scale, g->t->zero_point,
                                   g->lo, g->hi, CERT_CODE_SLACK, cert_group_code(g, i)))
        return QAT_OK;
    return cert_refuse_code(
        g, i, is_frozen ? fixed : cert_group_value(g, i) / (double)g->scale + g->t->zero_point);
}

static qat_status check_nearest(const cert_group *g)
{
    const float *frozen;
    const cert_settings *s = g->w->settings;
    bool const symmetric = g->t->type == QI_S8 || s->symmetric;
    cert_grid const grid = cert_grid_of_quantizer(s->weights, seen_of(g, symmetric), symmetric,
                                                  s->power_of_two, g->lo, g->hi, CERT_FOLD_SLACK);
    if (is_silent(g, 2 * grid.scale * (g->hi - g->lo))) /* 2: of a power of two */
        return QAT_OK;
    qat_status st = cert_check_grid(g->c, g->name, &grid, g->scale, g->t->zero_point);
    if (!st)
        st = frozen_values(g, &frozen);
    for (size_t i = 0; !st && i < cert_group_size(g); i++)
        st = check_code(g, i, frozen);
    return st;
}

/* ------------------------------------------------------------------ one magnitude: bwn, twn */

static int sign(double x)
{
    return x < 0 ? -1 : 1;
}

static double max_abs(const cert_group *g)
{
    double max = 0;
    for (size_t i = 0; i < cert_group_size(g); i++)
        max = fmax(max, fabs(cert_group_value(g, i)));
    return max;
}

/** Is it less than float32's normal numbers? Then it may have become 0 when it was folded. */
static bool may_vanish(double x)
{
    return fabs(x) < (double)FLT_MIN;
}

/**
 * threshold < 0: every weight has the magnitude. Near the threshold, both may be. Where all weights
 * are 0, or their mean is too small for a scale, so is the magnitude, and all codes are those of 0.
 */
static qat_status check_signs(const cert_group *g, double threshold, double *magnitude)
{
    double const max = max_abs(g), slack = 2 * CERT_FOLD_SLACK * fabs(threshold);
    bool const vanishes = may_vanish(max / (double)cert_group_size(g));
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < cert_group_size(g); i++) {
        double const w = cert_group_value(g, i);
        int const c = cert_group_code(g, i) - g->t->zero_point;
        bool const zero_fits = fabs(w) <= threshold + slack || vanishes;
        bool const sign_fits =
            max > 0 && fabs(w) >= threshold - slack && (c == sign(w) || (w < 0 && may_vanish(w)));
        bool const has_sign = max > 0 && fabs(w) > threshold;
        if (c == 0 ? !zero_fits : !sign_fits)
            return cert_refuse_code(g, i, g->t->zero_point + (has_sign ? sign(w) : 0));
        sum += c ? fabs(w) : 0;
        n += c != 0;
    }
    *magnitude = n ? sum / (double)n : 0;
    return QAT_OK;
}

static qat_status check_magnitude(const cert_group *g, bool ternary)
{
    double magnitude = 0;
    double const threshold = ternary ? (double)0.7f * mean_abs(g) : -1;
    qat_status st = cert_equal(g->c, g->name, "the zero point", g->t->zero_point, g->lo + 1);
    if (!st)
        st = check_signs(g, threshold, &magnitude);
    if (st)
        return st;
    double const expected = magnitude > 0 ? magnitude : 1;
    return fabs((double)g->scale - expected) <= 2 * CERT_FOLD_SLACK * expected
               ? QAT_OK
               : cert_refuse_scale(g, expected);
}

/* ------------------------------------------------------------------ powers of two: inq */

/** All weights are frozen, at codes times 2 to the exponent of each channel. */
static qat_status check_frozen(const cert_group *g)
{
    char name[2 * QAT_NAME_MAX];
    const float *frozen = NULL;
    int n = 0;
    const float *exponent = group_values(g, "exponent", &n);
    snprintf(name, sizeof name, "%s/q/frozen", g->w->base);
    qat_status const st = cert_values(g->c, name, g->count, &frozen);
    if (st)
        return st;
    for (size_t i = 0; i < cert_group_size(g); i++) {
        int32_t const expected = frozen_code(g, frozen[cert_group_place(g, i)]);
        if (cert_group_code(g, i) != expected)
            return cert_refuse_code(g, i, expected);
    }
    if (exponent && g->scale != ldexpf(1, (int)*exponent))
        return cert_refuse_scale(g, ldexp(1, (int)*exponent));
    return cert_equal(g->c, g->name, "the zero point", g->t->zero_point, (g->lo + g->hi) / 2);
}

/* ------------------------------------------------------------------ a tensor */

static qat_status check_group(const cert_group *g)
{
    const char *by = g->w->settings->weights;
    if (is_silent(g, INFINITY))
        return QAT_OK;
    if (strcmp(by, "bwn") == 0 || strcmp(by, "twn") == 0)
        return check_magnitude(g, *by == 't');
    if (strcmp(by, "dorefa") == 0)
        return cert_check_dorefa(g);
    if (strcmp(by, "weight_norm") == 0 || strcmp(by, "apot") == 0)
        return cert_check_weight_norm(g);
    return strcmp(by, "inq") == 0 ? check_frozen(g) : check_nearest(g);
}

/** Bits of the codes: those asked for, or as many as the scheme needs. */
static int bits_of(const cert *c, const cert_settings *s)
{
    if (strcmp(s->weights, "bwn") == 0 || strcmp(s->weights, "twn") == 0)
        return 2;
    if (strcmp(s->weights, "dorefa") == 0)
        return cert_weight_bits(c, s) + 1;
    if (strcmp(s->weights, "apot") == 0) /* codes up to 1, 4, 10, 48 */
        return (const int[]){2, 4, 5,
                             7}[cert_weight_bits(c, s) < 5 ? cert_weight_bits(c, s) - 2 : 3];
    if (strcmp(s->weights, "inq") != 0)
        return cert_weight_bits(c, s);
    int bits = 2;
    while (bits < 8 && 1 << (bits - 1) <= 1 << ((1 << (s->weight_bits - 2)) - 1))
        bits++;
    return bits;
}

static bool is_known(const char *quantizer)
{
    static const char *const known[] = {"ema", "tqt", "tqt_full", "lsq",         "lsq_full", "bwn",
                                        "twn", "inq", "dorefa",   "weight_norm", "apot"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i], quantizer) == 0)
            return true;
    return false;
}

/** Do these weights use the lowest code of their bits? */
static bool has_lowest(const char *quantizer, int bits)
{
    return bits < 8 && (strcmp(quantizer, "tqt_full") == 0 || strcmp(quantizer, "lsq_full") == 0);
}

static qat_status check_form(cert_group *g)
{
    char name[2 * QAT_NAME_MAX], unnamed[QAT_NAME_MAX];
    const qi_tensor *t = g->t;
    int const bits = bits_of(g->c, g->w->settings);
    qat_layout const layout = g->c->source->quant.layout;
    snprintf(name, sizeof name, "%s/q", g->w->base);
    cert_codes(layout, bits, !has_lowest(g->w->settings->weights, bits), &g->lo, &g->hi);
    cert_part_name(unnamed, g->layer, "weights/q"); /* what weights without a name are called */
    qat_status st =
        cert_equal_text(g->c, g->w->base, "the name", *t->name ? t->name : unnamed, name);
    if (!st)
        st = cert_equal(g->c, name, "the type", t->type, layout == QAT_LAYOUT_INT8 ? QI_S8 : QI_U8);
    if (!st)
        st = cert_equal(g->c, name, "the number of bits", t->bits, bits);
    if (!st)
        st = cert_equal(g->c, name, "the rank", t->rank, g->w->shape.rank);
    for (int i = 0; !st && i < t->rank; i++)
        st = cert_equal(g->c, name, "a dimension", t->dims[i], g->w->shape.dims[i]);
    return st ? st
              : cert_equal(g->c, name, "whether it has a scale for each channel (1: yes)",
                           t->channel_scales >= 0, g->per_channel);
}

/** Nothing but 0 to quantize (the scale is then 1): the range is 0..0. The range of a tensor is
 * that of its first channel. */
static bool is_empty(const cert_group *g)
{
    for (size_t i = 0; i < cert_group_size(g); i++)
        if (fabs(cert_group_value(g, i)) >= (double)FLT_MIN * (g->hi - g->lo) ||
            cert_group_code(g, i) != g->t->zero_point)
            return false;
    return g->t->scale_bits == 0x3f800000 && (g->t->range_bits[0] | g->t->range_bits[1]) == 0;
}

static qat_status check_groups(cert_group *g)
{
    qat_status st = QAT_OK;
    char whole[2 * QAT_NAME_MAX];
    snprintf(whole, sizeof whole, "%s/q", g->w->base);
    int const groups = g->per_channel ? g->w->channels : 1;
    for (g->channel = 0; !st && g->channel < groups; g->channel++) {
        uint32_t bits;
        g->scale = cert_channel_scale(g->c->model, g->t, g->channel);
        memcpy(&bits, &g->scale, sizeof bits);
        snprintf(g->name, sizeof g->name, g->per_channel ? "%s, channel %d" : "%s", g->w->base,
                 g->channel);
        if (g->channel == 0)
            st = cert_equal(g->c, g->name, "the first scale (as the bits of its float32)",
                            g->t->scale_bits, bits);
        if (!st && g->channel == 0 && !is_empty(g))
            st = cert_check_range(g->c, whole, g->t, g->lo, g->hi);
        if (!st)
            st = check_group(g);
    }
    g->c->result->scales += groups;
    return st;
}

qat_status cert_check_weights(cert *c, const cert_op *op, const cert_weights *w, const qi_tensor *t)
{
    cert_group g = {.c = c, .w = w, .t = t, .layer = op->name, .count = qat_shape_count(&w->shape)};
    g.per_channel = c->source->quant.layout == QAT_LAYOUT_INT8 && w->settings->per_channel;
    if (!is_known(w->settings->weights)) {
        cert_uncertified(c, w->base, w->settings->weights);
        return QAT_OK;
    }
    qat_status st = check_form(&g);
    double *values = st ? NULL : calloc(g.count + 1, sizeof *values);
    if (!st && !values)
        return qat_out_of_memory(c->err, "certificate");
    g.values = values;
    if (!st)
        st = cert_folded_weights(c, w, values);
    if (!st)
        st = check_groups(&g);
    c->result->weights += (int64_t)g.count;
    free(values);
    return st;
}
