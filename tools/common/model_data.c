#include "tools/common/model_data.h"

#include "tools/common/evaluate.h"
#include "tools/common/limits.h"

#include "base/number.h"
#include "qat/sound.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** What the command line says. */
typedef struct tool_wanted {
    const char *spec;
    double central_crop;
} tool_wanted;

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

/** data.memory in bytes. */
static uint64_t memory_of(const qat_recipe *recipe)
{
    return (uint64_t)qat_recipe_number(recipe, "data.memory") << 20;
}

/** Pictures, cropped as the command line says and resized to the model's size. */
static qat_status open_pictures(qat_dataset **d, const qat_recipe *recipe, const char *kind,
                                const tool_wanted *q, const qat_input_info *in, qat_error *err)
{
    char path[1024];
    qat_dataset_options o = {.kind = kind,
                             .path = path,
                             .height = in->height,
                             .width = in->width,
                             .channels = in->channels,
                             .resize_short = in->resize_short,
                             .max_pixels = (int)qat_recipe_number(recipe, "data.max_pixels"),
                             .memory = memory_of(recipe),
                             .central_crop =
                                 q->central_crop > 0 ? q->central_crop : in->central_crop / 1e6};
    qat_status const st = qat_expand_path(q->spec + strlen(kind) + 1, path, sizeof path, err);
    return st ? st : qat_dataset_open(d, &o, QAT_SPLIT_TEST, err);
}

/** The words that a model knows, if it also knows silence or what is neither; or NULL. free() it.
 */
static char *words_of(const qi_model *model)
{
    size_t bytes = 1;
    bool others = false;
    for (int i = 0; i < qi_label_count(model); i++)
        bytes += strlen(qi_label_at(model, i)) + 1;
    char *words = calloc(bytes, 1), *end = words;
    for (int i = 0; words && i < qi_label_count(model); i++) {
        const char *label = qi_label_at(model, i);
        bool const other = !strcmp(label, "_silence_") || !strcmp(label, "_unknown_");
        others |= other;
        if (!other)
            end += sprintf(end, "%s%s", end > words ? "," : "", label);
    }
    if (!others && words)
        *words = 0;
    return words;
}

/** Sounds as long as the model's, with its classes. */
static qat_status open_sounds(qat_dataset **d, const qat_recipe *recipe, const tool_wanted *q,
                              const qi_model *model, qat_error *err)
{
    char path[1024];
    int const frames = qi_state_count(model) ? 0 : qi_model_preprocessing(model)->height;
    char *words = words_of(model);
    qat_dataset_options const o = {.kind = "wav",
                                   .path = path,
                                   .seconds = (double)qat_wave_samples(frames) / QI_SOUND_RATE,
                                   .words = words,
                                   .memory = memory_of(recipe)};
    qat_status st = words ? qat_expand_path(q->spec + strlen("wav:"), path, sizeof path, err)
                          : qat_out_of_memory(err, "data");
    if (!st)
        st = qat_dataset_open(d, &o, QAT_SPLIT_TEST, err);
    free(words);
    return st;
}

const char *tool_picture_kind(const char *data)
{
    static const char *const kinds[] = {"folder", "list"};
    for (size_t i = 0; data && i < sizeof kinds / sizeof *kinds; i++)
        if (strncmp(data, kinds[i], strlen(kinds[i])) == 0 && data[strlen(kinds[i])] == ':')
            return kinds[i];
    return NULL;
}

static qat_status open_data(qat_dataset **d, const qat_recipe *recipe, const tool_wanted *q,
                            const qat_input_info *in, const qi_model *model, qat_error *err)
{
    const char *kind = tool_picture_kind(q->spec);
    if (kind)
        return open_pictures(d, recipe, kind, q, in, err);
    if (q->spec && !strncmp(q->spec, "wav:", 4) && qi_model_preprocessing(model)->kind == 3)
        return open_sounds(d, recipe, q, model, err);
    return qat_recipe_open_data(d, recipe, q->spec, QAT_SPLIT_TEST, err);
}

/** Refuse pixels or sounds if the model does not say how they become its input. */
static qat_status check_bytes(const qi_model *model, const qat_dataset *d, qat_error *err)
{
    const qat_dataset_info *info = qat_dataset_info_of(d);
    bool const sounds = info->type == QAT_SAMPLE_SOUND;
    if (info->type == QAT_SAMPLE_F32 || qi_model_preprocessing(model)->kind == (sounds ? 3 : 1))
        return QAT_OK;
    return qat_fail(err, QAT_ERR_UNSUPPORTED,
                    "%s: the data are %s; the model takes %s and does not say how %s become them",
                    info->name, sounds ? "sounds" : "pixels", tool_input_takes(model),
                    sounds ? "sounds" : "pixels");
}

static const char *class_of_model(const void *of, int i)
{
    return i < qi_label_count(of) ? qi_label_at(of, i) : NULL;
}

qat_status tool_model_data_open(tool_model_data *of, const tool_model *m, const qat_recipe *recipe,
                                const char *spec, double central_crop, qat_error *err)
{
    tool_wanted const q = {spec, central_crop};
    *of = (tool_model_data){0};
    qat_status st = qat_input_info_of_model(&of->input, m->registry, m->model, err);
    if (!st && qi_state_count(m->model)) /* one frame; the data say how many */
        of->input.height = of->input.width = 0;
    if (!st && !recipe)
        st = recipe_for(&of->own, &of->input, err);
    const qat_recipe *used = recipe ? recipe : of->own;
    if (!st)
        st = open_data(&of->data, used, &q, &of->input, m->model, err);
    if (!st)
        take_sequences(&of->input, m->model, of->data);
    if (!st)
        st = check_bytes(m->model, of->data, err);
    if (!st)
        st = normalise(&of->input, m, used, of->data, err);
    return st ? st
              : tool_check_class_names(of->data, class_of_model, m->model, of->input.classes, err);
}

void tool_model_data_close(tool_model_data *of)
{
    qat_dataset_close(of->data);
    qat_recipe_free(of->own);
    *of = (tool_model_data){0};
}
