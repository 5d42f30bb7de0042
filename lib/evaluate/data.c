/** Opens a recipe's data, and derives a network's input from them. */
#include "evaluate/data.h"

#include "base/words.h"
#include "recipe/recipe.h"
#include "task/task.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** Split "KIND[:PATH]": returns the kind's index and sets the path; -1: unknown. */
static int split_spec(const char *spec, const char **path)
{
    size_t const n = strcspn(spec, ":");
    *path = spec[n] ? spec + n + 1 : "";
    for (int i = 0; i < qat_dataset_kinds(); i++) {
        const char *name = qat_dataset_kind_name(i);
        if (strlen(name) == n && !memcmp(name, spec, n))
            return i;
    }
    return -1;
}

/** If the data know their number of classes, the recipe may state it but not change it. */
static qat_status check_classes(const qat_recipe *recipe, const qat_dataset_info *info,
                                qat_error *err)
{
    if (!recipe->data.classes || recipe->data.classes == info->classes)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_ARGUMENT, "data.classes = %lld, but %s has %d",
                    (long long)recipe->data.classes, info->name, info->classes);
}

/**
 * Only pictures are resized. For signals and real values the recipe may state a size but not change
 * it.
 */
static qat_status check_size(const qat_recipe *recipe, const qat_dataset_info *info, qat_error *err)
{
    struct {
        const char *key;
        int64_t wanted;
        int64_t found;
    } const sizes[] = {{"height", recipe->data.height, info->height},
                       {"width", recipe->data.width, info->width},
                       {"channels", recipe->data.channels, info->channels},
                       {"resize_short", recipe->data.resize_short, 0}};
    bool const resized = qat_dataset_kind_resizes((int)recipe->data.kind);
    if ((!resized || info->has_objects) && recipe->data.central_crop > 0)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "data.central_crop = %g: only pictures in files can be cropped, not %s",
                        recipe->data.central_crop, info->name);
    for (int i = 0; !resized && i < 4; i++)
        if (sizes[i].wanted > 0 && sizes[i].wanted != sizes[i].found)
            return qat_fail(err, QAT_ERR_ARGUMENT,
                            "data.%s = %lld, but %s has samples of %d x %d x %d%s", sizes[i].key,
                            (long long)sizes[i].wanted, info->name, info->height, info->width,
                            info->channels,
                            i == 3 ? "; only pictures in files can be cropped"
                            : info->type == QAT_SAMPLE_F32 ? "; real values are not resized"
                                                           : "");
    return QAT_OK;
}

/** The error if opening failed. If the path contains ${QAT_DATA}, the message shows its value. */
static qat_status not_opened(const char *raw, qat_status st, qat_error *err)
{
    const char *data = getenv("QAT_DATA");
    bool const given = data && *data;
    if (!err || st != QAT_ERR_IO || !strstr(raw, "${QAT_DATA}"))
        return st;
    size_t const used = strlen(err->message);
    snprintf(err->message + used, sizeof err->message - used, " (${QAT_DATA} is %.200s%s",
             given ? data : QAT_DATA_DEFAULT,
             given ? ", from the environment)" : ": set QAT_DATA to another folder)");
    return st;
}

uint64_t qat_data_memory(const qat_recipe *recipe)
{
    return (uint64_t)recipe->data.memory << 20;
}

static void set_coco(qat_dataset_options *o, const qat_recipe *recipe)
{
    o->annotations[QAT_SPLIT_TRAIN] = recipe->data.train_annotations;
    o->annotations[QAT_SPLIT_TEST] = recipe->data.test_annotations;
    o->images[QAT_SPLIT_TRAIN] = recipe->data.train_images;
    o->images[QAT_SPLIT_TEST] = recipe->data.test_images;
}

qat_status qat_recipe_open_data(qat_dataset **dataset, const qat_recipe *recipe, const char *spec,
                                qat_split split, qat_error *err)
{
    return qat_open_data_looking(dataset, recipe, spec, split, NULL, err);
}

