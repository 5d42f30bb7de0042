/**
 * Training: recipes, networks by name or layer by layer, the training loop, checkpoints, metrics,
 * and the export of a checkpoint to a verified .qm.
 *
 *     qat_recipe *recipe;
 *     qat_train_options options = {.dir = "runs/mine"};
 *     qat_train_result result;
 *     if (qat_recipe_load(&recipe, "mine.ini", NULL, 0, &err) == QAT_OK &&
 *         qat_recipe_set(recipe, "train.steps", "1000", &err) == QAT_OK)
 *         qat_train(recipe, &options, &result, &err);        // writes last.ckpt, log.csv there
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
#include "qat/export.h"
#include "qat/plugin.h"
#include "qat/ptq.h"
#include "qat/quant.h"
#include "qat/ranks.h"
#include "qat/task.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* ------------------------------------------------------------------ recipes */

enum {
    QAT_RECIPE_LINE_MAX = 199,  /* most characters in a line: what inih reads at once */
    QAT_RECIPE_VALUE_MAX = 1024 /* of a value as text, with its NUL */
};

/**
 * A value as text, in the form of qat_recipe_write. While one thread sets a key, no other may use
 * the recipe; otherwise any number of threads may use it. key is "section.name", for example
 * "train.steps". Returns text; NULL: there is no such key.
 */
const char *qat_recipe_get(const qat_recipe *recipe, const char *key,
                           char text[QAT_RECIPE_VALUE_MAX]);
/**
 * A value as a number: of a key that is one; yes is 1, no 0; of a choice its index, from 0. NaN:
 * "auto", or no such key.
 */
double qat_recipe_number(const qat_recipe *recipe, const char *key);
/**
 * Set a key, as a line of the file would. The recipe is checked again. After an error (an unknown
 * key; a value that is out of range, or does not fit the others) it is as it was.
 */
qat_status qat_recipe_set(qat_recipe *recipe, const char *key, const char *value, qat_error *err);
/** The name of its file, for messages. Lives as long as the recipe. */
const char *qat_recipe_source(const qat_recipe *recipe);

/** The table as text, one paragraph per key; free() it. */
qat_status qat_recipe_keys_text(char **text, qat_error *err);

/**
 * Read a recipe. Errors name file and line. These are errors: an unknown section or key (the
 * message names the nearest one that exists), a value outside its range, a key given twice, a line
 * too long for inih.
 * @param recipe  free it with qat_recipe_free
 * @param sets    n_sets overrides "section.key=value", applied after the file
 */
qat_status qat_recipe_load(qat_recipe **recipe, const char *path, const char *const *sets,
                           int n_sets, qat_error *err);
/** The same from text; messages use name instead of a path. */
qat_status qat_recipe_parse(qat_recipe **recipe, const char *text, const char *name,
                            const char *const *sets, int n_sets, qat_error *err);
void qat_recipe_free(qat_recipe *recipe);

/**
 * Report every given key that differs from its default but has no effect with the others, for
 * example "r.ini:7: distill.weight has no effect without distill.teacher".
 */
qat_status qat_recipe_tell_idle(const qat_recipe *recipe, const qat_log *log, qat_error *err);

/**
 * Write every key with its value, in the table's order, then the layers. Reading this text gives
 * the same recipe. free() it.
 */
qat_status qat_recipe_write(const qat_recipe *recipe, char **text, qat_error *err);
/**
 * The same without the keys that do not change the result (threads, prefetching, what is saved when
 * and where). Runs with the same result have equal texts. A checkpoint contains this text.
 */
qat_status qat_recipe_write_run(const qat_recipe *recipe, char **text, qat_error *err);
/**
 * QAT_OK if a run of `then` may be resumed with `now`; otherwise the error names the first key that
 * differs.
 */
qat_status qat_recipe_same_run(const qat_recipe *then, const qat_recipe *now, qat_error *err);

/**
 * The value of ${QAT_DATA} if the environment does not set it. It is a folder beside the working
 * copy, so that several copies share it; relative to the current folder.
 */
