/**
 * Models on a machine with an operating system: the file is mapped (or copied), memory and arena
 * are allocated, and errors are sentences. The core (the folder above) knows nothing of this.
 */
#include "infer/host/host.h"
#include "infer/host/loops/crc32.h"
#include "infer/host/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/** How qi_host.qm is owned. */
enum { OWNED_BY_MALLOC = 0, OWNED_BY_MMAP = 1 };

/* ------------------------------------------------------------------ messages */

/** As qat_fail, which is libqat's. */
__attribute__((format(printf, 3, 4))) static qat_status fail(qat_error *err, qat_status status,
                                                             const char *format, ...)
{
    if (err) {
        va_list args;
        va_start(args, format);
        vsnprintf(err->message, sizeof err->message, format, args);
        va_end(args);
        err->status = status;
    }
    return status;
}

static qat_status no_memory(qat_error *err, const char *name)
{
    return fail(err, QAT_ERR_NOMEM, "%s: out of memory", name);
}

static qat_status kind_of(qi_status status)
{
    switch (status) {
    case QI_ERR_NOMEM:
        return QAT_ERR_NOMEM;
    case QI_ERR_UNKNOWN_OP:
        return QAT_ERR_UNSUPPORTED;
    case QI_ERR_MEMORY: /* the arena or scratch of a model */
    case QI_ERR_LIMIT:
        return QAT_ERR_LIMIT;
    case QI_ERR_KAT:
        return QAT_ERR_MISMATCH;
    default:
        return QAT_ERR_FORMAT;
    }
}

/** A file whose bytes are not those of its header. Another status: QAT_OK. */
static qat_status tell_file(const qi_error *of, const char *name, qat_error *err)
{
    const char *status = qi_status_name(of->status);
    int const is_short = of->status == QI_ERR_TRUNCATED;
    if (is_short && of->value < QM_HEADER_BYTES)
        return fail(err, QAT_ERR_FORMAT,
                    "%s: %s: it has %" PRId64 " bytes, but the header of a .qm alone has %d", name,
                    status, of->value, QM_HEADER_BYTES);
    if (is_short)
        return fail(err, QAT_ERR_FORMAT,
                    "%s: %s: it has %" PRId64 " bytes, but its header says %" PRId64, name, status,
                    of->value, of->limit);
    if (of->status == QI_ERR_CRC)
        return fail(err, QAT_ERR_FORMAT,
                    "%s: %s: the CRC-32 of its content is %08" PRIx64
                    ", but its header says %08" PRIx64 ": it was changed or damaged",
                    name, status, (uint64_t)of->value, (uint64_t)of->limit);
    return QAT_OK;
}

qat_status qi_error_tell(const qi_error *of, const char *name, qat_error *err)
{
    qat_status const status = kind_of(of->status);
    char where[32] = "";
    if (of->index >= 0)
        snprintf(where, sizeof where, " (index %" PRId32 ")", of->index);
    if (status == QAT_ERR_NOMEM)
        return no_memory(err, name);
    if (of->status == QI_ERR_UNKNOWN_OP)
        return fail(err, status,
                    "%s: unknown op '%s'%s: it is neither built in nor in a given plugin", name,
                    of->what, where);
    if (tell_file(of, name, err))
        return QAT_ERR_FORMAT;
    return fail(err, status, "%s: %s: %s%s: %" PRId64 ", limit or expected %" PRId64, name,
                qi_status_name(of->status), of->what, where, of->value, of->limit);
}

/* ------------------------------------------------------------------ limits */

static uint64_t memory_limit(const qi_host_options *options)
{
    return options->limits.memory ? options->limits.memory : QI_DEFAULT_MEMORY;
}

/** Refuse a model that needs more memory; both figures are rounded up. */
static qat_status refuse_memory(qat_error *err, const char *name, uint64_t bytes, uint64_t limit)
{
    uint64_t const mib = UINT64_C(1) << 20;
    return fail(err, QAT_ERR_LIMIT,
                "%s: it needs %" PRIu64 " MiB of memory to run, but %" PRIu64
                " MiB are allowed (--max-memory, or limits.memory of the library)",
                name, (bytes - 1) / mib + 1, (limit - 1) / mib + 1);
}

