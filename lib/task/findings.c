/** Collects and judges what a detector finds in a data set. */
#include "base/arena.h"
#include "task/detector.h"

#include <stdlib.h>
#include <string.h>

enum { RESAMPLES = 1000, BOOTSTRAP_SEED = 1 };

struct qat_findings {
    qat_scored_picture *pictures;
    int n, capacity, classes;
    qat_arena arena; /* objects and boxes */
};

qat_status qat_findings_create(qat_findings **findings, int classes, qat_error *err)
{
    *findings = calloc(1, sizeof **findings);
    if (!*findings)
        return qat_out_of_memory(err, "evaluation");
    (*findings)->classes = classes;
    return QAT_OK;
}

void qat_findings_free(qat_findings *findings)
{
    if (!findings)
        return;
    free(findings->pictures);
    qat_arena_free(&findings->arena);
    free(findings);
}

static bool grow(qat_findings *f)
{
    int const capacity = f->capacity ? 2 * f->capacity : 64;
    qat_scored_picture *p = realloc(f->pictures, (size_t)capacity * sizeof *p);
    if (!p)
        return false;
    f->pictures = p;
    f->capacity = capacity;
    return true;
}

static void *copy(qat_arena *arena, const void *from, int count, size_t size)
{
    void *to = qat_arena_array(arena, (size_t)count + 1, size);
    if (to && count)
        memcpy(to, from, (size_t)count * size);
    return to;
}

qat_status qat_findings_add(qat_findings *f, const qat_objects *o, const qat_found *found,
                            int n_found, qat_error *err)
{
    if (f->n == f->capacity && !grow(f))
        return qat_out_of_memory(err, "evaluation");
    qat_scored_picture const p = {.height = o->height,
                                  .width = o->width,
                                  .truth = copy(&f->arena, o->truth, o->count, sizeof *o->truth),
                                  .n_truth = o->count,
                                  .found = copy(&f->arena, found, n_found, sizeof *found),
                                  .n_found = n_found};
    if (!p.truth || !p.found)
        return qat_out_of_memory(err, "evaluation");
    f->pictures[f->n++] = p;
    return QAT_OK;
}

qat_status qat_findings_choose(qat_findings *f, const qat_detector *d, const qat_objects *objects,
                               const float *codes, const float *scores, qat_error *err)
{
    qat_found *found = calloc((size_t)d->rules.max_detections, sizeof *found);
    int n = 0;
    qat_status st = found ? QAT_OK : qat_out_of_memory(err, "evaluation");
    if (!st) /* codes: y, x, height, width, as the struct */
        st = qat_choose_boxes(found, &n, &d->rules, &qat_ssd_coder, d->anchors,
                              (const qat_centre_box *)codes, scores, d->n_anchors, d->classes, err);
    if (!st)
        st = qat_findings_add(f, objects, found, n, err);
    free(found);
    return st;
}

qat_status qat_findings_add_detections(qat_findings *f, const qat_objects *objects,
                                       const qat_detections *d, qat_error *err)
{
    qat_found *found = calloc((size_t)d->rows, sizeof *found);
    int n = 0;
    for (int row = 0; found && row < d->rows; row++) {
        if (!d->used[row])
            continue;
        memcpy(&found[n].box, d->boxes + 4 * (size_t)row, sizeof found[n].box);
        found[n].label = (int32_t)d->classes[row];
        found[n++].score = d->scores[row];
    }
    qat_status const st =
        found ? qat_findings_add(f, objects, found, n, err) : qat_out_of_memory(err, "evaluation");
    free(found);
    return st;
}

qat_status qat_findings_judge(const qat_findings *f, qat_accuracy *a, qat_error *err)
{
    qat_scored_set const set = {f->pictures, f->n, f->classes};
    qat_coco_figures figures;
    qat_ap_interval interval;
    qat_precision_recall at_half;
    qat_status st = qat_average_precision(&figures, &set, err);
    if (!st)
        st = qat_ap50_interval(&interval, &set, RESAMPLES, BOOTSTRAP_SEED, 0.95, err);
    if (!st)
        st = qat_precision_and_recall(&at_half, &set, 0.5F, err);
    if (st)
        return st;
    *a = (qat_accuracy){.n = f->n,
                        .task = &qat_task_boxes,
                        .figures = {[QAT_AP] = figures.ap,
                                    [QAT_AP50] = figures.ap50,
                                    [QAT_AP50_LOW] = interval.low,
                                    [QAT_AP50_HIGH] = interval.high,
                                    [QAT_PRECISION] = at_half.precision,
                                    [QAT_RECALL] = at_half.recall}};
    return QAT_OK;
}
