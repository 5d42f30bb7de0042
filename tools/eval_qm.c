/**
 * qat-eval for a .qm: brings the test data into the form that the model takes, and runs the integer
 * engine.
 */
#include "tools/common/evaluate.h"
#include "tools/common/limits.h"
#include "tools/common/model.h"
#include "tools/eval.h"

#include "base/bytes.h"
#include "base/files/file.h"
#include "base/files/npy.h"
#include "base/number.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void eval_note_data(eval_results *r, const qat_dataset *d, int classes)
{
    r->classes = classes;
    snprintf(r->data, sizeof r->data, "%s", qat_dataset_info_of(d)->name);
}

/** A model with states takes a sample of the data frame by frame: its last answer counts. */
static void take_sequences(qat_input_info *in, const qi_model *model, const qat_dataset *d)
{
    const qat_dataset_info *info = qat_dataset_info_of(d);
    if (!qi_state_count(model) || info->channels != in->channels)
        return;
    in->height = info->height;
    in->width = info->width;
}

/** A recipe that contains only the size of the model's pictures. */
static qat_status recipe_for(qat_recipe **recipe, const qat_input_info *in, qat_error *err)
{
    char text[200];
    qat_format(text, sizeof text,
               "[data]\nheight = %d\nwidth = %d\nchannels = %d\nresize_short = %d\n"
               "central_crop = %.6f\none_class = %s\n",
               in->height, in->width, in->channels < 4 ? in->channels : 0, in->resize_short,
               in->central_crop / 1e6, in->classes == 1 ? "yes" : "no");
    qat_status const st = qat_recipe_parse(recipe, text, "the model's preprocessing", NULL, 0, err);
    return st ? st : tool_limit_recipe(*recipe, err);
}

/**
 * If the model has no preprocessing, the recipe says how real numbers are normalised. If it has,
 * the recipe must say the same.
 */
static qat_status normalise(qat_input_info *in, const tool_model *m, const qat_recipe *recipe,
                            const qat_dataset *d, qat_error *err)
{
    qat_input_info from_recipe;
    in->within = (float)qat_recipe_number(recipe, "attributes.within");
    if (qi_model_preprocessing(m->model)->kind != 0)
        return qat_input_agrees(in, recipe, err);
    qat_status const st =
        qat_input_info_of(&from_recipe, m->registry, recipe, qat_dataset_info_of(d), err);
    if (st)
        return st;
    memcpy(in->mean, from_recipe.mean, sizeof in->mean);
    memcpy(in->std, from_recipe.std, sizeof in->std);
    return QAT_OK;
}

/** Pictures, cropped as the command line says and resized to the model's size. */
static qat_status open_pictures(qat_dataset **d, const char *kind, const eval_request *q,
                                const qat_input_info *in, qat_error *err)
{
    char path[1024];
    qat_dataset_options o = {.kind = kind,
                             .path = path,
                             .height = in->height,
                             .width = in->width,
                             .channels = in->channels,
                             .resize_short = in->resize_short,
                             .max_pixels = (int)tool_limits_given.pixels,
                             .memory = tool_limits_of().memory,
                             .central_crop =
                                 q->central_crop > 0 ? q->central_crop : in->central_crop / 1e6};
    qat_status const st = qat_expand_path(q->data + strlen(kind) + 1, path, sizeof path, err);
    return st ? st : qat_dataset_open(d, &o, QAT_SPLIT_TEST, err);
}

const char *eval_picture_kind(const char *data)
{
    static const char *const kinds[] = {"folder", "list"};
    for (size_t i = 0; data && i < sizeof kinds / sizeof *kinds; i++)
        if (strncmp(data, kinds[i], strlen(kinds[i])) == 0 && data[strlen(kinds[i])] == ':')
            return kinds[i];
    return NULL;
}

static qat_status open_data(qat_dataset **d, const qat_recipe *recipe, const eval_request *q,
                            const qat_input_info *in, qat_error *err)
{
    const char *kind = eval_picture_kind(q->data);
    if (kind)
        return open_pictures(d, kind, q, in, err);
    return qat_recipe_open_data(d, recipe, q->data, QAT_SPLIT_TEST, err);
}

