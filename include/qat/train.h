/**
 * Training: recipes, networks by name or layer by layer, the loop, checkpoints, metrics, and what
 * turns a checkpoint into a verified .qm.
 *
 *     qat_recipe *recipe;
 *     qat_train_options options = {.dir = "runs/mine"};
 *     qat_train_result result;
 *     if (qat_recipe_load(&recipe, "mine.ini", NULL, 0, &err) == QAT_OK)
 *         qat_train(recipe, &options, &result, &err);        // writes runs/mine/last.ckpt,
 * log.csv
 *
 *     qat_restored *model;                                   // a checkpoint made runnable
 *     qat_restore(&model, "runs/mine/last.ckpt", NULL, 0, &err);
 *
 * docs/recipes.md explains every key, docs/checkpoint.md the file.
 */
#ifndef QAT_TRAIN_H
#define QAT_TRAIN_H

#include "qat/border.h"
#include "qat/convert.h"
#include "qat/dataset.h"
#include "qat/plugin.h"
#include "qat/ptq.h"
#include "qat/quant.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* ------------------------------------------------------------------ recipes */

enum {
    QAT_LIST_MAX = 24,        /* values in a list key */
    QAT_CHANNEL_VALUES = 4,   /* values of mean and std */
    QAT_RECIPE_LINE_MAX = 199 /* characters of a line: what inih reads at once */
};

typedef struct qat_int_list {
    int n;
    int64_t v[QAT_LIST_MAX];
} qat_int_list;

typedef struct qat_real_list {
    int n;
    double v[QAT_CHANNEL_VALUES];
} qat_real_list;

/** A moment or length of a run: "1200" (steps), "2.5 epochs", "60%" (of the run), "never", "auto".
 */
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

/** In steps, rounded to the nearest; never: INT64_MAX; auto: automatic. */
int64_t qat_steps_resolve(const qat_steps *steps, int64_t per_epoch, int64_t total,
                          int64_t automatic);

/** The values of model.arch; the first ones by number. */
#define QAT_ARCHS                                                                                  \
    "layers|convnet|mlp|resnet|mobilenet_v1|mobilenet_v2|inception_v3|inception_small|"            \
    "mobilenet_ssd|resnet20|resnet32|resnet56|resnet50|"                                           \
    "resnet101|resnet152" QAT_ARCH_MOBILENETS_("1.0") QAT_ARCH_MOBILENETS_("0.75")                 \
        QAT_ARCH_MOBILENETS_("0.5") QAT_ARCH_MOBILENETS_("0.25")
#define QAT_ARCH_MOBILENETS_(m)                                                                    \
    "|mobilenet_v1_" m "_224|mobilenet_v1_" m "_192|mobilenet_v1_" m "_160|mobilenet_v1_" m "_128"

typedef enum qat_arch { QAT_ARCH_LAYERS, QAT_ARCH_CONVNET, QAT_ARCH_MLP, QAT_ARCH_RESNET } qat_arch;

/** How a real value is learned: attributes.value. */
typedef enum qat_value_kind {
    QAT_VALUE_ORDERED,
    QAT_VALUE_SMOOTH_L1,
    QAT_VALUE_L2,
    QAT_VALUE_NONE
} qat_value_kind;

/** One `key = value` of a [layer.NAME] section; which keys exist, its op decides. */
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
 * A recipe, checked: every member holds the file's value or the default. Read it freely; texts live
 * as long as the recipe. Members named like keys of the sections; NaN in input_min,
 * input_max, epsilon, initial_accumulator: auto. No function changes it after it was read: any
 * number of threads may use it at the same time.
 */
