/** Packs pictures with a class into shards. */
#include "datasets/packed/pack_folder.h"
#include "datasets/packed/shard_write.h"
#include "datasets/packed/tar.h"
#include "datasets/pictures/encode.h"
#include "datasets/pictures/image_filter.h"
#include "datasets/pictures/picture.h"
#include "datasets/readers/files.h"

#include "base/files/file.h"
#include "base/parallel.h"

#include <stdlib.h>
#include <string.h>

/** CHUNK pictures are made ready side by side, then written in order. */
enum { CHUNK = 64, PATH_LENGTH = 4096, MAX_FILE_BYTES = 1 << 30, LEAST_SHARD = 1 << 16 };

/** A picture that is ready to be written. */
typedef struct ready {
    uint8_t *bytes;
    size_t count;
    const char *ending;
    qat_status status;
    qat_error err;
} ready;

typedef struct chunk {
    const qat_dataset *data;
    const qat_pack_options *options;
    int first;
    ready of[CHUNK];
} chunk;

/* ------------------------------------------------------------------ one picture */

/** The picture file of a sample, as it is stored. */
static qat_status read_file(const qat_dataset *d, int index, const char *name, ready *r)
{
    return d->kind->bytes ? d->kind->bytes(d, index, &r->bytes, &r->count, &r->err)
                          : qat_file_read(name, MAX_FILE_BYTES, &r->bytes, &r->count, &r->err);
}

static const char *ending_of(const ready *r)
{
    static const char *const endings[][2] = {
        {"PNG", "png"}, {"JPEG", "jpg"}, {"BMP", "bmp"}, {"PNM", "ppm"}};
    const qat_picture_format *format = qat_picture_format_of(r->bytes, r->count);
    for (size_t i = 0; format && i < sizeof endings / sizeof *endings; i++)
        if (strcmp(endings[i][0], format->name) == 0)
            return endings[i][1];
    return "bin"; /* not after it was decoded */
}

/** Make the short side `shorter` long; *changed: it was longer. */
static qat_status make_smaller(qat_picture *p, int channels, int shorter, const char *name,
                               bool *changed, qat_error *err)
{
    int64_t const h = p->height, w = p->width, least = h < w ? h : w, most = h < w ? w : h;
    *changed = shorter && least > shorter;
    if (!*changed)
        return QAT_OK;
    int const longer = (int)((2 * most * shorter + least) / (2 * least));
    qat_picture small = {.height = h <= w ? shorter : longer, .width = h <= w ? longer : shorter};
    small.pixels = malloc((size_t)small.height * (size_t)small.width * (size_t)channels);
    if (!small.pixels || !qat_image_resize_filtered(p->pixels, p->height, p->width, small.pixels,
                                                    small.height, small.width, channels)) {
        free(small.pixels);
        return qat_out_of_memory(err, name);
    }
    free(p->pixels);
    *p = small;
    return QAT_OK;
}

static void name_of(const qat_dataset *d, int index, char name[PATH_LENGTH])
{
    if (d->kind->file)
        qat_file_path(d->kind->file(d, index), name, PATH_LENGTH);
    else
        (void)snprintf(name, PATH_LENGTH, "%.200s: sample %d", d->info.name, index);
}

static void make_ready(void *context, int tile, int thread)
{
    chunk *c = context;
    const qat_dataset *d = c->data;
    ready *r = &c->of[tile];
    int const index = c->first + tile;
    char name[PATH_LENGTH];
    bool changed = false;
    qat_picture p = {0};
    (void)thread;
    *r = (ready){0};
    name_of(d, index, name);
    r->status = qat_dataset_picture(d, index, &p, &r->err);
    if (!r->status)
        r->status = make_smaller(&p, d->info.channels, c->options->resize, name, &changed, &r->err);
    bool const as_it_is = d->kind->file && !changed;
    if (!r->status && as_it_is)
        r->status = read_file(d, index, name, r);
    else if (!r->status)
        r->status = qat_picture_encode(&p, d->info.channels, c->options->quality, name, &r->bytes,
                                       &r->count, &r->err);
    if (!r->status)
        r->ending = as_it_is ? ending_of(r) : c->options->quality ? "jpg" : "png";
    free(p.pixels);
}

/* ------------------------------------------------------------------ one split */

/** Write a picture, or note that it cannot be read. */
static qat_status put(qat_shard_writer *w, const chunk *c, int tile, int64_t counts[2],
                      qat_error *err)
{
    const ready *r = &c->of[tile];
    int const index = c->first + tile;
    char key[16];
    bool const broken =
        r->status == QAT_ERR_FORMAT || r->status == QAT_ERR_UNSUPPORTED || r->status == QAT_ERR_IO;
    (void)snprintf(key, sizeof key, "%09d", index);
    if (broken && c->options->skip_broken) {
        counts[1]++;
        if (c->options->broken)
            c->options->broken(c->options->context, r->err.message);
        return QAT_OK;
    }
    if (r->status)
        return qat_fail(err, r->status, "%s", r->err.message);
    counts[0]++;
    return qat_shard_add(w, key, r->ending, r->bytes, r->count, qat_dataset_label(c->data, index),
                         err);
}

