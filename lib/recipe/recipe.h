/** What a recipe holds. Programs ask it by qat_recipe_get and qat_recipe_number (train.h). */
#ifndef QAT_RECIPE_RECIPE_H
#define QAT_RECIPE_RECIPE_H

#include "qat/train.h"

enum { QAT_LIST_MAX = 24 }; /* most values in a list key */

typedef struct qat_int_list {
    int n;
    int64_t v[QAT_LIST_MAX];
} qat_int_list;

typedef struct qat_real_list {
    int n;
    double v[QAT_CHANNEL_VALUES];
} qat_real_list;

/** A step or length of a run: "1200" (steps), "2.5 epochs", "60%" (of the run), "never", "auto". */
typedef enum qat_step_unit {
    QAT_UNIT_STEPS,
    QAT_UNIT_EPOCHS,
    QAT_UNIT_PERCENT,
    QAT_UNIT_NEVER,
    QAT_UNIT_AUTO
} qat_step_unit;

typedef struct qat_steps {
    double amount;
    qat_step_unit unit;
} qat_steps;

typedef struct qat_steps_list {
    int n;
    qat_steps v[QAT_MAX_MILESTONES];
} qat_steps_list;

/** The same in steps, rounded to the nearest. never: INT64_MAX; auto: the value of `automatic`. */
int64_t qat_steps_resolve(const qat_steps *steps, int64_t per_epoch, int64_t total,
                          int64_t automatic);

/** The values of model.arch. qat_arch has the numbers of the first ones. */
#define QAT_ARCHS                                                                                  \
    "layers|convnet|mlp|resnet|mobilenet_v1|mobilenet_v2|inception_v3|inception_small|"            \
    "mobilenet_ssd|imported|resnet20|resnet32|resnet56|resnet18|resnet34|resnet50|"                \
    "resnet101|resnet152" QAT_ARCH_MOBILENETS_("1.0") QAT_ARCH_MOBILENETS_("0.75")                 \
        QAT_ARCH_MOBILENETS_("0.5") QAT_ARCH_MOBILENETS_("0.25")
#define QAT_ARCH_MOBILENETS_(m)                                                                    \
    "|mobilenet_v1_" m "_224|mobilenet_v1_" m "_192|mobilenet_v1_" m "_160|mobilenet_v1_" m "_128"

typedef enum qat_arch { QAT_ARCH_LAYERS, QAT_ARCH_CONVNET, QAT_ARCH_MLP, QAT_ARCH_RESNET } qat_arch;

/** Whose conventions a named network follows: model.convention. */
typedef enum qat_convention {
    QAT_CONVENTION_AUTO, /* PyTorch's if train.init_layout is pytorch, otherwise TensorFlow's */
    QAT_CONVENTION_TENSORFLOW,
    QAT_CONVENTION_PYTORCH
} qat_convention;

/** Names and order of dimensions in the .npz that train.init names: train.init_layout. */
typedef enum qat_init_layout {
    QAT_INIT_LAYOUT_AUTO, /* as QAT, but a file with PyTorch's names is refused */
    QAT_INIT_LAYOUT_QAT,
    QAT_INIT_LAYOUT_PYTORCH /* a state_dict: docs/from-pytorch.md */
} qat_init_layout;

/** How a real value is learned: the values of attributes.value. */
typedef enum qat_value_kind {
    QAT_VALUE_ORDERED,
    QAT_VALUE_SMOOTH_L1,
    QAT_VALUE_L2,
    QAT_VALUE_NONE
} qat_value_kind;

/** What the bits of a layer cost: the values of budget.sensitivity. */
typedef enum qat_sensitivity { QAT_SENSITIVITY_MEASURED, QAT_SENSITIVITY_HESSIAN } qat_sensitivity;

/** The values of model.task. */
typedef enum qat_task_choice { QAT_TASK_AUTO, QAT_TASK_ANOMALY } qat_task_choice;

/** One `key = value` of a [layer.NAME] section. The op of the layer decides which keys exist. */
typedef struct qat_recipe_entry {
    const char *key, *value;
    int line; /* 0: from --set */
} qat_recipe_entry;

typedef struct qat_recipe_layer {
    const char *name;
    int line;
    int n_entries, capacity;
    qat_recipe_entry *entries;
} qat_recipe_layer;

/**
 * Every member holds the file's value or the default, and is named like its key. Texts live as long
 * as the recipe. NaN in input_min, input_max, epsilon, initial_accumulator means auto.
 */
