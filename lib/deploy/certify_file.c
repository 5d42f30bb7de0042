/** What a file says beside its graph, against the recipe and the checkpoint that it was made of. */
#include "checkpoint/checkpoint.h"
#include "deploy/certified_source.h"
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

/* ------------------------------------------------------------------ preprocessing */

/** What the recipe says of a channel, where it says anything. */
static double given(const qat_real_list *list, int channel, float otherwise)
{
    if (list->n == 0)
        return (double)otherwise;
    return (double)(float)list->v[list->n == 1 || channel >= list->n ? 0 : channel];
}

static qat_status check_normalisation(const qat_certified_file *f, const qi_preprocessing *p)
{
    const qat_recipe *r = f->recipe;
    bool const bytes = f->c->input.type != QAT_SAMPLE_F32;
    qat_status st = QAT_OK;
    for (int i = 0; !st && i < 4; i++) {
        double const mean = given(&r->data.mean, i, bytes ? 127.5f : 0);
        double const std = given(&r->data.std, i, bytes ? 127.5f : 1);
        st = qat_certify_equal(f, "preprocessing: mean", (double)float_of(p->mean_bits[i]), mean);
        if (!st)
            st = qat_certify_equal(f, "preprocessing: std", (double)float_of(p->std_bits[i]), std);
        if (!st)
            st = qat_certify_equal(f, "preprocessing: mean", (double)f->c->input.mean[i], mean);
        if (!st)
            st = qat_certify_equal(f, "preprocessing: std", (double)f->c->input.std[i], std);
    }
    return st;
}

static qat_status check_preprocessing(const qat_certified_file *f)
{
    const qi_preprocessing *p = qi_model_preprocessing(f->model);
    const qat_input_info *in = &f->c->input;
    static const int kinds[] = {1, 2, 3}; /* by type: pixels, real numbers, sound */
    bool const pixels = in->type == QAT_SAMPLE_U8, sized = in->type != QAT_SAMPLE_F32;
    int64_t const crop = (int64_t)floor(f->recipe->data.central_crop * 1e6 + 0.5);
    struct {
        const char *field;
        int32_t in_file;
        int64_t expected;
    } const fields[] = {
        {"preprocessing: kind", p->kind, kinds[in->type]},
        {"preprocessing: height", p->height, sized ? in->height : 0},
        {"preprocessing: width", p->width, sized ? in->width : 0},
        {"preprocessing: channels", p->channels, in->channels},
        {"preprocessing: resize_short", p->resize_short,
         pixels && crop == 0 ? f->recipe->data.resize_short : 0},
        {"preprocessing: central_crop, in millionths", p->central_crop, pixels ? crop : 0},
        {"preprocessing: channel_order (0 grey, 1 RGB, 2 BGR)", p->channel_order,
         pixels && in->channels >= 3},
    };
    qat_status st = QAT_OK;
    for (size_t i = 0; !st && i < sizeof fields / sizeof *fields; i++)
        st = qat_certify_equal(f, fields[i].field, fields[i].in_file, (double)fields[i].expected);
    return st ? st : check_normalisation(f, p);
}

/* ------------------------------------------------------------------ names */

static qat_status check_labels(const qat_certified_file *f, const qat_dataset *data)
{
    const qat_dataset_info *info = data ? qat_dataset_info_of(data) : NULL;
    const qat_task *task = qat_task_of_graph(f->float_graph);
    const char *before = task->first_label ? task->first_label(f->recipe) : NULL;
    int const first = before != NULL, n = f->c->labels ? f->c->input.classes : 0;
    bool const comparable = info && info->labels && info->classes == n;
    qat_status st =
        qat_certify_equal(f, "the number of labels", qi_label_count(f->model), n ? n + first : 0);
    if (!st && n && first)
        st = qat_certify_text(f, "label", 0, qi_label_at(f->model, 0), before);
    for (int i = 0; !st && i < n; i++) {
        const char *label = qi_label_at(f->model, i + first);
        st = qat_certify_text(f, "label", i + first, label, f->c->labels[i]);
        if (!st && comparable && strcmp(label, info->labels[i]) != 0)
            st = qat_fail(f->err, QAT_ERR_MISMATCH,
                          "label %d is \"%s\" in the file, but class %d of %s is \"%s\"", i + first,
                          label, i, info->name, info->labels[i]);
    }
    return st;
}

static qat_status check_origin(const qat_certified_file *f)
{
    const char *name = f->recipe->model.name;
    if (memcmp(qi_model_digest(f->model), f->c->digest, sizeof f->c->digest) != 0)
        return qat_fail(f->err, QAT_ERR_MISMATCH,
                        "the file names a checkpoint by its SHA-256, but this is not the SHA-256 "
                        "of the checkpoint that is exported");
    return qat_certify_text(f, "description", 0, qi_model_description(f->model),
                            *name ? name : "trained by qat-train");
}

static qat_status check_epilogue(const qat_certified_file *f)
{
    const qi_epilogue *e = qi_model_epilogue(f->model);
    const qat_task *task = qat_task_of_graph(f->float_graph);
    if (task->certify)
        return task->certify(f, e);
    return qat_certify_equal(f, "the number of epilogues", e->name != NULL, task->finish != NULL);
}

/* ------------------------------------------------------------------ all of it */

/** The engine has answered the stored question when the file was written; a question must be there,
 *  and it must not be the same value throughout. */
static qat_status check_known_answers(const qat_certified_file *f)
{
    for (int i = 0; i < qi_input_count(f->model); i++) {
        const qi_tensor *t = qi_tensor_at(f->model, qi_input_at(f->model, i));
        const uint8_t *bytes = qi_kat_input(f->model, i);
        size_t const width = qi_type_bytes((qi_type)t->type);
        if (!bytes)
            return qat_fail(f->err, QAT_ERR_MISMATCH,
                            "the file must hold a known-answer test, but holds none");
        if (t->bytes > 32 && memcmp(bytes, bytes + width, t->bytes - width) == 0)
            return qat_fail(f->err, QAT_ERR_MISMATCH,
                            "the input of the known-answer test has the value %d everywhere, so it "
                            "tests nothing",
                            (int)qi_value_at((qi_type)t->type, bytes, 0));
    }
    return QAT_OK;
}

qat_status qat_certify_file(const qat_certified_source *source, const qi_model *model,
                            const qat_dataset *data, qat_error *err)
{
    qat_certified_file const f = {source->checkpoint, source->recipe, source->float_graph, model,
                                  err};
    qat_status st = check_preprocessing(&f);
    if (!st)
        st = check_labels(&f, data);
    if (!st)
        st = check_origin(&f);
    if (!st)
        st = check_epilogue(&f);
    return st ? st : check_known_answers(&f);
}
