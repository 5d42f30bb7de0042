/** What a checkpoint holds, and its layout, which writer and reader share; docs/checkpoint.md. */
#ifndef QAT_CHECKPOINT_CHECKPOINT_H
#define QAT_CHECKPOINT_CHECKPOINT_H

#include "base/bytes.h"
#include "qat/train.h"

struct qat_checkpoint {
    char *recipe; /* canonical text */
    char *graph;  /* the float graph, as qat_graph_write */
    qat_input_info input;
    char task[QAT_NAME_MAX]; /* its name, if the file has it: not of the built-in tasks */
    char **labels;           /* input.classes names, or NULL */
    bool quantized;
    qat_quant_options quant; /* delays in steps; valid if quantized */
    qat_profile profile;
    int n_params;
    qat_named_tensor *params;
    int n_slots; /* optimizer slots per parameter; the tensors of one parameter follow each other */
    bool averaged; /* the last slot is the parameter's moving average */
    int n_slot_tensors;
    qat_named_tensor *slots;
    int64_t step, optimizer_steps;
    double loss_sum; /* sums since the last row of log.csv: */
    int64_t loss_count, sample_count, correct_count;
    double gradient_norm; /* of this step, if its row of log.csv is still to be written */
    /* Of the last evaluation: the float network, the quantized one on integers, its simulation. */
    qat_accuracy float_accuracy, integer_accuracy, simulated_accuracy;
    double last_loss;
    qat_plateau plateau;
    uint8_t teacher[32];     /* SHA-256 of the teacher's checkpoint; zeros: none */
    qat_data_digest data[2]; /* by qat_split; count 0: not known (versions 1 and 2) */
    int n_plugins;           /* with which the run was trained; versions 1 to 3 do not say */
    qat_plugin_file *plugins;
    char *log;          /* log.csv so far */
    uint8_t digest[32]; /* SHA-256 of the file; set by loading */
};

/** Flags of a plateau. */
enum { QAT_PLATEAU_WATCHED = 1, QAT_PLATEAU_ENDED = 2 };

/** The longest label, in bytes. */
enum { QAT_LABEL_MAX = 4095 };

#define QAT_CHECKPOINT_MAGIC "QATCKPT\n"

enum {
    QAT_CHECKPOINT_VERSION = 4,
    QAT_CHECKPOINT_HEADER = 24,   /* magic, version, number of sections, file size */
    QAT_CHECKPOINT_SECTIONS = 10, /* 9 in version 3, 8 in versions 1 and 2 */
    QAT_CHECKPOINT_TRAILER = 4,   /* CRC-32 */
    QAT_CHECKPOINT_MAX_BYTES = INT32_MAX,
    QAT_CHECKPOINT_MAX_CLASSES = 65536,
    /* Names are compared one by one. A graph has at most 32768 nodes; quant.csv adds a tensor to a
     * parameter, an optimizer up to 3. */
    QAT_CHECKPOINT_MAX_PARAMETERS = 1 << 16,
    QAT_CHECKPOINT_MAX_SLOTS = 3 << 15,
    QAT_CHECKPOINT_MAX_PLUGINS = 64
};

/** Append the whole file's bytes; path is for the message. */
qat_status qat_checkpoint_bytes(const qat_checkpoint *checkpoint, qat_writer *w, const char *path,
                                qat_error *err);

/** Set the task of the network and of its figures, which a file may only name. */
void qat_checkpoint_set_task(qat_checkpoint *checkpoint, const qat_task *task);

/** The tags of the sections, in the file's order. */
#define QAT_TAG_RECIPE     "RECP"
#define QAT_TAG_GRAPH      "GRPH"
#define QAT_TAG_INPUT      "DATA"
#define QAT_TAG_QUANT      "QUAN"
#define QAT_TAG_PARAMETERS "PARM"
#define QAT_TAG_OPTIMIZER  "OPTM"
#define QAT_TAG_PROGRESS   "PROG"
#define QAT_TAG_LOG        "LOGT"
#define QAT_TAG_DIGESTS    "SETS"
#define QAT_TAG_PLUGINS    "PLUG"

#endif
