/**
 * Data sets: one interface for files and procedural sets (pictures drawn by a program), and a
 * loader that shuffles, augments and prefetches batches. Everything is a function of (seed, epoch,
 * index), so any number of threads gives the same bytes.
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

/** Validation samples are a part of the training split: qat_dataset_options.validation. */
typedef enum qat_split { QAT_SPLIT_TRAIN, QAT_SPLIT_TEST, QAT_SPLIT_VALIDATION } qat_split;

typedef enum qat_sample_type {
    QAT_SAMPLE_U8,   /* pixels */
    QAT_SAMPLE_F32,  /* real values (.npy) */
    QAT_SAMPLE_SOUND /* codes of a sound's log-mel spectrogram (qat/sound.h), a byte each:
                        [frames, bands, 1] */
} qat_sample_type;

/**
 * Every kind of data, in the order of a recipe's data.kind: X(name) for qat_kind_<name> in
 * datasets/. This is the only list of kinds; everything that names or counts them is made from it.
 */
#define QAT_DATASET_KINDS(X)                                                                       \
    X(digits)                                                                                      \
    X(shapes)                                                                                      \
    X(idx)                                                                                         \
    X(cifar10)                                                                                     \
    X(cifar100)                                                                                    \
    X(folder)                                                                                      \
    X(list)                                                                                        \
    X(tar)                                                                                         \
    X(tfrecord)                                                                                    \
    X(npy)                                                                                         \
    X(coco)                                                                                        \
    X(scenes) X(faces) X(patterns) X(table) X(words) X(numbers) X(tones) X(masks) X(keywords) X(wav)
/** The kinds as text, "digits|shapes|...", a constant expression. */
#define QAT_DATASET_OR_(name)  "|" #name
#define QAT_DATASET_KINDS_TEXT (&("" QAT_DATASET_KINDS(QAT_DATASET_OR_))[1])

/** The number of kinds. In the functions below, i is 0 .. number - 1. */
int qat_dataset_kinds(void);
const char *qat_dataset_kind_name(int i);
/** Does kind i read files? Its options then need a path. */
bool qat_dataset_kind_needs_path(int i);
/**
 * Does kind i take the size of its pictures from the options' height and width? The data of the
 * other kinds have a size of their own, and the options can change it.
 */
bool qat_dataset_kind_resizes(int i);
/** The values that info.has_objects and info.has_targets have for data of kind i. */
bool qat_dataset_kind_has_objects(int i);
bool qat_dataset_kind_has_targets(int i);

/** 4 GiB: the default of data.memory. */
#define QAT_DEFAULT_DATA_MEMORY (UINT64_C(1) << 32)

/**
 * Where the data come from: the [data] section of a recipe. Zeroed members have their default
 * values.
 */
