/**
 * Models on a machine with an operating system: the file is mapped (or copied), memory and arena
 * are allocated, and errors are sentences. The core (the folder above) knows nothing of this.
 */
#include "infer/host/loops/crc32.h"
#include "infer/host/loops/fast.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/** How qi_host.qm is owned. */
enum { OWNED_BY_MALLOC = 0, OWNED_BY_MMAP = 1 };

/* ------------------------------------------------------------------ messages */

void qi_error_text(const qi_error *err, const char *name, char message[QI_HOST_MESSAGE_MAX])
{
    char where[32] = "";
    if (err->index >= 0)
        snprintf(where, sizeof where, " (index %" PRId32 ")", err->index);
    if (err->status == QI_ERR_UNKNOWN_OP) {
        snprintf(message, QI_HOST_MESSAGE_MAX,
                 "%s: unknown op '%s'%s: it is neither built in nor in a given plugin", name,
                 err->what, where);
        return;
    }
    snprintf(message, QI_HOST_MESSAGE_MAX, "%s: %s: %s%s: %" PRId64 ", limit or expected %" PRId64,
             name, qi_status_name(err->status), err->what, where, err->value, err->limit);
}

/** Write a sentence as printf does, if the caller wants one, and return status. */
static qi_status say(char *message, qi_status status, const char *name, const char *what,
                     const char *why)
{
    if (message)
        snprintf(message, QI_HOST_MESSAGE_MAX, "%s: %s: %s", name, what, why);
    return status;
}

static qi_status say_error(char *message, const qi_error *err, const char *name)
{
    if (message)
        qi_error_text(err, name, message);
    return err->status;
}

/* ------------------------------------------------------------------ limits */

static uint64_t memory_limit(const qi_host_options *options)
{
    return options->limits.memory ? options->limits.memory : QI_DEFAULT_MEMORY;
}

/** Refuse a model that needs more memory; both figures are rounded up. */
static qi_status refuse_memory(char *message, const char *name, uint64_t bytes, uint64_t limit)
{
    uint64_t const mib = UINT64_C(1) << 20;
    if (message)
        snprintf(message, QI_HOST_MESSAGE_MAX,
                 "%s: it needs %" PRIu64 " MiB of memory to run, but %" PRIu64
                 " MiB are allowed (--max-memory, or limits.memory of the library)",
                 name, (bytes - 1) / mib + 1, (limit - 1) / mib + 1);
    return QI_ERR_LIMIT;
}

static qi_status check_macs(char *message, const char *name, const qi_model *model,
                            const qi_host_options *options)
{
    uint64_t const limit = options->limits.macs ? options->limits.macs : QI_DEFAULT_MACS;
    uint64_t const macs = (uint64_t)qi_model_macs(model);
    if (macs <= limit)
        return QI_OK;
    if (message)
        snprintf(message, QI_HOST_MESSAGE_MAX,
                 "%s: one run takes %" PRIu64 " multiply-adds, but %" PRIu64
                 " are allowed (--max-macs, or limits.macs of the library)",
                 name, macs, limit);
    return QI_ERR_LIMIT;
}

/* ------------------------------------------------------------------ memory */

/** QI_FAST_ALIGN-aligned memory of at least one byte, or NULL; free() it. */
static void *allocate(size_t bytes)
{
    size_t const rounded = (bytes + QI_FAST_ALIGN - 1) / QI_FAST_ALIGN * QI_FAST_ALIGN;
    return aligned_alloc(QI_FAST_ALIGN, rounded ? rounded : QI_FAST_ALIGN);
}

/**
 * The instruction set with that name, or the best if name is NULL. Returns NULL if there is none,
 * or if it does not run here.
 */
static const qi_isa *find_isa(const char *name)
{
    const qi_isa *isa;
    for (int i = 0; (isa = qi_isa_entry(i)); i++)
        if (name ? strcmp(isa->name, name) == 0 : isa->runs_here())
            return isa->runs_here() ? isa : NULL;
    return NULL;
}

/**
 * The error for an instruction set that is unknown or does not run here. It lists those that do.
 */
static qi_status refuse_isa(char *message, const char *name, const char *isa)
{
    char here[QI_HOST_MESSAGE_MAX / 2] = "";
    const qi_isa *set;
    int known = 0;
    for (int i = 0; (set = qi_isa_entry(i)); i++) {
        size_t const end = strlen(here);
        known |= strcmp(set->name, isa) == 0;
        if (set->runs_here())
            snprintf(here + end, sizeof here - end, "%s%s", end ? ", " : "", set->name);
    }
    if (message)
        snprintf(message, QI_HOST_MESSAGE_MAX,
                 "%s: instruction set %.64s: %s; this processor runs: %s", name, isa,
                 known ? "this processor does not have it" : "this build does not know it", here);
    return QI_ERR_PARAM;
}

