/** What a kind of data passed over, by the endings of file names. */
#include "datasets/dataset_kind.h"

#include "base/number.h"
#include "base/words.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/** ".webp" of "a.WEBP"; "" where there is none, or a very long one. */
static void ending_of(const char *name, char ending[QAT_ENDING_MAX])
{
    const char *dot = strrchr(name, '.');
    size_t const n = dot && dot != name ? strlen(dot) : 0;
    size_t const used = n < QAT_ENDING_MAX ? n : 0;
    for (size_t i = 0; i < used; i++)
        ending[i] = qat_lower(dot[i]);
    ending[used] = 0;
}

/** Files of an ending; those for which there is no room are in the sum alone. */
static void count(qat_ignored *ignored, const char ending[QAT_ENDING_MAX], int files)
{
    int i = 0;
    while (i < ignored->n_endings && strcmp(ignored->endings[i].ending, ending) != 0)
        i++;
    if (i == QAT_IGNORED_ENDINGS)
        return;
    memcpy(ignored->endings[i].ending, ending, QAT_ENDING_MAX);
    ignored->endings[i].files += files;
    ignored->n_endings += i == ignored->n_endings;
}

void qat_ignored_add(qat_ignored *ignored, const char *file_name)
{
    char ending[QAT_ENDING_MAX] = "";
    ending_of(file_name, ending);
    ignored->files++;
    count(ignored, ending, 1);
}

void qat_ignored_join(qat_ignored *ignored, const qat_ignored *more)
{
    for (int i = 0; i < more->n_endings; i++)
        count(ignored, more->endings[i].ending, more->endings[i].files);
    ignored->files += more->files;
    ignored->folders += more->folders;
    ignored->rows += more->rows;
    ignored->boxes += more->boxes;
    ignored->listed += more->listed;
}

/** Text that is added at an end, and cut where there is no room. */
typedef struct line {
    char *text;
    size_t max, used;
} line;

static void add(line *l, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(line *l, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int const n = vsnprintf(l->text + l->used, l->max - l->used, format, args);
    va_end(args);
    l->used += n > 0 ? (size_t)n : 0;
    l->used = l->used < l->max ? l->used : l->max - 1;
}

/** The most frequent ending first; the order of a folder's entries must not be seen. */
static void sort(qat_ignored *ignored)
{
    for (int i = 1; i < ignored->n_endings; i++)
        for (int k = i; k > 0; k--) {
            qat_ignored const old = *ignored;
            bool const before = old.endings[k].files > old.endings[k - 1].files ||
                                (old.endings[k].files == old.endings[k - 1].files &&
                                 strcmp(old.endings[k].ending, old.endings[k - 1].ending) < 0);
            if (!before)
                break;
            ignored->endings[k] = old.endings[k - 1];
            ignored->endings[k - 1] = old.endings[k];
        }
}

static void add_files(line *l, const qat_ignored *all)
{
    qat_ignored copy = *all;
    const qat_ignored *ignored = &copy;
    int left = ignored->files;
    sort(&copy);
    add(l, "%d file%s (", ignored->files, qat_plural(ignored->files));
    for (int i = 0; i < ignored->n_endings; i++) {
        const char *ending = ignored->endings[i].ending;
        add(l, "%s%s %d", i ? ", " : "", *ending ? ending : "no ending", ignored->endings[i].files);
        left -= ignored->endings[i].files;
    }
    add(l, left ? ", others %d)" : ")", left);
}

void qat_ignored_text(const qat_ignored *ignored, char *text, size_t max)
{
    struct {
        int count;
        const char *one, *several;
    } const rest[] = {
        {ignored->folders, "subfolder of a class folder", "subfolders of class folders"},
        {ignored->rows, "row without a split", "rows without a split"},
        {ignored->boxes, "box without area", "boxes without area"},
        {ignored->listed, "sound of validation_list.txt", "sounds of validation_list.txt"}};
    line l = {text, max, 0};
    *text = 0;
    if (ignored->files)
        add_files(&l, ignored);
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
        if (rest[i].count)
            add(&l, "%s%d %s", l.used ? ", " : "", rest[i].count,
                rest[i].count == 1 ? rest[i].one : rest[i].several);
}
