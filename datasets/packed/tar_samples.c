/**
 * Pictures in tar archives, in WebDataset's convention: the files of a sample follow each other and
 * have the same name up to the first dot.
 *
 *     000123.jpg      the picture
 *     000123.cls      its class, a number as text; or
 *     000123.json     an object with the class as "label" or "cls"
 *
 * Samples without a picture, and other files of a sample, are ignored.
 */
#include "datasets/packed/packed.h"
#include "datasets/packed/tar.h"
#include "datasets/pictures/picture.h"

#include "base/number.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <jansson.h>

enum { MAX_CLS = 64, MAX_JSON = 1 << 20 };

/** The sample whose files are read just now. */
typedef struct sample {
    char name[QAT_TAR_NAME_MAX]; /* of its first file; up to `key` bytes those of all of them */
    size_t key;
    uint64_t header;                /* of its first file */
    char picture[QAT_TAR_NAME_MAX]; /* "": none yet */
    uint64_t offset, size;
    int64_t label;                  /* -1: not known */
    char useless[QAT_TAR_NAME_MAX]; /* a .json that says no class; "": none */
} sample;

typedef struct walk {
    qat_tar tar;
    qat_index *index;
    sample now;
    qat_error *err;
} walk;

/** The length of the name up to the first dot of its last part. */
static size_t key_of(const char *name)
{
    const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
    return (size_t)(base - name) + strcspn(base, ".");
}

static qat_status wrong_label(walk *w, const qat_tar_entry *e)
{
    return qat_fail(w->err, QAT_ERR_FORMAT, "%s: byte %llu: %.200s is not a class in 0..%d",
                    w->tar.path, (unsigned long long)e->header, e->name, QAT_INDEX_MAX_LABEL);
}

/** A number alone, with white space around it; -1: it is something else. */
static int64_t label_of_text(const char *text)
{
    char *end;
    while (qat_is_blank(*text))
        text++;
    if (!qat_is_digit(*text))
        return -1;
    int64_t const label = strtoll(text, &end, 10);
    while (qat_is_blank(*end))
        end++;
    return *end || label > QAT_INDEX_MAX_LABEL ? -1 : label;
}

/** -1: it says no class in 0..65535. */
static int64_t label_of_json(const char *text, size_t count)
{
    json_t *root = json_loadb(text, count, 0, NULL);
    const json_t *value = json_object_get(root, "label");
    value = value ? value : json_object_get(root, "cls");
    int64_t label = -1;
    if (json_is_integer(value) && json_integer_value(value) >= 0 &&
        json_integer_value(value) <= QAT_INDEX_MAX_LABEL)
        label = json_integer_value(value);
    json_decref(root);
    return label;
}

static qat_status read_label(walk *w, const qat_tar_entry *e, bool json)
{
    size_t const n = (size_t)e->size;
    if (e->size > (json ? MAX_JSON : MAX_CLS))
        return wrong_label(w, e);
    char *text = malloc(n + 1);
    if (!text)
        return qat_out_of_memory(w->err, w->tar.path);
    text[n] = 0;
    qat_status const st = qat_tar_read(&w->tar, e->data, text, n, w->err);
    int64_t const label = st ? -1 : json ? label_of_json(text, n) : label_of_text(text);
    free(text);
    if (st || (label < 0 && !json))
        return st ? st : wrong_label(w, e);
    if (label < 0)
        memcpy(w->now.useless, e->name, sizeof w->now.useless);
    if (label >= 0 && w->now.label >= 0 && label != w->now.label)
        return qat_fail(w->err, QAT_ERR_FORMAT, "%s: byte %llu: %.200s says class %lld, not %lld",
                        w->tar.path, (unsigned long long)e->header, e->name, (long long)label,
                        (long long)w->now.label);
    w->now.label = label >= 0 ? label : w->now.label;
    return QAT_OK;
}

static qat_status take_picture(walk *w, const qat_tar_entry *e)
{
    sample *s = &w->now;
    if (*s->picture)
        return qat_fail(w->err, QAT_ERR_FORMAT,
                        "%s: byte %llu: %.120s and %.120s are pictures of one sample", w->tar.path,
                        (unsigned long long)e->header, s->picture, e->name);
    if (e->size > QAT_INDEX_MAX_PART)
        return qat_fail(w->err, QAT_ERR_FORMAT, "%s: byte %llu: %.200s has more than 1 GiB",
                        w->tar.path, (unsigned long long)e->header, e->name);
    memcpy(s->picture, e->name, sizeof s->picture);
    s->offset = e->data;
    s->size = e->size;
    return QAT_OK;
}

