/**
 * Functions that read the sections of a checkpoint (docs/checkpoint.md). Each reads its section as
 * the next one and checks every field against its limits. Errors name the file and the section.
 */
#ifndef QAT_CHECKPOINT_CHECKPOINT_READ_H
#define QAT_CHECKPOINT_CHECKPOINT_READ_H

#include "base/bytes.h"
#include "checkpoint/checkpoint.h"

/** The state of reading: also the file's name and the section, for messages. */
typedef struct ckpt_reading {
    qat_reader r;
    const char *name, *tag;
    qat_checkpoint *c;
    uint32_t version; /* of the file */
    qat_error *err;
} ckpt_reading;

qat_status ckpt_bad_section(ckpt_reading *p, const char *what);
/** Restrict the reader to one section; *rest is what follows it. */
qat_status ckpt_open_section(ckpt_reading *p, const char *tag, qat_reader *rest);
qat_status ckpt_close_section(ckpt_reading *p, qat_reader rest);

qat_status ckpt_read_text(ckpt_reading *p, const char *tag, char **text);
qat_status ckpt_read_input(ckpt_reading *p);
qat_status ckpt_read_quant(ckpt_reading *p);
qat_status ckpt_read_parameters(ckpt_reading *p);
qat_status ckpt_read_optimizer(ckpt_reading *p);
qat_status ckpt_read_progress(ckpt_reading *p);
qat_status ckpt_read_digests(ckpt_reading *p);
qat_status ckpt_read_plugins(ckpt_reading *p);

#endif
