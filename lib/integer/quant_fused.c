/**
 * bias and batch norm have no integer op of their own. They become the int32 bias (and, folded, the
 * weights) of the conv, depthwise or fully connected layer before them. If there is no such layer
 * before one, the rewrites make it a 1x1 depthwise convolution.
 */
#include "autograd/ops/op.h"
#include "qat/quant.h"

const qat_quant qat_quant_bias = {.role = QAT_ROLE_BIAS, .takes_wide = true};
const qat_quant qat_quant_batch_norm = {.role = QAT_ROLE_NORM, .takes_wide = true};