typedef struct qat_dataset_options {
    size_t struct_size; /* sizeof this struct, or 0: as in version 0.1 (qat.h) */
    const char *kind;   /* one of QAT_DATASET_KINDS */
    const char *path; /* idx, cifar10, cifar100: the folder; folder: the folder with train/ and val/
                         (or test/), each with one folder per class; list: a text file of pictures
                         and classes, or a folder with train.txt and test.txt; tar, tfrecord: the
                         folder with shards, a pattern with * ? [..], or one shard; npy: the folder
                         with {train,test}_x.npy and {train,test}_y.npy; coco: the folder that
                         contains the next four; table: the CSV file; masks: the folder with train/
                         and val/ (or test/), each with images/ and masks/; wav: as folder, or the
                         layout of Speech Commands */
    /*
     * coco: for each split, the file of annotations (NULL: instances_train.json,
     * instances_val.json) and the folder of the pictures it names (NULL: images).
     */
    const char *annotations[2], *images[2];
    /*
     * table: images is relative to its folder (NULL: that folder). attributes is COLUMN=TEXT, ...;
     * value is the column of a number (NULL: none). numbers: value is the columns to be learned,
     * separated by commas.
     */
    const char *attributes, *value;
    bool one_class; /* coco, scenes: all objects have class 0 */
    uint64_t seed;  /* procedural sets */
    /*
     * Procedural sets: the number of samples (0: 10,000 and 2,000). Files: the most samples (0:
     * all). The first ones are taken. From a folder, and with `split`, the samples are taken evenly
     * from all of them instead.
     */
    int train_count, test_count;
    int classes; /* idx, npy, list, tar, tfrecord, masks: labels must be below this; 0: largest
                    label + 1. patterns: how many there are; 0: 1000 */
    /*
     * The size of the pictures. folder, list, tar, tfrecord, coco, table, masks: pictures are
     * resized to this size; 0 means height 32, width = height, 3 channels. scenes, faces, patterns:
     * square pictures of side height are drawn; 0 means 128 (scenes), 48 (faces) and 256
     * (patterns). Pictures of other kinds are resized if a height or a width is given.
     */
    int height, width, channels;
    int resize_short;    /* folder, list, tar, tfrecord, table: resize the short side to this, then
                            crop the centre; 0: resize to height x width */
    double central_crop; /* folder, list, tar, tfrecord, table: see qat_image_size */
    int max_pixels; /* folder, list, tar, tfrecord, coco, table, masks: pictures of more pixels are
                       an error; see qat_picture_read_within. 0: QAT_PICTURE_MAX_PIXELS */
    /*
     * 0: the data have a training split and a test split. Otherwise, 0 < split < 1: the data have
     * no test split, and one is made. This share of the samples is for training, the others are for
     * testing. The share is taken from each class. (Where samples have no single class, it is taken
     * from all samples.) `seed` decides which ones. Each kind then reads:
     *   folder: the class folders in path/train if that exists, otherwise those in path
     *   tar, tfrecord: all shards
     *   list:   the file, or train.txt if path is a folder
     *   npy:    x.npy and y.npy, or train_x.npy and train_y.npy
     *   coco:   annotations[0] and images[0]
     *   table:  all lines; a column "split" is an error
     *   masks:  the folder path/train if that exists, otherwise path itself
     *   wav:    as folder
     * For other kinds split is an error: they have a test split already.
     */
    double split;
    uint64_t memory;   /* the most bytes that this split may take in memory, decoded. A file that
                          would take more is QAT_ERR_LIMIT before it is read. 0:
                          QAT_DEFAULT_DATA_MEMORY */
    double validation; /* 0 <= validation < 1: this share of the training split is the validation
                          split, drawn as by `split`, and is no longer in the training split */
    bool presence;  /* coco, scenes: samples have no boxes, but labels: which classes are there */
    bool pixels;    /* scenes: samples have no boxes, but a class for each pixel; 0 is background */
    int ignore;     /* masks: 1 + the value of pixels that are not known. 0: that value is 255; -1:
                       there is none */
    double seconds; /* wav: how long a sound is; 0: 1. keywords are of 1 s */
    const char *words; /* wav: these classes alone, separated by commas; sounds of the others are
                          _unknown_, pieces of _background_noise_ are _silence_ (NULL: all classes,
                          and no others) */
    bool undrawn; /* procedural sets: nothing is drawn. The set tells its shape and its counts, and
                     the classes of samples that have one; to get a sample is an error. Ranges of
                     real values are those of the kind, target_mean is 0, target_deviation 1 */
    /* tar, tfrecord: called while shards are indexed; return false to stop (QAT_ERR_STATE). NULL:
     * nothing is called */
    bool (*tick)(void *context, int64_t done, int64_t total);
    void *tick_context;
    bool jpeg_scale; /* folder, list, tar, tfrecord, table: decode a JPEG at 1/2, 1/4 or 1/8 of its
                        size if that has the pixels that a sample needs. Other bytes come of it */
} qat_dataset_options;