static qat_status check_macs(qat_error *err, const char *name, const qi_model *model,
                             const qi_host_options *options)
{
    uint64_t const limit = options->limits.macs ? options->limits.macs : QI_DEFAULT_MACS;
    uint64_t const macs = (uint64_t)qi_model_macs(model);
    if (macs <= limit)
        return QAT_OK;
    return fail(err, QAT_ERR_LIMIT,
                "%s: one run takes %" PRIu64 " multiply-adds, but %" PRIu64
                " are allowed (--max-macs, or limits.macs of the library)",
                name, macs, limit);
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
static qat_status refuse_isa(qat_error *err, const char *name, const char *isa)
{
    char here[QAT_ERROR_MESSAGE_MAX / 2] = "";
    const qi_isa *set;
    int known = 0;
    for (int i = 0; (set = qi_isa_entry(i)); i++) {
        size_t const end = strlen(here);
        known |= strcmp(set->name, isa) == 0;
        if (set->runs_here())
            snprintf(here + end, sizeof here - end, "%s%s", end ? ", " : "", set->name);
    }
    return fail(err, QAT_ERR_UNSUPPORTED, "%s: instruction set %.64s: %s; this processor runs: %s",
                name, isa,
                known ? "this processor does not have it" : "this build does not know it", here);
}

/** Make the steps for these options, and their arena. */
static qat_status prepare(qi_host *host, const char *name, const qi_host_options *options,
                          qat_error *err)
{
    qi_error inner;
    const qi_isa *isa = find_isa(options->isa);
    host->threads = options->threads ? options->threads : 1;
    if (!isa)
        return refuse_isa(err, name, options->isa);
    if (host->threads < 1 || host->threads > QI_HOST_MAX_THREADS)
        return fail(err, QAT_ERR_ARGUMENT, "%s: threads = %d: 1..%d are allowed", name,
                    host->threads, QI_HOST_MAX_THREADS);
    host->isa = isa->name;
    uint64_t const limit = memory_limit(options), used = host->sizes.model + host->unpacked;
    qi_status const st =
        qi_steps_make(&host->steps, host->model, isa, host->threads, limit - used, &inner);
    if (st == QI_ERR_LIMIT)
        return refuse_memory(err, name, (uint64_t)inner.value + used, limit);
    if (st)
        return qi_error_tell(&inner, name, err);
    host->arena = host->steps->arena;
    host->sizes.host_arena = host->steps->arena_bytes;
    qi_host_reset(host, NULL);
    return QAT_OK;
}

/** A member that version 0.1 did not have. */
static int keeps_packed(const qi_host_options *options)
{
    size_t const end = offsetof(qi_host_options, keep_packed) + sizeof options->keep_packed;
    return options->struct_size >= end && options->keep_packed;
}

/** Unpack the packed constants, unless the core's kernels shall read them as a device does. */
static qat_status unpack(qi_host *host, const char *name, const qi_host_options *options,
                         qat_error *err)
{
    uint64_t const bytes = qi_constants_bytes(host->model), limit = memory_limit(options);
    if (!bytes || keeps_packed(options))
        return QAT_OK;
    if (bytes + host->sizes.model > limit)
        return refuse_memory(err, name, bytes + host->sizes.model, limit);
    host->constants = bytes <= PTRDIFF_MAX ? allocate((size_t)bytes) : NULL;
    if (!host->constants)
        return no_memory(err, name);
    host->unpacked = (size_t)bytes;
    qi_unpack_constants(host->model, host->constants);
    return QAT_OK;
}

/** Make the model and the arena for host->qm. */
static qat_status make(qi_host *host, const char *name, const qi_host_options *options,
                       qat_error *err)
{
    size_t need;
    qi_error inner;
    qi_status st = qm_check_file(host->qm, host->sizes.file, qi_crc32, &inner);
    if (!st)
        st = qi_checked_model_bytes(host->qm, &need, &inner);
    if (st)
        return qi_error_tell(&inner, name, err);
    if (need > memory_limit(options))
        return refuse_memory(err, name, need, memory_limit(options));
    host->memory = allocate(need);
    if (!host->memory)
        return no_memory(err, name);
    qi_kernel_set const kernels = {&qi_built_in_kernels, options->custom};
    st = qi_checked_model_read(&host->model, host->qm, &kernels, host->memory, need, &inner);
    if (!st)
        st = qi_plan_arena(host->model, &inner);
    if (st)
        return qi_error_tell(&inner, name, err);
    host->sizes.model = need;
    host->sizes.arena = qi_arena_bytes(host->model);
    qat_status fits = check_macs(err, name, host->model, options);
    if (!fits)
        fits = unpack(host, name, options, err);
    return fits ? fits : prepare(host, name, options, err);
}

/* ------------------------------------------------------------------ opening */

/** Map an open file. */
static qat_status map(qi_host *host, int fd, const char *path, qat_error *err)
{
    struct stat info;
    if (fstat(fd, &info))
        return fail(err, QAT_ERR_IO, "%s: cannot examine it: %s", path, strerror(errno));
    if (!S_ISREG(info.st_mode))
        return fail(err, QAT_ERR_IO, "%s: cannot map it: not a regular file", path);
    if (info.st_size == 0)
        return fail(err, QAT_ERR_FORMAT, "%s: truncated file: it is empty", path);
    if (info.st_size > INT32_MAX)
        return fail(err, QAT_ERR_FORMAT, "%s: malformed file: larger than 2147483647 bytes", path);
    void *bytes = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        return fail(err, QAT_ERR_IO, "%s: cannot map it: %s", path, strerror(errno));
    host->qm = bytes;
    host->sizes.file = (size_t)info.st_size;
    host->mapped = OWNED_BY_MMAP;
    return QAT_OK;
}

static qat_status map_path(qi_host *host, const char *path, qat_error *err)
{
    int const fd = open(path, O_RDONLY);
    if (fd < 0)
        return fail(err, QAT_ERR_IO, "%s: cannot open it: %s", path, strerror(errno));
    qat_status const st = map(host, fd, path, err);
    close(fd);
    return st;
}

static qat_status copy(qi_host *host, const void *qm, size_t qm_bytes, const char *name,
                       qat_error *err)
{
    void *bytes = allocate(qm_bytes);
    if (!bytes)
        return no_memory(err, name);
    if (qm_bytes)
        memcpy(bytes, qm, qm_bytes);
    host->qm = bytes;
    host->sizes.file = qm_bytes;
    return QAT_OK;
}

/** Open bytes; of the file `name` if qm is NULL. */
static qat_status open_host(qi_host **host, const void *qm, size_t qm_bytes, const char *name,
                            const qi_host_options *options, qat_error *err)
{
    static const qi_host_options defaults;
    *host = NULL;
    if (options && options->struct_size > sizeof *options)
        return fail(err, QAT_ERR_UNSUPPORTED,
                    "%s: qi_host_options: of a later version of the library", name);
    if (options && keeps_packed(options) && !(options->isa && strcmp(options->isa, "scalar") == 0))
        return fail(err, QAT_ERR_ARGUMENT, "%s: keep_packed needs the instruction set scalar",
                    name);
    qi_host *h = calloc(1, sizeof *h);
    if (!h)
        return no_memory(err, name);
    qat_status st = qm ? copy(h, qm, qm_bytes, name, err) : map_path(h, name, err);
    if (!st)
        st = make(h, name, options ? options : &defaults, err);
    if (st)
        qi_host_close(h);
    else
        *host = h;
    return st;
}

qat_status qi_host_open(qi_host **host, const char *path, const qi_host_options *options,
                        qat_error *err)
{
    return open_host(host, NULL, 0, path, options, err);
}

qat_status qi_host_open_bytes(qi_host **host, const void *qm, size_t qm_bytes, const char *name,
                              const qi_host_options *options, qat_error *err)
{
    return open_host(host, qm ? qm : "", qm_bytes, name, options, err);
}

void qi_host_close(qi_host *host)
{
    if (!host)
        return;
    qi_steps_free(host->steps);
    free(host->memory);
    free(host->constants);
    void *qm = (void *)(uintptr_t)host->qm;
    if (qm && host->mapped == OWNED_BY_MMAP)
        munmap(qm, host->sizes.file);
    else
        free(qm);
    free(host);
}

size_t qi_host_unpacked_bytes(const qi_host *host)
{
    return host->unpacked;
}

qat_status qi_host_self_test(const qi_host *host, const char *name, qat_error *err)
{
    qi_error inner;
    return qi_self_test(host->model, host->arena, &inner) ? qi_error_tell(&inner, name, err)
                                                          : QAT_OK;
}
