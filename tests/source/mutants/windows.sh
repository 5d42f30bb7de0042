# Sourced by mutants.sh: strides, dilations, paddings, kernels, groups, axes.

export_mutant window-conv-strides-swapped lib/integer/quant_conv.c 's/{window->stride_h,$/{window->stride_w,/'
export_mutant window-conv-dilations-swapped lib/integer/quant_conv.c 's/^\( *\)window->dilation_h,$/\1window->dilation_w,/'
export_mutant window-conv-padding-of-rows lib/integer/quant_conv.c \
    's/^\( *\)pads\[1\],$/\1pads[0],/'
export_mutant window-conv-padding-without-dilation lib/integer/quant_ops.c 's/(kernel - 1) \* dilation + 1;/kernel;/'
export_mutant window-groups lib/integer/quant_conv.c 's/: x->dims\[3\] \/ w->dims\[3\];/: 1;/'
export_mutant window-depth-multiplier lib/integer/quant_conv.c 's/? w->dims\[3\] \/ x->dims\[3\]/? 1/'
export_mutant window-pool-kernel-turned lib/integer/quant_pool.c 's/{w->kernel_h, w->kernel_w/{w->kernel_w, w->kernel_w/'
export_mutant window-pool-padding lib/integer/quant_pool.c 's/w->stride_w, pads\[0\], pads\[1\], 0/w->stride_w, pads[0], pads[1] + 1, 0/'
export_mutant window-global-pool lib/integer/quant_pool.c 's/\.kernel_w = x->dims\[2\], \.stride_h/.kernel_w = x->dims[2] - 1, .stride_h/'
export_mutant window-max-is-mean lib/integer/quant_pool.c 's/return freeze_pool(layer, "max_pool2d", err);/return freeze_pool(layer, "average_pool2d", err);/'
export_mutant window-explicit-sides-swapped lib/integer/quant_ops.c 's/? w->pad_left$/? w->pad_top/'
export_mutant window-explicit-ignored lib/integer/quant_ops.c 's/pads\[0\] = w->explicit_pads$/pads[0] = false/'
export_mutant window-pad-value lib/integer/quant_pool.c 's/params\[PAD_VALUE\] = x->zero_point;/params[PAD_VALUE] = x->zero_point + 1;/'
export_mutant window-padding-not-counted lib/integer/quant_pool.c 's/if (qat_attr(layer->head, "count_padding") == 0)/if (qat_attr(layer->head, "count_padding") <= 1)/'
export_mutant window-global-pool-as-mean lib/integer/quant_pool.c 's/^    if (layer->profile != QAT_PROFILE_PAPER)$/    if (1)/'
export_mutant window-attributes-lost lib/rewrite/rewrite.c 's/return qat_apply_values(m->graph, node->op, name, node->attrs, /double lost[QAT_MAX_ATTRS]; memcpy(lost, node->attrs, sizeof lost); if (!strcmp(node->op->name, "conv2d")) lost[6] = lost[7] = 1; return qat_apply_values(m->graph, node->op, name, lost, /'
