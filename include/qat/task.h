/**
 * Tasks: what a network answers, how it learns to, how its answers are judged, and how they are
 * told. Classes, boxes, attributes with a value, a value alone, real values, labels, classes of
 * pixels, and anomalies are the built-in ones; each is one file of lib/task. A task is a constant
 * of data and functions. Everything else asks it, and never which one it is.
 *
 *     data ----> takes, input    which task it is, and what its network answers in numbers
 *     network -> ends, open      outputs and loss behind the last layer; what the graph says
 *     a step --> feed, count     targets of a batch; how many answers were right
 *     a pass --> begin, add, judge, end      figures over a data set: of a float graph, of an
 *                                            integer graph, of an integer model, all by one `add`
 *     a file --> finish, of_model, answer    the epilogue of a .qm, back from it, an answer as text
 *
 * docs/adding-a-task.md adds one.
 *
 * Lifetimes. A task and all that its table points to live as long as the registry that it was added
 * to, and longer: figures name it (a plugin with tasks therefore stays in memory). Where `open`
 * succeeded, `close` gets what it made, once; where it failed, `close` gets what it left in *state,
 * unless that is NULL. `end` is called once a pass, also where `begin` failed or was not reached,
 * with what is in *pass then, which may be NULL. Several threads may call the functions at a time,
 * but one pass and one graph belong to one thread, and *state is only read after `open`.
 */
#ifndef QAT_TASK_H
#define QAT_TASK_H

#include "qat/border.h"
#include "qat/dataset.h"
#include "qat/graph.h"
#include "qat/infer.h"
#include "qat/quant.h"
#include "qat/status.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef struct qat_recipe qat_recipe; /* train.h */
typedef struct qat_task qat_task;
struct qat_certified_file;

enum { QAT_CHANNEL_VALUES = 4 }; /* most values of mean and std */

/**
 * Both ends of a network: everything between a picture and the numbers that the network sees, and
 * what its answers mean.
 */
typedef struct qat_input_info {
    int height, width, channels, classes;
    qat_sample_type type;
    float mean[QAT_CHANNEL_VALUES],
        std[QAT_CHANNEL_VALUES]; /* per channel; with more than 4 channels, the first counts for all
                                  */
    float min, max;              /* range of the real values after normalisation */
    int resize_short;            /* for pictures in files: as in qat_dataset_options */
    int central_crop;            /* likewise, in millionths; if > 0, resize_short is not used */
    const qat_task *task;        /* what the network answers; NULL: classes */
    void *state;                 /* what task->open made; borrowed */
    qat_attributes attributes;   /* of samples with targets, or what another task's `input` notes
                                    here: a checkpoint keeps count, outputs, low and width */
    float within;                /* evaluation: how near a value must be to be right */
    float *chosen;               /* evaluation on a validation split: where a task notes what it
                                    chooses by it (attributes.low); NULL: it chooses nothing */
    const struct qat_witness *witness; /* who sees the answers of a pass beside the task, or NULL */
} qat_input_info;

/* ------------------------------------------------------------------ figures */

enum { QAT_MAX_FIGURES = 8, QAT_MAX_OUTPUTS = 4 };

typedef enum qat_figure_kind {
    QAT_FIGURE_COUNT, /* of samples; told in percent of n */
    QAT_FIGURE_SHARE, /* 0..1; told in percent. -1: not known */
    QAT_FIGURE_REAL   /* in a unit of its own. -1: not known */
} qat_figure_kind;

/** One number of the judgement over a data set. */
typedef struct qat_figure {
    const char *name;   /* for people: "top-1" */
    const char *column; /* in log.csv and JSON, behind "float_" and the like: "top1" */
    qat_figure_kind kind;
    bool optional; /* it may not be known. Otherwise -1 is told as any number */
    int above;     /* told only of networks with more classes than this */
} qat_figure;

/** The judgement over n samples. */
typedef struct qat_accuracy {
    int64_t n;                       /* 0: nothing was evaluated */
    const qat_task *task;            /* which judged; NULL if n is 0 */
    double figures[QAT_MAX_FIGURES]; /* those of task->figures */
} qat_accuracy;

/** The figures of the built-in tasks. */
enum { QAT_TOP1, QAT_TOP5, QAT_ONLY_ANSWER /* the class of all n answers, or -1 */ };
enum {
    QAT_AP,
    QAT_AP50,
    QAT_AP50_LOW, /* see qat_ap50_interval, level 0.95. Without objects no AP is known */
    QAT_AP50_HIGH,
    QAT_PRECISION, /* qat_precision_and_recall for scores of 1/2 or more */
    QAT_RECALL
};
enum {
    QAT_CATEGORY_AP, /* mean of the average precisions of the attributes */
    QAT_WITHIN,      /* share of values that are right (qat_input_info.within) */
    QAT_MEAN_ERROR   /* mean absolute error of values, in their own unit */
};

