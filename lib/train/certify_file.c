/** What a file says beside its graph, against the recipe and the checkpoint that it was made of. */
#include "train/certified_source.h"
#include "train/detector.h"

#include "qat/border.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/** Where it is compared. */
struct file {
    const qat_certified_source *s;
    const qat_checkpoint *c;
    const qi_model *model;
    qat_error *err;
};

static qat_status refuse(const struct file *f, const char *field, double in_file, double expected)
{
    return qat_fail(f->err, QAT_ERR_MISMATCH,
                    "%s is %.9g in the file, but the checkpoint gives %.9g", field, in_file,
                    expected);
}

static qat_status equal(const struct file *f, const char *field, double in_file, double expected)
{
    return in_file == expected ? QAT_OK : refuse(f, field, in_file, expected);
}

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* ------------------------------------------------------------------ preprocessing */

/** What the recipe says of a channel, where it says anything. */
static double given(const qat_real_list *list, int channel, float otherwise)
{
    if (list->n == 0)
        return (double)otherwise;
    return (double)(float)list->v[list->n == 1 || channel >= list->n ? 0 : channel];
}

static qat_status check_normalisation(const struct file *f, const qi_preprocessing *p)
{
    const qat_recipe *r = f->s->recipe;
    bool const pixels = f->c->input.type == QAT_SAMPLE_U8;
    qat_status st = QAT_OK;
    for (int i = 0; !st && i < 4; i++) {
        double const mean = given(&r->data.mean, i, pixels ? 127.5f : 0);
        double const std = given(&r->data.std, i, pixels ? 127.5f : 1);
        st = equal(f, "preprocessing: mean", (double)float_of(p->mean_bits[i]), mean);
        if (!st)
            st = equal(f, "preprocessing: std", (double)float_of(p->std_bits[i]), std);
        if (!st)
            st = equal(f, "preprocessing: mean", (double)f->c->input.mean[i], mean);
        if (!st)
            st = equal(f, "preprocessing: std", (double)f->c->input.std[i], std);
    }
    return st;
}

static qat_status check_preprocessing(const struct file *f)
{
    const qi_preprocessing *p = qi_model_preprocessing(f->model);
    const qat_input_info *in = &f->c->input;
    bool const pixels = in->type == QAT_SAMPLE_U8;
    int64_t const crop = (int64_t)floor(f->s->recipe->data.central_crop * 1e6 + 0.5);
    struct {
        const char *field;
        int32_t in_file;
        int64_t expected;
    } const fields[] = {
        {"preprocessing: kind", p->kind, pixels ? 1 : 2},
        {"preprocessing: height", p->height, pixels ? in->height : 0},
        {"preprocessing: width", p->width, pixels ? in->width : 0},
        {"preprocessing: channels", p->channels, in->channels},
        {"preprocessing: resize_short", p->resize_short,
         pixels && crop == 0 ? f->s->recipe->data.resize_short : 0},
        {"preprocessing: central_crop, in millionths", p->central_crop, pixels ? crop : 0},
        {"preprocessing: channel_order (0 grey, 1 RGB, 2 BGR)", p->channel_order,
         pixels && in->channels >= 3},
    };
    qat_status st = QAT_OK;
    for (size_t i = 0; !st && i < sizeof fields / sizeof *fields; i++)
        st = equal(f, fields[i].field, fields[i].in_file, (double)fields[i].expected);
    return st ? st : check_normalisation(f, p);
}

/* ------------------------------------------------------------------ names */

static qat_status same_text(const struct file *f, const char *field, int number,
                            const char *in_file, const char *expected)
{
    if (in_file && strcmp(in_file, expected) == 0)
        return QAT_OK;
    return qat_fail(f->err, QAT_ERR_MISMATCH,
                    "%s %d is \"%s\" in the file, but the checkpoint gives \"%s\"", field, number,
                    in_file ? in_file : "", expected);
}

static bool has_background(const struct file *f)
{
    return qat_graph_detects(f->s->float_graph) && f->s->recipe->detect.classification == 1;
}