#define QAT_DATA_DEFAULT "../shared/data"
/**
 * Replace ${QAT_DATA} by the environment's value, or by QAT_DATA_DEFAULT. A result that does not
 * fit text[max] and a missing brace are errors.
 */
qat_status qat_expand_path(const char *path, char *text, size_t max, qat_error *err);

/* ------------------------------------------------------------------ data */

/**
 * Open one split of a recipe's data, within data.memory. Close it with qat_dataset_close. With
 * data.skip_broken all its pictures are decoded, and those that cannot be decoded are left out
 * (info.skipped).
 * @param spec  "KIND[:PATH]" instead of the recipe's kind and path (the recipe's counts and
 *              data.split are then ignored), or NULL
 */
qat_status qat_recipe_open_data(qat_dataset **dataset, const qat_recipe *recipe, const char *spec,
                                qat_split split, qat_error *err);
/**
 * The same of the recipe's own data, for a program that only wants to know what they are: data that
 * would be drawn are not (qat_dataset_options.undrawn).
 */
qat_status qat_recipe_open_undrawn(qat_dataset **dataset, const qat_recipe *recipe, qat_split split,
                                   qat_error *err);

/**
 * Write one line that says what the data are (qat_dataset_describe) to notes. Write a warning for
 * classes that only one split has. It is an error if all samples in files have the same class.
 * test, notes and warnings may be NULL.
 */
qat_status qat_recipe_tell_data(const qat_recipe *recipe, const qat_dataset *train,
                                const qat_dataset *test, const qat_log *notes,
                                const qat_log *warnings, qat_error *err);

/**
 * Make the input from a recipe and its training data. The registry may have tasks beside the
 * built-in ones; NULL: it has none. Lists that do not fit the channels are an
 * error.
 */
qat_status qat_input_info_of(qat_input_info *info, const qat_registry *registry,
                             const qat_recipe *recipe, const qat_dataset_info *data,
                             qat_error *err);
/**
 * Make the options of the rewrites, with delays resolved for a run of `total` steps. per_epoch 0:
 * outside of a run. Then delays are 0, unless they are never, and there is no schedule of bits. A
 * quantizer that the registry does not have is an error, with the line and the nearest name.
 */
qat_status qat_recipe_quant_options(qat_quant_options *options, const qat_recipe *recipe,
                                    const qat_registry *registry, const qat_input_info *input,
                                    int64_t per_epoch, int64_t total, qat_error *err);
/** Check that there are enough training samples for one batch. */
qat_status qat_recipe_check_batch(const qat_recipe *recipe, const qat_dataset_info *training,
                                  qat_error *err);
/**
 * Check that the recipe gives real numbers the mean and std with which the network was made, or
 * gives none. Pixels are not checked: their mean and std are in the model's table.
 */
qat_status qat_input_agrees(const qat_input_info *input, const qat_recipe *recipe, qat_error *err);
/**
 * Open a loader with the input's mean and std (those in options are ignored). Samples that do not
 * fit the network are QAT_ERR_SHAPE: their size, type or number of classes.
 */
qat_status qat_open_loader(qat_loader **loader, const qat_dataset *data,
                           const qat_input_info *input, const qat_loader_options *options,
                           qat_error *err);

/* ------------------------------------------------------------------ networks */

/** Names of nodes that every network has. */
#define QAT_INPUT_NAME "input"
#define QAT_LABEL_NAME "label"
#define QAT_LOSS_NAME  "loss"
/**
 * The loss on the network's own logits. QAT_LOSS_NAME is then its sum with the loss of an auxiliary
 * classifier.
 */
#define QAT_OWN_LOSS_NAME "loss/own"

/**
 * Build the float graph of a recipe: input [1, H, W, C], logits [1, classes] (or their softmax)
 * marked as output, and softmax cross-entropy loss; or the outputs and the loss of another task.
 * The graph is not planned; free it with qat_graph_free. Errors name the layer, and for
 * [layer.NAME] sections file and line.
 */
