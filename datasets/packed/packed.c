#include "datasets/packed/packed.h"

#include "base/files/file.h"
#include "base/parallel.h"
#include "datasets/packed/shards.h"
#include "datasets/packed/unpack.h"
#include "datasets/pictures/picture.h"
#include "datasets/readers/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { AT_ONCE = 16, PATH_LENGTH = 4096 }; /* shards between two calls of tick */

typedef struct packed {
    const qat_packed_format *format;
    qat_shard *shards;
    int n_shards;
    qat_place *places; /* by sample */
    char *names;
    qat_image_size size; /* of samples */
    qat_unpacked unpacked;
} packed;

/* ------------------------------------------------------------------ opening */

/** Shards that are looked at together. */
typedef struct look {
    packed *set;
    const qat_dataset_options *options;
    int first;
    qat_index indices[AT_ONCE];
    qat_status status[AT_ONCE];
    qat_error errors[AT_ONCE];
} look;

static void look_at(void *context, int tile, int thread)
{
    look *l = context;
    const qat_shard *shard = &l->set->shards[l->first + tile];
    struct stat before;
    (void)thread;
    l->status[tile] = QAT_OK;
    bool const found = stat(shard->path, &before) == 0;
    if (qat_index_load(&l->indices[tile], shard->path))
        return;
    l->status[tile] = l->set->format->scan(shard, &l->indices[tile], &l->errors[tile]);
    if (!l->status[tile] && found)
        qat_index_save(&l->indices[tile], shard->path, &before);
}

/** Append a shard's samples to those of the shards before it. */
static qat_status append(qat_dataset *d, qat_index *all, const qat_index *one, uint32_t shard,
                         qat_error *err)
{
    uint64_t const bytes =
        one->count * (sizeof *one->places + sizeof *d->labels) + one->names.count;
    qat_status st = qat_dataset_hold(d, d->info.name, bytes, err);
    for (size_t i = 0; !st && i < one->count; i++) {
        const qat_place *p = &one->places[i];
        if (!qat_index_add(all, p->offset, p->size, p->label, qat_index_name(one, i)))
            return qat_out_of_memory(err, d->info.name);
        all->places[all->count - 1].shard = shard;
    }
    qat_ignored_join(&d->ignored, &one->ignored);
    return st;
}

/** Tell how many shards are done; an error if this was to stop. */
static qat_status tell(const qat_dataset *d, const look *l, int done, qat_error *err)
{
    const qat_dataset_options *o = l->options;
    if (!o->tick || o->tick(o->tick_context, done, l->set->n_shards))
        return QAT_OK;
    return qat_fail(err, QAT_ERR_STATE, "%s: stopped while its shards were indexed", d->info.name);
}

static qat_status look_at_some(qat_dataset *d, look *l, int n, qat_index *all, qat_error *err)
{
    qat_status st = QAT_OK;
    for (int i = 0; !st && i < n && l->set->format->unpacks; i++) {
        st = qat_shard_unpack(&l->set->unpacked, &l->set->shards[l->first + i], err);
        if (!st)
            st = tell(d, l, l->first + i, err);
    }
    if (st)
        return st;
    qat_parallel(n, look_at, l);
    for (int i = 0; i < n; i++) {
        if (!st && l->status[i])
            st = qat_fail(err, l->status[i], "%s", l->errors[i].message);
        if (!st)
            st = append(d, all, &l->indices[i], (uint32_t)(l->first + i), err);
        qat_index_free(&l->indices[i]);
    }
    return st;
}

static qat_status index_shards(qat_dataset *d, const qat_dataset_options *o, qat_index *all,
                               qat_error *err)
{
    packed *set = d->own;
    look *l = calloc(1, sizeof *l);
    qat_status st = l ? QAT_OK : qat_out_of_memory(err, d->info.name);
    for (int first = 0; !st && first < set->n_shards; first += AT_ONCE) {
        int const left = set->n_shards - first, n = left < AT_ONCE ? left : AT_ONCE;
        l->set = set;
        l->options = o;
        l->first = first;
        st = look_at_some(d, l, n, all, err);
        if (!st)
            st = tell(d, l, first + n, err);
    }
    free(l);
    return st;
}

