/**
 * The state of a training run, which trainer.c sets up, loop.c runs, and state.c saves and
 * restores.
 */
#ifndef QAT_TRAIN_TRAINER_H
#define QAT_TRAIN_TRAINER_H

#include "autograd/shards/shards.h"
#include "evaluate/data.h"
#include "train/distill.h"
#include "train/log/log_file.h"
#include "train/log/quant_log.h"
#include "train/log/run_folder.h"
#include "train/plateau.h"

/** When things happen, in steps. */
typedef struct qat_plan_of_run {
    int64_t per_epoch, total;
    int64_t eval_every, log_every, checkpoint_every, quant_log_every;
    int64_t quant_start; /* the first step that may quantize; INT64_MAX: never */
} qat_plan_of_run;

/** Sums since the last row of the log. */
typedef struct qat_tally {
    double loss_sum;
    int64_t losses, samples, correct;
    double gradient_norm; /* of the step to which a row belongs */
} qat_tally;

/** How a network was evaluated. Each value is nearer to what a device runs than those before. */
typedef enum qat_evaluated {
    QAT_EVALUATED_FLOAT,
    QAT_EVALUATED_SIMULATED,
    QAT_EVALUATED_INTEGER
} qat_evaluated;

/** How good the network of a checkpoint was on the test split; step -1: not known. */
typedef struct qat_mark {
    int64_t step;
    int stage; /* of the schedules of bits: how many are past */
    qat_evaluated as;
    const qat_task *task;
    double score; /* qat_score */
} qat_mark;

/** As what a step's checkpoint is kept, beside last.ckpt. */
typedef struct qat_kept {
    bool best; /* as best.ckpt */
    bool step; /* as step-N.ckpt */
} qat_kept;

/** A checkpoint that could not be written where it is kept. Its bytes wait for a better moment. */
typedef struct qat_waiting {
    struct qat_waiting *next; /* of a later step */
    qat_kept as;
    int64_t step;
    qat_writer bytes;
} qat_waiting;

typedef struct qat_board qat_board;
typedef struct qat_async qat_async;

typedef struct qat_trainer {
    const qat_recipe *recipe;
    const qat_train_options *options;
    const qat_ranks *ranks; /* NULL: this process trains alone */
    qat_async *async;       /* NULL: the ranks share every step */
    const char *dir;
    char checkpoint_path[QAT_RUN_PATH_MAX];
    int lock; /* lock of the folder; -1: not held */

    qat_plugins *plugins;
    qat_registry *registry;
    qat_dataset *train_data, *test_data; /* test_data: what evaluations are on, which may be the
                                            validation split */
    qat_data_digest digests[2];          /* theirs */
    bool data_checked;                   /* they are what they were when the run began */
    qat_loader *loader;
    qat_input_info input;

    qat_quant_options quant;
    qat_schedule schedule; /* drops: counted by the plateau */
    qat_plan_of_run plan;
    qat_patience patience;
    qat_plateau plateau;

    char *graph_text;    /* the float graph */
    qat_graph *training; /* planned for training: the float graph, or its rewrite; if the
                            batch has shards, the graph of the first one of this process */
    qat_graph **graphs;  /* of all shards of this process; graphs[0] is training */
    int n_graphs;
    qat_shards *shards;        /* NULL: the batch has no shards, and there are no other ranks */
    qat_graph *float_eval;     /* for the float network's accuracy */
    qat_graph *integer_eval;   /* frozen for each evaluation on integers; NULL: not possible */
    qat_graph *simulated_eval; /* for the float32 simulation of the quantized network; planned when
                                  it is needed; NULL where quantization is off */
    bool simulation_planned;
    bool simulation_told; /* the log says that an evaluation is simulated, and why */
    qat_node *loss;
    qat_teacher *teacher; /* NULL: none */
    qat_optimizer *optimizer;

    int64_t step;       /* taken */
    int64_t saved_step; /* step of the checkpoint on disk; -1: none */
    qat_tally tally;
    qat_accuracy float_accuracy, integer_accuracy, simulated_accuracy;
    double last_loss;

    qat_mark best;        /* of best.ckpt, also of one that still waits */
    qat_waiting *waiting; /* by rising step; NULL: nothing waits */
    double retry_at;      /* time at which writing is tried again; INFINITY: nothing to write */
    bool stopped;         /* a stop was requested */
    bool agreed;          /* all ranks have compared what they begin with */
    bool stop_agreed;     /* some rank was asked to stop before the end of this step */
    bool log_behind;      /* the warning that the logs could not be written was given */

    qat_log_file log, times, waits; /* waits: with other ranks only */
    qat_quant_log *quant_log;       /* NULL: none is written */
    qat_board *board;               /* NULL: nothing is written for TensorBoard */
    double seconds_before;          /* seconds before a resume */
    double started;                 /* clock */
    double samples_per_second;
} qat_trainer;

