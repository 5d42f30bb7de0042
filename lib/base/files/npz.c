#include "base/files/npz.h"

#include "base/files/file.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>

static const char suffix[] = ".npy";
enum { SUFFIX = sizeof suffix - 1 };
static const zip_uint64_t LARGEST = (zip_uint64_t)1 << 31; /* limit for the bytes of one array */

typedef struct archive {
    zip_t *zip;
    const char *path;
} archive;

static qat_status archive_open(archive *a, const char *path, qat_error *err)
{
    int code = 0;
    *a = (archive){.path = path, .zip = zip_open(path, ZIP_RDONLY, &code)};
    if (a->zip)
        return QAT_OK;
    zip_error_t reason;
    zip_error_init_with_code(&reason, code);
    qat_status const st = code == ZIP_ER_MEMORY                           ? QAT_ERR_NOMEM
                          : code == ZIP_ER_NOZIP || code == ZIP_ER_INCONS ? QAT_ERR_FORMAT
                                                                          : QAT_ERR_IO;
    qat_fail(err, st, "%s: %s", path, zip_error_strerror(&reason));
    zip_error_fini(&reason);
    return st;
}

/** Report the error of libzip for an entry. */
static qat_status entry_fail(const archive *a, const char *name, const char *why, qat_error *err)
{
    return qat_fail(err, QAT_ERR_FORMAT, "%s: array '%s': %s", a->path, name, why);
}

/** Read all bytes of an entry. libzip compares the CRC only if the read goes to the very end. */
static qat_status read_bytes(const archive *a, const zip_stat_t *about, uint8_t *bytes,
                             qat_error *err)
{
    uint8_t beyond;
    zip_file_t *file = zip_fopen_index(a->zip, about->index, 0);
    if (!file)
        return entry_fail(a, about->name, zip_strerror(a->zip), err);
    zip_int64_t const got = zip_fread(file, bytes, about->size);
    zip_int64_t const more = got < 0 ? -1 : zip_fread(file, &beyond, 1);
    qat_status st = QAT_OK;
    if (got < 0 || more < 0)
        st = entry_fail(a, about->name, zip_error_strerror(zip_file_get_error(file)), err);
    else if ((zip_uint64_t)got != about->size || more)
        st = entry_fail(a, about->name, "its size differs from the one in the archive's directory",
                        err);
    zip_fclose(file);
    return st;
}

static qat_status parse_entry(const archive *a, const zip_stat_t *about, qat_npy *array,
                              qat_error *err)
{
    char name[512];
    snprintf(name, sizeof name, "%s: array '%s'", a->path, about->name);
    if (about->size > LARGEST)
        return qat_fail(err, QAT_ERR_LIMIT, "%s: larger than the %llu bytes allowed", name,
                        (unsigned long long)LARGEST);
    uint8_t *bytes = malloc(about->size ? about->size : 1);
    if (!bytes)
        return qat_out_of_memory(err, name);
    qat_status st = read_bytes(a, about, bytes, err);
    if (!st)
        st = qat_npy_parse(array, bytes, about->size, name, err);
    free(bytes);
    return st;
}

/** Copy the entry's name without its ".npy". */
static qat_status take_name(const archive *a, const char *from, char **name, qat_error *err)
{
    size_t const n = strlen(from);
    if (n <= SUFFIX || strcmp(from + n - SUFFIX, suffix))
        return qat_fail(err, QAT_ERR_FORMAT, "%s: its entry '%s' is not a .npy file", a->path,
                        from);
    *name = malloc(n - SUFFIX + 1);
    if (!*name)
        return qat_out_of_memory(err, a->path);
    memcpy(*name, from, n - SUFFIX);
    (*name)[n - SUFFIX] = 0;
    return QAT_OK;
}

static qat_status find_entry(const archive *a, zip_uint64_t index, zip_stat_t *about,
                             qat_error *err)
{
    zip_uint64_t const needed =
        ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_INDEX | ZIP_STAT_COMP_METHOD;
    if (zip_stat_index(a->zip, index, 0, about) || (about->valid & needed) != needed)
        return qat_fail(err, QAT_ERR_FORMAT, "%s: entry %llu: %s", a->path,
                        (unsigned long long)index, zip_strerror(a->zip));
    if (about->comp_method == ZIP_CM_STORE || about->comp_method == ZIP_CM_DEFLATE)
        return QAT_OK;
    /* other methods take memory of their own: xz up to 4 GiB */
    return qat_fail(err, QAT_ERR_UNSUPPORTED,
                    "%s: array '%s': packed by method %d; NumPy stores (0) or deflates (8)",
                    a->path, about->name, (int)about->comp_method);
}

static qat_status read_entry(const archive *a, qat_npz *npz, zip_uint64_t index, qat_error *err)
{
    zip_stat_t about;
    qat_npz_entry entry = {0};
    qat_status st = find_entry(a, index, &about, err);
    zip_int64_t const first = st ? -1 : zip_name_locate(a->zip, about.name, 0);
    if (first >= 0 && (zip_uint64_t)first != index)
        return entry_fail(a, about.name, "the entry exists twice", err);
    if (!st)
        st = take_name(a, about.name, &entry.name, err);
    if (!st)
        st = parse_entry(a, &about, &entry.array, err);
    if (st)
        free(entry.name);
    else
        npz->entries[npz->count++] = entry;
    return st;
}

