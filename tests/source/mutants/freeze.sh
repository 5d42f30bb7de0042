# Sourced by mutants.sh: a layer frozen wrongly. The engine and the exact evaluation agree on the wrong
# graph. The float layers that it was made from do not.

freeze_mutant freeze-relu6 lib/convert/freeze.c 's/\.act_max = fused->max,/.act_max = fused->max == 6.0f ? 5.0f : fused->max,/'
freeze_mutant freeze-relu lib/convert/freeze.c 's/\.act_min = fused->min,/.act_min = -INFINITY,/'
freeze_mutant freeze-bias-not-taken lib/layer/layer.c '/^qat_layer qat_layer_before/,/^}/s/layer\.bias = node;/;/'
freeze_mutant freeze-mul lib/integer/quant_binary.c \
    's/(double)s1 \* (double)s2 \/ (double)s3/1.1 * &/'
freeze_mutant freeze-mul-1-percent lib/integer/quant_binary.c \
    's/(double)s1 \* (double)s2 \/ (double)s3/1.01 * &/'
freeze_mutant freeze-add-input lib/integer/quant_binary.c \
    's/qat_requantize_multiplier(s2 \/ twice,/qat_requantize_multiplier(0.98 * s2 \/ twice,/'
freeze_mutant freeze-add-output lib/integer/quant_binary.c \
    's/qat_requantize_multiplier(twice \/ out,/qat_requantize_multiplier(1.02 * twice \/ out,/'
freeze_mutant freeze-conv-multiplier lib/integer/quant_conv.c \
    's/return product \//return 1.01 * product \//'
freeze_mutant freeze-conv-channel lib/integer/quant_conv.c \
    's/w->channel_scales\[channel\]/w->channel_scales[0]/'
freeze_mutant freeze-conv-padding lib/integer/quant_ops.c 's/(int)(total \/ 2)/(int)((total + 1) \/ 2)/'
freeze_mutant freeze-clamp lib/integer/quant_ops.c \
    's/roundf(bound \/ t->scale)/roundf(0.97f * bound \/ t->scale)/'
freeze_mutant freeze-bias-scale lib/integer/quant_weights.c \
    's/return ldexp((double)f->x->scale \* (double)w,/return ldexp(1.1 * (double)f->x->scale * (double)w,/'
freeze_mutant freeze-weights lib/integer/quant_weights.c \
    's/? qat_code_per_channel(&p,/? -qat_code_per_channel(\&p,/'
freeze_mutant freeze-requantize lib/integer/quant_activation.c \
    's/: (double)x->scale \/ (double)y->scale/: 1.05 * (double)x->scale \/ (double)y->scale/'
freeze_mutant freeze-window lib/integer/quant_pool.c \
    's/w->kernel_w, w->stride_h, w->stride_w/w->kernel_w, w->stride_w, w->stride_w/'
freeze_mutant freeze-mean-axes lib/integer/quant_pool.c 's/1 << 1 | 1 << 2/1 << 1/'
freeze_mutant freeze-mean-count lib/integer/quant_pool.c 's/<< k) \/ n)/<< k) \/ (n + 1))/'
freeze_mutant freeze-sub lib/integer/quant_binary.c 's/"sub", err/"add", err/'
freeze_mutant freeze-concat-axis lib/integer/quant_concat.c \
    's/(int)qat_attr(layer->head, "axis")/3/'
freeze_mutant freeze-pixels lib/convert/input_table.c \
    's/return centred \/ std;/return centred \/ (std * 1.05f);/'

