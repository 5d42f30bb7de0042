/**
 * Pictures with boxes, as COCO's annotation files list them (coco_json.h): in the folder `path`
 *
 *     instances_train.json  instances_val.json  images/
 *
 * or under other names. Pictures are decoded when they are requested, and resized without cropping.
 * Boxes are fractions of the picture, so they do not change.
 */
#include "datasets/dataset_kind.h"
#include "datasets/readers/coco_json.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEFAULT_SIDE = 32, DEFAULT_CHANNELS = 3 };

typedef struct coco_set {
    qat_coco_file file;
    const char *annotations, *images; /* paths */
    int max_pixels;
} coco_set;

static const char *or_default(const char *text, const char *otherwise)
{
    return text && *text ? text : otherwise;
}

static qat_status find_files(coco_set *set, qat_dataset *dataset, const qat_dataset_options *o,
                             qat_split split, qat_error *err)
{
    static const char *const names[] = {"instances_train.json", "instances_val.json"};
    set->annotations =
        qat_dataset_join(&dataset->arena, o->path, or_default(o->annotations[split], names[split]));
    set->images =
        qat_dataset_join(&dataset->arena, o->path, or_default(o->images[split], "images"));
    const char *test = qat_dataset_join(&dataset->arena, o->path,
                                        or_default(o->annotations[QAT_SPLIT_TEST], names[1]));
    if (!set->annotations || !set->images || !test)
        return qat_out_of_memory(err, o->path);
    bool const has_test = access(test, F_OK) == 0;
    if (o->split > 0 && has_test && strcmp(test, set->annotations) != 0)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "%s is there already: data.split would make another test split", test);
    if (split == QAT_SPLIT_TEST && !has_test)
        return qat_fail(err, QAT_ERR_IO,
                        "cannot open %s: no such file; data.split = 0.8 trains on 80 %% of the "
                        "pictures of data.train_annotations and tests on the others",
                        test);
    return QAT_OK;
}

static void set_info(qat_dataset *dataset, const qat_coco_file *file)
{
    dataset->info.classes = file->n_classes;
    dataset->info.labels = file->labels;
    dataset->info.has_objects = true;
    dataset->info.most_objects = file->most_objects;
    dataset->ignored.boxes = file->empty_boxes;
}

static qat_status coco_open(qat_dataset *dataset, const qat_dataset_options *options,
                            qat_split split, qat_error *err)
{
    int const channels = options->channels ? options->channels : DEFAULT_CHANNELS;
    int64_t const hwc[3] = {options->height ? options->height : DEFAULT_SIDE,
                            qat_dataset_width(options, DEFAULT_SIDE), channels};
    coco_set *set = dataset->own = qat_arena_take(&dataset->arena, sizeof *set);
    if (!set)
        return qat_out_of_memory(err, options->path);
    set->max_pixels = options->max_pixels;
    if (channels != 1 && channels != 3)
        return qat_fail(err, QAT_ERR_ARGUMENT, "data: channels %d, must be 1 or 3", channels);
    if (options->resize_short || options->central_crop > 0)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "data: kind coco always resizes whole pictures; resize_short %d and crops "
                        "would cut off boxes",
                        options->resize_short);
    qat_status st = find_files(set, dataset, options, split, err);
    if (!st)
        st = qat_coco_read(&set->file, dataset, set->annotations, options->one_class, err);
    if (st)
        return st;
    set_info(dataset, &set->file);
    return qat_dataset_set_shape(
        dataset, set->annotations,
        qat_dataset_limit(set->file.n_pictures, qat_split_count(options, split)), hwc,
        QAT_SAMPLE_U8, err);
}

static const qat_objects *coco_objects(const qat_dataset *dataset, int index)
{
    const coco_set *set = dataset->own;
    return &set->file.pictures[index].objects;
}

static qat_status read_picture(const qat_dataset *dataset, int index, const char *path,
                               qat_picture *picture, qat_error *err)
{
    const coco_set *set = dataset->own;
    const qat_objects *o = coco_objects(dataset, index);
    qat_status const st =
        qat_picture_read_within(picture, path, dataset->info.channels, set->max_pixels, err);
    if (st || (picture->height == o->height && picture->width == o->width))
        return st;
    return qat_fail(err, QAT_ERR_FORMAT, "%s: %d x %d pixels (width x height), %s says %d x %d",
                    path, picture->width, picture->height, set->annotations, o->width, o->height);
}

static qat_status coco_picture(const qat_dataset *dataset, int index, qat_picture *picture,
                               qat_error *err)
{
    const coco_set *set = dataset->own;
    qat_arena arena = {0};
    const char *path = qat_dataset_join(&arena, set->images, set->file.pictures[index].file_name);
    qat_status const st = path ? read_picture(dataset, index, path, picture, err)
                               : qat_out_of_memory(err, set->images);
    qat_arena_free(&arena);
    return st;
}

static qat_file_name coco_file(const qat_dataset *dataset, int index)
{
    const coco_set *set = dataset->own;
    return (qat_file_name){.folder = set->images, .name = set->file.pictures[index].file_name};
}

static void coco_keep(qat_dataset *dataset, const int *kept, int n)
{
    coco_set *set = dataset->own;
    qat_keep_items(set->file.pictures, sizeof *set->file.pictures, kept, n);
}

const qat_dataset_kind qat_kind_coco = {.name = "coco",
                                        .needs_path = true,
                                        .resizes = true,
                                        .splits = true,
                                        .open = coco_open,
                                        .get = qat_dataset_get_resized,
                                        .objects = coco_objects,
                                        .picture = coco_picture,
                                        .file = coco_file,
                                        .keep = coco_keep};
