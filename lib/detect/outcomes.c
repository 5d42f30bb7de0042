/**
 * Matches boxes with objects as COCO does. In each picture and class, the boxes are taken by
 * falling score. Each takes the free object with the largest IoU, if that reaches the threshold.
 * Some objects do not count (crowds, areas out of range). A box takes one of these only if no
 * object that counts fits; the box does not count then. A crowd can be taken several times; its IoU
 * is the share of the box that it covers.
 */
#include "detect/outcomes.h"

#include "base/rank.h"

#include <math.h>
#include <stdlib.h>

double qat_iou_threshold(int t)
{
    double const first = 0.5, last = 0.95;
    int const steps = QAT_IOU_THRESHOLDS - 1;
    return t == steps ? last : t * ((last - first) / steps) + first;
}

/** In pixels, as COCO's x, y, width, height. */
struct rectangle {
    double x, y, width, height;
};

/** The boxes and objects of one class in one picture. */
struct match {
    const qat_scored_picture *picture;
    struct area_range range;
    int *objects, n_objects, n_counted; /* objects that count come first */
    int *found, *room, n_found;         /* by falling score, at most MOST_FOUND */
    int32_t *keys;                      /* of all boxes of the picture */
    double *iou;                        /* [n_found, n_objects] */
    uint8_t *taken;                     /* [n_objects] */
};

static struct rectangle rectangle_of(const struct match *m, const qat_box *b)
{
    double const h = m->picture->height, w = m->picture->width;
    return (struct rectangle){(double)b->xmin * w, (double)b->ymin * h,
                              ((double)b->xmax - (double)b->xmin) * w,
                              ((double)b->ymax - (double)b->ymin) * h};
}

static double overlap(struct rectangle a, struct rectangle b, bool crowd)
{
    double const w = fmin(a.width + a.x, b.width + b.x) - fmax(a.x, b.x);
    double const h = fmin(a.height + a.y, b.height + b.y) - fmax(a.y, b.y);
    if (w <= 0 || h <= 0)
        return 0;
    double const shared = w * h, area = a.width * a.height;
    return shared / (crowd ? area : area + b.width * b.height - shared);
}

/** A box whose corners are not numbers has no area; it counts, and is wrong. */
static bool in_range(const struct match *m, double area)
{
    return !(area < m->range.low || area > m->range.high);
}

static bool counts(const struct match *m, const qat_truth *object)
{
    return !object->crowd && in_range(m, object->area);
}

/* ------------------------------------------------------------------ one picture */

static void list_objects(struct match *m, int class)
{
    const qat_scored_picture *p = m->picture;
    m->n_objects = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < p->n_truth; i++)
            if (p->truth[i].label == class && counts(m, &p->truth[i]) == (pass == 0))
                m->objects[m->n_objects++] = i;
        if (pass == 0)
            m->n_counted = m->n_objects;
    }
}

static void list_found(struct match *m, int class)
{
    const qat_scored_picture *p = m->picture;
    m->n_found = 0;
    for (int i = 0; i < p->n_found; i++) {
        m->keys[i] = qat_rank_key(p->found[i].score);
        if (p->found[i].label == class)
            m->found[m->n_found++] = i;
    }
    qat_rank_falling(m->keys, m->found, m->room, m->n_found);
    if (m->n_found > MOST_FOUND)
        m->n_found = MOST_FOUND;
}

static void fill_iou(const struct match *m)
{
    double *iou = m->iou;
    for (int d = 0; d < m->n_found; d++) {
        struct rectangle const box = rectangle_of(m, &m->picture->found[m->found[d]].box);
        for (int g = 0; g < m->n_objects; g++) {
            const qat_truth *object = &m->picture->truth[m->objects[g]];
            *iou++ = overlap(box, rectangle_of(m, &object->box), object->crowd);
        }
    }
}

/** The object that box number d takes, or -1. */
static int object_for(const struct match *m, int d, double threshold)
{
    double least = fmin(threshold, 1 - 1e-10);
    const double *iou = m->iou + (size_t)d * (size_t)m->n_objects;
    int best = -1;
    for (int g = 0; g < m->n_objects; g++) {
        if (m->taken[g] && !m->picture->truth[m->objects[g]].crowd)
            continue;
        if (best >= 0 && best < m->n_counted && g >= m->n_counted)
            break;
        if (!(iou[g] >= least))
            continue;
        least = iou[g];
        best = g;
    }
    return best;
}

/** Write the outcomes at threshold t into the rows of this picture. */
static void decide(const struct match *m, int t, struct outcome *rows)
{
    double const threshold = qat_iou_threshold(t);
    for (int g = 0; g < m->n_objects; g++)
        m->taken[g] = 0;
    for (int d = 0; d < m->n_found; d++) {
        int const g = object_for(m, d, threshold);
        struct rectangle const box = rectangle_of(m, &m->picture->found[m->found[d]].box);
        if (g >= 0)
            m->taken[g] = 1;
        if (g >= 0 && g < m->n_counted)
            rows[d].correct |= (uint16_t)(1 << t);
        else if (g >= 0 || !in_range(m, box.width * box.height))
            rows[d].uncounted |= (uint16_t)(1 << t);
    }
}

