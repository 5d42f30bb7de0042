#include "datasets/procedural/procedural.h"

#include "base/parallel.h"

enum { TILE = 64, DEFAULT_TRAIN = 10000, DEFAULT_TEST = 2000 };

typedef struct job {
    qat_dataset *dataset;
    qat_painter *paint;
    uint64_t seed, stream;
} job;

/** The class of picture i: entry i % 10 of the permutation of its block of ten. */
static int label_of(const job *j, int i)
{
    uint32_t order[QAT_PROCEDURAL_CLASSES];
    qat_rng rng = qat_rng_at(j->seed, qat_hash(j->stream, 1), (uint64_t)i / QAT_PROCEDURAL_CLASSES);
    qat_rng_shuffle(&rng, order, QAT_PROCEDURAL_CLASSES);
    return (int)order[i % QAT_PROCEDURAL_CLASSES];
}

static void paint_tile(void *context, int tile, int thread)
{
    const job *j = context;
    qat_dataset *d = j->dataset;
    int const first = tile * TILE;
    int const end = d->info.count - first < TILE ? d->info.count : first + TILE;
    (void)thread;
    for (int i = first; i < end; i++) {
        qat_rng rng = qat_rng_at(j->seed, j->stream, (uint64_t)i);
        d->labels[i] = label_of(j, i);
        if (!d->undrawn)
            j->paint(&rng, d->labels[i], (uint8_t *)d->values + (size_t)i * d->sample_bytes);
    }
}

/** The number of samples: from options, or else the default of the split. */
static int count_of(const qat_dataset_options *options, qat_split split, int train, int test)
{
    int const wanted = qat_split_count(options, split);
    int const fallback = split == QAT_SPLIT_TRAIN ? train : test;
    return wanted ? wanted : fallback;
}

qat_status qat_procedural_square(qat_dataset *dataset, const qat_dataset_options *options,
                                 qat_split split, const qat_square *square, qat_error *err)
{
    int const side = options->height ? options->height : square->side;
    int const width = options->width ? options->width : side;
    int const channels = options->channels ? options->channels : 3;
    int64_t const hwc[3] = {side, side, 3};
    if (side < square->smallest || side > square->largest || width != side || channels != 3)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "data: %s of %d x %d x %d: pictures must be square, with a side of %d..%d "
                        "and 3 channels",
                        square->what, side, width, channels, square->smallest, square->largest);
    return qat_dataset_set_shape(dataset, dataset->kind->name,
                                 count_of(options, split, square->train, square->test), hwc,
                                 QAT_SAMPLE_U8, err);
}

uint64_t qat_procedural_stream(const qat_dataset *dataset, qat_split split)
{
    return qat_hash(qat_hash_name(dataset->kind->name), qat_hash_name(qat_split_name(split)));
}

qat_status qat_procedural_open(qat_dataset *dataset, const qat_dataset_options *options,
                               qat_split split, const qat_drawn *drawn, qat_error *err)
{
    int const count = count_of(options, split, DEFAULT_TRAIN, DEFAULT_TEST);
    const char *name = dataset->kind->name;
    qat_status st = qat_dataset_set_shape(dataset, name, count, drawn->hwc, drawn->type, err);
    if (!st)
        st = qat_dataset_allocate(dataset, err);
    if (st)
        return st;
    dataset->info.classes = QAT_PROCEDURAL_CLASSES;
    dataset->info.labels = drawn->labels;
    job j = {.dataset = dataset,
             .paint = drawn->paint,
             .seed = options->seed,
             .stream = qat_procedural_stream(dataset, split)};
    qat_parallel((count - 1) / TILE + 1, paint_tile, &j);
    return QAT_OK;
}
