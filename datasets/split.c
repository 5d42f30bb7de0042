/** A training and a test split made of one set: options.split. */
#include "datasets/dataset_kind.h"

#include "base/rng.h"

#include <math.h>
#include <stdlib.h>

/** How many of n samples train: the nearest number to the share, and one on each side if n > 1. */
static int training_count(int n, double share)
{
    int const k = (int)floor(share * n + 0.5);
    if (n < 2)
        return n;
    return k < 1 ? 1 : k > n - 1 ? n - 1 : k;
}

/** Samples without a class are all of one stratum. */
static int stratum_of(const qat_dataset *d, int i)
{
    return d->info.has_objects || d->info.n_targets ? 0 : qat_dataset_label(d, i);
}

static int strata_of(const qat_dataset *d)
{
    return d->info.has_objects || d->info.n_targets ? 1 : d->info.classes;
}

/** Sort sample numbers by stratum; starts [strata + 1]: where each one's begin. */
static void sort_by_stratum(const qat_dataset *d, int strata, int *starts, int *sorted)
{
    for (int i = 0; i < d->info.count; i++)
        starts[stratum_of(d, i) + 1]++;
    for (int s = 0; s < strata; s++)
        starts[s + 1] += starts[s];
    for (int i = 0; i < d->info.count; i++)
        sorted[starts[stratum_of(d, i)]++] = i;
    for (int s = strata; s > 0; s--)
        starts[s] = starts[s - 1];
    starts[0] = 0;
}

/** Mark the training samples of one stratum, whose numbers are in `members`. order: room for n. */
static void draw(const int *members, int n, const qat_dataset_options *o, int stratum,
                 uint32_t *order, bool *trains)
{
    qat_rng rng = qat_rng_at(o->seed, qat_hash_name("split"), (uint64_t)stratum);
    int const k = training_count(n, o->split);
    qat_rng_shuffle(&rng, order, (uint32_t)n);
    for (int i = 0; i < k; i++)
        trains[members[order[i]]] = true;
}

/** The numbers of one side's samples, rising, at most `limit` (0: all), spread over all of them. */
static int list_side(const bool *trains, int count, qat_split split, int limit, int *kept)
{
    int n = 0;
    for (int i = 0; i < count; i++)
        if (trains[i] == (split == QAT_SPLIT_TRAIN))
            kept[n++] = i;
    int const most = qat_dataset_limit(n, limit);
    for (int i = 0; i < most; i++)
        kept[i] = kept[(int)((int64_t)i * n / most)];
    return most;
}

qat_status qat_dataset_take_part(qat_dataset *d, const qat_dataset_options *o, qat_split split,
                                 qat_error *err)
{
    int const count = d->info.count, strata = strata_of(d);
    int *starts = calloc((size_t)strata + 1, sizeof *starts);
    int *sorted = malloc((size_t)count * sizeof *sorted);
    uint32_t *order = malloc((size_t)count * sizeof *order);
    bool *trains = calloc((size_t)count, sizeof *trains);
    bool const good = starts && sorted && order && trains;
    int n = 0;
    if (good) {
        sort_by_stratum(d, strata, starts, sorted);
        for (int s = 0; s < strata; s++)
            draw(sorted + starts[s], starts[s + 1] - starts[s], o, s, order, trains);
        n = list_side(trains, count, split, qat_split_count(o, split), sorted);
        if (n)
            qat_dataset_keep(d, sorted, n);
        d->is_part = true;
    }
    free(starts);
    free(sorted);
    free(order);
    free(trains);
    if (!good)
        return qat_out_of_memory(err, d->info.name);
    return n ? QAT_OK
             : qat_fail(err, QAT_ERR_FORMAT,
                        "%s: a share of %g for training leaves no %s samples: none of its classes "
                        "has two",
                        d->info.name, o->split, qat_split_name(split));
}
