/**
 * Computes COCO's figures from the outcome of each box.
 *
 *     precision = correct / (correct + wrong), recall = correct / objects, after each box
 *     AP        = mean over r = 0, 0.01 .. 1 of max { precision : recall >= r }
 */
#include "detect/outcomes.h"

#include "base/rank.h"

#include <float.h>
#include <stdlib.h>

enum { RECALLS = 101 };

/* ------------------------------------------------------------------ one class */

static double count_objects(const struct outcomes *o, const int *weights)
{
    int64_t n = 0;
    for (int i = 0; weights && i < o->n_pictures; i++)
        n += (int64_t)weights[i] * o->objects[i];
    return (double)(weights ? n : o->n_objects);
}

/** Fill the curve with a point after each box that counts; returns the number of points. */
static int fill_curve(const struct outcomes *o, int t, int most, const int *weights,
                      double n_objects, struct curve *curve)
{
    double correct = 0, wrong = 0;
    int n = 0;
    for (int i = 0; i < o->n; i++) {
        const struct outcome *row = &o->rows[i];
        int const weight = weights ? weights[row->picture] : 1;
        if (row->rank >= most || weight == 0 || (row->uncounted >> t & 1))
            continue;
        *(row->correct >> t & 1 ? &correct : &wrong) += weight;
        curve->precision[n] = correct / (correct + wrong + DBL_EPSILON);
        curve->recall[n++] = correct / n_objects;
    }
    return n;
}

/** The mean over the recalls of the largest precision at that recall or above. */
static double area_below(struct curve *curve, int n)
{
    double sum = 0;
    for (int i = n - 1; i > 0; i--)
        if (curve->precision[i] > curve->precision[i - 1])
            curve->precision[i - 1] = curve->precision[i];
    for (int r = 0, i = 0; r < RECALLS; r++) {
        double const wanted = r == RECALLS - 1 ? 1 : r * 0.01;
        while (i < n && curve->recall[i] < wanted)
            i++;
        sum += i < n ? curve->precision[i] : 0;
    }
    return sum / RECALLS;
}

double qat_class_precision(const struct outcomes *o, int t, int most, const int *weights,
                           struct curve *curve, double *recall)
{
    double const n_objects = count_objects(o, weights);
    if (n_objects < 1)
        return -1;
    int const n = fill_curve(o, t, most, weights, n_objects, curve);
    if (recall)
        *recall = n ? curve->recall[n - 1] : 0;
    return area_below(curve, n);
}

/* ------------------------------------------------------------------ means */

struct mean {
    double sum;
    int n;
};

static double mean_of(const struct mean *m)
{
    return m->n ? m->sum / m->n : -1;
}

static void add(struct mean *m, double value)
{
    m->sum += value;
    m->n++;
}

enum { AT_1, AT_10, AT_100, LIMITS };

/** Means over the classes so far, for one range of areas. */
struct figures {
    struct mean ap, ap50, ap75, recall[LIMITS];
};

static void add_class(struct figures *f, const struct outcomes *o, struct curve *curve)
{
    static int const limits[LIMITS] = {1, 10, MOST_FOUND};
    for (int t = 0; t < QAT_IOU_THRESHOLDS; t++) {
        for (int i = 0; i < LIMITS; i++) {
            double recall;
            double const ap = qat_class_precision(o, t, limits[i], NULL, curve, &recall);
            if (ap < 0)
                return;
            add(&f->recall[i], recall);
            if (i != AT_100)
                continue;
            add(&f->ap, ap);
            if (t == 0)
                add(&f->ap50, ap);
            if (t == 5)
                add(&f->ap75, ap);
        }
    }
}