typedef struct qat_recipe {
    const char *source; /* the file's name, for messages */
    struct {
        int kind; /* index into QAT_DATASET_KINDS */
        const char *path;
        int64_t seed, train_count, test_count, classes, height, width, channels, resize_short;
        double central_crop;
        qat_real_list mean, std, crop_area, crop_aspect;
        int64_t crop_pad;
        bool flip, ssd_crop, one_class;
        const char *train_annotations, *test_annotations, *train_images, *test_images;
        const char *attributes, *value;
        double brightness, contrast, saturation, hue, noise, ssd_expand;
        int64_t threads, prefetch;
    } data;
    struct {
        const char *name;
        int arch; /* index into QAT_ARCHS */
        qat_int_list filters, strides, hidden;
        int64_t kernel, depth, width, first_stride;
        double multiplier, auxiliary, dropout, bn_momentum, bn_epsilon;
        int activation; /* 0 relu, 1 relu6 */
        int head;       /* 0 average, 1 flatten */
        int output;     /* 0 logits, 1 softmax */
        bool batch_norm;
    } model;
    struct {
        double epochs;
        int64_t steps, batch, eval_batch, seed, threads;
        int optimizer;  /* qat_optimizer_kind */
        int schedule;   /* qat_schedule_kind */
        int plateau_on; /* 0 test, 1 loss */
        double plateau_threshold;
        int64_t plateau_patience, stop_patience;
        double lr, final_lr, factor, power, momentum, rms_decay, beta1, beta2, epsilon;
        double initial_accumulator, weight_decay, clip_norm, clip_value, average_decay,
            label_smoothing;
        bool nesterov, average_ramp;
        const char *lr_scale; /* "PATTERN:SCALE, ..." */
        qat_steps_list milestones;
        qat_steps every, warmup, eval_every, log_every, checkpoint_every;
        const char *init, *init_map, *init_skip, *freeze; /* fine-tuning */
    } train;
    struct {
        int classification; /* 0 sigmoid, 1 softmax */
        int finest;         /* feature map: 0 at 1/16 of the picture, 1 at 1/8 */
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
        const char *teacher; /* path of a checkpoint; empty: none */
        double weight, temperature;
    } distill;
    struct {
        bool enabled;
        int layout, profile, bn_fold, forward; /* the enums of quant.h */
        int64_t weight_bits, activation_bits;
        double ema_decay, input_min, input_max;
        qat_steps quant_delay, weight_delay, activation_delay, bn_freeze_delay, learn_delay;
        const char *ranges, *weight_ranges, *activation_ranges; /* names; "auto": ranges */
        bool power_of_two;
        double range_rate;
        int64_t bn_reestimate;
        qat_steps range_log_every;
        qat_steps_list inq_stages;
    } quant;
    struct {
        const char *path; /* shared objects, separated by commas */
    } plugin;
    struct {
        const char *dir;
        int64_t keep;
        bool best;
    } output;
    int n_layers;
    qat_recipe_layer *layers; /* in the file's order */
    int n_quant_layers;
    qat_recipe_layer *quant_layers; /* [quant.layer NAME]: name is a pattern */
    struct qat_recipe_private *private_;
} qat_recipe;

typedef enum qat_key_type {
    QAT_KEY_BOOL,
    QAT_KEY_INT,
    QAT_KEY_REAL,
    QAT_KEY_CHOICE,
    QAT_KEY_TEXT,
    QAT_KEY_INTS,
    QAT_KEY_REALS,
    QAT_KEY_STEPS,
    QAT_KEY_STEPS_LIST
} qat_key_type;

/** One key of the one table: validation, defaults, `qat-train --keys` and canonical text. */
typedef struct qat_key {
    const char *section, *name;
    qat_key_type type;
    const char *initial; /* default, as text */
    double min, max;     /* numbers, and each number of a list */
    const char *choices; /* QAT_KEY_CHOICE: "a|b|c"; the value is the index */
    bool free_on_resume; /* may differ from the checkpoint's recipe: changes no number of the run */
    size_t offset;       /* of the member of qat_recipe */
    const char *meaning;
} qat_key;