/** Check what all entries take, by the sizes in the archive's directory. */
static qat_status check_sizes(const archive *a, zip_uint64_t count, uint64_t most, const char *key,
                              qat_error *err)
{
    uint64_t sum = 0, largest = 0;
    zip_stat_t about;
    for (zip_uint64_t i = 0; i < count; i++) {
        qat_status const st = find_entry(a, i, &about, err);
        if (st)
            return st;
        largest = about.size > largest ? about.size : largest;
        sum = about.size > UINT64_MAX / 2 - sum ? UINT64_MAX / 2 : sum + about.size;
    }
    if (sum + largest <= most)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_LIMIT,
                    "%s: unpacking its arrays takes %llu MiB of memory, but %llu MiB are allowed "
                    "(%s)",
                    a->path, qat_mib(sum + largest), qat_mib(most), key);
}

qat_status qat_npz_read(qat_npz *npz, const char *path, uint64_t most, const char *key,
                        qat_error *err)
{
    archive a;
    *npz = (qat_npz){0};
    qat_status st = archive_open(&a, path, err);
    if (st)
        return st;
    zip_int64_t const count = zip_get_num_entries(a.zip, 0);
    if (count > INT_MAX)
        st = qat_fail(err, QAT_ERR_FORMAT, "%s: %lld entries", path, (long long)count);
    else
        st = check_sizes(&a, (zip_uint64_t)count, most, key, err);
    if (!st && !(npz->entries = calloc((size_t)count + 1, sizeof *npz->entries)))
        st = qat_out_of_memory(err, path);
    for (zip_int64_t i = 0; !st && i < count; i++)
        st = read_entry(&a, npz, (zip_uint64_t)i, err);
    zip_discard(a.zip);
    if (st)
        qat_npz_free(npz);
    return st;
}

void qat_npz_free(qat_npz *npz)
{
    for (int i = 0; i < npz->count; i++) {
        free(npz->entries[i].name);
        qat_npy_free(&npz->entries[i].array);
    }
    free(npz->entries);
    *npz = (qat_npz){0};
}

/* ------------------------------------------------------------------ writing */

static qat_status zip_failed(const char *about, zip_error_t *why, qat_error *err)
{
    return qat_fail(err, zip_error_code_zip(why) == ZIP_ER_MEMORY ? QAT_ERR_NOMEM : QAT_ERR_IO,
                    "%s: %s", about, zip_error_strerror(why));
}

/** The date of an entry is that of NumPy's, the first that there is: 1980-01-01. */
static qat_status add_entry(zip_t *zip, const char *about, const char *name, const qat_npy *array,
                            qat_error *err)
{
    enum { FIRST_DAY = 1 << 5 | 1 };
    char entry[512];
    qat_writer w = {0};
    int const n = snprintf(entry, sizeof entry, "%s%s", name, suffix);
    if (n < 0 || (size_t)n >= sizeof entry)
        return qat_fail(err, QAT_ERR_ARGUMENT, "%s: the name '%.40s...' is too long", about, name);
    qat_status st =
        qat_npy_bytes(&w, array->type, array->rank, array->dims, array->data, name, err);
    if (st) {
        qat_writer_free(&w);
        return st;
    }
    zip_source_t *source = zip_source_buffer(zip, w.bytes, w.count, 1);
    if (!source) {
        qat_writer_free(&w);
        return zip_failed(about, zip_get_error(zip), err);
    }
    zip_int64_t const at = zip_file_add(zip, entry, source, ZIP_FL_ENC_UTF_8);
    if (at < 0) {
        zip_source_free(source); /* and the bytes */
        return zip_failed(about, zip_get_error(zip), err);
    }
    if (zip_set_file_compression(zip, (zip_uint64_t)at, ZIP_CM_STORE, 0) ||
        zip_file_set_dostime(zip, (zip_uint64_t)at, 0, FIRST_DAY, 0))
        return zip_failed(about, zip_get_error(zip), err);
    return QAT_OK;
}

/** All bytes of a finished archive. */
static qat_status take_bytes(zip_source_t *source, const char *about, uint8_t **bytes,
                             size_t *count, qat_error *err)
{
    zip_stat_t size;
    if (zip_source_stat(source, &size) || zip_source_open(source))
        return zip_failed(about, zip_source_error(source), err);
    *count = (size_t)size.size;
    *bytes = malloc(*count ? *count : 1);
    qat_status st = *bytes ? QAT_OK : qat_out_of_memory(err, about);
    if (!st && zip_source_read(source, *bytes, size.size) != (zip_int64_t)size.size)
        st = zip_failed(about, zip_source_error(source), err);
    zip_source_close(source);
    if (st) {
        free(*bytes);
        *bytes = NULL;
    }
    return st;
}

qat_status qat_npz_bytes(int n, const char *const *names, const qat_npy *arrays, const char *about,
                         uint8_t **bytes, size_t *count, qat_error *err)
{
    zip_error_t why;
    *bytes = NULL;
    *count = 0;
    zip_error_init(&why);
    zip_source_t *source = zip_source_buffer_create(NULL, 0, 0, &why);
    zip_t *zip = source ? zip_open_from_source(source, ZIP_TRUNCATE, &why) : NULL;
    if (!zip) {
        qat_status const st = zip_failed(about, &why, err);
        zip_source_free(source);
        zip_error_fini(&why);
        return st;
    }
    zip_source_keep(source); /* the archive has its own hold on it */
    qat_status st = QAT_OK;
    for (int i = 0; i < n && !st; i++)
        st = add_entry(zip, about, names[i], &arrays[i], err);
    if (!st && zip_close(zip))
        st = zip_failed(about, zip_get_error(zip), err);
    else if (!st)
        zip = NULL;
    if (zip)
        zip_discard(zip);
    if (!st)
        st = take_bytes(source, about, bytes, count, err);
    zip_source_free(source);
    zip_error_fini(&why);
    return st;
}