qat_status qat_network_build(qat_graph **graph, const qat_registry *registry,
                             const qat_recipe *recipe, const qat_input_info *input, qat_error *err);
/**
 * The network of a recipe with model.steps for one step, as the exported model runs it: its
 * parameters have the names that they have in the network of all steps.
 * @param input  a sample; then one frame of it
 */
qat_status qat_network_build_step(qat_graph **graph, const qat_registry *registry,
                                  const qat_recipe *recipe, qat_input_info *input, qat_error *err);

/** What one layer costs on a device. Bias, batch norm and ReLU count for their layer. */
typedef struct qat_layer_cost {
    char name[QAT_NAME_MAX];
    char op[64];        /* "conv2d+batch_norm+relu" */
    qat_shape shape;    /* shape of its output, batch 1 */
    int64_t parameters; /* trainable */
    int64_t macs;       /* multiply-adds for one sample */
    int64_t flash;      /* bytes, lower bound: 8-bit weights, 32-bit bias, multiplier and shift */
    int64_t ram;        /* bytes, lower bound: 8-bit activations alive while it runs */
} qat_layer_cost;

/**
 * The costs of every layer of a float graph, in order. The last entry has the totals (ram: the
 * peak). free() the array.
 */
qat_status qat_network_costs(const qat_graph *graph, qat_layout layout, qat_layer_cost **costs,
                             int *count, qat_error *err);

/** The size of a network in a few numbers. */
typedef struct qat_network_size {
    int64_t parameters; /* trainable parameters that are exported; in an integer graph weights and
                           biases, which contain batch norm */
    int64_t
        training_parameters; /* including those that only training uses (auxiliary classifier) */
    int64_t macs;            /* multiply-adds for one sample, including taps in the padding */
} qat_network_size;
qat_status qat_network_size_of(const qat_graph *graph, qat_network_size *size, qat_error *err);
qat_network_size qat_qgraph_size_of(const qat_qgraph *graph);
/**
 * Make the parameters that `patterns` match not trainable (as train.freeze: "stem*, head*"). Call
 * it before planning. Batch norms among them use their averages and do not change them. A pattern
 * that matches nothing is an error. The names are written to the log (NULL: none).
 */
qat_status qat_freeze_params(qat_graph *training, const char *patterns, const qat_log *log,
                             qat_error *err);
/**
 * Check that the parameters of a float graph and their gradients fit into so many bytes (0: no
 * limit). Training needs more than these; planning its graphs and creating its optimizer check the
 * rest.
 */
qat_status qat_training_fits(const qat_graph *graph, uint64_t memory, qat_error *err);
/** RAM that a device needs to run a network. */
typedef struct qat_device_needs {
    int64_t arena_bytes; /* qi_arena_bytes: activations and the kernels' scratch */
    int64_t model_bytes; /* qi_model_bytes: descriptors parsed from the file */
} qat_device_needs;
/**
 * Find these numbers without training: the network is exported in memory with random parameters.
 * Memory depends only on shapes, so the export of the trained network needs as much. (It may need
 * less if a requantization becomes redundant after training.)
 * @return an error that says why, if the network cannot become integers
 */
qat_status qat_device_needs_of(qat_device_needs *needs, const qat_recipe *recipe,
                               const qat_plugins *plugins, const qat_graph *network,
                               const qat_input_info *input, qat_error *err);
/**
 * The bytes of the .qm that an export of the trained network writes with its weights packed to the
 * recipe's bits, without description, labels and a known-answer test. (It may write fewer: if a
 * requantization becomes redundant after training, or if a layer's trained weights have so few
 * different codes that these are listed.)
 */
qat_status qat_device_qm_bytes_of(int64_t *qm_bytes, const qat_recipe *recipe,
                                  const qat_plugins *plugins, const qat_graph *network,
                                  const qat_input_info *input, qat_error *err);
/** The same for the network as C source: what qat_c_measure says of the trained network's export.
 */