static qat_status check_labels(const struct file *f, const qat_dataset *data)
{
    const qat_dataset_info *info = data ? qat_dataset_info_of(data) : NULL;
    int const first = has_background(f), n = f->c->labels ? f->c->input.classes : 0;
    bool const comparable = info && info->labels && info->classes == n;
    qat_status st = equal(f, "the number of labels", qi_label_count(f->model), n ? n + first : 0);
    if (!st && n && first)
        st = same_text(f, "label", 0, qi_label_at(f->model, 0), "background");
    for (int i = 0; !st && i < n; i++) {
        const char *label = qi_label_at(f->model, i + first);
        st = same_text(f, "label", i + first, label, f->c->labels[i]);
        if (!st && comparable && strcmp(label, info->labels[i]) != 0)
            st = qat_fail(f->err, QAT_ERR_MISMATCH,
                          "label %d is \"%s\" in the file, but class %d of %s is \"%s\"", i + first,
                          label, i, info->name, info->labels[i]);
    }
    return st;
}

static qat_status check_origin(const struct file *f)
{
    const char *name = f->s->recipe->model.name;
    if (memcmp(qi_model_digest(f->model), f->c->digest, sizeof f->c->digest) != 0)
        return qat_fail(f->err, QAT_ERR_MISMATCH,
                        "the file names a checkpoint by its SHA-256, but this is not the SHA-256 "
                        "of the checkpoint that is exported");
    return same_text(f, "description", 0, qi_model_description(f->model),
                     *name ? name : "trained by qat-train");
}

/* ------------------------------------------------------------------ epilogues */

static qat_status check_params(const struct file *f, const qi_epilogue *e, const double *expected,
                               int n_ints, int n_floats, int n_last)
{
    char field[64];
    qat_status st =
        equal(f, "epilogue: the number of parameters", e->n_params, n_ints + n_floats + n_last);
    for (int i = 0; !st && i < e->n_params; i++) {
        bool const real = i >= n_ints && i < n_ints + n_floats;
        double const there = real ? (double)float_of((uint32_t)e->params[i]) : (double)e->params[i];
        snprintf(field, sizeof field, "epilogue: parameter %d", i);
        st = equal(f, field, there, expected[i]);
    }
    return st;
}

static qat_status check_outputs(const struct file *f, const qi_epilogue *e, int n_inputs,
                                int n_outputs)
{
    qat_status st = equal(f, "epilogue: the number of tensors", e->n_inputs, n_inputs);
    for (int i = 0; !st && i < n_outputs; i++)
        st = equal(f, "epilogue: a tensor", e->inputs[i], qi_output_at(f->model, i));
    return st;
}

/** Anchors by SSD's rule (docs/detection.md), one feature map after the other. */
struct anchors {
    const struct file *f;
    const qi_tensor *t;
    size_t at; /* anchors compared so far */
};

static qat_status check_anchor(struct anchors *a, double y, double x, double scale, double ratio)
{
    double const expected[] = {y, x, scale / sqrt(ratio), scale * sqrt(ratio)};
    qat_status st = QAT_OK;
    if ((a->at + 1) * 4 > (size_t)a->t->dims[0] * 4)
        return equal(a->f, "the number of anchors", a->t->dims[0], (double)(a->at + 1));
    for (size_t i = 0; !st && i < 4; i++) {
        uint32_t bits;
        memcpy(&bits, (const uint8_t *)a->t->data + (a->at * 4 + i) * sizeof bits, sizeof bits);
        double const there = (double)float_of(bits);
        char field[48];
        snprintf(field, sizeof field, "anchor %zu, coordinate %zu", a->at, i);
        if (!(fabs(there - expected[i]) <= 1e-6 * fmax(expected[i], 1e-3)))
            st = refuse(a->f, field, there, expected[i]);
    }
    a->at++;
    return st;
}

static qat_status check_cell(struct anchors *a, int map, double y, double x, double scale,
                             double next)
{
    static const double ratios[] = {1, 2, 0.5, 3, 1.0 / 3};
    qat_status st = QAT_OK;
    if (map == 0 && a->f->s->recipe->detect.reduced_lowest) {
        st = check_anchor(a, y, x, 0.1, 1);
        for (int i = 1; !st && i < 3; i++)
            st = check_anchor(a, y, x, scale, ratios[i]);
        return st;
    }
    for (int i = 0; !st && i < 5; i++)
        st = check_anchor(a, y, x, scale, ratios[i]);
    return st ? st : check_anchor(a, y, x, sqrt(scale * next), 1);
}

