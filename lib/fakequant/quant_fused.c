/**
 * bias and batch norm have no integer op of their own: they become the int32 bias (and, folded, the
 * weights) of the conv, depthwise or fully connected layer before them. One that has no such layer
 * before it is rewritten as a 1x1 depthwise convolution (rewrites), so that nothing else is left.
 */
#include "autograd/op.h"
#include "qat/quant.h"

const qat_quant qat_quant_bias = {.role = QAT_ROLE_FUSED};
const qat_quant qat_quant_batch_norm = {.role = QAT_ROLE_FUSED};
