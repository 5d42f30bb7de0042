/**
 * Threads prepare batches in advance. The slots form a ring: batch number n (counted over all
 * epochs since the last seek) goes into slot n % slots.
 *
 *     held            next_claim
 *      |   ready  ready   |
 *      v                  v
 *    [ n ][ n+1 ][ n+2 ][ n+3 ] ...     claimed while next_claim < held + slots
 *
 * A thread claims the next batch under the lock and copies the sample numbers of this batch, so one
 * permutation is enough. It fills the slot without the lock. Every sample is a function of (seed,
 * epoch, index), so the bytes do not depend on the number of threads or on their order.
 */
#include "datasets/loader/loader.h"
#include "base/files/file.h"

#include "base/rng.h"
#include "datasets/dataset_kind.h"
#include "datasets/loader/augment.h"
#include "datasets/loader/sound_augment.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_THREADS = 256, MAX_PREFETCH = 4096 };

/* Functions for claiming a batch; the caller holds the lock. */

static void shuffle(qat_loader *l)
{
    uint32_t const count = (uint32_t)l->info->count;
    l->shuffled = l->epoch;
    if (l->options.shuffle) {
        qat_rng rng = qat_rng_at(l->options.seed, qat_hash_name("shuffle"), (uint64_t)l->epoch);
        qat_rng_shuffle(&rng, l->permutation, count);
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        l->permutation[i] = i;
}

/** Take the next batch: mark its slot as being filled, and advance to the one after it. */
static qat_slot *claim(qat_loader *l)
{
    qat_slot *s = &l->slots[l->next_claim % l->slot_count];
    int const first = l->index * l->options.batch, left = l->info->count - first;
    if (l->shuffled != l->epoch)
        shuffle(l);
    int const all = left < l->options.batch ? left : l->options.batch;
    int const begin = l->begin < all ? l->begin : all, end = l->end < all ? l->end : all;
    s->ready = false;
    s->batch.count = l->index % l->every == l->first ? end - begin : 0;
    s->batch.epoch = l->epoch;
    s->batch.index = l->index;
    memcpy(s->order, l->permutation + first + begin, (size_t)s->batch.count * sizeof *s->order);
    l->next_claim++;
    if (++l->index == l->batches) {
        l->index = 0;
        l->epoch++;
    }
    return s;
}

typedef struct worker {
    qat_loader *loader;
    uint8_t *scratch;
} worker;

static void *work(void *context)
{
    const worker *w = context;
    qat_loader *l = w->loader;
    pthread_mutex_lock(&l->lock);
    while (!l->stop) {
        int64_t const oldest = l->held < 0 ? 0 : l->held;
        if (l->paused || l->next_claim >= oldest + l->slot_count) {
            pthread_cond_wait(&l->claimable, &l->lock);
            continue;
        }
        qat_slot *s = claim(l);
        l->busy++;
        pthread_mutex_unlock(&l->lock);
        qat_loader_fill(l, s, w->scratch);
        pthread_mutex_lock(&l->lock);
        l->busy--;
        s->ready = true;
        pthread_cond_broadcast(&l->filled);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* Functions of the caller's side. */

static qat_status check_options(const qat_loader_options *o, const qat_dataset *dataset,
                                qat_error *err)
{
    const qat_dataset_info *info = &dataset->info;
    if (o->batch < 1 || o->threads < 1 || o->threads > MAX_THREADS || o->prefetch < 1 ||
        o->prefetch > MAX_PREFETCH)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "loader: batch %d (>= 1), threads %d (1..%d), prefetch %d (1..%d)",
                        o->batch, o->threads, MAX_THREADS, o->prefetch, MAX_PREFETCH);
    if (o->drop_last && o->batch > info->count)
        return qat_fail(
            err, QAT_ERR_ARGUMENT,
            "loader: batch %d, but %s has only %d samples; with drop_last there would be no batch",
            o->batch, info->name, info->count);
    for (int c = 0; c < info->channels; c++) {
        float const mean = o->mean ? o->mean[c] : 0, std = o->std ? o->std[c] : 1;
        if (!isfinite(mean) || !isfinite(std) || !(std > 0))
            return qat_fail(err, QAT_ERR_ARGUMENT,
                            "loader: channel %d has mean %g and std %g, must be finite and std > 0",
                            c, (double)mean, (double)std);
    }
    qat_status const st = qat_sound_augment_check(&o->augment, dataset, err);
    return st ? st : qat_augment_check(&o->augment, info, err);
}

static bool allocate_slots(qat_loader *l)
{
    size_t const batch =
        (size_t)(l->options.batch < l->info->count ? l->options.batch : l->info->count);
    l->slot_count = l->options.prefetch + 1; /* one more for the batch that the caller holds */
    l->slots = qat_arena_array(&l->arena, (size_t)l->slot_count, sizeof *l->slots);
    for (int i = 0; l->slots && i < l->slot_count; i++) {
        qat_slot *s = &l->slots[i];
        s->order = qat_arena_array(&l->arena, batch, sizeof *s->order);
        s->labels = qat_arena_array(&l->arena, batch, sizeof *s->labels);
        s->real = qat_arena_array(&l->arena, batch, l->sample_values * sizeof *s->real);
        if (l->info->type != QAT_SAMPLE_F32)
            s->bytes = qat_arena_array(&l->arena, batch, l->sample_values);
        if (l->info->has_objects) {
            size_t const most = (size_t)l->info->most_objects + 1;
            s->objects = qat_arena_array(&l->arena, batch, sizeof *s->objects);
            s->truth = qat_arena_array(&l->arena, batch, most * sizeof *s->truth);
            if (!s->objects || !s->truth)
                return false;
        }
        if (l->info->n_targets) {
            size_t const values = (size_t)l->info->n_targets;
            s->targets = qat_arena_array(&l->arena, batch, values * sizeof *s->targets);
            if (!s->targets)
                return false;
            s->batch.n_targets = (int)values;
        }
        if (!s->order || !s->labels || !s->real || (l->info->type != QAT_SAMPLE_F32 && !s->bytes))
            return false;
        s->batch.bytes = s->bytes;
        s->batch.real = s->real;
        s->batch.labels = s->labels;
        s->batch.objects = s->objects;
        s->batch.targets = s->targets;
    }
    return l->slots != NULL;
}

/** Make mean, std and the table: (float)pixel - mean, then / std, each rounded to float32. */
static bool make_tables(qat_loader *l, const float *mean, const float *std)
{
    size_t const channels = (size_t)l->info->channels;
    l->mean = qat_arena_array(&l->arena, channels, sizeof *l->mean);
    l->std = qat_arena_array(&l->arena, channels, sizeof *l->std);
    l->table = qat_arena_array(&l->arena, channels, 256 * sizeof *l->table);
    if (!l->mean || !l->std || !l->table)
        return false;
    for (size_t c = 0; c < channels; c++) {
        l->mean[c] = mean ? mean[c] : 0;
        l->std[c] = std ? std[c] : 1;
        for (int p = 0; p < 256; p++)
            l->table[c * 256 + (size_t)p] = ((float)p - l->mean[c]) / l->std[c];
    }
    return true;
}

/**
 * Prepare as many batches in advance as fit into what the data set itself leaves of the memory, at
 * most options.prefetch. It is an error if that is none.
 */
static qat_status fit_memory(qat_loader *l, const qat_loader_options *o, qat_error *err)
{
    uint64_t const limit = o->memory ? o->memory : l->dataset->memory;
    uint64_t const held = l->dataset->held, left = held < limit ? limit - held : 0;
    uint64_t const samples = (uint64_t)(o->batch < l->info->count ? o->batch : l->info->count);
    uint64_t const targets = (uint64_t)l->info->n_targets * sizeof(float);
    uint64_t const each =
        l->sample_values * (sizeof(float) + (l->info->type != QAT_SAMPLE_F32)) + targets;
    uint64_t const fitting = left / each / samples; /* batches, with the one that is in use */
    if (fitting > (uint64_t)o->prefetch)
        return QAT_OK;
    if (fitting >= 2) {
        l->options.prefetch = (int)(fitting - 1);
        return QAT_OK;
    }
    uint64_t const batch = samples > UINT64_MAX / 2 / each ? UINT64_MAX / 2 : samples * each;
    return qat_fail(err, QAT_ERR_LIMIT,
                    "%s: two batches of %llu samples take %llu MiB of memory, but data.memory "
                    "allows %llu MiB, of which the data set itself takes %llu: smaller batches or "
                    "a larger data.memory help",
                    l->info->name, (unsigned long long)samples, qat_mib(2 * batch), qat_mib(limit),
                    qat_mib(held));
}

static qat_status allocate(qat_loader *l, const qat_loader_options *o, qat_error *err)
{
    qat_status const st = fit_memory(l, o, err);
    if (st)
        return st;
    l->permutation = qat_arena_array(&l->arena, (size_t)l->info->count, sizeof *l->permutation);
    l->threads = qat_arena_array(&l->arena, (size_t)o->threads, sizeof *l->threads);
    if (!l->permutation || !l->threads || !make_tables(l, o->mean, o->std) || !allocate_slots(l))
        return qat_out_of_memory(err, "loader");
    return QAT_OK;
}

static qat_status start_threads(qat_loader *l, qat_error *err)
{
    for (int i = 0; i < l->options.threads; i++) {
        worker *w = qat_arena_take(&l->arena, sizeof *w);
        uint8_t *scratch = w ? qat_arena_take(&l->arena, l->sample_values) : NULL;
        if (!scratch)
            return qat_out_of_memory(err, "loader");
        *w = (worker){.loader = l, .scratch = scratch};
        int const failed = pthread_create(&l->threads[i], NULL, work, w);
        if (failed)
            return qat_fail(err, QAT_ERR_NOMEM, "loader: cannot start thread %d: %s", i + 1,
                            strerror(failed));
        l->started++;
    }
    return QAT_OK;
}

/** Set the members of an empty loader. Returns false if the system has no locks left. */
static bool init(qat_loader *l, const qat_dataset *dataset, const qat_loader_options *o)
{
    l->dataset = dataset;
    l->info = qat_dataset_info_of(dataset);
    l->options = *o;
    l->options.mean = l->options.std = NULL;
    l->sample_values = (size_t)l->info->height * (size_t)l->info->width * (size_t)l->info->channels;
    l->batches = l->info->count / o->batch + (!o->drop_last && l->info->count % o->batch != 0);
    l->held = -1;
    l->shuffled = -1;
    l->end = o->batch;
    l->every = 1;
    if (pthread_mutex_init(&l->lock, NULL))
        return false;
    if (pthread_cond_init(&l->claimable, NULL)) {
        (void)pthread_mutex_destroy(&l->lock);
        return false;
    }
    if (pthread_cond_init(&l->filled, NULL)) {
        (void)pthread_cond_destroy(&l->claimable);
        (void)pthread_mutex_destroy(&l->lock);
        return false;
    }
    return true;
}

qat_status qat_loader_create(qat_loader **loader, const qat_dataset *dataset,
                             const qat_loader_options *options, qat_error *err)
{
    *loader = NULL;
    qat_status st = check_options(options, dataset, err);
    if (st)
        return st;
    qat_loader *l = calloc(1, sizeof *l);
    if (!l || !init(l, dataset, options)) {
        free(l);
        return qat_out_of_memory(err, "loader");
    }
    st = allocate(l, options, err);
    if (!st)
        st = start_threads(l, err);
    if (st) {
        qat_loader_free(l);
        return st;
    }
    *loader = l;
    return QAT_OK;
}

void qat_loader_free(qat_loader *loader)
{
    if (!loader)
        return;
    pthread_mutex_lock(&loader->lock);
    loader->stop = true;
    pthread_cond_broadcast(&loader->claimable);
    pthread_mutex_unlock(&loader->lock);
    for (int i = 0; i < loader->started; i++)
        (void)pthread_join(loader->threads[i], NULL);
    (void)pthread_cond_destroy(&loader->filled);
    (void)pthread_cond_destroy(&loader->claimable);
    (void)pthread_mutex_destroy(&loader->lock);
    qat_arena_free(&loader->arena);
    free(loader);
}

int qat_loader_batches(const qat_loader *loader)
{
    return loader->batches;
}

/** What the next batches are. */
struct course {
    int64_t epoch;
    int index;
    int begin, end, first, every;
    bool no_values;
};

static struct course course_of(const qat_loader *l)
{
    return (struct course){0, 0, l->begin, l->end, l->first, l->every, l->no_values};
}

/** Drop what is prepared, and go on. */
static void start_again(qat_loader *loader, struct course course)
{
    pthread_mutex_lock(&loader->lock);
    loader->paused = true;
    while (loader->busy)
        pthread_cond_wait(&loader->filled, &loader->lock);
    for (int i = 0; i < loader->slot_count; i++)
        loader->slots[i].ready = false;
    loader->held = -1;
    loader->next_claim = 0;
    loader->epoch = course.epoch;
    loader->index = course.index;
    loader->begin = course.begin;
    loader->end = course.end;
    loader->first = course.first;
    loader->every = course.every;
    loader->no_values = course.no_values;
    loader->paused = false;
    pthread_cond_broadcast(&loader->claimable);
    pthread_mutex_unlock(&loader->lock);
}

void qat_loader_take_samples(qat_loader *loader, int begin, int end)
{
    struct course course = course_of(loader);
    course.begin = begin > 0 ? begin : 0;
    course.end = end > course.begin ? end : course.begin;
    start_again(loader, course);
}

void qat_loader_take_batches(qat_loader *loader, int first, int every)
{
    struct course course = course_of(loader);
    course.every = every > 1 ? every : 1;
    course.first = first > 0 ? first % course.every : 0;
    start_again(loader, course);
}

void qat_loader_leave_values(qat_loader *loader)
{
    struct course course = course_of(loader);
    course.no_values = true;
    start_again(loader, course);
}

qat_status qat_loader_seek(qat_loader *loader, int64_t epoch, int index, qat_error *err)
{
    struct course course = course_of(loader);
    if (epoch < 0 || index < 0 || index >= loader->batches)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "loader: no batch %d in epoch %lld, which has %d batches", index,
                        (long long)epoch, loader->batches);
    course.epoch = epoch;
    course.index = index;
    start_again(loader, course);
    return QAT_OK;
}

qat_status qat_loader_next(qat_loader *loader, const qat_batch **batch, qat_error *err)
{
    *batch = NULL;
    pthread_mutex_lock(&loader->lock);
    loader->held++; /* this gives the batch before back */
    qat_slot *s = &loader->slots[loader->held % loader->slot_count];
    pthread_cond_broadcast(&loader->claimable);
    while (loader->next_claim <= loader->held || !s->ready)
        pthread_cond_wait(&loader->filled, &loader->lock);
    pthread_mutex_unlock(&loader->lock);
    if (s->status) {
        if (err)
            *err = s->err;
        return s->status;
    }
    *batch = &s->batch;
    return QAT_OK;
}
