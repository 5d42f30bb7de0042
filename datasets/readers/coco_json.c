#include "datasets/readers/coco_json.h"

#include "base/files/file.h"
#include "base/number.h"
#include "datasets/readers/files.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BYTES = 1 << 30, MAX_SIDE = 1 << 16, MAX_CLASSES = 1 << 16, CORNERS = 4 };

/** An id, and the index of the thing that it names. Entries are sorted by id. */
typedef struct entry {
    json_int_t id;
    int at;
} entry;

typedef struct table {
    entry *entries;
    int n;
} table;

/** A file being read. */
typedef struct reader {
    qat_coco_file *file;
    qat_arena *arena;
    const char *path;
    bool one_class;
    const json_t *images, *annotations, *categories;
    table image_ids, category_ids;
    qat_error *err;
} reader;

static qat_status no_memory(const reader *r)
{
    return qat_out_of_memory(r->err, r->path);
}

/* ------------------------------------------------------------------ ids */

static int compare(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

/** Collect and sort the ids of an array's objects. */
static qat_status read_ids(const reader *r, const json_t *array, const char *what, table *t)
{
    t->n = (int)json_array_size(array);
    t->entries = qat_arena_array(r->arena, (size_t)t->n + 1, sizeof *t->entries);
    if (!t->entries)
        return no_memory(r);
    for (int i = 0; i < t->n; i++) {
        const json_t *id = json_object_get(json_array_get(array, (size_t)i), "id");
        if (!json_is_integer(id))
            return qat_fail(r->err, QAT_ERR_FORMAT, "%s: %s number %d has no integer \"id\"",
                            r->path, what, i + 1);
        t->entries[i] = (entry){json_integer_value(id), i};
    }
    qsort(t->entries, (size_t)t->n, sizeof *t->entries, compare);
    for (int i = 1; i < t->n; i++)
        if (t->entries[i].id == t->entries[i - 1].id)
            return qat_fail(r->err, QAT_ERR_FORMAT, "%s: two %s have the id %lld", r->path, what,
                            (long long)t->entries[i].id);
    return QAT_OK;
}

/** Rank of an id, or -1. */
static int rank_of(const table *t, json_int_t id)
{
    entry const key = {id, 0};
    const entry *found =
        t->n ? bsearch(&key, t->entries, (size_t)t->n, sizeof *t->entries, compare) : NULL;
    return found ? (int)(found - t->entries) : -1;
}

/* ------------------------------------------------------------------ categories, images */

static qat_status read_categories(reader *r)
{
    static const char *const one_label[] = {"object"};
    qat_status const st = read_ids(r, r->categories, "categories", &r->category_ids);
    int const n = r->category_ids.n;
    if (st)
        return st;
    if (n < 1 || n > MAX_CLASSES)
        return qat_fail(r->err, QAT_ERR_FORMAT, "%s: %d categories, not in 1..%d", r->path, n,
                        MAX_CLASSES);
    const char **labels = qat_arena_array(r->arena, (size_t)n, sizeof *labels);
    for (int i = 0; labels && i < n; i++) {
        const entry *e = &r->category_ids.entries[i];
        const json_t *c = json_array_get(r->categories, (size_t)e->at);
        const char *name = json_string_value(json_object_get(c, "name"));
        if (!name)
            return qat_fail(r->err, QAT_ERR_FORMAT, "%s: category %lld has no string \"name\"",
                            r->path, (long long)e->id);
        labels[i] = qat_arena_string(r->arena, name);
        if (!labels[i])
            return no_memory(r);
    }
    r->file->labels = r->one_class ? one_label : labels;
    r->file->n_classes = r->one_class ? 1 : n;
    return labels ? QAT_OK : no_memory(r);
}

static qat_status read_side(const reader *r, const json_t *image, const char *key, long long id,
                            int *side)
{
    const json_t *value = json_object_get(image, key);
    json_int_t const n = json_integer_value(value);
    *side = (int)n;
    if (json_is_integer(value) && n >= 1 && n <= MAX_SIDE)
        return QAT_OK;
    return qat_fail(r->err, QAT_ERR_FORMAT,
                    "%s: image %lld: \"%s\" is %lld, not an integer in 1..%d", r->path, id, key,
                    (long long)n, MAX_SIDE);
}

static qat_status read_image(const reader *r, int i)
{
    const json_t *image = json_array_get(r->images, (size_t)i);
    long long const id = json_integer_value(json_object_get(image, "id"));
    const char *name = json_string_value(json_object_get(image, "file_name"));
    qat_coco_picture *p = &r->file->pictures[i];
    if (!name || !*name)
        return qat_fail(r->err, QAT_ERR_FORMAT, "%s: image %lld has no string \"file_name\"",
                        r->path, id);
    if (!qat_files_stays_below(name))
        return qat_fail(r->err, QAT_ERR_FORMAT,
                        "%s: image %lld: \"file_name\" is \"%.200s\", which lies outside of the "
                        "folder of pictures",
                        r->path, id, name);
    p->file_name = qat_arena_string(r->arena, name);
    if (!p->file_name)
        return no_memory(r);
    qat_status const st = read_side(r, image, "height", id, &p->objects.height);
    return st ? st : read_side(r, image, "width", id, &p->objects.width);
}

static qat_status read_images(reader *r)
{
    qat_status st = read_ids(r, r->images, "images", &r->image_ids);
    int const n = r->image_ids.n;
    if (!st && n < 1)
        st = qat_fail(r->err, QAT_ERR_FORMAT, "%s: no images", r->path);
    if (st)
        return st;
    r->file->pictures = qat_arena_array(r->arena, (size_t)n, sizeof *r->file->pictures);
    if (!r->file->pictures)
        return no_memory(r);
    r->file->n_pictures = n;
    for (int i = 0; !st && i < n; i++)
        st = read_image(r, i);
    return st;
}

/* ------------------------------------------------------------------ annotations */

/** One annotation, as far as it has been checked. */
typedef struct annotation {
    const json_t *json;
    long long id; /* its number if it has no id */
    int picture;
    bool is_empty; /* its box has no area */
    qat_truth truth;
} annotation;

/** The rank, in a table, of the id in `key`. */
static qat_status read_reference(const reader *r, const annotation *a, const char *key,
                                 const char *what, const table *t, int *rank)
{
    const json_t *value = json_object_get(a->json, key);
    *rank = json_is_integer(value) ? rank_of(t, json_integer_value(value)) : -1;
    if (*rank >= 0)
        return QAT_OK;
    if (!json_is_integer(value))
        return qat_fail(r->err, QAT_ERR_FORMAT, "%s: annotation %lld has no integer \"%s\"",
                        r->path, a->id, key);
    return qat_fail(r->err, QAT_ERR_FORMAT, "%s: annotation %lld: %s %lld: there is no such %s",
                    r->path, a->id, key, (long long)json_integer_value(value), what);
}

/** Read "bbox": [x, y, width, height] in pixels from the upper left of the picture. */
static qat_status read_box(const reader *r, annotation *a)
{
    const qat_objects *o = &r->file->pictures[a->picture].objects;
    const json_t *list = json_object_get(a->json, "bbox");
    double v[CORNERS];
    if (json_array_size(list) != CORNERS)
        return qat_fail(r->err, QAT_ERR_FORMAT,
                        "%s: annotation %lld: \"bbox\" is not a list of 4 numbers", r->path, a->id);
    for (size_t i = 0; i < CORNERS; i++) {
        const json_t *number = json_array_get(list, i);
        v[i] = json_is_number(number) ? json_number_value(number) : (double)NAN;
    }
    bool const is_box = isfinite(v[0]) && isfinite(v[1]) && v[2] >= 0 && v[3] >= 0 &&
                        v[2] <= MAX_SIDE && v[3] <= MAX_SIDE;
    a->is_empty = v[2] == 0 || v[3] == 0;
    if (!is_box || (!a->is_empty && (v[0] >= o->width || v[1] >= o->height || v[0] + v[2] <= 0 ||
                                     v[1] + v[3] <= 0)))
        return qat_fail(r->err, QAT_ERR_FORMAT,
                        "%s: annotation %lld: bbox [%g, %g, %g, %g] is not x, y, width, height of "
                        "a box in a picture of %d x %d (width x height)",
                        r->path, a->id, v[0], v[1], v[2], v[3], o->width, o->height);
    a->truth.box = (qat_box){(float)(v[1] / o->height), (float)(v[0] / o->width),
                             (float)((v[1] + v[3]) / o->height), (float)((v[0] + v[2]) / o->width)};
    a->truth.area = v[2] * v[3];
    return QAT_OK;
}

/** Read "area" and "iscrowd". If they are missing, they are the area of the box, and 0. */
static qat_status read_rest(const reader *r, annotation *a)
{
    const json_t *area = json_object_get(a->json, "area");
    const json_t *crowd = json_object_get(a->json, "iscrowd");
    if (area && !(json_number_value(area) >= 0 && json_is_number(area)))
        return qat_fail(r->err, QAT_ERR_FORMAT,
                        "%s: annotation %lld: \"area\" is %g, not a number "
                        "from 0 on",
                        r->path, a->id, json_number_value(area));
    json_int_t const value = json_is_true(crowd) ? 1 : json_integer_value(crowd);
    if (crowd && (value < 0 || value > 1 || json_is_string(crowd) || json_is_real(crowd)))
        return qat_fail(r->err, QAT_ERR_FORMAT,
                        "%s: annotation %lld: \"iscrowd\" is %lld, not 0 or 1", r->path, a->id,
                        (long long)value);
    a->truth.area = area ? json_number_value(area) : a->truth.area;
    a->truth.crowd = value == 1;
    return QAT_OK;
}

static qat_status read_annotation(const reader *r, int i, annotation *a)
{
    const json_t *json = json_array_get(r->annotations, (size_t)i);
    const json_t *id = json_object_get(json, "id");
    int image = 0, class = 0;
    *a = (annotation){.json = json, .id = json_is_integer(id) ? json_integer_value(id) : i + 1};
    qat_status st = read_reference(r, a, "image_id", "image", &r->image_ids, &image);
    if (!st)
        st = read_reference(r, a, "category_id", "category", &r->category_ids, &class);
    if (st)
        return st;
    a->picture = r->image_ids.entries[image].at;
    a->truth.label = r->one_class ? 0 : class;
    st = read_box(r, a);
    return st ? st : read_rest(r, a);
}

/** Give each picture its part of one array. Counts start at 0 again. */
static qat_status deal_out(const reader *r, int total)
{
    qat_truth *truth = qat_arena_array(r->arena, (size_t)total + 1, sizeof *truth);
    if (!truth)
        return no_memory(r);
    for (int i = 0; i < r->file->n_pictures; i++) {
        qat_objects *o = &r->file->pictures[i].objects;
        if (o->count > r->file->most_objects)
            r->file->most_objects = o->count;
        o->truth = truth;
        truth += o->count;
        o->count = 0;
    }
    return QAT_OK;
}

/** Two passes over the array: one to check and count, one to fill. */
static qat_status read_annotations(const reader *r)
{
    int const n = (int)json_array_size(r->annotations);
    annotation a;
    qat_status st = QAT_OK;
    int total = 0;
    for (int i = 0; !st && i < n; i++) {
        st = read_annotation(r, i, &a);
        r->file->empty_boxes += !st && a.is_empty;
        if (!st && !a.is_empty) {
            r->file->pictures[a.picture].objects.count++;
            total++;
        }
    }
    if (!st)
        st = deal_out(r, total);
    for (int i = 0; !st && i < n; i++) {
        st = read_annotation(r, i, &a);
        qat_objects *o = &r->file->pictures[a.picture].objects;
        if (!st && !a.is_empty)
            ((qat_truth *)o->truth)[o->count++] = a.truth;
    }
    return st;
}

/* ------------------------------------------------------------------ the file */

static qat_status find_array(const reader *r, const json_t *root, const char *key,
                             const json_t **array)
{
    *array = json_object_get(root, key);
    if (json_is_array(*array) && json_array_size(*array) <= INT32_MAX)
        return QAT_OK;
    return qat_fail(r->err, QAT_ERR_FORMAT,
                    "%s: no list \"%s\": this is not an annotation file in COCO's format", r->path,
                    key);
}

static qat_status read_root(reader *r, const json_t *root)
{
    qat_status st = find_array(r, root, "images", &r->images);
    if (!st)
        st = find_array(r, root, "annotations", &r->annotations);
    if (!st)
        st = find_array(r, root, "categories", &r->categories);
    if (!st)
        st = read_categories(r);
    if (!st)
        st = read_images(r);
    return st ? st : read_annotations(r);
}

/**
 * The text of a file, in pieces; it ends where its values would take too much memory. A file is
 * read twice: a first time to learn what its values take, when nothing is kept.
 */
typedef struct feed {
    qat_dataset *dataset;
    qat_file_source source;
    qat_json_memory memory; /* of the values so far */
    uint64_t count;         /* bytes of text so far */
    uint8_t piece[1 << 16];
    size_t at, end; /* the part of `piece` that is still to be given */
    qat_status status;
    qat_error *err;
} feed;

/** What text and values take together so far: a long string exists twice for a moment. */
static uint64_t taken(const feed *f)
{
    return f->memory.bytes + f->count;
}

static void read_piece(feed *f)
{
    f->at = f->end = 0;
    f->status = qat_source_read(&f->source, f->piece, sizeof f->piece, &f->end, f->err);
    qat_json_memory_add(&f->memory, f->piece, f->end);
    f->count += f->end;
    if (!f->status && f->count > MAX_BYTES)
        f->status = qat_fail(f->err, QAT_ERR_LIMIT, "%s: larger than the %d bytes allowed",
                             f->source.path, MAX_BYTES);
    if (!f->status)
        f->status = qat_dataset_hold(f->dataset, f->source.path, taken(f), f->err);
    if (!f->status)
        qat_dataset_release(f->dataset, taken(f));
}

/** jansson calls this for more text; after an error, its text ends. */
static size_t more_text(void *to, size_t room, void *context)
{
    feed *f = context;
    if (!f->status && f->at == f->end)
        read_piece(f);
    size_t const left = f->status ? 0 : f->end - f->at, n = left < room ? left : room;
    if (n)
        memcpy(to, f->piece + f->at, n);
    f->at += n;
    return n;
}

static qat_status begin(feed *f, qat_dataset *dataset, const char *path, qat_error *err)
{
    *f = (feed){.dataset = dataset, .err = err};
    return f->status = qat_source_open(&f->source, path, err);
}

/** Refuse a file by the size that it says it has; then, if it can be read twice, by its text. */
static qat_status check_size(feed *f, qat_dataset *dataset, const char *path, qat_error *err)
{
    qat_file_look look;
    qat_status st = qat_file_look_at(path, f->piece, 1, &look, err);
    if (!st && look.size > MAX_BYTES)
        st = qat_fail(err, QAT_ERR_LIMIT, "%s: larger than the %d bytes allowed", path, MAX_BYTES);
    if (st || look.once)
        return st;
    st = begin(f, dataset, path, err);
    do {
        if (!st)
            read_piece(f);
        st = f->status;
    } while (!st && f->end);
    qat_source_close(&f->source);
    return st;
}

static json_t *parse(feed *f)
{
    json_error_t at;
    qat_c_locale const locale = qat_c_locale_enter();
    json_t *root = json_load_callback(more_text, f, JSON_REJECT_DUPLICATES, &at);
    qat_c_locale_leave(locale);
    if (!root && !f->status)
        f->status = qat_fail(f->err, QAT_ERR_FORMAT, "%s:%d:%d: not JSON: %s", f->source.path,
                             at.line, at.column, at.text);
    return root;
}

/** Read the file as JSON; *held: what its values take. Free it with json_decref. */
static qat_status load(json_t **root, qat_dataset *dataset, const char *path, uint64_t *held,
                       qat_error *err)
{
    feed *f = malloc(sizeof *f);
    if (!f)
        return qat_out_of_memory(err, path);
    qat_status st = check_size(f, dataset, path, err);
    if (!st) {
        st = begin(f, dataset, path, err);
        if (!st)
            *root = parse(f);
        if (!st)
            st = f->status;
        qat_source_close(&f->source);
    }
    if (!st)
        st = qat_dataset_hold(dataset, path, f->memory.bytes, err);
    *held = st ? 0 : f->memory.bytes;
    free(f);
    return st;
}

qat_status qat_coco_read(qat_coco_file *file, qat_dataset *dataset, const char *path,
                         bool one_class, qat_error *err)
{
    reader r = {
        .file = file, .arena = &dataset->arena, .path = path, .one_class = one_class, .err = err};
    json_t *root = NULL;
    uint64_t held = 0;
    *file = (qat_coco_file){0};
    qat_status st = load(&root, dataset, path, &held, err);
    if (!st)
        st = read_root(&r, root);
    json_decref(root);
    qat_dataset_release(dataset, held);
    return st;
}