qat_status qat_device_c_sizes_of(qat_c_sizes *sizes, const qat_recipe *recipe,
                                 const qat_plugins *plugins, const qat_graph *network,
                                 const qat_input_info *input, qat_error *err);
/** What the preprocessing of the network's samples takes in its C file. */
qat_c_preprocessing qat_device_preprocessing_of(const qat_input_info *input);
/**
 * How many samples (1..most) a quantized graph made from this float graph can process at once if
 * the values of all nodes are kept in about 2 GiB.
 */
int qat_batch_that_fits(const qat_graph *float_graph, int most);

/* ------------------------------------------------------------------ accuracy */

/** Called during a long operation with the part done. Return false to stop it (QAT_ERR_STATE). */
typedef bool qat_tick(void *context, int64_t done, int64_t total);

/**
 * Run a planned graph in eval mode over a data set, in order.
 * @param limit  most samples; 0: all
 */
qat_status qat_evaluate_graph(qat_graph *graph, const qat_input_info *input,
                              const qat_dataset *data, int batch, int64_t limit, qat_tick *tick,
                              void *context, qat_accuracy *accuracy, qat_error *err);
/** Evaluate an integer graph over a data set, by the exact evaluation. */
qat_status qat_evaluate_exact(const qat_qgraph *graph, const qat_registry *registry,
                              const qat_input_info *input, const qat_dataset *data, int batch,
                              int64_t limit, qat_tick *tick, void *context, qat_accuracy *accuracy,
                              qat_error *err);
/**
 * Run the integer engine over a data set, with samples in parallel. host must be opened with one
 * thread.
 */
qat_status qat_evaluate_model(const qi_host *host, const qat_input_info *input,
                              const qat_dataset *data, int64_t limit, qat_tick *tick, void *context,
                              qat_accuracy *accuracy, qat_error *err);
/**
 * The input of a .qm, from its preprocessing and its first input tensor. Without preprocessing the
 * input is codes of real numbers without normalisation: mean 0 and std 1. A .qm does not say how
 * near values must be, so within is 0.
 */
qat_status qat_input_info_of_model(qat_input_info *info, const qat_registry *registry,
                                   const qi_model *model, qat_error *err);

/* ------------------------------------------------------------------ the loop */

typedef enum qat_event {
    QAT_EVENT_STEP,       /* after each step */
    QAT_EVENT_EVAL,       /* during evaluation: done, total */
    QAT_EVENT_ROW,        /* a row of log.csv was written */
    QAT_EVENT_CHECKPOINT, /* path was written */
    QAT_EVENT_WARNING,    /* see message; the run continues */
    QAT_EVENT_DATA,       /* while pictures are checked, before the first step: done, total */
    QAT_EVENT_BEGIN       /* before the first step: training */
} qat_event;

typedef struct qat_train_progress {
    qat_event event;
    int64_t step, steps; /* steps taken; steps of the whole run */
    int64_t done, total; /* QAT_EVENT_EVAL, QAT_EVENT_DATA: samples */
    double epoch, lr;
    double loss;          /* mean since the last row of log.csv */
    double gradient_norm; /* QAT_EVENT_ROW: of the last step, before clipping. In the row of step 0
                             this, loss and accuracy are NaN */
    double accuracy;      /* percent, training batches since the last row; NaN: the task does not
                             judge them */
    bool evaluated;       /* QAT_EVENT_ROW: were the networks below evaluated? */
    /* The float network; the quantized network on the integer engine (exactly what its .qm
     * reaches); its float32 simulation. n = 0: not evaluated in this way. */
    qat_accuracy in_float, integer, simulated;
    double samples_per_second, seconds, eta;
    const char *path;
    const char *message;
    /* QAT_EVENT_BEGIN: the planned graph that will be trained, until qat_train returns. Only look:
     * qat_graph_watch can time its ops. NULL in other events */
    qat_graph *training;
} qat_train_progress;

