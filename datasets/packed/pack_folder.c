#include "datasets/packed/pack_folder.h"
#include "datasets/packed/shards.h"
#include "datasets/readers/files.h"

#include "base/bytes.h"
#include "base/files/file.h"
#include "base/number.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_BYTES = 1 << 24 }; /* of PACKING and classes.txt */

const char *const qat_pack_prefixes[2] = {"train", "val"};

/* ------------------------------------------------------------------ names */

/** Is it a file that packing writes: train-000000.tar, its index, what an interruption left? */
static bool is_written(const char *name, const char *prefix)
{
    static const char *const endings[] = {".tar", ".tar.idx", ".tar.qat.tmp", ".tar.idx.qat.tmp"};
    size_t const n = strlen(prefix);
    const char *at = name + n + 1;
    if (strncmp(name, prefix, n) != 0 || name[n] != '-' || !qat_is_digit(*at))
        return false;
    while (qat_is_digit(*at))
        at++;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (strcmp(at, endings[i]) == 0)
            return true;
    return false;
}

static bool is_train(const char *name)
{
    return is_written(name, qat_pack_prefixes[0]);
}

static bool is_val(const char *name)
{
    return is_written(name, qat_pack_prefixes[1]);
}

static qat_named *const names_of[2] = {is_train, is_val};

/* ------------------------------------------------------------------ what is there */

/** It is an error if a shard that the data are read from lies in the folder. */
static qat_status check_source(const qat_dataset *d, const char *folder, qat_error *err)
{
    struct stat there, here;
    qat_arena arena = {0};
    const char *before = NULL;
    bool same = false, failed = false;
    if (!d || !d->kind->bytes || stat(folder, &here) != 0)
        return QAT_OK;
    for (int i = 0; i < d->info.count && !same && !failed; i++) {
        const char *shard = d->kind->file(d, i).folder;
        if (shard == before)
            continue;
        before = shard;
        const char *from = qat_files_folder_of(&arena, shard);
        failed = !from;
        same = from && stat(from, &there) == 0 && there.st_dev == here.st_dev &&
               there.st_ino == here.st_ino;
    }
    qat_arena_free(&arena);
    if (failed)
        return qat_out_of_memory(err, folder);
    return same ? qat_fail(err, QAT_ERR_ARGUMENT,
                           "%s: the data to pack are in this folder; pack them into another one",
                           folder)
                : QAT_OK;
}

/** The splits that an interrupted packing left: those that PACKING names; all if it names none. */
static qat_status read_marker(const char *marker, bool left[2], qat_error *err)
{
    uint8_t *text = NULL;
    size_t count;
    left[0] = left[1] = false;
    if (access(marker, F_OK) != 0)
        return QAT_OK;
    qat_status const st = qat_file_read(marker, MOST_BYTES, &text, &count, err);
    for (int s = 0; !st && s < 2; s++)
        left[s] = strstr((const char *)text, qat_pack_prefixes[s]) != NULL;
    if (!left[0] && !left[1])
        left[0] = left[1] = true;
    free(text);
    return st;
}

static qat_status check_marker(const qat_dataset *const data[2], const char *folder,
                               const bool left[2], qat_error *err)
{
    for (int s = 0; s < 2; s++)
        if (left[s] && !data[s])
            return qat_fail(err, QAT_ERR_STATE,
                            "%s: packing of its %s shards began but did not end; pack them, too "
                            "(or remove the file " QAT_PACKING " to keep those that there are)",
                            folder, qat_pack_prefixes[s]);
    return QAT_OK;
}

static qat_status there_already(const char *folder, const char *name, qat_error *err)
{
    return qat_fail(err, QAT_ERR_ARGUMENT, "%s/%s is there already (--overwrite replaces it)",
                    folder, name);
}

/** Is there a file, and does it have these bytes? */
static qat_status look_at(const char *path, const qat_writer *text, bool *there, bool *same,
                          qat_error *err)
{
    uint8_t *bytes = NULL;
    size_t count = 0;
    *there = access(path, F_OK) == 0;
    *same = false;
    if (!*there)
        return QAT_OK;
    qat_status const st = qat_file_read(path, MOST_BYTES, &bytes, &count, err);
    *same = !st && text->count && count == text->count && memcmp(bytes, text->bytes, count) == 0;
    free(bytes);
    return st;
}

