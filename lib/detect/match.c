/**
 * Decides which object each anchor learns. First, pairs are taken by falling IoU, so that every
 * object has an anchor. Then each other anchor gets its best object, if their IoU reaches a
 * threshold.
 */
#include "qat/detect.h"

#include <math.h>
#include <stdlib.h>

/** The objects of a picture and its anchors. */
struct matching {
    int32_t *match;
    const qat_truth *truth;
    int n_anchors, n_truth;
    float *iou; /* [n_truth, n_anchors] */
    int *best;  /* [n_truth]: the free anchor with the largest IoU; -1: none has an IoU above 0, or
                   the object has one */
};

static const float *iou_of(const struct matching *m, int object)
{
    return m->iou + (size_t)object * (size_t)m->n_anchors;
}

/** A box that is not a number overlaps nothing. */
static float overlap(const qat_box *a, const qat_box *b)
{
    float const iou = qat_box_iou(a, b);
    return isnan(iou) ? 0 : iou;
}

static void fill_iou(const struct matching *m, const qat_centre_box *anchors)
{
    for (int a = 0; a < m->n_anchors; a++) {
        qat_box const corners = qat_box_corners(&anchors[a]);
        for (int t = 0; t < m->n_truth; t++)
            m->iou[(size_t)t * (size_t)m->n_anchors + (size_t)a] =
                overlap(&m->truth[t].box, &corners);
    }
}

/* ------------------------------------------------------------------ an anchor for every object */

static int best_free_anchor(const struct matching *m, int object)
{
    const float *iou = iou_of(m, object);
    float highest = 0;
    int best = -1;
    for (int a = 0; a < m->n_anchors; a++) {
        if (m->match[a] == QAT_BACKGROUND && iou[a] > highest) {
            highest = iou[a];
            best = a;
        }
    }
    return best;
}

/** The object whose best free anchor overlaps it most; -1: none is left. */
static int best_object(const struct matching *m)
{
    int best = -1;
    for (int t = 0; t < m->n_truth; t++) {
        if (m->best[t] < 0)
            continue;
        if (best < 0 || iou_of(m, t)[m->best[t]] > iou_of(m, best)[m->best[best]])
            best = t;
    }
    return best;
}

static void serve_objects(struct matching *m)
{
    for (int t = 0; t < m->n_truth; t++)
        m->best[t] = m->truth[t].crowd ? -1 : best_free_anchor(m, t);
    for (int t = best_object(m); t >= 0; t = best_object(m)) {
        int const taken = m->best[t];
        m->match[taken] = t;
        m->best[t] = -1;
        for (int other = 0; other < m->n_truth; other++)
            if (m->best[other] == taken)
                m->best[other] = best_free_anchor(m, other);
    }
}

/* ------------------------------------------------------------------ the other anchors */

static int32_t object_of(const struct matching *m, int anchor, float threshold)
{
    int best = -1;
    for (int t = 0; t < m->n_truth; t++)
        if (!m->truth[t].crowd && (best < 0 || iou_of(m, t)[anchor] > iou_of(m, best)[anchor]))
            best = t;
    return best >= 0 && iou_of(m, best)[anchor] >= threshold ? best : QAT_BACKGROUND;
}

static bool lies_in_crowd(const struct matching *m, const qat_centre_box *anchor)
{
    qat_box const corners = qat_box_corners(anchor);
    for (int t = 0; t < m->n_truth; t++)
        if (m->truth[t].crowd && qat_box_covered(&corners, &m->truth[t].box) >= 0.5f)
            return true;
    return false;
}

static void match_others(const struct matching *m, const qat_centre_box *anchors, float threshold)
{
    for (int a = 0; a < m->n_anchors; a++) {
        if (m->match[a] == QAT_BACKGROUND)
            m->match[a] = object_of(m, a, threshold);
        if (m->match[a] == QAT_BACKGROUND && lies_in_crowd(m, &anchors[a]))
            m->match[a] = QAT_IGNORED;
    }
}

qat_status qat_match_anchors(int32_t *match, const qat_centre_box *anchors, int n_anchors,
                             const qat_truth *truth, int n_truth, float threshold, qat_error *err)
{
    size_t const pairs = (size_t)n_anchors * (size_t)n_truth;
    struct matching m = {match, truth, n_anchors, n_truth, NULL, NULL};
    for (int a = 0; a < n_anchors; a++)
        match[a] = QAT_BACKGROUND;
    if (pairs == 0)
        return QAT_OK;
    m.iou = calloc(pairs, sizeof *m.iou);
    m.best = calloc((size_t)n_truth, sizeof *m.best);
    if (m.iou && m.best) {
        fill_iou(&m, anchors);
        serve_objects(&m);
        match_others(&m, anchors, threshold);
    }
    qat_status const st = m.iou && m.best ? QAT_OK : qat_out_of_memory(err, "matching anchors");
    free(m.iou);
    free(m.best);
    return st;
}