const qat_key *qat_recipe_keys(int *count);
/** The table as text, one key a paragraph; free() it. */
qat_status qat_recipe_keys_text(char **text, qat_error *err);

/**
 * Read a recipe. Errors name file and line: an unknown section or key (with the nearest one that
 * exists), a value outside its range, a key given twice, a line too long for inih.
 * @param sets  n_sets overrides "section.key=value", applied after the file
 */
qat_status qat_recipe_load(qat_recipe **recipe, const char *path, const char *const *sets,
                           int n_sets, qat_error *err);
/** The same from text; name stands for the path in messages. */
qat_status qat_recipe_parse(qat_recipe **recipe, const char *text, const char *name,
                            const char *const *sets, int n_sets, qat_error *err);
void qat_recipe_free(qat_recipe *recipe);

/** Tell of every key that is given, differs from its default, and can have no effect beside the
 *  others: "r.ini:7: distill.weight has no effect without distill.teacher". */
qat_status qat_recipe_tell_idle(const qat_recipe *recipe, const qat_log *log, qat_error *err);

/** Every key with its value, in the table's order, then the layers: reading it back gives the same
 *  recipe. free() it. */
qat_status qat_recipe_write(const qat_recipe *recipe, char **text, qat_error *err);
/** The same without the keys that only say how a run is carried out (threads, prefetching, what is
 *  saved when and where): equal for runs that give the same numbers. A checkpoint's. */
qat_status qat_recipe_write_run(const qat_recipe *recipe, char **text, qat_error *err);
/** QAT_OK if a run of `then` may be resumed with `now`; else the first key that differs. */
qat_status qat_recipe_same_run(const qat_recipe *then, const qat_recipe *now, qat_error *err);

/** What ${QAT_DATA} is where the environment says nothing: a folder beside the working copy, so
 * that several copies share it; relative to the current folder. */
#define QAT_DATA_DEFAULT "../shared/data"
/** Replace ${QAT_DATA} by the environment's value, or by QAT_DATA_DEFAULT; cut or missing brace is
 *  an error. text[max]. */
qat_status qat_expand_path(const char *path, char *text, size_t max, qat_error *err);

/* ------------------------------------------------------------------ data */

/**
 * Open one split of a recipe's data.
 * @param spec  "KIND[:PATH]" instead of the recipe's kind and path (then without its counts), or
 * NULL
 */
qat_status qat_recipe_open_data(qat_dataset **dataset, const qat_recipe *recipe, const char *spec,
                                qat_split split, qat_error *err);

/** What turns a detector's outputs into boxes, and boxes into what its anchors learn. Constant: any
 *  number of threads may read it. */
typedef struct qat_detector {
    qat_centre_box *anchors;
    int n_anchors, classes;
    qat_choice_rules rules;
    float match_iou;
} qat_detector;

/** What a network's input is: everything between a picture and its numbers. */
typedef struct qat_input_info {
    int height, width, channels, classes;
    qat_sample_type type;
    float mean[QAT_CHANNEL_VALUES], std[QAT_CHANNEL_VALUES]; /* per channel; above 4: the first */
    float min, max;                                          /* real range after normalisation */
    int resize_short;             /* folders: as in qat_dataset_options */
    const qat_detector *detector; /* how evaluation finds boxes; borrowed. NULL: a classifier */
    qat_attributes attributes;    /* where samples have targets */
    float within;                 /* and how near their value must be, for evaluation */
} qat_input_info;

/** From a recipe and its training data. Refuses lists that do not fit the channels. */
qat_status qat_input_info_of(qat_input_info *info, const qat_recipe *recipe,
                             const qat_dataset_info *data, qat_error *err);
/**
 * Options of the rewrites, delays resolved for a run of `total` steps. Refuses quantizers that the
 * registry has not, with line and nearest name.
 */
qat_status qat_recipe_quant_options(qat_quant_options *options, const qat_recipe *recipe,
                                    const qat_registry *registry, const qat_input_info *input,
                                    int64_t per_epoch, int64_t total, qat_error *err);
