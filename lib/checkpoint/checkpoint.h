/** The layout of a checkpoint, which its writer and its reader share; docs/checkpoint.md. */
#ifndef QAT_CHECKPOINT_CHECKPOINT_H
#define QAT_CHECKPOINT_CHECKPOINT_H

#include "base/bytes.h"
#include "qat/train.h"

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
