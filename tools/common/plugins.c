#include "tools/common/plugins.h"

#include "tools/common/limits.h"

#include <stdio.h>
#include <string.h>

qat_status tool_restore(qat_restored **restored, const char *path, const tool_list *plugins,
                        qat_error *err)
{
    qat_status st = qat_restore(restored, path, plugins->items, plugins->count, err);
    if (st)
        return st;
    if (qat_restored_warning(*restored))
        tool_log.line(tool_log.context, qat_restored_warning(*restored));
    st = tool_limit_restored(*restored, err);
    if (st) {
        qat_restored_free(*restored);
        *restored = NULL;
    }
    return st;
}

qat_status tool_next_plugin(const char **list, char *path, size_t max, qat_error *err)
{
    char raw[512];
    const char *p = *list + strspn(*list, " \t,");
    size_t n = strcspn(p, ",");
    *list = p + n;
    while (n && (p[n - 1] == ' ' || p[n - 1] == '\t'))
        n--;
    *path = 0;
    if (!n)
        return QAT_OK;
    if (n >= sizeof raw)
        return qat_fail(err, QAT_ERR_ARGUMENT, "plugin.path: a path of %zu characters; at most %zu",
                        n, sizeof raw - 1);
    memcpy(raw, p, n);
    raw[n] = 0;
    return qat_expand_path(raw, path, max, err);
}

static qat_status refuse(const qat_recipe *recipe, qat_error *err)
{
    char path[512], all[QAT_RECIPE_VALUE_MAX];
    const char *list = qat_recipe_get(recipe, "plugin.path", all);
    qat_status const st = tool_next_plugin(&list, path, sizeof path, err);
    if (st || !*path)
        return st;
    const char *slash = strrchr(path, '/');
    return qat_fail(
        err, QAT_ERR_STATE,
        "%.120s: plugin.path names %.120s. Only training loads the plugins of a recipe: "
        "if you trust the file, give it with --plugin %.120s",
        qat_recipe_source(recipe), slash ? slash + 1 : path, path);
}

qat_status tool_open_registry(qat_registry **registry, qat_plugins **plugins,
                              const qat_recipe *recipe, const tool_list *given, qat_error *err)
{
    qat_status const st = recipe && !given->count ? refuse(recipe, err) : QAT_OK;
    return st ? st : qat_open_registry_files(registry, plugins, given->items, given->count, err);
}