/** Are there enough training samples for one batch? */
qat_status qat_recipe_check_batch(const qat_recipe *recipe, const qat_dataset_info *training,
                                  qat_error *err);
/** Refuses a recipe that gives real numbers another mean or std than the network was made with; a
 *  recipe that gives none agrees. Pixels are the model's own business: its table has them. */
qat_status qat_input_agrees(const qat_input_info *input, const qat_recipe *recipe, qat_error *err);

/* ------------------------------------------------------------------ networks */

/** Names of the nodes that every network has. */
#define QAT_INPUT_NAME "input"
#define QAT_LABEL_NAME "label"
#define QAT_LOSS_NAME  "loss"
/** The loss on the network's own logits, where QAT_LOSS_NAME is a sum with an auxiliary one. */
#define QAT_OWN_LOSS_NAME "loss/own"

/**
 * Build the float graph a recipe describes: input [1, H, W, C], logits [1, classes] (or their
 * softmax) marked as output, softmax cross-entropy loss; for samples with targets, the scores of
 * attributes [1, classes] and what a value is read from, their losses. Not planned. Errors name the
 * layer, and for [layer.NAME] sections file and line.
 */
qat_status qat_network_build(qat_graph **graph, const qat_registry *registry,
                             const qat_recipe *recipe, const qat_input_info *input, qat_error *err);

/** What one layer costs on a device: bias, batch norm and ReLU counted with their layer. */
typedef struct qat_layer_cost {
    char name[QAT_NAME_MAX];
    char op[64];        /* "conv2d+batch_norm+relu" */
    qat_shape shape;    /* of its output, batch 1 */
    int64_t parameters; /* trainable */
    int64_t macs;       /* multiply-adds for one sample */
    int64_t flash;      /* bytes, at least: 8-bit weights, 32-bit bias, multiplier and shift */
    int64_t ram;        /* bytes, at least: 8-bit activations alive while it runs */
} qat_layer_cost;

/** Costs of every layer of a float graph, in order; the last entry holds totals (ram: the peak).
 *  free() the array. */
qat_status qat_network_costs(const qat_graph *graph, qat_layout layout, qat_layer_cost **costs,
                             int *count, qat_error *err);

/** A network in two numbers. */
typedef struct qat_network_size {
    int64_t parameters;          /* trainable, of what is exported; of an integer graph weights and
                                    biases, into which batch norm is folded */
    int64_t training_parameters; /* with those that only training uses (auxiliary classifier) */
    int64_t macs; /* multiply-adds for one sample, taps that lie in the padding included */
} qat_network_size;
qat_status qat_network_size_of(const qat_graph *graph, qat_network_size *size, qat_error *err);
qat_network_size qat_qgraph_size_of(const qat_qgraph *graph);
/**
 * Set the parameters that `patterns` match (as train.freeze: "stem*, head*") to not train. Call
 * it before planning. Batch norms among them use their averages and do not change them. A pattern
 * that matches nothing is an error. The names go to the log (NULL: none).
 */
qat_status qat_freeze_params(qat_graph *training, const char *patterns, const qat_log *log,
                             qat_error *err);
/** RAM that a device needs to run a network. */
typedef struct qat_device_needs {
    int64_t arena_bytes; /* qi_arena_bytes: activations and the kernels' scratch */
    int64_t model_bytes; /* qi_model_bytes: descriptors parsed from the file */
} qat_device_needs;
/**
 * Find them without training: the network is exported in memory with random parameters. Shapes
 * alone decide about memory, so the export of the trained network needs as much. (Only a
 * requantization that becomes superfluous after training makes it less.)
 * @return what keeps the network from becoming integers, if something does
 */
qat_status qat_device_needs_of(qat_device_needs *needs, const qat_recipe *recipe,
                               const qat_plugins *plugins, const qat_graph *network,
                               const qat_input_info *input, qat_error *err);
