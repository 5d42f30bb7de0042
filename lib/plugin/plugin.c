/** Loads custom layers and tasks from shared objects (plugin.h). */
#define _GNU_SOURCE /* dladdr */
#include "qat/train.h"

#include "base/checksums/sha256.h"
#include "base/files/file.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PLUGIN_BYTES_MAX = 1 << 30 };

struct qat_plugins {
    void **handles;
    qat_plugin_file *files; /* one for each handle */
    int n_handles;
    const qi_kernel **kernels;
    qi_kernel_list list;
};

qat_status qat_plugins_create(qat_plugins **plugins, qat_error *err)
{
    *plugins = calloc(1, sizeof **plugins);
    return *plugins ? QAT_OK : qat_out_of_memory(err, "plugins");
}

void qat_plugins_free(qat_plugins *plugins)
{
    if (!plugins)
        return;
    for (int i = plugins->n_handles - 1; i >= 0; i--)
        dlclose(plugins->handles[i]);
    free(plugins->handles);
    free(plugins->files);
    free(plugins->kernels);
    free(plugins);
}

/**
 * dlopen searches the system's folders for a name without '/', so a file in the current folder is
 * tried first.
 */
static void *open_object(const char *path)
{
    char here[1024];
    struct stat st;
    if (!strchr(path, '/') && stat(path, &st) == 0 &&
        (size_t)snprintf(here, sizeof here, "./%s", path) < sizeof here)
        path = here;
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/** Make room for one handle and n_kernels more kernels, before anything is opened. */
static qat_status reserve(qat_plugins *p, int n_kernels, const char *path, qat_error *err)
{
    void **handles = realloc(p->handles, ((size_t)p->n_handles + 1) * sizeof *handles);
    if (handles)
        p->handles = handles;
    qat_plugin_file *files = realloc(p->files, ((size_t)p->n_handles + 1) * sizeof *files);
    if (files)
        p->files = files;
    const qi_kernel **kernels =
        realloc(p->kernels, (p->list.count + (size_t)n_kernels + 1) * sizeof *kernels);
    if (kernels) {
        p->kernels = kernels;
        p->list.kernels = kernels;
    }
    return handles && files && kernels ? QAT_OK : qat_out_of_memory(err, path);
}

/** Name and digest of the file that was opened; the system may have found it in its folders. */
static qat_status identify(qat_plugin_file *file, const qat_plugin *entry, const char *path,
                           qat_error *err)
{
    Dl_info found;
    uint8_t *bytes = NULL;
    size_t count = 0;
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (!*name || strlen(name) >= sizeof file->name)
        return qat_fail(err, QAT_ERR_ARGUMENT, "plugin %s: its name is too long", path);
    strcpy(file->name, name);
    if (!dladdr(entry, &found) || !found.dli_fname)
        return qat_fail(err, QAT_ERR_IO, "plugin %s: its file is not known", path);
    qat_status const st = qat_file_read(found.dli_fname, PLUGIN_BYTES_MAX, &bytes, &count, err);
    if (!st)
        qat_sha256(bytes, count, file->sha256);
    free(bytes);
    return st;
}

/** Figures name their task, and outlive the plugins. */
static void stay_in_memory(const qat_plugin *entry)
{
    Dl_info found;
    void *handle = dladdr(entry, &found) && found.dli_fname
                       ? dlopen(found.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE)
                       : NULL;
    if (handle)
        dlclose(handle);
}

/** Refuse a plugin that was compiled with other headers. */
static qat_status check_version(const qat_plugin_version *version, const char *path, qat_error *err)
{
    static const qat_plugin_version ours = QAT_PLUGIN_VERSION;
#define NAME(name) #name,
    static const char *const names[] = {QAT_PLUGIN_STRUCTS(NAME)};
#undef NAME
    if (version->number != ours.number) /* the sizes may mean something else then */
        return qat_fail(err, QAT_ERR_FORMAT,
                        "plugin %s: it was compiled for plugin version %d, this library takes %d: "
                        "compile it again with this library's headers",
                        path, version->number, ours.number);
    for (int i = 0; i < QAT_PLUGIN_SIZES; i++)
        if (version->sizes[i] != ours.sizes[i])
            return qat_fail(err, QAT_ERR_FORMAT,
                            "plugin %s: it was compiled with another %s (%" PRIu32
                            " bytes, in this "
                            "library %" PRIu32 "): compile it again with this library's headers",
                            path, names[i], version->sizes[i], ours.sizes[i]);
    return QAT_OK;
}

static qat_status check_entry(const qat_plugin *entry, const char *path, qat_error *err)
{
    if (!entry)
        return qat_fail(err, QAT_ERR_FORMAT, "plugin %s: has no symbol qat_plugin_entry", path);
    qat_status const st = check_version(&entry->version, path, err);
    if (st)
        return st;
    if (entry->n_ops < 0 || entry->n_kernels < 0 || entry->n_tasks < 0 ||
        (entry->n_ops && !entry->ops) || (entry->n_kernels && !entry->kernels) ||
        (entry->n_tasks && !entry->tasks))
        return qat_fail(err, QAT_ERR_FORMAT,
                        "plugin %s: %d ops, %d kernels and %d tasks, or lists are missing", path,
                        entry->n_ops, entry->n_kernels, entry->n_tasks);
    return QAT_OK;
}

static qat_status add_ops(const qat_plugin *entry, const char *path, qat_registry *registry,
                          qat_error *err)
{
    for (int i = 0; registry && i < entry->n_ops; i++) {
        qat_error inner;
        qat_status const st = qat_registry_add(registry, entry->ops[i], &inner);
        if (st)
            return qat_fail(err, st, "plugin %s: %s", path, inner.message);
    }
    for (int i = 0; registry && i < entry->n_tasks; i++) {
        qat_error inner;
        qat_status const st = qat_registry_add_task(registry, entry->tasks[i], &inner);
        if (st)
            return qat_fail(err, st, "plugin %s: %s", path, inner.message);
    }
    return QAT_OK;
}

qat_status qat_plugins_open(qat_plugins *plugins, const char *path, qat_registry *registry,
                            qat_error *err)
{
    void *handle = open_object(path);
    if (!handle) {
        const char *why = dlerror();
        return qat_fail(err, QAT_ERR_IO, "plugin %s: %s", path, why ? why : "cannot be opened");
    }
    const qat_plugin *entry = dlsym(handle, "qat_plugin_entry");
    qat_status st = check_entry(entry, path, err);
    if (!st)
        st = reserve(plugins, entry->n_kernels, path, err);
    if (!st)
        st = identify(&plugins->files[plugins->n_handles], entry, path, err);
    if (st) {
        dlclose(handle);
        return st;
    }
    plugins->handles[plugins->n_handles++] = handle; /* from here on, ops may be in the registry */
    if (entry->n_tasks)
        stay_in_memory(entry);
    for (int i = 0; i < entry->n_kernels; i++)
        plugins->kernels[plugins->list.count++] = entry->kernels[i];
    return add_ops(entry, path, registry, err);
}

const qi_kernel_list *qat_plugins_kernels(const qat_plugins *plugins)
{
    return &plugins->list;
}

const qat_plugin_file *qat_plugins_files(const qat_plugins *plugins, int *count)
{
    *count = plugins->n_handles;
    return plugins->files;
}

/** Open each of "a.so, b.so". */
static qat_status open_list(qat_plugins *plugins, const char *paths, qat_registry *registry,
                            qat_error *err)
{
    for (const char *p = paths; *p;) {
        char raw[512], path[1024];
        p += strspn(p, " \t,");
        size_t n = strcspn(p, ",");
        size_t const whole = n;
        while (n && (p[n - 1] == ' ' || p[n - 1] == '\t'))
            n--;
        if (!n)
            break;
        if (n >= sizeof raw)
            return qat_fail(err, QAT_ERR_ARGUMENT, "plugin: the path has %zu characters", n);
        memcpy(raw, p, n);
        raw[n] = 0;
        qat_status st = qat_expand_path(raw, path, sizeof path, err);
        if (!st)
            st = qat_plugins_open(plugins, path, registry, err);
        if (st)
            return st;
        p += whole;
    }
    return QAT_OK;
}

static qat_status open_files(qat_plugins *plugins, const char *const *files, int n,
                             qat_registry *registry, qat_error *err)
{
    qat_status st = QAT_OK;
    for (int i = 0; i < n && !st; i++)
        st = qat_plugins_open(plugins, files[i], registry, err);
    return st;
}

static qat_status create(qat_registry **registry, qat_plugins **plugins, qat_error *err)
{
    *plugins = NULL;
    qat_status const st = qat_registry_create(registry, err);
    return st ? st : qat_plugins_create(plugins, err);
}

/** Free both after a failure. */
static qat_status created(qat_registry **registry, qat_plugins **plugins, qat_status st)
{
    if (!st)
        return st;
    qat_registry_free(*registry);
    qat_plugins_free(*plugins);
    *registry = NULL;
    *plugins = NULL;
    return st;
}

qat_status qat_open_registry(qat_registry **registry, qat_plugins **plugins, const char *paths,
                             qat_error *err)
{
    qat_status st = create(registry, plugins, err);
    if (!st && paths)
        st = open_list(*plugins, paths, *registry, err);
    return created(registry, plugins, st);
}

qat_status qat_open_registry_files(qat_registry **registry, qat_plugins **plugins,
                                   const char *const *files, int n, qat_error *err)
{
    qat_status st = create(registry, plugins, err);
    if (!st)
        st = open_files(*plugins, files, n, *registry, err);
    return created(registry, plugins, st);
}