static void match_picture(struct match *m, struct outcomes *o, int picture, int class)
{
    struct outcome *rows = o->rows + o->n;
    list_objects(m, class);
    list_found(m, class);
    fill_iou(m);
    for (int d = 0; d < m->n_found; d++)
        rows[d] = (struct outcome){m->keys[m->found[d]], picture, d, 0, 0};
    for (int t = 0; t < QAT_IOU_THRESHOLDS; t++)
        decide(m, t, rows);
    o->n += m->n_found;
    o->objects[picture] = m->n_counted;
    o->n_objects += m->n_counted;
}

/* ------------------------------------------------------------------ all pictures */

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

/** Find the largest numbers of boxes and objects in a picture, and the number of rows in all. */
static void measure(const qat_scored_set *set, size_t *found, size_t *objects, size_t *rows)
{
    *found = *objects = 1;
    *rows = 1;
    for (int i = 0; i < set->n_pictures; i++) {
        const qat_scored_picture *p = &set->pictures[i];
        *found = (size_t)p->n_found > *found ? (size_t)p->n_found : *found;
        *objects = (size_t)p->n_truth > *objects ? (size_t)p->n_truth : *objects;
        *rows += (size_t)smaller(p->n_found, MOST_FOUND);
    }
}

static qat_status check_picture(const qat_scored_set *set, int picture, qat_error *err)
{
    const qat_scored_picture *p = &set->pictures[picture];
    for (int i = 0; i < p->n_truth; i++)
        if (p->truth[i].label < 0 || p->truth[i].label >= set->classes)
            return qat_fail(err, QAT_ERR_ARGUMENT,
                            "precision: object %d of picture %d has class %d, not in 0..%d", i,
                            picture, p->truth[i].label, set->classes - 1);
    for (int i = 0; i < p->n_found; i++)
        if (p->found[i].label < 0 || p->found[i].label >= set->classes || isnan(p->found[i].score))
            return qat_fail(err, QAT_ERR_ARGUMENT,
                            "precision: box %d of picture %d has class %d, of %d, and score %g", i,
                            picture, p->found[i].label, set->classes, (double)p->found[i].score);
    return QAT_OK;
}

static bool alloc_match(struct match *m, size_t found, size_t objects)
{
    m->objects = calloc(objects, sizeof *m->objects);
    m->found = calloc(2 * found, sizeof *m->found);
    m->keys = calloc(found, sizeof *m->keys);
    m->iou = calloc(objects * (found < MOST_FOUND ? found : MOST_FOUND), sizeof *m->iou);
    m->taken = calloc(objects, 1);
    if (m->found)
        m->room = m->found + found;
    return m->objects && m->found && m->keys && m->iou && m->taken;
}

static void free_match(struct match *m)
{
    free(m->objects);
    free(m->found);
    free(m->keys);
    free(m->iou);
    free(m->taken);
}

/** Sort all rows by falling score; of equal scores the first picture comes first. */
static bool sort_rows(struct outcomes *o)
{
    size_t const n = o->n ? (size_t)o->n : 1;
    struct outcome *sorted = calloc(n, sizeof *sorted);
    int32_t *keys = calloc(n, sizeof *keys);
    int *order = calloc(2 * n, sizeof *order);
    bool const fits = sorted && keys && order;
    for (int i = 0; fits && i < o->n; i++) {
        keys[i] = o->rows[i].key;
        order[i] = i;
    }
    if (fits) {
        qat_rank_falling(keys, order, order + n, o->n);
        for (int i = 0; i < o->n; i++)
            sorted[i] = o->rows[order[i]];
        free(o->rows);
        o->rows = sorted;
        sorted = NULL;
    }
    free(sorted);
    free(keys);
    free(order);
    return fits;
}

qat_status qat_outcomes_init(struct outcomes *o, const qat_scored_set *set, int class,
                             struct area_range range, qat_error *err)
{
    struct match m = {.range = range};
    size_t found, objects, rows;
    *o = (struct outcomes){.n_pictures = set->n_pictures};
    for (int i = 0; i < set->n_pictures; i++) {
        qat_status const st = check_picture(set, i, err);
        if (st)
            return st;
    }
    measure(set, &found, &objects, &rows);
    o->rows = calloc(rows, sizeof *o->rows);
    o->objects = calloc((size_t)set->n_pictures + 1, sizeof *o->objects);
    bool fits = alloc_match(&m, found, objects) && o->rows && o->objects;
    for (int i = 0; fits && i < set->n_pictures; i++) {
        m.picture = &set->pictures[i];
        match_picture(&m, o, i, class);
    }
    fits = fits && sort_rows(o);
    free_match(&m);
    return fits ? QAT_OK : qat_out_of_memory(err, "average precision");
}

void qat_outcomes_free(struct outcomes *o)
{
    free(o->rows);
    free(o->objects);
    *o = (struct outcomes){0};
}
