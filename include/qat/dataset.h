/**
 * Data: one interface over files and procedural sets, and a loader that shuffles, augments and
 * prefetches batches. Everything is a function of (seed, epoch, index): the same bytes for any
 * number of threads.
 */
#ifndef QAT_DATASET_H
#define QAT_DATASET_H

#include "qat/detect.h"
#include "qat/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef enum qat_split { QAT_SPLIT_TRAIN, QAT_SPLIT_TEST } qat_split;

typedef enum qat_sample_type {
    QAT_SAMPLE_U8, /* pixels */
    QAT_SAMPLE_F32 /* real values (.npy) */
} qat_sample_type;

/**
 * Every kind of data, in the order of a recipe's data.kind: X(name) for qat_kind_<name> in
 * datasets/. The one list: what names kinds or counts them is made from it.
 */
#define QAT_DATASET_KINDS(X)                                                                       \
    X(digits)                                                                                      \
    X(shapes) X(idx) X(cifar10) X(folder) X(list) X(npy) X(coco) X(scenes) X(faces) X(table)
/** "digits|shapes|...", a constant expression. */
#define QAT_DATASET_OR_(name)  "|" #name
#define QAT_DATASET_KINDS_TEXT (&("" QAT_DATASET_KINDS(QAT_DATASET_OR_))[1])

/** How many; name of kind i; does it read files, so that options need a path? */
int qat_dataset_kinds(void);
const char *qat_dataset_kind_name(int i);
bool qat_dataset_kind_needs_path(int i);
/** Do its pictures need options' height and width? Others have a size, which they can change. */
bool qat_dataset_kind_resizes(int i);
/** As info.has_objects and info.has_targets of its data. */
bool qat_dataset_kind_has_objects(int i);
bool qat_dataset_kind_has_targets(int i);

/** Where data comes from; the [data] section of a recipe. Zeroed members take their defaults. */
typedef struct qat_dataset_options {
    const char *kind; /* one of QAT_DATASET_KINDS */
    const char *path; /* idx, cifar10: the folder; folder: the folder that holds train/ and val/ (or
                         test/), each with a folder per class; list: a text file of pictures and
                         classes, or a folder that holds train.txt and test.txt; npy: the folder
                         that holds {train,test}_x.npy and {train,test}_y.npy; coco: the folder
                         that the next four are in; table: the CSV file */
    /* coco: by split, the file of annotations (NULL: instances_train.json, instances_val.json) and
     * the folder of the pictures it names (NULL: images). */
    const char *annotations[2], *images[2];
    /* table: images: from its folder, NULL: images. What is read from it: COLUMN=TEXT, ...;
     * the column of a number, NULL: none. */
    const char *attributes, *value;
    bool one_class; /* coco, scenes: all objects are of class 0 */
    uint64_t seed;  /* procedural sets */
    /* Procedural sets: how many (0: 10,000 and 2,000). Files: at most that many (0: all): the first
     * ones, of a folder every k-th, so that no class is lost. */
    int train_count, test_count;
    int classes; /* idx, npy, list: labels must be below this; 0: largest label + 1 */
    /* folder, list, coco, table: what pictures are resized to (0: 32, as wide as high, 3); scenes,
     * faces: their side (0: 128, 48); other pictures are resized to height and width where one is
     * given.
     */
    int height, width, channels;
    int resize_short; /* folder, list, table: resize the short side to this, then crop the centre;
                         0: squash */
    double central_crop; /* folder, list, table: as in qat_image_size */
} qat_dataset_options;

/** An open split of a data set. Any number of threads may read it at the same time. */
typedef struct qat_dataset qat_dataset;

typedef struct qat_dataset_info {
    int count;
    int height, width, channels; /* 1-D signals: height 1 */
    qat_sample_type type;
    int classes;
    const char *const *labels; /* class names, `classes` of them, or NULL */
    float min, max;            /* QAT_SAMPLE_F32: over the whole split; U8: 0, 255 */
    bool has_objects;          /* samples hold objects with boxes; their labels are 0 */
    int most_objects;          /* in one of them */
    /* Its classes are attributes, each of which a sample has or has not, and samples have targets;
     * their labels are 0. */
    bool has_targets;
    bool has_value;   /* with targets: some may have a value, too */
    const char *name; /* for logs, e.g. "idx fashion-mnist/train" */
} qat_dataset_info;

/**
 * Open one split. Errors name the file and what is wrong: missing, truncated, foreign (the magic
 * found and the one expected), labels out of range (index and value), counts that differ.
 */
qat_status qat_dataset_open(qat_dataset **dataset, const qat_dataset_options *options,
                            qat_split split, qat_error *err);
void qat_dataset_close(qat_dataset *dataset);
const qat_dataset_info *qat_dataset_info_of(const qat_dataset *dataset);

/**
 * Sample `index`: height * width * channels values, HWC. Thread-safe and deterministic.
 * Folder pictures are decoded here; a broken one is an error that names it.
 */
qat_status qat_dataset_get(const qat_dataset *dataset, int index, void *values, int *label,
                           qat_error *err);

/**
 * Targets of sample `index`, [classes + 1]: its attributes (0 no, 1 yes), then a real value, such
 * as an age; NaN: not known. NULL where info.has_targets is not set. Owned by the data set.
 */
const float *qat_dataset_targets(const qat_dataset *dataset, int index);

/** What is in one picture. */
typedef struct qat_objects {
    int height, width; /* of the picture as it is stored, in pixels */
    int count;
    const qat_truth *truth; /* [count] */
} qat_objects;

