/** A digest of data: whether a run that is resumed still trains on what it began with. */
#include "datasets/dataset_kind.h"

#include "base/bytes.h"
#include "base/checksums/sha256.h"
#include "base/rng.h"
#include "base/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <zlib.h>

enum { PATH_LENGTH = 4096 };

static uint32_t fold(uint64_t hash)
{
    return (uint32_t)(hash ^ hash >> 32);
}

static uint32_t crc_of(uint32_t crc, const void *bytes, size_t n)
{
    return (uint32_t)crc32_z(crc, bytes, n);
}

/** Label, targets and boxes of a sample. */
static uint32_t answers_of(const qat_dataset *d, int i)
{
    const qat_objects *o = qat_dataset_objects(d, i);
    int32_t const label = qat_dataset_label(d, i);
    uint32_t crc = crc_of(0, &label, sizeof label);
    if (qat_dataset_targets(d, i))
        crc = crc_of(crc, qat_dataset_targets(d, i), (size_t)d->info.n_targets * sizeof(float));
    for (int k = 0; o && k < o->count; k++) {
        const qat_truth *t = &o->truth[k];
        int32_t const what[] = {t->label, t->crowd};
        crc = crc_of(crc, &t->box, sizeof t->box);
        crc = crc_of(crc, what, sizeof what);
    }
    return crc;
}

/** Size of a sample's file; -1: it is not there, which is another function's business. */
static int64_t size_of(qat_file_name name)
{
    char path[PATH_LENGTH];
    struct stat there;
    if (name.size)
        return name.size;
    qat_file_path(name, path, sizeof path);
    return stat(path, &there) == 0 ? (int64_t)there.st_size : -1;
}

static void add_sample(const qat_dataset *d, int i, qat_data_digest *digest)
{
    uint32_t const answers = answers_of(d, i);
    if (!d->kind->file) {
        const char *values = d->values;
        digest->names[i] = (uint32_t)i;
        digest->contents[i] =
            crc_of(answers, values + (size_t)i * d->sample_bytes, d->sample_bytes);
        digest->bytes += (int64_t)d->sample_bytes;
        return;
    }
    qat_file_name const name = d->kind->file(d, i);
    int64_t const size = size_of(name);
    digest->names[i] = fold(qat_hash_name(name.name));
    digest->contents[i] = fold(qat_hash((uint64_t)size, answers));
    digest->bytes += size > 0 ? size : 0;
}

/** By names: one without an ending, as records have, may be anything. */
static bool has_jpeg(const qat_dataset *d)
{
    bool found = false;
    for (int i = 0; d->kind->file && i < d->info.count && !found; i++) {
        const char *ending = strrchr(d->kind->file(d, i).name, '.');
        found = !ending || !strcasecmp(ending, ".jpg") || !strcasecmp(ending, ".jpeg");
    }
    return found;
}

/** Everything there is to say about the set, then what is said of each sample. */
static qat_status close_digest(const qat_dataset *d, qat_data_digest *digest, qat_error *err)
{
    char decoder[128];
    qat_writer w = {0};
    qat_write_text(&w, "%s %d x %d x %d, %d classes, %d samples", d->kind->name, d->info.height,
                   d->info.width, d->info.channels, d->info.classes, d->info.count);
    if (d->jpeg_scale)
        qat_write_text(&w, ", JPEG at a smaller size");
    qat_jpeg_decoder(decoder, sizeof decoder);
    if (has_jpeg(d))
        qat_write_text(&w, ", JPEG by %s", decoder);
    qat_write_u64(&w, (uint64_t)digest->bytes);
    for (int i = 0; i < digest->n; i++) {
        qat_write_u32(&w, digest->names[i]);
        qat_write_u32(&w, digest->contents[i]);
    }
    bool const failed = w.failed;
    if (!failed)
        qat_sha256(w.bytes, w.count, digest->sha256);
    qat_writer_free(&w);
    return failed ? qat_out_of_memory(err, d->info.name) : QAT_OK;
}

qat_status qat_dataset_digest(const qat_dataset *d, qat_data_digest *digest, qat_error *err)
{
    bool const in_files = d->kind->file || (d->kind->needs_path && d->values);
    int const n = in_files ? d->info.count : 0;
    *digest = (qat_data_digest){.count = d->info.count,
                                .n = n,
                                .names = calloc((size_t)n + 1, sizeof *digest->names),
                                .contents = calloc((size_t)n + 1, sizeof *digest->contents)};
    bool const good = digest->names && digest->contents;
    for (int i = 0; good && i < n; i++)
        add_sample(d, i, digest);
    qat_status const st =
        good ? close_digest(d, digest, err) : qat_out_of_memory(err, d->info.name);
    if (st)
        qat_data_digest_free(digest);
    return st;
}

void qat_data_digest_free(qat_data_digest *digest)
{
    free(digest->names);
    free(digest->contents);
    *digest = (qat_data_digest){0};
}

/* ------------------------------------------------------------------ what changed */

