/**
 * The functions that a kind of data set implements, and helpers that kinds share. To add a kind,
 * see docs/adding-a-dataset.md.
 */
#ifndef QAT_DATASETS_DATASET_KIND_H
#define QAT_DATASETS_DATASET_KIND_H

#include "base/arena.h"
#include "base/rng.h"
#include "qat/dataset.h"

/**
 * The file that a sample is in: its name as seen from a folder ("" where the name says all). Or,
 * if size is not 0, a part of a larger file: `folder` is that file, and `name` is known in it
 * alone.
 */
typedef struct qat_file_name {
    const char *folder, *name;
    uint32_t size;
} qat_file_name;

typedef struct qat_dataset_kind {
    const char *name; /* name in options.kind */
    bool needs_path;
    bool resizes;     /* see qat_dataset_kind_resizes */
    bool has_targets; /* info.has_targets of all its data */
    /** Where options.split is above 0, `open` gives all samples that there are; the test split must
     *  not exist otherwise. */
    bool splits;
    /**
     * Fill dataset->info (all but the name) and everything that `get` needs. If this fails, the
     * caller closes the data set, which frees what was allocated so far.
     */
    qat_status (*open)(qat_dataset *dataset, const qat_dataset_options *options, qat_split split,
                       qat_error *err);
    /** Close what `own` holds beside memory; also after `open` failed. NULL: nothing. */
    void (*close)(qat_dataset *dataset);
    /** Like qat_dataset_get; the index is already checked. */
    qat_status (*get)(const qat_dataset *dataset, int index, void *values, int *label,
                      qat_error *err);
    /**
     * For kinds whose pictures have objects (info.has_objects): the objects in picture `index`.
     * `get` must be qat_dataset_get_resized then.
     */
    const qat_objects *(*objects)(const qat_dataset *dataset, int index);
    /** The stored picture, with info.channels. NULL: `get` gives the stored picture. */
    qat_status (*picture)(const qat_dataset *dataset, int index, qat_picture *picture,
                          qat_error *err);
    /** Kinds whose samples are picture files that `picture` decodes: the file of sample `index`. */
    qat_file_name (*file)(const qat_dataset *dataset, int index);
    /** Kinds whose picture files are parts of larger files: the bytes of such a part. free() them
     *  also after an error. */
    qat_status (*bytes)(const qat_dataset *dataset, int index, uint8_t **bytes, size_t *count,
                        qat_error *err);
    /** Have the data a validation split of their own? Then `open` is called for it, too, instead of
     *  drawing one from the training split. NULL: no. */
    bool (*validates)(const qat_dataset_options *options);
    /** QAT_SAMPLE_SOUND: the samples of a sound, [qat_wave_samples(info.height)], of which `get`
     *  gives the codes. */
    qat_status (*sound)(const qat_dataset *dataset, int index, int16_t *samples, qat_error *err);
    /** A piece of background noise as long as that, chosen by rng; false: the data have none. rng
     *  NULL: is there any? */
    bool (*background)(const qat_dataset *dataset, qat_rng *rng, int16_t *samples);
    /** Move what `own` holds of the samples kept[0..n), which rise, to the front; NULL: it holds
     *  nothing by sample. */
    void (*keep)(qat_dataset *dataset, const int *kept, int n);
} qat_dataset_kind;

/** What a kind saw and passed over. */
enum { QAT_IGNORED_ENDINGS = 8, QAT_ENDING_MAX = 12 };
typedef struct qat_ignored {
    struct {
        char ending[QAT_ENDING_MAX]; /* ".webp"; "" for files without one */
        int files;
    } endings[QAT_IGNORED_ENDINGS];
    int n_endings, files; /* all files, also of endings beyond those */
    int folders;          /* subfolders of class folders */
    int rows, boxes;      /* of a table without a split; without area */
    int listed;           /* in validation_list.txt, where no validation split is wanted */
} qat_ignored;

/** Count a file that is no picture. */
void qat_ignored_add(qat_ignored *ignored, const char *file_name);
void qat_ignored_join(qat_ignored *ignored, const qat_ignored *more);
/** "4 files (.webp 3, .txt 1), 2 subfolders of class folders", or "". */
void qat_ignored_text(const qat_ignored *ignored, char *text, size_t max);

struct qat_dataset {
    const qat_dataset_kind *kind;
    qat_dataset_info info;
    qat_ignored ignored;
    qat_split split;     /* whose samples these are */
    bool is_part;        /* of one set: options.split */
    bool undrawn;        /* options.undrawn, and the kind draws: there are no values, no targets */
    bool jpeg_scale;     /* options.jpeg_scale */
    size_t sample_bytes; /* bytes of one sample's values */
    qat_arena arena;     /* names, paths and the kind's own structures; closing frees it */
    void *values;        /* for kinds that keep all samples: info.count of them, 64-byte aligned */
    int32_t *labels;     /* of all samples; NULL: samples have objects, or the kind has no labels */
    float *targets;      /* [info.count, info.n_targets]; NULL if that is 0 */
    void *own;           /* for other kinds: their own data, in the arena */
    uint64_t memory;     /* most bytes: options.memory or its default */
    uint64_t held;       /* bytes noted by qat_dataset_hold */
};

#define QAT_DATASET_DECLARE_(name) extern const qat_dataset_kind qat_kind_##name;
QAT_DATASET_KINDS(QAT_DATASET_DECLARE_)

