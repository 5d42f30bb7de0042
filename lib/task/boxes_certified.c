/** The epilogue of a detector: its parameters and anchors by the recipe and the float graph. */
#include "recipe/recipe.h"
#include "task/certified_file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/** Anchors by SSD's rule (docs/detection.md), one feature map after the other. */
struct anchors {
    const qat_certified_file *f;
    const qi_tensor *t;
    size_t at; /* anchors compared so far */
};

static qat_status check_anchor(struct anchors *a, double y, double x, double scale, double ratio)
{
    double const expected[] = {y, x, scale / sqrt(ratio), scale * sqrt(ratio)};
    qat_status st = QAT_OK;
    if ((a->at + 1) * 4 > (size_t)a->t->dims[0] * 4)
        return qat_certify_equal(a->f, "the number of anchors", a->t->dims[0], (double)(a->at + 1));
    for (size_t i = 0; !st && i < 4; i++) {
        uint32_t bits;
        memcpy(&bits, (const uint8_t *)a->t->data + (a->at * 4 + i) * sizeof bits, sizeof bits);
        double const there = (double)float_of(bits);
        char field[48];
        snprintf(field, sizeof field, "anchor %zu, coordinate %zu", a->at, i);
        if (!(fabs(there - expected[i]) <= 1e-6 * fmax(expected[i], 1e-3)))
            st = qat_certify_refuse(a->f, field, there, expected[i]);
    }
    a->at++;
    return st;
}

static qat_status check_cell(struct anchors *a, int map, double y, double x, double scale,
                             double next)
{
    static const double ratios[] = {1, 2, 0.5, 3, 1.0 / 3};
    qat_status st = QAT_OK;
    if (map == 0 && a->f->recipe->detect.reduced_lowest) {
        st = check_anchor(a, y, x, 0.1, 1);
        for (int i = 1; !st && i < 3; i++)
            st = check_anchor(a, y, x, scale, ratios[i]);
        return st;
    }
    for (int i = 0; !st && i < 5; i++)
        st = check_anchor(a, y, x, scale, ratios[i]);
    return st ? st : check_anchor(a, y, x, sqrt(scale * next), 1);
}

static const qat_node *head_of(const qat_certified_file *f, int map)
{
    char name[32];
    snprintf(name, sizeof name, "head%d/boxes", map);
    const qat_node *head = qat_graph_find(f->float_graph, name);
    return head && head->shape.rank == 4 ? head : NULL;
}

static qat_status check_anchors(const qat_certified_file *f, const qi_tensor *t)
{
    const qat_recipe *r = f->recipe;
    double const low = r->detect.min_scale, high = r->detect.max_scale;
    struct anchors a = {.f = f, .t = t};
    int maps = 0;
    qat_status st = qat_certify_equal(f, "the type of the anchors", t->type, QI_S32);
    if (!st)
        st = qat_certify_equal(f, "coordinates of an anchor", t->dims[1], 4);
    while (head_of(f, maps))
        maps++;
    for (int m = 0; !st && m < maps; m++) {
        const qat_node *head = head_of(f, m);
        int const h = head->shape.dims[1], w = head->shape.dims[2];
        double const scale = maps > 1 ? low + (high - low) * m / (maps - 1) : low;
        double const next = m + 1 == maps ? 1 : low + (high - low) * (m + 1) / (maps - 1);
        for (int i = 0; !st && i < h * w; i++)
            st = check_cell(&a, m, (i / w + 0.5) / h, (i % w + 0.5) / w, scale, next);
    }
    return st ? st : qat_certify_equal(f, "the number of anchors", t->dims[0], (double)a.at);
}

qat_status qat_certify_boxes(const qat_certified_file *f, const qi_epilogue *e)
{
    const qat_recipe *r = f->recipe;
    double const boxes = (double)r->detect.max_detections;
    double const expected[] = {boxes,
                               1,
                               boxes,
                               1,
                               qat_checkpoint_input(f->c)->classes,
                               (double)(float)r->detect.score_threshold,
                               (double)(float)r->detect.nms_iou,
                               10, /* SSD's coder: y, x, height, width */
                               10,
                               5,
                               5,
                               -1,
                               -1,
                               -1,
                               -1};
    qat_status st = qat_certify_text(f, "epilogue", 0, e->name, "detection_postprocess");
    if (!st)
        st = qat_certify_outputs(f, e, 3, 2);
    if (!st && qat_checkpoint_label(f->c, 0))
        st = qat_certify_equal(f, "the number of labels", qi_label_count(f->model),
                               qi_tensor_at(f->model, e->inputs[1])->dims[2]);
    if (!st)
        st = qat_certify_params(f, e, expected, 5, 6, 4);
    return st ? st : check_anchors(f, qi_tensor_at(f->model, e->inputs[2]));
}