struct qat_recipe {
    const char *source; /* name of the file, for messages */
    struct {
        int kind; /* index into QAT_DATASET_KINDS */
        const char *path;
        int64_t seed, train_count, test_count, classes, height, width, channels, resize_short;
        double central_crop;
        qat_real_list mean, std, crop_area, crop_aspect;
        int64_t crop_pad, cutout, ignore;
        bool flip, ssd_crop, one_class, presence, pixels;
        const char *train_annotations, *test_annotations, *train_images, *test_images;
        const char *attributes, *value, *words;
        double brightness, contrast, saturation, hue, noise, ssd_expand;
        double seconds, gain, background, background_chance;
        int64_t time_shift;
        int64_t threads, prefetch, max_pixels;
        double split, validation; /* as in qat_dataset_options */
        int check;                /* 0 auto, 1 full, 2 ends, 3 no */
        bool skip_broken;
        int64_t memory; /* MiB */
        int jpeg_scale; /* 0 no, 1 auto */
    } data;
    struct {
        const char *name;
        int task; /* qat_task_choice */
        int arch; /* index into QAT_ARCHS */
        qat_int_list filters, strides, hidden;
        int64_t kernel, depth, width, first_stride, steps;
        double multiplier, auxiliary, dropout, bn_momentum, bn_epsilon;
        int activation;            /* index into QAT_ACTIVATIONS */
        const char *onnx, *tflite; /* paths; empty: none */
        const char *head;          /* "average", "flatten", or a number of outputs */
        int output;                /* 0 logits, 1 softmax */
        int convention;            /* qat_convention */
        bool batch_norm;
    } model;
    struct {
        double epochs;
        int64_t steps, batch, shards, eval_batch, seed, threads;
        int optimizer;  /* qat_optimizer_kind */
        int schedule;   /* qat_schedule_kind */
        int plateau_on; /* 0 test, 1 loss */
        double plateau_threshold;
        int64_t plateau_patience, stop_patience;
        double lr, final_lr, factor, power, momentum, rms_decay, beta1, beta2, epsilon;
        double initial_accumulator, weight_decay, clip_norm, clip_value, average_decay,
            label_smoothing;
        bool nesterov, average_ramp, eval_simulated, sync_batch_norm, asynchronous;
        const char *lr_scale; /* "PATTERN:SCALE, ..." */
        qat_steps_list milestones;
        qat_steps every, warmup, eval_every, log_every, checkpoint_every;
        const char *init, *init_map, *init_skip, *freeze; /* for fine-tuning */
        int init_layout;                                  /* qat_init_layout */
    } train;
    struct {
        int classification; /* 0 sigmoid, 1 softmax */
        int finest;         /* finest feature map: 0 at 1/16 of the picture, 1 at 1/8 */
        qat_int_list extra;
        double min_scale, max_scale, match_iou, negatives, box_weight, score_threshold, nms_iou;
        int64_t least_negatives, max_detections;
        bool reduced_lowest;
    } detect;
    struct {
        int value; /* qat_value_kind */
        int64_t steps;
        double low, high, value_weight, within;
    } attributes;
    struct {
        int loss; /* 0 l2, 1 l1, 2 huber */
        double delta;
    } regression;
    struct {
        const char *teacher; /* path of a checkpoint; empty: none */
        double weight, temperature;
    } distill;
    struct {
        bool enabled;
        int layout, profile, bn_fold, forward; /* the enums of quant.h */
        int fraction;                          /* qat_recipe_fraction */
        int64_t weight_bits, activation_bits, input_bits;
        const char *weight_bits_schedule, *activation_bits_schedule; /* qat_recipe_stages */
        double ema_decay, input_min, input_max;
        qat_steps quant_delay, weight_delay, activation_delay, bn_freeze_delay, learn_delay;
        const char *ranges, *weight_ranges, *activation_ranges; /* names; "auto": as ranges */
        bool power_of_two;
        double range_rate, dampen;
        double freeze_threshold, freeze_threshold_end, freeze_share; /* _end: NaN is auto */
        int64_t freeze_bits;
        int64_t bn_reestimate;
        qat_steps range_log_every;
        qat_steps_list inq_stages;
    } quant;
    struct {
        int64_t flash, ram, macs_bits;             /* 0: no limit */
        qat_int_list weight_bits, activation_bits; /* empty: not chosen */
        const char *keep;                          /* patterns of layers */
        int sensitivity;                           /* qat_sensitivity */
        int64_t samples, probes;
        const char *table; /* path; empty: in the run's folder */
    } budget;
    struct {
        const char *path; /* shared objects, separated by commas */
    } plugin;
    struct {
        const char *dir;
        int64_t keep;
        bool best, tensorboard;
    } output;
    int n_layers;
    qat_recipe_layer *layers; /* in the file's order */
    int n_quant_layers;
    qat_recipe_layer *quant_layers; /* [quant.layer NAME]: name is a pattern */
    struct qat_recipe_private *private_;
};

/** Give all keys of a section ("budget") their defaults, as if the recipe had no such section. */
qat_status qat_recipe_reset(qat_recipe *recipe, const char *section, qat_error *err);

/** quant.fraction as qat_quant_options.fraction. */
int qat_recipe_fraction(const qat_recipe *recipe);

/** Where a key was set: "file:12", "--set section.key=value", or "file" if it was not set. */
enum { QAT_RECIPE_WHERE_MAX = 256 };
void qat_recipe_where(const qat_recipe *recipe, const char *section, const char *name,
                      char where[QAT_RECIPE_WHERE_MAX]);
/** The same for an entry of a section [layer.NAME]; entry NULL: for the section. */
void qat_recipe_entry_where(const qat_recipe *recipe, const qat_recipe_layer *layer,
                            const qat_recipe_entry *entry, char where[QAT_RECIPE_WHERE_MAX]);

/** A setting of a recipe as others see it. */
typedef struct qat_recipe_setting {
    char name[64]; /* "train.lr" */
    char value[QAT_RECIPE_VALUE_MAX];
    double number; /* of a number; of yes or no, 1 or 0; NaN: it is a text */
    bool yes_or_no;
} qat_recipe_setting;
typedef qat_status qat_recipe_setting_fn(void *context, const qat_recipe_setting *setting,
                                         qat_error *err);
/**
 * Call fn for what tells this run from others: each key that changes the result and differs from
 * its default, and some that people always ask for.
 */
qat_status qat_recipe_tell_settings(const qat_recipe *recipe, qat_recipe_setting_fn *fn,
                                    void *context, qat_error *err);

#endif
