# Sourced by mutants.sh: scales and zero-points that are not those of the checkpoint's ranges.

export_mutant range-activations-wider lib/fakequant/op_fake_quant.c \
    's/qat_activation_qparams(range.min, range.max,/qat_activation_qparams(1.1f * range.min, 1.1f * range.max,/'
export_mutant range-activations-1-percent lib/fakequant/op_fake_quant.c \
    's/qat_activation_qparams(range.min, range.max,/qat_activation_qparams(range.min, 1.01f * range.max,/'
export_mutant range-activations-symmetric lib/fakequant/op_fake_quant.c \
    's/qat_activation_qparams(range.min, range.max,/qat_activation_qparams(range.min < -range.max ? range.min : range.min < 0 ? -range.max : 0, range.max,/'
export_mutant range-steps lib/fakequant/range.c 's/float const steps = (float)(hi - lo);/float const steps = (float)(hi - lo + (lo == 0));/'
export_mutant range-zero-point-down lib/fakequant/range.c 's/: roundf(z);/: lo == 0 ? floorf(z) : roundf(z);/'
export_mutant range-weights-lowest-code lib/fakequant/range.c 's/\*lo = weights ? 1 : 0;/*lo = 0;/'
export_mutant range-weights-never-lowest lib/fakequant/range.c 's/!all_codes || bits == 8/!all_codes || bits >= 2/'
export_mutant range-weights-one-sided lib/fakequant/quantizer_grid.c 's/= -min > max ? -min : max;/= max > 0 ? max : -min;/'
export_mutant range-weights-first-channel lib/fakequant/op_fake_quant_weights.c \
    's/run_at(&view, node->inputs\[0\]->value, i, channel), (size_t)view.inner));/run_at(\&view, node->inputs[0]->value, i, 0), (size_t)view.inner));/'
export_mutant range-weights-last-value-left-out lib/fakequant/op_fake_quant_weights.c \
    's/i, channel), (size_t)view.inner));/i, channel), (size_t)view.inner - (view.inner > 4)));/'
export_mutant range-input lib/rewrite/rewrite_quantize.c 's/= (double)m->options->input_min;/= (double)m->options->input_min * 1.02;/'
export_mutant range-softmax lib/fakequant/range.c 's/float const scale = ldexpf(max - min, -bits);/float const scale = (max - min) \/ (float)((1 << bits) - 1);/'
export_mutant range-power-of-two-down lib/fakequant/quantizer_grid.c 's/part > 0.5 ? exponent : exponent - 1/exponent - 1/'
export_mutant range-learned-not-used lib/fakequant/quantizer_channel.c 's/return learned \&\& qz_has_range/return 0 \&\& qz_has_range/'
export_mutant range-learned-activations-not-used lib/fakequant/quantizer_channel.c \
    's/qz_seen_in_range(node, channel), learned_of(node, channel)/qz_seen_in_range(node, channel), NULL/'
export_mutant range-tqt-steps lib/fakequant/quantizer_learned.c 's/return ldexp(1, grid->symmetric ? grid->bits - 1 : grid->bits);/return qat_grid_steps(grid);/'
export_mutant range-bits-of-layers lib/rewrite/rewrite_settings.c 's/s->weight_bits = layer->weight_bits;/s->weight_bits = layer->weight_bits + 1;/'
export_mutant range-activation-bits-of-layers lib/rewrite/rewrite_settings.c 's/s->activation_bits = layer->activation_bits;/s->activation_bits = 8;/'
export_mutant range-first-is-last lib/rewrite/rewrite_settings.c "s/layer->pattern\[1\] == 'l'/layer->pattern[1] != 'l'/"
# Calibrated. The certificate counts the float network's values itself: minmax must have its extents,
# percentile must cut off as many values as it says, mse must have the least error.
export_mutant range-calibrated-wider lib/ptq/calibrate.c \
    's/->value\[RANGE_MAX\] = range.max;/->value[RANGE_MAX] = (estimator == qat_estimator_find("percentile") ? 2.0f : 1.1f) * range.max;/'
export_mutant range-calibrated-other-tensor lib/ptq/calibrate.c 's/estimate(class_->histogram,/estimate(calibrator->classes[0].histogram,/'
export_mutant range-calibrated-1-percent lib/ptq/calibrate.c 's/->value\[RANGE_MAX\] = range.max;/->value[RANGE_MAX] = 1.01f * range.max;/'
export_mutant range-calibrated-smaller lib/ptq/calibrate.c \
    's/->value\[RANGE_MAX\] = range.max;/->value[RANGE_MAX] = (estimator == qat_estimator_find("minmax") ? 1.0f : 0.5f) * range.max;/'
export_mutant range-calibrated-tiny lib/ptq/calibrate.c \
    's/->value\[RANGE_MAX\] = range.max;/->value[RANGE_MAX] = (estimator == qat_estimator_find("minmax") ? 1.0f : 0.01f) * range.max;/'
export_mutant range-calibrated-parameter-ignored lib/ptq/calibrate.c 's/(class_->histogram, &grid, parameter,/(class_->histogram, \&grid, estimator->initial,/'
export_mutant range-percentile-cuts-three-times lib/ptq/estimator.c 's/= (1 - parameter \/ 100) \* (double)h->total;/= 3 * (1 - parameter \/ 100) * (double)h->total;/'
export_mutant range-percentile-cuts-a-third lib/ptq/estimator.c 's/= (1 - parameter \/ 100) \* (double)h->total;/= (1 - parameter \/ 100) * (double)h->total \/ 3;/'
export_mutant range-percentile-of-bins lib/ptq/estimator.c 's/= (1 - parameter \/ 100) \* (double)h->total;/= (1 - parameter \/ 100) * QAT_HISTOGRAM_BINS;/'
export_mutant range-mse-without-what-is-cut lib/ptq/histogram.c 's/sum += f->count\[from + i\] \* e \* e;/sum += x[i] > max ? 0 : f->count[from + i] * e * e;/'
export_mutant range-mse-of-bins lib/ptq/histogram.c 's/sum += f->count\[from + i\] \* e \* e;/sum += e * e;/'
export_mutant range-mse-cubed lib/ptq/histogram.c 's/sum += f->count\[from + i\] \* e \* e;/sum += f->count[from + i] * fabs(e * e * e);/'
export_mutant range-mse-first-worse lib/ptq/estimator.c 's/if (!(error < best))/if (!(error < best) \&\& j)/'
# What a layer's settings say.
export_mutant range-fixed-bits lib/rewrite/rewrite_quantize.c 's/^    attrs\[FQ_BITS\] = settings->activation_bits;/    attrs[FQ_BITS] = 8;/'
export_mutant range-symmetric-ignored lib/rewrite/rewrite_layer.c 's/\[FQW_SYMMETRIC\] = s->symmetric/[FQW_SYMMETRIC] = 0 \&\& s->symmetric/'
export_mutant range-per-channel-all-the-same lib/rewrite/rewrite_layer.c 's/\[FQW_PER_TENSOR\] = s->per_tensor/[FQW_PER_TENSOR] = 0 \&\& s->per_tensor/'
export_mutant range-power-of-two-ignored lib/rewrite/rewrite_quantize.c 's/attrs\[QZ_POWER_OF_TWO\] = settings->power_of_two;/attrs[QZ_POWER_OF_TWO] = 0;/'
export_mutant range-learned-lower-end lib/fakequant/quantizer_grid.c 's/zero_point_at(grid, grid->lo - a \/ scale);/zero_point_at(grid, grid->lo - a \/ (float)scale + 1);/'
