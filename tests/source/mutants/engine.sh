# Sourced by mutants.sh: mistakes in the engine and in the arithmetic that it shares with the exact
# evaluation. A test must notice them.

# Ties reversed in the shared arithmetic.
mutant srdhm-ties test_fixedpoint include/qat/rounding.h \
    's/(int64_t)a \* b + (INT64_C(1) << 30);/(int64_t)a * b + (INT64_C(1) << 30) - 1;/'
mutant rdbp-ties test_fixedpoint include/qat/rounding.h \
    's/(mask >> 1) + (x < 0);/(mask >> 1) + (x >= 0);/'
mutant up-ties test_fixedpoint include/qat/rounding.h \
    's/mult + half + (half >> 14)) >> right);/mult + half - 1) >> right);/'
mutant half-up-negative test_fixedpoint include/qat/rounding.h \
    's/quotient - (quotient \* 2 \* n > twice)/quotient/'
mutant half-sum-ties test_fixedpoint include/qat/rounding.h \
    's/(sum + (sum >= 0 ? 1 : -1)) \/ 2/(sum + (sum >= 0 ? 0 : 0)) \/ 2/'
mutant srdhm-saturation test_fixedpoint include/qat/rounding.h \
    's/if (a == INT32_MIN \&\& b == INT32_MIN)/if (0)/'

# Kernels of the engine changed in one place.
mutant even-distance kernels/test_even lib/infer/host/loops/even.h 's/ DISTANCE = 13/ DISTANCE = 16/'
mutant even-least-distance kernels/test_even lib/infer/host/loops/even.h 's/LEAST_DISTANCE = 2/LEAST_DISTANCE = 0/'
mutant whole-lines kernels/test_sum_line lib/infer/host/loops/sum_line.c \
    's/high = shift_up(room.high, f);/high = shift_up(room.high, f) + mult;/'
mutant whole-lines-shift kernels/test_gemm lib/infer/host/loops/gemm_pack.c \
    's/steps.right - (steps.fraction - p->fraction) - 1/steps.right - 1/'
mutant merged-groups kernels/test_conv lib/infer/host/drivers/fast_conv.c \
    's/memcpy(to + (size_t)(o \/ channels) \* run, from, run)/memcpy(to, from, run)/'
mutant groups-left-to-core kernels/test_conv lib/infer/host/drivers/fast_conv.c \
    's/ LEAST = 512 / LEAST = 1 << 30 /'
mutant transposed-phase kernels/test_conv lib/infer/host/drivers/fast_transpose_conv.c \
    's/phase = (first + pad) % stride,/phase = first % stride,/'
mutant transposed-outside kernels/test_conv lib/infer/host/drivers/patches.c \
    's/if (taps.start >= size)/if (taps.start > size)/'
mutant conv-pad-value kernels/test_conv lib/infer/kernels/parts/codes.h \
    's/memset((uint8_t \*)to + at, qi_zero_byte(c), n)/memset((uint8_t *)to + at, qi_zero_byte(c) + 1, n)/'
mutant conv-dilation kernels/test_conv lib/infer/kernels/conv2d.h \
    's/ty.start + ky \* g->dilation_h/ty.start + ky/'
mutant conv-group kernels/test_conv lib/infer/kernels/conv2d.h 's/i \* qk_conv2d_group_channels(p))/0)/'
mutant layer-zero-point test_property lib/infer/model/op.c \
    's/\(\.zero_point = qi_output(call->model, call->node)->zero_point\),/\1 + 1,/'
mutant layer-clamp test_property lib/infer/model/op.c \
    's/\.hi = call->node->params\[at + 1\]/.hi = call->node->params[at + 1] - 1/'
mutant layer-one-multiplier test_property lib/infer/model/op.c \
    's/\.mult_step = qi_count(mult) > each/.mult_step = 0/'
mutant layer-fraction test_property lib/infer/model/op.c \
    's/\.fraction = call->node->fraction,/.fraction = call->node->fraction > 3 ? 3 : call->node->fraction,/'
mutant depthwise-dilation test_property lib/infer/kernels/depthwise_conv2d.h \
    's/tx.start + kx \* g->dilation_w/tx.start + kx/'
mutant depthwise-multiplier test_property lib/infer/kernels/depthwise_conv2d.h \
    's/\*pixel++ = d;/*pixel++ = (int16_t)(d + (j == 2));/'
mutant average-rounding test_property lib/infer/kernels/parts/pool_layer.h \
    's/qi_divide_half_away(sum, pixels)/sum \/ pixels/'
mutant average-once test_property lib/infer/kernels/parts/pool_layer.h \
    's/qi_divide_half_up(sum, pixels)/qi_divide_half_away(sum, pixels)/'
mutant resize-exact test_property lib/infer/arithmetic/positions.h \
    's/\* in - out : i \* in;/* in : i * in;/'
mutant host-resize-away kernels/test_elementwise lib/infer/host/drivers/resize_plan.c \
    's/p\.blend\.flip \* p\.blend\.n;/0;/'
mutant host-resize-float kernels/test_elementwise lib/infer/host/drivers/resize_plan.c \
    's/a->whole <= MOST/1/'
mutant host-resize-division kernels/test_elementwise lib/infer/host/drivers/resize_plan.c \
    's/return (n \* mult - one) \* most < one;/return 1;/'
mutant host-nearest-row kernels/test_elementwise lib/infer/host/drivers/fast_resize.c \
    's/if (from == copied)/if (copied)/'
mutant host-pad-border kernels/test_elementwise lib/infer/host/drivers/fast_pad.c \
    's/x >= r->x_dims\[d\]/x > r->x_dims[d]/'
mutant binary-once test_property lib/infer/kernels/pairs.h 's/qi_requantize_near_ties_up(x, p->mult/qi_requantize(x, p->mult/'
mutant average-count test_property lib/infer/kernels/pool.h \
    's/int32_t const pixels = .*;/int32_t const pixels = p->window.kernel_h * p->window.kernel_w;/'
mutant max-off-by-one test_property lib/infer/kernels/pool.h 's/memset(y, lo, channels)/memset(y, lo + 1, channels)/'
mutant binary-clamp test_property lib/infer/kernels/pairs.h \
    's/qi_clamp(qi_saturate_i64(code), p->lo, p->hi)/qi_clamp(qi_saturate_i64(code), p->lo + 1, p->hi)/'
mutant binary-broadcast test_property lib/infer/model/op.c \
    's/stride\[d\] = dim == 1 ? 0 : distance;/stride[d] = distance;/'
mutant concat-order test_property lib/infer/kernels/move.h 's/(uint8_t \*)y + p->at;/(uint8_t *)y + p->row - p->at - p->part;/'
mutant table-row test_property lib/infer/kernels/elementwise.h 's/table\[c \* QK_CODES +/table[0 * QK_CODES +/'
mutant requantize-zero-point test_property lib/infer/kernels/elementwise.h \
    's/qi_requantize(q - r->x_zero_point,/qi_requantize(q - r->x_zero_point + 1,/'
mutant softmax-row test_property lib/infer/ops/op_softmax.c 's/\.shift = p\[QI_SOFTMAX_SHIFT\],/.shift = p[QI_SOFTMAX_SHIFT] - (p[QI_SOFTMAX_SHIFT] > 0),/'

mutant sub-order test_property lib/infer/kernels/add.h 's/a - b/b - a/'
mutant mean-rounding test_property lib/infer/kernels/mean.h 's/scale(sums\[i\], p->mult,/scale(sums[i], p->mult + 4096,/'