/** Make the steps for these options, and their arena. used: bytes of the model's descriptors. */
static qi_status prepare(qi_host *host, const char *name, const qi_host_options *options,
                         uint64_t used, char *message)
{
    qi_error err;
    const qi_isa *isa = find_isa(options->isa);
    host->threads = options->threads ? options->threads : 1;
    if (!isa)
        return refuse_isa(message, name, options->isa);
    if (host->threads < 1 || host->threads > QI_HOST_MAX_THREADS)
        return say(message, QI_ERR_PARAM, name, "threads", "1..256 are allowed");
    host->isa = isa->name;
    uint64_t const limit = memory_limit(options);
    qi_status const st =
        qi_steps_make(&host->steps, host->model, isa, host->threads, limit - used, &err);
    if (st == QI_ERR_LIMIT)
        return refuse_memory(message, name, (uint64_t)err.value + used, limit);
    if (st)
        return say_error(message, &err, name);
    host->arena = host->steps->arena;
    host->arena_bytes = host->steps->arena_bytes;
    return QI_OK;
}

/** Make the model and the arena for host->qm. */
static qi_status open_bytes(qi_host *host, const char *name, const qi_host_options *options,
                            char *message)
{
    size_t need;
    qi_error err;
    qi_status st = qm_check_file(host->qm, host->qm_bytes, qi_crc32, &err);
    if (!st)
        st = qi_checked_model_bytes(host->qm, &need, &err);
    if (st)
        return say_error(message, &err, name);
    if (need > memory_limit(options))
        return refuse_memory(message, name, need, memory_limit(options));
    host->memory = allocate(need);
    if (!host->memory)
        return say(message, QI_ERR_NOMEM, name, "out of memory", "no room for the model");
    qi_kernel_set const kernels = {&qi_built_in_kernels, options->custom};
    st = qi_checked_model_read(&host->model, host->qm, &kernels, host->memory, need, &err);
    if (!st)
        st = qi_plan_arena(host->model, &err);
    if (st)
        return say_error(message, &err, name);
    host->core_arena_bytes = qi_arena_bytes(host->model);
    st = check_macs(message, name, host->model, options);
    return st ? st : prepare(host, name, options, need, message);
}

/** Close on failure, so that host is zeroed. */
static qi_status finish(qi_host *host, const char *name, const qi_host_options *options,
                        char *message)
{
    static const qi_host_options defaults;
    qi_status const st = open_bytes(host, name, options ? options : &defaults, message);
    if (st)
        qi_host_close(host);
    else if (message)
        message[0] = 0;
    return st;
}

/* ------------------------------------------------------------------ opening */

/** Map an open file. */
static qi_status map(qi_host *host, int fd, const char *path, char *message)
{
    struct stat info;
    if (fstat(fd, &info))
        return say(message, QI_ERR_IO, path, "cannot examine it", strerror(errno));
    if (!S_ISREG(info.st_mode))
        return say(message, QI_ERR_IO, path, "cannot map it", "not a regular file");
    if (info.st_size == 0)
        return say(message, QI_ERR_TRUNCATED, path, "truncated file", "it is empty");
    if (info.st_size > INT32_MAX)
        return say(message, QI_ERR_FORMAT, path, "malformed file", "larger than 2147483647 bytes");
    void *bytes = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        return say(message, QI_ERR_IO, path, "cannot map it", strerror(errno));
    *host = (qi_host){.qm = bytes, .qm_bytes = (size_t)info.st_size, .mapped = OWNED_BY_MMAP};
    return QI_OK;
}

qi_status qi_host_open(qi_host *host, const char *path, const qi_host_options *options,
                       char message[QI_HOST_MESSAGE_MAX])
{
    memset(host, 0, sizeof *host);
    int const fd = open(path, O_RDONLY);
    if (fd < 0)
        return say(message, QI_ERR_IO, path, "cannot open it", strerror(errno));
    qi_status const st = map(host, fd, path, message);
    close(fd);
    return st ? st : finish(host, path, options, message);
}

qi_status qi_host_open_bytes(qi_host *host, const void *qm, size_t qm_bytes, const char *name,
                             const qi_host_options *options, char message[QI_HOST_MESSAGE_MAX])
{
    memset(host, 0, sizeof *host);
    void *copy = allocate(qm_bytes);
    if (!copy)
        return say(message, QI_ERR_NOMEM, name, "out of memory", "no room for the file");
    if (qm_bytes)
        memcpy(copy, qm, qm_bytes);
    *host = (qi_host){.qm = copy, .qm_bytes = qm_bytes, .mapped = OWNED_BY_MALLOC};
    return finish(host, name, options, message);
}

void qi_host_close(qi_host *host)
{
    qi_steps_free(host->steps);
    free(host->memory);
    void *qm = (void *)(uintptr_t)host->qm;
    if (qm && host->mapped == OWNED_BY_MMAP)
        munmap(qm, host->qm_bytes);
    else
        free(qm);
    memset(host, 0, sizeof *host);
}
