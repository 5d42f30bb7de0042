/** What a layer of depthwise_conv2d is; see depthwise_conv2d.h. */
#ifndef QK_DEPTHWISE_LAYER_H
#define QK_DEPTHWISE_LAYER_H

#include "infer/kernels/parts/requant.h"
#include "infer/kernels/parts/rows.h"
#include "infer/kernels/parts/window.h"

typedef struct qk_depthwise_conv2d {
    qi_window window;
    int32_t multiplier; /* m */
    qi_codes x_codes, weight_codes;
    qi_rows weights; /* one row of KH KW C m codes */
    qi_requant requant;
} qk_depthwise_conv2d;

#endif
