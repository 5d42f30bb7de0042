/**
 * A CSV table of pictures with targets: a header, then one line per picture.
 *
 *     file,split,age,gender
 *     001_03.jpg,train,24,female
 *
 * Column "file" is relative to the folder of pictures beside the table. Column "split" is train, or
 * val or test. Options name the other columns that are used: a sample has the attribute COLUMN=TEXT
 * if the column reads TEXT; the value is the number in a column. One of both must be there. A field
 * that is empty or NA is not known.
 */
#include "datasets/readers/csv.h"
#include "datasets/readers/files.h"

#include "base/files/file.h"
#include "base/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TABLE_BYTES = 1 << 28, MAX_ATTRIBUTES = 64 };

typedef struct table {
    const char *path, *images; /* path of the table; path of the folder of pictures */
    int line;
    int columns, file, split, value; /* indices; -1: there is no such column */
    const char *header[QAT_CSV_COLUMNS];
    int attributes;
    int column[MAX_ATTRIBUTES];        /* column of each attribute */
    const char *text[MAX_ATTRIBUTES];  /* the text in this column if a sample has the attribute */
    const char *label[MAX_ATTRIBUTES]; /* "COLUMN: TEXT" */
} table;

/* ------------------------------------------------------------------ the header */

static int find_column(const table *t, const char *name, size_t length)
{
    for (int i = 0; i < t->columns; i++)
        if (strlen(t->header[i]) == length && !strncmp(t->header[i], name, length))
            return i;
    return -1;
}

static qat_status no_column(const table *t, const char *key, const char *name, size_t length,
                            qat_error *err)
{
    return qat_fail(err, QAT_ERR_FORMAT, "%s: %s%sno column \"%.*s\"", t->path, key,
                    *key ? ": " : "", (int)length, name);
}

/** Add one attribute, "COLUMN=TEXT". */
static qat_status add_attribute(table *t, qat_arena *arena, const char *item, size_t length,
                                qat_error *err)
{
    const char *equals = memchr(item, '=', length);
    size_t const name = equals ? (size_t)(equals - item) : length;
    char *text = qat_arena_array(arena, length + 1, 1);
    char *label = qat_arena_array(arena, length + 2, 1); /* "=" becomes ": " */
    if (!text || !label)
        return qat_out_of_memory(err, t->path);
    if (!equals || t->attributes == MAX_ATTRIBUTES)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "data.attributes: \"%.*s\": expected COLUMN=TEXT, at most %d of them",
                        (int)length, item, MAX_ATTRIBUTES);
    int const column = find_column(t, item, name);
    if (column < 0)
        return no_column(t, "data.attributes", item, name, err);
    memcpy(text, equals + 1, length - name - 1);
    snprintf(label, length + 2, "%.*s: %s", (int)name, item, text);
    t->label[t->attributes] = label;
    t->column[t->attributes] = column;
    t->text[t->attributes++] = text;
    return QAT_OK;
}

static qat_status read_attributes(table *t, qat_arena *arena, const char *list, qat_error *err)
{
    qat_status st = QAT_OK;
    for (const char *at = list ? list : ""; *at && !st;) {
        at += strspn(at, " ,");
        size_t length = strcspn(at, ",");
        const char *next = at + length;
        while (length && at[length - 1] == ' ')
            length--;
        if (length)
            st = add_attribute(t, arena, at, length, err);
        at = next;
    }
    if (!st && !t->attributes && t->value < 0)
        st = qat_fail(err, QAT_ERR_ARGUMENT,
                      "data.attributes and data.value are empty; a table needs attributes, as "
                      "COLUMN=TEXT, ..., or the column of a value");
    return st;
}

