/**
 * Private to libqat: converts the weights of a PyTorch state_dict to the names and the order of
 * this project.
 *
 *     theirs                                   here
 *     M.weight [O, I, H, W], convolution       M/weights [O, H, W, I]
 *     M.weight [O, 1, H, W], depthwise         M/weights [1, H, W, O]
 *     M.weight [I, O, H, W], transposed        M/weights [O, H, W, I]
 *     M.weight [O, I, W], on signals           M/weights [O, 1, W, I]
 *     M.weight [O, I], linear                  M/weights [O, I]; after a flattened [C, H, W] the
 *                                              inputs are brought into the order [H, W, C]
 *     M.bias                                   M/bias/bias
 *     M.weight, M.bias of a batch norm         M/gamma, M/beta
 *     M.running_mean, M.running_var            M/ema_mean, M/ema_variance
 *     M.num_batches_tracked                    M/ema_steps
 */
#ifndef QAT_FINETUNE_TORCH_LAYOUT_H
#define QAT_FINETUNE_TORCH_LAYOUT_H

#include "finetune/weights_file.h"

/** Find a name that only PyTorch gives, such as "bn1.running_mean"; NULL: there is none. */
const char *qat_torch_name_in(const qat_weights_file *file);

/**
 * In all functions below, graph is the float graph as it was built. The training graph would not
 * do: quantization rewrites it, for example a batch norm of vectors becomes a depthwise
 * convolution. It must have shapes (a graph has them as soon as it is built or read).
 *
 * Give the file's tensors (after train.init_map) the names of the network. If torchvision has the
 * network, its names are translated. Otherwise '/' replaces '.'.
 *
 * If modules of the file then have no layer, and layers of the network have no weights, both are
 * matched by their order. This needs the same number of modules with the same kinds and shapes.
 * Modules of equal shape must be numbered in the same way (conv1, conv2; features.0, features.3).
 * Otherwise the function fails, and prints both lists.
 */
qat_status qat_torch_rename(qat_weights_file *file, const qat_graph *graph,
                            const qat_recipe *recipe, const qat_log *log, qat_error *err);

/**
 * Bring the values of tensors that have the network's names into the network's order. If a
 * convolution has a bias in the file but none in the network, the bias is subtracted from the mean
 * of the batch norm that follows, which gives the same outputs. Without a batch norm it is an
 * error. So is a tensor whose order is not known; train.init_skip leaves it out.
 */
qat_status qat_torch_convert(qat_weights_file *file, const qat_graph *graph,
                             const qat_recipe *recipe, const char *path, qat_error *err);

/** The shape that PyTorch's shape `theirs` gets here, for a tensor that goes to param. Unchanged if
 *  the ranks do not fit. */
qat_shape qat_torch_shape(const qat_graph *graph, const qat_node *param, const qat_shape *theirs);

#endif
