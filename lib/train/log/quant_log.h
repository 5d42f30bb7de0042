/** quant.csv: ranges, scales and changes of weight codes, layer by layer (quant_log.c). */
#ifndef QAT_TRAIN_QUANT_LOG_H
#define QAT_TRAIN_QUANT_LOG_H

#include "qat/train.h"

typedef struct qat_quant_log qat_quant_log;

/**
 * Start dir/quant.csv for a planned training graph (borrowed). from: the checkpoint from which the
 * run continues, whose rows are kept, or NULL.
 */
qat_status qat_quant_log_open(qat_quant_log **log, const qat_graph *training, const char *dir,
                              const qat_checkpoint *from, qat_error *err);
void qat_quant_log_close(qat_quant_log *log);
/** Add rows for all tensors after this many steps. */
qat_status qat_quant_log_rows(qat_quant_log *log, int64_t step, qat_error *err);
/** Write rows to the file that could not be written before. */
qat_status qat_quant_log_flush(qat_quant_log *log, qat_error *err);
/**
 * Append what is remembered about the weights to a checkpoint's parameters, which must have room
 * for one more per node of the graph; and read it back.
 */
qat_status qat_quant_log_save(const qat_quant_log *log, qat_checkpoint *checkpoint, qat_error *err);
void qat_quant_log_restore(qat_quant_log *log, const qat_checkpoint *checkpoint);

#endif