/** A figure as it is told: counts and shares in percent. NaN: not evaluated, or not known. */
double qat_figure_of(const qat_accuracy *accuracy, int figure);
/** The same of task->main, by which people compare networks. */
double qat_main_figure(const qat_accuracy *accuracy);
/** The number by which networks are compared: best.ckpt has the best one. NaN: not evaluated. */
double qat_score(const qat_accuracy *accuracy);
/** Is score a better than b? task->less_is_better decides. */
bool qat_score_is_better(const qat_task *task, double a, double b);

/* ------------------------------------------------------------------ what a task is given */

/** What a network's body leaves to the task. */
typedef struct qat_net_ends {
    qat_graph *graph;
    const qat_recipe *recipe;
    const qat_input_info *input;
    qat_node *last;      /* of the body: logits, unless it ends in a softmax */
    qat_node *second;    /* the head named task->second; NULL: there is none */
    qat_node *auxiliary; /* logits of a second classifier that only training uses, or NULL */
} qat_net_ends;

/** An output of a network for some samples, one behind the other. */
typedef struct qat_output {
    const char *name;
    size_t n;          /* values of one sample */
    const float *real; /* [samples, n]; NULL: codes */
    const void *codes; /* [samples, n]: each stands for scale (code - zero_point) */
    qi_type type;
    float scale;
    int32_t zero_point;
} qat_output;
/** Sample i as real numbers, [n]. */
void qat_output_real(const qat_output *output, size_t i, float *real);
/** The codes of sample i, of an output that has codes. */
const void *qat_output_codes(const qat_output *output, size_t i);

typedef struct qat_outputs {
    int n;
    qat_output at[QAT_MAX_OUTPUTS];
    const qi_model *model; /* whose outputs these are; NULL: those of a graph */
} qat_outputs;

/** Called for the first `count` samples of each batch of a pass, after the task's `add`. */
typedef struct qat_witness {
    qat_status (*see)(void *context, const qat_outputs *outputs, const qat_batch *batch, int count,
                      qat_error *err);
    void *context;
} qat_witness;

/** What the scores of a sample are: figures of many samples are made of them. */
typedef enum qat_score_kind {
    QAT_SCORES_NONE,
    QAT_SCORES_ONE_OF, /* of each class; one class is true: truth[0] */
    QAT_SCORES_EACH,   /* probabilities of units that are there or not, each on its own */
    QAT_SCORES_RANKED, /* the same, but only the order of the scores means something */
    QAT_SCORES_VALUES  /* numbers that should be near the true ones */
} qat_score_kind;

/** One answer of a model, to be told. */
typedef struct qat_answer {
    const qi_model *model;
    const void *const *outputs; /* codes, from qi_run */
    const char *name;           /* of the picture or array */
    bool json;
    int64_t top;  /* classes: how many to tell */
    double least; /* boxes: the least score; -1: all */
} qat_answer;