/** How many samples at once (1..most) a quantized graph made of this float graph can keep all
 * values of in about 2 GiB. */
int qat_batch_that_fits(const qat_graph *float_graph, int most);

/* ------------------------------------------------------------------ accuracy */

/** Of n samples: how many labels are the first or among the first five; or, of a detector, average
 *  precision (shares, -1: no objects) and AP50's 95 % bootstrap interval over pictures; or, of
 *  attributes and a value, what is below (-1: none is known). */
typedef struct qat_accuracy {
    int64_t n, top1, top5;
    bool detects;
    double ap, ap50, ap50_low, ap50_high; /* the interval: see qat_ap50_interval, level 0.95 */
    double precision,
        recall; /* qat_precision_and_recall from a score of 1/2 on; not in checkpoints */
    bool attributes;
    double category_ap; /* mean over attributes of their average precision */
    double within;      /* share of values that are right: see qat_attributes */
    double mean_error;  /* of values, absolute, in their own unit */
} qat_accuracy;

/** Percent; 0 where n is 0. Of a detector qat_top1 is AP50 and qat_top5 AP@[.5:.95]; of attributes
 *  qat_top1 is category_ap and qat_top5 within. */
double qat_top1(const qat_accuracy *accuracy);
double qat_top5(const qat_accuracy *accuracy);
/** The name of what qat_top1 is: "top-1", "AP50", "category AP". */
const char *qat_top1_name(const qat_accuracy *accuracy);
/** What networks are compared by, the higher the better: qat_top1; of attributes and a value the
 * mean of both figures. */
double qat_accuracy_score(const qat_accuracy *accuracy);
/** Rank labels among scores [count, classes]; of equal scores the lower class comes first. A NaN
 *  score ranks last. */
void qat_accuracy_add(qat_accuracy *accuracy, const float *scores, int count, int classes,
                      const int32_t *labels);
/** The same with the codes of an integer model. */
void qat_accuracy_add_codes(qat_accuracy *accuracy, const void *codes, qi_type type, int count,
                            int classes, const int32_t *labels);

/** Fraction done of a long call, for progress; return false to stop it (QAT_ERR_STATE). */
typedef bool qat_tick(void *context, int64_t done, int64_t total);

/**
 * Run a planned graph in eval mode over a data set, in order.
 * @param limit  samples at most; 0: all
 */
qat_status qat_evaluate_graph(qat_graph *graph, const qat_input_info *input,
                              const qat_dataset *data, int batch, int64_t limit, qat_tick *tick,
                              void *context, qat_accuracy *accuracy, qat_error *err);
/** Run an integer graph's exact evaluation over a data set. */
qat_status qat_evaluate_exact(const qat_qgraph *graph, const qat_registry *registry,
                              const qat_input_info *input, const qat_dataset *data, int batch,
                              int64_t limit, qat_tick *tick, void *context, qat_accuracy *accuracy,
                              qat_error *err);
/** Run the integer engine over a data set, samples in parallel: host opened with one thread. */
qat_status qat_evaluate_model(const qi_host *host, const qat_input_info *input,
                              const qat_dataset *data, int64_t limit, qat_tick *tick, void *context,
                              qat_accuracy *accuracy, qat_error *err);
/** Input of a .qm from its preprocessing and its first input tensor. Without preprocessing: codes
 *  of real numbers that are taken as they are, mean 0 and std 1. How near values must be it does
 *  not say: within 0. */
qat_status qat_input_info_of_model(qat_input_info *info, const qi_model *model, qat_error *err);

/* ------------------------------------------------------------------ the loop */

typedef enum qat_event {
    QAT_EVENT_STEP,       /* after each step */
    QAT_EVENT_EVAL,       /* during evaluation: done, total */
    QAT_EVENT_ROW,        /* a row of log.csv was written */
    QAT_EVENT_CHECKPOINT, /* path was written */
    QAT_EVENT_WARNING     /* something could not be written; the run goes on, see message */
} qat_event;

