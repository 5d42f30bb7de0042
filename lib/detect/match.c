/**
 * Decides which object each anchor learns. First, pairs are taken by falling IoU, so that every
 * object has an anchor. Then each other anchor gets its best object, if their IoU reaches a
 * threshold.
 */
#include "qat/detect.h"

#include <math.h>

/** The objects of a picture and its anchors. */
struct matching {
    int32_t *match;
    int32_t *best; /* [n_truth]: the free anchor with the largest IoU; -1: none has an IoU above 0,
                      or the object has one */
    const qat_centre_box *anchors;
    const qat_truth *truth;
    int n_anchors, n_truth;
};

/** The IoU of an object and an anchor. A box that is not a number overlaps nothing. */
static float overlap(const struct matching *m, int object, int anchor)
{
    qat_box const corners = qat_box_corners(&m->anchors[anchor]);
    float const iou = qat_box_iou(&m->truth[object].box, &corners);
    return isnan(iou) ? 0 : iou;
}

/* ------------------------------------------------------------------ an anchor for every object */

static int best_free_anchor(const struct matching *m, int object)
{
    float highest = 0;
    int best = -1;
    for (int a = 0; a < m->n_anchors; a++) {
        float const iou = m->match[a] == QAT_BACKGROUND ? overlap(m, object, a) : 0;
        if (iou > highest) {
            highest = iou;
            best = a;
        }
    }
    return best;
}

/** The object whose best free anchor overlaps it most; -1: none is left. */
static int best_object(const struct matching *m)
{
    int best = -1;
    float highest = 0;
    for (int t = 0; t < m->n_truth; t++) {
        float const iou = m->best[t] < 0 ? 0 : overlap(m, t, m->best[t]);
        if (iou > highest) {
            highest = iou;
            best = t;
        }
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
    float highest = -1;
    int best = QAT_BACKGROUND;
    for (int t = 0; t < m->n_truth; t++) {
        float const iou = m->truth[t].crowd ? -1 : overlap(m, t, anchor);
        if (iou > highest) {
            highest = iou;
            best = t;
        }
    }
    return highest >= threshold ? best : QAT_BACKGROUND;
}

static bool lies_in_crowd(const struct matching *m, const qat_centre_box *anchor)
{
    qat_box const corners = qat_box_corners(anchor);
    for (int t = 0; t < m->n_truth; t++)
        if (m->truth[t].crowd && qat_box_covered(&corners, &m->truth[t].box) >= 0.5f)
            return true;
    return false;
}

static void match_others(const struct matching *m, float threshold)
{
    for (int a = 0; a < m->n_anchors; a++) {
        if (m->match[a] == QAT_BACKGROUND)
            m->match[a] = object_of(m, a, threshold);
        if (m->match[a] == QAT_BACKGROUND && lies_in_crowd(m, &m->anchors[a]))
            m->match[a] = QAT_IGNORED;
    }
}

void qat_match_anchors(int32_t *match, int32_t *best, const qat_centre_box *anchors, int n_anchors,
                       const qat_truth *truth, int n_truth, float threshold)
{
    struct matching m = {match, best, anchors, truth, n_anchors, n_truth};
    for (int a = 0; a < n_anchors; a++)
        match[a] = QAT_BACKGROUND;
    if (n_truth == 0)
        return;
    serve_objects(&m);
    match_others(&m, threshold);
}
