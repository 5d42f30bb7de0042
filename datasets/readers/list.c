/**
 * A text file that lists pictures, one per line: the path of the picture relative to the file's
 * folder, white space, and the number of its class. Pictures are decoded when they are requested.
 *
 *     images/n01494475.jpg 5
 *
 * path is such a file, which serves both splits, or a folder with train.txt and test.txt.
 */
#include "base/files/file.h"
#include "datasets/readers/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_LIST_BYTES = 1 << 28 };

/** Read one line "path class", without its end. Blank lines are ignored. */
static qat_status read_line(qat_dataset *dataset, const char *file, const char *folder, char *line,
                            int number, qat_error *err)
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
                        "%s:%d: \"%.80s\" is not a picture and its class in 0..65535", file, number,
                        line);
    while (space > line && strchr(" \t", space[-1]))
        *--space = 0;
    const char *path = *line == '/' ? qat_arena_string(&dataset->arena, line)
                                    : qat_dataset_join(&dataset->arena, folder, line);
    if (!path)
        return qat_out_of_memory(err, file);
    ((qat_files *)dataset->own)->paths[dataset->info.count] = path;
    dataset->labels[dataset->info.count++] = (int32_t)label;
    return QAT_OK;
}

static qat_status read_lines(qat_dataset *dataset, const char *file, char *text, qat_error *err)
{
    qat_files *files = dataset->own;
    size_t const lines = (size_t)qat_files_count_lines(text);
    const char *folder = qat_files_folder_of(&dataset->arena, file);
    qat_status st = folder ? qat_files_hold_lines(dataset, file, text, folder, err) : QAT_OK;
    if (st)
        return st;
    files->root = folder;
    files->paths = qat_arena_array(&dataset->arena, lines, sizeof *files->paths);
    dataset->labels = qat_arena_array(&dataset->arena, lines, sizeof *dataset->labels);
    if (!folder || !files->paths || !dataset->labels)
        return qat_out_of_memory(err, file);
    for (int number = 1; *text && !st; number++) {
        char *line = text;
        text += strcspn(text, "\n");
        if (*text)
            *text++ = 0;
        st = read_line(dataset, file, folder, line, number, err);
    }
    if (!st && dataset->info.count == 0)
        st = qat_fail(err, QAT_ERR_FORMAT, "%s: no picture is listed", file);
    return st;
}

/** The list's file; of a folder one that belongs to the split. */
static qat_status find_list(qat_dataset *dataset, const qat_dataset_options *o, qat_split split,
                            const char **file, qat_error *err)
{
    *file = o->path;
    if (!qat_files_is_folder(o->path))
        return QAT_OK;
    const char *train = qat_dataset_join(&dataset->arena, o->path, "train.txt");
    const char *test = qat_dataset_join(&dataset->arena, o->path, "test.txt");
    if (!train || !test)
        return qat_out_of_memory(err, o->path);
    bool const has_test = access(test, F_OK) == 0;
    *file = split == QAT_SPLIT_TRAIN ? train : test;
    if (o->split > 0 && has_test)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "%s is there already: data.split would make another test split", test);
    if (split == QAT_SPLIT_TEST && !has_test)
        return qat_fail(err, QAT_ERR_IO,
                        "%s: no such file; data.split = 0.8 trains on 80 %% of the pictures of "
                        "train.txt and tests on the others",
                        test);
    return QAT_OK;
}

static int64_t label_at(const void *labels, int64_t index)
{
    return ((const int32_t *)labels)[index];
}

static qat_status list_open(qat_dataset *dataset, const qat_dataset_options *options,
                            qat_split split, qat_error *err)
{
    qat_files *files = qat_files_create(dataset, options);
    const char *file = options->path;
    uint8_t *text = NULL;
    size_t bytes = 0;
    if (!files)
        return qat_out_of_memory(err, options->path);
    qat_status st = find_list(dataset, options, split, &file, err);
    if (!st)
        st = qat_dataset_read(dataset, file, MAX_LIST_BYTES, &text, &bytes, err);
    if (!st)
        st = qat_files_check_text(file, text, bytes, err);
    if (!st)
        st = read_lines(dataset, file, (char *)text, err);
    free(text);
    qat_dataset_release(dataset, bytes);
    if (!st)
        st = qat_dataset_set_classes(dataset, file, dataset->labels, label_at, dataset->info.count,
                                     options->classes, err);
    dataset->info.count = qat_dataset_limit(dataset->info.count, qat_split_count(options, split));
    return st ? st : qat_files_set_shape(dataset, options, err);
}

const qat_dataset_kind qat_kind_list = {.name = "list",
                                        .needs_path = true,
                                        .resizes = true,
                                        .open = list_open,
                                        .get = qat_files_get,
                                        .splits = true,
                                        .picture = qat_files_picture,
                                        .file = qat_files_file,
                                        .keep = qat_files_keep};