typedef struct qat_train_progress {
    qat_event event;
    int64_t step, steps; /* taken, of the whole run */
    int64_t done, total; /* QAT_EVENT_EVAL: samples */
    double epoch, lr;
    double loss;           /* mean since the last row */
    double gradient_norm;  /* QAT_EVENT_ROW: of the last step, before clipping */
    double accuracy;       /* percent, training batches since the last row; NaN: a detector */
    bool evaluated;        /* QAT_EVENT_ROW: the figures below were measured */
    const char *figure;    /* the next two's name: qat_top1_name; NULL: nothing was measured */
    double float_top1;     /* percent */
    double simulated_top1; /* float32 simulation of the quantized network; NaN before its delay */
    double float_within, simulated_within; /* percent of values that are right, beside attributes;
                                              else NaN */
    double samples_per_second, seconds, eta;
    const char *path;
    const char *message;
} qat_train_progress;

typedef struct qat_train_options {
    const char *dir; /* NULL: the recipe's [output] dir */
    bool resume;     /* continue from dir/last.ckpt */
    bool overwrite;  /* start anew where dir/last.ckpt is; else such a folder is refused */
    void (*progress)(void *context, const qat_train_progress *progress); /* NULL: silent */
    /* Asked after each step and during evaluation; true: checkpoint and return. NULL: never. */
    bool (*stop)(void *context);
    void *context;
    const qat_log *log; /* what train.init took, skipped and missed; NULL: nowhere */
} qat_train_options;

typedef struct qat_train_result {
    int64_t step, steps;                             /* step < steps: stopped early */
    qat_accuracy float_accuracy, simulated_accuracy; /* of the last evaluation; n = 0: none */
    double loss;                                     /* of the last row */
    double seconds;
    char checkpoint[512]; /* path */
} qat_train_result;

/**
 * Train as the recipe says. Writes dir/log.csv and, atomically, dir/last.ckpt, dir/best.ckpt and
 * dir/step-N.ckpt (see output.best, output.keep). The same recipe gives the same bytes in all of
 * them, whatever the thread count, and however often it was interrupted and resumed; what the clock
 * says is in dir/times.csv. A folder with a checkpoint is refused, unless options say what to do
 * with it; resuming creates no folder. One run at a time writes in a folder.
 * What cannot be written (a full disk) is told as QAT_EVENT_WARNING and tried again; the checkpoint
 * before stays. Only at the end of the run, or where it is stopped, it is an error: QAT_ERR_IO.
 * A loss, a parameter or a score of the evaluation that is NaN or infinite stops the run with
 * QAT_ERR_NUMERIC, naming step and layer or parameter; the last checkpoint stays.
 * Several threads may train at the same time, each in a folder of its own. The options' functions
 * are called by the thread that called qat_train.
 */
qat_status qat_train(const qat_recipe *recipe, const qat_train_options *options,
                     qat_train_result *result, qat_error *err);

/* ------------------------------------------------------------------ checkpoints */

typedef struct qat_named_tensor {
    char name[QAT_NAME_MAX];
    qat_shape shape;
    float *values; /* owned */
} qat_named_tensor;

/** What a run that looks for plateaus remembers (train.schedule = plateau, train.stop_patience). */
typedef struct qat_plateau {
    bool watched, ended;       /* it has seen an evaluation; it has ended the run */
    int64_t stage;             /* of quantization, that best is of */
    double best;               /* percent, or a loss */
    int64_t since, since_drop; /* evaluations that were not better; those after the last drop */
    int64_t drops;             /* of the learning rate */
    double loss_sum; /* of the steps since the last evaluation, where losses are looked at */
    int64_t losses;  /* how many */
} qat_plateau;