/** Move the index into the data set's arena. */
static qat_status keep_index(qat_dataset *d, const qat_index *all, qat_error *err)
{
    packed *set = d->own;
    size_t const n = all->count;
    if (!n)
        return qat_fail(err, QAT_ERR_FORMAT, "%s: no picture in %d shards", set->shards[0].path,
                        set->n_shards);
    if (n > INT32_MAX)
        return qat_fail(err, QAT_ERR_FORMAT, "%s: more than 2147483647 samples", d->info.name);
    set->places = qat_arena_array(&d->arena, n, sizeof *set->places);
    set->names = qat_arena_take(&d->arena, all->names.count);
    d->labels = qat_arena_array(&d->arena, n, sizeof *d->labels);
    if (!set->places || !set->names || !d->labels)
        return qat_out_of_memory(err, d->info.name);
    memcpy(set->places, all->places, n * sizeof *set->places);
    memcpy(set->names, all->names.bytes, all->names.count);
    for (size_t i = 0; i < n; i++)
        d->labels[i] = all->places[i].label;
    d->info.count = (int)n;
    return QAT_OK;
}

static qat_status make_shards(qat_dataset *d, packed *set, const qat_names *paths, qat_error *err)
{
    set->shards = qat_arena_array(&d->arena, (size_t)paths->count, sizeof *set->shards);
    if (!set->shards)
        return qat_out_of_memory(err, d->info.name);
    set->n_shards = paths->count;
    for (int i = 0; i < paths->count; i++)
        set->shards[i] = (qat_shard){.path = paths->at[i], .fd = -1};
    return QAT_OK;
}

static int64_t label_at(const void *labels, int64_t index)
{
    return ((const int32_t *)labels)[index];
}

/** Set the number of classes and their names: from classes.txt beside the shards if it is there. */
static qat_status set_classes(qat_dataset *d, const qat_dataset_options *o, const char *folder,
                              qat_error *err)
{
    int named = 0;
    qat_status st = qat_files_count_classes(folder, "classes.txt", &named, err);
    int const wanted = o->classes ? o->classes : named;
    if (!st)
        st = qat_dataset_set_classes(d, d->info.name, d->labels, label_at, d->info.count, wanted,
                                     err);
    return st || !named ? st : qat_files_class_names(d, folder, "classes.txt", err);
}

qat_status qat_packed_open(qat_dataset *d, const qat_packed_format *format,
                           const qat_dataset_options *o, qat_split split, qat_error *err)
{
    const char *folder = NULL;
    qat_names paths;
    qat_index all = {0};
    packed *set = d->own = qat_arena_take(&d->arena, sizeof *set);
    if (!set)
        return qat_out_of_memory(err, o->path);
    *set = (packed){.format = format, .unpacked = {.fd = -1}};
    qat_status st =
        qat_shards_list(d, o, split, format->is_shard, format->endings, &paths, &folder, err);
    if (!st)
        st = make_shards(d, set, &paths, err);
    if (!st)
        st = index_shards(d, o, &all, err);
    if (!st)
        st = keep_index(d, &all, err);
    qat_index_free(&all);
    if (!st)
        st = set_classes(d, o, folder, err);
    if (!st)
        st = qat_dataset_thin_out(d, qat_split_count(o, split), err);
    if (!st)
        st = qat_files_set_shape(d, o, err);
    set->size = (qat_image_size){.height = d->info.height,
                                 .width = d->info.width,
                                 .channels = d->info.channels,
                                 .central_crop = o->central_crop,
                                 .resize_short = o->resize_short,
                                 .max_pixels = o->max_pixels,
                                 .jpeg_scale = o->jpeg_scale};
    return st;
}

void qat_packed_close(qat_dataset *d)
{
    packed *set = d->own;
    if (set && set->unpacked.fd >= 0)
        (void)close(set->unpacked.fd);
}