/* ------------------------------------------------------------------ what is removed and written */

/** List what packing the splits replaces. Without permission it is an error if there is anything.
 */
static qat_status list_old(qat_arena *arena, const qat_dataset *const data[2], const char *folder,
                           const bool allowed[2], qat_names old[2], qat_error *err)
{
    qat_status st = QAT_OK;
    for (int s = 0; !st && s < 2; s++) {
        if (data[s])
            st = qat_folder_list(arena, folder, names_of[s], &old[s], NULL, err);
        if (!st && old[s].count && !allowed[s])
            st = there_already(folder, old[s].at[0], err);
    }
    return st;
}

static qat_status remove_old(qat_arena *arena, const char *folder, const qat_names *old,
                             qat_error *err)
{
    for (int i = 0; i < old->count; i++) {
        const char *path = qat_dataset_join(arena, folder, old->at[i]);
        if (!path)
            return qat_out_of_memory(err, folder);
        (void)unlink(path);
    }
    return QAT_OK;
}

static qat_status write_marker(const char *marker, const qat_dataset *const data[2], qat_error *err)
{
    char text[32];
    int const n =
        snprintf(text, sizeof text, "%s%s", data[0] ? "train\n" : "", data[1] ? "val\n" : "");
    return qat_file_write_atomic(marker, text, (size_t)n, err);
}

static qat_status write_classes(const char *path, const qat_writer *text, qat_error *err)
{
    if (text->count)
        return qat_file_write_atomic(path, text->bytes, text->count, err);
    (void)unlink(path); /* of other data */
    return QAT_OK;
}

/** Replace what is there. */
static qat_status replace(const qat_pack_folder *f, const qat_dataset *const data[2],
                          const char *folder, const bool allowed[2], const qat_writer *classes,
                          qat_error *err)
{
    char path[sizeof f->marker];
    qat_arena arena = {0};
    qat_names old[2] = {{0}, {0}};
    bool there, same;
    qat_file_path((qat_file_name){.folder = folder, .name = "classes.txt"}, path, sizeof path);
    qat_status st = look_at(path, classes, &there, &same, err);
    if (!st && there && !same && !allowed[0] && !allowed[1])
        st = there_already(folder, "classes.txt", err);
    if (!st)
        st = list_old(&arena, data, folder, allowed, old, err);
    if (!st)
        st = write_marker(f->marker, data, err);
    for (int s = 0; !st && s < 2; s++)
        st = remove_old(&arena, folder, &old[s], err);
    if (!st && !same)
        st = write_classes(path, classes, err);
    qat_arena_free(&arena);
    return st;
}

/* ------------------------------------------------------------------ the folder */

qat_status qat_pack_folder_begin(qat_pack_folder *f, const qat_dataset *const data[2],
                                 const char *folder, bool overwrite, qat_error *err)
{
    const qat_dataset_info *info = data[0] ? &data[0]->info : &data[1]->info;
    qat_writer classes = {0};
    bool allowed[2];
    f->lock = -1;
    qat_file_path((qat_file_name){.folder = folder, .name = QAT_PACKING}, f->marker,
                  sizeof f->marker);
    for (int i = 0; info->labels && i < info->classes; i++)
        qat_write_text(&classes, "%s\n", info->labels[i]);
    qat_status st = classes.failed ? qat_out_of_memory(err, folder) : QAT_OK;
    if (!st)
        st = qat_make_dirs(folder, err);
    for (int s = 0; !st && s < 2; s++)
        st = check_source(data[s], folder, err);
    if (!st)
        st = qat_folder_lock(&f->lock, folder, "another program", err);
    if (!st)
        st = read_marker(f->marker, allowed, err);
    if (!st)
        st = check_marker(data, folder, allowed, err);
    if (!st) {
        allowed[0] = allowed[0] || overwrite;
        allowed[1] = allowed[1] || overwrite;
        st = replace(f, data, folder, allowed, &classes, err);
    }
    qat_writer_free(&classes);
    return st;
}

qat_status qat_pack_folder_end(qat_pack_folder *f, qat_error *err)
{
    return unlink(f->marker) ? qat_fail(err, QAT_ERR_IO, "cannot remove %s", f->marker) : QAT_OK;
}

void qat_pack_folder_close(qat_pack_folder *f)
{
    if (f->lock >= 0)
        (void)close(f->lock);
    f->lock = -1;
}