qat_status qat_recipe_open_undrawn(qat_dataset **dataset, const qat_recipe *recipe, qat_split split,
                                   qat_error *err)
{
    static const qat_data_look undrawn = {.undrawn = true};
    return qat_open_data_looking(dataset, recipe, NULL, split, &undrawn, err);
}

qat_status qat_open_data_looking(qat_dataset **dataset, const qat_recipe *recipe, const char *spec,
                                 qat_split split, const qat_data_look *look, qat_error *err)
{
    char path[1024];
    const char *raw = recipe->data.path;
    int const kind = spec ? split_spec(spec, &raw) : recipe->data.kind;
    *dataset = NULL;
    if (kind < 0)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "data %s: expected KIND[:PATH], where KIND is one of %s", spec,
                        QAT_DATASET_KINDS_TEXT);
    if (qat_dataset_kind_needs_path(kind) && !*raw)
        return qat_fail(err, QAT_ERR_ARGUMENT, "data of kind %s need a path",
                        qat_dataset_kind_name(kind));
    if (spec && !qat_dataset_kind_needs_path(kind) && *raw)
        return qat_fail(err, QAT_ERR_ARGUMENT, "data %s: data of kind %s are drawn, from no path",
                        spec, qat_dataset_kind_name(kind));
    qat_status const st = qat_expand_path(raw, path, sizeof path, err);
    if (st)
        return st;
    qat_dataset_options o = {.struct_size = sizeof o,
                             .kind = qat_dataset_kind_name(kind),
                             .path = path,
                             .seed = (uint64_t)recipe->data.seed,
                             .classes = (int)recipe->data.classes,
                             .height = (int)recipe->data.height,
                             .width = (int)recipe->data.width,
                             .channels = (int)recipe->data.channels,
                             .resize_short = (int)recipe->data.resize_short,
                             .central_crop = recipe->data.central_crop,
                             .max_pixels = (int)recipe->data.max_pixels,
                             .jpeg_scale = recipe->data.jpeg_scale == 1,
                             .attributes = recipe->data.attributes,
                             .value = recipe->data.value,
                             .one_class = recipe->data.one_class,
                             .presence = recipe->data.presence,
                             .pixels = recipe->data.pixels,
                             .ignore = recipe->data.ignore < 0 ? -1 : (int)recipe->data.ignore + 1,
                             .seconds = recipe->data.seconds,
                             .words = recipe->data.words,
                             .memory = qat_data_memory(recipe),
                             .undrawn = look && look->undrawn,
                             .tick = look ? look->tick : NULL,
                             .tick_context = look ? look->context : NULL};
    set_coco(&o, recipe);
    if (!spec) {
        o.train_count = (int)recipe->data.train_count;
        o.test_count = (int)recipe->data.test_count;
        o.split = recipe->data.split;
        o.validation = recipe->data.validation;
    }
    qat_status opened = qat_dataset_open(dataset, &o, split, err);
    if (!opened && !spec)
        opened = check_size(recipe, qat_dataset_info_of(*dataset), err);
    if (!opened && !spec)
        opened = check_classes(recipe, qat_dataset_info_of(*dataset), err);
    if (!opened && recipe->data.skip_broken)
        opened = qat_skip_broken(*dataset, look, err);
    if (opened) {
        qat_dataset_close(*dataset);
        *dataset = NULL;
        opened = not_opened(raw, opened, err);
    }
    return opened;
}

/** One value for all channels, or one per channel, or the automatic one. */
static qat_status spread(float out[QAT_CHANNEL_VALUES], const qat_real_list *list, int channels,
                         float automatic, const char *name, qat_error *err)
{
    if (list->n > 1 && list->n != channels)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "data.%s has %d values, but the data have %d channels", name, list->n,
                        channels);
    for (int c = 0; c < QAT_CHANNEL_VALUES; c++)
        out[c] = list->n == 0 ? automatic : (float)list->v[list->n == 1 || c >= list->n ? 0 : c];
    return QAT_OK;
}