typedef struct qat_train_options {
    size_t struct_size; /* sizeof this struct, or 0: as in version 0.1 (qat.h) */
    const char *dir;    /* NULL: the recipe's [output] dir */
    bool resume;        /* continue from dir/last.ckpt */
    bool overwrite;     /* start again in a folder with dir/last.ckpt; otherwise such a folder is an
                           error */
    void (*progress)(void *context, const qat_train_progress *progress); /* NULL: silent */
    /*
     * Called after each step and during evaluation; return true to write a checkpoint and return.
     * NULL: never.
     */
    bool (*stop)(void *context);
    void *context;
    /* Receives notes: what the data are, what train.init took, skipped and missed; NULL: nobody */
    const qat_log *log;
    const char *const *plugins; /* files to open instead of those of the recipe's plugin.path */
    int n_plugins;              /* 0: those of the recipe */
    uint64_t memory; /* the most bytes of one graph, of the teacher too, and in asynchronous runs of
                        one with the messages of all workers; 0: no limit */
    const qat_ranks *ranks; /* the processes that train together, each of which calls qat_train with
                               the same recipe; rank 0 writes the files. NULL: this one alone */
} qat_train_options;

typedef struct qat_train_result {
    int64_t step, steps; /* step < steps: the run stopped early */
    /* Of the last evaluation; n = 0: there was none. See qat_train_progress. */
    qat_accuracy float_accuracy, integer_accuracy, simulated_accuracy;
    int classes; /* number of classes in the data */
    double loss; /* of the last row of log.csv */
    double seconds;
    char checkpoint[512]; /* path */
} qat_train_result;

/**
 * Train as the recipe says. Writes dir/log.csv and, atomically, dir/last.ckpt, dir/best.ckpt and
 * dir/step-N.ckpt (see output.best, output.keep). The same recipe gives the same bytes in all of
 * them, for any number of threads, and also if it was interrupted and resumed. Times are in
 * dir/times.csv. A folder that already has a checkpoint is an error, unless the options say what to
 * do with it. Resuming does not create a folder. Only one run at a time may write in a folder.
 *
 * Once the run quantizes, each evaluation freezes the network and runs it on the integer engine:
 * integer_accuracy is exactly the accuracy of the .qm of this step. It decides about best.ckpt and
 * plateaus. If a network cannot become integers (for example because a layer stays in float), its
 * float32 simulation is evaluated instead, and options->log receives the reason once.
 *
 * If a file cannot be written (a full disk), there is a QAT_EVENT_WARNING; the previous checkpoint
 * stays, and writing is tried again. It is an error (QAT_ERR_IO) only at the end of the run, or
 * when the run is stopped. If a loss, a parameter or an evaluation score is NaN or infinite, the
 * run stops with QAT_ERR_NUMERIC, which names the step and the layer or parameter; the last
 * checkpoint stays.
 *
 * Several threads may train at the same time, each in its own folder. The functions in options are
 * called by the thread that called qat_train.
 */
qat_status qat_train(const qat_recipe *recipe, const qat_train_options *options,
                     qat_train_result *result, qat_error *err);

/* ------------------------------------------------------------------ checkpoints */

/** One tensor with its name. */
typedef struct qat_named_tensor {
    char name[QAT_NAME_MAX];
    qat_shape shape;
    float *values; /* owned */
} qat_named_tensor;

/** The state of a run that watches for plateaus (train.schedule = plateau, train.stop_patience). */
typedef struct qat_plateau {
    bool watched, ended; /* it has seen an evaluation; it has ended the run */
    int64_t stage;       /* stage of quantization in which `best` was reached */
    double best;         /* percent, or a loss */
    int64_t since,
        since_drop;  /* evaluations without improvement: in all, and since the last drop */
    int64_t drops;   /* drops of the learning rate */
    double loss_sum; /* sum over the steps since the last evaluation, if losses are watched */
    int64_t losses;  /* number of these losses */
} qat_plateau;

/**
 * The content of a checkpoint; docs/checkpoint.md describes the bytes. Any number of threads may
 * read it. While one thread changes it, no other may use it. What it gives lives as long as it.
 */
