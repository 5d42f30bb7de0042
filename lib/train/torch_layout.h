/**
 * Inside lib/train: weights as PyTorch's state_dict names and orders them, turned into this
 * project's.
 *
 *     theirs                                   here
 *     M.weight [O, I, H, W], convolution       M/weights [O, H, W, I]
 *     M.weight [O, 1, H, W], depthwise         M/weights [1, H, W, O]
 *     M.weight [O, I, W], on signals           M/weights [O, 1, W, I]
 *     M.weight [O, I], linear                  M/weights [O, I]; behind a flattened [C, H, W] the
 *                                              inputs are brought into the order [H, W, C]
 *     M.bias                                   M/bias/bias
 *     M.weight, M.bias of a batch norm         M/gamma, M/beta
 *     M.running_mean, M.running_var            M/ema_mean, M/ema_variance
 *     M.num_batches_tracked                    M/ema_steps
 */
#ifndef QAT_TRAIN_TORCH_LAYOUT_H
#define QAT_TRAIN_TORCH_LAYOUT_H

#include "train/weights_file.h"

/** A name in the file that only PyTorch gives, as "bn1.running_mean"; NULL: there is none. */
const char *qat_torch_name_in(const qat_weights_file *file);

/**
 * Give the file's tensors (after train.init_map) the network's names: by torchvision's names where
 * the network is one of these, else by their own with '/' for '.'. Where names leave modules of the
 * file without a place and layers of the network without weights, the order of both decides, if it
 * can: as many modules of the same kinds and shapes, and of those with equal shapes each numbered
 * like the others (conv1, conv2; features.0, features.3). Else it fails with both lists.
 */
qat_status qat_torch_rename(qat_weights_file *file, const qat_graph *graph,
                            const qat_recipe *recipe, const qat_log *log, qat_error *err);

/**
 * Bring the values of tensors that have the network's names into its order. A convolution's bias
 * for which there is no place is taken off the mean of the batch norm behind it, which gives the
 * same outputs; without a batch norm it is an error.
 */
qat_status qat_torch_convert(qat_weights_file *file, const qat_graph *graph, const char *path,
                             qat_error *err);

/** The shape here of a tensor that is `theirs` there and goes to param; as it is where the ranks do
 *  not fit. */
qat_shape qat_torch_shape(const qat_graph *graph, const qat_node *param, const qat_shape *theirs);

#endif