/** What samples have to be learned beside a class, boxes or attributes. */
typedef enum qat_target_kind {
    QAT_TARGETS_NONE,
    QAT_TARGETS_ATTRIBUTES, /* info.has_targets: attributes, then a value */
    QAT_TARGETS_VALUES,     /* real values, of any number */
    QAT_TARGETS_LABELS,     /* of each of info.classes: 1 it is there, 0 it is not */
    QAT_TARGETS_PIXELS      /* the class of each pixel, [height, width] */
} qat_target_kind;

/** An open split of a data set. Any number of threads may read it at the same time. */
typedef struct qat_dataset qat_dataset;

typedef struct qat_dataset_info {
    int count;
    int height, width, channels; /* 1-D signals: height 1 */
    qat_sample_type type;
    int classes;               /* 0: samples have a value alone */
    const char *const *labels; /* names of the `classes` classes, or NULL */
    float min, max;            /* QAT_SAMPLE_F32: over the whole split; U8: 0, 255 */
    bool has_objects;          /* samples have objects with boxes; their labels are 0 */
    int most_objects;          /* most objects in one sample */
    /*
     * The classes are attributes: a sample may have several of them. The attributes are in the
     * sample's targets; its label is 0.
     */
    bool has_targets;
    bool has_value;   /* with targets: some samples may also have a value */
    const char *name; /* for logs, for example "idx fashion-mnist/train" */
    int skipped;      /* samples that qat_dataset_skip left out */
    qat_target_kind targets;
    int n_targets; /* values of one sample's targets; 0: there are none */
    float target_mean,
        target_deviation; /* QAT_TARGETS_VALUES: of all that are known in the split */
} qat_dataset_info;

/**
 * Open one split. Errors name the file and what is wrong: missing, truncated, of another format
 * (the magic number found and the one expected), labels out of range (index and value), counts that
 * differ.
 */
qat_status qat_dataset_open(qat_dataset **dataset, const qat_dataset_options *options,
                            qat_split split, qat_error *err);
void qat_dataset_close(qat_dataset *dataset);
const qat_dataset_info *qat_dataset_info_of(const qat_dataset *dataset);

/**
 * Get sample `index`: its label, and its height * width * channels values in HWC order, in the type
 * of the samples. The same index always gives the same values. Any thread may call this. Pictures
 * in files are decoded here. A broken picture is an error that names its file.
 */
qat_status qat_dataset_get(const qat_dataset *dataset, int index, void *values, int *label,
                           qat_error *err);

/**
 * The targets of sample `index`, [n_targets]. Attributes: 0 no, 1 yes, then a real value, for
 * example an age. NaN: not known. NULL if there are none. The data set owns them.
 */
const float *qat_dataset_targets(const qat_dataset *dataset, int index);

/* ------------------------------------------------------------------ first look */

/** What a sample is called in messages: "picture", "sound", "signal" or "sample". */
const char *qat_dataset_unit(const qat_dataset_info *info);

/**
 * Say in one line what was found: "folder cats: 240 training pictures, 60 test pictures, 3 classes
 * (cat 100, dog 120, bird 80); ignored: 4 files (.webp 3, .txt 1)". The number after a class counts
 * its samples in both splits.
 * @param test  NULL: there is no test split
 * @param text  free() it
 */
qat_status qat_dataset_describe(const qat_dataset *train, const qat_dataset *test, char **text,
                                qat_error *err);

/** Samples that cannot be read. Release the list with qat_faults_free. */
enum { QAT_FAULTS_TOLD = 5 };
typedef struct qat_faults {
    int count;
    int *samples;                                      /* [count], in rising order */
    char told[QAT_FAULTS_TOLD][QAT_ERROR_MESSAGE_MAX]; /* the reasons, for the first ones */
    int height[2], width[2]; /* least and most of the pictures that were decoded; 0: none was */
} qat_faults;

