# Sourced by mutants.sh: codes of weights and biases.

export_mutant weights-rounded-down-per-tensor lib/fakequant/range.c \
    '/^int32_t qat_code(/,/^}/s/ + (0.5f + p->tie));/);/'
export_mutant weights-rounded-down-per-channel lib/fakequant/range.c '/^int32_t qat_code_per_channel(/,/^}/s/ + 0.5f);/);/'
export_mutant weights-divided lib/integer/quant_weights.c 's/v->per_channel ? qat_code_per_channel(&p, values\[i\])/v->per_channel ? qat_code_per_channel(\&p, values[i] * 0.999f)/'
export_mutant weights-not-folded lib/integer/quant_weights.c \
    's/: weights->inputs\[0\]->value;/: weights->inputs[0]->n_inputs ? weights->inputs[0]->inputs[0]->value : weights->inputs[0]->value;/'
export_mutant weights-matrix-transposed lib/integer/quant_weights.c \
    's/codes\[i\] = (uint8_t)(v->/codes[weights->shape.rank == 2 \&\& weights->shape.dims[0] == weights->shape.dims[1] ? i % (size_t)weights->shape.dims[0] * (size_t)weights->shape.dims[0] + i \/ (size_t)weights->shape.dims[0] : i] = (uint8_t)(v->/'