/** Set the least and the largest normalised value over the channels. */
static void normalised_range(qat_input_info *info, float low, float high)
{
    info->min = INFINITY;
    info->max = -INFINITY;
    int const n = info->channels < QAT_CHANNEL_VALUES ? info->channels : QAT_CHANNEL_VALUES;
    for (int c = 0; c < n; c++) {
        info->min = fminf(info->min, (low - info->mean[c]) / info->std[c]);
        info->max = fmaxf(info->max, (high - info->mean[c]) / info->std[c]);
    }
}

qat_status qat_central_crop_of(int *millionths, const qat_recipe *recipe, qat_error *err)
{
    double const share = recipe->data.central_crop;
    *millionths = (int)(share * 1e6 + 0.5);
    if (*millionths / 1e6 == share)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_ARGUMENT,
                    "data.central_crop = %.17g has more than six decimals, and a .qm cannot say it",
                    share);
}

/** A run whose checkpoint could not be read again must not start. */
static qat_status check_answers(const qat_input_info *info, const qat_recipe *recipe,
                                qat_error *err)
{
    enum { MAX_CLASSES = 65536 }; /* QAT_CHECKPOINT_MAX_CLASSES, which is above this folder */
    if (info->classes <= MAX_CLASSES)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_ARGUMENT,
                    "%s: task %s: a network answers %d values for a sample of %d x %d x %d, but at "
                    "most %d are possible",
                    recipe->source, info->task->name, info->classes, info->height, info->width,
                    info->channels, MAX_CLASSES);
}

qat_status qat_input_info_of(qat_input_info *info, const qat_registry *registry,
                             const qat_recipe *recipe, const qat_dataset_info *data, qat_error *err)
{
    bool const pixels = data->type != QAT_SAMPLE_F32; /* or codes of sounds: bytes */
    *info = (qat_input_info){.height = data->height,
                             .width = data->width,
                             .channels = data->channels,
                             .classes = data->classes,
                             .type = data->type,
                             .resize_short = (int)recipe->data.resize_short,
                             .task = qat_task_for(registry, recipe, data),
                             .within = (float)recipe->attributes.within};
    qat_status st = qat_central_crop_of(&info->central_crop, recipe, err);
    if (!st && info->task->input)
        st = info->task->input(info, recipe, data, err);
    if (!st)
        st = check_answers(info, recipe, err);
    if (!st && pixels && data->channels > QAT_CHANNEL_VALUES)
        st = qat_fail(err, QAT_ERR_UNSUPPORTED,
                      "pictures have %d channels, but at most %d are possible", data->channels,
                      QAT_CHANNEL_VALUES);
    if (!st)
        st = spread(info->mean, &recipe->data.mean, data->channels, pixels ? 127.5f : 0, "mean",
                    err);
    if (!st)
        st = spread(info->std, &recipe->data.std, data->channels, pixels ? 127.5f : 1, "std", err);
    if (st)
        return st;
    normalised_range(info, data->min, data->max);
    if (!isnan(recipe->quant.input_min))
        info->min = (float)recipe->quant.input_min;
    if (!isnan(recipe->quant.input_max))
        info->max = (float)recipe->quant.input_max;
    if (!(info->min < info->max))
        return qat_fail(err, QAT_ERR_ARGUMENT, "the range %g..%g of the input is empty", info->min,
                        info->max);
    return QAT_OK;
}

qat_status qat_recipe_check_batch(const qat_recipe *recipe, const qat_dataset_info *training,
                                  qat_error *err)
{
    if (training->count >= recipe->train.batch)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_ARGUMENT,
                    "train.batch = %lld, but there are only %d training samples",
                    (long long)recipe->train.batch, training->count);
}

static qat_status agrees(const float *model, const qat_real_list *list, int channels,
                         const char *name, const char *source, qat_error *err)
{
    float given[QAT_CHANNEL_VALUES];
    if (list->n == 0)
        return QAT_OK;
    qat_status const st = spread(given, list, channels, 0, name, err);
    for (int c = 0; !st && c < channels && c < QAT_CHANNEL_VALUES; c++)
        if (given[c] != model[c])
            return qat_fail(err, QAT_ERR_ARGUMENT,
                            "%s: data.%s is %g in channel %d, but the network was made with %g",
                            source, name, (double)given[c], c, (double)model[c]);
    return st;
}