/** Refuse pixels if the model does not say how they become its input. */
static qat_status check_pixels(const qi_model *model, const qat_dataset *d, qat_error *err)
{
    const qat_dataset_info *info = qat_dataset_info_of(d);
    if (info->type != QAT_SAMPLE_U8 || qi_model_preprocessing(model)->kind == 1)
        return QAT_OK;
    return qat_fail(
        err, QAT_ERR_UNSUPPORTED,
        "%s: the data are pixels; the model takes %s and does not say how pixels become them",
        info->name, tool_input_takes(model));
}

/** Write one sample's pixels in the form that the engine takes. */
static qat_status dump_sample(const char *dir, const qat_dataset *d, int index, qat_writer *labels,
                              qat_error *err)
{
    const qat_dataset_info *info = qat_dataset_info_of(d);
    int64_t const dims[] = {1, info->height, info->width, info->channels};
    char path[1024];
    int label;
    uint8_t *values = malloc((size_t)info->height * (size_t)info->width * (size_t)info->channels);
    if (!values)
        return qat_out_of_memory(err, NULL);
    qat_status st = qat_dataset_get(d, index, values, &label, err);
    snprintf(path, sizeof path, "%.900s/%d.npy", dir, index);
    if (!st)
        st = qat_npy_write(path, QAT_NPY_U8, 4, dims, values, err);
    if (!st)
        qat_write_text(labels, "%d.npy %d\n", index, label);
    free(values);
    return st;
}

static qat_status dump_inputs(const eval_request *q, const qat_dataset *d, qat_error *err)
{
    char path[1024];
    const qat_dataset_info *info = qat_dataset_info_of(d);
    int const n = q->samples > 0 && q->samples < info->count ? (int)q->samples : info->count;
    if (info->type != QAT_SAMPLE_U8)
        return qat_fail(err, QAT_ERR_UNSUPPORTED, "--dump-inputs works with pictures only");
    qat_status st = qat_make_dirs(q->dump_dir, err);
    snprintf(path, sizeof path, "%.900s/labels.txt", q->dump_dir);
    qat_writer labels = {0};
    for (int i = 0; i < n && !st; i++)
        st = dump_sample(q->dump_dir, d, i, &labels, err);
    if (!st)
        st = labels.failed ? qat_out_of_memory(err, path)
                           : qat_file_write_atomic(path, labels.bytes, labels.count, err);
    qat_writer_free(&labels);
    return st;
}

static const char *class_of_model(const void *of, int i)
{
    return i < qi_label_count(of) ? qi_label_at(of, i) : NULL;
}

qat_status eval_model(const char *path, const qat_recipe *other, const eval_request *q,
                      eval_results *r, qat_error *err)
{
    tool_model m;
    qat_input_info in;
    qat_recipe *own = NULL;
    qat_dataset *d = NULL;
    char label[] = "engine";
    tool_run const how = {.plugins = q->plugins, .isa = q->isa};
    qat_status st = tool_model_open(&m, path, &how, err);
    if (st)
        return st;
    st = qat_input_info_of_model(&in, m.registry, m.model, err);
    if (!st && qi_state_count(m.model)) /* one frame; the data say how many */
        in.height = in.width = 0;
    if (!st && !other)
        st = recipe_for(&own, &in, err);
    if (!st)
        st = open_data(&d, other ? other : own, q, &in, err);
    if (!st)
        take_sequences(&in, m.model, d);
    if (!st)
        st = check_pixels(m.model, d, err);
    if (!st && q->dump_dir)
        st = dump_inputs(q, d, err);
    if (!st)
        st = normalise(&in, &m, other ? other : own, d, err);
    if (!st)
        st = tool_check_class_names(d, class_of_model, m.model, in.classes, err);
    if (!st) {
        eval_note_data(r, d, in.classes);
        r->isa = qi_host_isa(m.host);
        st = qat_evaluate_model(m.host, &in, d, q->samples, tool_tick, label, &r->quantized, err);
    }
    qat_dataset_close(d);
    qat_recipe_free(own);
    tool_model_close(&m);
    return st;
}