/** The content of a checkpoint; docs/checkpoint.md has the bytes. Any number of threads may read
 * it; while one changes it, no other may use it. */
typedef struct qat_checkpoint {
    char *recipe; /* canonical text */
    char *graph;  /* the float graph, as qat_graph_write */
    qat_input_info input;
    char **labels; /* input.classes names, or NULL */
    bool quantized;
    qat_quant_options quant; /* delays in steps; valid where quantized */
    qat_profile profile;
    int n_params;
    qat_named_tensor *params;
    int n_slots;   /* optimizer slots a parameter: tensors are parameter by parameter */
    bool averaged; /* the last slot is the parameter's moving average */
    int n_slot_tensors;
    qat_named_tensor *slots;
    int64_t step, optimizer_steps;
    double loss_sum; /* since the last row of the log */
    int64_t loss_count, sample_count, correct_count;
    double gradient_norm; /* of this step, where its row of the log is still to be written */
    qat_accuracy float_accuracy, simulated_accuracy; /* of the last evaluation */
    double last_loss;
    qat_plateau plateau;
    uint8_t teacher[32]; /* SHA-256 of the checkpoint distilled from; zeros: none */
    char *log;           /* log.csv so far */
    uint8_t digest[32];  /* SHA-256 of the file; set by loading */
} qat_checkpoint;

qat_checkpoint *qat_checkpoint_new(void); /* NULL: out of memory */
void qat_checkpoint_free(qat_checkpoint *checkpoint);
qat_status qat_checkpoint_save(const qat_checkpoint *checkpoint, const char *path, qat_error *err);
/** Any byte changed or cut is found by the CRC or the checks and named. */
qat_status qat_checkpoint_load(qat_checkpoint **checkpoint, const char *path, qat_error *err);
qat_status qat_checkpoint_parse(qat_checkpoint **checkpoint, const void *bytes, size_t count,
                                const char *name, qat_error *err);
/** Is this the beginning of a checkpoint? */
bool qat_checkpoint_magic(const void *bytes, size_t count);
/** Set a planned graph's parameters; all trainable ones must be there, in the graph's shapes. What
 * a rewrite added and the checkpoint does not hold keeps its initial value. */
qat_status qat_checkpoint_params(const qat_checkpoint *checkpoint, qat_graph *graph,
                                 qat_error *err);

/** Exchange parameters and their averages; false, and nothing is changed, where there are none. */
bool qat_checkpoint_swap_averages(qat_checkpoint *checkpoint);

/** A checkpoint with all that its graphs need. One thread at a time may use it; graphs that were
 * made from it are separate handles. */
typedef struct qat_restored {
    qat_checkpoint *checkpoint;
    qat_recipe *recipe;
    qat_plugins *plugins;
    qat_registry *registry;
    qat_graph *float_graph; /* not planned */
    qat_detector *detector; /* NULL: a classifier */
} qat_restored;

/**
 * Load a checkpoint, open its plugins and read its graph. Where parameters were averaged, params
 * hold the averages: what the run was evaluated by; qat_checkpoint_swap_averages brings the last
 * step's back. Batch norm's averages and activation ranges are not averaged further: those
 * observed.
 * @param plugins  shared objects to open instead of those the recipe names; n_plugins 0: the
 * recipe's
 */
qat_status qat_restore(qat_restored **restored, const char *path, const char *const *plugins,
                       int n_plugins, qat_error *err);
void qat_restored_free(qat_restored *restored);

/**
 * Other quantization than the checkpoint's run had: "quant.KEY=VALUE" with KEY one of layout,
 * profile, weight_bits, activation_bits, checked as in a recipe. For calibration and comparison;
 * ranges that were observed belong to the run's own.
 */
qat_status qat_restored_set_quant(qat_restored *restored, const char *const *sets, int n_sets,
                                  qat_error *err);