static qat_status pack_chunk(qat_shard_writer *w, chunk *c, int n, int64_t counts[2],
                             qat_error *err)
{
    qat_status st = QAT_OK;
    qat_parallel(n, make_ready, c);
    for (int i = 0; i < n; i++) {
        if (!st)
            st = put(w, c, i, counts, err);
        free(c->of[i].bytes);
    }
    return st;
}

/** done: samples of the splits before this one. */
static qat_status pack_split(qat_shard_writer *w, chunk *c, int64_t done, int64_t total,
                             int64_t counts[2], qat_error *err)
{
    const qat_pack_options *o = c->options;
    int const count = c->data->info.count;
    qat_status st = QAT_OK;
    for (c->first = 0; !st && c->first < count; c->first += CHUNK) {
        int const left = count - c->first, n = left < CHUNK ? left : CHUNK;
        st = pack_chunk(w, c, n, counts, err);
        if (!st && o->tick && !o->tick(o->context, done + c->first + n, total))
            st =
                qat_fail(err, QAT_ERR_STATE, "%s: stopped while it was packed", c->data->info.name);
    }
    if (!st)
        st = qat_shard_finish(w, err);
    if (!st && !counts[0])
        st = qat_fail(err, QAT_ERR_FORMAT, "%s: none of its %d pictures can be read",
                      c->data->info.name, count);
    return st;
}

static qat_status pack_splits(const qat_dataset *const data[2], const qat_pack_options *o,
                              qat_pack_report *report, qat_error *err)
{
    int64_t const train = data[0] ? data[0]->info.count : 0;
    int64_t const total = train + (data[1] ? data[1]->info.count : 0);
    chunk *c = malloc(sizeof *c);
    qat_status st = c ? QAT_OK : qat_out_of_memory(err, o->folder);
    for (int s = 0; !st && s < 2; s++) {
        qat_shard_writer w = {.folder = o->folder,
                              .prefix = qat_pack_prefixes[s],
                              .most = o->shard_bytes ? o->shard_bytes : QAT_DEFAULT_SHARD};
        int64_t counts[2] = {0, 0}; /* written, left out */
        if (!data[s])
            continue;
        c->data = data[s];
        c->options = o;
        st = pack_split(&w, c, s ? train : 0, total, counts, err);
        report->samples[s] = counts[0];
        report->skipped[s] = counts[1];
        report->shards[s] = w.shards;
        report->bytes[s] = w.written;
        qat_shard_writer_free(&w);
    }
    free(c);
    return st;
}

/* ------------------------------------------------------------------ the folder */

static qat_status check(const qat_dataset *d, const qat_pack_options *o, qat_error *err)
{
    const qat_dataset_info *info = &d->info;
    if (info->type != QAT_SAMPLE_U8 || info->height == 1 || info->has_objects || info->n_targets)
        return qat_fail(err, QAT_ERR_UNSUPPORTED,
                        "%s: only pictures with a class can be packed, not %s", info->name,
                        info->has_objects             ? "pictures with boxes"
                        : info->n_targets             ? "samples with targets"
                        : info->type != QAT_SAMPLE_U8 ? "sounds or real values"
                                                      : "signals");
    if (d->jpeg_scale)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "%s: data.jpeg_scale has no use where pictures are packed; resize does",
                        info->name);
    if (info->channels != 1 && info->channels != 3)
        return qat_fail(err, QAT_ERR_UNSUPPORTED, "%s: pictures of %d channels, not 1 or 3",
                        info->name, info->channels);
    if (o->resize < 0 || o->quality < 0 || o->quality > 100 ||
        (o->shard_bytes && o->shard_bytes < LEAST_SHARD))
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "pack: resize %d (>= 0), quality %d (0..100), shards of %llu bytes (at "
                        "least %d)",
                        o->resize, o->quality, (unsigned long long)o->shard_bytes, LEAST_SHARD);
    return QAT_OK;
}

qat_status qat_dataset_pack(const qat_dataset *const data[2], const qat_pack_options *o,
                            qat_pack_report *report, qat_error *err)
{
    qat_pack_folder folder;
    const qat_dataset *any = data[0] ? data[0] : data[1];
    *report = (qat_pack_report){0};
    if (o->struct_size > sizeof *o)
        return qat_fail(err, QAT_ERR_UNSUPPORTED,
                        "qat_pack_options: of a later version of the library");
    if (!any || !o->folder || !*o->folder)
        return qat_fail(err, QAT_ERR_ARGUMENT, "pack: no %s", any ? "folder" : "data");
    qat_status st = check(any, o, err);
    if (st)
        return st;
    st = qat_pack_folder_begin(&folder, data, o->folder, o->overwrite, err);
    if (!st)
        st = pack_splits(data, o, report, err);
    if (!st)
        st = qat_pack_folder_end(&folder, err);
    qat_pack_folder_close(&folder);
    return st;
}
