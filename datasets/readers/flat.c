#include "datasets/readers/flat.h"

#include "base/number.h"
#include "datasets/readers/classes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_LIST_BYTES = 1 << 28, NAME_BYTES = 512 };

qat_status qat_flat_find(qat_dataset *dataset, const char *path, const char *folder,
                         const char **list, qat_error *err)
{
    static const char *const names[] = {"val.txt", "LOC_val_solution.csv"};
    qat_names folders;
    *list = NULL;
    qat_status const st = qat_folder_list(&dataset->arena, folder, NULL, &folders, NULL, err);
    if (st || folders.count)
        return st;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *found = qat_dataset_join(&dataset->arena, path, names[i]);
        if (!found)
            return qat_out_of_memory(err, path);
        if (access(found, F_OK) == 0) {
            *list = found;
            return QAT_OK;
        }
    }
    return QAT_OK;
}

/** The length of what stands before a comma or white space, and where the next thing begins. */
static size_t word(const char *text, const char **next)
{
    size_t const n = strcspn(text, ", \t");
    *next = text + n + strspn(text + n, ", \t");
    return n;
}

/** The number of a class that is given by its name or its number; -1: there is none. */
static int class_of(const qat_names *classes, const char *text)
{
    char *end;
    int const named = qat_classes_find(classes, text);
    long const number = strtol(text, &end, 10);
    if (named >= 0)
        return named;
    return qat_is_digit(*text) && !*end && number < classes->count ? (int)number : -1;
}

static qat_status read_line(qat_dataset *d, const char *list, int number, const char *folder,
                            const char *line, const qat_names *classes, qat_error *err)
{
    char name[NAME_BYTES], label[NAME_BYTES], path[2 * NAME_BYTES];
    const char *rest, *end;
    size_t const n = word(line, &rest), m = word(rest, &end);
    if (number == 1 && strncmp(line, "ImageId,", 8) == 0)
        return QAT_OK;
    (void)snprintf(name, sizeof name, "%.*s", (int)(n < NAME_BYTES ? n : NAME_BYTES), line);
    (void)snprintf(label, sizeof label, "%.*s", (int)(m < NAME_BYTES ? m : NAME_BYTES), rest);
    int const found = class_of(classes, label);
    if (found < 0 || !*name || !qat_files_stays_below(name))
        return qat_fail(err, QAT_ERR_FORMAT,
                        "%s:%d: \"%.80s\" is not a picture and the name or number of its class",
                        list, number, line);
    (void)snprintf(path, sizeof path, "%s%s", name, strchr(name, '.') ? "" : ".JPEG");
    const char *full = qat_dataset_join(&d->arena, folder, path);
    if (!full)
        return qat_out_of_memory(err, list);
    ((qat_files *)d->own)->paths[d->info.count] = full;
    d->labels[d->info.count++] = found;
    return QAT_OK;
}

static qat_status read_lines(qat_dataset *d, const char *list, char *text, const char *folder,
                             const qat_names *classes, qat_error *err)
{
    size_t const lines = (size_t)qat_files_count_lines(text);
    qat_files *files = d->own;
    qat_status st = qat_files_hold_lines(d, list, text, folder, err);
    files->paths = qat_arena_array(&d->arena, lines, sizeof *files->paths);
    d->labels = qat_arena_array(&d->arena, lines, sizeof *d->labels);
    if (!st && (!files->paths || !d->labels))
        st = qat_out_of_memory(err, list);
    for (int number = 1; !st && *text; number++) {
        char *line = text;
        text += strcspn(text, "\n");
        if (*text)
            *text++ = 0;
        line[strcspn(line, "\r")] = 0;
        st = *line ? read_line(d, list, number, folder, line, classes, err) : QAT_OK;
    }
    if (!st && !d->info.count)
        st = qat_fail(err, QAT_ERR_FORMAT, "%s: no picture is listed", list);
    return st;
}

qat_status qat_flat_add(qat_dataset *d, const char *list, const char *folder,
                        const qat_names *classes, qat_error *err)
{
    uint8_t *text = NULL;
    size_t bytes = 0;
    qat_status st = qat_dataset_read(d, list, MAX_LIST_BYTES, &text, &bytes, err);
    if (!st)
        st = qat_files_check_text(list, text, bytes, err);
    if (!st)
        st = read_lines(d, list, (char *)text, folder, classes, err);
    free(text);
    qat_dataset_release(d, bytes);
    return st;
}
