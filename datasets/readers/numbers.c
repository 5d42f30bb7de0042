/**
 * A CSV table of numbers: a header, then one sample a line.
 *
 *     split,width,weight,age
 *     train,0.31,-1.2,24
 *
 * Column "split" is train, or val or test. Options name the columns that are to be learned; a field
 * of theirs that is empty or NA is not known. All other columns are the sample, [W].
 */
#include "datasets/dataset_kind.h"
#include "datasets/readers/csv.h"
#include "datasets/readers/files.h"

#include "base/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TABLE_BYTES = 1 << 28, INPUT = -1, SPLIT = -2 };

typedef struct numbers {
    const char *path;
    int line, columns, split, inputs, learned; /* split: its column; -1: there is none */
    int role[QAT_CSV_COLUMNS];                 /* INPUT, SPLIT, or which value it is */
    const char *header[QAT_CSV_COLUMNS];
} numbers;

/* ------------------------------------------------------------------ the header */

/** Give the named columns their roles; `names` are separated by commas. */
static qat_status find_learned(numbers *t, const char *names, qat_error *err)
{
    for (const char *at = names ? names : ""; *at;) {
        size_t n = strcspn(at, ","), skip = strspn(at, " ");
        int i = 0;
        const char *name = at + (skip < n ? skip : n);
        size_t length = (size_t)(at + n - name);
        while (length && name[length - 1] == ' ')
            length--;
        while (i < t->columns &&
               (strlen(t->header[i]) != length || strncmp(t->header[i], name, length) != 0))
            i++;
        if (i == t->columns || t->role[i] != INPUT)
            return qat_fail(err, QAT_ERR_FORMAT, "%s: data.value: no column \"%.*s\"%s", t->path,
                            (int)length, name, i < t->columns ? " is left" : "");
        t->role[i] = t->learned++;
        at += n + (at[n] == ',');
    }
    if (t->learned)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_ARGUMENT, "%s: data.value must name the columns to be learned",
                    t->path);
}

static qat_status read_header(numbers *t, char *line, const qat_dataset_options *o, qat_error *err)
{
    t->columns = line ? qat_csv_fields(line, t->header) : 0;
    if (t->columns > QAT_CSV_COLUMNS)
        return qat_fail(err, QAT_ERR_LIMIT, "%s: more than %d columns", t->path, QAT_CSV_COLUMNS);
    t->split = -1;
    for (int i = 0; i < t->columns; i++) {
        bool const is_split = strcmp(t->header[i], "split") == 0;
        t->role[i] = is_split ? SPLIT : INPUT;
        t->split = is_split ? i : t->split;
    }
    if ((t->split >= 0) == (o->split > 0))
        return qat_fail(err, QAT_ERR_FORMAT,
                        t->split < 0 ? "%s: no column \"split\"; data.split = 0.8 trains on 80 %% "
                                       "of the lines and tests on the rest"
                                     : "%s: has a column \"split\": data.split would make another "
                                       "test split",
                        t->path);
    qat_status const st = find_learned(t, o->value, err);
    t->inputs = t->columns - t->learned - (t->split >= 0);
    if (!st && t->inputs < 1)
        return qat_fail(err, QAT_ERR_FORMAT, "%s: no column is left as input", t->path);
    return st;
}

/* ------------------------------------------------------------------ a line */

/** A field as a number; of what is to be learned NaN, if it is not known. */
static qat_status number_of(const numbers *t, const char *field, int column, float *value,
                            qat_error *err)
{
    char *end;
    bool const learned = t->role[column] >= 0;
    *value = qat_number_of_f32(field, &end);
    while (qat_is_blank(*end))
        end++;
    if (learned && qat_csv_unknown(field))
        *value = NAN;
    else if (end == field || *end || !isfinite(*value))
        return qat_fail(err, QAT_ERR_FORMAT, "%s:%d: column \"%.100s\": \"%.100s\" is not a number",
                        t->path, t->line, t->header[column], field);
    return QAT_OK;
}