/** Does this process write the files of the run? With other ranks, rank 0 does. */
bool qat_trainer_leads(const qat_trainer *t);

/** Monotonic seconds. */
double qat_clock(void);
/** The seconds of this training, all its runs together. */
double qat_trainer_seconds(const qat_trainer *t);

/**
 * Give all graphs the bits that this step is run with. starts: the step is about to be run, and
 * what was learned is rescaled if the bits change; otherwise it was run.
 */
void qat_trainer_set_bits(qat_trainer *t, int64_t step, bool starts);

/** Was this process asked to stop? */
bool qat_trainer_wants_stop(const qat_trainer *t);
/** Take one training step. */
qat_status qat_trainer_step(qat_trainer *t, qat_error *err);

/** What a batch gave, beside gradients: its loss, how many answers are known, how many right. */
typedef struct qat_outcome {
    double loss, known, right;
} qat_outcome;

/* The parts of a step (step.c), for those that take it otherwise: */
/** The run of the step that comes next. */
qat_run qat_trainer_run(const qat_trainer *t);
/** The gradients of the next batch; with other ranks, *o is of this process. */
qat_status qat_trainer_compute(qat_trainer *t, const qat_run *run, qat_outcome *o, qat_error *err);
/** Let the optimizer use the gradients. */
void qat_trainer_descend(qat_trainer *t);
void qat_trainer_add_to_tally(qat_trainer *t, const qat_outcome *o);
/** Count the step, if the parameters are finite. */
qat_status qat_trainer_end_step(qat_trainer *t, double loss, qat_error *err);

/** Is the row of log.csv due after this step? (loop.c) */
bool qat_trainer_row_due(const qat_trainer *t, int64_t step);
/** The text about the checkpoint that exists. */
const char *qat_trainer_kept_text(const qat_trainer *t, char *text, size_t max);
/** The error for a value out of range in a step (the first is 1), with that text. */
qat_status qat_trainer_not_finite(const qat_trainer *t, int64_t step, const char *what,
                                  qat_error *err);

/** Set up everything before the first step. */
qat_status qat_trainer_open(qat_trainer *t, const qat_recipe *recipe,
                            const qat_train_options *options, qat_error *err);
void qat_trainer_close(qat_trainer *t);

/** Make the recipe's optimizer, after planning and initialising the training graph. */
qat_status qat_trainer_open_optimizer(qat_trainer *t, qat_error *err);
/**
 * Set the parameters for evaluation: those of the training graph, or their averages if they are
 * averaged.
 */
void qat_trainer_eval_params(const qat_trainer *t, qat_graph *eval);

/**
 * Evaluate the networks of this step on the test split and fill in the row's figures. tick is
 * called with t; if it stops an evaluation, nothing changes and QAT_OK is returned.
 * QAT_ERR_NUMERIC: a score is not finite.
 */
qat_status qat_trainer_evaluate(qat_trainer *t, qat_tick *tick, qat_train_progress *row,
                                qat_error *err);