/** A text that grows. */
typedef struct qat_writer qat_text;
/** Append, as printf formats it; numbers have a point in every locale. */
void qat_text_add(qat_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/** Append a figure: "98.10 %" of counts and shares, else "%.6g"; "not known" if it is not. */
void qat_text_add_figure(qat_text *text, const qat_accuracy *accuracy, int figure);
/** Append a stranger's text without bytes that would disturb a terminal; as a string of JSON. */
void qat_text_add_shown(qat_text *text, const char *of);
void qat_text_add_json(qat_text *text, const char *of);
/** The label of a model's class as JSON or for a terminal; "" if it has none. */
void qat_text_add_label(qat_text *text, const qi_model *model, int class_, bool json);

/* ------------------------------------------------------------------ the type */

/**
 * A task. NULL is a fine value of each function and text that does not say otherwise.
 * qat_registry_add_task checks this, names and the numbers of figures.
 */
struct qat_task {
    const char *name;     /* "classes": its own, shorter than QAT_NAME_MAX. Not NULL */
    const char *network;  /* what its networks are called: "classifier". Not NULL */
    const char *units;    /* what there are info.classes of: "classes"; NULL: it has none */
    const char *target;   /* name of an input that its float graphs have and no others. Not NULL */
    const char *second;   /* name of the head that its networks have beside the logits */
    const char *missing;  /* "no boxes, but the network finds some": data that it does not take. Not
                             NULL but of the built-in classes */
    const char *unwanted; /* the same of data that only this task takes, and another network. Not
                             NULL but of the built-in classes */
    const char *no_top;   /* why qat-run --top is refused; NULL: it is not */
    bool implied;         /* checkpoints do not name it, and keep only n_kept of its figures: only
                             built-in tasks, which are older than the name */
    int n_kept;
    bool checks_loaders;       /* data of others are refused wherever they are read, not only where
                                  answers are judged */
    bool by_recipe;            /* only a recipe can ask for it: without one, its data are those of
                                  another task */
    bool less_is_better;       /* of score and main figure */
    bool distills;             /* its networks can learn from a teacher */
    int main;                  /* the figure by which people compare networks; in log.csv */
    int also;                  /* a further one that is told at the end of a run; -1: none */
    bool logs_both;            /* the further one is in log.csv, too */
    int n_figures;             /* 1..QAT_MAX_FIGURES */
    const qat_figure *figures; /* not NULL */

    /**
     * Is it the task for these data? Asked again, with recipe = NULL, wherever data are opened for
     * its networks. NULL: for all that no other task takes, only of the built-in classes.
     */
    bool (*takes)(const qat_recipe *recipe, const qat_dataset_info *data);
    /** Check that recipe and data fit; set what the network answers (input->attributes). */
    qat_status (*input)(qat_input_info *input, const qat_recipe *recipe,
                        const qat_dataset_info *data, qat_error *err);

    /** The number of outputs of the second head; 0: these data need none. */
    int (*second_outputs)(const qat_input_info *input);
    /** Mark the outputs and add the loss, named QAT_LOSS_NAME. Not called if the body did so. */
    qat_status (*ends)(const qat_net_ends *net, qat_error *err);
    /** Make *state of a network's float graph. It becomes input->state. With `close`. */
    qat_status (*open)(void **state, const qat_graph *graph, const qat_recipe *recipe,
                       const qat_input_info *input, qat_error *err);
    void (*close)(void *state);

    /** Write a batch's targets into the training graph; labels are there already. */
    qat_status (*feed)(const qat_input_info *input, const qat_recipe *recipe, qat_graph *graph,
                       const qat_batch *batch, qat_error *err);
    /** Of a batch in training: how many answers are known, and right. NULL: they are not judged. */
    void (*count)(const qat_input_info *input, const qat_graph *graph, const qat_batch *batch,
                  int64_t *known, int64_t *right);

    /**
     * A pass over a data set: begin, add for the first `count` samples of each batch, judge, end.
     * Not NULL.
     */
    qat_status (*begin)(void **pass, const qat_input_info *input, qat_error *err);
    qat_status (*add)(void *pass, const qat_outputs *outputs, const qat_batch *batch, int count,
                      qat_error *err);
    qat_status (*judge)(const void *pass, qat_accuracy *accuracy, qat_error *err);
    void (*end)(void *pass);

    /**
     * For figures, such as curves and confusion: how many scores has a sample, [n], and those of
     * sample i, with what is true, [n]: 1 or 0, or the true values; NaN where it is not known. All
     * or none of these three.
     */
    qat_score_kind scored;
    int (*n_scores)(const qat_input_info *input);
    qat_status (*scores)(const qat_input_info *input, const qat_outputs *outputs,
                         const qat_batch *batch, int i, float *scores, float *truth,
                         qat_error *err);

    /** qat_score; NULL: the main figure. */
    double (*score)(const qat_accuracy *accuracy);
    /** Figures as one line for people, and as ", \"PREFIXcolumn\": value" for JSON. Not NULL. */
    void (*tell)(qat_text *text, const qat_accuracy *accuracy, int classes);
    void (*tell_json)(qat_text *text, const qat_accuracy *accuracy, const char *prefix);
    /** Look at the figures at the end of a run: `text` stays empty, or becomes a warning. */
    qat_status (*remark)(char *text, size_t max, const char *network, const qat_accuracy *accuracy,
                         const qat_dataset *test, qat_error *err);

    /** The label before those of the classes in a .qm; NULL: there is none. */
    const char *(*first_label)(const qat_recipe *recipe);
    /** Add the epilogue (docs/qm-format.md) to a frozen network. */
    qat_status (*finish)(const qat_input_info *input, qat_qgraph *graph, qat_error *err);
    /** Of the certificate: check the epilogue against recipe and float graph. */
    qat_status (*certify)(const struct qat_certified_file *file, const qi_epilogue *epilogue);
    /** Does the model give an answer that `answer` can tell? Not NULL. */
    bool (*answers)(const qi_model *model);
    /** Can its answers be judged? Then set input->classes and what else `input` sets. Any model
     *  may come. Not NULL. */
    bool (*of_model)(qat_input_info *input, const qi_model *model);
    /** What qat_answer may take at most: as qat_detector_limit. */
    qat_status (*limit)(const qi_model *model, const char *name, const qi_limits *limits,
                        qat_error *err);
    /** Tell the epilogue behind its name and tensors: ": boxes of 3 classes". */
    void (*tell_epilogue)(qat_text *text, const qi_model *model);
    /**
     * Tell one answer behind the name of its sample: the rest of a line (": value 3\n"), or of an
     * object of JSON (", \"value\": 3}\n"). Only of models that `answers`. Not NULL.
     */
    qat_status (*answer)(qat_text *text, const qat_answer *answer, qat_error *err);
};

/**
 * The tasks: those added to the registry (qat_registry_add_task, a plugin; NULL: none) and the
 * built-in ones, in the order in which they are asked.
 */
int qat_tasks(const qat_registry *registry);
const qat_task *qat_task_at(const qat_registry *registry, int i);
/** By name; NULL: there is none. */
const qat_task *qat_task_find(const qat_registry *registry, const char *name);
/** The task of data, of a float graph, of a model's answers (NULL: of none). */
const qat_task *qat_task_for(const qat_registry *registry, const qat_recipe *recipe,
                             const qat_dataset_info *data);
const qat_task *qat_task_of_graph(const qat_graph *graph);
const qat_task *qat_task_of_model(const qat_registry *registry, const qi_model *model);
/** The task of an input; classes if it has none. */
const qat_task *qat_task_of(const qat_input_info *input);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
