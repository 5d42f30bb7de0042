/**
 * qat: quantization-aware training and integer-only inference (Jacob et al., 2017).
 *
 *   status.h   error codes and messages
 *   version.h  the version of these headers
 *   runtime.h  the version of the library, the number of threads
 *   graph.h    tensors, ops, static graphs, differentiation, optimizers, schedules
 *   quant.h    fake quantization, observers, batch-norm folding, graph rewrites, exact evaluation
 *   quantizer.h quantizers of one's own: observers, learned ranges, gradient rules
 *   certify.h  what a .qm holds against the float network, its parameters and ranges
 *   convert.h  frozen graph to integer graph to .qm, and the byte-for-byte verification
 *   debug.h    what quantization did to each layer, beside the float network and other runtimes
 *   export.h   a .qm as a file of another tool
 *   dataset.h  loaders, procedural sets, augmentation, prefetching
 *   task.h     what networks answer: how they learn to, how answers are judged and told
 *   train.h    recipes, networks by name, the training loop, checkpoints
 *   budget.h   the bits of each layer under a budget of flash, RAM and multiply-adds
 *   plugin.h   custom layers and tasks in a shared object
 *   rounding.h how an accumulator becomes a code, for kernels of one's own
 *   ptq.h      post-training quantization: calibration, equalization, bias correction
 *   border.h   float32 inputs and outputs of an integer model, a detector's last step
 *   detect.h   boxes, anchors, matching, non-maximum suppression, average precision
 *   infer.h    the integer engine (libqatinfer), which needs none of the others
 *   sound.h    features of sound in integers (libqatinfer)
 *
 * A program that was compiled with older headers runs with every later library of the same soname,
 * because of structs only this changes:
 *
 * - Structs without members here (qat_recipe, qat_graph, qi_host ...): anything, for programs only
 *   ask functions.
 * - Structs with a member struct_size (qi_host_options, qat_train_options, qat_deploy_options,
 *   qat_dataset_options, qat_pack_options, qat_write_options, qat_c_options, qat_budget_options):
 *   members are added at the end. 0, which a zeroed struct has, is the size of version 0.1. A
 *   program that sets later members sets struct_size = sizeof, too. More than the library knows is
 *   QAT_ERR_UNSUPPORTED.
 * - Structs that the library gives by a const pointer (qat_dataset_info, qat_batch,
 *   qat_train_progress): members are added at the end.
 * - Structs shared with plugins (QAT_PLUGIN_STRUCTS): a plugin says its version (plugin.h), and the
 *   library refuses another one.
 * - All others are plain data, which do not change; what is new is a new function.
 */
#ifndef QAT_QAT_H
#define QAT_QAT_H

#include "qat/border.h"
#include "qat/budget.h"
#include "qat/certify.h"
#include "qat/convert.h"
#include "qat/dataset.h"
#include "qat/debug.h"
#include "qat/detect.h"
#include "qat/export.h"
#include "qat/graph.h"
#include "qat/infer.h"
#include "qat/plugin.h"
#include "qat/ptq.h"
#include "qat/quant.h"
#include "qat/quantizer.h"
#include "qat/rounding.h"
#include "qat/runtime.h"
#include "qat/sound.h"
#include "qat/status.h"
#include "qat/task.h"
#include "qat/train.h"
#include "qat/version.h"

#endif