static const qat_node *head_of(const struct file *f, int map)
{
    char name[32];
    snprintf(name, sizeof name, "head%d/boxes", map);
    const qat_node *head = qat_graph_find(f->s->float_graph, name);
    return head && head->shape.rank == 4 ? head : NULL;
}

static qat_status check_anchors(const struct file *f, const qi_tensor *t)
{
    const qat_recipe *r = f->s->recipe;
    double const low = r->detect.min_scale, high = r->detect.max_scale;
    struct anchors a = {.f = f, .t = t};
    int maps = 0;
    qat_status st = equal(f, "the type of the anchors", t->type, QI_S32);
    if (!st)
        st = equal(f, "coordinates of an anchor", t->dims[1], 4);
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
    return st ? st : equal(f, "the number of anchors", t->dims[0], (double)a.at);
}

static qat_status check_detector(const struct file *f, const qi_epilogue *e)
{
    const qat_recipe *r = f->s->recipe;
    double const boxes = (double)r->detect.max_detections;
    double const expected[] = {boxes,
                               1,
                               boxes,
                               1,
                               f->c->input.classes,
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
    qat_status st = same_text(f, "epilogue", 0, e->name, "detection_postprocess");
    if (!st)
        st = check_outputs(f, e, 3, 2);
    if (!st)
        st = check_params(f, e, expected, 5, 6, 4);
    return st ? st : check_anchors(f, qi_tensor_at(f->model, e->inputs[2]));
}

static qat_status check_attributes(const struct file *f, const qi_epilogue *e)
{
    const qat_attributes *a = &f->c->input.attributes;
    const qat_recipe *r = f->s->recipe;
    double const range = r->attributes.high - r->attributes.low;
    double const expected[] = {(double)(float)r->attributes.low,
                               (double)(float)(range / (double)r->attributes.steps)};
    int const n = a->outputs ? 2 : 1;
    qat_status st = same_text(f, "epilogue", 0, e->name, "attributes");
    if (!st)
        st = check_outputs(f, e, n, n);
    return st ? st : check_params(f, e, expected, 0, 2, 0);
}

static qat_status check_epilogue(const struct file *f)
{
    const qi_epilogue *e = qi_model_epilogue(f->model);
    if (qat_graph_detects(f->s->float_graph))
        return check_detector(f, e);
    if (f->c->input.attributes.count)
        return check_attributes(f, e);
    return equal(f, "the number of epilogues", e->name != NULL, 0);
}

/* ------------------------------------------------------------------ all of it */

/** The engine has answered the stored question when the file was written; a question must be there,
 *  and it must not be the same value throughout. */
static qat_status check_known_answers(const struct file *f)
{
    for (int i = 0; i < qi_input_count(f->model); i++) {
        const qi_tensor *t = qi_tensor_at(f->model, qi_input_at(f->model, i));
        const uint8_t *bytes = qi_kat_input(f->model, i);
        if (!bytes)
            return qat_fail(f->err, QAT_ERR_MISMATCH,
                            "the file must hold a known-answer test, but holds none");
        if (t->bytes > 32 && memcmp(bytes, bytes + 1, t->bytes - 1) == 0)
            return qat_fail(f->err, QAT_ERR_MISMATCH,
                            "the input of the known-answer test has the value %u everywhere, so it "
                            "tests nothing",
                            (unsigned)*bytes);
    }
    return QAT_OK;
}

qat_status qat_certify_file(const qat_certified_source *source, const qi_model *model,
                            const qat_dataset *data, qat_error *err)
{
    struct file const f = {source, source->checkpoint, model, err};
    qat_status st = check_preprocessing(&f);
    if (!st)
        st = check_labels(&f, data);
    if (!st)
        st = check_origin(&f);
    if (!st)
        st = check_epilogue(&f);
    return st ? st : check_known_answers(&f);
}