/**
 * Find the picture files that cannot be read. All compute threads work on it. Data that are kept in
 * memory have no faults: they were read completely when they were opened.
 *
 * A broken picture is a fault, not an error. Errors are QAT_ERR_NOMEM and a stop by tick; there is
 * then nothing to free.
 * @param decode  true: decode every file. false: only look at the first and last bytes of PNG and
 *                JPEG files; decode files that look cut, and files of other formats
 * @param tick    called after every few samples; return false to stop (QAT_ERR_STATE). May be NULL
 */
qat_status qat_dataset_check(const qat_dataset *dataset, bool decode,
                             bool (*tick)(void *context, int64_t done, int64_t total),
                             void *context, qat_faults *faults, qat_error *err);
void qat_faults_free(qat_faults *faults);

/**
 * Leave these samples out and count them in info.skipped. It is an error if no sample would be
 * left. No other thread may use the data set meanwhile.
 */
qat_status qat_dataset_skip(qat_dataset *dataset, const qat_faults *faults, qat_error *err);

/** How data are packed into shards. Zeroed members have their default values. */
typedef struct qat_pack_options {
    size_t struct_size;   /* sizeof this struct, or 0: as in version 0.1 (qat.h) */
    const char *folder;   /* where the shards are written; it is made */
    uint64_t shard_bytes; /* the size of a shard, at most; 0: QAT_DEFAULT_SHARD */
    int resize;           /* a picture whose short side is longer is made smaller; 0: none is */
    int quality;          /* 1..100: pictures that have no file of their own, or are resized, are
                             stored as JPEG of this quality; 0: as PNG */
    bool skip_broken;     /* leave out what cannot be read; otherwise it is an error */
    bool overwrite;       /* shards that are there already; otherwise they are an error */
    /** Called now and then; return false to stop (QAT_ERR_STATE). May be NULL. */
    bool (*tick)(void *context, int64_t done, int64_t total);
    /** Called for each sample that is left out, with the reason. May be NULL. */
    void (*broken)(void *context, const char *message);
    void *context;
} qat_pack_options;

enum { QAT_DEFAULT_SHARD = 1 << 28 }; /* 256 MiB */

/** What was written; by split: training, test. */
typedef struct qat_pack_report {
    int64_t samples[2], skipped[2];
    int shards[2];
    uint64_t bytes[2]; /* of the shards */
} qat_pack_report;

/**
 * Write pictures with a class into shards that data of kind `tar` read: folder/train-000000.tar
 * ..., val-000000.tar ..., each with its index, and classes.txt if the classes have names. The
 * bytes are a function of the data and the options, for any number of threads. Every picture is
 * decoded once, to see that it can be. A file that is not resized is stored as it is.
 *
 * A file appears when it is whole. Until all are written, a file PACKING lies in the folder. Data
 * in such a folder cannot be opened; packing may begin anew there.
 * @param data  the training split and the test split; one of them may be NULL
 */
qat_status qat_dataset_pack(const qat_dataset *const data[2], const qat_pack_options *options,
                            qat_pack_report *report, qat_error *err);

/**
 * A short summary of data, to find out later whether they changed. What it holds depends on where
 * the samples are:
 *   in picture files:  for each sample a hash of the file's name, and a hash of the file's size and
 *                      of the sample's label, targets and boxes. The pixels are not read.
 *   kept in memory:    for each sample its number, and a hash of its values, label and targets
 *   drawn by a program: nothing for single samples (n is 0)
 * sha256 is over all of this, the kind of the data, and the sizes and numbers in qat_dataset_info.
 */
typedef struct qat_data_digest {
    int64_t count;              /* number of samples */
    int64_t bytes;              /* size of all picture files, or of all values in memory */
    uint8_t sha256[32];         /* equal for equal data */
    int n;                      /* count or 0 */
    uint32_t *names, *contents; /* [n]; the two hashes of each sample */
} qat_data_digest;