/** Is the line of the split? -1: it is of neither. */
static int is_of(const char *text, qat_split split)
{
    bool const train = !strcmp(text, "train");
    if (!train && strcmp(text, "val") != 0 && strcmp(text, "test") != 0)
        return -1;
    return train == (split == QAT_SPLIT_TRAIN);
}

static qat_status read_line(qat_dataset *d, numbers *t, char *line, qat_split split, qat_error *err)
{
    const char *fields[QAT_CSV_COLUMNS];
    int const n = qat_csv_fields(line, fields);
    if (n != t->columns)
        return qat_fail(err, QAT_ERR_FORMAT, "%s:%d: %d fields, but the header has %d", t->path,
                        t->line, n, t->columns);
    int const wanted = t->split < 0 ? 1 : is_of(fields[t->split], split);
    if (wanted < 0)
        return qat_fail(err, QAT_ERR_FORMAT, "%s:%d: split \"%.100s\", expected train, val or test",
                        t->path, t->line, fields[t->split]);
    if (!wanted)
        return QAT_OK;
    float *input = (float *)d->values + (size_t)d->info.count * (size_t)t->inputs;
    float *learned = d->targets + (size_t)d->info.count * (size_t)t->learned;
    qat_status st = QAT_OK;
    for (int i = 0; !st && i < n; i++)
        if (t->role[i] != SPLIT)
            st = number_of(t, fields[i], i, t->role[i] < 0 ? input++ : &learned[t->role[i]], err);
    d->labels[d->info.count++] = 0;
    return st;
}

/* ------------------------------------------------------------------ the set */

/** Room for as many samples as there are lines. */
static qat_status make_room(qat_dataset *d, const numbers *t, const char *text, qat_error *err)
{
    int64_t const hwc[3] = {1, t->inputs, 1};
    int const lines = qat_files_count_lines(text);
    qat_status st =
        qat_dataset_set_shape(d, t->path, lines > 0 ? lines : 1, hwc, QAT_SAMPLE_F32, err);
    if (!st)
        st = qat_dataset_allocate(d, err);
    if (!st)
        st = qat_dataset_allocate_values(d, QAT_TARGETS_VALUES, (size_t)t->learned, err);
    d->info.count = 0;
    return st;
}

static qat_status read_text(qat_dataset *d, numbers *t, char *text, const qat_dataset_options *o,
                            qat_split split, qat_error *err)
{
    text = qat_csv_text(text);
    qat_status st = read_header(t, qat_csv_line(&text), o, err);
    if (!st)
        st = make_room(d, t, text, err);
    for (char *line; !st && (line = qat_csv_line(&text)) != NULL;) {
        t->line++;
        st = *line ? read_line(d, t, line, split, err) : QAT_OK;
    }
    if (!st && !d->info.count)
        st = qat_fail(err, QAT_ERR_FORMAT, "%s: no line of split %s", t->path,
                      qat_split_name(split));
    return st;
}

static qat_status numbers_open(qat_dataset *d, const qat_dataset_options *o, qat_split split,
                               qat_error *err)
{
    numbers *t = qat_arena_take(&d->arena, sizeof *t);
    uint8_t *text = NULL;
    size_t bytes = 0;
    if (!t)
        return qat_out_of_memory(err, o->path);
    *t = (numbers){.path = o->path, .line = 1};
    qat_status st = qat_dataset_read(d, o->path, MAX_TABLE_BYTES, &text, &bytes, err);
    if (!st)
        st = qat_files_check_text(o->path, text, bytes, err);
    if (!st)
        st = read_text(d, t, (char *)text, o, split, err);
    free(text);
    qat_dataset_release(d, bytes);
    d->info.count = qat_dataset_limit(d->info.count, qat_split_count(o, split));
    if (!st)
        qat_dataset_keep(d, NULL, d->info.count);
    return st;
}

const qat_dataset_kind qat_kind_numbers = {.name = "numbers",
                                           .needs_path = true,
                                           .splits = true,
                                           .open = numbers_open,
                                           .get = qat_dataset_get_kept};