static int by_number(const void *a, const void *b)
{
    uint64_t const x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/** Names, each with its content's hash below it, in rising order; NULL: no memory. */
static uint64_t *sorted(const qat_data_digest *digest)
{
    uint64_t *all = malloc(((size_t)digest->n + 1) * sizeof *all);
    for (int i = 0; all && i < digest->n; i++)
        all[i] = (uint64_t)digest->names[i] << 32 | digest->contents[i];
    if (all)
        qsort(all, (size_t)digest->n, sizeof *all, by_number);
    return all;
}

/** Is a name there, with any content? */
static bool has_name(const uint64_t *all, int n, uint32_t name)
{
    int low = 0, high = n;
    while (low < high) {
        int const middle = low + (high - low) / 2;
        if (all[middle] >> 32 < name)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && all[low] >> 32 == name;
}

/** The first sample that is new or has another content than then; -1: there is none. */
static int first_other(const qat_data_digest *now, const uint64_t *then, int n, bool *is_new)
{
    for (int i = 0; i < now->n; i++) {
        uint64_t const own = (uint64_t)now->names[i] << 32 | now->contents[i];
        if (bsearch(&own, then, (size_t)n, sizeof own, by_number))
            continue;
        *is_new = !has_name(then, n, now->names[i]);
        return i;
    }
    return -1;
}

/** Where nothing is new: the place at which something is missing, or in another order. */
static int first_gap(const qat_data_digest *now, const qat_data_digest *then)
{
    int i = 0;
    while (i < now->n && i < then->n && now->names[i] == then->names[i])
        i++;
    return i;
}

/** What is compared: one split, or both where they are parts of one set, since a sample may have
 *  moved from one to the other. */
typedef struct comparison {
    const qat_dataset *data[2]; /* the second one NULL: one split */
    qat_data_digest now, then;
} comparison;

static void name_of(const comparison *c, int i, char *text, size_t max)
{
    int const first = qat_dataset_info_of(c->data[0])->count;
    const qat_dataset *d = i < first ? c->data[0] : c->data[1];
    if (d->kind->file)
        (void)snprintf(text, max, "%.200s", d->kind->file(d, i < first ? i : i - first).name);
    else
        (void)snprintf(text, max, "sample %d", i < first ? i : i - first);
}

static void say_gap(const comparison *c, char *text, size_t max)
{
    char name[224];
    int const at = first_gap(&c->now, &c->then);
    bool const last = at >= c->now.n;
    name_of(c, last ? c->now.n - 1 : at, name, sizeof name);
    if (last && c->now.n == c->then.n)
        (void)snprintf(text, max, "the files are the same, but not how they are read (%s)",
                       has_jpeg(c->data[0]) ? "JPEG at another size, or by another library, or an "
                                              "older version of qat began the run"
                                            : "their kind, size or classes");
    else if (c->data[1])
        (void)snprintf(text, max, "nothing is new, so some of them are gone");
    else if (last)
        (void)snprintf(text, max, "what came after %s is gone", name);
    else
        (void)snprintf(text, max, "what came before %s is gone, or in another place", name);
}

static void say_what(const comparison *c, const uint64_t *then, char *text, size_t max)
{
    char name[224];
    bool is_new = false;
    int const other = first_other(&c->now, then, c->then.n, &is_new);
    if (other < 0) {
        say_gap(c, text, max);
        return;
    }
    name_of(c, other, name, sizeof name);
    (void)snprintf(text, max, "%s %s", name,
                   is_new ? "is new" : "has another size, content or class");
}

static qat_status refuse(const comparison *c, qat_error *err)
{
    char what[320] = "";
    uint64_t *then = sorted(&c->then);
    if (!then)
        return qat_out_of_memory(err, c->data[0]->info.name);
    if (c->now.n && c->then.n)
        say_what(c, then, what, sizeof what);
    free(then);
    return qat_fail(err, QAT_ERR_ARGUMENT,
                    "%.80s: the data changed since the run began: %lld samples now, %lld then%s%s",
                    c->data[0]->info.name, (long long)c->now.count, (long long)c->then.count,
                    *what ? "; " : "", what);
}

/** Both splits' samples, one after the other. */
static qat_status join(qat_data_digest *all, const qat_data_digest both[2], qat_error *err)
{
    size_t const n = (size_t)both[0].n, m = (size_t)both[1].n;
    *all = (qat_data_digest){.count = both[0].count + both[1].count,
                             .n = (int)(n + m),
                             .names = malloc((n + m + 1) * sizeof *all->names),
                             .contents = malloc((n + m + 1) * sizeof *all->contents)};
    if (!all->names || !all->contents)
        return qat_out_of_memory(err, "data");
    for (size_t i = 0; i < n + m; i++) {
        const qat_data_digest *from = &both[i >= n];
        all->names[i] = from->names[i < n ? i : i - n];
        all->contents[i] = from->contents[i < n ? i : i - n];
    }
    return QAT_OK;
}

static qat_status refuse_parts(const qat_dataset *const data[2], const qat_data_digest *now,
                               const qat_data_digest *then, qat_error *err)
{
    comparison c = {.data = {data[0], data[1]}};
    qat_status st = join(&c.now, now, err);
    if (!st)
        st = join(&c.then, then, err);
    if (!st)
        st = refuse(&c, err);
    qat_data_digest_free(&c.now);
    qat_data_digest_free(&c.then);
    return st;
}

qat_status qat_dataset_compare(const qat_dataset *const data[2], const qat_data_digest *now,
                               const qat_data_digest *then, qat_error *err)
{
    for (int s = 0; s < 2; s++) {
        if (!memcmp(now[s].sha256, then[s].sha256, sizeof now[s].sha256))
            continue;
        comparison const one = {.data = {data[s]}, .now = now[s], .then = then[s]};
        return data[s]->is_part ? refuse_parts(data, now, then, err) : refuse(&one, err);
    }
    return QAT_OK;
}