/** Make the digest of one split. Release it with qat_data_digest_free. */
qat_status qat_dataset_digest(const qat_dataset *dataset, qat_data_digest *digest, qat_error *err);
void qat_data_digest_free(qat_data_digest *digest);
/**
 * What decodes JPEG: the version of the build, and the library that is loaded, for example
 * "libjpeg-turbo 2.1.5, libjpeg.so.62.3.0"; or "nothing". Another library may give other pixels, so
 * the digest of data with JPEG files has it.
 */
void qat_jpeg_decoder(char *text, size_t max);
/**
 * Compare digests of now with digests of an earlier time. QAT_OK means that both splits are
 * unchanged. Otherwise the result is QAT_ERR_ARGUMENT. The message then has both numbers of samples
 * and names the first sample that is new or changed. If nothing is new, it says where samples are
 * gone.
 *
 * Each argument is an array of 2, with index qat_split. If the splits were made by options.split, a
 * sample that moved from one split to the other does not count as new.
 */
qat_status qat_dataset_compare(const qat_dataset *const data[2], const qat_data_digest *now,
                               const qat_data_digest *then, qat_error *err);

/** The objects in one picture. */
typedef struct qat_objects {
    int height, width; /* of the stored picture, in pixels */
    int count;
    const qat_truth *truth; /* [count] */
} qat_objects;

/** The objects of sample `index`; NULL if info.has_objects is not set. The data set owns them. */
const qat_objects *qat_dataset_objects(const qat_dataset *dataset, int index);

enum { QAT_SSD_EXPAND_MAX = 8 };

/** Random changes of training pictures, on bytes, before normalisation. All zero: no changes. */
typedef struct qat_augment {
    int crop_pad; /* pad by this many pixels (edge value 0), then crop at a random place; signals
                     (height 1) only move along their width */
    bool flip;    /* mirror left-right with probability 1/2 */
    float brightness; /* random factor in 1 +- this */
    float contrast;   /* random factor for the distance from the picture's mean */
    float saturation; /* RGB only: random factor */
    float hue;        /* RGB only: turned by up to +- this share of the colour circle */
    int cutout;       /* a square of this side, at a random place, gets the picture's mean */
    float noise;      /* F32 samples: uniform noise in +- this is added */
    /*
     * A random part of the picture is resized instead of the whole: least and most area (as a share
     * of the picture) and aspect (width / height). Least area 0: the whole picture.
     */
    float crop_area[2], crop_aspect[2];
    /* Pictures with objects, in this order, then flip and colours (docs/preprocessing.md): */
    float ssd_expand; /* > 1: with probability 1/2 place the picture on a grey canvas, up to this
                         many times as large */
    bool ssd_crop;    /* cut out a part in which some object keeps a randomly drawn IoU */
    /* Sounds, in this order (docs/preprocessing.md): */
    int time_shift;   /* ms: begin up to so much later or earlier; silence comes from outside */
    float gain;       /* random factor in 1 +- this */
    float background; /* add a piece of background noise, at most so loud (0..1) */
    float background_chance; /* to this share of the sounds */
} qat_augment;

/**
 * Augment one picture in place, with random numbers keyed by (seed, epoch, index). scratch: as many
 * bytes as values.
 */
void qat_augment_u8(const qat_augment *augment, uint8_t *values, int height, int width,
                    int channels, uint64_t seed, int64_t epoch, int64_t index, uint8_t *scratch);

typedef struct qat_loader_options {
    int batch;
    bool shuffle;   /* a new permutation in each epoch, from (seed, epoch) */
    bool drop_last; /* leave out an incomplete last batch */
    uint64_t seed;
    qat_augment augment;
    const float *mean, *std; /* per channel, in pixel units; NULL: 0, 1. Copied */
    int threads;             /* threads that decode in the background, >= 1 */
    int prefetch;    /* batches to prepare in advance, >= 1; fewer where memory does not allow it */
    uint64_t memory; /* the most bytes of the data set (what it keeps in memory) and of all prepared
                        batches together; 0: what the data set was opened with */
} qat_loader_options;

