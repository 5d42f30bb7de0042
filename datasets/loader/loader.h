/**
 * The private part of a loader: its slots (loader.c fills them), and the function that fills one.
 */
#ifndef QAT_DATASETS_LOADER_H
#define QAT_DATASETS_LOADER_H

#include "base/arena.h"
#include "qat/dataset.h"

#include <pthread.h>

/** A batch, and the memory in which it is prepared. */
typedef struct qat_slot {
    qat_batch batch; /* what the caller sees */
    uint32_t *order; /* numbers of its samples in the data set */
    uint8_t *bytes;  /* U8: augmented values */
    float *real;
    int32_t *labels;
    qat_objects *objects; /* if the data have objects */
    qat_truth *truth;     /* of augmented samples, info.most_objects each */
    float *targets;       /* if the data have targets: info.n_targets each */
    bool ready;
    qat_status status; /* result of filling it */
    qat_error err;
} qat_slot;

struct qat_loader {
    const qat_dataset *dataset;
    const qat_dataset_info *info;
    qat_loader_options options; /* mean and std: NULL, see below */
    size_t sample_values;
    int batches;       /* per epoch */
    float *mean, *std; /* per channel */
    float *table;      /* U8: [channels][256], (pixel - mean) / std */
    uint32_t *permutation;
    qat_arena arena;

    pthread_mutex_t lock; /* protects everything below, and slot.ready */
    pthread_cond_t claimable, filled;
    pthread_t *threads;
    int started, busy; /* threads that run; threads that fill a slot */
    bool stop, paused;
    int begin, end;   /* the samples of a batch that are prepared */
    int first, every; /* the batches that are prepared */
    bool no_values;   /* of samples */
    qat_slot *slots;
    int slot_count;
    int64_t held;       /* the batch that the caller holds; -1: none yet */
    int64_t next_claim; /* the next batch to fill */
    int64_t epoch;      /* epoch of next_claim, and its place in it */
    int index;
    int64_t shuffled; /* the epoch to which permutation belongs; -1: none */
};

/**
 * Fill a claimed slot with its samples, and set its status. scratch: one sample of bytes if bytes
 * are augmented. Call it without the lock; it only writes the slot.
 */
void qat_loader_fill(const qat_loader *loader, qat_slot *slot, uint8_t *scratch);

#endif
