# Sourced by mutants.sh: the integers that stand for real multipliers, clamps and tables.

export_mutant multiplier-16-bits lib/integer/multiplier.c 's/\*mult = (int32_t)q;/*mult = (int32_t)q \& ~0xffff;/'
export_mutant multiplier-24-bits lib/integer/multiplier.c 's/\*mult = (int32_t)q;/*mult = (int32_t)q \& ~0xff;/'
export_mutant multiplier-rounded-down lib/integer/multiplier.c 's/(int64_t)round(ldexp(fraction, 31))/(int64_t)floor(ldexp(fraction, 31))/'
export_mutant multiplier-float32 lib/integer/quant_conv.c 's/= in_float32 ? (double)(s1 \* s2)/= 1 ? (double)(s1 * s2)/'
export_mutant multiplier-float64 lib/integer/quant_conv.c 's/= in_float32 ? (double)(s1 \* s2)/= 0 ? (double)(s1 * s2)/'
export_mutant multiplier-previous-channel lib/integer/quant_conv.c \
    's/double const m = ldexp(multiplier(a, c),/double const m = ldexp(multiplier(a, c > 0 ? c - 1 : 0),/'
export_mutant multiplier-input-scale lib/integer/quant_conv.c 's/x->scale, s2, a->e->graph/1.0f, s2, a->e->graph/'
export_mutant multiplier-shift lib/integer/quant_ops.c 's/^    \*shift = exponent;/    *shift = exponent + (exponent == -7);/'
export_mutant multiplier-split-halves lib/integer/quant_conv.c 's/mult\[2 \* c\] = (int32_t)(uint32_t)significand;/mult[2 * c] = 0;/'
export_mutant multiplier-add-swapped lib/integer/quant_binary.c 's/qat_requantize_multiplier(s1 \/ twice,/qat_requantize_multiplier(s2 \/ twice,/'
export_mutant multiplier-add-smaller lib/integer/quant_binary.c 's/2.0 \* (s1 > s2 ? s1 : s2)/2.0 * (s1 < s2 ? s1 : s2)/'
export_mutant multiplier-mul-float32 lib/integer/quant_binary.c 's/e->profile == QAT_PROFILE_PAPER ? (double)s1/0 ? (double)s1/'
export_mutant multiplier-mul-without-output lib/integer/quant_binary.c 's/? (double)s1 \* (double)s2 \/ (double)s3/? (double)s1 * (double)s2/'
export_mutant multiplier-requantize-float32 lib/integer/quant_activation.c 's/double const real = relu \&\& e->profile == QAT_PROFILE_TFLITE/double const real = 1/'
export_mutant multiplier-mean-rounded lib/integer/quant_pool.c 's/<< k) \/ n);/<< k) \/ n) + 1;/'
export_mutant multiplier-softmax lib/integer/quant_softmax.c 's/double const scale = (double)beta/double const scale = 1.02 * (double)beta/'
export_mutant multiplier-softmax-tail lib/integer/quant_softmax.c 's/floor(ldexp(31.0, 26 - shift))/floor(ldexp(15.0, 26 - shift))/'
export_mutant multiplier-logistic lib/integer/quant_curves.c 's/input(e)->scale \* (1 << 27);/input(e)->scale * 1.03 * (1 << 27);/'
export_mutant multiplier-logistic-radius lib/integer/quant_curves.c 's/floor(ldexp(15.0, 27 - shift))/floor(ldexp(7.0, 27 - shift))/'
export_mutant clamp-of-relu-from-code-0 lib/integer/quant_ops.c 's/^    \*lo = bound_code(output, act_min, lowest, highest);/    *lo = lowest;/'
export_mutant clamp-of-relu6-missing lib/integer/quant_ops.c 's/^    \*hi = bound_code(output, act_max, lowest, highest);/    *hi = highest;/'
export_mutant clamp-of-8-bits lib/convert/freeze.c 's/^    return bits;/    return 8;/'
export_mutant table-last-entry lib/integer/quant_table.c \
    's/input_code(t, position));$/input_code(t, position < 255 ? position : 254));/'
export_mutant table-without-half lib/integer/quant_table.c 's/return (uint8_t)qat_code(&layer->output_params, clamped);/return (uint8_t)qat_code(\&layer->output_params, clamped - 0.4f * layer->output_params.scale);/'
export_mutant table-of-tanh lib/integer/quant_curves.c 's/roundf(f(x->scale \* (float)difference) \* inverse)/floorf(f(x->scale * (float)difference) * inverse)/'
# What another profile does.
export_mutant multiplier-double-in-paper lib/integer/quant_conv.c \
    's/if (a->fully_connected \&\& a->e->profile == QAT_PROFILE_TFLITE)/if (a->fully_connected)/'
export_mutant table-in-paper lib/integer/quant_curves.c 's/^    if (e->profile == QAT_PROFILE_TFLITE)$/    if (1)/'
export_mutant table-of-neighbour lib/integer/quant_table.c 's/uint8_t const code = output_code(t, i);/uint8_t const code = output_code(t, i) ^ (position == 3);/; /^static qat_status probe_tables/,/^}/s/if (output_code(t, i) != /if (0 \&\& output_code(t, i) != /'