/** One batch. The loader owns it; it is valid until the next call of qat_loader_next. */
typedef struct qat_batch {
    int count;            /* number of samples */
    const uint8_t *bytes; /* U8 samples: augmented pixels [count, H, W, C]; else NULL */
    const float
        *real; /* (pixel - mean) / std in float32, or F32 samples normalised in the same way */
    const int32_t *labels;
    const qat_objects *objects; /* [count], with augmented boxes; NULL: the data have none */
    const float *targets;       /* [count, n_targets]; NULL: the data have none */
    int n_targets;              /* of one sample: info.n_targets */
    int64_t epoch;
    int index; /* of the batch in its epoch */
} qat_batch;

/** A loader. One thread at a time may use it. Several loaders may share a data set. */
typedef struct qat_loader qat_loader;
/**
 * Create a loader of dataset (borrowed) and start its threads. QAT_ERR_ARGUMENT: a value is out of
 * range, std is not above 0, or an augmentation does not fit the samples. Ranges: brightness,
 * contrast, saturation in 0..1, hue in 0..0.5, crop_pad up to the width, crop_area in 0..1,
 * crop_aspect in 0.1..10. noise is for F32 samples only, time_shift, gain and background for sounds
 * only, all others for U8 only, saturation and hue for three channels. QAT_ERR_LIMIT: two
 * batches would take more than options->memory leaves.
 */
qat_status qat_loader_create(qat_loader **loader, const qat_dataset *dataset,
                             const qat_loader_options *options, qat_error *err);
void qat_loader_free(qat_loader *loader);         /* joins the threads */
int qat_loader_batches(const qat_loader *loader); /* per epoch */
/**
 * From now on prepare only samples [begin, end) of each batch, as far as the batch has them (none
 * if end is not above begin), and continue with the first batch: a process that shares batches with
 * others has no use for the rest.
 */
void qat_loader_take_samples(qat_loader *loader, int begin, int end);
/**
 * From now on prepare only the batches of an epoch whose index is `first` plus a multiple of
 * `every` (at least 1; less counts as 1); the others stay in their place, with no samples in them.
 * Continue with the first batch.
 */
void qat_loader_take_batches(qat_loader *loader, int first, int every);
/**
 * From now on leave the values of samples out: batches have labels, objects and targets only.
 * Continue with the first batch.
 */
void qat_loader_leave_values(qat_loader *loader);
/** Continue at this epoch and batch; prefetched batches are dropped. */
qat_status qat_loader_seek(qat_loader *loader, int64_t epoch, int index, qat_error *err);
/**
 * Get the next batch; after the last batch of an epoch, the first of the next epoch. If an error
 * occurred while a batch was prepared (a broken picture, no memory), it is returned in place of
 * that batch. The next call then gives the batch after it.
 */
qat_status qat_loader_next(qat_loader *loader, const qat_batch **batch, qat_error *err);

/**
 * The formats of picture files that can be read: FIRST(name), then X(name) for each further one.
 * This is the only list of them. The content of a file decides on its format, not its name. JPEG
 * needs a build with libjpeg-turbo.
 */
#define QAT_PICTURE_FORMATS(FIRST, X) FIRST(PNG) X(JPEG) X(BMP) X(PNM)
/** The formats as text, "PNG, JPEG, ...", a string literal. */
#define QAT_PICTURE_FIRST_(name) #name
#define QAT_PICTURE_NEXT_(name)  ", " #name
#define QAT_PICTURE_FORMATS_TEXT QAT_PICTURE_FORMATS(QAT_PICTURE_FIRST_, QAT_PICTURE_NEXT_)

enum {
    QAT_PICTURE_MAX_PIXELS = 178956970, /* default limit: about 0.5 GB as RGB */
    QAT_PICTURE_MOST_PIXELS = 1 << 28   /* a limit cannot be larger */
};