static qat_status read_header(table *t, qat_arena *arena, char *line, const qat_dataset_options *o,
                              qat_error *err)
{
    t->columns = line ? qat_csv_fields(line, t->header) : 0;
    if (!line || t->columns > QAT_CSV_COLUMNS)
        return qat_fail(err, QAT_ERR_FORMAT, "%s: the header must have 1..%d columns", t->path,
                        QAT_CSV_COLUMNS);
    const char *value = o->value ? o->value : "";
    t->file = find_column(t, "file", 4);
    t->split = find_column(t, "split", 5);
    t->value = *value ? find_column(t, value, strlen(value)) : -1;
    if (t->file < 0)
        return no_column(t, "", "file", 4, err);
    if (t->split < 0 && !(o->split > 0))
        return qat_fail(err, QAT_ERR_FORMAT,
                        "%s: no column \"split\", which must be train, val or test in each line; "
                        "data.split = 0.8 does without: it trains on 80 %% of the lines",
                        t->path);
    if (t->split >= 0 && o->split > 0)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "%s: a column \"split\" is there already: data.split would make another "
                        "test split",
                        t->path);
    if (*value && t->value < 0)
        return no_column(t, "data.value", value, strlen(value), err);
    return read_attributes(t, arena, o->attributes, err);
}

/* ------------------------------------------------------------------ the lines */

/** Does the line belong to the requested split? A line without a split belongs to none. */
static qat_status look_at_split(qat_dataset *d, const table *t, const char *const *fields,
                                qat_split split, bool *is_of_it, qat_error *err)
{
    const char *name = t->split < 0 ? "train" : fields[t->split];
    bool const of_train = !strcmp(name, "train");
    bool const of_test = !strcmp(name, "val") || !strcmp(name, "test");
    *is_of_it = split == QAT_SPLIT_TRAIN ? of_train : of_test;
    d->ignored.rows += qat_csv_unknown(name);
    if (of_train || of_test || qat_csv_unknown(name))
        return QAT_OK;
    return qat_fail(err, QAT_ERR_FORMAT, "%s:%d: split is \"%.60s\", not train, val or test",
                    t->path, t->line, name);
}

static qat_status read_value(const table *t, const char *field, float *value, qat_error *err)
{
    char *end;
    if (qat_csv_unknown(field))
        return QAT_OK;
    *value = qat_number_of_f32(field, &end);
    if (*end || !isfinite(*value))
        return qat_fail(err, QAT_ERR_FORMAT, "%s:%d: %s is \"%.60s\", not a number", t->path,
                        t->line, t->header[t->value], field);
    return QAT_OK;
}

/** targets: all "not known" before. */
static qat_status read_targets(const table *t, const char *const *fields, float *targets,
                               qat_error *err)
{
    for (int i = 0; i < t->attributes; i++) {
        const char *field = fields[t->column[i]];
        if (!qat_csv_unknown(field))
            targets[i] = strcmp(field, t->text[i]) == 0;
    }
    return t->value < 0 ? QAT_OK : read_value(t, fields[t->value], &targets[t->attributes], err);
}

/** Add the next line of the split: its picture and its targets. */
static qat_status add_line(qat_dataset *d, const table *t, const char *const *fields,
                           qat_error *err)
{
    qat_files *files = d->own;
    const char *name = fields[t->file];
    if (!qat_files_stays_below(name))
        return qat_fail(err, QAT_ERR_FORMAT,
                        "%s:%d: file is \"%.200s\", which lies outside of the folder of pictures",
                        t->path, t->line, name);
    int const i = d->info.count++;
    files->paths[i] = qat_dataset_join(&d->arena, t->images, fields[t->file]);
    if (!files->paths[i])
        return qat_out_of_memory(err, t->path);
    return read_targets(t, fields, d->targets + (size_t)i * ((size_t)t->attributes + 1), err);
}