/* ------------------------------------------------------------------ samples */

qat_file_name qat_packed_file(const qat_dataset *d, int index)
{
    const packed *set = d->own;
    const qat_place *p = &set->places[index];
    return (qat_file_name){set->shards[p->shard].path, set->names + p->name, p->size};
}

/** Read a sample's part of its shard, and find the picture in it. */
static qat_status read_part(const qat_dataset *d, int index, const char *name, qat_part *part,
                            qat_error *err)
{
    const packed *set = d->own;
    const qat_packed_format *f = set->format;
    const qat_place *p = &set->places[index];
    const qat_shard *shard = &set->shards[p->shard];
    size_t const n = f->before + p->size + f->after;
    *part = (qat_part){.bytes = malloc(n)};
    if (!part->bytes)
        return qat_out_of_memory(err, name);
    int const fd = shard->fd >= 0 ? shard->fd : open(shard->path, O_RDONLY | O_CLOEXEC);
    qat_status st = fd < 0 ? qat_file_fail(err, "open", shard->path, errno)
                           : qat_file_read_at(fd, name, shard->start + p->offset - f->before,
                                              part->bytes, n, err);
    if (fd >= 0 && fd != shard->fd)
        (void)close(fd);
    part->label = -1;
    if (!st)
        st = f->find(part, p->size, name, err);
    if (!st && part->label >= 0 && part->label != p->label)
        st = qat_fail(err, QAT_ERR_FORMAT,
                      "%s: of class %d, but of %d in the index; remove the file .idx", name,
                      part->label, p->label);
    return st;
}

qat_status qat_packed_bytes(const qat_dataset *d, int index, uint8_t **bytes, size_t *count,
                            qat_error *err)
{
    char name[PATH_LENGTH];
    qat_part part;
    qat_file_path(qat_packed_file(d, index), name, sizeof name);
    qat_status const st = read_part(d, index, name, &part, err);
    *bytes = part.bytes;
    *count = part.count;
    if (!st)
        memmove(part.bytes, part.picture, part.count);
    return st;
}

/** Decode a sample's picture. part_of_it: a random part is wanted. */
static qat_status decode(const qat_dataset *d, int index, const char *name, bool part_of_it,
                         qat_picture *picture, qat_error *err)
{
    const packed *set = d->own;
    int const limit = set->size.max_pixels ? set->size.max_pixels : QAT_PICTURE_MAX_PIXELS;
    qat_part part;
    int height, width;
    qat_image_least(&set->size, part_of_it, &height, &width);
    *picture = (qat_picture){0};
    qat_status st = read_part(d, index, name, &part, err);
    qat_picture_file const file = {.path = name,
                                   .bytes = part.picture,
                                   .count = part.count,
                                   .channels = d->info.channels,
                                   .max_pixels = limit,
                                   .least_height = height,
                                   .least_width = width};
    if (!st)
        st = qat_picture_decode(picture, &file, err);
    free(part.bytes);
    return st;
}

qat_status qat_packed_picture(const qat_dataset *d, int index, qat_picture *picture, qat_error *err)
{
    char name[PATH_LENGTH];
    qat_file_path(qat_packed_file(d, index), name, sizeof name);
    return decode(d, index, name, true, picture, err);
}

qat_status qat_packed_get(const qat_dataset *d, int index, void *values, int *label, qat_error *err)
{
    const packed *set = d->own;
    char name[PATH_LENGTH];
    qat_picture picture;
    qat_file_path(qat_packed_file(d, index), name, sizeof name);
    qat_status st = decode(d, index, name, false, &picture, err);
    if (!st)
        st = qat_image_fit(&picture, name, &set->size, values, err);
    free(picture.pixels);
    *label = d->labels[index];
    return st;
}

void qat_packed_keep(qat_dataset *d, const int *kept, int n)
{
    packed *set = d->own;
    qat_keep_items(set->places, sizeof *set->places, kept, n);
}
