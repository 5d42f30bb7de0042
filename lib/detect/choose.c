/**
 * Non-maximum suppression in the two ways of TensorFlow Lite's detectors: fast (each box counts
 * only for its best class) and regular (each class is treated separately).
 */
#include "detect/choose.h"

#include "base/rank.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/** The boxes to choose from, and the rules. */
struct chooser {
    struct candidates *c;
    const qat_choice_rules *rules;
    int n, classes; /* classes: without the background */
    int32_t threshold;
    struct choice *rows;
};

int qat_choice_rows(const qat_choice_rules *rules)
{
    return rules->max_detections * rules->max_classes;
}

/** The keys of box i, without the background's. */
static const int32_t *keys_of(const struct chooser *s, int i)
{
    int const stride = s->classes + s->rules->background;
    return s->c->keys + (size_t)i * (size_t)stride + s->rules->background;
}

/* ------------------------------------------------------------------ fast */

static void list_classes(const struct chooser *s, int box, int listed, struct choice *rows)
{
    const int32_t *keys = keys_of(s, box);
    qat_select_largest(keys, s->classes, listed, s->c->order);
    for (int j = 0; j < listed; j++)
        rows[j] = (struct choice){box, s->c->order[j], keys[s->c->order[j]]};
}

/** Choose each box by its best class. The next best classes of a kept box are listed with it. */
static int choose_fast(const struct chooser *s)
{
    const qat_choice_rules *r = s->rules;
    int const listed = r->max_classes < s->classes ? r->max_classes : s->classes;
    for (int i = 0; i < s->n; i++) {
        const int32_t *keys = keys_of(s, i);
        qat_select_largest(keys, s->classes, listed, s->c->order);
        s->c->values[i] = keys[s->c->order[0]];
    }
    int const kept = qat_suppress(s->c, s->n, s->threshold, r->iou_threshold, r->max_detections);
    for (int k = 0; k < kept; k++)
        list_classes(s, s->c->kept[k], listed, s->rows + k * r->max_classes);
    return kept;
}

/* ------------------------------------------------------------------ regular */

/** The best `most` of n hits, in the order of qat_select_largest. */
static int keep_best(const struct chooser *s, struct choice *hits, struct choice *sorted, int n)
{
    int const most = s->rules->max_detections, best = n < most ? n : most;
    for (int i = 0; i < n; i++)
        s->c->values[i] = hits[i].key;
    qat_select_largest(s->c->values, n, best, s->c->order);
    for (int i = 0; i < best; i++)
        sorted[i] = hits[s->c->order[i]];
    memcpy(hits, sorted, (size_t)best * sizeof *hits);
    return best;
}

/**
 * Choose in each class separately, then take the best of all. hits, sorted: n + max_detections
 * each.
 */
static int choose_regular(const struct chooser *s, struct choice *hits, struct choice *sorted)
{
    const qat_choice_rules *r = s->rules;
    int n = 0;
    for (int class = 0; class < s->classes; class ++) {
        for (int i = 0; i < s->n; i++)
            s->c->values[i] = keys_of(s, i)[class];
        int const kept = qat_suppress(s->c, s->n, s->threshold, r->iou_threshold, r->per_class);
        for (int k = 0; k < kept; k++)
            hits[n++] = (struct choice){s->c->kept[k], class, s->c->values[s->c->kept[k]]};
        n = keep_best(s, hits, sorted, n);
    }
    memcpy(s->rows, hits, (size_t)n * sizeof *hits);
    return n;
}

bool qat_choose(struct candidates *c, int n, int classes, const qat_choice_rules *rules,
                int32_t threshold, struct choice *rows, int *found)
{
    struct chooser const s = {c, rules, n, classes, threshold, rows};
    *found = 0;
    for (int i = 0; i < qat_choice_rows(rules); i++)
        rows[i].box = -1;
    if (!rules->regular) {
        *found = choose_fast(&s);
        return true;
    }
    size_t const room = (size_t)n + (size_t)rules->max_detections;
    struct choice *hits = calloc(2 * room, sizeof *hits);
    if (hits)
        *found = choose_regular(&s, hits, hits + room);
    free(hits);
    return hits != NULL;
}

/* ------------------------------------------------------------------ float networks */

