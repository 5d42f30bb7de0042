/** Private to libqat: fine-tuning, which starts from the weights of another run. */
#ifndef QAT_FINETUNE_INIT_H
#define QAT_FINETUNE_INIT_H

#include "qat/train.h"

/**
 * Set the parameters of a planned training graph from the file that train.init names, if any. They
 * are found by name, after train.init_map. Layers in train.init_skip, and observed ranges, keep
 * their initial values. What was taken, skipped and missing is written to the log, one line each.
 * If tensors have another shape, the error lists all of them.
 *
 * float_graph is the network as it was built. It shows the order of PyTorch's weights; quantization
 * rewrites the training graph, where other ops stand in their place.
 */
qat_status qat_init_from_file(qat_graph *training, const qat_graph *float_graph,
                              const qat_recipe *recipe, const qat_log *log, qat_error *err);

#endif
