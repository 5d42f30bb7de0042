#include "plugin/plugin_names.h"

#include "base/bytes.h"
#include "recipe/recipe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIGEST = 32, DIGEST_TEXT = 2 * DIGEST + 1 };

/** A plugin that a checkpoint names. */
typedef struct wanted {
    const char *name; /* not terminated */
    int length;
    const uint8_t *sha256; /* NULL: not known */
    const char *path;      /* of an old checkpoint, not terminated; NULL: none */
    int path_length;
} wanted;

static const char *digest_text(const uint8_t sha256[DIGEST], char text[DIGEST_TEXT])
{
    for (size_t i = 0; i < DIGEST; i++)
        snprintf(text + 2 * i, 3, "%02x", sha256[i]);
    return text;
}

/* ------------------------------------------------------------------ which are given */

static bool same_name(const wanted *w, const qat_plugin_file *file)
{
    return strlen(file->name) == (size_t)w->length &&
           !memcmp(file->name, w->name, strlen(file->name));
}

/** The file with this content, else the one with this name; NULL: neither. */
static const qat_plugin_file *find(const wanted *w, const qat_plugin_file *files, int n)
{
    for (int i = 0; w->sha256 && i < n; i++)
        if (!memcmp(files[i].sha256, w->sha256, DIGEST))
            return &files[i];
    for (int i = 0; i < n; i++)
        if (same_name(w, &files[i]))
            return &files[i];
    return NULL;
}

/** Name the first of `count` plugins that are not there. */
static qat_status missing(const char *checkpoint, const wanted *w, int count, qat_error *err)
{
    char digest[DIGEST_TEXT], known[160] = "", more[32] = "";
    if (w->sha256)
        snprintf(known, sizeof known, " (SHA-256 %s)", digest_text(w->sha256, digest));
    else if (w->path)
        snprintf(known, sizeof known, " (trained with %.*s)",
                 w->path_length < 120 ? w->path_length : 120, w->path);
    if (count > 1)
        snprintf(more, sizeof more, " and %d more", count - 1);
    int const length = w->length < 64 ? w->length : 64;
    return qat_fail(
        err, QAT_ERR_STATE,
        "%.120s needs the plugin %.*s%s%s. A checkpoint loads no code by itself: if you "
        "trust that file, give it with --plugin %.*s",
        checkpoint, length, w->name, known, more, length, w->name);
}

static void note_other(qat_writer *warning, const char *checkpoint, const wanted *w,
                       const qat_plugin_file *file)
{
    char then[DIGEST_TEXT], now[DIGEST_TEXT];
    if (!w->sha256 || !memcmp(w->sha256, file->sha256, DIGEST))
        return;
    qat_write_text(warning,
                   "%s%s was trained with another %s (SHA-256 %s; this one has %s): it may compute "
                   "other numbers",
                   warning->count ? "; " : "", checkpoint, file->name, digest_text(w->sha256, then),
                   digest_text(file->sha256, now));
}

/* ------------------------------------------------------------------ all of a checkpoint */

/** The next item of an old checkpoint's plugin.path, which is a comma list of paths. */
static bool next_path(const char **list, wanted *w)
{
    const char *path = *list + strspn(*list, " \t,");
    size_t n = strcspn(path, ",");
    *list = path + n;
    while (n && (path[n - 1] == ' ' || path[n - 1] == '\t'))
        n--;
    size_t name = n;
    while (name && path[name - 1] != '/')
        name--;
    *w = (wanted){path + name, (int)(n - name), NULL, path, (int)n};
    return n > 0;
}

/** The i-th plugin that the checkpoint names; *list begins as its recipe's plugin.path. */
static bool next_wanted(const qat_checkpoint *c, int i, const char **list, wanted *w)
{
    int n;
    const qat_plugin_file *files = qat_checkpoint_plugins(c, &n);
    if (i >= n)
        return next_path(list, w);
    *w = (wanted){files[i].name, (int)strlen(files[i].name), files[i].sha256, NULL, 0};
    return true;
}

qat_status qat_check_plugins(const qat_checkpoint *checkpoint, const qat_recipe *recipe,
                             const char *name, const qat_plugins *given, char **warning,
                             qat_error *err)
{
    int n = 0, n_missing = 0;
    wanted w, first = {0};
    qat_writer text = {0};
    const char *list = recipe->plugin.path;
    const qat_plugin_file *files = given ? qat_plugins_files(given, &n) : NULL;
    for (int i = 0; next_wanted(checkpoint, i, &list, &w); i++) {
        const qat_plugin_file *file = find(&w, files, n);
        if (file)
            note_other(&text, name, &w, file);
        else if (!n_missing++)
            first = w;
    }
    if (text.count)
        qat_write_u8(&text, 0);
    *warning = NULL;
    if (!n_missing && !text.failed) {
        *warning = (char *)text.bytes;
        return QAT_OK;
    }
    qat_writer_free(&text);
    return n_missing ? missing(name, &first, n_missing, err) : qat_out_of_memory(err, name);
}