typedef struct qat_checkpoint qat_checkpoint;

qat_checkpoint *qat_checkpoint_new(void); /* NULL: out of memory */
void qat_checkpoint_free(qat_checkpoint *checkpoint);
qat_status qat_checkpoint_save(const qat_checkpoint *checkpoint, const char *path, qat_error *err);
/**
 * Load a checkpoint. If a byte was changed or is missing, the CRC or the checks find it, and the
 * error names it. Free it with qat_checkpoint_free. qat_checkpoint_parse reads bytes; name is the
 * name in messages.
 */
qat_status qat_checkpoint_load(qat_checkpoint **checkpoint, const char *path, qat_error *err);
qat_status qat_checkpoint_parse(qat_checkpoint **checkpoint, const void *bytes, size_t count,
                                const char *name, qat_error *err);
/** Is this the beginning of a checkpoint? */
bool qat_checkpoint_magic(const void *bytes, size_t count);
/**
 * Set the parameters of a planned graph. All trainable ones must be in the checkpoint, in the
 * graph's shapes. A parameter that a rewrite added and the checkpoint does not have keeps its
 * initial value.
 */
qat_status qat_checkpoint_params(const qat_checkpoint *checkpoint, qat_graph *graph,
                                 qat_error *err);

/**
 * Exchange the parameters and their averages. If there are no averages, return false and change
 * nothing.
 */
bool qat_checkpoint_swap_averages(qat_checkpoint *checkpoint);

/** Both ends of its network; the name of class i (0 .. input's classes - 1), NULL: it has none. */
const qat_input_info *qat_checkpoint_input(const qat_checkpoint *checkpoint);
const char *qat_checkpoint_label(const qat_checkpoint *checkpoint, int i);
/** Did the run quantize? Then how; delays are in steps. */
bool qat_checkpoint_quantized(const qat_checkpoint *checkpoint);
const qat_quant_options *qat_checkpoint_quant(const qat_checkpoint *checkpoint);
/** The parameters and the state of quantizers, *count of them. */
const qat_named_tensor *qat_checkpoint_tensors(const qat_checkpoint *checkpoint, int *count);
/** The plugins with which the run was trained, *count of them. */
const qat_plugin_file *qat_checkpoint_plugins(const qat_checkpoint *checkpoint, int *count);
/** The step after which it was written, and the SHA-256 of the file that was loaded, 32 bytes. */
int64_t qat_checkpoint_step(const qat_checkpoint *checkpoint);
const uint8_t *qat_checkpoint_digest(const qat_checkpoint *checkpoint);
/** The last evaluation: of the float network, on integers, of its simulation. */
typedef enum qat_judged { QAT_JUDGED_FLOAT, QAT_JUDGED_INTEGER, QAT_JUDGED_SIMULATED } qat_judged;
const qat_accuracy *qat_checkpoint_accuracy(const qat_checkpoint *checkpoint, qat_judged which);

/**
 * A checkpoint with everything that its graphs need. One thread at a time may use it. Graphs that
 * were made from it are separate handles.
 */
typedef struct qat_restored qat_restored;

/**
 * Load a checkpoint, open the plugins given and read its graph. A checkpoint may come from anybody,
 * so it never says which file is opened: it names its plugins, and each of them must be among the
 * files given, by content or by name. If one is missing, the status is QAT_ERR_STATE, nothing was
 * opened, and the message names it. A file with the name and another content (a plugin that was
 * built again) is taken; qat_restored_warning says so. If the run averaged its parameters,
 * params hold the averages, with which the run was evaluated; qat_restored_use_raw brings back
 * the parameters of the last step. Batch norm's averages and all ranges are those of the last step
 * in both cases. Free it with qat_restored_free.
 * @param plugins  shared objects to open; n_plugins 0: none
 */
qat_status qat_restore(qat_restored **restored, const char *path, const char *const *plugins,
                       int n_plugins, qat_error *err);