/** A picture in its stored size. */
typedef struct qat_picture {
    uint8_t *pixels; /* [height, width, channels]; free() */
    int height, width;
} qat_picture;
/**
 * Decode a picture file in its stored size, into 1 or 3 channels of 8 bits (docs/preprocessing.md).
 * An error names the file. These are errors, before memory is taken: more pixels than
 * QAT_PICTURE_MAX_PIXELS (those of a JPEG in several scans count up to 4 times), a side above
 * 1,000,000, a file too small for its picture. free(pixels) after an error, too. Thread-safe.
 */
qat_status qat_picture_read(qat_picture *picture, const char *path, int channels, qat_error *err);
/** The same with another limit: 1..QAT_PICTURE_MOST_PIXELS, or 0 for QAT_PICTURE_MAX_PIXELS. */
qat_status qat_picture_read_within(qat_picture *picture, const char *path, int channels,
                                   int max_pixels, qat_error *err);

/**
 * Decode a picture file and bring it to height x width x channels: resize the short side to
 * resize_short (0: resize to height x width), bilinear with half-pixel centres, then crop the
 * centre. The formula is in docs/preprocessing.md. order_bgr swaps red and blue.
 */
qat_status qat_image_load(const char *path, int height, int width, int channels, int resize_short,
                          bool order_bgr, uint8_t *values, qat_error *err);
/** Is a file name's ending one of a picture (".png", in any case)? */
bool qat_picture_has_ending(const char *name);
/** The size of a picture after reading. */
typedef struct qat_image_size {
    int height, width, channels; /* channels 1 or 3 */
    double central_crop; /* > 0: crop the centre of the largest rectangle of this shape, to this
                            share (..1] of both sides, and resize it with prefiltering */
    int resize_short; /* otherwise: resize the short side to this and crop the centre; 0: resize to
                         height x width */
    bool order_bgr;
    int max_pixels;  /* of the stored picture, see qat_picture_read_within; 0: the default limit */
    bool jpeg_scale; /* decode a JPEG at 1/2, 1/4 or 1/8 of its size if that is enough */
} qat_image_size;
/** Like qat_image_load, or with a central crop: docs/preprocessing.md. */
qat_status qat_image_read(const char *path, const qat_image_size *size, uint8_t *values,
                          qat_error *err);
/** Resize bytes by the bilinear formula. */
void qat_image_resize(const uint8_t *from, int from_h, int from_w, uint8_t *to, int to_h, int to_w,
                      int channels);

/* ------------------------------------------------------------------ sounds */

/** A sound of one channel, QI_SOUND_RATE (16,000) samples a second. */
typedef struct qat_wave {
    int16_t *samples; /* free() */
    size_t count;
} qat_wave;

/** Can this build read WAV files (libsndfile)? If not, they are refused with a sentence. */
bool qat_wave_can_read(void);
/** Is a file name's ending ".wav", in any case? */
bool qat_wave_has_ending(const char *name);
/**
 * Read a WAV file: PCM of 8, 16, 24 or 32 bits or float32, of one channel or two, which are mixed
 * (docs/preprocessing.md). An error names the file. Another rate than QI_SOUND_RATE is an error
 * that says how to convert the file. free(samples) after an error, too. Thread-safe.
 * @param most  read the first so many samples alone; 0: all. More than QAT_WAVE_MOST_SAMPLES are
 *              QAT_ERR_LIMIT, before memory is taken
 */
qat_status qat_wave_read(qat_wave *wave, const char *path, size_t most, qat_error *err);
enum { QAT_WAVE_MOST_SAMPLES = 1 << 26 }; /* 70 minutes, 128 MiB */
/** The samples that so many frames of a spectrogram take. */
size_t qat_wave_samples(int frames);
/**
 * The codes of `frames` frames, [frames, QI_SOUND_BANDS], by qi_sound_frame: what a device
 * computes.
 * @param samples  [qat_wave_samples(frames)]
 */
void qat_wave_codes(const int16_t *samples, int frames, uint8_t *codes);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
