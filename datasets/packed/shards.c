#include "datasets/packed/shards.h"

#include "base/number.h"
#include "datasets/readers/files.h"

#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/** Which split a name says. */
typedef enum part { NOT_SAID, TRAIN, VALIDATION, TEST, PARTS } part;

static const struct {
    const char *word;
    part says;
} words[] = {{"train", TRAIN},      {"training", TRAIN},        {"val", VALIDATION},
             {"valid", VALIDATION}, {"validation", VALIDATION}, {"test", TEST}};

/** Is the word in the text, with no letter before and after it? */
static bool has_word(const char *text, size_t length, const char *word)
{
    size_t const n = strlen(word);
    for (size_t i = 0; i + n <= length; i++)
        if (strncmp(text + i, word, n) == 0 && (i == 0 || !qat_is_letter(text[i - 1])) &&
            (i + n == length || !qat_is_letter(text[i + n])))
            return true;
    return false;
}

static part said_by(const char *text, size_t length)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (has_word(text, length, words[i].word))
            return words[i].says;
    return NOT_SAID;
}

/** What the file's name says, or the name of its folder. */
static part part_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    part const own = said_by(slash ? slash + 1 : path, strlen(slash ? slash + 1 : path));
    if (own != NOT_SAID || !slash)
        return own;
    const char *start = slash;
    while (start > path && start[-1] != '/')
        start--;
    return said_by(start, (size_t)(slash - start));
}

/* ------------------------------------------------------------------ candidates */

typedef struct listing {
    qat_dataset *dataset;
    const char *path;
    qat_named *is_shard;
    qat_names all;
    qat_error *err;
} listing;

static qat_status add(listing *l, const char *path)
{
    return qat_names_add(&l->dataset->arena, &l->all, path) ? QAT_OK
                                                            : qat_out_of_memory(l->err, l->path);
}

static qat_status add_folder(listing *l, const char *folder)
{
    qat_names here;
    qat_status st = qat_folder_list(&l->dataset->arena, folder, l->is_shard, &here, NULL, l->err);
    for (int i = 0; !st && i < here.count; i++) {
        const char *path = qat_dataset_join(&l->dataset->arena, folder, here.at[i]);
        st = path ? add(l, path) : qat_out_of_memory(l->err, folder);
    }
    return st;
}

/** The folder's own shards, and those of the folders of splits in it. */
static qat_status add_folders(listing *l)
{
    qat_status st = add_folder(l, l->path);
    for (size_t i = 0; !st && i < sizeof words / sizeof *words; i++) {
        const char *below = qat_dataset_join(&l->dataset->arena, l->path, words[i].word);
        if (!below)
            return qat_out_of_memory(l->err, l->path);
        st = qat_files_is_folder(below) ? add_folder(l, below) : QAT_OK;
    }
    return st;
}

static bool is_index(const char *path)
{
    size_t const n = strlen(path);
    return n > 4 && strcmp(path + n - 4, ".idx") == 0;
}

static qat_status add_matches(listing *l)
{
    glob_t found;
    int const failed = glob(l->path, 0, NULL, &found);
    if (failed == GLOB_NOSPACE)
        return qat_out_of_memory(l->err, l->path);
    if (failed)
        return qat_fail(l->err, QAT_ERR_IO, "%s: no file has such a name", l->path);
    qat_status st = QAT_OK;
    for (size_t i = 0; !st && i < found.gl_pathc; i++)
        if (!is_index(found.gl_pathv[i]))
            st = add(l, found.gl_pathv[i]);
    globfree(&found);
    return st;
}

static qat_status add_all(listing *l)
{
    struct stat there;
    if (strpbrk(l->path, "*?[") && stat(l->path, &there))
        return add_matches(l);
    if (qat_files_is_folder(l->path))
        return add_folders(l);
    if (stat(l->path, &there))
        return qat_fail(l->err, QAT_ERR_IO, "%s: no such file or folder", l->path);
    return add(l, l->path);
}

/* ------------------------------------------------------------------ the split's own */

static void keep_part(qat_names *shards, part wanted)
{
    int n = 0;
    for (int i = 0; i < shards->count; i++)
        if (part_of(shards->at[i]) == wanted)
            shards->at[n++] = shards->at[i];
    shards->count = n;
}

static qat_status choose(const listing *l, const qat_dataset_options *options, qat_split split,
                         qat_names *shards)
{
    int counts[PARTS] = {0};
    const char *of[PARTS] = {NULL};
    for (int i = 0; i < shards->count; i++) {
        part const p = part_of(shards->at[i]);
        counts[p]++;
        of[p] = shards->at[i];
    }
    part const tests = counts[VALIDATION] ? VALIDATION : TEST;
    part const wanted = split == QAT_SPLIT_TRAIN ? TRAIN : tests;
    if (options->split > 0 && counts[tests])
        return qat_fail(l->err, QAT_ERR_ARGUMENT,
                        "%s is there already: data.split would make another test split", of[tests]);
    if (options->split > 0)
        return QAT_OK;
    if (!counts[wanted])
        return qat_fail(l->err, QAT_ERR_FORMAT,
                        "%s: %d shards, but none has the word %s in its name; data.split = 0.8 "
                        "trains on 80 %% of the samples and tests on the others",
                        l->path, shards->count, split == QAT_SPLIT_TRAIN ? "train" : "val or test");
    keep_part(shards, wanted);
    return QAT_OK;
}

qat_status qat_shards_check_whole(const char *folder, qat_error *err)
{
    char path[4096];
    qat_file_path((qat_file_name){.folder = folder, .name = QAT_PACKING}, path, sizeof path);
    if (access(path, F_OK) != 0)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_STATE,
                    "%s: packing began but did not end here; pack the data again (or remove the "
                    "file " QAT_PACKING " to use the shards that there are)",
                    folder);
}

/** The same of the folder of each shard. */
static qat_status check_folders(qat_dataset *dataset, const qat_names *shards, qat_error *err)
{
    qat_status st = QAT_OK;
    const char *last = "";
    for (int i = 0; !st && i < shards->count; i++) {
        const char *folder = qat_files_folder_of(&dataset->arena, shards->at[i]);
        if (!folder)
            return qat_out_of_memory(err, shards->at[i]);
        st = strcmp(folder, last) ? qat_shards_check_whole(folder, err) : QAT_OK;
        last = folder;
    }
    return st;
}

qat_status qat_shards_list(qat_dataset *dataset, const qat_dataset_options *options,
                           qat_split split, qat_named *is_shard, const char *endings,
                           qat_names *shards, const char **folder, qat_error *err)
{
    listing l = {.dataset = dataset, .path = options->path, .is_shard = is_shard, .err = err};
    *folder = qat_files_is_folder(options->path)
                  ? options->path
                  : qat_files_folder_of(&dataset->arena, options->path);
    if (!*folder)
        return qat_out_of_memory(err, options->path);
    qat_status st = qat_shards_check_whole(*folder, err); /* also if there is no shard yet */
    if (!st)
        st = add_all(&l);
    if (!st && !l.all.count)
        st = qat_fail(err, QAT_ERR_FORMAT, "%s: no shard (%s)", options->path, endings);
    if (!st) {
        qsort(l.all.at, (size_t)l.all.count, sizeof *l.all.at, qat_names_order);
        st = choose(&l, options, split, &l.all);
    }
    if (!st)
        st = check_folders(dataset, &l.all, err);
    *shards = l.all;
    return st;
}