void qat_restored_free(qat_restored *restored);
/** A sentence about plugins that are not the run's own, or NULL. */
const char *qat_restored_warning(const qat_restored *restored);
/** What it holds. The float graph is not planned; qat_restored_read_graph makes another one. */
const qat_checkpoint *qat_restored_checkpoint(const qat_restored *restored);
qat_recipe *qat_restored_recipe(const qat_restored *restored);
const qat_plugins *qat_restored_plugins(const qat_restored *restored);
const qat_registry *qat_restored_registry(const qat_restored *restored);
const qat_graph *qat_restored_graph(const qat_restored *restored);
/** Make the float graph, planned, with its parameters. Free it with qat_graph_free; NULL after an
 * error. */
qat_status qat_restored_read_graph(const qat_restored *restored, qat_graph **graph, int max_batch,
                                   qat_plan plan, qat_error *err);
/**
 * Make the float graph of what an exported model computes in one run, planned for one sample: of a
 * network with model.steps, that of one step. Free it with qat_graph_free.
 */
qat_status qat_restored_read_step(const qat_restored *restored, qat_graph **graph, qat_error *err);

/**
 * Change what the checkpoint's network may take. qat_restore sets the default of qi_limits.memory
 * for each of its graphs. For its data it sets QAT_DEFAULT_DATA_MEMORY and QAT_PICTURE_MAX_PIXELS,
 * whatever its recipe says; a caller may set data.max_pixels.
 * @param limits  memory: bytes of one graph, and of one split of the data; 0: the limits stay as
 *                they are. macs: multiply-adds for one sample; 0: QI_DEFAULT_MACS
 * @return        QAT_ERR_LIMIT if the network has more multiply-adds
 */
qat_status qat_restored_limit(qat_restored *restored, const qi_limits *limits, qat_error *err);

/**
 * Take the parameters of the last step instead of their averages. If the run made no averages,
 * return false and change nothing.
 */
bool qat_restored_use_raw(qat_restored *restored);

/**
 * Change the quantization of the checkpoint's run: "quant.KEY=VALUE" with KEY one of layout,
 * profile, weight_bits, activation_bits, fraction, checked as in a recipe. Each call starts from
 * the checkpoint's own recipe, so give all changes in one. This is for calibration and comparison:
 * observed ranges belong to the run's own quantization.
 */
qat_status qat_restored_set_quant(qat_restored *restored, const char *const *sets, int n_sets,
                                  qat_error *err);

/**
 * Create a registry with the built-in ops and those of plugins: a comma list of paths, as a
 * recipe's plugin.path (or NULL), or an array of n files.
 */
qat_status qat_open_registry(qat_registry **registry, qat_plugins **plugins, const char *paths,
                             qat_error *err);
qat_status qat_open_registry_files(qat_registry **registry, qat_plugins **plugins,
                                   const char *const *files, int n, qat_error *err);

/* ------------------------------------------------------------------ deployment */

/** What post-training quantization did. */
typedef struct qat_ptq_report {
    char data[256];            /* the data used for calibration */
    int64_t samples;           /* number of samples */
    qat_equalized equalized;   /* zeros: equalization was not asked for */
    int corrected;             /* layers whose bias was corrected */
    double largest_correction; /* |change| of a bias */
} qat_ptq_report;

