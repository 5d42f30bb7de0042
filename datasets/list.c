/**
 * Pictures named in a text file, one a line: the picture's path, from the file's folder, white
 * space, and the number of its class. Pictures are decoded when they are asked for.
 *
 *     images/n01494475.jpg 5
 *
 * path: such a file, for either split, or a folder that holds train.txt and test.txt.
 */
#include "datasets/dataset_kind.h"

#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_LIST_BYTES = 1 << 28, DEFAULT_SIDE = 32, DEFAULT_CHANNELS = 3 };

typedef struct list_set {
    const char **paths; /* one a sample */
    int32_t *labels;
    int resize_short;
    double central_crop;
} list_set;

static bool is_folder(const char *path)
{
    struct stat there;
    return stat(path, &there) == 0 && S_ISDIR(there.st_mode);
}

/** The folder that a file lies in. */
static char *folder_of(qat_arena *arena, const char *file)
{
    char *folder = qat_arena_string(arena, file);
    char *slash = folder ? strrchr(folder, '/') : NULL;
    if (!slash)
        return folder ? strcpy(folder, *folder ? "." : "") : NULL;
    slash[slash == folder] = 0;
    return folder;
}

static int count_lines(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n + 1;
}

/** One line, its end cut off: "path class". Blank lines are passed over. */
static qat_status read_line(qat_dataset *dataset, list_set *set, const char *file,
                            const char *folder, char *line, int number, qat_error *err)
{
    size_t end = strlen(line);
    while (end > 0 && strchr(" \t\r", line[end - 1]))
        line[--end] = 0;
    if (end == 0)
        return QAT_OK;
    char *space = line + end, *rest;
    while (space > line && !strchr(" \t", space[-1]))
        space--;
    long const label = strtol(space, &rest, 10);
    if (space == line || *rest || rest == space || label < 0 || label > UINT16_MAX)
        return qat_fail(err, QAT_ERR_FORMAT,
                        "%s:%d: \"%.80s\" is not a picture and its class, 0..65535", file, number,
                        line);
    while (space > line && strchr(" \t", space[-1]))
        *--space = 0;
    const char *path = *line == '/' ? qat_arena_string(&dataset->arena, line)
                                    : qat_dataset_join(&dataset->arena, folder, line);
    if (!path)
        return qat_fail(err, QAT_ERR_NOMEM, "%s: no memory to read", file);
    set->paths[dataset->info.count] = path;
    set->labels[dataset->info.count++] = (int32_t)label;
    return QAT_OK;
}

static qat_status read_lines(qat_dataset *dataset, list_set *set, const char *file, char *text,
                             qat_error *err)
{
    size_t const lines = (size_t)count_lines(text);
    const char *folder = folder_of(&dataset->arena, file);
    qat_status st = QAT_OK;
    set->paths = qat_arena_array(&dataset->arena, lines, sizeof *set->paths);
    set->labels = qat_arena_array(&dataset->arena, lines, sizeof *set->labels);
    if (!folder || !set->paths || !set->labels)
        return qat_fail(err, QAT_ERR_NOMEM, "%s: no memory to read", file);
    for (int number = 1; *text && !st; number++) {
        char *line = text;
        text += strcspn(text, "\n");
        if (*text)
            *text++ = 0;
        st = read_line(dataset, set, file, folder, line, number, err);
    }
    if (!st && dataset->info.count == 0)
        st = qat_fail(err, QAT_ERR_FORMAT, "%s: empty, no picture", file);
    return st;
}

static int64_t label_at(const void *labels, int64_t index)
{
    return ((const int32_t *)labels)[index];
}

static qat_status set_shape(qat_dataset *dataset, const qat_dataset_options *o, qat_error *err)
{
    int const channels = o->channels ? o->channels : DEFAULT_CHANNELS;
    int64_t const hwc[3] = {o->height ? o->height : DEFAULT_SIDE,
                            o->width ? o->width : DEFAULT_SIDE, channels};
    if (channels != 1 && channels != 3)
        return qat_fail(err, QAT_ERR_ARGUMENT, "data: channels %d, must be 1 or 3", channels);
    return qat_dataset_set_shape(dataset, o->path, dataset->info.count, hwc, QAT_SAMPLE_U8, err);
}

static qat_status list_open(qat_dataset *dataset, const qat_dataset_options *options,
                            qat_split split, qat_error *err)
{
    list_set *set = qat_arena_take(&dataset->arena, sizeof *set);
    const char *file = options->path;
    uint8_t *text = NULL;
    size_t bytes;
    if (is_folder(file))
        file = qat_dataset_join(&dataset->arena, file,
                                split == QAT_SPLIT_TRAIN ? "train.txt" : "test.txt");
    if (!set || !file)
        return qat_fail(err, QAT_ERR_NOMEM, "%s: no memory to read", options->path);
    set->resize_short = options->resize_short;
    set->central_crop = options->central_crop;
    dataset->own = set;
    qat_status st = qat_file_read(file, MAX_LIST_BYTES, &text, &bytes, err);
    if (!st)
        st = read_lines(dataset, set, file, (char *)text, err);
    free(text);
    if (!st)
        st = qat_dataset_set_classes(dataset, file, set->labels, label_at, dataset->info.count,
                                     options->classes, err);
    dataset->info.count = qat_dataset_limit(dataset->info.count, qat_split_count(options, split));
    return st ? st : set_shape(dataset, options, err);
}

static qat_status list_get(const qat_dataset *dataset, int index, void *values, int *label,
                           qat_error *err)
{
    const list_set *set = dataset->own;
    const qat_dataset_info *info = &dataset->info;
    qat_image_size const size = {.height = info->height,
                                 .width = info->width,
                                 .channels = info->channels,
                                 .central_crop = set->central_crop,
                                 .resize_short = set->resize_short};
    *label = set->labels[index];
    return qat_image_read(set->paths[index], &size, values, err);
}

const qat_dataset_kind qat_kind_list = {
    .name = "list", .needs_path = true, .resizes = true, .open = list_open, .get = list_get};