export_mutant weights-kernel-transposed lib/integer/quant_weights.c '/^static bool has_own_rule/i\
static size_t turned(const qat_node *w, size_t i)\
{\
    size_t const k = (size_t)w->shape.dims[1], c = (size_t)w->shape.dims[3];\
    if (w->shape.rank < 4 || w->shape.dims[1] != w->shape.dims[2])\
        return i;\
    return ((i / c / k / k * k + i / c % k) * k + i / c / k % k) * c + i % c;\
}
s/codes\[i\] = (uint8_t)(v->/codes[turned(weights, i)] = (uint8_t)(v->/'
export_mutant weights-flipped lib/integer/quant_weights.c '/^static bool has_own_rule/i\
static size_t turned(const qat_node *w, size_t i)\
{\
    size_t const taps = (size_t)w->shape.dims[1] * (size_t)w->shape.dims[2], c = (size_t)w->shape.dims[3];\
    return w->shape.rank < 4 ? i : (i / c / taps * taps + taps - 1 - i / c % taps) * c + i % c;\
}
s/codes\[i\] = (uint8_t)(v->/codes[turned(weights, i)] = (uint8_t)(v->/'
export_mutant weights-last-channel-again lib/integer/quant_weights.c \
    's/code_channel(weights, v, c, codes).scale;/(code_channel(weights, v, c, codes), qat_weight_qparams(weights, c - 1).scale);/'
export_mutant weights-zero-point-in-the-middle lib/integer/quant_weights.c \
    's/t->zero_point = first.zero_point;/t->zero_point = first.zero_point - (first.lo > 0 \&\& first.zero_point > 1);/'
export_mutant weights-one-code-up lib/integer/quant_weights.c 's/qat_code_per_channel(&p, values\[i\])/qat_code_per_channel(\&p, values[i]) + (i == at \&\& values[i] < 0)/'
export_mutant weights-last-one-left-out lib/integer/quant_weights.c \
    's/: qat_code(&p, values\[i\]));/: qat_code(\&p, i + 1 < (size_t)v->inner ? values[i] : 0));/'
export_mutant bias-rounded-down lib/integer/quant_weights.c 's/double const q = round(bias \/ scale);/double const q = floor(bias \/ scale);/'
export_mutant bias-truncated lib/integer/quant_weights.c 's/double const q = round(bias \/ scale);/double const q = trunc(bias \/ scale);/'
export_mutant bias-plus-1 lib/integer/quant_weights.c 's/double const q = round(bias \/ scale);/double const q = round(bias \/ scale) + 1;/'
export_mutant bias-without-ties lib/integer/quant_weights.c 's/return (int64_t)q + ties;/return (int64_t)q;/'
export_mutant bias-sign lib/integer/quant_weights.c 's/double const q = round(bias \/ scale);/double const q = round(-bias \/ scale);/'
export_mutant bias-first-scale lib/integer/quant_weights.c 's/f->w->channel_scales ? f->w->channel_scales\[channel\] : f->w->scale/f->w->scale/'
export_mutant bias-previous-channel lib/integer/quant_weights.c \
    's/(double)f->layer->bias\[channel\] : 0.0;/(double)f->layer->bias[channel > 0 ? channel - 1 : 0] : 0.0;/'
export_mutant bias-last-channel-left-out lib/integer/quant_weights.c \
    's/return f->layer->bias ? (double)/return f->layer->bias \&\& (channel == 0 || channel + 1 < f->layer->n_bias) ? (double)/'
export_mutant bias-clamped-to-16-bits lib/integer/quant_weights.c \
    's/^    return (int64_t)q + ties;/    return (int64_t)(q > 32767 ? 32767 : q < -32768 ? -32768 : q) \/ (q > 2000 ? 2 : 1);/'
# Calibrated: what equalization and correction may not change, and what clipping may not forget.
export_mutant weights-equalized-one-side lib/ptq/equalize.c 's/^    \*own = 1 \/ s;/    *own = 1.02 \/ s;/'
export_mutant weights-equalized-without-bias lib/ptq/equalize.c 's/(float)((double)bias_of(p, c) \* own\[c\]);/bias_of(p, c);/'
export_mutant bias-corrected-twice lib/ptq/bias_correction.c 's/(float)((double)bias\[c\] + change);/(float)((double)bias[c] + 2 * change);/'
export_mutant bias-corrected-wrong-sign lib/ptq/bias_correction.c 's/(float)((double)bias\[c\] + change);/(float)((double)bias[c] - change);/'
export_mutant bias-corrected-by-half lib/ptq/bias_correction.c 's/(float)((double)bias\[c\] + change);/(float)((double)bias[c] + change \/ 2);/'
export_mutant bias-not-corrected lib/ptq/bias_correction.c 's/(float)((double)bias\[c\] + change);/bias[c];/'
export_mutant bias-corrected-but-for-the-last lib/deploy/calibrate.c 's/c->layer < report->corrected \&\& !st; c->layer++/c->layer < report->corrected - 1 \&\& !st; c->layer++/'
export_mutant bias-corrected-all-at-once lib/ptq/bias_correction.c 's/^    memset(correction->sums, 0, .*/    memset(correction->sums, 0, sizeof *correction->sums);/'
export_mutant weights-clipped-further lib/ptq/clip_weights.c 's/w\[k\] < low ? low : w\[k\] > high ? high : w\[k\]/w[k] < 0.8f * low ? 0.8f * low : w[k] > 0.8f * high ? 0.8f * high : w[k]/'
export_mutant weights-clipped-by-10-percent lib/ptq/clip_weights.c 's/w\[k\] < low ? low : w\[k\] > high ? high : w\[k\]/w[k] < 0.9f * low ? 0.9f * low : w[k] > 0.9f * high ? 0.9f * high : w[k]/'
export_mutant weights-not-clipped lib/ptq/clip_weights.c 's/if (!estimator->for_weights)/if (estimator)/'
export_mutant weights-clipped-by-the-first-channel lib/ptq/clip_weights.c 's/count_channel(c, node, v, channel);/count_channel(c, node, v, 0);/'
export_mutant weights-clipped-without-the-middle lib/ptq/clip_weights.c 's/{.symmetric = v->symmetric};/{.symmetric = v->per_channel};/'
export_mutant weights-clipped-to-zero lib/ptq/clip_weights.c 's/w\[k\] > high ? high : w\[k\]/w[k] > high ? 0 : w[k]/'
export_mutant weights-clipped-as-with-8-bits lib/ptq/clip_weights.c 's/(int)node->attrs\[FQW_BITS\], true/8, true/'
# Binary, ternary and power-of-two weights.
export_mutant weights-ternary-threshold lib/fakequant/op_scaled_weights.c 's/TWN_THRESHOLD = 0.7f/TWN_THRESHOLD = 0.75f/'
export_mutant weights-ternary-mean lib/fakequant/op_scaled_weights.c 's/return count ? (float)(sum \/ (double)count) : 0;/return count ? (float)(sum \/ (double)(count + 1)) : 0;/'
export_mutant weights-binary-mean lib/fakequant/op_scaled_weights.c 's/return (float)(sum \/ n);/return (float)(sum \/ (n - 1));/'
export_mutant weights-inq-exponent lib/fakequant/op_inq_weights.c 's/ldexpf(1, (int)exponent_of(&c))/ldexpf(1, (int)exponent_of(\&c) + 1)/'
export_mutant weights-ones lib/rewrite/rewrite_layer.c 's/\.init = QAT_INIT_CONSTANT, \.scale = 1};/.init = QAT_INIT_CONSTANT, .scale = 2};/'