typedef struct qat_deploy_options {
    size_t struct_size; /* sizeof this struct, or 0: as in version 0.1 (qat.h) */
    bool has_profile;
    qat_profile profile;   /* instead of the checkpoint's */
    const char *calibrate; /* post-training quantization: observe the ranges of activations on the
                              training split of this "KIND[:PATH]" ("recipe": the recipe's data)
                              instead of using the checkpoint's */
    int64_t calibration_samples;    /* most samples; 0: 1000 */
    const qat_estimator *estimator; /* finds the ranges; NULL: minmax */
    double estimator_parameter;
    bool equalize, correct_bias; /* ptq.h */
    qat_ptq_report *report;      /* filled in by calibration; NULL: not needed */
    int64_t bn_reestimate; /* number of batches over which batch norm's averages are computed again
                              with quantized weights; 0: as the recipe says, -1: none */
    const char *data;      /* data to verify on, "KIND[:PATH]"; NULL: the recipe's test data */
    int64_t samples;       /* most samples to verify; 0: all */
    const qat_log *log;    /* warnings */
    qat_tick *tick;
    void *context;
    /** Writes the certified model to the path in another form; NULL: the .qm is written. */
    qat_status (*write)(void *context, const qi_host *model, const char *path, qat_error *err);
    void *write_context;
    /**
     * Processes that share the verification: all call qat_deploy with the same options, and each
     * runs samples of its own. Rank 0 writes the file. NULL: this process is alone.
     */
    const qat_ranks *ranks;
} qat_deploy_options;

/** A model with states, frame by frame against the model of whole sequences. */
typedef struct qat_streamed {
    int steps; /* of a sequence; 0: the model has no states */
    int64_t samples, bytes, differing;
} qat_streamed;

typedef struct qat_deploy_result {
    qat_compare compare; /* a model with states: of whole sequences */
    qat_certificate certificate;
    const char *certified_against; /* what the file was compared with; static text */
    int64_t input_codes; /* codes of pictures or rows that were compared: read as the .qm says, and
                            read as in training */
    char verified_on[640]; /* for example "idx fashion-mnist/test"; or "seeded random bytes" and the
                              reason */
    int64_t samples;       /* verified */
    int64_t float_bytes;   /* of the float network's trainable parameters */
    int64_t qm_bytes;
    int64_t arena_bytes; /* needed to run the model */
    qat_streamed streamed;
} qat_deploy_result;

/**
 * Make the eval graph of a checkpoint, planned QAT_PLAN_KEEP, with parameters set, and calibrated
 * if the options ask for it. A checkpoint of a float run is an error without calibration, because
 * it has no observed ranges.
 */
qat_status qat_restored_eval_graph(const qat_restored *restored, const qat_deploy_options *options,
                                   int max_batch, qat_graph **eval, qat_error *err);
/** Where the ranges of activations come from in an evaluation. */
typedef enum qat_ranges {
    QAT_RANGES_OBSERVED, /* in training or calibration; these are exported */
    QAT_RANGES_BATCH,    /* min and max of each batch, at run time */
    QAT_RANGES_WORST_CASE
} qat_ranges;

/**
 * The eval graph with ranges that were not observed (BATCH, WORST_CASE), planned QAT_PLAN_KEEP. It
 * is for qat_evaluate_graph and comparison only; it cannot be exported.
 */
qat_status qat_restored_baseline_graph(const qat_restored *restored, qat_ranges ranges,
                                       int max_batch, qat_graph **eval, qat_error *err);
/**
 * The integer graph of an eval graph. If the network takes pixels, the table of the input comes
 * first.
 */
qat_status qat_restored_freeze(const qat_restored *restored, const qat_deploy_options *options,
                               qat_graph *eval, qat_qgraph **graph, qat_error *err);

/**
 * The profile of an export if its format prefers this one and nobody asked for another: this one,
 * but the checkpoint's own where it has 16-bit activations or sums with fractional bits that this
 * one has not.
 */
qat_profile qat_restored_prefer_profile(const qat_restored *restored, qat_profile preferred);

/**
 * Export a checkpoint to a .qm: eval graph, freeze, input table, write to memory, verify byte for
 * byte, and certify against the checkpoint (certify.h). Only then the file is written, atomically.
 * If anything differs, nothing is written and the result is QAT_ERR_MISMATCH; `result` holds what
 * was compared. It is an error if path holds a
 * checkpoint. If the recipe's test data cannot be opened, seeded random bytes are used, and
 * verified_on says so and why. Data named by `data` must exist.
 */
qat_status qat_deploy(const qat_restored *restored, const char *path,
                      const qat_deploy_options *options, qat_deploy_result *result, qat_error *err);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