/** Of sample `index`; NULL where info.has_objects is not set. Owned by the data set. */
const qat_objects *qat_dataset_objects(const qat_dataset *dataset, int index);

enum { QAT_SSD_EXPAND_MAX = 8 };

/** Random changes of training pictures, on bytes, before normalisation. All zero: none. */
typedef struct qat_augment {
    int crop_pad; /* pad by this many pixels (edge value 0), crop back at a random place; signals
                     (height 1) are moved along their width only */
    bool flip;    /* mirror left-right with probability 1/2 */
    float brightness; /* factor 1 +- this */
    float contrast;   /* about the picture's mean */
    float saturation; /* RGB only */
    float hue;        /* RGB only: turned by +- this share of the circle */
    float noise;      /* F32 samples: uniform +- this much is added */
    /* Instead of bringing the whole picture to size: a part of it, of this share of its area and
     * this aspect (width / height), from least to most; least area 0: none. */
    float crop_area[2], crop_aspect[2];
    /* Pictures with objects, in this order, then flip and colours (docs/preprocessing.md): */
    float ssd_expand; /* > 1: with probability 1/2 on a grey canvas up to so many times as large */
    bool ssd_crop;    /* cut out a part in which an object keeps a drawn IoU */
} qat_augment;

/** Augment one picture in place, keyed by (seed, epoch, index). scratch: as many bytes as values.
 */
void qat_augment_u8(const qat_augment *augment, uint8_t *values, int height, int width,
                    int channels, uint64_t seed, int64_t epoch, int64_t index, uint8_t *scratch);

typedef struct qat_loader_options {
    int batch;
    bool shuffle;   /* a new permutation for every epoch, from (seed, epoch) */
    bool drop_last; /* leave out an incomplete last batch */
    uint64_t seed;
    qat_augment augment;
    const float *mean, *std; /* per channel, pixel units; NULL: 0, 1. Copied. */
    int threads;             /* decoding threads in the background, >= 1 */
    int prefetch;            /* batches prepared ahead, >= 1 */
} qat_loader_options;

/** One batch; owned by the loader, valid until the next call of qat_loader_next. */
typedef struct qat_batch {
    int count;            /* samples in it */
    const uint8_t *bytes; /* U8 samples: augmented pixels [count, H, W, C]; else NULL */
    const float *real;    /* (pixel - mean) / std in float32, or F32 samples normalised likewise */
    const int32_t *labels;
    const qat_objects *objects; /* [count], boxes as augmented; NULL: the data have none */
    const float *targets;       /* [count, classes + 1]; NULL: likewise */
    int64_t epoch;
    int index; /* of the batch in its epoch */
} qat_batch;

/** A loader. One thread at a time may use it; several loaders may share a data set. */
typedef struct qat_loader qat_loader;
/**
 * Borrows dataset. Starts its thread(s). Refused with QAT_ERR_ARGUMENT: values out of range, std
 * that is not above 0, an augmentation that does not fit the samples (brightness, contrast,
 * saturation in 0..1, hue in 0..0.5, crop_pad up to the width, crop_area in 0..1, crop_aspect in
 * 0.1..10; noise goes with F32 alone, everything else with U8 alone, saturation and hue with three
 * channels).
 */
qat_status qat_loader_create(qat_loader **loader, const qat_dataset *dataset,
                             const qat_loader_options *options, qat_error *err);
void qat_loader_free(qat_loader *loader);         /* joins the threads */
int qat_loader_batches(const qat_loader *loader); /* per epoch */
/** Continue at this epoch and batch; what was prefetched is dropped. */
qat_status qat_loader_seek(qat_loader *loader, int64_t epoch, int index, qat_error *err);
/**
 * The next batch, going on to the next epoch by itself. An error met while it was prepared (a
 * broken picture, no memory) is returned in its place, whichever thread met it; the call after that
 * gives the batch behind it.
 */
qat_status qat_loader_next(qat_loader *loader, const qat_batch **batch, qat_error *err);

/** A picture of any size. */
typedef struct qat_picture {
    uint8_t *pixels; /* [height, width, channels]; free() */
    int height, width;
} qat_picture;
/**
 * Decode a picture file as it is stored, into 1 or 3 channels. An error names the file;
 * free(pixels) after an error too. Any thread may call it.
 */
qat_status qat_picture_read(qat_picture *picture, const char *path, int channels, qat_error *err);

/**
 * Decode a picture file (stb_image: PNG, JPEG, BMP, ...) and bring it to height x width x channels:
 * short side to resize_short (0: squash), bilinear with half-pixel centres, central crop. The
 * formula is in docs/preprocessing.md. order_bgr swaps red and blue.
 */
qat_status qat_image_load(const char *path, int height, int width, int channels, int resize_short,
                          bool order_bgr, uint8_t *values, qat_error *err);
/** What a picture is brought to. */
typedef struct qat_image_size {
    int height, width, channels; /* channels 1 or 3 */
    double central_crop; /* > 0: of the largest centred rectangle of this shape the middle, this
                            share (..1] of both its sides, resized with prefiltering */
    int resize_short;    /* else: the short side to this and the centre cut out; 0: squash */
    bool order_bgr;
} qat_image_size;
/** qat_image_load, or with a central crop: docs/preprocessing.md. */
qat_status qat_image_read(const char *path, const qat_image_size *size, uint8_t *values,
                          qat_error *err);
/** Bilinear resize of bytes, the formula itself. */
void qat_image_resize(const uint8_t *from, int from_h, int from_w, uint8_t *to, int to_h, int to_w,
                      int channels);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