static qat_status sum_class(struct figures *f, const qat_scored_set *set, int class,
                            struct area_range range, qat_error *err)
{
    struct outcomes o;
    qat_status st = qat_outcomes_init(&o, set, class, range, err);
    if (!st) {
        size_t const n = (size_t)o.n + 1;
        double *room = calloc(2 * n, sizeof *room);
        struct curve curve = {room, room + n};
        if (room)
            add_class(f, &o, &curve);
        else
            st = qat_out_of_memory(err, "average precision");
        free(room);
    }
    qat_outcomes_free(&o);
    return st;
}

qat_status qat_average_precision(qat_coco_figures *figures, const qat_scored_set *set,
                                 qat_error *err)
{
    enum { ALL, SMALL, MEDIUM, LARGE, RANGES };
    double const small = 32.0 * 32, large = 96.0 * 96;
    struct area_range const ranges[RANGES] = {[ALL] = ALL_AREAS,
                                              [SMALL] = {0, small},
                                              [MEDIUM] = {small, large},
                                              [LARGE] = {large, 1e10}};
    struct figures f[RANGES] = {0};
    *figures = (qat_coco_figures){0};
    for (int r = 0; r < RANGES; r++) {
        for (int class = 0; class < set->classes; class ++) {
            qat_status const st = sum_class(&f[r], set, class, ranges[r], err);
            if (st)
                return st;
        }
    }
    *figures = (qat_coco_figures){.ap = mean_of(&f[ALL].ap),
                                  .ap50 = mean_of(&f[ALL].ap50),
                                  .ap75 = mean_of(&f[ALL].ap75),
                                  .ap_small = mean_of(&f[SMALL].ap),
                                  .ap_medium = mean_of(&f[MEDIUM].ap),
                                  .ap_large = mean_of(&f[LARGE].ap),
                                  .ar1 = mean_of(&f[ALL].recall[AT_1]),
                                  .ar10 = mean_of(&f[ALL].recall[AT_10]),
                                  .ar100 = mean_of(&f[ALL].recall[AT_100]),
                                  .ar_small = mean_of(&f[SMALL].recall[AT_100]),
                                  .ar_medium = mean_of(&f[MEDIUM].recall[AT_100]),
                                  .ar_large = mean_of(&f[LARGE].recall[AT_100])};
    return QAT_OK;
}

/* ------------------------------------------------------------------ precision and recall */

struct tally {
    int64_t objects, correct[QAT_IOU_THRESHOLDS], wrong[QAT_IOU_THRESHOLDS];
};

static void add_tally(struct tally *tally, const struct outcomes *o, int32_t least)
{
    tally->objects += o->n_objects;
    for (int i = 0; i < o->n && o->rows[i].key >= least; i++) {
        for (int t = 0; t < QAT_IOU_THRESHOLDS; t++) {
            if (o->rows[i].uncounted >> t & 1)
                continue;
            ++*(o->rows[i].correct >> t & 1 ? &tally->correct[t] : &tally->wrong[t]);
        }
    }
}

static double share(int64_t part, int64_t whole)
{
    return whole ? (double)part / (double)whole : 1;
}

qat_status qat_precision_and_recall(qat_precision_recall *result, const qat_scored_set *set,
                                    float score, qat_error *err)
{
    struct tally tally = {0};
    *result = (qat_precision_recall){0};
    for (int class = 0; class < set->classes; class ++) {
        struct outcomes o;
        qat_status const st = qat_outcomes_init(&o, set, class, ALL_AREAS, err);
        if (!st)
            add_tally(&tally, &o, qat_rank_key(score));
        qat_outcomes_free(&o);
        if (st)
            return st;
    }
    for (int t = 0; t < QAT_IOU_THRESHOLDS; t++) {
        int64_t const found = tally.correct[t] + tally.wrong[t];
        result->precision_at[t] = share(tally.correct[t], found);
        result->recall_at[t] = share(tally.correct[t], tally.objects);
        result->precision += result->precision_at[t] / QAT_IOU_THRESHOLDS;
        result->recall += result->recall_at[t] / QAT_IOU_THRESHOLDS;
    }
    return QAT_OK;
}
