# Sourced by mutants.sh: strides, dilations, paddings, kernels, groups, axes.

export_mutant window-conv-strides-swapped lib/fakequant/quant_conv.c 's/^        window->stride_h,$/        window->stride_w,/'
export_mutant window-conv-dilations-swapped lib/fakequant/quant_conv.c 's/^        window->dilation_h,$/        window->dilation_w,/'
export_mutant window-conv-padding-of-rows lib/fakequant/quant_conv.c \
    's/qat_pad_before(x->dims\[2\], y->dims\[2\], w->dims\[2\], window->stride_w, window->dilation_w)/qat_pad_before(x->dims[1], y->dims[1], w->dims[1], window->stride_h, window->dilation_h)/'
export_mutant window-conv-padding-without-dilation lib/fakequant/quant_ops.c 's/(kernel - 1) \* dilation + 1;/kernel;/'
export_mutant window-groups lib/fakequant/quant_conv.c 's/: x->dims\[3\] \/ w->dims\[3\];/: 1;/'
export_mutant window-depth-multiplier lib/fakequant/quant_conv.c 's/? w->dims\[3\] \/ x->dims\[3\]/? 1/'
export_mutant window-pool-kernel-turned lib/fakequant/quant_pool.c 's/{w->kernel_h,$/{w->kernel_w,/'
export_mutant window-pool-padding lib/fakequant/quant_pool.c 's/w->kernel_w, w->stride_w, 1),/w->kernel_w, w->stride_w, 1) + 1,/'
export_mutant window-global-pool lib/fakequant/quant_pool.c 's/\.kernel_w = x->dims\[2\], \.stride_h/.kernel_w = x->dims[2] - 1, .stride_h/'
export_mutant window-max-is-mean lib/fakequant/quant_pool.c 's/return freeze_pool(layer, "max_pool2d", err);/return freeze_pool(layer, "average_pool2d", err);/'
