#!/usr/bin/env bash
# Post-training quantization and fine-tuning by the commands, on drawn digits: what they print, write and refuse. Each
# check prints one line, `ok -` or `not ok -`.
set -u
tools=${QAT_BUILD_ROOT:?}/tools
. "$QAT_SOURCE_ROOT/tests/common/checks.sh"

cat >small.ini <<EOF
[data]
kind = digits
train_count = 400
test_count = 100
[model]
filters = 4, 8
strides = 2
[train]
epochs = 4
batch = 16
EOF
train() { # train <folder> <options...>
    folder=$1
    shift
    "$tools/qat-train" small.ini --out "$folder" "$@"
}
float_eval() { # float_eval <options...>: of the float run
    "$tools/qat-eval" float/last.ckpt "$@"
}
check "a float run" train float

# ---------------------------------------------------------------- qat-export --ptq
written() { # written <name> <options...>: and no byte differs
    name=$1
    shift
    check "export $*" "$tools/qat-export" float/last.ckpt "$name.qm" --ptq recipe "$@"
    has "export $*: no byte differs" ', 0 differing$' out.txt
    has "export $*: what it was calibrated on" '^calibrated on digits/train: [0-9]+ samples, observer' out.txt
    check "export $*: it runs" "$tools/qat-eval" "$name.qm" --data digits --samples 20
}
written plain
written percentile --observer percentile:99.9
written mse --observer mse --profile tflite
written all --observer mse --equalize --correct-bias
written narrow --set quant.layout=int8 --set quant.weight_bits=4 --set quant.activation_bits=6
written again --observer mse --equalize --correct-bias
same "calibration gives the same bytes twice" all.qm again.qm
written one --observer mse --equalize --correct-bias --threads 1
same "and on one thread" all.qm one.qm
if cmp -s plain.qm mse.qm; then not_ok "observers differ"; else ok "observers differ"; fi
# a format's own profile is taken only where nobody names one
check ".tflite: its own profile" "$tools/qat-export" float/last.ckpt own.tflite --ptq recipe
check ".tflite: --profile paper" "$tools/qat-export" float/last.ckpt named.tflite --ptq recipe --profile paper
check ".tflite: --set quant.profile" "$tools/qat-export" float/last.ckpt set.tflite --ptq recipe --set quant.profile=paper
same ".tflite: --set names the profile as --profile does" named.tflite set.tflite
if cmp -s own.tflite named.tflite; then not_ok ".tflite: profiles differ"; else ok ".tflite: profiles differ"; fi
check "an export where TMPDIR cannot be written" env TMPDIR=/nowhere "$tools/qat-export" float/last.ckpt beside.qm --ptq recipe
check "what equalization and correction did" "$tools/qat-export" float/last.ckpt said.qm --ptq recipe --equalize \
    --correct-bias --ptq-samples 50
has "the samples" '^calibrated on digits/train: 50 samples, observer minmax$' out.txt
has "the pairs" '^equalized 2 pairs of layers in [0-9]+ rounds: ' out.txt
has "the biases" '^corrected the biases of 3 layers, by at most [0-9.e-]+$' out.txt
check "a run before its delay" train early --set quant.enabled=yes --set quant.quant_delay=never --set train.epochs=1
check "is quantized after training as well" "$tools/qat-export" early/last.ckpt early.qm --ptq digits
refuses "an estimator that is none" 2 "unknown estimator 'median': expected minmax, percentile[:P] or mse" \
    "$tools/qat-export" float/last.ckpt x.qm --ptq recipe --observer median
refuses "a percentile beyond 100" 2 "estimator percentile:120: expected a number in 50..100" \
    float_eval --ptq recipe --observer percentile:120
for option in "--observer mse" --equalize --correct-bias "--ptq-samples 9" "--set quant.layout=int8"; do
    # shellcheck disable=SC2086
    refuses "${option%% *} without --ptq" 2 "${option%% *} needs --ptq" "$tools/qat-export" float/last.ckpt x.qm $option
done
refuses "another key than quantization's" 2 "after training only quant.layout, quant.profile" \
    "$tools/qat-export" float/last.ckpt x.qm --ptq recipe --set train.lr=1
refuses "bits that are none" 2 "expected an integer in 2..8" \
    "$tools/qat-export" float/last.ckpt x.qm --ptq recipe --set quant.weight_bits=9
refuses "calibration data that are not there" 1 "nowhere" "$tools/qat-export" float/last.ckpt x.qm --ptq idx:nowhere
check "nothing was written by those" test ! -e x.qm

# ---------------------------------------------------------------- qat-eval
check "eval --ptq" float_eval --ptq recipe --observer mse
has "eval --ptq: float" '^float +top-1 [0-9.]+ %' out.txt
has "eval --ptq: quantized" '^quantized +top-1 [0-9.]+ %' out.txt
for ranges in batch worst-case; do
    check "eval --ranges $ranges" float_eval --ranges $ranges --batch 10
    has "eval --ranges $ranges: said to be for comparison" "^ranges $ranges, simulated in float32: for comparison" out.txt
    has "eval --ranges $ranges: quantized" '^quantized +top-1 [0-9.]+ %' out.txt
done
check "eval --ranges as JSON" float_eval --ranges batch --set quant.weight_bits=4 --json
has "eval --ranges as JSON: which" '"top1": .*"ranges": "batch"' out.txt
check "layers left in float by training" train unranged --set quant.enabled=yes --set quant.activation_ranges=none --set train.epochs=1
check "eval --ptq of them" "$tools/qat-eval" unranged/last.ckpt --ptq recipe
has "eval --ptq of them: quantized" '^quantized +top-1 [0-9.]+ %' out.txt
refuses "ranges that are none" 2 "expected observed, batch or worst-case" float_eval --ranges best
refuses "ranges of a batch, calibrated" 2 "cannot be combined with --ptq" float_eval --ranges batch --ptq recipe
refuses "--set without a choice of ranges" 2 "--set needs --ptq" float_eval --set quant.layout=int8
refuses "ranges of a .qm" 2 "--ranges works with checkpoints only" "$tools/qat-eval" all.qm --data digits --ranges batch

# ---------------------------------------------------------------- qat-train --init
check "fine-tuning with quantization" train tuned --init float/last.ckpt --set quant.enabled=yes --set train.epochs=1
has "fine-tuning: what was taken" '^init float/last.ckpt: 14 parameters taken, [0-9]+ values$' out.txt
check "its export" "$tools/qat-export" tuned/last.ckpt tuned.qm
frozen() { # frozen <folder> <options...>: one epoch of a new head
    folder=$1
    shift
    train "$folder" --init float/last.ckpt --set train.init_skip=logits --set 'train.freeze=conv*' --set train.epochs=1 "$@"
}
check "a replaced head on frozen layers" frozen head
has "a replaced head: what was skipped" 'skipped \(train.init_skip\): logits/weights, logits/bias/bias$' out.txt
check "the same once more" frozen head2
for file in log.csv last.ckpt; do
    same "$file of both" head/$file head2/$file
done
refuses "weights of another shape" 1 "1 tensors have another shape in the file (train.init_skip leaves them out): conv1/weights is [4, 3, 3, 1], here" \
    train other --init float/last.ckpt --set data.kind=shapes
refuses "weights that are not there" 1 "nothing.npz" train other --init nothing.npz
refuses "a pattern that matches nothing" 2 "train.freeze: no parameter matches 'conv7'" train other --set train.freeze=conv7
refuses "beginning and continuing" 2 "either --resume or --init" train tuned --resume --init float/last.ckpt
exit $failed
