/** Opens the data that qat-data is about. */
#include "tools/common/limits.h"
#include "tools/data/data.h"

#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_MAX = 8192 };

/** Is it KIND:PATH, or KIND? A file or folder that has the name of a kind is a path. */
static bool names_kind(const char *text)
{
    size_t const n = strcspn(text, ":");
    for (int i = 0; i < qat_dataset_kinds(); i++) {
        const char *kind = qat_dataset_kind_name(i);
        if (strlen(kind) == n && strncmp(kind, text, n) == 0)
            return text[n] || !qat_dataset_kind_needs_path(i) || access(text, F_OK) != 0;
    }
    return false;
}

static bool matches(const char *path, const char *pattern)
{
    char text[TEXT_MAX];
    glob_t g = {0};
    size_t n = 0;
    for (; *path && n < sizeof text - 2; path++) { /* the path stands for itself */
        if (strchr("\\*?[", *path))
            text[n++] = '\\';
        text[n++] = *path;
    }
    snprintf(text + n, sizeof text - n, "%s", pattern);
    bool const found = glob(text, GLOB_NOSORT, NULL, &g) == 0;
    globfree(&g);
    return found;
}

/** The kind of data at a path: by the folders of classes, or else by the names of shards. */
static const char *kind_at(const char *path)
{
    static const struct {
        const char *pattern, *kind;
    } shards[] = {{"/*.tar", "tar"},
                  {"/train/*.tar", "tar"},
                  {"/*.tfrecord*", "tfrecord"},
                  {"/train/*.tfrecord*", "tfrecord"},
                  {"/*-of-[0-9]*", "tfrecord"},
                  {"/train/*-of-[0-9]*", "tfrecord"}};
    size_t const n = strlen(path);
    if (n > 4 && strcmp(path + n - 4, ".tar") == 0)
        return "tar";
    if (matches(path, "/train/*/"))
        return "folder";
    for (size_t i = 0; i < sizeof shards / sizeof *shards; i++)
        if (matches(path, shards[i].pattern))
            return shards[i].kind;
    return "folder";
}

static qat_status make_recipe(data_source *s, const char *text, const tool_list *sets,
                              qat_error *err)
{
    char kind[32], recipe[TEXT_MAX];
    bool const named = names_kind(text);
    size_t const n = strcspn(text, ":"), kept = n < sizeof kind ? n : sizeof kind - 1;
    const char *path = !named ? text : text[n] ? text + n + 1 : "";
    memcpy(kind, text, kept);
    kind[kept] = '\0';
    const char *guess = named ? kind : kind_at(text);
    snprintf(recipe, sizeof recipe, "[data]\nkind = %s\n", guess);
    if (!named)
        fprintf(stderr, "qat-data: %s is taken as kind %s\n", tool_shown(text), guess);
    qat_status st = qat_recipe_parse(&s->recipe, recipe, "qat-data", sets->items, sets->count, err);
    if (!st && *path)
        st = qat_recipe_set(s->recipe, "data.path", path, err);
    return st ? st : tool_limit_recipe(s->recipe, err);
}

qat_status data_open(data_source *s, const char *text, const char *only, const tool_list *sets,
                     qat_error *err)
{
    *s = (data_source){0};
    qat_status st = make_recipe(s, text, sets, err);
    if (!st && (!only || !strcmp(only, "train")))
        st = qat_recipe_open_data(&s->splits[0], s->recipe, NULL, QAT_SPLIT_TRAIN, err);
    if (!st && (!only || !strcmp(only, "test")))
        st = qat_recipe_open_data(&s->splits[1], s->recipe, NULL, QAT_SPLIT_TEST, err);
    return st;
}

void data_close(data_source *s)
{
    for (int i = 0; i < 2; i++)
        qat_dataset_close(s->splits[i]);
    qat_recipe_free(s->recipe);
    *s = (data_source){0};
}