static qat_status take_file(walk *w, const qat_tar_entry *e)
{
    const char *ending = e->name + w->now.key;
    if (strcasecmp(ending, ".cls") == 0 || strcasecmp(ending, ".json") == 0)
        return read_label(w, e, strcasecmp(ending, ".json") == 0);
    if (strchr(ending + (*ending != 0), '.') == NULL && qat_picture_has_ending(ending))
        return take_picture(w, e);
    qat_ignored_add(&w->index->ignored, e->name);
    return QAT_OK;
}

/** Add the sample that is now complete. */
static qat_status finish(walk *w)
{
    const sample *s = &w->now;
    if (!*s->picture)
        return QAT_OK;
    if (s->label < 0 && *s->useless)
        return qat_fail(
            w->err, QAT_ERR_FORMAT,
            "%s: byte %llu: %.120s has no class: %.120s is not JSON with a \"label\" or "
            "\"cls\" in 0..%d",
            w->tar.path, (unsigned long long)s->header, s->picture, s->useless,
            QAT_INDEX_MAX_LABEL);
    if (s->label < 0)
        return qat_fail(w->err, QAT_ERR_FORMAT,
                        "%s: byte %llu: %.200s has no class: no .cls or .json with \"label\" "
                        "follows it",
                        w->tar.path, (unsigned long long)s->header, s->picture);
    return qat_index_add(w->index, s->offset, (uint32_t)s->size, (int32_t)s->label, s->picture)
               ? QAT_OK
               : qat_out_of_memory(w->err, w->tar.path);
}

static bool is_of_now(const sample *s, const qat_tar_entry *e, size_t key)
{
    return s->key == key && strncmp(s->name, e->name, key) == 0;
}

static qat_status take_entry(walk *w, const qat_tar_entry *e)
{
    const char *slash = strrchr(e->name, '/');
    size_t const key = key_of(e->name);
    if (e->is_link && qat_picture_has_ending(e->name))
        return qat_fail(w->err, QAT_ERR_FORMAT,
                        "%s: byte %llu: %.200s is a link; tar --dereference --hard-dereference "
                        "stores the picture itself",
                        w->tar.path, (unsigned long long)e->header, e->name);
    if (!e->is_file)
        return QAT_OK;
    if ((slash ? slash[1] : *e->name) == '.') { /* hidden: macOS's tar makes such files */
        qat_ignored_add(&w->index->ignored, e->name);
        return QAT_OK;
    }
    if (!is_of_now(&w->now, e, key)) {
        qat_status const st = finish(w);
        if (st)
            return st;
        w->now = (sample){.key = key, .header = e->header, .label = -1};
        memcpy(w->now.name, e->name, sizeof w->now.name);
    }
    return take_file(w, e);
}

static qat_status scan(const qat_shard *shard, qat_index *index, qat_error *err)
{
    walk w = {.index = index, .err = err};
    bool more = true;
    qat_tar_entry e;
    qat_status st = qat_tar_open(&w.tar, shard->path, err);
    while (!st && more) {
        st = qat_tar_next(&w.tar, &e, &more, err);
        if (!st)
            st = more ? take_entry(&w, &e) : finish(&w);
    }
    qat_tar_close(&w.tar);
    return st;
}

static qat_status find(qat_part *part, size_t size, const char *name, qat_error *err)
{
    if (!qat_tar_is_header(part->bytes, size))
        return qat_fail(err, QAT_ERR_FORMAT,
                        "%s: it is not where the archive's index says; remove the file .idx", name);
    part->picture = part->bytes + QAT_TAR_BLOCK;
    part->count = size;
    return QAT_OK;
}

/** Also a packed archive, which is refused by what is in it, not passed over. */
static bool is_tar(const char *name)
{
    static const char *const endings[] = {".tar", ".tar.gz", ".tgz"};
    size_t const n = strlen(name);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t const m = strlen(endings[i]);
        if (n > m && strcasecmp(name + n - m, endings[i]) == 0)
            return true;
    }
    return false;
}

static const qat_packed_format format = {
    .is_shard = is_tar, .endings = ".tar", .scan = scan, .before = QAT_TAR_BLOCK, .find = find};

static qat_status open_tar(qat_dataset *dataset, const qat_dataset_options *options,
                           qat_split split, qat_error *err)
{
    return qat_packed_open(dataset, &format, options, split, err);
}

const qat_dataset_kind qat_kind_tar = QAT_PACKED_KIND("tar", open_tar);
