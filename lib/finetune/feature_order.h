/** Private to libqat: the order of the features of a sample, here and in PyTorch. */
#ifndef QAT_FINETUNE_FEATURE_ORDER_H
#define QAT_FINETUNE_FEATURE_ORDER_H

#include "qat/graph.h"

/** The number of values that a sample of x has. */
int qat_features_of(const qat_node *x);

/** Is order[i] = i? */
bool qat_is_own_order(const int *order, int n);

/**
 * order[i]: where PyTorch has the i-th feature of a sample of x. order has qat_features_of(x)
 * elements. A feature map [H, W, C] is [C, H, W] in PyTorch, and flatten keeps the order of each.
 * x must be in the float graph as it was built: a rewritten graph has other ops.
 * QAT_ERR_UNSUPPORTED if an op on the way does not show its order; the error names it.
 */
qat_status qat_feature_order(const qat_node *x, int *order, qat_error *err);

#endif
