/**
 * What a kind of data set implements, and what they share. To add one, see
 * docs/adding-a-dataset.md.
 */
#ifndef QAT_DATASETS_DATASET_KIND_H
#define QAT_DATASETS_DATASET_KIND_H

#include "base/arena.h"
#include "qat/dataset.h"

typedef struct qat_dataset_kind {
    const char *name; /* as options.kind says it */
    bool needs_path;
    bool resizes;     /* as qat_dataset_kind_resizes */
    bool has_targets; /* info.has_targets of all its data */
    /**
     * Fill dataset->info (all but the name) and whatever `get` needs. On failure the caller closes
     * the data set, so what was taken so far may stay where it is.
     */
    qat_status (*open)(qat_dataset *dataset, const qat_dataset_options *options, qat_split split,
                       qat_error *err);
    /** As qat_dataset_get, index already checked. */
    qat_status (*get)(const qat_dataset *dataset, int index, void *values, int *label,
                      qat_error *err);
    /**
     * Kinds whose pictures hold objects (info.has_objects): what is in picture `index`. `get` is
     * qat_dataset_get_resized then.
     */
    const qat_objects *(*objects)(const qat_dataset *dataset, int index);
    /** The picture as it is stored, of info.channels; NULL: `get` gives it as it is. */
    qat_status (*picture)(const qat_dataset *dataset, int index, qat_picture *picture,
                          qat_error *err);
} qat_dataset_kind;

struct qat_dataset {
    const qat_dataset_kind *kind;
    qat_dataset_info info;
    size_t sample_bytes; /* of one sample's values */
    qat_arena arena;     /* names, paths and the kind's own structures; freed by close */
    void *values;        /* kinds that keep all samples: info.count of them, 64-byte aligned */
    int32_t *labels;     /* of all samples; NULL: they hold objects, or the kind gives none */
    float *targets;      /* [info.count, info.classes + 1], where info.has_targets is set */
    void *own;           /* other kinds: what they like, in the arena */
};

#define QAT_DATASET_DECLARE_(name) extern const qat_dataset_kind qat_kind_##name;
QAT_DATASET_KINDS(QAT_DATASET_DECLARE_)

/** "train" or "test". */
const char *qat_split_name(qat_split split);

/** options->train_count or test_count, whichever the split is. */
int qat_split_count(const qat_dataset_options *options, qat_split split);

/**
 * Check a shape and set it (info.count, height, width, channels, type; min and max as for bytes).
 * Refused: no samples or more than 2^31 - 1, a side below 1, more than 2^28 values a sample.
 * @param source  the file or kind, for messages
 */
qat_status qat_dataset_set_shape(qat_dataset *dataset, const char *source, int64_t count,
                                 const int64_t hwc[3], qat_sample_type type, qat_error *err);

/** Memory for the values and labels of all info.count samples. */
qat_status qat_dataset_allocate(qat_dataset *dataset, qat_error *err);

/** Memory for the targets of all info.count samples, all not known, and info about them: so many
 *  attributes of these names (not copied), with a value or without. */
qat_status qat_dataset_allocate_targets(qat_dataset *dataset, int attributes,
                                        const char *const *names, bool value, qat_error *err);

/** options->width; not given: options->height; neither given: otherwise. */
int qat_dataset_width(const qat_dataset_options *options, int otherwise);

/** The smaller of count and limit; limit 0: count. */
int qat_dataset_limit(int count, int limit);

/** `get` of a kind that keeps all samples in values and labels. */
qat_status qat_dataset_get_kept(const qat_dataset *dataset, int index, void *values, int *label,
                                qat_error *err);

/** `get` of a kind with objects: the picture, resized to info's size; label 0. */
qat_status qat_dataset_get_resized(const qat_dataset *dataset, int index, void *values, int *label,
                                   qat_error *err);

/** The class of a sample; 0 of a kind with objects. */
int qat_dataset_label(const qat_dataset *dataset, int index);

/** A picture as it is stored, of info.channels; free its pixels. */
qat_status qat_dataset_picture(const qat_dataset *dataset, int index, qat_picture *picture,
                               qat_error *err);

/**
 * The path of folder/name or, if only that is there, folder/name.gz; in the arena. Where neither
 * is, the error names both.
 */
qat_status qat_dataset_find(qat_dataset *dataset, const char *folder, const char *name,
                            const char **path, qat_error *err);

/** "folder/name" in the arena, or NULL. */
char *qat_dataset_join(qat_arena *arena, const char *folder, const char *name);

/** QAT_OK, or the error "file: label L of sample I is not in 0..classes-1". */
qat_status qat_dataset_check_label(const char *file, int64_t index, int64_t label, int classes,
                                   qat_error *err);

/**
 * Set info.classes from the labels of a file that says nothing about them: `wanted` if > 0 and no
 * label reaches it, else the largest + 1. Labels must be in 0..65535.
 * @param label_at  label number i of labels
 */
qat_status qat_dataset_set_classes(qat_dataset *dataset, const char *file, const void *labels,
                                   int64_t (*label_at)(const void *labels, int64_t index),
                                   int64_t count, int wanted, qat_error *err);

#endif