static qat_status check_rules(const qat_choice_rules *r, int classes, qat_error *err)
{
    enum { MAX_ROWS = 1 << 20 };
    bool const counts = r->max_detections >= 1 && r->max_classes >= 1 && r->per_class >= 1 &&
                        (int64_t)r->max_detections * r->max_classes <= MAX_ROWS;
    if (!counts || classes < 1)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "detections: max_detections %d, max_classes %d, per_class %d, classes %d: "
                        "all must be at least 1, and the product of the first two at most %d",
                        r->max_detections, r->max_classes, r->per_class, classes, MAX_ROWS);
    if (!(r->iou_threshold > 0 && r->iou_threshold <= 1) || isnan(r->score_threshold) ||
        r->background < 0 || r->background > 1)
        return qat_fail(
            err, QAT_ERR_ARGUMENT,
            "detections: iou_threshold %g must be above 0, up to 1; score_threshold %g must be "
            "a number; background %d must be 0 or 1",
            (double)r->iou_threshold, (double)r->score_threshold, r->background);
    return QAT_OK;
}

/** Set the keys of all scores. */
static qat_status fill_keys(struct candidates *c, const float *scores, int n, int stride,
                            qat_error *err)
{
    size_t const count = (size_t)n * (size_t)stride;
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(scores[i]))
            return qat_fail(err, QAT_ERR_NUMERIC, "detections: score %zu of box %zu is %g",
                            i % (size_t)stride, i / (size_t)stride, (double)scores[i]);
        c->keys[i] = qat_rank_key(scores[i]);
    }
    return QAT_OK;
}

static bool is_finite(const qat_centre_box *c)
{
    return isfinite(c->y) && isfinite(c->x) && isfinite(c->height) && isfinite(c->width);
}

/** Early in training a box may have infinite size; it then overlaps nothing. */
static qat_status fill_boxes(struct candidates *c, const qat_box_coder *coder,
                             const qat_centre_box *anchors, const qat_centre_box *codes, int n,
                             qat_error *err)
{
    for (int i = 0; i < n; i++) {
        if (!is_finite(&codes[i]))
            return qat_fail(err, QAT_ERR_NUMERIC,
                            "detections: the code of box %d is %g, %g, %g, %g", i,
                            (double)codes[i].y, (double)codes[i].x, (double)codes[i].height,
                            (double)codes[i].width);
        c->boxes[i] = qat_box_decode(coder, &anchors[i], &codes[i]);
    }
    return QAT_OK;
}

/** List the rows that are not empty, one after the other. */
static int list_found(qat_found *found, const struct candidates *c, const struct choice *rows,
                      int n_rows, const float *scores, const qat_choice_rules *rules, int stride)
{
    int n = 0;
    for (int i = 0; i < n_rows; i++) {
        const struct choice *r = &rows[i];
        if (r->box < 0)
            continue;
        float const score =
            scores[(size_t)r->box * (size_t)stride + (size_t)(rules->background + r->class)];
        found[n++] = (qat_found){c->boxes[r->box], r->class, score};
    }
    return n;
}

qat_status qat_choose_boxes(qat_found *found, int *n_found, const qat_choice_rules *rules,
                            const qat_box_coder *coder, const qat_centre_box *anchors,
                            const qat_centre_box *codes, const float *scores, int n, int classes,
                            qat_error *err)
{
    qat_status st = check_rules(rules, classes, err);
    *n_found = 0;
    if (st || n < 1)
        return st;
    int const stride = classes + rules->background, n_rows = qat_choice_rows(rules);
    struct candidates c;
    struct choice *rows = calloc((size_t)n_rows, sizeof *rows);
    bool fits = qat_candidates_init(&c, n, stride, rules->max_detections) && rows;
    if (fits)
        st = fill_keys(&c, scores, n, stride, err);
    if (fits && !st)
        st = fill_boxes(&c, coder, anchors, codes, n, err);
    if (fits && !st) {
        int chosen;
        fits =
            qat_choose(&c, n, classes, rules, qat_rank_key(rules->score_threshold), rows, &chosen);
        *n_found = list_found(found, &c, rows, n_rows, scores, rules, stride);
    }
    free(rows);
    qat_candidates_free(&c);
    return fits ? st : qat_out_of_memory(err, "detections");
}
