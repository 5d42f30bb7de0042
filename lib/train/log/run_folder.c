#define _XOPEN_SOURCE 700 /* realpath */
#include "train/log/run_folder.h"
#include "base/files/file.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

qat_status qat_run_path(char path[QAT_RUN_PATH_MAX], const char *dir, const char *name,
                        qat_error *err)
{
    int const n = snprintf(path, QAT_RUN_PATH_MAX, "%s/%s", dir, name);
    if (n < 0 || n >= QAT_RUN_PATH_MAX)
        return qat_fail(err, QAT_ERR_ARGUMENT, "output.dir %.200s... is too long", dir);
    return QAT_OK;
}

qat_status qat_run_lock(int *lock, const char *dir, qat_error *err)
{
    return qat_folder_lock(lock, dir, "another run", err);
}

/* ------------------------------------------------------------------ names */

static bool ends_with(const char *text, const char *end)
{
    size_t const n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/**
 * N of "step-N.ckpt", or of "step-N.ckpt.*" with `more`; -1 for another name. N is as a run writes
 * it, without zeros before it, so that it gives the name back.
 */
static int64_t step_of(const char *name, bool more)
{
    char *end;
    bool const number = strncmp(name, "step-", 5) == 0 && name[5] >= '0' && name[5] <= '9';
    if (!number || (name[5] == '0' && name[6] >= '0' && name[6] <= '9'))
        return -1;
    int64_t const step = strtoll(name + 5, &end, 10);
    if (step == INT64_MAX) /* more digits than it can have */
        return -1;
    return strncmp(end, ".ckpt", 5) == 0 && end[5] == (more ? '.' : '\0') ? step : -1;
}

static bool is_checkpoint(const char *name)
{
    return !strcmp(name, "last.ckpt") || !strcmp(name, "best.ckpt") || step_of(name, false) >= 0;
}

static bool is_temporary(const char *name)
{
    return ends_with(name, ".tmp") &&
           (!strncmp(name, "last.ckpt.", 10) || !strncmp(name, "best.ckpt.", 10) ||
            step_of(name, true) >= 0);
}

/* ------------------------------------------------------------------ removing */

static qat_status remove_file(const char *dir, const char *name, qat_error *err)
{
    char path[QAT_RUN_PATH_MAX];
    qat_status const st = qat_run_path(path, dir, name, err);
    if (!st && remove(path) && errno != ENOENT)
        return qat_fail(err, QAT_ERR_IO, "%s: %s", path, strerror(errno));
    return st;
}

static qat_status remove_all(const char *dir, bool (*concerned)(const char *name), qat_error *err)
{
    DIR *folder = opendir(dir);
    if (!folder)
        return qat_fail(err, QAT_ERR_IO, "%s: %s", dir, strerror(errno));
    qat_status st = QAT_OK;
    for (struct dirent *e; !st && (e = readdir(folder));)
        if (concerned(e->d_name))
            st = remove_file(dir, e->d_name, err);
    (void)closedir(folder);
    return st;
}

qat_status qat_run_remove_temporaries(const char *dir, qat_error *err)
{
    return remove_all(dir, is_temporary, err);
}

qat_status qat_run_remove_checkpoints(const char *dir, qat_error *err)
{
    return remove_all(dir, is_checkpoint, err);
}

void qat_run_find(const char *dir, char name[QAT_RUN_PATH_MAX])
{
    DIR *folder = opendir(dir);
    *name = 0;
    if (!folder)
        return;
    for (struct dirent *e; (e = readdir(folder));)
        if (is_checkpoint(e->d_name) && (!*name || !strcmp(e->d_name, "last.ckpt")))
            snprintf(name, QAT_RUN_PATH_MAX, "%s", e->d_name);
    (void)closedir(folder);
}

bool qat_run_owns(const char *dir, const char *path)
{
    char *folder = realpath(dir, NULL), *file = realpath(path, NULL);
    char *name = file ? strrchr(file, '/') : NULL;
    if (name)
        *name++ = 0;
    bool const owns =
        folder && name && is_checkpoint(name) && strcmp(folder, *file ? file : "/") == 0;
    free(folder);
    free(file);
    return owns;
}

/** Find the oldest step-N.ckpt with N <= step (-1: none), and how many there are. */
static qat_status oldest(const char *dir, int64_t step, int64_t *first, int64_t *count,
                         qat_error *err)
{
    DIR *folder = opendir(dir);
    if (!folder)
        return qat_fail(err, QAT_ERR_IO, "%s: %s", dir, strerror(errno));
    *first = -1;
    *count = 0;
    for (struct dirent *e; (e = readdir(folder));) {
        int64_t const at = step_of(e->d_name, false);
        if (at < 0 || at > step)
            continue;
        *first = *first < 0 || at < *first ? at : *first;
        ++*count;
    }
    (void)closedir(folder);
    return QAT_OK;
}

qat_status qat_run_prune(const char *dir, int64_t step, int64_t keep, qat_error *err)
{
    char name[64];
    int64_t first = -1, count = 0;
    qat_status st = oldest(dir, step, &first, &count, err);
    while (!st && count > keep) {
        snprintf(name, sizeof name, "step-%lld.ckpt", (long long)first);
        st = remove_file(dir, name, err);
        if (!st)
            st = oldest(dir, step, &first, &count, err);
    }
    return st;
}