/** "train", "test" or "validation". */
const char *qat_split_name(qat_split split);

/** train_count or test_count of options, by the split. */
int qat_split_count(const qat_dataset_options *options, qat_split split);

/**
 * Check a shape and set it (info.count, height, width, channels, type; min and max as for bytes).
 * These are errors: no samples or more than 2^31 - 1, a side below 1, more than 2^28 values per
 * sample.
 * @param source  the file or kind, for messages
 */
qat_status qat_dataset_set_shape(qat_dataset *dataset, const char *source, int64_t count,
                                 const int64_t hwc[3], qat_sample_type type, qat_error *err);

/**
 * Note that `bytes` are about to be allocated for what `source` (a file or kind) holds. If all that
 * is held would be more than options.memory, the error is QAT_ERR_LIMIT. What is held beside these
 * helpers' own allocations: files that were read, and tables in the arena.
 */
qat_status qat_dataset_hold(qat_dataset *dataset, const char *source, uint64_t bytes,
                            qat_error *err);
/** Note that so many of them were freed. */
void qat_dataset_release(qat_dataset *dataset, uint64_t bytes);

/**
 * Read a whole file of at most `most` bytes, unpacked, and hold its bytes. The size that the file
 * says it has is checked against options.memory before anything is allocated. free() the bytes,
 * then qat_dataset_release.
 */
qat_status qat_dataset_read(qat_dataset *dataset, const char *path, uint64_t most, uint8_t **bytes,
                            size_t *count, qat_error *err);

/** Allocate values and labels of all info.count samples. */
qat_status qat_dataset_allocate(qat_dataset *dataset, qat_error *err);

/**
 * Allocate targets of all info.count samples, all "not known", and set info: this many attributes
 * with these names (not copied), with or without a value.
 */
qat_status qat_dataset_allocate_targets(qat_dataset *dataset, int attributes,
                                        const char *const *names, bool value, qat_error *err);

/** Allocate targets [info.count, n] of another kind, all "not known", and set info. */
qat_status qat_dataset_allocate_values(qat_dataset *dataset, qat_target_kind kind, size_t n,
                                       qat_error *err);

/** Move items kept[0..n), which rise, of `size` bytes each, to the front. */
void qat_keep_items(void *items, size_t size, const int *kept, int n);

/** Keep the samples kept[0..n), which rise, alone; kept NULL: the first n, of values in memory. */
void qat_dataset_keep(qat_dataset *dataset, const int *kept, int n);
/** Keep at most `limit` samples (0: all), spread evenly over all, so that every class stays. */
qat_status qat_dataset_thin_out(qat_dataset *dataset, int limit, qat_error *err);

/**
 * Of a set that holds all samples keep those of one split: of each class (of data without classes:
 * of all) the share options->split trains, at least one sample each where there are two. Which ones
 * is drawn from options->seed.
 */
qat_status qat_dataset_take_part(qat_dataset *dataset, const qat_dataset_options *options,
                                 qat_split split, qat_error *err);

/** The path of a file; cut to max. */
void qat_file_path(qat_file_name name, char *path, size_t max);

/** options->width; if it is 0, options->height; if both are 0, otherwise. */
int qat_dataset_width(const qat_dataset_options *options, int otherwise);

/** The smaller of count and limit; limit 0 means count. */
int qat_dataset_limit(int count, int limit);

/** `get` for a kind that keeps all samples in values and labels. */
qat_status qat_dataset_get_kept(const qat_dataset *dataset, int index, void *values, int *label,
                                qat_error *err);

/** `get` for a kind with objects: the picture, resized to info's size; label 0. */
qat_status qat_dataset_get_resized(const qat_dataset *dataset, int index, void *values, int *label,
                                   qat_error *err);

/** `get` for a kind with `sound`: the codes of its samples. */
qat_status qat_dataset_get_sound(const qat_dataset *dataset, int index, void *values, int *label,
                                 qat_error *err);

/** The class of a sample; 0 for a kind with objects. */
int qat_dataset_label(const qat_dataset *dataset, int index);

/** The stored picture with info.channels; free its pixels. */
qat_status qat_dataset_picture(const qat_dataset *dataset, int index, qat_picture *picture,
                               qat_error *err);

/**
 * The path of folder/name or, if only that exists, folder/name.gz; in the arena. If neither exists,
 * the error names both.
 */
qat_status qat_dataset_find(qat_dataset *dataset, const char *folder, const char *name,
                            const char **path, qat_error *err);

/** "folder/name" in the arena, or NULL. */
char *qat_dataset_join(qat_arena *arena, const char *folder, const char *name);

/** QAT_OK, or the error "file: label L of sample I is not in 0..classes-1". */
qat_status qat_dataset_check_label(const char *file, int64_t index, int64_t label, int classes,
                                   qat_error *err);

/**
 * Set info.classes from the labels of a file that does not give their number: `wanted` if it is > 0
 * and larger than all labels, else the largest label + 1. Labels must be in 0..65535.
 * @param label_at  returns label number i of labels
 */
qat_status qat_dataset_set_classes(qat_dataset *dataset, const char *file, const void *labels,
                                   int64_t (*label_at)(const void *labels, int64_t index),
                                   int64_t count, int wanted, qat_error *err);

#endif