qat_status qat_input_agrees(const qat_input_info *input, const qat_recipe *recipe, qat_error *err)
{
    if (input->type != QAT_SAMPLE_F32)
        return QAT_OK;
    qat_status const st =
        agrees(input->mean, &recipe->data.mean, input->channels, "mean", recipe->source, err);
    return st ? st
              : agrees(input->std, &recipe->data.std, input->channels, "std", recipe->source, err);
}

static const char *values_of(qat_sample_type type)
{
    static const char *const names[] = {"pixels", "real values", "codes of sounds"};
    return names[type];
}

qat_status qat_input_equal(const qat_input_info *reference, const qat_input_info *model,
                           qat_error *err)
{
    const qat_input_info *a = reference, *b = model;
    if (a->height != b->height || a->width != b->width || a->channels != b->channels ||
        a->type != b->type)
        return qat_fail(err, QAT_ERR_SHAPE,
                        "the float network takes %d x %d x %d %s, but the model %d x %d x %d %s",
                        a->height, a->width, a->channels, values_of(a->type), b->height, b->width,
                        b->channels, values_of(b->type));
    for (int c = 0; c < a->channels && c < QAT_CHANNEL_VALUES; c++)
        if (a->mean[c] != b->mean[c] || a->std[c] != b->std[c])
            return qat_fail(err, QAT_ERR_SHAPE,
                            "in channel %d the float network takes values with mean %g and std %g, "
                            "but the model with %g and %g",
                            c, (double)a->mean[c], (double)a->std[c], (double)b->mean[c],
                            (double)b->std[c]);
    return QAT_OK;
}

qat_status qat_input_check(const qat_input_info *input, const qat_dataset *data, qat_error *err)
{
    const qat_dataset_info *d = qat_dataset_info_of(data);
    if (d->height == input->height && d->width == input->width && d->channels != input->channels)
        return qat_fail(err, QAT_ERR_SHAPE,
                        "%s: samples have %d channel%s, but the network takes %d", d->name,
                        d->channels, qat_plural(d->channels), input->channels);
    if (d->height != input->height || d->width != input->width || d->channels != input->channels)
        return qat_fail(err, QAT_ERR_SHAPE,
                        "%s: samples have %d x %d x %d values, but the network takes %d x %d x %d",
                        d->name, d->height, d->width, d->channels, input->height, input->width,
                        input->channels);
    if (d->type != input->type)
        return qat_fail(err, QAT_ERR_SHAPE, "%s: %s, but the network takes %s", d->name,
                        values_of(d->type), values_of(input->type));
    qat_status const st = qat_task_check_data(input, d, false, err);
    if (st)
        return st;
    if (!qat_task_of(input)->units)
        return QAT_OK;
    if (d->classes > input->classes || (d->labels && d->classes < input->classes))
        return qat_fail(err, QAT_ERR_SHAPE, "%s: %d classes, but the network has %d", d->name,
                        d->classes, input->classes);
    return QAT_OK;
}

qat_status qat_open_loader(qat_loader **loader, const qat_dataset *data,
                           const qat_input_info *input, const qat_loader_options *options,
                           qat_error *err)
{
    qat_loader_options o = *options;
    size_t const n = (size_t)input->channels;
    float *values = malloc(2 * n * sizeof *values);
    *loader = NULL;
    if (!values)
        return qat_out_of_memory(err, "data");
    for (size_t c = 0; c < n; c++) {
        values[c] = input->mean[c < QAT_CHANNEL_VALUES ? c : 0];
        values[n + c] = input->std[c < QAT_CHANNEL_VALUES ? c : 0];
    }
    o.mean = values;
    o.std = values + n;
    qat_status st = qat_input_check(input, data, err);
    if (!st)
        st = qat_loader_create(loader, data, &o, err);
    free(values);
    return st;
}