/**
 * Evaluate the quantized network as integers, on the engine. n = 0: it cannot become integers, and
 * `why` is the reason. t->integer_eval must be there.
 */
qat_status qat_trainer_evaluate_integers(qat_trainer *t, qat_tick *tick, qat_accuracy *accuracy,
                                         qat_error *why, qat_error *err);
/** Report once that quantized networks are evaluated in float32 simulation, and why. */
void qat_trainer_tell_simulated(qat_trainer *t, const char *why);

/**
 * The ranks that share evaluations; NULL: each does all of them. With TensorBoard rank 0 looks into
 * the layers, at every batch. In asynchronous training rank 0 alone evaluates.
 */
const qat_ranks *qat_trainer_judges(const qat_trainer *t);

/** Apply the plateau's drops, and its end of the run. */
void qat_trainer_apply_plateau(qat_trainer *t);

/** Refuse a run whose checkpoints would be larger than they may be. */
qat_status qat_trainer_check_size(const qat_trainer *t, qat_error *err);
/** The bytes of this step's checkpoint. */
qat_status qat_trainer_state_bytes(const qat_trainer *t, qat_writer *w, qat_error *err);
/**
 * Write dir/last.ckpt, and keep it beside as qat_trainer_kept says. What cannot be written now
 * (QAT_ERR_IO) and should be kept waits in memory for the next call.
 */
qat_status qat_trainer_save(qat_trainer *t, qat_error *err);
/** Continue from dir/last.ckpt. */
qat_status qat_trainer_resume(qat_trainer *t, qat_error *err);
/** The first parameter of the training graph with a value that is not finite, or NULL. */
const qat_node *qat_trainer_nonfinite(const qat_trainer *t);

/** The step of the last row of log.csv; -1: it has none. */
int64_t qat_trainer_last_row(const qat_trainer *t);
/** Start quant.csv if the recipe asks for it. from: the resumed checkpoint, or NULL. */
qat_status qat_trainer_open_quant_log(qat_trainer *t, const qat_checkpoint *from, qat_error *err);
/** Is the network of this step, just evaluated, better than best.ckpt's? */
bool qat_trainer_is_best(const qat_trainer *t);
/** Read how good best.ckpt is, if it exists. */
qat_status qat_trainer_read_best(qat_trainer *t, qat_error *err);
/**
 * As what this step's checkpoint is kept. That depends on the recipe and the results only, not on
 * when a run was stopped or a disk was full. So all runs of a recipe keep the same steps.
 */
qat_kept qat_trainer_kept(const qat_trainer *t);
/** Keep last.ckpt, which is of this step: write best.ckpt, step-N.ckpt; remove older ones. */
qat_status qat_trainer_keep(qat_trainer *t, qat_kept as, qat_error *err);
/** Take the bytes of this step's checkpoint until they can be written. QAT_ERR_NOMEM is possible.
 */
qat_status qat_trainer_let_wait(qat_trainer *t, qat_kept as, qat_writer *bytes);
/** Write what waits. */
qat_status qat_trainer_write_waiting(qat_trainer *t, qat_error *err);
void qat_trainer_free_waiting(qat_trainer *t);

/**
 * Start log.csv: with the header, or with what the checkpoint has of it. Start times.csv with its
 * old rows.
 */
qat_status qat_trainer_open_logs(qat_trainer *t, const char *text, qat_error *err);
/**
 * With other ranks: append to ranks.csv how long each has waited since the last row, and what it
 * has sent. Every rank calls it.
 */
qat_status qat_trainer_log_waits(qat_trainer *t, qat_error *err);
/** Append a row to both. If it could not be written, it is written with the next one. */
qat_status qat_trainer_log_row(qat_trainer *t, const qat_train_progress *row, qat_error *err);
/** Write to both files what is missing. */
qat_status qat_trainer_flush_logs(qat_trainer *t, qat_error *err);

#endif
