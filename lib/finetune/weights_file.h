/** Private to libqat: tensors by name, from a checkpoint or from a NumPy .npz. */
#ifndef QAT_FINETUNE_WEIGHTS_FILE_H
#define QAT_FINETUNE_WEIGHTS_FILE_H

#include "qat/train.h"

typedef struct qat_weights_file {
    int count;
    qat_named_tensor *tensors; /* owned */
    bool is_npz;               /* else a checkpoint */
} qat_weights_file;

/**
 * Read the parameters of a checkpoint (or their averages if it has them), without observed ranges.
 * Or read the arrays of a .npz: float32 or float64, rank 1..4, with the names of the archive's
 * entries. PyTorch's num_batches_tracked, an int64 of rank 0, is an array of one. The first bytes
 * of the file decide. Names too long for a node, other types and other ranks are errors that name
 * the array.
 * @param most  the most bytes that the arrays of a .npz may take (data.memory). A checkpoint is as
 *              large as its file
 */
qat_status qat_weights_read(qat_weights_file *file, const char *path, uint64_t most,
                            qat_error *err);
void qat_weights_free(qat_weights_file *file);
/** NULL: there is no tensor with this name. */
const qat_named_tensor *qat_weights_find(const qat_weights_file *file, const char *name);

/**
 * Does this belong to a quantizer (observed, learned, or the log of its codes)? A run starts it
 * again.
 */
bool qat_is_quantizer_state(const char *name);

#endif
