/** A loader from within: its slots (loader.c says when they are filled), and what fills one. */
#ifndef QAT_DATASETS_LOADER_H
#define QAT_DATASETS_LOADER_H

#include "base/arena.h"
#include "qat/dataset.h"

#include <pthread.h>

/** A batch, and the room it is prepared in. */
typedef struct qat_slot {
    qat_batch batch; /* what the caller sees */
    uint32_t *order; /* the dataset's numbers of its samples */
    uint8_t *bytes;  /* U8: values as augmented */
    float *real;
    int32_t *labels;
    qat_objects *objects; /* where the data have some */
    qat_truth *truth;     /* of augmented samples, info.most_objects each */
    float *targets;       /* where the data have some: info.classes + 1 each */
    bool ready;
    qat_status status; /* of filling it */
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

    pthread_mutex_t lock; /* guards everything below and slot.ready */
    pthread_cond_t claimable, filled;
    pthread_t *threads;
    int started, busy; /* threads that run; those that fill a slot */
    bool stop, paused;
    qat_slot *slots;
    int slot_count;
    int64_t held;       /* the batch the caller has; -1: none yet */
    int64_t next_claim; /* the next to be filled */
    int64_t epoch;      /* of next_claim, and its place in it */
    int index;
    int64_t shuffled; /* the epoch that permutation holds; -1: none */
};

/** The samples of a claimed slot, and its status. scratch: one sample of bytes, where bytes are
 *  augmented. Without the lock: writes the slot alone. */
void qat_loader_fill(const qat_loader *loader, qat_slot *slot, uint8_t *scratch);

#endif
