/**
 * Square colour pictures of cartoon faces (face.h). Each has 24 attributes and an age, which is a
 * real number.
 */
#include "base/parallel.h"
#include "datasets/dataset_kind.h"
#include "datasets/procedural/face.h"
#include "datasets/procedural/procedural.h"

#include <stdlib.h>

enum { TILE = 64 };

static const qat_square square = {"faces", 48, 32, 256, 4000, 1000};

typedef struct job {
    qat_dataset *dataset;
    uint64_t seed, stream;
    float *space; /* per thread: a canvas and a mask */
} job;

static size_t space_of(const qat_dataset *d)
{
    return 4 * (size_t)d->info.height * (size_t)d->info.width;
}

static void paint_one(const job *j, int i, float *space)
{
    qat_dataset *d = j->dataset;
    paint_canvas const canvas = {d->info.height, (float(*)[3])space};
    qat_rng rng = qat_rng_at(j->seed, j->stream, (uint64_t)i);
    float *targets = d->targets + (size_t)i * (FACE_COUNT + 1);
    face f;
    face_choose(&f, &rng);
    face_attributes(&f, targets);
    targets[FACE_COUNT] = f.age;
    face_paint(&f, &rng, &canvas, space + space_of(d) / 4 * 3,
               (uint8_t *)d->values + (size_t)i * d->sample_bytes);
}

static void paint_tile(void *context, int tile, int thread)
{
    const job *j = context;
    int const first = tile * TILE, count = j->dataset->info.count;
    for (int i = first; i < count && i < first + TILE; i++)
        paint_one(j, i, j->space + (size_t)thread * space_of(j->dataset));
}

static qat_status paint_all(qat_dataset *d, const qat_dataset_options *o, qat_split split,
                            qat_error *err)
{
    const char *name = d->kind->name;
    job j = {.dataset = d,
             .seed = o->seed,
             .stream = qat_hash(qat_hash_name(name), qat_hash_name(qat_split_name(split))),
             .space = malloc((size_t)qat_threads() * space_of(d) * sizeof(float))};
    if (!j.space)
        return qat_out_of_memory(err, name);
    qat_parallel((d->info.count - 1) / TILE + 1, paint_tile, &j);
    free(j.space);
    return QAT_OK;
}

static qat_status faces_open(qat_dataset *dataset, const qat_dataset_options *options,
                             qat_split split, qat_error *err)
{
    qat_status st = qat_procedural_square(dataset, options, split, &square, err);
    if (!st)
        st = qat_dataset_allocate(dataset, err);
    if (!st)
        st = qat_dataset_allocate_targets(dataset, FACE_COUNT, face_attribute_names, true, err);
    return st || dataset->undrawn ? st : paint_all(dataset, options, split, err);
}

const qat_dataset_kind qat_kind_faces = {.name = "faces",
                                         .needs_path = false,
                                         .resizes = true,
                                         .has_targets = true,
                                         .open = faces_open,
                                         .get = qat_dataset_get_kept};