static qat_status read_line(qat_dataset *d, const table *t, char *line, qat_split split,
                            qat_error *err)
{
    const char *fields[QAT_CSV_COLUMNS];
    bool is_of_it = false;
    int const n = qat_csv_fields(line, fields);
    if (n != t->columns)
        return qat_fail(err, QAT_ERR_FORMAT, "%s:%d: %d fields, but the header has %d", t->path,
                        t->line, n, t->columns);
    qat_status const st = look_at_split(d, t, fields, split, &is_of_it, err);
    return !st && is_of_it ? add_line(d, t, fields, err) : st;
}

static qat_status read_lines(qat_dataset *d, table *t, char *text, qat_split split, qat_error *err)
{
    qat_status st = QAT_OK;
    for (char *line; !st && (line = qat_csv_line(&text)) != NULL;) {
        t->line++;
        st = *line ? read_line(d, t, line, split, err) : QAT_OK;
    }
    if (!st && !d->info.count)
        st = qat_fail(err, QAT_ERR_FORMAT, "%s: no picture of split %s", t->path,
                      qat_split_name(split));
    return st;
}

/* ------------------------------------------------------------------ the set */

/** Make room for as many samples as there are lines. */
static qat_status make_room(qat_dataset *d, const table *t, int lines, qat_error *err)
{
    qat_files *files = d->own;
    const char **names = qat_arena_array(&d->arena, (size_t)t->attributes + 1, sizeof *names);
    files->paths = qat_arena_array(&d->arena, (size_t)lines, sizeof *files->paths);
    d->labels = qat_arena_array(&d->arena, (size_t)lines, sizeof *d->labels);
    if (!names || !files->paths || !d->labels)
        return qat_out_of_memory(err, t->path);
    memcpy(names, t->label, (size_t)t->attributes * sizeof *names);
    d->info.count = lines;
    qat_status const st = qat_dataset_allocate_targets(
        d, t->attributes, t->attributes ? names : NULL, t->value >= 0, err);
    d->info.count = 0;
    return st;
}

static qat_status read_table(qat_dataset *d, table *t, char *text, const qat_dataset_options *o,
                             qat_split split, qat_error *err)
{
    int const lines = qat_files_count_lines(text);
    qat_status st = qat_files_hold_lines(d, t->path, text, t->images, err);
    if (st)
        return st;
    text = qat_csv_text(text);
    st = read_header(t, &d->arena, qat_csv_line(&text), o, err);
    if (!st)
        st = make_room(d, t, lines, err);
    return st ? st : read_lines(d, t, text, split, err);
}

static qat_status table_open(qat_dataset *dataset, const qat_dataset_options *options,
                             qat_split split, qat_error *err)
{
    const char *images = options->images[split];
    const char *folder = qat_files_folder_of(&dataset->arena, options->path);
    table t = {.path = options->path, .line = 1};
    uint8_t *text = NULL;
    size_t bytes = 0;
    if (!qat_files_create(dataset, options) || !folder)
        return qat_out_of_memory(err, options->path);
    t.images = qat_dataset_join(&dataset->arena, folder, images && *images ? images : "images");
    if (!t.images)
        return qat_out_of_memory(err, options->path);
    ((qat_files *)dataset->own)->root = t.images;
    qat_status st = qat_dataset_read(dataset, options->path, MAX_TABLE_BYTES, &text, &bytes, err);
    if (!st)
        st = qat_files_check_text(options->path, text, bytes, err);
    if (!st)
        st = read_table(dataset, &t, (char *)text, options, split, err);
    free(text);
    qat_dataset_release(dataset, bytes);
    if (st)
        return st;
    dataset->info.count = qat_dataset_limit(dataset->info.count, qat_split_count(options, split));
    return qat_files_set_shape(dataset, options, err);
}

const qat_dataset_kind qat_kind_table = {.name = "table",
                                         .needs_path = true,
                                         .resizes = true,
                                         .has_targets = true,
                                         .open = table_open,
                                         .get = qat_files_get,
                                         .splits = true,
                                         .picture = qat_files_picture,
                                         .file = qat_files_file,
                                         .keep = qat_files_keep};