/** Registry with the built-in ops and those of plugins (a comma list, or NULL). */
qat_status qat_open_registry(qat_registry **registry, qat_plugins **plugins, const char *paths,
                             qat_error *err);

/* ------------------------------------------------------------------ deployment */

/** What post-training quantization found and did. */
typedef struct qat_ptq_report {
    char data[256];            /* calibrated on */
    int64_t samples;           /* of these */
    qat_equalized equalized;   /* zeros: not asked for */
    int corrected;             /* layers whose bias was corrected */
    double largest_correction; /* |change| of a bias */
} qat_ptq_report;

typedef struct qat_deploy_options {
    bool has_profile;
    qat_profile profile;   /* instead of the checkpoint's */
    const char *calibrate; /* post-training quantization: observe activation ranges on the training
                              split of this "KIND[:PATH]" ("recipe": the recipe's data) instead of
                              taking the checkpoint's */
    int64_t calibration_samples;    /* at most; 0: 1000 */
    const qat_estimator *estimator; /* of ranges; NULL: minmax */
    double estimator_parameter;
    bool equalize, correct_bias; /* ptq.h */
    qat_ptq_report *report;      /* filled in by calibration; NULL: not wanted */
    int64_t bn_reestimate;       /* batches over which batch norm's averages are taken anew, with
                                    quantized weights; 0: as the recipe says, -1: none */
    const char *data;            /* verify on this "KIND[:PATH]"; NULL: the recipe's test data */
    int64_t samples;             /* verified at most; 0: all */
    const qat_log *log;          /* warnings */
    qat_tick *tick;
    void *context;
} qat_deploy_options;

typedef struct qat_deploy_result {
    qat_compare compare;
    qat_certificate certificate;
    const char *certified_against; /* what the file was compared with; static text */
    char verified_on[640]; /* e.g. "idx fashion-mnist/test"; "seeded random bytes" and why */
    int64_t samples;       /* verified */
    int64_t float_bytes;   /* of the float network's trainable parameters */
    int64_t qm_bytes;
    int64_t arena_bytes; /* that running the model needs */
} qat_deploy_result;

/** The eval graph of a checkpoint, planned QAT_PLAN_KEEP, parameters set; calibrated if asked for.
 *  Refuses checkpoints of float runs otherwise: nothing was observed. */
qat_status qat_restored_eval_graph(const qat_restored *restored, const qat_deploy_options *options,
                                   int max_batch, qat_graph **eval, qat_error *err);
/** Where activations' ranges come from in an evaluation. */
typedef enum qat_ranges {
    QAT_RANGES_OBSERVED, /* in training or calibration: what is exported */
    QAT_RANGES_BATCH,    /* min and max of each batch, at run time */
    QAT_RANGES_WORST_CASE
} qat_ranges;

/** The eval graph with ranges that nobody observed (BATCH, WORST_CASE), planned QAT_PLAN_KEEP: for
 *  qat_evaluate_graph and comparison only, it is not exported. */
qat_status qat_restored_baseline_graph(const qat_restored *restored, qat_ranges ranges,
                                       int max_batch, qat_graph **eval, qat_error *err);
/** The integer graph of an eval graph; where the network takes pixels, with the input's table in
 * front. */
qat_status qat_restored_freeze(const qat_restored *restored, const qat_deploy_options *options,
                               qat_graph *eval, qat_qgraph **graph, qat_error *err);

/**
 * Checkpoint to .qm: eval graph, freeze, input table, write to memory, verify byte for byte; only
 * then the file, atomically. A differing byte is QAT_ERR_MISMATCH and nothing is written; result
 * then holds the comparison. A path that holds a checkpoint is refused.
 * Where the recipe's test data cannot be opened, seeded random bytes are used, and verified_on says
 * so and why; data that were asked for by `data` must be there.
 */
qat_status qat_deploy(const qat_restored *restored, const char *path,
                      const qat_deploy_options *options, qat_deploy_result *result, qat_error *err);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
